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
use std::time::Duration;

/// Who has the statics.
static OWNER: Mutex<Option<u64>> = Mutex::new(None);
static GIVEN_BACK: Condvar = Condvar::new();

thread_local! {
    /// The model that this OS thread explores.
    static CHECKING: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The model that this OS thread explores, even if none of its threads runs at the moment.
pub(super) fn checking() -> Option<u64> {
    CHECKING.get()
}

/// Does this OS thread explore a model, even if none of its threads runs at the moment?
pub(crate) fn is_checking() -> bool {
    checking().is_some()
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
        CHECKING.set(Some(number as u64));
        Self(number as u64)
    }

    /// Its number: no other model that is explored now has it.
    pub(crate) fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        CHECKING.set(None);
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

/// Waits until the statics are those of this model; false if they are not within some time.
pub(super) fn take(claim: u64, time: Duration) -> bool {
    let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let is_taken = |owner: &mut Option<u64>| owner.is_some_and(|owner| owner != claim);
    let waited = GIVEN_BACK.wait_timeout_while(owner, time, is_taken).unwrap_or_else(PoisonError::into_inner);
    let (mut owner, result) = waited;
    if !result.timed_out() {
        *owner = Some(claim);
    }
    !result.timed_out()
}

/// May there be a static at this address?
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_static(_address: usize) -> bool {
    true
}

/// Is there memory at this address that belongs neither to the program nor to its libraries?
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_elsewhere(_page: usize) -> bool {
    true
}

#[cfg(target_os = "linux")]
pub(crate) use segments::{is_elsewhere, is_static};

/// Pages of memory have no less.
pub(crate) const PAGE: usize = 1 << 12;

#[cfg(target_os = "linux")]
mod segments {
    use std::ops::Range;
    use std::sync::OnceLock;

    use super::PAGE;

    /// The segments of the program and its libraries.
    #[derive(Default)]
    struct Segments {
        all: Vec<Range<usize>>,
        /// Those that can be written to.
        writable: Vec<Range<usize>>,
    }

    fn segments() -> &'static Segments {
        static SEGMENTS: OnceLock<Segments> = OnceLock::new();
        SEGMENTS.get_or_init(|| {
            let mut segments = Segments::default();
            // SAFETY: the callback has the right type, and gets the segments, which outlive the call.
            unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut segments).cast()) };
            segments
        })
    }

    /// May there be a static at this address?
    pub(crate) fn is_static(address: usize) -> bool {
        segments().writable.iter().any(|segment| segment.contains(&address))
    }

    /// Is there memory at this address that belongs neither to the program nor to its libraries?
    pub(crate) fn is_elsewhere(page: usize) -> bool {
        let is_inside = |segment: &Range<usize>| (segment.start & !(PAGE - 1)..segment.end).contains(&page);
        !segments().all.iter().any(is_inside) && is_mapped(page)
    }

    fn is_mapped(address: usize) -> bool {
        // No user's memory is there, whatever the processor.
        if address == 0 || address > usize::MAX / 2 && usize::BITS == 64 {
            return false;
        }
        // SAFETY: asks for a number, and nothing else.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let mut is_resident = 0_u8;
        let page = std::ptr::without_provenance_mut::<libc::c_void>(address & !(size - 1));
        // SAFETY: nothing is done to the page, if it is one; the answer for one page is a byte.
        let answer = unsafe { libc::mincore(page, 1, (&raw mut is_resident).cast()) };
        answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOMEM)
    }

    extern "C" fn note(
        object: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        segments: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the system hands over a valid description, and back what `segments` gave it.
        let (object, segments) = unsafe { (&*object, &mut *segments.cast::<Segments>()) };
        if object.dlpi_phnum > 0 {
            // SAFETY: there are so many headers.
            let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) };
            for header in headers {
                if header.p_type == libc::PT_LOAD {
                    let start = (object.dlpi_addr + header.p_vaddr) as usize;
                    let segment = start..start + header.p_memsz as usize;
                    if header.p_flags & libc::PF_W != 0 {
                        segments.writable.push(segment.clone());
                    }
                    segments.all.push(segment);
                }
            }
        }
        0
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{PAGE, is_elsewhere, is_static};
    use std::sync::atomic::AtomicUsize;

    static ZERO: AtomicUsize = AtomicUsize::new(0);
    static ONE: AtomicUsize = AtomicUsize::new(1);

    #[test]
    fn statics_are_told_from_other_objects() {
        let address = |object: &AtomicUsize| std::ptr::from_ref(object).addr();
        assert!(is_static(address(&ZERO)) && is_static(address(&ONE)));
        assert!(!is_static(address(&AtomicUsize::new(0))) && !is_static(address(&Box::new(AtomicUsize::new(0)))));
    }

    #[test]
    fn memory_of_the_program_is_told_from_other_memory() {
        let page = |address: usize| address & !(PAGE - 1);
        let elsewhere = |address: usize| is_elsewhere(page(address));
        assert!(elsewhere(std::ptr::from_ref(&AtomicUsize::new(0)).addr()));
        assert!(elsewhere(std::ptr::from_ref(&*Box::new(5)).addr()));
        assert!(!elsewhere((&raw const ZERO).addr()) && !elsewhere("text".as_ptr().addr()));
        assert!([0, 1, 5_000, usize::MAX, 0xb75d << (usize::BITS - 16)].into_iter().all(|number| !elsewhere(number)));
    }
}
