//! Recursive descent with recovery: one run reports all independent mistakes of a file.
//!
//! A function that fails has reported why and gives [`Reported`]; the nearest statement or item then skips to where
//! the next one probably begins. Recursion is limited to [`DEEPEST_NESTING`] levels, counted over blocks and over
//! expressions; whatever may be long without being deep (chains of operators, `else if`, lists) is a loop.
//!
//! | file | parses |
//! |---|---|
//! | `items.rs` | declarations, threads, functions, `final` |
//! | `statements.rs` | statements and blocks |
//! | `expressions.rs` | expressions, by precedence climbing |

mod expressions;
mod items;
mod statements;

use weakspot_model::source::{Diagnostic, Span};

use super::ast::{Ast, Expr, ExprId, ExprKind, Ident, Stmt, StmtId, StmtKind};
use super::lexer::{BAD_INTEGER, Lexer, Symbol, Token, TokenKind};
use super::names::{Name, Names};
use super::problems::Problems;

/// Blocks in blocks, and expressions in expressions, may be this deep.
pub(super) const DEEPEST_NESTING: usize = 256;

/// A mistake has been reported; the caller recovers.
#[derive(Debug, Clone, Copy)]
struct Reported;

type Parsed<T> = Result<T, Reported>;

/// What a parser leaves behind.
pub(super) struct Outcome<'source> {
    pub(super) ast: Ast,
    pub(super) names: Names<'source>,
    pub(super) problems: Problems,
    /// The `//!` lines.
    pub(super) directives: Vec<Span>,
}

/// Parses a file.
pub(super) fn parse(text: &str) -> Outcome<'_> {
    let mut lexer = Lexer::new(text);
    let current = lexer.next_token();
    let next = lexer.next_token();
    let mut parser = Parser {
        text,
        lexer,
        current,
        next,
        previous_end: 0,
        ast: Ast::default(),
        expression_depths: Vec::new(),
        depth: 0,
        too_deep: false,
        unclosed: false,
        returns_value: false,
        returns: 0,
    };
    parser.file();
    let Lexer { names, problems, directives, .. } = parser.lexer;
    Outcome { ast: parser.ast, names, problems, directives }
}

struct Parser<'source> {
    text: &'source str,
    lexer: Lexer<'source>,
    current: Token,
    next: Token,
    /// Where the token before `current` ended.
    previous_end: u32,
    ast: Ast,
    /// The depth of each expression, because the left operand of a chain is not reached by recursion.
    expression_depths: Vec<u16>,
    /// How deep the recursion is.
    depth: usize,
    /// The nesting limit has been reported.
    too_deep: bool,
    /// An item begins inside a block: all open blocks end here, and that has been reported.
    unclosed: bool,
    /// Some `return` of the function being parsed has a value.
    returns_value: bool,
    /// How many `return` statements it has so far.
    returns: u32,
}

impl Parser<'_> {
    /// Takes the current token.
    fn bump(&mut self) -> Token {
        let token = self.current;
        self.previous_end = token.span.end;
        self.current = self.next;
        self.next = self.lexer.next_token();
        token
    }

    /// Takes the current token if it is this symbol.
    fn eat(&mut self, symbol: Symbol) -> bool {
        let found = self.current.is(symbol);
        if found {
            self.bump();
        }
        found
    }

    fn at_end(&self) -> bool {
        self.current.kind == TokenKind::End
    }

    /// From a start to the last token taken.
    fn span_from(&self, start: u32) -> Span {
        Span { start, end: self.previous_end.max(start) }
    }

    /// Right behind the last token taken.
    fn gap(&self) -> Span {
        Span { start: self.previous_end, end: self.previous_end }
    }

    fn name_text(&self, name: Name) -> String {
        self.lexer.names.text(name).to_owned()
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        let span = diagnostic.span;
        if self.current.after_mistake && span == self.current.span {
            return Reported;
        }
        self.lexer.problems.error(span, || diagnostic);
        Reported
    }

    /// The current token in words.
    fn found(&self) -> String {
        describe(self.current, &self.lexer.names)
    }

    /// "expected …, found …" at the current token.
    fn unexpected(&self, expected: &str) -> Diagnostic {
        let span = if self.at_end() { self.gap() } else { self.current.span };
        if self.lexer.problems.is_full() {
            return Diagnostic::error("syntax", "", span);
        }
        Diagnostic::error("syntax", format!("expected {expected}, found {}", self.found()), span)
    }

    /// Takes this symbol, or reports that it is missing.
    fn expect(&mut self, symbol: Symbol, place: &str) -> Parsed<Token> {
        if self.current.is(symbol) {
            return Ok(self.bump());
        }
        let symbol = symbol.text();
        let help = if self.at_end() {
            format!("add `{symbol}` at the end")
        } else {
            format!("put `{symbol}` before {}", self.found())
        };
        let diagnostic = self.unexpected(&format!("`{symbol}` {place}")).help(help);
        Err(self.report(diagnostic))
    }

    /// Takes a name that is not a word of the language; `what` says whose.
    fn ident(&mut self, what: &str) -> Parsed<Ident> {
        match self.current.kind {
            TokenKind::Word(name) if !name.is_reserved() => {
                let span = self.bump().span;
                Ok(Ident { name, span })
            }
            TokenKind::Word(name) => {
                let word = self.name_text(name);
                let diagnostic = self.unexpected(what);
                let diagnostic = diagnostic
                    .help(format!("`{word}` is a word of the language and cannot be a name; try `{word}_` or another"));
                Err(self.report(diagnostic))
            }
            _ => {
                let help = "a name begins with a letter or `_`; letters, digits and `_` follow";
                let diagnostic = self.unexpected(what).help(help);
                Err(self.report(diagnostic))
            }
        }
    }

    /// Runs `parse` one level deeper, unless that is too deep.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST_NESTING {
            return Err(self.report_too_deep(self.current.span));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Reports the nesting limit, the first time.
    fn report_too_deep(&mut self, span: Span) -> Reported {
        if !self.too_deep {
            self.too_deep = true;
            let message = format!("this is nested more than {DEEPEST_NESTING} levels deep");
            let diagnostic = Diagnostic::error("too-deep", message, span)
                .help("split it: move inner blocks into a `fn`, inner expressions into a `let`");
            return self.report(diagnostic);
        }
        Reported
    }

    fn add_expression(&mut self, kind: ExprKind, span: Span, depth: u16) -> Parsed<ExprId> {
        if usize::from(depth) > DEEPEST_NESTING {
            return Err(self.report_too_deep(span));
        }
        self.ast.expressions.push(Expr { kind, span });
        self.expression_depths.push(depth);
        Ok(ExprId(self.ast.expressions.len() as u32 - 1))
    }

    fn add_statement(&mut self, kind: StmtKind, span: Span, label: Option<Ident>) -> StmtId {
        self.ast.statements.push(Stmt { kind, span, end: self.previous_end, label });
        StmtId(self.ast.statements.len() as u32 - 1)
    }

    /// Is there a line break between the last token taken and the current one?
    fn on_new_line(&self) -> bool {
        self.text[self.previous_end as usize..self.current.span.start as usize].contains('\n')
    }
}

/// A token in words.
fn describe(token: Token, names: &Names<'_>) -> String {
    match token.kind {
        TokenKind::Word(name) => format!("`{}`", names.text(name)),
        TokenKind::Integer(BAD_INTEGER) => "a number".to_owned(),
        TokenKind::Integer(value) => format!("the number `{value}`"),
        TokenKind::Text => "a string".to_owned(),
        TokenKind::Symbol(symbol) => format!("`{}`", symbol.text()),
        TokenKind::Comment | TokenKind::End => "the end of the file".to_owned(),
    }
}
