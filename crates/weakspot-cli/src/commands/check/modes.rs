//! From the arguments of `check` to what is asked of the engines.

use std::path::Path;

use weakspot_check::{CheckOptions, Engine, MonitorKind, Sampling};
use weakspot_model::buffer::MemoryModel;

use crate::args::{CheckArgs, CheckEngine, Model, Monitor};
use crate::commands::limits;
use crate::exit::Failure;

/// The depth of PCT: most bugs need no more orderings.
const DEFAULT_DEPTH: u32 = 3;

/// Which executions are looked at; the name in JSON.
pub fn name(args: &CheckArgs) -> &'static str {
    if args.replay.is_some() {
        "replay"
    } else if args.random.is_some() {
        "random"
    } else if args.pct.is_some() {
        "pct"
    } else if args.max_preemptions.is_some() {
        "preemptions"
    } else {
        "exhaustive"
    }
}

/// Options do not silently do nothing.
pub fn refuse_unfitting_options(args: &CheckArgs) -> Result<(), Failure> {
    refuse_contradicting_modes(args)?;
    let stateless_only = [
        (args.max_preemptions.is_some(), "`--max-preemptions`"),
        (args.random.is_some(), "`--random`"),
        (args.pct.is_some(), "`--pct`"),
        (args.replay.is_some(), "`--replay`"),
        (args.record.is_some(), "`--record`"),
        (args.monitor.is_some(), "`--monitor`"),
        (args.unroll.is_some(), "`--unroll`"),
    ];
    refuse_unfitting_record(args)?;
    if let (CheckEngine::Attack, Some((_, option))) =
        (args.engine, stateless_only.into_iter().find(|(given, _)| *given))
    {
        let message = format!("{option} does not fit `--engine attack`");
        return refuse(message, "it belongs to `--engine stateless`; the attack engine needs no bounds");
    }
    if args.model == Model::Pso && matches!(args.monitor, Some(Monitor::Sober | Monitor::SoberPublished)) {
        let message = "the SOBER monitors know TSO only".to_owned();
        return refuse(message, "`--monitor operational` watches for PSO");
    }
    Ok(())
}

fn refuse(message: String, help: &str) -> Result<(), Failure> {
    Err(Failure::Usage { message, help: help.to_owned() })
}

/// Each of the modes says which executions are looked at.
fn refuse_contradicting_modes(args: &CheckArgs) -> Result<(), Failure> {
    let modes = [
        (args.replay.is_some(), "`--replay`"),
        (args.random.is_some(), "`--random`"),
        (args.pct.is_some(), "`--pct`"),
        (args.max_preemptions.is_some(), "`--max-preemptions`"),
    ];
    let mut given = modes.iter().filter(|(given, _)| *given).map(|(_, name)| *name);
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        return refuse(
            format!("{one} and {other} contradict each other"),
            "each says which schedules to look at: give one",
        );
    }
    if args.seed.is_some() && args.random.is_none() && args.pct.is_none() {
        return refuse("`--seed` is for random schedules".to_owned(), "add `--random N` or `--pct N`");
    }
    if args.depth.is_some() && args.pct.is_none() {
        return refuse("`--depth` is for random priorities".to_owned(), "add `--pct N`");
    }
    if args.replay.is_some() && args.unroll.is_some() {
        return refuse(
            "`--replay` and `--unroll` contradict each other".to_owned(),
            "a schedule has an end: leave out `--unroll`",
        );
    }
    if args.replay.is_some() && args.all {
        return refuse(
            "`--replay` and `--all` contradict each other".to_owned(),
            "a replay runs one schedule and lists everything it finds there: leave out `--all`",
        );
    }
    Ok(())
}

fn refuse_unfitting_record(args: &CheckArgs) -> Result<(), Failure> {
    let Some(path) = &args.record else {
        if args.record_format.is_some() {
            return refuse("`--record-format` is for recorded executions".to_owned(), "add `--record FILE`");
        }
        return Ok(());
    };
    if args.engine == CheckEngine::Attack {
        let help = "the attack engine looks at states; `--engine stateless` explores executions";
        return refuse("`--record` does not fit `--engine attack`".to_owned(), help);
    }
    if path == Path::new("-") {
        return refuse("executions cannot be recorded to standard output".to_owned(), "name a file");
    }
    if let (Ok(program), Ok(record)) = (args.file.canonicalize(), path.canonicalize())
        && program == record
    {
        let message = format!("the record would take the place of the program `{}`", args.file.display());
        return refuse(message, "name another file for `--record`");
    }
    if args.limits.jobs.is_some_and(|jobs| jobs.get() > 1) {
        let help = "executions are recorded one after the other: leave out `--jobs`";
        return refuse("`--record` and `--jobs` contradict each other".to_owned(), help);
    }
    Ok(())
}

/// What is asked.
pub fn options(args: &CheckArgs) -> CheckOptions {
    let model: MemoryModel = args.model.into();
    CheckOptions {
        model,
        engine: match args.engine {
            CheckEngine::Auto => None,
            CheckEngine::Stateless => Some(Engine::Stateless),
            CheckEngine::Attack => Some(Engine::Attack),
        },
        monitor: args.monitor.map(|monitor| monitor_kind(monitor, model)),
        max_preemptions: args.max_preemptions,
        sampling: sampling(args),
        unroll: args.unroll,
        all: args.all,
        jobs: limits::jobs(args.limits.jobs),
        allow_deadlock: args.allow_deadlock,
        spurious_wakeups: args.spurious_wakeups,
    }
}

/// The monitor of a model.
pub fn monitor_kind(monitor: Monitor, model: MemoryModel) -> MonitorKind {
    match monitor {
        Monitor::Sober => MonitorKind::Sober,
        Monitor::SoberPublished => MonitorKind::SoberPublished,
        Monitor::Operational => MonitorKind::Operational(model),
    }
}

fn sampling(args: &CheckArgs) -> Option<Sampling> {
    let seed = args.seed.unwrap_or_default();
    if let Some(executions) = args.random {
        return Some(Sampling::Random { executions, seed });
    }
    let executions = args.pct?;
    Some(Sampling::Pct { executions, depth: args.depth.unwrap_or(DEFAULT_DEPTH), seed })
}
