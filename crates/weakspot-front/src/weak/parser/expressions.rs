//! Expressions, by precedence climbing. Operators of one level make one flat chain.
//!
//! Levels from loose to tight, as in Rust: `||`, `&&`, comparisons (which do not chain), `|`, `^`, `&`, shifts, sums,
//! products, unary.

use weakspot_model::ir::{BinaryOp, UnaryOp};
use weakspot_model::source::{Diagnostic, Span};

use super::{Parsed, Parser};
use crate::weak::ast::{ChainOp, ExprId, ExprKind, Ident, Link, List};
use crate::weak::lexer::{BAD_INTEGER, Symbol, TokenKind};
use crate::weak::names;

const COMPARISON: u8 = 3;

/// The operator a symbol stands for between two operands, and its level.
fn operator(symbol: Symbol) -> Option<(ChainOp, u8)> {
    use BinaryOp::{Add, BitAnd, BitOr, BitXor, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Rem, Shl, Shr, Sub};
    let (op, level) = match symbol {
        Symbol::OrOr => return Some((ChainOp::Or, 1)),
        Symbol::AndAnd => return Some((ChainOp::And, 2)),
        Symbol::Equal => (Eq, COMPARISON),
        Symbol::NotEqual => (Ne, COMPARISON),
        Symbol::Less => (Lt, COMPARISON),
        Symbol::LessEqual => (Le, COMPARISON),
        Symbol::Greater => (Gt, COMPARISON),
        Symbol::GreaterEqual => (Ge, COMPARISON),
        Symbol::Or => (BitOr, 4),
        Symbol::Xor => (BitXor, 5),
        Symbol::And => (BitAnd, 6),
        Symbol::ShiftLeft => (Shl, 7),
        Symbol::ShiftRight => (Shr, 7),
        Symbol::Plus => (Add, 8),
        Symbol::Minus => (Sub, 8),
        Symbol::Star => (Mul, 9),
        Symbol::Slash => (Div, 9),
        Symbol::Percent => (Rem, 9),
        _ => return None,
    };
    Some((ChainOp::Binary(op), level))
}

impl Parser<'_> {
    /// Any expression.
    pub(super) fn expression(&mut self) -> Parsed<ExprId> {
        self.chain(0)
    }

    fn depth_of(&self, id: ExprId) -> u16 {
        self.expression_depths[id.index()]
    }

    fn current_operator(&self) -> Option<(ChainOp, u8)> {
        match self.current.kind {
            TokenKind::Symbol(symbol) => operator(symbol),
            _ => None,
        }
    }

    /// An expression whose operators are all of level `least` or tighter.
    fn chain(&mut self, least: u8) -> Parsed<ExprId> {
        let start = self.current.span.start;
        let mut first = self.unary()?;
        while let Some((_, level)) = self.current_operator().filter(|&(_, level)| level >= least) {
            let (links, depth) = self.links(level)?;
            let depth = depth.max(self.depth_of(first)) + 1;
            let list = List { start: self.ast.links.len() as u32, len: links.len() as u32 };
            self.ast.links.extend_from_slice(&links);
            let span = self.span_from(start);
            first = self.add_expression(ExprKind::Chain { first, links: list }, span, depth)?;
        }
        Ok(first)
    }

    /// The links of one level, and how deep the deepest operand is.
    fn links(&mut self, level: u8) -> Parsed<(Vec<Link>, u16)> {
        let mut links = Vec::new();
        let mut depth = 0;
        while let Some((op, _)) = self.current_operator().filter(|&(_, found)| found == level) {
            if level == COMPARISON && !links.is_empty() {
                let span = self.current.span;
                let diagnostic = Diagnostic::error("chained-comparison", "comparisons cannot be chained", span)
                    .help("write `a < b && b < c`, or use parentheses");
                return Err(self.report(diagnostic));
            }
            self.bump();
            let operand = self.nested(|parser| parser.chain(level + 1))?;
            depth = depth.max(self.depth_of(operand));
            links.push(Link { op, operand, end: self.previous_end });
        }
        Ok((links, depth))
    }

    fn unary(&mut self) -> Parsed<ExprId> {
        let start = self.current.span.start;
        let op = match self.current.kind {
            TokenKind::Symbol(Symbol::Not) => UnaryOp::Not,
            TokenKind::Symbol(Symbol::Minus) => UnaryOp::Neg,
            TokenKind::Symbol(Symbol::And | Symbol::Star) => {
                let diagnostic =
                    self.unexpected("an expression").help("there are no pointers; a name stands for its cell");
                return Err(self.report(diagnostic));
            }
            _ => return self.primary(),
        };
        self.bump();
        if op == UnaryOp::Neg && matches!(self.current.kind, TokenKind::Integer(value) if value == 1 << 63) {
            self.bump();
            return self.add_expression(ExprKind::Integer(i64::MIN), self.span_from(start), 1);
        }
        let operand = self.nested(Self::unary)?;
        let depth = self.depth_of(operand) + 1;
        self.add_expression(ExprKind::Unary { op, operand }, self.span_from(start), depth)
    }

    fn primary(&mut self) -> Parsed<ExprId> {
        let span = self.current.span;
        match self.current.kind {
            TokenKind::Integer(value) => {
                self.bump();
                if value == BAD_INTEGER {
                    return self.add_expression(ExprKind::Error, span, 1);
                }
                let Ok(value) = i64::try_from(value) else {
                    let diagnostic = Diagnostic::error("bad-integer", "this integer does not fit into 64 bits", span)
                        .help("the largest value is 9223372036854775807");
                    self.report(diagnostic);
                    return self.add_expression(ExprKind::Error, span, 1);
                };
                self.add_expression(ExprKind::Integer(value), span, 1)
            }
            TokenKind::Text => {
                self.bump();
                self.add_expression(ExprKind::Text, span, 1)
            }
            TokenKind::Word(names::TRUE) => self.word_value(ExprKind::Integer(1)),
            TokenKind::Word(names::FALSE) => self.word_value(ExprKind::Integer(0)),
            TokenKind::Word(names::ME) => self.word_value(ExprKind::Me),
            TokenKind::Word(name) if !name.is_reserved() => {
                self.bump();
                self.name(Ident { name, span })
            }
            TokenKind::Symbol(Symbol::OpenParen) => {
                self.bump();
                let inner = self.nested(|parser| parser.chain(0))?;
                self.expect(Symbol::CloseParen, "to close the parenthesis")?;
                Ok(inner)
            }
            _ => {
                let help = if self.text[..self.previous_end as usize].ends_with("--") {
                    "write the load and the store: `x = x - 1;`, or one atomic step: `fetch_add(x, -1);`"
                } else {
                    "an expression begins with a number, a name, `(`, `!` or `-`"
                };
                let diagnostic = self.unexpected("an expression").help(help);
                Err(self.report(diagnostic))
            }
        }
    }

    fn word_value(&mut self, kind: ExprKind) -> Parsed<ExprId> {
        let span = self.bump().span;
        self.add_expression(kind, span, 1)
    }

    /// What begins with a name: the name itself, a cell, a call, another thread's local.
    fn name(&mut self, ident: Ident) -> Parsed<ExprId> {
        match self.current.kind {
            TokenKind::Symbol(Symbol::OpenParen) if ident.name == names::CHOOSE => self.choose(ident.span),
            TokenKind::Symbol(Symbol::OpenParen) => self.call(ident),
            TokenKind::Symbol(Symbol::OpenBracket) => {
                self.bump();
                let index = self.nested(|parser| parser.chain(0))?;
                self.expect(Symbol::CloseBracket, "after the index")?;
                if self.current.is(Symbol::Dot) {
                    return self.thread_local(ident, Some(index));
                }
                if self.current.is(Symbol::OpenBracket) {
                    let diagnostic = self
                        .unexpected("an operator")
                        .help("arrays have one dimension; compute the index: `a[i * N + j]`");
                    return Err(self.report(diagnostic));
                }
                let depth = self.depth_of(index) + 1;
                let span = self.span_from(ident.span.start);
                self.add_expression(ExprKind::Index { array: ident, index }, span, depth)
            }
            TokenKind::Symbol(Symbol::Dot) => self.thread_local(ident, None),
            _ => self.add_expression(ExprKind::Name(ident.name), ident.span, 1),
        }
    }

    fn thread_local(&mut self, thread: Ident, index: Option<ExprId>) -> Parsed<ExprId> {
        self.bump();
        let local = self.ident("the name of a local of that thread")?;
        let depth = index.map_or(0, |index| self.depth_of(index)) + 1;
        let span = self.span_from(thread.span.start);
        self.add_expression(ExprKind::ThreadLocal { thread, index, local }, span, depth)
    }

    fn call(&mut self, function: Ident) -> Parsed<ExprId> {
        self.bump();
        let mut arguments = Vec::new();
        let mut depth = 0;
        while !self.current.is(Symbol::CloseParen) {
            let argument = self.nested(|parser| parser.chain(0))?;
            depth = depth.max(self.depth_of(argument));
            arguments.push(argument);
            if !self.eat(Symbol::Comma) {
                break;
            }
        }
        self.expect(Symbol::CloseParen, "after the arguments")?;
        let list = self.expression_list(&arguments);
        let span = self.span_from(function.span.start);
        self.add_expression(ExprKind::Call { function, arguments: list }, span, depth + 1)
    }

    fn choose(&mut self, word: Span) -> Parsed<ExprId> {
        self.bump();
        let (lo, hi) = self.nested(Self::range)?;
        self.expect(Symbol::CloseParen, "after the range")?;
        let depth = self.depth_of(lo).max(self.depth_of(hi)) + 1;
        let span = self.span_from(word.start);
        self.add_expression(ExprKind::Choose { lo, hi }, span, depth)
    }
}
