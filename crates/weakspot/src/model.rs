//! Explores a model: every SC execution, then what store buffers make of it.

use std::any::TypeId;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weakspot_explore::graph::{EventKind, Manner};
use weakspot_explore::trust::{Divergence, Explorer, Subtree};

use crate::builder::{Builder, FailOn};
use crate::failure::{Failure, FailureKind};
use crate::impact::{self, Impact, Undelayed};
use crate::jobs::Busy;
use crate::judge::{Found, Judge, borderlines};
use crate::repetition::Difference;
use crate::report::{Bound, LoopLeftOut, Report, Verdict};
use crate::rt::lane::{Operation, call_of};
use crate::rt::runtime::{Body, Runtime};
use crate::rt::statics::Claim;
use crate::rt::system::Live;
use crate::rt::{overflow, panics, spare};
use crate::timeline::Timeline;
use crate::{jobs, repetition, schedules, strengthen};

/// Runs a closure in every way its threads can be scheduled, and panics with a report if one of them fails.
#[track_caller]
pub fn model(body: impl Fn() + Send + Sync + 'static) {
    Builder::new().model(body);
}

/// Explores a model whose closure is of this type.
#[track_caller]
pub(crate) fn check(builder: &Builder, body: &Body, kind: TypeId) -> Report {
    panics::install_hook();
    overflow::install();
    let start = Instant::now();
    let model = builder.replay.as_deref().and_then(crate::replay::model_asked_for).unwrap_or(builder.model);
    let claim = Claim::new();
    let _busy = Busy::one();
    let mut runtime = Runtime::new(model, builder.max_threads, Arc::clone(body));
    runtime.belong_to(claim.number());
    runtime.lasting.set(builder.lasting);
    runtime.fair.set(builder.fair);
    runtime.strengthen(builder.strengthened.clone());
    if let Some(schedule) = &builder.replay {
        return crate::replay::replay(builder, &runtime, schedule, start);
    }
    let mut judge = search(builder, &runtime, start);
    if judge.report.failure.is_none()
        && judge.report.bound.is_none()
        && !judge.first.is_empty()
        && repetition::is_new(kind, &judge.first)
    {
        let first = std::mem::take(&mut judge.first);
        match repetition::check(builder, &runtime, first, judge.explored()) {
            Some(Difference::Events(failure)) => judge.report.failure = Some(*failure),
            Some(Difference::Fails(report)) => judge.report.take_over_failure(*report),
            Some(Difference::Values(note)) => judge.report.notes.push(note),
            None => {}
        }
    }
    if let Some(failure) = &judge.report.failure
        && matches!(failure.kind, FailureKind::NotDeterministic)
        && let Some(first) = repetition::first_difference(builder, &runtime)
        && first.thread != failure.thread
    {
        (judge.report.failure, judge.report.timeline) = (Some(first), None);
    }
    judge.report.left_out = runtime.loops_left_out.take().into_iter().map(LoopLeftOut::from).collect();
    // A model that does not repeat itself, or fails only sometimes, may do more than was seen.
    judge.report.exhaustive &= judge.report.left_out.is_empty() && judge.report.failure.is_none();
    let nothing_ends = judge.report.executions == 0 && judge.report.blocked > 0;
    if nothing_ends && judge.report.failure.is_none() && judge.report.left_out.is_empty() {
        judge.report.exhaustive = false;
        judge.report.bound.get_or_insert(Bound::NoEnd);
    }
    let found = judge.take_found();
    let mut report = judge.report;
    if report.failure.is_none() && !found.is_empty() {
        if builder.fail_on != FailOn::Nothing {
            let took = start.elapsed();
            overflow::note(Some(crash_note(&found)));
            let (mut judged, witness) = impact::judge(&runtime, builder, &borderlines(&found), took);
            overflow::note(None);
            // An SC execution that was left out, by a bound for example: it fails on every processor.
            let undelayed = if let Impact::Harmful(harm) = &mut judged { harm.undelayed.take() } else { None };
            if let Some(Undelayed { failure, timeline, schedule }) = undelayed {
                (report.failure, report.timeline, report.schedule) = (Some(failure), Some(timeline), Some(schedule));
                report.exhaustive = false;
            } else {
                if builder.fail_on == FailOn::Unsafe || matches!(judged, Impact::Harmful(_)) {
                    let advice = strengthen::suggest(builder, &runtime, &found, Some(&judged), took);
                    (report.suggestions, report.clauses) = (advice.suggestions, advice.clauses);
                }
                report.impact = Some(judged);
                report.witness = witness;
            }
        }
        if report.failure.is_none() {
            report.violations = found.into_iter().map(|found| found.violation).collect();
        }
        report.begin_with_shown();
    }
    if repetition::fails_again(builder, &runtime, &report) {
        strengthen::help_against_race(builder, &runtime, &mut report, start.elapsed());
    } else {
        report.notes.push(repetition::FAILED_ONCE.to_owned());
    }
    if let Some(place) = runtime.left_as_it_is.get()
        && (report.failure.is_some() || matches!(report.impact, Some(Impact::Harmful(_))))
    {
        report.notes.push(format!(
            "the static lock that is used at {place} holds what the execution before has left in it: only data without a \
             destructor and without pointers to the heap is put back. `weakspot::lazy_static!` makes a static anew in every execution"
        ));
    }
    // Where there was one execution only, it may be that all threads are those of `std`, and nothing was explored.
    if report.failure.is_some() || report.executions == 1 {
        report.notes.extend(runtime.note_of_foreigners());
    }
    let missed =
        builder.strengthened.iter().map(|(place, _)| place).filter(|place| !runtime.strengthened.has_met(place));
    report.notes.extend(missed.map(|place| {
        format!(
            "`Builder::strengthened` names {place}, but no operation that was explored is there, so this changes nothing. A \
             place is the file as the compiler names it, the line, and the column at which the name of the method begins"
        )
    }));
    report.note_observed(&runtime);
    report.elapsed = start.elapsed();
    report.verdict = verdict(&report);
    report.fails_on_unsafe = builder.fail_on == FailOn::Unsafe;
    report.fails_on_harmful = builder.fail_on != FailOn::Nothing;
    report
}

/// What it means if the process crashes while relaxed executions are tried out. Leaked: it is small, and needed once.
fn crash_note(found: &[Found]) -> &'static str {
    let test = std::thread::current().name().map(|name| format!(" {name}")).unwrap_or_default();
    let mut text = format!(
        "\nweakspot: the test{test} crashes when a store is delayed in a store buffer (the code ran on simulated buffers, \
         and used memory that was freed or never there). Stores that may be:\n"
    );
    for Found { violation, .. } in found {
        let _ = writeln!(text, "  the one at {}, seen late by {}", violation.store.place, violation.access.place);
    }
    text.push_str("Run it with WEAKSPOT_MODEL=sc to see whether it is right otherwise.\n");
    text.leak()
}

/// Executions after which a model with a bound on preemptions is explored with that bound instead of completely.
const PATIENCE: u64 = 200_000;
/// The same for time: this, or half of what there is. Who asks for a bound does not want to wait.
const PATIENCE_IN_TIME: Duration = Duration::from_secs(3);

/// Explores as the builder says. A bound on preemptions is for models that cannot be explored completely: those that can
/// are.
pub(crate) fn search<'b>(builder: &'b Builder, runtime: &Runtime, start: Instant) -> Judge<'b> {
    loop {
        let judge = match (builder.seed, builder.max_preemptions) {
            (Some(seed), _) => schedules::random(builder, runtime, seed, start),
            (None, None) => {
                let explore = || {
                    if jobs::are_possible(builder) {
                        jobs::search(builder, runtime, start)
                    } else if jobs::are_automatic(builder) {
                        jobs::search_alone_at_first(builder, runtime, start)
                    } else {
                        explore(builder, runtime, start, None)
                    }
                };
                step_by_step_if_need_be(builder, runtime, start, explore)
            }
            (None, Some(most)) => {
                let half = builder.max_duration.map(|most| most / 2);
                let time = half.into_iter().chain([PATIENCE_IN_TIME]).min();
                let explore = || explore_for(builder, runtime, start, Some(PATIENCE), time);
                let judge = step_by_step_if_need_be(builder, runtime, start, explore);
                // Threads that keep each other from coming to an end for ever need a preemption each time.
                let is_endless = is_endless(&judge.report);
                if (is_endless || matches!(judge.report.bound, Some(Bound::Executions | Bound::Memory)))
                    && builder.max_executions.is_none_or(|executions| executions > judge.explored())
                {
                    if is_endless {
                        runtime.finish_run(false);
                    }
                    let mut bounded = schedules::bounded(builder, runtime, most, None, start);
                    if bounded.found.is_empty() {
                        bounded.take_over_found(judge);
                    }
                    bounded
                } else {
                    judge
                }
            }
        };
        let observed = std::mem::take(&mut runtime.counts.borrow_mut().found);
        runtime.finish_run(!observed && may_go_on(&judge.report));
        if !observed {
            return judge;
        }
    }
}

/// May the threads of the last run be brought to their end? Those of one that is not what it was before may: what they hold
/// may be something that outlives the run.
pub(crate) fn may_go_on(report: &Report) -> bool {
    report.failure.as_ref().is_none_or(|failure| matches!(failure.kind, FailureKind::NotDeterministic))
}

/// Was an execution given up because it had no end in sight?
fn is_endless(report: &Report) -> bool {
    report.failure.as_ref().is_some_and(|failure| matches!(failure.kind, FailureKind::TooLong))
}

/// Preemptions of the schedules that are explored one by one if nobody says how many.
const FEW_PREEMPTIONS: u32 = 2;
/// How long, if they have to be because of what no event orders.
const PATIENCE_WITH_SCHEDULES: Duration = Duration::from_secs(10);

/// A model may depend on the order of things that no event orders (the reference count of a `std` `Arc`). Then what it does
/// is not determined by the graph, but it may be by the schedule: schedules are explored one by one. If it does not
/// even repeat itself under the same schedule, the first answer stands.
fn step_by_step_if_need_be<'b>(
    builder: &'b Builder,
    runtime: &Runtime,
    start: Instant,
    explore: impl Fn() -> Judge<'b>,
) -> Judge<'b> {
    let explored = explore();
    let Some(Failure { kind: FailureKind::NotDeterministic, place, .. }) = &explored.report.failure else {
        return explored;
    };
    let place = place.as_ref().map(|place| format!(" (seen at {place})")).unwrap_or_default();
    runtime.finish_run(true);
    if let Some(judge) = without_the_first(builder, runtime, &place, explore) {
        return judge;
    }
    let most = builder.max_preemptions.unwrap_or(FEW_PREEMPTIONS);
    let mut judge = schedules::bounded(builder, runtime, most, Some(PATIENCE_WITH_SCHEDULES), start);
    if judge.report.bound == Some(Bound::Executions) && builder.max_executions.is_none() {
        judge.report.bound = Some(Bound::Time);
    }
    let repeats_itself = match &judge.report.failure {
        Some(failure) => !matches!(failure.kind, FailureKind::NotDeterministic),
        // Everything begins anew then.
        None if runtime.counts.borrow().found => true,
        None => !repetition::is_random(builder, runtime),
    };
    if !repeats_itself {
        return explored;
    }
    judge.report.notes.push(format!(
        "what this test does depends on the order of things that weakspot does not see{place}, a `std` reference \
         count, which memory the allocator uses again or a hash map for example. So it was run schedule by schedule, with up to {most} preemptions"
    ));
    judge
}

/// What a static keeps may make the first execution of all different from the others: without that one, all may be as it
/// should.
fn without_the_first<'b>(
    builder: &Builder,
    runtime: &Runtime,
    place: &str,
    explore: impl Fn() -> Judge<'b>,
) -> Option<Judge<'b>> {
    let mut judge = explore();
    // Everything begins anew then.
    if runtime.counts.borrow().found {
        return Some(judge);
    }
    let failure = judge.report.failure.as_ref();
    let differs = failure.is_some_and(|failure| matches!(failure.kind, FailureKind::NotDeterministic));
    runtime.finish_run(may_go_on(&judge.report));
    if differs || repetition::is_random(builder, runtime) {
        return None;
    }
    // Nothing was left out if it was ordinary code that has changed what all begin with.
    if runtime.anew.was_another.take() {
        return Some(judge);
    }
    judge.report.notes.push(format!(
        "the first execution of all did something that later ones do not do{place}, as it is if a `std` static or \
         thread-local is initialised in it. What it did then was not explored"
    ));
    Some(judge)
}

fn verdict(report: &Report) -> Verdict {
    if report.failure.is_some() {
        return Verdict::Failed;
    }
    match (&report.impact, report.bound) {
        (Some(Impact::Harmful(_)), _) => Verdict::Harmful,
        (Some(Impact::Benign), _) if report.left_out.is_empty() => Verdict::Benign,
        (Some(Impact::Benign | Impact::Unknown), _) => Verdict::Unknown,
        (None, _) if !report.violations.is_empty() => Verdict::Unknown,
        (None, Some(bound)) => Verdict::Bounded(bound),
        (None, None) if !report.left_out.is_empty() => Verdict::Bounded(Bound::Loops),
        (None, None) => Verdict::Safe,
    }
}

/// Explores everything, or so many executions.
pub(crate) fn explore<'b>(builder: &'b Builder, runtime: &Runtime, start: Instant, most: Option<u64>) -> Judge<'b> {
    explore_for(builder, runtime, start, most, None)
}

/// The same, or until so much time is over, which counts as too many executions.
fn explore_for<'b>(
    builder: &'b Builder,
    runtime: &Runtime,
    start: Instant,
    most: Option<u64>,
    time: Option<Duration>,
) -> Judge<'b> {
    let mut judge = Judge::new(builder, start);
    judge.most = most.into_iter().chain(builder.max_executions).min();
    judge.patience = time;
    judge.hopeful_since = time.map(|_| start.elapsed());
    explore_part(builder, runtime, &mut judge, None);
    judge
}

/// Explores a part of the model, or all of it.
pub(crate) fn explore_part(builder: &Builder, runtime: &Runtime, judge: &mut Judge<'_>, part: Option<Subtree>) {
    let mut system = Live { runtime };
    let mut explorer = explorer_for(builder, &mut system, judge);
    let ended = match part {
        None => explorer.run(judge),
        Some(part) => explorer.run_subtree(part, judge),
    };
    sum_up(runtime, judge, &explorer, ended);
    spare::keep_workspace(explorer.into_workspace());
}

/// An explorer of the model, as the builder says.
pub(crate) fn explorer_for<'s, 'r>(
    builder: &Builder,
    system: &'s mut Live<'r>,
    judge: &Judge<'_>,
) -> Explorer<'s, Live<'r>> {
    let explorer = Explorer::using(system, spare::take_workspace());
    let explorer =
        explorer.with_longest(builder.max_events).with_exact_rounds(builder.max_spins).with_fair_loops(builder.fair);
    match judge.kind {
        Some(kind) => explorer.watching(kind.watching()),
        None => explorer,
    }
}

/// Notes how an exploration has ended.
pub(crate) fn sum_up(
    runtime: &Runtime,
    judge: &mut Judge<'_>,
    explorer: &Explorer<'_, Live<'_>>,
    ended: ControlFlow<()>,
) {
    judge.report.events = explorer.counters().events;
    judge.report.runs = explorer.counters().runs + 1;
    judge.report.exhaustive = ended.is_continue();
    // The limit was reached with the last execution of all.
    if judge.report.bound == Some(Bound::Executions) && explorer.is_done() {
        (judge.report.bound, judge.report.exhaustive) = (None, true);
    }
    if let Some(divergence) = explorer.divergence() {
        judge.report.failure = Some(not_deterministic(runtime, divergence));
        judge.report.timeline = Some(Timeline::of_run(runtime));
    }
}

/// Why a model may not be deterministic.
pub(crate) const WHAT_DIFFERS: &str = "Time, random numbers, the order of hash maps, addresses, and what a `std` static or \
                                       thread-local keeps from one execution to the next do that.";

fn not_deterministic(runtime: &Runtime, divergence: Divergence) -> Failure {
    let state = runtime.state();
    let lane = &state.lanes[divergence.thread.index()];
    let is_same = kind_of(lane.operation) == Some(kind_name(divergence.was));
    let elsewhere = if is_same {
        ", but to something else (or a thread before it has used these atomics or locks in another order)"
    } else {
        ""
    };
    let message = format!(
        "thread {} was run again with the same results and did something else. Its event \
         {} was {}; now it is about to {}{elsewhere}. {WHAT_DIFFERS}",
        divergence.thread.0,
        divergence.event,
        kind_name(divergence.was),
        call_of(lane.what)
    );
    Failure::new(FailureKind::NotDeterministic, message)
        .of_thread(u32::from(divergence.thread.0))
        .at(Some(lane.place.into()))
}

/// What a thread is about to do, as [`kind_name`] says it, if that may be done to something else as well.
fn kind_of(operation: Operation) -> Option<&'static str> {
    Some(kind_name(match operation {
        Operation::Load(_) => EventKind::Load,
        Operation::Store(..) | Operation::InterlockedStore(..) => EventKind::Store,
        Operation::Rmw { drains_all, looks, .. } => EventKind::RmwRead(Manner::new(drains_all, looks)),
        Operation::Lock(_) | Operation::TryLock(_) => EventKind::LockRead,
        Operation::Unlock(_) => EventKind::Unlock,
        Operation::Wait { .. } => EventKind::WaitRead,
        Operation::Notify { .. } => EventKind::NotifyRead,
        _ => return None,
    }))
}

fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Load => "a load",
        EventKind::Store | EventKind::InterlockedStore => "a store",
        EventKind::RmwRead(_) | EventKind::RmwWrite { .. } => "a read-modify-write",
        EventKind::LockRead | EventKind::LockWrite => "the acquisition of a mutex",
        EventKind::Unlock | EventKind::WaitUnlock => "the release of a mutex",
        EventKind::WaitRead | EventKind::WaitWrite | EventKind::WakeRead | EventKind::WakeWrite => "a wait",
        EventKind::NotifyRead | EventKind::NotifyWrite => "a notification",
        EventKind::Signal => "the start or the end of a thread, or the opening of a barrier",
        EventKind::Await => "waiting for a thread or at a barrier",
        EventKind::Fence(_) => "a fence",
        EventKind::Choose => "a choice",
        EventKind::LeaveCritical | EventKind::Misuse => "something else",
    }
}
