//! Calls, by inlining. Each inlining has its own locals; their registers are used again by the next one.

use weakspot_model::ids::Reg;
use weakspot_model::ir::Operand;
use weakspot_model::source::Span;

use super::{Frame, Lowerer, Want};
use crate::weak::ast::{ExprId, Function, List, StmtId, StmtKind};
use crate::weak::check::LocalId;

impl Lowerer<'_, '_> {
    /// Inlines a function; `want` is `None` if nobody wants the value.
    pub(super) fn call(&mut self, number: u32, arguments: List, span: Span, want: Option<Want>) -> Operand {
        if !self.emitter.reachable || !self.enter() {
            return Operand::Const(0);
        }
        let ast = self.whole.ast;
        let function = &ast.functions[number as usize];
        let taken = self.bind_parameters(number, arguments, span);
        let outer_inherited = std::mem::replace(&mut self.inherited_label, self.label);
        let outer_loops = std::mem::take(&mut self.loops);
        let (end, critical_depth) = (self.emitter.label(), self.emitter.critical_depth);
        self.frames.push(Frame { end, result: None, critical_depth, taken });
        let result = match (want, only_return(ast.block(function.body), function, |id| ast.stmt(id).kind)) {
            (Some(want), Some((before, value))) => self.inline_expression(before, value, want, span),
            (want, _) => self.inline_body(function, want, span),
        };
        if let Some(frame) = self.frames.pop() {
            for (local, reg) in frame.taken {
                self.registers.give_back(local, reg);
            }
        }
        self.loops = outer_loops;
        self.inherited_label = outer_inherited;
        self.leave();
        result
    }

    /// Evaluates the arguments; parameters that are never assigned stand for their argument directly.
    fn bind_parameters(&mut self, number: u32, arguments: List, span: Span) -> Vec<(LocalId, Reg)> {
        let (ast, checked) = (self.whole.ast, self.whole.checked);
        let mut bound = Vec::new();
        let mut taken = Vec::new();
        for (&parameter, &argument) in checked.parameters[number as usize].iter().zip(ast.list(arguments)) {
            if !checked.locals[parameter.index()].assigned {
                bound.push((parameter, self.value(argument, Want::Anywhere)));
                continue;
            }
            let reg = self.take_local(parameter);
            taken.push((parameter, reg));
            let value = self.value(argument, Want::In(reg));
            self.set(reg, value, span);
            bound.push((parameter, Operand::Reg(reg)));
        }
        // not earlier: an argument may hold another call of the same function
        self.bindings.extend(bound);
        taken
    }

    /// A body that ends in its only `return`: the value needs no register of its own.
    fn inline_expression(&mut self, before: &[StmtId], value: ExprId, want: Want, span: Span) -> Operand {
        self.statements(before);
        let frame = self.frames.pop();
        let found = self.value(value, want);
        let lent = frame.as_ref().is_some_and(|frame| frame.taken.iter().any(|&(_, reg)| found == Operand::Reg(reg)));
        // the register of one of its locals is about to be given back
        let result = if lent {
            let dst = self.wanted(want);
            self.set(dst, found, span);
            Operand::Reg(dst)
        } else {
            found
        };
        self.frames.extend(frame);
        result
    }

    fn inline_body(&mut self, function: &Function, want: Option<Want>, span: Span) -> Operand {
        let frame = self.frames.pop();
        let result = want.map(|want| self.wanted(want));
        self.frames.extend(frame.map(|frame| Frame { result, ..frame }));
        self.block(function.body);
        if let Some(result) = result {
            self.set(result, Operand::Const(0), span);
        }
        if let Some(end) = self.frames.last().map(|frame| frame.end) {
            self.emitter.bind(end);
        }
        result.map_or(Operand::Const(0), Operand::Reg)
    }
}

/// If the only `return` of a function is its last statement: what comes before it, and its value.
fn only_return<'a>(
    body: &'a [StmtId],
    function: &Function,
    kind: impl Fn(StmtId) -> StmtKind,
) -> Option<(&'a [StmtId], ExprId)> {
    let (&last, before) = body.split_last()?;
    match kind(last) {
        StmtKind::Return { value: Some(value) } if function.returns == 1 => Some((before, value)),
        _ => None,
    }
}
