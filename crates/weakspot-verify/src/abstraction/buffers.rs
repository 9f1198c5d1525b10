//! Every abstract buffer met so far, each once, and what the rules make of it, each time once.
//!
//! A state names its buffers by number. Storing, flushing and comparing are look-ups after the first time, so the search
//! never hashes or copies a buffer it has met.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use weakspot_model::ids::{Loc, Pc};

use super::buffer::{AbstractBuffer, Entry, Forwarded, Rules};
use super::value::Value;
use crate::intern::Interner;

/// A value: index into [`Values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ValueId(pub(super) u32);

/// A buffer: index into [`Buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct BufferId(pub(super) u32);

impl BufferId {
    /// Nothing pending.
    pub(super) const EMPTY: Self = Self(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Every value met so far.
#[derive(Debug)]
pub(super) struct Values(Interner<Value>);

impl Values {
    pub(super) fn new() -> Self {
        Self(Interner::new())
    }

    pub(super) fn intern(&mut self, value: Value) -> ValueId {
        ValueId(self.0.intern(&value))
    }

    pub(super) fn exact(&mut self, value: i64) -> ValueId {
        self.intern(Value::exact(value))
    }

    pub(super) fn get(&self, id: ValueId) -> Value {
        *self.0.get(id.0)
    }
}

/// Every buffered store met so far: the instruction that stored, if stores are labelled (Sec. 5.2), and the value.
#[derive(Debug)]
pub(super) struct Entries(Interner<(Option<Pc>, ValueId)>);

impl Entries {
    pub(super) fn new() -> Self {
        Self(Interner::new())
    }

    pub(super) fn intern(&mut self, label: Option<Pc>, value: ValueId) -> Entry {
        Entry(self.0.intern(&(label, value)))
    }

    pub(super) fn value(&self, entry: Entry) -> ValueId {
        self.0.get(entry.0).1
    }

    pub(super) fn label(&self, entry: Entry) -> Option<Pc> {
        self.0.get(entry.0).0
    }
}

/// A flush: the store that becomes visible, and the buffer after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commit {
    pub(super) loc: Loc,
    pub(super) entry: Entry,
    pub(super) after: BufferId,
}

/// What is known about one buffer.
#[derive(Debug, Default)]
struct Known {
    /// Number of its [`Rules::signature`].
    signature: u32,
    /// Its [`Rules::pending_bits`].
    bits: u64,
    commits: Option<Rc<[Commit]>>,
    after_fence: Option<BufferId>,
}

/// Every abstract buffer met so far.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) rules: Rules,
    all: Interner<AbstractBuffer>,
    known: Vec<Known>,
    signatures: Interner<Vec<u32>>,
    stores: FxHashMap<(BufferId, Loc, Entry), BufferId>,
    order: FxHashMap<(BufferId, BufferId), bool>,
    /// Some buffer has lost the order of its stores.
    pub(super) lossy: bool,
}

impl Buffers {
    pub(super) fn new(rules: Rules) -> Self {
        let mut buffers = Self {
            rules,
            all: Interner::new(),
            known: Vec::new(),
            signatures: Interner::new(),
            stores: FxHashMap::default(),
            order: FxHashMap::default(),
            lossy: false,
        };
        buffers.intern(&AbstractBuffer::default());
        buffers
    }

    fn intern(&mut self, buffer: &AbstractBuffer) -> BufferId {
        let id = BufferId(self.all.intern(buffer));
        if id.index() == self.known.len() {
            let signature = self.signatures.intern(&self.rules.signature(buffer));
            let bits = Rules::pending_bits(buffer);
            self.known.push(Known { signature, bits, ..Known::default() });
            self.lossy |= !buffer.is_exact();
        }
        id
    }

    pub(super) fn get(&self, id: BufferId) -> &AbstractBuffer {
        self.all.get(id.0)
    }

    pub(super) fn forward(&self, id: BufferId, loc: Loc) -> Forwarded<'_> {
        self.get(id).forward(loc)
    }

    pub(super) fn signature(&self, id: BufferId) -> u32 {
        self.known[id.index()].signature
    }

    pub(super) fn bits(&self, id: BufferId) -> u64 {
        self.known[id.index()].bits
    }

    pub(super) fn store(&mut self, id: BufferId, loc: Loc, entry: Entry) -> BufferId {
        if let Some(&after) = self.stores.get(&(id, loc, entry)) {
            return after;
        }
        let mut buffer = self.get(id).clone();
        self.rules.store(&mut buffer, loc, entry);
        let after = self.intern(&buffer);
        self.stores.insert((id, loc, entry), after);
        after
    }

    pub(super) fn fence_stores(&mut self, id: BufferId) -> BufferId {
        if let Some(after) = self.known[id.index()].after_fence {
            return after;
        }
        let mut buffer = self.get(id).clone();
        self.lossy |= self.rules.forgets_fence(&buffer);
        self.rules.fence_stores(&mut buffer);
        let after = self.intern(&buffer);
        self.known[id.index()].after_fence = Some(after);
        after
    }

    pub(super) fn commits(&mut self, id: BufferId) -> Rc<[Commit]> {
        if let Some(known) = &self.known[id.index()].commits {
            return Rc::clone(known);
        }
        let flushed = self.rules.commits(self.get(id));
        let commits: Rc<[Commit]> =
            flushed.into_iter().map(|(loc, entry, after)| Commit { loc, entry, after: self.intern(&after) }).collect();
        self.known[id.index()].commits = Some(Rc::clone(&commits));
        commits
    }

    /// Does `large` stand for every buffer that `small` stands for?
    pub(super) fn covers(&mut self, large: BufferId, small: BufferId) -> bool {
        if large == small {
            return true;
        }
        if self.signature(large) != self.signature(small) {
            return false;
        }
        if let Some(&known) = self.order.get(&(large, small)) {
            return known;
        }
        let covers = self.rules.covers(self.get(large), self.get(small));
        self.order.insert((large, small), covers);
        covers
    }

    /// Bytes held by the tables, roughly.
    pub(super) fn bytes(&self) -> usize {
        const BUFFER: usize = 200;
        self.all.len() * (BUFFER + size_of::<Known>())
            + self.stores.capacity() * size_of::<((BufferId, Loc, Entry), BufferId)>()
            + self.order.capacity() * size_of::<((BufferId, BufferId), bool)>()
    }
}
