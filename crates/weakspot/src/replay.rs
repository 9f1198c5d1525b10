//! Runs exactly one schedule: what `WEAKSPOT_REPLAY` does.

use std::time::Instant;

use weakspot_explore::buffered::{Buffered, Move, Rest};
use weakspot_explore::system::{Pending, Repeated, System};
use weakspot_model::buffer::MemoryModel;

use crate::builder::{Builder, FailOn};
use crate::endless::{longest_loop, too_many_events, waits_in_run};
use crate::failure::{Failure, FailureKind};
use crate::impact::parse_schedule;
use crate::report::{Bound, Report, Verdict};
use crate::rt::channels::Closing;
use crate::rt::lane::Operation;
use crate::rt::numbers::{self, PARENTS, Parent};
use crate::rt::observed::{OBSERVED, Observed};
use crate::rt::panics;
use crate::rt::runtime::Runtime;
use crate::rt::system::Live;
use crate::strengthen::cycle;
use crate::timeline::Timeline;

/// Ends a schedule after which the threads that are left go round their loops for ever.
pub(crate) const GOES_ON: char = '+';

/// Follows a schedule, before the number of the model of the test that it belongs to: a test may have several.
const NUMBER: char = '@';
/// Follows that number, before the line of the model, if the test may have several OS threads that explore.
const LINE: char = ':';

/// Which of the models of a test one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Which {
    /// Its number on its OS thread, from 1 on.
    pub(crate) number: u32,
    /// Its line, if it is not the OS thread of the test. That has a name.
    pub(crate) line: Option<u32>,
}

impl Which {
    /// The first of the test, as far as is known.
    pub(crate) const FIRST: Self = Self { number: 1, line: None };
}

/// Moves after which it is given up to wait for the end of a run.
const LONGEST_WAIT: usize = 100_000;

/// Lets whoever can go on do so, one after the other, until nobody can; false if there is no end to it, as it is if loops
/// that wait write something in each round.
fn go_on(machine: &mut Buffered<'_, Live<'_>>) -> bool {
    let (mut moves, mut last) = (Vec::new(), 0);
    for _ in 0..LONGEST_WAIT {
        if machine.rest().is_some() {
            return true;
        }
        machine.moves(&mut moves);
        let next = moves.iter().find(|what| what.thread() > last).or(moves.first());
        let Some(&next) = next else { return true };
        machine.make(next);
        machine.commit_all(next.thread());
        last = next.thread();
    }
    false
}

fn model_of(name: &str) -> Option<MemoryModel> {
    MemoryModel::ALL.into_iter().find(|model| model.name() == name)
}

/// The model that was asked for when a schedule was found, if it is one. An SC execution may be found whatever is asked
/// for; TSO is what is asked for if nobody says anything.
pub(crate) fn model_asked_for(schedule: &str) -> Option<MemoryModel> {
    match schedule.split_once(':')?.0 {
        "sc" => Some(MemoryModel::Tso),
        name => model_of(name.strip_prefix("sc/").unwrap_or(name)),
    }
}

/// A schedule of the model of this number, as `WEAKSPOT_REPLAY` takes it.
pub(crate) fn of_model(schedule: &str, which: Which) -> String {
    match which {
        Which { number, line: Some(line) } => format!("{schedule}{NUMBER}{number}{LINE}{line}"),
        Which::FIRST => schedule.to_owned(),
        Which { number, line: None } => format!("{schedule}{NUMBER}{number}"),
    }
}

/// A schedule, if it belongs to this model, or to all.
pub(crate) fn for_model(schedule: &str, which: Which) -> Option<&str> {
    let of = |(rest, text)| Some((rest, parse_which(text)?));
    match schedule.trim().rsplit_once(NUMBER).and_then(of) {
        Some((rest, of)) => (of == which).then_some(rest),
        None => Some(schedule),
    }
}

fn parse_which(text: &str) -> Option<Which> {
    let (number, line) = match text.split_once(LINE) {
        Some((number, line)) => (number, Some(line.parse().ok()?)),
        None => (text, None),
    };
    Some(Which { number: number.parse().ok()?, line })
}

/// A schedule with what is observed in it, and who starts which thread.
pub(crate) fn with_observed(schedule: &str, runtime: &Runtime) -> String {
    format!("{schedule}{}{}", runtime.counts.borrow().observed.text(), runtime.parents_text())
}

/// A schedule.
struct Schedule {
    trial: Trial,
    observed: Observed,
    /// Who starts which thread, if that is said.
    parents: Vec<Parent>,
}

/// The moves of a run.
pub(crate) struct Trial {
    /// The machine that they are moves of.
    pub(crate) model: MemoryModel,
    pub(crate) moves: Vec<Move>,
    /// The thread that stops before an access to plain memory, and which of its accesses that is.
    pub(crate) stop: Option<Stop>,
    /// The threads that are left go on.
    pub(crate) goes_on: bool,
}

/// A thread, and which of its accesses to plain memory is an event.
pub(crate) type Stop = (u32, u32);

/// Moves in which a thread stops before an access to plain memory: that comes first.
pub(crate) fn with_stop(stop: Option<Stop>, moves: &str) -> String {
    match stop {
        Some((thread, access)) => format!("{thread}{STOP}{access}.{moves}"),
        None => moves.to_owned(),
    }
}

/// Stands between the number of a thread and that of one of its accesses to plain memory.
const STOP: char = 'p';

fn parse_stop(moves: &str) -> (Option<Stop>, &str) {
    let stop = || {
        let (first, rest) = moves.split_once('.')?;
        let (thread, access) = first.split_once(STOP)?;
        Some(((thread.parse().ok()?, access.parse().ok()?), rest))
    };
    stop().map_or((None, moves), |(stop, rest)| (Some(stop), rest))
}

fn parse(schedule: &str) -> Result<Schedule, String> {
    let goes_on = goes_on(schedule);
    let (schedule, text) = match schedule.split_once(OBSERVED) {
        Some((schedule, text)) => (schedule, Some(text)),
        None => (schedule, None),
    };
    let (mut observed, mut parents) = (Observed::default(), Vec::new());
    for part in text.into_iter().flat_map(|text| text.split(OBSERVED)) {
        let understood = match part.strip_prefix(PARENTS) {
            Some(text) => numbers::parse_parents(text).map(|read| parents = read),
            None => observed.read(part).ok(),
        };
        understood.ok_or_else(|| format!("`{OBSERVED}{part}` is neither a place nor a list of threads"))?;
    }
    let (name, moves) = schedule.split_once(':').ok_or("it does not begin with sc:, tso: or pso:")?;
    if model_asked_for(schedule).is_none() {
        return Err(format!("`{name}` is none of sc, tso, pso"));
    }
    let model = model_of(name).unwrap_or(MemoryModel::Sc);
    let (stop, moves) = parse_stop(moves);
    let moves = parse_schedule(moves.trim_end_matches(GOES_ON)).map_err(|part| format!("`{part}` is no step"))?;
    Ok(Schedule { trial: Trial { model, moves, stop, goes_on }, observed, parents })
}

pub(crate) fn replay(builder: &Builder, runtime: &Runtime, schedule: &str, start: Instant) -> Report {
    let schedule = schedule.trim();
    let mut report = Report::new(builder.model);
    report.schedule = Some(schedule.to_owned());
    report.failure = match parse(schedule) {
        Err(why) => Some(no_schedule(format!("`{schedule}` is not a schedule of weakspot: {why}"))),
        Ok(parsed) => run_until_known(builder, runtime, &parsed),
    };
    report.timeline = Some(match &report.failure {
        Some(failure) => Timeline::of_failed_run(runtime, failure),
        None => Timeline::of_run(runtime),
    });
    report.executions = 1;
    report.runs = 1;
    report.elapsed = start.elapsed();
    report.fails_on_unsafe = builder.fail_on == FailOn::Unsafe;
    if report.failure.is_none() && report.fails_on_unsafe && runtime.buffered.get() {
        let model = model_asked_for(schedule).unwrap_or(builder.model);
        report.violations = cycle::violations_on_cycles(&runtime.state().log, model);
    }
    report.verdict = match &report.failure {
        Some(_) => Verdict::Failed,
        None if !report.violations.is_empty() => Verdict::Unknown,
        None => Verdict::Bounded(Bound::Schedule),
    };
    runtime.finish_run(report.failure.is_none());
    runtime.buffered.set(false);
    report
}

/// The failure that a schedule leads to, if it is run again.
pub(crate) fn failure_of(builder: &Builder, runtime: &Runtime, schedule: &str) -> Option<Failure> {
    let parsed = parse(schedule).ok()?;
    let failure = run_until_known(builder, runtime, &parsed);
    runtime.finish_run(failure.is_none());
    runtime.buffered.set(false);
    failure
}

fn goes_on(schedule: &str) -> bool {
    schedule.split(OBSERVED).next().is_some_and(|moves| moves.ends_with(GOES_ON))
}

/// Do these moves, in which a thread may stop and which need not be possible, lead to the use of memory that was freed? If so:
/// how it fails, and how that came about. The run is no part of the exploration, whatever it finds out.
pub(crate) fn uses_freed(builder: &Builder, runtime: &Runtime, trial: &Trial) -> Option<(Failure, Timeline)> {
    let (left_out, buffered) = (runtime.loops_left_out.borrow().clone(), runtime.buffered.get());
    let failure = run(builder, runtime, trial);
    let failure = failure.filter(|failure| matches!(failure.kind, FailureKind::UsedAfterFree(_)));
    let failure = failure.filter(|_| !runtime.counts.borrow().found);
    let found = failure.map(|failure| {
        let timeline = Timeline::of_failed_run(runtime, &failure);
        (failure, timeline)
    });
    runtime.finish_run(found.is_none());
    runtime.buffered.set(buffered);
    runtime.loops_left_out.replace(left_out);
    found
}

/// Are all of these steps made, and does nobody fail then? The run is no part of the exploration, either, and makes way for the next
/// one. It takes a fraction of the time of one whose moves are made one by one.
pub(crate) fn goes_well(runtime: &Runtime, steps: &mut Vec<Repeated>) -> bool {
    let left_out = runtime.loops_left_out.borrow().clone();
    let mut system = Live { runtime };
    system.restart();
    let goes_well = system.repeat(steps) == steps.len() && runtime.failure.borrow().is_none();
    runtime.finish_run(true);
    runtime.loops_left_out.replace(left_out);
    goes_well
}

/// Runs the moves; once more if they lead to something that is observed and was not known to be.
fn run_until_known(builder: &Builder, runtime: &Runtime, schedule: &Schedule) -> Option<Failure> {
    runtime.counts.borrow_mut().observed.extend(&schedule.observed);
    runtime.number_threads(&schedule.parents);
    loop {
        let failure = run(builder, runtime, &schedule.trial);
        if !std::mem::take(&mut runtime.counts.borrow_mut().found) {
            return failure;
        }
        runtime.finish_run(false);
    }
}

fn no_schedule(message: String) -> Failure {
    Failure::new(FailureKind::Schedule, message)
}

/// The schedule is over and the run is not.
fn ends_early(builder: &Builder, runtime: &Runtime) -> Failure {
    let moves = runtime.state().log.len();
    let events: usize = runtime.state().log.iter().map(|one| most_events(one.operation)).sum();
    if events > builder.max_events as usize {
        return longest_loop(runtime, &too_many_events(builder.max_events));
    }
    if let Some(failure) = waits_in_run(builder.max_retries, runtime) {
        return failure;
    }
    no_schedule(format!(
        "the schedule is over after step {moves}, and the test is not: either a part of the schedule is missing, or the \
         test has changed, or the schedule is another test's"
    ))
}

/// As how many events the explorer counts an operation at most: an atomic that writes reads before, and a wait looks who waits,
/// says that it does, and gives its mutex back before it is woken and takes the mutex again.
fn most_events(operation: Operation) -> usize {
    if matches!(operation, Operation::Wait { .. }) { 7 } else { 2 }
}

/// A move of a schedule as one of the machine, if it is possible: in a schedule, a commit says the place in the buffer.
fn possible_move(machine: &mut Buffered<'_, Live<'_>>, what: Move) -> Option<Move> {
    if what.thread() >= machine.threads() {
        return None;
    }
    match what {
        Move::Step { thread, .. } => {
            machine.wake(thread);
            machine.can_step(thread).then_some(what)
        }
        Move::Commit { thread, cell: place } => {
            let cell = machine.cell_in_buffer(thread, place as usize)?;
            machine.can_commit(thread, cell).then_some(Move::Commit { thread, cell })
        }
    }
}

/// Runs the moves; the failure they lead to.
fn run(builder: &Builder, runtime: &Runtime, trial: &Trial) -> Option<Failure> {
    runtime.stops_at.set(trial.stop);
    let failure = run_moves(builder, runtime, trial);
    runtime.stops_at.set(None);
    failure
}

fn run_moves(builder: &Builder, runtime: &Runtime, trial: &Trial) -> Option<Failure> {
    let &Trial { model, ref moves, goes_on, .. } = trial;
    runtime.buffered.set(model != MemoryModel::Sc);
    let mut system = Live { runtime };
    let mut machine = Buffered::new(&mut system, model);
    for (index, &what) in moves.iter().enumerate() {
        let Some(possible) = possible_move(&mut machine, what) else {
            let step = index + 1;
            return Some(no_schedule(format!(
                "step {step} of the schedule is not possible: the test has changed, or the schedule is another test's"
            )));
        };
        machine.make(possible);
        if model == MemoryModel::Sc {
            machine.commit_all(what.thread());
        }
        if machine.pending(what.thread()) == Pending::Failed {
            break;
        }
    }
    if goes_on && !go_on(&mut machine) {
        return runtime.livelock_unless_it_ends(|cell| machine.memory(cell));
    }
    let Some(rest) = machine.rest() else { return Some(ends_early(builder, runtime)) };
    match rest {
        Rest::Complete => runtime.end_run(),
        Rest::Failed(thread) => {
            Some(runtime.failure.take().unwrap_or_else(|| panics::take_failure(runtime, thread as u32, None)))
        }
        Rest::Deadlock | Rest::Livelock if runtime.is_closing_awaited() => {
            runtime.see_closing(Closing::Awaited);
            None
        }
        Rest::Deadlock | Rest::Livelock if runtime.is_kept_out_in_vain() => None,
        Rest::Deadlock => Some(runtime.deadlock()),
        Rest::Livelock => runtime.livelock_unless_it_ends(|cell| machine.memory(cell)),
    }
}
