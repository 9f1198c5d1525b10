//! A brute-force oracle for litmus tests: every execution of the reference machine, with its trace.
//!
//! It walks all pairs of a machine state and the trace (rf, co) that led there, so it needs tests that end. It is slow
//! on purpose: nothing here is shared with any engine.

#![allow(clippy::unwrap_used, dead_code)]

use std::collections::{BTreeMap, BTreeSet, HashSet};

use weakspot_front::litmus;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::litmus::{LitmusTest, Observable, Quantifier};
use weakspot_model::machine::{Action, Effect, Machine, Outcome, State};
use weakspot_model::source::SourceFile;

/// The three machines.
pub const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

/// Reads a test that has to be right.
pub fn parse(name: &str, text: &str) -> LitmusTest {
    litmus::parse(&SourceFile::new(name, text)).unwrap_or_else(|diagnostics| panic!("{name}: {diagnostics:#?}"))
}

/// What all executions of a test under a model have in common.
pub struct Answer {
    /// Final states over some observables.
    pub states: BTreeSet<Vec<i64>>,
    /// Number of distinct (rf, co) pairs.
    pub executions: usize,
    /// Is po | rf | co | fr acyclic in all of them?
    pub robust: bool,
}

/// A read or a write: thread and number in its thread. The initial writes are [`INITIAL`].
type EventId = (usize, usize);
const INITIAL: EventId = (usize::MAX, 0);

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Access {
    loc: usize,
    write: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Trace {
    /// The accesses of each thread in program order.
    events: Vec<Vec<Access>>,
    /// The write each read takes its value from.
    reads_from: BTreeMap<EventId, EventId>,
    /// The writes to each location in the order they reach memory.
    coherence: Vec<Vec<EventId>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Node {
    state: State,
    trace: Trace,
    /// The pending writes of each thread, oldest first.
    pending: Vec<Vec<(usize, EventId)>>,
}

impl Node {
    fn access(&mut self, thread: usize, loc: usize, write: bool) -> EventId {
        let events = &mut self.trace.events[thread];
        events.push(Access { loc, write });
        (thread, events.len() - 1)
    }

    fn memory_writer(&self, loc: usize) -> EventId {
        self.trace.coherence[loc].last().copied().unwrap_or(INITIAL)
    }

    fn record(&mut self, thread: usize, effect: Effect) {
        match effect {
            Effect::Load { loc, forwarded, .. } => {
                let loc = loc.index();
                let own = self.pending[thread].iter().rev().find(|(l, _)| *l == loc).map(|&(_, write)| write);
                assert_eq!(own.is_some(), forwarded);
                let source = own.unwrap_or_else(|| self.memory_writer(loc));
                let read = self.access(thread, loc, false);
                self.trace.reads_from.insert(read, source);
            }
            Effect::Store { loc, buffered, .. } => {
                let write = self.access(thread, loc.index(), true);
                if buffered {
                    self.pending[thread].push((loc.index(), write));
                } else {
                    self.trace.coherence[loc.index()].push(write);
                }
            }
            Effect::Rmw { loc, written, .. } => {
                let source = self.memory_writer(loc.index());
                let read = self.access(thread, loc.index(), false);
                self.trace.reads_from.insert(read, source);
                if written.is_some() {
                    let write = self.access(thread, loc.index(), true);
                    self.trace.coherence[loc.index()].push(write);
                }
            }
            Effect::Commit { loc, .. } => {
                let at = self.pending[thread].iter().position(|(l, _)| *l == loc.index()).unwrap();
                let (_, write) = self.pending[thread].remove(at);
                self.trace.coherence[loc.index()].push(write);
            }
            _ => {}
        }
    }
}

impl Trace {
    /// Is po | rf | co | fr acyclic?
    fn is_acyclic(&self) -> bool {
        let mut edges: BTreeSet<(EventId, EventId)> = BTreeSet::new();
        for (thread, events) in self.events.iter().enumerate() {
            edges.extend((1..events.len()).map(|index| ((thread, index - 1), (thread, index))));
        }
        for writes in &self.coherence {
            edges.extend(writes.windows(2).map(|pair| (pair[0], pair[1])));
        }
        for (&read, &source) in &self.reads_from {
            let writes = &self.coherence[self.events[read.0][read.1].loc];
            let overwriting = if source == INITIAL {
                writes.first()
            } else {
                edges.insert((source, read));
                writes.get(writes.iter().position(|&write| write == source).unwrap() + 1)
            };
            edges.extend(overwriting.map(|&write| (read, write)));
        }
        let mut left: BTreeSet<EventId> = edges.iter().flat_map(|&(from, to)| [from, to]).collect();
        loop {
            let has_predecessor: BTreeSet<EventId> =
                edges.iter().filter(|(from, _)| left.contains(from)).map(|&(_, to)| to).collect();
            let before = left.len();
            left.retain(|event| has_predecessor.contains(event));
            if left.is_empty() || left.len() == before {
                return left.is_empty();
            }
        }
    }
}

/// Runs every execution.
pub fn explore(test: &LitmusTest, model: MemoryModel, observables: &[Observable]) -> Answer {
    let machine = Machine::new(&test.program, model);
    let (state, outcome) = machine.start();
    assert_eq!(outcome, Outcome::Continues);
    let threads = test.program.threads.len();
    let trace = Trace {
        events: vec![Vec::new(); threads],
        reads_from: BTreeMap::new(),
        coherence: vec![Vec::new(); test.program.locations.len()],
    };
    let first = Node { state, trace, pending: vec![Vec::new(); threads] };
    let mut seen = HashSet::from([first.clone()]);
    let mut open = vec![first];
    let mut answer = Answer { states: BTreeSet::new(), executions: 0, robust: true };
    let mut traces = BTreeSet::new();
    while let Some(node) = open.pop() {
        let actions = machine.enabled(&node.state);
        if actions.is_empty() {
            answer.states.insert(observables.iter().map(|&observable| value(&node.state, observable)).collect());
            if traces.insert(node.trace.clone()) {
                answer.robust &= node.trace.is_acyclic();
            }
            continue;
        }
        for action in actions {
            let mut next = node.clone();
            let (effect, outcome) = machine.apply(&mut next.state, action);
            assert_eq!(outcome, Outcome::Continues, "{}", test.name);
            let thread = match action {
                Action::Step { thread, .. } | Action::Commit { thread, .. } | Action::Wake { thread } => thread,
            };
            next.record(thread.index(), effect.unwrap());
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    answer.executions = traces.len();
    answer
}

/// The value of an observable in a state.
pub fn value(state: &State, observable: Observable) -> i64 {
    match observable {
        Observable::Register(thread, register) => state.threads[thread.index()].local.registers[register.index()],
        Observable::Memory(loc) => state.memory[loc.index()],
    }
}

/// `Ok` or `No`, given all final states over [`LitmusTest::observed`].
pub fn verdict(test: &LitmusTest, states: &BTreeSet<Vec<i64>>) -> &'static str {
    let holds = |state: &Vec<i64>| {
        test.condition.holds(&|observable| {
            let index = test.observed.iter().position(|&known| known == observable).unwrap();
            state[index]
        })
    };
    let ok = match test.quantifier {
        Quantifier::Exists => states.iter().any(holds),
        Quantifier::NotExists => !states.iter().any(holds),
        Quantifier::Forall => states.iter().all(holds),
    };
    if ok { "Ok" } else { "No" }
}

/// Final states as the reference results write them.
pub fn state_text(test: &LitmusTest, observables: &[Observable], states: &BTreeSet<Vec<i64>>) -> String {
    let names: Vec<String> = observables.iter().map(|&o| litmus::observable_name(test, o)).collect();
    let line = |state: &Vec<i64>| {
        let bindings: Vec<String> = names.iter().zip(state).map(|(name, value)| format!("{name}={value}")).collect();
        bindings.join(",")
    };
    let mut lines: Vec<String> = states.iter().map(line).collect();
    lines.sort();
    lines.join(";")
}

/// A register of a thread by name.
pub fn register(test: &LitmusTest, thread: usize, name: &str) -> Observable {
    let registers = &test.program.threads[thread].registers;
    let index = registers.iter().position(|register| register.name.as_deref() == Some(name)).unwrap();
    Observable::Register(ThreadId::new(thread), weakspot_model::ids::Reg::new(index))
}
