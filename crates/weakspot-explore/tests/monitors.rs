//! The monitors against brute force: a program is store-buffer safe exactly if no explored execution trips them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use weakspot_explore::graph::{Graph, Watching};
use weakspot_explore::interpreter::Interpreter;
use weakspot_explore::linearise::{Lineariser, observed};
use weakspot_explore::monitor::operational::Operational;
use weakspot_explore::monitor::sober::Sober;
use weakspot_explore::monitor::{Event, Finding, Monitor, Operation};
use weakspot_explore::system::System;
use weakspot_explore::trust::{Ending, Explorer, Visitor};
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::{FenceKind, Instr, Program, RmwOp};
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_model::trace::Trace;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::{Expr, Sketch, SketchCell, Stmt};

/// Feeds every explored execution to a monitor.
struct Watch<M> {
    monitor: M,
    lineariser: Lineariser,
    /// One linearisation a thread, or one in all?
    lazily: bool,
    borderline: usize,
    executions: usize,
}

impl<M: Monitor> Watch<M> {
    fn feed(&mut self, graph: &Graph) -> Option<Finding> {
        self.monitor.reset();
        let mut first = None;
        for &id in self.lineariser.order() {
            if let Some(event) = observed(graph, id) {
                first = first.or(self.monitor.observe(&event));
            }
        }
        first
    }
}

impl<M: Monitor, S: System> Visitor<S> for Watch<M> {
    fn failed(&mut self, _: &Graph, _: &mut S, _: ThreadId) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn ended(&mut self, graph: &Graph, _: &mut S, _: Ending) -> ControlFlow<()> {
        self.executions += 1;
        let mut trips = false;
        if self.lazily {
            for thread in 0..graph.width() {
                self.lineariser.linearise_lazily(graph, thread);
                assert_eq!(self.lineariser.order().len(), graph.events().len());
                trips |= self.feed(graph).is_some();
            }
        } else {
            assert!(self.lineariser.linearise(graph));
            trips = self.feed(graph).is_some();
        }
        self.borderline += usize::from(trips);
        ControlFlow::Continue(())
    }
}

fn borderline<M: Monitor>(program: &Program, make: impl Fn(usize, usize) -> M, lazily: bool) -> usize {
    let mut system = Interpreter::new(program, None);
    let monitor = make(system.threads(), system.cells());
    let mut watch = Watch { monitor, lineariser: Lineariser::default(), lazily, borderline: 0, executions: 0 };
    let _ = Explorer::new(&mut system).run(&mut watch);
    watch.borderline
}

fn traces(program: &Program, model: MemoryModel) -> Option<BTreeSet<Trace>> {
    let bounds = Bounds { visits: 60_000, ..Bounds::default() };
    Some(oracle::traces(&Machine::new(program, model), bounds)?.into_keys().collect())
}

fn is_unsafe(program: &Program, model: MemoryModel) -> Option<bool> {
    Some(traces(program, MemoryModel::Sc)? != traces(program, model)?)
}

fn locked_atomics(mut program: Program) -> Program {
    for instr in program.threads.iter_mut().flat_map(|thread| &mut thread.code) {
        if let Instr::Rmw { drains_all, .. } = instr {
            *drains_all = true;
        }
    }
    program
}

fn sober_trips(program: &Program) -> bool {
    borderline(program, Sober::corrected, false) > 0
}

fn operational_trips(program: &Program, model: MemoryModel) -> bool {
    borderline(program, |threads, cells| Operational::new(model, threads, cells), true) > 0
}

/// What is wrong with the monitors on a program, if anything.
fn complaint(program: &Program) -> Option<String> {
    let tso = is_unsafe(program, MemoryModel::Tso)?;
    let pso = is_unsafe(program, MemoryModel::Pso)?;
    if sober_trips(program) != tso {
        return Some(format!("tso unsafe: {tso}, sober disagrees"));
    }
    if operational_trips(program, MemoryModel::Tso) != tso {
        return Some(format!("tso unsafe: {tso}, operational disagrees"));
    }
    if operational_trips(program, MemoryModel::Pso) != pso {
        return Some(format!("pso unsafe: {pso}, operational disagrees"));
    }
    if tso && !pso {
        return Some("unsafe under tso only".to_owned());
    }
    Some(String::new())
}

fn check(shape: &Shape, seeds: std::ops::Range<u64>) -> (usize, usize, usize) {
    let (mut programs, mut tso, mut pso) = (0, 0, 0);
    for seed in seeds {
        let sketch = shape.generate(seed);
        let lower = |sketch: &Sketch| {
            if seed % 4 == 0 { locked_atomics(sketch.program()) } else { sketch.program() }
        };
        let program = lower(&sketch);
        let Some(wrong) = complaint(&program) else { continue };
        if !wrong.is_empty() {
            let smallest = shrink(&sketch, |smaller| complaint(&lower(smaller)).is_some_and(|text| !text.is_empty()));
            panic!("seed {seed}: {}\n{}", complaint(&lower(&smallest)).unwrap(), smallest.text());
        }
        programs += 1;
        tso += usize::from(sober_trips(&program));
        pso += usize::from(operational_trips(&program, MemoryModel::Pso));
    }
    (programs, tso, pso)
}

#[test]
fn monitors_agree_with_brute_force_on_two_threads() {
    let shape = Shape { threads: 2..=2, statements: 2..=5, cells: 2..=2, ..Shape::straight_line() };
    let (programs, tso, pso) = check(&shape, 0..2_500);
    assert!(programs > 2_000 && tso > 200 && pso > tso, "{programs} {tso} {pso}");
}

#[test]
fn monitors_agree_with_brute_force_on_three_threads() {
    let shape = Shape { threads: 3..=3, statements: 2..=3, cells: 2..=2, ..Shape::straight_line() };
    let (programs, tso, pso) = check(&shape, 3_000..4_000);
    assert!(programs > 700 && tso > 50 && pso > tso, "{programs} {tso} {pso}");
}

#[test]
fn monitors_agree_with_brute_force_on_branches_and_locks() {
    let shape = Shape { branches: true, locks: true, condvars: true, ..Shape::straight_line() };
    let (programs, tso, pso) = check(&shape, 5_000..5_600);
    assert!(programs > 300 && tso > 5 && pso > tso, "{programs} {tso} {pso}");
}

fn sketch(threads: Vec<Vec<Stmt>>) -> Program {
    let cells = vec![SketchCell { init: 0, range: None }; 2];
    Sketch { cells, mutexes: 0, condvars: 0, registers: 2, threads, forbidden: Vec::new() }.program()
}

#[test]
fn n6_trips_the_corrected_monitor_and_not_the_published_one() {
    let (x, y) = (0, 1);
    let program = sketch(vec![
        vec![Stmt::Store(x, Expr::Const(1)), Stmt::Load(0, x), Stmt::Load(1, y)],
        vec![Stmt::Store(y, Expr::Const(2)), Stmt::Store(x, Expr::Const(2))],
    ]);
    assert_eq!(is_unsafe(&program, MemoryModel::Tso), Some(true));
    assert!(sober_trips(&program));
    assert_eq!(borderline(&program, Sober::published, false), 0);
    assert!(operational_trips(&program, MemoryModel::Tso));
}

#[test]
fn a_store_fence_makes_message_passing_safe_under_pso() {
    let (x, y) = (0, 1);
    let reader = vec![Stmt::Load(0, y), Stmt::Load(1, x)];
    let writer = |fence: Option<Stmt>| {
        let mut body = vec![Stmt::Store(x, Expr::Const(1))];
        body.extend(fence);
        body.push(Stmt::Store(y, Expr::Const(1)));
        body
    };
    let plain = sketch(vec![writer(None), reader.clone()]);
    assert!(operational_trips(&plain, MemoryModel::Pso) && !operational_trips(&plain, MemoryModel::Tso));
    let fenced = sketch(vec![writer(Some(Stmt::Fence(FenceKind::StoreStore))), reader]);
    assert!(!operational_trips(&fenced, MemoryModel::Pso));
}

/// Relaxed happens-before of an execution, edge by edge, from its definition.
fn relaxed_edges(events: &[Event], corrected: bool) -> Vec<Vec<bool>> {
    let reads = |e: &Event| matches!(e.operation, Operation::Load | Operation::Atomic { .. });
    let writes = |e: &Event| matches!(e.operation, Operation::Store | Operation::Atomic { writes: true, .. });
    let fence = |e: &Event| e.operation == Operation::FullFence;
    let plain = |e: &Event| e.operation == Operation::Store;
    let n = events.len();
    let mut reach = vec![vec![false; n]; n];
    for later in 0..n {
        reach[later][later] = true;
        let b = &events[later];
        for earlier in 0..later {
            let a = &events[earlier];
            if a.thread == b.thread {
                reach[earlier][later] |= !(plain(a) && b.operation == Operation::Load);
            }
            if fence(a) || fence(b) || a.cell != b.cell {
                continue;
            }
            if writes(b) && (writes(a) || reads(a)) {
                reach[earlier][later] |= !(plain(a) && b.operation == Operation::Load && a.thread == b.thread);
            } else if writes(a) && reads(b) {
                // The load's source is the last write of the cell.
                let source = events[..later].iter().rposition(|e| !fence(e) && e.cell == b.cell && writes(e)).unwrap();
                let own = |e: &Event| e.thread == b.thread && plain(e);
                reach[earlier][later] |= match b.operation {
                    Operation::Load if corrected => source == earlier && !own(a),
                    Operation::Load => !own(a),
                    _ => true,
                };
            }
        }
    }
    for middle in 0..n {
        for from in 0..n {
            if reach[from][middle] {
                let further = reach[middle].clone();
                reach[from].iter_mut().zip(further).for_each(|(reached, more)| *reached |= more);
            }
        }
    }
    reach
}

/// Theorem 5 of the paper (Theorem 12 of the report): timestamps are ordered as relaxed happens-before is.
struct Theorem {
    monitor: Sober,
    corrected: bool,
    lineariser: Lineariser,
    pairs: usize,
}

impl<S: System> Visitor<S> for Theorem {
    fn failed(&mut self, _: &Graph, _: &mut S, _: ThreadId) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn ended(&mut self, graph: &Graph, _: &mut S, _: Ending) -> ControlFlow<()> {
        assert!(self.lineariser.linearise(graph));
        let events: Vec<Event> = self.lineariser.order().iter().filter_map(|&id| observed(graph, id)).collect();
        let events: Vec<Event> = events.into_iter().filter(|e| e.operation != Operation::StoreFence).collect();
        let expected = relaxed_edges(&events, self.corrected);
        self.monitor.reset();
        let mut stamps: Vec<Vec<u32>> = Vec::new();
        for event in &events {
            self.monitor.observe(event);
            stamps.push(self.monitor.timestamp().to_vec());
        }
        for later in 0..events.len() {
            for earlier in 0..=later {
                let ordered = stamps[earlier].iter().zip(&stamps[later]).all(|(a, b)| a <= b);
                assert_eq!(ordered, expected[earlier][later], "{events:?}\n{earlier} {later}");
                self.pairs += 1;
            }
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn timestamps_are_ordered_as_relaxed_happens_before() {
    let shape = Shape { threads: 2..=3, statements: 1..=4, cells: 1..=2, ..Shape::straight_line() };
    for corrected in [true, false] {
        let mut pairs = 0;
        for seed in 0..250 {
            let program = shape.generate(seed).program();
            let mut system = Interpreter::new(&program, None);
            let make = if corrected { Sober::corrected } else { Sober::published };
            let monitor = make(system.threads(), system.cells());
            let mut theorem = Theorem { monitor, corrected, lineariser: Lineariser::default(), pairs: 0 };
            let _ = Explorer::new(&mut system).run(&mut theorem);
            pairs += theorem.pairs;
        }
        assert!(pairs > 50_000, "only {pairs} pairs of events");
    }
}

/// The question asked of the graph against the monitor on linearisations, execution by execution.
struct Both<M> {
    monitor: M,
    /// One linearisation a thread, or one in all?
    lazily: bool,
    lineariser: Lineariser,
    executions: usize,
    findings: usize,
    borderline: usize,
    /// Ask for all findings each time, or for the first only?
    all: bool,
    /// What the graph told, by the events' threads and places.
    told: BTreeSet<[(u32, u32); 2]>,
    expected: BTreeSet<[(u32, u32); 2]>,
}

/// After so many executions of a program it is time for another one.
const MOST_EXECUTIONS: usize = 2_000;

fn places(graph: &Graph, finding: Finding) -> [(u32, u32); 2] {
    [finding.store, finding.access].map(|id| (graph.event(id).thread, graph.event(id).before.0))
}

impl<M: Monitor> Both<M> {
    fn new(monitor: M, lazily: bool, all: bool) -> Self {
        Self {
            monitor,
            lazily,
            lineariser: Lineariser::default(),
            executions: 0,
            findings: 0,
            borderline: 0,
            all,
            told: BTreeSet::new(),
            expected: BTreeSet::new(),
        }
    }

    fn feed(&mut self, graph: &Graph, found: &mut BTreeSet<Finding>) {
        self.monitor.reset();
        let events = self.lineariser.order().iter().filter_map(|&id| observed(graph, id));
        found.extend(events.filter_map(|event| self.monitor.observe(&event)));
    }
}

impl<M: Monitor, S: System> Visitor<S> for Both<M> {
    fn failed(&mut self, _: &Graph, _: &mut S, _: ThreadId) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn ended(&mut self, graph: &Graph, _: &mut S, ending: Ending) -> ControlFlow<()> {
        if self.executions >= MOST_EXECUTIONS {
            return ControlFlow::Break(());
        }
        if ending == Ending::Blocked && graph.has_stuck_read() {
            return ControlFlow::Continue(());
        }
        let mut expected = BTreeSet::new();
        if self.lazily {
            for thread in 0..graph.width() {
                self.lineariser.linearise_lazily(graph, thread);
                self.feed(graph, &mut expected);
            }
        } else {
            assert!(self.lineariser.linearise(graph));
            self.feed(graph, &mut expected);
        }
        assert_eq!(graph.findings().collect::<BTreeSet<_>>(), expected);
        let told = &mut self.told;
        let borderline =
            if self.all { graph.tell(|finding| told.extend([places(graph, finding)])) } else { graph.is_borderline() };
        assert_eq!(borderline, !expected.is_empty());
        self.expected.extend(expected.iter().map(|&finding| places(graph, finding)));
        self.executions += 1;
        self.findings += expected.len();
        self.borderline += usize::from(borderline);
        ControlFlow::Continue(())
    }
}

/// Explores random programs and asks the graph of every execution; how many executions there were and how many findings.
fn ask_the_graph<M: Monitor>(
    seeds: std::ops::Range<u64>,
    watching: Watching,
    lazily: bool,
    make: impl Fn(usize, usize) -> M,
) -> (usize, usize) {
    let (mut executions, mut findings) = (0, 0);
    for seed in seeds {
        let program = random_shape(seed).generate(seed).program();
        let program = if seed % 7 < 2 { locked_atomics(program) } else { program };
        let mut system = Interpreter::new(&program, None);
        let monitor = make(system.threads(), system.cells());
        let mut both = Both::new(monitor, lazily, seed % 3 != 0);
        let _ = Explorer::new(&mut system).watching(watching).run(&mut both);
        if both.all {
            assert_eq!(both.told, both.expected, "the graph tells of every pair at least once: seed {seed}");
        }
        executions += both.executions;
        findings += both.findings;
    }
    (executions, findings)
}

/// A few kinds of statements, in every combination: what one kind can hide another must not.
fn random_shape(seed: u64) -> Shape {
    let has = |bit: u32| (seed >> bit) & 1 == 1;
    let straight = Shape {
        atomics: has(0),
        full_fences: has(1),
        store_fences: has(2),
        branches: has(3),
        choose: has(4) && has(5),
        ..Shape::straight_line()
    };
    match seed % 5 {
        0 => Shape { threads: 2..=3, statements: 1..=4, cells: 1..=2, locks: true, condvars: has(6), ..straight },
        1 => Shape { threads: 3..=3, statements: 2..=3, cells: 2..=3, ..straight },
        2 => Shape { threads: 4..=4, statements: 1..=2, cells: 2..=2, ..straight },
        // Many executions that differ in what is read last.
        3 => Shape { threads: 3..=3, statements: 3..=5, cells: 2..=2, ..straight },
        // Several stores of one thread, some of which others notice.
        _ => Shape { threads: 2..=2, statements: 3..=6, cells: 2..=4, ..straight },
    }
}

#[test]
fn the_graph_finds_what_sober_finds_in_every_execution() {
    let (executions, findings) = ask_the_graph(0..2_000, Watching::Sober, false, Sober::corrected);
    assert!(executions > 5_000 && findings > 300, "{executions} {findings}");
}

#[test]
fn the_graph_finds_what_the_operational_monitors_find_in_every_execution() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let make = |threads, cells| Operational::new(model, threads, cells);
        let (executions, findings) = ask_the_graph(0..2_000, Watching::Operational(model), true, make);
        assert!(executions > 5_000 && findings > 100, "{executions} {findings}");
    }
}

/// Under PSO an atomic waits for the own stores to its cell, and those behind a store fence for the ones in front of it.
#[test]
fn an_atomic_drags_along_what_a_store_fence_holds_together() {
    let program = |atomic: &str| {
        let text = format!(
            "shared x, z, w;
            thread a {{ x = 1; fence(store_store); z = 1; {atomic} let r = w; }}
            thread b {{ w = 1; fence; let r = x; }}"
        );
        compile(&SourceFile::new("test.weak", text)).unwrap().program
    };
    let model = MemoryModel::Pso;
    for (atomic, expected) in [("swap(z, 2);", false), ("", true)] {
        let program = program(atomic);
        assert_eq!(is_unsafe(&program, model), Some(expected), "{atomic}");
        let mut system = Interpreter::new(&program, None);
        let monitor = Operational::new(model, system.threads(), system.cells());
        let mut both = Both::new(monitor, true, true);
        let _ = Explorer::new(&mut system).watching(Watching::Operational(model)).run(&mut both);
        assert_eq!(both.borderline > 0, expected, "{atomic}");
    }
}

/// Under TSO a store that is noticed drags along all earlier ones, whatever fence comes after it.
#[test]
fn a_noticed_store_drags_along_those_before_it() {
    let model = MemoryModel::Tso;
    for (stores, expected) in [("x = 1; z = 1;", false), ("z = 1; x = 1;", true)] {
        let text = format!(
            "shared x, y, z;
            thread a {{ {stores} fence(store_store); let r = y; }}
            thread b {{ let f = z; if f == 1 {{ y = 1; let r = x; }} }}"
        );
        let program = compile(&SourceFile::new("test.weak", text)).unwrap().program;
        assert_eq!(is_unsafe(&program, model), Some(expected), "{stores}");
        let mut system = Interpreter::new(&program, None);
        let monitor = Operational::new(model, system.threads(), system.cells());
        let mut both = Both::new(monitor, true, true);
        let _ = Explorer::new(&mut system).watching(Watching::Operational(model)).run(&mut both);
        assert_eq!(both.borderline > 0, expected, "{stores}");
    }
}

/// Atomics of every kind appear in the random programs.
#[test]
fn random_programs_have_failing_compare_and_swaps() {
    let shape = Shape::straight_line();
    let cas = |stmt: &Stmt| matches!(stmt, Stmt::Rmw(_, _, RmwOp::Cas { .. }));
    assert!((0..50).any(|seed| shape.generate(seed).threads.iter().flatten().any(cas)));
}
