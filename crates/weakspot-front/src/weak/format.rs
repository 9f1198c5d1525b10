//! The canonical form of a file.
//!
//! Works on tokens, not on the tree, so that comments stay where they are and nothing can get lost: the tokens of the
//! result are those of the source, in the same order. One statement or declaration a line, four spaces a level, empty
//! blocks as `{ }`, at most one blank line. Long lines are not broken.

use super::lexer::{Lexer, Symbol, Token, TokenKind};
use super::names;

/// Lays out a file without syntax errors.
pub(super) fn format(text: &str) -> String {
    let mut lexer = Lexer::with_comments(text);
    let mut printer = Printer { text, ..Printer::default() };
    loop {
        let token = lexer.next_token();
        if token.kind == TokenKind::End {
            return printer.finish();
        }
        printer.token(token);
    }
}

#[derive(Default)]
struct Printer<'source> {
    text: &'source str,
    output: String,
    /// Open braces.
    depth: usize,
    /// The last token, and the last that is no comment.
    previous: Option<Token>,
    significant: Option<Token>,
    /// The last token ends its line.
    line_ends: bool,
    /// The last token is an operator before its operand.
    prefix: bool,
}

impl Printer<'_> {
    fn token(&mut self, token: Token) {
        if token.is(Symbol::CloseBrace) {
            self.depth = self.depth.saturating_sub(1);
        }
        self.space_before(token);
        self.prefix = self.is_prefix(token);
        self.line_ends = self.ends_line(token);
        self.output.push_str(self.text[token.span.range()].trim_end());
        if token.is(Symbol::OpenBrace) {
            self.depth += 1;
        }
        self.previous = Some(token);
        if token.kind != TokenKind::Comment {
            self.significant = Some(token);
        }
    }

    /// Space, line break or nothing.
    fn space_before(&mut self, token: Token) {
        let Some(previous) = self.previous else { return };
        let gap = &self.text[previous.span.end as usize..token.span.start as usize];
        let lines = gap.bytes().filter(|&byte| byte == b'\n').count();
        let comment = token.kind == TokenKind::Comment;
        let own_line = match previous.kind {
            TokenKind::Symbol(Symbol::OpenBrace) if token.is(Symbol::CloseBrace) => false,
            TokenKind::Symbol(Symbol::CloseBrace) if token.is_word(names::ELSE) => false,
            // a comment stays on the line of what it is about
            _ if comment => lines > 0 || (self.line_ends && previous.kind == TokenKind::Comment),
            _ => self.line_ends || (previous.kind == TokenKind::Comment && lines > 0),
        };
        if !own_line {
            if comment || self.needs_space(previous, token) {
                self.output.push(' ');
            }
            return;
        }
        self.output.push('\n');
        if lines > 1 && self.line_ends && !previous.is(Symbol::OpenBrace) && !token.is(Symbol::CloseBrace) {
            self.output.push('\n');
        }
        let depth = self.depth + usize::from(self.inside_statement());
        self.output.extend(std::iter::repeat_n("    ", depth));
    }

    /// The last token that is no comment neither begins nor ends anything.
    fn inside_statement(&self) -> bool {
        self.significant.is_some_and(|token| {
            !token.is(Symbol::Semicolon) && !token.is(Symbol::OpenBrace) && !token.is(Symbol::CloseBrace)
        })
    }

    /// Does a line end after this token? Asked before it becomes the previous one.
    fn ends_line(&self, token: Token) -> bool {
        match token.kind {
            TokenKind::Symbol(Symbol::Semicolon | Symbol::OpenBrace | Symbol::CloseBrace) => true,
            TokenKind::Comment if self.text[token.span.range()].starts_with("//") => true,
            // a block comment at the end of a line, or alone
            TokenKind::Comment => {
                let rest = self.text[token.span.end as usize..].trim_start_matches([' ', '\t', '\r']);
                let trailing = !self.inside_statement() && !self.output_at_line_start();
                trailing || rest.starts_with('\n') || rest.is_empty()
            }
            _ => false,
        }
    }

    fn output_at_line_start(&self) -> bool {
        let line = self.output.rsplit('\n').next().unwrap_or_default();
        line.trim_start().is_empty()
    }

    /// `!` and `-` where an operand is expected.
    fn is_prefix(&self, token: Token) -> bool {
        if !token.is(Symbol::Not) && !token.is(Symbol::Minus) {
            return false;
        }
        match self.significant.map(|token| token.kind) {
            Some(TokenKind::Symbol(symbol)) => !matches!(symbol, Symbol::CloseParen | Symbol::CloseBracket),
            Some(TokenKind::Word(name)) => name.is_reserved() && !is_value(name),
            Some(TokenKind::Integer(_) | TokenKind::Text) => false,
            _ => true,
        }
    }

    fn needs_space(&self, previous: Token, token: Token) -> bool {
        let before = match previous.kind {
            TokenKind::Symbol(Symbol::OpenParen | Symbol::OpenBracket | Symbol::Dot | Symbol::RangeInclusive) => false,
            TokenKind::Symbol(Symbol::Not | Symbol::Minus) => !self.prefix,
            _ => true,
        };
        let after = match token.kind {
            TokenKind::Symbol(
                Symbol::Semicolon
                | Symbol::Comma
                | Symbol::Colon
                | Symbol::Dot
                | Symbol::CloseParen
                | Symbol::CloseBracket
                | Symbol::RangeInclusive,
            ) => false,
            TokenKind::Symbol(Symbol::OpenParen | Symbol::OpenBracket) => match previous.kind {
                TokenKind::Word(name) => name.is_reserved(),
                _ => true,
            },
            _ => true,
        };
        before && after
    }

    fn finish(mut self) -> String {
        if !self.output.is_empty() {
            self.output.push('\n');
        }
        self.output
    }
}

/// Reserved words that are operands.
fn is_value(name: names::Name) -> bool {
    matches!(name, names::TRUE | names::FALSE | names::ME)
}

#[cfg(test)]
mod tests {
    use super::format;

    /// Formats, and checks that formatting again changes nothing.
    fn formatted(text: &str) -> String {
        let once = format(text);
        assert_eq!(format(&once), once, "not idempotent");
        once
    }

    #[test]
    fn one_statement_a_line() {
        let text = "shared x,y=1 ;thread a{x=1;let r=y;if r==1{x=2;}else if(r==2){}else{skip;}}";
        let expected = "\
shared x, y = 1;
thread a {
    x = 1;
    let r = y;
    if r == 1 {
        x = 2;
    } else if (r == 2) { } else {
        skip;
    }
}
";
        assert_eq!(formatted(text), expected);
    }

    #[test]
    fn operators_calls_and_indices() {
        let text = "thread p [ 2 ]{ l :a [ - 1+me ] = - x- -y* ! b ; let v=choose ( 0 ..= N ) ;cas( x,1 , 2 );fence ( store_store ) ; }";
        let expected = "\
thread p[2] {
    l: a[-1 + me] = -x - -y * !b;
    let v = choose(0..=N);
    cas(x, 1, 2);
    fence(store_store);
}
";
        assert_eq!(formatted(text), expected);
    }

    #[test]
    fn comments_and_single_blank_lines_stay() {
        let text = "// first\n\n\n\nshared x;   // the cell\n/* a\n   b */\nthread a { // begin\n\n  // own line\n  x = 1; /* end */ x = 2;\n\n\n  x = // why\n 3;\n}\n// last";
        let expected = "\
// first

shared x; // the cell
/* a
   b */
thread a { // begin

    // own line
    x = 1; /* end */
    x = 2;

    x = // why
        3;
}
// last
";
        assert_eq!(formatted(text), expected);
    }

    #[test]
    fn an_empty_file_stays_empty() {
        assert_eq!(formatted(""), "");
        assert_eq!(formatted("\n\n"), "");
        assert_eq!(formatted("// only"), "// only\n");
    }
}
