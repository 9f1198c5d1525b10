//! Explores a model.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use weakspot_explore::exhaustive::{MonitorKind, Watcher};
use weakspot_explore::graph::Graph;
use weakspot_explore::linearise::Lineariser;
use weakspot_explore::trust::{Ending, Explorer, Visitor};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;

use crate::builder::Builder;
use crate::failure::{Failure, FailureKind};
use crate::report::{Bound, Report, Verdict};
use crate::rt::runtime::{Body, Runtime};
use crate::rt::system::Live;
use crate::rt::{self, panics};

/// Runs a closure in every way its threads can be scheduled, and panics with a report if one of them fails.
#[track_caller]
pub fn model(body: impl Fn() + Send + Sync + 'static) {
    Builder::new().model(body);
}

/// Explores a model.
pub(crate) fn check(builder: &Builder, body: Body) -> Report {
    assert!(!rt::in_model(), "a model inside a model: a thread of a model cannot explore another one");
    panics::install_hook();
    explore(builder, body)
}

fn explore(builder: &Builder, body: Body) -> Report {
    let start = Instant::now();
    let runtime = Runtime::new(builder.model, builder.max_threads, Arc::clone(&body));
    loop {
        let mut system = Live { runtime: &runtime };
        let mut judge = Judge::new(builder, start);
        let explorer = Explorer::new(&mut system).with_longest(builder.max_events);
        let mut explorer = if judge.watches_in_graph() { explorer.watched() } else { explorer };
        let ended = explorer.run(&mut judge);
        judge.report.events = explorer.counters().events;
        judge.report.runs = explorer.counters().runs + 1;
        if let Some(divergence) = explorer.divergence() {
            judge.report.failure = Some(not_deterministic(&runtime, divergence));
        }
        let observed = std::mem::take(&mut runtime.counts.borrow_mut().found);
        runtime.finish_run(!observed && judge.report.failure.is_none());
        if !observed {
            return judge.finish(ended.is_continue());
        }
    }
}

fn not_deterministic(runtime: &Runtime, divergence: weakspot_explore::trust::Divergence) -> Failure {
    let state = runtime.state();
    let lane = &state.lanes[divergence.thread.index()];
    let message = format!(
        "the model is not deterministic: run again with the same results, thread {} did something else. Its event {} was \
         a {:?}; now it is about to {} at {}. Time, random numbers, addresses and the order of hash maps do that.",
        divergence.thread.0, divergence.event, divergence.was, lane.what, lane.place
    );
    Failure::new(FailureKind::NotDeterministic, message)
        .of_thread(u32::from(divergence.thread.0))
        .at(Some(lane.place.into()))
}

/// Judges every graph.
struct Judge<'b> {
    builder: &'b Builder,
    watcher: Option<Watcher>,
    kind: Option<MonitorKind>,
    lineariser: Lineariser,
    start: Instant,
    graphs: u64,
    report: Report,
}

impl<'b> Judge<'b> {
    fn new(builder: &'b Builder, start: Instant) -> Self {
        let kind = match builder.model {
            _ if !builder.monitor => None,
            MemoryModel::Sc => None,
            MemoryModel::Tso => Some(MonitorKind::Sober),
            MemoryModel::Pso => Some(MonitorKind::Operational(MemoryModel::Pso)),
        };
        Self {
            builder,
            watcher: kind.map(|kind| Watcher::new(kind, 1, 0)),
            kind,
            lineariser: Lineariser::default(),
            start,
            graphs: 0,
            report: Report::new(builder.model),
        }
    }

    fn watches_in_graph(&self) -> bool {
        self.kind == Some(MonitorKind::Sober)
    }

    fn finish(mut self, exhaustive: bool) -> Report {
        self.report.exhaustive = exhaustive;
        self.report.elapsed = self.start.elapsed();
        self.report.verdict = if self.report.failure.is_some() {
            Verdict::Failed
        } else if let Some(bound) = self.report.bound {
            Verdict::Bounded(bound)
        } else {
            Verdict::Safe
        };
        self.report
    }

    fn limits(&mut self) -> ControlFlow<()> {
        self.graphs += 1;
        if self.builder.max_executions.is_some_and(|most| self.report.executions >= most) {
            self.report.bound = Some(Bound::Executions);
        } else if self.graphs.is_multiple_of(256)
            && self.builder.max_duration.is_some_and(|most| self.start.elapsed() >= most)
        {
            self.report.bound = Some(Bound::Time);
        }
        if self.report.bound.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Visitor<Live<'_>> for Judge<'_> {
    fn failed(&mut self, _graph: &Graph, system: &mut Live<'_>, thread: ThreadId) -> ControlFlow<()> {
        if !system.runtime.counts.borrow().found {
            let failure = system.runtime.failure.take();
            let failure = failure.unwrap_or_else(|| panics::take_failure(u32::from(thread.0), None));
            self.report.failure = Some(failure);
        }
        ControlFlow::Break(())
    }

    fn ended(&mut self, graph: &Graph, system: &mut Live<'_>, ending: Ending) -> ControlFlow<()> {
        let stopped = match ending {
            Ending::Complete => {
                self.report.executions += 1;
                None
            }
            Ending::Blocked | Ending::Failed | Ending::Bounded | Ending::Spinning => {
                self.report.blocked += 1;
                None
            }
            Ending::Wrong => system.runtime.failure.take(),
            Ending::Deadlock => Some(Failure::new(FailureKind::Deadlock, "deadlock".to_owned())),
            Ending::Livelock => Some(Failure::new(FailureKind::Livelock, "livelock".to_owned())),
            Ending::TooLong => Some(Failure::new(FailureKind::TooLong, "too long".to_owned())),
        };
        if stopped.is_some() {
            self.report.failure = stopped;
            return ControlFlow::Break(());
        }
        if let Some(watcher) = &mut self.watcher
            && watcher.watch(graph, ending, &mut self.lineariser)
        {
            self.report.borderline += 1;
        }
        self.limits()
    }
}
