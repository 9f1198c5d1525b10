//! Limits of a search: from arguments to a budget, and into words when one was reached.

use std::num::NonZeroUsize;
use std::time::Duration;

use weakspot_model::task::{Budget, Limit};

use crate::args::LimitArgs;
use crate::exit::Failure;
use crate::progress::cancelled_by_signal;

/// As many as asked for, else one: then the same question always gets the same counterexample.
pub fn jobs(asked: Option<NonZeroUsize>) -> usize {
    asked.map_or(1, NonZeroUsize::get)
}

/// As many as asked for, else as many as there are processors.
pub fn processors(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// What the search may spend; Ctrl-C ends it.
pub fn budget(limits: &LimitArgs) -> Result<Budget, Failure> {
    let mut budget = Budget { cancelled: cancelled_by_signal()?, ..Budget::unlimited() };
    if let Some(seconds) = limits.time_limit {
        budget = budget.with_time(Duration::from_secs_f64(seconds));
    }
    if let Some(mib) = limits.memory_limit {
        budget = budget.with_memory((mib.get() as u64) << 20);
    }
    Ok(budget)
}

/// The name in JSON.
pub fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::Buffer(_) => "buffer",
        Limit::Time => "time",
        Limit::Memory => "memory",
        Limit::Cancelled => "cancelled",
        Limit::States(_) => "states",
        Limit::Assumptions => "assumptions",
    }
}

/// What was reached.
pub fn reached(limit: Limit) -> String {
    match limit {
        Limit::Buffer(bound) => {
            format!("a store buffer wanted to hold more than {bound} {}", if bound == 1 { "store" } else { "stores" })
        }
        Limit::Time => "the time limit was reached".to_owned(),
        Limit::Memory => "the memory limit was reached".to_owned(),
        Limit::Cancelled => "interrupted".to_owned(),
        Limit::States(bound) => format!("the limit of {bound} states was reached"),
        Limit::Assumptions => "it stayed open whether what was found meets every assume".to_owned(),
    }
}

/// What to do about it.
pub fn advice(limit: Limit) -> &'static str {
    match limit {
        Limit::Buffer(_) => "raise --buffer, or bound the loop that stores",
        Limit::Time => "raise --time-limit, or make the program smaller",
        Limit::Memory => "raise --memory-limit, or make the program smaller",
        Limit::Cancelled => "run it again to get an answer",
        Limit::States(_) => "make the program smaller, and see to it that no value grows without bound",
        Limit::Assumptions => "make the program smaller, or assume less",
    }
}
