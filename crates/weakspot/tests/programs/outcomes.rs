//! What random programs are made to fail on.

use std::collections::BTreeSet;

/// What was noted by the threads, one after the other, and what the locations hold in the end.
pub type Outcome = Vec<u8>;

/// An outcome to fail on, now and then: one that only the model has, if there is any, or one of SC.
pub fn bad_outcome(
    mut below: impl FnMut(usize) -> usize,
    sc: &BTreeSet<Outcome>,
    relaxed: &BTreeSet<Outcome>,
) -> Option<Outcome> {
    let new: Vec<_> = relaxed.difference(sc).collect();
    match below(8) {
        0..=4 if !new.is_empty() => Some(new[below(new.len())].clone()),
        5 if !sc.is_empty() => sc.iter().nth(below(sc.len())).cloned(),
        _ => None,
    }
}
