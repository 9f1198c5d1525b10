//! Loops that do not end: those that wait without saying so, and those that go on until an execution is too long.
//!
//! A thread that waits without [`spin_loop`](crate::hint::spin_loop) looks once more in each further execution, and there
//! is no last one. A loop with an end may look as often, but most look as often in every execution. So a thread that reads
//! one value of one object at one place more than `Builder::max_retries` times in a row is suspect, and it waits if the number of
//! all its reads there is another one each time. (A loop that gives up after more rounds by itself is taken for one, too.)

use rustc_hash::{FxHashMap, FxHashSet};

use crate::failure::{Failure, FailureKind};
use crate::rt::Place;
use crate::rt::lane::{Happened, Operation};
use crate::rt::runtime::Runtime;

/// Different numbers of such reads that are enough to know.
const NUMBERS: usize = 16;

/// Who reads what, and where: the thread, the object and the address of the place.
type Reader = (u32, u32, usize);

/// Loops that were looked at.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// Reads of one value at one place, in a row, beyond which a thread is suspect.
    most: usize,
    /// The numbers of reads of those that were, by reader.
    suspects: FxHashMap<Reader, FxHashSet<usize>>,
}

/// The reads of a reader in one execution.
#[derive(Debug, Clone, Copy)]
struct Reads {
    place: Place,
    all: usize,
    /// The last value, and how often it was read in a row.
    value: i64,
    row: usize,
    /// The value that was read most often in a row, and how often.
    most: (i64, usize),
}

impl Reads {
    fn new(place: Place) -> Self {
        Self { place, all: 0, value: 0, row: 0, most: (0, 0) }
    }

    fn add(&mut self, value: i64) {
        self.row = if value == self.value { self.row + 1 } else { 1 };
        self.value = value;
        self.all += 1;
        if self.row > self.most.1 {
            self.most = (value, self.row);
        }
    }
}

impl Rounds {
    pub(crate) fn new(max_retries: u32) -> Self {
        Self { most: max_retries as usize, suspects: FxHashMap::default() }
    }

    /// An execution with so many events has ended: does a thread wait in it without saying so?
    pub(crate) fn look_at(&mut self, events: u32, runtime: &Runtime) -> Option<Failure> {
        if events as usize <= self.most {
            return None;
        }
        let waiting = suspects(self.most, runtime).filter(|&(reader, reads)| {
            let numbers = self.suspects.entry(reader).or_default();
            numbers.insert(reads.all);
            numbers.len() >= NUMBERS
        });
        let (reader, reads) = waiting.min_by_key(|&(reader, _)| reader)?;
        Some(waits(reader, reads, ", and another number of times in each execution", self.most))
    }
}

/// A schedule is over: was it the one of an execution in which a thread waits without saying so?
pub(crate) fn waits_in_run(max_retries: u32, runtime: &Runtime) -> Option<Failure> {
    let most = max_retries as usize;
    let (reader, reads) = suspects(most, runtime).min_by_key(|&(reader, _)| reader)?;
    Some(waits(reader, reads, "", most))
}

/// Who has read one value at one place more than so many times in a row.
fn suspects(most: usize, runtime: &Runtime) -> impl Iterator<Item = (Reader, Reads)> {
    let mut readers: FxHashMap<Reader, Reads> = FxHashMap::default();
    for happened in &runtime.state().log {
        let Happened { thread, place, result, .. } = *happened;
        if let Some(object) = read_object(happened) {
            let reader = (thread, object, std::ptr::from_ref(place).addr());
            readers.entry(reader).or_insert_with(|| Reads::new(place)).add(result);
        }
    }
    readers.into_iter().filter(move |(_, reads)| reads.most.1 > most)
}

fn waits(reader: Reader, reads: Reads, differs: &str, most: usize) -> Failure {
    let Reads { place, most: (value, times), .. } = reads;
    let why = format!(
        "it has read {value} {times} times in a row{differs}. (A loop that gives up by itself after more than {most} rounds \
         needs a larger `max_retries`)"
    );
    too_long(reader.0, place, &why)
}

/// What a thread has read, if it could wait for something with that.
fn read_object(happened: &Happened) -> Option<u32> {
    match happened.operation {
        Operation::Load(object) | Operation::Rmw { object, .. } | Operation::TryLock(object) => Some(object),
        _ => None,
    }
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

/// A thread goes round a loop that says that it waits, and finds something new each time.
fn keeps_going(thread: u32, place: Place, marker: Place, why: &str) -> Failure {
    let message = format!(
        "thread {thread} goes round a loop that does not end here: {why}. It says that it waits, at {marker}, but finds \
         something new in each round: another thread goes round a loop as well and answers it. If nothing else ends one of \
         the two, that is a livelock"
    );
    Failure::new(FailureKind::TooLong, message).of_thread(thread).at(Some(place.into()))
}

/// Why an execution with more events than it may have is given up.
pub(crate) fn too_many_events(events: u32) -> String {
    format!("the execution has more than {events} events (see `max_events`)")
}

/// The loop of an execution that has grown too long: the place that comes up most among the last events.
pub(crate) fn longest_loop(runtime: &Runtime, why: &str) -> Failure {
    match busiest(runtime) {
        Some((thread, place)) => match runtime.state().lanes[thread as usize].marker_place {
            Some(marker) => keeps_going(thread, place, marker, why),
            None => too_long(thread, place, why),
        },
        None => Failure::new(FailureKind::TooLong, "an execution has too many events".to_owned()),
    }
}

/// A search takes too much memory: where it goes, as a rule.
pub(crate) fn busiest_place(runtime: &Runtime) -> String {
    let place =
        busiest(runtime).map(|(thread, place)| format!(" Most of the last events are of thread {thread}, at {place}."));
    format!(
        "so many events of several threads can come in so many orders that the search was given up.{} Fewer rounds, or \
         `max_preemptions`, make it possible",
        place.unwrap_or_default()
    )
}

/// The thread and place that come up most among the last events.
fn busiest(runtime: &Runtime) -> Option<(u32, Place)> {
    let state = runtime.state();
    let mut counts: FxHashMap<(u32, usize), (usize, Place)> = FxHashMap::default();
    for happened in state.log.iter().rev().take(1_000) {
        let key = (happened.thread, std::ptr::from_ref(happened.place).addr());
        counts.entry(key).or_insert((0, happened.place)).0 += 1;
    }
    let most = counts.iter().max_by_key(|((thread, place), (count, _))| (*count, *thread, *place));
    most.map(|(&(thread, _), &(_, place))| (thread, place))
}
