//! The local states of one thread, each stored once.
//!
//! A program that runs forwards meets a new local state at almost every step, so storing one has to be cheap, and small:
//! memory that is touched for the first time costs more than all computation, so that of a table is left for the next one. The live registers of a state lie behind
//! those of the one before in one array, the thread computes on a copy that stays where the last step left it, and
//! nothing is allocated for a state of its own.

use std::cell::RefCell;
use std::hash::Hasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxHashMap, FxHasher};
use weakspot_model::ids::{Pc, Reg};
use weakspot_model::ir::{RmwOp, Thread};
use weakspot_model::liveness::Liveness;
use weakspot_model::local::LocalState;
use weakspot_model::problem::Fault;

use crate::system::{Misuse, Pending};

/// What is known of a local state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) pending: Pending,
    /// The result whose successor was found first, and that successor; the others are in [`ThreadTable::successors`].
    first_result: i64,
    first: Successor,
    pub(super) pc: Pc,
    /// Where its live registers begin. Those that have ended otherwise than regularly have none.
    registers: u32,
    /// The place of the operation in [`ThreadTable::updates`], if it rests at an atomic.
    update: u32,
}

/// Has a thread with this before it ended otherwise than regularly? Such states are not looked up.
fn is_cut_off(pending: Pending) -> bool {
    pending.is_last() && pending != Pending::Ended
}

/// Where a result leads: the number of a state, and whether there was a jump backwards on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Successor(u32);

impl Successor {
    /// Not known.
    const UNKNOWN: Self = Self(u32::MAX);

    pub(super) fn new(target: u32, jumped_back: bool) -> Self {
        Self(target << 1 | u32::from(jumped_back))
    }

    #[inline]
    pub(super) fn target(self) -> u32 {
        self.0 >> 1
    }

    #[inline]
    pub(super) fn jumped_back(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A state by a part of its hash, which is kept so that the table can grow without looking at states.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    id: u32,
}

/// The hash of a slot, as far as its table is concerned.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn hash_words(words: impl Iterator<Item = u64>) -> u32 {
    let mut hasher = FxHasher::default();
    words.for_each(|word| hasher.write_u64(word));
    // The better bits are above.
    (hasher.finish() >> 32) as u32 ^ hasher.finish() as u32
}

/// A thread on its way to its next pause. Registers that are dead may hold anything.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// The state.
    pub(super) local: LocalState,
    /// How often each instruction was reached by a jump backwards (only under a bound, else empty).
    pub(super) rounds: Vec<u32>,
    /// The number of the state, if it has one.
    id: Option<u32>,
}

/// The live registers of each instruction, one instruction after the other.
#[derive(Debug, Default)]
struct Live {
    registers: Vec<Reg>,
    /// Where those of an instruction begin, and at the end how many there are.
    starts: Vec<u32>,
}

impl Live {
    fn of(code: &Thread) -> Self {
        let liveness = Liveness::of(code);
        let (mut registers, mut starts) = (Vec::new(), vec![0]);
        for pc in 0..code.code.len() {
            registers.extend(liveness.live_at(Pc::new(pc)));
            starts.push(registers.len() as u32);
        }
        Self { registers, starts }
    }

    #[inline]
    fn at(&self, pc: Pc) -> &[Reg] {
        &self.registers[self.starts[pc.index()] as usize..self.starts[pc.index() + 1] as usize]
    }
}

/// Tables whose memory is left for the next ones.
const TABLES_TO_LEAVE: usize = 16;
/// How large each may be.
const BYTES_TO_LEAVE: usize = 1 << 21;

thread_local! {
    /// Tables, emptied.
    static SPARE: RefCell<Vec<ThreadTable>> = const { RefCell::new(Vec::new()) };
}

/// The states of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadTable {
    pub(super) nodes: Vec<Node>,
    live: Live,
    /// The live registers of each state.
    registers: Vec<i64>,
    /// The rounds of each state.
    rounds: Vec<u32>,
    updates: Vec<RmwOp<i64>>,
    pub(super) running: Running,
    /// Known successors by state and result.
    successors: FxHashMap<(u32, i64), Successor>,
    /// All states that are looked up.
    ids: HashTable<Slot>,
    /// The first state with these registers, whatever its rounds (only under a bound).
    behaviours: HashTable<Slot>,
    /// That state for each state (only under a bound).
    behaviour: Vec<u32>,
    /// Where a misuse leads.
    pub(super) failures: FxHashMap<(u32, Misuse), u32>,
    /// What went wrong in the states that have failed.
    pub(super) faults: FxHashMap<u32, Fault>,
}

impl ThreadTable {
    /// No states; the thread is in this one.
    pub(super) fn new(code: &Thread, local: LocalState, is_bounded: bool) -> Self {
        let mut table = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        table.live = Live::of(code);
        let rounds = vec![0; if is_bounded { code.code.len() } else { 0 }];
        table.running = Running { local, rounds, id: None };
        table
    }

    /// Leaves the memory for the next table of this thread, unless it is too much.
    pub(super) fn leave(mut self) {
        if self.bytes() > BYTES_TO_LEAVE {
            return;
        }
        self.nodes.clear();
        self.registers.clear();
        self.rounds.clear();
        self.updates.clear();
        self.successors.clear();
        self.ids.clear();
        self.behaviours.clear();
        self.behaviour.clear();
        self.failures.clear();
        self.faults.clear();
        // Where the thread is ending, nobody comes after it.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < TABLES_TO_LEAVE {
                spare.push(self);
            }
        });
    }

    /// A register of a state, in which it is live.
    pub(super) fn register(&self, id: u32, register: Reg) -> i64 {
        let node = &self.nodes[id as usize];
        let place = self.live.at(node.pc).iter().position(|&live| live == register);
        place.map_or(0, |place| self.registers[node.registers as usize + place])
    }

    /// Puts the thread into a state. Mostly it is in it.
    pub(super) fn load(&mut self, id: u32) {
        let Running { local, rounds, id: running } = &mut self.running;
        if *running == Some(id) {
            return;
        }
        *running = Some(id);
        let node = &self.nodes[id as usize];
        local.pc = node.pc;
        for (register, &value) in self.live.at(node.pc).iter().zip(&self.registers[node.registers as usize..]) {
            local.registers[register.index()] = value;
        }
        let count = rounds.len();
        rounds.copy_from_slice(&self.rounds[id as usize * count..][..count]);
    }

    /// The number of the state that the thread is in.
    pub(super) fn intern(&mut self, pending: Pending, update: Option<RmwOp<i64>>) -> u32 {
        if is_cut_off(pending) {
            return self.intern_cut_off(pending, self.running.local.pc);
        }
        let new = self.nodes.len() as u32;
        let (hash, behaviour) = self.hashes();
        let Self { nodes, live, registers, rounds, running, .. } = self;
        let live = live.at(running.local.pc);
        let is_like = |slot: &Slot, hash: u32| {
            slot.hash == hash && {
                let node = &nodes[slot.id as usize];
                let mut values = registers[node.registers as usize..].iter();
                let is_same = |register: &Reg| values.next() == Some(&running.local.registers[register.index()]);
                node.pc == running.local.pc && live.iter().all(is_same)
            }
        };
        let count = running.rounds.len();
        let is_state =
            |slot: &Slot| is_like(slot, hash) && rounds[slot.id as usize * count..][..count] == running.rounds;
        match self.ids.entry(spread(hash), is_state, |slot| spread(slot.hash)) {
            Entry::Occupied(known) => {
                let id = known.get().id;
                self.running.id = Some(id);
                return id;
            }
            Entry::Vacant(vacant) => vacant.insert(Slot { hash, id: new }),
        };
        if count > 0 {
            let is_like = |slot: &Slot| is_like(slot, behaviour);
            let first = self.behaviours.entry(spread(behaviour), is_like, |slot| spread(slot.hash));
            let first = first.or_insert(Slot { hash: behaviour, id: new }).get().id;
            self.behaviour.push(first);
        }
        let place = registers.len() as u32;
        registers.extend(live.iter().map(|register| running.local.registers[register.index()]));
        let pc = running.local.pc;
        self.push(pending, pc, place, update);
        self.running.id = Some(new);
        new
    }

    /// The hash of the state that the thread is in, and the one without its rounds.
    fn hashes(&self) -> (u32, u32) {
        let Running { local, rounds, .. } = &self.running;
        let values = self.live.at(local.pc).iter().map(|register| local.registers[register.index()].cast_unsigned());
        let behaviour = hash_words(std::iter::once(u64::from(local.pc.0)).chain(values));
        if rounds.is_empty() {
            return (behaviour, behaviour);
        }
        let rounds = rounds.iter().map(|&count| u64::from(count));
        (hash_words(std::iter::once(u64::from(behaviour)).chain(rounds)), behaviour)
    }

    /// A new state that has ended otherwise than regularly, at an instruction.
    pub(super) fn intern_cut_off(&mut self, pending: Pending, pc: Pc) -> u32 {
        let new = self.nodes.len() as u32;
        if !self.running.rounds.is_empty() {
            self.behaviour.push(new);
        }
        self.push(pending, pc, self.registers.len() as u32, None);
        self.running.id = None;
        new
    }

    fn push(&mut self, pending: Pending, pc: Pc, registers: u32, update: Option<RmwOp<i64>>) {
        let node = Node {
            pending,
            first_result: 0,
            first: Successor::UNKNOWN,
            pc,
            registers,
            update: self.updates.len() as u32,
        };
        self.nodes.push(node);
        self.updates.extend(update);
        self.rounds.extend_from_slice(&self.running.rounds);
    }

    /// The operation of a state that rests at an atomic.
    #[inline]
    pub(super) fn update(&self, id: u32) -> RmwOp<i64> {
        self.updates[self.nodes[id as usize].update as usize]
    }

    /// Do two states differ in rounds at most?
    #[inline]
    pub(super) fn behave_alike(&self, one: u32, other: u32) -> bool {
        one == other || !self.behaviour.is_empty() && self.behaviour[one as usize] == self.behaviour[other as usize]
    }

    /// Where a result leads from a state, if that is known.
    #[inline]
    pub(super) fn successor(&self, from: u32, result: i64) -> Option<Successor> {
        let node = &self.nodes[from as usize];
        if node.first == Successor::UNKNOWN {
            None
        } else if node.first_result == result {
            Some(node.first)
        } else {
            self.successors.get(&(from, result)).copied()
        }
    }

    /// Notes where a result leads from a state.
    pub(super) fn note_successor(&mut self, from: u32, result: i64, successor: Successor) {
        let node = &mut self.nodes[from as usize];
        if node.first == Successor::UNKNOWN {
            (node.first_result, node.first) = (result, successor);
        } else {
            self.successors.insert((from, result), successor);
        }
    }

    /// Roughly how many bytes the states take.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + (self.registers.capacity() + self.rounds.capacity()) * size_of::<i64>()
            + self.updates.capacity() * size_of::<RmwOp<i64>>()
            + (self.ids.capacity() + self.behaviours.capacity()) * size_of::<Slot>()
            + self.successors.capacity() * size_of::<((u32, i64), Successor)>()
    }
}
