//! "Did you mean": the known word nearest to a misspelt one.

/// The candidate nearest to `word`, if it is near enough to be what was meant: at most one edit for every three
/// letters, and at least one. Of equally near candidates the first wins. Upper and lower case are the same.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap neighbours) from one word to the other, ignoring case.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().map(|c| c.to_ascii_lowercase()).collect();
    let to: Vec<char> = to.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = last[j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        assert_eq!(closest("MFENEC", ["MOV", "MFENCE", "SFENCE"]), Some("MFENCE"));
        assert_eq!(closest("mvo", ["MOV"]), Some("MOV"));
        assert_eq!(closest("HELLO", ["MOV", "XCHG"]), None);
        assert_eq!(closest("ab", []), None);
    }
}
