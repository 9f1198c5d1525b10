//! What comes after the code: `locations [...]`, the condition, and what old tools left behind it.
//!
//! | text | read as |
//! |---|---|
//! | `exists C`, `~exists C`, `~ exists C`, `not exists C`, `forall C` | that |
//! | `final C ; with tso: ~exists; ...` | `exists C`; the `with` clauses are passed over |
//! | nothing | `forall (true)` |
//! | `<< ... >>` after the condition | passed over |
//!
//! `/\` binds tighter than `\/`. A location or register that the code never changes has its initial value, as in
//! herd; a register that the thread never names is a mistake.

use weakspot_model::ids::ThreadId;
use weakspot_model::litmus::{Condition, Observable, Quantifier};
use weakspot_model::source::{Diagnostic, Span};

use super::context::{Context, Mistake, clip, number_diagnostic};
use super::cursor::{Cursor, NumberError};
use super::target::{Target, parse_target};
use super::thread::ThreadBuilder;

/// How deep brackets and negations may nest.
const DEEPEST: usize = 256;

/// The end of a test.
pub(super) struct Ending {
    /// What is asked.
    pub(super) quantifier: Quantifier,
    /// About what.
    pub(super) condition: Condition,
    /// Where the condition stands; empty at the end of the file if there is none.
    pub(super) span: Span,
    /// What it and `locations` name, each once, in the order of the text.
    pub(super) observed: Vec<Observable>,
}

/// Reads everything after the code.
pub(super) fn parse_ending<'a>(
    context: &mut Context<'a>,
    cursor: &mut Cursor<'a>,
    threads: &mut [ThreadBuilder<'a>],
) -> Result<Ending, Mistake> {
    let mut reader = Reader { context, cursor, threads, observed: Vec::with_capacity(8), depth: 0 };
    reader.locations()?;
    let start = reader.cursor.pos;
    let Some(quantifier) = reader.quantifier()? else {
        reader.trailing(false)?;
        let span = Span::new(start, start);
        return Ok(Ending {
            quantifier: Quantifier::Forall,
            condition: Condition::True,
            span,
            observed: reader.observed,
        });
    };
    let condition = reader.disjunction()?;
    let span = reader.cursor.span_from(start);
    reader.cursor.skip_trivia();
    reader.cursor.eat(";");
    reader.trailing(true)?;
    Ok(Ending { quantifier, condition, span, observed: reader.observed })
}

struct Reader<'r, 'a> {
    context: &'r mut Context<'a>,
    cursor: &'r mut Cursor<'a>,
    threads: &'r mut [ThreadBuilder<'a>],
    observed: Vec<Observable>,
    depth: usize,
}

impl<'a> Reader<'_, 'a> {
    /// `locations [x; 0:EAX;]`, as often as it comes.
    fn locations(&mut self) -> Result<(), Mistake> {
        loop {
            self.cursor.skip_trivia();
            match self.cursor.peek_word() {
                "locations" => self.cursor.pos += "locations".len(),
                "filter" => return Err(self.filter()),
                _ => return Ok(()),
            }
            self.cursor.skip_trivia();
            let open = self.cursor.pos;
            if !self.cursor.eat("[") {
                return Err(self.expected(
                    "bad-locations",
                    "`[` after `locations`",
                    "for example `locations [x; 0:EAX;]`",
                ));
            }
            self.location_list(Span::new(open, open + 1))?;
        }
    }

    fn location_list(&mut self, open: Span) -> Result<(), Mistake> {
        loop {
            self.cursor.skip_trivia();
            match self.cursor.peek() {
                Some(b']') => {
                    self.cursor.pos += 1;
                    self.cursor.skip_trivia();
                    self.cursor.eat(";");
                    return Ok(());
                }
                Some(b';' | b',') => self.cursor.pos += 1,
                None => {
                    let end = self.cursor.next_char_span();
                    let diagnostic =
                        Diagnostic::error("unclosed-bracket", "the file ends inside `locations [...]`", end);
                    let diagnostic = diagnostic.label("expected `]`").related(open, "the list starts here");
                    return Err(Mistake::new(diagnostic.help("for example `locations [x; 0:EAX;]`")));
                }
                Some(_) => {
                    let target = parse_target(self.cursor, true)?;
                    self.observe(target)?;
                    self.cursor.skip_trivia();
                    if !matches!(self.cursor.peek(), Some(b';' | b',' | b']') | None) {
                        return Err(self.expected(
                            "bad-locations",
                            "`;` or `]`",
                            "names in the list are separated by `;`",
                        ));
                    }
                }
            }
        }
    }

    fn filter(&self) -> Mistake {
        let span = self.cursor.found_span();
        let help = "write the filter into the condition: `exists (F /\\ C)`";
        Mistake::new(Diagnostic::error("unsupported-filter", "`filter` clauses are not supported", span).help(help))
    }

    /// `None` if there is no condition.
    fn quantifier(&mut self) -> Result<Option<Quantifier>, Mistake> {
        self.cursor.skip_trivia();
        if self.cursor.at_end() || self.cursor.starts_with("<<") {
            return Ok(None);
        }
        let negated = self.cursor.eat("~") || self.eat_word("not");
        self.cursor.skip_trivia();
        if self.eat_word("exists") {
            return Ok(Some(if negated { Quantifier::NotExists } else { Quantifier::Exists }));
        }
        if !negated && self.eat_word("forall") {
            return Ok(Some(Quantifier::Forall));
        }
        if !negated && self.eat_word("final") {
            return Ok(Some(Quantifier::Exists));
        }
        let what = if negated { "`exists` after `~`" } else { "`exists`, `~exists` or `forall`" };
        Err(self.expected("expected-condition", what, "for example `exists (0:EAX=0 /\\ 1:EAX=0)`"))
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.cursor.peek_word() == word;
        if found {
            self.cursor.pos += word.len();
        }
        found
    }

    fn disjunction(&mut self) -> Result<Condition, Mistake> {
        let first = self.conjunction()?;
        self.cursor.skip_trivia();
        if !self.cursor.starts_with("\\/") {
            return Ok(first);
        }
        let mut any = vec![first];
        while self.cursor.eat("\\/") {
            any.push(self.conjunction()?);
            self.cursor.skip_trivia();
        }
        Ok(Condition::Or(any))
    }

    fn conjunction(&mut self) -> Result<Condition, Mistake> {
        let first = self.unary()?;
        self.skip_trivia_before_operator();
        if !self.cursor.starts_with("/\\") {
            return Ok(first);
        }
        let mut all = Vec::with_capacity(4);
        all.push(first);
        while self.cursor.eat("/\\") {
            all.push(self.unary()?);
            self.skip_trivia_before_operator();
        }
        Ok(Condition::And(all))
    }

    /// Passes over white space and comments, but leaves the end of the condition where it is if no operator follows.
    fn skip_trivia_before_operator(&mut self) {
        let end = self.cursor.pos;
        self.cursor.skip_trivia();
        if !matches!(self.cursor.peek(), Some(b'/' | b'\\' | b')')) {
            self.cursor.pos = end;
        }
    }

    fn unary(&mut self) -> Result<Condition, Mistake> {
        self.cursor.skip_trivia();
        let start = self.cursor.pos;
        if self.cursor.eat("~") || self.eat_word("not") {
            return self.nested(start, |reader| Ok(Condition::Not(Box::new(reader.unary()?))));
        }
        if self.cursor.eat("(") {
            return self.nested(start, |reader| {
                let inner = reader.disjunction()?;
                reader.cursor.skip_trivia();
                if reader.cursor.eat(")") {
                    return Ok(inner);
                }
                let expected = "`/\\`, `\\/` or `)`";
                let mistake: Diagnostic = reader
                    .expected(
                        "bad-condition",
                        expected,
                        "atoms are joined with `/\\` (and) or `\\/` (or), and brackets must be closed",
                    )
                    .into();
                Err(Mistake::new(mistake.related(Span::new(start, start + 1), "the bracket that is open")))
            });
        }
        if self.eat_word("true") {
            return Ok(Condition::True);
        }
        if self.eat_word("false") {
            return Ok(Condition::False);
        }
        self.atom()
    }

    fn nested(
        &mut self,
        start: usize,
        inner: impl FnOnce(&mut Self) -> Result<Condition, Mistake>,
    ) -> Result<Condition, Mistake> {
        if self.depth == DEEPEST {
            let message = format!("the condition nests deeper than {DEEPEST} levels");
            let span = Span::new(start, start + 1);
            let help = "leave out brackets that are not needed";
            return Err(Mistake::new(Diagnostic::error("condition-too-deep", message, span).help(help)));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// `x=1`, `[x]=1`, `0:EAX=1`, `P0:EAX = 1`, also with `==`, `!=` and `<>`.
    fn atom(&mut self) -> Result<Condition, Mistake> {
        let target = parse_target(self.cursor, false)?;
        let observable = self.observe(target)?;
        self.cursor.skip_trivia();
        let different = self.cursor.eat("!=") || self.cursor.eat("<>");
        if !different && !self.cursor.eat("==") && !self.cursor.eat("=") {
            return Err(self.expected("bad-condition", "`=`", "an atom of the condition reads `x=1` or `0:EAX=1`"));
        }
        let equals = Condition::Equals(observable, self.value()?);
        Ok(if different { Condition::Not(Box::new(equals)) } else { equals })
    }

    fn value(&mut self) -> Result<i64, Mistake> {
        self.cursor.skip_trivia();
        self.cursor.eat("$");
        let start = self.cursor.pos;
        match self.cursor.number() {
            Ok(value) => Ok(value),
            Err(NumberError::Missing) if self.cursor.pos > start => {
                let span = self.cursor.span_from(start);
                let message = format!("`{}` is not a number", clip(&self.context.text[span.range()]));
                let help = "a condition compares with numbers, not with locations or registers";
                Err(Mistake::new(Diagnostic::error("expected-number", message, span).label("not a number").help(help)))
            }
            Err(NumberError::Missing) => Err(self.expected("expected-number", "a number", "for example `x=1`")),
            Err(error) => Err(Mistake::new(number_diagnostic(error, self.context.text, self.cursor.span_from(start)))),
        }
    }

    /// The observable a target stands for; it becomes part of the final state.
    fn observe(&mut self, target: Target<'a>) -> Result<Observable, Mistake> {
        let observable = match target {
            Target::Memory(name, span) => Observable::Memory(self.context.location(name, span)),
            Target::Register { thread, thread_span, named } => {
                let count = self.threads.len();
                let Some(builder) = self.threads.get_mut(thread) else {
                    return Err(unknown_thread(count, thread_span, self.context.text));
                };
                // After a mistake in the code the register may be missing because of it: say nothing about it then.
                let register = match builder.find(named.register) {
                    Some(register) => register,
                    None if self.context.diagnostics.is_empty() => {
                        return Err(unused_register(builder, named.name, named.span));
                    }
                    None => builder.register(self.context, named),
                };
                builder.observe(register);
                Observable::Register(ThreadId::new(thread), register)
            }
        };
        if !self.observed.contains(&observable) {
            self.observed.push(observable);
        }
        Ok(observable)
    }

    /// What may follow the condition: `with` clauses, `<< ... >>` and nothing else.
    fn trailing(&mut self, with: bool) -> Result<(), Mistake> {
        loop {
            self.cursor.skip_trivia();
            let start = self.cursor.pos;
            if self.cursor.at_end() {
                return Ok(());
            }
            if with && self.eat_word("with") {
                self.skip_to_block();
            } else if self.cursor.eat("<<") {
                match self.cursor.text[self.cursor.pos..].find(">>") {
                    Some(length) => self.cursor.pos += length + 2,
                    None => self.cursor.pos = self.cursor.text.len(),
                }
            } else if is_old_command(self.cursor.peek_word()) {
                self.cursor.skip_line();
            } else {
                let message = format!("expected the end of the test, found {}", self.cursor.found());
                let help = "only `<< ... >>` and comments may follow the condition";
                let span = Cursor::new(self.cursor.text, start).found_span();
                return Err(Mistake::new(Diagnostic::error("trailing-text", message, span).help(help)));
            }
        }
    }

    /// Passes over `tso: ~exists; cc: exists; ...`.
    fn skip_to_block(&mut self) {
        let rest = &self.cursor.text[self.cursor.pos..];
        self.cursor.pos += rest.find("<<").unwrap_or(rest.len());
    }

    fn expected(&self, code: &'static str, what: &str, help: &str) -> Mistake {
        let message = format!("expected {what}, found {}", self.cursor.found());
        Mistake::new(Diagnostic::error(code, message, self.cursor.found_span()).help(help))
    }
}

/// Commands of older tools that stand alone behind some conditions.
fn is_old_command(word: &str) -> bool {
    ["show", "genprog", "essdump", "readfrom", "Observation", "Hash", "Generator"].contains(&word)
}

/// The message about a thread that does not exist.
pub(super) fn unknown_thread(count: usize, span: Span, text: &str) -> Mistake {
    let message = format!("there is no thread `{}`", clip(&text[span.range()]));
    let help = match count {
        1 => "the test has one thread, P0".to_owned(),
        _ => format!("the test has {count} threads, P0 to P{}", count - 1),
    };
    Mistake::new(Diagnostic::error("unknown-thread", message, span).label("no such thread").help(help))
}

fn unused_register(thread: &ThreadBuilder<'_>, name: &str, span: Span) -> Mistake {
    let message = format!("thread P{} has no register `{name}`", thread.index);
    let names: Vec<&str> = thread.register_names().collect();
    let help = match names.as_slice() {
        [] => "it uses no registers at all".to_owned(),
        names => format!("it uses {}", names.join(", ")),
    };
    Mistake::new(Diagnostic::error("unused-register", message, span).label("never used by this thread").help(help))
}
