//! Questions 1 and 2 by stateful search: all SC states, then all attacks, unless a look at the text rules them out. Exact
//! for programs that are finite-state under SC, whatever their loops.

use weakspot_explore::reorder::may_reorder;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::task::{self, Budget, Limit, Progress};
use weakspot_verify::explicit::{self, ExplicitOptions, ExplicitReport};
use weakspot_verify::growth::suspicious_value;
use weakspot_verify::robust::{self, RobustOptions, RobustReport, RobustVerdict};

use crate::{Bound, CheckOptions, CheckReport, Engine, InternalError, Verdict, Violation, endings, impact};

/// States of the first look at each question: most programs have fewer, and where there is no end of SC states a violation
/// should be found all the same.
const FEW_STATES: u64 = 100_000;

/// Answers questions 1 and 2, and 3 if need be. Each search may store `max_states` states; without that it heeds no sign of
/// having no end.
pub fn check(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    why: &'static str,
    max_states: Option<u64>,
) -> Result<CheckReport, InternalError> {
    let search = Search { program, options, budget, progress };
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
    let (sc, found) = search.sequentially_consistent(max_states)?;
    let open = match sc.verdict {
        task::Verdict::Violated(witness) => return Ok(report(Verdict::Error(witness), sc.states)),
        task::Verdict::Inconclusive(limit) => Some(limit),
        task::Verdict::Verified => None,
    };
    let attacks = match (found, open) {
        (Some(found), _) => found,
        (None, None) => search.attacks(max_states)?,
        (None, Some(limit)) => return Ok(report(bounded(limit), sc.states)),
    };
    let states = sc.states + attacks.states;
    Ok(match (attacks.verdict, open) {
        (RobustVerdict::NotRobust, _) => {
            let most = if open.is_some() { impact::MAX_STATES_UNDER_BOUNDS } else { impact::MAX_STATES };
            let verdict = Verdict::Unsafe(impact::judge(program, options, most, budget, progress)?);
            let exhaustive = open.is_none() && attacks.limit.is_none();
            let violations = violations(program, options, &attacks)?;
            CheckReport { violations, exhaustive, ..report(verdict, states) }
        }
        (RobustVerdict::Inconclusive(limit), None) | (_, Some(limit)) => report(bounded(limit), states),
        (RobustVerdict::Robust, None) => report(nothing_found(program, options, budget), states),
    })
}

/// What the searches are about.
#[derive(Clone, Copy)]
struct Search<'a> {
    program: &'a Program,
    options: &'a CheckOptions,
    budget: &'a Budget,
    progress: &'a dyn Progress,
}

impl Search<'_> {
    /// Question 1, and if it takes more than a few states a first look at question 2 before all of them are gone through:
    /// there may be no end of them, or no time. The look is worth keeping if it answers question 2, or if question 1 stays
    /// open.
    fn sequentially_consistent(
        self,
        max_states: Option<u64>,
    ) -> Result<(ExplicitReport, Option<RobustReport>), InternalError> {
        let few = max_states.map_or(FEW_STATES, |most| most.min(FEW_STATES));
        let sc = self.question_1(Some(few))?;
        if !matches!(sc.verdict, task::Verdict::Inconclusive(Limit::States(_))) {
            return Ok((sc, None));
        }
        let attacks = self.attacks(Some(few))?;
        let sc = self.question_1(max_states)?;
        let is_open = matches!(sc.verdict, task::Verdict::Inconclusive(_));
        let is_worth_keeping = attacks.limit.is_none() || is_open;
        Ok((sc, is_worth_keeping.then_some(attacks)))
    }

    fn question_1(self, max_states: Option<u64>) -> Result<ExplicitReport, InternalError> {
        let max_value = max_states.map(|_| suspicious_value(self.program));
        let search = ExplicitOptions { max_states, max_value, ..self.options.explicit(MemoryModel::Sc) };
        Ok(explicit::try_verify(self.program, &search, self.budget, self.progress)?)
    }

    /// Question 2, unless a look at the text answers it.
    fn attacks(self, max_states: Option<u64>) -> Result<RobustReport, InternalError> {
        let CheckOptions { model, all, spurious_wakeups, .. } = *self.options;
        let model = if may_reorder(self.program, model) { model } else { MemoryModel::Sc };
        let max_value = max_states.map(|_| suspicious_value(self.program));
        let attack = RobustOptions { model, all, spurious_wakeups, max_states, max_value };
        Ok(robust::check(self.program, attack, self.budget, self.progress)?)
    }
}

/// The verdict if a search ended early and nothing was found.
fn bounded(limit: Limit) -> Verdict {
    Verdict::Bounded(match limit {
        Limit::States(states) => Bound::States(states),
        limit => Bound::Limit(limit),
    })
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
    max_states: u64,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<RobustReport, InternalError> {
    Search { program, options, budget, progress }.attacks(Some(max_states))
}

/// Its findings with their cycles and executions.
pub fn violations(
    program: &Program,
    options: &CheckOptions,
    attacks: &RobustReport,
) -> Result<Vec<Violation>, InternalError> {
    attacks.violations.iter().map(|attack| Violation::of_attack(program, options, attack)).collect()
}
