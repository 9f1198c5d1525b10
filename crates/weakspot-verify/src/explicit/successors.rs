//! What may happen next in a state: `Machine::enabled` and `Machine::apply` as table look-ups.
//!
//! Actions come in **processes**: the step of a thread (with all its choices) is one, each store it may commit is
//! another. [`expand`] walks through the processes of a state, threads in order, a thread's step before its commits,
//! and tells a [`Sink`] what each of them does. A search without reduction only wants the next states; the
//! partial-order reduction also listens to what processes touch and what they wait for.

use super::access::Accesses;
use super::config::{Config, Objects, Step, Target};
use super::tables::Tables;

/// What a process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// The event, choice or end of a critical block the thread rests at.
    Step,
    /// A wake-up without a notification.
    Wake,
    /// The oldest store to this cell becomes visible.
    Commit { cell: u32 },
}

/// What a process waits for that has nothing to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// Nothing: it will never do anything.
    Never,
    /// Any commit of its own thread.
    AnyCommit,
    /// All commits of its own thread.
    AllCommits,
    /// The commits of its own thread to a cell.
    CommitsOf { cell: u32 },
    /// The step of the thread that holds a mutex.
    Owner { thread: usize },
    /// A notification.
    Notification { condvar: u32 },
}

/// Listens to the processes of a state. Everything after [`Sink::process`] is about that process.
pub(crate) trait Sink<const W: usize> {
    /// A process begins.
    fn process(&mut self, thread: usize, role: Role);
    /// One of its actions leads to this state.
    fn successor(&mut self, state: &[u32; W], choice: i64, jumped_back: bool);
    /// One of its actions is a problem.
    fn failure(&mut self, choice: i64);
    /// One of its actions ends in a false `assume`.
    fn pruned(&mut self);
    /// Its actions access these objects.
    fn touches(&mut self, _accesses: Accesses) {}
    /// Its actions depend on its own thread's commits to a cell.
    fn forwards(&mut self, _cell: u32) {}
    /// It is a problem because other threads are inside critical blocks.
    fn intrudes(&mut self) {}
    /// It has no actions.
    fn waits(&mut self, _wait: Wait) {}
}

/// Tells `sink` everything that may happen in `state`.
pub(crate) fn expand<const W: usize, S: Sink<W>>(
    tables: &mut Tables<'_, '_>,
    state: &[u32; W],
    spurious_wakeups: bool,
    sink: &mut S,
) {
    tables.load(&state[..]);
    for thread in 0..tables.thread_count() {
        let &Config { step, commits, inside, .. } = tables.config(thread, state[thread + 1]);
        Expansion { tables, state, thread, inside, sink }.step(step, spurious_wakeups);
        for index in commits.start..commits.start + commits.len {
            let commit = tables.commit(thread, index);
            sink.process(thread, Role::Commit { cell: commit.cell });
            sink.touches(Accesses::writing(commit.cell));
            let mut next = *state;
            next[0] = tables.write(state[0], commit.cell, commit.value);
            next[thread + 1] = commit.to.config();
            sink.successor(&next, 0, false);
        }
    }
}

/// The step of one thread in one state.
struct Expansion<'a, 's, 'p, const W: usize, S> {
    tables: &'a mut Tables<'s, 'p>,
    state: &'a [u32; W],
    thread: usize,
    inside: bool,
    sink: &'a mut S,
}

impl<const W: usize, S: Sink<W>> Expansion<'_, '_, '_, W, S> {
    fn step(&mut self, step: Step, spurious_wakeups: bool) {
        let role = if matches!(step, Step::Asleep { .. }) { Role::Wake } else { Role::Step };
        self.sink.process(self.thread, role);
        let memory = self.state[0];
        match step {
            Step::Missing => unreachable!("invariant: configurations are loaded before they are expanded"),
            Step::Never => self.sink.waits(Wait::Never),
            Step::Full => self.sink.waits(Wait::AnyCommit),
            Step::Drain => self.sink.waits(Wait::AllCommits),
            Step::DrainCell { cell } => self.sink.waits(Wait::CommitsOf { cell }),
            Step::Local { to } => self.take(to, memory, 0, Accesses::NONE),
            Step::Forward { cell, to } => {
                self.sink.forwards(cell);
                self.take(to, memory, 0, Accesses::NONE);
            }
            Step::Choose { lo, targets } => {
                for index in 0..targets.len {
                    let slot = self.tables.choice(self.thread, targets.start + index);
                    self.take(slot.to, memory, lo + i64::from(index), Accesses::NONE);
                }
            }
            Step::Load { cell, slots } => {
                let value = self.tables.value(memory, cell);
                let config = self.state[self.thread + 1];
                let slot = self.tables.resolve(self.thread, config, cell, slots, value);
                self.take(slot.to, memory, 0, Accesses::reading(cell));
            }
            Step::Rmw { cell, slots } => {
                let value = self.tables.value(memory, cell);
                let config = self.state[self.thread + 1];
                let slot = self.tables.resolve(self.thread, config, cell, slots, value);
                if slot.written == super::config::Slot::NOTHING {
                    self.take(slot.to, memory, 0, Accesses::reading(cell));
                } else {
                    let memory = self.tables.write(memory, cell, slot.written);
                    self.take(slot.to, memory, 0, Accesses::reading(cell).with(Accesses::writing(cell)));
                }
            }
            Step::Write { cell, value, to } => {
                let memory = self.tables.write(memory, cell, value);
                self.take(to, memory, 0, Accesses::writing(cell));
            }
            Step::Lock { cell, mine, to } => match self.tables.value(memory, cell) {
                0 => {
                    let memory = self.tables.write(memory, cell, mine);
                    self.take(to, memory, 0, Accesses::writing(cell));
                }
                owner if owner == mine => self.sink.waits(Wait::Never),
                owner => self.sink.waits(Wait::Owner { thread: owner as usize - 1 }),
            },
            Step::Unlock { cell, mine, to } => {
                if self.tables.value(memory, cell) == mine {
                    let memory = self.tables.write(memory, cell, 0);
                    self.take(to, memory, 0, Accesses::NONE);
                } else {
                    self.sink.failure(0);
                }
            }
            Step::Wait { cell, mine, condvar, to } => {
                if self.tables.value(memory, cell) == mine {
                    let memory = self.tables.write(memory, cell, 0);
                    self.take(to, memory, 0, Accesses::reading(condvar));
                } else {
                    self.sink.failure(0);
                }
            }
            Step::Asleep { condvar, woken } if spurious_wakeups => {
                self.take(woken, memory, 0, Accesses::reading(condvar));
            }
            Step::Asleep { condvar, .. } => self.sink.waits(Wait::Notification { condvar }),
            Step::Notify { condvar, all, to } => self.notify(condvar, all, to),
        }
    }

    /// The thread goes to a configuration of its own, memory to another memory.
    fn take(&mut self, to: Target, memory: u32, choice: i64, accesses: Accesses) {
        let mut next = *self.state;
        next[0] = memory;
        self.arrive(to, next, choice, accesses);
    }

    fn arrive(&mut self, to: Target, mut next: [u32; W], choice: i64, mut accesses: Accesses) {
        if to.is_special() {
            self.sink.touches(accesses);
            if to == Target::PRUNED {
                self.sink.pruned();
            } else {
                self.sink.failure(choice);
            }
            return;
        }
        if to.is_inside() != self.inside {
            accesses.reads = accesses.reads.with(Objects::ENTRY);
        }
        self.sink.touches(accesses);
        if to.is_inside() && self.somebody_else_is_inside() {
            self.sink.intrudes();
            self.sink.failure(choice);
            return;
        }
        next[self.thread + 1] = to.config();
        self.sink.successor(&next, choice, to.jumped_back());
    }

    fn somebody_else_is_inside(&self) -> bool {
        let inside = |thread: usize| self.tables.config(thread, self.state[thread + 1]).inside;
        (0..self.tables.thread_count()).any(|thread| thread != self.thread && inside(thread))
    }

    fn notify(&mut self, condvar: u32, all: bool, to: Target) {
        let accesses = Accesses::writing(condvar);
        let mut everybody = *self.state;
        let mut sleepers = 0;
        for thread in 0..self.tables.thread_count() {
            let Step::Asleep { condvar: waits_for, woken } = self.tables.config(thread, self.state[thread + 1]).step
            else {
                continue;
            };
            if waits_for != condvar {
                continue;
            }
            sleepers += 1;
            everybody[thread + 1] = woken.config();
            if !all {
                let mut next = *self.state;
                next[thread + 1] = woken.config();
                self.arrive(to, next, thread as i64, accesses);
            }
        }
        if all || sleepers == 0 {
            self.arrive(to, everybody, 0, accesses);
        }
    }
}
