//! The shape of a file's text: bodies, blocks, statements and their places, without what they mean.
//!
//! For tools that edit a program and want its layout and comments kept: they insert or remove text at the places named
//! here and compile the result again.

use std::collections::{BTreeMap, BTreeSet};

use weakspot_model::ir::FenceKind;
use weakspot_model::source::Span;

use super::ast::{Ast, Block, ExprId, ExprKind, StmtId, StmtKind};
use super::names::{Name, Names};

/// The threads and functions of a file. `final` has no place for an edit and is left out.
#[derive(Debug, Clone)]
pub struct Outline {
    /// Threads, then functions, each in the order of the text.
    pub bodies: Vec<OutlineBody>,
}

/// A thread (one for all instances of a template) or a function.
#[derive(Debug, Clone)]
pub struct OutlineBody {
    /// Its name.
    pub name: String,
    /// Is it a function?
    pub is_function: bool,
    /// Its blocks; a block comes before the blocks inside it.
    pub blocks: Vec<OutlineBlock>,
}

/// The statements between two braces.
#[derive(Debug, Clone)]
pub struct OutlineBlock {
    /// What the block belongs to: the name of the body, or the statement around it.
    pub head: Span,
    /// How many loops stand around it; in a function, those around its calls count as well.
    pub loop_depth: u32,
    /// In the order of the text.
    pub statements: Vec<OutlineStatement>,
    /// The closing brace.
    pub end: Span,
}

/// One statement.
#[derive(Debug, Clone)]
pub struct OutlineStatement {
    /// From its label, if it has one, to its `;`.
    pub span: Span,
    /// The statement itself, without label and `;`.
    pub inner: Span,
    /// Its label.
    pub label: Option<String>,
    /// Is it an assignment to shared memory?
    pub stores: bool,
    /// `break`, `continue`, `return`: what follows it is not reached from it.
    pub leaves: bool,
    /// The kind of fence, if it is one.
    pub fence: Option<FenceKind>,
}

/// Makes the outline of a file without mistakes.
pub(super) fn outline(ast: &Ast, names: &Names<'_>) -> Outline {
    let shared = ast.shared.iter().map(|declaration| declaration.ident.name).collect();
    let functions = ast.functions.iter().enumerate().map(|(number, function)| (function.ident.name, number)).collect();
    let mut walk = Walk { ast, names, shared, functions, calls: Vec::new(), blocks: Vec::new() };
    let mut bodies = Vec::new();
    let mut calls = Vec::new();
    let threads = ast.threads.iter().map(|thread| (thread.ident, thread.body, false));
    let functions = ast.functions.iter().map(|function| (function.ident, function.body, true));
    for (ident, body, is_function) in threads.chain(functions) {
        walk.block(body, ident.span, 0);
        calls.push(std::mem::take(&mut walk.calls));
        let blocks = std::mem::take(&mut walk.blocks);
        bodies.push(OutlineBody { name: names.text(ident.name).to_owned(), is_function, blocks });
    }
    count_loops_of_callers(&mut bodies, ast.threads.len(), &calls);
    Outline { bodies }
}

/// Adds to the blocks of each function the loops around its deepest call. Calls have no cycles, so this ends.
fn count_loops_of_callers(bodies: &mut [OutlineBody], threads: usize, calls: &[Vec<(usize, u32)>]) {
    let mut depths = vec![0_u32; bodies.len()];
    loop {
        let mut changed = false;
        for (caller, calls) in calls.iter().enumerate() {
            for &(function, depth) in calls {
                let deepest = depths[caller].saturating_add(depth);
                if deepest > depths[threads + function] {
                    depths[threads + function] = deepest;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    for (body, depth) in bodies.iter_mut().zip(depths) {
        for block in &mut body.blocks {
            block.loop_depth = block.loop_depth.saturating_add(depth);
        }
    }
}

struct Walk<'a, 'source> {
    ast: &'a Ast,
    names: &'a Names<'source>,
    shared: BTreeSet<Name>,
    functions: BTreeMap<Name, usize>,
    /// Calls of the body at hand: which function, and how many loops stand around the call.
    calls: Vec<(usize, u32)>,
    /// Blocks of the body at hand.
    blocks: Vec<OutlineBlock>,
}

impl Walk<'_, '_> {
    fn block(&mut self, block: Block, head: Span, loop_depth: u32) {
        let ast = self.ast;
        let statements = ast.block(block).iter().map(|&id| self.statement(id)).collect();
        self.blocks.push(OutlineBlock { head, loop_depth, statements, end: block.end });
        for &id in ast.block(block) {
            self.inner_blocks(id, loop_depth);
        }
    }

    fn statement(&self, id: StmtId) -> OutlineStatement {
        let stmt = self.ast.stmt(id);
        let start = stmt.label.map_or(stmt.span.start, |label| label.span.start);
        let stores = match stmt.kind {
            StmtKind::Assign { target, .. } => match self.ast.expr(target).kind {
                ExprKind::Name(name) => self.shared.contains(&name),
                ExprKind::Index { array, .. } => self.shared.contains(&array.name),
                _ => false,
            },
            _ => false,
        };
        OutlineStatement {
            span: Span { start, end: stmt.end },
            inner: stmt.span,
            label: stmt.label.map(|label| self.names.text(label.name).to_owned()),
            stores,
            leaves: matches!(stmt.kind, StmtKind::Break | StmtKind::Continue | StmtKind::Return { .. }),
            fence: match stmt.kind {
                StmtKind::Fence(kind) => Some(kind),
                _ => None,
            },
        }
    }

    /// The blocks inside a statement, and the calls of its expressions.
    fn inner_blocks(&mut self, id: StmtId, depth: u32) {
        let ast = self.ast;
        let stmt = ast.stmt(id);
        match stmt.kind {
            StmtKind::If { arms, otherwise } => {
                for arm in &ast.arms[arms.range()] {
                    self.expression(arm.condition, depth);
                    self.block(arm.block, stmt.span, depth);
                }
                if let Some(block) = otherwise {
                    self.block(block, stmt.span, depth);
                }
            }
            StmtKind::While { condition, body } => {
                self.expression(condition, depth + 1);
                self.block(body, stmt.span, depth + 1);
            }
            StmtKind::Loop { body } => self.block(body, stmt.span, depth + 1),
            StmtKind::Critical { body, .. } => self.block(body, stmt.span, depth),
            StmtKind::Let { value, .. } | StmtKind::Evaluate(value) | StmtKind::Return { value: Some(value) } => {
                self.expression(value, depth);
            }
            StmtKind::Assign { target, value } => {
                self.expression(target, depth);
                self.expression(value, depth);
            }
            StmtKind::Assert { condition, .. } | StmtKind::Assume { condition } => self.expression(condition, depth),
            StmtKind::Await { condition } => self.expression(condition, depth + 1),
            _ => {}
        }
    }

    /// Finds the calls in an expression.
    fn expression(&mut self, root: ExprId, depth: u32) {
        let ast = self.ast;
        let mut pending = vec![root];
        while let Some(id) = pending.pop() {
            match ast.expr(id).kind {
                ExprKind::Index { index, .. } => pending.push(index),
                ExprKind::Unary { operand, .. } => pending.push(operand),
                ExprKind::Chain { first, links } => {
                    pending.push(first);
                    pending.extend(ast.links[links.range()].iter().map(|link| link.operand));
                }
                ExprKind::Call { function, arguments } => {
                    if let Some(&number) = self.functions.get(&function.name) {
                        self.calls.push((number, depth));
                    }
                    pending.extend(ast.list(arguments));
                }
                ExprKind::Choose { lo, hi } => pending.extend([lo, hi]),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use weakspot_model::source::SourceFile;

    use super::*;

    #[test]
    fn statements_reach_from_label_to_semicolon() {
        let text = "shared x;\nthread a { raise: x = 1 /* now */ ; if x == 1 { fence(store_store); } else { } }";
        let outline = crate::weak::outline(&SourceFile::new("t", text)).unwrap();
        let blocks = &outline.bodies[0].blocks;
        let texts = |block: usize| -> Vec<&str> {
            blocks[block].statements.iter().map(|statement| &text[statement.span.range()]).collect()
        };
        assert_eq!(texts(0), ["raise: x = 1 /* now */ ;", "if x == 1 { fence(store_store); } else { }"]);
        assert_eq!(texts(1), ["fence(store_store);"]);
        assert_eq!(blocks[1].statements[0].fence, Some(FenceKind::StoreStore));
        assert!(blocks[2].statements.is_empty() && &text[blocks[2].end.range()] == "}");
        assert!(blocks[0].statements[0].stores && blocks[0].statements[0].label.as_deref() == Some("raise"));
    }

    #[test]
    fn loops_around_calls_count_in_functions() {
        let text = "shared x; fn f() { x = 1; } fn g() { while x == 0 { f(); } } thread a { g(); loop { g(); } }";
        let outline = crate::weak::outline(&SourceFile::new("t", text)).unwrap();
        let depths: Vec<(&str, Vec<u32>)> = outline
            .bodies
            .iter()
            .map(|body| (body.name.as_str(), body.blocks.iter().map(|block| block.loop_depth).collect()))
            .collect();
        assert_eq!(depths, [("a", vec![0, 1]), ("f", vec![2]), ("g", vec![1, 2])]);
    }
}
