//! Searches against machines that try everything, and share nothing with weakspot: random programs, each with a machine
//! that knows what can come of it with so many preemptions.
#![allow(clippy::unwrap_used)]

mod rounds;
mod shared;
mod straight;
mod timeouts;

use std::collections::BTreeSet;
use std::sync::{Arc as StdArc, Mutex as StdMutex};
use std::time::Instant;

use super::path::Path;
use super::*;
use crate::rt;

/// What threads have seen, and what is in the cells at the end.
type Outcomes = BTreeSet<Vec<usize>>;

/// A program, to be run as often as need be.
fn runs<P: Send + Sync + 'static>(
    program: &StdArc<P>,
    run: fn(&P) -> Vec<usize>,
) -> impl Fn() -> Vec<usize> + Send + Sync + Clone + use<P> {
    let program = StdArc::clone(program);
    move || run(&program)
}

/// What comes of a program in a search.
fn found(
    program: impl Fn() -> Vec<usize> + Send + Sync + 'static,
    search: impl FnOnce(&Builder, &Runtime),
) -> Outcomes {
    let outcomes = StdArc::new(StdMutex::new(Outcomes::new()));
    let seen = StdArc::clone(&outcomes);
    let body = move || {
        let outcome = program();
        // Runs that are given up come to their end, too.
        if rt::current().is_some_and(|runtime| !runtime.is_free()) {
            seen.lock().unwrap().insert(outcome);
        }
    };
    let builder = Builder::default();
    let runtime = Runtime::new(builder.model, builder.max_threads, StdArc::new(body));
    search(&builder, &runtime);
    outcomes.lock().unwrap().clone()
}

/// What comes of it with at most so many preemptions. Nothing may fail.
fn found_within(most: u32, is_determined: bool, program: impl Fn() -> Vec<usize> + Send + Sync + 'static) -> Outcomes {
    found(program, |builder, runtime| {
        let mut search = Search::new(builder, runtime, Instant::now());
        search.follow(&mut Path::new(most, is_determined));
        let report = search.finish(Bound::Preemptions(most)).report;
        assert!(report.failure.is_none(), "{most} preemptions: {report}");
    })
}

/// What comes of it when everything is explored, and whether loops were left out.
fn found_in_all(program: impl Fn() -> Vec<usize> + Send + Sync + 'static) -> (Outcomes, bool) {
    let mut leaves_out = false;
    let outcomes = found(program, |builder, runtime| {
        crate::model::explore(builder, runtime, Instant::now(), None);
        leaves_out = !runtime.loops_left_out.borrow().is_empty();
        runtime.finish_run(true);
    });
    (outcomes, leaves_out)
}

/// Schedules with few preemptions come to all that the machine comes to with so many, and to nothing that it cannot come to.
fn compare_few(
    which: &str,
    all: &Outcomes,
    few: impl Fn(u32) -> Outcomes,
    program: impl Fn() -> Vec<usize> + Send + Sync + Clone + 'static,
) {
    for (most, is_determined) in [(0, false), (0, true), (1, false), (1, true), (2, true)] {
        let found = found_within(most, is_determined, program.clone());
        let which = format!("{which}: {most} preemptions, {is_determined}");
        assert!(found.is_subset(all), "{which}: {:?}", found.difference(all).next());
        let few = few(most);
        assert!(few.is_subset(&found), "{which}: {:?}", few.difference(&found).next());
    }
}
