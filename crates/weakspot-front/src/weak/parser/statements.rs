//! Statements and blocks.

use weakspot_model::ir::FenceKind;
use weakspot_model::source::{Diagnostic, Span};

use super::{Parsed, Parser, Reported};
use crate::suggest;
use crate::weak::ast::{Arm, Block, ExprKind, Ident, List, StmtId, StmtKind};
use crate::weak::lexer::{Symbol, TokenKind};
use crate::weak::names::{self, Name};

impl Parser<'_> {
    /// `{ … }`. After an error inside, statements go on being parsed; fails only if there is no block.
    pub(super) fn block(&mut self, place: &str) -> Parsed<Block> {
        if !self.current.is(Symbol::OpenBrace) {
            let diagnostic = self.missing_block(place);
            return Err(self.report(diagnostic));
        }
        let opening = self.bump().span;
        if self.depth >= super::DEEPEST_NESTING {
            self.report_too_deep(opening);
            self.skip_block();
            return Ok(Block { end: self.span_from(self.previous_end.saturating_sub(1)), ..Block::default() });
        }
        self.depth += 1;
        let mut statements = Vec::new();
        while !self.current.is(Symbol::CloseBrace) && !self.unclosed {
            if self.at_end() || self.begins_item() {
                self.report_unclosed(opening);
                break;
            }
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(Reported) => self.recover_statement(),
            }
        }
        self.depth -= 1;
        if !self.unclosed {
            self.bump();
        }
        let end = self.span_from(self.previous_end.saturating_sub(1));
        let start = self.ast.statement_lists.len() as u32;
        self.ast.statement_lists.extend_from_slice(&statements);
        Ok(Block { statements: List { start, len: statements.len() as u32 }, end })
    }

    fn missing_block(&self, place: &str) -> Diagnostic {
        let diagnostic = self.unexpected(&format!("`{{` {place}"));
        match self.current.kind {
            TokenKind::Symbol(Symbol::Assign) => diagnostic.help("`==` compares, `=` assigns"),
            TokenKind::Symbol(Symbol::Semicolon) => diagnostic.help("an empty block is `{ }`"),
            _ => diagnostic.help("blocks always have braces"),
        }
    }

    /// Skips to the brace that closes a block whose opening brace was taken.
    fn skip_block(&mut self) {
        let mut depth = 1_usize;
        while depth > 0 && !self.at_end() {
            let token = self.bump();
            if token.is(Symbol::OpenBrace) {
                depth += 1;
            } else if token.is(Symbol::CloseBrace) {
                depth -= 1;
            }
        }
    }

    /// An item that can only begin here because a `}` is missing.
    fn begins_item(&self) -> bool {
        match self.current.kind {
            TokenKind::Word(names::THREAD | names::FN) => matches!(self.next.kind, TokenKind::Word(_)),
            TokenKind::Word(names::FINAL) => self.next.is(Symbol::OpenBrace),
            _ => false,
        }
    }

    fn report_unclosed(&mut self, opening: Span) {
        let message = format!("expected `}}` before {}", self.found());
        let span = if self.at_end() { self.gap() } else { self.current.span };
        let diagnostic = Diagnostic::error("unclosed-block", message, span)
            .related(opening, "this block is still open")
            .help("close the block with `}`");
        self.report(diagnostic);
        self.unclosed = true;
    }

    /// Skips to where the next statement probably begins.
    fn recover_statement(&mut self) {
        let mut first = true;
        while !self.at_end() && !self.unclosed {
            match self.current.kind {
                TokenKind::Symbol(Symbol::Semicolon) => {
                    self.bump();
                    return;
                }
                TokenKind::Symbol(Symbol::CloseBrace) => return,
                TokenKind::Symbol(Symbol::OpenBrace) => {
                    // parsed for the mistakes inside it
                    let _ = self.block("here");
                    return;
                }
                TokenKind::Word(word) if !first && self.on_new_line() && begins_statement_for_sure(word) => return,
                _ if self.begins_item() => return,
                _ => {
                    self.bump();
                }
            }
            first = false;
        }
    }

    /// Takes the `;` of a statement. If the next token stands on another line it was merely forgotten.
    pub(super) fn semicolon(&mut self, place: &str) -> Parsed<()> {
        if self.eat(Symbol::Semicolon) {
            return Ok(());
        }
        let forgotten = self.on_new_line() || self.at_end() || self.current.is(Symbol::CloseBrace);
        if forgotten {
            let gap = self.gap();
            let diagnostic = Diagnostic::error("syntax", format!("expected `;` {place}"), gap)
                .label("`;` goes here")
                .help("declarations and statements without a block end with `;`");
            self.report(diagnostic);
            return Ok(());
        }
        let diagnostic = self.unexpected(&format!("`;` {place}"));
        let diagnostic = match self.current.kind {
            TokenKind::Symbol(Symbol::PlusPlus | Symbol::PlusAssign | Symbol::MinusAssign) => {
                diagnostic.help("write the load and the store: `x = x + 1;`, or one atomic step: `fetch_add(x, 1);`")
            }
            TokenKind::Symbol(Symbol::Assign) => diagnostic.help("`==` compares; only a variable can be assigned to"),
            _ => diagnostic.help("declarations and statements without a block end with `;`"),
        };
        Err(self.report(diagnostic))
    }

    fn statement(&mut self) -> Parsed<StmtId> {
        let label = self.label();
        let start = self.current.span.start;
        let kind = self.statement_kind()?;
        let end = self.previous_end;
        let span = Span { start, end };
        let (span, needs_semicolon) = match kind {
            StmtKind::If { .. }
            | StmtKind::While { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Critical { .. }
            | StmtKind::Error => (span, false),
            _ => (span, true),
        };
        if needs_semicolon {
            self.semicolon("after this statement")?;
        }
        Ok(self.add_statement(kind, span, label))
    }

    /// `name:` before a statement.
    fn label(&mut self) -> Option<Ident> {
        let mut label = None;
        while let TokenKind::Word(name) = self.current.kind {
            if !self.next.is(Symbol::Colon) {
                break;
            }
            let span = self.bump().span;
            self.bump();
            if name.is_reserved() {
                let message = format!("`{}` is a word of the language and cannot be a label", self.name_text(name));
                self.report(Diagnostic::error("syntax", message, span).help("choose another name"));
            } else if label.is_some() {
                let message = "a statement can have one label only";
                self.report(Diagnostic::error("syntax", message, span).help("keep one of the two"));
            } else {
                label = Some(Ident { name, span });
            }
        }
        label
    }

    fn statement_kind(&mut self) -> Parsed<StmtKind> {
        let TokenKind::Word(word) = self.current.kind else { return self.other_statement() };
        let follows = |symbol| self.next.is(symbol);
        match word {
            names::LET => self.let_statement(),
            names::IF => self.if_statement(),
            names::WHILE => {
                self.bump();
                let condition = self.expression()?;
                let body = self.block("after the condition")?;
                Ok(StmtKind::While { condition, body })
            }
            names::LOOP => {
                self.bump();
                Ok(StmtKind::Loop { body: self.block("after `loop`")? })
            }
            names::BREAK => Ok(self.word_statement(StmtKind::Break)),
            names::CONTINUE => Ok(self.word_statement(StmtKind::Continue)),
            names::RETURN => self.return_statement(),
            names::SKIP if follows(Symbol::Semicolon) || self.next_is_elsewhere() => {
                Ok(self.word_statement(StmtKind::Skip))
            }
            names::FENCE if follows(Symbol::Semicolon) || self.next_is_elsewhere() => {
                Ok(self.word_statement(StmtKind::Fence(FenceKind::Full)))
            }
            names::FENCE if follows(Symbol::OpenParen) => self.fence(),
            names::CRITICAL if follows(Symbol::OpenBrace) => {
                let word = self.bump().span;
                Ok(StmtKind::Critical { word, body: self.block("after `critical`")? })
            }
            _ if (names::ASSERT..=names::NOTIFY_ALL).contains(&word) && follows(Symbol::OpenParen) => {
                self.operation(word)
            }
            names::TRUE | names::FALSE | names::ME => self.other_statement(),
            _ if word.is_reserved() => Err(self.misplaced_word(word)),
            _ => self.named_statement(word),
        }
    }

    /// Does the next token belong to something else, so that only the `;` of this word is missing?
    fn next_is_elsewhere(&self) -> bool {
        let gap = &self.text[self.current.span.end as usize..self.next.span.start as usize];
        match self.next.kind {
            TokenKind::End | TokenKind::Symbol(Symbol::CloseBrace) => true,
            TokenKind::Word(_) => gap.contains('\n'),
            _ => false,
        }
    }

    fn word_statement(&mut self, kind: StmtKind) -> StmtKind {
        self.bump();
        kind
    }

    fn let_statement(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let local = match self.current.kind {
            TokenKind::Word(name)
                if self.lexer.names.text(name) == "mut" && matches!(self.next.kind, TokenKind::Word(_)) =>
            {
                let diagnostic =
                    self.unexpected("the name of a local").help("every local can be assigned: leave `mut` out");
                return Err(self.report(diagnostic));
            }
            _ => self.ident("the name of a local")?,
        };
        if self.current.is(Symbol::Semicolon) {
            let name = self.name_text(local.name);
            let diagnostic = self.unexpected("`=`").help(format!("a local needs a value: `let {name} = 0;`"));
            return Err(self.report(diagnostic));
        }
        self.expect(Symbol::Assign, "and a value")?;
        let value = self.expression()?;
        Ok(StmtKind::Let { local, value })
    }

    fn if_statement(&mut self) -> Parsed<StmtKind> {
        let mut arms = Vec::new();
        let otherwise = loop {
            self.bump();
            let condition = self.expression()?;
            let block = self.block("after the condition")?;
            arms.push(Arm { condition, block });
            if self.unclosed || !self.current.is_word(names::ELSE) {
                break None;
            }
            self.bump();
            if !self.current.is_word(names::IF) {
                break Some(self.block("after `else`")?);
            }
        };
        let start = self.ast.arms.len() as u32;
        self.ast.arms.extend_from_slice(&arms);
        Ok(StmtKind::If { arms: List { start, len: arms.len() as u32 }, otherwise })
    }

    fn return_statement(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let bare = self.current.is(Symbol::Semicolon) || self.current.is(Symbol::CloseBrace);
        let value = if bare { None } else { Some(self.expression()?) };
        self.returns_value |= value.is_some();
        self.returns += 1;
        Ok(StmtKind::Return { value })
    }

    fn fence(&mut self) -> Parsed<StmtKind> {
        self.bump();
        self.bump();
        let kind = match self.current.kind {
            TokenKind::Word(names::STORE_STORE) => FenceKind::StoreStore,
            TokenKind::Word(names::STORE_LOAD) => FenceKind::StoreLoad,
            kind => {
                let close = match kind {
                    TokenKind::Word(word) => {
                        suggest::did_you_mean(&self.name_text(word), ["store_store", "store_load"])
                    }
                    _ => None,
                };
                let help = close.unwrap_or_else(|| {
                    "write `fence;` for a full fence, `fence(store_store);` or `fence(store_load);`".to_owned()
                });
                let diagnostic = self.unexpected("`store_store` or `store_load`").help(help);
                return Err(self.report(diagnostic));
            }
        };
        self.bump();
        self.expect(Symbol::CloseParen, "after the kind of fence")?;
        Ok(StmtKind::Fence(kind))
    }

    /// `operation(…)` for the operations that are statements.
    fn operation(&mut self, word: Name) -> Parsed<StmtKind> {
        self.bump();
        self.bump();
        let kind = match word {
            names::ASSERT => self.assert()?,
            names::ASSUME => StmtKind::Assume { condition: self.expression()? },
            names::AWAIT => StmtKind::Await { condition: self.expression()? },
            names::LOCK => StmtKind::Lock(self.ident("the name of a mutex")?),
            names::UNLOCK => StmtKind::Unlock(self.ident("the name of a mutex")?),
            names::WAIT => {
                let condvar = self.ident("the name of a condition variable")?;
                if !self.current.is(Symbol::Comma) {
                    let diagnostic =
                        self.unexpected("`,` and the mutex that is released while waiting").help("write `wait(c, m);`");
                    return Err(self.report(diagnostic));
                }
                self.bump();
                StmtKind::Wait { condvar, mutex: self.ident("the name of a mutex")? }
            }
            _ => {
                let condvar = self.ident("the name of a condition variable")?;
                StmtKind::Notify { condvar, all: word == names::NOTIFY_ALL }
            }
        };
        self.expect(Symbol::CloseParen, "to end the operation")?;
        Ok(kind)
    }

    fn assert(&mut self) -> Parsed<StmtKind> {
        let condition = self.expression()?;
        let mut message = None;
        if self.eat(Symbol::Comma) {
            if self.current.kind != TokenKind::Text {
                let diagnostic =
                    self.unexpected("a message in quotation marks").help("write `assert(e, \"message\");`");
                return Err(self.report(diagnostic));
            }
            message = Some(self.bump().span);
        }
        Ok(StmtKind::Assert { condition, message })
    }

    /// A statement that begins with a name of the program: an assignment, a call, or a misspelt word.
    fn named_statement(&mut self, word: Name) -> Parsed<StmtKind> {
        match self.next.kind {
            TokenKind::Word(_) | TokenKind::Integer(_) | TokenKind::Text | TokenKind::Symbol(Symbol::OpenBrace) => {
                Err(self.unknown_statement(word))
            }
            TokenKind::Symbol(Symbol::Semicolon | Symbol::Not) => {
                let text = self.name_text(word);
                match suggest::closest(&text, ["break", "continue", "return", "fence", "skip"]) {
                    Some(_) => Err(self.unknown_statement(word)),
                    None => self.other_statement(),
                }
            }
            _ => self.other_statement(),
        }
    }

    fn unknown_statement(&mut self, word: Name) -> Reported {
        let text = self.name_text(word);
        let span = self.current.span;
        let message = format!("`{text}` does not begin a statement");
        let words = names::STATEMENT_WORDS.into_iter().chain(names::STATEMENT_OPERATIONS);
        let help = match text.as_str() {
            _ if word.is_operation() && word != names::CRITICAL && word != names::SKIP => {
                format!("`{text}` takes its operands in parentheses: `{text}(…);`")
            }
            "for" | "do" | "until" | "repeat" => "the loops are `while condition { … }` and `loop { … }`".to_owned(),
            "goto" => "use `loop`, `break` and `continue`".to_owned(),
            "int" | "var" | "auto" | "long" | "bool" => {
                "a local is declared with `let name = value;`, shared memory with `shared name;` outside the threads".to_owned()
            }
            _ => match suggest::closest(&text, words) {
                Some(close) => format!("did you mean `{close}`?"),
                None => "a statement is an assignment `name = value;`, a call `name(…);` or begins with a word of the language"
                    .to_owned(),
            },
        };
        self.report(Diagnostic::error("unknown-statement", message, span).help(help))
    }

    fn misplaced_word(&mut self, word: Name) -> Reported {
        let text = self.name_text(word);
        let span = self.current.span;
        let diagnostic = if word == names::ELSE {
            Diagnostic::error("syntax", "`else` without an `if` before it", span)
                .help("`else` follows the closing brace of an `if` block directly")
        } else {
            Diagnostic::error("syntax", format!("`{text}` cannot stand inside a block"), span)
                .help("declare it outside the threads and functions")
        };
        self.report(diagnostic)
    }

    /// An assignment or an expression.
    fn other_statement(&mut self) -> Parsed<StmtKind> {
        match self.current.kind {
            TokenKind::Symbol(Symbol::OpenBrace) => {
                let span = self.current.span;
                let message = "a block cannot stand alone";
                self.report(
                    Diagnostic::error("syntax", message, span)
                        .help("remove the braces, or put `if`, `while`, `loop` or `critical` before them"),
                );
                let _ = self.block("here");
                return Ok(StmtKind::Error);
            }
            TokenKind::Symbol(Symbol::Semicolon) => {
                let diagnostic = self.unexpected("a statement").help("remove this `;`, or write `skip;`");
                return Err(self.report(diagnostic));
            }
            TokenKind::Symbol(Symbol::CloseBrace) => {
                let diagnostic = self.unexpected("a statement after the label").help("label something: `name: skip;`");
                return Err(self.report(diagnostic));
            }
            _ => {}
        }
        let target = self.expression()?;
        if !self.eat(Symbol::Assign) {
            return Ok(StmtKind::Evaluate(target));
        }
        let value = self.expression()?;
        if matches!(self.ast.expr(target).kind, ExprKind::Unary { .. }) {
            let span = self.ast.expr(target).span;
            let diagnostic =
                Diagnostic::error("bad-assignment", "this cannot be assigned to", span).help("there are no pointers");
            return Err(self.report(diagnostic));
        }
        Ok(StmtKind::Assign { target, value })
    }
}

/// Words that begin a statement and hardly anything else.
fn begins_statement_for_sure(word: Name) -> bool {
    (names::LET..=names::RETURN).contains(&word)
        || matches!(word, names::FENCE | names::ASSERT | names::CRITICAL | names::LOCK | names::UNLOCK)
}
