//! Statements.

use weakspot_model::ids::{CondvarId, MutexId, Reg};
use weakspot_model::ir::{Instr, Operand};
use weakspot_model::source::{Diagnostic, Span};

use super::emit::Label;
use super::{Loop, Lowerer, Want};
use crate::weak::ast::{Block, ExprId, Ident, List, Stmt, StmtId, StmtKind};
use crate::weak::check::{Item, LocalId, Meaning};

impl Lowerer<'_, '_> {
    /// One statement, if it can be reached. Its temporaries are free afterwards.
    pub(super) fn statement(&mut self, id: StmtId) {
        if !self.emitter.reachable || !self.enter() {
            return;
        }
        let stmt = *self.whole.ast.stmt(id);
        let outer_label = self.label;
        self.label = stmt.label.map(|label| label.name).or(self.inherited_label);
        let before = self.emitter.len();
        let mark = self.registers.mark();
        self.statement_kind(id, &stmt);
        self.registers.release(mark);
        if let Some(label) = stmt.label {
            self.whole.labels_seen.insert((label.span, label.name));
            if self.emitter.len() > before {
                self.whole.labels_used.insert((label.span, label.name));
            }
        }
        self.label = outer_label;
        self.leave();
    }

    fn statement_kind(&mut self, id: StmtId, stmt: &Stmt) {
        let span = stmt.span;
        match stmt.kind {
            StmtKind::Error | StmtKind::Skip => {}
            StmtKind::Let { value, .. } => {
                if let Some(local) = self.whole.checked.declared[id.index()] {
                    self.let_statement(local, value, span);
                }
            }
            StmtKind::Assign { target, value } => self.assign(target, value, span),
            StmtKind::If { arms, otherwise } => self.if_statement(arms, otherwise, span),
            StmtKind::While { condition, body } => self.while_loop(Some(condition), body, span),
            StmtKind::Loop { body } => self.while_loop(None, body, span),
            StmtKind::Break | StmtKind::Continue => {
                if let Some(&Loop { head, end, critical_depth }) = self.loops.last() {
                    let target = if matches!(stmt.kind, StmtKind::Break) { end } else { head };
                    self.leave_and_jump(critical_depth, target, span);
                }
            }
            StmtKind::Return { value } => self.return_statement(value, span),
            StmtKind::Fence(kind) => self.emit(Instr::Fence(kind), span),
            StmtKind::Assert { condition, message } => {
                let message = message.map(|message| self.message(message));
                self.check(condition, span, |cond| Instr::Assert { cond, message });
            }
            StmtKind::Assume { condition } => self.check(condition, span, |cond| Instr::Assume { cond }),
            StmtKind::Await { condition } => self.await_statement(condition),
            StmtKind::Lock(mutex) => self.emit(Instr::Lock(self.mutex(mutex)), span),
            StmtKind::Unlock(mutex) => self.emit(Instr::Unlock(self.mutex(mutex)), span),
            StmtKind::Wait { condvar, mutex } => {
                self.emit(Instr::Wait { condvar: self.condvar(condvar), mutex: self.mutex(mutex) }, span);
            }
            StmtKind::Notify { condvar, all } => self.emit(Instr::Notify { condvar: self.condvar(condvar), all }, span),
            StmtKind::Critical { word, body } => self.critical(word, body),
            StmtKind::Evaluate(value) => self.effect(value),
        }
    }

    fn mutex(&self, ident: Ident) -> MutexId {
        match self.whole.checked.item(ident.name) {
            Some(Item::Mutex(index)) => MutexId::new(index as usize),
            _ => unreachable!("invariant: the checker has seen that this is a mutex"),
        }
    }

    fn condvar(&self, ident: Ident) -> CondvarId {
        match self.whole.checked.item(ident.name) {
            Some(Item::Condvar(index)) => CondvarId::new(index as usize),
            _ => unreachable!("invariant: the checker has seen that this is a condition variable"),
        }
    }

    /// The number of a message; its span includes the quotes.
    fn message(&mut self, span: Span) -> u32 {
        let inside = &self.whole.text[span.start as usize + 1..span.end as usize - 1];
        let messages = &mut self.whole.messages;
        *self.whole.message_numbers.entry(span).or_insert_with(|| {
            messages.push(unescape(inside));
            messages.len() as u32 - 1
        })
    }

    fn let_statement(&mut self, local: LocalId, value: ExprId, span: Span) {
        if self.whole.checked.locals[local.index()].assigned {
            let reg = self.local_register(local);
            self.value_into(value, reg, span);
            self.bindings.insert(local, Operand::Reg(reg));
            return;
        }
        let found = self.value(value, Want::Local(local));
        let bound = match found {
            Operand::Const(_) => {
                if let Some(reg) = self.registers.observed(local) {
                    self.set(reg, found, span);
                }
                found
            }
            Operand::Reg(reg) if self.is_register_of(local, reg) => found,
            Operand::Reg(_) if self.registers.observed(local).is_none() && self.is_steady_local(value) => found,
            Operand::Reg(_) => {
                let reg = self.local_register(local);
                self.set(reg, found, span);
                Operand::Reg(reg)
            }
        };
        self.bindings.insert(local, bound);
    }

    /// Has the local just been given this register?
    fn is_register_of(&self, local: LocalId, reg: Reg) -> bool {
        let last_taken = self.frames.last().and_then(|frame| frame.taken.last());
        self.registers.observed(local) == Some(reg) || last_taken == Some(&(local, reg))
    }

    /// Is this expression just a local that never changes? Then it may lend its register.
    fn is_steady_local(&self, id: ExprId) -> bool {
        match self.whole.checked.meanings[id.index()] {
            Meaning::Local(local) => !self.whole.checked.locals[local.index()].assigned,
            _ => false,
        }
    }

    fn assign(&mut self, target: ExprId, value: ExprId, span: Span) {
        match self.whole.checked.meanings[target.index()] {
            Meaning::Local(local) => {
                if let Some(&Operand::Reg(reg)) = self.bindings.get(&local) {
                    self.value_into(value, reg, span);
                }
            }
            Meaning::Shared(shared) => {
                let place = self.place(target);
                let value = self.value(value, Want::Anywhere);
                if let Operand::Const(value) = value {
                    self.warn_outside_range(shared, value, span);
                }
                self.emit(Instr::Store { place, value }, span);
            }
            _ => {}
        }
    }

    /// Warns of a constant that may never be stored there.
    pub(super) fn warn_outside_range(&mut self, shared: u32, value: i64, span: Span) {
        let Some((lo, hi)) = self.whole.checked.shared[shared as usize].range else { return };
        if !self.emitter.reachable || (lo..=hi).contains(&value) {
            return;
        }
        let declaration = self.whole.ast.shared[shared as usize].ident;
        let name = self.whole.names.text(declaration.name);
        self.whole.problems.warning("outside-range", span, || {
            let message = format!("this stores {value} into `{name}`, whose range is {lo}..={hi}");
            Diagnostic::warning("outside-range", message, span)
                .related(declaration.span, "declared here")
                .help("widen the range, or store another value; as it is, reaching this is a program error")
        });
    }

    fn if_statement(&mut self, arms: List, otherwise: Option<Block>, span: Span) {
        let ast = self.whole.ast;
        let end = self.emitter.label();
        for arm in &ast.arms[arms.range()] {
            if !self.emitter.reachable {
                break;
            }
            let (then, next) = (self.emitter.label(), self.emitter.label());
            self.condition(arm.condition, then, next);
            self.emitter.bind(then);
            self.block(arm.block);
            self.jump(end, span);
            self.emitter.bind(next);
        }
        if let Some(block) = otherwise {
            self.block(block);
        }
        self.emitter.bind(end);
    }

    fn while_loop(&mut self, condition: Option<ExprId>, body: Block, span: Span) {
        let (head, end) = (self.emitter.label(), self.emitter.label());
        self.emitter.bind(head);
        if let Some(condition) = condition {
            let inside = self.emitter.label();
            self.condition(condition, inside, end);
            self.emitter.bind(inside);
        }
        self.loops.push(Loop { head, end, critical_depth: self.emitter.critical_depth });
        self.block(body);
        self.loops.pop();
        self.jump(head, span);
        self.emitter.bind(end);
    }

    fn await_statement(&mut self, condition: ExprId) {
        let (head, end) = (self.emitter.label(), self.emitter.label());
        self.emitter.bind(head);
        self.condition(condition, end, head);
        self.emitter.bind(end);
    }

    fn critical(&mut self, word: Span, body: Block) {
        self.emit(Instr::EnterCritical, word);
        self.emitter.critical_depth += 1;
        self.block(body);
        self.emit(Instr::LeaveCritical, word);
        self.emitter.critical_depth -= 1;
    }

    /// Leaves the `critical` blocks above a depth and jumps.
    fn leave_and_jump(&mut self, critical_depth: u32, target: Label, span: Span) {
        let here = self.emitter.critical_depth;
        while self.emitter.critical_depth > critical_depth {
            self.emit(Instr::LeaveCritical, span);
            self.emitter.critical_depth -= 1;
        }
        self.jump(target, span);
        self.emitter.critical_depth = here;
    }

    fn return_statement(&mut self, value: Option<ExprId>, span: Span) {
        let Some(frame) = self.frames.last() else { return };
        let (end, result, critical_depth) = (frame.end, frame.result, frame.critical_depth);
        match (value, result) {
            (Some(value), Some(result)) => self.value_into(value, result, span),
            (None, Some(result)) => self.set(result, Operand::Const(0), span),
            (Some(value), None) => self.effect(value),
            (None, None) => {}
        }
        self.leave_and_jump(critical_depth, end, span);
    }

    /// `assert` and `assume`. A condition with `&&` or `||` becomes branches around a check that always fails.
    fn check(&mut self, condition: ExprId, span: Span, instr: impl Fn(Operand) -> Instr) {
        if self.is_branching(condition) {
            let (holds, fails) = (self.emitter.label(), self.emitter.label());
            self.condition(condition, holds, fails);
            self.emitter.bind(fails);
            self.emit(instr(Operand::Const(0)), span);
            self.emitter.reachable = false;
            self.emitter.bind(holds);
            return;
        }
        match self.value(condition, Want::Anywhere) {
            Operand::Const(0) => {
                self.emit(instr(Operand::Const(0)), span);
                self.emitter.reachable = false;
            }
            Operand::Const(_) => {}
            cond @ Operand::Reg(_) => self.emit(instr(cond), span),
        }
    }

    /// `dst = value`, unless it is there already.
    pub(super) fn set(&mut self, dst: Reg, value: Operand, span: Span) {
        if value != Operand::Reg(dst) {
            self.emit(Instr::Set { dst, value }, span);
        }
    }

    fn value_into(&mut self, value: ExprId, dst: Reg, span: Span) {
        let found = self.value(value, Want::In(dst));
        self.set(dst, found, span);
    }
}

/// `\"` and `\\` stand for the second character.
fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some(&escaped @ ('"' | '\\'))) => {
                result.push(escaped);
                characters.next();
            }
            _ => result.push(character),
        }
    }
    result
}
