//! What is known of the accesses of a graph: one bit for each, 64 events to a word.
//!
//! An access is *open* until its question has been asked, and *pending* if the answer was a store. When rows of
//! happens-before change, the answers of the accesses they belong to are put aside and the accesses are open again; when
//! the event that changed the rows is removed, those answers are true again and come back. Answers of other accesses
//! stay as they are, whether they were known before the event came or were found while it was there.
//!
//! Rows only grow while events are added. Some answers stay true when they do, unless a write comes into the middle of
//! coherence: such an access is *settled*, and its answer is put aside for a write only.

use std::cell::Cell;

/// 64 events.
#[derive(Debug, Clone, Default)]
struct Word {
    /// Events whose question is worth asking.
    about: u64,
    /// Those of them whose answer is not known.
    open: Cell<u64>,
    /// Those of them that have a pending store.
    pending: Cell<u64>,
    /// Those of them whose answer is no until a write comes into the middle of coherence.
    settled: Cell<u64>,
}

/// The answer for an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// This store could still be pending.
    Pending(u32),
    /// None could.
    No,
    /// None could, and none will until a write comes into the middle of coherence.
    Settled,
}

/// Answers that were true before some rows changed.
#[derive(Debug, Clone, Copy)]
struct Aside {
    word: u32,
    changed: u64,
    open: u64,
    pending: u64,
    settled: u64,
}

/// What is known of the accesses of a graph.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    words: Vec<Word>,
    aside: Vec<Aside>,
}

#[inline]
fn bit(id: u32) -> u64 {
    1 << (id % 64)
}

impl Answers {
    /// How many answers have been put aside.
    #[inline]
    pub(super) fn put_aside(&self) -> u32 {
        self.aside.len() as u32
    }

    /// The newest event; is its question worth asking?
    #[inline]
    pub(super) fn add(&mut self, id: u32, is_asked_about: bool) {
        if is_asked_about {
            let index = id as usize / 64;
            if index >= self.words.len() {
                self.words.resize(index + 1, Word::default());
            }
            let word = &mut self.words[index];
            word.about |= bit(id);
            word.open.set(word.open.get() | bit(id));
        }
    }

    /// The rows of these events change, because of a write or another event: so may the answers for those of them that
    /// are affected.
    #[inline]
    pub(super) fn put_aside_for(&mut self, mut changed: &[u32], is_write: bool, is_affected: impl Fn(u32) -> bool) {
        if self.words.len() <= 1 {
            let bits = changed.iter().fold(0, |bits, &id| bits | u64::from(id < 64) << (id % 64));
            return self.put_word_aside(0, bits, is_write, &is_affected);
        }
        while let Some(&first) = changed.first() {
            // Events of a thread come latest first: most of them are in the same word as their neighbours.
            let word = first / 64;
            let count = changed.iter().take_while(|&&id| id / 64 == word).count();
            let (in_word, others) = changed.split_at(count);
            let bits = in_word.iter().fold(0, |bits, &id| bits | bit(id));
            self.put_word_aside(word, bits, is_write, &is_affected);
            changed = others;
        }
    }

    #[inline]
    fn put_word_aside(&mut self, word: u32, changed: u64, is_write: bool, is_affected: impl Fn(u32) -> bool) {
        let Some(Word { about, open, pending, settled }) = self.words.get(word as usize) else { return };
        let kept = if is_write { 0 } else { settled.get() };
        let mut candidates = changed & about & !kept;
        let mut changed = 0;
        while candidates != 0 {
            let offset = candidates.trailing_zeros();
            candidates &= candidates - 1;
            changed |= u64::from(is_affected(word * 64 + offset)) << offset;
        }
        if changed == 0 {
            return;
        }
        // What is open comes back as open: an answer that is found meanwhile is one for the changed rows.
        self.aside.push(Aside {
            word,
            changed,
            open: open.get() & changed,
            pending: pending.get() & changed,
            settled: settled.get() & changed,
        });
        open.set(open.get() | changed);
        pending.set(pending.get() & !changed);
        settled.set(settled.get() & !changed);
    }

    /// Only `len` events are left, and before the next one so many answers had been put aside.
    #[inline]
    pub(super) fn take_back(&mut self, put_aside: u32, len: u32) {
        while self.aside.len() > put_aside as usize
            && let Some(Aside { word, changed, open, pending, settled }) = self.aside.pop()
        {
            let word = &self.words[word as usize];
            word.open.set(word.open.get() & !changed | open);
            word.pending.set(word.pending.get() & !changed | pending);
            word.settled.set(word.settled.get() & !changed | settled);
        }
        self.words.truncate((len as usize).div_ceil(64));
        if let Some(word) = self.words.get_mut(len as usize / 64) {
            let left = bit(len) - 1;
            word.about &= left;
            word.open.set(word.open.get() & left);
            word.pending.set(word.pending.get() & left);
            word.settled.set(word.settled.get() & left);
        }
    }

    /// Nothing is known of anything; these are the events.
    pub(super) fn reset(&mut self, are_asked_about: impl Iterator<Item = bool>) {
        self.words.clear();
        self.aside.clear();
        for (id, is_asked_about) in are_asked_about.enumerate() {
            self.add(id as u32, is_asked_about);
        }
    }

    /// Nothing is known of anything. The first events are those of another graph; what is asked of them is the same.
    pub(super) fn reset_like(&mut self, other: &Self, first: u32) {
        self.words.clear();
        self.aside.clear();
        let words = (first as usize).div_ceil(64).min(other.words.len());
        for (index, word) in other.words[..words].iter().enumerate() {
            let kept = (first as usize - index * 64).min(64) as u32;
            let about = if kept == 64 { word.about } else { word.about & (bit(kept) - 1) };
            self.words.push(Word { about, open: Cell::new(about), ..Word::default() });
        }
    }

    /// The accesses whose answers are known.
    pub(super) fn known(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut known = word.about & !word.open.get();
            std::iter::from_fn(move || {
                let offset = known.trailing_zeros();
                known &= known.wrapping_sub(1);
                (offset < 64).then_some(index as u32 * 64 + offset)
            })
        })
    }

    /// Takes over the answer for an access, which is known.
    pub(super) fn adopt(&mut self, id: u32, other: &Self, other_id: u32) {
        let (word, from) = (&self.words[id as usize / 64], &other.words[other_id as usize / 64]);
        word.open.set(word.open.get() & !bit(id));
        for (bits, theirs) in [(&word.pending, &from.pending), (&word.settled, &from.settled)] {
            if theirs.get() & bit(other_id) != 0 {
                bits.set(bits.get() | bit(id));
            }
        }
    }

    /// Is any access known to have a pending store?
    #[inline]
    pub(super) fn is_any_pending(&self) -> bool {
        self.words.iter().any(|word| word.pending.get() != 0)
    }

    /// Asks the question of the open accesses, earliest first: of `all`, or until one has a pending store.
    #[inline]
    pub(super) fn ask_open(&self, all: bool, mut ask: impl FnMut(u32) -> Answer) {
        for (index, word) in self.words.iter().enumerate() {
            while word.open.get() != 0 {
                let open = word.open.get();
                let offset = open.trailing_zeros();
                word.open.set(open & (open - 1));
                match ask(index as u32 * 64 + offset) {
                    Answer::No => {}
                    Answer::Settled => word.settled.set(word.settled.get() | 1 << offset),
                    Answer::Pending(_) => {
                        word.pending.set(word.pending.get() | 1 << offset);
                        if !all {
                            return;
                        }
                    }
                }
            }
        }
    }
}
