//! From an execution that must not be to the clause of candidates that would have prevented it.
//!
//! # The clause
//! Let `E` be an execution of the program with the fences `S`. A fence in a gap is one more event of every thread that
//! runs through the gap. Between the step `a` before the gap and the step `b` after it, that event can take place at
//! any moment at which the thread's buffer is empty. Only commits happen to the buffer between `a` and `b`, so there is
//! such a moment exactly if the buffer is empty just before `b`. The **clause** of `E` holds the gaps outside `S` that
//! some thread runs through with a store still pending just before its next step.
//!
//! # Why every correct placement holds a member of it
//! Let `T` be a placement without a member of the clause. Each of its fences outside `S` finds an empty buffer each
//! time a thread of `E` runs through it, and an empty buffer is all a fence asks for; it changes neither memory nor
//! registers; and fences of one stretch between `a` and `b` can all use the same moment. The fences of `T` within `S`
//! are in `E` already. Where `T` leaves out one of `S`, the thread runs on a little earlier. So `E` is an execution with `T`
//! as well, unless a thread that rests at a fence of `S` when `E` ends would run into a false `assume` without it: then
//! there would be no execution. Such an `E` makes no clause ([`MarkedProgram::clause`] gives `None`). It is rare, but
//! real: after `fetch_add(x, 1)` and before `assume(false)` a fence is a moment at which others see the new `x`.
//!
//! Gaps that a thread runs through after its last step in `E` are left out of the clause. There the thread rests at the
//! fence at first; when `E` is over its buffer can drain, the fence takes place, and what `E` ended with is there again: a
//! failed check of the thread depends on its registers alone, two threads in critical blocks are both still there, a
//! deadlock and the final block come when all buffers are empty anyway. For store-buffer safety a trace is not changed
//! by events that come later; with assumptions, `E` must also have a way to go on that does not depend on fences.
//!
//! The one exception is an execution without any step, which fails before the first event. There all threads run at
//! once, and if another one meets a false `assume` meanwhile, a fence before the failing check leaves no execution at
//! all. So there the gaps that threads run through at the start are members.
//!
//! An **empty clause** means that no fence prevents `E`.
//!
//! Fences of the text that are candidates may be weaker than full ones. What such a fence prevents a full one prevents
//! as well, so the clause only becomes larger than needed, which keeps the argument.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::ir::{Instr, Program};
use weakspot_model::local::{self, Advance, Pause};
use weakspot_model::machine::{Action, Effect, Machine, Outcome, Rest, State};
use weakspot_model::problem::ProblemKind;

use crate::points::{CHOSEN, Kinds, Points, Rendered};
use crate::{FenceError, FenceOptions, Goal};

/// After this many states the search for a way to go on ends without one.
const LONG_ENOUGH: usize = 100_000;

/// A statement or expression of the original text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// Its text, on one line.
    pub text: String,
    /// Its line, one-based.
    pub line: u32,
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (line {})", self.text, self.line)
    }
}

/// What a thread went on to while its store was pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// It read memory.
    Read,
    /// A younger store of it became visible.
    Overtaken,
    /// Something else.
    Other,
}

/// Which reordering a fence stops, seen in one execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Whose store.
    pub thread: String,
    /// The store that waits.
    pub store: Snippet,
    /// What comes after it in the program and before it in the execution.
    pub later: Snippet,
    /// In which way.
    pub passed: Passed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, store, later, passed } = self;
        write!(f, "without it, {store} of {thread} can stay in its buffer while ")?;
        match passed {
            Passed::Read => write!(f, "{thread} reads {later}"),
            Passed::Overtaken => write!(f, "its later {later} becomes visible"),
            Passed::Other => write!(f, "{thread} goes on to {later}"),
        }
    }
}

/// Candidates of which every correct placement holds one, each with what it would have stopped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clause {
    pub(crate) members: BTreeMap<usize, Option<Reason>>,
}

impl Clause {
    /// The members, ascending.
    pub(crate) fn candidates(&self) -> Vec<usize> {
        self.members.keys().copied().collect()
    }
}

/// The program with some fences and a marker in every gap.
pub(crate) struct MarkedProgram<'a> {
    points: &'a Points,
    kinds: &'a Kinds,
    rendered: Rendered,
    program: Program,
    /// Does some thread have an `assume` of its own?
    has_assumptions: bool,
}

impl<'a> MarkedProgram<'a> {
    pub(crate) fn new(points: &'a Points, kinds: &'a Kinds, has_assumptions: bool) -> Result<Self, FenceError> {
        let rendered = points.marked(kinds);
        let program = points.compile_marked(rendered.text.clone())?;
        Ok(Self { points, kinds, rendered, program, has_assumptions })
    }

    /// The clause of an execution of the program with the same fences and without markers, if it makes one.
    pub(crate) fn clause(&self, options: &FenceOptions, actions: &[Action]) -> Result<Option<Clause>, FenceError> {
        let spurious_wakeups = options.spurious_wakeups;
        let machine = Machine { spurious_wakeups, ..Machine::new(&self.program, options.model) };
        let mut walk = Walk::start(self, machine);
        for &action in actions {
            walk.follow(action)?;
        }
        let is_cut_short = || options.goal == Goal::Robust && !walk.goes_on_under_sc();
        if self.has_assumptions && (walk.depends_on_fences(&walk.state) || is_cut_short()) {
            return Ok(None);
        }
        let mut best: BTreeMap<usize, (u32, Reason)> = BTreeMap::new();
        for crossing in walk.crossings.iter().filter(|crossing| !self.kinds.contains_key(&crossing.candidate)) {
            let (telling, reason) = self.reason(&walk.events, crossing);
            if best.get(&crossing.candidate).is_none_or(|(known, _)| telling > *known) {
                best.insert(crossing.candidate, (telling, reason));
            }
        }
        let mut members: BTreeMap<usize, Option<Reason>> =
            best.into_iter().map(|(candidate, (_, reason))| (candidate, Some(reason))).collect();
        if actions.is_empty() {
            members.extend(walk.crossed.iter().flatten().map(|&candidate| (candidate, None)));
            members.retain(|candidate, _| !self.kinds.contains_key(candidate));
        }
        Ok(Some(Clause { members }))
    }

    /// What a fence in the gap would have stopped, and how telling that is: it tells something if the thread went on to
    /// what SC orders after the store, and more if another thread looked for the store meanwhile.
    fn reason(&self, events: &[Event], crossing: &Crossing) -> (u32, Reason) {
        let store = &events[crossing.store];
        let committed = |event: &&Event| event.commits == Some(crossing.store);
        let waiting = || events[crossing.before..].iter().take_while(|event| !committed(event));
        let found = waiting().filter(|event| event.thread == store.thread).find_map(|event| {
            match (event.reads, event.commits) {
                (true, _) => Some((event, Passed::Read)),
                (_, Some(younger)) if younger > crossing.store => Some((&events[younger], Passed::Overtaken)),
                _ => None,
            }
        });
        let looks = |event: &Event| event.reads || event.commits.is_some();
        let is_missed =
            waiting().any(|event| event.thread != store.thread && looks(event) && event.touches == store.touches);
        let telling = u32::from(found.is_some()) * (1 + u32::from(is_missed));
        let (later, passed) = found.unwrap_or((&events[crossing.before], Passed::Other));
        let reason = Reason {
            thread: self.program.threads[store.thread.index()].name.clone(),
            store: self.snippet(store),
            later: self.snippet(later),
            passed,
        };
        (telling, reason)
    }

    fn snippet(&self, event: &Event) -> Snippet {
        let span = self.program.sites[event.site].span;
        let words: Vec<&str> = self.rendered.text[span.range()].split_whitespace().collect();
        let line = self.points.source().position(self.rendered.original(span.start as usize)).line;
        Snippet { text: words.join(" "), line }
    }
}

/// A gap that a thread ran through with a store pending.
struct Crossing {
    candidate: usize,
    /// The store.
    store: usize,
    /// The step the thread did next.
    before: usize,
}

/// One action of the execution, without the markers.
struct Event {
    thread: ThreadId,
    site: usize,
    /// Reads memory.
    reads: bool,
    /// The location it reads or makes visible; for a store, its location.
    touches: Option<Loc>,
    /// For a commit: the event that issued the store.
    commits: Option<usize>,
}

/// The execution, run on the marked program.
struct Walk<'a> {
    marked: &'a MarkedProgram<'a>,
    machine: Machine<'a>,
    state: State,
    /// Threads that failed, or met a false `assume`. The attack engine lets the others go on.
    stopped: Vec<bool>,
    /// For each thread: the gaps it has run through since its last step.
    crossed: Vec<Vec<usize>>,
    /// For each thread and location: the events that issued the pending stores, oldest first.
    pending: HashMap<(ThreadId, Loc), VecDeque<usize>>,
    events: Vec<Event>,
    crossings: Vec<Crossing>,
}

impl<'a> Walk<'a> {
    fn start(marked: &'a MarkedProgram<'a>, machine: Machine<'a>) -> Self {
        let (state, _) = machine.start();
        let mut walk = Self {
            marked,
            machine,
            state,
            stopped: vec![false; marked.program.threads.len()],
            crossed: vec![Vec::new(); marked.program.threads.len()],
            pending: HashMap::new(),
            events: Vec::new(),
            crossings: Vec::new(),
        };
        // each thread as far as it gets, whatever becomes of the others
        for thread in marked.program.thread_ids() {
            walk.run_through_gaps(thread);
        }
        walk
    }

    fn follow(&mut self, action: Action) -> Result<(), FenceError> {
        if !self.machine.enabled(&self.state).contains(&action) {
            return Err(FenceError::Replay { action });
        }
        let thread = action.thread();
        let is_commit = matches!(action, Action::Commit { .. });
        if !is_commit {
            self.note_crossings(thread);
        }
        let site = self.machine.site(&self.state, thread).index();
        let (effect, outcome) = self.machine.apply(&mut self.state, action);
        let commits = self.note_stores(thread, effect);
        let site = commits.map_or(site, |store| self.events[store].site);
        let reads = matches!(effect, Some(Effect::Load { forwarded: false, .. } | Effect::Rmw { .. }));
        self.events.push(Event { thread, site, reads, touches: effect.and_then(location), commits });
        if !is_commit {
            self.stopped[thread.index()] = stops(&outcome);
            self.run_through_gaps(thread);
        }
        Ok(())
    }

    /// A thread is about to do a step: were stores pending in the gaps before it?
    fn note_crossings(&mut self, thread: ThreadId) {
        let crossed = std::mem::take(&mut self.crossed[thread.index()]);
        let own = self.pending.iter().filter(|((owner, _), _)| *owner == thread);
        let mut stores: Vec<usize> = own.flat_map(|(_, stores)| stores.iter().copied()).collect();
        stores.sort_unstable();
        let before = self.events.len();
        for store in stores {
            self.crossings.extend(crossed.iter().map(|&candidate| Crossing { candidate, store, before }));
        }
    }

    /// Keeps the pending stores; for a commit gives the event that issued the store.
    fn note_stores(&mut self, thread: ThreadId, effect: Option<Effect>) -> Option<usize> {
        match effect? {
            Effect::Store { loc, buffered: true, .. } => {
                self.pending.entry((thread, loc)).or_default().push_back(self.events.len());
                None
            }
            Effect::Commit { loc, .. } => self.pending.get_mut(&(thread, loc))?.pop_front(),
            _ => None,
        }
    }

    /// Does a thread rest at a fence of a candidate and have a false `assume` behind it?
    fn depends_on_fences(&self, state: &State) -> bool {
        self.marked.program.thread_ids().any(|thread| {
            let code = &self.marked.program.threads[thread.index()];
            let mut local = state.threads[thread.index()].local.clone();
            let mut met = HashSet::new();
            while met.insert(local.clone()) {
                let at = self.marked.program.site(thread, local.pc).span.start as usize;
                let result = match code.code[local.pc.index()] {
                    Instr::Fence(_) if self.marked.rendered.is_fence(at) => 0,
                    Instr::Choose { .. } if self.marked.rendered.marker(at).is_some() => CHOSEN,
                    _ => return false,
                };
                match local::resume(code, &self.marked.program.locations, &mut local, result) {
                    Ok(Advance::Paused { .. }) => {}
                    Ok(Advance::Pruned) => return true,
                    Err(_) => return false,
                }
            }
            false
        })
    }

    /// Is there a way to go on to an end, or for ever, that asks nothing of store buffers? Then there is
    /// one whatever fences there are, and the execution is not only the beginning of ones that are none. (The engine
    /// looks for any way; one that needs a buffer may be lost with more fences.)
    fn goes_on_under_sc(&self) -> bool {
        if self.stopped.contains(&true) {
            return true;
        }
        if self.state.threads.iter().any(|thread| !thread.buffer.is_empty()) {
            return false;
        }
        let machine = Machine { model: MemoryModel::Sc, ..self.machine };
        let enabled = machine.enabled(&self.state);
        if enabled.is_empty() {
            return machine.rest(&self.state) != Rest::Pruned;
        }
        let mut met = HashSet::from([self.state.clone()]);
        let mut path = vec![(self.state.clone(), enabled)];
        while let Some((state, actions)) = path.last_mut() {
            let Some(action) = actions.pop() else {
                path.pop();
                continue;
            };
            let mut next = state.clone();
            let outcome = machine.apply(&mut next, action).1;
            let enabled = machine.enabled(&next);
            let ends = match outcome {
                Outcome::Pruned => continue,
                Outcome::Failed(_) => true,
                Outcome::Continues if enabled.is_empty() => machine.rest(&next) != Rest::Pruned,
                Outcome::Continues => path.iter().any(|(before, _)| *before == next),
            };
            if ends && !self.depends_on_fences(&next) {
                return true;
            }
            if met.len() < LONG_ENOUGH && met.insert(next.clone()) {
                path.push((next, enabled));
            }
        }
        false
    }

    /// Takes the markers in front of a thread. A thread that meets nothing else for ever is left where it is.
    fn run_through_gaps(&mut self, thread: ThreadId) {
        let mut met = HashSet::new();
        while !self.stopped[thread.index()] && matches!(self.state.threads[thread.index()].pause, Pause::Choose { .. })
        {
            let site = self.machine.site(&self.state, thread);
            let at = self.marked.program.sites[site.index()].span.start as usize;
            let Some(candidate) = self.marked.rendered.marker(at) else { return };
            if !met.insert(self.state.threads[thread.index()].local.clone()) {
                return;
            }
            self.crossed[thread.index()].push(candidate);
            let (_, outcome) = self.machine.apply(&mut self.state, Action::Step { thread, choice: CHOSEN });
            self.stopped[thread.index()] = stops(&outcome);
        }
    }
}

/// The location that an effect is about, if others can notice it or the thread stores there.
fn location(effect: Effect) -> Option<Loc> {
    match effect {
        Effect::Load { loc, forwarded: false, .. }
        | Effect::Store { loc, .. }
        | Effect::Rmw { loc, .. }
        | Effect::Commit { loc, .. } => Some(loc),
        _ => None,
    }
}

/// Does the thread stop? Two threads in critical blocks break the specification and stop nobody.
fn stops(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Continues => false,
        Outcome::Pruned => true,
        Outcome::Failed(problem) => problem.kind != ProblemKind::MutualExclusion,
    }
}
