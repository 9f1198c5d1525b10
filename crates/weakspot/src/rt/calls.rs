//! Which call it is: a place in the source, and how the thread has got there.
//!
//! Loops are told apart by the call with which they say that they wait. The place of that call is not enough: it may be
//! in a function that many loops use (`fn backoff() { yield_now() }`). A thread that has looked three times in one of
//! them and goes on looking in the next would seem to go round one loop. So the functions that the thread is in belong to
//! the call: the addresses that they return to, each counted once, so that a function that calls itself instead of going
//! round a loop is one as well.
//!
//! The compiler may unroll a loop that has few rounds. Then each of its rounds is a call of its own, and no loop is seen. That
//! is as good where all rounds are explored anyway. Where a loop that fails after a few rounds is taken to wait
//! (`Builder::fair`) it has to be seen, so there the functions count, and not from where in them the next one was called.
//!
//! Unwinding the stack takes microseconds, and a thread that waits comes to the same call again and again. So it is noted
//! where on the stack the addresses were found. If the same are there again, the stack is the same: what lies between two
//! of them is the frame of a function, and its size depends on the function alone. Where return addresses are not found on the
//! stack (they may be signed) nothing is noted, and every call is unwound.
//!
//! Systems without an unwinder of this interface have the place only.

use rustc_hash::FxHashMap;

use super::Place;

/// Frames that are looked at: the functions that were called last.
const MOST_FRAMES: usize = 32;
/// Calls at one place that are kept.
const MOST_CALLS: usize = 64;

/// What makes two calls different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The functions that the thread is in.
    Functions,
    /// These, and from where in them the next one was called.
    Calls,
}

/// An address that a function returns to, and where it was found: so many bytes above a variable of [`Calls::number`].
#[derive(Debug, Clone, Copy)]
struct Return {
    above: Option<isize>,
    address: usize,
    /// Where the function that it is in begins.
    function: usize,
}

/// A call that is known.
#[derive(Debug)]
struct Call {
    returns: Vec<Return>,
    number: u32,
}

/// The calls that are known, by place.
#[derive(Debug, Default)]
pub(super) struct Calls {
    known: FxHashMap<usize, Vec<Call>>,
}

impl Calls {
    /// The number of a call at this place, which is not 0. The stack of the thread ends at `top`.
    #[inline(never)]
    pub(super) fn number(&mut self, place: Place, top: usize, detail: Detail) -> u32 {
        let anchor = std::hint::black_box(0_usize);
        let frame = std::ptr::from_ref(std::hint::black_box(&anchor)) as usize;
        let at = std::ptr::from_ref(place) as usize;
        let known = self.known.entry(at).or_default();
        if let Some(at) = known.iter().rposition(|call| call.is_there(frame, top)) {
            // The same will come next, most likely.
            let last = known.len() - 1;
            known.swap(at, last);
            return known[last].number;
        }
        let mut found = Vec::with_capacity(32);
        unwind(frame, top, &mut found);
        let address_of = |one: &Return| if detail == Detail::Calls { one.address } else { one.function };
        let mut addresses: Vec<usize> = found.iter().map(address_of).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let number = number_of(at, &addresses);
        let call = Call { returns: found, number };
        if !call.returns.is_empty() && call.is_there(frame, top) {
            if known.len() >= MOST_CALLS {
                known.clear();
            }
            known.push(call);
        }
        number
    }
}

/// A hash of a place and what its functions return to, which is not 0.
fn number_of(place: usize, addresses: &[usize]) -> u32 {
    let mixed = addresses.iter().fold(place as u64, |hash, &address| {
        (hash.rotate_left(23) ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    (mixed >> 32) as u32 ^ mixed as u32 | 1
}

impl Call {
    /// Are all addresses where they were? Those of the outer functions are the first to differ.
    #[inline]
    fn is_there(&self, frame: usize, top: usize) -> bool {
        self.returns.iter().rev().all(|one| one.is_there(frame, top))
    }
}

impl Return {
    /// Is the address where it was? The stack that is in use goes from the frame that `frame` is in to `top`.
    #[inline]
    fn is_there(&self, frame: usize, top: usize) -> bool {
        self.above.is_some_and(|above| {
            let at = frame.wrapping_add_signed(above);
            at.is_multiple_of(WORD) && at + WORD <= top && word_at(at) == self.address
        })
    }
}

const WORD: usize = size_of::<usize>();

/// A word of the current thread's stack.
#[inline]
fn word_at(at: usize) -> usize {
    // SAFETY: whoever asks has seen to it that the word is aligned and in the part of the stack that is in use, where all
    // can be read.
    unsafe { std::ptr::with_exposed_provenance::<usize>(at).read_volatile() }
}

/// What is being unwound.
#[cfg(unix)]
struct Unwinding<'f> {
    frame: usize,
    top: usize,
    /// The end of the frame before.
    below: usize,
    found: &'f mut Vec<Return>,
}

#[cfg(unix)]
fn unwind(frame: usize, top: usize, found: &mut Vec<Return>) {
    let mut unwinding = Unwinding { frame, top, below: frame, found };
    // SAFETY: the unwinder of the platform, which the standard library uses for panics, calls `note_frame` for each frame
    // of this stack while the call lasts, with the pointer that it was given.
    unsafe { _Unwind_Backtrace(note_frame, (&raw mut unwinding).cast()) };
}

#[cfg(not(unix))]
fn unwind(_frame: usize, _top: usize, _found: &mut Vec<Return>) {}

#[cfg(unix)]
unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: extern "C" fn(context: *mut libc::c_void, argument: *mut libc::c_void) -> libc::c_int,
        argument: *mut libc::c_void,
    ) -> libc::c_int;
    fn _Unwind_GetIP(context: *mut libc::c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut libc::c_void) -> usize;
    fn _Unwind_GetRegionStart(context: *mut libc::c_void) -> usize;
}

/// Notes the address that a frame goes on at. Frames below the one of [`Calls::number`], which the unwinder was called from,
/// do not count.
#[cfg(unix)]
extern "C" fn note_frame(context: *mut libc::c_void, argument: *mut libc::c_void) -> libc::c_int {
    const GO_ON: libc::c_int = 0;
    const STOP: libc::c_int = 5;
    // SAFETY: this is called by the unwinder only, with its context and the argument of `unwind`.
    let (address, function, stack, unwinding) = unsafe {
        let unwinding = &mut *argument.cast::<Unwinding<'_>>();
        (_Unwind_GetIP(context), _Unwind_GetRegionStart(context), _Unwind_GetCFA(context), unwinding)
    };
    if address == 0 || stack >= unwinding.top || unwinding.found.len() >= MOST_FRAMES {
        return STOP;
    }
    // The stack is what it will be after the return, so the frame that is left ends there, and has the address somewhere: at
    // its end on some processors.
    if stack > unwinding.frame {
        let words = (unwinding.below.next_multiple_of(WORD)..stack).step_by(WORD);
        let at = words.rev().find(|&at| at + WORD <= stack && word_at(at) == address);
        let above = at.map(|at| at.wrapping_sub(unwinding.frame).cast_signed());
        unwinding.found.push(Return { above, address, function });
    }
    unwinding.below = stack;
    GO_ON
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::panic::Location;

    use super::{Calls, Detail};
    use crate::rt::Place;

    /// Calls from a stack that ends somewhere above the test.
    struct Caller {
        calls: Calls,
        place: Place,
        top: usize,
        detail: Detail,
    }

    impl Caller {
        #[track_caller]
        fn new(detail: Detail) -> Self {
            let here = 0_usize;
            let top = std::ptr::from_ref(black_box(&here)) as usize + (1 << 12);
            Self { calls: Calls::default(), place: Location::caller(), top, detail }
        }

        #[inline(never)]
        fn call(&mut self) -> u32 {
            black_box(self.calls.number(self.place, self.top, self.detail))
        }

        #[inline(never)]
        fn call_from_depth(&mut self, depth: u32) -> u32 {
            let number = if depth == 0 { self.call() } else { self.call_from_depth(depth - 1) };
            black_box(number)
        }

        /// Calls several times from one place. (If it knew how many they are, the compiler might unroll the loop.)
        #[inline(never)]
        fn call_again_and_again(&mut self) -> Vec<u32> {
            (0..black_box(3)).map(|_| self.call()).collect()
        }
    }

    fn are_alike(numbers: &[u32]) -> bool {
        numbers.iter().all(|&number| number == numbers[0] && number != 0)
    }

    #[test]
    #[cfg(unix)]
    fn calls_through_one_function_differ() {
        let mut caller = Caller::new(Detail::Calls);
        let again = caller.call_again_and_again();
        assert!(are_alike(&again), "{again:?}");
        let (first, second) = (caller.call(), caller.call());
        assert!(first != second && first != again[0] && second != again[0], "{first} {second} {again:?}");
    }

    #[test]
    #[cfg(unix)]
    fn without_detail_those_of_another_function_differ() {
        let mut caller = Caller::new(Detail::Functions);
        let again = caller.call_again_and_again();
        assert!(are_alike(&again), "{again:?}");
        let (first, second) = (caller.call(), caller.call());
        assert!(first == second && first != again[0], "{first} {second} {again:?}");
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn a_call_is_unwound_once() {
        let mut caller = Caller::new(Detail::Calls);
        caller.call_again_and_again();
        assert_eq!(caller.calls.known.values().map(Vec::len).sum::<usize>(), 1);
    }

    #[test]
    fn depth_does_not_matter() {
        for detail in [Detail::Calls, Detail::Functions] {
            let mut caller = Caller::new(detail);
            let numbers: Vec<u32> = (2..black_box(6)).map(|depth| caller.call_from_depth(depth)).collect();
            assert!(are_alike(&numbers), "{numbers:?}");
        }
    }
}
