//! In words: which stores were late, and what their threads did meanwhile.
//!
//! A store that waited matters if two things happened before it became visible: its own thread went on to something
//! that sequential consistency orders after it (a load from memory, or a younger store becoming visible first), and
//! another thread touched its location. Without the second, the store could have become visible at once and nobody
//! would know. If no store meets both, those that meet the first are told.

use std::fmt::Write as _;

use weakspot_model::machine::Effect;
use weakspot_model::replay::Step;

use super::Execution;
use super::failure::list;
use super::lanes::{Delay, Lanes};
use crate::style::{Role, Style, wrap};

/// More sentences than this do not help anybody.
const MAX_SENTENCES: usize = 8;

/// More accesses than this in one sentence do not either.
const MAX_ACCESSES: usize = 3;

/// The sentences, or nothing if no store was late. Ends with a line break.
pub(super) fn explain(execution: &Execution<'_>, lanes: &Lanes, style: &Style) -> String {
    let late: Vec<Late<'_>> = lanes.delays.iter().filter_map(|delay| Late::new(execution, lanes, delay)).collect();
    let noticed = late.iter().any(|late| !late.missed.is_empty());
    let told: Vec<&Late<'_>> = late.iter().filter(|late| !noticed || !late.missed.is_empty()).collect();
    if told.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", style.paint(Role::Heading, "What was delayed:"));
    for late in told.iter().take(MAX_SENTENCES) {
        let bullet = late.delay.marker.as_deref().unwrap_or("·");
        let indent = bullet.chars().count() + 3;
        for (index, line) in wrap(&late.sentence(execution), style.width.saturating_sub(indent)).iter().enumerate() {
            let lead =
                if index == 0 { format!("  {} ", style.paint(Role::Delayed, bullet)) } else { " ".repeat(indent) };
            text.push_str(&lead);
            text.push_str(line);
            text.push('\n');
        }
    }
    if told.len() > MAX_SENTENCES {
        let _ = writeln!(text, "  … and {} more", told.len() - MAX_SENTENCES);
    }
    text
}

/// A store that was overtaken by its own thread.
struct Late<'a> {
    delay: &'a Delay,
    /// Own loads from memory while it waited, by step.
    loads: Vec<usize>,
    /// Own younger stores that became visible first, by the step that issued them.
    stores: Vec<usize>,
    /// What other threads did to its location meanwhile, by step.
    missed: Vec<usize>,
}

impl<'a> Late<'a> {
    fn new(execution: &Execution<'_>, lanes: &Lanes, delay: &'a Delay) -> Option<Self> {
        let steps = &execution.replay.steps;
        let end = delay.commit.unwrap_or(steps.len());
        let waiting = || (delay.store + 1..end).map(|index| (index, &steps[index]));
        let own = |step: &Step| step.action.thread() == delay.thread;
        let loads = waiting().filter(|(_, step)| own(step) && reads_memory(step)).map(|(index, _)| index).collect();
        let stores = waiting()
            .filter(|(_, step)| own(step) && matches!(step.effect, Some(Effect::Commit { .. })))
            .filter_map(|(_, step)| step.store)
            .filter(|&store| store > delay.store && lanes.of_store(store).is_some())
            .collect();
        let touches = |step: &Step| match step.effect {
            Some(Effect::Load { loc, forwarded: false, .. } | Effect::Rmw { loc, .. } | Effect::Commit { loc, .. }) => {
                loc == delay.loc
            }
            _ => false,
        };
        let missed = waiting().filter(|(_, step)| !own(step) && touches(step)).map(|(index, _)| index).collect();
        let late = Self { delay, loads, stores, missed };
        (!late.loads.is_empty() || !late.stores.is_empty()).then_some(late)
    }

    fn sentence(&self, execution: &Execution<'_>) -> String {
        let name = execution.thread_name(self.delay.thread);
        let store = place(execution, self.delay.store);
        let mut parts = Vec::new();
        if !self.loads.is_empty() {
            parts.push(format!("{name} read {}", accesses(execution, &self.loads)));
        }
        if !self.stores.is_empty() {
            parts.push(format!("its younger {} became visible", accesses(execution, &self.stores)));
        }
        let mut sentence = format!("{store} of {name} stayed in its buffer while {}", parts.join(", and while "));
        if !self.missed.is_empty() {
            let missed = self.missed.iter().take(MAX_ACCESSES).map(|&index| self.describe_missed(execution, index));
            let missed: Vec<String> = missed.collect();
            sentence.push_str("; meanwhile ");
            sentence.push_str(&list(&missed.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        sentence
    }

    fn describe_missed(&self, execution: &Execution<'_>, index: usize) -> String {
        let step = &execution.replay.steps[index];
        let name = execution.thread_name(step.action.thread());
        let loc = execution.location_name(self.delay.loc);
        let line = execution.site(step.site).position.line;
        match step.effect {
            Some(Effect::Load { value, .. }) => format!("{name} read {loc}={value} (line {line})"),
            Some(Effect::Rmw { read, .. }) => format!("{name} found {loc}={read} (line {line})"),
            _ => format!("{name}'s own store to {loc} became visible (line {line})"),
        }
    }
}

fn reads_memory(step: &Step) -> bool {
    matches!(step.effect, Some(Effect::Load { forwarded: false, .. } | Effect::Rmw { .. }))
}

/// `` `x = 1` (line 4) `` of a step.
fn place(execution: &Execution<'_>, step: usize) -> String {
    let site = execution.replay.steps[step].site;
    format!("`{}` (line {})", execution.source_text(site), execution.site(site).position.line)
}

/// `` x=0 (`r = x`, line 5) `` for several loads or stores, the same words only once.
fn accesses(execution: &Execution<'_>, steps: &[usize]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for &step in steps {
        let Step { site, effect, .. } = execution.replay.steps[step];
        let (loc, value) = match effect {
            Some(Effect::Load { loc, value, .. } | Effect::Store { loc, value, .. }) => (loc, value),
            Some(Effect::Rmw { loc, read, .. }) => (loc, read),
            _ => continue,
        };
        let (name, source) = (execution.location_name(loc), execution.source_text(site));
        let text = format!("{name}={value} (`{source}`, line {})", execution.site(site).position.line);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let more = texts.len().saturating_sub(MAX_ACCESSES);
    texts.truncate(MAX_ACCESSES);
    if more > 0 {
        texts.push(format!("{more} more"));
    }
    list(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}
