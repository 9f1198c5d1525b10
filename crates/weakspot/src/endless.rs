//! Loops that do not end: those that wait without saying so, and those that go on until an execution is too long.
//!
//! A thread that waits without [`spin_loop`](crate::hint::spin_loop) looks once more in each further execution, and there
//! is no last one. A loop with an end may look as often, but as often in every execution. So a thread that reads the same at
//! one place [`MANY_ROUNDS`] times in a row is suspect, and it waits if the number is another one each time.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::failure::{Failure, FailureKind};
use crate::rt::Place;
use crate::rt::lane::{Happened, Operation};
use crate::rt::runtime::Runtime;

/// Reads of one value at one place, in a row, from which on a thread is suspect.
const MANY_ROUNDS: usize = 2_000;
/// Different numbers of such reads that are enough to know.
const NUMBERS: usize = 16;

/// The numbers of such reads that there were, by thread and place.
#[derive(Debug, Default)]
pub(crate) struct Rounds(FxHashMap<(u32, usize), FxHashSet<usize>>);

/// What a thread has read last, where, and how often in a row.
#[derive(Debug, Clone, Copy)]
struct Row {
    place: Place,
    value: i64,
    times: usize,
}

impl Rounds {
    /// An execution with so many events has ended: does a thread wait in it without saying so?
    pub(crate) fn look_at(&mut self, events: u32, runtime: &Runtime) -> Option<Failure> {
        if (events as usize) < MANY_ROUNDS {
            return None;
        }
        let state = runtime.state();
        let mut rows: Vec<Option<Row>> = vec![None; state.lanes.len()];
        for happened in state.log.iter().filter(|happened| reads(happened)) {
            let row = &mut rows[happened.thread as usize];
            if let Some(row) = row
                && std::ptr::eq(row.place, happened.place)
                && row.value == happened.result
            {
                row.times += 1;
                continue;
            }
            let ended = row.replace(Row { place: happened.place, value: happened.result, times: 1 });
            if let Some(waits) = ended.and_then(|ended| self.note(happened.thread, ended)) {
                return Some(waits);
            }
        }
        None
    }

    /// A thread does not read the same any more.
    fn note(&mut self, thread: u32, Row { place, value, times }: Row) -> Option<Failure> {
        if times < MANY_ROUNDS {
            return None;
        }
        let numbers = self.0.entry((thread, std::ptr::from_ref(place).addr())).or_default();
        numbers.insert(times);
        let why = || format!("it has read {value} {times} times in a row");
        (numbers.len() >= NUMBERS).then(|| too_long(thread, place, &why()))
    }
}

/// Could a thread wait for something with this?
fn reads(happened: &Happened) -> bool {
    matches!(happened.operation, Operation::Load(_) | Operation::Rmw { .. } | Operation::TryLock(_))
}

/// A thread goes round a loop.
pub(crate) fn too_long(thread: u32, place: Place, why: &str) -> Failure {
    let message = format!(
        "thread {thread} goes round a loop that does not end here: {why}. If it waits for another thread, call \
         `weakspot::hint::spin_loop()` (or `thread::yield_now()`) in each round: then one failing round is explored \
         instead of all of them"
    );
    Failure::new(FailureKind::TooLong, message).of_thread(thread).at(Some(place.into()))
}

/// Why an execution with more events than it may have is given up.
pub(crate) fn too_many_events(events: u32) -> String {
    format!("the execution has more than {events} events (see `max_events`)")
}

/// The loop of an execution that has grown too long: the place that comes up most among the last events.
pub(crate) fn longest_loop(runtime: &Runtime, why: &str) -> Failure {
    let state = runtime.state();
    let mut counts: FxHashMap<(u32, usize), (usize, Place)> = FxHashMap::default();
    for happened in state.log.iter().rev().take(1_000) {
        let key = (happened.thread, std::ptr::from_ref(happened.place).addr());
        counts.entry(key).or_insert((0, happened.place)).0 += 1;
    }
    let most = counts.iter().max_by_key(|((thread, place), (count, _))| (*count, *thread, *place));
    match most {
        Some((&(thread, _), &(_, place))) => too_long(thread, place, why),
        None => Failure::new(FailureKind::TooLong, "an execution has too many events".to_owned()),
    }
}
