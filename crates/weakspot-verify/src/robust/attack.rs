//! The instrumented program of the attack reduction and its transitions; see the [module above](super).

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Loc, MutexId, Pc, Site, ThreadId};
use weakspot_model::ir::{FenceKind, Instr, Place, Program};
use weakspot_model::local::{self, Pause};
use weakspot_model::machine::Phase;

use super::RobustOptions;
use super::locals::{Locals, PRUNED, STOPPED};
use super::space::StateSpace;
use crate::growth;
use crate::intern::Interner;
use crate::threads::LocalId;

/// One transition, enough to perform it again on the reference machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Who moves.
    pub thread: ThreadId,
    /// The value of a choice, or the thread a notification wakes.
    pub choice: i64,
    /// What role the event plays.
    pub role: Role,
}

/// The role of an event in an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Happens as under SC: a store is visible at once.
    Plain,
    /// The delayed store itself.
    Delayed,
    /// A later store of the attacker that has to wait behind it.
    Hidden,
    /// The event the store is delayed past; the attacker stops after it.
    Passed,
    /// An unsolicited wake-up.
    Wake,
}

/// What a state leads to.
pub enum Successor {
    /// Another state.
    State {
        /// Its words.
        words: Vec<u32>,
        /// How.
        by: Move,
    },
    /// The access that closes a happens-before cycle.
    Cycle {
        /// The state after it.
        words: Vec<u32>,
        /// How.
        by: Move,
    },
}

/// What the attack is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Target {
    attacker: ThreadId,
    /// The location of the delayed store.
    loc: Loc,
    /// The delayed store, when violations are told apart by it.
    store: Option<Pc>,
}

/// The attacker's view of its delayed stores: the youngest value of each location.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Shadow {
    /// Sorted by location.
    values: Vec<(Loc, i64)>,
    /// Every later store has to wait, whatever its location (always under TSO; under PSO after a store-store fence).
    holds_back_all: bool,
}

impl Shadow {
    fn get(&self, loc: Loc) -> Option<i64> {
        self.values.binary_search_by_key(&loc, |&(l, _)| l).ok().map(|at| self.values[at].1)
    }

    /// Does an event with these accesses touch a delayed location?
    fn covers(&self, accesses: &[CellAccess]) -> bool {
        accesses.iter().any(|access| self.values.iter().any(|(loc, _)| loc.index() == access.cell))
    }

    /// The delayed locations alone, once the attacker reads no more.
    fn without_values(&self) -> Self {
        Self { values: self.values.iter().map(|&(loc, _)| (loc, 0)).collect(), holds_back_all: true }
    }

    fn set(&mut self, loc: Loc, value: i64) {
        match self.values.binary_search_by_key(&loc, |&(l, _)| l) {
            Ok(at) => self.values[at].1 = value,
            Err(at) => self.values.insert(at, (loc, value)),
        }
    }
}

/// What happens after the passed event: which threads, and which cells were read or written by such events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Shade {
    threads: Vec<bool>,
    cells: Vec<Touched>,
}

/// The strongest access to a cell by an event that happens after the passed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Touched {
    No,
    Read,
    Written,
}

/// An access to a cell: a location, a mutex or a condition variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CellAccess {
    cell: usize,
    writes: bool,
}

impl Shade {
    /// Does an event of the thread with these accesses happen after the passed event?
    fn reaches(&self, thread: ThreadId, accesses: &[CellAccess]) -> bool {
        let conflicts = |access: &CellAccess| match self.cells[access.cell] {
            Touched::No => false,
            Touched::Read => access.writes,
            Touched::Written => true,
        };
        self.threads[thread.index()] || accesses.iter().any(conflicts)
    }

    fn add(&mut self, thread: ThreadId, accesses: &[CellAccess]) {
        self.threads[thread.index()] = true;
        for access in accesses {
            let touched = if access.writes { Touched::Written } else { Touched::Read };
            self.cells[access.cell] = self.cells[access.cell].max(touched);
        }
    }
}

/// The accesses of one event; at most two cells.
type Accesses = Vec<CellAccess>;

/// The instrumented program with its interned components.
///
/// A state is a row of words: a [`LocalId`] for each thread, then memory (locations, then mutexes: 0 is free, else the
/// owner plus one), target, shadow and shade. Word 0 of the last three means "none".
pub struct Attack<'p> {
    program: &'p Program,
    model: MemoryModel,
    all: bool,
    /// The program assumes something, so whether an attack can be completed depends on all of its state: nothing of
    /// the attacker is forgotten.
    assumes: bool,
    spurious_wakeups: bool,
    threads: Locals<'p>,
    memories: Interner<Vec<i64>>,
    targets: Interner<Option<Target>>,
    shadows: Interner<Shadow>,
    shades: Interner<Option<Shade>>,
    /// For each cell, which threads have an instruction that accesses it.
    users: Vec<Vec<bool>>,
}

impl<'p> Attack<'p> {
    /// Nothing explored yet.
    pub fn new(program: &'p Program, options: RobustOptions) -> Self {
        let mut attack = Self {
            program,
            model: options.model,
            all: options.all,
            assumes: program.assumes(),
            spurious_wakeups: options.spurious_wakeups,
            threads: Locals::new(program),
            memories: Interner::new(),
            targets: Interner::new(),
            shadows: Interner::new(),
            shades: Interner::new(),
            users: users(program),
        };
        attack.targets.intern(&None);
        attack.shadows.intern(&Shadow::default());
        attack.shades.intern(&None);
        attack
    }

    fn count(&self) -> usize {
        self.program.threads.len()
    }

    /// Words in a state.
    pub fn words(&self) -> usize {
        self.count() + 4
    }

    /// Bytes held by the component tables, roughly.
    pub fn bytes(&self) -> u64 {
        let cells = self.users.len() as u64;
        self.threads.bytes()
            + self.memories.len() as u64 * (cells * 8 + 40)
            + self.shadows.len() as u64 * 96
            + self.shades.len() as u64 * (cells + 80)
    }

    /// The delayed store and the access that a move makes, if violations are told apart by them.
    pub fn pair(&self, state: &[u32], by: Move) -> Option<(Site, Site)> {
        let target = self.targets.get(Here::read(state, self.count()).target).as_ref()?;
        let site = |thread: ThreadId, pc: Pc| self.program.threads[thread.index()].sites[pc.index()];
        let access = self.threads.pc(by.thread, LocalId(state[by.thread.index()]));
        Some((site(target.attacker, target.store?), site(by.thread, access)))
    }

    /// Has a state a value greater than this, without its sign?
    pub fn has_grown(&self, state: &[u32], most: u64) -> bool {
        let memory = self.memories.get(state[self.count()]).as_slice();
        let local = |thread: ThreadId| LocalId(state[thread.index()]);
        let registers = self.program.thread_ids().map(|thread| self.threads.registers(thread, local(thread)));
        growth::is_past(most, registers.chain([memory]))
    }

    /// Stores the initial state, if there is any execution at all.
    pub fn start(&mut self, space: &mut StateSpace) {
        let mut words: Vec<u32> = self.program.thread_ids().map(|thread| self.threads.start(thread).0).collect();
        let mut memory = self.program.initial_memory();
        memory.resize(memory.len() + self.program.mutexes.len(), 0);
        words.push(self.memories.intern(&memory));
        words.extend([0, 0, 0]);
        if !words[..self.count()].contains(&PRUNED.0) {
            space.insert(&words, None);
        }
    }

    /// Everything a state leads to.
    pub fn successors(&mut self, state: &[u32], out: &mut Vec<Successor>) {
        let here = Here::read(state, self.count());
        let target = *self.targets.get(here.target);
        let shade = self.shades.get(here.shade).clone();
        let shadow = self.shadows.get(here.shadow).clone();
        for thread in self.program.thread_ids() {
            match (&target, &shade) {
                (None, _) => {
                    self.calm(state, thread, &shadow, out);
                    self.begin(state, thread, out);
                }
                (Some(target), None) if target.attacker == thread => self.delay(state, target, &shadow, out),
                (Some(_), None) => self.calm(state, thread, &shadow, out),
                (Some(target), Some(_)) if target.attacker == thread => {}
                (Some(target), Some(shade)) => self.chase(state, thread, target, &shadow, shade, out),
            }
        }
        out.retain(|successor| !self.is_pruned(successor));
    }

    fn is_pruned(&self, successor: &Successor) -> bool {
        let (Successor::State { words, .. } | Successor::Cycle { words, .. }) = successor;
        words[..self.count()].contains(&PRUNED.0)
    }

    /// Calm, and the others during the delay: SC, but nobody looks at what is delayed (that would need it visible).
    fn calm(&mut self, state: &[u32], thread: ThreadId, shadow: &Shadow, out: &mut Vec<Successor>) {
        for mv in self.moves(state, thread) {
            let mut words = state.to_vec();
            if self.perform(&mut words, mv).is_some_and(|accesses| !shadow.covers(&accesses)) {
                out.push(Successor::State { words, by: mv });
            }
        }
    }

    /// Calm to delay: the pending store of a thread starts an attack if anybody else ever accesses its location.
    fn begin(&mut self, state: &[u32], thread: ThreadId, out: &mut Vec<Successor>) {
        let id = LocalId(state[thread.index()]);
        let Pause::Store { loc, value } = self.threads.pause(thread, id) else { return };
        if !self.used_by_others(loc.index(), thread) {
            return;
        }
        let store = self.all.then(|| self.threads.pc(thread, id));
        let mut shadow = Shadow { values: Vec::new(), holds_back_all: self.model == MemoryModel::Tso };
        shadow.set(loc, value);
        let mut words = state.to_vec();
        words[thread.index()] = self.threads.resume(thread, id, 0).0;
        let mut here = Here::read(&words, self.count());
        here.target = self.targets.intern(&Some(Target { attacker: thread, loc, store }));
        here.shadow = self.shadows.intern(&shadow);
        here.write(&mut words);
        out.push(Successor::State { words, by: Move { thread, choice: 0, role: Role::Delayed } });
    }

    /// Delay: what the attacker may do while its store waits.
    fn delay(&mut self, state: &[u32], target: &Target, shadow: &Shadow, out: &mut Vec<Successor>) {
        let thread = target.attacker;
        let id = LocalId(state[thread.index()]);
        match self.threads.pause(thread, id) {
            Pause::Load { loc } => match shadow.get(loc) {
                Some(value) => self.privately(state, thread, value, None, Role::Plain, out),
                None => self.visibly(state, thread, shadow, out),
            },
            Pause::Store { loc, value } if shadow.holds_back_all || loc == target.loc => {
                let mut hidden = shadow.clone();
                hidden.set(loc, value);
                self.privately(state, thread, 0, Some(hidden), Role::Hidden, out);
            }
            Pause::Store { .. } => self.visibly(state, thread, shadow, out),
            Pause::Rmw { loc, drains_all: false, .. }
                if self.model == MemoryModel::Pso && shadow.get(loc).is_none() =>
            {
                self.visibly(state, thread, shadow, out);
            }
            Pause::Fence(FenceKind::StoreStore) => {
                let fenced = Shadow { holds_back_all: true, ..shadow.clone() };
                self.privately(state, thread, 0, Some(fenced), Role::Plain, out);
            }
            Pause::Choose { .. } => self.calm(state, thread, shadow, out),
            _ => {}
        }
    }

    /// The attacker does something that nobody else sees.
    fn privately(
        &mut self,
        state: &[u32],
        thread: ThreadId,
        result: i64,
        shadow: Option<Shadow>,
        role: Role,
        out: &mut Vec<Successor>,
    ) {
        let mut words = state.to_vec();
        words[thread.index()] = self.threads.resume(thread, LocalId(state[thread.index()]), result).0;
        if let Some(shadow) = shadow {
            let mut here = Here::read(&words, self.count());
            here.shadow = self.shadows.intern(&shadow);
            here.write(&mut words);
        }
        out.push(Successor::State { words, by: Move { thread, choice: 0, role } });
    }

    /// The attacker does something on memory: either it goes on, or this is the event its store is delayed past.
    fn visibly(&mut self, state: &[u32], thread: ThreadId, shadow: &Shadow, out: &mut Vec<Successor>) {
        let mv = Move { thread, choice: 0, role: Role::Plain };
        let mut words = state.to_vec();
        let Some(accesses) = self.perform(&mut words, mv) else { return };
        let leads_on = accesses.iter().any(|access| self.used_by_others(access.cell, thread));
        if leads_on {
            let mut shade = Shade { threads: vec![false; self.count()], cells: vec![Touched::No; self.users.len()] };
            shade.add(thread, &accesses);
            let mut stopped = words.clone();
            let mut here = Here::read(&stopped, self.count());
            if !self.assumes {
                stopped[thread.index()] = STOPPED.0;
                here.shadow = self.shadows.intern(&shadow.without_values());
            }
            here.shade = self.shades.intern(&Some(shade));
            here.write(&mut stopped);
            out.push(Successor::State { words: stopped, by: Move { role: Role::Passed, ..mv } });
        }
        out.push(Successor::State { words, by: mv });
    }

    /// Chase: only what happens after the passed event, until somebody accesses the target.
    fn chase(
        &mut self,
        state: &[u32],
        thread: ThreadId,
        target: &Target,
        shadow: &Shadow,
        shade: &Shade,
        out: &mut Vec<Successor>,
    ) {
        for mv in self.moves(state, thread) {
            let mut words = state.to_vec();
            let Some(accesses) = self.perform(&mut words, mv) else { continue };
            if !shade.reaches(thread, &accesses) {
                continue;
            }
            if accesses.iter().any(|access| access.cell == target.loc.index()) {
                out.push(Successor::Cycle { words, by: mv });
                continue;
            }
            if shadow.covers(&accesses) {
                continue;
            }
            let mut wider = shade.clone();
            wider.add(thread, &accesses);
            for woken in self.woken(state, &words, thread) {
                wider.threads[woken.index()] = true;
            }
            let mut here = Here::read(&words, self.count());
            here.shade = self.shades.intern(&Some(wider));
            here.write(&mut words);
            out.push(Successor::State { words, by: mv });
        }
    }

    /// The threads that a step of another one has woken: what they do from then on comes after the notification.
    fn woken<'s>(
        &'s self,
        before: &'s [u32],
        after: &'s [u32],
        by: ThreadId,
    ) -> impl Iterator<Item = ThreadId> + use<'s, 'p> {
        let asleep = |words: &[u32], thread: ThreadId| {
            matches!(self.threads.phase(thread, LocalId(words[thread.index()])), Phase::Waiting(_))
        };
        self.program.thread_ids().filter(move |&other| other != by && asleep(before, other) && !asleep(after, other))
    }

    fn used_by_others(&self, cell: usize, thread: ThreadId) -> bool {
        self.users[cell].iter().enumerate().any(|(other, &uses)| uses && other != thread.index())
    }

    /// The ways a thread may take its next step under SC, if it can.
    fn moves(&self, state: &[u32], thread: ThreadId) -> Vec<Move> {
        let id = LocalId(state[thread.index()]);
        let step = |choice| Move { thread, choice, role: Role::Plain };
        match (self.threads.phase(thread, id), self.threads.pause(thread, id)) {
            (Phase::Waiting(_), _) if self.spurious_wakeups => {
                vec![Move { thread, choice: 0, role: Role::Wake }]
            }
            (Phase::Waiting(_), _) | (_, Pause::Spin | Pause::End) => Vec::new(),
            (Phase::Running, Pause::Choose { lo, hi }) => (lo..=hi).map(step).collect(),
            (Phase::Running, Pause::Notify { condvar, all: false }) => {
                let waits = |other: &ThreadId| {
                    self.threads.phase(*other, LocalId(state[other.index()])) == Phase::Waiting(condvar)
                };
                let woken: Vec<Move> =
                    self.program.thread_ids().filter(waits).map(|other| step(i64::from(other.0))).collect();
                if woken.is_empty() { vec![step(0)] } else { woken }
            }
            _ => vec![step(0)],
        }
    }

    /// Performs one event under SC. `None` if it cannot happen now, or fails.
    fn perform(&mut self, words: &mut [u32], mv: Move) -> Option<Accesses> {
        let thread = mv.thread;
        let id = LocalId(words[thread.index()]);
        let at = self.count();
        let cell = |mutex: MutexId| self.program.locations.len() + mutex.index();
        let owner = i64::from(thread.0) + 1;
        let read = |cell: usize| CellAccess { cell, writes: false };
        let write = |cell: usize| CellAccess { cell, writes: true };
        let memory = self.memories.get(words[at]);
        let phase = self.threads.phase(thread, id);
        if let Phase::Reacquiring(mutex) = phase {
            if memory[cell(mutex)] != 0 {
                return None;
            }
            self.set_cell(words, cell(mutex), owner);
            words[thread.index()] = self.threads.resume(thread, id, 0).0;
            return Some(vec![write(cell(mutex))]);
        }
        if mv.role == Role::Wake {
            let Phase::Waiting(condvar) = phase else { return None };
            words[thread.index()] = self.threads.wake(thread, id).0;
            return Some(vec![write(self.condvar_cell(condvar.index()))]);
        }
        let (result, accesses) = match self.threads.pause(thread, id) {
            Pause::Load { loc } => (memory[loc.index()], vec![read(loc.index())]),
            Pause::Store { loc, value } => {
                self.set_cell(words, loc.index(), value);
                (0, vec![write(loc.index())])
            }
            Pause::Rmw { loc, op, .. } => {
                let current = memory[loc.index()];
                let (result, written) = local::rmw(op, current, loc, &self.program.locations).ok()?;
                if let Some(value) = written {
                    self.set_cell(words, loc.index(), value);
                }
                (result, vec![CellAccess { cell: loc.index(), writes: written.is_some() }])
            }
            Pause::Fence(_) | Pause::LeaveCritical => (0, Vec::new()),
            Pause::Lock(mutex) => {
                if memory[cell(mutex)] != 0 {
                    return None;
                }
                self.set_cell(words, cell(mutex), owner);
                (0, vec![write(cell(mutex))])
            }
            Pause::Unlock(mutex) => {
                if memory[cell(mutex)] != owner {
                    return None;
                }
                self.set_cell(words, cell(mutex), 0);
                (0, vec![write(cell(mutex))])
            }
            Pause::Wait { condvar, mutex } => {
                if memory[cell(mutex)] != owner {
                    return None;
                }
                self.set_cell(words, cell(mutex), 0);
                words[thread.index()] = self.threads.sleep(thread, id, condvar).0;
                return Some(vec![write(cell(mutex)), write(self.condvar_cell(condvar.index()))]);
            }
            Pause::Notify { condvar, all } => {
                let mut writes = false;
                for other in self.program.thread_ids() {
                    let sleeper = LocalId(words[other.index()]);
                    let chosen = all || i64::from(other.0) == mv.choice;
                    if chosen && self.threads.phase(other, sleeper) == Phase::Waiting(condvar) {
                        words[other.index()] = self.threads.wake(other, sleeper).0;
                        writes = true;
                    }
                }
                // One that nobody waits for only looks.
                (0, vec![CellAccess { cell: self.condvar_cell(condvar.index()), writes }])
            }
            Pause::Choose { .. } => (mv.choice, Vec::new()),
            Pause::Spin | Pause::End | Pause::ThreadRegister { .. } => return None,
        };
        words[thread.index()] = self.threads.resume(thread, id, result).0;
        Some(accesses)
    }

    fn condvar_cell(&self, condvar: usize) -> usize {
        self.program.locations.len() + self.program.mutexes.len() + condvar
    }

    fn set_cell(&mut self, words: &mut [u32], cell: usize, value: i64) {
        let at = self.count();
        let mut memory = self.memories.get(words[at]).clone();
        memory[cell] = value;
        words[at] = self.memories.intern(&memory);
    }
}

/// The attack part of a state's words.
#[derive(Clone, Copy)]
struct Here {
    at: usize,
    target: u32,
    shadow: u32,
    shade: u32,
}

impl Here {
    fn read(words: &[u32], threads: usize) -> Self {
        let at = threads + 1;
        Self { at, target: words[at], shadow: words[at + 1], shade: words[at + 2] }
    }

    fn write(self, words: &mut [u32]) {
        words[self.at..].copy_from_slice(&[self.target, self.shadow, self.shade]);
    }
}

/// For each cell (locations, mutexes, condition variables) the threads whose code accesses it.
fn users(program: &Program) -> Vec<Vec<bool>> {
    let (locations, mutexes) = (program.locations.len(), program.mutexes.len());
    let mut users = vec![vec![false; program.threads.len()]; locations + mutexes + program.condvars.len()];
    for (id, thread) in program.threads.iter().enumerate() {
        for instr in &thread.code {
            for cell in cells_of(instr, locations, mutexes) {
                users[cell][id] = true;
            }
        }
    }
    users
}

fn cells_of(instr: &Instr, locations: usize, mutexes: usize) -> Vec<usize> {
    match *instr {
        Instr::Load { place, .. } | Instr::Store { place, .. } | Instr::Rmw { place, .. } => match place {
            Place::Fixed(loc) => vec![loc.index()],
            Place::Indexed { base, len, .. } => (base.index()..base.index() + len as usize).collect(),
        },
        Instr::Lock(mutex) | Instr::Unlock(mutex) => vec![locations + mutex.index()],
        Instr::Wait { condvar, mutex } => {
            vec![locations + mutex.index(), locations + mutexes + condvar.index()]
        }
        Instr::Notify { condvar, .. } => vec![locations + mutexes + condvar.index()],
        _ => Vec::new(),
    }
}
