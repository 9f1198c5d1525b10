//! One execution for each trace: the explorer against brute force on random programs.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use weakspot_explore::graph::{Graph, NONE};
use weakspot_explore::interpreter::Interpreter;
use weakspot_explore::linearise::Lineariser;
use weakspot_explore::outcome::actions_of;
use weakspot_explore::system::{CellId, Judgement, Misuse, Pending, System, Update};
use weakspot_explore::trust::{Ending, Explorer, Visitor};
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::machine::{Action, Effect, Machine, Outcome, Rest, State};
use weakspot_model::problem::ProblemKind;
use weakspot_model::replay::{Ending as ReplayEnding, replay};
use weakspot_model::source::SourceFile;
use weakspot_model::trace::{Trace, TraceBuilder};
use weakspot_testkit::generate::Shape;
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::Sketch;

/// What one execution did: its trace, and the values each thread chose (waiters included).
type Key = (Trace, Vec<Vec<i64>>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    complete: BTreeMap<Key, usize>,
    deadlocks: BTreeMap<Key, usize>,
    problems: BTreeSet<ProblemKind>,
}

const MOST_STATES: usize = 60_000;

/// A state of the search: the machine, the trace so far, and what each thread chose.
type Node = (State, TraceBuilder, Vec<Vec<i64>>);

fn machine(program: &Program, spurious_wakeups: bool) -> Machine<'_> {
    Machine { spurious_wakeups, ..Machine::new(program, MemoryModel::Sc) }
}

/// Every interleaving of the SC machine.
fn brute_force(program: &Program, spurious_wakeups: bool) -> Option<Found> {
    let machine = machine(program, spurious_wakeups);
    let mut found = Found::default();
    let (start, outcome) = machine.start();
    match outcome {
        Outcome::Continues => {}
        Outcome::Pruned => return Some(found),
        Outcome::Failed(problem) => {
            found.problems.insert(problem.kind);
            return Some(found);
        }
    }
    let threads = program.threads.len();
    let first: Node = (start, TraceBuilder::new(threads), vec![Vec::new(); threads]);
    let mut seen: HashSet<Node> = HashSet::new();
    let mut waiting = vec![first];
    while let Some((state, builder, choices)) = waiting.pop() {
        let actions = machine.enabled(&state);
        if actions.is_empty() {
            let key = || (builder.clone().finish(), choices.clone());
            match machine.rest(&state) {
                Rest::Finished => *found.complete.entry(key()).or_default() = 1,
                Rest::Failed(problem) => {
                    found.problems.insert(problem.kind);
                    if problem.kind == ProblemKind::Deadlock {
                        *found.deadlocks.entry(key()).or_default() = 1;
                    }
                }
                Rest::Pruned | Rest::Spinning => {}
            }
        }
        for action in actions {
            let (mut state, mut builder, mut choices) = (state.clone(), builder.clone(), choices.clone());
            let thread = action.thread();
            let pc = state.threads[thread.index()].local.pc;
            let (effect, outcome) = machine.apply(&mut state, action);
            if let Some(effect) = effect {
                builder.record(program, thread, pc, effect);
                note_choice(&mut choices, action, effect);
            }
            match outcome {
                Outcome::Continues => {
                    let node = (state, builder, choices);
                    if seen.insert(node.clone()) {
                        waiting.push(node);
                    }
                }
                Outcome::Pruned => {}
                Outcome::Failed(problem) => {
                    found.problems.insert(problem.kind);
                }
            }
        }
        if seen.len() > MOST_STATES {
            return None;
        }
    }
    Some(found)
}

fn note_choice(choices: &mut [Vec<i64>], action: Action, effect: Effect) {
    if let Action::Step { thread, choice } = action
        && matches!(effect, Effect::Choose { .. } | Effect::Notify { .. })
    {
        choices[thread.index()].push(choice);
    }
}

/// Replays every explored graph on the machine and notes what it is.
struct Recorder<'p> {
    program: &'p Program,
    spurious_wakeups: bool,
    found: Found,
    blocked: usize,
    lineariser: Lineariser,
}

impl Recorder<'_> {
    fn key(&self, actions: &[Action], ending: &ReplayEnding) -> Key {
        let machine = machine(self.program, self.spurious_wakeups);
        let replayed = replay(&machine, actions).unwrap();
        assert_eq!(&replayed.ending, ending, "the explorer and the machine disagree");
        let threads = self.program.threads.len();
        let (mut builder, mut choices) = (TraceBuilder::new(threads), vec![Vec::new(); threads]);
        for step in &replayed.steps {
            builder.record(self.program, step.action.thread(), step.pc, step.effect.unwrap());
            note_choice(&mut choices, step.action, step.effect.unwrap());
        }
        (builder.finish(), choices)
    }
}

impl<'p> Visitor<Interpreter<'p>> for Recorder<'p> {
    fn failed(&mut self, graph: &Graph, system: &mut Interpreter<'p>, thread: ThreadId) -> ControlFlow<()> {
        let problem = system.problem(thread).unwrap();
        let last = graph.thread(thread.index()).last;
        if last == NONE {
            self.found.problems.insert(problem.kind);
            return ControlFlow::Continue(());
        }
        self.lineariser.linearise_some(graph, |id| graph.happens_before(id, last));
        let actions = actions_of(graph, self.lineariser.order());
        let machine = machine(self.program, self.spurious_wakeups);
        // Some other thread may break the specification first.
        let replayed = replay(&machine, &actions);
        if let Ok(replayed) = replayed {
            let ReplayEnding::Failed(found) = replayed.ending else { panic!("the machine sees no problem") };
            self.found.problems.insert(found.kind);
        }
        ControlFlow::Continue(())
    }

    fn ended(&mut self, graph: &Graph, _: &mut Interpreter<'p>, ending: Ending) -> ControlFlow<()> {
        assert!(self.lineariser.linearise(graph), "a graph that ends is consistent");
        let actions = actions_of(graph, self.lineariser.order());
        match ending {
            Ending::Complete => {
                let key = self.key(&actions, &ReplayEnding::Finished);
                *self.found.complete.entry(key).or_default() += 1;
            }
            Ending::Deadlock | Ending::Wrong => {
                let machine = machine(self.program, self.spurious_wakeups);
                let replayed = replay(&machine, &actions).unwrap();
                let ReplayEnding::Failed(problem) = &replayed.ending else { panic!("{:?}", replayed.ending) };
                self.found.problems.insert(problem.kind);
                if ending == Ending::Deadlock {
                    assert_eq!(problem.kind, ProblemKind::Deadlock);
                    let key = self.key(&actions, &replayed.ending);
                    *self.found.deadlocks.entry(key).or_default() += 1;
                }
            }
            Ending::Failed | Ending::Spinning | Ending::Bounded | Ending::TooLong => {}
            Ending::Blocked | Ending::Livelock => self.blocked += 1,
        }
        ControlFlow::Continue(())
    }
}

fn explore(program: &Program, tokens: bool, spurious_wakeups: bool) -> (Found, usize) {
    let mut system = Interpreter::new(program, None);
    if !tokens {
        system = system.without_tokens();
    }
    let (found, lineariser) = (Found::default(), Lineariser::default());
    let mut recorder = Recorder { program, spurious_wakeups, found, blocked: 0, lineariser };
    let mut explorer = Explorer::new(&mut system);
    if spurious_wakeups {
        explorer = explorer.with_spurious_wakeups();
    }
    let _ = explorer.run(&mut recorder);
    (recorder.found, recorder.blocked)
}

#[derive(Debug, Default)]
struct Tally {
    programs: usize,
    executions: usize,
    deadlocks: usize,
    blocked: usize,
    problems: HashMap<ProblemKind, usize>,
}

fn differ(sketch: &Sketch, tokens: bool, spurious_wakeups: bool) -> Option<bool> {
    let program = sketch.program();
    Some(explore(&program, tokens, spurious_wakeups).0 != brute_force(&program, spurious_wakeups)?)
}

fn check(shape: &Shape, seeds: std::ops::Range<u64>) -> Tally {
    check_with(shape, seeds, false)
}

fn check_with(shape: &Shape, seeds: std::ops::Range<u64>, spurious: bool) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let sketch = shape.generate(seed);
        let program = sketch.program();
        let Some(expected) = brute_force(&program, spurious) else { continue };
        let tokens = seed % 3 != 0;
        let (found, blocked) = explore(&program, tokens, spurious);
        if found != expected {
            let smallest = shrink(&sketch, |smaller| differ(smaller, tokens, spurious) == Some(true));
            let program = smallest.program();
            let (found, expected) = (explore(&program, tokens, spurious).0, brute_force(&program, spurious).unwrap());
            panic!(
                "seed {seed}:\n{}\nexplored {} traces ({} executions, {} deadlocks, {:?}), brute force {} ({} deadlocks, {:?})",
                smallest.text(),
                found.complete.len(),
                found.complete.values().sum::<usize>(),
                found.deadlocks.len(),
                found.problems,
                expected.complete.len(),
                expected.deadlocks.len(),
                expected.problems,
            );
        }
        tally.programs += 1;
        tally.executions += found.complete.len();
        tally.deadlocks += found.deadlocks.len();
        tally.blocked += blocked;
        for problem in found.problems {
            *tally.problems.entry(problem).or_default() += 1;
        }
    }
    tally
}

fn base() -> Shape {
    Shape { statements: 1..=5, ..Shape::straight_line() }
}

#[test]
fn loads_and_stores_of_two_threads() {
    let shape = Shape { threads: 2..=2, statements: 2..=7, atomics: false, cells: 1..=2, ..base() };
    let tally = check(&shape, 0..1_000);
    assert!(tally.programs > 900 && tally.executions > 5_000 && tally.blocked == 0, "{tally:?}");
}

#[test]
fn loads_and_stores_of_four_threads() {
    let shape = Shape { threads: 3..=4, statements: 1..=3, atomics: false, cells: 1..=2, ..base() };
    let tally = check(&shape, 1_000..1_700);
    assert!(tally.programs > 500 && tally.executions > 5_000 && tally.blocked == 0, "{tally:?}");
}

#[test]
fn atomics() {
    let shape = Shape { threads: 2..=3, statements: 1..=4, cells: 1..=2, ..base() };
    let tally = check(&shape, 2_000..3_200);
    assert!(tally.programs > 1_000 && tally.executions > 5_000 && tally.blocked == 0, "{tally:?}");
}

#[test]
fn branches_and_choices() {
    let shape = Shape { branches: true, choose: true, threads: 2..=3, ..base() };
    let tally = check(&shape, 4_000..4_500);
    assert!(tally.programs > 400 && tally.executions > 5_000 && tally.blocked == 0, "{tally:?}");
}

#[test]
fn assumptions_and_assertions() {
    let shape = Shape { branches: true, assume: true, assert: true, range_errors: true, ..base() };
    let tally = check(&shape, 5_000..5_600);
    assert!(tally.programs > 400 && tally.executions > 3_000 && tally.problems.len() > 1, "{tally:?}");
}

/// One cell: what fails comes after reads that an assumption depends on, or before them.
#[test]
fn failures_beside_assumptions() {
    let shape =
        Shape { assume: true, assert: true, atomics: false, cells: 1..=1, threads: 2..=3, statements: 2..=4, ..base() };
    let tally = check(&shape, 20_000..21_500);
    assert!(tally.programs > 1_000 && tally.problems.len() == 1, "{tally:?}");
}

/// The write before the failure revisits the read of the assumption, which then comes after it.
#[test]
fn failures_before_a_false_assumption() {
    let threads = ["z = 1; assume(z == 3);", "let r = z; z = 2; assert(r != 1); z = 3;"];
    for [first, second] in [threads, [threads[1], threads[0]]] {
        let text = format!("shared z; thread a {{ {first} }} thread b {{ {second} }}");
        let program = compile(&SourceFile::new("test.weak", &text)).unwrap().program;
        let expected = brute_force(&program, false).unwrap();
        assert!(!expected.problems.is_empty());
        for tokens in [true, false] {
            assert!(explore(&program, tokens, false).0 == expected, "{text}, tokens: {tokens}");
        }
    }
}

#[test]
fn locks() {
    let shape = Shape { locks: true, ..base() };
    let tally = check(&shape, 6_000..6_800);
    assert!(tally.programs > 500 && tally.executions > 3_000, "{tally:?}");
}

#[test]
fn stray_locks() {
    let shape = Shape { locks: true, range_errors: true, threads: 2..=3, statements: 1..=4, ..base() };
    let tally = check(&shape, 7_000..7_800);
    assert!(tally.programs > 500 && tally.deadlocks > 100 && tally.problems.len() > 1, "{tally:?}");
}

#[test]
fn condition_variables() {
    let shape = Shape { condvars: true, locks: true, threads: 2..=3, statements: 1..=3, cells: 1..=1, ..base() };
    let tally = check(&shape, 8_000..8_800);
    assert!(tally.programs > 500 && tally.deadlocks > 100, "{tally:?}");
}

/// Several notifications, some of which wake nobody, and threads that sleep more than once.
#[test]
fn notifications_that_come_too_late() {
    let shape = Shape { condvars: true, threads: 2..=4, statements: 1..=3, atomics: false, cells: 1..=1, ..base() };
    let tally = check(&shape, 9_500..10_100);
    assert!(tally.programs > 300 && tally.executions > 1_000 && tally.deadlocks > 100, "{tally:?}");
}

/// Straight-line programs wait only so often: no round is fruitless, and every wake-up is explored.
#[test]
fn wake_ups_without_a_notification() {
    let shape = Shape { condvars: true, locks: true, threads: 2..=3, statements: 1..=3, cells: 1..=1, ..base() };
    let tally = check_with(&shape, 8_000..8_800, true);
    assert!(tally.programs > 500 && tally.executions > 2_000, "{tally:?}");
    let shape = Shape { condvars: true, threads: 2..=4, statements: 1..=2, atomics: false, cells: 1..=1, ..base() };
    let tally = check_with(&shape, 9_000..9_500, true);
    assert!(tally.programs > 300 && tally.executions > 1_000, "{tally:?}");
}

/// A system that is not what it was after some restarts.
struct Flaky<'p> {
    inner: Interpreter<'p>,
    restarts: usize,
    good_for: usize,
}

impl System for Flaky<'_> {
    fn restart(&mut self) {
        self.restarts += 1;
        self.inner.restart();
    }
    fn threads(&self) -> usize {
        self.inner.threads()
    }
    fn cells(&self) -> usize {
        self.inner.cells()
    }
    fn initial(&self, cell: CellId) -> i64 {
        self.inner.initial(cell)
    }
    fn pending(&self, thread: ThreadId) -> Pending {
        match self.inner.pending(thread) {
            Pending::Store { cell, value } if self.restarts > self.good_for => {
                Pending::Store { cell, value: value + 1 }
            }
            Pending::Load(_) if self.restarts > self.good_for + 1 => Pending::Fence(FenceKind::Full),
            pending => pending,
        }
    }
    fn update(&self, thread: ThreadId, current: i64) -> Update {
        self.inner.update(thread, current)
    }
    fn resume(&mut self, thread: ThreadId, result: i64) {
        self.inner.resume(thread, result);
    }
    fn fail(&mut self, thread: ThreadId, misuse: Misuse) {
        self.inner.fail(thread, misuse);
    }
    fn judge(&self, memory: &dyn Fn(CellId) -> i64) -> Judgement {
        self.inner.judge(memory)
    }
}

struct Nothing;

impl<S: System> Visitor<S> for Nothing {
    fn failed(&mut self, _: &Graph, _: &mut S, _: ThreadId) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn ended(&mut self, _: &Graph, _: &mut S, _: Ending) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[test]
fn a_system_that_does_not_repeat_itself_is_found_out() {
    let shape = Shape { threads: 2..=2, statements: 3..=5, cells: 1..=1, atomics: false, ..base() };
    let mut diverged = 0;
    for seed in 0..60 {
        let program = shape.generate(seed).program();
        for good_for in 1..6 {
            let mut system = Flaky { inner: Interpreter::new(&program, None), restarts: 0, good_for };
            let mut explorer = Explorer::new(&mut system);
            let ended = explorer.run(&mut Nothing);
            assert_eq!(ended.is_break(), explorer.divergence().is_some());
            if let Some(divergence) = explorer.divergence() {
                let message = divergence.to_string();
                let was = format!("its event {} was {:?}; run again", divergence.event, divergence.was);
                assert!(message.contains("is not deterministic") && message.contains(&was), "{message}");
            }
            diverged += usize::from(ended.is_break());
        }
    }
    assert!(diverged > 100, "{diverged}");
}
