//! `weakspot fence --test`: which operations of Rust code to strengthen, found by running a test.

mod words;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use weakspot_fence::live::{self, Change, CodePlace, LiveReport, LiveVerdict, Model, Strengthening, TestRun};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::task::Limit;
use weakspot_report::diff;
use weakspot_report::json;
use weakspot_report::style::Style;

use super::cargo::{Cargo, Ended, TestOutcome};
use super::{bullet, goal, memory_model, names};
use crate::args::FenceArgs;
use crate::commands::{count, limits, shown};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::progress::SearchProgress;

/// Looks for what to strengthen.
pub fn run(args: &FenceArgs, wanted: &str, output: &Output) -> Result<Exit, Failure> {
    let budget = limits::budget(&args.limits)?;
    let cargo = Cargo::new(args, output, &budget)?;
    let (test, report) = match cargo.names(wanted)? {
        Ended::Stopped(limit) => (wanted.to_owned(), stopped(args, limit)?),
        Ended::Done(all) => {
            let test = names::one(wanted, &all)?;
            (test.to_owned(), search(args, test, &names::filter(test, &all), &cargo, output)?)
        }
    };
    let manifest = args.live.manifest_path.as_deref().map_or_else(|| "Cargo.toml".to_owned(), shown);
    let sources = Sources::of(&report.changes);
    let answer = Answer { args, manifest, test: &test, report: &report, sources, seconds: output.seconds() };
    answer.print(output)?;
    Ok(answer.exit())
}

/// The report of a search that was over before it began.
fn stopped(args: &FenceArgs, limit: Limit) -> Result<LiveReport, Failure> {
    live::strengthen(goal(args), |_| Ok(TestRun::Stopped(limit)))
}

fn search(
    args: &FenceArgs,
    test: &str,
    filter: &[&str],
    cargo: &Cargo<'_>,
    output: &Output,
) -> Result<LiveReport, Failure> {
    let progress = SearchProgress::new(output, test, "runs");
    let mut last = None;
    let report = live::strengthen(goal(args), |changes| {
        let outcome = match cargo.run(test, filter, changes, &progress)? {
            Ended::Stopped(limit) => return Ok(TestRun::Stopped(limit)),
            Ended::Done(outcome) => outcome,
        };
        let models = live::recorded_models(&outcome.recorded).map_err(|error| Failure::Internal(error.to_string()))?;
        if models.is_empty() {
            return Err(no_model(test, &outcome, output));
        }
        let passed = outcome.passed;
        last = Some(outcome);
        Ok(TestRun::Ended { models, passed })
    });
    progress.finish();
    // What a test that fails has to say is its own report.
    if let Some(outcome) = last.filter(|outcome| !outcome.passed || output.verbose) {
        output.remark(&outcome.printed);
    }
    report
}

/// A test of which nothing can be said.
fn no_model(test: &str, outcome: &TestOutcome, output: &Output) -> Failure {
    if outcome.passed {
        let help = "it has to call `weakspot::model` (or `loom::model`, with loom patched: docs/rust.md), and to come that far";
        let message = format!("the test `{test}` passes, but has run no model of weakspot");
        return Failure::Usage { message, help: help.to_owned() };
    }
    output.error(&outcome.printed);
    let message = format!("the test `{test}` failed before a model was explored");
    Failure::Usage { message, help: "what it says stands above".to_owned() }
}

/// The files that the changes are in, by their names.
struct Sources(BTreeMap<String, String>);

impl Sources {
    fn of(changes: &[Change]) -> Self {
        let mut files = BTreeMap::new();
        for change in changes {
            if let Some(text) = change.path.as_ref().and_then(|path| std::fs::read_to_string(path).ok()) {
                files.insert(change.place.file.clone(), text);
            }
        }
        Self(files)
    }

    /// A line of the file that a place is in.
    fn line(&self, place: &CodePlace, row: u32) -> Option<&str> {
        self.0.get(&place.file)?.lines().nth(row.checked_sub(1)? as usize)
    }
}

struct Answer<'a> {
    args: &'a FenceArgs,
    /// As it was named.
    manifest: String,
    test: &'a str,
    report: &'a LiveReport,
    sources: Sources,
    seconds: f64,
}

impl Answer<'_> {
    fn exit(&self) -> Exit {
        match self.report.verdict {
            LiveVerdict::NoneNeeded | LiveVerdict::Fenced => Exit::Good,
            LiveVerdict::Impossible(_) => Exit::NoPlacement,
            LiveVerdict::Inconclusive(_) => Exit::NoAnswer,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.report.verdict {
            LiveVerdict::NoneNeeded => "none-needed",
            LiveVerdict::Fenced => "fenced",
            LiveVerdict::Impossible(_) => "impossible",
            LiveVerdict::Inconclusive(_) => "inconclusive",
        }
    }

    fn print(&self, output: &Output) -> Result<(), Failure> {
        if output.json {
            return output.object(&self.object());
        }
        let mut text = self.headline(output);
        if !output.quiet {
            text.push_str(&self.figures());
            text.push_str(&self.changes(output));
        }
        output.result(&text)
    }

    fn headline(&self, output: &Output) -> String {
        let does = words::goal(goal(self.args));
        let meaning = match &self.report.verdict {
            LiveVerdict::NoneNeeded => format!("{does} as it is"),
            LiveVerdict::Fenced => {
                format!("with {} {does}; fewer are not enough", count(self.report.changes.len() as u64, "change"))
            }
            LiveVerdict::Impossible(model) => words::error(model),
            LiveVerdict::Inconclusive(doubt) => words::doubt(doubt),
        };
        let model = memory_model(self.args).name();
        output.headline(self.exit(), self.verdict(), &format!("{} under {model}: {meaning}", self.test))
    }

    fn figures(&self) -> String {
        let LiveReport { runs, models, .. } = self.report;
        let executions = models.iter().map(|model| model.executions).sum();
        let runs = if *runs == 1 { "once".to_owned() } else { format!("{runs} times") };
        let (models, executions) = (count(models.len() as u64, "model"), count(executions, "execution"));
        let mut text =
            format!("  the test was run {runs}: {models}, {executions}, {:.2} s with the build\n", self.seconds);
        match &self.report.verdict {
            LiveVerdict::Impossible(_) => text.push_str("  the report of the test is on standard error\n"),
            LiveVerdict::Inconclusive(doubt) => {
                let _ = writeln!(text, "  {}", words::advice(doubt));
            }
            _ => {}
        }
        text
    }

    /// The diff, a sentence for each change, and what is known of all of them.
    fn changes(&self, output: &Output) -> String {
        let changes = &self.report.changes;
        if changes.is_empty() {
            return String::new();
        }
        let diff = self.diff(&output.out);
        let mut text = if diff.is_empty() { "\n".to_owned() } else { format!("\n{diff}\n") };
        let left_out = if diff.is_empty() { "" } else { "; not in the diff" };
        for change in changes {
            let reason = self.reason(change).map(|reason| format!(": {reason}")).unwrap_or_default();
            let line = self.sources.line(&change.place, change.place.line).filter(|_| change.line.is_none());
            let line = line.map(|line| format!(" (`{}`{left_out})", line.trim())).unwrap_or_default();
            bullet(&mut text, &format!("{}{line}{reason}", words::change(change, self.releases(change))), &output.out);
        }
        let _ = writeln!(text, "\n{}", self.trial());
        text
    }

    /// Was it tried out?
    fn trial(&self) -> String {
        let these = if self.report.changes.len() == 1 { "this" } else { "these" };
        match (&self.report.verdict, self.report.tried, goal(self.args)) {
            (LiveVerdict::Fenced, _, weakspot_fence::Goal::Spec) => {
                format!("tried: with {these} made at run time, no execution of the test fails")
            }
            (LiveVerdict::Fenced, _, weakspot_fence::Goal::Robust) => {
                format!("tried: with {these} made at run time, every execution of the test is one of SC")
            }
            (_, true, _) => format!("tried: with {these} made at run time, nothing was found in what was explored"),
            (_, false, _) => format!("not tried to the end: {these} may not be enough"),
        }
    }

    /// Which reordering a change stops.
    fn reason(&self, change: &Change) -> Option<String> {
        let mut late = self.report.models.iter().flat_map(|model| &model.late);
        let is_stopped = |late: &&live::Late| match change.how {
            Strengthening::SeqCst => late.store == change.place,
            Strengthening::Release | Strengthening::FenceBefore => late.later == change.place,
            Strengthening::Acquire | Strengthening::AcqRel | Strengthening::AcquireOnFailure => false,
        };
        late.find(is_stopped).map(|late| words::reordering(late, change)).or_else(|| self.race(change))
    }

    /// Does it matter that a store, which is `SeqCst`, releases as well? Where stores overtake one another it may.
    fn releases(&self, change: &Change) -> bool {
        let is_met_by_others =
            |clause: &[Change]| clause.iter().any(|one| one != change && self.report.changes.contains(one));
        let is_asked_to = |clause: &Vec<Change>| {
            clause.iter().any(|one| is_release_at(one, &change.place)) && !is_met_by_others(clause)
        };
        let mut clauses = self.report.models.iter().flat_map(|model| &model.clauses);
        change.how == Strengthening::SeqCst && (memory_model(self.args) == MemoryModel::Pso || clauses.any(is_asked_to))
    }

    /// Which data race a change prevents.
    fn race(&self, change: &Change) -> Option<String> {
        let is_against_races = |clause: &&Vec<Change>| match change.how {
            Strengthening::FenceBefore => false,
            Strengthening::SeqCst => clause.iter().any(|one| is_release_at(one, &change.place)),
            _ => true,
        };
        let asks =
            |model: &&Model| model.clauses.iter().filter(is_against_races).flatten().any(|asked| asked == change);
        let why = |model: &Model| model.why.clone().filter(|why| why.kind == "race");
        let why = self.report.models.iter().filter(asks).find_map(why)?;
        Some(words::race(&why))
    }

    fn diff(&self, style: &Style) -> String {
        let mut text = String::new();
        for (file, old) in &self.sources.0 {
            let here: Vec<&Change> = self.report.changes.iter().filter(|change| change.place.file == *file).collect();
            let new = live::edited(old, &here);
            text.push_str(&diff::unified(file, &format!("{file} (strengthened)"), old, &new, style));
        }
        text
    }

    fn object(&self) -> json::LiveFence<'_> {
        let LiveReport { verdict, changes, tried, minimal, runs, models } = self.report;
        let error = match verdict {
            LiveVerdict::Impossible(model) => model.why.as_ref(),
            _ => None,
        };
        let doubt = match verdict {
            LiveVerdict::Inconclusive(doubt) => Some(doubt),
            _ => None,
        };
        json::LiveFence {
            head: json::Head {
                command: "fence",
                file: &self.manifest,
                model: Some(memory_model(self.args).name()),
                verdict: self.verdict(),
                seconds: self.seconds,
            },
            test: self.test,
            goal: goal(self.args).name(),
            fences: changes.iter().map(|change| self.strengthened(change)).collect(),
            tried: *tried,
            minimal: *minimal,
            cost: changes.len(),
            iterations: *runs,
            models: models.iter().map(model).collect(),
            diff: Some(self.diff(&Style::plain())).filter(|diff| !diff.is_empty()),
            error: error.map(|why| json::LiveError {
                kind: &why.kind,
                message: &why.message,
                at: why.place.as_ref().map(place),
            }),
            limit: doubt.map(words::limit),
            reason: doubt.map(words::doubt),
        }
    }

    fn strengthened<'c>(&'c self, change: &'c Change) -> json::Strengthened<'c> {
        let (kind, name) = match change.how {
            Strengthening::SeqCst => ("full", "SeqCst"),
            Strengthening::Release => ("store_store", "Release"),
            Strengthening::FenceBefore => ("full", "fence"),
            Strengthening::Acquire => ("acquire", "Acquire"),
            Strengthening::AcqRel => ("acquire_release", "AcqRel"),
            Strengthening::AcquireOnFailure => ("acquire", "AcquireOnFailure"),
        };
        let operation = place(&change.place);
        let after = match change.how {
            Strengthening::SeqCst
            | Strengthening::Acquire
            | Strengthening::AcqRel
            | Strengthening::AcquireOnFailure => operation.clone(),
            Strengthening::Release => self.before(&change.place, change.place.line),
            Strengthening::FenceBefore => self.before(&change.place, change.row),
        };
        json::Strengthened {
            after,
            kind,
            place: operation,
            change: name,
            source: self.sources.line(&change.place, change.place.line).map(str::to_owned),
            line: change.line.as_deref(),
            row: change.line.as_ref().map(|_| change.row),
            reason: self.reason(change),
        }
    }

    /// The end of the line before this one, which is that of a place or one of the same statement.
    fn before<'p>(&self, at: &'p CodePlace, row: u32) -> json::Place<'p> {
        let above = row.saturating_sub(1);
        let length = self.sources.line(at, above).map_or(0, |line| line.chars().count() as u32);
        json::Place { line: above, column: length + 1, ..place(at) }
    }
}

fn is_release_at(change: &Change, place: &CodePlace) -> bool {
    change.how == Strengthening::Release && change.place == *place
}

fn place(place: &CodePlace) -> json::Place<'_> {
    json::Place { file: &place.file, line: place.line, column: place.column, thread: json::ANY_THREAD, label: None }
}

fn model(model: &Model) -> json::LiveModel<'_> {
    let Model { start, verdict, executions, exhaustive, .. } = model;
    json::LiveModel { place: place(start), verdict: verdict.name(), executions: *executions, exhaustive: *exhaustive }
}
