//! The local states of one thread, each stored once.
//!
//! A program that runs forwards meets a new local state at almost every step, so storing one has to be cheap: registers
//! lie one state after the other in one array, the thread computes on a copy that stays where the last step left it,
//! and nothing is allocated for a state of its own.

use std::hash::Hasher;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxHashMap, FxHasher};
use weakspot_model::ids::{Pc, Reg};
use weakspot_model::ir::{RmwOp, Thread};
use weakspot_model::local::LocalState;
use weakspot_model::problem::Fault;

use crate::system::{Misuse, Pending};

/// What is known of a local state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) pending: Pending,
    /// The operation, if it rests at an atomic.
    pub(super) update: Option<RmwOp<i64>>,
    pub(super) pc: Pc,
    pub(super) inside: bool,
    /// The same for all states that differ in rounds only.
    pub(super) behaviour: u32,
    /// The successor found first; the others are in [`ThreadTable::successors`].
    first: Option<(i64, Successor)>,
}

impl Node {
    /// Of this state nothing else is known yet.
    pub(super) fn new(pending: Pending, pc: Pc) -> Self {
        Self { pending, update: None, pc, inside: false, behaviour: 0, first: None }
    }

    /// Has it ended otherwise than regularly? Such states are not looked up.
    fn is_cut_off(&self) -> bool {
        self.pending.is_last() && self.pending != Pending::Ended
    }
}

/// Where a result leads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Successor {
    pub(super) target: u32,
    pub(super) jumped_back: bool,
}

/// A state by its hash, which is kept so that the table can grow without looking at states.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u64,
    id: u32,
}

/// A thread on its way to its next pause.
#[derive(Debug)]
pub(super) struct Running {
    /// The state.
    pub(super) local: LocalState,
    /// How often each instruction was reached by a jump backwards (only under a bound, else empty).
    pub(super) rounds: Vec<u32>,
    /// The number of the state, if it has one.
    id: Option<u32>,
}

/// The states of one thread.
#[derive(Debug)]
pub(super) struct ThreadTable {
    pub(super) nodes: Vec<Node>,
    /// The registers of each state.
    registers: Vec<i64>,
    /// The rounds of each state.
    rounds: Vec<u32>,
    pub(super) running: Running,
    /// Known successors by state and result.
    successors: FxHashMap<(u32, i64), Successor>,
    /// All states that are looked up.
    ids: HashTable<Slot>,
    /// The first state with these registers, whatever its rounds (only under a bound).
    behaviours: HashTable<Slot>,
    /// Where a misuse leads.
    pub(super) failures: FxHashMap<(u32, Misuse), u32>,
    /// What went wrong in the states that have failed.
    pub(super) faults: FxHashMap<u32, Fault>,
}

/// How many words a state may have.
fn hash_words(words: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = FxHasher::default();
    words.for_each(|word| hasher.write_u64(word));
    hasher.finish()
}

impl ThreadTable {
    /// No states; the thread is at its first instruction.
    pub(super) fn new(code: &Thread, is_bounded: bool) -> Self {
        let local = LocalState { pc: Pc(0), registers: vec![0; code.registers.len()] };
        let rounds = vec![0; if is_bounded { code.code.len() } else { 0 }];
        Self {
            nodes: Vec::new(),
            registers: Vec::new(),
            rounds: Vec::new(),
            running: Running { local, rounds, id: None },
            successors: FxHashMap::default(),
            ids: HashTable::new(),
            behaviours: HashTable::new(),
            failures: FxHashMap::default(),
            faults: FxHashMap::default(),
        }
    }

    /// The registers of a state.
    fn registers_of(&self, id: u32) -> &[i64] {
        let count = self.running.local.registers.len();
        &self.registers[id as usize * count..][..count]
    }

    /// A register of a state.
    pub(super) fn register(&self, id: u32, register: Reg) -> i64 {
        self.registers_of(id)[register.index()]
    }

    /// Puts the thread into a state. Mostly it is in it.
    pub(super) fn load(&mut self, id: u32) {
        if self.running.id == Some(id) {
            return;
        }
        let Running { local, rounds, id: running } = &mut self.running;
        *running = Some(id);
        local.pc = self.nodes[id as usize].pc;
        let count = local.registers.len();
        local.registers.copy_from_slice(&self.registers[id as usize * count..][..count]);
        let count = rounds.len();
        rounds.copy_from_slice(&self.rounds[id as usize * count..][..count]);
    }

    /// The number of the state that the thread is in; the node is about it.
    pub(super) fn intern(&mut self, mut node: Node) -> u32 {
        let Running { local, rounds, .. } = &self.running;
        let new = self.nodes.len() as u32;
        let behaviour = hash_words(
            std::iter::once(u64::from(local.pc.0)).chain(local.registers.iter().map(|&value| value.cast_unsigned())),
        );
        let is_same = |nodes: &[Node], registers: &[i64], id: u32| {
            let count = local.registers.len();
            nodes[id as usize].pc == local.pc && registers[id as usize * count..][..count] == local.registers
        };
        node.behaviour = new;
        if !node.is_cut_off() {
            let hash = if rounds.is_empty() {
                behaviour
            } else {
                hash_words(std::iter::once(behaviour).chain(rounds.iter().map(|&count| u64::from(count))))
            };
            let has_rounds = |id: u32| self.rounds[id as usize * rounds.len()..][..rounds.len()] == *rounds;
            let is_state = |slot: &Slot| {
                slot.hash == hash && is_same(&self.nodes, &self.registers, slot.id) && has_rounds(slot.id)
            };
            match self.ids.entry(hash, is_state, |slot| slot.hash) {
                Entry::Occupied(known) => {
                    let id = known.get().id;
                    self.running.id = Some(id);
                    return id;
                }
                Entry::Vacant(vacant) => vacant.insert(Slot { hash, id: new }),
            };
            if !rounds.is_empty() {
                let slot = Slot { hash: behaviour, id: new };
                let is_like = |slot: &Slot| slot.hash == behaviour && is_same(&self.nodes, &self.registers, slot.id);
                let first = self.behaviours.entry(behaviour, is_like, |slot| slot.hash).or_insert(slot);
                node.behaviour = first.get().id;
            }
        }
        self.registers.extend_from_slice(&local.registers);
        self.rounds.extend_from_slice(rounds);
        self.nodes.push(node);
        self.running.id = Some(new);
        new
    }

    /// Where a result leads from a state, if that is known.
    #[inline]
    pub(super) fn successor(&self, from: u32, result: i64) -> Option<Successor> {
        let (first, successor) = self.nodes[from as usize].first?;
        if first == result { Some(successor) } else { self.successors.get(&(from, result)).copied() }
    }

    /// Notes where a result leads from a state.
    pub(super) fn note_successor(&mut self, from: u32, result: i64, successor: Successor) {
        let first = &mut self.nodes[from as usize].first;
        if first.is_none() {
            *first = Some((result, successor));
        } else {
            self.successors.insert((from, result), successor);
        }
    }

    /// Roughly how many bytes the states take.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.registers.capacity() * size_of::<i64>()
            + self.rounds.capacity() * size_of::<u32>()
            + (self.ids.capacity() + self.behaviours.capacity()) * size_of::<Slot>()
            + self.successors.capacity() * size_of::<((u32, i64), Successor)>()
    }
}
