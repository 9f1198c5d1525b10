//! The access can be early.
//!
//! SOBER's relaxed happens-before says what has to be over before the thread of the access can perform it: what comes
//! before the thread's last load. Everything else of the SC execution can come after the access, although the thread
//! has already issued its own stores: they stay in their buffer. So the execution has three parts:
//!
//! 1. the steps of every thread up to the last one that has to be over, in the order of the SC execution; a store that
//!    need not be over stays in its buffer;
//! 2. the access;
//! 3. the other steps, and the commits of the stores that stayed, in the order of the SC execution.

use std::collections::BTreeMap;

use weakspot_explore::happening::{Happening, Run};
use weakspot_explore::interpreter::Cells;
use weakspot_explore::monitor::sober::Sober;
use weakspot_explore::monitor::{Event, Monitor as _, Operation};
use weakspot_explore::outcome;
use weakspot_model::machine::{Action, Effect, Machine, Outcome};

use super::{Building, Done, has_cycle};

/// The relaxed execution, if letting the thread of the access run ahead makes one.
pub fn actions(machine: &Machine<'_>, found: &outcome::Violation) -> Option<Vec<Action>> {
    let steps = &found.actions;
    let (&access, before) = steps.split_last()?;
    let stamps = Stamps::of(machine, before)?;
    let is_over = stamps.over_before_the_next_load_of(access.thread().index());
    let goes_first = past_of(before, &is_over, access.thread().index());
    let mut ahead = Ahead { execution: Building::new(*machine), waiting: BTreeMap::new() };
    for (index, &step) in before.iter().enumerate().filter(|&(index, _)| goes_first[index]) {
        ahead.issue(index, step)?;
        if is_over[index] {
            ahead.commit(index)?;
        }
    }
    ahead.execution.take(access)?;
    for (index, &step) in before.iter().enumerate() {
        let is_new = !goes_first[index];
        if (is_new && ahead.issue(index, step).is_none()) || ahead.commit(index).is_none() {
            break;
        }
    }
    // An execution that breaks the specification ends there; what still waits in buffers counts as coming then.
    let Building { actions, outcome, .. } = ahead.execution;
    (outcome != Outcome::Pruned && has_cycle(machine, &actions)).then_some(actions)
}

/// The steps that go before the access: all of its own thread, of the others up to the last one that has to be over.
fn past_of(steps: &[Action], is_over: &[bool], own: usize) -> Vec<bool> {
    let threads = steps.iter().map(|step| step.thread().index() + 1).max().unwrap_or(0);
    let mut last_of = vec![None; threads];
    for (index, step) in steps.iter().enumerate().filter(|&(index, _)| is_over[index]) {
        last_of[step.thread().index()] = Some(index);
    }
    let goes = |(index, step): (usize, &Action)| {
        let thread = step.thread().index();
        thread == own || last_of[thread].is_some_and(|last| index <= last)
    };
    steps.iter().enumerate().map(goes).collect()
}

/// SOBER's timestamps of the steps of an execution.
struct Stamps {
    /// For each step that is an event: its columns and what stands there in its own timestamp.
    own: Vec<Option<(usize, u32)>>,
    /// The timestamp of the last load or interlocked operation of each thread.
    loads: Vec<Vec<u32>>,
}

impl Stamps {
    fn of(machine: &Machine<'_>, steps: &[Action]) -> Option<Self> {
        let program = machine.program;
        let threads = program.threads.len();
        let mut sober = Sober::corrected(threads, Cells::of(program).count());
        let mut run = Run::new(program, machine.spurious_wakeups);
        let mut this = Self { own: Vec::new(), loads: vec![vec![0; 2 * threads]; threads] };
        let (mut happened, mut indices) = (Vec::new(), vec![0; threads]);
        for &step in steps {
            if !run.step(step, &mut happened) {
                return None;
            }
            let thread = step.thread().index();
            let mut own = None;
            for &(whose, Happening { kind, cell, .. }) in &happened {
                let (operation, whose) = (kind.operation(), whose.index());
                sober.observe(&Event { thread: whose as u32, index: indices[whose], operation, cell, label: 0 });
                indices[whose] += 1;
                if operation == Operation::StoreFence {
                    continue;
                }
                if whose == thread {
                    let column = 2 * thread + usize::from(operation != Operation::Load);
                    own = Some((column, sober.timestamp()[column]));
                }
                if operation != Operation::Store {
                    this.loads[whose] = sober.timestamp().to_vec();
                }
            }
            this.own.push(own);
        }
        Some(this)
    }

    /// Which steps have to be over before a thread can perform another load.
    fn over_before_the_next_load_of(&self, thread: usize) -> Vec<bool> {
        let known = &self.loads[thread];
        self.own.iter().map(|own| own.is_some_and(|(column, count)| known[column] >= count)).collect()
    }
}

/// A relaxed execution in which stores wait until their place in the SC execution has come.
struct Ahead<'p> {
    execution: Building<'p>,
    /// Steps whose store still waits, with its commit.
    waiting: BTreeMap<usize, Action>,
}

impl Ahead<'_> {
    fn issue(&mut self, index: usize, step: Action) -> Option<()> {
        if let Done::Did(Effect::Store { loc, buffered: true, .. }) = self.execution.take(step)? {
            self.waiting.insert(index, Action::Commit { thread: step.thread(), loc });
        }
        Some(())
    }

    /// Makes the store of a step visible, if it is one that waits.
    fn commit(&mut self, index: usize) -> Option<()> {
        let Some(commit) = self.waiting.remove(&index) else { return Some(()) };
        self.execution.take(commit).map(|_| ())
    }
}
