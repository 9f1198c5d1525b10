//! Exhaustive exploration: one execution for each SC trace.
//!
//! This is `TruSt` (Kokologiannakis, Marmanis, Gladstein, Vafeiadis: Truly Stateless, Optimal Dynamic Partial Order
//! Reduction, POPL 2022) for sequential consistency: exactly one complete execution for each trace, memory polynomial
//! in the length of one execution, nothing shared between branches.
//!
//! | the paper | here |
//! |---|---|
//! | `Visit` | [`Explorer::extend`], [`Explorer::step`] |
//! | `next(G)` | `next`: the first thread that can go on; the parts of one atomic are added together |
//! | the loop over sources of a read | [`Explorer::read`] |
//! | `VisitCOs` | [`Explorer::write`] (direct), [`Explorer::push_revisits`] (after a revisit) |
//! | `Deleted`, the maximality test of a revisit | [`Explorer::push_revisits`], [`Explorer::is_maximal`] |
//! | the recursive calls | [`Item`]s, popped last in first out; a revisit opens a new [`Frame`] |
//!
//! # Consistency
//! A graph stays acyclic in po ∪ rf ∪ co ∪ fr when a read is added unless the write that overwrites its source happens
//! before what its thread did last; for a write put between two others, unless the second one does. Walking coherence
//! backwards, the first source that fails this ends the walk: all earlier ones fail, too.
//!
//! # What blocks
//! Acquiring a mutex is an atomic whose read must find it free; being woken is a read that must find a notification
//! that names the thread. Such a read may also be added reading the last write when that does not satisfy it: the
//! thread is then stuck, and a later write may revisit the read (`next`: if anybody else can go on, that comes first, and
//! the read may find what it waits for at once). A graph in which some thread is still stuck at the end
//! is a deadlock if every stuck read reads the last write of its cell, and else no execution (counted as blocked).
//! The waiters of a condition variable are the bits of its value; `wait` sets the own bit, a notification clears one
//! (each choice is explored) or all, and only reads if there is none. One notification clears the bit of a thread that
//! sleeps, and no other write matters
//! to it: being woken reads that one, wherever it stands, as soon as it is there (so it counts as maximally added), and
//! until then the thread is stuck, whatever its read reads. Wake-ups without a notification, if there are any, are in `wakeups`. A false `assume` leaves its thread behind in the same way: the others go on,
//! because one of their writes may revisit a read it depends on.
//!
//! In live code, graphs in which a thread can only stay stuck are cut off (`unblock`).
//!
//! # Loops that wait
//! A round of a loop that only reads and changes nothing that is live is explored once failing and then once more
//! (`rounds`); a thread whose second such round fails, too, is stuck until a write revisits one of its reads. Whether
//! live code changes anything that is live is tried out (`probe`).
//!
//! # Systems without tokens
//! Live code cannot be put back, and what it does happens for real. So an alternative is first put into the graph, and
//! then the system runs again from the start, once, along a linearisation of that graph (`restart`). Extending a graph
//! by first choices (the last write, the last place) is what SC would do at that moment and needs no new run.
//!
//! # Choices
//! A `choose` is an event without a cell. It counts as maximally added if it took its first value.

mod ending;
mod frame;
mod futile;
mod next;
mod probe;
mod reads;
mod rehearse;
mod restart;
mod revisit;
mod rounds;
mod script;
mod steps;
mod subtree;
mod together;
mod unblock;
mod visitor;
mod wakeups;
mod workspace;
mod writes;

use std::ops::ControlFlow;

use weakspot_model::ids::ThreadId;

use crate::graph::{EventKind, Graph, MOST_EVENTS, NONE, Phase, Watching};
use crate::linearise::Lineariser;
use crate::system::{CellId, LeftOut, Misuse, Pending, Repeated, System, Token};
use frame::{Alternative, Doomed, Frame, Frames, Item, UNTOLD};
use probe::Loops;
pub use probe::MOST_ROUNDS;
pub(crate) use probe::mix;
pub use restart::Divergence;
pub use script::steps_again;
pub use subtree::Subtree;
pub use visitor::{Ending, Visitor};
pub use wakeups::MOST_FRUITLESS;
pub use workspace::Workspace;

/// Value of a mutex nobody holds.
const FREE: i64 = 0;
/// Value of a mutex that is held.
const HELD: i64 = 1;

/// Counters of an exploration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events added.
    pub events: u64,
    /// Graphs built by revisits.
    pub revisits: u64,
    /// Revisits that turned out inconsistent.
    pub inconsistent: u64,
    /// How often a system without tokens was run again.
    pub runs: u64,
}

/// The search.
#[derive(Debug)]
pub struct Explorer<'s, S: System> {
    system: &'s mut S,
    /// What is worked on. In a box, as those that wait are: they are told apart all the time, and never moved.
    frame: Box<Frame>,
    /// Those that wait until it is done with; the last was opened last.
    below: Frames,
    /// Memory for more of them.
    spare: Frames,
    lineariser: Lineariser,
    map: Vec<u32>,
    /// What a system without tokens makes again.
    script: Vec<Repeated>,
    /// The system has no tokens.
    replays: bool,
    /// Cells that got a number in this run.
    bound: usize,
    counters: Counters,
    /// The part of the search that is being worked on.
    share: f64,
    /// Events that one execution may have.
    longest: u32,
    /// The system did not do the same again.
    diverged: Option<Divergence>,
    /// What is known of loops.
    loops: Loops,
    /// A thread may wake up without a notification.
    spurious_wakeups: bool,
}

/// Events that one execution may have at most; the parts of an atomic come together.
pub const LONGEST: u32 = MOST_EVENTS - 4;

/// Bytes of graphs that may wait for one that was made from them. Each is smaller than what one execution may have, and so
/// is their number, unless a loop goes round for ever, one revisit after the other.
const MOST_BYTES_BELOW: usize = 1 << 30;

impl<'s, S: System> Explorer<'s, S> {
    /// Starts at the beginning of the system.
    pub fn new(system: &'s mut S) -> Self {
        Self::using(system, Workspace::default())
    }

    /// The same with memory that another explorer has used.
    pub fn using(system: &'s mut S, workspace: Workspace) -> Self {
        system.restart();
        let Workspace { frames: mut spare, lineariser, map, script } = workspace.emptied();
        let mut frame = spare.pop().unwrap_or_default();
        let graph = &mut frame.graph;
        graph.restart(system.threads(), (0..system.cells()).map(|cell| system.initial(cell as CellId)));
        let mut replays = false;
        for thread in 0..system.threads() {
            match system.save(ThreadId::new(thread)) {
                Some(token) => graph.thread_mut(thread).token = token,
                None => replays = true,
            }
        }
        Self {
            system,
            frame,
            below: Vec::new(),
            spare,
            lineariser,
            map,
            script,
            replays,
            bound: 0,
            counters: Counters::default(),
            share: 1.0,
            longest: LONGEST,
            diverged: None,
            loops: Loops::default(),
            spurious_wakeups: false,
        }
    }

    /// Explores this many rounds of a loop that looks a bounded number of times in all ways, and not only the first and
    /// the last.
    #[must_use]
    pub fn with_exact_rounds(mut self, rounds: u32) -> Self {
        self.loops.exact_rounds = rounds;
        self
    }

    /// Takes scheduling to be fair: a loop that says it waits and fails after some rounds without news waits.
    #[must_use]
    pub fn with_fair_loops(mut self, fair: bool) -> Self {
        self.loops.is_fair = fair;
        self
    }

    /// Lets threads wake up without a notification.
    #[must_use]
    pub fn with_spurious_wakeups(mut self) -> Self {
        self.spurious_wakeups = true;
        self
    }

    /// Bounds the number of events of one execution.
    #[must_use]
    pub fn with_longest(mut self, events: u32) -> Self {
        self.longest = events.min(LONGEST);
        self
    }

    /// Lets the graphs answer SOBER's question: see [`Graph::is_borderline`].
    #[must_use]
    pub fn watched(self) -> Self {
        self.watching(Watching::Sober)
    }

    /// Lets the graphs answer a monitor's question: see [`Graph::is_borderline`].
    #[must_use]
    pub fn watching(mut self, watching: Watching) -> Self {
        self.frame.graph.watch(watching);
        self
    }

    /// Why the search was given up, if the system is not deterministic (it can only be found out without tokens).
    pub fn divergence(&self) -> Option<Divergence> {
        self.diverged
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Is nothing left to explore? A visitor may have stopped the search after the last graph of all.
    pub fn is_done(&self) -> bool {
        let has_alternatives = |frame: &Frame| !frame.items.is_empty();
        self.diverged.is_none()
            && !has_alternatives(&self.frame)
            && !self.below.iter().any(|below| has_alternatives(below))
    }

    /// Explores everything.
    pub fn run(&mut self, visitor: &mut impl Visitor<S>) -> ControlFlow<()> {
        for thread in 0..self.system.threads() {
            let thread = ThreadId::new(thread);
            match self.system.pending(thread) {
                Pending::Pruned => {
                    visitor.covered(self.share);
                    return ControlFlow::Continue(());
                }
                Pending::Failed => {
                    visitor.covered(self.share);
                    return visitor.failed(&self.frame.graph, self.system, thread);
                }
                _ => {}
            }
        }
        let flow = self.extend(visitor);
        self.note_told();
        flow?;
        self.backtrack(visitor)
    }

    /// Goes on with a search that its visitor has stopped after a graph.
    pub fn go_on(&mut self, visitor: &mut impl Visitor<S>) -> ControlFlow<()> {
        self.backtrack(visitor)
    }

    /// Takes up one alternative after the other until there are none.
    fn backtrack(&mut self, visitor: &mut impl Visitor<S>) -> ControlFlow<()> {
        loop {
            let Some(item) = self.frame.items.pop() else {
                if !self.leave_frame() {
                    return ControlFlow::Continue(());
                }
                continue;
            };
            let (depth, open) = (self.below.len(), self.frame.items.len());
            let events = self.counters.events;
            let consistent = self.take_up(item);
            self.share = item.share;
            self.split_share(if self.below.len() == depth { open } else { 0 });
            if !consistent {
                self.note_told();
                visitor.covered(self.share);
                visitor.led_nowhere()?;
                continue;
            }
            if item.is_look && self.goes_on_waiting(item.what) {
                // Whoever had known that would not have looked at it.
                self.counters.events = events;
                self.note_told();
                visitor.covered(self.share);
                visitor.led_nowhere()?;
                continue;
            }
            if matches!(item.what, Alternative::Revisit { .. }) {
                self.judge_rounds_after_revisit();
            }
            let flow = self.extend(visitor);
            self.note_told();
            flow?;
            if self.diverged.is_some() {
                return ControlFlow::Break(());
            }
            if visitor.wants_work()
                && let Some(subtree) = self.give_away()
            {
                visitor.take(subtree);
            }
        }
    }

    /// Gives the alternatives from number `since` on, which have just been left open, their parts of the search.
    #[inline]
    fn split_share(&mut self, since: usize) {
        let new = &mut self.frame.items[since..];
        if !new.is_empty() {
            self.share /= (new.len() + 1) as f64;
            for item in new {
                item.share = self.share;
            }
        }
    }

    /// The run is over that has left the newest alternatives open: what has been told of the events that they keep.
    fn note_told(&mut self) {
        let Frame { graph, items, .. } = &mut *self.frame;
        let new = items.iter_mut().rev().take_while(|item| item.told == UNTOLD);
        graph.note_told(new.map(|item| (item.len, &mut item.told)));
    }

    #[inline]
    fn graph(&self) -> &Graph {
        &self.frame.graph
    }

    #[inline]
    fn graph_mut(&mut self) -> &mut Graph {
        &mut self.frame.graph
    }

    fn push_item(&mut self, len: u32, what: Alternative) {
        self.frame.items.push(Item::new(len, what));
    }

    /// Adds events until nothing can be added, then tells the visitor.
    fn extend(&mut self, visitor: &mut impl Visitor<S>) -> ControlFlow<()> {
        loop {
            if let Some(thread) = self.loops.unsure.take() {
                self.find_out(thread);
            }
            let Some((thread, pending)) = self.next_thread() else { break };
            if self.diverged.is_some() {
                return ControlFlow::Break(());
            }
            if pending == Pending::Failed {
                self.graph_mut().thread_mut(thread).status = self.status_after_failure(thread);
                visitor.failed(&self.frame.graph, self.system, ThreadId::new(thread))?;
                continue;
            }
            self.counters.events += 1;
            let open = self.frame.items.len();
            let consistent = self.step(thread, pending);
            self.split_share(open);
            if !consistent || !self.go_on_from_hopeless(open, visitor) {
                visitor.covered(self.share);
                return visitor.led_nowhere();
            }
            if self.graph().len() > self.longest || self.graph().bytes_below() > MOST_BYTES_BELOW {
                return visitor.ended(&self.frame.graph, self.system, Ending::TooLong);
            }
        }
        if self.diverged.is_none() {
            self.rehearse(visitor)?;
        }
        if self.diverged.is_some() {
            return ControlFlow::Break(());
        }
        let ending = self.ending();
        visitor.covered(self.share);
        visitor.ended(&self.frame.graph, self.system, ending)
    }

    /// Goes on with a new frame, while this one waits.
    fn enter_frame(&mut self, frame: Box<Frame>) {
        self.below.push(std::mem::replace(&mut self.frame, frame));
    }

    /// Goes back to the frame that has waited last; false if none has.
    fn leave_frame(&mut self) -> bool {
        let Some(below) = self.below.pop() else { return false };
        self.spare.push(std::mem::replace(&mut self.frame, below));
        true
    }

    /// Takes up an alternative of the frame; false if it is inconsistent.
    fn take_up(&mut self, Item { len, what, told, .. }: Item) -> bool {
        let frame = &mut *self.frame;
        frame.graph.truncate(len);
        frame.graph.set_told(told);
        if frame.order.len() > len as usize {
            frame.order.retain(|&id| id < len);
        }
        self.counters.events += 1;
        self.loops.unsure = None;
        if self.replays {
            return self.run_alternative(what);
        }
        match what {
            Alternative::Source { thread, source, .. } => {
                let pending = self.pending_again(thread);
                self.take_source(thread as usize, pending, source)
            }
            Alternative::Place { thread, kind, cell, after } => {
                let (Pending::Store { value, .. } | Pending::InterlockedStore { value, .. }) =
                    self.pending_again(thread)
                else {
                    unreachable!("invariant: a token leads to the same pause")
                };
                self.graph_mut().add_write(thread as usize, kind, cell, value, after);
                self.resume(thread as usize, 0);
                true
            }
            Alternative::Choice { thread, value } => {
                self.pending_again(thread);
                self.choose(thread as usize, value, false);
                true
            }
            Alternative::Waiter { thread, read, waiter } => {
                let pending = self.pending_again(thread);
                self.notify(thread as usize, pending, read, Some(waiter))
            }
            Alternative::Revisit { read, after } => self.revisit(read, after),
        }
    }

    /// Puts the system's thread back to where the graph is, and asks it what it was about to do.
    fn pending_again(&mut self, thread: u32) -> Pending {
        let id = ThreadId(thread as u16);
        let token = self.graph().thread(thread as usize).token;
        self.system.restore(id, token);
        self.system.pending(id)
    }

    /// Adds what a thread is about to do, in the first way there is; false if the graph is then inconsistent.
    fn step(&mut self, thread: usize, pending: Pending) -> bool {
        let pending = if pending.is_unbound() { self.bind_anew(thread) } else { pending };
        match pending {
            Pending::Load(cell) | Pending::Rmw { cell, .. } | Pending::Lock(cell) | Pending::TryLock(cell) => {
                self.read(thread, pending, cell)
            }
            Pending::Notify { condvar, .. } => self.read(thread, pending, condvar),
            Pending::Wait { condvar, mutex } => match self.graph().thread(thread).phase {
                Phase::Running if !self.holds(thread, mutex) => self.misuse(thread),
                Phase::Running | Phase::Asleep => self.read(thread, pending, condvar),
                Phase::Entered => {
                    let after = self.graph().last_write(mutex);
                    self.write(thread, EventKind::WaitUnlock, mutex, FREE, after);
                    self.graph_mut().thread_mut(thread).phase = Phase::Asleep;
                    true
                }
                Phase::Woken => self.read(thread, pending, mutex),
            },
            Pending::Store { cell, value } => {
                self.write_store(thread, EventKind::Store, cell, value);
                true
            }
            Pending::InterlockedStore { cell, value } => {
                self.write_store(thread, EventKind::InterlockedStore, cell, value);
                true
            }
            Pending::Signal(cell) => {
                let last = self.graph().last_write(cell);
                self.graph_mut().add_write(thread, EventKind::Signal, cell, 1, last);
                self.resume(thread, 0);
                true
            }
            Pending::Await(cell) => {
                let source = self.graph().last_write(cell);
                self.graph_mut().add_read(thread, EventKind::Await, cell, source);
                self.resume(thread, 0);
                true
            }
            Pending::Unlock(mutex) => {
                if !self.holds(thread, mutex) {
                    return self.misuse(thread);
                }
                let after = self.graph().last_write(mutex);
                self.write(thread, EventKind::Unlock, mutex, FREE, after);
                self.resume(thread, 0);
                true
            }
            Pending::Fence(kind) => {
                self.graph_mut().add_local(thread, EventKind::Fence(kind), 0, true);
                self.resume(thread, 0);
                true
            }
            Pending::LeaveCritical => {
                self.graph_mut().add_local(thread, EventKind::LeaveCritical, 0, true);
                self.resume(thread, 0);
                true
            }
            Pending::Choose { lo, hi } => {
                if self.has_chosen_enough(thread) {
                    self.system.leave_rounds_out(ThreadId::new(thread), LeftOut::Timeouts);
                } else {
                    let len = self.graph().len();
                    for value in (lo + 1..=hi).rev() {
                        self.push_item(len, Alternative::Choice { thread: thread as u32, value });
                    }
                }
                self.choose(thread, lo, true);
                true
            }
            Pending::Absent
            | Pending::Ended
            | Pending::Spinning
            | Pending::Pruned
            | Pending::Failed
            | Pending::Bounded => {
                unreachable!("invariant: only threads that can go on are stepped")
            }
        }
    }

    fn choose(&mut self, thread: usize, value: i64, first: bool) {
        self.graph_mut().add_local(thread, EventKind::Choose, value, first);
        self.resume(thread, value);
    }

    /// Gives a thread the result of what it did.
    #[inline]
    fn resume(&mut self, thread: usize, result: i64) {
        let id = ThreadId::new(thread);
        self.system.resume(id, result);
        self.settle(thread);
        if self.replays {
            if self.graph().thread(thread).token != Token(0) {
                self.end_marked_round(thread);
            }
        } else if self.system.jumped_back(id) {
            self.end_round(thread);
        }
    }

    #[inline]
    fn settle(&mut self, thread: usize) {
        let id = ThreadId::new(thread);
        let token = if self.replays { None } else { self.system.save(id) };
        let token = token.unwrap_or_else(|| self.system.marker(id));
        self.graph_mut().thread_mut(thread).token = token;
    }

    /// Gives a number to the cell that a thread is about to use for the first time in this run.
    #[cold]
    fn bind_anew(&mut self, thread: usize) -> Pending {
        let near = self.bound;
        let cell = self.graph_mut().free_cell(near);
        self.bind(thread, cell)
    }

    fn bind(&mut self, thread: usize, cell: CellId) -> Pending {
        let id = ThreadId::new(thread);
        self.bound += 1;
        self.system.bind(id, cell);
        let initial = self.system.initial(cell);
        self.graph_mut().set_initial(cell, initial);
        self.system.pending(id)
    }

    /// The thread's pause is a program error. It leaves an event behind, so that the schedule has the step that failed.
    fn misuse(&mut self, thread: usize) -> bool {
        self.graph_mut().add_local(thread, EventKind::Misuse, 0, true);
        self.system.fail(ThreadId::new(thread), Misuse::NotHolding);
        self.settle(thread);
        true
    }

    /// Does the thread hold a mutex? Then its acquisition is the last write.
    fn holds(&self, thread: usize, mutex: CellId) -> bool {
        let last = self.graph().last_write(mutex);
        last != NONE && {
            let event = self.graph().event(last);
            event.kind == EventKind::LockWrite && event.thread as usize == thread
        }
    }
}

/// The bit of a thread in the value of a condition variable.
pub(crate) fn bit(thread: usize) -> i64 {
    1 << (thread & 63)
}
