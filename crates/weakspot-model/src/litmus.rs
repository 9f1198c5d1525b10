//! A litmus test: a program, what is observed at its end, and a condition on that.

use crate::ids::{Loc, Reg, ThreadId};
use crate::ir::Program;

/// One litmus test.
#[derive(Debug, Clone)]
pub struct LitmusTest {
    /// The test's name, from its first line.
    pub name: String,
    /// The threads. The `final` block states the condition as a specification (see [`Quantifier`]), for the engines
    /// that know nothing of litmus tests.
    pub program: Program,
    /// What the condition and the `locations [...]` clause name: registers by (thread, name), then memory by name.
    pub observed: Vec<Observable>,
    /// What is asked about the condition.
    pub quantifier: Quantifier,
    /// The condition itself.
    pub condition: Condition,
    /// The condition as herd prints it after `Condition`, quantifier included.
    pub condition_text: String,
}

/// Something that has a value at the end of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observable {
    /// A thread's register.
    Register(ThreadId, Reg),
    /// A memory cell.
    Memory(Loc),
}

/// What is asked about the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// `exists C`: Ok iff some final state satisfies C. As a specification: C must never hold (it is the surprise).
    Exists,
    /// `~exists C`: Ok iff no final state satisfies C. As a specification: C must never hold.
    NotExists,
    /// `forall C`: Ok iff all final states satisfy C. As a specification: C must always hold.
    Forall,
}

/// A condition on final states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Always true (`forall (true)` or no condition at all).
    True,
    /// Always false.
    False,
    /// An observable has a value.
    Equals(Observable, i64),
    /// Negation.
    Not(Box<Condition>),
    /// All of them.
    And(Vec<Condition>),
    /// Any of them.
    Or(Vec<Condition>),
}

impl Condition {
    /// Decides the condition, given the value of each observable.
    pub fn holds(&self, value: &impl Fn(Observable) -> i64) -> bool {
        match self {
            Self::True => true,
            Self::False => false,
            Self::Equals(observable, expected) => value(*observable) == *expected,
            Self::Not(inner) => !inner.holds(value),
            Self::And(all) => all.iter().all(|condition| condition.holds(value)),
            Self::Or(any) => any.iter().any(|condition| condition.holds(value)),
        }
    }
}
