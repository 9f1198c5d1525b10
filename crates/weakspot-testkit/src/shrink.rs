//! Makes a failing sketch as small as it gets, by greedy delta debugging: try every single simplification, keep the
//! first that still fails, start again.

use weakspot_model::ir::RmwOp;

use crate::sketch::{Expr, Observed, Sketch, Stmt};

/// The smallest sketch that greedy simplification reaches from a failing one. `fails` has to be true of `sketch`.
pub fn shrink(sketch: &Sketch, mut fails: impl FnMut(&Sketch) -> bool) -> Sketch {
    let mut smallest = sketch.clone();
    while let Some(smaller) = simplifications(&smallest).into_iter().find(|candidate| fails(candidate)) {
        smallest = smaller;
    }
    smallest
}

/// Every sketch that is one step simpler. Each step takes away a thread, a statement or a `final` conjunct, or moves
/// a value towards 0, so shrinking ends.
fn simplifications(sketch: &Sketch) -> Vec<Sketch> {
    let mut simpler = Vec::new();
    for thread in 0..sketch.threads.len() {
        if sketch.threads.len() > 1 {
            simpler.push(without_thread(sketch, thread));
        }
    }
    for atom in 0..sketch.forbidden.len() {
        let mut smaller = sketch.clone();
        smaller.forbidden.remove(atom);
        simpler.push(smaller);
    }
    for thread in 0..sketch.threads.len() {
        for body in simpler_blocks(&sketch.threads[thread], false) {
            let mut smaller = sketch.clone();
            smaller.threads[thread] = body;
            simpler.push(smaller);
        }
    }
    simpler
}

fn without_thread(sketch: &Sketch, thread: usize) -> Sketch {
    let mut smaller = sketch.clone();
    smaller.threads.remove(thread);
    smaller.forbidden.retain(|(observed, _)| !matches!(observed, Observed::Register(t, _) if *t == thread));
    for (observed, _) in &mut smaller.forbidden {
        if let Observed::Register(other, _) = observed
            && *other > thread
        {
            *other -= 1;
        }
    }
    smaller
}

fn simpler_blocks(block: &[Stmt], in_loop: bool) -> Vec<Vec<Stmt>> {
    let mut simpler = Vec::new();
    let mut splice = |at: usize, replacement: &[Stmt]| {
        let mut smaller = block.to_vec();
        smaller.splice(at..=at, replacement.iter().cloned());
        simpler.push(smaller);
    };
    for (at, stmt) in block.iter().enumerate() {
        splice(at, &[]);
        for inner in stmt.blocks() {
            if in_loop || !breaks(inner) {
                splice(at, inner);
            }
        }
    }
    for (at, stmt) in block.iter().enumerate() {
        for smaller in simpler_statements(stmt, in_loop) {
            splice(at, &[smaller]);
        }
    }
    simpler
}

/// Does a block contain a `break` that leaves it?
fn breaks(block: &[Stmt]) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Break => true,
        Stmt::If(_, then, otherwise) => breaks(then) || breaks(otherwise),
        _ => false,
    })
}

fn simpler_statements(stmt: &Stmt, in_loop: bool) -> Vec<Stmt> {
    let inner_in_loop = match stmt {
        Stmt::While(..) | Stmt::Loop(_) => true,
        Stmt::Critical(_) => false,
        _ => in_loop,
    };
    let mut simpler = Vec::new();
    for (index, block) in stmt.blocks().into_iter().enumerate() {
        for body in simpler_blocks(block, inner_in_loop) {
            let mut smaller = stmt.clone();
            *smaller.blocks_mut()[index] = body;
            simpler.push(smaller);
        }
    }
    match stmt {
        Stmt::Store(cell, value) => simpler.extend(simpler_values(*value).map(|value| Stmt::Store(*cell, value))),
        Stmt::Set(reg, value) => simpler.extend(simpler_values(*value).map(|value| Stmt::Set(*reg, value))),
        Stmt::Rmw(dst, cell, RmwOp::Swap(value)) => {
            simpler.extend(simpler_values(*value).map(|value| Stmt::Rmw(*dst, *cell, RmwOp::Swap(value))));
        }
        _ => {}
    }
    simpler
}

fn simpler_values(value: Expr) -> impl Iterator<Item = Expr> {
    let constant = match value {
        Expr::Const(0) => None,
        Expr::Const(1) => Some(0),
        _ => Some(1),
    };
    constant.into_iter().map(Expr::Const)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Shape;

    #[test]
    fn a_sketch_shrinks_to_the_statement_that_matters() {
        let is_swap = |stmt: &Stmt| matches!(stmt, Stmt::Rmw(_, _, RmwOp::Swap(_)));
        let fails = |sketch: &Sketch| sketch.threads.iter().any(|thread| thread.iter().any(is_swap));
        let found = (0..1000).map(|seed| Shape::straight_line().generate(seed)).find(|sketch| fails(sketch));
        let sketch = found.expect("some program of a thousand swaps");
        let smallest = shrink(&sketch, fails);
        assert_eq!((smallest.threads.len(), smallest.len()), (1, 1));
    }
}
