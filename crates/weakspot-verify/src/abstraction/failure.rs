//! What an abstract execution can do wrong, before it is put into words.

use weakspot_model::ids::{Pc, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::problem::{Fault, Problem, ProblemKind};

/// How a transition breaks the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Failure {
    /// A program error of a thread.
    Fault(ThreadId, Fault),
    /// The first thread, now at this instruction, is inside a critical block together with the second.
    Intrusion(ThreadId, Pc, ThreadId),
    /// The `final` block fails.
    Final(Fault),
    /// Nobody can move.
    Deadlock,
}

impl Failure {
    /// Puts it into words, as the reference machine does.
    pub(super) fn describe(self, program: &Program) -> Problem {
        let name = |thread: ThreadId| &program.threads[thread.index()].name;
        match self {
            Self::Fault(thread, fault) => fault.describe(program, thread),
            Self::Final(fault) => fault.describe_final(program),
            Self::Intrusion(thread, pc, other) => Problem {
                kind: ProblemKind::MutualExclusion,
                message: format!("`{}` and `{}` are both inside a critical block", name(other), name(thread)),
                thread: Some(thread),
                site: Some(program.threads[thread.index()].sites[pc.index()]),
            },
            Self::Deadlock => Problem {
                kind: ProblemKind::Deadlock,
                message: "deadlock: some thread has not ended and none can go on".to_owned(),
                thread: None,
                site: None,
            },
        }
    }
}
