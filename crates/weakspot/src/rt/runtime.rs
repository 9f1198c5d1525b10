//! How a thread posts an event.
//!
//! All state is behind cells: the explorer and the coroutines share it, but never at the same time. No borrow lives
//! across a switch.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeSet;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashSet;
use weakspot_explore::system::LeftOut;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

use super::Place;
use super::anew::Anew;
use super::calls::{Calls, Detail};
use super::channels::Channels;
use super::counts::Counts;
use super::lane::{Happened, Lane, Operation};
use super::local::Storage;
use super::meetings::Meetings;
use super::memory::Freed;
use super::objects::Object;
use super::script::Taken;
use super::shares::Shares;
use super::slot;
use super::spare::{self, Run};
use super::state::State;
use super::statics;
use super::strength::Strengthened;
use super::turns;
use super::watchdog::{self, Pulse};
use crate::builder::MAX_THREADS;
use crate::failure::{Failure, SourcePlace};

/// Runs are numbered over all models of the process, so that a stamp names one run. A runtime takes many numbers at once.
static RUNS: AtomicU64 = AtomicU64::new(1);
/// Numbers that a runtime takes at once.
const MANY_RUNS: u64 = 256;
/// Bits of the number of a run that say which worker made it.
const WORKER_BITS: u32 = 6;
/// Workers that a model may have.
pub(crate) const MOST_WORKERS: usize = 1 << WORKER_BITS;

/// The worker that made a run.
pub(super) fn worker_of(run: u64) -> u64 {
    run & ((1 << WORKER_BITS) - 1)
}

/// The number of a run among all runs, whoever made it.
#[allow(dead_code, reason = "only tokens do not hold it")]
pub(super) fn without_worker(run: u64) -> u64 {
    run >> WORKER_BITS
}

/// Rounds of a waiting loop in a row that have no event.
pub(super) const MOST_SILENT_ROUNDS: u32 = 10_000;

/// A place that ends rounds, as a number that is not 0.
pub(crate) fn marker_of(place: Place) -> u32 {
    std::ptr::from_ref(place) as usize as u32 | 1
}

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

/// Loops some of whose rounds were not explored, and which.
pub(crate) type LoopsLeftOut = BTreeSet<(SourcePlace, LeftOut)>;

/// A runtime that explores a part of a model, while others explore other parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    /// There are no others.
    Alone,
    /// It is this worker.
    Worker(u64),
}

/// A runtime: one for each worker of a model.
pub(crate) struct Runtime {
    /// Where the model is.
    pub(super) start: Place,
    pub(crate) run: Cell<u64>,
    /// What tokens of the run begin with.
    pub(crate) token: Cell<u64>,
    /// The next number for a run, and that after the last one.
    free_runs: Cell<(u64, u64)>,
    /// No number of a run of the model is lower.
    pub(crate) first_run: u64,
    /// The number of the model among those that are explored now.
    pub(super) number: u64,
    /// The same, until the statics are its own.
    pub(super) claim: Cell<Option<u64>>,
    /// Are there other workers?
    pub(crate) company: Cell<Company>,
    /// Other workers have been told the numbers of the threads: there can be no new ones.
    pub(crate) threads_are_known: Cell<bool>,
    /// The workers are in each other's way: the model has to be explored by one.
    pub(crate) in_the_way: Cell<bool>,
    pub(crate) mode: Cell<Mode>,
    /// The first panic of a thread while events happened at once: who, what and where.
    pub(super) free_panic: RefCell<Option<String>>,
    /// Threads that go on freely only when somebody notifies them: one bit for each.
    pub(super) asleep: Cell<u64>,
    /// The thread that is resumed takes the next step of the script itself.
    pub(crate) its_turn: Cell<bool>,
    /// Threads that owe something: see `debts`.
    pub(super) debts: Cell<u32>,
    /// Stores wait in simulated store buffers.
    pub(crate) buffered: Cell<bool>,
    /// Are all allocations noted, to know where objects come from?
    pub(crate) notes_origins: Cell<bool>,
    /// Accesses to cells last until they are over, see `Builder::lasting`.
    pub(crate) lasting: Cell<bool>,
    /// Loops that say that they wait are waited for, see `Builder::fair`.
    pub(crate) fair: Cell<bool>,
    /// The thread that stops before an access to plain memory, and which of its accesses that is, from 1 on.
    pub(crate) stops_at: Cell<Option<(u32, u32)>>,
    /// Operations that are made stronger.
    pub(crate) strengthened: Strengthened,
    pub(crate) thread: Cell<u32>,
    pub(crate) model: MemoryModel,
    pub(super) max_threads: usize,
    pub(crate) body: Body,
    pub(crate) state: RefCell<State>,
    pub(crate) storage: Storage,
    pub(crate) counts: RefCell<Counts>,
    pub(super) meetings: RefCell<Meetings>,
    pub(super) channels: RefCell<Channels>,
    /// What readers of locks have of them.
    pub(super) shares: RefCell<Shares>,
    /// Markers of loops that were found to end by themselves. Survives runs.
    pub(crate) ending_loops: RefCell<FxHashSet<u32>>,
    /// Loops some of whose rounds were not explored.
    pub(crate) loops_left_out: RefCell<LoopsLeftOut>,
    /// Where a static lock was used whose data is not put back.
    pub(crate) left_as_it_is: Cell<Option<Place>>,
    /// The event after which a thread has started an OS thread.
    pub(super) has_started: Cell<Option<Place>>,
    /// Allocations of the run that are older than the first OS thread that it has started.
    pub(super) foreigners_since: Cell<Option<usize>>,
    /// What is done once, by address, that was not complete when the model came to it: whatever ordinary code does meanwhile, it
    /// is not complete at the beginning of a run.
    pub(super) incomplete: RefCell<FxHashSet<usize>>,
    /// Locks with readers that a run has come to write, by address. Survives runs.
    pub(super) written: RefCell<FxHashSet<usize>>,
    /// Calls with which loops say that they wait.
    calls: RefCell<Calls>,
    /// Runs that are in the way.
    pub(crate) anew: Anew,
    /// Why the run has failed.
    pub(crate) failure: RefCell<Option<Failure>>,
    /// Memory that the run has freed.
    pub(crate) freed: Freed,
    /// For whoever waits for the model.
    pub(super) pulse: Option<Arc<Pulse>>,
}

impl Runtime {
    #[track_caller]
    pub(crate) fn new(model: MemoryModel, max_threads: usize, body: Body) -> Self {
        let Run { state, counts, freed } = spare::take_run();
        Self {
            start: Location::caller(),
            run: Cell::new(0),
            token: Cell::new(0),
            free_runs: Cell::new((0, 0)),
            first_run: RUNS.load(Ordering::Relaxed) << WORKER_BITS,
            number: 0,
            claim: Cell::new(None),
            company: Cell::new(Company::Alone),
            threads_are_known: Cell::new(false),
            in_the_way: Cell::new(false),
            mode: Cell::new(Mode::Explored),
            free_panic: RefCell::new(None),
            asleep: Cell::new(0),
            its_turn: Cell::new(false),
            debts: Cell::new(0),
            buffered: Cell::new(false),
            notes_origins: Cell::new(false),
            lasting: Cell::new(true),
            fair: Cell::new(false),
            stops_at: Cell::new(None),
            strengthened: Strengthened::default(),
            thread: Cell::new(0),
            model,
            max_threads: max_threads.min(MAX_THREADS),
            body,
            state: RefCell::new(state),
            storage: Storage::default(),
            counts: RefCell::new(counts),
            meetings: RefCell::default(),
            channels: RefCell::default(),
            shares: RefCell::default(),
            ending_loops: RefCell::default(),
            loops_left_out: RefCell::default(),
            left_as_it_is: Cell::new(None),
            has_started: Cell::new(None),
            foreigners_since: Cell::new(None),
            incomplete: RefCell::default(),
            written: RefCell::default(),
            calls: RefCell::default(),
            anew: Anew::default(),
            failure: RefCell::new(None),
            freed,
            pulse: watchdog::pulse(),
        }
    }

    /// It explores the model of this number, which has no statics yet.
    pub(crate) fn belong_to(&mut self, number: u64) {
        self.number = number;
        turns::model_begins(number);
        self.claim.set(Some(number));
        self.try_allocator();
    }

    /// An object is used for the first time in this run. If it is a static, no other model may use statics meanwhile.
    #[inline]
    pub(crate) fn note_object(&self, address: usize) {
        if let Some(claim) = self.claim.get()
            && statics::is_static(address)
        {
            self.take_statics(claim, address);
        }
    }

    /// A thread waits for others, outside of the model: the watchdog need not say so.
    pub(super) fn rests(&self) {
        if let Some(pulse) = &self.pulse {
            pulse.rests();
        }
    }

    /// Has it used a static? Nobody can say where every object may be one.
    pub(crate) fn uses_statics(&self) -> bool {
        cfg!(target_os = "linux") && self.claim.get().is_none()
    }

    /// The number of a new run.
    pub(crate) fn next_run(&self) {
        self.foreigners_since.set(None);
        let (mut next, mut end) = self.free_runs.get();
        if next == end {
            next = RUNS.fetch_add(MANY_RUNS, Ordering::Relaxed);
            end = next + MANY_RUNS;
        }
        self.free_runs.set((next + 1, end));
        let worker = self.worker();
        self.run.set(next << WORKER_BITS | worker);
        self.token.set(slot::token_of_run(self.run.get()));
        turns::run_begins(self.number, worker, self.run.get());
    }

    /// The number of the worker; 0 if there are no others.
    fn worker(&self) -> u64 {
        if let Company::Worker(worker) = self.company.get() { worker } else { 0 }
    }

    /// Is this a run that another worker made?
    #[inline]
    pub(crate) fn is_foreign(&self, run: u64) -> bool {
        match self.company.get() {
            Company::Alone => false,
            Company::Worker(worker) => run >= self.first_run && worker_of(run) != worker,
        }
    }

    /// The current thread uses what another worker uses, too: all of them stop, and one explores everything.
    #[cold]
    pub(crate) fn get_in_the_way(&self, place: Place) {
        self.in_the_way.set(true);
        if !self.is_free() {
            self.fail("workers are in each other's way".to_owned(), place);
        }
        let is_thread = !self.state().lanes[self.thread.get() as usize].suspender.is_null();
        if is_thread {
            self.stop();
        }
    }

    /// Do events happen at once?
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.mode.get() == Mode::Free
    }

    /// Does the current thread unwind? The standard library knows of OS threads only, and another thread of the model may
    /// have been suspended while it unwinds.
    pub(crate) fn is_panicking(&self) -> bool {
        std::thread::panicking() && !self.makes_way() && self.state().lanes[self.thread.get() as usize].unwinding
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
    #[inline]
    pub(crate) fn post(&self, operation: Operation, what: &'static str, place: Place) -> i64 {
        self.post_as(operation, what, place, false)
    }

    /// The same for an access to an atomic. Nothing, if it may be the next step of the script now: then the caller takes that
    /// step, or posts the event again.
    #[inline]
    pub(super) fn post_access(&self, operation: Operation, what: &'static str, place: Place) -> Option<i64> {
        let result = self.post_as(operation, what, place, true);
        (!self.its_turn.replace(false)).then_some(result)
    }

    fn post_as(&self, operation: Operation, what: &'static str, place: Place, takes_steps: bool) -> i64 {
        if self.has_debts() && operation.drains() {
            self.forgive();
        }
        let thread = self.thread.get();
        let suspender = {
            let mut state = self.state();
            let lane = &mut state.lanes[thread as usize];
            if lane.unwinding && !std::thread::panicking() {
                lane.unwinding = false;
            }
            if let Some(owner) = lane.last_owner_of {
                drop(state);
                super::counts::check_destructor(self, owner);
                state = self.state();
            }
            let state = &mut *state;
            if let Some(result) = state.take_unposted(thread, operation, what, place) {
                return result;
            }
            let lane = &mut state.lanes[thread as usize];
            (lane.operation, lane.what, lane.place) = (operation, what, place);
            lane.takes_steps = takes_steps;
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
    pub(super) fn stop(&self) -> ! {
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

    /// A load: the value read. `value` is what is in memory. Nothing: see [`Self::post_access`].
    #[inline]
    pub(crate) fn load(&self, object: u32, value: impl Fn() -> u64, place: Place) -> Option<u64> {
        if self.is_free() {
            return Some(value());
        }
        let result = self.post_access(Operation::Load(object), "load", place)?;
        Some(if self.is_free() { value() } else { result as u64 })
    }

    /// A store; the caller writes memory afterwards. Nothing: see [`Self::post_access`].
    #[inline]
    pub(crate) fn store(&self, object: u32, value: u64, interlocked: bool, place: Place) -> Option<()> {
        if self.is_free() {
            return Some(());
        }
        let operation =
            if interlocked { Operation::InterlockedStore(object, value) } else { Operation::Store(object, value) };
        self.post_access(operation, "store", place).map(|_| ())
    }

    pub(crate) fn fence(&self, kind: FenceKind, place: Place) {
        if !self.is_free() {
            self.post(Operation::Fence(kind), "fence", place);
            self.note_store(false);
        }
    }

    /// The thread has stored, or comes from a fence. Only PSO asks.
    #[inline]
    pub(crate) fn note_store(&self, has_stored: bool) {
        if self.model == MemoryModel::Pso {
            self.state().lanes[self.thread.get() as usize].has_stored = has_stored;
        }
    }

    /// Were all stores of the thread that may be pending made before its last fence? Then an atomic, which writes, waits for
    /// all of them, even a relaxed one: stores do not overtake one another past a fence. (One that is not waits for those
    /// to its location.)
    #[inline]
    pub(crate) fn is_behind_fence(&self) -> bool {
        self.model == MemoryModel::Pso && !self.state().lanes[self.thread.get() as usize].has_stored
    }

    pub(crate) fn choose(&self, count: u32, what: &'static str, place: Place) -> u32 {
        if self.is_free() || count < 2 {
            return 0;
        }
        self.post(Operation::Choose(count), what, place) as u32
    }

    /// The end of a round of a loop that waits, which is told apart from others by this call.
    pub(crate) fn pass_call(&self, place: Place) {
        if self.is_free() {
            self.give_way();
            return;
        }
        let thread = self.thread.get();
        // If what the thread does next is known, nobody asks for the marker.
        let top = {
            let state = self.state();
            (state.script.turn() != Some(thread)).then(|| state.lanes[thread as usize].top)
        };
        let detail = if self.fair.get() { Detail::Functions } else { Detail::Calls };
        let call = top.map(|top| self.calls.borrow_mut().number(place, top, detail));
        self.pass(place, call.unwrap_or_else(|| marker_of(place)));
    }

    /// The same where the place is enough.
    pub(crate) fn pass_marker(&self, place: Place) {
        if self.is_free() {
            self.give_way();
        } else {
            self.pass(place, marker_of(place));
        }
    }

    fn pass(&self, place: Place, marker: u32) {
        let silent_rounds = {
            let lane = &mut self.state().lanes[self.thread.get() as usize];
            lane.silent_rounds = if lane.marker == 0 { 0 } else { lane.silent_rounds + 1 };
            (lane.marker, lane.marker_place) = (marker, Some(place));
            lane.silent_rounds
        };
        if silent_rounds >= MOST_SILENT_ROUNDS {
            self.fail_silent_loop(place);
        }
    }

    /// Notes that the event of a thread happens.
    pub(crate) fn note_event(state: &mut State, thread: usize, result: i64) {
        let lane = &mut state.lanes[thread];
        let Lane { operation, what, place, .. } = *lane;
        let written = lane.written.take();
        lane.marker = 0;
        let after_change = lane.has_changed.take();
        state.log.push(Happened { thread: thread as u32, operation, what, place, result, written, after_change });
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.state.get_mut().give_back();
        self.state.get_mut().homes.publish();
        self.freed.release();
        self.forget_waiting();
        turns::runs_end(self.number, self.worker());
        let state = std::mem::replace(self.state.get_mut(), State::empty());
        spare::keep_run(Run { state, counts: self.counts.take(), freed: std::mem::take(&mut self.freed) });
    }
}
