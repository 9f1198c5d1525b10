//! What comes of the executions of a model: failures, violations with their evidence, figures, limits.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use weakspot_explore::buffered::Move;
use weakspot_explore::exhaustive::{MonitorKind, Watcher};
use weakspot_explore::graph::{EventKind, Graph, NONE};
use weakspot_explore::linearise::{Lineariser, is_step};
use weakspot_explore::monitor::Finding;
use weakspot_explore::outcome::actions_of;
use weakspot_explore::trust::{Ending, Subtree, Visitor};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::machine::Action;

use crate::builder::Builder;
use crate::endless::{Rounds, busiest_place, longest_loop, too_many_events};
use crate::failure::{Failure, FailureKind};
use crate::impact::{self, Borderline, ScStep};
use crate::jobs::Colleague;
use crate::reclaim::{self, Tried};
use crate::repetition::{self, Execution};
use crate::replay::GOES_ON;
use crate::report::{Bound, Report, Violation};
use crate::rt::channels::Closing;
use crate::rt::lane::Happened;
use crate::rt::runtime::{LoopsLeftOut, Runtime};
use crate::rt::spare::SpareLineariser;
use crate::rt::system::Live;
use crate::rt::{Place, panics};
use crate::strengthen::Candidate;
use crate::strengthen::delays::{self, Delays};
use crate::timeline::Timeline;

/// A violation with what is needed to look for its impact.
pub(crate) struct Found {
    /// The addresses of its two places.
    key: (usize, usize),
    pub(crate) violation: Violation,
    /// Changes one of which has to be made.
    pub(crate) clause: Vec<Candidate>,
    borderline: Borderline,
}

/// The borderline executions of violations.
pub(crate) fn borderlines(found: &[Found]) -> Vec<Borderline> {
    found.iter().map(|found| found.borderline.clone()).collect()
}

/// What was found in a part of the search.
pub(crate) struct Part {
    pub(crate) report: Report,
    pub(crate) found: Vec<Found>,
    told: Told,
    pub(crate) left_out: LoopsLeftOut,
}

/// How often violations were told of, by the addresses of their two places. There is one that is not kept, too: it may be
/// kept in another part of the search.
type Told = FxHashMap<(usize, usize), u64>;

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
    pub(crate) kind: Option<MonitorKind>,
    lineariser: SpareLineariser,
    clock: Clock,
    graphs: u64,
    /// Explorations that came to nothing.
    nowhere: u64,
    /// Executions after which it gives up.
    pub(crate) most: Option<u64>,
    /// Time after which it gives up, as if there had been too many executions.
    pub(crate) patience: Option<Duration>,
    /// When it began to explore everything, if it gives up earlier where that is far from possible.
    pub(crate) hopeful_since: Option<Duration>,
    /// When it stops for the sake of other workers: see [`Self::stop_after`].
    stops_at: Option<Duration>,
    /// That time has come: it has stopped to see who is there.
    pub(crate) is_long: bool,
    /// Where the other workers are, if there are any.
    pub(crate) colleague: Option<Colleague<'b>>,
    pub(crate) report: Report,
    pub(crate) found: Vec<Found>,
    told: Told,
    /// What happened in the first executions, if they may have to be compared with others.
    pub(crate) first: Vec<Execution>,
    /// Loops that may wait without saying so.
    rounds: Rounds,
    /// Uses of memory that were tried out after it was freed.
    tried: Tried,
    steps: reclaim::Steps,
}

/// A clock that is not looked at after every execution if they are short.
struct Clock {
    start: Instant,
    /// What it said last.
    last: Duration,
    /// Executions until it is looked at again.
    left: u32,
    /// Executions between two looks.
    stride: u32,
}

impl Clock {
    /// Executions between two looks, if they are shorter than a look is worth.
    const LONGEST_STRIDE: u32 = 64;
    /// How much time may well pass between two looks.
    const UNSEEN: Duration = Duration::from_millis(1);

    fn new(start: Instant) -> Self {
        Self { start, last: start.elapsed(), left: 1, stride: 1 }
    }

    /// After an execution: how much time has passed since the start, if it is time to look.
    #[inline]
    fn look(&mut self) -> Option<Duration> {
        self.left -= 1;
        (self.left == 0).then(|| self.read())
    }

    fn read(&mut self) -> Duration {
        let elapsed = self.start.elapsed();
        let is_short = elapsed.saturating_sub(self.last) < Self::UNSEEN;
        self.stride = if is_short { (self.stride * 2).min(Self::LONGEST_STRIDE) } else { (self.stride / 2).max(1) };
        (self.last, self.left) = (elapsed, self.stride);
        elapsed
    }
}

/// After which part of the time it gives up if it would need how many times all of it.
const IN_VAIN: [(f64, f64); 3] = [(1.0 / 30.0, 1_000.0), (0.1, 100.0), (0.5, 10.0)];

/// So many times as many explorations may come to nothing, where executions are limited; and some more where there are few.
const FRUITLESS: u64 = 100;

/// Pairs of places whose violations are kept.
const MOST_VIOLATIONS: usize = 32;

impl<'b> Judge<'b> {
    pub(crate) fn new(builder: &'b Builder, start: Instant) -> Self {
        let model = builder.model;
        let kind = match model {
            _ if !builder.monitor => None,
            MemoryModel::Sc => None,
            MemoryModel::Tso => Some(MonitorKind::Sober),
            MemoryModel::Pso => Some(MonitorKind::Operational(MemoryModel::Pso)),
        };
        Self {
            builder,
            watcher: kind.map(|kind| Watcher::new(kind, 1, 0)),
            kind,
            lineariser: SpareLineariser::take(),
            clock: Clock::new(start),
            graphs: 0,
            nowhere: 0,
            most: builder.max_executions,
            patience: None,
            hopeful_since: None,
            stops_at: None,
            is_long: false,
            colleague: None,
            report: Report { watched: if builder.monitor { model } else { MemoryModel::Sc }, ..Report::new(model) },
            found: Vec::new(),
            told: Told::default(),
            first: Vec::new(),
            rounds: Rounds::new(builder.max_retries),
            tried: Tried::default(),
            steps: reclaim::Steps::default(),
        }
    }

    /// Makes it stop at the first graph after this time, for the sake of other workers. Small models are done before the clock
    /// is looked at.
    pub(crate) fn stop_after(&mut self, time: Duration) {
        if self.builder.max_duration.is_none() && self.graphs == 0 {
            (self.clock.left, self.clock.stride) = (Clock::LONGEST_STRIDE, Clock::LONGEST_STRIDE);
        }
        self.stops_at = Some(self.clock.last + time);
    }

    /// Are there as many executions as there may be? There is one at least, unless very many explorations come to nothing: these
    /// end a search as well.
    fn is_enough(&self, most: u64) -> bool {
        self.explored() >= most.max(1) || self.nowhere / FRUITLESS >= most.max(FRUITLESS)
    }

    /// Executions so far, those that ended blocked included.
    pub(crate) fn explored(&self) -> u64 {
        self.report.executions + self.report.blocked
    }

    pub(crate) fn limits(&mut self) -> ControlFlow<()> {
        self.graphs += 1;
        if self.colleague.as_ref().is_some_and(|colleague| colleague.is_needless(self.graphs)) {
            return ControlFlow::Break(());
        }
        if self.most.is_some_and(|most| self.is_enough(most)) {
            self.report.bound = Some(Bound::Executions);
        } else if (self.patience.is_some() || self.builder.max_duration.is_some() || self.stops_at.is_some())
            && let Some(elapsed) = self.clock.look()
        {
            if self.patience.is_some_and(|most| elapsed >= most || self.is_in_vain(elapsed, most)) {
                self.report.bound = Some(Bound::Executions);
            } else if self.builder.max_duration.is_some_and(|most| elapsed >= most) {
                self.report.bound = Some(Bound::Time);
            } else if self.stops_at.is_some_and(|most| elapsed >= most) {
                (self.stops_at, self.is_long) = (None, true);
                return ControlFlow::Break(());
            }
        }
        if self.report.bound.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Would it take very much longer than there is patience to explore everything? By the part that is done: where the
    /// search goes on in several ways, these are taken to be equally large. That may be wrong, but hardly by so much, and
    /// the less the more there is done.
    fn is_in_vain(&self, elapsed: Duration, patience: Duration) -> bool {
        let Some(since) = self.hopeful_since else { return false };
        let used = elapsed.saturating_sub(since).as_secs_f64() / patience.as_secs_f64();
        let needed = used / self.report.covered;
        IN_VAIN.iter().any(|&(part, too_much)| used >= part && needed > too_much)
    }

    /// The execution fails: keeps how it came to that.
    fn note_failure(&mut self, graph: &Graph, runtime: &Runtime, failure: Failure) -> ControlFlow<()> {
        let last_of = |thread: u32| graph.thread(thread as usize).last;
        let last = failure.thread.map_or(NONE, last_of);
        match &failure.kind {
            // Both sides of a race have to come about.
            FailureKind::Race { first, .. } if last != NONE && last_of(first.thread) != NONE => {
                self.lineariser.linearise_both(graph, last_of(first.thread), last);
            }
            // First the memory has to be freed.
            FailureKind::UsedAfterFree(freeing) if last != NONE && freeing.events > 0 => {
                let freed = reclaim::step_of(graph, freeing.thread, freeing.events - 1).unwrap_or(last);
                self.lineariser.linearise_both(graph, freed, last);
            }
            _ => self.lineariser.linearise_some(graph, |id| last == NONE || graph.happens_before(id, last)),
        }
        let moves: Vec<Move> = steps_of(graph, self.lineariser.order())
            .into_iter()
            .map(|(thread, choice)| Move::Step { thread, choice })
            .collect();
        let mut schedule = impact::sc_schedule(self.builder.model, &moves);
        if matches!(failure.kind, FailureKind::Livelock) {
            schedule.push(GOES_ON);
        }
        // Of the orders that the run could have had, that of the schedule.
        let order = self.lineariser.order();
        let happened = happened_in(graph, order, runtime).map(|(_, happened)| happened);
        let timeline = Timeline::of_failure(happened, runtime, &failure);
        self.stop(failure, schedule, timeline)
    }

    /// Looks for an execution in which what the run that is over has freed is used afterwards.
    pub(crate) fn look_for_late_uses(&mut self, runtime: &Runtime, source: impl reclaim::Source) -> ControlFlow<()> {
        match reclaim::look(self.builder, runtime, MemoryModel::Sc, &mut self.tried, source)? {
            Some(reclaim::Found { failure, timeline, schedule }) => self.stop(failure, schedule, timeline),
            None => ControlFlow::Continue(()),
        }
    }

    /// An execution fails.
    pub(crate) fn stop(&mut self, failure: Failure, schedule: String, timeline: Timeline) -> ControlFlow<()> {
        self.report.schedule = Some(schedule);
        self.report.timeline = Some(timeline);
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
            let mut lineariser = std::mem::take(&mut *self.lineariser);
            let model = self.builder.model;
            self.note_violation(&one, &other, || evidence(&mut lineariser, graph, runtime, model, (store, access)));
            *self.lineariser = lineariser;
        }
    }

    /// Takes over what was found in the next part of the search.
    pub(crate) fn add(&mut self, part: Part) {
        let Part { report, found, told, .. } = part;
        self.report.executions += report.executions;
        self.report.blocked += report.blocked;
        self.report.borderline += report.borderline;
        self.report.events += report.events;
        self.report.covered += report.covered;
        self.report.runs += report.runs;
        self.report.exhaustive &= report.exhaustive;
        self.report.bound = self.report.bound.or(report.bound);
        if report.failure.is_some() {
            self.report.take_over_failure(report);
        }
        for found in found {
            if !self.told.contains_key(&found.key) && self.found.len() < MOST_VIOLATIONS {
                self.found.push(found);
            }
        }
        for (key, times) in told {
            *self.told.entry(key).or_default() += times;
        }
    }

    /// What was found, as a part of a search that others explore as well.
    pub(crate) fn into_part(self, left_out: LoopsLeftOut) -> Part {
        Part { report: self.report, found: self.found, told: self.told, left_out }
    }

    /// Takes over the violations of another search.
    pub(crate) fn take_over_found(&mut self, other: Self) {
        (self.found, self.told) = (other.found, other.told);
    }

    /// The violations, each with how often it was told of.
    pub(crate) fn take_found(&mut self) -> Vec<Found> {
        let mut found = std::mem::take(&mut self.found);
        for Found { key, violation, .. } in &mut found {
            violation.executions = self.told.get(key).copied().unwrap_or_default();
        }
        found
    }

    /// A violation of two accesses was seen in one more execution.
    pub(crate) fn note_violation(&mut self, one: &Happened, other: &Happened, evidence: impl FnOnce() -> Evidence) {
        let address = |place: Place| std::ptr::from_ref(place).addr();
        let key = (address(one.place), address(other.place));
        let times = self.told.entry(key).or_default();
        *times += 1;
        if *times == 1 && self.found.len() < MOST_VIOLATIONS {
            let Evidence { borderline, delays } = evidence();
            let (clause, pair) = delays.map_or_else(Default::default, |delays| (delays.clause, delays.pair));
            let violation = Violation::of(one, other, pair);
            self.found.push(Found { key, violation, clause, borderline });
        }
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
    let delays = execution_of(graph, order, runtime, (store, access))
        .and_then(|(execution, write)| delays::of_finding(&execution, write, model));
    Evidence { borderline, delays }
}

/// What happened in a linearisation that ends with the access, and where in it the store is.
fn execution_of(
    graph: &Graph,
    order: &[u32],
    runtime: &Runtime,
    (store, access): (u32, u32),
) -> Option<(Vec<Happened>, usize)> {
    let mut events: Vec<(u32, Happened)> = happened_in(graph, order, runtime).collect();
    if !is_step(graph.event(access)) {
        // The look of an atomic that acts.
        events.push((access, Happened { written: None, ..happened(graph, access, runtime)? }));
    }
    let write = events.iter().position(|&(id, _)| id == store)?;
    Some((events.into_iter().map(|(_, happened)| happened).collect(), write))
}

/// What the log of the run says of the events of a linearisation that are steps.
fn happened_in(graph: &Graph, order: &[u32], runtime: &Runtime) -> impl Iterator<Item = (u32, Happened)> {
    let log = runtime.state().log.clone();
    let mut next = vec![0; runtime.state().lanes.len()];
    let resumes = |id: &&u32| is_step(graph.event(**id)) && !matches!(graph.event(**id).kind, EventKind::WaitWrite);
    order.iter().filter(resumes).filter_map(move |&id| {
        let thread = graph.event(id).thread;
        let from = &mut next[thread as usize];
        let at = *from + log[*from..].iter().position(|happened| happened.thread == thread)?;
        *from = at + 1;
        Some((id, log[at]))
    })
}

/// The steps of a linearisation.
pub(crate) fn steps_of(graph: &Graph, order: &[u32]) -> Vec<ScStep> {
    actions_of(graph, order).iter().filter_map(step_of).collect()
}

fn step_of(action: &Action) -> Option<ScStep> {
    match *action {
        Action::Step { thread, choice } => Some((thread.index(), choice)),
        _ => None,
    }
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

    fn failed_after_waiting(&mut self, system: &mut Live<'_>, thread: ThreadId, steps: &[Action]) -> ControlFlow<()> {
        let runtime = system.runtime;
        if runtime.counts.borrow().found || runtime.in_the_way.get() {
            return ControlFlow::Break(());
        }
        let failure = runtime.failure.take();
        let failure = failure.unwrap_or_else(|| panics::take_failure(runtime, u32::from(thread.0), None));
        let moves: Vec<Move> =
            steps.iter().filter_map(step_of).map(|(thread, choice)| Move::Step { thread, choice }).collect();
        let schedule = impact::sc_schedule(self.builder.model, &moves);
        let timeline = Timeline::of_failed_run(runtime, &failure);
        self.stop(failure, schedule, timeline)
    }

    fn ended(&mut self, graph: &Graph, system: &mut Live<'_>, ending: Ending) -> ControlFlow<()> {
        let runtime = system.runtime;
        if self.first.len() < repetition::MOST_EXECUTIONS {
            self.first.push(Execution::of_run(runtime));
        }
        if ending != Ending::Complete && runtime.is_closing_awaited() {
            runtime.see_closing(Closing::Awaited);
            return ControlFlow::Break(());
        }
        let failure = match ending {
            Ending::Complete => {
                self.report.executions += 1;
                self.rounds.look_at(graph.len(), runtime)
            }
            Ending::Blocked | Ending::Failed | Ending::Bounded | Ending::Spinning => {
                self.report.blocked += 1;
                None
            }
            // The execution in which its time is over is another one, and so is that in which the reader comes first.
            Ending::Deadlock | Ending::Livelock if runtime.waits_with_timeout() || runtime.is_kept_out_in_vain() => {
                self.report.blocked += 1;
                None
            }
            Ending::Wrong => runtime.failure.take(),
            Ending::Deadlock => Some(runtime.deadlock()),
            Ending::Livelock => {
                let livelock = runtime.livelock_unless_it_ends(|cell| graph.final_value(cell));
                self.report.blocked += u64::from(livelock.is_none());
                livelock
            }
            Ending::TooLong if graph.len() <= self.builder.max_events => {
                self.report.bound = Some(Bound::Memory);
                self.report.notes.push(busiest_place(runtime));
                return ControlFlow::Break(());
            }
            Ending::TooLong => Some(longest_loop(runtime, &too_many_events(self.builder.max_events))),
        };
        if let Some(failure) = failure {
            return self.note_failure(graph, runtime, failure);
        }
        if ending != Ending::Blocked || !graph.is_premature() {
            self.watch(graph, runtime, ending);
        }
        if ending == Ending::Complete && runtime.has_suspects() {
            let mut lineariser = std::mem::take(&mut *self.lineariser);
            let mut steps = std::mem::take(&mut self.steps);
            let trace = reclaim::Trace::new(graph, &mut lineariser, runtime, &mut steps);
            let flow = self.look_for_late_uses(runtime, trace);
            (*self.lineariser, self.steps) = (lineariser, steps);
            flow?;
        }
        self.limits()
    }

    fn led_nowhere(&mut self) -> ControlFlow<()> {
        self.nowhere += 1;
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
