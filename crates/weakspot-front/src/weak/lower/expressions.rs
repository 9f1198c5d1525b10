//! Expressions: each load is one instruction, in the order of the text.

use weakspot_model::ids::{Loc, Reg};
use weakspot_model::ir::{Instr, Operand, Place, RmwOp, UnaryOp};
use weakspot_model::local;
use weakspot_model::source::{Diagnostic, Span};

use super::emit::Label;
use super::{Lowerer, Want};
use crate::weak::ast::{ChainOp, Expr, ExprId, ExprKind, List};
use crate::weak::check::Meaning;
use crate::weak::names::{self, Name};

impl Lowerer<'_, '_> {
    /// The value of an expression. If it needs a register, that is the one that is wanted.
    pub(super) fn value(&mut self, id: ExprId, want: Want) -> Operand {
        if !self.emitter.reachable || !self.enter() {
            return Operand::Const(0);
        }
        let result = self.value_kind(id, want);
        self.leave();
        result
    }

    fn value_kind(&mut self, id: ExprId, want: Want) -> Operand {
        let Expr { kind, span } = *self.whole.ast.expr(id);
        match kind {
            ExprKind::Integer(value) => Operand::Const(value),
            ExprKind::Error | ExprKind::Text => Operand::Const(0),
            ExprKind::Me => Operand::Const(self.me.unwrap_or(0)),
            ExprKind::Name(_) | ExprKind::Index { .. } | ExprKind::ThreadLocal { .. } => self.read(id, span, want),
            ExprKind::Unary { op, operand } => self.unary(op, operand, span, want),
            ExprKind::Chain { first, links } if !self.is_short_circuit(links) => self.chain(span, first, links, want),
            ExprKind::Chain { .. } => self.truth_value(id, span, want),
            ExprKind::Call { arguments, .. } => match self.whole.checked.meanings[id.index()] {
                Meaning::Function(function) => self.call(function, arguments, span, Some(want)),
                _ => self.atomic(id, Some(want)).unwrap_or(Operand::Const(0)),
            },
            ExprKind::Choose { lo, hi } => {
                let mark = self.registers.mark();
                let lo = self.value(lo, Want::Anywhere);
                let hi = self.value(hi, Want::Anywhere);
                self.registers.release(mark);
                self.write_wanted(want, span, |dst| Instr::Choose { dst, lo, hi })
            }
        }
    }

    fn write_wanted(&mut self, want: Want, span: Span, instr: impl FnOnce(Reg) -> Instr) -> Operand {
        let dst = self.wanted(want);
        self.emit(instr(dst), span);
        Operand::Reg(dst)
    }

    fn read(&mut self, id: ExprId, span: Span, want: Want) -> Operand {
        match self.whole.checked.meanings[id.index()] {
            Meaning::Constant(value) => Operand::Const(value),
            Meaning::Local(local) => self.bindings.get(&local).copied().unwrap_or(Operand::Const(0)),
            Meaning::Shared(_) => {
                let mark = self.registers.mark();
                let place = self.place(id);
                self.registers.release(mark);
                self.write_wanted(want, span, |dst| Instr::Load { dst, place })
            }
            Meaning::Observed { thread, index } => {
                let register = Reg(u16::try_from(index).unwrap_or(u16::MAX));
                self.write_wanted(want, span, |dst| Instr::ThreadRegister { dst, thread, register })
            }
            Meaning::Nothing | Meaning::Atomic | Meaning::Function(_) => {
                unreachable!("invariant: the checker has given every name a meaning")
            }
        }
    }

    /// The place of a shared variable or cell.
    pub(super) fn place(&mut self, id: ExprId) -> Place {
        let Meaning::Shared(number) = self.whole.checked.meanings[id.index()] else {
            unreachable!("invariant: the checker has seen that this is shared memory");
        };
        let shared = self.whole.checked.shared[number as usize];
        match (self.whole.ast.expr(id).kind, shared.length) {
            (ExprKind::Index { index, .. }, Some(len)) => {
                let span = self.whole.ast.expr(index).span;
                let index = self.value(index, Want::Anywhere);
                self.cell(number, len, index, span)
            }
            _ => Place::Fixed(shared.base),
        }
    }

    fn cell(&mut self, number: u32, len: u32, index: Operand, span: Span) -> Place {
        let base = self.whole.checked.shared[number as usize].base;
        let Operand::Const(value) = index else { return Place::Indexed { base, len, index } };
        if let Ok(offset) = u32::try_from(value)
            && offset < len
        {
            return Place::Fixed(Loc(base.0 + offset));
        }
        if self.emitter.reachable {
            let name = self.whole.names.text(self.whole.ast.shared[number as usize].ident.name);
            let thread = self.whole.names.text(self.ident.name);
            let me = self.me.map(|me| format!("[{me}]")).unwrap_or_default();
            self.whole.problems.warning("index-out-of-range", span, || {
                let message = format!("in thread `{thread}{me}` this index is {value}, and `{name}` has no such cell");
                let help =
                    format!("its last cell is `{name}[{}]`; as it is, reaching this is a program error", len - 1);
                Diagnostic::warning("index-out-of-range", message, span).help(help)
            });
        }
        Place::Indexed { base, len, index }
    }

    fn unary(&mut self, op: UnaryOp, operand: ExprId, span: Span, want: Want) -> Operand {
        let mark = self.registers.mark();
        let value = self.value(operand, Want::Anywhere);
        if let Operand::Const(value) = value
            && let Ok(folded) = local::unary(op, value)
        {
            return Operand::Const(folded);
        }
        self.registers.release(mark);
        self.write_wanted(want, span, |dst| Instr::Unary { dst, op, value })
    }

    /// `first op operand op operand …`, from left to right.
    fn chain(&mut self, span: Span, first: ExprId, links: List, want: Want) -> Operand {
        let ast = self.whole.ast;
        let mark = self.registers.mark();
        let mut left = self.value(first, Want::Anywhere);
        let links = &ast.links[links.range()];
        for (number, link) in links.iter().enumerate() {
            let ChainOp::Binary(op) = link.op else { continue };
            let right = self.value(link.operand, Want::Anywhere);
            if let (Operand::Const(left_value), Operand::Const(right_value)) = (left, right)
                && let Ok(folded) = local::binary(op, left_value, right_value)
            {
                left = Operand::Const(folded);
                continue;
            }
            self.registers.release(mark);
            let want = if number + 1 == links.len() { want } else { Want::Anywhere };
            let so_far = Span { start: span.start, end: link.end };
            let before = left;
            left = self.write_wanted(want, so_far, |dst| Instr::Binary { dst, op, left: before, right });
        }
        left
    }

    /// A `&&` or `||` as a number.
    fn truth_value(&mut self, id: ExprId, span: Span, want: Want) -> Operand {
        let (yes, no) = (self.emitter.label(), self.emitter.label());
        self.condition(id, yes, no);
        let sure = self.emitter.is_used(yes);
        if !(sure && self.emitter.is_used(no)) {
            self.emitter.bind(yes);
            self.emitter.bind(no);
            return Operand::Const(i64::from(sure));
        }
        let dst = self.wanted(want);
        let end = self.emitter.label();
        self.emitter.bind(yes);
        self.emit(Instr::Set { dst, value: Operand::Const(1) }, span);
        self.jump(end, span);
        self.emitter.bind(no);
        self.emit(Instr::Set { dst, value: Operand::Const(0) }, span);
        self.emitter.bind(end);
        Operand::Reg(dst)
    }

    /// Goes to one of two labels.
    pub(super) fn condition(&mut self, id: ExprId, yes: Label, no: Label) {
        if !self.emitter.reachable || !self.enter() {
            return;
        }
        let Expr { kind, span } = *self.whole.ast.expr(id);
        let mark = self.registers.mark();
        match kind {
            ExprKind::Unary { op: UnaryOp::Not, operand } => self.condition(operand, no, yes),
            ExprKind::Chain { first, links } if self.is_short_circuit(links) => {
                self.short_circuit(first, links, yes, no);
            }
            _ => {
                let cond = self.value(id, Want::Anywhere);
                self.branch(cond, yes, no, span);
            }
        }
        self.registers.release(mark);
        self.leave();
    }

    fn is_short_circuit(&self, links: List) -> bool {
        matches!(self.whole.ast.links[links.range()].first(), Some(link) if !matches!(link.op, ChainOp::Binary(_)))
    }

    /// Is this a `&&`, a `||` or a `!` of one?
    pub(super) fn is_branching(&self, mut id: ExprId) -> bool {
        loop {
            match self.whole.ast.expr(id).kind {
                ExprKind::Unary { op: UnaryOp::Not, operand } => id = operand,
                ExprKind::Chain { links, .. } => return self.is_short_circuit(links),
                _ => return false,
            }
        }
    }

    fn short_circuit(&mut self, first: ExprId, links: List, yes: Label, no: Label) {
        let ast = self.whole.ast;
        let mut operand = first;
        for link in &ast.links[links.range()] {
            let next = self.emitter.label();
            match link.op {
                ChainOp::And => self.condition(operand, next, no),
                _ => self.condition(operand, yes, next),
            }
            self.emitter.bind(next);
            operand = link.operand;
        }
        self.condition(operand, yes, no);
    }

    /// An expression whose value nobody wants.
    pub(super) fn effect(&mut self, id: ExprId) {
        let Expr { kind, span } = *self.whole.ast.expr(id);
        match (kind, self.whole.checked.meanings[id.index()]) {
            (ExprKind::Call { arguments, .. }, Meaning::Function(function)) => {
                self.call(function, arguments, span, None);
            }
            (ExprKind::Call { .. }, Meaning::Atomic) => {
                self.atomic(id, None);
            }
            _ => {
                self.value(id, Want::Anywhere);
            }
        }
    }

    /// An atomic operation; gives its result if that is wanted.
    fn atomic(&mut self, id: ExprId, want: Option<Want>) -> Option<Operand> {
        let ast = self.whole.ast;
        let Expr { kind: ExprKind::Call { function, arguments }, span } = *ast.expr(id) else { return None };
        let (&cell, operands) = ast.list(arguments).split_first()?;
        let mark = self.registers.mark();
        let place = self.place(cell);
        let values: Vec<Operand> = operands.iter().map(|&operand| self.value(operand, Want::Anywhere)).collect();
        let op = rmw(function.name, &values)?;
        if let RmwOp::Swap(Operand::Const(value)) | RmwOp::Cas { new: Operand::Const(value), .. } = op
            && let Meaning::Shared(shared) = self.whole.checked.meanings[cell.index()]
        {
            self.warn_outside_range(shared, value, span);
        }
        self.registers.release(mark);
        let dst = want.map(|want| self.wanted(want));
        self.emit(Instr::Rmw { dst, place, op, drains_all: false }, span);
        dst.map(Operand::Reg)
    }
}

/// The operation of this name, if the number of operands is right.
fn rmw(name: Name, operands: &[Operand]) -> Option<RmwOp> {
    Some(match (name, operands) {
        (names::CAS, &[old, new]) => RmwOp::Cas { old, new },
        (names::SWAP, &[value]) => RmwOp::Swap(value),
        (names::FETCH_ADD, &[delta]) => RmwOp::Add(delta),
        (names::FETCH_OR, &[bits]) => RmwOp::Or(bits),
        (names::FETCH_AND, &[bits]) => RmwOp::And(bits),
        _ => return None,
    })
}
