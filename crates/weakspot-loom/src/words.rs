//! What loom says when an execution fails. Tests that are meant to fail name it: `#[should_panic(expected = "…")]`.

use weakspot::{Failure, FailureKind, Impact, Report};

/// loom's words for why a model has failed, if it has some.
pub(crate) fn of_loom(report: &Report) -> Option<&'static str> {
    let failure = match (&report.failure, &report.impact) {
        (Some(failure), _) => failure,
        (None, Some(Impact::Harmful(harm))) => &harm.failure,
        _ => return None,
    };
    words(failure)
}

fn words(failure: &Failure) -> Option<&'static str> {
    Some(match &failure.kind {
        FailureKind::Race { first, second } if first.writes && second.writes => {
            "Causality violation: Concurrent write accesses to `UnsafeCell`. (If they overlap: currently writing to cell)"
        }
        FailureKind::Race { second, .. } if second.writes => {
            "Causality violation: Concurrent read and write accesses to `UnsafeCell`. (If they overlap: currently reading \
             from cell)"
        }
        FailureKind::Race { .. } => {
            "Causality violation: Concurrent read and write accesses. (If they overlap: currently writing to cell)"
        }
        FailureKind::Deadlock => "deadlock; threads = all of them",
        FailureKind::Livelock | FailureKind::TooLong => {
            "Model exceeded maximum number of branches. This is often caused by an algorithm requiring the processor to \
             make progress, e.g. spin locks."
        }
        FailureKind::Leak if failure.message.contains("Arc(s)") => "Arc leaked.",
        FailureKind::Leak => "Allocation leaked.",
        FailureKind::NotDeterministic => "Reached unexpected exploration state. Is the model fully deterministic?",
        FailureKind::Panic { .. } | FailureKind::UsedAfterFree(_) | FailureKind::Schedule | FailureKind::Other => {
            return None;
        }
    })
}
