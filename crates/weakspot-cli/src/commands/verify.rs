//! `weakspot verify`: does a program meet its specification under a memory model?

mod abstractly;

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::problem::Problem;
use weakspot_model::replay::{Replay, Witness};
use weakspot_model::source::Diagnostic;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_report::json;
use weakspot_report::timeline::Execution;
use weakspot_verify::explicit::{self, ExplicitOptions, ExplicitReport};
use weakspot_verify::symbolic::{self, SymbolicError, SymbolicOptions};

use super::{dump_ir, limits};
use crate::args::{Domain, Engine, VerifyArgs};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;
use crate::progress::SearchProgress;

/// Verifies a program.
pub fn run(args: &VerifyArgs, output: &Output) -> Result<Exit, Failure> {
    refuse_unfitting_options(args)?;
    let program = input::program(&args.file, output)?;
    if args.dump_ir {
        return dump_ir("verify", &program, output);
    }
    let budget = limits::budget(&args.limits)?;
    let progress = SearchProgress::new(output, &program.source.name, "states");
    let found = match args.engine {
        Engine::Symbolic => symbolically(args, &program, &budget, &progress),
        Engine::Explicit => explicitly(args, &program, &budget, &progress),
        Engine::Abstract => abstractly::run(args, &program, &budget, &progress),
    };
    progress.finish();
    let answer = Answer::new(args, &program, found?, output.seconds())?;
    answer.print(output)?;
    Ok(answer.exit())
}

/// Options of one engine do not silently do nothing for another.
fn refuse_unfitting_options(args: &VerifyArgs) -> Result<(), Failure> {
    let engine = args.engine.name();
    let refuse = |option: &str, fits: &str| Failure::Usage {
        message: format!("{option} does not fit `--engine {engine}`"),
        help: format!("{option} belongs to `--engine {fits}`"),
    };
    if args.engine != Engine::Abstract {
        let abstract_only =
            [(args.domain.is_some(), "`--domain`"), (args.k.is_some(), "`-k`"), (!args.value.is_empty(), "`--value`")];
        if let Some((_, option)) = abstract_only.into_iter().find(|(given, _)| *given) {
            return Err(refuse(option, "abstract"));
        }
    }
    if args.engine != Engine::Explicit {
        let explicit_only = [
            (args.buffer.is_some(), "`--buffer`"),
            (args.shortest, "`--shortest`"),
            (args.no_reduction, "`--no-reduction`"),
            (args.limits.jobs.is_some(), "`--jobs`"),
        ];
        if let Some((_, option)) = explicit_only.into_iter().find(|(given, _)| *given) {
            return Err(refuse(option, "explicit"));
        }
    }
    if args.count_errors && args.engine != Engine::Symbolic {
        return Err(refuse("`--count-errors`", "symbolic"));
    }
    if args.domain == Some(Domain::Set) && args.k.is_some() {
        return Err(Failure::Usage {
            message: "`-k` does not fit `--domain set`".to_owned(),
            help: "the set of pending stores has no order; `-k` belongs to the domains fd and pd".to_owned(),
        });
    }
    Ok(())
}

fn explicit_options(args: &VerifyArgs) -> ExplicitOptions {
    let defaults = ExplicitOptions::new(args.model.into());
    ExplicitOptions {
        buffer: args.buffer.map_or(defaults.buffer, NonZeroUsize::get),
        jobs: limits::jobs(args.limits.jobs),
        shortest: args.shortest,
        reduce: !args.no_reduction,
        allow_deadlock: args.allow_deadlock,
        spurious_wakeups: args.spurious_wakeups,
        ..defaults
    }
}

/// The answer of any engine.
enum Conclusion {
    Verified,
    Violated(Witness),
    /// A limit was reached.
    Limited(Limit),
    /// The abstraction breaks the specification, and no real execution was found that does.
    Alarm(Problem),
}

impl From<Verdict> for Conclusion {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Verified => Self::Verified,
            Verdict::Violated(witness) => Self::Violated(witness),
            Verdict::Inconclusive(limit) => Self::Limited(limit),
        }
    }
}

/// What an engine found.
struct Found {
    conclusion: Conclusion,
    states: u64,
    transitions: u64,
    details: Details,
}

/// What only one of the engines can tell.
enum Details {
    Explicit {
        /// The most stores any buffer held.
        max_buffer: usize,
        /// How many it was allowed to hold.
        bound: usize,
        stored_bytes: u64,
    },
    Symbolic {
        visited: u64,
        max_depth: u64,
        accelerations: u64,
        /// Error states, if they were counted, and whether these are all.
        errors: Option<(u64, bool)>,
    },
    Abstract(abstractly::Details),
}

fn explicitly(
    args: &VerifyArgs,
    program: &Program,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Found, Failure> {
    let options = explicit_options(args);
    let report = explicit::try_verify(program, &options, budget, progress);
    let report = report.map_err(|error| Failure::Internal(error.to_string()))?;
    let ExplicitReport { verdict, states, transitions, max_buffer, stored_bytes } = report;
    let details = Details::Explicit { max_buffer, bound: options.buffer, stored_bytes };
    Ok(Found { conclusion: verdict.into(), states, transitions, details })
}

fn symbolically(
    args: &VerifyArgs,
    program: &Program,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Found, Failure> {
    let options = SymbolicOptions {
        allow_deadlock: args.allow_deadlock,
        spurious_wakeups: args.spurious_wakeups,
        all_errors: args.count_errors,
        ..SymbolicOptions::new(args.model.into())
    };
    let report = symbolic::verify(program, &options, budget, progress).map_err(|error| match error {
        SymbolicError::StoreStoreFence { site, .. } => {
            let span = program.sites[site.index()].span;
            let refusal = Diagnostic::error("unsupported", error.to_string(), span)
                .label("a store may be pending here")
                .help("`--engine explicit` knows this fence; under tso it has no effect");
            Failure::Source(Arc::clone(&program.source), vec![refusal])
        }
        error => Failure::Internal(error.to_string()),
    })?;
    let details = Details::Symbolic {
        visited: report.states_visited,
        max_depth: report.max_depth,
        accelerations: report.accelerations,
        errors: args.count_errors.then_some((report.errors, report.errors_are_all)),
    };
    let (states, transitions) = (report.states_stored, report.transitions);
    Ok(Found { conclusion: report.verdict.into(), states, transitions, details })
}

/// What the engine found, checked by replay.
struct Answer<'a> {
    program: &'a Program,
    model: MemoryModel,
    engine: Engine,
    found: Found,
    /// The replayed execution, if the specification is violated.
    replay: Option<Replay>,
    seconds: f64,
}

impl<'a> Answer<'a> {
    /// Replays the witness: an execution that the reference machine does not have is never shown.
    fn new(args: &VerifyArgs, program: &'a Program, found: Found, seconds: f64) -> Result<Self, Failure> {
        let model = args.model.into();
        let machine = Machine { spurious_wakeups: args.spurious_wakeups, ..Machine::new(program, model) };
        let replay = match &found.conclusion {
            Conclusion::Violated(witness) => Some(
                witness
                    .replay(&machine)
                    .map_err(|error| Failure::Internal(format!("the counterexample does not replay: {error}")))?,
            ),
            Conclusion::Verified | Conclusion::Limited(_) | Conclusion::Alarm(_) => None,
        };
        Ok(Self { program, model, engine: args.engine, found, replay, seconds })
    }

    fn verdict(&self) -> &'static str {
        match self.found.conclusion {
            Conclusion::Verified => "verified",
            Conclusion::Violated(_) => "violated",
            Conclusion::Limited(_) | Conclusion::Alarm(_) => "inconclusive",
        }
    }

    fn exit(&self) -> Exit {
        match self.found.conclusion {
            Conclusion::Verified => Exit::Good,
            Conclusion::Violated(_) => Exit::Problem,
            Conclusion::Limited(_) | Conclusion::Alarm(_) => Exit::NoAnswer,
        }
    }

    fn print(&self, output: &Output) -> Result<(), Failure> {
        if output.json {
            return output.object(&self.object());
        }
        let mut text = self.headline(output);
        if output.quiet {
            return output.result(&text);
        }
        text.push_str(&self.figures(output.verbose));
        if let Some(replay) = &self.replay {
            text.push('\n');
            text.push_str(&Execution { program: self.program, replay }.render(&output.out));
        }
        output.result(&text)
    }

    /// One line with the verdict.
    fn headline(&self, output: &Output) -> String {
        let meaning = match &self.found.conclusion {
            Conclusion::Verified => String::new(),
            Conclusion::Violated(witness) => format!(": {}", witness.problem.message),
            Conclusion::Limited(limit) => format!(": {}", limits::reached(*limit)),
            Conclusion::Alarm(problem) => abstractly::alarm(problem),
        };
        let (file, model) = (&self.program.source.name, self.model.name());
        output.headline(self.exit(), self.verdict(), &format!("{file} under {model}{meaning}"))
    }

    /// What it took, and without an answer what to do.
    fn figures(&self, verbose: bool) -> String {
        let Found { states, transitions, .. } = self.found;
        let plural = if states == 1 { "" } else { "s" };
        let (engine, seconds) = (self.engine.name(), self.seconds);
        let which = match &self.found.details {
            Details::Abstract(details) => details.to_string(),
            _ => String::new(),
        };
        let mut text = format!("  {engine} engine{which}, {states} state{plural}, {seconds:.2} s\n");
        if let Details::Symbolic { errors: Some((errors, all)), .. } = self.found.details {
            let (at_least, plural) = (if all { "" } else { "at least " }, if errors == 1 { "" } else { "s" });
            let _ = writeln!(text, "  {at_least}{errors} error state{plural}");
        }
        if verbose {
            let rate = states as f64 / seconds.max(1e-6);
            let _ = writeln!(text, "  {transitions} transitions, {rate:.0} states/s");
            let _ = match self.found.details {
                Details::Explicit { max_buffer, bound, stored_bytes } => {
                    let mib = stored_bytes as f64 / f64::from(1 << 20);
                    writeln!(text, "  {mib:.1} MiB of tables, most stores in a buffer: {max_buffer} (bound {bound})")
                }
                Details::Symbolic { visited, max_depth, accelerations, .. } => {
                    writeln!(text, "  {visited} states visited, depth {max_depth}, {accelerations} cycles accelerated")
                }
                Details::Abstract(_) => Ok(()),
            };
        }
        match &self.found.conclusion {
            Conclusion::Limited(limit) => {
                let _ = writeln!(text, "  not everything was looked at: {}", limits::advice(*limit));
            }
            Conclusion::Alarm(problem) => text.push_str(&self.alarm(problem)),
            Conclusion::Verified => {
                if let Details::Abstract(details) = &self.found.details {
                    text.push_str(details.reservation());
                }
            }
            Conclusion::Violated(_) => {}
        }
        text
    }

    /// What to make of an abstract violation.
    fn alarm(&self, problem: &Problem) -> String {
        let Details::Abstract(details) = &self.found.details else { return String::new() };
        details.advice(self.program, problem)
    }

    fn object(&self) -> json::Verify<'_> {
        let Found { states, transitions, ref details, .. } = self.found;
        let (mut explicit, mut symbolic, mut abstraction) = (None, None, None);
        match *details {
            Details::Explicit { max_buffer, bound, stored_bytes } => explicit = Some((max_buffer, bound, stored_bytes)),
            Details::Symbolic { visited, max_depth, errors, .. } => symbolic = Some((visited, max_depth, errors)),
            Details::Abstract(ref details) => abstraction = Some(details),
        }
        json::Verify {
            head: json::Head {
                command: "verify",
                file: &self.program.source.name,
                model: Some(self.model.name()),
                verdict: self.verdict(),
                seconds: self.seconds,
            },
            engine: self.engine.name(),
            domain: abstraction.map(|details| details.domain.name()),
            k: abstraction.and_then(abstractly::Details::k),
            states,
            transitions,
            spurious_possible: matches!(self.found.conclusion, Conclusion::Alarm(_)),
            errors: symbolic.and_then(|(_, _, errors)| errors).map(|(errors, _)| errors),
            errors_are_all: symbolic.and_then(|(_, _, errors)| errors).map(|(_, all)| all),
            visited: symbolic.map(|(visited, ..)| visited),
            depth: symbolic.map(|(_, depth, _)| depth),
            buffer: explicit.filter(|_| self.model != MemoryModel::Sc).map(|(_, bound, _)| bound),
            max_buffer: explicit.map(|(max_buffer, ..)| max_buffer),
            memory_bytes: explicit.map(|(.., bytes)| bytes),
            limit: match self.found.conclusion {
                Conclusion::Limited(limit) => Some(limits::name(limit)),
                _ => None,
            },
            error: self.replay.as_ref().and_then(|replay| json::Failure::of(self.program, replay)),
            alarm: match &self.found.conclusion {
                Conclusion::Alarm(problem) => Some(json::Failure::possible(self.program, problem)),
                _ => None,
            },
            trace: self.replay.as_ref().map(|replay| json::trace(self.program, replay)),
        }
    }
}
