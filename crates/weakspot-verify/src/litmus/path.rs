//! Control-flow paths: what a thread may do, with values that depend on reads left symbolic.

use weakspot_model::ids::{Loc, Pc};
use weakspot_model::ir::{BinaryOp, Program, UnaryOp};
use weakspot_model::problem::Fault;
use weakspot_model::trace::Class;

use super::LitmusError;
use super::walk::Walker;

/// A value: known, or a node of [`Paths::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Const(i64),
    Node(u32),
}

/// A value that depends on what was read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node {
    /// What an event of the thread read: its index in the path.
    Read(u32),
    /// An operator, and the instruction it is computed by.
    Unary(UnaryOp, Value, Pc),
    /// An operator, and the instruction it is computed by.
    Binary(BinaryOp, Value, Value, Pc),
}

/// An event of a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathEvent {
    pub class: Class,
    /// What it writes; `None` if it does not write.
    pub written: Option<Value>,
}

/// Something that has to be looked at when the values are known, in program order.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// The path is taken only if the value is not 0.
    NonZero(Value),
    /// The path is taken only if the value is 0.
    Zero(Value),
    /// The path is taken only if the values are equal.
    Equal(Value, Value),
    /// The path is taken only if the values differ.
    Different(Value, Value),
    /// A program error if computing the value is one.
    Computes(Value),
    /// A program error if the value is 0.
    Holds(Value, Fault),
    /// A program error if the value is outside the range of the location.
    InRange(Loc, Value, Pc),
    /// The path ends with a program error.
    Fails(Fault),
}

/// One way through a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Path {
    pub events: Vec<PathEvent>,
    pub checks: Vec<Check>,
    /// The registers at its end.
    pub registers: Vec<Value>,
}

/// All paths of all threads.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Values that depend on reads, of all threads.
    pub nodes: Vec<Node>,
    /// The paths of each thread.
    threads: Vec<Vec<Path>>,
    /// A path was cut off.
    pub unrolled: bool,
}

impl Paths {
    /// Finds the paths of a program.
    pub fn collect(&mut self, program: &Program) -> Result<(), LitmusError> {
        self.nodes.clear();
        self.threads.clear();
        self.unrolled = false;
        for thread in &program.threads {
            let mut walker = Walker::new(thread, &program.locations, &mut self.nodes);
            walker.walk()?;
            self.unrolled |= walker.cut_off;
            self.threads.push(walker.finished);
        }
        Ok(())
    }

    /// Some thread has no path at all: every one was cut off.
    pub fn is_impossible(&self) -> bool {
        self.threads.iter().any(Vec::is_empty)
    }

    /// The chosen path of each thread.
    pub fn choose(&self, chosen: &[usize]) -> impl Iterator<Item = &Path> {
        self.threads.iter().zip(chosen).map(|(paths, &index)| &paths[index])
    }

    /// The next combination of paths; false after the last.
    pub fn next(&self, chosen: &mut [usize]) -> bool {
        for (index, paths) in chosen.iter_mut().zip(&self.threads) {
            *index += 1;
            if *index < paths.len() {
                return true;
            }
            *index = 0;
        }
        false
    }
}
