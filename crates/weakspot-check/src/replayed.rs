//! Questions 1 and 2 for exactly one schedule.
//!
//! The schedule runs under SC. If that breaks the specification, the answer is an error; if a monitor sees that a store
//! buffer could have made it come out otherwise, the answer is unsafe, with the relaxed execution built from this very
//! schedule. Anything else says nothing about other schedules: [`Bound::Schedule`].

use thiserror::Error;
use weakspot_explore::outcome;
use weakspot_explore::replay::{End, NotPossible, Replayed, replay};
use weakspot_explore::schedule::Schedule;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::problem::ProblemKind;
use weakspot_model::task::{Budget, Progress};

use crate::{
    Bound, CheckOptions, CheckReport, Engine, InternalError, MonitorKind, Verdict, Violation, attack, impact, relaxed,
};

/// Why there is no answer about a schedule.
#[derive(Debug, Error)]
pub enum ReplayFailure {
    /// The schedule does not fit the program.
    #[error(transparent)]
    NotPossible(#[from] NotPossible),
    /// A mistake of an engine.
    #[error(transparent)]
    Internal(#[from] InternalError),
}

/// Answers the three questions for one schedule.
pub fn check_schedule(
    program: &Program,
    options: &CheckOptions,
    schedule: &Schedule,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<CheckReport, ReplayFailure> {
    let replayed = replay(program, schedule, options.spurious_wakeups, monitors(options))?;
    let (verdict, violations) = judge(program, options, &replayed, budget, progress)?;
    let is_execution = replayed.end != End::Pruned;
    Ok(CheckReport {
        verdict,
        engine: Engine::Stateless,
        why: "replay of a schedule",
        states: 0,
        executions: u64::from(is_execution),
        blocked: u64::from(!is_execution),
        borderline: u64::from(!violations.is_empty()),
        violations,
        exhaustive: false,
    })
}

fn judge(
    program: &Program,
    options: &CheckOptions,
    replayed: &Replayed,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<(Verdict, Vec<Violation>), InternalError> {
    let is_wrong = |kind: ProblemKind| kind != ProblemKind::Deadlock || !options.allow_deadlock;
    if let Some(witness) = replayed.error.as_ref().filter(|witness| is_wrong(witness.problem.kind)) {
        return Ok((Verdict::Error(witness.clone()), Vec::new()));
    }
    let mut violations = confirmed(program, options, &with_other_stores(program, &replayed.violations))?;
    violations.retain(|violation| violation.relaxed.is_some() || named(violation, &replayed.violations));
    if violations.is_empty() && program.assumes() && !replayed.violations.is_empty() {
        // The relaxed execution in which what is assumed comes true may be another one than the monitor's.
        let all = CheckOptions { all: true, ..options.clone() };
        let attacks = attack::attacks(program, &all, impact::MAX_STATES_OF_SAMPLING, budget, progress)?;
        violations = attack::violations(program, &all, &attacks)?;
        violations.retain(|violation| named(violation, &replayed.violations));
    }
    if violations.is_empty() {
        return Ok((Verdict::Bounded(Bound::Schedule(replayed.end.clone())), violations));
    }
    Ok((
        Verdict::Unsafe(impact::judge(program, options, impact::MAX_STATES_OF_SAMPLING, budget, progress)?),
        violations,
    ))
}

/// Is this a pair that a monitor names?
fn named(violation: &Violation, found: &[outcome::Violation]) -> bool {
    let pair = (violation.store.thread, violation.store.pc, violation.access.thread, violation.access.pc);
    found.iter().any(|found| (found.store.thread, found.store.pc, found.access.thread, found.access.pc) == pair)
}

/// What the monitors found. In a program that assumes something their word is not enough: there has to be a relaxed
/// execution that can be completed.
pub fn confirmed<'f>(
    program: &Program,
    options: &CheckOptions,
    found: impl IntoIterator<Item = &'f outcome::Violation>,
) -> Result<Vec<Violation>, InternalError> {
    let mut violations: Vec<Violation> = Vec::new();
    for found in found {
        let violation = Violation::of_monitor(program, options, found)?;
        let is_certain = violation.relaxed.is_some() || !program.assumes();
        let pair = |violation: &Violation| (violation.store, violation.access);
        if is_certain && violations.iter().all(|known| pair(known) != pair(&violation)) {
            violations.push(violation);
        }
    }
    Ok(violations)
}

/// Of several stores of a thread to the location of the access that are all late a monitor names one; here are the
/// findings that name the others.
fn with_other_stores(program: &Program, found: &[outcome::Violation]) -> Vec<outcome::Violation> {
    let mut all = Vec::new();
    for found in found {
        all.push(found.clone());
        let sites = &program.threads[found.store.thread.index()].sites;
        for pc in relaxed::stores_of_the_same_location(program, found) {
            let store = outcome::Access { pc, site: sites[pc.index()], ..found.store };
            all.push(outcome::Violation { store, issued: None, ..found.clone() });
        }
    }
    all
}

/// The one asked for, else all that know the model: each recognises executions that the others do not.
fn monitors(options: &CheckOptions) -> Vec<MonitorKind> {
    match (options.model, options.monitor) {
        (MemoryModel::Sc, _) => Vec::new(),
        (_, Some(monitor)) => vec![monitor],
        (MemoryModel::Tso, None) => vec![MonitorKind::Sober, MonitorKind::Operational(MemoryModel::Tso)],
        (MemoryModel::Pso, None) => vec![MonitorKind::Operational(MemoryModel::Pso)],
    }
}
