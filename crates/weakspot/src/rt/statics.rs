//! Statics: what the models of a process share.
//!
//! Tests run side by side, each exploring its model on an OS thread of its own, and a static that two of them use is one
//! object. A model that comes to a static therefore waits until no other model uses any, and has them for itself until it
//! is done. Models that use none do not wait for anybody.
//!
//! What is a static is told by its address: it lies in a segment of the program or of a library that was loaded with it.
//! Where that cannot be asked for, every object may be one, and models are explored one after the other.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Who has the statics.
static OWNER: Mutex<Option<u64>> = Mutex::new(None);
static GIVEN_BACK: Condvar = Condvar::new();

thread_local! {
    /// Does this OS thread explore a model?
    static CHECKING: Cell<bool> = const { Cell::new(false) };
}

/// Does this OS thread explore a model, even if none of its threads runs at the moment?
pub(crate) fn is_checking() -> bool {
    CHECKING.get()
}

/// Models that are explored at the same time; one more has to wait.
pub(crate) const MOST_MODELS: usize = 1 << 8;

/// The numbers of models that are explored now.
struct Numbers {
    taken: [bool; MOST_MODELS],
    /// Models that wait for one. To wake somebody is a call of the system, even if nobody is there.
    waiting: usize,
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { taken: [false; MOST_MODELS], waiting: 0 });
static NUMBER_GIVEN_BACK: Condvar = Condvar::new();

fn numbers() -> MutexGuard<'static, Numbers> {
    NUMBERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A model that is explored, which may have the statics until this is dropped.
pub(crate) struct Claim(u64);

impl Claim {
    /// A model that has none yet.
    pub(crate) fn new() -> Self {
        let mut numbers = numbers();
        let number = loop {
            if let Some(number) = numbers.taken.iter().position(|taken| !taken) {
                break number;
            }
            numbers.waiting += 1;
            numbers = NUMBER_GIVEN_BACK.wait(numbers).unwrap_or_else(PoisonError::into_inner);
            numbers.waiting -= 1;
        };
        numbers.taken[number] = true;
        drop(numbers);
        CHECKING.set(true);
        Self(number as u64)
    }

    /// Its number: no other model that is explored now has it.
    pub(crate) fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        CHECKING.set(false);
        let mut owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
        if *owner == Some(self.0) {
            *owner = None;
            GIVEN_BACK.notify_all();
        }
        drop(owner);
        let mut numbers = numbers();
        numbers.taken[self.0 as usize] = false;
        if numbers.waiting > 0 {
            NUMBER_GIVEN_BACK.notify_one();
        }
    }
}

/// Waits until the statics are those of this model.
#[cold]
pub(crate) fn take(claim: u64) {
    let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let is_taken = |owner: &mut Option<u64>| owner.is_some_and(|owner| owner != claim);
    let mut owner = GIVEN_BACK.wait_while(owner, is_taken).unwrap_or_else(PoisonError::into_inner);
    *owner = Some(claim);
}

/// May there be a static at this address?
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_static(_address: usize) -> bool {
    true
}

#[cfg(target_os = "linux")]
pub(crate) use segments::is_static;

#[cfg(target_os = "linux")]
mod segments {
    use std::ops::Range;
    use std::sync::OnceLock;

    /// May there be a static at this address?
    pub(crate) fn is_static(address: usize) -> bool {
        static SEGMENTS: OnceLock<Vec<Range<usize>>> = OnceLock::new();
        SEGMENTS.get_or_init(writable).iter().any(|segment| segment.contains(&address))
    }

    /// The segments of the program and its libraries that can be written to.
    fn writable() -> Vec<Range<usize>> {
        let mut segments = Vec::new();
        // SAFETY: the callback has the right type, and gets the vector, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut segments).cast()) };
        segments
    }

    extern "C" fn note(
        object: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        segments: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the system hands over a valid description, and back what `writable` gave it.
        let (object, segments) = unsafe { (&*object, &mut *segments.cast::<Vec<Range<usize>>>()) };
        if object.dlpi_phnum > 0 {
            // SAFETY: there are so many headers.
            let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) };
            for header in headers {
                if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0 {
                    let start = (object.dlpi_addr + header.p_vaddr) as usize;
                    segments.push(start..start + header.p_memsz as usize);
                }
            }
        }
        0
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::is_static;
    use std::sync::atomic::AtomicUsize;

    static ZERO: AtomicUsize = AtomicUsize::new(0);
    static ONE: AtomicUsize = AtomicUsize::new(1);

    #[test]
    fn statics_are_told_from_other_objects() {
        let address = |object: &AtomicUsize| std::ptr::from_ref(object).addr();
        assert!(is_static(address(&ZERO)) && is_static(address(&ONE)));
        assert!(!is_static(address(&AtomicUsize::new(0))) && !is_static(address(&Box::new(AtomicUsize::new(0)))));
    }
}
