//! Reference counts.
//!
//! Cloning and dropping an `Arc` commute, so they are no events: the order in which threads do it does not matter unless
//! the program can see it. It sees it by asking for the count (`strong_count`, `get_mut`, `try_unwrap`, `Weak::upgrade`,
//! …) or by doing something in the destructor of the last owner, where it matters who that is. When that happens and the
//! answer is not the same in every order, the place where the `Arc` was made is remembered as *observed* and the
//! exploration begins anew, with the counts of the `Arc`s made there as events. Whether the answer is the same in every order
//! is the matter of `rt::owners`. Weak pointers are counted apart from that: only if the program can see how many there are
//! (`weak_count`, `get_mut`, `make_mut`).

mod io;
mod traits;
mod weak;

use std::borrow::Borrow;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::sync as outside;

use crate::rt::counts::{self, Count, Owners};
use crate::rt::{self, Step, Sync as Synchronises};

/// A reference-counted pointer.
#[repr(transparent)]
pub struct Arc<T: ?Sized>(ManuallyDrop<outside::Arc<T>>);

/// A pointer that does not keep its target alive.
#[repr(transparent)]
pub struct Weak<T: ?Sized>(ManuallyDrop<outside::Weak<T>>);

fn key<T: ?Sized>(arc: &outside::Arc<T>) -> usize {
    outside::Arc::as_ptr(arc).cast::<()>().addr()
}

fn owners<T: ?Sized>(arc: &outside::Arc<T>) -> Owners {
    Owners { strong: outside::Arc::strong_count(arc), weak: outside::Arc::weak_count(arc) }
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

    /// The same, all of it zero.
    #[track_caller]
    pub fn new_zeroed() -> Arc<MaybeUninit<T>> {
        Arc::new(MaybeUninit::zeroed())
    }

    /// A value that cannot be moved.
    #[track_caller]
    pub fn pin(value: T) -> Pin<Self> {
        // SAFETY: the value is owned by the `Arc`, which never moves it.
        unsafe { Pin::new_unchecked(Self::new(value)) }
    }

    /// A value that has a weak pointer to itself.
    #[track_caller]
    pub fn new_cyclic<F: FnOnce(&Weak<T>) -> T>(make: F) -> Self {
        let place = Location::caller();
        let arc = outside::Arc::new_cyclic(|weak: &outside::Weak<T>| {
            counts::making(weak.as_ptr().addr(), place);
            // SAFETY: `Weak` is a transparent wrapper.
            make(unsafe { &*std::ptr::from_ref(weak).cast::<Weak<T>>() })
        });
        counts::made_at_last(key(&arc), place);
        Self::wrap(arc)
    }

    /// The value, if this is its only owner.
    #[track_caller]
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        let place = Location::caller();
        match counts::look(key(&this.0), owners(&this.0), place) {
            Count::Known => counts::interlocked("Arc::try_unwrap", Synchronises::Release, place),
            Count::Word(word) => {
                let step = |word| if Owners::of(word).strong == 1 { Step::Write(word - 1) } else { Step::Keep };
                if Owners::of(word.update("Arc::try_unwrap", Synchronises::AcqRel, step)).strong != 1 {
                    return Err(this);
                }
            }
        }
        let key = key(&this.0);
        let value = outside::Arc::try_unwrap(this.into_std()).map_err(Self::wrap)?;
        counts::gone(key);
        Ok(value)
    }

    /// The value, if this is the last owner. If all owners ask, exactly one of them gets it.
    #[track_caller]
    pub fn into_inner(this: Self) -> Option<T> {
        let (key, place) = (key(&this.0), Location::caller());
        let count = counts::look(key, owners(&this.0), place);
        match &count {
            Count::Known => counts::interlocked("Arc::into_inner", Synchronises::Release, place),
            Count::Word(word) => _ = word.update("Arc::into_inner", Synchronises::AcqRel, counts::one_owner_less),
        }
        let value = outside::Arc::into_inner(this.into_std());
        match (&value, count) {
            (Some(_), _) => counts::gone(key),
            (None, Count::Word(_)) => counts::left(key),
            (None, Count::Known) => {}
        }
        value
    }
}

impl<T> Arc<[T]> {
    /// Memory for values that are made later.
    #[track_caller]
    pub fn new_uninit_slice(length: usize) -> Arc<[MaybeUninit<T>]> {
        Arc::from_std(outside::Arc::new_uninit_slice(length))
    }

    /// The same, all of it zero.
    #[track_caller]
    pub fn new_zeroed_slice(length: usize) -> Arc<[MaybeUninit<T>]> {
        (0..length).map(|_| MaybeUninit::zeroed()).collect()
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

/// What the standard library's `Arc` can be made the only owner of, by cloning.
#[doc(hidden)]
pub trait Unshare {
    fn cloned(&self) -> outside::Arc<Self>;
    fn unshare(this: &mut outside::Arc<Self>) -> &mut Self;
}

impl<T: Clone> Unshare for T {
    fn cloned(&self) -> outside::Arc<T> {
        outside::Arc::new(self.clone())
    }

    fn unshare(this: &mut outside::Arc<T>) -> &mut T {
        outside::Arc::make_mut(this)
    }
}

impl<T: Clone> Unshare for [T] {
    fn cloned(&self) -> outside::Arc<[T]> {
        self.into()
    }

    fn unshare(this: &mut outside::Arc<[T]>) -> &mut [T] {
        outside::Arc::make_mut(this)
    }
}

impl Unshare for str {
    fn cloned(&self) -> outside::Arc<str> {
        self.into()
    }

    fn unshare(this: &mut outside::Arc<str>) -> &mut str {
        outside::Arc::make_mut(this)
    }
}

impl<T: ?Sized + Unshare> Arc<T> {
    /// The value to change, cloned if there are other owners.
    #[track_caller]
    pub fn make_mut(this: &mut Self) -> &mut T {
        let place = Location::caller();
        let is_only_owner = match counts::look_at_both(key(&this.0), owners(&this.0), false, place) {
            Count::Known => {
                counts::interlocked("Arc::make_mut", Synchronises::Acquire, place);
                outside::Arc::strong_count(&this.0) == 1
            }
            // If there are weak pointers, the value moves away from them.
            Count::Word(word) => {
                let moves = |owners: Owners| owners.strong == 1 && owners.weak > 0;
                let step = |word| if moves(Owners::of(word)) { Step::Write(word - 1) } else { Step::Keep };
                Owners::of(word.update("Arc::make_mut", Synchronises::AcqRel, step)).strong == 1
            }
        };
        if !is_only_owner {
            *this = Self::from_std(T::cloned(&this.0));
        }
        let before = key(&this.0);
        T::unshare(&mut this.0);
        if key(&this.0) != before {
            counts::moved(before, key(&this.0));
        }
        T::unshare(&mut this.0)
    }
}

impl<T: Clone> Arc<T> {
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
        // SAFETY: the caller's. This one is not dropped: it is the caller's owner.
        let arc = ManuallyDrop::new(unsafe { outside::Arc::from_raw(pointer) });
        counts::added_by_pointer(key(&arc), owners(&arc), Location::caller());
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
        counts::downgraded(key(&this.0), owners(&this.0), Location::caller());
        Weak::wrap(outside::Arc::downgrade(&this.0))
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(this: &Self) -> usize {
        let physical = owners(&this.0);
        match counts::look(key(&this.0), physical, Location::caller()) {
            Count::Known => physical.strong,
            Count::Word(word) => Owners::of(word.look("Arc::strong_count", Synchronises::Relaxed)).strong,
        }
    }

    /// How many weak pointers there are.
    #[track_caller]
    pub fn weak_count(this: &Self) -> usize {
        match counts::look_at_both(key(&this.0), owners(&this.0), true, Location::caller()) {
            Count::Known => outside::Arc::weak_count(&this.0),
            Count::Word(word) => Owners::of(word.look("Arc::weak_count", Synchronises::Relaxed)).weak,
        }
    }

    /// The value to change, if this is its only owner and there is no weak pointer.
    #[track_caller]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        let place = Location::caller();
        match counts::look_at_both(key(&this.0), owners(&this.0), false, place) {
            Count::Known => counts::interlocked("Arc::get_mut", Synchronises::Acquire, place),
            Count::Word(word) => {
                if Owners::of(word.get("Arc::get_mut", Synchronises::Acquire)) != Owners::ONE {
                    return None;
                }
            }
        }
        outside::Arc::get_mut(&mut this.0)
    }

    /// Do both point to the same value?
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        outside::Arc::ptr_eq(&this.0, &other.0)
    }

    /// The standard library's `Arc`, whose owner is still counted.
    fn into_std(self) -> outside::Arc<T> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the wrapper is forgotten and not used again.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        counts::cloned(key(&self.0), &|| owners(&self.0), Location::caller());
        Self::wrap(outside::Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    #[track_caller]
    fn drop(&mut self) {
        let key = key(&self.0);
        let dropping = counts::dropping(key, &|| owners(&self.0), Location::caller());
        let is_last = outside::Arc::strong_count(&self.0) == 1;
        // SAFETY: this is the destructor, the field is not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        if is_last {
            rt::note_freed_by_owner(key);
        }
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
