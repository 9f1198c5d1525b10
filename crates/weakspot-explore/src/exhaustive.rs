//! The exhaustive mode: every trace once, watched by a monitor, judged by the specification.

use std::ops::ControlFlow;
use std::time::Duration;

use rustc_hash::FxHashSet;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::Program;
use weakspot_model::machine::Action;
use weakspot_model::task::{Budget, Progress};

use crate::critical::Critical;
use crate::graph::{Graph, NONE, PastOrder, Watching};
use crate::interpreter::Interpreter;
use crate::linearise::{Lineariser, is_step, observed};
use crate::monitor::operational::Operational;
use crate::monitor::sober::Sober;
use crate::monitor::{Event, Finding, Monitor};
use crate::outcome::{Access, Outcome, Violation, action_of, actions_of, first_problem, shorter};
use crate::parallel::{self, Worker};
use crate::reorder::{may_reorder, possible_pairs};
use crate::system::{System, Token};
use crate::trust::{Ending, Explorer, LONGEST, Subtree, Visitor, Workspace};

/// Which monitor watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorKind {
    /// SOBER for TSO, corrected.
    Sober,
    /// SOBER for TSO as published: misses some violations.
    SoberPublished,
    /// The operational monitor of a model (TSO or PSO).
    Operational(MemoryModel),
}

impl MonitorKind {
    /// The model it watches for.
    pub fn model(self) -> MemoryModel {
        match self {
            Self::Sober | Self::SoberPublished => MemoryModel::Tso,
            Self::Operational(model) => model,
        }
    }

    /// How many pairs it can ever find in a program.
    pub(crate) fn possible_pairs(self, program: &Program) -> usize {
        let operational = matches!(self, Self::Operational(_));
        possible_pairs(program, operational, !operational)
    }

    /// What the graph can answer in its place.
    pub fn watching(self) -> Watching {
        match self {
            Self::Sober => Watching::Sober,
            Self::SoberPublished => Watching::Nothing,
            Self::Operational(model) => Watching::Operational(model),
        }
    }
}

/// What is asked of a search.
#[derive(Debug, Clone)]
pub struct ExploreOptions {
    /// Which monitor watches, if any.
    pub monitor: Option<MonitorKind>,
    /// Go on after the first violation and the first error.
    pub all: bool,
    /// How often a thread may reach an instruction by a jump backwards.
    pub unroll: Option<u32>,
    /// A deadlock is not an error.
    pub allow_deadlock: bool,
    /// A thread that waits for a notification may wake up without one.
    pub spurious_wakeups: bool,
    /// Worker threads.
    pub jobs: usize,
    /// How long one of them works alone, in the thread it is called from, before the others are started.
    pub alone: Duration,
    /// Events one execution may have: where a program without bounds is given up.
    pub longest: u32,
}

impl Default for ExploreOptions {
    fn default() -> Self {
        Self {
            monitor: Some(MonitorKind::Sober),
            all: false,
            unroll: None,
            allow_deadlock: false,
            spurious_wakeups: false,
            jobs: 1,
            alone: parallel::LONG,
            longest: LONGEST,
        }
    }
}

/// Explores every trace of a program.
pub fn explore(program: &Program, options: &ExploreOptions, budget: &Budget, progress: &dyn Progress) -> Outcome {
    if let Some(refusal) = Outcome::refusal(program) {
        return refusal;
    }
    let monitor = options.monitor.filter(|kind| may_reorder(program, kind.model()));
    let options = &ExploreOptions { monitor, ..options.clone() };
    if options.jobs > 1 {
        return parallel::explore(program, options, budget, progress);
    }
    let mut system = Interpreter::new(program, options.unroll);
    let mut checker = Checker::new(&system, options, budget, progress, None);
    let mut explorer = explorer_for(&mut system, options);
    let ended = explorer.run(&mut checker);
    let events = explorer.counters().events;
    explorer.into_workspace().leave();
    let mut outcome = checker.finish();
    outcome.events = events;
    outcome.exhaustive = ended.is_continue() && outcome.limit.is_none();
    outcome
}

/// An explorer that keeps what the monitor needs.
pub(crate) fn explorer_for<'s, 'p>(
    system: &'s mut Interpreter<'p>,
    options: &ExploreOptions,
) -> Explorer<'s, Interpreter<'p>> {
    let mut explorer = Explorer::using(system, Workspace::spare()).with_longest(options.longest);
    if options.spurious_wakeups {
        explorer = explorer.with_spurious_wakeups();
    }
    match options.monitor {
        Some(kind) => explorer.watching(kind.watching()),
        None => explorer,
    }
}

/// The number of a question that no graph answers.
const UNANSWERED: u8 = u8::MAX;

/// Watches graphs: what a monitor finds in any execution of a graph.
#[derive(Debug)]
pub struct Watcher {
    kind: MonitorKind,
    /// The number of the question that a graph can answer in the monitor's place, or [`UNANSWERED`].
    question: u8,
    /// Made when a graph cannot answer.
    monitor: Option<AnyMonitor>,
    /// Threads and cells that the monitor has room for.
    room: (usize, usize),
    found: Vec<Finding>,
    /// Is anybody interested in more than whether there is a finding?
    all: bool,
}

impl Watcher {
    /// A watcher with room for some threads and cells; it makes more when it needs it.
    pub fn new(kind: MonitorKind, threads: usize, cells: usize) -> Self {
        Self {
            kind,
            question: match kind.watching() {
                Watching::Nothing => UNANSWERED,
                asked => asked.number(),
            },
            monitor: None,
            room: (threads, cells),
            found: Vec::new(),
            all: true,
        }
    }

    /// What was found last and not before: an execution begins as others did, and what the graph knows of that is not
    /// told again.
    pub fn found(&self) -> &[Finding] {
        &self.found
    }

    /// From now on it is enough to know whether a graph has a finding; none is told any more.
    pub fn look_for_one(&mut self) {
        self.all = false;
        self.found.clear();
    }

    /// Watches a graph that cannot be extended; true if a store could be pending in it. Quick, if the graph is watched
    /// for the same monitor.
    #[inline]
    pub fn watch(&mut self, graph: &Graph, ending: Ending, lineariser: &mut Lineariser) -> bool {
        // Where a thread was put off for good, only the monitor itself knows.
        let has_happened = !matches!(ending, Ending::Blocked | Ending::Livelock) || !graph.has_stuck_read();
        if has_happened && graph.answers(self.question) {
            if !self.all {
                return graph.is_borderline();
            }
            self.found.clear();
            return graph.tell(|finding| self.found.push(finding));
        }
        self.run_monitor(graph, lineariser);
        !self.found.is_empty()
    }

    /// Watches one interleaving: what is found in it.
    pub fn watch_events(&mut self, events: &[Event], threads: usize, cells: usize) -> &[Finding] {
        let (monitor, found) = self.with_room(threads, cells);
        monitor.watch_events(events.iter().copied(), found);
        &self.found
    }

    /// The monitor, with room for some threads and cells, and where its findings go.
    fn with_room(&mut self, threads: usize, cells: usize) -> (&mut AnyMonitor, &mut Vec<Finding>) {
        let Self { kind, monitor, room, found, .. } = self;
        if threads > room.0 || cells > room.1 {
            *room = (threads.max(room.0), cells.max(room.1));
            *monitor = None;
        }
        found.clear();
        (monitor.get_or_insert_with(|| AnyMonitor::new(*kind, room.0, room.1)), found)
    }

    fn run_monitor(&mut self, graph: &Graph, lineariser: &mut Lineariser) {
        let (monitor, found) = self.with_room(graph.width(), graph.cell_count());
        if monitor.depends_on_order() {
            for thread in 0..graph.width() {
                lineariser.linearise_lazily(graph, thread);
                monitor.watch(graph, lineariser.order(), found);
            }
        } else {
            lineariser.linearise(graph);
            monitor.watch(graph, lineariser.order(), found);
        }
    }
}

/// The monitor in use. An enum, so that a call for each event is not an indirect one.
#[derive(Debug)]
pub(crate) enum AnyMonitor {
    Sober(Sober),
    Operational(Operational),
}

impl AnyMonitor {
    pub(crate) fn new(kind: MonitorKind, threads: usize, cells: usize) -> Self {
        match kind {
            MonitorKind::Sober => Self::Sober(Sober::corrected(threads, cells)),
            MonitorKind::SoberPublished => Self::Sober(Sober::published(threads, cells)),
            MonitorKind::Operational(model) => Self::Operational(Operational::new(model, threads, cells)),
        }
    }

    /// Becomes a copy of another one of the same kind and size.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::Sober(monitor), Self::Sober(other)) => monitor.copy_from(other),
            (Self::Operational(monitor), Self::Operational(other)) => monitor.copy_from(other),
            _ => unreachable!("invariant: a monitor stays what it is"),
        }
    }

    /// Watches one execution; what it finds goes to `found`.
    pub(crate) fn watch_events(&mut self, events: impl Iterator<Item = Event>, found: &mut Vec<Finding>) {
        match self {
            Self::Sober(monitor) => watch(monitor, events, found),
            Self::Operational(monitor) => watch(monitor, events, found),
        }
    }

    /// Watches the execution of a graph in an order.
    pub(crate) fn watch(&mut self, graph: &Graph, order: &[u32], found: &mut Vec<Finding>) {
        self.watch_events(order.iter().filter_map(|&id| observed(graph, id)), found);
    }

    /// The operational monitors commit what an access forces them to, even if that access need not come yet: to miss
    /// nothing, each thread has to come first in one linearisation.
    pub(crate) fn depends_on_order(&self) -> bool {
        matches!(self, Self::Operational(_))
    }
}

impl Monitor for AnyMonitor {
    #[inline]
    fn observe(&mut self, event: &Event) -> Option<Finding> {
        match self {
            Self::Sober(monitor) => monitor.observe(event),
            Self::Operational(monitor) => monitor.observe(event),
        }
    }

    fn reset(&mut self) {
        match self {
            Self::Sober(monitor) => monitor.reset(),
            Self::Operational(monitor) => monitor.reset(),
        }
    }
}

fn watch(monitor: &mut impl Monitor, events: impl Iterator<Item = Event>, found: &mut Vec<Finding>) {
    monitor.reset();
    found.extend(events.filter_map(|event| monitor.observe(&event)));
}

/// How many graphs go by between two looks at the clock.
const GRAPHS_BETWEEN_LOOKS: u64 = 1024;

/// Where graphs are large, fewer go by: so many events.
const EVENTS_BETWEEN_LOOKS: u64 = 1 << 18;

/// A thread and its local state.
type LocalPlace = (u32, Token);

/// Judges every explored graph.
pub(crate) struct Checker<'a> {
    options: &'a ExploreOptions,
    budget: &'a Budget,
    progress: &'a dyn Progress,
    watcher: Option<Watcher>,
    critical: Option<Critical>,
    lineariser: Lineariser,
    past: PastOrder,
    /// The pairs of a store and an access that have been noted, each with its thread and local state.
    pairs: FxHashSet<(LocalPlace, LocalPlace)>,
    /// When so many pairs have been noted, there are no more.
    possible_pairs: usize,
    /// There are no more, and the graphs answer the question: what is left to do is to count.
    only_counts: bool,
    graphs: u64,
    /// Graphs, and their events, since the last look at the clock.
    unseen: (u64, u64),
    /// What the other workers know to be covered here.
    reported: f64,
    /// Where the other workers are, if there are any.
    worker: Option<Worker<'a>>,
    outcome: Outcome,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(
        system: &Interpreter<'_>,
        options: &'a ExploreOptions,
        budget: &'a Budget,
        progress: &'a dyn Progress,
        worker: Option<Worker<'a>>,
    ) -> Self {
        Self {
            options,
            budget,
            progress,
            watcher: options.monitor.map(|kind| Watcher::new(kind, system.threads(), system.cells())),
            critical: system.has_critical().then(Critical::default),
            lineariser: Lineariser::default(),
            past: PastOrder::default(),
            pairs: FxHashSet::default(),
            possible_pairs: options.monitor.map_or(0, |kind| kind.possible_pairs(system.program())),
            only_counts: false,
            graphs: 0,
            unseen: (0, 0),
            reported: 0.0,
            worker,
            outcome: Outcome::default(),
        }
    }

    /// What was found so far, violations apart.
    pub(crate) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Did this worker give up because an earlier part of the search has stopped?
    pub(crate) fn is_overtaken(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::is_overtaken)
    }

    /// An execution that the explorer thinks breaks the specification: the machine has the last word.
    fn note_error(&mut self, program: &Program, graph: &Graph) -> ControlFlow<()> {
        let actions = actions_of(graph, self.lineariser.order());
        let Some(witness) = first_problem(program, self.options.spurious_wakeups, &actions) else {
            return ControlFlow::Continue(());
        };
        self.outcome.failures += 1;
        if self.outcome.error.as_ref().is_none_or(|known| shorter(&witness.actions, &known.actions)) {
            self.outcome.error = Some(witness);
        }
        if self.options.all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn check_critical(&mut self, graph: &Graph, system: &mut Interpreter<'_>) -> ControlFlow<()> {
        let Some(critical) = &mut self.critical else { return ControlFlow::Continue(()) };
        let Some((first, second)) = critical.overlap(graph, system) else { return ControlFlow::Continue(()) };
        let is_past = |id: u32, of: u32| of != NONE && graph.happens_before(id, of);
        self.lineariser.linearise_some(graph, |id| is_past(id, first) || is_past(id, second));
        self.note_error(system.program(), graph)
    }

    fn watch(&mut self, graph: &Graph, system: &Interpreter<'_>, ending: Ending) -> ControlFlow<()> {
        let Some(watcher) = &mut self.watcher else { return ControlFlow::Continue(()) };
        if !watcher.watch(graph, ending, &mut self.lineariser) {
            return ControlFlow::Continue(());
        }
        self.outcome.borderline += 1;
        if !watcher.found.is_empty() {
            self.note_findings(graph, system);
        }
        if self.options.all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// The execution is borderline because of what the watcher found.
    #[inline(never)]
    fn note_findings(&mut self, graph: &Graph, system: &Interpreter<'_>) {
        let found = self.watcher.as_mut().map(|watcher| std::mem::take(&mut watcher.found)).unwrap_or_default();
        for &Finding { store, access } in &found {
            let place = |id: u32| (graph.event(id).thread, graph.event(id).before);
            if self.pairs.insert((place(store), place(access))) {
                self.note_pair(graph, system, store, access);
            }
        }
        let knows_all = self.outcome.violations.len() == self.possible_pairs;
        if let Some(watcher) = &mut self.watcher {
            watcher.found = found;
            if knows_all {
                watcher.look_for_one();
                self.only_counts = self.options.all && graph.answers(watcher.question);
            }
        }
    }

    /// A pair of accesses in local states that were not seen together yet.
    #[cold]
    fn note_pair(&mut self, graph: &Graph, system: &Interpreter<'_>, store: u32, access: u32) {
        let pair = (access_of(system, graph, store), access_of(system, graph, access));
        if !self.outcome.violations.contains_key(&pair) {
            let (actions, issued) = self.actions_up_to(graph, access, store);
            let (store, access) = pair;
            self.outcome.violations.insert(pair, Violation { store, access, actions, issued });
        }
    }

    /// What was found, when the search is over.
    pub(crate) fn finish(mut self) -> Outcome {
        self.outcome.lengths += self.unseen.1;
        if let Some(worker) = &self.worker {
            // The part since the last look; most parts of a search are shorter than the time between two looks.
            worker.report(self.progress, self.unseen.0, self.outcome.covered - self.reported);
        }
        self.outcome
    }

    /// The execution up to and including an event: what has to come before it, and what its thread did before. Nothing
    /// comes before an event of that thread that need not, so that a monitor that depends on the order sees it again.
    /// Beside it, which of its steps the store is.
    fn actions_up_to(&mut self, graph: &Graph, last: u32, store: u32) -> (Vec<Action>, Option<usize>) {
        self.past.linearise(graph, last);
        let past = self.past.order();
        let mut actions = Vec::with_capacity(past.len());
        let mut issued = None;
        for &id in past {
            let event = graph.event(id);
            if is_step(event) {
                if id == store {
                    issued = Some(actions.len());
                }
                actions.push(action_of(graph, event));
            }
        }
        (actions, issued)
    }

    fn look_at_the_clock(&mut self, graph: &Graph, system: &Interpreter<'_>) -> ControlFlow<()> {
        self.graphs += 1;
        let (graphs, events) = (self.unseen.0 + 1, self.unseen.1 + u64::from(graph.len()));
        self.unseen = (graphs, events);
        if graphs < GRAPHS_BETWEEN_LOOKS && events < EVENTS_BETWEEN_LOOKS {
            return ControlFlow::Continue(());
        }
        self.unseen = (0, 0);
        self.outcome.lengths += events;
        if let Some(worker) = &self.worker {
            worker.report(self.progress, graphs, self.outcome.covered - self.reported);
            self.reported = self.outcome.covered;
            if worker.is_overtaken() {
                return ControlFlow::Break(());
            }
        } else {
            self.progress.explored(self.outcome.executions, self.graphs, self.outcome.covered);
        }
        self.outcome.limit = self.budget.exhausted(system.bytes() + graph.bytes() as u64);
        if self.outcome.limit.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn access_of(system: &Interpreter<'_>, graph: &Graph, id: u32) -> Access {
    let event = graph.event(id);
    let thread = ThreadId(event.thread as u16);
    let pc = system.pc_of(thread, event.before);
    Access { thread, pc, site: system.program().threads[thread.index()].sites[pc.index()] }
}

impl<'p> Visitor<Interpreter<'p>> for Checker<'_> {
    fn failed(&mut self, graph: &Graph, system: &mut Interpreter<'p>, thread: ThreadId) -> ControlFlow<()> {
        let last = graph.thread(thread.index()).last;
        self.lineariser.linearise_some(graph, |id| last != NONE && graph.happens_before(id, last));
        self.note_error(system.program(), graph)
    }

    fn ended(&mut self, graph: &Graph, system: &mut Interpreter<'p>, ending: Ending) -> ControlFlow<()> {
        self.check_critical(graph, system)?;
        match ending {
            Ending::Complete => {
                self.outcome.executions += 1;
                if self.only_counts {
                    self.outcome.borderline += u64::from(graph.is_borderline());
                    return self.look_at_the_clock(graph, system);
                }
            }
            Ending::Blocked | Ending::Livelock => self.outcome.blocked += 1,
            Ending::Bounded | Ending::Spinning => self.outcome.unfinished += 1,
            Ending::Failed => {}
            Ending::TooLong => {
                self.outcome.unfinished += 1;
                self.outcome.too_long = true;
            }
            Ending::Deadlock if self.options.allow_deadlock => self.outcome.deadlocks += 1,
            Ending::Deadlock | Ending::Wrong => {
                self.outcome.deadlocks += u64::from(ending == Ending::Deadlock);
                self.lineariser.linearise(graph);
                self.note_error(system.program(), graph)?;
            }
        }
        self.watch(graph, system, ending)?;
        if ending == Ending::TooLong {
            // It was the beginning of an execution: what the monitor has seen in it happens.
            return ControlFlow::Break(());
        }
        self.look_at_the_clock(graph, system)
    }

    #[inline]
    fn covered(&mut self, share: f64) {
        self.outcome.covered += share;
    }

    fn wants_work(&self) -> bool {
        self.worker.as_ref().is_some_and(Worker::wants_work)
    }

    fn take(&mut self, subtree: Subtree) {
        if let Some(worker) = &mut self.worker {
            worker.hand_out(subtree);
        }
    }
}
