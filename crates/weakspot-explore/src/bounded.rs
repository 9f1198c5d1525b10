//! Search over interleavings: iterative context bounding, random and PCT.
//!
//! These modes run one interleaving after the other on [`Interleaving`] and watch each with a monitor. They reproduce
//! what the papers did (SOBER on CHESS, Burnim et al. on THRILLE) and find bugs where exhaustive exploration has no end.
//!
//! | mode | source |
//! |---|---|
//! | [`Mode::Preemptions`] | Musuvathi, Qadeer, PLDI 2007: all schedules with 0 preemptions, then with 1, … |
//! | [`Mode::Random`] | each step is taken by an enabled thread, all equally likely |
//! | [`Mode::Pct`] | Burckhardt et al., ASPLOS 2010: random priorities, and `depth - 1` random places to lower one |
//!
//! A *preemption* is a switch away from a thread that could have gone on. In bound n exactly the schedules with n
//! preemptions are counted and watched, so every schedule is seen once.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use weakspot_model::ids::ThreadId;
use weakspot_model::ir::Program;
use weakspot_model::task::{Budget, Progress};

use crate::exhaustive::ExploreOptions;
use crate::interleave::{Interleaving, Rest};
use crate::interpreter::Interpreter;
use crate::monitor::Finding;
use crate::monitor::rewinding::Rewinding;
use crate::outcome::{Access, Outcome, Violation, first_problem, shorter};
use crate::recorded::Ending;
use crate::recorded::recorder::Sink;
use crate::reorder::may_reorder;
use crate::system::System;

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Every schedule with at most this many preemptions, bound by bound.
    Preemptions(u32),
    /// This many random schedules.
    Random {
        /// How many.
        executions: u64,
        /// The same seed gives the same schedules.
        seed: u64,
    },
    /// This many schedules by random priorities.
    Pct {
        /// How many.
        executions: u64,
        /// The number of ordering constraints a bug may need.
        depth: u32,
        /// The same seed gives the same schedules.
        seed: u64,
    },
}

/// What one bound of [`Mode::Preemptions`] added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundReport {
    /// Preemptions of each schedule.
    pub preemptions: u32,
    /// Schedules, of all kinds.
    pub interleavings: u64,
    /// How many of them tripped the monitor.
    pub borderline: u64,
    /// Time taken.
    pub elapsed: Duration,
}

/// Searches over interleavings. The reports are empty for the random modes.
pub fn explore_interleavings(
    program: &Program,
    mode: Mode,
    options: &ExploreOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> (Outcome, Vec<BoundReport>) {
    explore_interleavings_recorded(program, mode, options, budget, progress, None)
}

/// The same; every interleaving goes to a sink, if there is one.
pub fn explore_interleavings_recorded<'a>(
    program: &Program,
    mode: Mode,
    options: &'a ExploreOptions,
    budget: &'a Budget,
    progress: &'a dyn Progress,
    sink: Option<&'a mut dyn Sink>,
) -> (Outcome, Vec<BoundReport>) {
    if let Some(refusal) = Outcome::refusal(program) {
        return (refusal, Vec::new());
    }
    let mut system = Interpreter::new(program, options.unroll);
    let (threads, cells) = (system.threads(), system.cells());
    let watching = options.monitor.filter(|kind| may_reorder(program, kind.model()));
    let judge = Judge {
        options,
        budget,
        progress,
        monitor: watching.map(|kind| Rewinding::new(kind, threads, cells, matches!(mode, Mode::Preemptions(_)))),
        possible_pairs: watching.map_or(0, |kind| kind.possible_pairs(program)),
        found: Vec::new(),
        interleavings: 0,
        steps: 0,
        outcome: Outcome::default(),
        sink,
    };
    let mut search = Search {
        interleaving: Interleaving::new(&mut system).with_spurious_wakeups(options.spurious_wakeups),
        judge,
        choices: Vec::new(),
    };
    let mut reports = Vec::new();
    let _ = match mode {
        Mode::Preemptions(most) => search.iterate(most, &mut reports),
        Mode::Random { executions, seed } => search.random(executions, seed),
        Mode::Pct { executions, depth, seed } => search.pct(executions, depth, seed),
    };
    (search.judge.outcome, reports)
}

/// How many steps go by between two looks at the clock.
const STEPS_BETWEEN_LOOKS: usize = 4096;

/// Watches and judges whole interleavings.
struct Judge<'a> {
    options: &'a ExploreOptions,
    budget: &'a Budget,
    progress: &'a dyn Progress,
    monitor: Option<Rewinding>,
    /// When so many pairs have been noted, there are no more.
    possible_pairs: usize,
    found: Vec<Finding>,
    interleavings: u64,
    /// Steps since the last look at the clock.
    steps: usize,
    outcome: Outcome,
    sink: Option<&'a mut dyn Sink>,
}

struct Search<'a, 's, 'p> {
    interleaving: Interleaving<'s, Interpreter<'p>>,
    judge: Judge<'a>,
    choices: Vec<i64>,
}

/// A place where the search can go on in more than one way.
struct Decision {
    depth: usize,
    /// The thread that took the step before.
    previous: usize,
    preemptions: u32,
    /// (thread, choice) still to be tried, last first.
    open: Vec<(usize, i64)>,
}

impl Search<'_, '_, '_> {
    fn iterate(&mut self, most: u32, reports: &mut Vec<BoundReport>) -> ControlFlow<()> {
        if let Some(rest) = self.interleaving.rest() {
            self.judge.outcome.exhaustive = true;
            return self.judge.ended(&mut self.interleaving, rest);
        }
        for bound in 0..=most {
            let start = Instant::now();
            let (interleavings, borderline) = (self.judge.interleavings, self.judge.outcome.borderline);
            let mut deeper = false;
            let ended = self.schedules_with(bound, &mut deeper);
            reports.push(BoundReport {
                preemptions: bound,
                interleavings: self.judge.interleavings - interleavings,
                borderline: self.judge.outcome.borderline - borderline,
                elapsed: start.elapsed(),
            });
            ended?;
            if !deeper {
                self.judge.outcome.exhaustive = true;
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// Every schedule with exactly this many preemptions; `deeper` is set if there are schedules with more.
    fn schedules_with(&mut self, bound: u32, deeper: &mut bool) -> ControlFlow<()> {
        self.interleaving.restart();
        let mut stack = vec![self.decide(0, usize::MAX, 0, bound, deeper)];
        while let Some(decision) = stack.last_mut() {
            let Some((thread, choice)) = decision.open.pop() else {
                stack.pop();
                continue;
            };
            self.interleaving.back_to(decision.depth);
            let (previous, mut preemptions) = (decision.previous, decision.preemptions);
            if previous != usize::MAX && previous != thread && self.interleaving.is_enabled(previous) {
                preemptions += 1;
            }
            self.interleaving.step(thread, choice);
            match self.interleaving.rest() {
                Some(rest) if preemptions == bound => self.judge.ended(&mut self.interleaving, rest)?,
                Some(_) => {}
                None => {
                    let depth = self.interleaving.depth();
                    if depth > self.judge.options.longest as usize {
                        return self.judge.too_long(&mut self.interleaving);
                    }
                    stack.push(self.decide(depth, thread, preemptions, bound, deeper));
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The ways to go on.
    fn decide(&mut self, depth: usize, previous: usize, preemptions: u32, bound: u32, deeper: &mut bool) -> Decision {
        let mut open = Vec::new();
        let goes_on = previous != usize::MAX && self.interleaving.is_enabled(previous);
        let is_choosing = goes_on && self.interleaving.is_choosing(previous);
        for thread in (0..self.interleaving.threads()).rev() {
            if thread == previous && goes_on || !self.interleaving.can_move(thread) || is_choosing {
                continue;
            }
            if goes_on && preemptions == bound {
                *deeper = true;
                continue;
            }
            self.push_choices(thread, &mut open);
        }
        if goes_on {
            self.push_choices(previous, &mut open);
        }
        Decision { depth, previous, preemptions, open }
    }

    fn push_choices(&mut self, thread: usize, open: &mut Vec<(usize, i64)>) {
        self.interleaving.choices(thread, &mut self.choices);
        open.extend(self.choices.iter().rev().map(|&choice| (thread, choice)));
    }

    /// Runs one schedule; `pick` says who goes next.
    fn one(
        &mut self,
        rng: &mut Random,
        mut pick: impl FnMut(&mut Random, &[usize], usize) -> usize,
    ) -> ControlFlow<()> {
        self.interleaving.restart();
        let mut enabled = Vec::new();
        let mut previous = usize::MAX;
        loop {
            if let Some(rest) = self.interleaving.rest() {
                return self.judge.ended(&mut self.interleaving, rest);
            }
            if self.interleaving.depth() > self.judge.options.longest as usize {
                return self.judge.cut_off(&mut self.interleaving);
            }
            self.judge.look_at_the_clock(1, &mut self.interleaving)?;
            enabled.clear();
            enabled.extend((0..self.interleaving.threads()).filter(|&thread| self.interleaving.can_move(thread)));
            let chooses = previous != usize::MAX && self.interleaving.is_choosing(previous);
            let thread = if chooses { previous } else { pick(rng, &enabled, self.interleaving.depth()) };
            self.interleaving.choices(thread, &mut self.choices);
            let choice = self.choices[rng.below(self.choices.len())];
            self.interleaving.step(thread, choice);
            previous = thread;
        }
    }

    fn random(&mut self, executions: u64, seed: u64) -> ControlFlow<()> {
        let mut rng = Random(seed);
        for _ in 0..executions {
            self.one(&mut rng, |rng, enabled, _| enabled[rng.below(enabled.len())])?;
        }
        ControlFlow::Continue(())
    }

    /// The length of schedules, which PCT needs to know, is that of the longest one so far.
    fn pct(&mut self, executions: u64, depth: u32, seed: u64) -> ControlFlow<()> {
        let mut rng = Random(seed);
        let threads = self.interleaving.threads();
        let mut longest = 1;
        for _ in 0..executions {
            let mut priorities: Vec<u64> = (0..threads as u64).map(|thread| u64::from(depth) + thread).collect();
            for at in (1..threads).rev() {
                priorities.swap(at, rng.below(at + 1));
            }
            let changes: Vec<usize> = (1..depth).map(|_| rng.below(longest)).collect();
            let ended = self.one(&mut rng, |_, enabled, at| {
                let first = |priorities: &[u64]| enabled.iter().copied().max_by_key(|&thread| priorities[thread]);
                let leader = first(&priorities).unwrap_or(0);
                if let Some(change) = changes.iter().position(|&change| change == at) {
                    priorities[leader] = change as u64;
                }
                first(&priorities).unwrap_or(leader)
            });
            longest = longest.max(self.interleaving.depth());
            ended?;
        }
        ControlFlow::Continue(())
    }
}

impl Judge<'_> {
    fn too_long(&mut self, interleaving: &mut Interleaving<'_, Interpreter<'_>>) -> ControlFlow<()> {
        self.outcome.too_long = true;
        self.record(interleaving, Ending::Unfinished)?;
        ControlFlow::Break(())
    }

    /// A schedule without end: what there is of it is watched, and the next one may have an end.
    fn cut_off(&mut self, interleaving: &mut Interleaving<'_, Interpreter<'_>>) -> ControlFlow<()> {
        self.interleavings += 1;
        self.outcome.unfinished += 1;
        self.outcome.too_long = true;
        self.record(interleaving, Ending::Unfinished)?;
        self.watch(interleaving)?;
        self.look_at_the_clock(STEPS_BETWEEN_LOOKS, interleaving)
    }

    fn record(&mut self, interleaving: &mut Interleaving<'_, Interpreter<'_>>, open: Ending) -> ControlFlow<()> {
        self.sink.as_mut().map_or(ControlFlow::Continue(()), |sink| sink.execution(interleaving.actions(), open))
    }

    fn ended(&mut self, interleaving: &mut Interleaving<'_, Interpreter<'_>>, rest: Rest) -> ControlFlow<()> {
        self.interleavings += 1;
        self.record(interleaving, if rest == Rest::Blocked { Ending::Blocked } else { Ending::Unfinished })?;
        match rest {
            Rest::Complete => self.outcome.executions += 1,
            Rest::Blocked => self.outcome.blocked += 1,
            Rest::Unfinished => self.outcome.unfinished += 1,
            Rest::Deadlock if self.options.allow_deadlock => self.outcome.deadlocks += 1,
            Rest::Deadlock | Rest::Wrong => {
                self.outcome.deadlocks += u64::from(rest == Rest::Deadlock);
                self.note_error(interleaving)?;
            }
        }
        self.watch(interleaving)?;
        self.look_at_the_clock(interleaving.depth(), interleaving)
    }

    fn look_at_the_clock(
        &mut self,
        steps: usize,
        interleaving: &mut Interleaving<'_, Interpreter<'_>>,
    ) -> ControlFlow<()> {
        self.steps += steps;
        if self.steps < STEPS_BETWEEN_LOOKS {
            return ControlFlow::Continue(());
        }
        self.steps = 0;
        self.progress.update(self.outcome.executions, self.interleavings, 0);
        self.outcome.limit = self.budget.exhausted(interleaving.system().bytes());
        if self.outcome.limit.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn note_error(&mut self, interleaving: &mut Interleaving<'_, Interpreter<'_>>) -> ControlFlow<()> {
        let program = interleaving.system().program();
        let Some(witness) = first_problem(program, self.options.spurious_wakeups, interleaving.actions()) else {
            return ControlFlow::Continue(());
        };
        self.outcome.failures += 1;
        if self.outcome.error.as_ref().is_none_or(|known| shorter(&witness.actions, &known.actions)) {
            self.outcome.error = Some(witness);
        }
        if self.options.all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn watch(&mut self, interleaving: &mut Interleaving<'_, Interpreter<'_>>) -> ControlFlow<()> {
        let Some(monitor) = &mut self.monitor else { return ControlFlow::Continue(()) };
        monitor.go_back(interleaving.kept());
        let noted = self.outcome.violations.len();
        let are_all_noted = noted > 0 && noted == self.possible_pairs;
        if !(are_all_noted && monitor.has_found()) {
            self.found.clear();
            self.found.extend(monitor.watch(interleaving.events()));
        }
        if !monitor.has_found() {
            return ControlFlow::Continue(());
        }
        self.outcome.borderline += 1;
        if are_all_noted {
            return if self.options.all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        }
        for violation in violations_of(interleaving, &self.found) {
            self.outcome.violations.entry((violation.store, violation.access)).or_insert(violation);
        }
        if self.options.all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// Findings in an interleaving, as violations: one for each pair of instructions.
pub(crate) fn violations_of(interleaving: &mut Interleaving<'_, Interpreter<'_>>, found: &[Finding]) -> Vec<Violation> {
    let mut violations: Vec<Violation> = Vec::new();
    for &Finding { store, access } in found {
        let (issued, end) = (Some(store as usize), access as usize);
        let (store, access) = (access_of(interleaving, store), access_of(interleaving, access));
        if !violations.iter().any(|known| (known.store, known.access) == (store, access)) {
            let actions = interleaving.actions()[..=end].to_vec();
            violations.push(Violation { store, access, actions, issued });
        }
    }
    violations
}

fn access_of(interleaving: &mut Interleaving<'_, Interpreter<'_>>, action: u32) -> Access {
    let (thread, token) = (interleaving.actions()[action as usize].thread(), interleaving.token(action));
    let system = interleaving.system();
    let pc = system.pc_of(thread, token);
    Access { thread, pc, site: system.program().threads[ThreadId::index(thread)].sites[pc.index()] }
}

/// splitmix64: the same seed gives the same schedules everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound.max(1) as u64) as usize
    }
}
