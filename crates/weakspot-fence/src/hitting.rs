//! Minimum hitting sets by branch and bound.
//!
//! Clauses come lazily, one or a few for each round of the inference, so the instances are small: a handful of clauses
//! over at most a few hundred candidates. Branching is on the unhit clause with the fewest candidates left; the bound is
//! what clauses without a common candidate must cost at least.

use std::ops::Add;

/// What a set of candidates costs; compared field by field in this order. Every candidate costs something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cost {
    /// What is minimised first: the number of fences, or their total weight.
    pub weight: u64,
    /// How many.
    pub count: u32,
    /// How many of them are not in the text yet.
    pub inserted: u32,
    /// How badly readers would like the places; only to choose among equals.
    pub rank: u32,
}

impl Cost {
    /// What makes one placement better than another, without taste.
    pub fn essential(self) -> (u64, u32) {
        (self.weight, self.count)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            weight: self.weight.saturating_add(other.weight),
            count: self.count + other.count,
            inserted: self.inserted + other.inserted,
            rank: self.rank.saturating_add(other.rank),
        }
    }
}

/// The cost of a set.
pub fn cost_of(set: &[usize], costs: &[Cost]) -> Cost {
    set.iter().fold(Cost::default(), |sum, &candidate| sum + costs[candidate])
}

/// A cheapest set that holds a candidate of every clause, sorted; `None` if a clause is empty.
pub fn minimum(clauses: &[Vec<usize>], costs: &[Cost]) -> Option<Vec<usize>> {
    let mut best: Option<(Cost, Vec<usize>)> = None;
    let mut search = Search::new(clauses, costs);
    search.branch(Cost::default(), &mut |lower, complete| match (complete, &best) {
        (_, Some((known, _))) if lower >= *known => false,
        (None, _) => true,
        (Some(set), _) => {
            best = Some((lower, sorted(set)));
            true
        }
    });
    best.map(|(_, set)| set)
}

/// All hitting sets whose essential cost is at most `limit` and that hold no other one, at most `most` of them, and
/// whether there are more. With the minimum as the limit these are all minimum hitting sets.
pub fn all_within(clauses: &[Vec<usize>], costs: &[Cost], limit: (u64, u32), most: usize) -> (Vec<Vec<usize>>, bool) {
    let (mut found, mut more) = (Vec::new(), false);
    let mut search = Search::new(clauses, costs);
    search.branch(Cost::default(), &mut |lower, complete| {
        if lower.essential() > limit || more {
            return false;
        }
        if let Some(set) = complete {
            if found.len() == most {
                more = true;
            } else {
                found.push(sorted(set));
            }
        }
        true
    });
    found.sort();
    (found, more)
}

fn sorted(set: &[usize]) -> Vec<usize> {
    let mut set = set.to_vec();
    set.sort_unstable();
    set
}

struct Search<'a> {
    clauses: &'a [Vec<usize>],
    costs: &'a [Cost],
    chosen: Vec<usize>,
    is_chosen: Vec<bool>,
    /// Candidates that another branch has taken care of.
    is_excluded: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(clauses: &'a [Vec<usize>], costs: &'a [Cost]) -> Self {
        let (is_chosen, is_excluded) = (vec![false; costs.len()], vec![false; costs.len()]);
        Self { clauses, costs, chosen: Vec::new(), is_chosen, is_excluded }
    }

    /// Goes through all ways to complete the choice. `visit` gets a lower bound of what completing it costs, and the
    /// set if it is complete; it says whether to go on from here.
    fn branch(&mut self, cost: Cost, visit: &mut dyn FnMut(Cost, Option<&[usize]>) -> bool) {
        let mut unhit: Vec<Vec<usize>> = Vec::new();
        for clause in self.clauses {
            if clause.iter().all(|&candidate| !self.is_chosen[candidate]) {
                unhit.push(clause.iter().copied().filter(|&candidate| !self.is_excluded[candidate]).collect());
            }
        }
        unhit.sort_by_key(Vec::len);
        let Some(tightest) = unhit.first() else {
            visit(cost, Some(&self.chosen));
            return;
        };
        if tightest.is_empty() || !visit(cost + self.bound(&unhit), None) {
            return;
        }
        let mut candidates = tightest.clone();
        candidates.sort_by_key(|&candidate| (self.costs[candidate], candidate));
        for &candidate in &candidates {
            self.chosen.push(candidate);
            self.is_chosen[candidate] = true;
            self.branch(cost + self.costs[candidate], visit);
            self.chosen.pop();
            self.is_chosen[candidate] = false;
            self.is_excluded[candidate] = true;
        }
        for candidate in candidates {
            self.is_excluded[candidate] = false;
        }
    }

    /// Clauses without a common candidate are hit by different candidates.
    fn bound(&self, unhit: &[Vec<usize>]) -> Cost {
        let mut used = vec![false; self.costs.len()];
        let mut bound = Cost::default();
        for clause in unhit {
            if clause.iter().any(|&candidate| used[candidate]) {
                continue;
            }
            for &candidate in clause {
                used[candidate] = true;
            }
            bound = bound + clause.iter().map(|&candidate| self.costs[candidate]).min().unwrap_or_default();
        }
        bound
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn unit(rank: u32) -> Cost {
        Cost { weight: 1, count: 1, inserted: 1, rank }
    }

    /// A small generator with a fixed seed (xorshift).
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }
    }

    fn hits(set: u32, clauses: &[Vec<usize>]) -> bool {
        clauses.iter().all(|clause| clause.iter().any(|&candidate| set & (1 << candidate) != 0))
    }

    fn members(set: u32, size: usize) -> Vec<usize> {
        (0..size).filter(|&candidate| set & (1 << candidate) != 0).collect()
    }

    #[test]
    fn the_minimum_agrees_with_brute_force() {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        for round in 0..400 {
            let size = 1 + numbers.below(9) as usize;
            let costs: Vec<Cost> = (0..size)
                .map(|_| Cost { weight: 10_u64.pow(numbers.below(3) as u32), count: 1, inserted: 1, rank: 0 })
                .collect();
            let clauses: Vec<Vec<usize>> = (0..numbers.below(8))
                .map(|_| members(numbers.below(1 << size) as u32, size))
                .filter(|clause| round % 10 == 0 || !clause.is_empty())
                .collect();
            let all = (0..1_u32 << size).filter(|&set| hits(set, &clauses)).map(|set| members(set, size));
            let cheapest = all.clone().map(|set| cost_of(&set, &costs)).min();
            let found = minimum(&clauses, &costs);
            assert_eq!(found.as_ref().map(|set| cost_of(set, &costs)), cheapest, "{clauses:?}");
            let Some(cheapest) = cheapest else { continue };
            let mut expected: Vec<Vec<usize>> = all.filter(|set| cost_of(set, &costs) == cheapest).collect();
            expected.sort();
            assert_eq!(all_within(&clauses, &costs, cheapest.essential(), 1000), (expected, false), "{clauses:?}");
        }
    }

    #[test]
    fn an_empty_clause_cannot_be_hit_and_no_clause_needs_nothing() {
        assert_eq!(minimum(&[vec![0], vec![]], &[unit(0)]), None);
        assert_eq!(minimum(&[], &[unit(0)]), Some(vec![]));
    }

    #[test]
    fn among_equals_the_better_rank_wins_and_weight_comes_first() {
        assert_eq!(minimum(&[vec![0, 1, 2]], &[unit(2), unit(1), unit(3)]), Some(vec![1]));
        let heavy = Cost { weight: 10, ..unit(0) };
        assert_eq!(minimum(&[vec![0, 1], vec![0, 2]], &[heavy, unit(0), unit(0)]), Some(vec![1, 2]));
    }

    #[test]
    fn enumeration_says_when_it_stops_early() {
        let (found, more) = all_within(&[vec![0, 1, 2]], &[unit(0); 3], (1, 1), 2);
        assert_eq!((found.len(), more), (2, true));
    }
}
