//! What changes during a run: the threads, the objects, and what has happened.
//!
//! It is in use by one run at a time, and so is its memory by the next one ([`super::spare`]).

use rustc_hash::FxHashMap;

use super::causality::Causality;
use super::kept::Kept;
use super::lane::{Happened, Lane};
use super::memory::Birth;
use super::numbers::ThreadNumbers;
use super::objects::Object;
use super::poison;
use super::script::Script;
use super::slot::Homes;
use super::suspects::{self, Suspect, Unseen};
use super::tracked::Unfinished;

/// What changes during a run.
pub(crate) struct State {
    /// By thread.
    pub(crate) lanes: Vec<Lane>,
    /// Those of threads of other models, which have forgotten them, for the next thread.
    spare_lanes: Vec<Lane>,
    /// Of the threads that are known.
    pub(super) numbers: ThreadNumbers,
    /// Threads of this run that are none of the program's: see [`channels`](super::channels).
    pub(crate) hidden: u64,
    pub(crate) objects: Vec<Object>,
    /// Objects that are parts of others and have no memory of their own, by what they belong to and a number.
    pub(super) parts: FxHashMap<(u32, u64), u32>,
    /// Where atomics are.
    pub(crate) homes: Homes,
    /// The object of each cell.
    pub(crate) bound: Vec<u32>,
    pub(crate) causality: Causality,
    /// What happened in this run, in order.
    pub(crate) log: Vec<Happened>,
    /// Waits that do not return, as if they had.
    pub(crate) endless: Vec<Happened>,
    /// Accesses to plain memory that are not over.
    pub(crate) open: Vec<Unfinished>,
    /// What threads have allocated in this run, in order.
    pub(crate) births: Vec<Birth>,
    /// What else is the run's own memory, from where to where: see [`Self::has_made`].
    pub(super) unborn: Vec<(usize, usize)>,
    /// What was freed that others may have used, in order.
    pub(super) suspects: Vec<Suspect>,
    pub(super) scratch: suspects::Scratch,
    /// Uses of objects that are no events, the last one of each thread and object.
    pub(super) unseen: Vec<Unseen>,
    /// What is known to happen next.
    pub(crate) script: Script,
    /// Flags of locks that were asked for or set.
    pub(super) seen_flags: Vec<poison::Seen>,
    /// What static locks held before the run.
    pub(super) kept: Vec<Kept>,
}

impl State {
    pub(super) fn new() -> Self {
        Self { lanes: vec![Lane::new()], ..Self::empty() }
    }

    /// Nothing, and no memory.
    pub(super) fn empty() -> Self {
        Self {
            lanes: Vec::new(),
            spare_lanes: Vec::new(),
            numbers: FxHashMap::default(),
            hidden: 0,
            objects: Vec::new(),
            parts: FxHashMap::default(),
            homes: Homes::default(),
            bound: Vec::new(),
            causality: Causality::new(),
            log: Vec::new(),
            endless: Vec::new(),
            open: Vec::new(),
            births: Vec::new(),
            unborn: Vec::new(),
            suspects: Vec::new(),
            scratch: suspects::Scratch::default(),
            unseen: Vec::new(),
            script: Script::default(),
            seen_flags: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Forgets everything but its memory; false if that cannot be, because a thread has not ended.
    pub(super) fn restart(&mut self) -> bool {
        if self.lanes.iter_mut().any(|lane| lane.berth.is_taken()) {
            return false;
        }
        self.numbers.clear();
        self.forget_run();
        self.spare_lanes.extend(self.lanes.drain(1..));
        self.causality.restart();
        self.script = Script::default();
        true
    }

    /// Is it none of the program's threads?
    pub(crate) fn is_hidden(&self, thread: usize) -> bool {
        self.hidden & 1 << thread != 0
    }

    /// Makes room for so many threads.
    pub(super) fn widen(&mut self, threads: usize) {
        let Self { lanes, spare_lanes, causality, .. } = self;
        lanes.resize_with(threads, || spare_lanes.pop().unwrap_or_else(Lane::new));
        causality.widen(threads);
    }

    /// Forgets what happened in a run.
    pub(super) fn forget_run(&mut self) {
        self.lanes.iter_mut().for_each(Lane::reset);
        self.give_back();
        self.objects.clear();
        self.parts.clear();
        self.hidden = 0;
        self.seen_flags.clear();
        self.bound.clear();
        self.causality.reset();
        self.log.clear();
        self.endless.clear();
        self.open.clear();
        self.births.clear();
        self.unborn.clear();
        self.suspects.clear();
        self.unseen.clear();
    }
}
