//! Looks for executions in which what a thread has freed is used afterwards: see [`suspects`](crate::rt::suspects).

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_explore::buffered::Move;
use weakspot_explore::graph::{Event, EventKind, Graph};
use weakspot_explore::linearise::{Lineariser, is_step};
use weakspot_explore::system::Repeated;
use weakspot_explore::trust::steps_again;
use weakspot_model::buffer::MemoryModel;

use crate::builder::Builder;
use crate::failure::Failure;
use crate::impact::{sc_prefix, schedule_text};
use crate::judge::steps_of;
use crate::replay::{self, Stop, Trial};
use crate::rt::Place;
use crate::rt::lane::{Happened, Operation};
use crate::rt::runtime::Runtime;
use crate::rt::suspects::{LateUse, Places};
use crate::timeline::Timeline;

/// How pairs of places were tried out, by their addresses.
///
/// Where a trial was in vain, something that is not seen orders the two, and will as a rule do so again. So after each of them
/// the same two places are left alone for twice as long as before; never for good. But the same two places may be those of
/// something else, too. So uses that are not where in their threads one was before are tried all the same: [`SPARE`] of them, and
/// one more for each [`SPARE`] executions.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    trials: FxHashMap<(usize, usize), Trials>,
    /// Trials of places that should be left alone.
    spared: u64,
    /// What was tried.
    moments: FxHashSet<Moment>,
    /// Executions that were looked at.
    looks: u64,
    /// Room for what is looked at, and for the steps of a trial.
    late: Vec<LateUse>,
    steps: Vec<Repeated>,
}

/// The use and the free, by thread, by the number of events before, and by the access to plain memory.
type Moment = [u32; 5];

#[derive(Debug, Default)]
struct Trials {
    /// How many were in vain.
    in_vain: u32,
    /// How often the two places are still to be left alone.
    rests: u32,
}

/// So many trials, and executions for one more.
const SPARE: u64 = 64;

impl Tried {
    /// Two places are met: may it be worth while to try them out?
    fn meet(&mut self, places: Places) -> bool {
        let may_spare = self.has_spare();
        let Some(trials) = self.trials.get_mut(&key_of(places)) else { return true };
        let is_due = trials.rests == 0;
        trials.rests = trials.rests.saturating_sub(1);
        is_due || may_spare
    }

    /// Is it worth while to try this out?
    fn is_due(&self, late: &LateUse) -> bool {
        let rests = self.trials.get(&key_of(late.places)).map_or(0, |trials| trials.rests);
        rests == 0 || self.has_spare() && !self.moments.contains(&moment_of(late))
    }

    /// Is there a trial to spare?
    fn has_spare(&self) -> bool {
        self.spared < SPARE + self.looks / SPARE
    }

    /// It is tried out.
    fn note(&mut self, late: &LateUse) {
        let trials = self.trials.entry(key_of(late.places)).or_default();
        self.moments.insert(moment_of(late));
        if trials.rests > 0 {
            self.spared += 1;
        } else {
            trials.in_vain += 1;
            trials.rests = 1 << trials.in_vain.min(20);
        }
    }
}

fn key_of((used, freed): Places) -> (usize, usize) {
    let address = |place: Place| std::ptr::from_ref(place).addr();
    (address(used), address(freed))
}

fn moment_of(late: &LateUse) -> Moment {
    let &LateUse { user, before, plain, freer, freed_after, .. } = late;
    [user, before, plain.unwrap_or(0), freer, freed_after]
}

/// An execution in which memory is used after it was freed.
pub(crate) struct Found {
    pub(crate) failure: Failure,
    pub(crate) timeline: Timeline,
    pub(crate) schedule: String,
}

/// What the execution is made of in which a use comes after the free.
pub(crate) trait Source {
    /// What is kept of the run that is over.
    type Known;

    /// Could the use come after the free? Asked before another run is made.
    fn begin(&mut self, late: &LateUse) -> Option<Self::Known>;

    /// Lists the steps after which what was freed is used; false if they cannot be made in one go.
    fn steps(&mut self, _late: &LateUse, _known: &Self::Known, _steps: &mut Vec<Repeated>) -> bool {
        false
    }

    /// The same as moves.
    fn moves(&mut self, late: &LateUse, known: Self::Known) -> Vec<Move>;
}

/// Moves that are worked out at once. There are none where the use had to come first.
pub(crate) struct Moves<F>(pub(crate) F);

impl<F: FnMut(&LateUse) -> Option<Vec<Move>>> Source for Moves<F> {
    type Known = Vec<Move>;

    fn begin(&mut self, late: &LateUse) -> Option<Vec<Move>> {
        self.0(late)
    }

    fn moves(&mut self, _late: &LateUse, moves: Vec<Move>) -> Vec<Move> {
        moves
    }
}

/// Looks for one that is made of the run that is over, on the SC machine or on another one. `Break`: the runtime has found out
/// something that matters to the exploration, and everything begins anew.
pub(crate) fn look<S: Source>(
    builder: &Builder,
    runtime: &Runtime,
    machine: MemoryModel,
    tried: &mut Tried,
    mut source: S,
) -> ControlFlow<(), Option<Found>> {
    let mut late = std::mem::take(&mut tried.late);
    late.clear();
    tried.looks += 1;
    runtime.late_uses(&mut late, |places| tried.meet(places));
    let is_possible = |late: LateUse| tried.is_due(&late).then(|| Some((late, source.begin(&late)?))).flatten();
    let possible: Vec<(LateUse, S::Known)> = late.iter().copied().filter_map(is_possible).collect();
    tried.late = late;
    for (late, known) in possible {
        if !tried.is_due(&late) {
            continue;
        }
        tried.note(&late);
        let is_in_vain = source.steps(&late, &known, &mut tried.steps) && replay::goes_well(runtime, &mut tried.steps);
        let found = if is_in_vain { None } else { find(builder, runtime, machine, &late, source.moves(&late, known)) };
        if runtime.counts.borrow().found {
            return ControlFlow::Break(());
        }
        if found.is_some() {
            return ControlFlow::Continue(found);
        }
    }
    ControlFlow::Continue(None)
}

/// Tries out whether these moves lead to the use of what was freed.
fn find(builder: &Builder, runtime: &Runtime, machine: MemoryModel, late: &LateUse, moves: Vec<Move>) -> Option<Found> {
    let stop: Option<Stop> = late.plain.map(|access| (late.user, access));
    let trial = Trial { model: machine, moves, stop, goes_on: false };
    let (failure, timeline) = replay::uses_freed(builder, runtime, &trial)?;
    let model = if machine == MemoryModel::Sc { sc_prefix(builder.model) } else { format!("{}:", machine.name()) };
    let schedule = model + &replay::with_stop(stop, &schedule_text(&trial.moves));
    Some(Found { failure, timeline, schedule })
}

/// The trace of the run.
pub(crate) struct Trace<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) lineariser: &'a mut Lineariser,
    pub(crate) runtime: &'a Runtime,
    steps: &'a mut Steps,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(
        graph: &'a Graph,
        lineariser: &'a mut Lineariser,
        runtime: &'a Runtime,
        steps: &'a mut Steps,
    ) -> Self {
        steps.are_known = false;
        Self { graph, lineariser, runtime, steps }
    }
}

/// The events of each thread of a trace that its log counts, worked out when somebody asks, in memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    of_threads: Vec<Vec<u32>>,
    are_known: bool,
}

impl Steps {
    fn of(&mut self, graph: &Graph, thread: u32) -> &[u32] {
        if !self.are_known {
            self.work_out(graph);
        }
        &self.of_threads[thread as usize]
    }

    fn work_out(&mut self, graph: &Graph) {
        self.of_threads.resize_with(graph.width().max(self.of_threads.len()), Vec::new);
        self.of_threads.iter_mut().for_each(Vec::clear);
        for (id, event) in (0..).zip(graph.events()) {
            if is_counted(event) {
                self.of_threads[event.thread as usize].push(id);
            }
        }
        self.are_known = true;
    }
}

/// The events of a trace that matter.
pub(crate) struct Ends {
    /// The last one of the user before the use.
    before: u32,
    /// The use, or, of a cell, what comes after it.
    after: Option<u32>,
    /// The last one before the free.
    freed: u32,
}

impl Source for Trace<'_> {
    type Known = Ends;

    fn begin(&mut self, late: &LateUse) -> Option<Ends> {
        let before = late.before.checked_sub(1)?;
        let number = late.freed_after.checked_sub(1)?;
        let freed = *self.steps.of(self.graph, late.freer).get(number as usize)?;
        let own = self.steps.of(self.graph, late.user).get(before as usize..)?;
        let (&before, after) = (own.first()?, own.get(1).copied());
        let is_earlier = after.is_some_and(|after| self.graph.happens_before(after, freed));
        (!is_earlier && !self.runtime.is_ordered(late)).then_some(Ends { before, after, freed })
    }

    fn steps(&mut self, late: &LateUse, ends: &Ends, steps: &mut Vec<Repeated>) -> bool {
        let Some(after) = ends.after.filter(|_| late.plain.is_none()) else { return false };
        let is_access = matches!(
            self.graph.event(after).kind,
            EventKind::Load
                | EventKind::Store
                | EventKind::InterlockedStore
                | EventKind::RmwRead(_)
                | EventKind::RmwWrite { .. }
        );
        is_access && {
            self.lineariser.linearise_both(self.graph, ends.before, ends.freed);
            self.lineariser.add(after);
            steps_again(self.graph, self.lineariser.order(), steps)
        }
    }

    fn moves(&mut self, late: &LateUse, ends: Ends) -> Vec<Move> {
        self.lineariser.linearise_both(self.graph, ends.before, ends.freed);
        let steps = steps_of(self.graph, self.lineariser.order()).into_iter();
        steps.map(|(thread, choice)| Move::Step { thread, choice }).chain([used(late)]).collect()
    }
}

/// The use, at last.
fn used(late: &LateUse) -> Move {
    Move::Step { thread: late.user as usize, choice: 0 }
}

/// Does the log count an event as one of its thread's?
fn is_counted(event: &Event) -> bool {
    is_step(event) && event.kind != EventKind::WaitWrite
}

/// The event of a thread of this number, as its log counts them.
pub(crate) fn step_of(graph: &Graph, thread: u32, number: u32) -> Option<u32> {
    let own = |&(_, event): &(u32, &Event)| event.thread == thread && is_counted(event);
    (0..).zip(graph.events()).filter(own).nth(number as usize).map(|(id, _)| id)
}

/// The same for a schedule on the SC machine: the moves, and where the log tells of each.
pub(crate) fn moves_of_schedule(
    moves: &[Move],
    told: &[Option<usize>],
    log: &[Happened],
    late: &LateUse,
) -> Option<Vec<Move>> {
    let event = |thread: u32, number: u32| {
        let mut own = log.iter().enumerate().filter(|(_, happened)| happened.thread == thread);
        own.nth(number as usize).map(|(at, _)| at)
    };
    let freed = event(late.freer, late.freed_after.checked_sub(1)?)?;
    let after = event(late.user, late.before).unwrap_or(usize::MAX);
    let mut later = Later::default();
    let mut kept = Vec::new();
    for (&what, told) in moves.iter().zip(told) {
        let is_later = match told.map(|at| (at, &log[at])) {
            Some((at, happened)) => later.has_to(happened, at == after),
            None => later.threads.contains(&(what.thread() as u32)),
        };
        if !is_later {
            kept.push(what);
        }
        if *told == Some(freed) {
            return (!is_later).then(|| kept.into_iter().chain([used(late)]).collect());
        }
    }
    None
}

/// What comes after something in the order of the trace.
#[derive(Default)]
struct Later {
    threads: FxHashSet<u32>,
    /// Objects, and whether they are written.
    objects: FxHashMap<u32, bool>,
}

impl Later {
    /// Does an event come after it, or is it the first?
    fn has_to(&mut self, happened: &Happened, is_first: bool) -> bool {
        let objects = objects_of(happened);
        let conflicts =
            |(object, writes): (u32, bool)| self.objects.get(&object).is_some_and(|&written| written || writes);
        let is_later =
            is_first || self.threads.contains(&happened.thread) || objects.into_iter().flatten().any(conflicts);
        if is_later {
            self.threads.insert(happened.thread);
            for (object, writes) in objects.into_iter().flatten() {
                *self.objects.entry(object).or_default() |= writes;
            }
        }
        is_later
    }
}

/// What an event is about, and whether it writes that.
fn objects_of(happened: &Happened) -> [Option<(u32, bool)>; 2] {
    let writes = match happened.operation {
        Operation::Load(_) | Operation::Begin(_) | Operation::Join { .. } | Operation::Pass(_) => false,
        Operation::Rmw { .. } => happened.written.is_some(),
        _ => true,
    };
    let mutex = if let Operation::Wait { mutex, .. } = happened.operation { Some((mutex, true)) } else { None };
    [happened.operation.object().map(|object| (object, writes)), mutex]
}

/// The same for an execution with store buffers: the thread stops before its use, and what was in its buffer by then reaches
/// memory as before.
pub(crate) fn moves_of_relaxed(moves: &[Move], log: &[Happened], late: &LateUse) -> Option<Vec<Move>> {
    // Who goes to sleep makes a move of which the log does not tell.
    if log.iter().any(|happened| matches!(happened.operation, Operation::Wait { .. })) {
        return None;
    }
    let own: Vec<&Happened> = log.iter().filter(|happened| happened.is_step_of(late.user)).collect();
    let (mut steps, mut freed_after, mut in_buffer) = (0, 0, 0);
    let mut kept = Vec::new();
    for &what in moves {
        let is_kept = match what {
            Move::Step { thread, .. } if thread == late.user as usize => {
                let is_store = own.get(steps).is_some_and(|own| matches!(own.operation, Operation::Store(..)));
                steps += 1;
                in_buffer += u32::from(is_store && steps <= late.before as usize);
                steps <= late.before as usize
            }
            // What it has stored after the use is not there.
            Move::Commit { thread, cell: place } if thread == late.user as usize => {
                let is_there = place < in_buffer;
                in_buffer -= u32::from(is_there);
                is_there
            }
            Move::Step { thread, .. } => {
                freed_after += u32::from(thread == late.freer as usize);
                true
            }
            Move::Commit { .. } => true,
        };
        if is_kept {
            kept.push(what);
        }
        if freed_after == late.freed_after {
            return Some(kept.into_iter().chain([used(late)]).collect());
        }
    }
    None
}
