//! The fewest candidates that hit every clause.

use super::Candidate;

/// Sets that are looked at.
const MOST_SETS: usize = 200_000;

/// A set with a member in each clause: none has fewer members, and of those with as many none is cheaper. `None` if a
/// clause is empty or the search takes too long.
pub(super) fn minimum(clauses: &[Vec<Candidate>]) -> Option<Vec<Candidate>> {
    let mut search = Search { clauses, chosen: Vec::new(), best: None, left: MOST_SETS };
    for size in 0..=clauses.len() {
        search.extend(size);
        if search.left == 0 {
            return None;
        }
        if let Some((_, best)) = search.best {
            return Some(best);
        }
    }
    None
}

struct Search<'c> {
    clauses: &'c [Vec<Candidate>],
    chosen: Vec<Candidate>,
    /// The cheapest set that was found, with its cost.
    best: Option<(u32, Vec<Candidate>)>,
    left: usize,
}

impl Search<'_> {
    /// Adds up to `more` candidates.
    fn extend(&mut self, more: usize) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return;
        }
        let missed = self.clauses.iter().find(|clause| !clause.iter().any(|one| self.chosen.contains(one)));
        match missed {
            None => self.keep(),
            Some(_) if more == 0 => {}
            Some(clause) => {
                for &candidate in clause {
                    self.chosen.push(candidate);
                    self.extend(more - 1);
                    self.chosen.pop();
                }
            }
        }
    }

    fn keep(&mut self) {
        let cost = self.chosen.iter().map(|candidate| candidate.cost()).sum();
        if self.best.as_ref().is_none_or(|(best, _)| cost < *best) {
            let mut chosen = self.chosen.clone();
            chosen.sort_unstable();
            self.best = Some((cost, chosen));
        }
    }
}
