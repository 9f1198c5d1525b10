//! Witnesses, and the replay every one of them has to survive.
//!
//! An engine's finding is a list of [`Action`]s and the [`Problem`] they lead to. [`replay`] runs it on the reference
//! machine; reports are made from the result, never from what the engine claims. A witness that does not replay is a
//! bug of the engine ([`ReplayError`]), never a report.

use std::collections::{HashMap, VecDeque};

use thiserror::Error;

use crate::buffer::{MemoryModel, StoreBuffer};
use crate::ids::{Loc, Pc, Site, ThreadId};
use crate::ir::{FenceKind, Program};
use crate::machine::{Action, Effect, Machine, Outcome, Rest, State};
use crate::problem::Problem;
use crate::trace::{Trace, TraceBuilder};

/// One action of a replayed execution, with everything a report needs to show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What was done.
    pub action: Action,
    /// What it did; `None` for the last step when the instruction itself failed.
    pub effect: Option<Effect>,
    /// The instruction: for a commit, the store that is committed.
    pub site: Site,
    /// The instruction's place in the thread's code.
    pub pc: Pc,
    /// For a commit: the index of the step that issued the store. For a forwarded load: the step it reads from.
    pub store: Option<usize>,
}

/// How a replayed execution ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With a problem.
    Failed(Problem),
    /// All threads ended, buffers empty, `final` holds.
    Finished,
    /// A false `assume`: not an execution.
    Pruned,
    /// More could happen.
    Open,
    /// Nothing more can happen, but some thread spins.
    Spinning,
}

/// A replayed execution.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Its steps.
    pub steps: Vec<Step>,
    /// How it ends.
    pub ending: Ending,
    /// The state it ends in.
    pub state: State,
    /// The model it was replayed under.
    pub model: MemoryModel,
}

/// The store buffers of an execution, step by step: they are not kept with the steps, because an execution with many
/// pending stores would take the square of its length.
#[derive(Debug)]
pub struct Buffers {
    model: MemoryModel,
    threads: Vec<StoreBuffer>,
}

impl Buffers {
    /// The pending stores of the thread of the next step, after that step.
    pub fn after(&mut self, step: &Step) -> &StoreBuffer {
        let buffer = &mut self.threads[step.action.thread().index()];
        match step.effect {
            Some(Effect::Store { loc, value, buffered: true }) => buffer.store(self.model, loc, value),
            Some(Effect::Commit { loc, .. }) => {
                buffer.commit(loc);
            }
            Some(Effect::Fence(FenceKind::StoreStore)) => buffer.fence_stores(self.model),
            _ => {}
        }
        buffer
    }
}

impl Replay {
    /// The store buffers at the beginning.
    pub fn buffers(&self) -> Buffers {
        Buffers { model: self.model, threads: vec![StoreBuffer::new(); self.state.threads.len()] }
    }

    /// The trace of the execution; stores still pending at its end are taken to commit then.
    pub fn trace(&self, program: &Program) -> Trace {
        self.trace_with_steps(program).0
    }

    /// The same, and for each event of the trace the index of the step that it is of.
    pub fn trace_with_steps(&self, program: &Program) -> (Trace, Vec<usize>) {
        let threads = program.threads.len();
        let (mut builder, mut steps) = (TraceBuilder::new(threads), vec![Vec::new(); threads]);
        for (index, step) in self.steps.iter().enumerate() {
            let thread = step.action.thread();
            if let Some(effect) = step.effect {
                builder.record(program, thread, step.pc, effect);
                steps[thread.index()].resize(builder.events_of(thread), index);
            }
        }
        (builder.finish(), steps.concat())
    }

    /// When a store becomes visible that was issued in this step: the step of its commit, or the end.
    pub fn visible_at(&self, issued: usize) -> usize {
        let commits = |step: &Step| step.store == Some(issued) && matches!(step.effect, Some(Effect::Commit { .. }));
        match self.steps[issued].effect {
            Some(Effect::Store { buffered: true, .. }) => {
                self.steps[issued..].iter().position(commits).map_or(self.steps.len(), |after| issued + after)
            }
            _ => issued,
        }
    }
}

/// A schedule that the machine does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// An action is not enabled where it stands.
    #[error("action {index} ({action:?}) is not enabled")]
    NotEnabled {
        /// Its index.
        index: usize,
        /// The action.
        action: Action,
    },
    /// The execution ended before the schedule did.
    #[error("the execution ends after {index} actions, the schedule has {length}")]
    EndsEarly {
        /// Actions performed.
        index: usize,
        /// Actions given.
        length: usize,
    },
    /// It does not end with the problem the engine claims.
    #[error("the execution ends with {found:?}, not with the claimed problem")]
    OtherEnding {
        /// What it ends with.
        found: Box<Ending>,
    },
}

/// Runs a schedule from the start.
pub fn replay(machine: &Machine<'_>, actions: &[Action]) -> Result<Replay, ReplayError> {
    let (mut state, mut outcome) = machine.start();
    let mut steps = Vec::with_capacity(actions.len());
    let mut pending = PendingStores::default();
    for (index, &action) in actions.iter().enumerate() {
        if outcome != Outcome::Continues {
            return Err(ReplayError::EndsEarly { index, length: actions.len() });
        }
        if !machine.allows(&state, action) {
            return Err(ReplayError::NotEnabled { index, action });
        }
        let id = action.thread();
        let (mut site, mut pc) = (machine.site(&state, id), state.threads[id.index()].local.pc);
        let effect;
        (effect, outcome) = machine.apply(&mut state, action);
        let store = pending.follow(id, effect, index);
        if let (Some(Effect::Commit { .. }), Some(issued)) = (effect, store) {
            let issuer: &Step = &steps[issued];
            (site, pc) = (issuer.site, issuer.pc);
        }
        steps.push(Step { action, effect, site, pc, store });
    }
    let ending = match outcome {
        Outcome::Failed(problem) => Ending::Failed(problem),
        Outcome::Pruned => Ending::Pruned,
        Outcome::Continues if !machine.enabled(&state).is_empty() => Ending::Open,
        Outcome::Continues => match machine.rest(&state) {
            Rest::Finished => Ending::Finished,
            Rest::Pruned => Ending::Pruned,
            Rest::Failed(problem) => Ending::Failed(problem),
            Rest::Spinning => Ending::Spinning,
        },
    };
    Ok(Replay { steps, ending, state, model: machine.model })
}

/// Which step issued the pending stores of each thread and location, oldest first.
#[derive(Default)]
struct PendingStores(HashMap<(ThreadId, Loc), VecDeque<usize>>);

impl PendingStores {
    fn follow(&mut self, thread: ThreadId, effect: Option<Effect>, index: usize) -> Option<usize> {
        match effect? {
            Effect::Store { loc, buffered: true, .. } => {
                self.0.entry((thread, loc)).or_default().push_back(index);
                None
            }
            Effect::Commit { loc, .. } => self.0.get_mut(&(thread, loc))?.pop_front(),
            Effect::Load { loc, forwarded: true, .. } => self.0.get(&(thread, loc))?.back().copied(),
            _ => None,
        }
    }
}

/// An execution that breaks the specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// What was done, from the start.
    pub actions: Vec<Action>,
    /// What it leads to.
    pub problem: Problem,
}

impl Witness {
    /// Replays the witness and insists on its problem.
    pub fn replay(&self, machine: &Machine<'_>) -> Result<Replay, ReplayError> {
        let replay = replay(machine, &self.actions)?;
        match &replay.ending {
            Ending::Failed(problem) if *problem == self.problem => Ok(replay),
            other => Err(ReplayError::OtherEnding { found: Box::new(other.clone()) }),
        }
    }
}
