//! Partial-order reduction by stubborn sets.
//!
//! In each state it is enough to follow some of the enabled actions, if what is left out can be done later with the
//! same effect. The units are the **processes** of [`super::successors`]: the step of a thread, and each store it may
//! commit now. A set of processes `T` is *stubborn* in a state if it is closed under two rules:
//!
//! 1. With a process that can act, `T` contains every process that may lead to an action that conflicts with it.
//! 2. With a process that cannot act, `T` contains processes one of which has to act before it can.
//!
//! # What conflicts
//! | action | touches | so it needs |
//! |---|---|---|
//! | buffering a store, a store-store fence | own buffer only: both commute with own commits as well | nothing |
//! | full fence on an empty buffer, `choose` | nothing | nothing |
//! | `unlock` | a mutex that nobody else can touch until then | nothing |
//! | load from memory of x | reads x | whoever holds x in a buffer or may still write x |
//! | load of x from the own buffer | the own stores to x; once they are committed others may overwrite them | the own commit of x, unless nobody else ever writes x |
//! | commit of x, SC store, successful atomic | writes x | whoever holds x in a buffer or may still access x |
//! | failed compare-and-swap | reads x | as a load |
//! | `lock`, re-acquiring | writes the mutex | whoever may still lock it |
//! | `wait`, spurious wake-up | reads the condition variable | whoever may still notify |
//! | `notify` | writes the condition variable | whoever waits or may still wait or notify |
//! | a step into or out of a critical block | reads "entry" | whoever may still enter one |
//! | a step that breaks mutual exclusion | | also the steps of those inside |
//!
//! "May still" is [`super::access`]: the thread's step is in `T` then, since nothing later in the thread happens before
//! it. A store that is buffered but not committable yet stands for the thread's first commit in the same way.
//! A commit does not need its own thread's step: steps never disable a commit, they only add behind it; a load of the
//! same cell gets the same value before (forwarded) and after (from memory), because all other writers are in `T`.
//!
//! # Why nothing is lost
//! Let an execution `a1 … an` from state `s` lead to a problem or to an end (finished or deadlock), where no `ai` is
//! cut off by a false `assume`.
//! * If some `ai` belongs to a process in `T`, take the first. By rule 2 its process can act in `s`; by rule 1 it does
//!   the same in `s` as after `a1 … a(i-1)` and commutes with them. So it can go first, and `n - 1` actions are left.
//! * If none does, every action `k` of `T` commutes with the whole execution: `k a1 … an` leads to the same problem, or
//!   (for an end) there is no such `k`, since in the end `k` would still be enabled. `n` stays the same. We insist that
//!   `T` contains an action `k` that is no problem, is not cut off by an `assume` and does **not jump backwards**.
//!   There is no infinite sequence of such actions: each moves some thread forward in its code, forward in the three
//!   phases of a `wait`, or shortens a buffer that only such moves lengthen. So the first case comes back.
//!
//! The condition on `k` takes the place of a cycle proviso. It looks at one state only, so the reduced state space does
//! not depend on the order of the search and is the same for any number of workers. If no stubborn set smaller than
//! everything has such a `k`, the state is expanded fully.
//!
//! The bound on buffers is covered too. A store that does not fit waits for any commit of its thread; if the bound was
//! never reached, the search was one of the machine with unbounded buffers.

use super::access::Accesses;
use super::config::{Commit, Objects};
use super::successors::{Role, Sink, Wait};
use super::tables::Tables;

/// A set of processes of one state, by index.
type ProcessSet = u64;

/// With more processes than this a state is expanded fully.
const MOST_PROCESSES: usize = ProcessSet::BITS as usize;

/// A problem one action away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub thread: usize,
    pub role: Role,
    pub choice: i64,
    process: usize,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    thread: usize,
    role: Role,
    /// Its next states.
    first: usize,
    end: usize,
    /// Enabled actions, those that fail or are pruned included.
    actions: u32,
    /// One of them fails nothing and jumps nowhere back.
    progress: bool,
    accesses: Accesses,
    forwards: Option<u32>,
    intrudes: bool,
    wait: Wait,
}

/// What may happen next in a state, and which part of it has to be followed.
#[derive(Debug)]
pub(crate) struct Successors<const W: usize> {
    reduce: bool,
    states: Vec<[u32; W]>,
    failures: Vec<Failure>,
    actions: u64,
    processes: Vec<Process>,
    /// For each thread, the index of its step; its commits follow.
    steps: Vec<usize>,
    current: (usize, Role),
}

impl<const W: usize> Sink<W> for Successors<W> {
    fn process(&mut self, thread: usize, role: Role) {
        self.current = (thread, role);
        if !self.reduce {
            return;
        }
        if role == Role::Step || role == Role::Wake {
            self.steps.push(self.processes.len());
        }
        let at = self.states.len();
        self.processes.push(Process {
            thread,
            role,
            first: at,
            end: at,
            actions: 0,
            progress: false,
            accesses: Accesses::NONE,
            forwards: None,
            intrudes: false,
            wait: Wait::Never,
        });
    }

    fn successor(&mut self, state: &[u32; W], _choice: i64, jumped_back: bool) {
        self.states.push(*state);
        self.actions += 1;
        if let Some(process) = self.processes.last_mut() {
            process.end += 1;
            process.actions += 1;
            process.progress |= !jumped_back;
        }
    }

    fn failure(&mut self, choice: i64) {
        let (thread, role) = self.current;
        self.failures.push(Failure { thread, role, choice, process: self.processes.len().saturating_sub(1) });
        self.pruned();
    }

    fn pruned(&mut self) {
        self.actions += 1;
        if let Some(process) = self.processes.last_mut() {
            process.actions += 1;
        }
    }

    fn touches(&mut self, accesses: Accesses) {
        if let Some(process) = self.processes.last_mut() {
            process.accesses = process.accesses.with(accesses);
        }
    }

    fn forwards(&mut self, cell: u32) {
        if let Some(process) = self.processes.last_mut() {
            process.forwards = Some(cell);
        }
    }

    fn intrudes(&mut self) {
        if let Some(process) = self.processes.last_mut() {
            process.intrudes = true;
        }
    }

    fn waits(&mut self, wait: Wait) {
        if let Some(process) = self.processes.last_mut() {
            process.wait = wait;
        }
    }
}

impl<const W: usize> Successors<W> {
    pub fn new(reduce: bool) -> Self {
        Self {
            reduce,
            states: Vec::new(),
            failures: Vec::new(),
            actions: 0,
            processes: Vec::new(),
            steps: Vec::new(),
            current: (0, Role::Step),
        }
    }

    pub fn clear(&mut self) {
        self.states.clear();
        self.failures.clear();
        self.actions = 0;
        self.processes.clear();
        self.steps.clear();
    }

    /// Next states; after [`Successors::reduce`] those of the stubborn set.
    pub fn states(&self) -> &[[u32; W]] {
        &self.states
    }

    /// Problems one action away; after [`Successors::reduce`] those of the stubborn set.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// How many actions there are; after [`Successors::reduce`] those of the stubborn set.
    pub fn actions(&self) -> u64 {
        self.actions
    }

    /// Drops everything outside the smallest stubborn set found.
    pub fn reduce(&mut self, tables: &Tables<'_, '_>, state: &[u32; W]) {
        if self.processes.len() > MOST_PROCESSES || self.actions <= 1 {
            return;
        }
        let Some(chosen) = Closure { successors: self, tables, state }.smallest_set() else { return };
        let mut kept = 0;
        self.actions = 0;
        for process in members(chosen).map(|index| &self.processes[index]) {
            self.states.copy_within(process.first..process.end, kept);
            kept += process.end - process.first;
            self.actions += u64::from(process.actions);
        }
        self.states.truncate(kept);
        self.failures.retain(|failure| chosen >> failure.process & 1 == 1);
    }
}

fn members(mut set: ProcessSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(index)
    })
}

/// Closes sets of processes under the two rules.
struct Closure<'a, 's, 'p, const W: usize> {
    successors: &'a Successors<W>,
    tables: &'a Tables<'s, 'p>,
    state: &'a [u32; W],
}

impl<const W: usize> Closure<'_, '_, '_, W> {
    /// The stubborn set with the fewest actions, if one is smaller than everything. Among equals a commit wins, which
    /// keeps buffers short, then the first.
    fn smallest_set(&self) -> Option<ProcessSet> {
        let processes = &self.successors.processes;
        let mut needs = [None; MOST_PROCESSES];
        let mut best = None;
        let mut fewest = (self.successors.actions, false);
        for (seed, process) in processes.iter().enumerate().filter(|(_, process)| process.actions > 0) {
            let set = self.close(seed, &mut needs);
            let actions = members(set).map(|index| u64::from(processes[index].actions)).sum();
            let weight = (actions, !matches!(process.role, Role::Commit { .. }));
            if weight < fewest && members(set).any(|index| processes[index].progress) {
                fewest = weight;
                best = Some(set);
            }
            if fewest == (1, false) {
                break;
            }
        }
        best
    }

    fn close(&self, seed: usize, needs: &mut [Option<ProcessSet>; MOST_PROCESSES]) -> ProcessSet {
        let mut set: ProcessSet = 1 << seed;
        let mut todo = set;
        while todo != 0 {
            let index = todo.trailing_zeros() as usize;
            todo &= todo - 1;
            let needed = *needs[index].get_or_insert_with(|| self.needs(&self.successors.processes[index]));
            todo |= needed & !set;
            set |= needed;
        }
        set
    }

    /// What a process brings into the set with it.
    fn needs(&self, process: &Process) -> ProcessSet {
        if process.actions == 0 {
            return self.enablers(process);
        }
        let Process { thread, accesses, .. } = *process;
        let mut set = 0;
        for other in self.threads().filter(|&other| other != thread) {
            set |= self.conflicts(other, accesses);
            if process.intrudes && self.config(other).inside {
                set |= self.step(other);
            }
        }
        if let Some(cell) = process.forwards {
            let own = Objects::only(cell);
            let overwrites = |other: usize| {
                let config = self.config(other);
                config.held.with(config.will_write).meets(own)
            };
            if self.threads().any(|other| other != thread && overwrites(other)) {
                set |= self.commits_of(thread, own);
            }
        }
        set
    }

    /// The processes of another thread that may lead to an action that conflicts with these accesses.
    fn conflicts(&self, other: usize, accesses: Accesses) -> ProcessSet {
        let config = self.config(other);
        let any = config.will_read.with(config.will_write);
        let mut set = self.commits_of(other, accesses.reads.with(accesses.writes));
        if any.meets(accesses.writes) || config.will_write.meets(accesses.reads) {
            set |= self.step(other);
        }
        set
    }

    /// Processes one of which has to act before this one can.
    fn enablers(&self, process: &Process) -> ProcessSet {
        let own = process.thread;
        match process.wait {
            Wait::Never => 0,
            Wait::AnyCommit => self.commits(own).fold(0, |set, (index, _)| set | 1 << index),
            Wait::AllCommits => self.first_commit(own),
            Wait::CommitsOf { cell } => self.commits_of(own, Objects::only(cell)),
            Wait::Owner { thread } => self.step(thread),
            Wait::Notification { condvar } => {
                let notifies = |other: &usize| self.config(*other).will_write.meets(Objects::only(condvar));
                self.threads().filter(notifies).fold(0, |set, other| set | self.step(other))
            }
        }
    }

    /// The commits of a thread that come first on the way to visible stores to these objects.
    fn commits_of(&self, thread: usize, objects: Objects) -> ProcessSet {
        let mut pending = objects;
        if !self.config(thread).held.meets(objects) {
            return 0;
        }
        let mut set = 0;
        for (index, commit) in self.commits(thread) {
            let cell = Objects::only(commit.cell);
            if cell.meets(objects) {
                set |= 1 << index;
                pending = pending.without(cell);
            }
        }
        if self.config(thread).held.meets(pending) { set | self.first_commit(thread) } else { set }
    }

    fn commits(&self, thread: usize) -> impl Iterator<Item = (usize, Commit)> {
        let slots = self.config(thread).commits;
        let first = self.successors.steps[thread] + 1;
        (0..slots.len).map(move |index| (first + index as usize, self.tables.commit(thread, slots.start + index)))
    }

    /// A non-empty buffer always has a commit.
    fn first_commit(&self, thread: usize) -> ProcessSet {
        1 << (self.successors.steps[thread] + 1)
    }

    fn step(&self, thread: usize) -> ProcessSet {
        1 << self.successors.steps[thread]
    }

    fn threads(&self) -> std::ops::Range<usize> {
        0..self.tables.thread_count()
    }

    fn config(&self, thread: usize) -> &super::config::Config {
        self.tables.config(thread, self.state[thread + 1])
    }
}
