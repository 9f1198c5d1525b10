//! `weakspot check`: are all SC executions correct, is the program store-buffer safe, and if not, does it matter?

use std::fmt::Write as _;

use weakspot_check::{CheckOptions, CheckReport, Impact, Verdict, Violation};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::replay::{Replay, Witness};
use weakspot_model::task::Limit;
use weakspot_report::json;
use weakspot_report::style::Role;
use weakspot_report::timeline::Execution;
use weakspot_report::violation;

use super::{dump_ir, limits};
use crate::args::{CheckArgs, CheckEngine};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;
use crate::progress::SearchProgress;

/// Checks store-buffer safety.
pub fn run(args: &CheckArgs, output: &Output) -> Result<Exit, Failure> {
    refuse_unfitting_options(args)?;
    let program = input::program(&args.file, output)?;
    if args.dump_ir {
        return dump_ir("check", &program, output);
    }
    let options = CheckOptions {
        model: args.model.into(),
        all: args.all,
        jobs: limits::jobs(args.limits.jobs),
        allow_deadlock: args.allow_deadlock,
        spurious_wakeups: args.spurious_wakeups,
    };
    let budget = limits::budget(&args.limits)?;
    let progress = SearchProgress::new(output, &program.source.name);
    let report = weakspot_check::check(&program, &options, &budget, &progress);
    progress.finish();
    let report = report.map_err(|error| Failure::Internal(error.to_string()))?;
    let answer = Answer::new(&program, &options, &report, output.seconds())?;
    answer.print(output)?;
    Ok(answer.exit())
}

/// Options of the stateless engine do not silently do nothing.
fn refuse_unfitting_options(args: &CheckArgs) -> Result<(), Failure> {
    let stateless_only = [
        (args.engine == CheckEngine::Stateless, "`--engine stateless` is"),
        (args.max_preemptions.is_some(), "`--max-preemptions` is"),
        (args.monitor.is_some(), "`--monitor` is"),
    ];
    match stateless_only.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => Err(Failure::Usage {
            message: format!("{option} not there yet"),
            help: "without it, `check` uses the attack engine, which is exact for programs with loops and without"
                .to_owned(),
        }),
    }
}

/// The answer, with every execution in it replayed.
struct Answer<'a> {
    program: &'a Program,
    model: MemoryModel,
    report: &'a CheckReport,
    /// The execution that breaks the specification: under SC for `error`, under the model for `unsafe`.
    failing: Option<Replay>,
    seconds: f64,
}

impl<'a> Answer<'a> {
    fn new(
        program: &'a Program,
        options: &CheckOptions,
        report: &'a CheckReport,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let replay = |model: MemoryModel, witness: &Witness| {
            let machine = Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, model) };
            let replay = witness.replay(&machine);
            replay.map_err(|error| Failure::Internal(format!("the counterexample does not replay: {error}")))
        };
        let failing = match &report.verdict {
            Verdict::Error(witness) => Some(replay(MemoryModel::Sc, witness)?),
            Verdict::Unsafe(Impact::Harmful(witness)) => Some(replay(options.model, witness)?),
            _ => None,
        };
        Ok(Self { program, model: options.model, report, failing, seconds })
    }

    fn verdict(&self) -> &'static str {
        match self.report.verdict {
            Verdict::Safe => "safe",
            Verdict::Unsafe(_) => "unsafe",
            Verdict::Error(_) => "error",
            Verdict::Bounded(_) => "bounded",
        }
    }

    fn impact(&self) -> Option<&'static str> {
        match &self.report.verdict {
            Verdict::Unsafe(Impact::Harmful(_)) => Some("harmful"),
            Verdict::Unsafe(Impact::Benign) => Some("benign"),
            Verdict::Unsafe(Impact::Unknown(_)) => Some("unknown"),
            _ => None,
        }
    }

    fn exit(&self) -> Exit {
        match self.report.verdict {
            Verdict::Safe => Exit::Good,
            Verdict::Unsafe(_) | Verdict::Error(_) => Exit::Problem,
            Verdict::Bounded(_) => Exit::NoAnswer,
        }
    }

    fn limit(&self) -> Option<Limit> {
        match self.report.verdict {
            Verdict::Bounded(limit) | Verdict::Unsafe(Impact::Unknown(limit)) => Some(limit),
            _ => None,
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
        text.push_str(&self.figures());
        for found in &self.report.violations {
            let _ = write!(text, "\n{}", self.drawn(found).render(&output.out));
        }
        text.push_str(&self.execution(output));
        output.result(&text)
    }

    /// One line with the verdict and what it means.
    fn headline(&self, output: &Output) -> String {
        let role = match self.exit() {
            Exit::Good => Role::Success,
            Exit::Problem => Role::Failure,
            _ => Role::Unknown,
        };
        let verdict = match self.impact() {
            Some(impact) => format!("{} ({impact})", self.verdict()),
            None => self.verdict().to_owned(),
        };
        let (verdict, file, model) = (output.out.paint(role, &verdict), &self.program.source.name, self.model.name());
        let meaning = match &self.report.verdict {
            Verdict::Safe if self.model == MemoryModel::Sc => "every SC execution is correct".to_owned(),
            Verdict::Safe => "every SC execution is correct, and store buffers add no other".to_owned(),
            Verdict::Unsafe(Impact::Harmful(witness)) => witness.problem.message.clone(),
            Verdict::Unsafe(Impact::Benign) => {
                "store buffers add executions, but all of them meet the specification".to_owned()
            }
            Verdict::Unsafe(Impact::Unknown(limit)) => {
                format!("store buffers add executions; whether they are harmful is open ({})", limits::reached(*limit))
            }
            Verdict::Error(witness) => format!("{} (already under sc)", witness.problem.message),
            Verdict::Bounded(limit) => limits::reached(*limit),
        };
        format!("{verdict}: {file} under {model}: {meaning}\n")
    }

    fn figures(&self) -> String {
        let (states, seconds) = (self.report.states, self.seconds);
        let plural = if states == 1 { "" } else { "s" };
        let mut text =
            format!("  attack engine: exact for unbounded loops and buffers; {states} state{plural}, {seconds:.2} s\n");
        if let Verdict::Bounded(limit) = self.report.verdict {
            let _ = writeln!(text, "  not everything was looked at: {}", limits::advice(limit));
        }
        text
    }

    /// The execution worth looking at: the one that breaks the specification, else one that no SC execution matches.
    fn execution(&self, output: &Output) -> String {
        let (title, replay) = match (&self.failing, self.report.violations.first()) {
            (Some(replay), _) if self.impact().is_some() => ("an execution that breaks the specification", replay),
            (Some(replay), _) => ("the SC execution", replay),
            (None, Some(found)) => ("an execution that no SC execution matches", &found.relaxed),
            (None, None) => return String::new(),
        };
        let title = output.out.paint(Role::Heading, title);
        let mut text = format!("\n{title}\n{}", Execution { program: self.program, replay }.render(&output.out));
        if let (true, Some(found)) = (output.verbose, self.report.violations.first()) {
            let title = output.out.paint(Role::Heading, "the SC execution it departs from");
            let borderline = Execution { program: self.program, replay: &found.borderline };
            let _ = write!(text, "\n{title}\n{}", borderline.render(&output.out));
        }
        text
    }

    fn drawn(&self, found: &Violation) -> violation::Violation<'a> {
        let place = |access: weakspot_check::Access| violation::Place { thread: access.thread, site: access.site };
        violation::Violation {
            program: self.program,
            store: place(found.store),
            passed: place(found.passed),
            access: place(found.access),
            cycle: found.cycle.iter().map(|step| (place(step.access), step.order)).collect(),
        }
    }

    fn object(&self) -> json::Check<'_> {
        let first = self.report.violations.first();
        let events = |replay: &Replay| json::trace(self.program, replay);
        json::Check {
            head: json::Head {
                command: "check",
                file: &self.program.source.name,
                model: Some(self.model.name()),
                verdict: self.verdict(),
                seconds: self.seconds,
            },
            engine: "attack",
            exhaustive: !matches!(self.report.verdict, Verdict::Bounded(_)),
            executions: 0,
            borderline: 0,
            states: self.report.states,
            violations: self.report.violations.iter().map(|found| self.json_violation(found)).collect(),
            impact: self.impact(),
            trace: match (&self.report.verdict, first) {
                (Verdict::Error(_), _) => self.failing.as_ref().map(events),
                (_, first) => first.map(|found| events(&found.borderline)),
            },
            witness: first.map(|found| events(&found.relaxed)),
            harm: self.impact().and(self.failing.as_ref()).map(events),
            error: self.failing.as_ref().and_then(|replay| json::Failure::of(self.program, replay)),
            limit: self.limit().map(limits::name),
        }
    }

    fn json_violation(&self, found: &Violation) -> json::Violation<'a> {
        let place = |access: weakspot_check::Access| json::Place::new(self.program, Some(access.thread), access.site);
        json::Violation {
            store: place(found.store),
            passed: place(found.passed),
            access: place(found.access),
            cycle: found.cycle.iter().map(|step| place(step.access)).collect(),
        }
    }
}
