//! Atomics that look before they act: a plain load where they come to nothing. As many executions as with any other atomic,
//! and monitors that agree with brute force, with the graph, and with the machine with store buffers.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use weakspot_explore::graph::{Graph, Watching};
use weakspot_explore::interpreter::Interpreter;
use weakspot_explore::linearise::{Lineariser, observed};
use weakspot_explore::monitor::operational::Operational;
use weakspot_explore::monitor::sober::Sober;
use weakspot_explore::monitor::{Finding, Monitor};
use weakspot_explore::system::{CellId, Judgement, Misuse, Pending, System, Token, Update};
use weakspot_explore::trust::{Ending, Explorer, Visitor};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::{Instr, Program, RmwOp};
use weakspot_model::machine::Machine;
use weakspot_model::trace::Trace;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::{Expr, Sketch, Stmt};

/// A program whose compare-and-swaps look first.
struct Looking<'p> {
    inner: Interpreter<'p>,
    looks: bool,
    has_tokens: bool,
}

impl System for Looking<'_> {
    fn restart(&mut self) {
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
        self.inner.pending(thread)
    }
    fn update(&self, thread: ThreadId, current: i64) -> Update {
        self.inner.update(thread, current)
    }
    fn looks(&self, thread: ThreadId) -> bool {
        let fails = |value| matches!(self.inner.update(thread, value), Update::Acts { written: None, .. });
        self.looks && (-1..=3).any(fails)
    }
    fn resume(&mut self, thread: ThreadId, result: i64) {
        self.inner.resume(thread, result);
    }
    fn fail(&mut self, thread: ThreadId, misuse: Misuse) {
        self.inner.fail(thread, misuse);
    }
    fn save(&self, thread: ThreadId) -> Option<Token> {
        self.inner.save(thread).filter(|_| self.has_tokens)
    }
    fn restore(&mut self, thread: ThreadId, token: Token) {
        self.inner.restore(thread, token);
    }
    fn judge(&self, memory: &dyn Fn(CellId) -> i64) -> Judgement {
        self.inner.judge(memory)
    }
}

/// What the monitor of an execution finds, and the graph.
struct Watch<M> {
    monitor: M,
    lazily: bool,
    lineariser: Lineariser,
    executions: usize,
    borderline: usize,
}

impl<M: Monitor> Watch<M> {
    fn feed(&mut self, graph: &Graph, found: &mut BTreeSet<Finding>) {
        self.monitor.reset();
        let events = self.lineariser.order().iter().filter_map(|&id| observed(graph, id));
        found.extend(events.filter_map(|event| self.monitor.observe(&event)));
    }
}

impl<M: Monitor, S: System> Visitor<S> for Watch<M> {
    fn failed(&mut self, _: &Graph, _: &mut S, _: ThreadId) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn ended(&mut self, graph: &Graph, _: &mut S, _: Ending) -> ControlFlow<()> {
        self.executions += 1;
        let mut found = BTreeSet::new();
        if self.lazily {
            for thread in 0..graph.width() {
                self.lineariser.linearise_lazily(graph, thread);
                self.feed(graph, &mut found);
            }
        } else {
            assert!(self.lineariser.linearise(graph));
            self.feed(graph, &mut found);
        }
        assert_eq!(graph.findings().collect::<BTreeSet<_>>(), found);
        assert_eq!(graph.is_borderline(), !found.is_empty());
        self.borderline += usize::from(!found.is_empty());
        ControlFlow::Continue(())
    }
}

/// How many executions there are, and in how many the monitor finds something.
fn explore<M: Monitor>(
    program: &Program,
    (looks, has_tokens): (bool, bool),
    (watching, lazily): (Watching, bool),
    make: impl Fn(usize, usize) -> M,
) -> (usize, usize) {
    let mut system = Looking { inner: Interpreter::new(program, None), looks, has_tokens };
    let monitor = make(system.threads(), system.cells());
    let mut watch = Watch { monitor, lazily, lineariser: Lineariser::default(), executions: 0, borderline: 0 };
    let ended = Explorer::new(&mut system).watching(watching).run(&mut watch);
    assert!(ended.is_continue());
    (watch.executions, watch.borderline)
}

fn sober(program: &Program, how: (bool, bool)) -> (usize, usize) {
    explore(program, how, (Watching::Sober, false), Sober::corrected)
}

fn operational(program: &Program, how: (bool, bool), model: MemoryModel) -> (usize, usize) {
    let make = |threads, cells| Operational::new(model, threads, cells);
    explore(program, how, (Watching::Operational(model), true), make)
}

/// What every compare-and-swap expects is a number that is known.
fn expecting_numbers(mut sketch: Sketch) -> Sketch {
    for stmt in sketch.threads.iter_mut().flatten() {
        if let Stmt::Rmw(_, _, RmwOp::Cas { old, .. }) = stmt
            && !matches!(old, Expr::Const(_))
        {
            *old = Expr::Const(1);
        }
    }
    sketch
}

/// The same with loads in the place of those that come to nothing: which they are is guessed, and assumed to be right. Or with
/// another load before each of them, whatever that finds.
fn in_two_ways(sketch: &Sketch, always_look: bool) -> Sketch {
    let (guess, found) = (sketch.registers, sketch.registers + 1);
    let mut guessing = Sketch { registers: sketch.registers + 2, ..sketch.clone() };
    for thread in &mut guessing.threads {
        *thread =
            std::mem::take(thread).into_iter().flat_map(|stmt| ways_of(stmt, guess, found, always_look)).collect();
    }
    guessing
}

fn ways_of(stmt: Stmt, guess: usize, found: usize, always_look: bool) -> Vec<Stmt> {
    let Stmt::Rmw(into, cell, op @ RmwOp::Cas { old: Expr::Const(old), .. }) = stmt else { return vec![stmt] };
    let set = |result| into.map(|register| Stmt::Set(register, Expr::Const(result)));
    let mut fails = vec![Stmt::Load(found, cell), Stmt::Assume(Expr::Ne(found, old))];
    fails.extend(set(0));
    let mut acts = vec![Stmt::Rmw(Some(found), cell, op), Stmt::Assume(Expr::Eq(found, 1))];
    acts.extend(set(1));
    let mut all = if always_look { vec![Stmt::Load(found, cell)] } else { Vec::new() };
    all.extend([Stmt::Choose(guess, 0, 1), Stmt::If(Expr::Eq(guess, 0), fails, acts)]);
    all
}

fn traces(program: &Program, model: MemoryModel) -> Option<BTreeSet<Trace>> {
    let bounds = Bounds { visits: 60_000, ..Bounds::default() };
    Some(oracle::traces(&Machine::new(program, model), bounds)?.into_keys().collect())
}

fn locked(mut program: Program, is_locked: bool) -> Program {
    for instr in program.threads.iter_mut().flat_map(|thread| &mut thread.code) {
        if let Instr::Rmw { drains_all, .. } = instr {
            *drains_all |= is_locked;
        }
    }
    program
}

fn is_unsafe(program: &Program, model: MemoryModel) -> Option<bool> {
    Some(traces(program, MemoryModel::Sc)? != traces(program, model)?)
}

/// What is wrong, if anything; nothing if the program is too large.
fn complaint(sketch: &Sketch, is_locked: bool) -> Option<String> {
    let program = locked(sketch.program(), is_locked);
    let [seldom, always] = [false, true].map(|always| locked(in_two_ways(sketch, always).program(), is_locked));
    let traces = traces(&seldom, MemoryModel::Sc)?.len();
    let without = sober(&program, (false, true)).0;
    let bounds = |model| Some((is_unsafe(&seldom, model)?, is_unsafe(&always, model)?));
    let (tso, pso) = (bounds(MemoryModel::Tso)?, bounds(MemoryModel::Pso)?);
    for has_tokens in [true, false] {
        let how = (true, has_tokens);
        let found = [
            (tso, sober(&program, how), "sober"),
            (tso, operational(&program, how, MemoryModel::Tso), "operational, TSO"),
            (pso, operational(&program, how, MemoryModel::Pso), "operational, PSO"),
        ];
        for ((must, may), (executions, borderline), who) in found {
            if executions != without || executions != traces {
                return Some(format!("{executions} executions, {without} if nobody looks, {traces} traces"));
            }
            if must && borderline == 0 || !may && borderline > 0 {
                return Some(format!("{who}: must {must}, may {may}, borderline {borderline}, tokens {has_tokens}"));
            }
        }
    }
    Some(String::new())
}

fn check(shape: &Shape, seeds: std::ops::Range<u64>) -> usize {
    let mut programs = 0;
    for seed in seeds {
        let sketch = expecting_numbers(shape.generate(seed));
        let is_locked = seed % 3 == 0;
        let Some(wrong) = complaint(&sketch, is_locked) else { continue };
        if !wrong.is_empty() {
            let smallest =
                shrink(&sketch, |smaller| complaint(smaller, is_locked).is_some_and(|text| !text.is_empty()));
            panic!("seed {seed}: {}\n{}", complaint(&smallest, is_locked).unwrap(), smallest.text());
        }
        let has_cas = |stmt: &Stmt| matches!(stmt, Stmt::Rmw(_, _, RmwOp::Cas { .. }));
        programs += usize::from(sketch.threads.iter().flatten().any(has_cas));
    }
    programs
}

#[test]
fn two_threads_that_look_are_what_brute_force_says() {
    let shape = Shape { threads: 2..=2, statements: 2..=5, cells: 1..=2, ..Shape::straight_line() };
    let programs = check(&shape, 0..1_000);
    assert!(programs > 300, "{programs}");
}

#[test]
fn three_threads_that_look_are_what_brute_force_says() {
    let shape = Shape { threads: 3..=3, statements: 2..=3, cells: 1..=2, ..Shape::straight_line() };
    let programs = check(&shape, 3_000..3_300);
    assert!(programs > 80, "{programs}");
}
