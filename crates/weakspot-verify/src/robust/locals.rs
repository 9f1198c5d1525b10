//! The thread automata as the attack needs them: critical blocks are left at once, and a thread that fails or has
//! played its part stops for good.

use rustc_hash::FxHashSet;
use weakspot_model::ids::{CondvarId, Pc, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::local::Pause;
use weakspot_model::machine::Phase;

use crate::threads::{LocalId, Successor, ThreadAutomaton};

/// Where a thread that takes no further part rests.
pub const STOPPED: LocalId = LocalId(u32::MAX);

/// Where a thread goes whose `assume` is false: there is no such execution.
pub const PRUNED: LocalId = LocalId(u32::MAX - 1);

/// The automata of all threads.
pub struct Locals<'p> {
    threads: Vec<ThreadAutomaton<'p>>,
}

impl<'p> Locals<'p> {
    /// No local states yet.
    pub fn new(program: &'p Program) -> Self {
        Self { threads: program.thread_ids().map(|thread| ThreadAutomaton::new(program, thread)).collect() }
    }

    /// The first pause of a thread.
    pub fn start(&mut self, thread: ThreadId) -> LocalId {
        let first = self.threads[thread.index()].start();
        self.settle(thread, first)
    }

    /// The next pause, given the result of this one.
    pub fn resume(&mut self, thread: ThreadId, from: LocalId, result: i64) -> LocalId {
        let next = self.threads[thread.index()].resume(from, result);
        self.settle(thread, next)
    }

    /// Leaves critical blocks until something else comes; a thread that does nothing but enter and leave them stops.
    fn settle(&mut self, thread: ThreadId, mut successor: Successor) -> LocalId {
        let mut left = FxHashSet::default();
        loop {
            match successor {
                Successor::Paused { to, .. } if self.pause(thread, to) != Pause::LeaveCritical => return to,
                Successor::Paused { to, .. } if left.insert(to) => {
                    successor = self.threads[thread.index()].resume(to, 0);
                }
                Successor::Paused { .. } | Successor::Failed(_) => return STOPPED,
                Successor::Pruned => return PRUNED,
            }
        }
    }

    /// What a thread is about to do.
    pub fn pause(&self, thread: ThreadId, id: LocalId) -> Pause {
        if id == STOPPED { Pause::End } else { self.threads[thread.index()].pause(id) }
    }

    /// The values of its registers; none if it has stopped.
    pub fn registers(&self, thread: ThreadId, id: LocalId) -> &[i64] {
        if id == STOPPED { &[] } else { &self.threads[thread.index()].local(id).state.registers }
    }

    /// Running, or where in a `wait`.
    pub fn phase(&self, thread: ThreadId, id: LocalId) -> Phase {
        if id == STOPPED { Phase::Running } else { self.threads[thread.index()].local(id).phase }
    }

    /// The instruction it rests at.
    pub fn pc(&self, thread: ThreadId, id: LocalId) -> Pc {
        self.threads[thread.index()].pc(id)
    }

    /// Falls asleep in its `wait`.
    pub fn sleep(&mut self, thread: ThreadId, id: LocalId, condvar: CondvarId) -> LocalId {
        self.threads[thread.index()].in_phase(id, Phase::Waiting(condvar))
    }

    /// Wakes up in its `wait`, to get the mutex back.
    pub fn wake(&mut self, thread: ThreadId, id: LocalId) -> LocalId {
        let Pause::Wait { mutex, .. } = self.pause(thread, id) else {
            unreachable!("invariant: a waiting thread rests at its wait");
        };
        self.threads[thread.index()].in_phase(id, Phase::Reacquiring(mutex))
    }

    /// Bytes held by the tables.
    pub fn bytes(&self) -> u64 {
        self.threads.iter().map(|thread| thread.bytes() as u64).sum()
    }
}
