//! `weakspot fence`: the fewest fences that make a program correct, or store-buffer safe.

mod write;

use std::fmt::Write as _;
use std::path::Path;

use weakspot_fence::{FenceOptions, FenceReport, FenceVerdict, PlacedFence, Placement, PointPlace};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::replay::Replay;
use weakspot_report::diff;
use weakspot_report::json;
use weakspot_report::style::{Role, Style, wrap};
use weakspot_report::timeline::Execution;

use super::limits;
use crate::args::{FenceArgs, Goal, Strategy};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;
use crate::progress::SearchProgress;

/// More alternatives than this are not printed for people.
const SHOWN_ALTERNATIVES: usize = 20;

/// Looks for fences.
pub fn run(args: &FenceArgs, output: &Output) -> Result<Exit, Failure> {
    refuse_unfitting_options(args)?;
    let program = input::program(&args.file, output)?;
    let options = fence_options(args);
    let budget = limits::budget(&args.limits)?;
    let progress = SearchProgress::new(output, &program.source.name);
    let report = weakspot_fence::infer(&program.source, &options, &budget, &progress);
    let written = report.map(|report| {
        let is_found = matches!(report.verdict, FenceVerdict::Fenced | FenceVerdict::NoneNeeded);
        match (&args.output, &report.placement) {
            (Some(path), Some(placement)) if is_found => {
                let confirm = |source: &_| weakspot_fence::confirm(source, &options, &budget, &progress);
                (write::replace(path, &placement.text, confirm), report)
            }
            _ => (Ok(()), report),
        }
    });
    progress.finish();
    let (written, report) = written.map_err(|error| Failure::Internal(error.to_string()))?;
    written?;
    let answer = Answer::new(args, &program, &options, &report, output.seconds())?;
    answer.print(output)?;
    Ok(answer.exit())
}

fn refuse_unfitting_options(args: &FenceArgs) -> Result<(), Failure> {
    let refuse = |message: String, help: &str| Err(Failure::Usage { message, help: help.to_owned() });
    if args.strategy == Strategy::Avoid {
        let help = "`--strategy guided` finds a minimum placement, too, and is the default";
        return refuse("the strategy `avoid` is not there yet".to_owned(), help);
    }
    if input::is_litmus(&args.file) {
        let message = format!("`{}` is a litmus test; fences are inserted into .weak programs", args.file.display());
        return refuse(message, "write the test as a .weak program, with the condition as `final { assert(…); }`");
    }
    if args.output.as_deref() == Some(Path::new("-")) {
        return refuse("`--output -` names no file".to_owned(), "standard output shows the change; name a file");
    }
    Ok(())
}

fn fence_options(args: &FenceArgs) -> FenceOptions {
    let goal = match args.goal {
        Goal::Spec => weakspot_fence::Goal::Spec,
        Goal::Robust => weakspot_fence::Goal::Robust,
    };
    FenceOptions {
        alternatives: args.alternatives,
        fine: args.fine,
        weights: args.weights,
        minimise: args.minimise,
        jobs: limits::jobs(args.limits.jobs),
        allow_deadlock: args.allow_deadlock,
        spurious_wakeups: args.spurious_wakeups,
        ..FenceOptions::new(args.model.into(), goal)
    }
}

/// The answer, with the execution in it replayed.
struct Answer<'a> {
    args: &'a FenceArgs,
    program: &'a Program,
    options: &'a FenceOptions,
    report: &'a FenceReport,
    /// The SC execution that no fence prevents.
    failing: Option<Replay>,
    seconds: f64,
}

impl<'a> Answer<'a> {
    fn new(
        args: &'a FenceArgs,
        program: &'a Program,
        options: &'a FenceOptions,
        report: &'a FenceReport,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let machine = Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, MemoryModel::Sc) };
        let failing = match &report.verdict {
            FenceVerdict::Impossible(Some(witness)) => Some(
                witness
                    .replay(&machine)
                    .map_err(|error| Failure::Internal(format!("the counterexample does not replay: {error}")))?,
            ),
            _ => None,
        };
        Ok(Self { args, program, options, report, failing, seconds })
    }

    fn exit(&self) -> Exit {
        match self.report.verdict {
            FenceVerdict::NoneNeeded | FenceVerdict::Fenced => Exit::Good,
            FenceVerdict::Impossible(_) => Exit::NoPlacement,
            FenceVerdict::Inconclusive(_) => Exit::NoAnswer,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.report.verdict {
            FenceVerdict::NoneNeeded => "none-needed",
            FenceVerdict::Fenced => "fenced",
            FenceVerdict::Impossible(_) => "impossible",
            FenceVerdict::Inconclusive(_) => "inconclusive",
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
        if let Some(placement) = &self.report.placement {
            text.push_str(&self.change(placement, output));
            text.push_str(&self.alternatives());
        }
        if let Some(replay) = &self.failing {
            let title = output.out.paint(Role::Heading, "the SC execution");
            let execution = Execution { program: self.program, replay };
            let _ = write!(text, "\n{title}\n{}", execution.render(&output.out));
        }
        output.result(&text)
    }

    /// One line with the verdict and what it means.
    fn headline(&self, output: &Output) -> String {
        let meaning = match (&self.report.verdict, &self.report.placement) {
            (FenceVerdict::Impossible(Some(witness)), _) => {
                format!("{} (already under sc, where fences change nothing)", witness.problem.message)
            }
            (FenceVerdict::Impossible(None), _) => "no placement of fences helps".to_owned(),
            (FenceVerdict::Inconclusive(limit), _) => limits::reached(*limit),
            (_, Some(placement)) => self.found(placement),
            (_, None) => self.goal().to_owned(),
        };
        let (file, model) = (&self.program.source.name, self.options.model.name());
        output.headline(self.exit(), self.verdict(), &format!("{file} under {model}: {meaning}"))
    }

    /// What the program does with the placement.
    fn goal(&self) -> &'static str {
        match self.options.goal {
            weakspot_fence::Goal::Spec => "it meets its specification",
            weakspot_fence::Goal::Robust => "it is store-buffer safe",
        }
    }

    fn found(&self, placement: &Placement) -> String {
        let mut text = match placement.fences.len() {
            0 if placement.removed.is_empty() => format!("{} as it is", self.goal()),
            0 => self.goal().to_owned(),
            count => format!("with {} {}", fences(count), self.goal()),
        };
        if !placement.removed.is_empty() {
            let _ = write!(text, " without {} of its own", fences(placement.removed.len()));
        }
        let nothing = placement.cost == 0;
        match (self.report.minimal, self.options.weights) {
            (true, _) if nothing => {}
            (true, false) => text.push_str("; no placement has fewer"),
            (true, true) => {
                let _ = write!(text, "; no placement weighs less than {}", placement.cost);
            }
            (false, _) => {
                let _ = match self.report.at_least {
                    0 => write!(text, "; perhaps none is needed"),
                    least => write!(text, "; perhaps less is enough, but not less than {least}"),
                };
            }
        }
        text
    }

    fn figures(&self) -> String {
        let FenceReport { iterations, states, .. } = *self.report;
        let (rounds, states_plural) = (plural(u64::from(iterations)), plural(states));
        let mut text = format!(
            "  guided by counterexamples: {iterations} placement{rounds}, {states} state{states_plural}, {:.2} s\n",
            self.seconds
        );
        if let (Some(limit), false, Exit::Good) = (self.report.undecided, self.report.minimal, self.exit()) {
            let _ = writeln!(text, "  no engine could decide about a cheaper placement: {}", limits::reached(limit));
        }
        if let FenceVerdict::Inconclusive(limit) = self.report.verdict {
            let _ = writeln!(text, "  not everything was looked at: {}", limits::advice(limit));
            let _ = writeln!(text, "  every correct placement has a cost of at least {}", self.report.at_least);
            if let Some(placement) = &self.report.placement {
                let _ = writeln!(text, "  one of cost {} is known to be correct:", placement.cost);
            }
        }
        text
    }

    /// The diff, and a sentence for each fence.
    fn change(&self, placement: &Placement, output: &Output) -> String {
        let change = self.diff(placement, &output.out);
        if change.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{change}");
        if !placement.fences.is_empty() {
            text.push('\n');
        }
        for fence in &placement.fences {
            let reason = match &fence.reason {
                Some(reason) => format!(": {reason}"),
                None => ": no execution shows that it is needed, but with it the program can be proved".to_owned(),
            };
            bullet(&mut text, &format!("{}{reason}", described(fence)), &output.out);
        }
        if let Some(path) = &self.args.output
            && self.exit() == Exit::Good
        {
            let _ = writeln!(text, "\nwritten to {}", path.display());
        }
        text
    }

    fn diff(&self, placement: &Placement, style: &Style) -> String {
        let name = &self.program.source.name;
        diff::unified(name, &format!("{name} (fenced)"), &self.program.source.text, &placement.text, style)
    }

    fn alternatives(&self) -> String {
        if !self.options.alternatives || self.exit() != Exit::Good {
            return String::new();
        }
        let others = &self.report.alternatives;
        let mut text = match others.len() {
            0 => "\nno other placement of this cost is correct\n".to_owned(),
            1 => "\none other placement of this cost is correct:\n".to_owned(),
            count => format!("\n{count} other placements of this cost are correct:\n"),
        };
        for placement in others.iter().take(SHOWN_ALTERNATIVES) {
            let places: Vec<String> = placement.fences.iter().map(described).collect();
            let removed = match placement.removed.len() {
                0 => String::new(),
                count => format!(" (and {} removed)", fences(count)),
            };
            let _ = writeln!(text, "  · {}{removed}", places.join("; "));
        }
        if others.len() > SHOWN_ALTERNATIVES {
            let _ = writeln!(text, "  … and {} more, which --json lists", others.len() - SHOWN_ALTERNATIVES);
        }
        if self.report.more_alternatives {
            text.push_str("  (there may be more: the search for them was cut short)\n");
        }
        text
    }

    fn object(&self) -> json::Fence<'_> {
        let report = self.report;
        let placement = report.placement.as_ref();
        let listed = |placement: &'a Placement| placement.fences.iter().map(|fence| self.inserted(fence)).collect();
        let limit = match report.verdict {
            FenceVerdict::Inconclusive(limit) => Some(limit),
            _ => None,
        };
        json::Fence {
            head: json::Head {
                command: "fence",
                file: &self.program.source.name,
                model: Some(self.options.model.name()),
                verdict: self.verdict(),
                seconds: self.seconds,
            },
            goal: self.options.goal.name(),
            strategy: "guided",
            fences: placement.map_or_else(Vec::new, listed),
            removed: self.options.minimise.then(|| {
                let removed = placement.iter().flat_map(|placement| &placement.removed);
                removed.map(|place| self.place(place)).collect()
            }),
            minimal: report.minimal,
            cost: placement.map(|placement| placement.cost),
            at_least: report.at_least,
            alternatives: self.options.alternatives.then(|| report.alternatives.iter().map(listed).collect()),
            alternatives_complete: self.options.alternatives.then_some(!report.more_alternatives),
            iterations: report.iterations,
            states: report.states,
            diff: placement.map(|placement| self.diff(placement, &Style::plain())),
            output: match (&self.args.output, self.exit()) {
                (Some(path), Exit::Good) => Some(path.display().to_string()),
                _ => None,
            },
            error: self.failing.as_ref().and_then(|replay| json::Failure::of(self.program, replay)),
            trace: self.failing.as_ref().map(|replay| json::trace(self.program, replay)),
            limit: limit.map(limits::name),
            reason: limit.map(limits::reached),
        }
    }

    fn inserted(&self, fence: &'a PlacedFence) -> json::InsertedFence<'a> {
        json::InsertedFence {
            after: self.place(&fence.after),
            kind: fence.kind.name(),
            reason: fence.reason.as_ref().map(ToString::to_string),
        }
    }

    fn place(&self, place: &'a PointPlace) -> json::Place<'a> {
        json::Place {
            file: &self.program.source.name,
            line: place.position.line,
            column: place.position.column,
            thread: &place.body,
            label: place.label.as_deref(),
        }
    }
}

/// `` fence in p after `x = 1` (line 12) ``.
fn described(fence: &PlacedFence) -> String {
    let PointPlace { body, position, statement, .. } = &fence.after;
    let kind = match fence.kind {
        weakspot_model::ir::FenceKind::Full => "fence".to_owned(),
        kind => format!("fence({})", kind.name()),
    };
    let line = position.line;
    match statement {
        Some(statement) => format!("{kind} in {body} after `{statement}` (line {line})"),
        None => format!("{kind} in {body} at the start of the block of line {line}"),
    }
}

/// A sentence with a mark before it.
fn bullet(text: &mut String, sentence: &str, style: &Style) {
    for (index, line) in wrap(sentence, style.width.saturating_sub(4)).iter().enumerate() {
        let lead = if index == 0 { "  · " } else { "    " };
        let _ = writeln!(text, "{lead}{line}");
    }
}

fn fences(count: usize) -> String {
    format!("{count} fence{}", plural(count as u64))
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
