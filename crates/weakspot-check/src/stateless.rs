//! Questions 1 and 2 as the papers answer them: explore SC executions, one for each trace (or bound by bound), and let
//! a monitor say whether a store buffer could turn one of them into something else.
//!
//! The monitor's word is enough for `unsafe`; the relaxed execution that is shown comes from the attack engine, which
//! must agree.

use weakspot_explore::bounded::{Mode, explore_interleavings_recorded};
use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_explore::outcome::Outcome;
use weakspot_explore::recorded::Ending;
use weakspot_explore::recorded::recorder::{Sink, explore_recorded};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::Site;
use weakspot_model::ir::Program;
use weakspot_model::replay::Witness;
use weakspot_model::task::{self, Budget, Progress};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::robust::RobustVerdict;

use crate::replayed::confirmed;
use crate::{Bound, CheckOptions, CheckReport, Engine, InternalError, Sampling, Verdict, Violation, attack, impact};

/// Answers questions 1 and 2, and 3 if need be.
pub fn check(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    mut sink: Option<&mut dyn Sink>,
) -> Result<CheckReport, InternalError> {
    let lent = sink.as_mut().map(|sink| &mut **sink as &mut dyn Sink);
    let explored = explore_all(program, options, budget, progress, lent);
    judge(program, options, budget, progress, "asked for", &explored, sink)
}

/// What has been explored answers questions 1 and 2; 3 if need be.
pub fn judge(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    why: &'static str,
    explored: &Outcome,
    sink: Option<&mut dyn Sink>,
) -> Result<CheckReport, InternalError> {
    let mut violations = Vec::new();
    let verdict = if let Some(witness) = &explored.error {
        Verdict::Error(witness.clone())
    } else if explored.violations.is_empty() {
        settled(explored, options)
    } else if let Some(witness) = error_elsewhere(program, options, budget, progress, explored)? {
        if let Some(sink) = sink {
            // What breaks of a sink that cannot go on is its own business: the answer stands.
            let _ = sink.execution(&witness.actions, Ending::Unfinished);
        }
        Verdict::Error(witness)
    } else {
        violations = describe(program, options, budget, progress, explored)?;
        if violations.is_empty() {
            let why = "an assume makes the monitor's finding uncertain";
            let report = attack::check(program, options, budget, progress, why, Some(side_states(options)))?;
            let executions = count(explored);
            return Ok(CheckReport {
                executions,
                blocked: explored.blocked,
                borderline: explored.borderline,
                ..report
            });
        }
        Verdict::Unsafe(impact::judge(program, options, side_states(options), budget, progress)?)
    };
    Ok(CheckReport {
        verdict,
        engine: Engine::Stateless,
        why,
        violations,
        states: 0,
        executions: count(explored),
        blocked: explored.blocked,
        borderline: explored.borderline,
        exhaustive: explored.exhaustive && explored.unfinished == 0,
    })
}

fn count(explored: &Outcome) -> u64 {
    explored.executions + explored.deadlocks + explored.unfinished
}

/// Explores what was asked for, up to the first violation or for all of them.
pub fn explore_all(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    sink: Option<&mut dyn Sink>,
) -> Outcome {
    let monitor = options.monitor.unwrap_or(match options.model {
        MemoryModel::Pso => MonitorKind::Operational(MemoryModel::Pso),
        MemoryModel::Sc | MemoryModel::Tso => MonitorKind::Sober,
    });
    let search = ExploreOptions {
        monitor: (options.model != MemoryModel::Sc).then_some(monitor),
        all: options.all,
        unroll: options.unroll,
        allow_deadlock: options.allow_deadlock,
        spurious_wakeups: options.spurious_wakeups,
        jobs: options.jobs,
        ..ExploreOptions::default()
    };
    let mode = match (options.sampling, options.max_preemptions) {
        (Some(Sampling::Random { executions, seed }), _) => Mode::Random { executions, seed },
        (Some(Sampling::Pct { executions, depth, seed }), _) => Mode::Pct { executions, depth, seed },
        (None, Some(most)) => Mode::Preemptions(most),
        (None, None) => {
            return match sink {
                None => explore(program, &search, budget, progress),
                Some(sink) => explore_recorded(program, &search, budget, progress, sink),
            };
        }
    };
    let sink = sink.map(|sink| sink as &mut dyn Sink);
    explore_interleavings_recorded(program, mode, &search, budget, progress, sink).0
}

/// States that the searches beside the exploration may take. Where a bound was given there may be no end of them.
fn side_states(options: &CheckOptions) -> u64 {
    if options.sampling.is_some() {
        impact::MAX_STATES_OF_SAMPLING
    } else if options.max_preemptions.is_some() || options.unroll.is_some() {
        impact::MAX_STATES_UNDER_BOUNDS
    } else {
        impact::MAX_STATES
    }
}

/// A search that ended at the first violation may have missed an SC execution that breaks the specification, which
/// would come first.
fn error_elsewhere(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    explored: &Outcome,
) -> Result<Option<Witness>, InternalError> {
    if explored.exhaustive || !impact::can_fail(program) {
        return Ok(None);
    }
    let search = ExplicitOptions { max_states: Some(side_states(options)), ..options.explicit(MemoryModel::Sc) };
    let sc = explicit::try_verify(program, &search, budget, progress)?;
    Ok(match sc.verdict {
        task::Verdict::Violated(witness) => Some(witness),
        task::Verdict::Verified | task::Verdict::Inconclusive(_) => None,
    })
}

/// The verdict if nothing was found.
fn settled(explored: &Outcome, options: &CheckOptions) -> Verdict {
    if let Some(limit) = explored.limit {
        return Verdict::Bounded(Bound::Limit(limit));
    }
    if explored.too_long {
        return Verdict::Bounded(Bound::Endless);
    }
    if let Some(sampling) = options.sampling {
        return Verdict::Bounded(Bound::Sampled(sampling.executions()));
    }
    if let Some(most) = options.max_preemptions {
        return Verdict::Bounded(Bound::Preemptions(most));
    }
    match options.unroll {
        Some(rounds) if explored.unfinished > 0 => Verdict::Bounded(Bound::Unroll(rounds)),
        _ if explored.is_safe() || options.allow_deadlock && explored.deadlocks > 0 => Verdict::Safe,
        _ => Verdict::Bounded(Bound::NothingEnds),
    }
}

/// The violations with cycles and relaxed executions; none only where an `assume` makes those of the monitor uncertain.
/// Where all executions were asked for, the attack engine has the word first: its cycles are short. Where some
/// schedules were asked for, it could take far longer than those.
fn describe(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    explored: &Outcome,
) -> Result<Vec<Violation>, InternalError> {
    if options.sampling.is_some() {
        let mut violations = Vec::new();
        for violation in confirmed(program, options, explored.violations.values())? {
            add(&mut violations, violation);
        }
        return Ok(violations);
    }
    let certain = if program.assumes() { certain(program, options, explored)? } else { Vec::new() };
    // a monitor names one of several stores that can be late; where all are wanted, the attack engine finds the others
    if program.assumes() && (certain.is_empty() || !options.all) {
        return Ok(certain);
    }
    let most = if options.all { u64::MAX } else { impact::MAX_STATES_FOR_BREVITY };
    let attacks = attack::attacks(program, options, side_states(options).min(most), budget, progress)?;
    if attacks.verdict == RobustVerdict::Robust {
        return Err(InternalError::Disagreement);
    }
    let mut violations = attack::violations(program, options, &attacks)?;
    if program.assumes() {
        for violation in certain {
            add(&mut violations, violation);
        }
        return Ok(violations);
    }
    for found in explored.violations.values() {
        if (options.all || violations.is_empty()) && is_new((found.store.site, found.access.site), &violations) {
            add(&mut violations, Violation::of_monitor(program, options, found)?);
        }
    }
    Ok(violations)
}

/// The violations of a program that assumes something: each with a relaxed execution in which that comes true, or none at
/// all. A monitor also finds some in executions that go on where an `assume` is false, and those do not replay.
fn certain(program: &Program, options: &CheckOptions, explored: &Outcome) -> Result<Vec<Violation>, InternalError> {
    let mut violations = Vec::new();
    for found in explored.violations.values() {
        match Violation::of_monitor(program, options, found) {
            Ok(violation) if violation.relaxed.is_some() && !violation.cycle.is_empty() => {
                add(&mut violations, violation);
            }
            Ok(_) | Err(InternalError::Attack(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
    Ok(violations)
}

/// Is none of the violations about this pair of accesses? All threads of a template have the same accesses.
fn is_new(pair: (Site, Site), known: &[Violation]) -> bool {
    known.iter().all(|known| (known.store.site, known.access.site) != pair)
}

/// Adds a violation, if its pair of accesses is new. Where an access is early, that is not the pair that the monitor named.
fn add(violations: &mut Vec<Violation>, violation: Violation) {
    if is_new((violation.store.site, violation.access.site), violations) {
        violations.push(violation);
    }
}
