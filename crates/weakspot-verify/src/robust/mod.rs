//! Store-buffer safety with unbounded loops and unbounded buffers: the attack reduction.
//!
//! # The question
//! Is every trace (program order, reads-from, coherence) that TSO or PSO allows an SC trace? For programs that are
//! finite-state under SC this engine answers exactly, whatever the loops and however long the buffers.
//!
//! # The reduction
//! Bouajjani, Derevenetc and Meyer (ESOP 2013) show for TSO that a program is not robust exactly if some *attack*
//! exists: one thread (the attacker) delays one of its stores past one of its loads while the others, running under
//! SC, build the happens-before path from that load back to the store's location. Only SC reachability of an
//! instrumented program is needed. We search that instrumented program directly:
//!
//! 1. **Calm**: plain SC.
//! 2. **Delay**: the attacker's store to `x` goes to a private *shadow* instead of memory, and so do its later stores.
//!    Its loads look into the shadow first. Nothing that would drain its buffer may happen. The others go on under SC
//!    and leave the delayed locations alone (an access would need the store visible, or start another attack).
//! 3. **Chase**: at some event `b` that is visible to others (a load served by memory) the attacker stops for good.
//!    From here on only events that happen after `b` are performed. If one of them accesses `x`, it does so before the
//!    delayed store commits, so `store →po b →hb⁺ access → store` is a happens-before cycle: not robust.
//!
//! # Why the shadow is enough
//! Nobody else sees a delayed store before the end of an attack, so of the buffer only the youngest value of each
//! location matters, for the attacker's own loads. That is what makes unbounded buffers finite.
//!
//! # PSO
//! Paper 004 proves (Theorem 2) that a program with a violation under PSO has an SC execution `E`, a store `s` of a
//! thread `p'` whose commit can be put off until the end of `E` without changing its trace, and an event `e` of another
//! thread on the location of `s` that comes next, with `s →hb* prev(e)`. Let `b` be the last event of `p'` that
//! happens before `e`. Then
//! - the first edge of the path from `s` is program order (a conflict edge would need `s` visible), so `b ≠ s`;
//! - events of `p'` after `b` do not happen before `e` and can be left out, and events of others that do not happen
//!   after `b` can be moved before it: what remains is *calm*, *delay*, `b`, *chase*, `e`, as above;
//! - of the later stores of `p'`, those to the location of `s` and those behind a store-store fence must wait with
//!   `s` (and are seen by nobody in `E`); all others may commit at once, as they did in `E`.
//!
//! So for PSO the attacker's stores to other locations act at once unless a store-store fence stands between, an atomic
//! waits for its own location only, and `b` may also be such a store or atomic. The same argument with "all later
//! stores wait" gives TSO. Both are tested against brute force over random programs.
//!
//! | step of the argument | function here |
//! |---|---|
//! | calm, delay, chase | `attack::Attack::successors` |
//! | what happens after `b` | `attack::Shade` |
//! | the relaxed and the SC execution of an attack | `witness::build` |
//!
//! # `assume`
//! An execution with a false `assume` is none, so an attack counts only if it can be completed. A move into a false
//! `assume` is no move; at the end of an attack the reference machine looks for one way to go on that is never pruned
//! (`witness::can_go_on`). Whether there is one depends on the attacker too, so in programs with `assume` nothing of it
//! is forgotten during the chase. The prefix of a complete trace that breaks SC first is an attack (the argument above
//! only ever leaves out events that come later). What comes after it may need stores to be pending that the attack makes
//! visible at once: `later`.
//!
//! # Deliberately absent
//! The specification. A thread whose instruction fails stops; whether that is an error is for the verification engines
//! to say. Leaving a critical block touches no memory and happens at once.

mod attack;
mod later;
mod locals;
mod space;
mod witness;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Pc, Site, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::machine::Action;
use weakspot_model::replay::ReplayError;
use weakspot_model::task::{Budget, Limit, Progress};

use crate::growth;
use attack::{Attack, Move, Successor};
use space::{StateIndex, StateSpace};
use witness::Built;

pub use witness::completion;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct RobustOptions {
    /// TSO or PSO. Under SC every program is robust.
    pub model: MemoryModel,
    /// Go on after the first violation and collect one for each pair of accesses.
    pub all: bool,
    /// May a waiting thread wake without a notification?
    pub spurious_wakeups: bool,
    /// Stop after this many states.
    pub max_states: Option<u64>,
    /// As for [`crate::explicit::ExplicitOptions::max_value`].
    pub max_value: Option<u64>,
}

impl RobustOptions {
    /// The first violation under a model, however long it takes.
    pub fn new(model: MemoryModel) -> Self {
        Self { model, all: false, spurious_wakeups: false, max_states: None, max_value: None }
    }

    /// Why to stop with this many states, if there is a reason.
    fn exceeded_by(&self, states: usize, has_grown: impl FnOnce(u64) -> bool) -> Option<Limit> {
        let too_many = self.max_states.is_some_and(|most| states as u64 > most);
        let grows = || states >= growth::MANY_STATES && self.max_value.is_some_and(has_grown);
        (too_many || grows()).then_some(Limit::States(states as u64))
    }
}

/// One way to be not robust, for each pair of accesses (paper 004 groups violations so).
#[derive(Debug, Clone)]
pub struct Violation {
    /// The delayed store.
    pub store: Access,
    /// The event of the same thread that the store is delayed past.
    pub passed: Access,
    /// The access of another thread, to the store's location, that closes the cycle.
    pub access: Access,
    /// A relaxed execution with the cycle, for the machine of the model; it ends when the delayed stores are visible.
    pub relaxed: Vec<Action>,
    /// The SC execution it departs from, up to just before `access` (a borderline trace).
    pub borderline: Vec<Action>,
}

/// An event of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Who.
    pub thread: ThreadId,
    /// The instruction.
    pub pc: Pc,
    /// Its place in the source.
    pub site: Site,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobustVerdict {
    /// Every trace of the model is an SC trace.
    Robust,
    /// Some trace is not; see [`RobustReport::violations`].
    NotRobust,
    /// A limit was reached first.
    Inconclusive(Limit),
}

/// The answer with its figures.
#[derive(Debug, Clone)]
pub struct RobustReport {
    /// The answer.
    pub verdict: RobustVerdict,
    /// At most one for each pair of accesses, in a fixed order; the first is the one that was found first.
    pub violations: Vec<Violation>,
    /// What kept it from looking at everything. (It need not, if one violation is enough and there is one.)
    pub limit: Option<Limit>,
    /// States of the instrumented program that were stored.
    pub states: u64,
    /// Transitions taken.
    pub transitions: u64,
}

impl RobustReport {
    /// Is there a violation of this pair of accesses?
    fn knows(&self, pair: (Site, Site)) -> bool {
        self.violations.iter().any(|known| (known.store.site, known.access.site) == pair)
    }
}

/// How often (in expanded states) the budget is looked at.
const CHECK_EVERY: usize = 1 << 12;

/// Decides store-buffer safety. The error is an internal one: a witness that the reference machine does not accept.
pub fn check(
    program: &Program,
    options: RobustOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<RobustReport, ReplayError> {
    let mut report =
        RobustReport { verdict: RobustVerdict::Robust, violations: Vec::new(), limit: None, states: 0, transitions: 0 };
    if options.model == MemoryModel::Sc {
        return Ok(report);
    }
    let mut attack = Attack::new(program, options);
    let mut space = StateSpace::new(attack.words());
    let mut successors: Vec<Successor> = Vec::new();
    attack.start(&mut space);
    let mut next = StateIndex::FIRST;
    while let Some(state) = space.get(next) {
        attack.successors(state, &mut successors);
        report.transitions += successors.len() as u64;
        for successor in successors.drain(..) {
            match successor {
                Successor::State { words, by } => space.insert(&words, Some((next, by))),
                Successor::Cycle { by, .. } => {
                    let pair = space.get(next).and_then(|state| attack.pair(state, by));
                    if pair.is_some_and(|pair| report.knows(pair)) {
                        continue;
                    }
                    let moves = space.path_to(next, by);
                    let added = add_violation(program, options, &moves, &mut report)?;
                    if added && !options.all {
                        report.states = space.len() as u64;
                        return Ok(report);
                    }
                }
            }
        }
        next = next.following();
        if next.index().is_multiple_of(CHECK_EVERY) {
            progress.update(space.len() as u64, report.transitions, (space.len() - next.index()) as u64);
            let newest = || space.get(space.newest()).expect("invariant: there is a first state");
            let exceeded = options.exceeded_by(space.len(), |most| attack.has_grown(newest(), most));
            if let Some(limit) = budget.exhausted(space.bytes() + attack.bytes()).or(exceeded) {
                report.states = space.len() as u64;
                report.limit = Some(limit);
                if report.violations.is_empty() {
                    report.verdict = RobustVerdict::Inconclusive(limit);
                }
                return Ok(report);
            }
        }
    }
    report.states = space.len() as u64;
    if let (Some(limit), []) = (report.limit, &report.violations[..]) {
        report.verdict = RobustVerdict::Inconclusive(limit);
    }
    Ok(report)
}

/// Adds the violation of an attack, unless its pair of accesses is known or every way to go on is pruned.
fn add_violation(
    program: &Program,
    options: RobustOptions,
    moves: &[Move],
    report: &mut RobustReport,
) -> Result<bool, ReplayError> {
    let violation = match witness::build(program, options, moves)? {
        Built::Violation(violation) => violation,
        Built::Pruned => return Ok(false),
        Built::Open => {
            report.limit.get_or_insert(Limit::Assumptions);
            return Ok(false);
        }
    };
    report.verdict = RobustVerdict::NotRobust;
    let pair = (violation.store.site, violation.access.site);
    if !report.knows(pair) {
        report.violations.push(violation);
    }
    Ok(true)
}
