//! A sign that a program has no end of states: there are many, and the newest have values that are far from all that
//! stands in the text. It is a sign and no proof, so a search that heeds it is inconclusive, and whoever asks for a search
//! says from which value on it counts.

/// A search has to have this many states before values are looked at.
pub(crate) const MANY_STATES: usize = 1 << 18;

/// Is one of the values greater than this, without its sign?
pub(crate) fn is_past<'a>(most: u64, values: impl IntoIterator<Item = &'a [i64]>) -> bool {
    values.into_iter().flatten().any(|value| value.unsigned_abs() > most)
}
