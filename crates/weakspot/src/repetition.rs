//! Does a model repeat itself?
//!
//! The explorer notices if a thread does something else than it did before with the same results. It does not look at
//! values, and a model with few executions may be through before chance strikes. So the first executions are run again in
//! the end and compared, event by event, as long as the schedule is the same. What differs then is no doing of the
//! schedule: time, random numbers, the order of a hash map. A coin falls the same way twice in every second model, so
//! this is done many times where there are few executions, and next to never where there are many: those have
//! begun in the same way again and again already.
//!
//! A closure of the same type that the same test explores again is not looked at again, unless it comes to places that none of
//! them has come to: all functions `fn()` are of one type.
//!
//! What a static keeps makes the first run of all different from the others, and that alone is no harm: what counts is
//! whether runs differ once more.
//!
//! If only values differ (numbers that a static of `std` gives out, one after the other), the executions are those that
//! were explored, with other numbers in them; that is told, and is no failure. Values that may be pointers are not
//! compared: not every allocator gives out the same memory again.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::fmt::Write;
use std::mem::discriminant;
use std::panic::Location;
use std::ptr;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::builder::Builder;
use crate::failure::{Failure, FailureKind};
use crate::impact::Impact;
use crate::model::{WHAT_DIFFERS, explore, may_go_on};
use crate::report::Report;
use crate::rt::lane::{Happened, Operation};
use crate::rt::objects::Origin;
use crate::rt::runtime::Runtime;

/// How often executions are run again if they were different from the first time.
const TRIES: usize = 4;

/// So many of the first executions are run again.
pub(crate) const MOST_EXECUTIONS: usize = 10;
/// Models with more executions have begun in the same way so often that one of them is enough, and once.
const MANY: u64 = 1_000;
/// Runs that models with fewer are worth, and how often each execution is run at most and at least.
const RUNS: usize = 200;
const TIMES: std::ops::RangeInclusive<usize> = 20..=100;
/// Events after which it is enough, and the time if there is much between events.
const EVENTS: usize = 20_000;
const PATIENCE: Duration = Duration::from_millis(50);

/// Numbers up to this one are no addresses.
const LARGEST_NUMBER: u64 = 0xffff;

thread_local! {
    /// The closures that were looked at, by their types, and where the events of their first executions were. A test that
    /// explores the same closure a thousand times need not have it looked at each time.
    static KNOWN: RefCell<FxHashMap<TypeId, FxHashSet<*const Location<'static>>>> = RefCell::default();
}

/// Are these the first executions of something that was not looked at before? It is from now on.
pub(crate) fn is_new(kind: TypeId, first: &[Execution]) -> bool {
    let places =
        || first.iter().flat_map(|execution| execution.log.iter().map(|happened| ptr::from_ref(happened.place)));
    KNOWN.with_borrow_mut(|known| match known.entry(kind) {
        Entry::Occupied(mut known) => {
            let before = known.get().len();
            known.get_mut().extend(places());
            known.get().len() > before
        }
        Entry::Vacant(kind) => {
            kind.insert(places().collect());
            true
        }
    })
}

/// An execution to compare others with.
pub(crate) struct Execution {
    log: Vec<Happened>,
    /// The objects of its events, numbered in the order in which they come up: other numbers depend on who was asked first
    /// what it is about to do.
    objects: Vec<Option<u32>>,
    /// Where they come from, if that is noted. If somebody uses two objects in another order, they have changed places, and
    /// whoever uses one of them next seems to be the first to do something else.
    origins: Vec<Option<Origin>>,
}

impl Execution {
    /// The run that was made last.
    pub(crate) fn of_run(runtime: &Runtime) -> Self {
        let state = runtime.state();
        let mut numbers = vec![None; state.objects.len()];
        let (mut next, mut origins) = (0, Vec::new());
        let number = |happened: &Happened| {
            let object = happened.operation.object()? as usize;
            let number = numbers.get_mut(object)?;
            if number.is_none() {
                *number = Some(next);
                next += 1;
                origins.push(state.objects[object].origin().filter(|_| runtime.notes_origins.get()));
            }
            *number
        };
        let objects = state.log.iter().map(number).collect();
        Self { log: state.log.clone(), objects, origins }
    }

    fn origin(&self, event: usize) -> Option<Origin> {
        self.origins[self.objects[event]? as usize]
    }

    /// Is an event the same in another execution?
    fn is_same_event(&self, other: &Self, event: usize) -> bool {
        let (before, now) = (&self.log[event], &other.log[event]);
        (before.what, self.objects[event]) == (now.what, other.objects[event])
            && ptr::eq(before.place, now.place)
            && before.written.is_some() == now.written.is_some()
    }
}

/// What is different when a model is run again.
pub(crate) enum Difference {
    /// What it does.
    Events(Box<Failure>),
    /// An execution fails that did not before.
    Fails(Box<Report>),
    /// Values only.
    Values(String),
}

/// Runs the first executions of so many again: does the model not repeat itself?
pub(crate) fn check(
    builder: &Builder,
    runtime: &Runtime,
    mut first: Vec<Execution>,
    executions: u64,
) -> Option<Difference> {
    // A loop that asks a clock may end in any round, and the report says so.
    let leaves_out = !runtime.loops_left_out.borrow().is_empty();
    let times = if executions > MANY || leaves_out {
        first.truncate(1);
        1
    } else {
        let events: usize = first.iter().map(|execution| execution.log.len()).sum();
        let times = (RUNS / first.len()).clamp(*TIMES.start(), *TIMES.end());
        times.min(EVENTS / events.max(1)).max(1)
    };
    let difference = differs_twice(builder, runtime, first, times);
    difference.filter(|difference| !leaves_out || !matches!(difference, Difference::Fails(_)))
}

/// The second difference of runs one after the other: there may be one for once. One of values is the least.
fn differs_twice(builder: &Builder, runtime: &Runtime, first: Vec<Execution>, times: usize) -> Option<Difference> {
    let start = Instant::now();
    let count = first.len();
    let mut before = Again { executions: first, fails: false };
    let (mut has_differed, mut left, mut failed, mut values) = (false, times, None, None);
    while left > 0 {
        left -= 1;
        let (now, report) = run(builder, runtime, count);
        failed = report.or(failed);
        match before.difference(&now) {
            Some(Differs::Values(note)) if has_differed => values = Some(Difference::Values(note)),
            Some(Differs::Events(failure)) if has_differed => return Some(Difference::Events(failure)),
            Some(Differs::Failing) if has_differed => return failed.map(Difference::Fails),
            Some(_) => (has_differed, before, left) = (true, now, left.max(TRIES)),
            None => {}
        }
        if start.elapsed() > PATIENCE {
            left = left.min(if has_differed { TRIES } else { 0 });
        }
    }
    values
}

/// What the first event is that differs when the first executions are run with the same schedule again.
pub(crate) fn first_difference(builder: &Builder, runtime: &Runtime) -> Option<Failure> {
    runtime.notes_origins.set(true);
    let failure = differs_at(builder, runtime);
    runtime.notes_origins.set(false);
    failure
}

fn differs_at(builder: &Builder, runtime: &Runtime) -> Option<Failure> {
    let start = Instant::now();
    let (mut before, _) = run(builder, runtime, MOST_EXECUTIONS);
    for _ in 0..*TIMES.start() {
        let (now, _) = run(builder, runtime, MOST_EXECUTIONS);
        if let Some(Differs::Events(failure)) = before.difference(&now) {
            return Some(*failure);
        }
        if start.elapsed() > PATIENCE {
            return None;
        }
        before = now;
    }
    None
}

/// Does the model something else if it is run with the same schedule?
pub(crate) fn is_random(builder: &Builder, runtime: &Runtime) -> bool {
    let (first, _) = run(builder, runtime, 1);
    let differs = |(again, _): (Again, _)| matches!(first.difference(&again), Some(Differs::Events(_)));
    !first.executions.is_empty() && (0..TRIES).any(|_| differs(run(builder, runtime, 1)))
}

/// What is said of a failure that does not come again.
pub(crate) const FAILED_ONCE: &str = "the execution did not fail in this way when it was run again with the same schedule, so \
                                      the model is not deterministic. Time, random numbers, the order of hash maps, \
                                      addresses, and what a `std` static or thread-local keeps do that.";

/// Does the execution that fails do so again? Asked of failures that can be run again in no time.
pub(crate) fn fails_again(builder: &Builder, runtime: &Runtime, report: &Report) -> bool {
    let failure = match (&report.failure, &report.impact) {
        (Some(failure), _) => failure,
        (None, Some(Impact::Harmful(harm))) => &harm.failure,
        _ => return true,
    };
    let is_quick = matches!(
        failure.kind,
        FailureKind::Panic { .. } | FailureKind::Race { .. } | FailureKind::UsedAfterFree(_) | FailureKind::Deadlock
    );
    let Some(schedule) = report.replay().filter(|_| is_quick) else { return true };
    let again = crate::replay::failure_of(builder, runtime, schedule);
    again.is_some_and(|again| are_alike(&again, failure))
}

/// Are two failures of the same kind?
pub(crate) fn are_alike(one: &Failure, other: &Failure) -> bool {
    discriminant(&one.kind) == discriminant(&other.kind)
}

/// Does the first execution fail, if it is run now?
pub(crate) fn first_fails(builder: &Builder, runtime: &Runtime) -> bool {
    let judge = explore(builder, runtime, Instant::now(), Some(1));
    runtime.counts.borrow_mut().found = false;
    runtime.finish_run(judge.report.failure.is_none());
    judge.report.failure.is_some()
}

/// The first executions, run once more.
struct Again {
    executions: Vec<Execution>,
    /// The one after these fails.
    fails: bool,
}

/// How two of these differ.
enum Differs {
    Events(Box<Failure>),
    /// One of them fails.
    Failing,
    Values(String),
}

impl Again {
    fn difference(&self, now: &Self) -> Option<Differs> {
        let mut pairs = self.executions.iter().zip(&now.executions);
        let first = pairs.next().and_then(|(before, now)| difference(before, now));
        let values = match first {
            Some(Differs::Values(note)) => Some(Differs::Values(note)),
            Some(differs) => return Some(differs),
            None => None,
        };
        let later = pairs.find_map(|(before, now)| difference_by_events(before, now));
        let failing = (self.fails != now.fails).then_some(Differs::Failing);
        later.map(|failure| Differs::Events(Box::new(failure))).or(failing).or(values)
    }
}

/// So many of the first executions, run now, and the report of the one that fails, if one does.
fn run(builder: &Builder, runtime: &Runtime, count: usize) -> (Again, Option<Box<Report>>) {
    let judge = explore(builder, runtime, Instant::now(), Some(count as u64));
    runtime.counts.borrow_mut().found = false;
    runtime.finish_run(may_go_on(&judge.report));
    let report = judge.report.failure.is_some().then(|| Box::new(judge.report));
    (Again { executions: judge.first, fails: report.is_some() }, report)
}

/// The first event that is different although the schedule up to it is the same.
fn difference(before: &Execution, now: &Execution) -> Option<Differs> {
    let pairs = || before.log.iter().zip(&now.log).take_while(|(before, now)| before.thread == now.thread).enumerate();
    if let Some((at, _)) = pairs().find(|&(at, _)| !before.is_same_event(now, at)) {
        return Some(Differs::Events(Box::new(other_event(at, before, now))));
    }
    if pairs().count() == before.log.len().min(now.log.len())
        && let Some(failure) = other_end(&before.log, &now.log)
    {
        return Some(Differs::Events(Box::new(failure)));
    }
    let (at, (before, now)) = pairs().find(|(_, (before, now))| !are_same_values(before, now))?;
    let sentence = sentence(at, before, now);
    Some(Differs::Values(format!(
        "values differ from run to run: {sentence} {WHAT_DIFFERS} As long as it does the same things with them, the executions \
         are those that were explored"
    )))
}

/// The same for executions that need not be the same: they are up to where they have another schedule or another choice.
fn difference_by_events(before: &Execution, now: &Execution) -> Option<Failure> {
    for (at, (one, other)) in before.log.iter().zip(&now.log).enumerate() {
        if one.thread != other.thread {
            return None;
        }
        if !before.is_same_event(now, at) {
            return Some(other_event(at, before, now));
        }
        if one.result != other.result {
            return None;
        }
    }
    other_end(&before.log, &now.log)
}

/// An event is another one, or one before it is, of something that is used in both runs, but not in this place.
fn other_event(at: usize, before: &Execution, now: &Execution) -> Failure {
    let is_moved = |&event: &usize| {
        let (was, is) = (before.origin(event), now.origin(event));
        was.is_some() && is.is_some() && was != is && before.origins.contains(&is)
    };
    let at = (0..at).find(is_moved).unwrap_or(at);
    let (before, now) = (&before.log[at], &now.log[at]);
    let message = format!("{} {WHAT_DIFFERS}", sentence(at, before, now));
    Failure::new(FailureKind::NotDeterministic, message).of_thread(now.thread).at(Some(now.place.into()))
}

/// One of two runs that begin in the same way goes on where the other has ended.
fn other_end(before: &[Happened], now: &[Happened]) -> Option<Failure> {
    let (ended, more, went_on) = match (before.get(now.len()), now.get(before.len())) {
        (Some(more), _) => (now.len(), more, "had gone on"),
        (None, Some(more)) => (before.len(), more, "now goes on"),
        (None, None) => return None,
    };
    let message = format!(
        "the same schedule was run again, and where one of the two runs ends, after event {ended}, the other {went_on} \
         with `{}` in thread {}, at {}. {WHAT_DIFFERS}",
        describe(more),
        more.thread,
        more.place
    );
    let failure = Failure::new(FailureKind::NotDeterministic, message);
    Some(failure.of_thread(more.thread).at(Some(more.place.into())))
}

fn sentence(at: usize, before: &Happened, now: &Happened) -> String {
    let mut text = format!(
        "the same schedule was run again, and event {} of it, in thread {}, was another one. It was `{}`",
        at + 1,
        now.thread,
        describe(before)
    );
    if !ptr::eq(before.place, now.place) {
        let _ = write!(text, ", at {}", before.place);
    }
    let of_what = if describe(now) == describe(before) { " of something else" } else { "" };
    let _ = write!(text, "; now it is `{}`{of_what}, at {}.", describe(now), now.place);
    text
}

fn are_same_values(before: &Happened, now: &Happened) -> bool {
    let is_same = |one: u64, other: u64| one == other || one > LARGEST_NUMBER && other > LARGEST_NUMBER;
    let number = |value: Option<i64>| value.map_or(0, |value| value as u64);
    is_same(stored(before).unwrap_or(0), stored(now).unwrap_or(0))
        && is_same(before.result as u64, now.result as u64)
        && is_same(number(before.written), number(now.written))
}

fn stored(happened: &Happened) -> Option<u64> {
    match happened.operation {
        Operation::Store(_, value) | Operation::InterlockedStore(_, value) => Some(value),
        _ => None,
    }
}

fn describe(happened: &Happened) -> String {
    match (stored(happened), happened.written) {
        (Some(value), _) => format!("store {}", value as i64),
        (None, Some(written)) => format!("{}: {} -> {written}", happened.what, happened.result),
        (None, None) if matches!(happened.operation, Operation::Load(_)) => format!("load: {}", happened.result),
        (None, None) => happened.what.to_owned(),
    }
}
