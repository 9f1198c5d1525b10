//! `weakspot verify --engine abstract`: its options, and what its answers are called.

use std::fmt;
use std::fmt::Write as _;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::problem::Problem;
use weakspot_model::task::{Budget, Progress};
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractVerdict, Domain, MOST_K};

use super::{Conclusion, Found};
use crate::args::{KeptInOrder, VerifyArgs};
use crate::commands::values::{self, value_domains};
use crate::exit::Failure;

/// What only this engine can tell.
pub(super) struct Details {
    pub(super) domain: Domain,
    /// The last k.
    last_k: u32,
    /// k has climbed by itself.
    climbed: bool,
    /// Some variable has abstract values.
    values: bool,
    model: MemoryModel,
}

pub(super) fn run(
    args: &VerifyArgs,
    program: &Program,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Found, Failure> {
    let domain = args.domain.map_or(Domain::Fd, Domain::from);
    let options = AbstractOptions {
        domain,
        values: value_domains(program, &args.value)?,
        allow_deadlock: args.allow_deadlock,
        spurious_wakeups: args.spurious_wakeups,
        ..AbstractOptions::new(args.model.into())
    };
    let (report, climbed) = match args.k {
        Some(KeptInOrder::Fixed(k)) => {
            (abstraction::verify(program, &AbstractOptions { k, ..options.clone() }, budget, progress), false)
        }
        None | Some(KeptInOrder::Auto) => (abstraction::climb(program, &options, budget, progress), true),
    };
    let report = report.map_err(|error| Failure::Internal(error.to_string()))?;
    let conclusion = match report.verdict {
        AbstractVerdict::Verified => Conclusion::Verified,
        AbstractVerdict::Violated(witness) => Conclusion::Violated(witness),
        AbstractVerdict::Alarm(problem) => Conclusion::Alarm(problem),
        AbstractVerdict::Inconclusive(limit) => Conclusion::Limited(limit),
    };
    let values = options.values.iter().any(Option::is_some);
    let details = Details { domain, last_k: report.k, climbed, values, model: options.model };
    let (states, transitions) = (report.states, report.transitions);
    Ok(Found { conclusion, states, transitions, details: super::Details::Abstract(details) })
}

impl Details {
    /// The last k, where the domain and the model have one.
    pub(super) fn k(&self) -> Option<u32> {
        (self.domain != Domain::Set).then_some(self.last_k)
    }

    /// What a proof leaves out.
    pub(super) fn reservation(&self) -> &'static str {
        if self.values { values::RESERVATION } else { "" }
    }

    /// What to make of an abstract violation.
    pub(super) fn advice(&self, program: &Program, problem: &Problem) -> String {
        let mut text = String::new();
        if let Some(site) = problem.site {
            let at = program.sites[site.index()].position;
            let _ = writeln!(text, "  at {}:{}:{}", program.source.name, at.line, at.column);
        }
        text.push_str("  the abstraction allows it, but no execution was found that does it\n");
        let advice = match (self.domain, self.climbed) {
            _ if self.model == MemoryModel::Sc => "give fewer variables a `--value` domain, or another one",
            (Domain::Set, _) => "`--domain fd` keeps more: the latest store, and with `-k N` the order of the oldest",
            (_, false) => "raise `-k`, or let `--k auto` climb",
            (_, true) if self.last_k < MOST_K && self.values => {
                "a larger `-k` will not help: give fewer variables a `--value` domain, or another one"
            }
            (Domain::Pd, true) => "`--domain fd` is more precise, `--engine symbolic` exact",
            (_, true) => "`--engine symbolic` is exact, `--engine explicit` finds violations",
        };
        let _ = writeln!(text, "  {advice}");
        text
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.k() {
            Some(k) => write!(f, " ({}, k = {k})", self.domain.name()),
            None => write!(f, " ({})", self.domain.name()),
        }
    }
}

/// The headline's second half for an abstract violation.
pub(super) fn alarm(problem: &Problem) -> String {
    format!(": possible violation: {}", problem.message)
}
