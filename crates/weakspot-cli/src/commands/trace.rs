//! `weakspot trace`: the monitors over recorded executions, read once from beginning to end.

mod declared;
mod patient;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use weakspot_check::MonitorKind;
use weakspot_check::recorded::reader::Reader;
use weakspot_check::recorded::watch::{Stopped, Watch, Watched};
use weakspot_check::recorded::{At, Format, TraceError};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::task::{Budget, Limit, Progress as _};
use weakspot_report::json;

use self::declared::Declared;
use self::patient::Patient;
use super::{count, limits, shown};
use crate::args::{Model, Monitor, TraceArgs};
use crate::exit::{Exit, Failure};
use crate::input::InputError;
use crate::output::Output;
use crate::progress::{SearchProgress, cancelled_by_signal};

/// The tables of the monitor may take this much unless the user says otherwise: a trace is only data, and must not be
/// able to exhaust the machine.
const DEFAULT_MEMORY: u64 = 4096 << 20;

/// Events between two reports of progress.
const EVENTS_BETWEEN_REPORTS: u64 = 1 << 16;

/// Runs the monitors over a recorded trace.
pub fn run(args: &TraceArgs, output: &Output) -> Result<Exit, Failure> {
    refuse_unfitting_options(args)?;
    let budget = budget(args)?;
    let name = shown(&args.file);
    let answer = if args.file == Path::new("-") {
        watch(Patient::new(|| Ok(io::stdin()), &budget), args, &name, &budget, output)?
    } else if args.file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let path = args.file.clone();
        watch(Patient::new(|| File::open(path), &budget), args, &name, &budget, output)?
    } else {
        watch(open(&args.file)?, args, &name, &budget, output)?
    };
    answer.print(output)?;
    Ok(answer.exit())
}

fn refuse_unfitting_options(args: &TraceArgs) -> Result<(), Failure> {
    let refuse = |message: &str, help: &str| Err(Failure::Usage { message: message.to_owned(), help: help.to_owned() });
    if args.model == Model::Sc {
        return refuse(
            "sc has no store buffers, so there is nothing to watch for",
            "use `--model tso` or `--model pso`",
        );
    }
    if args.model == Model::Pso && matches!(args.monitor, Some(Monitor::Sober | Monitor::SoberPublished)) {
        return refuse("the SOBER monitors know TSO only", "`--monitor operational` watches for PSO");
    }
    Ok(())
}

fn budget(args: &TraceArgs) -> Result<Budget, Failure> {
    let memory = args.memory_limit.map_or(DEFAULT_MEMORY, |mib| (mib.get() as u64) << 20);
    let mut budget = Budget { cancelled: cancelled_by_signal()?, ..Budget::unlimited() }.with_memory(memory);
    if let Some(seconds) = args.time_limit {
        budget = budget.with_time(Duration::from_secs_f64(seconds));
    }
    Ok(budget)
}

fn open(path: &Path) -> Result<File, InputError> {
    let name = path.display().to_string();
    if path.is_dir() {
        return Err(InputError::NoTrace { name });
    }
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => InputError::Missing { name },
        _ => InputError::Unreadable { name, error },
    })
}

fn monitor(args: &TraceArgs) -> (MonitorKind, &'static str) {
    let model = MemoryModel::from(args.model);
    match args.monitor {
        Some(Monitor::Sober) => (MonitorKind::Sober, "sober"),
        Some(Monitor::SoberPublished) => (MonitorKind::SoberPublished, "sober-published"),
        Some(Monitor::Operational) => (MonitorKind::Operational(model), "operational"),
        None if model == MemoryModel::Pso => (MonitorKind::Operational(model), "operational"),
        None => (MonitorKind::Sober, "sober"),
    }
}

/// Reads to the end, or to the first thing that is wrong.
fn watch<'a>(
    from: impl Read,
    args: &'a TraceArgs,
    name: &'a str,
    budget: &Budget,
    output: &Output,
) -> Result<Answer<'a>, Failure> {
    let (kind, _) = monitor(args);
    let progress = SearchProgress::new(output, name, "events");
    let mut declared = Declared::default();
    let mut watch = Watch::new(kind, budget);
    // What did not come in time is not what is wrong with a trace.
    let stop = |error: TraceError, watched: &Watched| match (&error, budget.exhausted(0)) {
        (TraceError::Io(late), Some(limit)) if late.kind() == io::ErrorKind::TimedOut => Ok(Stopped::Limit(limit)),
        _ => Err(failure(name, error, watched)),
    };
    let (mut stopped, mut reader) = match Reader::new(from) {
        Ok(reader) => (None, Some(reader)),
        Err(error) => (Some(stop(error, watch.watched())?), None),
    };
    let format = reader.as_ref().map(Reader::format);
    let mut next_report = EVENTS_BETWEEN_REPORTS;
    while let (None, Some(reader)) = (&stopped, &mut reader) {
        let record = match reader.read() {
            Ok(Some(record)) => record,
            Ok(None) => break,
            Err(error) => {
                progress.finish();
                stopped = Some(stop(error, watch.watched())?);
                break;
            }
        };
        stopped = watch.accept(&record).err();
        declared.note(record);
        if watch.watched().events >= next_report {
            next_report += EVENTS_BETWEEN_REPORTS;
            progress.update(watch.watched().events, 0, 0);
        }
    }
    progress.finish();
    let limit = match stopped {
        None => None,
        Some(Stopped::Limit(limit)) => Some(limit),
        Some(Stopped::TooLong) => {
            return Err(Failure::TooLarge { file: name.to_owned(), message: Stopped::TooLong.to_string() });
        }
    };
    Ok(Answer { args, name, format, declared, watched: watch.watched().clone(), limit, seconds: output.seconds() })
}

/// What to do about a limit. The general advice is about programs.
fn advice(limit: Limit) -> &'static str {
    match limit {
        Limit::Time => "raise --time-limit to read on",
        other => limits::advice(other),
    }
}

/// What is wrong with a trace, and what it held up to there.
fn failure(name: &str, error: TraceError, watched: &Watched) -> Failure {
    let Watched { executions, events, pairs, .. } = watched;
    let held = match executions {
        0 => "nothing was analysed".to_owned(),
        _ => format!(
            "up to there it holds {} in {}, and {} that store buffers turn round; no verdict is given",
            count(*events, "event"),
            count(*executions, "execution"),
            count(pairs.len() as u64, "pair"),
        ),
    };
    match error {
        TraceError::Io(error) => InputError::Unreadable { name: name.to_owned(), error }.into(),
        TraceError::Damaged { at: At::Byte(offset), message } => Failure::Usage {
            message: format!("`{name}` is damaged at byte {offset}: {message}"),
            help: format!("{held}; record it again"),
        },
        TraceError::Damaged { at: At::Line { line, column, length, text }, message } => Failure::TraceLine {
            file: name.to_owned(),
            position: (line, column, length),
            text,
            message,
            help: format!("{held}; docs/traces.md describes the format"),
        },
    }
}

/// What keeps an answer from being a better one.
#[derive(Debug, Clone, Copy)]
enum Obstacle {
    /// The program assumes something, and the monitor has found something.
    Assumptions,
    Limit(Limit),
    /// There is no event.
    Empty,
    /// All executions are blocked.
    NothingEnds,
}

/// What came of it.
struct Answer<'a> {
    args: &'a TraceArgs,
    name: &'a str,
    /// Not known if nothing was read.
    format: Option<Format>,
    declared: Declared,
    watched: Watched,
    limit: Option<Limit>,
    seconds: f64,
}

impl Answer<'_> {
    fn verdict(&self) -> &'static str {
        let Watched { error, pairs, assumes, .. } = &self.watched;
        if error.is_some() {
            "error"
        } else if !pairs.is_empty() && !assumes {
            "unsafe"
        } else if self.obstacle().is_some() {
            "bounded"
        } else {
            "safe"
        }
    }

    /// What keeps a trace without errors from being called safe, if it holds no pair that is certain.
    fn obstacle(&self) -> Option<Obstacle> {
        let Watched { pairs, events, executions, blocked, .. } = &self.watched;
        if !pairs.is_empty() {
            Some(Obstacle::Assumptions)
        } else if let Some(limit) = self.limit {
            Some(Obstacle::Limit(limit))
        } else if *events == 0 {
            Some(Obstacle::Empty)
        } else {
            (blocked == executions).then_some(Obstacle::NothingEnds)
        }
    }

    fn exit(&self) -> Exit {
        match self.verdict() {
            "safe" => Exit::Good,
            "bounded" => Exit::NoAnswer,
            _ => Exit::Problem,
        }
    }

    fn print(&self, output: &Output) -> Result<(), Failure> {
        if output.json {
            return output.object(&self.object());
        }
        let mut text = self.headline(output);
        if !output.quiet {
            text.push_str(&self.figures());
            let sources = self.declared.sources(&self.args.file);
            for pair in &self.watched.pairs {
                let _ = write!(text, "\n{}", self.declared.drawn(pair, &sources).render(&output.out));
            }
        }
        output.result(&text)
    }

    fn headline(&self, output: &Output) -> String {
        let Watched { error, executions, borderline, events, .. } = &self.watched;
        let meaning = match (self.verdict(), error, self.obstacle()) {
            ("error", Some((execution, message)), _) => {
                format!("{message} (already under sc, in execution {execution})")
            }
            ("unsafe", ..) => {
                format!("store buffers can turn {borderline} of {} into others", count(*executions, "execution"))
            }
            ("bounded", _, Some(obstacle)) => match obstacle {
                Obstacle::Assumptions => format!(
                    "store buffers may turn {borderline} of {} into others, unless something assumed is false then",
                    count(*executions, "execution")
                ),
                Obstacle::Limit(limit) => format!("{} after {}", limits::reached(limit), count(*events, "event")),
                Obstacle::Empty => "there is no event in the trace".to_owned(),
                Obstacle::NothingEnds => "no execution ran to its end".to_owned(),
            },
            _ => "store buffers turn no execution of the trace into another".to_owned(),
        };
        let model = MemoryModel::from(self.args.model).name();
        output.headline(self.exit(), self.verdict(), &format!("{} under {model}: {meaning}", self.name))
    }

    fn figures(&self) -> String {
        let Watched { executions, complete, events, borderline, errors, .. } = self.watched;
        let (_, monitor) = monitor(self.args);
        let executed = count(executions, "execution");
        let format = self.format.map_or(String::new(), |format| format!("{} ", format.name()));
        let mut text = format!("  {monitor} monitor, {format}trace: {executed}");
        if complete < executions {
            let _ = write!(text, " ({complete} of them to their end)");
        }
        let _ = write!(text, ", {borderline} borderline");
        if errors > 0 {
            let _ = write!(text, ", {errors} with errors");
        }
        let _ = writeln!(text, ", {}, {:.2} s", count(events, "event"), self.seconds);
        match (self.verdict(), self.obstacle()) {
            ("bounded", Some(Obstacle::Limit(limit))) => {
                let _ = writeln!(text, "  nothing found so far, but not everything was read: {}", advice(limit));
            }
            ("bounded", Some(Obstacle::Assumptions)) => {
                text.push_str("  a trace does not say what the program assumes: `weakspot check` finds out\n");
            }
            ("safe", _) => {
                text.push_str("  only the recorded executions were looked at: `weakspot check` looks at all\n");
            }
            _ => {}
        }
        text
    }

    fn object(&self) -> json::Trace<'_> {
        let Watched { executions, complete, events, borderline, errors, ref pairs, ref error, .. } = self.watched;
        json::Trace {
            head: json::Head {
                command: "trace",
                file: self.name,
                model: Some(MemoryModel::from(self.args.model).name()),
                verdict: self.verdict(),
                seconds: self.seconds,
            },
            format: self.format.map(Format::name),
            monitor: monitor(self.args).1,
            executions,
            complete,
            events,
            borderline,
            errors,
            violations: pairs.iter().map(|pair| self.declared.violation(pair)).collect(),
            error: error.as_ref().map(|(execution, message)| json::RecordedError { message, execution: *execution }),
            limit: self.obstacle().filter(|_| self.verdict() == "bounded").map(|obstacle| match obstacle {
                Obstacle::Assumptions => "assumptions",
                Obstacle::Limit(limit) => limits::name(limit),
                Obstacle::Empty => "empty",
                Obstacle::NothingEnds => "nothing-ends",
            }),
        }
    }
}
