//! What `docs/shuttle.md` says to people who come from shuttle, beside shuttle itself.
#![allow(clippy::unwrap_used)]

mod calls;

use std::panic::catch_unwind;
use std::path::Path;

use weakspot::Builder;

/// The same program with the types of both. An update may be lost, unless the threads use one step.
macro_rules! programs {
    ($module:ident, $library:ident) => {
        mod $module {
            use $library::sync::Arc;
            use $library::sync::atomic::{AtomicUsize, Ordering::SeqCst};
            use $library::thread;

            pub fn loses_an_update() {
                increments(|number| number.store(number.load(SeqCst) + 1, SeqCst));
            }

            pub fn loses_none() {
                increments(|number| _ = number.fetch_add(1, SeqCst));
            }

            fn increments(increment: fn(&AtomicUsize)) {
                let number = Arc::new(AtomicUsize::new(0));
                let other = number.clone();
                let thread = thread::spawn(move || increment(&other));
                increment(&number);
                thread.join().unwrap();
                assert_eq!(number.load(SeqCst), 2, "an update is lost");
            }
        }
    };
}

programs!(ours, weakspot);
programs!(theirs, shuttle);

/// Does it panic because of the lost update?
fn fails(run: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    match catch_unwind(run) {
        Ok(()) => false,
        Err(message) => {
            let text = message.downcast_ref::<String>().map_or("", String::as_str);
            assert!(text.contains("an update is lost"), "{text}");
            true
        }
    }
}

#[test]
fn the_calls_find_what_those_of_shuttle_find() {
    for (ours, theirs, is_wrong) in [
        (ours::loses_an_update as fn(), theirs::loses_an_update as fn(), true),
        (ours::loses_none, theirs::loses_none, false),
    ] {
        assert_eq!(fails(move || shuttle::check_random_with_seed(theirs, 1, 100)), is_wrong);
        assert_eq!(fails(move || calls::check_random(ours, 1, 100)), is_wrong);
        assert_eq!(fails(move || shuttle::check_dfs(theirs, None)), is_wrong);
        assert_eq!(fails(move || calls::check_dfs(ours, None)), is_wrong);
        assert_eq!(fails(move || shuttle::check_pct(theirs, 100, 2)), is_wrong);
        assert_eq!(fails(move || calls::check_preemptions(ours, 2)), is_wrong);
    }
    // One execution is not enough, and without preemptions there is no lost update.
    assert!(!fails(|| calls::check_dfs(ours::loses_an_update, Some(1))));
    let schedule = Builder::default().check(ours::loses_an_update).replay().unwrap().to_owned();
    assert!(fails(move || calls::replay(ours::loses_an_update, &schedule)));
}

#[test]
fn the_document_shows_these_calls() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let document = std::fs::read_to_string(root.join("docs/shuttle.md")).unwrap();
    let code = std::fs::read_to_string(root.join("crates/weakspot/tests/shuttle/calls.rs")).unwrap();
    assert!(document.contains(&code.replace("pub fn", "fn")), "the example of docs/shuttle.md is not that of the test");
}
