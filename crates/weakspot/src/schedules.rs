//! One schedule at a time: random ones, or all with few preemptions.
//!
//! This is for models with too many traces. A schedule is run on the SC machine ([`Buffered`] without buffers) and
//! watched by the same monitors. A *preemption* is a switch away from a thread that could have gone on; steps whose
//! moment nobody can see (starting, ending, joining threads) are taken at once and are no places to switch.
//!
//! A thread that calls `yield_now` or `spin_loop` wants another one to get on: switching away is then no preemption. One that
//! does so a second time comes back only after another one has moved, unless its loop is known to end by itself. (The
//! first call may be none of a loop, and need not help: Musuvathi and Qadeer, Fair stateless model checking, 2008.) Whether
//! it does is tried out where it is not known yet (`probe`).
//!
//! A wait with a timeout may be over at any time, and that it is counts as a preemption, except the first time at each
//! place of a thread: otherwise a loop of such waits had no end. Where nobody else can go on it counts nothing, because the
//! clock goes on; several that wait then take turns. A thread that waits is left without a preemption.
//!
//! A schedule that begins like the one before must do what that did. If it does not, the model is not deterministic.
//!
//! Schedules that are the same execution as far as they go are told apart by nothing that comes after: of those with few
//! preemptions, one is followed to its end (`trace`). That is right if the model is determined by its events, and if the
//! monitor sees the same in all of them, which is so for SOBER and not for the operational one that PSO needs.

#[cfg(test)]
mod brute;
mod path;
mod probe;
#[cfg(test)]
mod tests;
mod trace;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use weakspot_explore::buffered::{Buffered, Move, Rest};
use weakspot_explore::exhaustive::{MonitorKind, Watcher};
use weakspot_explore::monitor::{Event, Finding, Operation};
use weakspot_explore::system::{CellId, Pending, Repeated, System, Update};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::FenceKind;

use crate::builder::Builder;
use crate::endless::{too_long, too_many_events};
use crate::failure::{Failure, FailureKind};
use crate::impact::{Borderline, Random, sc_schedule};
use crate::judge::{Evidence, Judge};
use crate::model::{WHAT_DIFFERS, may_go_on};
use crate::reclaim;
use crate::report::Bound;
use crate::rt::runtime::Runtime;
use crate::rt::suspects::LateUse;
use crate::rt::system::Live;
use crate::rt::{Place, panics};
use crate::strengthen::delays;
use crate::timeline::Timeline;
use path::{Path, Snapshot};
use probe::Probes;
use trace::Trace;

/// Random schedules, if nobody says how many.
const RANDOM_SCHEDULES: u64 = 1_000;
/// So many in a row in which there was never anything to choose are enough: they are all the same one. (What a model that
/// does not repeat itself does in them need not be.)
const SAME_SCHEDULES: u32 = 100;

/// What there is to choose from.
#[derive(Default)]
struct Options {
    /// At least one.
    moves: Vec<Move>,
    /// What each of them counts.
    costs: Vec<u32>,
    /// The thread that moved last, if leaving it is a preemption.
    last: Option<usize>,
}

/// Which thread goes next: a position in the list of moves.
trait Choose {
    /// `taken` counts the moves so far.
    fn choose(&mut self, options: &Options, taken: usize) -> usize;

    /// What the moves that can be chosen look like; and what one of them looked like before, if that was something else.
    fn compare(&mut self, _looks: &[Look]) -> Option<(Look, Look)> {
        None
    }

    /// Is nothing to be gained by leaving schedules out?
    fn is_random(&self) -> bool {
        false
    }

    /// How many moves this schedule has in common with the one before.
    fn in_common(&self) -> usize {
        0
    }

    /// Has everything been tried out that can come after this trace?
    fn is_known(&mut self, _options: &Options, _trace: impl FnOnce() -> u64) -> bool {
        false
    }

    /// A schedule begins: where it can go on from, if it begins like the one before.
    fn begin(&mut self) -> Option<&Snapshot> {
        None
    }

    /// It could not get there, and goes on from its beginning instead.
    fn begin_anew(&mut self) {}

    /// Room for what is known before the choice that comes next, if that is wanted.
    fn room(&mut self, _options: &Options) -> Option<&mut Snapshot> {
        None
    }
}

/// Explores random schedules.
pub(crate) fn random<'b>(builder: &'b Builder, runtime: &Runtime, seed: u64, start: Instant) -> Judge<'b> {
    let mut search = Search::new(builder, runtime, start);
    search.looks_closely = true;
    // It is random because of the seed, whatever their number.
    search.judge.most = None;
    let mut choices = Random(seed);
    let mut same = 0;
    for _ in 0..builder.max_executions.unwrap_or(RANDOM_SCHEDULES) {
        if search.run(&mut choices).is_break() {
            break;
        }
        same = if search.had_choice { 0 } else { same + 1 };
        if same == SAME_SCHEDULES {
            break;
        }
    }
    search.finish(Bound::Random)
}

impl Choose for Random {
    fn choose(&mut self, Options { moves, last, .. }: &Options, _taken: usize) -> usize {
        let stay = moves.iter().position(|what| Some(what.thread()) == *last);
        match stay {
            Some(stay) if self.below(2) == 0 => stay,
            _ => self.below(moves.len()),
        }
    }

    fn is_random(&self) -> bool {
        true
    }
}

/// Explores all schedules with at most so many preemptions. If threads depend on each other by more than their events
/// (`looks_closely`), it also matters when one begins or goes on after a join, and not only in which order events happen.
/// Then there are many more, and they are not explored for longer than this.
pub(crate) fn bounded<'b>(
    builder: &'b Builder,
    runtime: &Runtime,
    most: u32,
    looks_closely: Option<Duration>,
    start: Instant,
) -> Judge<'b> {
    let mut search = Search::new(builder, runtime, start);
    if let Some(patience) = looks_closely {
        search.looks_closely = true;
        search.judge.patience = Some(start.elapsed() + patience);
    }
    let is_determined = looks_closely.is_none() && builder.model != MemoryModel::Pso;
    search.follow(&mut Path::new(most, is_determined));
    search.finish(Bound::Preemptions(most))
}

/// A move as it looks from outside: whose, what and where.
#[derive(Debug, Clone, Copy)]
struct Look {
    thread: usize,
    what: &'static str,
    place: Place,
}

impl Look {
    fn is_like(&self, other: &Self) -> bool {
        (self.thread, self.what) == (other.thread, other.what) && std::ptr::eq(self.place, other.place)
    }
}

struct Search<'b, 'r> {
    builder: &'b Builder,
    runtime: &'r Runtime,
    judge: Judge<'b>,
    /// Is it a choice when a thread begins, or goes on after a join?
    looks_closely: bool,
    watcher: Option<Watcher>,
    moves: Vec<Move>,
    /// The same, for going there again.
    steps: Vec<Repeated>,
    /// Where the log of the run tells of each move. Going to sleep on a condition variable is a move, but no event yet.
    told: Vec<Option<usize>>,
    /// What the moves of this schedule and, after them, those of the one before look like.
    looks: Vec<Look>,
    /// So many moves must look as they did.
    in_common: usize,
    /// A move that does not: what it was, and what it is.
    diverged: Option<(Look, Look)>,
    events: Vec<Event>,
    /// Starts and ends of threads that nobody has waited for yet.
    held_back: Vec<Event>,
    /// Events of each thread so far.
    indices: Vec<u32>,
    trace: Trace,
    /// How often the thread that has moved last has yielded since another one has.
    yields: u64,
    /// Could this schedule have gone on otherwise anywhere?
    had_choice: bool,
    probes: Probes,
}

impl<'b, 'r> Search<'b, 'r> {
    fn new(builder: &'b Builder, runtime: &'r Runtime, start: Instant) -> Self {
        let kind = match builder.model {
            _ if !builder.monitor => None,
            MemoryModel::Sc => None,
            MemoryModel::Tso => Some(MonitorKind::Sober),
            MemoryModel::Pso => Some(MonitorKind::Operational(MemoryModel::Pso)),
        };
        let watcher = kind.map(|kind| Watcher::new(kind, 1, 1));
        let judge = Judge::new(builder, start);
        // A writer has to have all of a lock at once, or nothing.
        runtime.order_readers();
        // A closer that is late is met as it is.
        runtime.order_senders();
        Self {
            builder,
            runtime,
            judge,
            looks_closely: false,
            watcher,
            moves: Vec::new(),
            steps: Vec::new(),
            told: Vec::new(),
            looks: Vec::new(),
            in_common: 0,
            diverged: None,
            events: Vec::new(),
            held_back: Vec::new(),
            indices: Vec::new(),
            trace: Trace::default(),
            yields: 0,
            had_choice: false,
            probes: Probes::default(),
        }
    }

    fn finish(mut self, bound: Bound) -> Judge<'b> {
        self.runtime.finish_run(may_go_on(&self.judge.report));
        self.judge.report.bound = self.judge.report.bound.or(Some(bound));
        self.judge
    }

    /// Runs all schedules of a path.
    fn follow(&mut self, path: &mut Path) {
        while self.run(path).is_continue() {
            if self.finds_loops_that_end() {
                path.forget();
                self.begin_anew();
            } else if !path.advance() {
                break;
            }
        }
    }

    /// Runs one schedule.
    fn run(&mut self, choices: &mut impl Choose) -> ControlFlow<()> {
        self.in_common = choices.in_common();
        self.had_choice = false;
        let mut system = Live { runtime: self.runtime };
        let mut machine = Buffered::new(&mut system, MemoryModel::Sc)
            .with_exact_rounds(self.builder.max_spins)
            .restless(choices.is_random());
        let (mut options, mut looks) = (Options::default(), Vec::new());
        let mut last = self.begin(&mut machine, choices);
        self.judge.report.runs += 1;
        loop {
            self.take_quiet_steps(&mut machine);
            if let Some(rest) = machine.rest() {
                return self.end(rest, |cell| machine.memory(cell));
            }
            let Options { moves, costs, .. } = &mut options;
            machine.moves(moves);
            if moves.is_empty() {
                self.judge.report.blocked += 1;
                return ControlFlow::Continue(());
            }
            let before = last;
            if let Some(thread) = last {
                let (waits, is_late) = {
                    let lane = &self.runtime.state().lanes[thread];
                    (lane.returns_from_wait(), lane.has_timed_out())
                };
                if machine.has_yielded(thread) {
                    last = None;
                    if !is_late {
                        self.give_way(&mut machine, thread, moves);
                    }
                } else if waits {
                    last = None;
                }
            }
            self.count(moves, last, costs);
            options.last = last;
            // One that has yielded often does not come next. Elsewhere it only matters who can go on without a preemption.
            let has_yielded = last != before;
            let goes_on =
                before.filter(|&thread| has_yielded || options.moves.iter().any(|what| what.thread() == thread));
            let most = u64::from(self.builder.max_spins).max(2) + 1;
            let yields = if goes_on.is_some() { self.yields.min(most) } else { 0 };
            if choices.is_known(&options, || self.trace.key(goes_on, yields, machine.loops())) {
                return self.judge.limits();
            }
            if let Some(snapshot) = choices.room(&options) {
                self.save(&machine, before, snapshot);
            }
            looks.clear();
            looks.extend(options.moves.iter().map(|what| self.look_of(what.thread())));
            if let Some((was, is)) = self.diverged.or_else(|| choices.compare(&looks)) {
                return self.stop(not_repeated(was, is));
            }
            self.had_choice |= options.moves.len() > 1;
            let what = options.moves[choices.choose(&options, self.moves.len())];
            if before != Some(what.thread()) {
                self.yields = 0;
            }
            last = Some(what.thread());
            self.step(&mut machine, what);
            self.yields += u64::from(machine.has_yielded(what.thread()));
            if self.moves.len() > self.builder.max_events as usize {
                let why = too_many_events(self.builder.max_events);
                let place = self.runtime.state().lanes[what.thread()].place;
                return self.stop(too_long(what.thread() as u32, place, &why));
            }
        }
    }

    /// What each move counts.
    fn count(&self, moves: &[Move], last: Option<usize>, into: &mut Vec<u32>) {
        let can_stay = moves.iter().any(|what| Some(what.thread()) == last);
        let state = self.runtime.state();
        into.clear();
        into.extend(moves.iter().map(|&what| {
            let is_preemption = can_stay && Some(what.thread()) != last;
            let is_late = matches!(what, Move::Step { choice: 1, .. });
            u32::from(is_preemption) + u32::from(is_late && state.lanes[what.thread()].may_time_out_again())
        }));
    }

    /// Begins a schedule, and goes to where it is no longer like the one before, or less far: the thread that has moved last.
    fn begin(&mut self, machine: &mut Buffered<'_, Live<'r>>, choices: &mut impl Choose) -> Option<usize> {
        if let Some(snapshot) = choices.begin() {
            self.go_back(snapshot);
            let taken = machine.go_to(&snapshot.machine, &mut self.steps);
            if taken && self.runtime.state().log.len() == snapshot.log {
                self.compare_log();
                return snapshot.last;
            }
            // It is run from its beginning, which shows where it differs.
            machine.restart();
            choices.begin_anew();
        }
        self.go_back(&Snapshot::default());
        None
    }

    /// Forgets what came after a snapshot.
    fn go_back(&mut self, snapshot: &Snapshot) {
        self.moves.truncate(snapshot.moves);
        self.steps.truncate(snapshot.moves);
        self.told.truncate(snapshot.moves);
        self.events.truncate(snapshot.events);
        self.held_back.clone_from(&snapshot.held_back);
        self.indices.clone_from(&snapshot.indices);
        self.trace.copy_from(&snapshot.trace);
        self.yields = snapshot.yields;
    }

    fn save(&self, machine: &Buffered<'_, Live<'r>>, last: Option<usize>, into: &mut Snapshot) {
        machine.save(&mut into.machine);
        (into.moves, into.events, into.last) = (self.moves.len(), self.events.len(), last);
        into.log = self.runtime.state().log.len();
        into.held_back.clone_from(&self.held_back);
        into.indices.clone_from(&self.indices);
        into.trace.copy_from(&self.trace);
        into.yields = self.yields;
    }

    /// Compares all moves so far, which were made in one go, with those of the schedule before.
    fn compare_log(&mut self) {
        let state = self.runtime.state();
        for (before, told) in self.looks.iter().zip(&self.told) {
            let Some(happened) = told.and_then(|at| state.log.get(at)) else { continue };
            let look = Look { thread: happened.thread as usize, what: happened.what, place: happened.place };
            if self.diverged.is_none() && !before.is_like(&look) {
                self.diverged = Some((*before, look));
            }
        }
    }

    fn look_of(&self, thread: usize) -> Look {
        let lane = &self.runtime.state().lanes[thread];
        Look { thread, what: lane.what, place: lane.place }
    }

    /// Compares a move with that of the schedule before.
    fn look(&mut self, thread: usize) {
        let at = self.moves.len();
        let look = self.look_of(thread);
        match self.looks.get_mut(at) {
            Some(before) if at < self.in_common => {
                if self.diverged.is_none() && !before.is_like(&look) {
                    self.diverged = Some((*before, look));
                }
            }
            Some(before) => *before = look,
            None => self.looks.push(look),
        }
    }

    /// The run fails.
    fn stop(&mut self, failure: Failure) -> ControlFlow<()> {
        let schedule = sc_schedule(self.runtime.model, &self.moves);
        let timeline = Timeline::of_failed_run(self.runtime, &failure);
        self.judge.stop(failure, schedule, timeline)
    }

    fn take_quiet_steps(&mut self, machine: &mut Buffered<'_, Live<'r>>) {
        let mut thread = 0;
        while thread < machine.threads() {
            let is_choice = self.looks_closely && matches!(machine.pending(thread), Pending::Await(_));
            if !is_choice && machine.is_quiet(thread) {
                self.step(machine, Move::Step { thread, choice: 0 });
                thread = 0;
            } else {
                thread += 1;
            }
        }
    }

    fn step(&mut self, machine: &mut Buffered<'_, Live<'r>>, what: Move) {
        self.look(what.thread());
        let label = self.moves.len() as u32;
        self.moves.push(what);
        if let Move::Step { thread, choice } = what {
            self.steps.push(machine.step_of(thread, choice));
            self.trace.step(thread, machine.pending(thread), choice);
        }
        let thread = what.thread();
        for (operation, cell) in observed(machine, thread).into_iter().flatten() {
            if self.indices.len() <= thread {
                self.indices.resize(thread + 1, 0);
            }
            let index = self.indices[thread];
            self.indices[thread] += 1;
            let event = Event { thread: thread as u32, index, operation, cell, label };
            self.emit(event, matches!(machine.pending(thread), Pending::Signal(_)));
        }
        let before = self.runtime.state().log.len();
        machine.make(what);
        self.told.push((self.runtime.state().log.len() > before).then_some(before));
        machine.commit_all(what.thread());
    }

    /// Tells the monitor, but of the end of a thread only when somebody waits for it: it is a fence, and was taken early
    /// only because nobody could see when.
    fn emit(&mut self, event: Event, is_signal: bool) {
        let events = &mut self.events;
        self.held_back.retain(|held| {
            let needed = held.thread == event.thread || held.cell == event.cell;
            if needed {
                events.push(*held);
            }
            !needed
        });
        if is_signal { self.held_back.push(event) } else { self.events.push(event) }
    }

    fn end(&mut self, rest: Rest, memory: impl Fn(CellId) -> i64) -> ControlFlow<()> {
        let runtime = self.runtime;
        let failure = match rest {
            Rest::Complete => {
                self.judge.report.executions += 1;
                runtime.end_run()
            }
            Rest::Failed(thread) => {
                let known = runtime.failure.take();
                Some(known.unwrap_or_else(|| panics::take_failure(runtime, thread as u32, None)))
            }
            Rest::Deadlock => Some(runtime.deadlock()),
            Rest::Livelock => {
                let livelock = runtime.livelock_unless_it_ends(memory);
                self.judge.report.blocked += u64::from(livelock.is_none());
                livelock
            }
        };
        if runtime.counts.borrow().found {
            return ControlFlow::Break(());
        }
        if let Some(failure) = failure {
            return self.stop(failure);
        }
        self.watch();
        if matches!(rest, Rest::Complete) && runtime.has_suspects() {
            let (moves, told) = (&self.moves, &self.told);
            let moves_of = |late: &LateUse| {
                let is_open = !runtime.is_ordered(late);
                is_open.then(|| reclaim::moves_of_schedule(moves, told, &runtime.state().log, late)).flatten()
            };
            self.judge.look_for_late_uses(runtime, reclaim::Moves(moves_of))?;
        }
        self.judge.limits()
    }

    fn watch(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        let threads = self.runtime.state().lanes.len();
        let cells = self.events.iter().filter(|event| event.cell != u32::MAX).map(|event| event.cell + 1).max();
        let found: Vec<Finding> = watcher.watch_events(&self.events, threads, cells.unwrap_or(0) as usize).to_vec();
        if found.is_empty() {
            return;
        }
        self.judge.report.borderline += 1;
        let steps = || {
            self.moves.iter().map(|what| match *what {
                Move::Step { thread, choice } => (thread, choice),
                Move::Commit { thread, .. } => (thread, 0),
            })
        };
        for Finding { store, access } in found {
            let log = &self.runtime.state().log;
            let (Some(write), Some(last)) = (self.told[store as usize], self.told[access as usize]) else { continue };
            let evidence = || Evidence {
                borderline: Borderline { steps: steps().take(access as usize + 1).collect(), store: store as usize },
                delays: delays::of_finding(&log[..=last], write, self.runtime.model),
            };
            self.judge.note_violation(&log[write], &log[last], evidence);
        }
    }
}

fn not_repeated(was: Look, is: Look) -> Failure {
    let message = format!(
        "the same schedule was run again, and thread {} did not {} at {} but was about to \
         {}. {WHAT_DIFFERS}",
        was.thread, was.what, was.place, is.what
    );
    Failure::new(FailureKind::NotDeterministic, message).of_thread(is.thread as u32).at(Some(is.place.into()))
}

/// What a monitor sees of the step a thread is about to take: a look, and what comes of it.
fn observed(machine: &mut Buffered<'_, Live<'_>>, thread: usize) -> [Option<(Operation, u32)>; 2] {
    let interlocked = Operation::Atomic { writes: true, drains_all: true };
    let one = match machine.pending(thread) {
        Pending::Load(cell) => (Operation::Load, cell),
        Pending::Store { cell, .. } => (Operation::Store, cell),
        Pending::Rmw { cell, drains_all } => {
            let current = machine.memory(cell);
            let update = machine.system().update(ThreadId::new(thread), current);
            let writes = matches!(update, Update::Acts { written: Some(_), .. });
            let atomic = (Operation::Atomic { writes, drains_all }, cell);
            if machine.system().looks(ThreadId::new(thread)) {
                return [Some((Operation::Load, cell)), writes.then_some(atomic)];
            }
            atomic
        }
        Pending::Fence(FenceKind::StoreStore) => (Operation::StoreFence, u32::MAX),
        Pending::Fence(_) => (Operation::FullFence, u32::MAX),
        Pending::InterlockedStore { cell, .. }
        | Pending::Lock(cell)
        | Pending::TryLock(cell)
        | Pending::Unlock(cell)
        | Pending::Wait { mutex: cell, .. }
        | Pending::Signal(cell)
        | Pending::Await(cell) => (interlocked, cell),
        Pending::Notify { condvar, .. } => {
            (Operation::Atomic { writes: machine.memory(condvar) != 0, drains_all: true }, condvar)
        }
        _ => return [None; 2],
    };
    [Some(one), None]
}
