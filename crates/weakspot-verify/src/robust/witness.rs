//! From the moves of an attack to two executions that the reference machine accepts: the relaxed one with its cycle,
//! and the SC one it departs from.

use rustc_hash::FxHashSet;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::Program;
use weakspot_model::local::Pause;
use weakspot_model::machine::{Action, Effect, Machine, Outcome, Rest, State};
use weakspot_model::replay::{Ending, ReplayError, replay};

use super::attack::{Move, Role};
use super::{Access, RobustOptions, Violation, later};

/// What comes of an attack.
pub enum Built {
    Violation(Violation),
    /// The relaxed execution cannot be completed: some `assume` is false in the end, whatever happens.
    Pruned,
    /// Whether it can be completed took too long to find out.
    Open,
}

/// Builds both executions and checks every step of them.
pub fn build(program: &Program, options: RobustOptions, moves: &[Move]) -> Result<Built, ReplayError> {
    let mut relaxed = Run::start(program, options.model, options.spurious_wakeups);
    let (mut store, mut passed, mut access) = (None, None, None);
    for &mv in moves {
        let here = relaxed.access(mv.thread);
        relaxed.perform(mv)?;
        match mv.role {
            Role::Delayed => store = Some(here),
            Role::Passed => passed = Some(here),
            _ => access = Some(here),
        }
    }
    let attacker = store.expect("invariant: an attack delays a store").thread;
    if program.assumes() && !relaxed.failed && way_on(&relaxed.machine, &relaxed.state).is_none() {
        match later::completed(&relaxed.machine, moves) {
            Ok(Some(actions)) => relaxed.actions = actions,
            Ok(None) => return Ok(Built::Pruned),
            Err(()) => return Ok(Built::Open),
        }
    } else {
        relaxed.drain(attacker)?;
    }

    let mut calm = Run::start(program, MemoryModel::Sc, options.spurious_wakeups);
    for &mv in &moves[..moves.len() - 1] {
        calm.perform(mv)?;
    }
    Ok(Built::Violation(Violation {
        store: store.expect("invariant: an attack delays a store"),
        passed: passed.expect("invariant: an attack passes an event"),
        access: access.expect("invariant: an attack ends with an access"),
        relaxed: relaxed.actions,
        borderline: calm.actions,
    }))
}

/// After this many states from which every way is pruned, the search for one that is not ends with the benefit of the
/// doubt.
const LONG_ENOUGH: usize = 1 << 20;

/// How an execution of the machine can go on so that no `assume` is ever false; `None` if it cannot, or is none.
pub fn completion(machine: &Machine<'_>, actions: &[Action]) -> Option<Vec<Action>> {
    let replay = replay(machine, actions).ok()?;
    match replay.ending {
        Ending::Pruned => None,
        Ending::Failed(_) | Ending::Finished | Ending::Spinning => Some(Vec::new()),
        Ending::Open => way_on(machine, &replay.state),
    }
}

/// An execution from here that is never pruned. It ends, well or badly, or goes on for ever (a state comes again). Depth
/// first: where most ways are not pruned, the first one is.
pub(super) fn way_on(machine: &Machine<'_>, from: &State) -> Option<Vec<Action>> {
    let mut on_path = FxHashSet::default();
    let mut hopeless = FxHashSet::default();
    let mut path = vec![(from.clone(), machine.enabled(from))];
    if path[0].1.is_empty() {
        return (machine.rest(from) != Rest::Pruned).then(Vec::new);
    }
    on_path.insert(from.clone());
    // One action for each state of the path but the first.
    let mut taken = Vec::new();
    while let Some((state, actions)) = path.last_mut() {
        let Some(action) = actions.pop() else {
            on_path.remove(state);
            hopeless.insert(state.clone());
            path.pop();
            taken.pop();
            continue;
        };
        let mut next = state.clone();
        match machine.apply(&mut next, action).1 {
            Outcome::Pruned => continue,
            Outcome::Failed(_) => return Some(with(taken, action)),
            Outcome::Continues => {}
        }
        if on_path.contains(&next) || hopeless.len() > LONG_ENOUGH {
            return Some(with(taken, action));
        }
        if hopeless.contains(&next) {
            continue;
        }
        let actions = machine.enabled(&next);
        taken.push(action);
        if actions.is_empty() && machine.rest(&next) != Rest::Pruned {
            return Some(taken);
        }
        on_path.insert(next.clone());
        path.push((next, actions));
    }
    None
}

fn with(mut actions: Vec<Action>, last: Action) -> Vec<Action> {
    actions.push(last);
    actions
}

/// An execution of the reference machine that is being written down.
struct Run<'p> {
    machine: Machine<'p>,
    state: State,
    actions: Vec<Action>,
    /// The last action broke the specification, which ends an execution.
    failed: bool,
}

impl<'p> Run<'p> {
    fn start(program: &'p Program, model: MemoryModel, spurious_wakeups: bool) -> Self {
        let machine = Machine { program, model, spurious_wakeups };
        let (state, _) = machine.start();
        let mut run = Self { machine, state, actions: Vec::new(), failed: false };
        for thread in program.thread_ids() {
            run.leave_critical(thread);
        }
        run
    }

    fn access(&self, thread: ThreadId) -> Access {
        let pc = self.state.threads[thread.index()].local.pc;
        Access { thread, pc, site: self.machine.site(&self.state, thread) }
    }

    /// Performs a move; a store that is not held back becomes visible at once.
    fn perform(&mut self, mv: Move) -> Result<(), ReplayError> {
        let thread = mv.thread;
        let action = match mv.role {
            Role::Wake => Action::Wake { thread },
            _ => Action::Step { thread, choice: mv.choice },
        };
        let effect = self.take(action)?;
        let visible = matches!(mv.role, Role::Plain | Role::Passed) && !self.failed;
        if let (Some(Effect::Store { loc, buffered: true, .. }), true) = (effect, visible) {
            self.take(Action::Commit { thread, loc })?;
        }
        if !self.failed {
            self.leave_critical(thread);
        }
        Ok(())
    }

    fn take(&mut self, action: Action) -> Result<Option<Effect>, ReplayError> {
        if !self.machine.allows(&self.state, action) {
            return Err(ReplayError::NotEnabled { index: self.actions.len(), action });
        }
        self.actions.push(action);
        let (effect, outcome) = self.machine.apply(&mut self.state, action);
        self.failed = outcome != Outcome::Continues;
        Ok(effect)
    }

    fn leave_critical(&mut self, thread: ThreadId) {
        leave_critical(&self.machine, &mut self.state, thread, &mut self.actions);
    }

    /// Makes the remaining stores of a thread visible, unless the execution has ended with a problem.
    fn drain(&mut self, thread: ThreadId) -> Result<(), ReplayError> {
        while !self.failed {
            let next = self.state.threads[thread.index()].buffer.committable(self.machine.model).next();
            let Some(loc) = next else { return Ok(()) };
            self.take(Action::Commit { thread, loc })?;
        }
        Ok(())
    }
}

/// A thread that does nothing but leave critical blocks is left inside one of them.
pub(super) fn leave_critical(machine: &Machine<'_>, state: &mut State, thread: ThreadId, actions: &mut Vec<Action>) {
    let mut left = FxHashSet::default();
    while state.threads[thread.index()].pause == Pause::LeaveCritical {
        if !left.insert(state.threads[thread.index()].local.clone()) {
            break;
        }
        let action = Action::Step { thread, choice: 0 };
        actions.push(action);
        if machine.apply(state, action).1 != Outcome::Continues {
            break;
        }
    }
}
