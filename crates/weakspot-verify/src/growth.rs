//! A sign that a program has no end of states: there are many, and the newest have values that are far from all that
//! stands in the text. It is a sign and no proof, so a search that heeds it is inconclusive, and whoever asks for a search
//! says from which value on it counts.

use weakspot_model::ir::Program;

/// A search has to have this many states before values are looked at.
pub(crate) const MANY_STATES: usize = 1 << 18;

/// A value is taken to grow without bound when it is this many times the largest number of the program …
const FAR_BEYOND: u64 = 1000;

/// … which counts as this one, if it is smaller.
const SMALL_NUMBER: u64 = 100;

/// The value, without its sign, from which on the values of a program seem to grow without bound.
pub fn suspicious_value(program: &Program) -> u64 {
    program.largest_constant().max(SMALL_NUMBER).saturating_mul(FAR_BEYOND)
}

/// Is one of the values greater than this, without its sign?
pub(crate) fn is_past<'a>(most: u64, values: impl IntoIterator<Item = &'a [i64]>) -> bool {
    values.into_iter().flatten().any(|value| value.unsigned_abs() > most)
}
