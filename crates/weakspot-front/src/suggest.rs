//! "Did you mean": the known word that is closest to a misspelt one.
//!
//! The distance is that of Damerau and Levenshtein (insert, delete, replace, swap two neighbours), without regard to
//! case. A word of `n` letters may be `1 + n / 4` edits away, so that short names are not matched with everything.

/// Longer words are compared with nothing: nobody misspells a name of that length by one letter and hopes for help.
const LONGEST_WORD: usize = 64;

/// After this many candidates the search stops; a hint is not worth a long wait.
const MOST_CANDIDATES: usize = 20_000;

/// The candidate closest to `word`; the first of the closest if there are several.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let written = word;
    let word = letters(word);
    let limit = 1 + word.len() / 4;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.into_iter().take(MOST_CANDIDATES) {
        if candidate == written || candidate.len() > LONGEST_WORD || candidate.len().abs_diff(word.len()) > limit {
            continue;
        }
        let distance = distance(&word, &letters(candidate));
        // a replacement of every letter is no resemblance
        let close = distance <= limit && distance < word.len().max(1);
        if close && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// `help` text for a misspelt word, if some candidate is close.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    closest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

fn letters(word: &str) -> Vec<char> {
    word.chars().map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Damerau-Levenshtein distance (optimal string alignment) with three rows.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before_last: Vec<usize> = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, &a) in left.iter().enumerate() {
        let mut row = vec![i + 1; right.len() + 1];
        for (j, &b) in right.iter().enumerate() {
            let replace = last[j] + usize::from(a != b);
            let mut least = replace.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == right[j - 1] && left[i - 1] == b {
                least = least.min(before_last[j - 1] + 1);
            }
            row[j + 1] = least;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(closest("lopo", ["loop", "lock"]), Some("loop"));
        assert_eq!(closest("fecne", ["fence", "final"]), Some("fence"));
    }

    #[test]
    fn short_names_match_only_what_is_near() {
        assert_eq!(closest("x", ["y", "z"]), None);
        assert_eq!(closest("turm", ["want", "turn"]), Some("turn"));
        assert_eq!(closest("banana", ["want", "turn"]), None);
    }

    #[test]
    fn far_words_are_not_found() {
        assert_eq!(closest("MFENEC", ["MOV", "MFENCE", "SFENCE"]), Some("MFENCE"));
        assert_eq!(closest("HELLO", ["MOV", "XCHG"]), None);
        assert_eq!(closest("ab", []), None);
    }

    #[test]
    fn case_does_not_count() {
        assert_eq!(closest("WANT", ["want"]), Some("want"));
    }
}
