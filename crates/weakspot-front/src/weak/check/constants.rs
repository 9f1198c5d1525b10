//! Evaluates what has to be constant: `const`, lengths, ranges, initial values, numbers of threads, and indices that
//! happen to be.

use weakspot_model::local;
use weakspot_model::problem::FaultKind;
use weakspot_model::source::{Diagnostic, Span};

use super::{Checker, Item};
use crate::weak::ast::{ChainOp, ExprId, ExprKind, List};

/// What came of evaluating an expression before the program runs.
pub(super) enum Evaluated {
    /// A constant.
    Value(i64),
    /// This part of it is not constant.
    Varies(ExprId),
    /// Constant, but without a value.
    Fault(Span, FaultKind),
    /// A mistake in it has been reported.
    Reported,
}

impl Checker<'_> {
    /// The value of an expression that has to be constant; `what` names it in messages.
    pub(super) fn constant(&mut self, id: ExprId, what: &str) -> Option<i64> {
        match self.evaluate(id) {
            Evaluated::Value(value) => Some(value),
            Evaluated::Varies(part) => {
                self.report_varies(part, what);
                None
            }
            Evaluated::Fault(span, fault) => {
                self.report_fault(span, &fault);
                None
            }
            Evaluated::Reported => None,
        }
    }

    /// Evaluates with the constants known so far.
    pub(super) fn evaluate(&self, id: ExprId) -> Evaluated {
        let expr = self.ast.expr(id);
        match expr.kind {
            ExprKind::Integer(value) => Evaluated::Value(value),
            ExprKind::Error => Evaluated::Reported,
            ExprKind::Name(name) => match self.tables.item(name) {
                Some(Item::Constant(index)) => match self.constants.get(index as usize) {
                    Some(&Some(value)) => Evaluated::Value(value),
                    Some(None) => Evaluated::Reported,
                    None => Evaluated::Varies(id),
                },
                _ => Evaluated::Varies(id),
            },
            ExprKind::Unary { op, operand } => match self.evaluate(operand) {
                Evaluated::Value(value) => evaluated(expr.span, local::unary(op, value)),
                other => other,
            },
            ExprKind::Chain { first, links } => self.evaluate_chain(expr.span.start, first, links),
            ExprKind::Me
            | ExprKind::Text
            | ExprKind::Index { .. }
            | ExprKind::ThreadLocal { .. }
            | ExprKind::Call { .. }
            | ExprKind::Choose { .. } => Evaluated::Varies(id),
        }
    }

    fn evaluate_chain(&self, start: u32, first: ExprId, links: List) -> Evaluated {
        let mut left = match self.evaluate(first) {
            Evaluated::Value(value) => value,
            other => return other,
        };
        for link in &self.ast.links[links.range()] {
            match link.op {
                ChainOp::And if left == 0 => return Evaluated::Value(0),
                ChainOp::Or if left != 0 => return Evaluated::Value(1),
                _ => {}
            }
            let right = match self.evaluate(link.operand) {
                Evaluated::Value(value) => value,
                other => return other,
            };
            left = match link.op {
                ChainOp::And | ChainOp::Or => i64::from(right != 0),
                ChainOp::Binary(op) => match local::binary(op, left, right) {
                    Ok(value) => value,
                    Err(fault) => return Evaluated::Fault(Span { start, end: link.end }, fault),
                },
            };
        }
        Evaluated::Value(left)
    }

    fn report_varies(&mut self, part: ExprId, what: &str) {
        let expr = *self.ast.expr(part);
        let what = what.to_owned();
        self.error("not-constant", expr.span, |checker| {
            let message = format!("{what} must be constant");
            let diagnostic = Diagnostic::error("not-constant", message, expr.span);
            let ExprKind::Name(name) = expr.kind else {
                return diagnostic.help("use numbers, constants and operators only");
            };
            let text = checker.text(name);
            match checker.tables.item(name) {
                Some(item @ Item::Constant(_)) => diagnostic
                    .label(format!("`{text}` is declared further down"))
                    .related(checker.item_ident(item).span, "declared here")
                    .help(format!("move the declaration of `{text}` above this one")),
                Some(item) => diagnostic
                    .label(format!("`{text}` is {}", item.kind()))
                    .help("use numbers, constants and operators only"),
                None => {
                    let message = format!("unknown constant `{text}`");
                    let diagnostic = Diagnostic::error("unknown-name", message, expr.span);
                    let close = crate::suggest::did_you_mean(text, checker.constant_names());
                    diagnostic.help(close.unwrap_or_else(|| format!("declare it: `const {text} = …;`")))
                }
            }
        });
    }

    fn constant_names(&self) -> impl Iterator<Item = &str> {
        self.ast.constants.iter().map(|(ident, _)| self.text(ident.name))
    }

    /// Reports a constant expression that has no value.
    pub(super) fn report_fault(&mut self, span: Span, fault: &FaultKind) {
        let (message, help) = match *fault {
            FaultKind::DivisionByZero => {
                ("this divides by zero".to_owned(), "the divisor of `/` and `%` must not be 0")
            }
            FaultKind::Shift { amount } => (format!("this shifts by {amount} bits"), "shift by 0 to 63 bits"),
            _ => ("this value does not fit into 64 bits".to_owned(), "values are 64-bit signed integers"),
        };
        self.error("constant-arithmetic", span, |_| Diagnostic::error("", message, span).help(help));
    }
}

fn evaluated(span: Span, result: Result<i64, FaultKind>) -> Evaluated {
    match result {
        Ok(value) => Evaluated::Value(value),
        Err(fault) => Evaluated::Fault(span, fault),
    }
}
