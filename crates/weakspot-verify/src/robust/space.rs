//! Stored states of the instrumented program: fixed-width rows of words in one flat arena, each with the move that
//! first led to it.

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher as _;

use super::attack::Move;

/// A stored state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateIndex(u32);

impl StateIndex {
    /// The initial state.
    pub const FIRST: Self = Self(0);

    /// The state stored after this one.
    pub fn following(self) -> Self {
        Self(self.0 + 1)
    }

    /// Position in the arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a state was first reached.
#[derive(Clone, Copy)]
struct Origin {
    parent: StateIndex,
    by: Move,
}

/// All stored states, in the order in which they were found (breadth first).
pub struct StateSpace {
    width: usize,
    words: Vec<u32>,
    /// One for each state but the first.
    origins: Vec<Origin>,
    table: HashTable<u32>,
}

fn hash(words: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    for &word in words {
        hasher.write_u32(word);
    }
    hasher.finish()
}

impl StateSpace {
    /// For states of this many words.
    pub fn new(width: usize) -> Self {
        Self { width, words: Vec::new(), origins: Vec::new(), table: HashTable::new() }
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.words.len() / self.width
    }

    /// The state that was found last.
    pub fn newest(&self) -> StateIndex {
        StateIndex(self.len() as u32 - 1)
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let table = self.table.capacity() * (size_of::<u32>() + 1);
        (self.words.capacity() * size_of::<u32>() + self.origins.capacity() * size_of::<Origin>() + table) as u64
    }

    /// The words of a state; `None` past the last.
    pub fn get(&self, state: StateIndex) -> Option<&[u32]> {
        self.words.chunks_exact(self.width).nth(state.index())
    }

    /// Adds a state unless it is there. The first one has no origin.
    pub fn insert(&mut self, state: &[u32], origin: Option<(StateIndex, Move)>) {
        debug_assert_eq!(state.len(), self.width);
        let (words, width) = (&self.words, self.width);
        let row = |index: u32| &words[index as usize * width..(index as usize + 1) * width];
        let hash_of = hash(state);
        if self.table.find(hash_of, |&index| row(index) == state).is_some() {
            return;
        }
        let index = self.len() as u32;
        self.table.insert_unique(hash_of, index, |&index| hash(row(index)));
        self.words.extend_from_slice(state);
        if let Some((parent, by)) = origin {
            self.origins.push(Origin { parent, by });
        }
    }

    /// The moves from the initial state to `state`, then `last`.
    pub fn path_to(&self, state: StateIndex, last: Move) -> Vec<Move> {
        let mut moves = vec![last];
        let mut at = state;
        while at != StateIndex::FIRST {
            let origin = self.origins[at.index() - 1];
            moves.push(origin.by);
            at = origin.parent;
        }
        moves.reverse();
        moves
    }
}
