//! Random sketches.
//!
//! A [`Shape`] says what a program may contain. All values are small, so that threads meet the same ones, and every
//! program is finite-state under SC: arithmetic is modulo 3, and cells that `fetch_add` may hit in a loop have a
//! declared range.

use std::ops::RangeInclusive;

use weakspot_model::ir::{FenceKind, RmwOp};

use crate::rng::Rng;
use crate::sketch::{Expr, Observed, Sketch, SketchCell, Stmt};

/// What a random program may contain.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent knobs")]
pub struct Shape {
    /// Number of threads.
    pub threads: RangeInclusive<usize>,
    /// Statements of each thread, not counting those inside others.
    pub statements: RangeInclusive<usize>,
    /// Number of shared cells.
    pub cells: RangeInclusive<usize>,
    /// Read-modify-writes of all kinds.
    pub atomics: bool,
    /// `fence;` and `fence(store_load);`
    pub full_fences: bool,
    /// `fence(store_store);`
    pub store_fences: bool,
    /// `lock` and `unlock`, well nested and sometimes not.
    pub locks: bool,
    /// `wait` and `notify`.
    pub condvars: bool,
    /// `choose`.
    pub choose: bool,
    /// `assume`.
    pub assume: bool,
    /// `assert`, and a `final` block.
    pub assert: bool,
    /// `critical { }`.
    pub critical: bool,
    /// `if`.
    pub branches: bool,
    /// `while` and `loop`, with and without an exit.
    pub loops: bool,
    /// Stores and `fetch_add` may leave the declared range of a cell.
    pub range_errors: bool,
}

impl Shape {
    /// Loads, stores, atomics and fences, one after the other: for tests about traces.
    pub fn straight_line() -> Self {
        Self {
            threads: 2..=3,
            statements: 1..=3,
            cells: 2..=3,
            atomics: true,
            full_fences: true,
            store_fences: true,
            locks: false,
            condvars: false,
            choose: false,
            assume: false,
            assert: false,
            critical: false,
            branches: false,
            loops: false,
            range_errors: false,
        }
    }

    /// Everything that ends: for tests that look at final states and problems.
    pub fn terminating() -> Self {
        Self {
            locks: true,
            condvars: true,
            choose: true,
            assume: true,
            assert: true,
            critical: true,
            branches: true,
            range_errors: true,
            statements: 1..=4,
            ..Self::straight_line()
        }
    }

    /// Everything, with loops: finite-state under SC, but store buffers may grow for ever.
    pub fn looping() -> Self {
        Self { loops: true, threads: 2..=2, cells: 1..=2, ..Self::terminating() }
    }

    /// A random program of this shape.
    pub fn generate(&self, seed: u64) -> Sketch {
        let mut rng = Rng::new(seed);
        let cells = rng.within(self.cells.clone());
        let ranged = self.range_errors || self.loops;
        let range = |rng: &mut Rng| (ranged && (self.loops || rng.one_in(3))).then_some((0, 3));
        let cells = (0..cells).map(|_| SketchCell { init: rng.below(4) as i64 / 3, range: range(&mut rng) }).collect();
        let mut sketch = Sketch {
            cells,
            mutexes: usize::from(self.locks || self.condvars),
            condvars: usize::from(self.condvars),
            registers: 2,
            threads: Vec::new(),
            forbidden: Vec::new(),
        };
        for _ in 0..rng.within(self.threads.clone()) {
            let count = rng.within(self.statements.clone());
            let mut writer = Writer { shape: self, sketch: &sketch, rng: &mut rng, in_loop: false };
            let body = writer.block(count, 2);
            sketch.threads.push(body);
        }
        if self.assert && rng.one_in(2) {
            sketch.forbidden = forbidden(&sketch, &mut rng);
        }
        sketch
    }
}

fn forbidden(sketch: &Sketch, rng: &mut Rng) -> Vec<(Observed, i64)> {
    let count = rng.within(1..=3);
    let mut atoms = Vec::with_capacity(count);
    for _ in 0..count {
        let observed = if rng.one_in(3) {
            Observed::Cell(rng.below(sketch.cells.len()))
        } else {
            Observed::Register(rng.below(sketch.threads.len()), rng.below(sketch.registers))
        };
        atoms.push((observed, rng.below(3) as i64));
    }
    atoms
}

/// The kinds of statements a shape may allow.
#[derive(Clone, Copy)]
enum Kind {
    Load,
    Store,
    Rmw,
    Fence,
    StoreFence,
    Set,
    Locked,
    StrayLock,
    Wait,
    Notify,
    Choose,
    Assume,
    Assert,
    Critical,
    If,
    While,
    Loop,
    Break,
}

struct Writer<'a> {
    shape: &'a Shape,
    sketch: &'a Sketch,
    rng: &'a mut Rng,
    /// A `break` may stand here.
    in_loop: bool,
}

impl Writer<'_> {
    fn kinds(&self, depth: usize) -> Vec<Kind> {
        let shape = self.shape;
        let nested = depth > 0;
        let table = [
            (Kind::Load, 5, true),
            (Kind::Store, 5, true),
            (Kind::Rmw, 3, shape.atomics),
            (Kind::Fence, 1, shape.full_fences),
            (Kind::StoreFence, 1, shape.store_fences),
            (Kind::Set, 1, shape.branches || shape.loops),
            (Kind::Locked, 1, shape.locks && nested),
            (Kind::StrayLock, 1, shape.locks && self.shape.range_errors),
            (Kind::Wait, 1, shape.condvars),
            (Kind::Notify, 1, shape.condvars),
            (Kind::Choose, 1, shape.choose),
            (Kind::Assume, 1, shape.assume),
            (Kind::Assert, 1, shape.assert),
            (Kind::Critical, 1, shape.critical && nested),
            (Kind::If, 2, shape.branches && nested),
            (Kind::While, 2, shape.loops && nested),
            (Kind::Loop, 1, shape.loops && nested),
            (Kind::Break, 1, self.in_loop),
        ];
        let allowed = table.into_iter().filter(|(_, _, allowed)| *allowed);
        allowed.flat_map(|(kind, weight, _)| std::iter::repeat_n(kind, weight)).collect()
    }

    fn block(&mut self, count: usize, depth: usize) -> Vec<Stmt> {
        let mut body = Vec::new();
        for _ in 0..count {
            let kind = self.rng.pick(&self.kinds(depth));
            self.push(kind, depth, &mut body);
        }
        body
    }

    fn inner(&mut self, depth: usize, in_loop: bool) -> Vec<Stmt> {
        let outer = std::mem::replace(&mut self.in_loop, in_loop);
        let count = self.rng.within(0..=2);
        let body = self.block(count, depth - 1);
        self.in_loop = outer;
        body
    }

    fn push(&mut self, kind: Kind, depth: usize, body: &mut Vec<Stmt>) {
        let in_loop = self.in_loop;
        let stmt = match kind {
            Kind::Load => Stmt::Load(self.register(), self.cell()),
            Kind::Store => Stmt::Store(self.cell(), self.value()),
            Kind::Rmw => self.rmw(),
            Kind::Fence => Stmt::Fence(self.rng.pick(&[FenceKind::Full, FenceKind::StoreLoad])),
            Kind::StoreFence => Stmt::Fence(FenceKind::StoreStore),
            Kind::Set => Stmt::Set(self.register(), self.value()),
            Kind::Locked => {
                body.push(Stmt::Lock(0));
                body.extend(self.inner(depth, false));
                Stmt::Unlock(0)
            }
            Kind::StrayLock => self.rng.pick(&[Stmt::Lock(0), Stmt::Unlock(0)]),
            Kind::Wait => {
                body.push(Stmt::Lock(0));
                body.push(Stmt::Wait(0, 0));
                Stmt::Unlock(0)
            }
            Kind::Notify => Stmt::Notify(0, self.rng.one_in(2)),
            Kind::Choose => Stmt::Choose(self.register(), 0, self.rng.within(0..=2) as i64),
            Kind::Assume => Stmt::Assume(self.condition()),
            Kind::Assert => Stmt::Assert(self.condition()),
            Kind::Critical => Stmt::Critical(self.inner(depth, false)),
            Kind::If => Stmt::If(self.condition(), self.inner(depth, in_loop), self.inner(depth, in_loop)),
            Kind::While => self.spin(depth),
            Kind::Loop => Stmt::Loop(self.inner(depth, true)),
            Kind::Break => Stmt::Break,
        };
        body.push(stmt);
    }

    /// A loop whose condition is loaded anew at the end of each round.
    fn spin(&mut self, depth: usize) -> Stmt {
        let mut body = self.inner(depth, true);
        let reg = self.register();
        body.push(Stmt::Load(reg, self.cell()));
        let value = self.rng.below(3) as i64;
        let cond = if self.rng.one_in(2) { Expr::Eq(reg, value) } else { Expr::Ne(reg, value) };
        Stmt::While(cond, body)
    }

    fn rmw(&mut self) -> Stmt {
        let dst = (!self.rng.one_in(4)).then(|| self.register());
        let cell = self.cell();
        let op = match self.rng.below(6) {
            0 | 1 => RmwOp::Cas { old: self.value(), new: self.value() },
            2 => RmwOp::Swap(self.value()),
            3 => RmwOp::Add(Expr::Const(1)),
            4 => RmwOp::Or(self.value()),
            _ => RmwOp::And(self.value()),
        };
        Stmt::Rmw(dst, cell, op)
    }

    fn register(&mut self) -> usize {
        self.rng.below(self.sketch.registers)
    }

    fn cell(&mut self) -> usize {
        self.rng.below(self.sketch.cells.len())
    }

    fn value(&mut self) -> Expr {
        match self.rng.below(6) {
            0 => Expr::Reg(self.register()),
            1 => Expr::Next(self.register()),
            _ => Expr::Const(self.rng.below(3) as i64),
        }
    }

    fn condition(&mut self) -> Expr {
        let (reg, value) = (self.register(), self.rng.below(3) as i64);
        if self.rng.one_in(2) { Expr::Eq(reg, value) } else { Expr::Ne(reg, value) }
    }
}
