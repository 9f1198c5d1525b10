//! The state of a run, and how a thread posts an event.
//!
//! All state is behind cells: the explorer and the coroutines share it, but never at the same time. No borrow lives
//! across a switch.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_explore::system::LeftOut;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

use super::Place;
use super::causality::Causality;
use super::counts::Counts;
use super::lane::{Effect, Happened, Lane, Operation, Probe};
use super::local::Storage;
use super::objects::Object;
use super::script::{Script, Taken};
use super::strength::Strengthened;
use crate::failure::{Failure, SourcePlace};

/// Runs are numbered over all models of the process, so that a stamp names one run.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// The closure of a model.
pub(crate) type Body = Arc<dyn Fn() + Send + Sync>;

/// Is the explorer in charge?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every event is posted and waits for the explorer.
    Explored,
    /// The run was given up: threads run to their end in any order, events happen at once.
    Free,
}

/// What changes during a run.
pub(crate) struct State {
    /// By thread.
    pub(crate) lanes: Vec<Lane>,
    /// The number of a thread by its parent and how many that had started before.
    numbers: FxHashMap<(u32, u32), u32>,
    pub(crate) objects: Vec<Object>,
    /// The object of each cell.
    pub(crate) bound: Vec<u32>,
    pub(crate) causality: Causality,
    /// What happened in this run, in order.
    pub(crate) log: Vec<Happened>,
    /// What is known to happen next.
    pub(crate) script: Script,
}

/// A runtime: one for each worker of a model.
pub(crate) struct Runtime {
    pub(crate) run: Cell<u64>,
    /// The number of the model's first run.
    pub(crate) first_run: u64,
    pub(crate) mode: Cell<Mode>,
    /// Stores wait in simulated store buffers.
    pub(crate) buffered: Cell<bool>,
    /// Operations that are made stronger.
    pub(crate) strengthened: Strengthened,
    pub(crate) thread: Cell<u32>,
    pub(crate) model: MemoryModel,
    max_threads: usize,
    pub(crate) body: Body,
    pub(crate) state: RefCell<State>,
    pub(crate) storage: Storage,
    pub(crate) counts: RefCell<Counts>,
    /// Markers of loops that were found to end by themselves. Survives runs.
    pub(crate) ending_loops: RefCell<FxHashSet<u32>>,
    /// Loops some of whose rounds were not explored.
    pub(crate) loops_left_out: RefCell<BTreeSet<(SourcePlace, LeftOut)>>,
    /// Why the run has failed.
    pub(crate) failure: RefCell<Option<Failure>>,
}

impl Runtime {
    pub(crate) fn new(model: MemoryModel, max_threads: usize, body: Body) -> Self {
        let state = State {
            lanes: vec![Lane::new()],
            numbers: FxHashMap::default(),
            objects: Vec::new(),
            bound: Vec::new(),
            causality: Causality::new(),
            log: Vec::new(),
            script: Script::default(),
        };
        Self {
            run: Cell::new(0),
            first_run: RUNS.load(Ordering::Relaxed),
            mode: Cell::new(Mode::Explored),
            buffered: Cell::new(false),
            strengthened: Strengthened::default(),
            thread: Cell::new(0),
            model,
            max_threads,
            body,
            state: RefCell::new(state),
            storage: Storage::default(),
            counts: RefCell::default(),
            ending_loops: RefCell::default(),
            loops_left_out: RefCell::default(),
            failure: RefCell::new(None),
        }
    }

    /// The number of a new run.
    pub(crate) fn next_run(&self) {
        self.run.set(RUNS.fetch_add(1, Ordering::Relaxed));
    }

    /// Do events happen at once?
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.mode.get() == Mode::Free
    }

    /// Does the current thread unwind? The standard library knows of OS threads only, and another thread of the model may
    /// have been suspended while it unwinds.
    pub(crate) fn is_panicking(&self) -> bool {
        std::thread::panicking() && self.state().lanes[self.thread.get() as usize].unwinding
    }

    #[inline]
    pub(crate) fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    pub(crate) fn add_object(&self, object: Object) -> u32 {
        let mut state = self.state();
        state.objects.push(object);
        state.objects.len() as u32 - 1
    }

    /// Posts an event and waits until it happens: the result. A run that is given up meanwhile gives 0.
    pub(crate) fn post(&self, operation: Operation, what: &'static str, place: Place) -> i64 {
        let thread = self.thread.get();
        let last_owner_of = self.state().lanes[thread as usize].last_owner_of;
        if let Some(key) = last_owner_of {
            super::counts::check_destructor(self, key);
        }
        let suspender = {
            let state = &mut *self.state();
            let lane = &mut state.lanes[thread as usize];
            (lane.operation, lane.what, lane.place) = (operation, what, place);
            if lane.unwinding && !std::thread::panicking() {
                lane.unwinding = false;
            }
            let suspender = lane.suspender;
            while state.script.turn() == Some(thread) {
                match state.take_step() {
                    Taken::Goes(result) => return result,
                    Taken::Rests => {}
                    Taken::Differs => break,
                }
            }
            suspender
        };
        // SAFETY: the suspender belongs to the coroutine that runs now, which set it when it began.
        unsafe { (*suspender).suspend(()) }
    }

    /// The thread will never go on: it has failed.
    fn stop(&self) -> ! {
        loop {
            let suspender = {
                let mut state = self.state();
                let lane = &mut state.lanes[self.thread.get() as usize];
                lane.operation = Operation::Failed;
                lane.suspender
            };
            // SAFETY: as in `post`.
            unsafe { (*suspender).suspend(()) };
        }
    }

    /// Fails the execution: the thread stops here.
    pub(crate) fn fail(&self, message: String, place: Place) -> ! {
        if self.is_free() {
            std::panic::resume_unwind(Box::new(message));
        }
        let thread = self.thread.get();
        self.note_failure(Failure::message(thread, message, place));
        self.stop()
    }

    /// Keeps the first failure of a run.
    pub(crate) fn note_failure(&self, failure: Failure) {
        let mut known = self.failure.borrow_mut();
        if known.is_none() {
            *known = Some(failure);
        }
    }

    /// Lets other threads go first in a run that was given up; false if there are none.
    pub(crate) fn give_way(&self) -> bool {
        let suspender = {
            let mut state = self.state();
            let lane = &mut state.lanes[self.thread.get() as usize];
            // What was posted last is over, and its probe with it. This one can always go on: it looks again itself.
            lane.operation = Operation::Fence(FenceKind::Full);
            lane.suspender
        };
        if suspender.is_null() {
            return false;
        }
        // SAFETY: as in `post`.
        unsafe { (*suspender).suspend(()) };
        true
    }

    /// A load: the value read. `value` is what is in memory.
    pub(crate) fn load(&self, object: u32, value: impl Fn() -> u64, place: Place) -> u64 {
        if self.is_free() {
            return value();
        }
        let result = self.post(Operation::Load(object), "load", place);
        if self.is_free() { value() } else { result as u64 }
    }

    /// A store; the caller writes memory afterwards.
    pub(crate) fn store(&self, object: u32, value: u64, interlocked: bool, place: Place) {
        if self.is_free() {
            return;
        }
        let operation =
            if interlocked { Operation::InterlockedStore(object, value) } else { Operation::Store(object, value) };
        self.post(operation, "store", place);
    }

    /// An atomic: the value it read. The caller writes memory afterwards if the probe says so for that value.
    pub(crate) fn rmw(&self, object: u32, drains_all: bool, probe: Probe<'_>, what: &'static str, place: Place) -> u64 {
        if !self.is_free() {
            // SAFETY: only the lifetime changes. The pointer is used while this thread is suspended in `post`, below,
            // and the probe outlives that.
            let probe = unsafe { std::mem::transmute::<Probe<'_>, Probe<'static>>(probe) };
            let result = self.post(Operation::Rmw { object, drains_all, probe }, what, place);
            if !self.is_free() {
                return result as u64;
            }
        }
        loop {
            let (value, effect) = probe(None);
            if effect != Effect::Blocks || !self.give_way() {
                return value;
            }
        }
    }

    pub(crate) fn fence(&self, kind: FenceKind, place: Place) {
        if !self.is_free() {
            self.post(Operation::Fence(kind), "fence", place);
        }
    }

    pub(crate) fn choose(&self, count: u32, place: Place) -> u32 {
        if self.is_free() || count < 2 {
            return 0;
        }
        self.post(Operation::Choose(count), "choose", place) as u32
    }

    /// The end of a round of a loop that waits.
    pub(crate) fn pass_marker(&self, place: Place) {
        if self.is_free() {
            self.give_way();
            return;
        }
        let marker = std::ptr::from_ref(place) as usize as u32 | 1;
        let lane = &mut self.state().lanes[self.thread.get() as usize];
        (lane.marker, lane.marker_place) = (marker, place);
    }

    /// Notes that the event of a thread happens.
    pub(crate) fn note_event(state: &mut State, thread: usize, result: i64) {
        let lane = &mut state.lanes[thread];
        let Lane { operation, what, place, .. } = *lane;
        let written = lane.written.take();
        lane.marker = 0;
        state.log.push(Happened { thread: thread as u32, operation, what, place, result, written });
    }

    /// The number of a thread that the current one starts.
    pub(crate) fn number_child(&self) -> Result<u32, usize> {
        let parent = self.thread.get();
        let mut state = self.state();
        let nth = state.lanes[parent as usize].started;
        state.lanes[parent as usize].started += 1;
        if let Some(&known) = state.numbers.get(&(parent, nth)) {
            return Ok(known);
        }
        if state.lanes.len() >= self.max_threads {
            return Err(self.max_threads);
        }
        let number = state.lanes.len() as u32;
        state.lanes.push(Lane::new());
        state.numbers.insert((parent, nth), number);
        let threads = state.lanes.len();
        state.causality.widen(threads);
        Ok(number)
    }
}
