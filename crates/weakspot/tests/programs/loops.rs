//! Random programs with loops.

use std::ops::RangeInclusive;

use weakspot_model::ir::{FenceKind, RmwOp};
use weakspot_testkit::rng::Rng;
use weakspot_testkit::sketch::{Expr, Sketch, SketchCell, Stmt};

/// Register of what was read, and of what is counted.
const DATA: usize = 0;
const ONES: usize = 1;
const THREES: usize = 2;

fn load(rng: &mut Rng) -> Stmt {
    Stmt::Load(DATA, rng.below(2))
}

fn store(rng: &mut Rng) -> Stmt {
    Stmt::Store(rng.below(2), Expr::Const(rng.below(3) as i64))
}

fn condition(rng: &mut Rng) -> Expr {
    let value = rng.below(3) as i64;
    if rng.one_in(2) { Expr::Eq(DATA, value) } else { Expr::Ne(DATA, value) }
}

/// Which loops a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loops {
    /// There are none.
    None,
    /// They only look.
    Looking,
    /// They take a lock, look, and give it back.
    Locking,
    /// All kinds.
    All,
}

/// What a round of a loop does besides looking.
fn extra(rng: &mut Rng, loops: Loops) -> Vec<Stmt> {
    match rng.below(if loops == Loops::All { 8 } else { 2 }) {
        _ if loops == Loops::Looking && rng.one_in(2) => Vec::new(),
        0 => vec![load(rng)],
        1 => vec![Stmt::Fence(FenceKind::Full)],
        2 => vec![Stmt::Rmw(None, rng.below(2), RmwOp::Swap(Expr::Const(rng.below(3) as i64)))],
        3 => {
            let cell = rng.below(2);
            vec![Stmt::Store(cell, Expr::Const(1)), Stmt::Store(cell, Expr::Const(0))]
        }
        4 => vec![Stmt::Rmw(Some(DATA), rng.below(2), RmwOp::Cas { old: Expr::Const(0), new: Expr::Const(1) })],
        _ => Vec::new(),
    }
}

/// Looks until something is so.
fn unbounded(rng: &mut Rng, loops: Loops) -> Vec<Stmt> {
    let mut body = extra(rng, loops);
    let look = load(rng);
    body.push(look.clone());
    vec![look, Stmt::While(condition(rng), body)]
}

/// Looks up to so many times.
fn bounded(rng: &mut Rng, loops: Loops) -> Vec<Stmt> {
    let mut body = extra(rng, loops);
    body.push(load(rng));
    body.push(Stmt::If(condition(rng), vec![Stmt::Break], Vec::new()));
    body.push(Stmt::Set(ONES, Expr::Next(ONES)));
    let rounds = if rng.one_in(3) {
        body.push(Stmt::If(Expr::Eq(ONES, 0), vec![Stmt::Set(THREES, Expr::Next(THREES))], Vec::new()));
        Expr::Ne(THREES, 1)
    } else {
        Expr::Ne(ONES, 1 + rng.below(2) as i64)
    };
    vec![Stmt::Set(ONES, Expr::Const(0)), Stmt::Set(THREES, Expr::Const(0)), Stmt::While(rounds, body)]
}

/// The cell that is a lock.
const LOCK: usize = 2;

/// Takes the lock if it is free, does something, and gives it back, until something is so.
fn locking(rng: &mut Rng) -> Vec<Stmt> {
    let (take, taken) = match rng.below(3) {
        0 => (RmwOp::Swap(Expr::Const(1)), Expr::Eq(ONES, 0)),
        _ => (RmwOp::Cas { old: Expr::Const(0), new: Expr::Const(1) }, Expr::Eq(ONES, 1)),
    };
    let take = Stmt::Rmw(Some(ONES), LOCK, take);
    let mut inside = vec![load(rng)];
    match rng.below(6) {
        0 => inside.push(store(rng)),
        1 => inside.insert(0, Stmt::Load(THREES, rng.below(2))),
        _ => {}
    }
    let leave = Stmt::If(condition(rng), vec![Stmt::Break], Vec::new());
    let give_back = Stmt::Store(LOCK, Expr::Const(0));
    inside.extend([give_back, leave]);
    // (What a thread counts while it waits is not explored.)
    let otherwise = if rng.one_in(5) { vec![Stmt::Break] } else { Vec::new() };
    let mut body = vec![take, Stmt::If(taken, inside, otherwise)];
    if rng.one_in(6) {
        body.insert(0, store(rng));
    }
    vec![Stmt::Loop(body)]
}

/// Something that may end somebody's waiting, or come in between.
fn meddling(rng: &mut Rng) -> Vec<Stmt> {
    match rng.below(6) {
        0 => vec![Stmt::Load(THREES, LOCK)],
        1 => vec![Stmt::Store(LOCK, Expr::Const(0))],
        2 => vec![load(rng)],
        _ => vec![store(rng)],
    }
}

/// Threads that lock, and one that does not.
fn locking_sketch(seed: u64, threads: RangeInclusive<usize>) -> Sketch {
    let mut rng = Rng::new(seed);
    let locker = |rng: &mut Rng| {
        let mut body = if rng.one_in(2) { meddling(rng) } else { Vec::new() };
        body.extend(locking(rng));
        if rng.one_in(2) {
            body.extend(meddling(rng));
        }
        body
    };
    let mut threads: Vec<_> = (1..rng.within(threads)).map(|_| locker(&mut rng)).collect();
    threads.push((0..rng.within(1..=3)).flat_map(|_| meddling(&mut rng)).collect());
    let cell = || SketchCell { init: 0, range: None };
    Sketch {
        cells: vec![cell(), cell(), cell()],
        mutexes: 0,
        condvars: 0,
        registers: 3,
        threads,
        forbidden: Vec::new(),
    }
}

/// A program with such loops.
pub fn sketch(seed: u64, threads: RangeInclusive<usize>, loops: Loops) -> Sketch {
    if loops == Loops::Locking {
        return locking_sketch(seed, threads);
    }
    let mut rng = Rng::new(seed);
    let threads = rng.within(threads);
    let thread = |rng: &mut Rng| {
        let mut body = Vec::new();
        for _ in 0..rng.within(if loops == Loops::All { 1..=3 } else { 2..=3 }) {
            match rng.below(6) {
                0 | 1 => body.push(store(rng)),
                2 => body.push(Stmt::Load(rng.below(3), rng.below(2))),
                3 if loops == Loops::All => body.push(Stmt::Rmw(Some(DATA), rng.below(2), RmwOp::Add(Expr::Const(1)))),
                4 if loops != Loops::None => body.extend(unbounded(rng, loops)),
                5 if loops != Loops::None => body.extend(bounded(rng, loops)),
                _ => body.extend([store(rng), Stmt::Load(rng.below(3), rng.below(2))]),
            }
        }
        body
    };
    Sketch {
        cells: vec![SketchCell { init: 0, range: None }, SketchCell { init: 0, range: None }],
        mutexes: 0,
        condvars: 0,
        registers: 3,
        threads: (0..threads).map(|_| thread(&mut rng)).collect(),
        forbidden: Vec::new(),
    }
}
