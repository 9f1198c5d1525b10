//! The operational reference machine: LANGUAGE.md's memory semantics, one action at a time.
//!
//! This is the machine that *defines* the models. It is written to be read, not to be fast: engines have their own
//! state representations, but every witness they produce is replayed here ([`crate::replay`]), and the brute-force
//! oracles of the tests enumerate this machine.
//!
//! | LANGUAGE.md | here |
//! |---|---|
//! | a load takes the youngest own buffered store, else memory | `Machine::perform`, [`StoreBuffer::forward`] |
//! | an atomic and a full fence wait for the own buffer | [`Machine::is_ready`] |
//! | a buffered store may commit when … | [`StoreBuffer::committable`] |
//! | `lock`, `unlock`, `wait`, `notify` act when the own buffer is empty | [`Machine::is_ready`] |
//! | a thread that has ended keeps draining its buffer | [`Machine::enabled`] does not ask whether it has ended |
//! | deadlock | [`Machine::rest`] |

use crate::buffer::{MemoryModel, StoreBuffer};
use crate::ids::{CondvarId, Loc, MutexId, Site, ThreadId};
use crate::ir::{FenceKind, Program};
use crate::local::{self, Advance, LocalState, Pause};
use crate::problem::{Fault, FaultKind, Problem, ProblemKind};

/// What the scheduler and the memory system may do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// A thread performs the event (or choice) it rests at.
    Step {
        /// Which thread.
        thread: ThreadId,
        /// The value taken by a `choose`; the thread woken by a `notify_one` that has several to wake; else 0.
        choice: i64,
    },
    /// The oldest pending store of a thread to a location becomes visible.
    Commit {
        /// Whose store.
        thread: ThreadId,
        /// Which location.
        loc: Loc,
    },
    /// A waiting thread wakes without a notification ([`Machine::spurious_wakeups`]).
    Wake {
        /// Which thread.
        thread: ThreadId,
    },
}

impl Action {
    /// The thread it belongs to.
    pub fn thread(self) -> ThreadId {
        match self {
            Self::Step { thread, .. } | Self::Commit { thread, .. } | Self::Wake { thread } => thread,
        }
    }
}

/// What an action did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each field is the location, value or object of that effect")]
pub enum Effect {
    /// Read a value, from the own buffer (`forwarded`) or from memory.
    Load { loc: Loc, value: i64, forwarded: bool },
    /// Wrote a value, into the own buffer (`buffered`) or to memory at once.
    Store { loc: Loc, value: i64, buffered: bool },
    /// Read and perhaps wrote memory at once.
    Rmw { loc: Loc, read: i64, written: Option<i64> },
    /// Passed a fence.
    Fence(FenceKind),
    /// Acquired a mutex.
    Lock(MutexId),
    /// Released a mutex.
    Unlock(MutexId),
    /// Released the mutex and began to wait.
    Wait { condvar: CondvarId, mutex: MutexId },
    /// Re-acquired the mutex after a notification.
    Reacquire { mutex: MutexId },
    /// Woke this many waiters; `one`: of all that there were, only this one.
    Notify { condvar: CondvarId, woken: u32, one: Option<ThreadId> },
    /// Chose a value.
    Choose { value: i64 },
    /// Left a critical block.
    LeaveCritical,
    /// A pending store became visible.
    Commit { loc: Loc, value: i64 },
    /// Woke without a notification.
    SpuriousWake { condvar: CondvarId },
}

/// Is a thread running, or asleep in a `wait`?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Rests at its pause.
    Running,
    /// Inside `wait`, not notified yet.
    Waiting(CondvarId),
    /// Inside `wait`, notified, wants the mutex back.
    Reacquiring(MutexId),
}

/// One thread of a machine state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ThreadState {
    /// Program counter and registers.
    pub local: LocalState,
    /// What it is about to do; a function of `local`.
    pub pause: Pause,
    /// Running or asleep.
    pub phase: Phase,
    /// Its pending stores.
    pub buffer: StoreBuffer,
}

/// A state of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// One value for each location.
    pub memory: Vec<i64>,
    /// The threads.
    pub threads: Vec<ThreadState>,
    /// Who holds each mutex.
    pub owners: Vec<Option<ThreadId>>,
}

/// How an action (or the start) came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The execution goes on.
    Continues,
    /// The execution ends here with a problem.
    Failed(Problem),
    /// A false `assume`: not an execution.
    Pruned,
}

/// What a state without enabled actions is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rest {
    /// Every thread has ended, every buffer is empty, and the `final` block holds.
    Finished,
    /// The `final` block assumes something false: not an execution.
    Pruned,
    /// The `final` block fails, or it is a deadlock.
    Failed(Problem),
    /// A thread spins without events for ever: not a deadlock, never finished.
    Spinning,
}

/// A program under a memory model.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'p> {
    /// The program.
    pub program: &'p Program,
    /// The model.
    pub model: MemoryModel,
    /// May a waiting thread wake without a notification?
    pub spurious_wakeups: bool,
}

impl<'p> Machine<'p> {
    /// The machine without spurious wake-ups.
    pub fn new(program: &'p Program, model: MemoryModel) -> Self {
        Self { program, model, spurious_wakeups: false }
    }

    /// Runs every thread to its first pause.
    pub fn start(&self) -> (State, Outcome) {
        let mut state = State {
            memory: self.program.initial_memory(),
            threads: Vec::with_capacity(self.program.threads.len()),
            owners: vec![None; self.program.mutexes.len()],
        };
        let mut outcome = Outcome::Continues;
        for (id, thread) in self.program.thread_ids().zip(&self.program.threads) {
            let (local, advance) = local::start(thread, &self.program.locations);
            state.threads.push(ThreadState {
                local,
                pause: Pause::End,
                phase: Phase::Running,
                buffer: StoreBuffer::new(),
            });
            let here = self.settle(&mut state, id, advance);
            if outcome == Outcome::Continues {
                outcome = here;
            }
        }
        (state, outcome)
    }

    /// Everything that may happen next, threads in order, each thread's step before its commits.
    pub fn enabled(&self, state: &State) -> Vec<Action> {
        let mut actions = Vec::new();
        for thread in self.program.thread_ids() {
            self.push_steps(state, thread, &mut actions);
            let buffer = &state.threads[thread.index()].buffer;
            actions.extend(buffer.committable(self.model).map(|loc| Action::Commit { thread, loc }));
        }
        actions
    }

    /// May this happen next? The same as finding it in [`Machine::enabled`], without looking at the other threads.
    pub fn allows(&self, state: &State, action: Action) -> bool {
        let Some(this) = state.threads.get(action.thread().index()) else { return false };
        if let Action::Commit { loc, .. } = action {
            return this.buffer.committable(self.model).any(|committable| committable == loc);
        }
        let mut actions = Vec::new();
        self.push_steps(state, action.thread(), &mut actions);
        actions.contains(&action)
    }

    fn push_steps(&self, state: &State, thread: ThreadId, actions: &mut Vec<Action>) {
        let this = &state.threads[thread.index()];
        match this.phase {
            Phase::Waiting(_) if self.spurious_wakeups => actions.push(Action::Wake { thread }),
            Phase::Waiting(_) => {}
            Phase::Reacquiring(mutex) => {
                if state.owners[mutex.index()].is_none() {
                    actions.push(Action::Step { thread, choice: 0 });
                }
            }
            Phase::Running if !self.is_ready(state, thread) => {}
            Phase::Running => match this.pause {
                Pause::Choose { lo, hi } => {
                    actions.extend((lo..=hi).map(|choice| Action::Step { thread, choice }));
                }
                Pause::Notify { condvar, all: false } => {
                    let before = actions.len();
                    actions.extend(state.waiters(condvar).map(|w| Action::Step { thread, choice: i64::from(w.0) }));
                    if actions.len() == before {
                        actions.push(Action::Step { thread, choice: 0 });
                    }
                }
                _ => actions.push(Action::Step { thread, choice: 0 }),
            },
        }
    }

    /// May the event a running thread rests at happen now?
    pub fn is_ready(&self, state: &State, thread: ThreadId) -> bool {
        let this = &state.threads[thread.index()];
        match this.pause {
            Pause::Load { .. } | Pause::Store { .. } | Pause::Choose { .. } | Pause::LeaveCritical => true,
            Pause::Fence(FenceKind::StoreStore) => true,
            Pause::Rmw { loc, drains_all: false, .. } if self.model == MemoryModel::Pso => !this.buffer.holds(loc),
            Pause::Rmw { .. } | Pause::Fence(_) | Pause::Unlock(_) | Pause::Wait { .. } | Pause::Notify { .. } => {
                this.buffer.is_empty()
            }
            Pause::Lock(mutex) => this.buffer.is_empty() && state.owners[mutex.index()].is_none(),
            Pause::Spin | Pause::End | Pause::ThreadRegister { .. } => false,
        }
    }

    /// Performs an enabled action. The effect is `None` only where the action itself failed.
    pub fn apply(&self, state: &mut State, action: Action) -> (Option<Effect>, Outcome) {
        match action {
            Action::Commit { thread, loc } => {
                let value = state.threads[thread.index()]
                    .buffer
                    .commit(loc)
                    .expect("invariant: only committable stores are committed");
                state.memory[loc.index()] = value;
                (Some(Effect::Commit { loc, value }), Outcome::Continues)
            }
            Action::Wake { thread } => {
                let condvar = state.wake(thread);
                (Some(Effect::SpuriousWake { condvar }), Outcome::Continues)
            }
            Action::Step { thread, choice } => match self.perform(state, thread, choice) {
                Ok((effect, None)) => (Some(effect), Outcome::Continues),
                Ok((effect, Some(result))) => {
                    let this = &mut state.threads[thread.index()];
                    let code = &self.program.threads[thread.index()];
                    let advance = local::resume(code, &self.program.locations, &mut this.local, result);
                    (Some(effect), self.settle(state, thread, advance))
                }
                Err(kind) => {
                    let pc = state.threads[thread.index()].local.pc;
                    (None, Outcome::Failed(Fault { pc, kind }.describe(self.program, thread)))
                }
            },
        }
    }

    /// Acts on memory, buffer and locks. Gives the effect and the result to resume with; no result: stay at the pause.
    fn perform(&self, state: &mut State, id: ThreadId, choice: i64) -> Result<(Effect, Option<i64>), FaultKind> {
        let State { memory, threads, owners } = state;
        let this = &mut threads[id.index()];
        if let Phase::Reacquiring(mutex) = this.phase {
            owners[mutex.index()] = Some(id);
            this.phase = Phase::Running;
            return Ok((Effect::Reacquire { mutex }, Some(0)));
        }
        let (effect, result) = match this.pause {
            Pause::Load { loc } => {
                let own = this.buffer.forward(loc);
                let value = own.unwrap_or(memory[loc.index()]);
                (Effect::Load { loc, value, forwarded: own.is_some() }, value)
            }
            Pause::Store { loc, value } => {
                let buffered = self.model != MemoryModel::Sc;
                if buffered {
                    this.buffer.store(self.model, loc, value);
                } else {
                    memory[loc.index()] = value;
                }
                (Effect::Store { loc, value, buffered }, 0)
            }
            Pause::Rmw { loc, op, .. } => {
                let read = memory[loc.index()];
                let (result, written) = local::rmw(op, read, loc, &self.program.locations)?;
                if let Some(value) = written {
                    memory[loc.index()] = value;
                }
                (Effect::Rmw { loc, read, written }, result)
            }
            Pause::Fence(kind) => {
                if kind == FenceKind::StoreStore {
                    this.buffer.fence_stores(self.model);
                }
                (Effect::Fence(kind), 0)
            }
            Pause::Lock(mutex) => {
                owners[mutex.index()] = Some(id);
                (Effect::Lock(mutex), 0)
            }
            Pause::Unlock(mutex) => {
                release(owners, mutex, id)?;
                (Effect::Unlock(mutex), 0)
            }
            Pause::Wait { condvar, mutex } => {
                release(owners, mutex, id)?;
                this.phase = Phase::Waiting(condvar);
                return Ok((Effect::Wait { condvar, mutex }, None));
            }
            Pause::Notify { condvar, all } => {
                let woken = state.notify(condvar, all, choice);
                let one = woken.first().copied().filter(|_| !all);
                (Effect::Notify { condvar, woken: woken.len() as u32, one }, 0)
            }
            Pause::Choose { .. } => (Effect::Choose { value: choice }, choice),
            Pause::LeaveCritical => (Effect::LeaveCritical, 0),
            Pause::Spin | Pause::End | Pause::ThreadRegister { .. } => {
                unreachable!("invariant: only enabled actions are performed")
            }
        };
        Ok((effect, Some(result)))
    }

    /// Stores the new pause of a thread that has run on, and checks mutual exclusion.
    fn settle(&self, state: &mut State, id: ThreadId, advance: Result<Advance, Fault>) -> Outcome {
        match advance {
            Err(fault) => Outcome::Failed(fault.describe(self.program, id)),
            Ok(Advance::Pruned) => Outcome::Pruned,
            Ok(Advance::Paused { pause, .. }) => {
                state.threads[id.index()].pause = pause;
                match self.intruder(state, id) {
                    Some(other) => Outcome::Failed(self.mutual_exclusion(state, id, other)),
                    None => Outcome::Continues,
                }
            }
        }
    }

    /// Is the thread inside a critical block?
    pub fn is_inside(&self, state: &State, id: ThreadId) -> bool {
        let code = &self.program.threads[id.index()];
        code.critical[state.threads[id.index()].local.pc.index()]
    }

    /// If the thread is inside a critical block: another one that is, too.
    fn intruder(&self, state: &State, id: ThreadId) -> Option<ThreadId> {
        if !self.is_inside(state, id) {
            return None;
        }
        (0..state.threads.len()).map(ThreadId::new).find(|&other| other != id && self.is_inside(state, other))
    }

    fn mutual_exclusion(&self, state: &State, id: ThreadId, other: ThreadId) -> Problem {
        let name = |thread: ThreadId| &self.program.threads[thread.index()].name;
        Problem {
            kind: ProblemKind::MutualExclusion,
            message: format!("`{}` and `{}` are both inside a critical block", name(other), name(id)),
            thread: Some(id),
            site: Some(self.site(state, id)),
        }
    }

    /// The source place of the instruction a thread rests at.
    pub fn site(&self, state: &State, id: ThreadId) -> Site {
        self.program.threads[id.index()].sites[state.threads[id.index()].local.pc.index()]
    }

    /// Judges a state in which [`Machine::enabled`] is empty.
    pub fn rest(&self, state: &State) -> Rest {
        let ended = |thread: &ThreadState| thread.pause == Pause::End;
        if state.threads.iter().all(ended) {
            return self.check_final(state);
        }
        if state.threads.iter().any(|thread| thread.pause == Pause::Spin) {
            return Rest::Spinning;
        }
        Rest::Failed(Problem {
            kind: ProblemKind::Deadlock,
            message: self.describe_deadlock(state),
            thread: None,
            site: None,
        })
    }

    fn check_final(&self, state: &State) -> Rest {
        let Some(block) = &self.program.final_block else { return Rest::Finished };
        let (mut local, mut advance) = local::start(block, &self.program.locations);
        loop {
            let pause = match advance {
                Err(fault) => return Rest::Failed(fault.describe_final(self.program)),
                Ok(Advance::Pruned) => return Rest::Pruned,
                Ok(Advance::Paused { pause, .. }) => pause,
            };
            let result = match pause {
                Pause::Load { loc } => state.memory[loc.index()],
                Pause::ThreadRegister { thread, register } => {
                    state.threads[thread.index()].local.registers[register.index()]
                }
                _ => return Rest::Finished,
            };
            advance = local::resume(block, &self.program.locations, &mut local, result);
        }
    }

    fn describe_deadlock(&self, state: &State) -> String {
        let stuck = self.program.thread_ids().filter_map(|id| self.describe_stuck(state, id));
        format!("deadlock: {}", stuck.collect::<Vec<_>>().join("; "))
    }

    fn describe_stuck(&self, state: &State, id: ThreadId) -> Option<String> {
        let this = &state.threads[id.index()];
        let name = &self.program.threads[id.index()].name;
        let held = |mutex: MutexId| {
            let mutex_name = &self.program.mutexes[mutex.index()];
            match state.owners[mutex.index()] {
                Some(owner) if owner == id => format!("`{name}` waits for mutex `{mutex_name}`, which it holds itself"),
                Some(owner) => {
                    let owner = &self.program.threads[owner.index()].name;
                    format!("`{name}` waits for mutex `{mutex_name}`, which `{owner}` holds")
                }
                None => format!("`{name}` waits for mutex `{mutex_name}`"),
            }
        };
        match (this.phase, this.pause) {
            (Phase::Waiting(condvar), _) => {
                Some(format!("`{name}` waits for a notification of `{}`", self.program.condvars[condvar.index()]))
            }
            (Phase::Reacquiring(mutex), _) | (Phase::Running, Pause::Lock(mutex)) => Some(held(mutex)),
            (Phase::Running, Pause::End) => None,
            (Phase::Running, _) => Some(format!("`{name}` cannot go on")),
        }
    }
}

impl State {
    /// The threads that wait for a notification of a condition variable.
    pub fn waiters(&self, condvar: CondvarId) -> impl Iterator<Item = ThreadId> + '_ {
        let waits = move |thread: &ThreadState| thread.phase == Phase::Waiting(condvar);
        self.threads.iter().enumerate().filter(move |(_, t)| waits(t)).map(|(index, _)| ThreadId::new(index))
    }

    fn notify(&mut self, condvar: CondvarId, all: bool, choice: i64) -> Vec<ThreadId> {
        let chosen = |waiter: &ThreadId| all || i64::from(waiter.0) == choice;
        let woken: Vec<ThreadId> = self.waiters(condvar).filter(chosen).collect();
        for &waiter in &woken {
            self.wake(waiter);
        }
        woken
    }

    fn wake(&mut self, id: ThreadId) -> CondvarId {
        let this = &mut self.threads[id.index()];
        let Pause::Wait { condvar, mutex } = this.pause else {
            unreachable!("invariant: a waiting thread rests at its wait");
        };
        this.phase = Phase::Reacquiring(mutex);
        condvar
    }
}

fn release(owners: &mut [Option<ThreadId>], mutex: MutexId, id: ThreadId) -> Result<(), FaultKind> {
    if owners[mutex.index()] != Some(id) {
        return Err(FaultKind::NotHolding { mutex });
    }
    owners[mutex.index()] = None;
    Ok(())
}
