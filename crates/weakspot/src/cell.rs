//! Mirrors of `std::cell` for what threads share: accesses are checked for data races in a model. What belongs to one thread
//! is the standard library's.

use std::cmp::Ordering;
use std::fmt;
use std::mem::{MaybeUninit, needs_drop, size_of_val};

pub use std::cell::{BorrowError, BorrowMutError, LazyCell, OnceCell, Ref, RefCell, RefMut};

use crate::rt::{self, Open, Tracked};

/// Memory that is changed through shared references.
#[derive(Default)]
pub struct UnsafeCell<T: ?Sized> {
    tracked: Tracked,
    data: std::cell::UnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> Self {
        Self { tracked: Tracked::new(), data: std::cell::UnsafeCell::new(value) }
    }

    /// The value, at the end of the cell's life.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Reads the memory through a pointer, from the beginning of the call to its end.
    #[track_caller]
    pub fn with<F: FnOnce(*const T) -> R, R>(&self, read: F) -> R {
        let _open = self.tracked.begin(false);
        read(self.data.get())
    }

    /// Writes the memory through a pointer, from the beginning of the call to its end.
    #[track_caller]
    pub fn with_mut<F: FnOnce(*mut T) -> R, R>(&self, write: F) -> R {
        let _open = self.tracked.begin(true);
        let data = self.data.get();
        let before = Image::of(&self.data);
        let result = write(data);
        if before.is_none_or(|before| before.is_another(data.cast())) {
            rt::note_change();
        }
        result
    }

    /// A pointer to read through: counts as a read as long as it is there.
    #[track_caller]
    pub fn get(&self) -> ConstPtr<T> {
        ConstPtr { open: self.tracked.begin(false), pointer: self.data.get() }
    }

    /// A pointer to write through: counts as a write as long as it is there.
    #[track_caller]
    pub fn get_mut(&self) -> MutPtr<T> {
        rt::note_change();
        MutPtr { open: self.tracked.begin(true), pointer: self.data.get() }
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsafeCell").finish_non_exhaustive()
    }
}

impl<T> From<T> for UnsafeCell<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

/// A tracked pointer to read an [`UnsafeCell`].
pub struct ConstPtr<T: ?Sized> {
    open: Open,
    pointer: *const T,
}

impl<T: ?Sized> ConstPtr<T> {
    /// The memory.
    ///
    /// # Safety
    /// As for `&*` of a raw pointer.
    #[track_caller]
    pub unsafe fn deref(&self) -> &T {
        self.open.use_now();
        // SAFETY: the caller's.
        unsafe { &*self.pointer }
    }

    /// Works with the raw pointer.
    #[track_caller]
    pub fn with<F: FnOnce(*const T) -> R, R>(&self, read: F) -> R {
        self.open.use_now();
        read(self.pointer)
    }
}

impl<T: ?Sized> fmt::Debug for ConstPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConstPtr").finish_non_exhaustive()
    }
}

/// The bytes of a small value that owns nothing.
struct Image {
    bytes: [MaybeUninit<u8>; Self::MOST],
    size: usize,
}

impl Image {
    const MOST: usize = 32;
    /// May the bytes be looked at again although the value may be gone by then? What a model frees stays where it is
    /// (`rt::memory`).
    const LASTS: bool =
        cfg!(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")));

    /// Of a value outside a model, of a large one, and of one that owns memory which may change while its own bytes do
    /// not, there is none.
    fn of<T: ?Sized>(value: &std::cell::UnsafeCell<T>) -> Option<Self> {
        let size = size_of_val(value);
        if !Self::LASTS || !rt::in_model() || needs_drop::<T>() || size > Self::MOST {
            return None;
        }
        let mut bytes = [MaybeUninit::uninit(); Self::MOST];
        // SAFETY: the value has so many bytes, and so has the image at least. They may be uninitialised there as here.
        unsafe { std::ptr::copy_nonoverlapping(value.get().cast::<MaybeUninit<u8>>(), bytes.as_mut_ptr(), size) };
        Some(Self { bytes, size })
    }

    /// Are there other bytes now? Those between fields may make it look so.
    #[cfg(target_os = "linux")]
    fn is_another(&self, value: *const u8) -> bool {
        // SAFETY: both have so many bytes, and they are there: see `LASTS`. The function is opaque to the compiler, so it
        // compares what is in memory.
        unsafe { libc::memcmp(self.bytes.as_ptr().cast(), value.cast(), self.size) != 0 }
    }

    /// There is nobody to ask.
    #[cfg(not(target_os = "linux"))]
    fn is_another(&self, _value: *const u8) -> bool {
        true
    }
}

/// A tracked pointer to write an [`UnsafeCell`].
pub struct MutPtr<T: ?Sized> {
    open: Open,
    pointer: *mut T,
}

impl<T: ?Sized> Drop for MutPtr<T> {
    fn drop(&mut self) {
        rt::note_change();
    }
}

impl<T: ?Sized> MutPtr<T> {
    /// The memory.
    ///
    /// # Safety
    /// As for `&mut *` of a raw pointer.
    #[track_caller]
    #[allow(clippy::mut_from_ref, reason = "that is what a cell is for")]
    pub unsafe fn deref(&self) -> &mut T {
        self.open.use_now();
        // SAFETY: the caller's.
        unsafe { &mut *self.pointer }
    }

    /// Works with the raw pointer.
    #[track_caller]
    pub fn with<F: FnOnce(*mut T) -> R, R>(&self, write: F) -> R {
        self.open.use_now();
        write(self.pointer)
    }
}

impl<T: ?Sized> fmt::Debug for MutPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutPtr").finish_non_exhaustive()
    }
}

/// A value that is moved in and out through shared references.
#[derive(Default)]
pub struct Cell<T: ?Sized> {
    inner: UnsafeCell<T>,
}

impl<T> Cell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> Self {
        Self { inner: UnsafeCell::new(value) }
    }

    /// Writes the value.
    #[track_caller]
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// Exchanges the values of two cells.
    #[track_caller]
    pub fn swap(&self, other: &Self) {
        if !std::ptr::eq(self, other) {
            // SAFETY: a cell is not `Sync`, nothing else borrows its content, and the cells are different.
            self.inner.with_mut(|one| other.inner.with_mut(|two| unsafe { std::ptr::swap(one, two) }));
        }
    }

    /// Writes a value and returns the one before.
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        // SAFETY: a cell is not `Sync`, and nothing borrows its content.
        self.inner.with_mut(|content| unsafe { std::mem::replace(&mut *content, value) })
    }

    /// The value, at the end of the cell's life.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<T: Copy> Cell<T> {
    /// Reads the value.
    #[track_caller]
    pub fn get(&self) -> T {
        // SAFETY: a cell is not `Sync`, and nothing borrows its content.
        self.inner.with(|content| unsafe { *content })
    }
}

impl<T: Copy> Cell<T> {
    /// Reads, computes and writes.
    #[track_caller]
    pub fn update(&self, new: impl FnOnce(T) -> T) {
        self.set(new(self.get()));
    }
}

impl<T: ?Sized> Cell<T> {
    /// A pointer to the value. Accesses through it are not seen by the race detector.
    pub const fn as_ptr(&self) -> *mut T {
        self.inner.data.get()
    }

    /// The value, which nobody else can access.
    #[track_caller]
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.tracked.write();
        self.inner.data.get_mut()
    }
}

impl<T: Default> Cell<T> {
    /// Takes the value and leaves the default one.
    #[track_caller]
    pub fn take(&self) -> T {
        self.replace(T::default())
    }
}

impl<T> From<T> for Cell<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

// loom's cells need not be of something that can be copied to be written down.
impl<T: ?Sized> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").finish_non_exhaustive()
    }
}

impl<T: Copy> Clone for Cell<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        Self::new(self.get())
    }
}

impl<T: PartialEq + Copy> PartialEq for Cell<T> {
    #[track_caller]
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq + Copy> Eq for Cell<T> {}

impl<T: PartialOrd + Copy> PartialOrd for Cell<T> {
    #[track_caller]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl<T: Ord + Copy> Ord for Cell<T> {
    #[track_caller]
    fn cmp(&self, other: &Self) -> Ordering {
        self.get().cmp(&other.get())
    }
}
