//! The answer about a test in words.

use weakspot_fence::Goal;
use weakspot_fence::live::{Change, Late, LiveDoubt, Model, Strengthening, Why};

use crate::commands::limits;

/// What a test does that is as it should be.
pub fn goal(goal: Goal) -> &'static str {
    match goal {
        Goal::Spec => "it meets its specification",
        Goal::Robust => "it is store-buffer safe",
    }
}

/// What to do to an operation. A store that has to release as well takes more than a fence after it.
pub fn change(change: &Change, releases: bool) -> String {
    let place = &change.place;
    match (change.how, change.says_ordering) {
        (Strengthening::SeqCst, true) if releases => {
            format!("`SeqCst` for the store at {place}, or `Release` with `fence(SeqCst)` after it")
        }
        (Strengthening::SeqCst, true) => format!("`SeqCst` for the store at {place}, or `fence(SeqCst)` after it"),
        (Strengthening::SeqCst, false) => format!("`fence(SeqCst)` after the call at {place}"),
        (Strengthening::Release, true) => {
            format!("`Release` for the operation at {place}, or `fence(Release)` before it")
        }
        (Strengthening::Release, false) => format!("`fence(Release)` before the call at {place}"),
        (Strengthening::Acquire, _) => {
            format!("`Acquire` for the operation at {place}, or `fence(Acquire)` after it")
        }
        (Strengthening::AcqRel, _) => format!("`AcqRel` for the operation at {place}"),
        (Strengthening::AcquireOnFailure, _) => {
            format!("`Acquire` as the second ordering of the operation at {place}")
        }
        (Strengthening::FenceBefore, _) => format!("`fence(SeqCst)` before the load at {place}"),
    }
}

/// What happens without a change.
pub fn reordering(late: &Late, change: &Change) -> String {
    let Late { store, what, later } = late;
    if change.how == Strengthening::SeqCst {
        return format!(
            "without it, the store can stay in its buffer while its thread goes on to the {what} at {later}"
        );
    }
    format!("without it, the store at {store} can still be in its buffer then")
}

/// Which data race comes without a change.
pub fn race(why: &Why) -> String {
    let message = why.message.strip_prefix("data race: ").unwrap_or(&why.message);
    format!("without it, {message}")
}

/// What is wrong on every processor.
pub fn error(model: &Model) -> String {
    let why = model.why.as_ref();
    let message = why.map_or("a model fails", |why| why.message.as_str());
    if why.is_some_and(|why| why.kind == "race") {
        return format!(
            "{message}. That is so without store buffers, too: what is missing is synchronisation between the two"
        );
    }
    format!("{message} (on every processor: store buffers have no part in it)")
}

/// Why there is no answer.
pub fn doubt(doubt: &LiveDoubt) -> String {
    match doubt {
        LiveDoubt::Limit(limit) => limits::reached(*limit),
        LiveDoubt::Open(model) => match &model.why {
            Some(why) => format!("of the model at {}: {}", model.start, why.message),
            None => format!("not every execution of the model at {} was explored", model.start),
        },
        LiveDoubt::Helpless(model) => {
            let why = model.why.as_ref().map_or("not store-buffer safe", |why| why.message.as_str());
            format!("of the model at {}: {why}; which changes help could not be found out", model.start)
        }
        LiveDoubt::FailsOutside => "the test fails, but none of its models does with the changes".to_owned(),
        LiveDoubt::Runs => "every run showed something new, until it was given up".to_owned(),
    }
}

/// The same as a name of JSON.
pub fn limit(doubt: &LiveDoubt) -> &'static str {
    match doubt {
        LiveDoubt::Limit(limit) => limits::name(*limit),
        LiveDoubt::Open(model) if is_not_deterministic(model) => "not-deterministic",
        LiveDoubt::Open(_) => "bounded",
        LiveDoubt::Helpless(_) => "unknown",
        LiveDoubt::FailsOutside => "test-failed",
        LiveDoubt::Runs => "runs",
    }
}

/// What to do about it.
pub fn advice(doubt: &LiveDoubt) -> &'static str {
    match doubt {
        LiveDoubt::Limit(limit) => limits::advice(*limit),
        LiveDoubt::Open(model) if is_not_deterministic(model) => {
            "a model has to do the same whenever it is run with the same schedule: docs/rust.md"
        }
        LiveDoubt::Open(_) => "make the model smaller, or its limits larger",
        LiveDoubt::Helpless(_) => {
            "`cargo test` shows the executions; `WEAKSPOT_STRENGTHENED` tries changes out by hand"
        }
        LiveDoubt::FailsOutside => "more models may stand behind the failure, which is on standard error",
        LiveDoubt::Runs => "divide the test into smaller ones",
    }
}

fn is_not_deterministic(model: &Model) -> bool {
    model.why.as_ref().is_some_and(|why| why.kind == "not-deterministic")
}
