//! What a model allocates and frees.
//!
//! Two things have to be known of it.
//!
//! - Memory that a model frees is **not used again** before the execution is over. Otherwise which address the next
//!   allocation has would depend on who has freed something before, in an order that no event shows; and a
//!   compare-and-swap of pointers would succeed or fail with it. The price: an ABA mistake that needs the allocator to hand
//!   out the same memory again is not found.
//! - **Who has made** an atomic or a cell. Making it is a plain write, which has to happen before every access of another
//!   thread: a pointer that is published without a release is a data race, even if what it points to is only read.
//!   `new` is a `const fn` and cannot note anything, but the memory was allocated before, by the same thread as a rule;
//!   if not even the allocation happens before an access, the making does not. (Made in memory that was allocated
//!   earlier, or on a stack: not found.)
//!
//! So memory that is **freed twice** is known as well (two threads have taken what only one should have taken, as a rule), and
//! so are atomics, locks and cells that are **used after** their memory was freed: by a thread that comes to it later, or that
//! had stopped before its use when it was freed. What says in memory which atomics, locks
//! and cells of the run are there is wiped out when it is freed, so that only who does not find it has to look. Freeing is no
//! event: that somebody could have been later than in the order in which things were done is looked at afterwards, see
//! [`suspects`](super::suspects).
//!
//! A lock that is neither in memory that the run has allocated nor on a stack of its threads is one that the closure has captured: it
//! **outlives the run**.
//!
//! Mappings that a model unmaps stay, too, until then: an atomic may have been there, which is looked at once more when the
//! execution is over (see [`slot`](super::slot)).
//!
//! Rust's allocator on Linux is that of the C library, and a program may bring its own `malloc` and `free`: these do. They
//! note what a thread of a model does and hand everything on. An allocator that the test itself declares with
//! `#[global_allocator]` keeps working; if it does not end in the C library's, nothing is noted. A program that is linked
//! with the C library statically cannot bring its own: nothing is noted there, either.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::OnceLock;

use super::objects::Object;
use super::state::State;
use super::{Place, Runtime, enter};
use crate::failure::{Failure, Freeing, RacingAccess};

/// Is it noted what threads of models allocate?
static IS_NOTED: OnceLock<bool> = OnceLock::new();

/// What an execution has freed: allocations, and mappings with their sizes.
#[derive(Default)]
pub(crate) struct Freed(RefCell<Deaths>, RefCell<Vec<(*mut c_void, usize)>>);

/// Allocations that are freed.
#[derive(Default)]
struct Deaths {
    all: Vec<Death>,
    /// The first of them, so many as are here, by address: where they begin and end, and which they are.
    sorted: Vec<(usize, usize, u32)>,
    /// They are in the order in which they are released.
    are_ranked: bool,
}

/// So many that are not sorted yet are looked through one by one.
const FEW_DEATHS: usize = 32;

impl Deaths {
    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    #[cfg_attr(not(feature = "allocator"), allow(dead_code, reason = "nobody knows"))]
    fn push(&mut self, death: Death) {
        self.all.push(death);
        self.are_ranked = false;
    }

    /// All of them, in the order in which they are released.
    fn ranked(&mut self) -> &mut Vec<Death> {
        self.sorted.clear();
        if !self.are_ranked {
            self.all.sort_unstable_by_key(Death::rank);
            self.are_ranked = true;
        }
        &mut self.all
    }

    /// The one that an address is in.
    fn find(&mut self, address: usize) -> Option<Death> {
        let known = self.sorted.len();
        if self.all.len() - known > FEW_DEATHS.max(known / 8) {
            let range = |(death, at): (&Death, u32)| (death.pointer.addr(), death.pointer.addr() + death.size, at);
            self.sorted.extend(self.all.iter().zip(0..).skip(known).map(range));
            self.sorted.sort_unstable();
        }
        let holds = |death: &&Death| address.wrapping_sub(death.pointer.addr()) < death.size;
        if let Some(death) = self.all[self.sorted.len()..].iter().find(holds) {
            return Some(*death);
        }
        // Nothing that is freed is used again, so that only what is freed twice overlaps.
        let after = self.sorted.partition_point(|&(start, ..)| start <= address);
        let &(start, ..) = self.sorted[..after].last()?;
        let first = self.sorted.partition_point(|&(other, ..)| other < start);
        let mut here = self.sorted[first..after].iter();
        here.find(|&&(_, end, _)| address < end).map(|&(.., at)| self.all[at as usize])
    }
}

/// An allocation is freed.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "allocator"), allow(dead_code, reason = "nobody knows"))]
struct Death {
    pointer: *mut c_void,
    /// How large it is; 0 if nobody needs to know.
    size: usize,
    thread: u32,
    /// Events that had happened before.
    events: u32,
}

impl Death {
    /// The order in which memory is released: the lowest address last.
    fn rank(&self) -> (Reverse<*mut c_void>, u32) {
        (Reverse(self.pointer), self.events)
    }
}

impl Drop for Freed {
    fn drop(&mut self) {
        self.release();
    }
}

/// An allocation of an execution. The causality of the run knows when it was, by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Birth {
    start: usize,
    end: usize,
    thread: u32,
    /// Events that had happened before.
    events: usize,
}

impl Runtime {
    /// Allocates something that is not the current thread's own.
    pub(crate) fn unnoted<R>(&self, allocate: impl FnOnce() -> R) -> R {
        let state = self.state();
        let allocated = allocate();
        drop(state);
        allocated
    }

    /// Finds out, before the first run of all, whether it is noted what threads allocate. It depends on who the allocator is.
    pub(super) fn try_allocator(&self) {
        IS_NOTED.get_or_init(|| {
            let something = enter(self, || black_box(Box::new(0_u64)));
            let is_noted = self.state().has_made(std::ptr::from_ref(&*something).addr());
            // Not by a thread of the model.
            drop(something);
            is_noted
        });
    }

    /// Is it known that what is at this address was there before the run? What threads allocate while events happen at once
    /// is not noted; in a run that makes way it counts as if it had been there.
    pub(super) fn has_found(&self, address: usize) -> bool {
        (!self.is_free() || self.makes_way()) && IS_NOTED.get() == Some(&true) && !self.state().has_made(address)
    }

    /// What to say of memory that the run, which is at its end, has freed twice.
    pub(crate) fn freed_twice(&self) -> Option<String> {
        let mut freed = self.freed.0.borrow_mut();
        let freed = freed.ranked();
        let twice = freed.windows(2).filter(|two| two[0].pointer == two[1].pointer).min_by_key(|two| two[1].events)?;
        Some(format!("memory is freed twice: {}, and {}", self.who_freed(&twice[0]), self.who_freed(&twice[1])))
    }

    fn who_freed(&self, &Death { thread, events, .. }: &Death) -> Freeing {
        let log = &self.state().log;
        let before = log.get(..events as usize).unwrap_or(log);
        let mut own = before.iter().rev().filter(|happened| happened.is_step_of(thread));
        let after = own.next().map(|last| last.place.into());
        Freeing { thread, events: u32::from(after.is_some()) + own.count() as u32, after }
    }

    /// What is at this address is used, for the first time in the run as far as its memory says: see [`Self::forget_in`].
    #[inline]
    pub(crate) fn check_freed(&self, address: usize, place: Place) {
        if !self.is_free() && !self.freed.0.borrow().is_empty() {
            self.find_freed(address, place);
        }
    }

    /// The same, unless the current thread itself has freed it.
    pub(crate) fn check_freed_by_others(&self, address: usize, place: Place) {
        let has_freed = || self.death_at(address).is_some_and(|death| death.thread == self.thread.get());
        if !self.is_free() && !self.freed.0.borrow().is_empty() && !has_freed() {
            self.find_freed(address, place);
        }
    }

    #[inline(never)]
    fn find_freed(&self, address: usize, place: Place) {
        if let Some(death) = self.death_at(address) {
            let freeing = self.who_freed(&death);
            self.fail_with(Failure::used_after_free(self.thread.get(), place, freeing));
        }
    }

    fn death_at(&self, address: usize) -> Option<Death> {
        self.unnoted(|| self.freed.0.borrow_mut().find(address))
    }

    /// The current thread has accessed an atomic that was made in this run: its making must happen before.
    pub(crate) fn check_making(&self, object: u32, writes: bool, place: Place) {
        if self.is_free() || self.buffered.get() {
            return;
        }
        let thread = self.thread.get();
        let maker = {
            let state = &mut *self.state();
            let Object { birth, aware, .. } = state.objects[object as usize];
            if aware & 1 << thread != 0 {
                return;
            }
            state.objects[object as usize].aware |= 1 << thread;
            if state.knows_birth(thread, birth) { None } else { state.maker(birth) }
        };
        if let Some(maker) = maker {
            self.fail_with(Failure::race_with(thread, writes, place, None, maker));
        }
    }
}

impl State {
    /// The number of the allocation that an address is in.
    pub(super) fn birth_at(&self, address: usize) -> Option<u32> {
        let birth = self.births.iter().rposition(|birth| birth.start <= address && address < birth.end)?;
        Some(birth as u32)
    }

    /// Is this address in memory that the run has allocated, or on the stack of a thread?
    fn has_made(&self, address: usize) -> bool {
        let is_on_stack = || self.lanes.iter().any(|lane| (lane.guard..lane.top).contains(&address));
        // What is used for the first time was allocated last, as a rule.
        let is_unborn = || self.unborn.iter().rev().any(|&(start, end)| (start..end).contains(&address));
        is_on_stack() || self.birth_at(address).is_some() || is_unborn()
    }

    /// Where an address is in an allocation; without one, the address.
    pub(super) fn offset_in(&self, birth: Option<u32>, address: usize) -> usize {
        birth.map_or(address, |birth| address - self.births[birth as usize].start)
    }

    /// Does an allocation happen before what the thread does next?
    fn knows_birth(&mut self, thread: u32, birth: u32) -> bool {
        let maker = self.births[birth as usize].thread;
        let lane = &self.lanes[thread as usize];
        let is_inherited = lane.parent == maker && (birth as usize) < lane.births_of_parent;
        maker == thread || is_inherited || self.causality.knows_birth(thread, birth)
    }

    /// Who has made something, if it has done anything since.
    pub(super) fn maker(&self, birth: u32) -> Option<RacingAccess> {
        let Birth { thread, events, .. } = self.births[birth as usize];
        let next = self.log[events..].iter().find(|happened| happened.thread == thread)?;
        Some(RacingAccess { thread, writes: true, makes: true, place: next.place.into(), moment: None })
    }
}

#[cfg(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
mod symbols {
    use std::ffi::{c_int, c_void};
    use std::ptr;

    use super::{Birth, Death, Freed};
    use crate::rt::objects::Stamp;
    use crate::rt::{Runtime, current, slot};

    // SAFETY: the functions of the C library, with their signatures.
    unsafe extern "C" {
        #[link_name = "__libc_malloc"]
        fn allocate(size: usize) -> *mut c_void;
        #[link_name = "__libc_calloc"]
        fn allocate_zeroed(count: usize, size: usize) -> *mut c_void;
        #[link_name = "__libc_memalign"]
        fn allocate_aligned(align: usize, size: usize) -> *mut c_void;
        #[link_name = "__libc_realloc"]
        fn reallocate(pointer: *mut c_void, size: usize) -> *mut c_void;
        #[link_name = "__libc_free"]
        fn release(pointer: *mut c_void);
    }

    impl Freed {
        /// The execution is over: its memory may be used again. The C library hands out first what was freed last, so the
        /// lowest addresses are freed last: whatever the order in which the execution has freed, the next one is given
        /// the same addresses, and most values are what they were.
        pub(crate) fn release(&self) {
            let mut freed = self.0.borrow_mut();
            let freed = freed.ranked();
            freed.dedup_by_key(|death| death.pointer);
            for Death { pointer, .. } in freed.drain(..) {
                // SAFETY: `keep` was called in place of this.
                unsafe { release(pointer) };
            }
            for (start, size) in self.1.borrow_mut().drain(..) {
                // SAFETY: `munmap` was called in place of this.
                unsafe { libc::syscall(libc::SYS_munmap, start, size) };
            }
        }
    }

    impl Runtime {
        /// Keeps memory that is freed; false if it cannot, because it is about to release it.
        fn keep_freed(&self, pointer: *mut c_void) -> bool {
            let Ok(mut freed) = self.freed.0.try_borrow_mut() else { return false };
            let events = self.state.try_borrow().map_or(0, |state| state.log.len() as u32);
            // SAFETY: the memory was allocated by the C library, and nobody has freed it before the caller.
            let size = if self.is_free() { 0 } else { unsafe { libc::malloc_usable_size(pointer) } };
            self.forget_in(pointer, size);
            freed.push(Death { pointer, size, thread: self.thread.get(), events });
            true
        }

        /// What says in memory that is freed which atomics, locks and cells of the run are there goes: whoever uses one of
        /// them later comes to it as for the first time, and is asked where it is.
        fn forget_in(&self, start: *mut c_void, size: usize) {
            let (token, run) = (self.token.get(), self.run.get());
            for at in 0..size / size_of::<u64>() {
                // SAFETY: it lies in the memory, which is aligned, and whose owner has given it up.
                unsafe {
                    let word = start.cast::<u64>().add(at);
                    let bits = word.read_volatile();
                    if slot::is_token_of(bits, token) || Stamp::run_of(bits) == run {
                        word.write_volatile(0);
                        self.suspect(bits, (start.addr(), size));
                    }
                }
            }
        }

        /// Notes an allocation of the current thread, unless it is one of the runtime itself.
        #[inline]
        fn note_birth(&self, pointer: *mut c_void, size: usize) {
            if self.is_free() {
                return;
            }
            let Ok(mut state) = self.state.try_borrow_mut() else { return };
            let (start, thread, events) = (pointer.addr(), self.thread.get(), state.log.len());
            // What the first thread does before it starts another one happens before all that others do.
            if state.lanes[0].started == 0 && !self.notes_origins.get() && self.foreigners_since.get().is_none() {
                state.unborn.push((start, start + size));
                return;
            }
            state.births.push(Birth { start, end: start + size, thread, events });
            state.causality.born(thread);
        }
    }

    #[inline]
    fn noted(pointer: *mut c_void, size: usize) -> *mut c_void {
        if let Some(runtime) = current()
            && !pointer.is_null()
        {
            runtime.note_birth(pointer, size);
        }
        pointer
    }

    /// The C library's `malloc`, noted where a model runs.
    #[unsafe(no_mangle)]
    pub extern "C" fn malloc(size: usize) -> *mut c_void {
        // SAFETY: any size will do.
        noted(unsafe { allocate(size) }, size)
    }

    /// The C library's `calloc`, noted where a model runs.
    #[unsafe(no_mangle)]
    pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: any numbers will do.
        noted(unsafe { allocate_zeroed(count, size) }, count.saturating_mul(size))
    }

    /// The C library's `aligned_alloc`, noted where a model runs.
    #[unsafe(no_mangle)]
    pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
        // SAFETY: any numbers will do.
        noted(unsafe { allocate_aligned(align, size) }, size)
    }

    /// The C library's `posix_memalign`, noted where a model runs.
    ///
    /// # Safety
    /// As there.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
        if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
            return libc::EINVAL;
        }
        // SAFETY: any numbers will do.
        let pointer = noted(unsafe { allocate_aligned(align, size) }, size);
        if pointer.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: the caller's.
        unsafe { *out = pointer };
        0
    }

    /// The C library's `free`, but later where a model runs.
    ///
    /// # Safety
    /// As there.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn free(pointer: *mut c_void) {
        let kept = !pointer.is_null() && current().is_some_and(|runtime| runtime.keep_freed(pointer));
        if !kept {
            // SAFETY: the caller's.
            unsafe { release(pointer) };
        }
    }

    /// The C library's `munmap`, but later where a model runs.
    ///
    /// # Safety
    /// As there.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn munmap(start: *mut c_void, size: usize) -> c_int {
        if let Some(runtime) = current()
            && let Ok(mut unmapped) = runtime.freed.1.try_borrow_mut()
        {
            unmapped.push((start, size));
            return 0;
        }
        // SAFETY: the caller's.
        unsafe { libc::syscall(libc::SYS_munmap, start, size) as c_int }
    }

    /// The C library's `realloc`, but never in place where a model runs.
    ///
    /// # Safety
    /// As there.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn realloc(pointer: *mut c_void, size: usize) -> *mut c_void {
        if pointer.is_null() || size == 0 || current().is_none() {
            // SAFETY: the caller's.
            return noted(unsafe { reallocate(pointer, size) }, size);
        }
        let new = malloc(size);
        if !new.is_null() {
            // SAFETY: the old memory is the caller's, and the new memory has as many bytes as are copied.
            unsafe {
                let old = libc::malloc_usable_size(pointer);
                ptr::copy_nonoverlapping(pointer.cast::<u8>(), new.cast::<u8>(), old.min(size));
                free(pointer);
            }
        }
        new
    }
}

#[cfg(not(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static"))))]
impl Freed {
    /// Nothing was kept.
    pub(crate) fn release(&self) {
        debug_assert!(self.0.borrow().is_empty() && self.1.borrow().is_empty());
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::without_provenance_mut;

    use super::{Death, Deaths};

    #[test]
    fn what_an_address_is_in_is_found_however_many_were_freed() {
        let mut deaths = Deaths::default();
        let mut address = 0;
        for events in 0..2_000_u32 {
            // Sizes between 0 and 88 in places that come in no order, with gaps, and one of ten is freed twice.
            address = (address + 7_919) % 20_011;
            let (pointer, size) = (without_provenance_mut(100 + address * 96), (address % 12) * 8);
            deaths.push(Death { pointer, size, thread: 0, events });
            if events % 10 == 0 {
                deaths.push(Death { pointer, size, thread: 1, events });
            }
            for at in [address, events as usize, 20_010] {
                let at = 100 + at * 96 + (events as usize % 100);
                let is_in = |death: &&Death| (death.pointer.addr()..death.pointer.addr() + death.size).contains(&at);
                let expected = deaths.all.iter().find(is_in).map(|death| death.pointer);
                assert_eq!(deaths.find(at).map(|death| death.pointer), expected, "{at}, after {events}");
            }
        }
        assert!(!deaths.sorted.is_empty());
    }
}
