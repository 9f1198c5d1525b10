//! Values of an execution whose sources are known, and the tally of final states.
//!
//! A value that was read is the value its source wrote, which is a constant or depends on what the source's thread
//! read before. This ends: all three models keep a read before the later writes of its thread.

use rustc_hash::FxHashMap;
use weakspot_model::ids::{Loc, Pc, ThreadId};
use weakspot_model::litmus::{LitmusTest, Observable};
use weakspot_model::local;
use weakspot_model::problem::{Fault, FaultKind};
use weakspot_model::trace::Cell;

use super::graph::Graph;
use super::path::{Check, Node, Value};
use super::search::Placed;

/// Final states and how often each was reached.
#[derive(Debug, Default)]
pub(super) struct Tally {
    states: FxHashMap<Vec<i64>, u64>,
    /// The state that is being put together.
    current: Vec<i64>,
}

impl Tally {
    pub fn reset(&mut self) {
        self.states.clear();
    }

    /// The states in ascending order; the tally is empty afterwards.
    pub fn take_states(&mut self) -> Vec<(Vec<i64>, u64)> {
        let mut states: Vec<_> = self.states.drain().collect();
        states.sort_unstable();
        states
    }

    fn count_current(&mut self) {
        match self.states.get_mut(self.current.as_slice()) {
            Some(count) => *count += 1,
            None => {
                self.states.insert(self.current.clone(), 1);
            }
        }
    }
}

/// Values of nodes, computed once for each execution.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    /// The execution; values with another number are of an earlier one.
    execution: u64,
    values: Vec<(u64, i64)>,
}

impl Evaluation {
    /// Makes room for the nodes of a test.
    pub fn prepare(&mut self, nodes: usize) {
        if self.values.len() < nodes {
            self.values.resize(nodes, (0, 0));
        }
    }
}

/// A program error and whose it is.
pub(super) type Failure = (ThreadId, Fault);

/// What happens when all choices are made.
pub(super) struct Leaf<'a> {
    pub test: &'a LitmusTest,
    pub graph: &'a Graph,
    pub nodes: &'a [Node],
    pub evaluation: &'a mut Evaluation,
    pub tally: &'a mut Tally,
}

impl Leaf<'_> {
    /// Counts the execution, if its values take the paths it is made of. Gives whether they do.
    pub fn visit(&mut self, placed: &Placed) -> Result<bool, Failure> {
        self.evaluation.execution += 1;
        let graph = self.graph;
        let mut failure = None;
        for &(thread, check) in &graph.checks {
            match self.check(placed, thread, check) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(failed) => failure = failure.or(Some(failed)),
            }
        }
        if let Some(failed) = failure {
            return Err(failed);
        }
        let test = self.test;
        self.tally.current.clear();
        for &observable in &test.observed {
            let value = self.observe(placed, observable)?;
            self.tally.current.push(value);
        }
        self.tally.count_current();
        Ok(true)
    }

    /// May the path go on here? An error if the program fails here.
    fn check(&mut self, placed: &Placed, thread: u32, check: Check) -> Result<bool, Failure> {
        let fail = |fault| Err((ThreadId::new(thread as usize), fault));
        let mut get = |value| self.value(placed, thread, value);
        match check {
            Check::NonZero(value) => Ok(get(value)? != 0),
            Check::Zero(value) => Ok(get(value)? == 0),
            Check::Equal(left, right) => Ok(get(left)? == get(right)?),
            Check::Different(left, right) => Ok(get(left)? != get(right)?),
            Check::Computes(value) => get(value).map(|_| true),
            Check::Holds(value, fault) => {
                if get(value)? == 0 {
                    return fail(fault);
                }
                Ok(true)
            }
            Check::InRange(loc, value, pc) => {
                let value = get(value)?;
                match self.test.program.locations[loc.index()].range {
                    Some((lo, hi)) if value < lo || value > hi => {
                        fail(Fault { pc, kind: FaultKind::Range { loc, value } })
                    }
                    _ => Ok(true),
                }
            }
            Check::Fails(fault) => fail(fault),
        }
    }

    fn observe(&mut self, placed: &Placed, observable: Observable) -> Result<i64, Failure> {
        match observable {
            Observable::Register(thread, reg) => {
                let first = self.graph.first_register[thread.index()] as usize;
                let value = self.graph.registers[first + reg.index()];
                self.value(placed, u32::from(thread.0), value)
            }
            Observable::Memory(loc) => {
                let last = self.graph.accesses[loc.index()].writes.len() as u32;
                self.value_at(placed, loc, last)
            }
        }
    }

    /// The value of a location at a coherence index.
    fn value_at(&mut self, placed: &Placed, loc: Loc, index: u32) -> Result<i64, Failure> {
        let Some(before) = index.checked_sub(1) else {
            return Ok(self.test.program.locations[loc.index()].init);
        };
        let writer = placed.order[(placed.first[loc.index()] + before) as usize];
        let event = &self.graph.events[writer as usize];
        let written = event.written.expect("invariant: only writes are in coherence order");
        self.value(placed, event.thread, written)
    }

    fn value(&mut self, placed: &Placed, thread: u32, value: Value) -> Result<i64, Failure> {
        let node = match value {
            Value::Const(value) => return Ok(value),
            Value::Node(node) => node as usize,
        };
        let (execution, known) = self.evaluation.values[node];
        if execution == self.evaluation.execution {
            return Ok(known);
        }
        let computed = self.compute(placed, thread, node)?;
        self.evaluation.values[node] = (self.evaluation.execution, computed);
        Ok(computed)
    }

    fn compute(&mut self, placed: &Placed, thread: u32, node: usize) -> Result<i64, Failure> {
        let fault = |pc: Pc, kind| (ThreadId::new(thread as usize), Fault { pc, kind });
        match self.nodes[node] {
            Node::Read(event) => {
                let event = (self.graph.first[thread as usize] + event) as usize;
                let GraphRead { loc, index } = self.read_of(placed, event);
                self.value_at(placed, loc, index)
            }
            Node::Unary(op, value, pc) => {
                let value = self.value(placed, thread, value)?;
                local::unary(op, value).map_err(|kind| fault(pc, kind))
            }
            Node::Binary(op, left, right, pc) => {
                let (left, right) = (self.value(placed, thread, left)?, self.value(placed, thread, right)?);
                local::binary(op, left, right).map_err(|kind| fault(pc, kind))
            }
        }
    }

    fn read_of(&self, placed: &Placed, event: usize) -> GraphRead {
        let read = &self.graph.events[event];
        let Some(Cell::Memory(loc)) = read.class.cell() else {
            unreachable!("invariant: only accesses of memory have values")
        };
        GraphRead { loc, index: placed.index[event] - u32::from(read.written.is_some()) }
    }
}

/// What an event reads: a location at a coherence index.
struct GraphRead {
    loc: Loc,
    index: u32,
}
