//! Says so when a thread of a model does not come to its next event.
//!
//! What weakspot cannot see it cannot schedule: a thread that blocks on a mutex of `std`, or goes round a loop that looks
//! at an atomic of `std` without saying that it waits, never lets the others go on. The test hangs. Nobody can end it
//! from outside, but a thread of its own can tell what is going on. It looks once a second; models pay two stores for each
//! change of threads.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use super::Place;

/// How often the watchdog looks, and how often in a row it finds a thread at the same place before it barks.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 5;

/// No thread of a model runs.
const NOBODY: u32 = u32::MAX;

/// What one OS thread does, for the watchdog.
pub(crate) struct Pulse {
    beats: AtomicU64,
    running: AtomicU32,
    /// The last event before the thread went on, as a [`Place`].
    place: AtomicPtr<std::panic::Location<'static>>,
    name: String,
}

static PULSES: Mutex<Vec<Weak<Pulse>>> = Mutex::new(Vec::new());
static STARTED: Once = Once::new();

thread_local! {
    static PULSE: Arc<Pulse> = register();
}

/// The pulse of this OS thread.
pub(crate) fn pulse() -> Option<Arc<Pulse>> {
    PULSE.try_with(Arc::clone).ok()
}

fn register() -> Arc<Pulse> {
    let pulse = Arc::new(Pulse {
        beats: AtomicU64::new(0),
        running: AtomicU32::new(NOBODY),
        place: AtomicPtr::new(std::ptr::null_mut()),
        name: thread::current().name().unwrap_or("a test").to_owned(),
    });
    let mut pulses = PULSES.lock().unwrap_or_else(PoisonError::into_inner);
    pulses.retain(|pulse| pulse.strong_count() > 0);
    pulses.push(Arc::downgrade(&pulse));
    // Without it there is nobody to tell, and nothing else is lost.
    STARTED.call_once(|| drop(thread::Builder::new().name("weakspot-watchdog".to_owned()).spawn(watch)));
    pulse
}

impl Pulse {
    /// A thread goes on.
    #[inline]
    pub(super) fn goes_on(&self, thread: u32, place: Place) {
        self.beats.store(self.beats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.place.store(std::ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
        self.running.store(thread, Ordering::Relaxed);
    }

    /// It has come to its next event, or to its end.
    #[inline]
    pub(super) fn rests(&self) {
        self.running.store(NOBODY, Ordering::Relaxed);
    }

    fn complaint(&self, thread: u32) -> String {
        // SAFETY: nothing or a place, and these live for ever.
        let place = unsafe { self.place.load(Ordering::Relaxed).as_ref() };
        let place = place.map(|place| format!(" after the event at {place}")).unwrap_or_default();
        format!(
            "weakspot: {}: thread {thread} of the model went on{place} {} seconds ago and has come to no event since. If it \
             waits for a mutex, a channel or an atomic of `std`, or parks as an executor of futures does, the others can never \
             go on: use weakspot's (or loom's) types and `future::block_on` there, or `spin_loop()` in each round of the loop",
            self.name,
            u64::from(LOOKS) * LOOK.as_secs()
        )
    }
}

/// What was seen of a pulse: the beats, and how often in a row.
struct Seen {
    pulse: Weak<Pulse>,
    beats: u64,
    times: u32,
}

fn watch() {
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        thread::sleep(LOOK);
        let pulses = PULSES.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for complaint in look(&mut seen, &pulses) {
            super::tell(&format!("\n{complaint}\n"));
        }
    }
}

/// Looks once: what is to be said.
fn look(seen: &mut Vec<Seen>, pulses: &[Weak<Pulse>]) -> Vec<String> {
    seen.retain(|seen| seen.pulse.strong_count() > 0);
    let mut complaints = Vec::new();
    for weak in pulses {
        let Some(pulse) = weak.upgrade() else { continue };
        let (now, thread) = (pulse.beats.load(Ordering::Relaxed), pulse.running.load(Ordering::Relaxed));
        let Some(Seen { beats, times, .. }) = seen.iter_mut().find(|seen| seen.pulse.ptr_eq(weak)) else {
            seen.push(Seen { pulse: weak.clone(), beats: now, times: 0 });
            continue;
        };
        *times = if *beats == now && thread != NOBODY { *times + 1 } else { 0 };
        *beats = now;
        if *times == LOOKS {
            complaints.push(pulse.complaint(thread));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_events_is_named_once() {
        let pulse = pulse().expect("the thread is not ending");
        let pulses = [Arc::downgrade(&pulse)];
        let mut seen = Vec::new();
        let mut complaints = |times: u32| (0..times).flat_map(|_| look(&mut seen, &pulses)).collect::<Vec<_>>();
        assert!(complaints(10).is_empty(), "nobody runs");
        for _ in 0..10 {
            pulse.goes_on(3, std::panic::Location::caller());
            assert!(complaints(4).is_empty(), "it goes on again and again");
        }
        let said = complaints(20);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("thread 3 of the model") && said[0].contains("watchdog.rs:"), "{said:?}");
        pulse.rests();
        assert!(complaints(10).is_empty(), "it rests");
    }
}
