//! Does a model repeat itself?
//!
//! The explorer notices if a thread does something else than it did before with the same results. It does not look at
//! values, and a model with few executions may be through before chance strikes. So the first execution is run once more in
//! the end and compared, event by event, as long as the schedule is the same. What differs then is no doing of the
//! schedule: time, random numbers, the order of a hash map.
//!
//! A closure of the same type that the same test explores again is not looked at again.
//!
//! What a static keeps makes the first run of all different from the others, and that alone is no harm: what counts is
//! whether two later runs differ.
//!
//! If only values differ (numbers that a static of `std` gives out, one after the other), the executions are those that
//! were explored, with other numbers in them; that is told, and is no failure. Values that may be pointers are not
//! compared: not every allocator gives out the same memory again.

use std::any::TypeId;
use std::cell::RefCell;
use std::fmt::Write;
use std::mem::discriminant;
use std::time::Instant;

use rustc_hash::FxHashSet;

use crate::builder::Builder;
use crate::failure::{Failure, FailureKind};
use crate::impact::Impact;
use crate::model::{WHAT_DIFFERS, explore};
use crate::report::Report;
use crate::rt::lane::{Happened, Operation};
use crate::rt::runtime::Runtime;

/// How often the first execution is run again if it was different from the first time.
const TRIES: usize = 4;

/// Numbers up to this one are no addresses.
const LARGEST_NUMBER: u64 = 0xffff;

thread_local! {
    /// The closures that were looked at, by their types. A test that explores the same closure a thousand times need not
    /// have it looked at each time.
    static KNOWN: RefCell<FxHashSet<TypeId>> = RefCell::default();
}

/// Was a model with a closure of this type looked at before?
pub(crate) fn is_known(kind: TypeId) -> bool {
    KNOWN.with_borrow(|known| known.contains(&kind))
}

/// A model with a closure of this type is looked at.
pub(crate) fn know(kind: TypeId) {
    KNOWN.with_borrow_mut(|known| known.insert(kind));
}

/// What is different when a model is run again.
pub(crate) enum Difference {
    /// What it does.
    Events(Box<Failure>),
    /// Values only.
    Values(String),
}

/// Runs the first execution again: does the model not repeat itself?
pub(crate) fn check(builder: &Builder, runtime: &Runtime, first: &[Happened]) -> Option<Difference> {
    let again = run(builder, runtime)?;
    difference(first, &again)?;
    (0..TRIES).find_map(|_| run(builder, runtime).and_then(|last| difference(&again, &last)))
}

/// Does the model something else if it is run with the same schedule?
pub(crate) fn is_random(builder: &Builder, runtime: &Runtime) -> bool {
    let Some(first) = run(builder, runtime) else { return false };
    (0..TRIES).any(|_| {
        let again = run(builder, runtime).and_then(|again| difference(&first, &again));
        matches!(again, Some(Difference::Events(_)))
    })
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
    let is_quick = matches!(failure.kind, FailureKind::Panic { .. } | FailureKind::Race { .. } | FailureKind::Deadlock);
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

/// The events of the first execution, run now.
fn run(builder: &Builder, runtime: &Runtime) -> Option<Vec<Happened>> {
    runtime.keeps_first.set(true);
    let judge = explore(builder, runtime, Instant::now(), Some(1));
    runtime.counts.borrow_mut().found = false;
    runtime.finish_run(judge.report.failure.is_none());
    judge.first
}

/// The first event that is different although the schedule up to it is the same.
fn difference(before: &[Happened], now: &[Happened]) -> Option<Difference> {
    let pairs = || before.iter().zip(now).take_while(|(before, now)| before.thread == now.thread).enumerate();
    if let Some((at, (before, now))) = pairs().find(|(_, (before, now))| !is_same_event(before, now)) {
        let message = format!("{} {WHAT_DIFFERS}", sentence(at, before, now));
        let failure = Failure::new(FailureKind::NotDeterministic, message);
        return Some(Difference::Events(Box::new(failure.of_thread(now.thread).at(Some(now.place.into())))));
    }
    if pairs().count() == before.len().min(now.len())
        && let Some(failure) = other_end(before, now)
    {
        return Some(Difference::Events(Box::new(failure)));
    }
    let (at, (before, now)) = pairs().find(|(_, (before, now))| !are_same_values(before, now))?;
    let sentence = sentence(at, before, now);
    Some(Difference::Values(format!(
        "values differ from run to run: {sentence} {WHAT_DIFFERS} As long as it does the same things with them, the executions \
         are those that were explored"
    )))
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
    if !std::ptr::eq(before.place, now.place) {
        let _ = write!(text, ", at {}", before.place);
    }
    let of_what = if describe(now) == describe(before) { " of something else" } else { "" };
    let _ = write!(text, "; now it is `{}`{of_what}, at {}.", describe(now), now.place);
    text
}

fn is_same_event(before: &Happened, now: &Happened) -> bool {
    (before.what, before.operation.object()) == (now.what, now.operation.object())
        && std::ptr::eq(before.place, now.place)
        && before.written.is_some() == now.written.is_some()
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
