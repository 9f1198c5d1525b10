//! `weakspot fence`: the fewest fences that make a program correct, or store-buffer safe.

mod cargo;
mod live;
mod names;
mod write;

use std::fmt::Write as _;
use std::path::Path;

use weakspot_fence::{Doubt, FenceOptions, FenceReport, FenceVerdict, Language, PlacedFence, Placement, PointPlace};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::machine::Machine;
use weakspot_model::replay::Replay;
use weakspot_report::diff;
use weakspot_report::json;
use weakspot_report::style::{Role, Style, wrap};
use weakspot_report::timeline::Execution;
use weakspot_verify::abstraction;

use super::limits;
use super::replacement::Replacement;
use super::values::{self, value_domains};
use crate::args::{Domain, FenceArgs, FenceEngine, Goal, KeptInOrder, Strategy};
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;
use crate::progress::SearchProgress;

/// More alternatives than this are not printed for people.
const SHOWN_ALTERNATIVES: usize = 20;

/// Looks for fences.
pub fn run(args: &FenceArgs, output: &Output) -> Result<Exit, Failure> {
    match (&args.live.test, &args.file, args.live.cargo.as_slice()) {
        (Some(test), ..) => live::run(args, test, output),
        (None, Some(file), []) => of_program(args, file, output),
        // What follows `--` is no option: it is the file, as for every other command.
        (None, None, [file]) => of_program(args, Path::new(file), output),
        _ => Err(Failure::Usage {
            message: "what follows `--` does not fit a file".to_owned(),
            help: "arguments of `cargo test` belong to `--test NAME`, for Rust code".to_owned(),
        }),
    }
}

fn of_program(args: &FenceArgs, file: &Path, output: &Output) -> Result<Exit, Failure> {
    refuse_unfitting_options(args)?;
    let (program, is_litmus) = input::program_or_test(file, output)?;
    let language = if is_litmus { Language::Litmus } else { Language::Weak };
    refuse_for_tests(args, language)?;
    let values = value_domains(&program, &args.value)?;
    let options = FenceOptions { language, values, ..fence_options(args) };
    if let Some(path) = &args.output {
        Replacement::is_possible(path)
            .map_err(|error| Failure::Output { what: format!("`{}`", path.display()), error })?;
    }
    let budget = limits::budget(&args.limits)?;
    let progress = SearchProgress::new(output, &program.source.name, "states");
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
    let live = &args.live;
    for (given, option) in [(live.package.is_some(), "--package"), (live.manifest_path.is_some(), "--manifest-path")] {
        if given {
            return refuse(format!("`{option}` does not fit a file"), "it belongs to `--test`, for Rust code");
        }
    }
    if args.engine != FenceEngine::Abstract {
        for (given, option) in
            [(args.domain.is_some(), "--domain"), (args.k.is_some(), "-k"), (!args.value.is_empty(), "--value")]
        {
            if given {
                let help = format!("`{option}` belongs to `--engine abstract`");
                return refuse(format!("`{option}` does not fit the engine"), &help);
            }
        }
    }
    if args.domain == Some(Domain::Set) && args.k.is_some() {
        return refuse("`-k` does not fit `--domain set`".to_owned(), "a set keeps no order; use `--domain fd`");
    }
    if args.k == Some(KeptInOrder::Auto) && args.strategy == Strategy::Avoid {
        let help = "it labels the states of one abstraction; give `-k` a number";
        return refuse("`-k auto` does not fit the strategy `avoid`".to_owned(), help);
    }
    if let Some((message, help)) = fence_options(args).misfit() {
        return refuse(message, help);
    }
    if args.output.as_deref() == Some(Path::new("-")) {
        return refuse("`--output -` names no file".to_owned(), "standard output shows the change; name a file");
    }
    Ok(())
}

/// Litmus tests have neither loops with a notation of their own nor statements that can go.
fn refuse_for_tests(args: &FenceArgs, language: Language) -> Result<(), Failure> {
    let options = [(args.minimise, "--minimise"), (args.weights, "--weights")];
    match options.into_iter().find(|(given, _)| *given && language == Language::Litmus) {
        None => Ok(()),
        Some((_, option)) => Err(Failure::Usage {
            message: format!("`{option}` does not fit a litmus test"),
            help: "write the test as a .weak program, with the condition as `final { assert(…); }`".to_owned(),
        }),
    }
}

/// The model; clap sees to it that there is one for programs.
fn memory_model(args: &FenceArgs) -> MemoryModel {
    args.model.map_or(MemoryModel::Tso, MemoryModel::from)
}

fn goal(args: &FenceArgs) -> weakspot_fence::Goal {
    match args.goal {
        Goal::Spec => weakspot_fence::Goal::Spec,
        Goal::Robust => weakspot_fence::Goal::Robust,
    }
}

fn fence_options(args: &FenceArgs) -> FenceOptions {
    let strategy = match args.strategy {
        Strategy::Guided => weakspot_fence::Strategy::Guided,
        Strategy::Avoid => weakspot_fence::Strategy::Avoid,
    };
    let domain = match args.domain {
        Some(Domain::Set) => abstraction::Domain::Set,
        Some(Domain::Fd) | None => abstraction::Domain::Fd,
        Some(Domain::Pd) => abstraction::Domain::Pd,
    };
    let engine = match args.engine {
        FenceEngine::Auto => weakspot_fence::FenceEngine::Auto,
        FenceEngine::Explicit => weakspot_fence::FenceEngine::Explicit,
        FenceEngine::Symbolic => weakspot_fence::FenceEngine::Symbolic,
        FenceEngine::Abstract => {
            let k = match args.k {
                Some(KeptInOrder::Fixed(k)) => Some(k),
                Some(KeptInOrder::Auto) | None => None,
            };
            weakspot_fence::FenceEngine::Abstract { domain, k }
        }
    };
    FenceOptions {
        strategy,
        engine,
        alternatives: args.alternatives,
        fine: args.fine,
        weights: args.weights,
        minimise: args.minimise,
        jobs: limits::jobs(args.limits.jobs),
        allow_deadlock: args.allow_deadlock,
        spurious_wakeups: args.spurious_wakeups,
        ..FenceOptions::new(memory_model(args), goal(args))
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
            (FenceVerdict::Impossible(None), _) => format!("no placement of fences helps{}", self.under_abstraction()),
            (FenceVerdict::Inconclusive(doubt), _) => reached(*doubt),
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
                if self.is_abstract() && self.options.strategy == weakspot_fence::Strategy::Avoid {
                    let _ =
                        write!(text, " (no placement that the labels{} allow is cheaper)", self.under_abstraction());
                }
            }
        }
        text
    }

    fn figures(&self) -> String {
        let FenceReport { iterations, states, .. } = *self.report;
        let (rounds, states_plural) = (plural(u64::from(iterations)), plural(states));
        let how = match self.options.strategy {
            weakspot_fence::Strategy::Guided => "guided by counterexamples",
            weakspot_fence::Strategy::Avoid => "all states labelled with what avoids them",
        };
        let engine = match self.options.engine {
            weakspot_fence::FenceEngine::Auto => String::new(),
            engine => format!(", engine {}{}", engine.name(), self.under_abstraction()),
        };
        let mut text = format!(
            "  {how}{engine}: {iterations} placement{rounds}, {states} state{states_plural}, {:.2} s\n",
            self.seconds
        );
        if let (Some(doubt), false, Exit::Good) = (self.report.undecided, self.report.minimal, self.exit()) {
            let _ = writeln!(text, "  no engine could decide about a cheaper placement: {}", reached(doubt));
        }
        if matches!(self.report.verdict, FenceVerdict::Impossible(None)) && self.is_abstract() {
            text.push_str("  a larger -k, or another engine, may find one\n");
        }
        if let FenceVerdict::Inconclusive(doubt) = self.report.verdict {
            let _ = writeln!(text, "  not everything was looked at: {}", self.advice(doubt));
            let _ = writeln!(text, "  every correct placement has a cost of at least {}", self.report.at_least);
            if let Some(placement) = &self.report.placement {
                let _ = writeln!(text, "  one of cost {} is known to be correct:", placement.cost);
            }
        }
        if self.has_values() && self.exit() == Exit::Good {
            text.push_str(values::RESERVATION);
        }
        text
    }

    fn has_values(&self) -> bool {
        self.options.values.iter().any(Option::is_some)
    }

    /// What to do about a doubt.
    fn advice(&self, doubt: Doubt) -> &'static str {
        match doubt {
            Doubt::Limit(limit) => limits::advice(limit),
            Doubt::Alarm if self.has_values() => "give fewer variables a `--value` domain, or another one, or raise -k",
            Doubt::Alarm => "raise -k, or leave --engine out",
            Doubt::Refused => "leave --engine out",
        }
    }

    fn is_abstract(&self) -> bool {
        matches!(self.options.engine, weakspot_fence::FenceEngine::Abstract { .. })
    }

    /// ` under fd with k = 1`, if an abstraction was asked for.
    fn under_abstraction(&self) -> String {
        match self.options.engine {
            weakspot_fence::FenceEngine::Abstract { domain: abstraction::Domain::Set, .. } => " under set".to_owned(),
            weakspot_fence::FenceEngine::Abstract { domain, k } => {
                let k = k.or((self.options.strategy == weakspot_fence::Strategy::Avoid).then_some(1));
                let k = k.map_or_else(|| "any k".to_owned(), |k| format!("k = {k}"));
                format!(" under {} with {k}", domain.name())
            }
            _ => String::new(),
        }
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
            bullet(&mut text, &format!("{}{reason}", self.described(fence)), &output.out);
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
            let places: Vec<String> = placement.fences.iter().map(|fence| self.described(fence)).collect();
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
        let doubt = match report.verdict {
            FenceVerdict::Inconclusive(doubt) => Some(doubt),
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
            strategy: self.options.strategy.name(),
            engine: self.options.engine.name(),
            domain: match self.options.engine {
                weakspot_fence::FenceEngine::Abstract { domain, .. } => Some(domain.name()),
                _ => None,
            },
            k: match self.options.engine {
                weakspot_fence::FenceEngine::Abstract { k, .. } => k,
                _ => None,
            },
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
            limit: doubt.map(name),
            reason: doubt.map(reached),
        }
    }

    fn inserted(&self, fence: &'a PlacedFence) -> json::InsertedFence<'a> {
        json::InsertedFence {
            after: self.place(&fence.after),
            insert: json::Insertion { line: fence.after.insertion.line, column: fence.after.insertion.column },
            kind: fence.kind.name(),
            reason: fence.reason.as_ref().map(ToString::to_string),
        }
    }

    /// `` fence in p after `x = 1` (line 12) ``.
    fn described(&self, fence: &PlacedFence) -> String {
        let PointPlace { body, position, statement, .. } = &fence.after;
        let is_litmus = self.options.language == Language::Litmus;
        let kind = match fence.kind {
            FenceKind::Full if is_litmus => "MFENCE".to_owned(),
            FenceKind::StoreStore if is_litmus => "SFENCE".to_owned(),
            FenceKind::Full => "fence".to_owned(),
            kind => format!("fence({})", kind.name()),
        };
        let line = position.line;
        match statement {
            Some(statement) => format!("{kind} in {body} after `{statement}` (line {line})"),
            None if is_litmus => format!("{kind} in {body} before its first instruction"),
            None => format!("{kind} in {body} at the start of the block of line {line}"),
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

/// Why there is no answer, as a name of JSON.
fn name(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Limit(limit) => limits::name(limit),
        Doubt::Alarm => "abstraction",
        Doubt::Refused => "unsupported",
    }
}

/// The same in words.
fn reached(doubt: Doubt) -> String {
    match doubt {
        Doubt::Limit(limit) => limits::reached(limit),
        Doubt::Alarm => {
            "the abstraction breaks the specification, and no real execution was found that does".to_owned()
        }
        Doubt::Refused => "the engine cannot represent the program".to_owned(),
    }
}
