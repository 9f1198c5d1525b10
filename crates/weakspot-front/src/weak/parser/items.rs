//! Declarations, threads, functions, `final`.

use weakspot_model::source::Diagnostic;

use super::{Parsed, Parser, Reported};
use crate::suggest;
use crate::weak::ast::{ExprId, FinalItem, Function, Ident, Initial, List, SharedDeclaration, ThreadItem};
use crate::weak::lexer::{Symbol, TokenKind};
use crate::weak::names::{self, Name};

impl Parser<'_> {
    /// Everything.
    pub(super) fn file(&mut self) {
        while !self.at_end() {
            self.unclosed = false;
            self.depth = 0;
            if self.item().is_err() {
                self.ast.items_lost = true;
                self.recover_item();
            }
        }
    }

    fn item(&mut self) -> Parsed<()> {
        let TokenKind::Word(word) = self.current.kind else { return Err(self.not_an_item()) };
        match word {
            names::CONST => self.constant(),
            names::SHARED => self.declarations(Self::shared_declaration),
            names::MUTEX => self.declarations(|parser| {
                let ident = parser.ident("the name of a mutex")?;
                parser.ast.mutexes.push(ident);
                Ok(())
            }),
            names::CONDVAR => self.declarations(|parser| {
                let ident = parser.ident("the name of a condition variable")?;
                parser.ast.condvars.push(ident);
                Ok(())
            }),
            names::THREAD => self.thread(),
            names::FN => self.function(),
            names::FINAL => {
                let word = self.bump().span;
                let body = self.block("after `final`")?;
                self.ast.finals.push(FinalItem { word, body });
                Ok(())
            }
            _ => Err(self.not_an_item()),
        }
    }

    fn not_an_item(&mut self) -> Reported {
        let span = self.current.span;
        let items = "items are `const`, `shared`, `mutex`, `condvar`, `thread`, `fn` and `final`";
        let diagnostic = match self.current.kind {
            TokenKind::Symbol(Symbol::CloseBrace) => Diagnostic::error("syntax", "this `}` closes nothing", span)
                .help("remove it, or look for a missing `{` above"),
            TokenKind::Word(word) => {
                let text = self.name_text(word);
                let message = format!("`{text}` does not begin an item");
                let help = match suggest::closest(&text, names::ITEM_WORDS) {
                    Some(item) => format!("did you mean `{item}`?"),
                    None if begins_statement(word) => "statements stand inside `thread name { … }`".to_owned(),
                    None => items.to_owned(),
                };
                Diagnostic::error("syntax", message, span).help(help)
            }
            _ => self.unexpected("an item").help(items),
        };
        self.report(diagnostic)
    }

    /// Skips to the next item. Blocks on the way are parsed, so that their mistakes are reported too.
    fn recover_item(&mut self) {
        let mut first = true;
        loop {
            match self.current.kind {
                TokenKind::End => return,
                TokenKind::Symbol(Symbol::Semicolon | Symbol::CloseBrace) => {
                    self.bump();
                    return;
                }
                TokenKind::Symbol(Symbol::OpenBrace) => {
                    // a block that fails has consumed its brace
                    let _ = self.block("here");
                    return;
                }
                TokenKind::Word(word) if !first && (names::CONST..=names::FN).contains(&word) => return,
                TokenKind::Word(names::FINAL) if !first && self.next.is(Symbol::OpenBrace) => return,
                _ => {
                    self.bump();
                }
            }
            first = false;
        }
    }

    fn constant(&mut self) -> Parsed<()> {
        self.bump();
        let ident = self.ident("the name of a constant")?;
        self.expect(Symbol::Assign, "and the value of the constant")?;
        let value = self.expression()?;
        self.ast.constants.push((ident, value));
        self.semicolon("after the constant")
    }

    /// `word declaration, declaration;`
    fn declarations(&mut self, one: impl Fn(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.bump();
        loop {
            one(self)?;
            if !self.eat(Symbol::Comma) {
                return self.semicolon("after the declaration");
            }
        }
    }

    fn shared_declaration(&mut self) -> Parsed<()> {
        let ident = self.ident("the name of a shared variable")?;
        let length = if self.eat(Symbol::OpenBracket) {
            Some(self.closed_by(Symbol::CloseBracket, "after the length")?)
        } else {
            None
        };
        let range = if self.eat(Symbol::Colon) { Some(self.range()?) } else { None };
        let initial = if self.eat(Symbol::Assign) { self.initial()? } else { Initial::Zero };
        self.ast.shared.push(SharedDeclaration { ident, length, range, initial });
        if self.current.is(Symbol::Colon) {
            let diagnostic = self
                .unexpected("`,` or `;` after the initial value")
                .help("the range stands before the value: `shared x: 0..=2 = 1;`");
            return Err(self.report(diagnostic));
        }
        Ok(())
    }

    fn closed_by(&mut self, symbol: Symbol, place: &str) -> Parsed<ExprId> {
        let value = self.expression()?;
        self.expect(symbol, place)?;
        Ok(value)
    }

    /// `lo..=hi`
    pub(super) fn range(&mut self) -> Parsed<(ExprId, ExprId)> {
        let lo = self.expression()?;
        if self.current.is(Symbol::Range) {
            let diagnostic = self.unexpected("`..=`").help("ranges include both ends: `0..=2` is 0, 1 and 2");
            return Err(self.report(diagnostic));
        }
        if !self.current.is(Symbol::RangeInclusive) {
            let diagnostic =
                self.unexpected("a range `lo..=hi`").help("ranges include both ends: `0..=2` is 0, 1 and 2");
            return Err(self.report(diagnostic));
        }
        self.bump();
        let hi = self.expression()?;
        Ok((lo, hi))
    }

    fn initial(&mut self) -> Parsed<Initial> {
        let start = self.current.span.start;
        if !self.eat(Symbol::OpenBracket) {
            return Ok(Initial::Value(self.expression()?));
        }
        let mut values = Vec::new();
        while !self.current.is(Symbol::CloseBracket) {
            values.push(self.expression()?);
            if !self.eat(Symbol::Comma) {
                break;
            }
        }
        self.expect(Symbol::CloseBracket, "after the initial values")?;
        let list = self.expression_list(&values);
        Ok(Initial::List(list, self.span_from(start)))
    }

    /// Stores a list of expressions.
    pub(super) fn expression_list(&mut self, values: &[ExprId]) -> List {
        let start = self.ast.expression_lists.len() as u32;
        self.ast.expression_lists.extend_from_slice(values);
        List { start, len: values.len() as u32 }
    }

    fn thread(&mut self) -> Parsed<()> {
        self.bump();
        let ident = self.ident("the name of a thread")?;
        let count = match self.current.kind {
            TokenKind::Symbol(Symbol::OpenBracket) => {
                self.bump();
                Some(self.closed_by(Symbol::CloseBracket, "after the number of threads")?)
            }
            TokenKind::Symbol(Symbol::OpenParen) => {
                let name = self.name_text(ident.name);
                let help =
                    format!("the number of threads stands in brackets: `thread {name}[2] {{ … }}`; `me` is the index");
                let diagnostic = self.unexpected("`{` or `[`").help(help);
                return Err(self.report(diagnostic));
            }
            _ => None,
        };
        let body = self.block("to begin the thread")?;
        self.ast.threads.push(ThreadItem { ident, count, body });
        Ok(())
    }

    fn function(&mut self) -> Parsed<()> {
        self.bump();
        let ident = self.ident("the name of a function")?;
        self.expect(Symbol::OpenParen, "before the parameters")?;
        let parameters = self.parameters()?;
        if self.current.is(Symbol::Arrow) {
            let diagnostic = self.unexpected("`{`").help("all values are integers: a function declares no result type");
            return Err(self.report(diagnostic));
        }
        (self.returns_value, self.returns) = (false, 0);
        let body = self.block("to begin the function")?;
        let (returns_value, returns) = (self.returns_value, self.returns);
        self.ast.functions.push(Function { ident, parameters, body, returns_value, returns });
        Ok(())
    }

    fn parameters(&mut self) -> Parsed<Vec<Ident>> {
        let mut parameters = Vec::new();
        while !self.current.is(Symbol::CloseParen) {
            parameters.push(self.ident("the name of a parameter")?);
            if !self.eat(Symbol::Comma) {
                break;
            }
        }
        self.expect(Symbol::CloseParen, "after the parameters")?;
        Ok(parameters)
    }
}

/// Is this a word that begins a statement?
fn begins_statement(word: Name) -> bool {
    word.is_operation() || (names::LET..=names::RETURN).contains(&word)
}
