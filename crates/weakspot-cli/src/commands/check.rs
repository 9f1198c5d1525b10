//! `weakspot check`: are all SC executions correct, is the program store-buffer safe, and if not, does it matter?

mod modes;
mod record;
mod schedules;
mod words;

use std::fmt::Write as _;

use weakspot_check::recorded::Ending;
use weakspot_check::recorded::recorder::{Recorded, Sink as _};
use weakspot_check::{
    CheckOptions, CheckReport, Engine, Impact, ReplayFailure, Sampling, Schedule, Verdict, Violation,
};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::replay::{Replay, Witness};
use weakspot_report::json;
use weakspot_report::style::Role;
use weakspot_report::timeline::Execution;
use weakspot_report::violation;

use super::{count, dump_ir, limits};
use crate::args::{CheckArgs, Monitor};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;
use crate::progress::SearchProgress;

/// Checks store-buffer safety.
pub fn run(args: &CheckArgs, output: &Output) -> Result<Exit, Failure> {
    modes::refuse_unfitting_options(args)?;
    let program = input::program(&args.file, output)?;
    if args.dump_ir {
        return dump_ir("check", &program, output);
    }
    let options = modes::options(args);
    let schedule = args.replay.as_deref().map(schedules::parse).transpose()?;
    let question = Question { args, program: &program, options: &options, schedule: schedule.as_ref() };
    let (report, recorded) = question.ask(output)?;
    let answer = Answer::new(args, &program, &options, &report, recorded, output.seconds())?;
    answer.print(output)?;
    Ok(answer.exit())
}

/// What the engines are asked.
struct Question<'a> {
    args: &'a CheckArgs,
    program: &'a Program,
    options: &'a CheckOptions,
    schedule: Option<&'a Schedule>,
}

impl Question<'_> {
    /// Asks the engines, and records what they explore if that is wanted. A record that cannot be written is a failure
    /// whatever the answer is.
    fn ask(&self, output: &Output) -> Result<(CheckReport, Option<Recorded>), Failure> {
        let Self { args, program, options, .. } = *self;
        let target = args.record.as_deref();
        let mut recording = target.map(|path| record::begin(args, path, program, options)).transpose()?;
        let budget = limits::budget(&args.limits)?;
        let progress = SearchProgress::new(output, &program.source.name, "executions");
        let report = match (self.schedule, &mut recording) {
            (Some(schedule), recording) => {
                if let Some(recording) = recording {
                    let _ = recording.execution(schedule.actions(), Ending::Unfinished);
                }
                weakspot_check::check_schedule(program, options, schedule, &budget, &progress)
            }
            (None, None) => {
                weakspot_check::check(program, options, &budget, &progress).map_err(ReplayFailure::Internal)
            }
            (None, Some(recording)) => weakspot_check::check_recorded(program, options, &budget, &progress, recording)
                .map_err(ReplayFailure::Internal),
        };
        progress.finish();
        let report = report.map_err(|error| match (&error, self.schedule) {
            (ReplayFailure::NotPossible(error), Some(schedule)) => schedules::refusal(program, args, schedule, error),
            _ => Failure::Internal(error.to_string()),
        })?;
        let recorded = match (target, recording) {
            (Some(path), Some(recording)) => Some(record::finish(path, recording)?),
            _ => None,
        };
        Ok((report, recorded))
    }
}

/// The answer, with every execution in it replayed.
struct Answer<'a> {
    args: &'a CheckArgs,
    program: &'a Program,
    model: MemoryModel,
    sampling: Option<Sampling>,
    report: &'a CheckReport,
    recorded: Option<Recorded>,
    /// The execution that breaks the specification: under SC for `error`, under the model for `unsafe`.
    failing: Option<Replay>,
    seconds: f64,
}

impl<'a> Answer<'a> {
    fn new(
        args: &'a CheckArgs,
        program: &'a Program,
        options: &CheckOptions,
        report: &'a CheckReport,
        recorded: Option<Recorded>,
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
        let CheckOptions { model, sampling, .. } = *options;
        Ok(Self { args, program, model, sampling, report, recorded, failing, seconds })
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
        match &self.report.verdict {
            Verdict::Bounded(bound) => Some(words::name(bound)),
            Verdict::Unsafe(Impact::Unknown(limit)) => Some(limits::name(*limit)),
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
            text.push_str(&self.replay_line(&found.schedule, output));
        }
        text.push_str(&self.execution(output));
        if let (Verdict::Error(_), Some(schedule)) = (&self.report.verdict, self.report.schedule()) {
            text.push_str(&self.replay_line(&schedule, output));
        }
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
            Verdict::Safe
                if self.args.monitor == Some(Monitor::SoberPublished) && self.report.engine == Engine::Stateless =>
            {
                "every SC execution is correct; SOBER's monitor finds nothing, but as published it misses some violations: \
                 leave out --monitor to be sure"
                    .to_owned()
            }
            Verdict::Safe => "every SC execution is correct, and store buffers add no other".to_owned(),
            Verdict::Unsafe(Impact::Harmful(witness)) => witness.problem.message.clone(),
            Verdict::Unsafe(Impact::Benign) => {
                "store buffers add executions, but all of them meet the specification".to_owned()
            }
            Verdict::Unsafe(Impact::Unknown(limit)) => {
                format!("store buffers add executions; whether they are harmful is open ({})", limits::reached(*limit))
            }
            Verdict::Error(witness) => format!("{} (already under sc)", witness.problem.message),
            Verdict::Bounded(bound) => words::reached(bound),
        };
        output.headline(self.exit(), &verdict, &format!("{file} under {model}: {meaning}"))
    }

    /// Which engine and why, and what it took.
    fn figures(&self) -> String {
        let CheckReport { states, executions, blocked, borderline, why, .. } = *self.report;
        let explored = count(executions, "SC execution");
        let mut text = match self.report.engine {
            Engine::Attack => {
                let extent =
                    if self.report.exhaustive { "unbounded and exact" } else { "not all states were looked at" };
                format!("  attack engine ({why}; {extent}): {states} states")
            }
            Engine::Stateless => format!("  stateless engine ({why}): {explored}"),
        };
        if self.report.engine == Engine::Attack && executions + blocked > 0 {
            let _ = write!(text, " after {explored}");
        }
        if blocked > 0 {
            let _ = write!(text, " and {blocked} blocked");
        }
        if borderline > 0 {
            let _ = write!(text, ", {borderline} borderline");
        }
        let _ = writeln!(text, ", {:.2} s", self.seconds);
        if let (Some(Recorded { executions, events }), Some(path)) = (self.recorded, &self.args.record) {
            let (executions, events) = (count(executions, "execution"), count(events, "event"));
            let _ = writeln!(text, "  recorded to `{}`: {executions}, {events}", path.display());
        }
        if let Verdict::Bounded(bound) = &self.report.verdict {
            let advice = words::advice(bound, self.args);
            let _ = writeln!(text, "  nothing found so far, but not everything was looked at: {advice}");
        }
        if self.may_have_missed_pairs() {
            text.push_str("  not everything was looked at: there may be more pairs of accesses than those below\n");
        }
        text
    }

    /// Were all pairs asked for, and perhaps not all found?
    fn may_have_missed_pairs(&self) -> bool {
        let asked = self.args.all && self.args.replay.is_none();
        asked && !self.report.exhaustive && matches!(self.report.verdict, Verdict::Unsafe(_))
    }

    /// How to see a finding again. The line is not folded, so that it can be pasted.
    fn replay_line(&self, schedule: &Schedule, output: &Output) -> String {
        let title = output.out.paint(Role::Heading, "replay:");
        format!("\n{title} {}\n", schedules::command(self.args, schedule))
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
            mode: (self.report.engine == Engine::Stateless).then(|| modes::name(self.args)),
            seed: self.sampling.map(Sampling::seed),
            depth: match self.sampling {
                Some(Sampling::Pct { depth, .. }) => Some(depth),
                _ => None,
            },
            recorded: self.recorded.zip(self.args.record.as_deref()).map(|(recorded, path)| json::Recorded {
                file: path.display().to_string(),
                format: record::format(self.args, path).name(),
                executions: recorded.executions,
                events: recorded.events,
            }),
            exhaustive: self.report.exhaustive,
            executions: self.report.executions,
            blocked: self.report.blocked,
            borderline: self.report.borderline,
            states: self.report.states,
            violations: self.report.violations.iter().map(|found| self.json_violation(found)).collect(),
            impact: self.impact(),
            schedule: self.report.schedule().map(|schedule| schedule.to_string()),
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
            schedule: found.schedule.to_string(),
        }
    }
}
