//! Which stores an execution delays, and which changes would not let it.
//!
//! A change (see [`Change`]) keeps a thread from doing things in another order than the source has them. An execution is
//! impossible with a change exactly if the change orders two operations of a thread that the execution has the other
//! way round. So every execution gives a *clause*: the changes that make it impossible. Whoever wants to be rid of the
//! execution has to make one of them.
//!
//! An execution comes from one of two sources:
//! - a run on simulated store buffers ([`of_run`]): the log says when each store reached memory;
//! - a finding of a monitor in an SC execution ([`of_finding`]): a write and a later access that a processor may do
//!   first. What follows from the write, by the relation of the memory model, must then come after the access; all the
//!   rest stays where it is. That is an execution of the processor, because the access does not follow.
//!
//! | order kept between two operations of a thread | TSO | PSO |
//! |---|---|---|
//! | store, then load | no | no |
//! | store, then store or relaxed atomic | yes | same location, or with a store-store fence between (stores) |
//! | all others | yes | yes |

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

use super::{Candidate, Change};
use crate::report::{Party, Violation};
use crate::rt::Place;
use crate::rt::lane::{Happened, Operation};
use crate::rt::poison::POISONS;

/// What an operation is to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load(u32),
    Store(u32),
    /// An atomic that waits for pending stores to its own location only.
    LooseAtomic {
        object: u32,
        writes: bool,
    },
    /// Anything that waits for all pending stores: the object, and whether it is written.
    Barrier(Option<u32>),
    StoreFence,
    /// No access to memory.
    Local,
}

impl Kind {
    fn of(operation: Operation, written: bool, model: MemoryModel) -> Self {
        match operation {
            Operation::Load(object) => Self::Load(object),
            Operation::Rmw { object, looks: true, .. } if !written => Self::Load(object),
            Operation::Store(object, _) => Self::Store(object),
            Operation::Rmw { object, drains_all: false, .. } if model == MemoryModel::Pso => {
                Self::LooseAtomic { object, writes: written }
            }
            Operation::Fence(FenceKind::StoreStore) => Self::StoreFence,
            Operation::Fence(_) => Self::Barrier(None),
            other => other.object().map_or(Self::Local, |object| Self::Barrier(Some(object))),
        }
    }

    /// The object and whether it is written, as far as other threads can tell.
    fn access(self) -> Option<(u32, bool)> {
        match self {
            Self::Load(object) => Some((object, false)),
            Self::Store(object) => Some((object, true)),
            Self::LooseAtomic { object, writes } => Some((object, writes)),
            Self::Barrier(object) => object.map(|object| (object, true)),
            Self::StoreFence | Self::Local => None,
        }
    }
}

/// One operation of an execution.
#[derive(Debug, Clone, Copy)]
pub(super) struct Act {
    pub(super) thread: u32,
    place: Place,
    /// What it is called.
    what: &'static str,
    kind: Kind,
    /// Does it take effect after others of its thread that come later in the source?
    late: bool,
    /// When it takes effect.
    pub(super) time: usize,
}

/// What an execution delays.
#[derive(Debug, Clone)]
pub(crate) struct Delays {
    /// The changes that would not let it.
    pub(crate) clause: Vec<Candidate>,
    /// A store that is delayed, and the operation of its thread that comes before it then.
    pub(crate) pair: Option<(Party, Party)>,
}

/// Longer executions are not looked at. No run on store buffers is longer.
pub(super) const LONGEST: usize = 20_000;

/// The delays of a run on store buffers.
pub(crate) fn of_run(log: &[Happened], model: MemoryModel) -> Delays {
    if log.len() > LONGEST {
        return Delays { clause: Vec::new(), pair: None };
    }
    let (mut acts, whose) = acts_of_run(log, model);
    let (clause, pair) = clause(&mut acts, model);
    Delays { clause, pair: pair.map(|pair| parties(&whose, pair)) }
}

/// What the log says of two operations.
fn parties(whose: &[Happened], (store, later): (usize, usize)) -> (Party, Party) {
    (Party::of(&whose[store]), Party::of(&whose[later]))
}

/// The operations of a run on store buffers, and what the log says of each.
pub(super) fn acts_of_run(log: &[Happened], model: MemoryModel) -> (Vec<Act>, Vec<Happened>) {
    let mut acts: Vec<Act> = Vec::new();
    let mut pending: FxHashMap<(u32, u32), Vec<usize>> = FxHashMap::default();
    let mut whose = Vec::new();
    for (time, happened) in log.iter().enumerate() {
        if let Operation::Commit(object) = happened.operation {
            if let Some(stores) = pending.get_mut(&(happened.thread, object))
                && !stores.is_empty()
            {
                acts[stores.remove(0)].time = time;
            }
            continue;
        }
        let mut act = act(happened, model, time);
        if let Kind::Store(object) = act.kind {
            pending.entry((happened.thread, object)).or_default().push(acts.len());
            act.time = usize::MAX;
        }
        acts.push(act);
        whose.push(*happened);
    }
    (acts, whose)
}

/// A store that comes late in a run, what comes before it although its thread does it later, and what another thread
/// does in between: it accesses the location of the store, which it misses, or writes that of the load, which has missed it.
pub(super) struct Suspect {
    pub(super) store: usize,
    pub(super) later: usize,
    pub(super) other: usize,
    is_missed: bool,
}

impl Suspect {
    pub(super) fn violation(&self, whose: &[Happened]) -> Violation {
        let (store, later, other) = (&whose[self.store], &whose[self.later], &whose[self.other]);
        let pair = Some((Party::of(store), Party::of(later)));
        if self.is_missed { Violation::of(other, later, pair) } else { Violation::of(store, other, pair) }
    }
}

/// What a run on store buffers does that no SC execution need do.
pub(crate) fn violations_of_run(log: &[Happened], model: MemoryModel) -> Vec<Violation> {
    if log.len() > LONGEST {
        return Vec::new();
    }
    let (acts, whose) = acts_of_run(log, model);
    suspects(&acts).into_iter().map(|suspect| suspect.violation(&whose)).collect()
}

/// What may be a violation in a run.
pub(super) fn suspects(acts: &[Act]) -> Vec<Suspect> {
    let mut suspects = Vec::new();
    let earliest = earliest_after(acts);
    for (store, act) in acts.iter().enumerate() {
        let Kind::Store(object) = act.kind else { continue };
        if earliest[store] >= act.time {
            continue;
        }
        let Some(later) = first_to_overtake(acts, store) else { continue };
        let loaded = if let Kind::Load(object) = acts[later].kind { Some(object) } else { None };
        for (other, between) in acts.iter().enumerate() {
            let is_between = between.thread != act.thread && (acts[later].time + 1..act.time).contains(&between.time);
            let Some((accessed, writes)) = between.kind.access().filter(|_| is_between) else { continue };
            if accessed == object && reads_its_own(acts, other).is_none() {
                suspects.push(Suspect { store, later, other, is_missed: false });
            }
            if loaded == Some(accessed) && writes {
                suspects.push(Suspect { store, later, other, is_missed: true });
            }
        }
    }
    suspects
}

/// The pending store of its own thread that serves a load, if one does.
pub(super) fn reads_its_own(acts: &[Act], load: usize) -> Option<usize> {
    let Act { thread, kind: Kind::Load(object), time, .. } = acts[load] else { return None };
    acts[..load].iter().rposition(|act| act.thread == thread && act.kind == Kind::Store(object) && act.time > time)
}

fn act(happened: &Happened, model: MemoryModel, time: usize) -> Act {
    let kind = Kind::of(happened.operation, happened.written.is_some(), model);
    let Happened { thread, place, what, .. } = *happened;
    Act { thread, place, what, kind, late: false, time }
}

/// The delays of the execution in which the last operation of an SC execution comes before the write `write`. `None` if
/// there is no such execution.
pub(crate) fn of_finding(execution: &[Happened], write: usize, model: MemoryModel) -> Option<Delays> {
    if execution.len() > LONGEST {
        return None;
    }
    let access = execution.len() - 1;
    let mut acts: Vec<Act> = execution.iter().enumerate().map(|(time, happened)| act(happened, model, time)).collect();
    let mut follows = Follows::new(model, &acts);
    for (index, act) in acts[..access].iter_mut().enumerate() {
        let follows_from_it = index == write || follows.includes(act);
        follows.note(act, follows_from_it);
        if follows_from_it {
            act.time += execution.len();
        }
    }
    if follows.includes_by_its_thread(&acts[access]) {
        return None;
    }
    let own = first_to_overtake(&acts, write).map(|later| (write, later));
    let (clause, pair) = clause(&mut acts, model);
    Some(Delays { clause, pair: own.or(pair).map(|pair| parties(execution, pair)) })
}

/// What comes before a store although its thread does it later.
fn first_to_overtake(acts: &[Act], store: usize) -> Option<usize> {
    let Act { thread, time, kind: Kind::Store(_), .. } = acts[store] else { return None };
    let overtakes = |later: &usize| {
        let act = &acts[*later];
        act.thread == thread && act.time < time && act.kind.access().is_some()
    };
    (store + 1..acts.len()).find(overtakes)
}

/// Of each operation: when the first of the accesses takes effect that come after it in its thread.
fn earliest_after(acts: &[Act]) -> Vec<usize> {
    let threads = acts.iter().map(|act| act.thread as usize + 1).max().unwrap_or(0);
    let mut earliest_of = vec![usize::MAX; threads];
    let mut earliest = vec![usize::MAX; acts.len()];
    for (index, act) in acts.iter().enumerate().rev() {
        let known = &mut earliest_of[act.thread as usize];
        earliest[index] = *known;
        if act.kind.access().is_some() {
            *known = act.time.min(*known);
        }
    }
    earliest
}

/// What follows from a write, by the relation of the memory model.
struct Follows {
    model: MemoryModel,
    /// By thread.
    threads: Vec<Following>,
    /// By object.
    objects: Vec<Touched>,
}

/// What follows in a thread.
#[derive(Default, Clone)]
struct Following {
    /// All of its further operations do.
    strictly: bool,
    /// The objects of pending stores that do.
    stores: Vec<u32>,
    /// There was a store fence behind the first of them.
    fenced: bool,
}

/// What was done to an object.
#[derive(Default, Clone, Copy)]
struct Touched {
    /// An operation that follows has written it.
    written: bool,
    /// An operation that follows has accessed it.
    accessed: bool,
    /// Who wrote it last, and was it a plain store?
    last: Option<(u32, bool)>,
}

impl Follows {
    fn new(model: MemoryModel, acts: &[Act]) -> Self {
        let threads = acts.iter().map(|act| act.thread + 1).max().unwrap_or(0);
        let objects = acts.iter().filter_map(|act| act.kind.access()).map(|(object, _)| object + 1).max().unwrap_or(0);
        Self {
            model,
            threads: vec![Following::default(); threads as usize],
            objects: vec![Touched::default(); objects as usize],
        }
    }

    fn includes(&self, act: &Act) -> bool {
        self.includes_by_its_thread(act) || self.includes_by_conflict(act)
    }

    fn includes_by_its_thread(&self, act: &Act) -> bool {
        let Following { strictly, stores, fenced } = &self.threads[act.thread as usize];
        if *strictly || stores.is_empty() {
            return *strictly;
        }
        match act.kind {
            Kind::Load(_) | Kind::Local | Kind::StoreFence => false,
            Kind::Barrier(_) => true,
            Kind::Store(object) => self.model != MemoryModel::Pso || *fenced || stores.contains(&object),
            Kind::LooseAtomic { object, .. } => stores.contains(&object),
        }
    }

    fn includes_by_conflict(&self, act: &Act) -> bool {
        let Some((object, writes)) = act.kind.access() else { return false };
        let Touched { written, accessed, last } = self.objects[object as usize];
        if writes {
            return accessed;
        }
        // A load that is served by the own pending store waits for nobody.
        let is_own = matches!(act.kind, Kind::Load(_)) && last == Some((act.thread, true));
        !is_own && written
    }

    fn note(&mut self, act: &Act, follows: bool) {
        let Act { thread, kind, .. } = *act;
        let own = &mut self.threads[thread as usize];
        own.fenced |= kind == Kind::StoreFence && !own.stores.is_empty();
        if let Some((object, writes)) = kind.access() {
            let touched = &mut self.objects[object as usize];
            if writes {
                touched.last = Some((thread, matches!(kind, Kind::Store(_))));
            }
            touched.accessed |= follows;
            touched.written |= follows && writes;
        }
        match kind {
            Kind::Store(object) if follows => {
                if !own.stores.contains(&object) {
                    own.stores.push(object);
                }
            }
            _ => own.strictly |= follows,
        }
    }
}

/// The clause of an execution whose operations have their times, and a store that is delayed with what comes before it.
fn clause(acts: &mut [Act], model: MemoryModel) -> (Vec<Candidate>, Option<(usize, usize)>) {
    let mut clause = BTreeSet::new();
    let mut pair = None;
    let threads = acts.iter().map(|act| act.thread + 1).max().unwrap_or(0);
    let earliest = earliest_after(acts);
    let mut own = Vec::new();
    for thread in 0..threads {
        own.clear();
        own.extend((0..acts.len()).filter(|&index| acts[index].thread == thread));
        if let Some(found) = mark_late(acts, &own, &earliest) {
            pair = pair.or(Some(found));
            changes(acts, &own, model, &mut clause);
        }
    }
    (clause.into_iter().collect(), pair)
}

/// Marks the stores that something later in the source overtakes; the last of them with what overtakes it first.
fn mark_late(acts: &mut [Act], own: &[usize], earliest: &[usize]) -> Option<(usize, usize)> {
    let mut pair = None;
    for (position, &index) in own.iter().enumerate() {
        if !matches!(acts[index].kind, Kind::Store(_)) || earliest[index] >= acts[index].time {
            continue;
        }
        let time = acts[index].time;
        let overtakes = |&&later: &&usize| acts[later].time < time && acts[later].kind.access().is_some();
        if let Some(&later) = own[position + 1..].iter().find(overtakes) {
            acts[index].late = true;
            pair = Some((index, later));
        }
    }
    pair
}

/// The changes that order a late store before something that overtakes it, for one thread.
fn changes(acts: &[Act], own: &[usize], model: MemoryModel, into: &mut BTreeSet<Candidate>) {
    let crossings = Crossings::new(acts, own);
    for (position, &index) in own.iter().enumerate() {
        let Act { place, what, kind, .. } = acts[index];
        // A panic poisons, and nothing can be put there.
        if what.starts_with(POISONS) {
            continue;
        }
        let candidate = |change| Candidate::new(change, place, what);
        // A barrier before this operation, one after it, one for stores alone.
        let (before, after) = (crossings.any_at(position), crossings.any_at(position + 1));
        match kind {
            Kind::Load(_) if before => {
                into.insert(candidate(Change::FenceBefore));
            }
            Kind::Store(_) => {
                if before || after {
                    into.insert(candidate(Change::SeqCst));
                }
                if model == MemoryModel::Pso && crossings.of_stores_at(position) {
                    into.insert(candidate(Change::Release));
                }
            }
            Kind::LooseAtomic { .. } if before => {
                into.extend([Change::Release, Change::AcqRel].map(candidate));
            }
            _ => {}
        }
    }
}

/// Where something in a thread overtakes a store: by positions between its operations.
struct Crossings {
    /// When the last of the stores before that are late takes effect; 0 if there is none.
    late: Vec<usize>,
    /// When the first of the accesses behind does, and the first of the stores.
    accesses: Vec<usize>,
    stores: Vec<usize>,
}

impl Crossings {
    fn new(acts: &[Act], own: &[usize]) -> Self {
        let count = own.len() + 1;
        let mut new = Self { late: vec![0; count], accesses: vec![usize::MAX; count], stores: vec![usize::MAX; count] };
        for (position, &index) in own.iter().enumerate() {
            let late = if acts[index].late { acts[index].time } else { 0 };
            new.late[position + 1] = new.late[position].max(late);
        }
        for (position, &index) in own.iter().enumerate().rev() {
            let Act { kind, time, .. } = acts[index];
            let first = |counts: bool, known: usize| if counts { known.min(time) } else { known };
            new.accesses[position] = first(kind.access().is_some(), new.accesses[position + 1]);
            new.stores[position] = first(matches!(kind, Kind::Store(_)), new.stores[position + 1]);
        }
        new
    }

    /// Is there a late store before this position, and something behind it that overtakes the store?
    fn any_at(&self, position: usize) -> bool {
        self.accesses[position] < self.late[position]
    }

    /// The same for stores that do.
    fn of_stores_at(&self, position: usize) -> bool {
        self.stores[position] < self.late[position]
    }
}
