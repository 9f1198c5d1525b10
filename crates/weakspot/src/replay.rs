//! Runs exactly one schedule: what `WEAKSPOT_REPLAY` does.

use std::time::Instant;

use weakspot_explore::buffered::{Buffered, Move, Rest};
use weakspot_model::buffer::MemoryModel;

use crate::builder::Builder;
use crate::failure::{Failure, FailureKind};
use crate::impact::parse_schedule;
use crate::report::{Report, Verdict};
use crate::rt::panics;
use crate::rt::runtime::Runtime;
use crate::rt::system::Live;
use crate::timeline::Timeline;

/// The memory model and the moves of a schedule.
fn parse(schedule: &str) -> Result<(MemoryModel, Vec<Move>), String> {
    let (model, moves) = schedule.split_once(':').ok_or("it does not begin with sc:, tso: or pso:")?;
    let model = match model {
        "sc" => MemoryModel::Sc,
        "tso" => MemoryModel::Tso,
        "pso" => MemoryModel::Pso,
        other => return Err(format!("`{other}` is none of sc, tso, pso")),
    };
    let moves = parse_schedule(moves).map_err(|part| format!("`{part}` is no step"))?;
    Ok((model, moves))
}

pub(crate) fn replay(builder: &Builder, runtime: &Runtime, schedule: &str, start: Instant) -> Report {
    let mut report = Report::new(builder.model);
    report.schedule = Some(schedule.to_owned());
    report.failure = match parse(schedule) {
        Err(why) => Some(Failure::new(FailureKind::Other, format!("this is not a schedule of weakspot: {why}"))),
        Ok((model, moves)) => run(runtime, model, &moves),
    };
    report.timeline = Some(Timeline::of_run(runtime));
    report.executions = 1;
    report.runs = 1;
    report.elapsed = start.elapsed();
    report.verdict = if report.failure.is_some() { Verdict::Failed } else { Verdict::Safe };
    runtime.finish_run(report.failure.is_none());
    runtime.buffered.set(false);
    report
}

/// Runs the moves; the failure they lead to.
fn run(runtime: &Runtime, model: MemoryModel, moves: &[Move]) -> Option<Failure> {
    runtime.buffered.set(model != MemoryModel::Sc);
    let mut system = Live { runtime };
    let mut machine = Buffered::new(&mut system, model);
    for (index, &what) in moves.iter().enumerate() {
        let possible = what.thread() < machine.threads()
            && match what {
                Move::Step { thread, .. } => {
                    machine.wake(thread);
                    machine.can_step(thread)
                }
                Move::Commit { thread, cell } => machine.can_commit(thread, cell),
            };
        if !possible {
            let message = format!("step {} of the schedule is not possible: the test has changed", index + 1);
            return Some(Failure::new(FailureKind::Other, message));
        }
        machine.make(what);
        if model == MemoryModel::Sc {
            machine.commit_all(what.thread());
        }
    }
    match machine.rest()? {
        Rest::Complete => None,
        Rest::Failed(thread) => {
            Some(runtime.failure.take().unwrap_or_else(|| panics::take_failure(runtime, thread as u32, None)))
        }
        Rest::Deadlock => Some(Failure::new(FailureKind::Deadlock, format!("deadlock{}", runtime.describe_waiting()))),
        Rest::Livelock => {
            let message = format!("livelock{}", runtime.describe_waiting());
            (!runtime.ends_nevertheless()).then(|| Failure::new(FailureKind::Livelock, message))
        }
    }
}
