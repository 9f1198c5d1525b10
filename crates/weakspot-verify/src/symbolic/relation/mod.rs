//! Search by memory: one stored state for each content of memory, one automaton for all threads in it.
//!
//! A stored state is a memory (with the owners of the mutexes) and the set of all *configurations* it has been reached
//! with: the control point and the buffer of every thread, spelled as one word (`automaton::configurations`). The set is one
//! regular language, so buffers and control points of different threads stay related exactly, and a program has as many
//! stored states as its memory has contents, however many control points there are. The paper (Sec. 3) suggests to join
//! all contents that belong to the same control locations; this goes on until memory is all that tells states apart.
//!
//! | paper | here |
//! |---|---|
//! | store, load; a cycle of one process and its acceleration | `Languages::after_solo`: all of them at once |
//! | commit | `Languages::after_commit` |
//! | sync | part of `after_solo`: a thread whose buffer is empty passes it |
//! | independence of processes between commits | threads run alone one after the other, in one order only |
//! | state inclusion | `Languages::includes`, against everything stored for the memory |
//!
//! # Threads run alone
//! Let memory be fixed. What a thread can do then depends on its control point and on what it sees of its own buffer: the
//! youngest store to each location it loads, and whether the buffer is empty ([`steps`]). That is finite, so what it can
//! append while it runs is a regular language, for all its loops together, and `after_solo` computes it without a guess.
//! Steps of one thread that leave memory and mutexes alone neither help nor hinder those of another: letting the threads
//! run one after the other gives every configuration any interleaving gives. What is left are the *changes*: a commit, or
//! an act on memory, a mutex or a condition variable (which waits for the own buffer, or, an atomic under PSO, for the own
//! stores to its location). A growth of a stored
//! state takes in what arrived, lets all threads run, and sends the results of all changes on. Nothing is lost or added,
//! so the union of all growths is the set of reachable configurations, up to what follows.
//!
//! # Stores that are overwritten at once
//! As in [`super::accelerate`]: a content with stores left out, each directly before another store to the same location,
//! can do nothing the full content cannot. The stored languages are closed under that (`Languages::thinned`), for stores
//! to any number of locations; the argument given there is about words with any locations in them.
//!
//! Under PSO the stores between two store-store fences of a thread reach memory in any order that keeps those to the same
//! location in order (`automaton::overtaking`). There a store may be left out if another to the same location comes
//! later with no fence between them: whatever is committed in between does not wait for either, and both can be
//! committed together when the later one is.
//!
//! # Widening, and why answers are exact all the same
//! Growths need not come to an end. After a while the search is run again with languages widened
//! (`automaton::widening`): every memory has finitely many widened languages for a depth, so that ends. What it finds
//! contains everything reachable. Hence
//! * no error with widening: no error, and the program is verified;
//! * every error state found with widening was found exactly before: that are all there are, and
//!   [`SymbolicReport::errors`](super::SymbolicReport::errors) is exact;
//! * otherwise the exact search goes on, until it has found all that widening left possible or it is time to widen again,
//!   with states merged that look alike a letter deeper.
//!
//! A search that is to stop at its first error stops there with widening, too, and then does not know what else is
//! possible: nothing but no error at all is used of it. And a search that could not take in something that arrived (the
//! automaton would be too large) is never gone on with: only widening can still answer.
//!
//! A violation is only ever reported from the exact search; [`trace`] turns it into an execution. When all turns are over
//! the search gives up, and [`super::verify`] starts the search over products of languages ([`super::explore`]).
//!
//! # What is counted
//! Stored states are entries of the table. Beside it there is a log of all growths, which only counterexamples are made
//! from. An error state is a memory with the control points of all threads, in which two threads are inside, a thread is
//! about to fail, or everything rests although it should not. For each memory the control points are one more language, so
//! that error states are counted without being listed. Mutual exclusion that is broken does not end an execution
//! here: error states behind other error states count. (Before it is reported, an execution is cut where the reference
//! machine sees the first problem.)

mod steps;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::machine::{Action, Machine, Rest};
use weakspot_model::task::{Budget, Limit, Progress};

use self::steps::{Act, Shared, Threads};
use super::SymbolicOptions;
use super::automaton::{Configuration, Language, Languages, Symbol};
use crate::intern::Interner;
use crate::threads::LocalId;

/// How a language came to a stored state.
#[derive(Debug, Clone)]
enum Arrival {
    /// It is where the program starts.
    Start,
    /// By a change, from what an earlier growth ended with.
    From(usize, Change),
}

/// An action that changes memory, the mutexes, or other threads.
#[derive(Debug, Clone)]
enum Change {
    Commit { thread: ThreadId, store: Symbol },
    Act(Act),
}

/// One growth of a stored state. The log is what counterexamples are made from.
#[derive(Debug)]
struct Growth {
    shared: u32,
    /// Where the new configurations came from.
    arrivals: Vec<Arrival>,
    /// All that arrived.
    arrived: Language,
    /// That, and what threads can do alone from there.
    exact: Language,
    /// That, and what it makes superfluous.
    closed: Language,
}

/// A stored state: a memory, with all configurations it was reached with.
#[derive(Debug, Default)]
struct Entry {
    language: Language,
    /// What arrived since it was last looked at.
    arrived: Language,
    arrivals: Vec<Arrival>,
    waiting: bool,
    growths: usize,
    /// Changes on a path to it.
    depth: u64,
}

/// A reachable configuration in which something goes wrong, and the action with which it does, if it is one.
pub(super) struct Failure {
    growth: usize,
    configuration: Configuration,
    last: Option<Action>,
}

/// A thread that can fail: what it sees of its buffer, where it rests, and the choice it makes.
type Fail = (ThreadId, (u32, LocalId, i64));

/// What threads turn out to be able to do while they run alone.
#[derive(Default)]
struct Noted {
    fails: Vec<Fail>,
    acts: Vec<Act>,
}

/// Error states: a memory, who fails if it is one thread, and in words where all threads rest then.
type Errors = BTreeMap<(u32, Option<ThreadId>), Language>;

/// Why a search ended.
pub(super) enum End {
    /// Everything was seen, or an error that is enough.
    Done,
    /// A limit of the budget.
    Limit(Limit),
    /// The automata grow too large: it may go on for ever.
    GaveUp,
}

/// States of an automaton, deterministic or not yet, after which the search gives up.
const MOST_STATES: usize = 6_000;
const MOST_PLACES: usize = 200_000;

/// Changes after which the search gives up: memory has too many contents to keep a language for each.
const MOST_CHANGES: u64 = 30_000;

/// Turns of the search: how often an entry may grow before widening is tried, and how many letters deep states have to
/// look alike to be merged then.
const TURNS: [(usize, usize); 4] = [(8, 1), (12, 2), (24, 3), (40, 4)];

/// What was found, and how.
#[derive(Default)]
struct Findings {
    /// One entry for each [`Shared`].
    table: Vec<Entry>,
    queue: VecDeque<u32>,
    log: Vec<Growth>,
    /// Where all threads have ended and `final` was asked, for each memory.
    judged: FxHashMap<u32, Language>,
    errors: Errors,
    failure: Option<Failure>,
    /// Something that arrived was too large to be taken in. What was found is found, but nothing can be concluded from
    /// what was not, and the search cannot go on.
    torn: bool,
}

/// A search under way.
pub(super) struct Search<'p, 'o> {
    languages: Languages,
    threads: Threads<'p>,
    options: &'o SymbolicOptions,
    shared: Interner<Shared>,
    now: Findings,
    turns: &'static [(usize, usize)],
    /// Languages are widened to this depth.
    widening: Option<usize>,
    pub(super) visited: u64,
    pub(super) transitions: u64,
    pub(super) accelerations: u64,
}

impl<'p, 'o> Search<'p, 'o> {
    /// Only for programs that start without a problem.
    pub(super) fn new(machine: Machine<'p>, options: &'o SymbolicOptions) -> Self {
        Self {
            languages: Languages::new(),
            threads: Threads::new(machine),
            options,
            shared: Interner::new(),
            now: Findings::default(),
            turns: &TURNS,
            widening: None,
            visited: 0,
            transitions: 0,
            accelerations: 0,
        }
    }

    pub(super) fn has_failure(&self) -> bool {
        self.now.failure.is_some()
    }

    pub(super) fn take_failure(&mut self) -> Option<Failure> {
        self.now.failure.take()
    }

    pub(super) fn stored(&self) -> u64 {
        self.now.table.iter().filter(|entry| entry.language != Language::EMPTY).count() as u64
    }

    pub(super) fn max_depth(&self) -> u64 {
        self.now.table.iter().map(|entry| entry.depth).max().unwrap_or(0)
    }

    pub(super) fn errors(&self) -> u64 {
        self.now.errors.values().map(|&controls| self.languages.count(controls)).fold(0, u64::saturating_add)
    }

    pub(super) fn automaton_states(&self) -> u64 {
        let size = |entry: &Entry| self.languages.size(entry.language) as u64;
        self.now.table.iter().filter(|entry| entry.language != Language::EMPTY).map(size).sum()
    }

    /// Searches until nothing new is found, the first error (unless all are wanted), or a limit.
    pub(super) fn run(&mut self, budget: &Budget, progress: &dyn Progress) -> End {
        self.languages.limit(budget);
        let end = self.run_in_turns(budget, progress);
        self.languages.unlimit();
        end
    }

    /// In turns: exactly for a while, then with widening, which bounds the errors there can be.
    fn run_in_turns(&mut self, budget: &Budget, progress: &dyn Progress) -> End {
        self.begin();
        let mut bound: Option<Errors> = None;
        for &(patience, depth) in self.turns {
            if self.transitions > MOST_CHANGES {
                break;
            }
            self.widening = None;
            if !self.now.torn {
                let end = self.run_on(patience, bound.as_ref(), budget, progress);
                if !matches!(end, End::GaveUp) {
                    return end;
                }
            }
            let exact = std::mem::take(&mut self.now);
            self.widening = Some(depth);
            self.begin();
            let end = self.run_on(usize::MAX, None, budget, progress);
            let widened = std::mem::replace(&mut self.now, exact);
            match end {
                End::GaveUp if self.now.torn => break,
                End::GaveUp => continue,
                End::Limit(limit) => return End::Limit(limit),
                End::Done => {}
            }
            if self.are_found(&widened.errors) {
                self.now.table = widened.table;
                return End::Done;
            }
            // A search that stops at the first error has not seen all that widening leaves possible.
            bound = self.options.all_errors.then_some(widened.errors);
        }
        End::GaveUp
    }

    /// Have all these error states been found?
    fn are_found(&mut self, errors: &Errors) -> bool {
        let (languages, found) = (&mut self.languages, &self.now.errors);
        errors.iter().all(|(key, &controls)| found.get(key).is_some_and(|&found| languages.includes(found, controls)))
    }

    /// Enters the start into an empty table.
    fn begin(&mut self) {
        self.now = Findings::default();
        let (shared, _) = self.threads.start();
        let start = self.start();
        let language = self.languages.configuration(&start);
        self.arrive(&shared, language, Arrival::Start, 0);
    }

    fn start(&mut self) -> Configuration {
        let (_, locals) = self.threads.start();
        Configuration(locals.into_iter().map(|local| (VecDeque::new(), local)).collect())
    }

    /// Until nothing is left to do, some entry has grown too often, or all errors there can be are found.
    fn run_on(&mut self, patience: usize, bound: Option<&Errors>, budget: &Budget, progress: &dyn Progress) -> End {
        while let Some(shared) = self.now.queue.pop_front() {
            progress.update(self.stored(), self.transitions, self.now.queue.len() as u64);
            if let Some(limit) = budget.exhausted(self.bytes()) {
                return End::Limit(limit);
            }
            if let Some(most) = self.options.max_states.filter(|&most| self.stored() > most) {
                return End::Limit(Limit::States(most));
            }
            if self.now.table[shared as usize].growths >= patience || self.transitions > MOST_CHANGES {
                self.now.queue.push_front(shared);
                return End::GaveUp;
            }
            let grown = self.grow(shared);
            if let Some(limit) = self.languages.interruption() {
                return End::Limit(limit);
            }
            if grown.is_none() {
                self.now.torn = true;
                return End::GaveUp;
            }
            let enough = self.now.failure.is_some() && !self.options.all_errors;
            if enough || bound.is_some_and(|bound| self.are_found(bound)) {
                return End::Done;
            }
        }
        End::Done
    }

    fn bytes(&self) -> u64 {
        (self.languages.bytes()
            + self.threads.bytes()
            + self.now.table.len() * size_of::<Entry>()
            + self.now.log.len() * (size_of::<Growth>() + size_of::<Arrival>())) as u64
    }

    /// Notes what arrives at a memory.
    fn arrive(&mut self, shared: &Shared, language: Language, arrival: Arrival, depth: u64) {
        if language == Language::EMPTY {
            return;
        }
        let id = self.shared.intern(shared);
        self.visited += 1;
        if self.now.table.len() <= id as usize {
            self.now.table.resize_with(id as usize + 1, Entry::default);
        }
        let entry = &mut self.now.table[id as usize];
        if self.languages.includes(entry.language, language) || self.languages.includes(entry.arrived, language) {
            return;
        }
        entry.arrived = self.languages.union(entry.arrived, language);
        entry.arrivals.push(arrival);
        entry.depth = entry.depth.max(depth);
        if !std::mem::replace(&mut entry.waiting, true) {
            self.now.queue.push_back(id);
        }
    }

    /// Takes in what arrived at a memory, and everything that follows from it there; `None` to give up.
    fn grow(&mut self, id: u32) -> Option<()> {
        let entry = &mut self.now.table[id as usize];
        entry.waiting = false;
        let arrived = std::mem::replace(&mut entry.arrived, Language::EMPTY);
        let arrivals = std::mem::take(&mut entry.arrivals);
        let depth = entry.depth;
        if self.languages.includes(entry.language, arrived) {
            return Some(());
        }
        entry.growths += 1;
        let before = entry.language;
        let mut noted = Noted::default();
        let mut stages = self.run_all(id, arrived, &mut noted)?;
        let exact = *stages.last()?;
        let mut closed = self.thinned(exact);
        let mut all = self.languages.union(before, closed);
        if let Some(depth) = self.widening {
            loop {
                let wider = self.languages.widened(all, depth);
                self.count_unbounded(all, wider);
                stages = self.run_all(id, wider, &mut noted)?;
                closed = self.thinned(*stages.last()?);
                if self.languages.includes(all, closed) || self.languages.is_interrupted() {
                    break;
                }
                all = self.languages.union(all, closed);
            }
            closed = all;
        }
        self.now.table[id as usize].language = all;
        let growth = self.now.log.len();
        self.now.log.push(Growth { shared: id, arrivals, arrived, closed, exact });
        if self.languages.size(all) > MOST_STATES {
            return None;
        }
        let shared = self.shared.get(id).clone();
        if self.languages.is_interrupted() {
            return None;
        }
        self.look_for_errors(growth, &shared, noted.fails);
        if self.now.failure.is_none() || self.options.all_errors {
            self.commit(growth, closed, &shared, depth + 1);
            self.act(growth, closed, noted.acts, depth + 1);
        }
        Some(())
    }

    /// Counts the threads whose buffers have become unbounded.
    fn count_unbounded(&mut self, before: Language, after: Language) {
        let languages = &self.languages;
        let became =
            |&thread: &ThreadId| languages.is_unbounded(after, thread) && !languages.is_unbounded(before, thread);
        self.accelerations += self.threads.program().thread_ids().filter(became).count() as u64;
    }

    /// What every thread can do alone in a memory: the language before the first runs, and after each.
    fn run_all(&mut self, id: u32, language: Language, noted: &mut Noted) -> Option<Vec<Language>> {
        let shared = self.shared.get(id).clone();
        let mut stages = vec![language];
        for thread in self.threads.program().thread_ids() {
            let mut alone = self.threads.alone(thread, &shared);
            let before = stages[thread.index()];
            let after = self.languages.after_solo(before, thread, (MOST_PLACES, MOST_STATES), &mut alone)?;
            noted.fails.extend(alone.fails.into_iter().map(|fail| (thread, fail)));
            noted.acts.append(&mut alone.acts);
            self.count_unbounded(before, after);
            stages.push(after);
        }
        Some(stages)
    }

    /// Leaves out stores that are overwritten at once; see the module's head.
    fn thinned(&mut self, language: Language) -> Language {
        match self.threads.machine.model {
            MemoryModel::Pso => self.languages.thinned_by_location(language),
            _ => self.languages.thinned(language),
        }
    }

    fn commit(&mut self, growth: usize, closed: Language, shared: &Shared, depth: u64) {
        let overtake = self.threads.machine.model == MemoryModel::Pso;
        for thread in self.threads.program().thread_ids() {
            let stores = if overtake {
                self.languages.overtaking(closed, thread)
            } else {
                self.languages.committable(closed, thread)
            };
            for store in stores {
                let (loc, value) = self.languages.store(store);
                let mut after = shared.clone();
                after.memory[loc.index()] = value;
                let language = if overtake {
                    self.languages.after_overtaking(closed, thread, store)
                } else {
                    self.languages.after_commit(closed, thread, store)
                };
                self.transitions += 1;
                self.arrive(&after, language, Arrival::From(growth, Change::Commit { thread, store }), depth);
            }
        }
    }

    fn act(&mut self, growth: usize, closed: Language, acts: Vec<Act>, depth: u64) {
        let mut known: FxHashSet<Act> = FxHashSet::default();
        for act in acts {
            if !known.insert(act.clone()) {
                continue;
            }
            let threads = &mut self.threads;
            let language = self.languages.after_act(closed, (act.thread, act.waits_for), &mut |thread, local| {
                threads.moved_by(&act, thread, local)
            });
            self.transitions += 1;
            let after = act.shared.clone();
            self.arrive(&after, language, Arrival::From(growth, Change::Act(act)), depth);
        }
    }

    fn look_for_errors(&mut self, growth: usize, shared: &Shared, mut fails: Vec<Fail>) {
        let closed = self.now.log[growth].closed;
        if self.threads.has_critical_blocks() {
            let threads = &self.threads;
            let crowded = self.languages.crowded(closed, |thread, local| threads.is_inside(thread, local));
            self.found(growth, crowded, None, None);
        }
        fails.sort_unstable();
        fails.dedup();
        for (thread, (view, local, choice)) in fails {
            let mut alone = self.threads.alone(thread, shared);
            let failing = self.languages.seeing(closed, thread, (view, local), &mut alone);
            self.found(growth, failing, Some(thread), Some(Action::Step { thread, choice }));
        }
        self.judge(growth, closed, shared);
    }

    /// All configurations of the language are errors.
    fn found(&mut self, growth: usize, language: Language, thread: Option<ThreadId>, last: Option<Action>) {
        if self.languages.is_interrupted() {
            return;
        }
        let Some(configuration) = self.languages.shortest_configuration(language) else { return };
        let last = last.map(|last| self.threads.possible(last, &configuration));
        self.now.failure.get_or_insert(Failure { growth, configuration, last });
        let controls = self.languages.controls(language);
        self.note(growth, thread, controls);
    }

    /// Notes error states of the memory of a growth.
    fn note(&mut self, growth: usize, thread: Option<ThreadId>, controls: Language) {
        if self.languages.is_interrupted() {
            return;
        }
        let known = self.now.errors.entry((self.now.log[growth].shared, thread)).or_default();
        *known = self.languages.union(*known, controls);
    }

    /// Judges the configurations in which all buffers are empty and nobody can move: a deadlock, or the end.
    fn judge(&mut self, growth: usize, closed: Language, shared: &Shared) {
        let threads = &self.threads;
        let resting = |thread: ThreadId, local: LocalId| threads.resting(thread, shared, local);
        let deadlocked = self.languages.deadlocked(closed, resting);
        let ended = self.languages.ended(closed, resting);
        if !self.options.allow_deadlock {
            self.found(growth, deadlocked, None, None);
        }
        if self.threads.program().final_block.is_some() {
            self.judge_ends(growth, ended, shared);
        }
    }

    /// Asks `final` about every end that is new.
    fn judge_ends(&mut self, growth: usize, ended: Language, shared: &Shared) {
        let id = self.now.log[growth].shared;
        let known = self.now.judged.get(&id).copied().unwrap_or_default();
        let all_errors = self.options.all_errors;
        let threads = &self.threads;
        let failing = self.languages.words_beyond(known, ended, all_errors, |control| {
            matches!(threads.machine.rest(&threads.concrete(shared, control)), Rest::Failed(_))
        });
        if self.languages.is_interrupted() {
            return;
        }
        self.now.judged.insert(id, self.languages.union(known, ended));
        if let Some(control) = failing.first() {
            let configuration = Configuration(control.iter().map(|&local| (VecDeque::new(), local)).collect());
            self.now.failure.get_or_insert(Failure { growth, configuration, last: None });
            let controls = self.languages.these_controls(&failing);
            self.note(growth, None, controls);
        }
    }
}
