//! Binary relations on a few events, as rows of bits.
//!
//! A row holds the successors of one element. Up to 64 elements a row is one word, and [`is_acyclic_64`] decides on
//! borrowed rows without allocating; [`Relation`] has as many words a row as it needs.

/// Is the relation free of cycles? `rows[i]` holds the successors of element `i`; at most 64 elements.
///
/// Takes away elements without successors until none is left (acyclic) or none can be taken (a cycle).
pub fn is_acyclic_64(rows: &[u64]) -> bool {
    debug_assert!(rows.len() <= 64, "one word a row");
    let mut left = if rows.len() == 64 { u64::MAX } else { (1 << rows.len()) - 1 };
    loop {
        let before = left;
        let mut candidates = left;
        while candidates != 0 {
            let element = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            if rows[element] & left == 0 {
                left &= !(1 << element);
            }
        }
        if left == 0 {
            return true;
        }
        if left == before {
            return false;
        }
    }
}

/// A relation on `0..size`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    size: usize,
    words: usize,
    rows: Vec<u64>,
}

impl Relation {
    /// The empty relation.
    pub fn new(size: usize) -> Self {
        let words = size.div_ceil(64).max(1);
        Self { size, words, rows: vec![0; size * words] }
    }

    /// Adds a pair.
    pub fn add(&mut self, from: usize, to: usize) {
        self.rows[from * self.words + to / 64] |= 1 << (to % 64);
    }

    /// Is the pair in it?
    pub fn contains(&self, from: usize, to: usize) -> bool {
        self.rows[from * self.words + to / 64] >> (to % 64) & 1 == 1
    }

    /// The successors of an element, in ascending order.
    pub fn successors(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        let row = &self.rows[from * self.words..(from + 1) * self.words];
        row.iter().enumerate().flat_map(|(word, &bits)| Ones(bits).map(move |bit| word * 64 + bit))
    }

    /// Free of cycles?
    pub fn is_acyclic(&self) -> bool {
        if self.words == 1 {
            return is_acyclic_64(&self.rows);
        }
        let mut incoming = vec![0_u32; self.size];
        for to in (0..self.size).flat_map(|from| self.successors(from)) {
            incoming[to] += 1;
        }
        let mut ready: Vec<usize> = (0..self.size).filter(|&element| incoming[element] == 0).collect();
        let mut taken = 0;
        while let Some(element) = ready.pop() {
            taken += 1;
            for to in self.successors(element) {
                incoming[to] -= 1;
                if incoming[to] == 0 {
                    ready.push(to);
                }
            }
        }
        taken == self.size
    }

    /// A cycle with as few elements as possible, the one that starts at the smallest element among those; `None` if
    /// there is none. Its elements are in order and each is listed once.
    pub fn shortest_cycle(&self) -> Option<Vec<usize>> {
        let mut best: Option<Vec<usize>> = None;
        for start in 0..self.size {
            if let Some(cycle) = self.shortest_cycle_through(start)
                && best.as_ref().is_none_or(|best| cycle.len() < best.len())
            {
                best = Some(cycle);
            }
        }
        best
    }

    fn shortest_cycle_through(&self, start: usize) -> Option<Vec<usize>> {
        let mut parent = vec![None; self.size];
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(element) = queue.pop_front() {
            for to in self.successors(element) {
                if to == start {
                    let up = |&at: &usize| if at == start { None } else { parent[at] };
                    let mut cycle: Vec<usize> = std::iter::successors(Some(element), up).collect();
                    cycle.reverse();
                    return Some(cycle);
                }
                if parent[to].is_none() {
                    parent[to] = Some(element);
                    queue.push_back(to);
                }
            }
        }
        None
    }
}

/// The positions of the ones of a word, in ascending order.
struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(size: usize, pairs: &[(usize, usize)]) -> Relation {
        let mut relation = Relation::new(size);
        for &(from, to) in pairs {
            relation.add(from, to);
        }
        relation
    }

    #[test]
    fn one_word_and_many_words_agree() {
        for size in [5, 64, 65, 200] {
            let path: Vec<_> = (0..size - 1).map(|i| (i, i + 1)).collect();
            let mut relation = relation(size, &path);
            assert!(relation.is_acyclic());
            assert_eq!(relation.shortest_cycle(), None);
            relation.add(size - 1, size - 3);
            assert!(!relation.is_acyclic());
            assert_eq!(relation.shortest_cycle(), Some(vec![size - 3, size - 2, size - 1]));
        }
    }

    #[test]
    fn the_shortest_of_several_cycles_is_found() {
        let relation = relation(6, &[(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (5, 5)]);
        assert_eq!(relation.shortest_cycle(), Some(vec![5]));
    }
}
