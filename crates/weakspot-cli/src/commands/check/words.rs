//! What kept `check` from a better answer, in words.

use weakspot_check::{Bound, End};

use crate::args::CheckArgs;
use crate::commands::{count, limits};

/// The name in JSON.
pub fn name(bound: &Bound) -> &'static str {
    match bound {
        Bound::Limit(limit) => limits::name(*limit),
        Bound::Preemptions(_) => "preemptions",
        Bound::Sampled(_) => "sampled",
        Bound::Schedule(_) => "schedule",
        Bound::Unroll(_) => "unroll",
        Bound::States(_) => "states",
        Bound::Endless => "endless",
        Bound::NothingEnds => "nothing-ends",
    }
}

/// What was reached.
pub fn reached(bound: &Bound) -> String {
    match bound {
        Bound::Limit(limit) => limits::reached(*limit),
        Bound::Preemptions(most) => format!("nothing found with at most {}", count((*most).into(), "preemption")),
        Bound::Sampled(schedules) => format!("nothing found in {}", count(*schedules, "schedule")),
        Bound::Schedule(end) => format!("nothing found in this schedule, {}", how(end)),
        Bound::Unroll(rounds) => {
            format!("nothing found with at most {} of each loop", count((*rounds).into(), "round"))
        }
        Bound::States(states) => format!("no end in sight after {states} states: values may grow without bound"),
        Bound::Endless => "an execution grew too long to be explored, perhaps without end".to_owned(),
        Bound::NothingEnds => "no execution ran to its end".to_owned(),
    }
}

/// What to do about it; what was asked for already is not advised.
pub fn advice(bound: &Bound, args: &CheckArgs) -> &'static str {
    let has_bound = args.max_preemptions.is_some();
    match bound {
        Bound::Limit(limit) => limits::advice(*limit),
        Bound::Preemptions(_) => "raise --max-preemptions, or leave it out to explore every execution",
        Bound::Sampled(_) => "look at more schedules or use another --seed, or explore every execution",
        Bound::Schedule(_) => "a replay looks at one schedule; leave out --replay to explore all of them",
        Bound::Unroll(_) => "raise --unroll, or let the attack engine decide: --engine attack",
        Bound::States(_) if has_bound => "add --unroll N to look at a part, or --engine attack to wait for the end",
        Bound::States(_) => {
            "add --unroll N or --max-preemptions N to look at a part, or --engine attack (or a limit) to wait for the end"
        }
        Bound::Endless if has_bound => {
            "preemptions do not bound a thread that runs alone for ever: add --unroll N, or use --engine attack"
        }
        Bound::Endless => {
            "add --unroll N, or --max-preemptions N if no thread runs alone for ever, or use --engine attack"
        }
        Bound::NothingEnds => "look at the waits and assumptions of the program",
    }
}

/// How a schedule ends.
fn how(end: &End) -> &'static str {
    match end {
        End::Complete => "which runs to the end of the program",
        End::Wrong => "which ends in a deadlock",
        End::Pruned => "in which an assume is false: it is no execution",
        End::Spinning => "which ends with a thread that computes for ever",
        End::Open => "which ends where threads can still move",
    }
}
