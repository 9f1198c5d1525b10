//! Declarations: unique names, constants, the layout of memory, the number of threads.

use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::ir::Location;
use weakspot_model::source::{Diagnostic, Span};

use super::{Checker, Instances, Item, Shared};
use crate::weak::ast::{ExprId, Ident, Initial, SharedDeclaration};

/// The most threads a program may have.
const MOST_THREADS: usize = 64;
/// The most cells of shared memory.
const MOST_CELLS: usize = 65_536;
/// The most mutexes, and the most condition variables.
const MOST_MUTEXES: usize = 1024;

impl Checker<'_> {
    /// All items, constants first because the others need them.
    pub(super) fn items(&mut self) {
        self.collect_names();
        for &(_, value) in &self.ast.constants {
            let value = self.constant(value, "the value of a constant");
            self.constants.push(value);
        }
        for declaration in &self.ast.shared {
            let shared = self.shared(declaration);
            self.tables.shared.push(shared);
        }
        self.limit_mutexes(&self.ast.mutexes, "mutexes");
        self.limit_mutexes(&self.ast.condvars, "condition variables");
        self.threads();
        if let Some(second) = self.ast.finals.get(1) {
            let first = self.ast.finals[0].word;
            self.error("second-final", second.word, |_| {
                Diagnostic::error("", "a program has one `final` block only", second.word)
                    .related(first, "the first one")
                    .help("move these statements into the first one")
            });
        }
    }

    fn collect_names(&mut self) {
        let ast = self.ast;
        let numbered = |count: usize| 0..count as u32;
        let mut items: Vec<Item> = Vec::new();
        items.extend(numbered(ast.constants.len()).map(Item::Constant));
        items.extend(numbered(ast.shared.len()).map(Item::Shared));
        items.extend(numbered(ast.mutexes.len()).map(Item::Mutex));
        items.extend(numbered(ast.condvars.len()).map(Item::Condvar));
        items.extend(numbered(ast.threads.len()).map(Item::Thread));
        items.extend(numbered(ast.functions.len()).map(Item::Function));
        // in the order of the text, so that the second of two is the one that is reported
        items.sort_by_key(|&item| self.item_ident(item).span);
        for item in items {
            let ident = self.item_ident(item);
            if matches!(item, Item::Function(_)) && ident.name.is_operation() {
                self.error("reserved-name", ident.span, |checker| {
                    let text = checker.text(ident.name);
                    let message = format!("`{text}` is an operation of the language and cannot be a function");
                    Diagnostic::error("", message, ident.span).help(format!("choose another name, such as `my_{text}`"))
                });
            }
            match self.tables.items[ident.name.index()] {
                None => self.tables.items[ident.name.index()] = Some(item),
                Some(first) => self.report_duplicate(ident, first),
            }
        }
    }

    fn report_duplicate(&mut self, ident: Ident, first: Item) {
        self.error("duplicate-name", ident.span, |checker| {
            let message = format!("the name `{}` is taken", checker.text(ident.name));
            Diagnostic::error("", message, ident.span)
                .related(checker.item_ident(first).span, format!("it is {} here", first.kind()))
                .help("every constant, shared variable, mutex, condition variable, thread and function needs its own name")
        });
    }

    fn limit_mutexes(&mut self, declared: &[Ident], what: &str) {
        if let Some(ident) = declared.get(MOST_MUTEXES) {
            let message = format!("a program can have {MOST_MUTEXES} {what}, this one has {}", declared.len());
            self.error("too-many", ident.span, |_| {
                Diagnostic::error("", message, ident.span).help("a model that small machines can explore needs a few")
            });
        }
    }

    /// Lays out one shared variable.
    fn shared(&mut self, declaration: &SharedDeclaration) -> Shared {
        let ident = declaration.ident;
        // a wrong length becomes 0: the name still means something, and is never complained about again
        let length = declaration.length.map(|length| self.array_length(ident, length).unwrap_or(0));
        let range = declaration.range.and_then(|(lo, hi)| self.declared_range(lo, hi));
        let base = self.tables.locations.len();
        let cells = length.unwrap_or(1) as usize;
        let shared = Shared { base: Loc::new(base), length, range, used: false };
        if base + cells > MOST_CELLS {
            self.error("too-many", ident.span, |_| {
                let message = format!("a program can have {MOST_CELLS} cells of shared memory, this one has more");
                Diagnostic::error("", message, ident.span).help("make the arrays smaller")
            });
            return Shared { base: Loc(0), ..shared };
        }
        let name = self.names.text(ident.name);
        for cell in 0..cells {
            let name = if length.is_some() { format!("{name}[{cell}]") } else { name.to_owned() };
            self.tables.locations.push(Location { name, init: 0, range });
        }
        self.initial_values(declaration, &shared);
        shared
    }

    fn array_length(&mut self, ident: Ident, length: ExprId) -> Option<u32> {
        let value = self.constant(length, "the length of an array")?;
        let span = self.ast.expr(length).span;
        if value >= 1 && value <= MOST_CELLS as i64 {
            return Some(value as u32);
        }
        self.error("bad-length", span, |checker| {
            let message = format!("array `{}` cannot have {value} cells", checker.text(ident.name));
            Diagnostic::error("", message, span).help(format!("an array has 1 to {MOST_CELLS} cells"))
        });
        None
    }

    fn declared_range(&mut self, lo: ExprId, hi: ExprId) -> Option<(i64, i64)> {
        let span = self.ast.expr(lo).span.to(self.ast.expr(hi).span);
        let lo = self.constant(lo, "the lower end of a range");
        let hi = self.constant(hi, "the upper end of a range");
        let (lo, hi) = (lo?, hi?);
        if lo > hi {
            self.error("empty-range", span, |_| {
                Diagnostic::error("", format!("the range {lo}..={hi} is empty"), span)
                    .help(format!("write the smaller end first: `{hi}..={lo}`"))
            });
            return None;
        }
        Some((lo, hi))
    }

    /// Checks and stores the initial values.
    fn initial_values(&mut self, declaration: &SharedDeclaration, shared: &Shared) {
        let ident = declaration.ident;
        let values = match (declaration.initial, shared.length) {
            (Initial::Zero, _) => {
                self.check_zero(ident, shared);
                return;
            }
            (Initial::Value(value), None) => vec![value],
            (Initial::List(list, _), Some(_)) => self.ast.list(list).to_vec(),
            (Initial::Value(value), Some(length)) => {
                let span = self.ast.expr(value).span;
                self.error("bad-initial-value", span, |checker| {
                    let name = checker.text(ident.name);
                    let message = format!("array `{name}` needs a list of initial values");
                    Diagnostic::error("", message, span).help(list_help(length))
                });
                return;
            }
            (Initial::List(_, span), None) => {
                self.error("bad-initial-value", span, |checker| {
                    let name = checker.text(ident.name);
                    Diagnostic::error("", format!("`{name}` is a single cell, not an array"), span)
                        .help(format!("write `{name} = 0`, or `{name}[N] = […]` to declare an array"))
                });
                return;
            }
        };
        if let (Some(length @ 1..), Initial::List(_, span)) = (shared.length, declaration.initial)
            && length as usize != values.len()
        {
            let given = values.len();
            self.error("bad-initial-value", span, |checker| {
                let name = checker.text(ident.name);
                let message =
                    format!("array `{name}` has {}, but {given} initial {}", cells(length), values_are(given));
                Diagnostic::error("", message, span).help("give one value for each cell")
            });
            return;
        }
        for (cell, value) in values.into_iter().enumerate() {
            self.initial_value(value, shared, cell);
        }
    }

    fn check_zero(&mut self, ident: Ident, shared: &Shared) {
        let Some((lo, hi)) = shared.range.filter(|&(lo, hi)| lo > 0 || hi < 0) else { return };
        self.error("bad-initial-value", ident.span, |checker| {
            let name = checker.text(ident.name);
            let message = format!("`{name}` begins with 0, which is outside its range {lo}..={hi}");
            let help = match shared.length {
                None => format!("give it an initial value: `{name}: {lo}..={hi} = {lo}`"),
                Some(_) => format!("give it initial values: `= [{lo}, …]`"),
            };
            Diagnostic::error("", message, ident.span).help(help)
        });
    }

    fn initial_value(&mut self, value: ExprId, shared: &Shared, cell: usize) {
        let span = self.ast.expr(value).span;
        let Some(value) = self.constant(value, "an initial value") else { return };
        if let Some((lo, hi)) = shared.range.filter(|&(lo, hi)| value < lo || value > hi) {
            self.error("bad-initial-value", span, |_| {
                let message = format!("the initial value {value} is outside the declared range {lo}..={hi}");
                Diagnostic::error("", message, span).help("change the value or widen the range")
            });
        }
        if let Some(location) = self.tables.locations.get_mut(shared.base.index() + cell)
            && shared.length.is_none_or(|length| cell < length as usize)
        {
            location.init = value;
        }
    }

    fn threads(&mut self) {
        let mut total = 0_usize;
        let mut reported = false;
        for thread in &self.ast.threads {
            let count = thread.count.map(|count| self.thread_count(thread.ident, count));
            let first = ThreadId::new(total.min(MOST_THREADS));
            self.tables.threads.push(Instances { first, count });
            total += count.unwrap_or(1) as usize;
            if total > MOST_THREADS && !reported {
                reported = true;
                let span = thread.ident.span;
                self.error("too-many", span, |_| {
                    let message = format!("a program can have {MOST_THREADS} threads, this one has more");
                    Diagnostic::error("", message, span).help("two or three are usually enough to show a problem")
                });
            }
        }
        self.tables.observed = vec![Vec::new(); total.min(MOST_THREADS)];
        if self.ast.threads.is_empty() && !self.problems.any_error() {
            self.error("no-threads", Span::default(), |_| {
                Diagnostic::error("", "this program has no threads", Span::default())
                    .help("declare some: `thread name { … }`, or `thread name[2] { … }` for two of the same kind")
            });
        }
    }

    fn thread_count(&mut self, ident: Ident, count: ExprId) -> u32 {
        let span = self.ast.expr(count).span;
        match self.constant(count, "the number of threads") {
            Some(value) if value >= 1 && value <= MOST_THREADS as i64 => value as u32,
            Some(value) => {
                self.error("bad-length", span, |checker| {
                    let name = checker.text(ident.name);
                    let message = format!("there cannot be {value} threads `{name}`");
                    Diagnostic::error("", message, span).help(format!("a program has 1 to {MOST_THREADS} threads"))
                });
                1
            }
            None => 1,
        }
    }
}

fn cells(length: u32) -> String {
    if length == 1 { "1 cell".to_owned() } else { format!("{length} cells") }
}

fn values_are(count: usize) -> &'static str {
    if count == 1 { "value" } else { "values" }
}

fn list_help(length: u32) -> String {
    match length {
        1..=8 => {
            format!("write them in brackets, one for each cell: `[{}]`", vec!["0"; length as usize].join(", "))
        }
        _ => "write them in brackets, one for each cell".to_owned(),
    }
}
