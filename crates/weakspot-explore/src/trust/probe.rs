//! Does a loop of live code wait for ever, or does it look so many times and then do something else?
//!
//! Nobody can look into the local state of live code, so a round that seems to have changed nothing may have counted:
//! `for _ in 0..10 { if flag.load() { break } spin_loop() }`. It is tried out. The system runs along what happens before
//! the end of the round, and nothing else; then the thread goes on alone, on the memory as it is there. That is an
//! execution of SC like any other, and the thread is the only one in it: memory does not change, and what comes of the
//! loop does not depend on anybody else. If the thread leaves the loop, its rounds are counted and all of them are
//! explored, or, if there are many, the first and the last ones. If it has not left after [`MOST_ROUNDS`] rounds, it
//! never does; the first time that a loop is tried out it gets [`PATIENT_ROUNDS`].
//!
//! A loop that asks a clock ends after another number of rounds when it is tried out once more. No schedule says when
//! such a loop ends; it is taken to go on.
//!
//! A loop that fails after some rounds (`assert!(rounds < 1000)`) may be one that waits, with a guard against waiting for
//! ever. Whoever takes fair scheduling for granted wants it to be taken so: loom lets a thread that yields go on only when
//! another one has made a step, and there are tests that count on it with no more than four rounds. After as few rounds as
//! are all explored the thread must do nothing but look between its last round and the failure: one that gives up, does
//! something else and fails then has another reason.
//!
//! A thread is deterministic, so the answer depends on nothing but the results it was given, and is kept under a hash of
//! these. A loop that has been tried out [`FULL_PROBES`] times with different results and never ended is tried out for
//! [`FEW_ROUNDS`] rounds only after that, but for a full number now and then: whenever the number of tries is a power of
//! two. (A loop that has never ended gets fewer rounds if it idles for long in each: exponential backoff.) If it does end then, it may have been taken to be endless wrongly before, and that is said
//! ([`LeftOut::Unsure`]). What a loop is depends on its marker, its thread and what it does in a round, because many loops
//! may share a function that has the marker.
//!
//! What a thread has counted in an endless loop and looks at later cannot be found out in this way: see `rehearse`.

use std::ops::Range;

use rustc_hash::FxHashMap;
use weakspot_model::ids::ThreadId;

use super::rehearse::Rehearsals;
use super::rounds::{Idle, Round};
use super::steps::{Other, Step, repeats, smallest_part};
use super::{Alternative, Explorer, FREE, HELD};
use crate::graph::{Event, EventKind, Graph, NONE, Status};
use crate::system::{CellId, LeftOut, Pending, System, Token, Update};

/// Rounds after which a loop is taken to be endless.
pub const MOST_ROUNDS: u32 = 1_000;
/// Rounds that a loop gets when it is tried out for the first time.
const PATIENT_ROUNDS: u32 = 10_000;
/// Times that a loop is tried out for so many rounds.
const FULL_PROBES: u32 = 16;
/// Rounds after which a loop is taken to be endless that has never ended before.
const FEW_ROUNDS: u32 = 32;
/// Rounds that are enough for a loop that has never ended if the thread idles in them for long.
const FEWEST_ROUNDS: u32 = 12;
/// How often a thread that does not idle for long passes a marker, for each round that the loop is tried out for.
const PASSES_PER_ROUND: u32 = 4;
/// Events that a thread may have on its own between two passes of a marker.
const MOST_STEPS: u32 = 5_000;
/// Rounds of a loop with an end that are all explored, unless somebody says another number.
const EXACT_ROUNDS: u32 = 16;
/// Rounds like the last one after which a failure may be a guard against waiting for ever.
const GUARDED_ROUNDS: u32 = 1;
/// Answers that are kept.
const MOST_ANSWERS: usize = 1 << 16;

/// What comes of a loop if nobody else does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Each round is like the last one, or does the same a different number of times: a loop that spins some times and
    /// then yields passes the marker of its spinning once less.
    Endless,
    /// After so many rounds like the last one the thread does something else: it gets out of the loop, or goes on in it with
    /// other rounds, which are the same for ever.
    Leaves(u32),
    /// Rounds differ, but the thread does not get out.
    Winds,
    /// The thread gets out, but not after the same number of rounds each time: it looks at a clock.
    Wanders,
    /// The thread fails after some rounds, as one does that has waited too long.
    Fails,
}

/// What tells loops apart: the marker, the thread, and what happens in a round.
type LoopKey = (Token, usize, u64);

/// What is known of loops.
#[derive(Debug)]
pub(super) struct Loops {
    fates: FxHashMap<u64, Fate>,
    /// How often a loop was tried out and did not end; nothing if it did once.
    endless: FxHashMap<LoopKey, Option<u32>>,
    /// A thread has come round a loop, and it is not known whether it waits there.
    pub(super) unsure: Option<usize>,
    pub(super) exact_rounds: u32,
    /// Does a thread that says it waits let others go on before it fails?
    pub(super) is_fair: bool,
    pub(super) rehearsals: Rehearsals,
}

impl Default for Loops {
    fn default() -> Self {
        Self {
            fates: FxHashMap::default(),
            endless: FxHashMap::default(),
            unsure: None,
            exact_rounds: EXACT_ROUNDS,
            is_fair: false,
            rehearsals: Rehearsals::default(),
        }
    }
}

impl Loops {
    fn note(&mut self, history: u64, fate: Fate) {
        if self.fates.len() >= MOST_ANSWERS {
            self.fates.clear();
        }
        self.fates.insert(history, fate);
    }

    /// What whoever takes over a part of the search has to know, in whose graph threads have these histories.
    pub(super) fn for_somebody_else(&self, histories: impl Iterator<Item = u64>) -> Self {
        let known = |history: u64| self.fates.get(&history).map(|&fate| (history, fate));
        Self {
            fates: histories.filter_map(known).collect(),
            endless: self.endless.clone(),
            rehearsals: self.rehearsals.clone(),
            ..Self::default()
        }
    }

    /// Takes over what somebody else knows, who explores in the same way.
    pub(super) fn take_over(&mut self, other: Self) {
        let Self { fates, endless, rehearsals, .. } = other;
        self.fates.extend(fates);
        (self.endless, self.rehearsals) = (endless, rehearsals);
    }

    /// How many rounds a loop is tried out for, and for how many passes of a marker if those are more.
    fn rounds_to_try(&self, key: LoopKey) -> (u32, u32) {
        match self.endless.get(&key) {
            None => (PATIENT_ROUNDS, PATIENT_ROUNDS * PASSES_PER_ROUND),
            Some(None) => (MOST_ROUNDS, u32::MAX),
            Some(Some(times)) => {
                let is_short = *times >= FULL_PROBES && !times.is_power_of_two();
                let rounds = if is_short { FEW_ROUNDS } else { MOST_ROUNDS };
                (rounds, rounds * PASSES_PER_ROUND)
            }
        }
    }

    /// Notes what came of trying out a loop; true if it ends and may not have been given the time to do so before.
    fn note_probe(&mut self, key: LoopKey, fate: Fate) -> bool {
        let times = self.endless.entry(key).or_insert(Some(0));
        let is_late = matches!((fate, *times), (Fate::Leaves(_), Some(times)) if times > FULL_PROBES);
        *times = match fate {
            Fate::Leaves(_) | Fate::Fails => None,
            Fate::Endless | Fate::Winds | Fate::Wanders => times.map(|times| times + 1),
        };
        is_late
    }
}

/// One thread alone, and the memory it sees.
pub(super) struct Solo {
    pub(super) thread: ThreadId,
    memory: FxHashMap<CellId, i64>,
    /// The number of the next cell that has none.
    fresh: CellId,
    /// What the thread chose last in the round that is repeated.
    pub(super) choice: Option<i64>,
    /// What it has chosen in each of its steps, or 0, if somebody wants to know.
    pub(super) choices: Option<Vec<i64>>,
}

impl Solo {
    /// A thread on the memory of a graph with so many cells.
    pub(super) fn new(thread: ThreadId, cells: usize) -> Self {
        Self { thread, memory: FxHashMap::default(), fresh: cells as CellId, choice: None, choices: None }
    }

    /// Has it used none but these cells?
    pub(super) fn has_cells(&self, cells: usize) -> bool {
        self.fresh == cells as CellId
    }

    /// The cells that it has written, and what is in them.
    pub(super) fn written(&self) -> impl Iterator<Item = (CellId, i64)> {
        self.memory.iter().map(|(&cell, &value)| (cell, value))
    }
}

impl<S: System> Explorer<'_, S> {
    /// The thread has come round a loop: what is known of it, if that is enough to go on at once.
    pub(super) fn judge_round(&mut self, thread: usize, round: Round) {
        if round.idle == Idle::Together {
            // What comes of it alone is not the question.
            self.graph_mut().thread_mut(thread).status = Status::Stuck;
            return self.system.leave_rounds_out(ThreadId::new(thread), LeftOut::Together);
        }
        let fate = self.loops.fates.get(&self.history_until(thread, round.last)).copied();
        match fate {
            Some(fate) if !self.is_skipped(round, fate) => self.apply_fate(thread, round, fate),
            _ => self.loops.unsure = Some(thread),
        }
    }

    /// Are the rounds of this loop repeated without being explored?
    fn is_skipped(&self, round: Round, fate: Fate) -> bool {
        let most = if round.idle.is_look() { self.loops.exact_rounds } else { MOST_ROUNDS };
        matches!(fate, Fate::Leaves(rounds) if rounds > most)
    }

    fn apply_fate(&mut self, thread: usize, round: Round, fate: Fate) {
        let left_out = match (fate, round.idle) {
            // If it goes on with the same looks, the next round is one of waiting.
            (Fate::Leaves(_), _) | (Fate::Endless, Idle::Looks) => return,
            (Fate::Endless, Idle::Waits | Idle::Repeats) => None,
            (Fate::Winds, Idle::Waits | Idle::Looks | Idle::Repeats) => Some(LeftOut::Winds),
            (Fate::Wanders, _) => Some(LeftOut::Clock),
            (Fate::Fails, _) => Some(LeftOut::Fails),
            (_, Idle::Writes) => Some(LeftOut::Writes),
            (_, Idle::Together) => Some(LeftOut::Together),
        };
        self.graph_mut().thread_mut(thread).status = Status::Stuck;
        if let Some(why) = left_out {
            self.system.leave_rounds_out(ThreadId::new(thread), why);
        }
    }

    /// Tries out what comes of the loop that a thread is in, and acts on it.
    pub(super) fn find_out(&mut self, thread: usize) {
        let end = *self.graph().thread(thread);
        let round = self.idle_round(thread, end.last, end.token);
        let Some(round) = round.and_then(|round| self.as_last_round(round, end.token)) else { return };
        let history = self.history_until(thread, round.last);
        let known = self.loops.fates.get(&history).copied();
        let fate = known.unwrap_or_else(|| self.probe(thread, round, end.token));
        if known.is_none() {
            self.note_fate(round, history, fate);
        }
        let is_long = matches!(fate, Fate::Leaves(rounds) if rounds > MOST_ROUNDS);
        let repeats = match fate {
            Fate::Leaves(rounds) if !is_long && self.is_skipped(round, fate) && self.has_room_for(round, rounds) => {
                rounds
            }
            _ => 0,
        };
        (0..repeats).for_each(|_| self.repeat_round(thread, round));
        if known.is_none() || repeats > 0 {
            let ordered = self.lineariser.linearise(&self.frame.graph);
            debug_assert!(ordered, "rounds that repeat others keep the graph consistent");
            self.run_linearised(NONE, None);
        }
        if matches!(fate, Fate::Leaves(_)) {
            self.system.note_end(ThreadId::new(thread));
        }
        if is_long {
            self.graph_mut().thread_mut(thread).status = Status::Stuck;
            self.system.leave_rounds_out(ThreadId::new(thread), LeftOut::LongLoop);
        } else if repeats > 0 {
            self.system.leave_rounds_out(ThreadId::new(thread), LeftOut::ManyRounds);
        } else {
            self.apply_fate(thread, round, fate);
        }
    }

    /// Is a thread that is stuck in a loop known to leave it by itself, after very many rounds?
    pub(super) fn leaves_at_last(&self, thread: usize) -> bool {
        matches!(self.loops.fates.get(&self.history(thread)), Some(Fate::Leaves(_)))
    }

    fn has_room_for(&self, round: Round, rounds: u32) -> bool {
        let events = self.graph().event(round.last).index - self.graph().event(round.first).index + 1;
        u64::from(events) * u64::from(rounds) + u64::from(self.graph().len()) < u64::from(self.longest)
    }

    /// Appends the round once more, reading the same.
    fn repeat_round(&mut self, thread: usize, round: Round) {
        for id in self.events_of(round) {
            let event = *self.graph().event(id);
            self.graph_mut().thread_mut(thread).token = event.before;
            let new = if event.kind.is_read() {
                self.graph_mut().add_read(thread, event.kind, event.cell, event.source)
            } else {
                self.graph_mut().add_local(thread, event.kind, event.value, true)
            };
            self.graph_mut().event_mut(new).repeated = true;
        }
        let token = self.graph().event(round.first).before;
        self.graph_mut().thread_mut(thread).token = token;
    }

    /// The events of a round, in order.
    fn events_of(&self, round: Round) -> Vec<u32> {
        let mut events: Vec<u32> = Vec::new();
        let mut id = round.last;
        loop {
            events.push(id);
            if id == round.first {
                break;
            }
            id = self.graph().event(id).po_prev;
        }
        events.reverse();
        events
    }

    /// A hash of all results that a thread was given.
    pub(super) fn history(&self, thread: usize) -> u64 {
        history_of(self.graph(), thread)
    }

    fn history_until(&self, thread: usize, last: u32) -> u64 {
        history_until(self.graph(), thread, last)
    }

    /// Is a thread with this history known to wait if it reads this write?
    pub(super) fn would_wait(&self, history: u64, cell: CellId, source: u32) -> bool {
        let history = add_to_history(self.graph(), history, self.graph().value_of(cell, source), source);
        self.loops.fates.get(&history) == Some(&Fate::Endless)
    }

    /// The thread of this alternative, which is a look, has had it: does it go on waiting? It has come round its loop if it
    /// does, so that is found out if it is not known.
    pub(super) fn goes_on_waiting(&mut self, what: Alternative) -> bool {
        let Alternative::Source { thread, .. } = what else { return false };
        if let Some(unsure) = self.loops.unsure.take() {
            self.find_out(unsure);
        }
        self.diverged.is_none() && self.loops.fates.get(&self.history(thread as usize)) == Some(&Fate::Endless)
    }

    /// Keeps an answer, and those for the rounds that are alike.
    fn note_fate(&mut self, round: Round, mut history: u64, fate: Fate) {
        self.loops.note(history, fate);
        let Fate::Leaves(rounds) = fate else { return };
        if rounds > MOST_ROUNDS {
            return;
        }
        let events = self.events_of(round);
        for left in (0..rounds).rev() {
            history = events.iter().fold(history, |history, &id| extend_history(self.graph(), history, id));
            self.loops.note(history, Fate::Leaves(left));
        }
    }

    /// Runs the thread alone from where it is.
    fn probe(&mut self, thread: usize, round: Round, marker: Token) -> Fate {
        let key = (marker, thread, self.look_of(round));
        let rounds = self.loops.rounds_to_try(key);
        let mut fate = self.run_alone(thread, round, marker, rounds);
        if matches!(fate, Fate::Leaves(_)) && self.run_alone(thread, round, marker, rounds) != fate {
            fate = Fate::Wanders;
        }
        if self.loops.note_probe(key, fate) {
            self.system.leave_rounds_out(ThreadId::new(thread), LeftOut::Unsure);
        }
        fate
    }

    /// A hash of what happens in a round, whatever is read.
    fn look_of(&self, round: Round) -> u64 {
        self.events_of(round).into_iter().fold(0, |hash, id| {
            let Event { kind, cell, .. } = self.graph().event(id);
            let kind = match kind {
                EventKind::Load => 0,
                EventKind::Store | EventKind::InterlockedStore => 1,
                EventKind::RmwRead(_) => 2,
                EventKind::RmwWrite { .. } => 3,
                EventKind::Fence(_) => 4,
                _ => 5,
            };
            mix(hash, u64::from(*cell) << 3 | kind)
        })
    }

    fn run_alone(&mut self, thread: usize, round: Round, marker: Token, (rounds, most_passes): (u32, u32)) -> Fate {
        let graph = &self.frame.graph;
        self.lineariser.linearise_some(graph, |id| graph.happens_before(id, round.last));
        self.run_linearised(NONE, None);
        if self.diverged.is_some() {
            return Fate::Endless;
        }
        let pattern: Vec<Step> = self.events_of(round).into_iter().filter_map(|id| self.step_of(id)).collect();
        let mut events = self.events_of(round).into_iter().rev().map(|id| self.graph().event(id));
        let choice = events.find(|event| event.kind == EventKind::Choose).map(|event| event.value);
        let mut solo = Solo { choice, ..Solo::new(ThreadId::new(thread), self.graph().cell_count()) };
        let part = smallest_part(&pattern);
        let (mut alike, mut all_alike, mut all_repeat, mut passes) = (0, true, true, 0);
        let mut other: Option<Other> = None;
        for number in 0..rounds {
            if number >= FEWEST_ROUNDS && passes > most_passes {
                break;
            }
            let (steps, comes_round) = self.solo_round(&mut solo, round.last, marker);
            if !comes_round {
                return self.fate_of_leaving(solo.thread, alike, &steps);
            }
            passes += self.system.idle_passes(solo.thread);
            all_alike &= steps == pattern;
            all_repeat &= repeats(&steps, part);
            alike += u32::from(all_alike);
            match &mut other {
                Some(other) => other.see(&steps),
                None if !all_alike => other = Some(Other::new(&steps)),
                None => {}
            }
        }
        match other {
            _ if all_repeat => Fate::Endless,
            // The loop has another part, which will be tried out when the thread has come to it.
            Some(other) if round.idle.is_look() && other.goes_on() => Fate::Leaves(alike),
            _ => Fate::Winds,
        }
    }

    /// A thread that says that it waits and fails after some rounds counts them because it does not expect to wait so
    /// long: others would be scheduled meanwhile. If there are none who could end its waiting, that is a livelock.
    fn fate_of_leaving(&self, thread: ThreadId, alike: u32, steps: &[Step]) -> Fate {
        let fails = matches!(self.system.pending(thread), Pending::Failed);
        let only_looks = steps.iter().all(|step| step.written.is_none());
        let is_guard = alike > self.loops.exact_rounds || alike >= GUARDED_ROUNDS && only_looks;
        if self.loops.is_fair && fails && is_guard { Fate::Fails } else { Fate::Leaves(alike) }
    }

    /// What the thread does until it passes the marker again, and whether it does.
    pub(super) fn solo_round(&mut self, solo: &mut Solo, last: u32, marker: Token) -> (Vec<Step>, bool) {
        let mut steps = Vec::new();
        for _ in 0..MOST_STEPS {
            let Some(step) = self.solo_step(solo, last) else { break };
            steps.push(step);
            if self.system.marker(solo.thread) == marker {
                return (steps, true);
            }
        }
        (steps, false)
    }

    /// What memory holds: what was written last of what happens before the event `last`, or of all.
    pub(super) fn solo_memory(&self, solo: &Solo, cell: CellId, last: u32) -> i64 {
        if let Some(&value) = solo.memory.get(&cell) {
            return value;
        }
        self.value_at(cell, last)
    }

    /// One step of the thread alone; nothing if it cannot make one, or does something that no loop does.
    pub(super) fn solo_step(&mut self, solo: &mut Solo, last: u32) -> Option<Step> {
        let mut pending = self.system.pending(solo.thread);
        if pending.is_unbound() {
            self.system.bind(solo.thread, solo.fresh);
            solo.memory.insert(solo.fresh, self.system.initial(solo.fresh));
            solo.fresh += 1;
            pending = self.system.pending(solo.thread);
        }
        let (step, result) = match pending {
            Pending::Load(cell) => {
                let value = self.solo_memory(solo, cell, last);
                (Step::load(cell, value), value)
            }
            Pending::Store { cell, value } | Pending::InterlockedStore { cell, value } => (Step::store(cell, value), 0),
            Pending::Unlock(mutex) => (Step::store(mutex, FREE), 0),
            Pending::Rmw { cell, .. } => {
                let value = self.solo_memory(solo, cell, last);
                let Update::Acts { result, written } = self.system.update(solo.thread, value) else { return None };
                (Step::atomic(cell, value, written), result)
            }
            Pending::Lock(mutex) | Pending::TryLock(mutex) => {
                let value = self.solo_memory(solo, mutex, last);
                if value != FREE && matches!(pending, Pending::Lock(_)) {
                    return None;
                }
                let free = value == FREE;
                let tried = matches!(pending, Pending::TryLock(_));
                (Step::atomic(mutex, value, free.then_some(HELD)), i64::from(free && tried))
            }
            Pending::Notify { condvar, all } => {
                let value = self.solo_memory(solo, condvar, last);
                if value != 0 && !all {
                    return None;
                }
                (Step::atomic(condvar, value, (value != 0).then_some(0)), 0)
            }
            Pending::Fence(_) | Pending::LeaveCritical => (Step::NOTHING, 0),
            Pending::Choose { lo, hi } => (Step::NOTHING, solo.choice.filter(|choice| (lo..=hi).contains(choice))?),
            _ => return None,
        };
        if let Some(value) = step.written {
            solo.memory.insert(step.cell, value);
        }
        if let Some(choices) = &mut solo.choices {
            choices.push(if matches!(pending, Pending::Choose { .. }) { result } else { 0 });
        }
        self.system.resume(solo.thread, result);
        Some(step)
    }

    /// What an event of the graph is as a step; nothing for the reads that a write follows.
    pub(super) fn step_of(&self, id: u32) -> Option<Step> {
        let event = self.graph().event(id);
        let before = || self.graph().event(event.po_prev).value;
        Some(match event.kind {
            EventKind::Load => Step::load(event.cell, event.value),
            EventKind::Store | EventKind::InterlockedStore | EventKind::Unlock => Step::store(event.cell, event.value),
            EventKind::RmwRead(_) | EventKind::NotifyRead if event.has_write => return None,
            EventKind::RmwRead(_) | EventKind::NotifyRead => Step::atomic(event.cell, event.value, None),
            EventKind::RmwWrite { .. } | EventKind::LockWrite | EventKind::NotifyWrite => {
                Step::atomic(event.cell, before(), Some(event.value))
            }
            EventKind::LockRead => return None,
            _ => Step::NOTHING,
        })
    }
}

/// A hash of all results that a thread was given.
pub(super) fn history_of(graph: &Graph, thread: usize) -> u64 {
    history_until(graph, thread, graph.thread(thread).last)
}

/// The same up to an event, after which it passed the marker that it has passed last.
fn history_until(graph: &Graph, thread: usize, last: u32) -> u64 {
    let end = graph.thread(thread);
    let mut events = Vec::with_capacity(end.len as usize);
    let mut id = last;
    while id != NONE {
        events.push(id);
        id = graph.event(id).po_prev;
    }
    let start = mix(thread as u64, u64::from(end.token.0));
    events.iter().rev().fold(start, |history, &id| extend_history(graph, history, id))
}

fn extend_history(graph: &Graph, history: u64, id: u32) -> u64 {
    let event = graph.event(id);
    if !event.kind.is_read() && event.kind != EventKind::Choose {
        return history;
    }
    add_to_history(graph, history, event.value, event.source)
}

/// The history with one more result, which is that of a write.
fn add_to_history(graph: &Graph, history: u64, value: i64, source: u32) -> u64 {
    if is_small(value) || source == NONE {
        return mix(history, value as u64);
    }
    let source = graph.event(source);
    mix(mix(history, u64::MAX - u64::from(source.thread)), u64::from(source.index))
}

/// Is a value the same in another run? Others may be addresses.
pub(super) fn is_small(value: i64) -> bool {
    const SMALL: Range<i64> = -(1 << 31)..1 << 32;
    SMALL.contains(&value)
}

/// splitmix64 of both.
pub(crate) fn mix(history: u64, item: u64) -> u64 {
    let mut z = (history ^ item.wrapping_mul(0xff51_afd7_ed55_8ccd)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
