//! What one thread can do, as far as memory, mutexes and its own buffer decide it.
//!
//! A step that leaves memory and mutexes alone and says nothing to other threads is one the thread takes *alone*; the
//! others are [`Act`]s. Under TSO every act needs an empty own buffer; under
//! PSO an atomic needs only that no own store to its location is pending; under SC a store is an act. What a thread sees of its own buffer is a
//! [`View`]: the youngest store to each location it may read, and whether the buffer is empty.

use rustc_hash::FxHashMap;
use weakspot_model::buffer::{MemoryModel, StoreBuffer};
use weakspot_model::ids::{CondvarId, Loc, MutexId, ThreadId};
use weakspot_model::ir::{FenceKind, Instr, Place, Program, Thread};
use weakspot_model::local::{self, Pause};
use weakspot_model::machine::{Action, Machine, Phase, State, ThreadState};

use super::super::automaton::{Configuration, Letter, Resting, Solo, SoloStep};
use crate::intern::Interner;
use crate::threads::{LocalId, Successor, ThreadAutomaton};

/// What all threads share: memory and the owners of the mutexes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shared {
    pub(super) memory: Box<[i64]>,
    pub(super) owners: Box<[Option<ThreadId>]>,
}

/// What a thread sees of its own buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct View {
    /// The youngest store to each location the thread may read.
    last: Box<[Option<i64>]>,
    empty: bool,
    /// The youngest entry is a store-store fence.
    fenced: bool,
}

/// Something a thread does to others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Act {
    pub(super) thread: ThreadId,
    pub(super) from: LocalId,
    pub(super) to: LocalId,
    pub(super) choice: i64,
    pub(super) shared: Shared,
    pub(super) wakes: Wakes,
    /// It needs no pending stores to this location; if there is none, no pending stores at all.
    pub(super) waits_for: Option<Loc>,
}

/// Who is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Wakes {
    /// The act is no notification.
    Nobody,
    /// Whoever waits.
    All(CondvarId),
    /// This thread, which waits.
    One(CondvarId, ThreadId),
    /// Nobody waits.
    Nothing(CondvarId),
}

/// What can come of resuming a thread.
pub(super) enum Reaction {
    Solo(SoloStep),
    Act(Act),
    /// It breaks the specification.
    Fails {
        choice: i64,
    },
}

/// The threads of a program.
pub(super) struct Threads<'p> {
    pub(super) machine: Machine<'p>,
    automata: Vec<ThreadAutomaton<'p>>,
    /// The locations each thread may read, ascending.
    loaded: Vec<Vec<Loc>>,
    views: Interner<View>,
    reads: FxHashMap<(ThreadId, u32, Letter), u32>,
}

impl<'p> Threads<'p> {
    pub(super) fn new(machine: Machine<'p>) -> Self {
        let program = machine.program;
        Self {
            machine,
            automata: program.thread_ids().map(|thread| ThreadAutomaton::new(program, thread)).collect(),
            loaded: program.threads.iter().map(loaded).collect(),
            views: Interner::new(),
            reads: FxHashMap::default(),
        }
    }

    pub(super) fn program(&self) -> &'p Program {
        self.machine.program
    }

    /// Where the threads rest first. Only for programs that start without a problem.
    pub(super) fn start(&mut self) -> (Shared, Vec<LocalId>) {
        let shared = Shared {
            memory: self.program().initial_memory().into(),
            owners: vec![None; self.program().mutexes.len()].into(),
        };
        let locals = self.automata.iter_mut().map(|automaton| match automaton.start() {
            Successor::Paused { to, .. } => to,
            _ => unreachable!("invariant: the machine has started this program without a problem"),
        });
        (shared, locals.collect())
    }

    pub(super) fn is_inside(&self, thread: ThreadId, local: LocalId) -> bool {
        self.automata[thread.index()].is_inside(local)
    }

    pub(super) fn has_critical_blocks(&self) -> bool {
        self.program().threads.iter().any(|thread| thread.critical.contains(&true))
    }

    pub(super) fn bytes(&self) -> usize {
        let view = size_of::<View>() + self.loaded.iter().map(Vec::len).max().unwrap_or(0) * size_of::<Option<i64>>();
        self.automata.iter().map(ThreadAutomaton::bytes).sum::<usize>()
            + self.views.len() * view
            + self.reads.capacity() * size_of::<((ThreadId, u32, Letter), u32)>()
    }

    /// One thread, alone.
    pub(super) fn alone<'a>(&'a mut self, thread: ThreadId, shared: &'a Shared) -> Alone<'a, 'p> {
        Alone { threads: self, thread, shared, fails: Vec::new(), acts: Vec::new() }
    }

    /// The view of an empty buffer.
    pub(super) fn empty_view(&mut self, thread: ThreadId) -> u32 {
        let last = vec![None; self.loaded[thread.index()].len()].into();
        self.views.intern(&View { last, empty: true, fenced: false })
    }

    fn view_after(&mut self, thread: ThreadId, view: u32, letter: Letter) -> u32 {
        if let Some(&known) = self.reads.get(&(thread, view, letter)) {
            return known;
        }
        let mut next = self.views.get(view).clone();
        next.empty = false;
        next.fenced = letter == Letter::Fence;
        if let Letter::Store(loc, value) = letter
            && let Ok(at) = self.loaded[thread.index()].binary_search(&loc)
        {
            next.last[at] = Some(value);
        }
        let next = self.views.intern(&next);
        self.reads.insert((thread, view, letter), next);
        next
    }

    /// The value of the youngest own store to a location, if one is pending.
    fn forwarded(&self, thread: ThreadId, view: u32, loc: Loc) -> Option<i64> {
        let at = self.loaded[thread.index()].binary_search(&loc).expect("invariant: what is read is known");
        self.views.get(view).last[at]
    }

    /// Everything a thread can do.
    pub(super) fn reactions(&mut self, thread: ThreadId, shared: &Shared, view: u32, local: LocalId) -> Vec<Reaction> {
        let &crate::threads::Local { pause, phase, .. } = self.automata[thread.index()].local(local);
        let empty = self.views.get(view).empty;
        let free = |mutex: MutexId| shared.owners[mutex.index()].is_none();
        let owns = |mutex: MutexId| shared.owners[mutex.index()] == Some(thread);
        let with_owner = |mutex: MutexId, owner: Option<ThreadId>| {
            let mut shared = shared.clone();
            shared.owners[mutex.index()] = owner;
            shared
        };
        match (phase, pause) {
            (Phase::Waiting(_), Pause::Wait { mutex, .. }) if self.machine.spurious_wakeups => {
                let to = self.automata[thread.index()].in_phase(local, Phase::Reacquiring(mutex));
                vec![Reaction::Solo(SoloStep { append: None, to, choice: 0, wakes: true })]
            }
            (Phase::Waiting(_), _) => Vec::new(),
            (Phase::Reacquiring(mutex), _) if free(mutex) && empty => {
                let running = self.automata[thread.index()].in_phase(local, Phase::Running);
                self.acts(thread, local, running, 0, with_owner(mutex, Some(thread)), Wakes::Nobody)
            }
            (Phase::Reacquiring(_), _) => Vec::new(),
            (_, Pause::Load { loc }) => {
                let value = self.forwarded(thread, view, loc).unwrap_or(shared.memory[loc.index()]);
                self.solo(thread, local, value, None)
            }
            (_, Pause::Store { loc, value }) if self.machine.model == MemoryModel::Sc => {
                let mut shared = shared.clone();
                if std::mem::replace(&mut shared.memory[loc.index()], value) == value {
                    return self.solo(thread, local, 0, None);
                }
                self.acts(thread, local, local, 0, shared, Wakes::Nobody)
            }
            (_, Pause::Store { loc, value }) => self.solo(thread, local, 0, Some(Letter::Store(loc, value))),
            (_, Pause::Fence(FenceKind::StoreStore)) => {
                let View { empty, fenced, .. } = *self.views.get(view);
                let holds_back = self.machine.model == MemoryModel::Pso && !empty && !fenced;
                self.solo(thread, local, 0, holds_back.then_some(Letter::Fence))
            }
            (_, Pause::LeaveCritical) => self.solo(thread, local, 0, None),
            (_, Pause::Choose { lo, hi }) => {
                (lo..=hi).flat_map(|choice| self.solo(thread, local, choice, None)).collect()
            }
            (_, Pause::Spin | Pause::End | Pause::ThreadRegister { .. }) => Vec::new(),
            (_, Pause::Rmw { loc, op, drains_all }) => {
                let waits_for = (self.machine.model == MemoryModel::Pso && !drains_all).then_some(loc);
                let waits = if waits_for.is_some() { self.forwarded(thread, view, loc).is_some() } else { !empty };
                if waits {
                    return Vec::new();
                }
                let current = shared.memory[loc.index()];
                match local::rmw(op, current, loc, &self.program().locations) {
                    Err(_) => vec![Reaction::Fails { choice: 0 }],
                    Ok((result, None)) => self.solo(thread, local, result, None),
                    Ok((result, Some(written))) if written == current => self.solo(thread, local, result, None),
                    Ok((result, Some(written))) => {
                        let mut shared = shared.clone();
                        shared.memory[loc.index()] = written;
                        let mut reactions = self.acts(thread, local, local, result, shared, Wakes::Nobody);
                        for reaction in &mut reactions {
                            if let Reaction::Act(act) = reaction {
                                act.waits_for = waits_for;
                            }
                        }
                        reactions
                    }
                }
            }
            // What is left waits for the own buffer.
            _ if !empty => Vec::new(),
            (_, Pause::Fence(_)) => self.solo(thread, local, 0, None),
            (_, Pause::Lock(mutex)) if !free(mutex) => Vec::new(),
            (_, Pause::Lock(mutex)) => {
                self.acts(thread, local, local, 0, with_owner(mutex, Some(thread)), Wakes::Nobody)
            }
            (_, Pause::Unlock(mutex) | Pause::Wait { mutex, .. }) if !owns(mutex) => {
                vec![Reaction::Fails { choice: 0 }]
            }
            (_, Pause::Unlock(mutex)) => self.acts(thread, local, local, 0, with_owner(mutex, None), Wakes::Nobody),
            (_, Pause::Wait { condvar, mutex }) => {
                let to = self.automata[thread.index()].in_phase(local, Phase::Waiting(condvar));
                let shared = with_owner(mutex, None);
                vec![Reaction::Act(Act {
                    thread,
                    from: local,
                    to,
                    choice: 0,
                    shared,
                    wakes: Wakes::Nobody,
                    waits_for: None,
                })]
            }
            (_, Pause::Notify { condvar, all: true }) => {
                self.acts(thread, local, local, 0, shared.clone(), Wakes::All(condvar))
            }
            (_, Pause::Notify { condvar, all: false }) => {
                let mut reactions = self.acts(thread, local, local, 0, shared.clone(), Wakes::Nothing(condvar));
                for waiter in self.program().thread_ids().filter(|&other| other != thread) {
                    reactions.extend(self.acts(thread, local, local, 0, shared.clone(), Wakes::One(condvar, waiter)));
                }
                reactions
            }
        }
    }

    fn solo(&mut self, thread: ThreadId, from: LocalId, result: i64, append: Option<Letter>) -> Vec<Reaction> {
        let pause = self.automata[thread.index()].pause(from);
        let choice = if matches!(pause, Pause::Choose { .. }) { result } else { 0 };
        match self.automata[thread.index()].resume(from, result) {
            Successor::Paused { to, .. } => vec![Reaction::Solo(SoloStep { append, to, choice, wakes: false })],
            Successor::Pruned => Vec::new(),
            Successor::Failed(_) => vec![Reaction::Fails { choice }],
        }
    }

    /// An act after which the thread is resumed from `resumed`.
    fn acts(
        &mut self,
        thread: ThreadId,
        from: LocalId,
        resumed: LocalId,
        result: i64,
        shared: Shared,
        wakes: Wakes,
    ) -> Vec<Reaction> {
        let choice = if let Wakes::One(_, waiter) = wakes { i64::from(waiter.0) } else { 0 };
        match self.automata[thread.index()].resume(resumed, result) {
            Successor::Paused { to, .. } => {
                vec![Reaction::Act(Act { thread, from, to, choice, shared, wakes, waits_for: None })]
            }
            Successor::Pruned => Vec::new(),
            // Whom it wakes is for the configuration to say: `Threads::possible`.
            Successor::Failed(_) => vec![Reaction::Fails { choice: 0 }],
        }
    }

    /// Where an act leaves a thread that rests at `local`; `None` if the act is not possible then.
    pub(super) fn moved_by(&mut self, act: &Act, thread: ThreadId, local: LocalId) -> Option<LocalId> {
        if thread == act.thread {
            return (local == act.from).then_some(act.to);
        }
        let automaton = &mut self.automata[thread.index()];
        let phase = automaton.local(local).phase;
        let woken = match act.wakes {
            Wakes::Nobody => false,
            Wakes::All(condvar) => phase == Phase::Waiting(condvar),
            Wakes::Nothing(condvar) if phase == Phase::Waiting(condvar) => return None,
            Wakes::One(condvar, waiter) if waiter == thread && phase != Phase::Waiting(condvar) => return None,
            Wakes::One(_, waiter) => waiter == thread,
            Wakes::Nothing(_) => false,
        };
        match automaton.pause(local) {
            Pause::Wait { mutex, .. } if woken => Some(automaton.in_phase(local, Phase::Reacquiring(mutex))),
            _ => Some(local),
        }
    }

    /// Where a thread can have rested before an act that leaves it at `local`.
    pub(super) fn moved_from(&mut self, act: &Act, thread: ThreadId, local: LocalId) -> Vec<LocalId> {
        if thread == act.thread {
            return if local == act.to { vec![act.from] } else { Vec::new() };
        }
        let mut before = vec![local];
        if let Wakes::All(condvar) | Wakes::One(condvar, _) = act.wakes {
            before.push(self.automata[thread.index()].in_phase(local, Phase::Waiting(condvar)));
        }
        before.retain(|&from| self.moved_by(act, thread, from) == Some(local));
        before
    }

    /// How a thread with an empty buffer rests, if it can do nothing at all. (A step that is no execution, because an
    /// `assume` after it is false, is something.)
    pub(super) fn resting(&self, thread: ThreadId, shared: &Shared, local: LocalId) -> Option<Resting> {
        let local = self.automata[thread.index()].local(local);
        let held = |mutex: MutexId| shared.owners[mutex.index()].is_some();
        let stuck = match (local.phase, local.pause) {
            (Phase::Waiting(_), _) => !self.machine.spurious_wakeups,
            (Phase::Reacquiring(mutex), _) | (_, Pause::Lock(mutex)) => held(mutex),
            (_, Pause::Choose { lo, hi }) => lo > hi,
            (_, Pause::End) => return Some(Resting::Ended),
            (_, Pause::Spin) => return Some(Resting::Spinning),
            _ => false,
        };
        stuck.then_some(Resting::Stuck)
    }

    /// A failing action, in this configuration: a `notify_one` wakes a thread that waits, if there is one.
    pub(super) fn possible(&self, failing: Action, configuration: &Configuration) -> Action {
        let Action::Step { thread, .. } = failing else { return failing };
        let rests = |thread: ThreadId| self.automata[thread.index()].local(configuration.0[thread.index()].1);
        let Pause::Notify { condvar, all: false } = rests(thread).pause else { return failing };
        let waits = |&other: &ThreadId| rests(other).phase == Phase::Waiting(condvar);
        let woken = self.program().thread_ids().find(waits);
        Action::Step { thread, choice: woken.map_or(0, |woken| i64::from(woken.0)) }
    }

    /// The machine's state with all buffers empty.
    pub(super) fn concrete(&self, shared: &Shared, locals: &[LocalId]) -> State {
        let threads = locals.iter().zip(&self.automata).map(|(&local, automaton)| {
            let local = automaton.local(local);
            ThreadState {
                local: local.state.clone(),
                pause: local.pause,
                phase: local.phase,
                buffer: StoreBuffer::new(),
            }
        });
        State { threads: threads.collect(), memory: shared.memory.to_vec(), owners: shared.owners.to_vec() }
    }
}

/// One thread that runs alone.
pub(super) struct Alone<'a, 'p> {
    threads: &'a mut Threads<'p>,
    thread: ThreadId,
    shared: &'a Shared,
    /// Where it can fail: what it sees, where it rests, the choice.
    pub(super) fails: Vec<(u32, LocalId, i64)>,
    /// What it can do to others.
    pub(super) acts: Vec<Act>,
}

impl Solo for Alone<'_, '_> {
    fn start(&mut self) -> u32 {
        self.threads.empty_view(self.thread)
    }

    fn read(&mut self, view: u32, letter: Letter) -> u32 {
        self.threads.view_after(self.thread, view, letter)
    }

    fn steps(&mut self, view: u32, local: LocalId) -> Vec<SoloStep> {
        let mut steps = Vec::new();
        for reaction in self.threads.reactions(self.thread, self.shared, view, local) {
            match reaction {
                Reaction::Solo(step) => steps.push(step),
                Reaction::Fails { choice } => self.fails.push((view, local, choice)),
                Reaction::Act(act) => self.acts.push(act),
            }
        }
        steps
    }
}

/// The machine's action for a step a thread takes alone.
pub(super) fn action(thread: ThreadId, step: SoloStep) -> Action {
    if step.wakes { Action::Wake { thread } } else { Action::Step { thread, choice: step.choice } }
}

/// The locations a thread may read.
fn loaded(thread: &Thread) -> Vec<Loc> {
    let mut all = Vec::new();
    for instr in &thread.code {
        match *instr {
            Instr::Load { place: Place::Fixed(loc), .. } | Instr::Rmw { place: Place::Fixed(loc), .. } => all.push(loc),
            Instr::Load { place: Place::Indexed { base, len, .. }, .. }
            | Instr::Rmw { place: Place::Indexed { base, len, .. }, .. } => {
                all.extend((base.0..base.0 + len).map(Loc));
            }
            _ => {}
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}
