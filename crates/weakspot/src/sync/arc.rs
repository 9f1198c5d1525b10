//! Reference counts.
//!
//! Cloning and dropping an `Arc` commute, so they are no events: the order in which threads do it does not matter unless
//! the program can see it. It sees it by asking for the count (`strong_count`, `get_mut`, `try_unwrap`, `Weak::upgrade`,
//! …) or by doing something in the destructor of the last owner, where it matters who that is. When that happens and the
//! answer is not the same in every order, the place where the `Arc` was made is remembered as *observed* and the
//! exploration begins anew, with the counts of the `Arc`s made there as events.

mod traits;
mod weak;

use std::borrow::Borrow;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::sync as outside;

use crate::rt::Sync as Synchronises;
use crate::rt::counts::{self, Count};

/// A reference-counted pointer.
#[repr(transparent)]
pub struct Arc<T: ?Sized>(ManuallyDrop<outside::Arc<T>>);

/// A pointer that does not keep its target alive.
#[repr(transparent)]
pub struct Weak<T: ?Sized>(outside::Weak<T>);

fn key<T: ?Sized>(arc: &outside::Arc<T>) -> usize {
    outside::Arc::as_ptr(arc).cast::<()>().addr()
}

impl<T> Arc<T> {
    /// A value with one owner.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self::from_std(outside::Arc::new(value))
    }

    /// Memory for a value that is made later.
    #[track_caller]
    pub fn new_uninit() -> Arc<MaybeUninit<T>> {
        Arc::from_std(outside::Arc::new_uninit())
    }

    /// A value that cannot be moved.
    #[track_caller]
    pub fn pin(value: T) -> Pin<Self> {
        // SAFETY: the value is owned by the `Arc`, which never moves it.
        unsafe { Pin::new_unchecked(Self::new(value)) }
    }

    /// A value that has a weak pointer to itself.
    #[track_caller]
    pub fn new_cyclic(make: impl FnOnce(&Weak<T>) -> T) -> Self {
        let place = Location::caller();
        let arc = outside::Arc::new_cyclic(|weak| {
            // SAFETY: `Weak` is a transparent wrapper.
            make(unsafe { &*std::ptr::from_ref(weak).cast::<Weak<T>>() })
        });
        counts::made(key(&arc), place);
        Self::wrap(arc)
    }

    /// The value, if this is its only owner.
    #[track_caller]
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if this.is_only_owner("Arc::try_unwrap") {
            let arc = this.forget_count();
            return outside::Arc::try_unwrap(arc).map_err(Self::wrap);
        }
        Err(this)
    }

    /// The value, if this is the last owner.
    #[track_caller]
    pub fn into_inner(this: Self) -> Option<T> {
        if this.is_only_owner("Arc::into_inner") {
            return outside::Arc::into_inner(this.forget_count());
        }
        None
    }
}

impl<T> Arc<[T]> {
    /// Memory for values that are made later.
    #[track_caller]
    pub fn new_uninit_slice(length: usize) -> Arc<[MaybeUninit<T>]> {
        Arc::from_std(outside::Arc::new_uninit_slice(length))
    }
}

impl<T> Arc<MaybeUninit<T>> {
    /// The value is made now.
    ///
    /// # Safety
    /// It is.
    pub unsafe fn assume_init(self) -> Arc<T> {
        // SAFETY: the pointer comes from `into_raw`, and the caller has made the value.
        unsafe { Arc::from_raw(Self::into_raw(self).cast()) }
    }
}

impl<T> Arc<[MaybeUninit<T>]> {
    /// The values are made now.
    ///
    /// # Safety
    /// They are.
    pub unsafe fn assume_init(self) -> Arc<[T]> {
        // SAFETY: the pointer comes from `into_raw`, and the caller has made the values.
        unsafe { Arc::from_raw(Self::into_raw(self) as *const [T]) }
    }
}

impl<T: Clone> Arc<T> {
    /// The value to change, cloned if there are other owners.
    #[track_caller]
    pub fn make_mut(this: &mut Self) -> &mut T {
        if !this.is_only_owner("Arc::make_mut") {
            *this = Self::new((**this).clone());
        }
        outside::Arc::make_mut(&mut this.0)
    }

    /// The value, cloned if there are other owners.
    #[track_caller]
    pub fn unwrap_or_clone(this: Self) -> T {
        Self::try_unwrap(this).unwrap_or_else(|arc| (*arc).clone())
    }
}

impl<T: ?Sized> Arc<T> {
    /// The standard library's `Arc` as one of ours.
    #[track_caller]
    pub fn from_std(arc: outside::Arc<T>) -> Self {
        counts::made(key(&arc), Location::caller());
        Self::wrap(arc)
    }

    fn wrap(arc: outside::Arc<T>) -> Self {
        Self(ManuallyDrop::new(arc))
    }

    /// Turns a raw pointer from [`Self::into_raw`] back.
    ///
    /// # Safety
    /// As for the standard library's.
    pub unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: the caller's.
        Self::wrap(unsafe { outside::Arc::from_raw(pointer) })
    }

    /// One more owner.
    ///
    /// # Safety
    /// As for the standard library's.
    #[track_caller]
    pub unsafe fn increment_strong_count(pointer: *const T) {
        counts::cloned(pointer.cast::<()>().addr(), Location::caller());
        // SAFETY: the caller's.
        unsafe { outside::Arc::increment_strong_count(pointer) }
    }

    /// One owner less.
    ///
    /// # Safety
    /// As for the standard library's.
    #[track_caller]
    pub unsafe fn decrement_strong_count(pointer: *const T) {
        // SAFETY: the caller's.
        drop(unsafe { Self::from_raw(pointer) });
    }

    /// A raw pointer, which owns.
    pub fn into_raw(this: Self) -> *const T {
        let pointer = outside::Arc::as_ptr(&this.0);
        std::mem::forget(this);
        pointer
    }

    /// A raw pointer, which does not own.
    pub fn as_ptr(this: &Self) -> *const T {
        outside::Arc::as_ptr(&this.0)
    }

    /// A weak pointer.
    #[track_caller]
    pub fn downgrade(this: &Self) -> Weak<T> {
        counts::observe(key(&this.0), Location::caller());
        Weak(outside::Arc::downgrade(&this.0))
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(this: &Self) -> usize {
        let physical = outside::Arc::strong_count(&this.0);
        match counts::look(key(&this.0), physical, Location::caller()) {
            Count::Known => physical,
            Count::Word(word) => word.get("Arc::strong_count", Synchronises::Relaxed) as usize,
        }
    }

    /// How many weak pointers there are. No event: they are rarely asked for.
    pub fn weak_count(this: &Self) -> usize {
        outside::Arc::weak_count(&this.0)
    }

    /// The value to change, if this is its only owner.
    #[track_caller]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if this.is_only_owner("Arc::get_mut") { outside::Arc::get_mut(&mut this.0) } else { None }
    }

    /// Do both point to the same value?
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        outside::Arc::ptr_eq(&this.0, &other.0)
    }

    #[track_caller]
    fn is_only_owner(&self, what: &'static str) -> bool {
        let physical = outside::Arc::strong_count(&self.0);
        match counts::look(key(&self.0), physical, Location::caller()) {
            Count::Known => physical == 1,
            Count::Word(word) => word.get(what, Synchronises::Acquire) == 1,
        }
    }

    /// The standard library's `Arc`; the count is forgotten, since this is the only owner.
    fn forget_count(self) -> outside::Arc<T> {
        counts::gone(key(&self.0));
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the wrapper is forgotten and not used again.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        counts::cloned(key(&self.0), Location::caller());
        Self::wrap(outside::Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    #[track_caller]
    fn drop(&mut self) {
        let key = key(&self.0);
        let dropping = counts::dropping(key, &|| outside::Arc::strong_count(&self.0), Location::caller());
        // SAFETY: this is the destructor, the field is not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        if let Some(dropping) = dropping {
            counts::dropped(key, dropping);
        }
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Borrow<T> for Arc<T> {
    fn borrow(&self) -> &T {
        &self.0
    }
}
