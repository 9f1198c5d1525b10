//! The abstract store buffer of one thread: the rules of Sem. 3 and Sem. 4 and the orders of Sec. 4.1 and 4.3.
//!
//! The paper represents a buffer by a tuple ⟨l, S, H⟩: the latest store `l`, the oldest `k` stores `H` in order, and the
//! set `S` of all stores behind them. [`Fifo`] is that tuple for one location.
//!
//! | paper | here |
//! |---|---|
//! | STORE-H, STORE-S | [`Rules::store`] |
//! | FLUSH-H | [`Rules::commits`], the head is not empty |
//! | FLUSH-SN, FLUSH-SD (`fd`; without its side condition: `set`) | `Rules::flush_set` |
//! | FLUSH-NE, FLUSH-E (`pd`) | `Rules::flush_set` |
//! | LOAD-G, LOAD-B (`set`: any element of S) | [`AbstractBuffer::forward`] |
//! | emp(x) | [`AbstractBuffer::holds`], [`AbstractBuffer::is_empty`] |
//! | `⊑_b` of Sec. 4.1, and that of Sec. 4.3 | [`Rules::covers`] |
//!
//! # What a tuple stands for
//! | domain | the buffers w of ⟨l, S, H⟩ |
//! |---|---|
//! | `fd` | w begins with H, the set of all stores behind is exactly S, the last store of w is l |
//! | `pd` | w begins with H, the stores behind are all in S, some if S is not empty, the last store of w is l |
//! | `set` | the set of all stores of w is exactly S; H is empty and l is not kept |
//!
//! In all three, whether a location has pending stores is known exactly. [`Rules::covers`] is inclusion of these sets. For
//! `fd` that is the paper's order. For `pd` it relates a little more than the printed definition (which is not even
//! reflexive where S is empty and H is not): a covered state never adds behaviour, so the answer is the same.
//!
//! # TSO
//! One buffer a thread: `H` is one list of stores to any location ([`AbstractBuffer::head`]), and behind it each location
//! has its own `l` and `S`. So the latest store to each location is known for the thread's own loads, and the order
//! between locations is known for the first `k` stores.
//!
//! # Store-store fences (PSO)
//! The fence starts a new segment, as in [`weakspot_model::buffer`]; only stores of the first segment can be flushed. At
//! most [`Rules::max_segments`] segments are kept. A fence that would start one more is forgotten: the stores behind it
//! join the last segment and may overtake, which only adds behaviour. `set` keeps no order at all, so it forgets every
//! store-store fence.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::Loc;

use super::Domain;

/// A buffered store: its label, if stores are labelled, and its value ([`super::buffers::Entries`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry(pub(super) u32);

impl Entry {
    /// In place of the latest store, where the domain does not keep it.
    const UNKNOWN: Self = Self(u32::MAX);
}

/// Between the parts of a signature.
const SEPARATOR: u32 = u32::MAX;

/// The pending stores of one location: ⟨l, S, H⟩. Not empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Fifo {
    pub(super) loc: Loc,
    /// l.
    latest: Entry,
    /// S, sorted.
    pub(super) set: Vec<Entry>,
    /// H. Empty under TSO, where [`AbstractBuffer::head`] takes its place.
    pub(super) head: Vec<Entry>,
}

impl Fifo {
    /// The latest store, if the domain keeps it.
    pub(super) fn latest(&self) -> Option<Entry> {
        (self.latest != Entry::UNKNOWN).then_some(self.latest)
    }
}

/// The pending stores of one thread.
///
/// No segment but the last is empty, and the last is empty only as the mark of a fence behind other segments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct AbstractBuffer {
    /// TSO: the oldest stores in order.
    pub(super) head: Vec<(Loc, Entry)>,
    /// PSO: the stores between store-store fences; TSO: all stores behind the head. Each sorted by location.
    pub(super) segments: Vec<Vec<Fifo>>,
}

/// What a thread's own load finds in its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forwarded<'a> {
    /// Nothing: it reads memory.
    Nothing,
    /// This store.
    Latest(Entry),
    /// One of these stores.
    AnyOf(&'a [Entry]),
}

impl AbstractBuffer {
    /// Is nothing pending?
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.segments.is_empty()
    }

    /// Is a store to the location pending?
    pub(super) fn holds(&self, loc: Loc) -> bool {
        self.forward(loc) != Forwarded::Nothing
    }

    /// What an own load of the location finds.
    pub(super) fn forward(&self, loc: Loc) -> Forwarded<'_> {
        let youngest = self.segments.iter().rev().find_map(|segment| segment.iter().find(|fifo| fifo.loc == loc));
        match youngest {
            Some(fifo) if fifo.latest == Entry::UNKNOWN => Forwarded::AnyOf(&fifo.set),
            Some(fifo) => Forwarded::Latest(fifo.latest),
            None => match self.head.iter().rev().find(|(other, _)| *other == loc) {
                Some(&(_, entry)) => Forwarded::Latest(entry),
                None => Forwarded::Nothing,
            },
        }
    }

    /// Every store that is (`pd`: may be) pending, with its location; some may be named twice.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Loc, Entry)> + '_ {
        let behind = self.segments.iter().flatten().flat_map(|fifo| {
            let all = fifo.head.iter().chain(&fifo.set);
            all.map(|&entry| (fifo.loc, entry))
        });
        self.head.iter().copied().chain(behind)
    }

    /// Were stores put into a set, so that their order is lost?
    pub(super) fn is_exact(&self) -> bool {
        self.segments.iter().flatten().all(|fifo| fifo.set.is_empty())
    }

    /// The latest store of each pending location. Under TSO a store moves between head and sets, so both count.
    fn latest_stores(&self) -> Vec<u32> {
        let mut locations: Vec<Loc> = self.entries().map(|(loc, _)| loc).collect();
        locations.sort_unstable();
        locations.dedup();
        let latest = |loc| match self.forward(loc) {
            Forwarded::Latest(entry) => entry.0,
            Forwarded::Nothing | Forwarded::AnyOf(_) => u32::MAX,
        };
        locations.into_iter().flat_map(|loc| [loc.0, latest(loc)]).collect()
    }

    /// Every pending store, each once.
    fn distinct_entries(&self) -> Vec<(Loc, Entry)> {
        let mut entries: Vec<(Loc, Entry)> = self.entries().collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    /// Drops the first segment if it has become empty.
    fn normalise(&mut self) {
        while self.segments.first().is_some_and(Vec::is_empty) {
            self.segments.remove(0);
        }
    }
}

/// The rules of one abstract domain under one memory model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) domain: Domain,
    pub(super) model: MemoryModel,
    /// The paper's k; 0 for `set`.
    pub(super) k: usize,
    /// A buffer whose stores are all known in order is covered by none that has lost an order. For fence inference:
    /// otherwise what fences make exact would be labelled together with what they make go away. (The paper's order for
    /// `pd` asks for this, `S₁ ≠ ∅`; verification does without.)
    pub(super) keeps_exact: bool,
}

impl Rules {
    pub(super) fn new(domain: Domain, model: MemoryModel, k: u32) -> Self {
        let k = if domain == Domain::Set { 0 } else { k as usize };
        Self { domain, model, k, keeps_exact: false }
    }

    /// How many segments are kept under PSO.
    fn max_segments(self) -> usize {
        if self.domain == Domain::Set { 1 } else { self.k + 2 }
    }

    /// Can one buffer cover another one at all?
    pub(super) fn has_order(self) -> bool {
        self.model != MemoryModel::Sc && (self.k > 0 || self.domain == Domain::Pd)
    }

    /// What two buffers must agree on for one to cover the other: pending locations, segment by segment, with their
    /// latest stores; which stores are pending, where sets must be the same (all but `pd`); and everything, where
    /// exact buffers are covered by none other.
    pub(super) fn signature(self, buffer: &AbstractBuffer) -> Vec<u32> {
        let mut signature = if self.model == MemoryModel::Tso { buffer.latest_stores() } else { Vec::new() };
        if self.model == MemoryModel::Pso {
            for segment in &buffer.segments {
                signature.extend(segment.iter().flat_map(|fifo| [fifo.loc.0, fifo.latest.0]));
                signature.push(SEPARATOR);
            }
        }
        if self.domain != Domain::Pd {
            signature.push(SEPARATOR);
            signature.extend(buffer.distinct_entries().into_iter().flat_map(|(loc, entry)| [loc.0, entry.0]));
        }
        if self.keeps_exact {
            signature.push(SEPARATOR);
            self.sign_exact(buffer, &mut signature);
        }
        signature
    }

    /// Which parts of a buffer are exact, and those.
    fn sign_exact(self, buffer: &AbstractBuffer, signature: &mut Vec<u32>) {
        if self.model == MemoryModel::Tso {
            signature.push(u32::from(buffer.segments.is_empty()));
            let exact = buffer.head.iter().filter(|_| buffer.segments.is_empty());
            signature.extend(exact.flat_map(|(loc, entry)| [loc.0, entry.0]));
            return;
        }
        for fifo in buffer.segments.iter().flatten() {
            let exact: &[Entry] = if fifo.set.is_empty() { &fifo.head } else { &[] };
            signature.extend(exact.iter().map(|entry| entry.0));
            signature.push(SEPARATOR);
        }
    }

    /// Some bits for every buffer, such that one buffer covers another only if it has all the bits of that one.
    pub(super) fn pending_bits(buffer: &AbstractBuffer) -> u64 {
        let bit = |(loc, entry): (Loc, Entry)| {
            let mixed = loc.0.wrapping_mul(0x9e37_79b9).wrapping_add(entry.0.wrapping_mul(0x85eb_ca6b));
            1_u64 << (mixed >> 26)
        };
        buffer.entries().fold(0, |bits, entry| bits | bit(entry))
    }

    /// STORE-H and STORE-S.
    pub(super) fn store(self, buffer: &mut AbstractBuffer, loc: Loc, entry: Entry) {
        let tso = self.model == MemoryModel::Tso;
        if tso && buffer.segments.is_empty() && buffer.head.len() < self.k {
            buffer.head.push((loc, entry));
            return;
        }
        if buffer.segments.is_empty() {
            buffer.segments.push(Vec::new());
        }
        let exact = if tso { 0 } else { self.k };
        let last = buffer.segments.len() - 1;
        let segment = &mut buffer.segments[last];
        let at = match segment.binary_search_by_key(&loc, |fifo| fifo.loc) {
            Ok(at) => at,
            Err(at) => {
                segment.insert(at, Fifo { loc, latest: entry, set: Vec::new(), head: Vec::new() });
                at
            }
        };
        let fifo = &mut segment[at];
        if fifo.set.is_empty() && fifo.head.len() < exact {
            fifo.head.push(entry);
        } else {
            insert(&mut fifo.set, entry);
        }
        fifo.latest = if self.domain == Domain::Set { Entry::UNKNOWN } else { entry };
    }

    /// `fence(store_store)`.
    pub(super) fn fence_stores(self, buffer: &mut AbstractBuffer) {
        if self.needs_segment(buffer) && !self.forgets_fence(buffer) {
            buffer.segments.push(Vec::new());
        }
    }

    /// Would a store-store fence here be forgotten?
    pub(super) fn forgets_fence(self, buffer: &AbstractBuffer) -> bool {
        self.needs_segment(buffer) && buffer.segments.len() >= self.max_segments()
    }

    fn needs_segment(self, buffer: &AbstractBuffer) -> bool {
        self.model == MemoryModel::Pso && buffer.segments.last().is_some_and(|last| !last.is_empty())
    }

    /// Every store that may be flushed next, and the buffer after it.
    pub(super) fn commits(self, buffer: &AbstractBuffer) -> Vec<(Loc, Entry, AbstractBuffer)> {
        if let Some(&(loc, entry)) = buffer.head.first() {
            let mut after = buffer.clone();
            after.head.remove(0);
            return vec![(loc, entry, after)];
        }
        let first = buffer.segments.first().map_or(&[][..], Vec::as_slice);
        let mut commits = Vec::new();
        for (index, fifo) in first.iter().enumerate() {
            for (entry, rest) in self.flush(fifo) {
                let mut after = buffer.clone();
                if let Some(rest) = rest {
                    after.segments[0][index] = rest;
                } else {
                    after.segments[0].remove(index);
                    after.normalise();
                }
                commits.push((fifo.loc, entry, after));
            }
        }
        commits
    }

    /// FLUSH-H, or one of the rules for sets.
    fn flush(self, fifo: &Fifo) -> Vec<(Entry, Option<Fifo>)> {
        let Some(&oldest) = fifo.head.first() else { return self.flush_set(fifo) };
        let mut rest = fifo.clone();
        rest.head.remove(0);
        let is_last = rest.head.is_empty() && rest.set.is_empty();
        vec![(oldest, (!is_last).then_some(rest))]
    }

    /// FLUSH-SN and FLUSH-SD, or FLUSH-NE and FLUSH-E.
    fn flush_set(self, fifo: &Fifo) -> Vec<(Entry, Option<Fifo>)> {
        let mut flushed: Vec<_> = fifo.set.iter().map(|&entry| (entry, Some(fifo.clone()))).collect();
        if self.domain == Domain::Pd {
            flushed.push((fifo.latest, None));
            return flushed;
        }
        for (index, &entry) in fifo.set.iter().enumerate() {
            let only = fifo.set.len() == 1;
            if entry == fifo.latest && !only {
                continue;
            }
            let mut rest = fifo.clone();
            rest.set.remove(index);
            flushed.push((entry, (!only).then_some(rest)));
        }
        flushed
    }

    /// Does `large` stand for every buffer that `small` stands for? Both have the same signature.
    pub(super) fn covers(self, large: &AbstractBuffer, small: &AbstractBuffer) -> bool {
        if large == small {
            return true;
        }
        if self.model == MemoryModel::Tso {
            if self.keeps_exact && small.segments.is_empty() {
                return false;
            }
            return small.head.starts_with(&large.head) && {
                let moved = move_behind(small, large.head.len());
                self.segment_covers(&large.segments, &moved.segments)
            };
        }
        self.segment_covers(&large.segments, &small.segments)
    }

    fn segment_covers(self, large: &[Vec<Fifo>], small: &[Vec<Fifo>]) -> bool {
        let same = |large: &Vec<Fifo>, small: &Vec<Fifo>| {
            large.len() == small.len() && large.iter().zip(small).all(|(large, small)| self.fifo_covers(large, small))
        };
        large.len() == small.len() && large.iter().zip(small).all(|(large, small)| same(large, small))
    }

    fn fifo_covers(self, large: &Fifo, small: &Fifo) -> bool {
        if (large.loc, large.latest) != (small.loc, small.latest) || !small.head.starts_with(&large.head) {
            return false;
        }
        if self.keeps_exact && small.set.is_empty() && !large.set.is_empty() {
            return false;
        }
        let mut behind = small.set.clone();
        for &entry in &small.head[large.head.len()..] {
            insert(&mut behind, entry);
        }
        match self.domain {
            Domain::Pd => {
                behind.is_empty() == large.set.is_empty() && behind.iter().all(|e| large.set.binary_search(e).is_ok())
            }
            Domain::Fd | Domain::Set => behind == large.set,
        }
    }
}

/// The same buffer with only the first `kept` stores of its head in order.
fn move_behind(buffer: &AbstractBuffer, kept: usize) -> AbstractBuffer {
    let mut moved = buffer.clone();
    let rest = moved.head.split_off(kept);
    if !rest.is_empty() && moved.segments.is_empty() {
        moved.segments.push(Vec::new());
    }
    for (loc, entry) in rest {
        let segment = &mut moved.segments[0];
        match segment.binary_search_by_key(&loc, |fifo| fifo.loc) {
            Ok(at) => {
                // What was behind the head is younger; what was moved before is older.
                if !buffer.segments.first().is_some_and(|behind| behind.iter().any(|fifo| fifo.loc == loc)) {
                    segment[at].latest = entry;
                }
                insert(&mut segment[at].set, entry);
            }
            Err(at) => segment.insert(at, Fifo { loc, latest: entry, set: vec![entry], head: Vec::new() }),
        }
    }
    moved
}

fn insert(set: &mut Vec<Entry>, entry: Entry) {
    if let Err(at) = set.binary_search(&entry) {
        set.insert(at, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Loc = Loc(0);
    const Y: Loc = Loc(1);
    const A: Entry = Entry(1);
    const B: Entry = Entry(2);

    fn rules(domain: Domain, model: MemoryModel, k: u32) -> Rules {
        Rules::new(domain, model, k)
    }

    fn buffer(rules: Rules, stores: &[(Loc, Entry)]) -> AbstractBuffer {
        let mut buffer = AbstractBuffer::default();
        for &(loc, entry) in stores {
            rules.store(&mut buffer, loc, entry);
        }
        buffer
    }

    /// What can be flushed next, each once.
    fn flushable(rules: Rules, buffer: &AbstractBuffer) -> Vec<(Loc, Entry)> {
        let mut flushable: Vec<_> = rules.commits(buffer).into_iter().map(|(loc, entry, _)| (loc, entry)).collect();
        flushable.sort_unstable();
        flushable.dedup();
        flushable
    }

    #[test]
    fn k_stores_of_a_location_stay_in_order_under_pso() {
        let rules = rules(Domain::Fd, MemoryModel::Pso, 2);
        let ab = buffer(rules, &[(X, A), (X, B)]);
        assert_eq!((flushable(rules, &ab), ab.is_exact()), (vec![(X, A)], true));
        let aba = buffer(rules, &[(X, A), (X, B), (X, A)]);
        assert!(!aba.is_exact());
        assert_eq!(aba.forward(X), Forwarded::Latest(A));
    }

    #[test]
    fn without_k_any_store_of_the_set_may_come_first_but_the_latest_stays_to_the_end() {
        let rules = rules(Domain::Fd, MemoryModel::Pso, 0);
        let ab = buffer(rules, &[(X, A), (X, B)]);
        assert_eq!(flushable(rules, &ab), [(X, A), (X, B)]);
        let emptied = |(_, entry, after): &(Loc, Entry, AbstractBuffer)| after.is_empty().then_some(*entry);
        assert_eq!(rules.commits(&ab).iter().find_map(emptied), None, "two stores are not flushed at once");
        let without = |(_, _, after): &(Loc, Entry, AbstractBuffer)| *after != ab;
        let removed: Vec<Entry> = rules.commits(&ab).iter().filter(|c| without(c)).map(|c| c.1).collect();
        assert_eq!(removed, [A], "FLUSH-SD of the latest store waits for the others");
    }

    #[test]
    fn the_naive_set_forgets_which_store_is_the_latest() {
        let rules = rules(Domain::Set, MemoryModel::Pso, 3);
        let ab = buffer(rules, &[(X, A), (X, B)]);
        assert_eq!(ab.forward(X), Forwarded::AnyOf(&[A, B]));
        let removed = rules.commits(&ab).iter().filter(|(_, _, after)| *after != ab).count();
        assert_eq!(removed, 2);
    }

    #[test]
    fn pd_empties_a_set_with_its_latest_store_only() {
        let rules = rules(Domain::Pd, MemoryModel::Pso, 0);
        let ab = buffer(rules, &[(X, A), (X, B)]);
        let emptying: Vec<Entry> =
            rules.commits(&ab).iter().filter(|(_, _, after)| after.is_empty()).map(|commit| commit.1).collect();
        assert_eq!(emptying, [B]);
    }

    #[test]
    fn tso_keeps_the_order_between_locations_for_k_stores() {
        let rules = rules(Domain::Fd, MemoryModel::Tso, 1);
        let stores = buffer(rules, &[(Y, A), (X, A), (Y, B)]);
        assert_eq!(flushable(rules, &stores), [(Y, A)]);
        assert_eq!((stores.forward(Y), stores.forward(X)), (Forwarded::Latest(B), Forwarded::Latest(A)));
        let (_, _, after) = rules.commits(&stores).remove(0);
        assert_eq!(flushable(rules, &after), [(X, A), (Y, B)]);
    }

    #[test]
    fn a_store_store_fence_holds_back_what_is_behind_it_until_there_are_too_many() {
        let rules = rules(Domain::Fd, MemoryModel::Pso, 0);
        let mut stores = buffer(rules, &[(X, A)]);
        rules.fence_stores(&mut stores);
        rules.store(&mut stores, Y, A);
        assert_eq!(flushable(rules, &stores), [(X, A)]);
        assert!(rules.forgets_fence(&stores), "k + 2 segments are kept");
        rules.fence_stores(&mut stores);
        rules.store(&mut stores, X, B);
        assert_eq!(stores.segments.len(), 2);
        assert_eq!(stores.forward(X), Forwarded::Latest(B));
    }

    /// Sec. 4.1: ⟨l, S, H⟩ with a shorter H covers, if its set takes up exactly what was cut off.
    #[test]
    fn a_shorter_head_covers_a_longer_one() {
        let long = rules(Domain::Fd, MemoryModel::Pso, 2);
        let exact = buffer(long, &[(X, A), (X, B)]);
        let mut cut = buffer(long, &[(X, A), (X, A), (X, B)]);
        cut.segments[0][0].head.pop();
        assert!(long.covers(&cut, &exact) && !long.covers(&exact, &cut));
        insert(&mut cut.segments[0][0].set, A);
        assert!(!long.covers(&cut, &exact), "a larger set is another set in fd");
        assert!(rules(Domain::Pd, MemoryModel::Pso, 2).covers(&cut, &exact), "and covers in pd");
    }

    #[test]
    fn cutting_the_head_of_tso_keeps_the_latest_store_of_each_location() {
        let rules = rules(Domain::Fd, MemoryModel::Tso, 3);
        let exact = buffer(rules, &[(X, A), (Y, A), (X, B)]);
        let all_behind = move_behind(&exact, 0);
        assert_eq!((all_behind.forward(X), all_behind.forward(Y)), (Forwarded::Latest(B), Forwarded::Latest(A)));
        assert_eq!(rules.signature(&exact), rules.signature(&all_behind));
        assert!(rules.covers(&all_behind, &exact) && !rules.covers(&exact, &all_behind));
    }

    #[test]
    fn what_stands_behind_the_head_of_tso_stays_the_latest_store() {
        let rules = rules(Domain::Fd, MemoryModel::Tso, 1);
        let stores = buffer(rules, &[(X, A), (X, B)]);
        assert_eq!(move_behind(&stores, 0).forward(X), Forwarded::Latest(B));
        assert!(rules.covers(&move_behind(&stores, 0), &stores), "with the same two stores in its set");
    }

    /// Buffers after some stores, flushes and store-store fences.
    fn wander(rules: Rules, seed: u32) -> AbstractBuffer {
        let (mut state, mut buffer) = (seed.wrapping_mul(2_654_435_761) | 1, AbstractBuffer::default());
        let mut below = |end: u32| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state % end
        };
        for _ in 0..=(seed % 8) {
            match below(6) {
                0 => rules.fence_stores(&mut buffer),
                1 => {
                    let mut commits = rules.commits(&buffer);
                    if !commits.is_empty() {
                        buffer = commits.swap_remove(below(commits.len() as u32) as usize).2;
                    }
                }
                _ => rules.store(&mut buffer, Loc(below(2)), Entry(below(3))),
            }
        }
        buffer
    }

    /// The store looks for covering states among those with the same signature and enough bits only.
    #[test]
    fn what_covers_has_the_same_signature_and_all_the_bits() {
        let mut covered = 0;
        for (domain, k) in [(Domain::Fd, 1), (Domain::Fd, 2), (Domain::Pd, 0), (Domain::Pd, 1), (Domain::Pd, 2)] {
            for (model, keeps_exact) in
                [MemoryModel::Tso, MemoryModel::Pso].into_iter().flat_map(|m| [(m, false), (m, true)])
            {
                let rules = Rules { keeps_exact, ..rules(domain, model, k) };
                let mut buffers: Vec<AbstractBuffer> = (0..600).map(|seed| wander(rules, seed)).collect();
                buffers.sort_by_key(|buffer| format!("{buffer:?}"));
                buffers.dedup();
                for large in &buffers {
                    for small in buffers.iter().filter(|small| *small != large && rules.covers(large, small)) {
                        covered += 1;
                        assert_eq!(rules.signature(large), rules.signature(small), "{large:?} {small:?}");
                        assert_eq!(Rules::pending_bits(small) & !Rules::pending_bits(large), 0, "{large:?} {small:?}");
                    }
                }
            }
        }
        assert!(covered > 500, "{covered}");
    }
}
