//! What static locks hold.
//!
//! Statics are as new at the beginning of every execution. Atomics and the words of locks have a first value that they get
//! back; the data of a `Mutex` or `RwLock` is any type. If it has no destructor, its bytes are what it is: they are kept when
//! a run comes to the lock for the first time, before anybody can have changed the data, and written back when the run
//! is over. What has a destructor owns something, which may be gone by then, and stays as it is.
//!
//! Only statics: other memory may have been freed when the run is over. (Where nobody knows what is a static, nothing is
//! kept.)

use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, needs_drop};
use std::sync::atomic::AtomicBool;

use super::Place;
use super::runtime::Runtime;
use super::state::State;
use super::statics::is_static;

/// The data of a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data<'a> {
    address: *mut u8,
    size: usize,
    has_destructor: bool,
    poisoned: &'a AtomicBool,
}

impl<'a> Data<'a> {
    /// That of a lock with this flag.
    pub(crate) fn new<T: ?Sized>(data: &'a UnsafeCell<T>, poisoned: &'a AtomicBool) -> Self {
        Self { address: data.get().cast(), size: size_of_val(data), has_destructor: needs_drop::<T>(), poisoned }
    }
}

/// Bytes of a static.
#[derive(Debug)]
pub(crate) struct Kept {
    address: *mut u8,
    bytes: Box<[MaybeUninit<u8>]>,
}

impl Kept {
    /// # Safety
    /// There are so many bytes, and nobody writes them now.
    unsafe fn new(address: *mut u8, size: usize) -> Self {
        let mut bytes = Box::new_uninit_slice(size);
        // SAFETY: by the contract; whether they mean anything does not matter.
        unsafe { std::ptr::copy_nonoverlapping(address.cast(), bytes.as_mut_ptr(), size) };
        Self { address, bytes }
    }
}

impl Runtime {
    /// The run comes to a lock for the first time.
    #[inline(never)]
    pub(crate) fn keep(&self, data: Data<'_>, place: Place) {
        let Data { address, size, has_destructor, poisoned } = data;
        if !cfg!(target_os = "linux") || !is_static(address.addr()) {
            return;
        }
        // SAFETY: the lock is a static of this model (others wait), and nobody has got it in this run.
        let kept = |address, size| unsafe { Kept::new(address, size) };
        let mut state = self.state();
        state.kept.push(kept(poisoned.as_ptr().cast(), 1));
        if has_destructor {
            self.left_as_it_is.set(self.left_as_it_is.get().or(Some(place)));
        } else {
            state.kept.push(kept(address, size));
        }
    }
}

impl State {
    /// The run is over: what it has used is as it was before.
    pub(crate) fn give_back(&mut self) {
        self.give_values_back();
        for Kept { address, bytes } in self.kept.drain(..) {
            // SAFETY: statics are there for ever. No thread of the run goes on, so nobody has the lock, and bytes of a type
            // without a destructor can be replaced by those of another value of it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address.cast(), bytes.len()) };
        }
    }
}
