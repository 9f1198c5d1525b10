//! `weakspot verify`: does a program meet its specification under a memory model?

use std::fmt::Write as _;
use std::num::NonZeroUsize;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::replay::Replay;
use weakspot_model::task::Verdict;
use weakspot_report::json;
use weakspot_report::style::Role;
use weakspot_report::timeline::Execution;
use weakspot_verify::explicit::{self, ExplicitOptions, ExplicitReport};

use super::{dump_ir, limits};
use crate::args::{Engine, VerifyArgs};
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
    let options = explicit_options(args);
    let budget = limits::budget(&args.limits)?;
    let progress = SearchProgress::new(output, &program.source.name);
    let report = explicit::try_verify(&program, &options, &budget, &progress);
    progress.finish();
    let report = report.map_err(|error| Failure::Internal(error.to_string()))?;
    let answer = Answer::new(args, &options, &program, report, output.seconds())?;
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
        for (given, option) in [(args.domain.is_some(), "`--domain`"), (args.k.is_some(), "`-k`")] {
            if given {
                return Err(refuse(option, "abstract"));
            }
        }
    }
    if args.engine != Engine::Explicit {
        let explicit_only = [
            (args.buffer.is_some(), "`--buffer`"),
            (args.shortest, "`--shortest`"),
            (args.no_reduction, "`--no-reduction`"),
        ];
        if let Some((_, option)) = explicit_only.into_iter().find(|(given, _)| *given) {
            return Err(refuse(option, "explicit"));
        }
        return Err(Failure::Usage {
            message: format!("the {engine} engine is not there yet"),
            help: "`--engine explicit` verifies with buffers up to `--buffer N`".to_owned(),
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

/// What the engine found, checked by replay.
struct Answer<'a> {
    program: &'a Program,
    model: MemoryModel,
    engine: Engine,
    /// The bound on the stores one buffer may hold.
    buffer: usize,
    report: ExplicitReport,
    /// The replayed execution, if the specification is violated.
    replay: Option<Replay>,
    seconds: f64,
}

impl<'a> Answer<'a> {
    /// Replays the witness: an execution that the reference machine does not have is never shown.
    fn new(
        args: &VerifyArgs,
        options: &ExplicitOptions,
        program: &'a Program,
        report: ExplicitReport,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let model = options.model;
        let machine = Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, model) };
        let replay = match &report.verdict {
            Verdict::Violated(witness) => Some(
                witness
                    .replay(&machine)
                    .map_err(|error| Failure::Internal(format!("the counterexample does not replay: {error}")))?,
            ),
            Verdict::Verified | Verdict::Inconclusive(_) => None,
        };
        Ok(Self { program, model, engine: args.engine, buffer: options.buffer, report, replay, seconds })
    }

    fn verdict(&self) -> &'static str {
        match self.report.verdict {
            Verdict::Verified => "verified",
            Verdict::Violated(_) => "violated",
            Verdict::Inconclusive(_) => "inconclusive",
        }
    }

    fn exit(&self) -> Exit {
        match self.report.verdict {
            Verdict::Verified => Exit::Good,
            Verdict::Violated(_) => Exit::Problem,
            Verdict::Inconclusive(_) => Exit::NoAnswer,
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
        let role = match self.exit() {
            Exit::Good => Role::Success,
            Exit::Problem => Role::Failure,
            _ => Role::Unknown,
        };
        let verdict = output.out.paint(role, self.verdict());
        let mut text = format!("{verdict}: {} under {}", self.program.source.name, self.model.name());
        let _ = match &self.report.verdict {
            Verdict::Verified => writeln!(text),
            Verdict::Violated(witness) => writeln!(text, ": {}", witness.problem.message),
            Verdict::Inconclusive(limit) => writeln!(text, ": {}", limits::reached(*limit)),
        };
        text
    }

    /// What it took, and without an answer what to do.
    fn figures(&self, verbose: bool) -> String {
        let ExplicitReport { states, transitions, max_buffer, stored_bytes, .. } = self.report;
        let plural = if states == 1 { "" } else { "s" };
        let (engine, seconds) = (self.engine.name(), self.seconds);
        let mut text = format!("  {engine} engine, {states} state{plural}, {seconds:.2} s\n");
        if verbose {
            let (rate, mib) = (states as f64 / seconds.max(1e-6), stored_bytes as f64 / f64::from(1 << 20));
            let _ = writeln!(text, "  {transitions} transitions, {rate:.0} states/s, {mib:.1} MiB of tables");
            let _ = writeln!(text, "  most stores in a buffer: {max_buffer} (bound {})", self.buffer);
        }
        if let Verdict::Inconclusive(limit) = self.report.verdict {
            let _ = writeln!(text, "  not everything was looked at: {}", limits::advice(limit));
        }
        text
    }

    fn object(&self) -> json::Verify<'_> {
        let ExplicitReport { states, transitions, max_buffer, stored_bytes, .. } = self.report;
        json::Verify {
            head: json::Head {
                command: "verify",
                file: &self.program.source.name,
                model: Some(self.model.name()),
                verdict: self.verdict(),
                seconds: self.seconds,
            },
            engine: self.engine.name(),
            states,
            transitions,
            spurious_possible: false,
            buffer: (self.model != MemoryModel::Sc).then_some(self.buffer),
            max_buffer,
            memory_bytes: stored_bytes,
            limit: match self.report.verdict {
                Verdict::Inconclusive(limit) => Some(limits::name(limit)),
                _ => None,
            },
            error: self.replay.as_ref().and_then(|replay| json::Failure::of(self.program, replay)),
            trace: self.replay.as_ref().map(|replay| json::trace(self.program, replay)),
        }
    }
}
