//! `weakspot check`: are all SC executions correct, is the program store-buffer safe, and if not, does it matter?

use std::fmt::Write as _;

use weakspot_check::{Bound, CheckOptions, CheckReport, Engine, Impact, MonitorKind, Verdict, Violation};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::replay::{Replay, Witness};
use weakspot_report::json;
use weakspot_report::style::Role;
use weakspot_report::timeline::Execution;
use weakspot_report::violation;

use super::{dump_ir, limits};
use crate::args::{CheckArgs, CheckEngine, Model, Monitor};
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
    let options = options(args);
    let budget = limits::budget(&args.limits)?;
    let progress = SearchProgress::new(output, &program.source.name);
    let report = weakspot_check::check(&program, &options, &budget, &progress);
    progress.finish();
    let report = report.map_err(|error| Failure::Internal(error.to_string()))?;
    let answer = Answer::new(&program, &options, &report, output.seconds())?;
    answer.print(output)?;
    Ok(answer.exit())
}

/// Options do not silently do nothing.
fn refuse_unfitting_options(args: &CheckArgs) -> Result<(), Failure> {
    let stateless_only = [
        (args.max_preemptions.is_some(), "`--max-preemptions`"),
        (args.monitor.is_some(), "`--monitor`"),
        (args.unroll.is_some(), "`--unroll`"),
    ];
    let refuse = |message: String, help: &str| Err(Failure::Usage { message, help: help.to_owned() });
    if let (CheckEngine::Attack, Some((_, option))) =
        (args.engine, stateless_only.into_iter().find(|(given, _)| *given))
    {
        let message = format!("{option} does not fit `--engine attack`");
        return refuse(message, "it belongs to `--engine stateless`; the attack engine needs no bounds");
    }
    let is_stateless = args.engine == CheckEngine::Stateless || stateless_only.iter().any(|(given, _)| *given);
    if args.spurious_wakeups && is_stateless {
        let message = "`--spurious-wakeups` does not fit the stateless engine".to_owned();
        return refuse(message, "leave the engine to `--engine auto`");
    }
    if args.model == Model::Pso && matches!(args.monitor, Some(Monitor::Sober | Monitor::SoberPublished)) {
        let message = "the SOBER monitors know TSO only".to_owned();
        return refuse(message, "`--monitor operational` watches for PSO");
    }
    Ok(())
}

fn options(args: &CheckArgs) -> CheckOptions {
    let model: MemoryModel = args.model.into();
    CheckOptions {
        model,
        engine: match args.engine {
            CheckEngine::Auto => None,
            CheckEngine::Stateless => Some(Engine::Stateless),
            CheckEngine::Attack => Some(Engine::Attack),
        },
        monitor: args.monitor.map(|monitor| match monitor {
            Monitor::Sober => MonitorKind::Sober,
            Monitor::SoberPublished => MonitorKind::SoberPublished,
            Monitor::Operational => MonitorKind::Operational(model),
        }),
        max_preemptions: args.max_preemptions,
        unroll: args.unroll,
        all: args.all,
        jobs: limits::jobs(args.limits.jobs),
        allow_deadlock: args.allow_deadlock,
        spurious_wakeups: args.spurious_wakeups,
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

    /// The name of what stood in the way of a better answer.
    fn limit(&self) -> Option<&'static str> {
        match self.report.verdict {
            Verdict::Bounded(bound) => Some(bound_name(bound)),
            Verdict::Unsafe(Impact::Unknown(limit)) => Some(limits::name(limit)),
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
        let verdict = match self.impact() {
            Some(impact) => format!("{} ({impact})", self.verdict()),
            None => self.verdict().to_owned(),
        };
        let (file, model) = (&self.program.source.name, self.model.name());
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
            Verdict::Bounded(bound) => reached(*bound),
        };
        output.headline(self.exit(), &verdict, &format!("{file} under {model}: {meaning}"))
    }

    /// Which engine and why, and what it took.
    fn figures(&self) -> String {
        let CheckReport { states, executions, blocked, borderline, why, .. } = *self.report;
        let mut text = match self.report.engine {
            Engine::Attack => {
                format!("  attack engine ({why}; unbounded and exact): {states} states")
            }
            Engine::Stateless => format!("  stateless engine ({why}): {executions} SC executions"),
        };
        if blocked > 0 {
            let _ = write!(text, " and {blocked} blocked");
        }
        if borderline > 0 {
            let _ = write!(text, ", {borderline} borderline");
        }
        let _ = writeln!(text, ", {:.2} s", self.seconds);
        if let Verdict::Bounded(bound) = self.report.verdict {
            let _ = writeln!(text, "  nothing found so far, but not everything was looked at: {}", advice(bound));
        }
        text
    }

    /// The execution worth looking at: the one that breaks the specification, else one that no SC execution matches.
    fn execution(&self, output: &Output) -> String {
        let (title, replay) = match (&self.failing, self.report.violations.first()) {
            (Some(replay), _) if self.impact().is_some() => ("an execution that breaks the specification", replay),
            (Some(replay), _) => ("the SC execution", replay),
            (None, Some(Violation { relaxed: Some(replay), .. })) => {
                ("an execution that no SC execution matches", replay)
            }
            (None, Some(found)) => ("the SC execution that a store buffer turns into another", &found.borderline),
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
            passed: found.passed.map(place),
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
            engine: match self.report.engine {
                Engine::Attack => "attack",
                Engine::Stateless => "stateless",
            },
            exhaustive: self.report.exhaustive,
            executions: self.report.executions,
            blocked: self.report.blocked,
            borderline: self.report.borderline,
            states: self.report.states,
            violations: self.report.violations.iter().map(|found| self.json_violation(found)).collect(),
            impact: self.impact(),
            trace: match (&self.report.verdict, first) {
                (Verdict::Error(_), _) => self.failing.as_ref().map(events),
                (_, first) => first.map(|found| events(&found.borderline)),
            },
            witness: first.and_then(|found| found.relaxed.as_ref()).map(events),
            harm: self.impact().and(self.failing.as_ref()).map(events),
            error: self.failing.as_ref().and_then(|replay| json::Failure::of(self.program, replay)),
            limit: self.limit(),
        }
    }

    fn json_violation(&self, found: &Violation) -> json::Violation<'a> {
        let place = |access: weakspot_check::Access| json::Place::new(self.program, Some(access.thread), access.site);
        json::Violation {
            store: place(found.store),
            passed: found.passed.map(place),
            access: place(found.access),
            cycle: found.cycle.iter().map(|step| place(step.access)).collect(),
        }
    }
}

fn bound_name(bound: Bound) -> &'static str {
    match bound {
        Bound::Limit(limit) => limits::name(limit),
        Bound::Preemptions(_) => "preemptions",
        Bound::Unroll(_) => "unroll",
        Bound::Endless => "endless",
        Bound::NothingEnds => "nothing-ends",
    }
}

fn reached(bound: Bound) -> String {
    match bound {
        Bound::Limit(limit) => limits::reached(limit),
        Bound::Preemptions(most) => format!("nothing found with at most {most} preemptions"),
        Bound::Unroll(rounds) => format!("nothing found with at most {rounds} rounds of each loop"),
        Bound::Endless => "the program has executions without end, and there is no bound on them".to_owned(),
        Bound::NothingEnds => "no execution ran to its end".to_owned(),
    }
}

fn advice(bound: Bound) -> &'static str {
    match bound {
        Bound::Limit(limit) => limits::advice(limit),
        Bound::Preemptions(_) => "raise --max-preemptions, or leave it out to explore every execution",
        Bound::Unroll(_) => "raise --unroll, or let the attack engine decide: --engine attack",
        Bound::Endless => "add --unroll N or --max-preemptions N, or use --engine attack",
        Bound::NothingEnds => "look at the waits and assumptions of the program",
    }
}
