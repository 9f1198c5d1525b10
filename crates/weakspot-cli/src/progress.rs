//! What is shown while a search runs, and Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use weakspot_model::task::Progress;

use crate::commands::replacement::remove_unfinished;
use crate::exit::Failure;
use crate::output::Output;

/// The status that shells use for a process ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

/// A search that ends sooner shows no progress.
const PATIENCE: Duration = Duration::from_millis(400);

/// How often the line is drawn again.
const TICK: Duration = Duration::from_millis(120);

/// A flag that the first Ctrl-C (or a request to terminate) sets; the second ends the process at once.
pub fn cancelled_by_signal() -> Result<Arc<AtomicBool>, Failure> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    let handler = move || {
        if flag.swap(true, Ordering::SeqCst) {
            remove_unfinished();
            std::process::exit(INTERRUPTED);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::Internal(format!("cannot catch Ctrl-C: {error}")))?;
    Ok(cancelled)
}

/// The line that a state-space search shows on a terminal once it has lasted a moment; hidden everywhere else.
pub struct SearchProgress {
    bar: ProgressBar,
    /// Is somebody watching?
    watched: bool,
    /// What is counted.
    counted: &'static str,
}

impl SearchProgress {
    /// A line that begins with the name of what is searched.
    pub fn new(output: &Output, name: &str, counted: &'static str) -> Self {
        let bar = ProgressBar::hidden();
        let template = ProgressStyle::with_template("{spinner} {prefix}: {msg} [{elapsed}]");
        bar.set_style(template.expect("invariant: the template is well formed"));
        bar.set_prefix(name.to_owned());
        Self { bar, watched: output.shows_progress(), counted }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl SearchProgress {
    /// Shows what is being done.
    pub fn note(&self, words: &str) {
        self.show(|_| words.to_owned());
    }

    /// Shows a text, once the search has lasted a moment. `words` is told how many seconds that is.
    fn show(&self, words: impl FnOnce(f64) -> String) {
        let elapsed = self.bar.elapsed();
        if !self.watched || elapsed < PATIENCE {
            return;
        }
        self.bar.set_message(words(elapsed.as_secs_f64()));
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(TICK);
        }
    }
}

impl Progress for SearchProgress {
    fn update(&self, states: u64, _transitions: u64, waiting: u64) {
        self.show(|seconds| {
            let (counted, rate) = (HumanCount(states), HumanCount((states as f64 / seconds) as u64));
            match waiting {
                0 => format!("{counted} {}, {rate}/s", self.counted),
                _ => format!("{counted} states, {rate}/s, {} waiting", HumanCount(waiting)),
            }
        });
    }

    fn explored(&self, _executions: u64, graphs: u64, covered: f64) {
        self.show(|seconds| executions(graphs, covered, seconds));
    }
}

/// How far a stateless search is.
fn executions(graphs: u64, covered: f64, seconds: f64) -> String {
    let rate = HumanCount((graphs as f64 / seconds) as u64);
    let percent = (covered * 100.0).clamp(0.0, 100.0);
    format!("{} executions, {rate}/s, about {percent:.1} % done", HumanCount(graphs))
}

/// The bar that counts finished tests.
pub fn test_bar(output: &Output, tests: usize) -> ProgressBar {
    if !output.shows_progress() {
        return ProgressBar::hidden();
    }
    let template = ProgressStyle::with_template("{wide_bar} {pos}/{len} tests, {per_sec}, {eta} left");
    let style = template.expect("invariant: the template is well formed");
    ProgressBar::new(tests as u64).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::executions;

    #[test]
    fn a_stateless_search_says_how_much_is_done() {
        assert_eq!(executions(1_234_000, 0.0525, 2.0), "1,234,000 executions, 617,000/s, about 5.2 % done");
        assert_eq!(executions(10, 1.000_000_1, 1.0), "10 executions, 10/s, about 100.0 % done");
    }
}
