//! Questions 1 and 2 by stateful search: all SC states, then all attacks, unless a look at the text rules them out. Exact
//! for programs that are finite-state under SC, whatever their loops.

use weakspot_explore::reorder::may_reorder;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::task::{self, Budget, Limit, Progress};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::robust::{self, RobustOptions, RobustReport, RobustVerdict};

use crate::capped::Capped;
use crate::{Bound, CheckOptions, CheckReport, Engine, InternalError, Verdict, Violation, endings, impact};

/// Answers questions 1 and 2, and 3 if need be. Each search may store `max_states` states.
pub fn check(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    why: &'static str,
    max_states: Option<u64>,
) -> Result<CheckReport, InternalError> {
    let search = ExplicitOptions { max_states, ..options.explicit(MemoryModel::Sc) };
    let sc = explicit::try_verify(program, &search, budget, progress)?;
    let report = |verdict, states| CheckReport {
        exhaustive: !matches!(verdict, Verdict::Bounded(_)),
        verdict,
        engine: Engine::Attack,
        why,
        violations: Vec::new(),
        states,
        executions: 0,
        blocked: 0,
        borderline: 0,
    };
    match sc.verdict {
        task::Verdict::Violated(witness) => return Ok(report(Verdict::Error(witness), sc.states)),
        task::Verdict::Inconclusive(Limit::States(states)) => {
            return Ok(report(Verdict::Bounded(Bound::States(states)), sc.states));
        }
        task::Verdict::Inconclusive(limit) => return Ok(report(Verdict::Bounded(Bound::Limit(limit)), sc.states)),
        task::Verdict::Verified => {}
    }
    if !may_reorder(program, options.model) {
        return Ok(report(nothing_found(program, options, budget), sc.states));
    }
    let capped = Capped::of_states(progress, budget, max_states.unwrap_or(u64::MAX));
    let attacks = attacks(program, options, &capped.budget(), &capped)?;
    let states = sc.states + attacks.states;
    match attacks.verdict {
        RobustVerdict::Robust => Ok(report(nothing_found(program, options, budget), states)),
        RobustVerdict::Inconclusive(_) if capped.ran_out() => {
            Ok(report(Verdict::Bounded(Bound::States(max_states.unwrap_or_default())), states))
        }
        RobustVerdict::Inconclusive(limit) => Ok(report(Verdict::Bounded(Bound::Limit(limit)), states)),
        RobustVerdict::NotRobust => {
            let verdict = Verdict::Unsafe(impact::judge(program, options, impact::MAX_STATES, budget, progress)?);
            let violations = violations(program, options, &attacks)?;
            Ok(CheckReport { violations, ..report(verdict, states) })
        }
    }
}

/// The verdict if there is no error and no attack.
fn nothing_found(program: &Program, options: &CheckOptions, budget: &Budget) -> Verdict {
    match endings::some_execution(program, options, budget) {
        Ok(true) => Verdict::Safe,
        Ok(false) => Verdict::Bounded(Bound::NothingEnds),
        Err(limit) => Verdict::Bounded(Bound::Limit(limit)),
    }
}

/// Runs the attack engine.
pub fn attacks(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<RobustReport, InternalError> {
    let attack = RobustOptions { model: options.model, all: options.all, spurious_wakeups: options.spurious_wakeups };
    Ok(robust::check(program, attack, budget, progress)?)
}

/// Its findings with their cycles and executions.
pub fn violations(
    program: &Program,
    options: &CheckOptions,
    attacks: &RobustReport,
) -> Result<Vec<Violation>, InternalError> {
    attacks.violations.iter().map(|attack| Violation::of_attack(program, options, attack)).collect()
}
