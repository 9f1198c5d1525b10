//! From explored executions to records.
//!
//! An interleaving arrives as steps of the reference machine, runs on it once more and is written as it goes, so what is
//! recorded is what the machine did. A graph arrives as its events in some order, because a monitor watches all of them:
//! also those that come after a thread has failed or an `assume` was false, where the machine stops. Threads and cells are
//! declared at the beginning, places when they first occur.
//!
//! # What is recorded of a search
//! Every interleaving of the bounded and random modes; of the exhaustive mode one linearisation of each explored graph.
//! The operational monitors depend on the order of events and watch several linearisations: those in which they find
//! what they do not find in the first are recorded as executions of their own, so that the monitor finds the same in the
//! record as in the search. An execution that breaks the specification only in a particular order (two threads
//! inside critical blocks) is recorded in that order, too.

use std::io::{self, Write};
use std::ops::ControlFlow;

use rustc_hash::FxHashSet;
use thiserror::Error;
use weakspot_model::ids::{Site, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Outcome as StepOutcome, Rest};
use weakspot_model::problem::{Problem, ProblemKind};
use weakspot_model::task::{Budget, Progress};

use super::{CellSort, Ending, Record, TraceEvent, TracePlace, Writer, source_hash};
use crate::exhaustive::{AnyMonitor, Checker, ExploreOptions, explorer_for};
use crate::graph::{EventKind, Graph, NONE};
use crate::happening::{Happening, Kind, Run};
use crate::interpreter::Interpreter;
use crate::linearise::{Lineariser, observed};
use crate::monitor::Finding;
use crate::outcome::{Outcome, actions_of, first_problem};
use crate::system::System;
use crate::trust::{self, Visitor};

/// An event with its thread and its place.
pub type Placed = (ThreadId, Site, Happening);

/// Takes executions. A break ends the search.
pub trait Sink {
    /// An execution as steps, and how it ends if threads can still move at its end.
    fn execution(&mut self, actions: &[Action], open: Ending) -> ControlFlow<()>;

    /// An execution as events.
    fn events(&mut self, events: &[Placed], ending: Ending) -> ControlFlow<()>;
}

/// Why a record is not complete.
#[derive(Debug, Error)]
pub enum RecordError {
    /// It cannot be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// An engine gave an execution that the reference machine does not accept.
    #[error("step {step} of an explored execution is not possible")]
    NotPossible {
        /// Counted from 1.
        step: usize,
    },
}

/// How much was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Executions.
    pub executions: u64,
    /// Events of all of them.
    pub events: u64,
}

/// Writes executions of a program.
#[derive(Debug)]
pub struct Recorder<'p, W: Write> {
    program: &'p Program,
    run: Run<'p>,
    writer: Writer<W>,
    /// The number of the place of each site; [`NONE`]: not declared yet.
    places: Vec<u32>,
    next_place: u32,
    happened: Vec<(ThreadId, Happening)>,
    allow_deadlock: bool,
    recorded: Recorded,
    failure: Option<RecordError>,
}

impl<'p, W: Write> Recorder<'p, W> {
    /// Declares the threads and cells of a program.
    pub fn new(
        program: &'p Program,
        spurious_wakeups: bool,
        allow_deadlock: bool,
        mut writer: Writer<W>,
    ) -> Result<Self, RecordError> {
        let hash = source_hash(program.source.text.as_bytes());
        writer.write(&Record::File { name: program.source.name.clone(), hash })?;
        for thread in &program.threads {
            writer.write(&Record::Thread { name: thread.name.clone() })?;
        }
        let locations = program.locations.iter().map(|location| (CellSort::Location, &location.name));
        let mutexes = program.mutexes.iter().map(|name| (CellSort::Mutex, name));
        let condvars = program.condvars.iter().map(|name| (CellSort::Condvar, name));
        for (sort, name) in locations.chain(mutexes).chain(condvars) {
            writer.write(&Record::Cell { sort, name: name.clone() })?;
        }
        if program.assumes() {
            writer.write(&Record::Assumes)?;
        }
        Ok(Self {
            program,
            run: Run::new(program, spurious_wakeups),
            writer,
            places: vec![NONE; program.sites.len()],
            next_place: 0,
            happened: Vec::new(),
            allow_deadlock,
            recorded: Recorded::default(),
            failure: None,
        })
    }

    /// Ends the trace.
    pub fn finish(self) -> Result<(W, Recorded), RecordError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok((self.writer.close()?, self.recorded)),
        }
    }

    fn record(&mut self, actions: &[Action], open: Ending) -> Result<(), RecordError> {
        self.run.restart();
        self.writer.write(&Record::Begin)?;
        for (index, &action) in actions.iter().enumerate() {
            let thread = action.thread();
            let code = self.program.threads.get(thread.index()).ok_or(RecordError::NotPossible { step: index + 1 })?;
            let own = code.sites[self.run.pc(thread).index()];
            let mut happened = std::mem::take(&mut self.happened);
            if !self.run.step(action, &mut happened) {
                return Err(RecordError::NotPossible { step: index + 1 });
            }
            for &(woken, happening) in &happened {
                // who is woken still rests at its `wait`
                let rests_at = || self.program.threads[woken.index()].sites[self.run.pc(woken).index()];
                let site = if woken == thread { own } else { rests_at() };
                self.event((woken, site, happening))?;
            }
            self.happened = happened;
        }
        let ending = self.ending(open);
        self.end(ending)
    }

    fn record_events(&mut self, events: &[Placed], ending: Ending) -> Result<(), RecordError> {
        self.writer.write(&Record::Begin)?;
        for &event in events {
            self.event(event)?;
        }
        self.end(ending)
    }

    fn event(&mut self, (thread, site, happening): Placed) -> Result<(), RecordError> {
        let place = Some(self.place(site.index())?);
        self.writer.write(&Record::Event(TraceEvent { thread: u32::from(thread.0), happening, place }))?;
        self.recorded.events += 1;
        Ok(())
    }

    fn end(&mut self, ending: Ending) -> Result<(), RecordError> {
        self.writer.write(&Record::End(ending))?;
        self.recorded.executions += 1;
        Ok(())
    }

    /// Goes on until something fails.
    fn unless_failed(&mut self, record: impl FnOnce(&mut Self) -> Result<(), RecordError>) -> ControlFlow<()> {
        if self.failure.is_none() {
            self.failure = record(self).err();
        }
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The number of a site's place, declared if need be.
    fn place(&mut self, site: usize) -> Result<u32, RecordError> {
        if self.places[site] == NONE {
            let info = &self.program.sites[site];
            let covered = self.program.source.text.get(info.span.range()).unwrap_or_default();
            self.writer.write(&Record::Place(TracePlace {
                file: 0,
                line: info.position.line,
                column: info.position.column,
                length: covered.chars().count() as u32,
                label: info.label.clone(),
            }))?;
            self.places[site] = self.next_place;
            self.next_place += 1;
        }
        Ok(self.places[site])
    }

    fn ending(&self, open: Ending) -> Ending {
        let broken = |problem: &Problem| match problem.kind {
            ProblemKind::Deadlock if self.allow_deadlock => Ending::Deadlock,
            _ => Ending::Error(problem.message.clone()),
        };
        match self.run.outcome() {
            StepOutcome::Failed(problem) => broken(problem),
            StepOutcome::Pruned => Ending::Blocked,
            StepOutcome::Continues if !self.run.possible().is_empty() => open,
            StepOutcome::Continues => match self.run.machine().rest(self.run.state()) {
                Rest::Finished => Ending::Complete,
                Rest::Pruned => Ending::Blocked,
                Rest::Failed(problem) => broken(&problem),
                Rest::Spinning => Ending::Unfinished,
            },
        }
    }
}

impl<W: Write> Sink for Recorder<'_, W> {
    fn execution(&mut self, actions: &[Action], open: Ending) -> ControlFlow<()> {
        self.unless_failed(|this| this.record(actions, open))
    }

    fn events(&mut self, events: &[Placed], ending: Ending) -> ControlFlow<()> {
        self.unless_failed(|this| this.record_events(events, ending))
    }
}

/// Explores every trace of a program and hands every execution to a sink, one after the other: one worker.
pub fn explore_recorded(
    program: &Program,
    options: &ExploreOptions,
    budget: &Budget,
    progress: &dyn Progress,
    sink: &mut dyn Sink,
) -> Outcome {
    if let Some(refusal) = Outcome::refusal(program) {
        return refusal;
    }
    let mut system = Interpreter::new(program, options.unroll);
    let monitor = options.monitor.map(|kind| AnyMonitor::new(kind, system.threads(), system.cells()));
    let mut recording = Recording {
        checker: Checker::new(&system, options, budget, progress, None),
        lineariser: Lineariser::default(),
        monitor: monitor.filter(AnyMonitor::depends_on_order),
        allow_deadlock: options.allow_deadlock,
        spurious_wakeups: options.spurious_wakeups,
        sink,
    };
    let mut explorer = explorer_for(&mut system, options);
    let ended = explorer.run(&mut recording);
    let events = explorer.counters().events;
    let mut outcome = recording.checker.finish();
    outcome.events = events;
    outcome.exhaustive = ended.is_continue() && outcome.limit.is_none();
    outcome
}

/// Records what a [`Checker`] judges.
struct Recording<'a, 's> {
    checker: Checker<'a>,
    lineariser: Lineariser,
    /// A monitor that depends on the order, if the checker has one.
    monitor: Option<AnyMonitor>,
    allow_deadlock: bool,
    spurious_wakeups: bool,
    sink: &'s mut dyn Sink,
}

impl Recording<'_, '_> {
    /// Records the graph in the order of the lineariser.
    fn record(&mut self, graph: &Graph, system: &Interpreter<'_>, ending: Ending) -> ControlFlow<()> {
        let events = self.lineariser.order().iter().filter_map(|&id| placed(graph, system, id));
        self.sink.events(&events.collect::<Vec<_>>(), ending)
    }

    /// Records further orders in which a monitor finds what it has not found yet.
    fn record_other_orders(&mut self, graph: &Graph, system: &Interpreter<'_>, ending: &Ending) -> ControlFlow<()> {
        let Some(mut monitor) = self.monitor.take() else { return ControlFlow::Continue(()) };
        let mut known: FxHashSet<Finding> = FxHashSet::default();
        let mut found = Vec::new();
        monitor.watch(graph, self.lineariser.order(), &mut found);
        known.extend(found.drain(..));
        let mut flow = ControlFlow::Continue(());
        for thread in 0..graph.width() {
            self.lineariser.linearise_lazily(graph, thread);
            monitor.watch(graph, self.lineariser.order(), &mut found);
            let before = known.len();
            known.extend(found.drain(..));
            if known.len() > before && flow.is_continue() {
                flow = self.record(graph, system, ending.clone());
            }
        }
        self.monitor = Some(monitor);
        flow
    }

    /// Records an error that the checker has just noted.
    fn record_error(&mut self, failures_before: u64) -> ControlFlow<()> {
        let outcome = self.checker.outcome();
        match &outcome.error {
            Some(witness) if outcome.failures > failures_before => {
                let actions = witness.actions.clone();
                self.sink.execution(&actions, Ending::Unfinished)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// How the execution ends that the lineariser holds.
    fn ending(&self, graph: &Graph, program: &Program, ending: trust::Ending) -> Ending {
        let problem = || {
            let actions = actions_of(graph, self.lineariser.order());
            first_problem(program, self.spurious_wakeups, &actions).map(|it| it.problem.message)
        };
        match ending {
            trust::Ending::Complete => Ending::Complete,
            trust::Ending::Blocked | trust::Ending::Livelock => Ending::Blocked,
            trust::Ending::Bounded | trust::Ending::Spinning | trust::Ending::TooLong => Ending::Unfinished,
            trust::Ending::Deadlock if self.allow_deadlock => Ending::Deadlock,
            trust::Ending::Deadlock | trust::Ending::Wrong | trust::Ending::Failed => {
                problem().map_or(Ending::Unfinished, Ending::Error)
            }
        }
    }
}

impl<'p> Visitor<Interpreter<'p>> for Recording<'_, '_> {
    fn failed(&mut self, graph: &Graph, system: &mut Interpreter<'p>, thread: ThreadId) -> ControlFlow<()> {
        let failures = self.checker.outcome().failures;
        let flow = self.checker.failed(graph, system, thread);
        self.record_error(failures)?;
        flow
    }

    fn ended(&mut self, graph: &Graph, system: &mut Interpreter<'p>, ending: trust::Ending) -> ControlFlow<()> {
        let failures = self.checker.outcome().failures;
        let flow = self.checker.ended(graph, system, ending);
        self.lineariser.linearise(graph);
        let recorded = self.ending(graph, system.program(), ending);
        self.record(graph, system, recorded.clone())?;
        self.record_other_orders(graph, system, &recorded)?;
        if !matches!(recorded, Ending::Error(_)) {
            self.record_error(failures)?;
        }
        flow
    }
}

/// An event of a graph as it is recorded; nothing for what no monitor sees.
fn placed(graph: &Graph, system: &Interpreter<'_>, id: u32) -> Option<Placed> {
    observed(graph, id)?;
    let event = graph.event(id);
    let quiet = |kind, cell| Happening { kind, cell, read: None, written: None };
    let happening = match event.kind {
        EventKind::Load => Happening { read: Some(event.value), ..quiet(Kind::Load, event.cell) },
        EventKind::Store => Happening { written: Some(event.value), ..quiet(Kind::Store, event.cell) },
        EventKind::RmwRead(manner) => {
            let kind = Kind::Rmw { writes: false, drains_all: manner.drains_all() };
            Happening { read: Some(event.value), ..quiet(kind, event.cell) }
        }
        EventKind::RmwWrite { drains_all } => Happening {
            read: Some(graph.event(event.po_prev).value),
            written: Some(event.value),
            ..quiet(Kind::Rmw { writes: true, drains_all }, event.cell)
        },
        EventKind::Fence(fence) => quiet(Kind::Fence(fence), NONE),
        EventKind::LockWrite => quiet(Kind::Lock, event.cell),
        EventKind::Unlock | EventKind::WaitUnlock => quiet(Kind::Unlock, event.cell),
        EventKind::WaitWrite => quiet(Kind::Wait, event.cell),
        EventKind::WakeRead => quiet(Kind::Wake, event.cell),
        EventKind::NotifyRead => quiet(Kind::Notify { wakes: false }, event.cell),
        EventKind::NotifyWrite => quiet(Kind::Notify { wakes: true }, event.cell),
        EventKind::WakeWrite => quiet(Kind::Leave, event.cell),
        _ => return None,
    };
    let thread = ThreadId(event.thread as u16);
    let pc = system.pc_of(thread, event.before);
    Some((thread, system.program().threads[thread.index()].sites[pc.index()], happening))
}
