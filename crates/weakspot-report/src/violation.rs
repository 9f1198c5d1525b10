//! Why a program is not store-buffer safe, drawn for people: the accesses in the source, the happens-before cycle step
//! by step, and the fence that breaks it.

use std::fmt::Write as _;

use weakspot_model::axioms::Order;
use weakspot_model::ids::{Site, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::source::{Severity, Span};

use crate::diagnostic::{Message, render_message};
use crate::style::{Role, Style};
use crate::timeline::place_text;

/// An event in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Whose.
    pub thread: ThreadId,
    /// Where.
    pub site: Site,
}

/// A store-buffer violation.
#[derive(Debug, Clone)]
pub struct Violation<'a> {
    /// The program.
    pub program: &'a Program,
    /// The store that is delayed.
    pub store: Place,
    /// The event of the same thread that it is delayed past, if it is known.
    pub passed: Option<Place>,
    /// The access of another thread that happens after `passed` and does not see the store.
    pub access: Place,
    /// The happens-before cycle: each event with the order to the next, the last one to the first. May be empty.
    pub cycle: Vec<(Place, Order)>,
}

impl Violation<'_> {
    /// Snippet, cycle and suggestion; ends with a line break.
    pub fn render(&self, style: &Style) -> String {
        let mut text = self.snippet(style);
        if !self.cycle.is_empty() {
            text.push('\n');
            text.push_str(&self.cycle_text(style));
        }
        text
    }

    fn snippet(&self, style: &Style) -> String {
        let (delayer, other) = (self.name(self.store), self.name(self.access));
        let title = format!("a store of `{delayer}` can still be invisible when `{delayer}` has gone on");
        let late = (self.store, format!("`{delayer}`: this store waits in the store buffer"));
        let early = self.passed.map(|place| (place, format!("`{delayer}`: while this already happens")));
        let blind = (self.access, format!("`{other}`: and this comes before the store is visible"));
        let marks = |places: &[(Place, String)]| {
            places.iter().map(|(place, words)| (self.span(*place), words.clone())).collect::<Vec<_>>()
        };
        let fence = if self.program.source.name.ends_with(".litmus") { "MFENCE" } else { "fence;" };
        let help = format!(
            "a `{fence}` after line {} makes `{delayer}` wait until the store is visible",
            self.line(self.store)
        );
        let message = Message {
            severity: Some(Severity::Warning),
            code: Some("store-buffer"),
            title: &title,
            primary: marks(&[late]),
            related: marks(&early.into_iter().chain([blind]).collect::<Vec<_>>()),
            help: Some(&help),
        };
        render_message(&self.program.source, &message, style)
    }

    fn cycle_text(&self, style: &Style) -> String {
        let mut text = style.paint(Role::Heading, "happens-before cycle").into_owned();
        text.push_str(" (no order of these events fits all of it, so no SC execution does this)\n");
        for (place, order) in &self.cycle {
            let (thread, line) = (self.name(*place), self.line(*place));
            let _ = writeln!(text, "  `{thread}` {line}: {}", place_text(self.program, place.site));
            let _ = writeln!(text, "      {} {}", style.paint(Role::Heading, "then"), explain(*order));
        }
        text.push_str("  … the first one again\n");
        text
    }

    fn name(&self, place: Place) -> &str {
        &self.program.threads[place.thread.index()].name
    }

    fn span(&self, place: Place) -> Span {
        self.program.sites[place.site.index()].span
    }

    fn line(&self, place: Place) -> u32 {
        self.program.sites[place.site.index()].position.line
    }
}

fn explain(order: Order) -> &'static str {
    match order {
        Order::ProgramOrder => "in program order (po)",
        Order::ReadsFrom => "read by (rf)",
        Order::Coherence => "overwritten by (co)",
        Order::FromRead => "what it read is overwritten by (fr)",
    }
}
