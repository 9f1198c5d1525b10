//! What static locks hold.
//!
//! Statics are as new at the beginning of every execution. Atomics and the words of locks have a first value that they get
//! back; the data of a `Mutex` or `RwLock` is any type. Its bytes are kept when a run comes to the lock for the first time,
//! before anybody can have changed the data, and written back when the run is over.
//!
//! That must not bring back what is gone. What has a destructor owns something, and stays as it is. So does what points to
//! memory outside of the program and its libraries: a `ManuallyDrop<Box<T>>`, a raw pointer or a `&'static mut T` may own
//! what it points to, although it has no destructor. Nobody knows where in the data there are pointers, so whatever looks
//! like one to memory that is there is taken for one, aligned or not, with or without a tag in its upper bits. (What is
//! disguised more than that, a pointer that was inverted for example, is not seen.)
//!
//! Only statics: other memory may have been freed when the run is over. (Where nobody knows what is a static, nothing is
//! kept.) A lock may also have been put into a static, inside of something else that is put there later. Then its stamp is
//! gone, and nothing is written.

use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, needs_drop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustc_hash::FxHashSet;

use super::Place;
use super::objects::Stamp;
use super::ordinary::address_of;
use super::poison::Poison;
use super::runtime::Runtime;
use super::state::State;
use super::statics::{PAGE, is_elsewhere, is_static};

/// The bits of a pointer that are an address in a program: no more than 48, as the system gives them out.
const ADDRESS: usize = ((1_u64 << 48) - 1) as usize;

/// The data of a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data<'a> {
    address: *mut u8,
    size: usize,
    has_destructor: bool,
    poisoned: &'a AtomicBool,
    /// The stamp of the lock.
    mark: &'a AtomicU64,
    lock: usize,
    /// Was the lock used before?
    was_used: bool,
}

impl<'a> Data<'a> {
    /// That of a lock with this flag and this stamp.
    pub(crate) fn new<T: ?Sized>(data: &'a UnsafeCell<T>, poison: &'a Poison, stamp: &'a Stamp) -> Self {
        let (address, size) = (data.get().cast(), size_of_val(data));
        let (lock, was_used) = (address_of(stamp), stamp.was_used());
        let poisoned = poison.flag();
        Self { address, size, has_destructor: needs_drop::<T>(), poisoned, mark: &stamp.mark, lock, was_used }
    }
}

/// Bytes of a static.
#[derive(Debug)]
pub(crate) struct Kept {
    address: *mut u8,
    bytes: Box<[MaybeUninit<u8>]>,
    /// Where the stamp of its lock is, and what it was when the bytes were kept.
    mark: *const AtomicU64,
    stamp: u64,
}

impl Kept {
    /// # Safety
    /// There are so many bytes, beside the mark, and nobody writes them now.
    unsafe fn new(address: *mut u8, size: usize, mark: &AtomicU64) -> Self {
        let mut bytes = Box::new_uninit_slice(size);
        // SAFETY: by the contract; whether they mean anything does not matter.
        unsafe { std::ptr::copy_nonoverlapping(address.cast(), bytes.as_mut_ptr(), size) };
        Self { address, bytes, mark, stamp: mark.load(Ordering::Relaxed) }
    }

    /// May there be a pointer among the bytes to memory that somebody has to free? It may begin anywhere (in packed types), and
    /// its upper bits, which addresses do not need, may be something else.
    fn may_own(&self) -> bool {
        // Pages that were asked for, and the one that was looked at last. The first one is never there.
        let (mut known, mut last) = (FxHashSet::default(), 0);
        self.bytes.windows(size_of::<usize>()).any(|word| {
            let mut bytes = [MaybeUninit::uninit(); size_of::<usize>()];
            bytes.copy_from_slice(word);
            let page = whatever_it_is(bytes) & ADDRESS & !(PAGE - 1);
            // Small numbers, one beside the other, look the same again and again.
            let is_new = page != last && page != 0 && known.insert(page);
            last = page;
            is_new && is_elsewhere(page)
        })
    }

    /// Are the bytes what they were?
    ///
    /// # Safety
    /// They are still there, and nobody writes them now.
    pub(super) unsafe fn is_same(&self) -> bool {
        // SAFETY: by the contract.
        unsafe { are_same(self.address.cast(), &self.bytes) }
    }

    fn write_back(self) {
        let Self { address, bytes, mark, stamp } = self;
        // SAFETY: statics are there for ever. No thread of the run goes on, and ordinary code waits until all is written back, so
        // nobody has the lock, whose stamp says that it is still there. Ordinary code that only reads may have it if the run has
        // not written, and then nothing is. The bytes are those of a value that it held, which has no destructor and owns no memory.
        unsafe {
            if (*mark).load(Ordering::Relaxed) == stamp && !are_same(address.cast(), &bytes) {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), address.cast(), bytes.len());
            }
        }
    }
}

/// Are these bytes in memory? Those that mean nothing may differ.
///
/// # Safety
/// There are so many bytes, and nobody writes them now.
unsafe fn are_same(address: *const MaybeUninit<u8>, bytes: &[MaybeUninit<u8>]) -> bool {
    // SAFETY: by the contract.
    let now = unsafe { std::slice::from_raw_parts(address, bytes.len()) };
    let number = |bytes: &[MaybeUninit<u8>]| {
        let mut word = [MaybeUninit::new(0); size_of::<usize>()];
        word[..bytes.len()].copy_from_slice(bytes);
        whatever_it_is(word)
    };
    let words = |bytes| <[_]>::chunks(bytes, size_of::<usize>()).map(number);
    words(now).eq(words(bytes))
}

/// A number that has these bytes. Those that mean nothing (between fields) are anything.
fn whatever_it_is(bytes: [MaybeUninit<u8>; size_of::<usize>()]) -> usize {
    // SAFETY: as many bytes, of which nothing is demanded.
    let bytes: MaybeUninit<usize> = unsafe { std::mem::transmute(bytes) };
    let number: usize;
    // SAFETY: nothing is done. Registers hold a number always, whatever is known of what was put into them.
    unsafe {
        std::arch::asm!("/* {0} */", inlateout(reg) bytes => number, options(pure, nomem, nostack, preserves_flags));
    }
    number
}

impl Runtime {
    /// The run comes to a lock for the first time.
    #[inline(never)]
    pub(crate) fn keep(&self, data: Data<'_>, place: Place) {
        let Data { address, size, has_destructor, poisoned, mark, lock, was_used } = data;
        // SAFETY: the caller has come to the lock, which is there, nobody has got it in this run, and ordinary code waits for the
        // end of the run.
        let kept = |address, size| unsafe { Kept::new(address, size, mark) };
        if !cfg!(target_os = "linux") || !is_static(address.addr()) {
            // Where nobody knows what the run has made, what was not used before is taken for that.
            if size > 0 && (was_used || self.has_found(lock)) {
                let (before, is_plain) = self.unnoted(|| {
                    let before = kept(address, size);
                    let is_plain = !has_destructor && !before.may_own();
                    (before, is_plain)
                });
                self.note_lasting(lock, before, is_plain, place);
            }
            return;
        }
        self.state().kept.push(kept(poisoned.as_ptr().cast(), 1));
        let restorable = (!has_destructor).then(|| kept(address, size)).filter(|kept| !kept.may_own());
        if restorable.is_none() {
            self.left_as_it_is.set(self.left_as_it_is.get().or(Some(place)));
            self.note_lasting(lock, self.unnoted(|| kept(address, size)), false, place);
        }
        self.state().kept.extend(restorable);
    }
}

impl State {
    /// The run is over: what it has used is as it was before.
    pub(crate) fn give_back(&mut self) {
        self.give_values_back();
        // A lock in the data of another one is used after that one, which may have been written to in between.
        self.kept.drain(..).rev().for_each(Kept::write_back);
    }
}
