//! OS threads that a thread of a model has started, with `std::thread::spawn` for example.
//!
//! What they do is no part of the model: to weakspot they are ordinary code, which waits for the end of the execution where that
//! uses the same atomic or lock. As a rule somebody meant `weakspot::thread::spawn`, and the model waits for such a thread,
//! or goes wrong without it. So such a thread knows in which run it was started, and says so when it comes to something
//! that the run has used; and the run says so when it comes to something that such a thread has used, if that has not ended.
//! (If it has, what it did is the same in every execution, or should be.)
//!
//! `pthread_create` is known here as `malloc` is in [`memory`](super::memory), and on the same systems. Elsewhere nothing is known
//! of OS threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::runtime::Runtime;
use super::{Place, turns};

thread_local! {
    /// The run in which this OS thread was started, by a thread of the run or by another such OS thread, and a number that no
    /// other such thread has; 0 if there is none.
    static STARTED_IN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// An OS thread has used what is at this address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Use {
    run: u64,
    thread: u64,
    address: usize,
}

/// What such threads have done in runs that are going on.
struct Deeds {
    /// What those that have not ended have used.
    used: Vec<Use>,
    /// The run, and what there is to say of it.
    complaints: Vec<(u64, String)>,
}

static DEEDS: Mutex<Deeds> = Mutex::new(Deeds { used: Vec::new(), complaints: Vec::new() });
/// Is there anything?
static ANY: AtomicBool = AtomicBool::new(false);

/// How long a thread takes to end that has nothing left to do.
const MOMENT: Duration = Duration::from_millis(50);

/// What nobody but threads of the model should use.
const MEANT: &str = "Only threads of the model are explored: use `weakspot::thread::spawn` (or loom's) for all that use what \
                     the model uses";

fn deeds() -> MutexGuard<'static, Deeds> {
    DEEDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run in which this OS thread was started, if it is going on, and the number of the thread.
fn own_run() -> Option<(u64, u64)> {
    let (run, thread) = STARTED_IN.try_with(Cell::get).unwrap_or((0, 0));
    (run != 0 && turns::owner_of(run).is_some()).then_some((run, thread))
}

/// This OS thread, outside of models, is about to use what is at this address. If `is_of` its run, that is a mistake. True if
/// that was said and the thread unwinds: another panic would end the process, and to wait for a run that waits for the
/// thread is no help.
#[inline]
pub(super) fn use_outside(address: usize, is_of: impl Fn(u64) -> bool, place: Option<Place>) -> bool {
    own_run().is_some_and(|(run, thread)| used_by_foreigner(Use { run, thread, address }, is_of(run), place))
}

#[cold]
fn used_by_foreigner(new: Use, is_of_run: bool, place: Option<Place>) -> bool {
    let mut deeds = deeds();
    ANY.store(true, Ordering::Relaxed);
    if !is_of_run {
        if !deeds.used.contains(&new) {
            deeds.used.retain(|one| turns::owner_of(one.run).is_some());
            deeds.used.push(new);
        }
        return false;
    }
    let place = place.map(|place| format!(", at {place}")).unwrap_or_default();
    let text = format!(
        "an OS thread that the model has started (with `std::thread::spawn`, perhaps) uses an atomic or a lock that an \
         execution uses as well{place}. {MEANT}"
    );
    deeds.complaints.retain(|&(run, _)| turns::owner_of(run).is_some());
    deeds.complaints.push((new.run, text.clone()));
    drop(deeds);
    assert!(std::thread::panicking(), "{text}");
    true
}

impl Runtime {
    /// A run comes to what is at this address for the first time: why it must not.
    #[inline]
    pub(super) fn foreign_use(&self, address: usize) -> Option<String> {
        if ANY.load(Ordering::Relaxed) { self.find_foreign_use(address) } else { None }
    }

    #[cold]
    fn find_foreign_use(&self, address: usize) -> Option<String> {
        let since = self.foreigners_since.get()?;
        let run = self.run.get();
        let is_used = || deeds().used.iter().any(|one| (one.run, one.address) == (run, address));
        // `std::thread::scope` ends a little earlier than its threads.
        let start = Instant::now();
        while is_used() && start.elapsed() < MOMENT {
            std::thread::yield_now();
        }
        // What an OS thread has allocated, used and freed may be something else now.
        let is_the_same = self.state().birth_at(address).is_none_or(|birth| (birth as usize) < since);
        (is_the_same && is_used()).then(|| {
            format!(
                "an OS thread that the model has started (with `std::thread::spawn`, perhaps) has used this atomic or lock, \
                 which the model uses now. {MEANT}"
            )
        })
    }

    /// A thread of the model starts an OS thread.
    #[cfg_attr(not(feature = "allocator"), allow(dead_code, reason = "nobody knows"))]
    fn starts_foreigner(&self) {
        let Ok(state) = self.state.try_borrow() else { return };
        let place = state.lanes[self.thread.get() as usize].place;
        self.has_started.set(self.has_started.get().or(Some(place)));
        self.foreigners_since.set(self.foreigners_since.get().or(Some(state.births.len())));
    }

    /// What such threads have complained of in the current run, which is at its end.
    #[inline]
    pub(super) fn foreign_complaint(&self) -> Option<String> {
        if !ANY.load(Ordering::Relaxed) {
            return None;
        }
        let mut deeds = deeds();
        let at = deeds.complaints.iter().position(|&(run, _)| run == self.run.get())?;
        Some(deeds.complaints.swap_remove(at).1)
    }

    /// What to say of a model that has failed or has one execution only, if it has started OS threads.
    pub(crate) fn note_of_foreigners(&self) -> Option<String> {
        let place = self.has_started.get()?;
        Some(format!(
            "a thread of the model has started an OS thread (with `std::thread::spawn`, perhaps) after its event at {place}. {MEANT}"
        ))
    }
}

#[cfg(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
mod symbols {
    use std::ffi::{c_int, c_void};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{STARTED_IN, deeds};
    use crate::rt::current;

    type Start = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
    type Create = unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

    /// What a thread begins with.
    struct Beginning {
        start: Start,
        argument: *mut c_void,
        run: u64,
    }

    /// The number of the next such thread.
    static THREADS: AtomicU64 = AtomicU64::new(1);

    /// Such a thread, until it ends.
    struct Foreigner(u64);

    impl Drop for Foreigner {
        fn drop(&mut self) {
            deeds().used.retain(|one| one.thread != self.0);
        }
    }

    extern "C-unwind" fn begin(beginning: *mut c_void) -> *mut c_void {
        // SAFETY: this is what `pthread_create` below has made, for this thread alone.
        let Beginning { start, argument, run } = *unsafe { Box::from_raw(beginning.cast::<Beginning>()) };
        let thread = THREADS.fetch_add(1, Ordering::Relaxed);
        STARTED_IN.set((run, thread));
        let _foreigner = Foreigner(thread);
        start(argument)
    }

    /// The C library's.
    fn create() -> Option<Create> {
        static CREATE: OnceLock<Option<Create>> = OnceLock::new();
        *CREATE.get_or_init(|| {
            // SAFETY: the name is one; what is found, behind this program, is the function of that name.
            unsafe {
                let found = libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr());
                std::mem::transmute::<*mut c_void, Option<Create>>(found)
            }
        })
    }

    /// The C library's `pthread_create`, noted where a model runs.
    ///
    /// # Safety
    /// As there.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        start: Start,
        argument: *mut c_void,
    ) -> c_int {
        let Some(create) = create() else { return libc::EAGAIN };
        let run = current().map(|runtime| {
            runtime.starts_foreigner();
            runtime.run.get()
        });
        let run = run.unwrap_or_else(|| STARTED_IN.try_with(|started| started.get().0).unwrap_or(0));
        if run == 0 {
            // SAFETY: the caller's.
            return unsafe { create(thread, attributes, start, argument) };
        }
        let beginning = Box::into_raw(Box::new(Beginning { start, argument, run }));
        // SAFETY: the caller's, and `begin` takes what it is given, once.
        let result = unsafe { create(thread, attributes, begin, beginning.cast()) };
        if result != 0 {
            // SAFETY: there is no thread that could have it.
            drop(unsafe { Box::from_raw(beginning) });
        }
        result
    }
}
