//! Binary decision diagrams of monotone formulae: conjunction, disjunction, and the cheapest way to satisfy one.
//!
//! An avoid formula says which sets of fences make a state unreachable. More fences never make it reachable again, so no
//! negation occurs, and two operations are all that is needed. Nodes are hash-consed: equal formulae are equal numbers,
//! which is how the fixed point notices that nothing changed.
//!
//! This is written here instead of taken from a library. oxidd 0.13 brings some 45 crates with it, asks for a newer
//! compiler than the rest of weakspot, reserves the memory of its manager beforehand and counts references at run time,
//! of which there would be one for each state; biodivine-lib-bdd has no shared nodes, so that a label for each of a million
//! states would be a million diagrams. What is left after leaving out negation, quantifiers, reordering and collection of
//! garbage is short.
//!
//! Deliberately absent: collection of garbage. Labels shrink along the implication order, and all of them belong to one
//! inference; [`Formulas::bytes`] counts towards the memory limit.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::hitting::{self, Cost};

/// A formula: a node of [`Formulas`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Formula(u32);

impl Formula {
    /// No set of fences satisfies it.
    pub(crate) const FALSE: Self = Self(0);
    /// Every set does.
    pub(crate) const TRUE: Self = Self(1);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Without the candidate `variable` the formula is `low`, with it `high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    variable: u32,
    low: Formula,
    high: Formula,
}

/// The variable of the two constants: behind all others.
const NO_VARIABLE: u32 = u32::MAX;

/// Answers of an operation are forgotten when there are more.
const MOST_ANSWERS: usize = 1 << 21;

/// The nodes of all formulae.
#[derive(Debug)]
pub(crate) struct Formulas {
    nodes: Vec<Node>,
    unique: HashTable<Formula>,
    conjunctions: FxHashMap<(Formula, Formula), Formula>,
    disjunctions: FxHashMap<(Formula, Formula), Formula>,
    /// Answers of [`Formulas::within`], for one list of weights.
    trimmed: FxHashMap<(Formula, u64), Formula>,
}

impl Formulas {
    /// The two constants.
    pub(crate) fn new() -> Self {
        let constant = |value| Node { variable: NO_VARIABLE, low: value, high: value };
        Self {
            nodes: vec![constant(Formula::FALSE), constant(Formula::TRUE)],
            unique: HashTable::new(),
            conjunctions: FxHashMap::default(),
            disjunctions: FxHashMap::default(),
            trimmed: FxHashMap::default(),
        }
    }

    /// At least one of these candidates.
    pub(crate) fn any(&mut self, candidates: &[usize]) -> Formula {
        let mut sorted = candidates.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.iter().rev().fold(Formula::FALSE, |rest, &candidate| {
            let variable = u32::try_from(candidate).expect("invariant: a text has fewer gaps than numbers");
            self.node(variable, rest, Formula::TRUE)
        })
    }

    /// Both.
    pub(crate) fn and(&mut self, left: Formula, right: Formula) -> Formula {
        match (left, right) {
            (Formula::FALSE, _) | (_, Formula::FALSE) => return Formula::FALSE,
            (Formula::TRUE, other) | (other, Formula::TRUE) => return other,
            _ if left == right => return left,
            _ => {}
        }
        let key = (left.min(right), left.max(right));
        if let Some(&known) = self.conjunctions.get(&key) {
            return known;
        }
        let (variable, [low_left, high_left], [low_right, high_right]) = self.split(left, right);
        let low = self.and(low_left, low_right);
        let high = self.and(high_left, high_right);
        let result = self.node(variable, low, high);
        remember(&mut self.conjunctions, key, result);
        result
    }

    /// One or the other.
    pub(crate) fn or(&mut self, left: Formula, right: Formula) -> Formula {
        match (left, right) {
            (Formula::TRUE, _) | (_, Formula::TRUE) => return Formula::TRUE,
            (Formula::FALSE, other) | (other, Formula::FALSE) => return other,
            _ if left == right => return left,
            _ => {}
        }
        let key = (left.min(right), left.max(right));
        if let Some(&known) = self.disjunctions.get(&key) {
            return known;
        }
        let (variable, [low_left, high_left], [low_right, high_right]) = self.split(left, right);
        let low = self.or(low_left, low_right);
        let high = self.or(high_left, high_right);
        let result = self.node(variable, low, high);
        remember(&mut self.disjunctions, key, result);
        result
    }

    /// What is left of a formula when only sets up to a weight count: the sets that hold one of them which satisfies it.
    /// For sets up to that weight nothing changes, and the diagram is much smaller. The weights must always be the same.
    pub(crate) fn within(&mut self, formula: Formula, most: u64, weights: &[u64]) -> Formula {
        if formula <= Formula::TRUE {
            return formula;
        }
        if let Some(&known) = self.trimmed.get(&(formula, most)) {
            return known;
        }
        let node = self.nodes[formula.index()];
        let low = self.within(node.low, most, weights);
        let high = match most.checked_sub(weights[node.variable as usize]) {
            Some(rest) => self.within(node.high, rest, weights),
            None => Formula::FALSE,
        };
        let high = self.or(low, high);
        let result = self.node(node.variable, low, high);
        if self.trimmed.len() >= MOST_ANSWERS {
            self.trimmed.clear();
        }
        self.trimmed.insert((formula, most), result);
        result
    }

    /// The first variable of two formulae, and both formulae without and with it.
    fn split(&self, left: Formula, right: Formula) -> (u32, [Formula; 2], [Formula; 2]) {
        let (one, other) = (self.nodes[left.index()], self.nodes[right.index()]);
        let variable = one.variable.min(other.variable);
        let cofactors = |node: Node, whole: Formula| {
            if node.variable == variable { [node.low, node.high] } else { [whole, whole] }
        };
        (variable, cofactors(one, left), cofactors(other, right))
    }

    fn node(&mut self, variable: u32, low: Formula, high: Formula) -> Formula {
        if low == high {
            return low;
        }
        let node = Node { variable, low, high };
        let nodes = &self.nodes;
        let hash = FxBuildHasher.hash_one(node);
        if let Some(&known) = self.unique.find(hash, |known| nodes[known.index()] == node) {
            return known;
        }
        let made = Formula(u32::try_from(self.nodes.len()).expect("invariant: memory ends before nodes do"));
        self.nodes.push(node);
        let nodes = &self.nodes;
        self.unique.insert_unique(hash, made, |known| FxBuildHasher.hash_one(nodes[known.index()]));
        made
    }

    /// A cheapest set that satisfies a formula, sorted.
    pub(crate) fn minimum(&self, formula: Formula, costs: &[Cost]) -> Option<Vec<usize>> {
        let cheapest = self.cheapest(formula, costs);
        cheapest.get(&formula)?;
        let (mut at, mut set) = (formula, Vec::new());
        while at != Formula::TRUE {
            let node = self.nodes[at.index()];
            let candidate = node.variable as usize;
            let low = cheapest.get(&node.low).copied();
            let high = cheapest.get(&node.high).map(|&rest| costs[candidate] + rest);
            let takes = match (low, high) {
                (Some(low), Some(high)) => high < low,
                (low, _) => low.is_none(),
            };
            if takes {
                set.push(candidate);
            }
            at = if takes { node.high } else { node.low };
        }
        Some(set)
    }

    /// What satisfying each node of a formula costs at least; nodes that nothing satisfies are left out.
    fn cheapest(&self, formula: Formula, costs: &[Cost]) -> FxHashMap<Formula, Cost> {
        let mut cheapest = FxHashMap::default();
        cheapest.insert(Formula::TRUE, Cost::default());
        // children have smaller numbers than their parents
        for at in self.reachable(formula) {
            let node = self.nodes[at.index()];
            let high = cheapest.get(&node.high).map(|&rest| costs[node.variable as usize] + rest);
            if let Some(best) = cheapest.get(&node.low).copied().into_iter().chain(high).min() {
                cheapest.insert(at, best);
            }
        }
        cheapest
    }

    /// The inner nodes of a formula, ascending.
    fn reachable(&self, formula: Formula) -> Vec<Formula> {
        let mut met = rustc_hash::FxHashSet::default();
        let mut waiting = vec![formula];
        while let Some(at) = waiting.pop() {
            if at > Formula::TRUE && met.insert(at) {
                waiting.extend([self.nodes[at.index()].low, self.nodes[at.index()].high]);
            }
        }
        let mut found: Vec<Formula> = met.into_iter().collect();
        found.sort_unstable();
        found
    }

    /// All sets that satisfy a formula at an essential cost of at most `limit` and hold no candidate that their path does
    /// not ask for, at most `most` of them, and whether there are more. With the minimum as the limit these are all
    /// minimum sets.
    pub(crate) fn all_within(
        &self,
        formula: Formula,
        costs: &[Cost],
        limit: (u64, u32),
        most: usize,
    ) -> (Vec<Vec<usize>>, bool) {
        let cheapest = self.cheapest(formula, costs);
        let mut found = Vec::new();
        let mut waiting = vec![(formula, Vec::new())];
        while let Some((at, set)) = waiting.pop() {
            let Some(&rest) = cheapest.get(&at) else { continue };
            if (hitting::cost_of(&set, costs) + rest).essential() > limit {
                continue;
            }
            if at == Formula::TRUE {
                if found.len() == most {
                    return (found, true);
                }
                found.push(set);
                continue;
            }
            let node = self.nodes[at.index()];
            let taken = [&set[..], &[node.variable as usize]].concat();
            waiting.extend([(node.high, taken), (node.low, set)]);
        }
        found.sort();
        (found, false)
    }

    /// Does a set of candidates satisfy a formula?
    #[cfg(test)]
    pub(crate) fn holds(&self, formula: Formula, set: &[usize]) -> bool {
        let mut at = formula;
        while at > Formula::TRUE {
            let node = self.nodes[at.index()];
            at = if set.contains(&(node.variable as usize)) { node.high } else { node.low };
        }
        at == Formula::TRUE
    }

    /// Nodes made so far.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes held by the tables.
    pub(crate) fn bytes(&self) -> usize {
        let answers = self.conjunctions.capacity() + self.disjunctions.capacity() + 2 * self.trimmed.capacity();
        self.nodes.capacity() * size_of::<Node>()
            + self.unique.capacity() * (size_of::<Formula>() + 1)
            + answers * (3 * size_of::<Formula>() + 1)
    }
}

fn remember(answers: &mut FxHashMap<(Formula, Formula), Formula>, question: (Formula, Formula), answer: Formula) {
    if answers.len() >= MOST_ANSWERS {
        answers.clear();
    }
    answers.insert(question, answer);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 6;

    fn unit() -> Cost {
        Cost { weight: 1, count: 1, inserted: 1, rank: 0 }
    }

    fn members(set: u32) -> Vec<usize> {
        (0..SIZE).filter(|candidate| set & (1 << candidate) != 0).collect()
    }

    /// A random monotone formula, as a diagram and as the list of sets that satisfy it.
    fn random(formulas: &mut Formulas, numbers: &mut u64, depth: u32) -> (Formula, u64) {
        let mut below = |end: u64| {
            *numbers ^= *numbers << 13;
            *numbers ^= *numbers >> 7;
            *numbers ^= *numbers << 17;
            *numbers % end
        };
        if depth == 0 {
            let clause = members(below(1 << SIZE) as u32);
            let table = (0..1_u32 << SIZE)
                .filter(|&set| members(set).iter().any(|candidate| clause.contains(candidate)))
                .fold(0, |table, set| table | 1 << set);
            return (formulas.any(&clause), table);
        }
        let is_and = below(2) == 0;
        let (left, left_table) = random(formulas, numbers, depth - 1);
        let (right, right_table) = random(formulas, numbers, depth - 1);
        if is_and {
            (formulas.and(left, right), left_table & right_table)
        } else {
            (formulas.or(left, right), left_table | right_table)
        }
    }

    #[test]
    fn formulae_mean_what_their_truth_tables_say() {
        let mut formulas = Formulas::new();
        let mut numbers = 0x9e37_79b9_7f4a_7c15;
        let costs: Vec<Cost> = (0..SIZE).map(|index| Cost { weight: 1 + index as u64 % 3, ..unit() }).collect();
        let mut seen = std::collections::HashMap::new();
        for _ in 0..300 {
            let (formula, table) = random(&mut formulas, &mut numbers, 4);
            assert_eq!(*seen.entry(table).or_insert(formula), formula, "equal formulae are equal numbers");
            let satisfying: Vec<Vec<usize>> =
                (0..1_u32 << SIZE).filter(|set| table & (1 << set) != 0).map(members).collect();
            for set in 0..1_u32 << SIZE {
                assert_eq!(formulas.holds(formula, &members(set)), table & (1 << set) != 0);
            }
            for most in 0..=6 {
                let weights: Vec<u64> = costs.iter().map(|cost| cost.weight).collect();
                let trimmed = formulas.within(formula, most, &weights);
                for set in (0..1_u32 << SIZE).map(members) {
                    let is_light = hitting::cost_of(&set, &costs).weight <= most;
                    let (before, after) = (formulas.holds(formula, &set), formulas.holds(trimmed, &set));
                    assert!(if is_light { before == after } else { before || !after });
                }
            }
            let cheapest = satisfying.iter().map(|set| hitting::cost_of(set, &costs)).min();
            let found = formulas.minimum(formula, &costs);
            assert_eq!(found.map(|set| hitting::cost_of(&set, &costs)), cheapest);
            let Some(cheapest) = cheapest else { continue };
            let mut expected: Vec<Vec<usize>> =
                satisfying.into_iter().filter(|set| hitting::cost_of(set, &costs) == cheapest).collect();
            expected.sort();
            assert_eq!(formulas.all_within(formula, &costs, cheapest.essential(), 1000), (expected, false));
        }
        assert!(seen.len() > 100 && formulas.len() > 100, "{} formulae", seen.len());
    }

    #[test]
    fn constants_are_neutral_or_absorbing() {
        let mut formulas = Formulas::new();
        let some = formulas.any(&[3, 1]);
        assert_eq!(formulas.any(&[]), Formula::FALSE);
        assert_eq!(formulas.and(some, Formula::TRUE), some);
        assert_eq!(formulas.or(some, Formula::FALSE), some);
        assert_eq!(formulas.minimum(Formula::TRUE, &[]), Some(vec![]));
        assert_eq!(formulas.minimum(Formula::FALSE, &[]), None);
    }

    #[test]
    fn enumeration_says_when_it_stops_early() {
        let mut formulas = Formulas::new();
        let some = formulas.any(&[0, 1, 2]);
        let (found, more) = formulas.all_within(some, &[unit(); 3], (1, 1), 2);
        assert_eq!((found.len(), more), (2, true));
    }
}
