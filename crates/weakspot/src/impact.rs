//! What comes of a store-buffer violation: the real code on simulated store buffers.
//!
//! The monitor says that a store could still be in its buffer when somebody else accesses its cell. Three searches, in
//! this order, look for a relaxed execution that fails:
//!
//! 1. *directed*: the borderline execution, with the store delayed, and what can come after it;
//! 2. *systematic*: all relaxed executions, as long as there are few. If there are no more, the violation is benign;
//! 3. *random*, for the rest of the budget.
//!
//! A run that comes to its end is judged as an SC execution is: what was stored for the run is destroyed, and what nobody
//! has dropped then is a leak. All buffers are empty by then, so memory is what the threads have made of it.
//!
//! Live code can only be run from the start, so a path of the systematic search is the list of its choices. It ends where
//! a state is reached that was reached before, which a fingerprint tells. The moves up to the last choice are those of the
//! run before, and are made again without looking for others.

use std::fmt::Write;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use weakspot_explore::buffered::{Buffered, Move, Rest};
use weakspot_explore::system::CellId;
use weakspot_model::buffer::MemoryModel;

use crate::builder::{Builder, FailOn};
use crate::failure::{Failure, FailureKind};
use crate::reclaim::{self, Tried};
use crate::replay::GOES_ON;
use crate::report::Violation;
use crate::rt::channels::Closing;
use crate::rt::runtime::Runtime;
use crate::rt::suspects::LateUse;
use crate::rt::system::Live;
use crate::strengthen::cycle;
use crate::strengthen::delays::{self, Delays};
use crate::timeline::Timeline;

/// Runs of the systematic search.
const SYSTEMATIC_RUNS: u32 = 50_000;
/// Runs of the random search.
const RANDOM_RUNS: u32 = 5_000;
/// Moves after which a run is given up.
const LONGEST_RUN: usize = 20_000;
/// Time for everything.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time that is taken even if there is none left.
const LEAST_PATIENCE: Duration = Duration::from_millis(200);

/// A relaxed execution that fails.
#[derive(Debug)]
pub struct Harm {
    /// How it fails.
    pub failure: Failure,
    /// The execution.
    pub timeline: Timeline,
    /// The schedule, for a replay.
    pub schedule: String,
    /// What it delays.
    pub(crate) delays: Delays,
    /// What it does that no SC execution does: see [`delays::violations_of_run`].
    pub(crate) violations: Vec<Violation>,
    /// The same steps with every store in memory at once, if that fails as well.
    pub(crate) undelayed: Option<Undelayed>,
}

/// An SC execution that fails, met while relaxed ones were looked for: the search for SC executions has left it out.
#[derive(Debug)]
pub(crate) struct Undelayed {
    pub(crate) failure: Failure,
    pub(crate) timeline: Timeline,
    pub(crate) schedule: String,
}

/// A relaxed execution that does not fail, and that no SC execution is like.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) timeline: Timeline,
    pub(crate) schedule: String,
    /// What no SC execution does: see [`cycle`].
    pub(crate) violations: Vec<Violation>,
}

/// What comes of a violation.
#[derive(Debug)]
pub enum Impact {
    /// This relaxed execution fails.
    Harmful(Box<Harm>),
    /// No relaxed execution fails.
    Benign,
    /// None was found, and not all were looked at.
    Unknown,
}

/// A step of an SC execution: who, and the choice where there is one.
pub(crate) type ScStep = (usize, i64);

/// The borderline execution of a violation.
#[derive(Debug, Clone)]
pub(crate) struct Borderline {
    pub(crate) steps: Vec<ScStep>,
    /// Which of them is the store that is delayed.
    pub(crate) store: usize,
}

/// Looks for harm, and keeps a relaxed execution without harm if violations are failures in themselves.
///
/// `took` is the time that has passed already: a limit on time holds here, too.
pub(crate) fn judge<'r>(
    runtime: &'r Runtime,
    builder: &'r Builder,
    borderlines: &[Borderline],
    took: Duration,
) -> (Impact, Option<Witness>) {
    let left = builder.max_duration.map(|most| most.saturating_sub(took).max(LEAST_PATIENCE));
    let patience = left.into_iter().chain([PATIENCE]).min().unwrap_or(PATIENCE);
    let model = builder.model;
    runtime.buffered.set(true);
    let mut system = Live { runtime };
    let machine = Buffered::new(&mut system, model).with_exact_rounds(builder.max_spins).sparing_timeouts();
    let mut search = Search {
        machine,
        runtime,
        model,
        moves: Vec::new(),
        roused: Vec::new(),
        start: Instant::now(),
        patience,
        wants_witness: builder.fail_on == FailOn::Unsafe,
        witness: None,
        builder,
        tried: Tried::default(),
    };
    let mut impact = search.run(borderlines);
    if let Impact::Harmful(harm) = &mut impact {
        harm.undelayed = search.without_delays();
    }
    let witness = search.witness.take().filter(|_| !matches!(impact, Impact::Harmful(_)));
    runtime.finish_run(true);
    runtime.buffered.set(false);
    (impact, witness)
}

/// How a run of the machine ended.
enum Ended {
    Well,
    Badly(Box<Harm>),
    GivenUp,
}

/// A choice of the systematic search.
struct Choice {
    /// Which of so many moves was made.
    taken: usize,
    count: usize,
    /// How many moves were made before.
    before: usize,
}

struct Search<'m, 'r> {
    machine: Buffered<'m, Live<'r>>,
    runtime: &'r Runtime,
    model: MemoryModel,
    /// What was done so far, as a schedule says it: see [`schedule_text`].
    moves: Vec<Move>,
    /// Before which of these moves the machine had to rouse somebody.
    roused: Vec<usize>,
    start: Instant,
    patience: Duration,
    wants_witness: bool,
    witness: Option<Witness>,
    builder: &'r Builder,
    /// Uses of memory that were tried out after it was freed.
    tried: Tried,
}

impl Search<'_, '_> {
    fn run(&mut self, borderlines: &[Borderline]) -> Impact {
        for borderline in borderlines {
            for prefer_delayed in [false, true] {
                if let Ended::Badly(harm) = self.directed(borderline, prefer_delayed) {
                    return Impact::Harmful(harm);
                }
            }
        }
        match self.systematic() {
            Some(Ended::Badly(harm)) => return Impact::Harmful(harm),
            Some(_) => return Impact::Benign,
            None => {}
        }
        let mut random = Random(0x5eed);
        for _ in 0..RANDOM_RUNS {
            if self.start.elapsed() > self.patience {
                break;
            }
            if let Ended::Badly(harm) = self.random(&mut random) {
                return Impact::Harmful(harm);
            }
        }
        Impact::Unknown
    }

    fn restart(&mut self) {
        self.machine.restart();
        self.moves.clear();
        self.roused.clear();
    }

    /// Makes the first moves of the run before again, and forgets the others; false if they are not possible any more.
    fn repeat(&mut self, count: usize) -> bool {
        let (mut moves, roused) = (std::mem::take(&mut self.moves), std::mem::take(&mut self.roused));
        self.restart();
        let mut roused = roused.into_iter().peekable();
        for (at, &what) in moves[..count].iter().enumerate() {
            if roused.next_if_eq(&at).is_some() {
                self.machine.rest();
                self.roused.push(at);
            }
            let what = match what {
                Move::Commit { thread, cell: place } if thread < self.machine.threads() => {
                    let cell = self.machine.cell_in_buffer(thread, place as usize);
                    cell.map(|cell| Move::Commit { thread, cell })
                }
                Move::Step { thread, .. } if thread < self.machine.threads() => Some(what),
                _ => None,
            };
            let Some(what) = what.filter(|&what| self.is_possible(what)) else { return false };
            self.machine.make(what);
        }
        moves.truncate(count);
        self.moves = moves;
        true
    }

    fn is_possible(&mut self, what: Move) -> bool {
        match what {
            Move::Step { thread, .. } => self.machine.can_step(thread),
            Move::Commit { thread, cell } => self.machine.can_commit(thread, cell),
        }
    }

    fn make(&mut self, what: Move) {
        self.moves.push(match what {
            Move::Step { .. } => what,
            Move::Commit { thread, cell } => {
                let place = self.machine.place_in_buffer(thread, cell).unwrap_or(0);
                Move::Commit { thread, cell: place as CellId }
            }
        });
        self.machine.make(what);
    }

    /// Steps whose moment nobody can see are taken at once.
    fn take_quiet_steps(&mut self) {
        let mut thread = 0;
        while thread < self.machine.threads() {
            if self.machine.is_quiet(thread) {
                self.make(Move::Step { thread, choice: 0 });
                thread = 0;
            } else {
                thread += 1;
            }
        }
    }

    fn end(&mut self) -> Option<Ended> {
        if self.moves.len() > LONGEST_RUN {
            return Some(Ended::GivenUp);
        }
        let before = self.machine.times_roused();
        let rest = self.machine.rest();
        if self.machine.times_roused() != before {
            self.roused.push(self.moves.len());
        }
        let failure = match rest? {
            // Everything begins anew.
            Rest::Deadlock | Rest::Livelock if self.runtime.is_closing_awaited() => {
                self.runtime.see_closing(Closing::Awaited);
                return Some(Ended::GivenUp);
            }
            // This is no execution.
            Rest::Deadlock | Rest::Livelock if self.runtime.is_kept_out_in_vain() => return Some(Ended::Well),
            Rest::Complete => match self.runtime.end_run() {
                None => {
                    self.keep_witness();
                    return Some(self.late_use().map_or(Ended::Well, Ended::Badly));
                }
                Some(failure) => failure,
            },
            Rest::Failed(thread) => {
                let known = self.runtime.failure.take();
                known.unwrap_or_else(|| crate::rt::panics::take_failure(self.runtime, thread as u32, None))
            }
            Rest::Deadlock => self.runtime.deadlock(),
            Rest::Livelock => self.runtime.livelock(),
        };
        // Ordinary code has made another execution of it, which says nothing of store buffers.
        if matches!(failure.kind, FailureKind::NotDeterministic) {
            return Some(Ended::GivenUp);
        }
        let timeline = Timeline::of_failed_run(self.runtime, &failure);
        Some(Ended::Badly(self.harm(failure, timeline, self.schedule())))
    }

    /// The run that was made last fails.
    fn harm(&self, failure: Failure, timeline: Timeline, schedule: String) -> Box<Harm> {
        let log = &self.runtime.state().log;
        let (delays, violations) = (delays::of_run(log, self.model), delays::violations_of_run(log, self.model));
        Box::new(Harm { failure, timeline, schedule, delays, violations, undelayed: None })
    }

    /// The run has ended well: an execution in which a cell that it has freed is used afterwards, or is stored to. (What has other
    /// events of its own is met in the other executions.)
    fn late_use(&mut self) -> Option<Box<Harm>> {
        if !self.runtime.has_suspects() {
            return None;
        }
        let (runtime, moves) = (self.runtime, &self.moves);
        let moves_of = |late: &LateUse| {
            let is_open = !runtime.is_ordered(late);
            is_open.then(|| reclaim::moves_of_relaxed(moves, &runtime.state().log, late)).flatten()
        };
        let moves_of = reclaim::Moves(moves_of);
        let found = reclaim::look(self.builder, self.runtime, self.model, &mut self.tried, moves_of);
        let reclaim::Found { failure, timeline, schedule } = found.continue_value()??;
        Some(self.harm(failure, timeline, schedule))
    }

    fn schedule(&self) -> String {
        format!("{}:{}", self.model.name(), schedule_text(&self.moves))
    }

    /// Keeps the run that has ended well, if it is the first that no SC execution is like.
    fn keep_witness(&mut self) {
        if !self.wants_witness || self.witness.is_some() {
            return;
        }
        let violations = cycle::violations_on_cycles(&self.runtime.state().log, self.model);
        if !violations.is_empty() {
            let timeline = Timeline::of_run(self.runtime);
            self.witness = Some(Witness { timeline, schedule: self.schedule(), violations });
        }
    }

    /// The borderline execution with the store delayed; then the others go on while it stays where it is.
    fn directed(&mut self, borderline: &Borderline, prefer_delayed: bool) -> Ended {
        self.restart();
        let delayer = borderline.steps[borderline.store].0;
        let mut delaying = false;
        for (index, &(thread, choice)) in borderline.steps.iter().enumerate() {
            delaying |= index == borderline.store;
            if thread >= self.machine.threads() {
                break;
            }
            self.machine.wake(thread);
            if !self.machine.can_step(thread) {
                break;
            }
            self.make(Move::Step { thread, choice });
            if !delaying || thread != delayer {
                self.commit_all(thread);
            }
        }
        loop {
            if let Some(ended) = self.end() {
                return ended;
            }
            let step = self.next_step(delayer, prefer_delayed);
            let Some(what) = step.or_else(|| self.first_commit(delayer)) else { return Ended::GivenUp };
            self.make(what);
            if what.thread() != delayer {
                self.commit_all(what.thread());
            }
        }
    }

    /// The steps of the run before, with every store in memory at once. If that fails, store buffers are not the reason.
    fn without_delays(&mut self) -> Option<Undelayed> {
        let steps: Vec<Move> = self.moves.iter().copied().filter(|what| matches!(what, Move::Step { .. })).collect();
        self.restart();
        for &what in &steps {
            let thread = what.thread();
            if thread >= self.machine.threads() {
                return None;
            }
            self.machine.wake(thread);
            if !self.machine.can_step(thread) {
                return None;
            }
            self.make(what);
            self.commit_all(thread);
        }
        let Some(Ended::Badly(harm)) = self.end() else { return None };
        let Harm { failure, timeline, .. } = *harm;
        let mut schedule = sc_schedule(self.model, &steps);
        if matches!(failure.kind, FailureKind::Livelock) {
            schedule.push(GOES_ON);
        }
        Some(Undelayed { failure, timeline, schedule })
    }

    fn commit_all(&mut self, thread: usize) {
        let mut moves = Vec::new();
        loop {
            self.machine.moves(&mut moves);
            let commit = moves.iter().find(|what| matches!(what, Move::Commit { thread: of, .. } if *of == thread));
            let Some(&commit) = commit else { return };
            self.make(commit);
        }
    }

    fn next_step(&mut self, delayer: usize, prefer_delayed: bool) -> Option<Move> {
        let mut moves = Vec::new();
        self.machine.moves(&mut moves);
        let steps = || moves.iter().copied().filter(|what| matches!(what, Move::Step { .. }));
        let others = steps().find(|what| what.thread() != delayer);
        let own = steps().find(|what| what.thread() == delayer);
        if prefer_delayed { own.or(others) } else { others.or(own) }
    }

    fn first_commit(&mut self, delayer: usize) -> Option<Move> {
        let mut moves = Vec::new();
        self.machine.moves(&mut moves);
        let commits = || moves.iter().copied().filter(|what| matches!(what, Move::Commit { .. }));
        commits().find(|what| what.thread() != delayer).or_else(|| commits().next())
    }

    /// All relaxed executions; `None` if there are too many.
    fn systematic(&mut self) -> Option<Ended> {
        let mut path: Vec<Choice> = Vec::new();
        let mut seen = FxHashSet::default();
        for _ in 0..SYSTEMATIC_RUNS {
            if self.start.elapsed() > self.patience / 2 {
                return None;
            }
            match self.follow(&mut path, &mut seen) {
                Ended::Badly(harm) => return Some(Ended::Badly(harm)),
                Ended::GivenUp => return None,
                Ended::Well => {}
            }
            while path.last().is_some_and(|choice| choice.taken + 1 == choice.count) {
                path.pop();
            }
            match path.last_mut() {
                Some(choice) => choice.taken += 1,
                None => return Some(Ended::Well),
            }
        }
        None
    }

    /// Runs along a path of choices, the last of which is a new one, and extends it by first choices, up to a state that
    /// was seen before.
    fn follow(&mut self, path: &mut Vec<Choice>, seen: &mut FxHashSet<u64>) -> Ended {
        if !self.repeat(path.last().map_or(0, |choice| choice.before)) {
            return Ended::GivenUp;
        }
        let mut moves = Vec::new();
        let mut depth = path.len().saturating_sub(1);
        loop {
            self.take_quiet_steps();
            if let Some(ended) = self.end() {
                return ended;
            }
            self.machine.moves(&mut moves);
            if moves.is_empty() {
                return Ended::GivenUp;
            }
            if depth == path.len() {
                if moves.len() > 1 && !seen.insert(self.machine.fingerprint()) {
                    return self.come_to_an_end();
                }
                path.push(Choice { taken: 0, count: moves.len(), before: self.moves.len() });
            }
            let taken = path[depth].taken;
            if taken >= moves.len() {
                return Ended::GivenUp;
            }
            depth += 1;
            self.make(moves[taken]);
        }
    }

    /// What follows is known. The run goes on nevertheless: what the code does besides (noting what it has seen, for
    /// example) should be what it does in some execution.
    fn come_to_an_end(&mut self) -> Ended {
        let mut moves = Vec::new();
        loop {
            self.take_quiet_steps();
            match self.end() {
                Some(Ended::GivenUp) => return Ended::Well,
                Some(ended) => return ended,
                None => self.machine.moves(&mut moves),
            }
            let Some(&first) = moves.first() else { return Ended::Well };
            self.make(first);
        }
    }

    /// A random execution in which commits are late.
    fn random(&mut self, random: &mut Random) -> Ended {
        self.restart();
        let mut moves = Vec::new();
        loop {
            self.take_quiet_steps();
            if let Some(ended) = self.end() {
                return ended;
            }
            self.machine.moves(&mut moves);
            if moves.is_empty() {
                return Ended::GivenUp;
            }
            let steps = moves.iter().filter(|what| matches!(what, Move::Step { .. })).count();
            let commits = moves.len() - steps;
            let commit = commits > 0 && (steps == 0 || random.below(6) == 0);
            let chosen = if commit { steps + random.below(commits) } else { random.below(steps) };
            self.make(moves[chosen]);
        }
    }
}

/// splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}

/// The schedule of an SC execution, found while a model was asked for. Which fences are events depends on that, too.
pub(crate) fn sc_schedule(model: MemoryModel, moves: &[Move]) -> String {
    sc_prefix(model) + &schedule_text(moves)
}

/// What it begins with.
pub(crate) fn sc_prefix(model: MemoryModel) -> String {
    if model == MemoryModel::Tso { "sc:".to_owned() } else { format!("sc/{}:", model.name()) }
}

/// Moves as text: threads, `=` and a choice, `c` and the place in the buffer for a commit (numbers of cells depend on who
/// was asked first what it is about to do); repeated moves with `x`.
pub(crate) fn schedule_text(moves: &[Move]) -> String {
    let one = |what: &Move| match *what {
        Move::Step { thread, choice: 0 } => format!("{thread}"),
        Move::Step { thread, choice } => format!("{thread}={choice}"),
        Move::Commit { thread, cell: place } => format!("{thread}c{place}"),
    };
    let mut text = String::new();
    let mut at = 0;
    while at < moves.len() {
        let count = moves[at..].iter().take_while(|what| **what == moves[at]).count();
        if at > 0 {
            text.push('.');
        }
        text.push_str(&one(&moves[at]));
        if count > 1 {
            let _ = write!(text, "x{count}");
        }
        at += count;
    }
    text
}

/// The moves of a text; the part that is none otherwise.
pub(crate) fn parse_schedule(text: &str) -> Result<Vec<Move>, String> {
    let mut moves = Vec::new();
    for part in text.split('.').filter(|part| !part.is_empty()) {
        let (one, count) = part.split_once('x').unwrap_or((part, "1"));
        let (what, count) = parse_move(one).zip(count.parse::<usize>().ok()).ok_or_else(|| part.to_owned())?;
        moves.extend(std::iter::repeat_n(what, count.min(1_000_000)));
    }
    Ok(moves)
}

fn parse_move(text: &str) -> Option<Move> {
    if let Some((thread, cell)) = text.split_once('c') {
        return Some(Move::Commit { thread: thread.parse().ok()?, cell: cell.parse().ok()? });
    }
    let (thread, choice) = text.split_once('=').unwrap_or((text, "0"));
    Some(Move::Step { thread: thread.parse().ok()?, choice: choice.parse().ok()? })
}
