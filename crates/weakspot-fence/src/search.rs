//! The search itself; see the [crate](crate) for the scheme.

use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::machine::Action;
use weakspot_model::task::Limit;

use crate::avoid::{Climbed, Labels};
use crate::clause::{Clause, MarkedProgram};
use crate::hitting::{self, Cost};
use crate::oracle::{Answer, Calm, Effort, Oracle};
use crate::points::{Kinds, Points};
use crate::{Doubt, FenceError, FenceOptions, FenceReport, FenceVerdict, Goal, PlacedFence, Placement, Strategy};

/// Placements about which nothing can be learned are passed over this often, then a larger one is sought directly.
const MAX_PASSED_OVER: usize = 6;

/// More alternatives than this are not listed.
const MAX_ALTERNATIVES: usize = 64;

/// The state of one inference.
pub(crate) struct Inference<'a> {
    points: &'a Points,
    oracle: Oracle<'a>,
    options: &'a FenceOptions,
    costs: Vec<Cost>,
    /// Every correct placement holds a member of each.
    clauses: Vec<Clause>,
    /// Strategy `avoid`: the formula that every correct placement satisfies as well.
    labels: Option<Labels<'a>>,
    /// Clauses that pass over placements about which nothing could be learned. They prove nothing.
    assumed: Vec<Vec<usize>>,
    /// Placements of full fences known to be correct.
    correct: Vec<Vec<usize>>,
    /// Does some thread have an `assume`? Then a placement may be wrong although it holds a correct one: see [`clause`].
    has_assumptions: bool,
    /// Why the engines could not decide about one of them.
    undecided: Option<Doubt>,
    iterations: u32,
}

/// How the search for one minimum came out.
enum Found {
    Placement(Vec<usize>),
    NoPlacement,
    Stopped(Doubt),
}

impl<'a> Inference<'a> {
    pub(crate) fn new(points: &'a Points, oracle: Oracle<'a>) -> Result<Self, FenceError> {
        let options = oracle.options;
        let costs = points.costs(options.weights);
        let labels = match options.strategy {
            Strategy::Guided => None,
            Strategy::Avoid => Some(Labels::new(points, options)?),
        };
        let (clauses, assumed, correct) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self {
            points,
            oracle,
            options,
            costs,
            clauses,
            labels,
            assumed,
            correct,
            has_assumptions: true,
            undecided: None,
            iterations: 0,
        })
    }

    pub(crate) fn run(mut self, program: &Program) -> Result<FenceReport, FenceError> {
        self.has_assumptions = program.assumes();
        if self.options.goal == Goal::Spec {
            match self.oracle.sc(program)? {
                Calm::Correct => {}
                Calm::Broken(witness) => return self.report(FenceVerdict::Impossible(Some(witness)), None),
                Calm::Undecided(doubt) => return self.report(FenceVerdict::Inconclusive(doubt), None),
            }
        }
        match self.search()? {
            Found::NoPlacement => self.report(FenceVerdict::Impossible(None), None),
            Found::Stopped(doubt) => {
                let best = self.best_known();
                self.report(FenceVerdict::Inconclusive(doubt), best.as_deref())
            }
            Found::Placement(set) => {
                let inserts = set.iter().any(|&candidate| self.points.candidates[candidate].existing.is_none());
                let verdict = if inserts { FenceVerdict::Fenced } else { FenceVerdict::NoneNeeded };
                self.report(verdict, Some(&set))
            }
        }
    }

    /// The loop.
    fn search(&mut self) -> Result<Found, FenceError> {
        if let Err(limit) = self.start_labels()? {
            return Ok(Found::Stopped(limit.into()));
        }
        loop {
            let Some(set) = self.cheapest() else {
                let proved = self.lower_bound().is_none() || (self.is_abstract() && self.assumed.is_empty());
                return if proved { Ok(Found::NoPlacement) } else { self.settle_for_more() };
            };
            self.iterations += 1;
            match self.ask(&set, Effort::Full)? {
                Answer::Correct => {
                    self.explain(&set)?;
                    self.seek_lower_bound(&set);
                    return Ok(Found::Placement(set));
                }
                Answer::Broken(executions) => match self.climb() {
                    Err(limit) => return Ok(Found::Stopped(limit.into())),
                    Ok(true) => continue,
                    Ok(false) if self.learn(&set, &executions)? => continue,
                    Ok(false) => {}
                },
                Answer::Undecided(doubt) if is_final(doubt) => return Ok(Found::Stopped(doubt)),
                Answer::Undecided(doubt) => self.undecided = Some(doubt),
            }
            if self.assumed.len() == MAX_PASSED_OVER {
                return self.settle_for_more();
            }
            self.assumed.push(self.complement(&set));
        }
    }

    fn is_abstract(&self) -> bool {
        self.labels.as_ref().is_some_and(Labels::is_abstract)
    }

    /// Strategy `avoid`: labels the states for the first time.
    fn start_labels(&mut self) -> Result<Result<(), Limit>, FenceError> {
        let Some(labels) = &mut self.labels else { return Ok(Ok(())) };
        let started = labels.start(&self.costs, self.oracle.budget, self.oracle.progress)?;
        self.oracle.states += labels.states;
        Ok(started)
    }

    /// Strategy `avoid` over an abstraction: labels concrete states until they show that nothing costs less than `set`, as
    /// far as that goes.
    fn seek_lower_bound(&mut self, set: &[usize]) {
        let cost = hitting::cost_of(set, &self.costs).essential();
        while self.is_abstract() && self.lower_bound().is_some_and(|least| least < cost) {
            if !matches!(self.climb(), Ok(true)) {
                break;
            }
        }
    }

    /// Strategy `avoid`: labels the states with larger buffers. Did that rule out a placement?
    fn climb(&mut self) -> Result<bool, Limit> {
        let Some(labels) = &mut self.labels else { return Ok(false) };
        let before = labels.states;
        let climbed = labels.climb(self.oracle.budget, self.oracle.progress);
        self.oracle.states += labels.states - before;
        Ok(climbed? == Climbed::Learned)
    }

    /// A cheapest placement that nothing rules out.
    fn cheapest(&mut self) -> Option<Vec<usize>> {
        let mut clauses = self.proved_clauses();
        clauses.extend(self.assumed.iter().cloned());
        match &mut self.labels {
            None => hitting::minimum(&clauses, &self.costs),
            Some(labels) => labels.proposal(&clauses, &self.costs),
        }
    }

    /// What every correct placement costs at least.
    fn lower_bound(&mut self) -> Option<(u64, u32)> {
        let clauses = self.proved_clauses();
        let least = match &mut self.labels {
            None => hitting::minimum(&clauses, &self.costs),
            Some(labels) => labels.minimum(&clauses, &self.costs),
        };
        least.map(|set| hitting::cost_of(&set, &self.costs).essential())
    }

    fn proved_clauses(&self) -> Vec<Vec<usize>> {
        self.clauses.iter().map(Clause::candidates).collect()
    }

    fn all_within(&mut self, limit: (u64, u32)) -> (Vec<Vec<usize>>, bool) {
        let clauses = self.proved_clauses();
        match &mut self.labels {
            None => hitting::all_within(&clauses, &self.costs, limit, MAX_ALTERNATIVES),
            Some(labels) => labels.all_within(&clauses, &self.costs, limit, MAX_ALTERNATIVES),
        }
    }

    /// Strategy `avoid` shows no executions. An engine does, for the placement without each of its fences.
    fn explain(&mut self, set: &[usize]) -> Result<(), FenceError> {
        if self.labels.is_none() {
            return Ok(());
        }
        for &candidate in set {
            let others: Vec<usize> = set.iter().copied().filter(|&other| other != candidate).collect();
            if let Answer::Broken(executions) = self.ask(&others, Effort::Light)? {
                self.learn(&others, &executions)?;
            }
        }
        Ok(())
    }

    fn complement(&self, set: &[usize]) -> Vec<usize> {
        (0..self.costs.len()).filter(|candidate| !set.contains(candidate)).collect()
    }

    fn ask(&mut self, set: &[usize], effort: Effort) -> Result<Answer, FenceError> {
        let covers = |known: &Vec<usize>| if self.has_assumptions { known == set } else { is_subset(known, set) };
        if self.correct.iter().any(covers) {
            return Ok(Answer::Correct);
        }
        let answer = self.ask_kinds(&self.points.kinds(set), effort)?;
        if matches!(answer, Answer::Correct) {
            self.correct.push(set.to_vec());
        }
        Ok(answer)
    }

    fn ask_kinds(&mut self, kinds: &Kinds, effort: Effort) -> Result<Answer, FenceError> {
        if let Some(limit) = self.oracle.budget.exhausted(0) {
            return Ok(Answer::Undecided(limit.into()));
        }
        let text = self.points.fenced(kinds).text;
        let program = self.points.compile(text)?;
        self.oracle.ask(&program, effort)
    }

    /// Makes clauses of executions with a placement, and shrinks them. Was anything learned?
    fn learn(&mut self, set: &[usize], executions: &[Vec<Action>]) -> Result<bool, FenceError> {
        let kinds = self.points.kinds(set);
        let marked = MarkedProgram::new(self.points, &kinds, self.has_assumptions)?;
        let before = self.clauses.len();
        for actions in executions {
            let Some(clause) = marked.clause(self.options, actions)? else { continue };
            let known = |other: &Clause| other.members.keys().all(|member| clause.members.contains_key(member));
            if !self.clauses.iter().any(known) {
                let clause = self.shrink(clause)?;
                self.clauses.push(clause);
            }
        }
        Ok(self.clauses.len() > before)
    }

    /// Fences more and more members of a clause as long as the program stays broken: whole bodies first, then one by
    /// one.
    fn shrink(&mut self, mut clause: Clause) -> Result<Clause, FenceError> {
        let body = |candidate: &usize| self.points.candidates[*candidate].body;
        let mut bodies: Vec<usize> = clause.members.keys().map(body).collect();
        bodies.dedup();
        bodies.sort_unstable();
        bodies.dedup();
        let points = self.points;
        if bodies.len() > 1 {
            for number in bodies {
                clause = self.try_without(clause, |candidate| points.candidates[candidate].body == number)?;
            }
        }
        for member in clause.candidates() {
            clause = self.try_without(clause, |candidate| candidate == member)?;
        }
        Ok(clause)
    }

    /// Fences all candidates outside a clause and some inside. If the program is still broken, the clause of that
    /// execution is a smaller one.
    fn try_without(&mut self, clause: Clause, goes: impl Fn(usize) -> bool) -> Result<Clause, FenceError> {
        let stays = |candidate: &usize| clause.members.contains_key(candidate) && !goes(*candidate);
        let count = clause.members.keys().filter(|candidate| stays(candidate)).count();
        if count == 0 || count == clause.members.len() {
            return Ok(clause);
        }
        let set: Vec<usize> = (0..self.costs.len()).filter(|candidate| !stays(candidate)).collect();
        let Answer::Broken(executions) = self.ask(&set, Effort::Light)? else { return Ok(clause) };
        let kinds = self.points.kinds(&set);
        let marked = MarkedProgram::new(self.points, &kinds, self.has_assumptions)?;
        let mut smallest = clause;
        for actions in &executions {
            if let Some(other) = marked.clause(self.options, actions)?
                && other.members.len() < smallest.members.len()
            {
                smallest = other;
            }
        }
        Ok(smallest)
    }

    /// Starts from a placement that is surely correct and takes away fences while that can be proved. Nothing says
    /// that the result is a minimum, unless it costs no more than the clauses demand.
    fn settle_for_more(&mut self) -> Result<Found, FenceError> {
        let mut set: Vec<usize> = (0..self.costs.len()).collect();
        let mut last = Doubt::Limit(Limit::Buffer(0));
        match self.ask(&set, Effort::Full)? {
            Answer::Correct => {}
            Answer::Broken(_) => return Ok(Found::NoPlacement),
            // what is not verified with a fence in every gap is not verified with fewer
            Answer::Undecided(Doubt::Alarm) => return Ok(Found::NoPlacement),
            Answer::Undecided(doubt) => return Ok(Found::Stopped(doubt)),
        }
        let wanted = self.cheapest().unwrap_or_default();
        let mut order = set.clone();
        order.sort_by_key(|&candidate| (wanted.contains(&candidate), std::cmp::Reverse(self.costs[candidate])));
        for candidate in order {
            let smaller: Vec<usize> = set.iter().copied().filter(|&other| other != candidate).collect();
            if self.clauses.iter().any(|clause| smaller.iter().all(|other| !clause.members.contains_key(other))) {
                continue;
            }
            match self.ask(&smaller, Effort::Light)? {
                Answer::Correct => set = smaller,
                Answer::Broken(_) => {}
                Answer::Undecided(doubt) => last = doubt,
            }
            if is_final(last) {
                return Ok(Found::Stopped(last));
            }
        }
        Ok(Found::Placement(set))
    }

    /// The cheapest placement known to be correct.
    fn best_known(&self) -> Option<Vec<usize>> {
        self.correct.iter().min_by_key(|set| hitting::cost_of(set, &self.costs)).cloned()
    }

    fn report(mut self, verdict: FenceVerdict, set: Option<&[usize]>) -> Result<FenceReport, FenceError> {
        let at_least = self.lower_bound();
        let is_found = matches!(verdict, FenceVerdict::Fenced | FenceVerdict::NoneNeeded);
        let minimal =
            is_found && set.is_some_and(|set| Some(hitting::cost_of(set, &self.costs).essential()) == at_least);
        let (mut alternatives, mut more_alternatives) = (Vec::new(), false);
        let mut placement = None;
        if let Some(set) = set {
            let kinds = if is_found && self.options.fine { self.weaken(set)? } else { self.points.kinds(set) };
            if is_found && self.options.alternatives {
                (alternatives, more_alternatives) = self.alternatives(set)?;
            }
            placement = Some(self.placement(&kinds));
        }
        Ok(FenceReport {
            verdict,
            placement,
            minimal,
            at_least: at_least.map_or(0, |(weight, _)| weight),
            undecided: self.undecided,
            alternatives,
            more_alternatives,
            iterations: self.iterations,
            states: self.oracle.states,
            labelled: self.labels.as_ref().map_or(0, |labels| labels.largest),
        })
    }

    /// The weakest kind for each inserted fence with which the program is still proved: store-store, then store-load.
    fn weaken(&mut self, set: &[usize]) -> Result<Kinds, FenceError> {
        let mut kinds = self.points.kinds(set);
        for &candidate in set {
            if self.points.candidates[candidate].existing.is_some() {
                continue;
            }
            for &weaker in self.points.language.weaker_kinds() {
                let mut tried = kinds.clone();
                tried.insert(candidate, weaker);
                if matches!(self.ask_kinds(&tried, Effort::Full)?, Answer::Correct) {
                    kinds = tried;
                    break;
                }
            }
        }
        Ok(kinds)
    }

    /// All other placements of the same cost that are correct, and whether some may be missing.
    fn alternatives(&mut self, first: &[usize]) -> Result<(Vec<Placement>, bool), FenceError> {
        let limit = hitting::cost_of(first, &self.costs).essential();
        let mut found: Vec<Vec<usize>> = vec![first.to_vec()];
        let (mut undecided, mut wrong): (Vec<Vec<usize>>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        let is_incomplete = 'again: loop {
            let (sets, more) = self.all_within(limit);
            for set in sets {
                if [&found, &undecided, &wrong].iter().any(|sets| sets.contains(&set)) {
                    continue;
                }
                match self.ask(&set, Effort::Full)? {
                    Answer::Correct => found.push(set),
                    Answer::Broken(executions) => {
                        if self.learn(&set, &executions)? {
                            continue 'again;
                        }
                        wrong.push(set);
                    }
                    Answer::Undecided(doubt) if is_final(doubt) => break 'again true,
                    Answer::Undecided(_) => undecided.push(set),
                }
            }
            break more || !undecided.is_empty() || !self.assumed.is_empty();
        };
        let others = found.iter().skip(1).map(|set| self.placement(&self.points.kinds(set)));
        Ok((others.collect(), is_incomplete))
    }

    fn placement(&self, kinds: &Kinds) -> Placement {
        let candidates = &self.points.candidates;
        let fences = kinds.iter().filter(|(candidate, _)| candidates[**candidate].existing.is_none());
        let placed = |(&candidate, &kind): (&usize, &FenceKind)| PlacedFence {
            after: candidates[candidate].place.clone(),
            kind,
            reason: self.reason(candidate, kinds),
        };
        let goes = |candidate: &usize| candidates[*candidate].existing.is_some() && !kinds.contains_key(candidate);
        let set: Vec<usize> = kinds.keys().copied().collect();
        Placement {
            fences: fences.map(placed).collect(),
            removed: (0..candidates.len()).filter(goes).map(|gone| candidates[gone].place.clone()).collect(),
            text: self.points.fenced(kinds).text,
            cost: hitting::cost_of(&set, &self.costs).weight,
        }
    }

    /// What a fence stops: best in an execution that no other fence of the placement stops.
    fn reason(&self, candidate: usize, kinds: &Kinds) -> Option<crate::Reason> {
        let others = |clause: &&Clause| clause.members.keys().filter(|member| kinds.contains_key(member)).count();
        let hit = self.clauses.iter().filter(|clause| clause.members.contains_key(&candidate)).min_by_key(others)?;
        hit.members.get(&candidate).cloned().flatten()
    }
}

/// No other question would be answered either.
fn is_final(doubt: Doubt) -> bool {
    matches!(doubt, Doubt::Limit(Limit::Time | Limit::Memory | Limit::Cancelled))
}

fn is_subset(smaller: &[usize], larger: &[usize]) -> bool {
    smaller.iter().all(|candidate| larger.contains(candidate))
}

#[cfg(test)]
mod tests;
