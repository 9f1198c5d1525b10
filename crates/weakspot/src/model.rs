//! Explores a model: every SC execution, then what store buffers make of it.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use weakspot_explore::buffered::Move;
use weakspot_explore::exhaustive::{MonitorKind, Watcher};
use weakspot_explore::graph::{EventKind, Graph, NONE};
use weakspot_explore::linearise::{Lineariser, is_step};
use weakspot_explore::monitor::Finding;
use weakspot_explore::outcome::actions_of;
use weakspot_explore::trust::{Divergence, Ending, Explorer, Subtree, Visitor};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::machine::Action;

use crate::builder::{Builder, FailOn};
use crate::failure::{Failure, FailureKind};
use crate::impact::{self, Borderline, Impact, ScStep};
use crate::jobs::{self, Colleague};
use crate::report::{Bound, LoopLeftOut, Report, Verdict, Violation};
use crate::rt::lane::Happened;
use crate::rt::runtime::{Body, Runtime};
use crate::rt::system::Live;
use crate::rt::{Place, overflow, panics};
use crate::strengthen::Candidate;
use crate::strengthen::delays::{self, Delays};
use crate::timeline::Timeline;
use crate::{schedules, strengthen};

/// Runs a closure in every way its threads can be scheduled, and panics with a report if one of them fails.
#[track_caller]
pub fn model(body: impl Fn() + Send + Sync + 'static) {
    Builder::new().model(body);
}

/// Explores a model.
pub(crate) fn check(builder: &Builder, body: &Body) -> Report {
    panics::install_hook();
    overflow::install();
    let start = Instant::now();
    let runtime = Runtime::new(builder.model, builder.max_threads, Arc::clone(body));
    runtime.strengthen(builder.strengthened.clone());
    if let Some(schedule) = &builder.replay {
        return crate::replay::replay(builder, &runtime, schedule, start);
    }
    let mut judge = search(builder, &runtime, start);
    judge.report.left_out = runtime.loops_left_out.take().into_iter().map(LoopLeftOut::from).collect();
    judge.report.exhaustive &= judge.report.left_out.is_empty();
    let found = std::mem::take(&mut judge.found);
    let mut report = judge.report;
    if report.failure.is_none() && !found.is_empty() {
        if builder.fail_on != FailOn::Nothing {
            let took = start.elapsed();
            overflow::note(Some(crash_note(&found)));
            let judged = impact::judge(&runtime, builder, &borderlines(&found), took);
            overflow::note(None);
            if builder.fail_on == FailOn::Unsafe || matches!(judged, Impact::Harmful(_)) {
                report.suggestions = strengthen::suggest(builder, &runtime, &found, Some(&judged), took);
            }
            report.impact = Some(judged);
        }
        report.violations = found.into_iter().map(|found| found.violation).collect();
    }
    report.elapsed = start.elapsed();
    report.verdict = verdict(&report);
    report.fails_on_unsafe = builder.fail_on == FailOn::Unsafe;
    report.fails_on_harmful = builder.fail_on != FailOn::Nothing;
    report
}

/// The borderline executions of violations.
pub(crate) fn borderlines(found: &[Found]) -> Vec<Borderline> {
    found.iter().map(|found| found.borderline.clone()).collect()
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
/// The same for time: this, or half of what there is.
const PATIENCE_IN_TIME: Duration = Duration::from_secs(10);

/// Explores as the builder says. A bound on preemptions is for models that cannot be explored completely: those that can
/// are.
pub(crate) fn search<'b>(builder: &'b Builder, runtime: &Runtime, start: Instant) -> Judge<'b> {
    loop {
        let judge = match (builder.seed, builder.max_preemptions) {
            (Some(seed), _) => schedules::random(builder, runtime, seed, start),
            (None, None) => {
                let judge = if jobs::are_possible(builder) {
                    jobs::search(builder, runtime, start)
                } else {
                    explore(builder, runtime, start, None)
                };
                step_by_step_if_need_be(builder, runtime, start, judge)
            }
            (None, Some(most)) => {
                let half = builder.max_duration.map(|most| most / 2);
                let time = half.into_iter().chain([PATIENCE_IN_TIME]).min();
                let judge = explore_for(builder, runtime, start, Some(PATIENCE), time);
                let judge = step_by_step_if_need_be(builder, runtime, start, judge);
                if judge.report.bound == Some(Bound::Executions)
                    && builder.max_executions.is_none_or(|executions| executions > judge.explored())
                {
                    let mut bounded = schedules::bounded(builder, runtime, most, start);
                    if bounded.found.is_empty() {
                        bounded.found = judge.found;
                    }
                    bounded
                } else {
                    judge
                }
            }
        };
        let observed = std::mem::take(&mut runtime.counts.borrow_mut().found);
        runtime.finish_run(!observed && judge.report.failure.is_none());
        if !observed {
            return judge;
        }
    }
}

/// Preemptions of the schedules that are explored one by one if nobody says how many.
const FEW_PREEMPTIONS: u32 = 2;

/// A model may depend on the order of things that no event orders (the reference count of a `std` `Arc`). Then what it does
/// is not determined by the graph, but it may be by the schedule: schedules are explored one by one. If it does not
/// even repeat itself under the same schedule, the first answer stands.
fn step_by_step_if_need_be<'b>(
    builder: &'b Builder,
    runtime: &Runtime,
    start: Instant,
    explored: Judge<'b>,
) -> Judge<'b> {
    let Some(Failure { kind: FailureKind::NotDeterministic, place, .. }) = &explored.report.failure else {
        return explored;
    };
    let place = place.as_ref().map(|place| format!(" (seen at {place})")).unwrap_or_default();
    runtime.finish_run(false);
    let most = builder.max_preemptions.unwrap_or(FEW_PREEMPTIONS);
    let mut judge = schedules::bounded(builder, runtime, most, start);
    if matches!(judge.report.failure, Some(Failure { kind: FailureKind::NotDeterministic, .. })) {
        return explored;
    }
    judge.report.notes.push(format!(
        "what this test does depends on the order of things that weakspot does not see{place}, a `std` reference count for \
         example. So it was run schedule by schedule, with up to {most} preemptions"
    ));
    judge
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
    explore_part(builder, runtime, &mut judge, None);
    judge
}

/// Explores a part of the model, or all of it.
pub(crate) fn explore_part(builder: &Builder, runtime: &Runtime, judge: &mut Judge<'_>, part: Option<Subtree>) {
    let mut system = Live { runtime };
    let explorer = Explorer::new(&mut system).with_longest(builder.max_events).with_exact_rounds(builder.max_spins);
    let mut explorer = match judge.kind {
        Some(kind) => explorer.watching(kind.watching()),
        None => explorer,
    };
    let ended = match part {
        None => explorer.run(judge),
        Some(part) => explorer.run_subtree(part, judge),
    };
    judge.report.events = explorer.counters().events;
    judge.report.runs = explorer.counters().runs + 1;
    judge.report.exhaustive = ended.is_continue();
    if let Some(divergence) = explorer.divergence() {
        judge.report.failure = Some(not_deterministic(runtime, divergence));
        judge.report.timeline = Some(Timeline::of_run(runtime));
    }
}

fn not_deterministic(runtime: &Runtime, divergence: Divergence) -> Failure {
    let state = runtime.state();
    let lane = &state.lanes[divergence.thread.index()];
    let message = format!(
        "the model is not deterministic: thread {} was run again with the same results and did something else. Its event \
         {} was {}; now it is about to {}. Time, random numbers, addresses and the order of hash maps do that.",
        divergence.thread.0,
        divergence.event,
        kind_name(divergence.was),
        lane.what
    );
    Failure::new(FailureKind::NotDeterministic, message)
        .of_thread(u32::from(divergence.thread.0))
        .at(Some(lane.place.into()))
}

fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Load => "a load",
        EventKind::Store | EventKind::InterlockedStore => "a store",
        EventKind::RmwRead { .. } | EventKind::RmwWrite { .. } => "a read-modify-write",
        EventKind::LockRead | EventKind::LockWrite => "the acquisition of a mutex",
        EventKind::Unlock | EventKind::WaitUnlock => "the release of a mutex",
        EventKind::WaitRead | EventKind::WaitWrite | EventKind::WakeRead => "a wait",
        EventKind::NotifyRead | EventKind::NotifyWrite => "a notification",
        EventKind::Signal => "the start or the end of a thread",
        EventKind::Await => "waiting for a thread",
        EventKind::Fence(_) => "a fence",
        EventKind::Choose => "a choice",
        EventKind::LeaveCritical | EventKind::Misuse => "something else",
    }
}

/// A violation with what is needed to look for its impact.
pub(crate) struct Found {
    /// The addresses of its two places.
    key: (usize, usize),
    pub(crate) violation: Violation,
    /// Changes one of which has to be made.
    pub(crate) clause: Vec<Candidate>,
    borderline: Borderline,
}

/// What was found in a part of the search.
pub(crate) struct Part {
    pub(crate) report: Report,
    pub(crate) found: Vec<Found>,
}

/// An execution with a violation.
pub(crate) struct Evidence {
    pub(crate) borderline: Borderline,
    /// What it delays, if it could be found out.
    pub(crate) delays: Option<Delays>,
}

/// Judges every graph.
pub(crate) struct Judge<'b> {
    builder: &'b Builder,
    watcher: Option<Watcher>,
    kind: Option<MonitorKind>,
    lineariser: Lineariser,
    start: Instant,
    graphs: u64,
    /// Executions after which it gives up.
    most: Option<u64>,
    /// Time after which it gives up, as if there had been too many executions.
    patience: Option<Duration>,
    /// Where the other workers are, if there are any.
    pub(crate) colleague: Option<Colleague<'b>>,
    pub(crate) report: Report,
    pub(crate) found: Vec<Found>,
    /// The violation of two places, by their addresses.
    pairs: FxHashMap<(usize, usize), usize>,
}

/// Pairs of places whose violations are kept.
const MOST_VIOLATIONS: usize = 32;
/// A thread that reads the same value at the same place so often in a row goes round a loop.
const ENDLESS: usize = 2_000;

impl<'b> Judge<'b> {
    pub(crate) fn new(builder: &'b Builder, start: Instant) -> Self {
        let kind = match builder.model {
            _ if !builder.monitor => None,
            MemoryModel::Sc => None,
            MemoryModel::Tso => Some(MonitorKind::Sober),
            MemoryModel::Pso => Some(MonitorKind::Operational(MemoryModel::Pso)),
        };
        Self {
            builder,
            watcher: kind.map(|kind| Watcher::new(kind, 1, 0)),
            kind,
            lineariser: Lineariser::default(),
            start,
            graphs: 0,
            most: builder.max_executions,
            patience: None,
            colleague: None,
            report: Report::new(builder.model),
            found: Vec::new(),
            pairs: FxHashMap::default(),
        }
    }

    /// Executions so far, those that ended blocked included.
    fn explored(&self) -> u64 {
        self.report.executions + self.report.blocked
    }

    pub(crate) fn limits(&mut self) -> ControlFlow<()> {
        self.graphs += 1;
        if self.colleague.as_ref().is_some_and(|colleague| colleague.is_needless(self.graphs)) {
            return ControlFlow::Break(());
        }
        if self.most.is_some_and(|most| self.explored() >= most) {
            self.report.bound = Some(Bound::Executions);
        } else if self.graphs.is_multiple_of(64) && (self.patience.is_some() || self.builder.max_duration.is_some()) {
            let elapsed = self.start.elapsed();
            if self.patience.is_some_and(|most| elapsed >= most) {
                self.report.bound = Some(Bound::Executions);
            } else if self.builder.max_duration.is_some_and(|most| elapsed >= most) {
                self.report.bound = Some(Bound::Time);
            }
        }
        if self.report.bound.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The execution fails: keeps how it came to that.
    fn note_failure(&mut self, graph: &Graph, runtime: &Runtime, failure: Failure) -> ControlFlow<()> {
        let last = failure.thread.map_or(NONE, |thread| graph.thread(thread as usize).last);
        self.lineariser.linearise_some(graph, |id| last == NONE || graph.happens_before(id, last));
        let moves: Vec<Move> = steps_of(graph, self.lineariser.order())
            .into_iter()
            .map(|(thread, choice)| Move::Step { thread, choice })
            .collect();
        self.stop(runtime, failure, format!("sc:{}", impact::schedule_text(&moves)))
    }

    /// The run that was made last fails.
    pub(crate) fn stop(&mut self, runtime: &Runtime, failure: Failure, schedule: String) -> ControlFlow<()> {
        self.report.schedule = Some(schedule);
        self.report.timeline = Some(Timeline::of_run(runtime));
        self.report.failure = Some(failure);
        ControlFlow::Break(())
    }

    fn watch(&mut self, graph: &Graph, runtime: &Runtime, ending: Ending) {
        let Some(watcher) = &mut self.watcher else { return };
        if !watcher.watch(graph, ending, &mut self.lineariser) {
            return;
        }
        self.report.borderline += 1;
        let found: Vec<Finding> = watcher.found().to_vec();
        for Finding { store, access } in found {
            let Some((one, other)) = happened(graph, store, runtime).zip(happened(graph, access, runtime)) else {
                continue;
            };
            let mut lineariser = std::mem::take(&mut self.lineariser);
            let model = self.builder.model;
            self.note_violation(&one, &other, || evidence(&mut lineariser, graph, runtime, model, (store, access)));
            self.lineariser = lineariser;
        }
    }

    /// Takes over what was found in the next part of the search.
    pub(crate) fn add(&mut self, part: Part) {
        let Part { report, found } = part;
        self.report.executions += report.executions;
        self.report.blocked += report.blocked;
        self.report.borderline += report.borderline;
        self.report.events += report.events;
        self.report.covered += report.covered;
        self.report.runs += report.runs;
        self.report.exhaustive &= report.exhaustive;
        self.report.bound = self.report.bound.or(report.bound);
        if report.failure.is_some() {
            self.report.failure = report.failure;
            self.report.timeline = report.timeline;
            self.report.schedule = report.schedule;
        }
        for found in found {
            match self.pairs.get(&found.key) {
                Some(&known) => self.found[known].violation.executions += found.violation.executions,
                None if self.found.len() == MOST_VIOLATIONS => {}
                None => {
                    self.pairs.insert(found.key, self.found.len());
                    self.found.push(found);
                }
            }
        }
    }

    /// A violation of two accesses was seen in one more execution.
    pub(crate) fn note_violation(&mut self, one: &Happened, other: &Happened, evidence: impl FnOnce() -> Evidence) {
        let address = |place: Place| std::ptr::from_ref(place).addr();
        let key = (address(one.place), address(other.place));
        let number = match self.pairs.get(&key) {
            Some(&number) => number,
            None if self.found.len() == MOST_VIOLATIONS => return,
            None => {
                let Evidence { borderline, delays } = evidence();
                let (clause, pair) = delays.map_or_else(Default::default, |delays| (delays.clause, delays.pair));
                let violation = Violation::of(one, other, pair);
                self.found.push(Found { key, violation, clause, borderline });
                self.pairs.insert(key, self.found.len() - 1);
                self.found.len() - 1
            }
        };
        self.found[number].violation.executions += 1;
    }

    /// A thread that does nothing but read the same again and again.
    fn endless_loop(graph: &Graph, runtime: &Runtime) -> Option<Failure> {
        if (graph.len() as usize) < ENDLESS {
            return None;
        }
        let state = runtime.state();
        // What each thread has read last, where, and how often in a row.
        let mut rows: Vec<Option<(usize, i64, usize)>> = vec![None; state.lanes.len()];
        for happened in &state.log {
            let place = std::ptr::from_ref(happened.place).addr();
            let row = &mut rows[happened.thread as usize];
            let same = match *row {
                Some((at, value, count)) if (at, value) == (place, happened.result) => count + 1,
                _ => 1,
            };
            *row = Some((place, happened.result, same));
            if same >= ENDLESS {
                let why = format!("it has read {} {same} times in a row", happened.result);
                return Some(too_long(happened.thread, happened.place, &why));
            }
        }
        None
    }
}

pub(crate) fn too_long(thread: u32, place: Place, why: &str) -> Failure {
    let message = format!(
        "thread {thread} goes round a loop that does not end here: {why}. If it waits for another thread, call \
         `weakspot::hint::spin_loop()` (or `thread::yield_now()`) in each round: then one failing round is explored \
         instead of all of them"
    );
    Failure::new(FailureKind::TooLong, message).of_thread(thread).at(Some(place.into()))
}

/// The loop of an execution that has grown too long: the place that comes up most among the last events.
fn longest_loop(runtime: &Runtime, events: u32) -> Failure {
    let state = runtime.state();
    let mut counts: FxHashMap<(u32, usize), (usize, Place)> = FxHashMap::default();
    for happened in state.log.iter().rev().take(1_000) {
        let key = (happened.thread, std::ptr::from_ref(happened.place).addr());
        counts.entry(key).or_insert((0, happened.place)).0 += 1;
    }
    let most = counts.iter().max_by_key(|((thread, place), (count, _))| (*count, *thread, *place));
    match most {
        Some((&(thread, _), &(_, place))) => {
            too_long(thread, place, &format!("the execution has more than {events} events (see `max_events`)"))
        }
        None => Failure::new(FailureKind::TooLong, "an execution has too many events".to_owned()),
    }
}

/// The execution up to and including the access of a finding.
fn evidence(
    lineariser: &mut Lineariser,
    graph: &Graph,
    runtime: &Runtime,
    model: MemoryModel,
    (store, access): (u32, u32),
) -> Evidence {
    lineariser.linearise_some(graph, |id| graph.happens_before(id, access));
    let order = lineariser.order();
    let before = order.iter().take_while(|&&id| id != store).filter(|&&id| is_step(graph.event(id))).count();
    let borderline = Borderline { steps: steps_of(graph, order), store: before };
    let delays = execution_of(graph, order, runtime, store)
        .and_then(|(execution, write)| delays::of_finding(&execution, write, model));
    Evidence { borderline, delays }
}

/// What happened in a linearisation, and where in it the store is.
fn execution_of(graph: &Graph, order: &[u32], runtime: &Runtime, store: u32) -> Option<(Vec<Happened>, usize)> {
    let state = runtime.state();
    let mut logs: Vec<_> = (0..state.lanes.len())
        .map(|thread| state.log.iter().filter(move |happened| happened.thread as usize == thread))
        .collect();
    let mut write = None;
    let mut execution = Vec::new();
    for &id in order {
        let event = graph.event(id);
        if is_step(event) && !matches!(event.kind, EventKind::WaitWrite) {
            if id == store {
                write = Some(execution.len());
            }
            execution.push(*logs[event.thread as usize].next()?);
        }
    }
    Some((execution, write?))
}

/// The steps of a linearisation.
fn steps_of(graph: &Graph, order: &[u32]) -> Vec<ScStep> {
    let step = |action: &Action| match *action {
        Action::Step { thread, choice } => Some((thread.index(), choice)),
        _ => None,
    };
    actions_of(graph, order).iter().filter_map(step).collect()
}

/// What the log of the run says of an event.
fn happened(graph: &Graph, id: u32, runtime: &Runtime) -> Option<Happened> {
    let thread = graph.event(id).thread;
    let resumes = |id: u32| {
        let event = graph.event(id);
        is_step(event) && !matches!(event.kind, EventKind::WaitWrite)
    };
    let mut before = 0;
    let mut earlier = graph.event(id).po_prev;
    while earlier != NONE {
        before += usize::from(resumes(earlier));
        earlier = graph.event(earlier).po_prev;
    }
    runtime.state().log.iter().filter(|happened| happened.thread == thread).nth(before).copied()
}

impl Visitor<Live<'_>> for Judge<'_> {
    fn failed(&mut self, graph: &Graph, system: &mut Live<'_>, thread: ThreadId) -> ControlFlow<()> {
        let runtime = system.runtime;
        if runtime.counts.borrow().found || runtime.in_the_way.get() {
            return ControlFlow::Break(());
        }
        let failure = runtime.failure.take();
        let failure = failure.unwrap_or_else(|| panics::take_failure(runtime, u32::from(thread.0), None));
        self.note_failure(graph, runtime, failure)
    }

    fn ended(&mut self, graph: &Graph, system: &mut Live<'_>, ending: Ending) -> ControlFlow<()> {
        let runtime = system.runtime;
        let failure = match ending {
            Ending::Complete => {
                self.report.executions += 1;
                Self::endless_loop(graph, runtime)
            }
            Ending::Blocked | Ending::Failed | Ending::Bounded | Ending::Spinning => {
                self.report.blocked += 1;
                None
            }
            Ending::Deadlock if runtime.waits_with_timeout() => {
                self.report.blocked += 1;
                None
            }
            Ending::Wrong => runtime.failure.take(),
            Ending::Deadlock => {
                let message = format!("deadlock: nobody can go on{}", runtime.describe_waiting());
                Some(Failure::new(FailureKind::Deadlock, message))
            }
            Ending::Livelock => {
                let message = format!("livelock: nobody can end the waiting{}", runtime.describe_waiting());
                Some(Failure::new(FailureKind::Livelock, message))
            }
            Ending::TooLong => Some(longest_loop(runtime, self.builder.max_events)),
        };
        if let Some(failure) = failure {
            return self.note_failure(graph, runtime, failure);
        }
        self.watch(graph, runtime, ending);
        self.limits()
    }

    #[inline]
    fn covered(&mut self, share: f64) {
        self.report.covered += share;
    }

    fn wants_work(&self) -> bool {
        self.colleague.as_ref().is_some_and(Colleague::wants_work)
    }

    fn take(&mut self, subtree: Subtree) {
        if let Some(colleague) = &mut self.colleague {
            colleague.hand_out(subtree);
        }
    }
}
