//! Variables of the environment whose names were misspelt: what they say would go unheard.

/// Those that there are.
const NAMES: [&str; 12] = [
    "WEAKSPOT_MODEL",
    "WEAKSPOT_JOBS",
    "WEAKSPOT_MAX_PREEMPTIONS",
    "WEAKSPOT_MAX_DURATION",
    "WEAKSPOT_MAX_EXECUTIONS",
    "WEAKSPOT_MAX_THREADS",
    "WEAKSPOT_REPLAY",
    "WEAKSPOT_LOG",
    "WEAKSPOT_STATS",
    "WEAKSPOT_FAIL_ON",
    "WEAKSPOT_STRENGTHENED",
    "WEAKSPOT_SUGGESTIONS",
];

/// Letters that may be wrong, missing or too many in a name that is meant to be another one.
const MOST_SLIPS: usize = 2;

/// Refuses names that are nearly right.
///
/// # Panics
/// If there is one.
#[track_caller]
pub(crate) fn check_names() {
    for (name, value) in std::env::vars_os() {
        if let Some(name) = name.to_str().filter(|_| !value.is_empty())
            && let Some(meant) = meant(name)
        {
            panic!("{name} is no variable of weakspot: is {meant} meant?");
        }
    }
}

/// What a name that is none is meant to be.
fn meant(name: &str) -> Option<&'static str> {
    let looks_like_ours = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("weak"));
    if !looks_like_ours || NAMES.contains(&name) {
        return None;
    }
    let name = name.to_ascii_uppercase();
    NAMES.into_iter().find(|known| slips(&name, known) <= MOST_SLIPS)
}

/// How many letters have to be changed, added or left out to make one name of the other.
fn slips(name: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in name.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, known) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != known);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn slips_are_seen_and_other_names_left_alone() {
        for (name, expected) in [
            ("WEAKSPOT_MODLE", Some("WEAKSPOT_MODEL")),
            ("WEAKSPOT_JOB", Some("WEAKSPOT_JOBS")),
            ("WEAKSPOT_MAX_PREEMPTION", Some("WEAKSPOT_MAX_PREEMPTIONS")),
            ("weakspot_log", Some("WEAKSPOT_LOG")),
            ("WEAKSPOTMODEL", Some("WEAKSPOT_MODEL")),
            ("WEAKSPOT_MODEL", None),
            ("WEAKSPOT_TEST_INSIDE", None),
            ("WEAKSPOT", None),
            ("LOG", None),
            ("\u{2603}\u{2603}\u{2603}", None),
        ] {
            assert_eq!(meant(name), expected, "{name}");
        }
    }
}
