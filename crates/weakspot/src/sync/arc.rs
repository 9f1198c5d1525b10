//! Reference counts.
//!
//! Cloning and dropping an `Arc` commute, so they are no events: the order in which threads do it does not matter unless
//! the program can see it. It sees it by asking for the count (`strong_count`, `get_mut`, `try_unwrap`, `Weak::upgrade`,
//! …) or by doing something in the destructor of the last owner, where it matters who that is. When that happens and the
//! answer is not the same in every order, the place where the `Arc` was made is remembered as *observed* and the
//! exploration begins anew, with the counts of the `Arc`s made there as events.

use std::borrow::Borrow;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location;
use std::pin::Pin;
use std::sync as outside;

use crate::rt::counts::{self, Count};
use crate::rt::{Step, Sync as Synchronises};

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
        let (key, physical) = (key(&self.0), outside::Arc::strong_count(&self.0));
        let before = counts::dropping(key, physical, Location::caller());
        // SAFETY: this is the destructor, the field is not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        counts::dropped(key, physical, before);
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

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized> From<outside::Arc<T>> for Arc<T> {
    #[track_caller]
    fn from(arc: outside::Arc<T>) -> Self {
        Self::from_std(arc)
    }
}

impl<T: ?Sized> From<Box<T>> for Arc<T> {
    #[track_caller]
    fn from(value: Box<T>) -> Self {
        Self::from_std(value.into())
    }
}

impl<T> From<Vec<T>> for Arc<[T]> {
    #[track_caller]
    fn from(values: Vec<T>) -> Self {
        Self::from_std(values.into())
    }
}

impl From<&str> for Arc<str> {
    #[track_caller]
    fn from(text: &str) -> Self {
        Self::from_std(text.into())
    }
}

impl From<String> for Arc<str> {
    #[track_caller]
    fn from(text: String) -> Self {
        Self::from_std(text.into())
    }
}

impl<T> FromIterator<T> for Arc<[T]> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::from_std(values.into_iter().collect())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl<T: ?Sized> fmt::Pointer for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&*self.0, f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}

impl<T: ?Sized + PartialOrd> PartialOrd for Arc<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: ?Sized + Ord> Ord for Arc<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl<T: ?Sized + std::hash::Hash> std::hash::Hash for Arc<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T> Weak<T> {
    /// Points to nothing.
    pub const fn new() -> Self {
        Self(outside::Weak::new())
    }

    /// A raw pointer, which keeps the memory.
    pub fn into_raw(self) -> *const T {
        self.0.into_raw()
    }

    /// Turns a raw pointer from [`Self::into_raw`] back.
    ///
    /// # Safety
    /// As for the standard library's.
    pub unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { outside::Weak::from_raw(pointer) })
    }
}

impl<T: ?Sized> Weak<T> {
    /// An owner, if the value still has one.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let key = self.0.as_ptr().cast::<()>().addr();
        let place = Location::caller();
        if let Some(word) = counts::word_of_weak(key, self.0.strong_count(), place) {
            let found = word.update("Weak::upgrade", Synchronises::Acquire, |count| {
                if count == 0 { Step::Keep } else { Step::Write(count + 1) }
            });
            if found == 0 {
                return None;
            }
        }
        self.0.upgrade().map(Arc::wrap)
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(&self) -> usize {
        let key = self.0.as_ptr().cast::<()>().addr();
        match counts::word_of_weak(key, self.0.strong_count(), Location::caller()) {
            Some(word) => word.get("Weak::strong_count", Synchronises::Relaxed) as usize,
            None => self.0.strong_count(),
        }
    }

    /// How many weak pointers there are.
    pub fn weak_count(&self) -> usize {
        self.0.weak_count()
    }

    /// Do both point to the same value?
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// A raw pointer.
    pub fn as_ptr(&self) -> *const T {
        self.0.as_ptr()
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
