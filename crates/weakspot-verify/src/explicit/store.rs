//! The set of states met so far: a flat arena and an open-addressing table of indices into it.
//!
//! States are rows of `W` numbers in the order they were met, which is also the order breadth-first search expands
//! them: the arena is its own queue. For each row there is the number of its parent, for counterexamples.
//!
//! An entry of the table is 32 bits. A table of `2^k` entries holds fewer than `2^k` rows, so an index needs `k` bits;
//! the other `32 - k` carry a piece of the row's hash, and most entries that do not match are told apart without
//! looking into the arena. A state costs `4 W` bytes in the arena, 4 for its parent and 5.3 to 10.7 in the table.

/// No row.
pub(crate) const NO_PARENT: u32 = u32::MAX;

/// An entry that holds no index. The index with all bits set is never used.
const EMPTY: u32 = u32::MAX;

/// Stands for a row that is there, while a batch is looked up.
const KNOWN: u32 = 0;

/// Rows looked up together.
const CHUNK: usize = 32;

const FIRST_BITS: u32 = 10;

/// The hash of a state: top bits place it in the table, low bits say which worker owns it.
pub(crate) fn hash_row<const W: usize>(row: &[u32; W]) -> u64 {
    const MULTIPLIER: u64 = 0x9E6F_0F2B_7D4A_C5E3;
    let mut hash = 0x51D2_8C3F_A06B_97E5_u64;
    let mut words = row.chunks_exact(2);
    for pair in words.by_ref() {
        hash = fold(hash ^ (u64::from(pair[0]) | u64::from(pair[1]) << 32), MULTIPLIER);
    }
    if let [last] = words.remainder() {
        hash = fold(hash ^ u64::from(*last), MULTIPLIER);
    }
    fold(hash, MULTIPLIER.rotate_left(29))
}

/// Both halves of a product: every bit of the result depends on every bit of the argument.
fn fold(value: u64, multiplier: u64) -> u64 {
    let product = u128::from(value) * u128::from(multiplier);
    (product as u64) ^ (product >> 64) as u64
}

/// A set of rows in order of insertion, with their parents.
#[derive(Debug)]
pub(crate) struct StateStore<const W: usize> {
    rows: Vec<[u32; W]>,
    parents: Vec<u32>,
    /// `2^bits` entries.
    table: Vec<u32>,
    bits: u32,
    /// How many rows the table may hold: three quarters of its size.
    room: usize,
}

impl<const W: usize> StateStore<W> {
    /// Indices are 32 bits; a search has to stop some time before that.
    pub const MOST_ROWS: usize = room(32);

    pub fn new() -> Self {
        Self {
            rows: Vec::new(),
            parents: Vec::new(),
            table: vec![EMPTY; 1 << FIRST_BITS],
            bits: FIRST_BITS,
            room: room(FIRST_BITS),
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn row(&self, index: usize) -> &[u32; W] {
        &self.rows[index]
    }

    pub fn parent(&self, index: usize) -> u32 {
        self.parents[index]
    }

    /// Adds a row unless it is there; true if it was new. `hash` is [`hash_row`] of it.
    pub fn insert(&mut self, hash: u64, row: &[u32; W], parent: u32) -> bool {
        let mask = self.table.len() - 1;
        let tag = tag(hash, self.bits);
        let index_mask = index_mask(self.bits);
        let mut at = self.home(hash);
        loop {
            let entry = self.table[at];
            if entry == EMPTY {
                self.table[at] = tag | self.rows.len() as u32;
                self.push(row, parent);
                return true;
            }
            if entry & !index_mask == tag && self.rows[(entry & index_mask) as usize] == *row {
                return false;
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds rows with their parents unless they are there.
    ///
    /// What costs time in a large table is waiting for memory. So several passes: look at the entry where each row
    /// should be, go from there to the entry that may stand for it, compare the row that entry names, and only then add
    /// what was not found. The look-ups of a pass do not depend on each other, and the processor waits for many at once.
    pub fn insert_batch(&mut self, batch: &[([u32; W], u32)]) {
        for chunk in batch.chunks(CHUNK) {
            let mut hashes = [0; CHUNK];
            let mut entries = [EMPTY; CHUNK];
            for (at, (row, _)) in chunk.iter().enumerate() {
                hashes[at] = hash_row(row);
                entries[at] = self.table[self.home(hashes[at])];
            }
            for (hash, entry) in hashes.iter().zip(&mut entries).take(chunk.len()) {
                *entry = self.candidate(*hash, *entry);
            }
            for (entry, (row, _)) in entries.iter_mut().zip(chunk) {
                let known = *entry != EMPTY && self.rows[(*entry & index_mask(self.bits)) as usize] == *row;
                *entry = if known { KNOWN } else { EMPTY };
            }
            for (at, (row, parent)) in chunk.iter().enumerate() {
                if entries[at] != KNOWN {
                    self.insert(hashes[at], row, *parent);
                }
            }
        }
    }

    /// The first entry that may stand for a row with this hash; `home` is the entry where it should be.
    fn candidate(&self, hash: u64, home: u32) -> u32 {
        let mask = self.table.len() - 1;
        let tag = tag(hash, self.bits);
        let tag_mask = !index_mask(self.bits);
        let mut at = self.home(hash);
        let mut entry = home;
        while entry != EMPTY && entry & tag_mask != tag {
            at = (at + 1) & mask;
            entry = self.table[at];
        }
        entry
    }

    /// Where a row with this hash should be.
    fn home(&self, hash: u64) -> usize {
        (hash >> (64 - self.bits)) as usize
    }

    fn push(&mut self, row: &[u32; W], parent: u32) {
        if self.rows.len() == self.rows.capacity() {
            // An eighth more, not twice as much: large blocks are moved without copying, and memory is the limit.
            let more = self.rows.len() / 8 + 4096 / W + 1;
            self.rows.reserve_exact(more);
            self.parents.reserve_exact(more);
        }
        self.rows.push(*row);
        self.parents.push(parent);
        if self.rows.len() > self.room {
            self.grow();
        }
    }

    fn grow(&mut self) {
        self.bits += 1;
        self.room = room(self.bits);
        let size = 1 << self.bits;
        self.table = Vec::new();
        self.table = vec![EMPTY; size];
        for (chunk_index, chunk) in self.rows.chunks(CHUNK).enumerate() {
            let mut hashes = [0; CHUNK];
            let mut taken = [false; CHUNK];
            for (at, row) in chunk.iter().enumerate() {
                hashes[at] = hash_row(row);
                taken[at] = self.table[(hashes[at] >> (64 - self.bits)) as usize] != EMPTY;
            }
            for at in 0..chunk.len() {
                let mut place = (hashes[at] >> (64 - self.bits)) as usize + usize::from(taken[at]);
                place &= size - 1;
                while self.table[place] != EMPTY {
                    place = (place + 1) & (size - 1);
                }
                self.table[place] = tag(hashes[at], self.bits) | (chunk_index * CHUNK + at) as u32;
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<[u32; W]>() + (self.parents.capacity() + self.table.capacity()) * 4
    }
}

const fn room(bits: u32) -> usize {
    (1_usize << bits) / 4 * 3
}

/// The bits of an entry that hold the index.
fn index_mask(bits: u32) -> u32 {
    ((1_u64 << bits) - 1) as u32
}

/// The bits of an entry that hold a piece of the hash.
fn tag(hash: u64, bits: u32) -> u32 {
    ((hash >> 8 << bits) & 0xFFFF_FFFF) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_stored_once() {
        let mut store = StateStore::<3>::new();
        for round in 0..2 {
            for number in 0..100_000_u32 {
                let row = [number % 17, number / 17, number % 5];
                assert_eq!(store.insert(hash_row(&row), &row, number), round == 0);
            }
        }
        assert_eq!(store.len(), 100_000);
        assert_eq!(store.row(17), &[0, 1, 2]);
        assert_eq!(store.parent(17), 17);
    }

    #[test]
    fn a_million_states_of_five_numbers_take_less_than_forty_bytes_each() {
        let mut store = StateStore::<5>::new();
        for number in 0..1_000_000_u32 {
            let row = [number, 1, number >> 3, 2, 3];
            store.insert(hash_row(&row), &row, 0);
        }
        assert!(store.bytes() < 40 * store.len(), "{} bytes", store.bytes());
    }
}
