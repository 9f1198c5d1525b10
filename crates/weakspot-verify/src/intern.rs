//! Interning: equal values get the same small number, so that states can be rows of numbers.

use std::hash::{BuildHasher, BuildHasherDefault, Hash};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

/// A table of distinct values.
#[derive(Debug, Clone)]
pub struct Interner<T> {
    values: Vec<T>,
    table: HashTable<u32>,
}

fn hash<T: Hash>(value: &T) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(value)
}

impl<T: Hash + Eq + Clone> Interner<T> {
    /// Empty.
    pub fn new() -> Self {
        Self { values: Vec::new(), table: HashTable::new() }
    }

    /// The number of a value; the first one interned gets 0.
    pub fn intern(&mut self, value: &T) -> u32 {
        let hash_of = hash(value);
        let values = &self.values;
        if let Some(&id) = self.table.find(hash_of, |&id| values[id as usize] == *value) {
            return id;
        }
        let id = self.values.len() as u32;
        self.table.insert_unique(hash_of, id, |&id| hash(&values[id as usize]));
        self.values.push(value.clone());
        id
    }

    /// The value with this number.
    pub fn get(&self, id: u32) -> &T {
        &self.values[id as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }
}
