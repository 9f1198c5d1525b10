//! Panics inside a model: kept for the report instead of printed.

use std::backtrace::Backtrace;
use std::fmt::Write;
use std::panic::PanicHookInfo;
use std::sync::Once;

use super::{Runtime, current};
use crate::failure::{Failure, FailureKind, SourcePlace};

/// What the hook saw of the panic that is under way.
pub(crate) struct Seen {
    message: String,
    place: Option<SourcePlace>,
    backtrace: Backtrace,
}

static HOOK: Once = Once::new();

/// Puts our hook before the one that is there. It leaves panics outside models alone.
pub(crate) fn install_hook() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match current() {
            Some(runtime) => note(runtime, info),
            None => before(info),
        }));
    });
}

fn note(runtime: &Runtime, info: &PanicHookInfo<'_>) {
    let message = message_of(info.payload());
    let place = info.location().map(SourcePlace::from);
    let backtrace = Backtrace::force_capture();
    if let Ok(mut state) = runtime.state.try_borrow_mut() {
        let lane = &mut state.lanes[runtime.thread.get() as usize];
        lane.unwinding = true;
        if ends_the_process(&message) {
            tell_panics(runtime.thread.get(), &lane.seen);
        }
        lane.seen.push(Seen { message, place, backtrace });
        if cfg!(panic = "abort") {
            tell_abort(runtime.thread.get(), &lane.seen);
        }
    } else {
        tell_defect(&message, place.as_ref());
    }
}

/// A panic of the runtime itself, while its state is in use: nobody can note it for the report.
#[cold]
fn tell_defect(message: &str, place: Option<&SourcePlace>) {
    let place = place.map(|place| format!(", at {place}")).unwrap_or_default();
    super::tell(&format!(
        "\nweakspot: internal error: {message}{place}\nThis is a defect of weakspot; please report it with the model\n"
    ));
}

/// Is this what the standard library says before it ends the process, because a destructor panics while its thread does or
/// a function panics that must not?
fn ends_the_process(message: &str) -> bool {
    ["panic in a destructor during cleanup", "panic in a function that cannot unwind"].contains(&message)
}

/// With `panic = "abort"` there will be no report either.
fn tell_abort(thread: u32, seen: &[Seen]) {
    if let Some(Seen { message, place, .. }) = seen.last() {
        let place = place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
        super::tell(&format!(
            "\nweakspot: thread {thread} of the model panicked: {message}{place}\nThe process ends here, without a report: this \
             was built with `panic = \"abort\"`, and panics have to unwind\n"
        ));
    }
}

/// There will be no report: what is known is printed now.
fn tell_panics(thread: u32, seen: &[Seen]) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let mut text =
        format!("\nweakspot: {test}: thread {thread} of the model panics while it panics, which ends the process\n");
    for Seen { message, place, .. } in seen {
        let place = place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
        let _ = writeln!(text, "  {message}{place}");
    }
    super::tell(&text);
}

/// What a panic says.
pub(crate) fn message_of(payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic with a value that is no text".to_owned()
    }
}

/// A panic in one line.
pub(super) fn in_words(failure: &Failure) -> String {
    let thread = failure.thread.map(|thread| format!("thread {thread} panics: ")).unwrap_or_default();
    let place = failure.place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
    format!("{thread}{}{place}", failure.message)
}

/// The panic of a thread as a failure.
pub(crate) fn take_failure(runtime: &Runtime, thread: u32, payload: Option<&(dyn std::any::Any + Send)>) -> Failure {
    let mut seen = std::mem::take(&mut runtime.state().lanes[thread as usize].seen);
    // Destructors may have panicked, and caught it, since the panic that is meant.
    let meant = payload.map(message_of).and_then(|message| seen.iter().rposition(|seen| seen.message == message));
    let seen = match meant {
        Some(at) => Some(seen.swap_remove(at)),
        None => seen.pop(),
    };
    let (message, place, backtrace) = match seen {
        Some(Seen { message, place, backtrace }) => (message, place, Some(backtrace)),
        None => (payload.map_or_else(|| "a panic".to_owned(), message_of), None, None),
    };
    Failure::new(FailureKind::Panic { backtrace }, message).of_thread(thread).at(place)
}
