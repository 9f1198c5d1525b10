//! Everything a program can end with: all final states and all kinds of problems, not only the first.

use std::collections::BTreeSet;

use weakspot_model::machine::State;
use weakspot_model::problem::ProblemKind;
use weakspot_model::task::Limit;

/// Memory and registers when every thread has ended and every buffer is empty. Registers that the `final` block does
/// not observe are 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FinalState {
    /// One value for each location.
    pub memory: Vec<i64>,
    /// For each thread, one value for each register.
    pub registers: Vec<Vec<i64>>,
}

impl FinalState {
    /// The final state of a machine in which every thread has ended.
    pub fn of(state: &State) -> Self {
        Self {
            memory: state.memory.clone(),
            registers: state.threads.iter().map(|thread| thread.local.registers.clone()).collect(),
        }
    }
}

/// What a search for everything found.
#[derive(Debug, Clone)]
pub struct Outcomes {
    /// The states executions finish in, whatever the `final` block says about them.
    pub finals: BTreeSet<FinalState>,
    /// The kinds of problems executions end with.
    pub problems: BTreeSet<ProblemKind>,
    /// The bound or limit because of which there may be more; `None` if this is everything.
    pub limit: Option<Limit>,
    /// States stored.
    pub states: u64,
    /// Actions performed.
    pub transitions: u64,
    /// Bytes of all tables at the end, unused capacity included.
    pub stored_bytes: u64,
}
