//! Expressions: what each name stands for, and whether it may be used that way.

use weakspot_model::ids::ThreadId;
use weakspot_model::source::{Diagnostic, Span};

use super::constants::Evaluated;
use super::{Body, Call, Checker, Item, LocalId, Meaning};
use crate::suggest;
use crate::weak::ast::{ExprId, ExprKind, Ident, List};
use crate::weak::names;

impl Checker<'_> {
    /// An expression whose value is used.
    pub(super) fn value(&mut self, id: ExprId) {
        let expr = *self.ast.expr(id);
        match expr.kind {
            ExprKind::Error | ExprKind::Integer(_) => {}
            ExprKind::Text => self.error("stray-string", expr.span, |_| {
                Diagnostic::error("", "a string is not a value", expr.span)
                    .help("strings are the messages of assertions: `assert(condition, \"message\");`")
            }),
            ExprKind::Me => self.me(expr.span),
            ExprKind::Name(_) | ExprKind::Index { .. } => self.readable(id),
            ExprKind::ThreadLocal { thread, index, local } => self.thread_local(id, thread, index, local),
            ExprKind::Unary { operand, .. } => self.value(operand),
            ExprKind::Chain { first, links } => {
                self.value(first);
                for link in &self.ast.links[links.range()] {
                    self.value(link.operand);
                }
            }
            ExprKind::Call { .. } => self.call(id, true),
            ExprKind::Choose { lo, hi } => self.choose(expr.span, lo, hi),
        }
    }

    fn me(&mut self, span: Span) {
        match self.body {
            Body::Thread(_, true) | Body::Function(_) => {}
            Body::Thread(index, false) => {
                let name = self.text(self.ast.threads[index as usize].ident.name).to_owned();
                self.problems.warning("single-me", span, || {
                    Diagnostic::warning("single-me", format!("`me` is always 0 in the single thread `{name}`"), span)
                        .help(format!("`thread {name}[N]` makes N threads, and `me` tells them apart"))
                });
            }
            Body::Final => self.error("no-me", span, |_| {
                Diagnostic::error("", "`me` has no meaning in `final`", span)
                    .help("name the thread: `p[0].r` is the local `r` of thread `p[0]`")
            }),
        }
    }

    fn choose(&mut self, span: Span, lo: ExprId, hi: ExprId) {
        if self.body == Body::Final {
            self.error("not-in-final", span, |_| {
                Diagnostic::error("", "`choose` cannot stand in `final`", span)
                    .help("`final` looks at the end of an execution and decides nothing")
            });
        }
        self.value(lo);
        self.value(hi);
        if let (Evaluated::Value(lo), Evaluated::Value(hi)) = (self.evaluate(lo), self.evaluate(hi))
            && lo > hi
        {
            self.error("empty-range", span, |_| {
                Diagnostic::error("", format!("there is no value in {lo}..={hi} to choose"), span)
                    .help(format!("write the smaller end first: `choose({hi}..={lo})`"))
            });
        }
    }

    /// A name or cell that is read.
    fn readable(&mut self, id: ExprId) {
        let expr = *self.ast.expr(id);
        if let ExprKind::Name(name) = expr.kind
            && !self.scope.contains_key(&name)
            && let Some(Item::Constant(index)) = self.tables.item(name)
        {
            let value = self.constants.get(index as usize).copied().flatten();
            self.tables.meanings[id.index()] = Meaning::Constant(value.unwrap_or(0));
            return;
        }
        self.place(id, "be read");
    }

    /// A local, shared variable or cell; `action` is what it is wanted for.
    pub(super) fn place(&mut self, id: ExprId, action: &str) {
        let expr = *self.ast.expr(id);
        let (ident, index) = match expr.kind {
            ExprKind::Name(name) => (Ident { name, span: expr.span }, None),
            ExprKind::Index { array, index } => (array, Some(index)),
            _ => return,
        };
        if let Some(index) = index {
            self.value(index);
        }
        if let Some(&local) = self.scope.get(&ident.name) {
            match index {
                None => self.tables.meanings[id.index()] = Meaning::Local(local),
                Some(_) => self.report_indexed(ident, "a local", self.tables.locals[local.index()].ident.span),
            }
            return;
        }
        match self.tables.item(ident.name) {
            Some(Item::Shared(shared)) => {
                self.tables.shared[shared as usize].used = true;
                self.tables.meanings[id.index()] = Meaning::Shared(shared);
                self.check_cell(ident, shared, index);
            }
            Some(item) => self.report_wrong_kind(ident, item, action),
            None => self.report_unknown(ident, index.is_some()),
        }
    }

    fn check_cell(&mut self, ident: Ident, shared: u32, index: Option<ExprId>) {
        let declared = self.ast.shared[shared as usize].ident.span;
        match (self.tables.shared[shared as usize].length, index) {
            (None, None) => {}
            (None, Some(_)) => self.report_indexed(ident, "a single cell", declared),
            (Some(_), None) => self.error("missing-index", ident.span, |checker| {
                let name = checker.text(ident.name);
                Diagnostic::error("", format!("`{name}` is an array and needs an index"), ident.span)
                    .related(declared, "declared here")
                    .help(format!("name one cell: `{name}[0]`"))
            }),
            (Some(length), Some(index)) => self.check_index(ident, length, index),
        }
    }

    fn check_index(&mut self, ident: Ident, length: u32, index: ExprId) {
        let span = self.ast.expr(index).span;
        match self.evaluate(index) {
            // the length 0 stands for one that was wrong
            Evaluated::Value(value) if length > 0 && (value < 0 || value >= i64::from(length)) => {
                self.error("index-out-of-range", span, |checker| {
                    let name = checker.text(ident.name);
                    let message = format!("`{name}` has no cell {value}");
                    Diagnostic::error("", message, span).help(cells_are(name, length))
                });
            }
            Evaluated::Fault(span, fault) => self.report_fault(span, &fault),
            _ => {}
        }
    }

    fn report_indexed(&mut self, ident: Ident, what: &str, declared: Span) {
        let what = what.to_owned();
        self.error("not-an-array", ident.span, |checker| {
            let name = checker.text(ident.name);
            Diagnostic::error("", format!("`{name}` is {what}, not an array"), ident.span)
                .related(declared, "declared here")
                .help("remove the index, or declare a shared array: `shared name[2];`")
        });
    }

    fn report_wrong_kind(&mut self, ident: Ident, item: Item, action: &str) {
        let action = action.to_owned();
        self.error("wrong-kind", ident.span, |checker| {
            let name = checker.text(ident.name);
            let message = format!("`{name}` is {} and cannot {action}", item.kind());
            let diagnostic =
                Diagnostic::error("", message, ident.span).related(checker.item_ident(item).span, "declared here");
            match item {
                Item::Function(_) => diagnostic.help(format!("call it: `{name}(…)`")),
                Item::Thread(_) => diagnostic.help(format!("in `final`, `{name}.r` is its local `r`")),
                Item::Mutex(_) => diagnostic.help(format!("use `lock({name});` and `unlock({name});`")),
                Item::Condvar(_) => diagnostic.help(format!("use `wait({name}, m);` and `notify_one({name});`")),
                Item::Constant(_) => diagnostic.help("declare it `shared`, or copy it into a `let`"),
                Item::Shared(_) => diagnostic,
            }
        });
    }

    fn report_unknown(&mut self, ident: Ident, indexed: bool) {
        if self.ast.items_lost {
            return;
        }
        self.error("unknown-name", ident.span, |checker| {
            let name = checker.text(ident.name);
            let diagnostic = Diagnostic::error("", format!("unknown name `{name}`"), ident.span);
            if let Some(&ended) = checker.ended.get(&ident.name) {
                return diagnostic
                    .related(ended, "declared here, in a block that has ended")
                    .help(format!("declare `{name}` before that block"));
            }
            let mut locals: Vec<&str> = checker.scope.keys().map(|&local| checker.text(local)).collect();
            locals.sort_unstable();
            match suggest::did_you_mean(name, locals.into_iter().chain(checker.item_names())) {
                Some(close) => diagnostic.help(close),
                None if indexed => diagnostic.help(format!("declare it outside the threads: `shared {name}[N];`")),
                None => {
                    diagnostic.help(format!("declare it: `shared {name};` outside the threads, or `let {name} = …;`"))
                }
            }
        });
    }

    /// A call of a function or an atomic operation.
    pub(super) fn call(&mut self, id: ExprId, value_wanted: bool) {
        let expr = *self.ast.expr(id);
        let ExprKind::Call { function, arguments } = expr.kind else { return };
        if self.body == Body::Final {
            self.error("not-in-final", expr.span, |checker| {
                let name = checker.text(function.name);
                Diagnostic::error("", format!("`{name}(…)` cannot be called in `final`"), expr.span)
                    .help("`final` reads shared memory and the locals of threads, and does nothing else")
            });
            return;
        }
        if function.name.is_atomic() {
            self.tables.meanings[id.index()] = Meaning::Atomic;
            self.atomic(function, arguments, expr.span);
            return;
        }
        if !function.name.is_operation() {
            for &argument in self.ast.list(arguments) {
                self.value(argument);
            }
        }
        match self.tables.item(function.name) {
            Some(Item::Function(index)) => {
                self.tables.meanings[id.index()] = Meaning::Function(index);
                self.calls.push(Call { caller: self.body, callee: index, span: expr.span });
                self.check_call(function, index, arguments.len as usize, value_wanted.then_some(expr.span));
            }
            found => self.report_not_callable(function, found),
        }
    }

    fn check_call(&mut self, ident: Ident, index: u32, given: usize, value_wanted: Option<Span>) {
        let function = &self.ast.functions[index as usize];
        let wanted = function.parameters.len();
        if given != wanted {
            self.error("argument-count", ident.span, |checker| {
                let name = checker.text(ident.name);
                let message = format!("`{name}` takes {}, but {given} {} given", arguments(wanted), are(given));
                let parameters: Vec<&str> = function.parameters.iter().map(|p| checker.text(p.name)).collect();
                Diagnostic::error("", message, ident.span)
                    .related(function.ident.span, "declared here")
                    .help(format!("write `{name}({})`", parameters.join(", ")))
            });
        }
        if let Some(span) = value_wanted
            && !function.returns_value
        {
            self.error("no-value", span, |checker| {
                let name = checker.text(ident.name);
                Diagnostic::error("", format!("`{name}` returns no value"), span)
                    .related(function.ident.span, "it has no `return value;`")
                    .help(format!("call it as a statement, or let it `return` something: `{name}(…);`"))
            });
        }
    }

    fn report_not_callable(&mut self, ident: Ident, found: Option<Item>) {
        if found.is_none() && self.ast.items_lost {
            return;
        }
        self.error("unknown-function", ident.span, |checker| {
            let name = checker.text(ident.name);
            if let Some(item) = found {
                let message = format!("`{name}` is {} and cannot be called", item.kind());
                return Diagnostic::error("", message, ident.span)
                    .related(checker.item_ident(item).span, "declared here")
                    .help("only functions and operations can be called");
            }
            if ident.name.is_operation() {
                let message = format!("`{name}` is a statement and has no value");
                return Diagnostic::error("", message, ident.span).help(format!("write it alone: `{name}(…);`"));
            }
            let functions = checker.ast.functions.iter().map(|function| checker.text(function.ident.name));
            let operations = names::VALUE_OPERATIONS.into_iter().chain(names::STATEMENT_OPERATIONS);
            let help = match name {
                "compare_swap" | "compare_and_swap" | "compare_exchange" | "CAS" | "compare_and_set" => {
                    "did you mean `cas(x, old, new)`?".to_owned()
                }
                "exchange" | "xchg" | "test_and_set" | "tas" => "did you mean `swap(x, value)`?".to_owned(),
                "fetch_sub" | "fetch_inc" | "fetch_dec" | "atomic_add" | "xadd" => {
                    "did you mean `fetch_add(x, delta)`? The delta may be negative".to_owned()
                }
                "signal" => "did you mean `notify_one(c)`?".to_owned(),
                "broadcast" => "did you mean `notify_all(c)`?".to_owned(),
                "mfence" | "memory_barrier" | "barrier" => "write `fence;`".to_owned(),
                _ => suggest::did_you_mean(name, functions.chain(operations))
                    .unwrap_or_else(|| format!("declare it: `fn {name}(…) {{ … }}`")),
            };
            Diagnostic::error("", format!("unknown function `{name}`"), ident.span).help(help)
        });
    }

    fn atomic(&mut self, ident: Ident, list: List, span: Span) {
        let (wanted, usage) = match ident.name {
            names::CAS => (3, "cas(x, old, new)"),
            names::SWAP => (2, "swap(x, value)"),
            names::FETCH_ADD => (2, "fetch_add(x, delta)"),
            names::FETCH_OR => (2, "fetch_or(x, bits)"),
            _ => (2, "fetch_and(x, bits)"),
        };
        let given = list.len as usize;
        if given != wanted {
            self.error("argument-count", span, |checker| {
                let name = checker.text(ident.name);
                let message = format!("`{name}` takes {}, but {given} {} given", arguments(wanted), are(given));
                Diagnostic::error("", message, span).help(format!("write `{usage}`"))
            });
        }
        let Some((&cell, operands)) = self.ast.list(list).split_first() else { return };
        self.atomic_cell(cell, ident, usage);
        for &operand in operands {
            self.value(operand);
        }
    }

    fn atomic_cell(&mut self, cell: ExprId, operation: Ident, usage: &str) {
        let expr = *self.ast.expr(cell);
        let is_place = matches!(expr.kind, ExprKind::Name(_) | ExprKind::Index { .. });
        if is_place {
            self.place(cell, "be changed atomically");
        } else {
            self.value(cell);
        }
        let is_local = matches!(self.tables.meanings[cell.index()], Meaning::Local(_));
        if (is_place && !is_local) || matches!(expr.kind, ExprKind::Error) {
            return;
        }
        let usage = usage.to_owned();
        self.error("wrong-kind", expr.span, |checker| {
            let name = checker.text(operation.name);
            let message = format!(
                "`{name}` works on shared memory, and this is {}",
                if is_local { "a local" } else { "a value" }
            );
            Diagnostic::error("", message, expr.span)
                .help(format!("name a shared variable or a cell of an array: `{usage}`"))
        });
    }

    /// `a.r`, `p[0].r`
    fn thread_local(&mut self, id: ExprId, thread: Ident, index: Option<ExprId>, local: Ident) {
        let span = self.ast.expr(id).span;
        if self.body != Body::Final {
            self.error("not-in-final", span, |_| {
                Diagnostic::error("", "a thread's locals can only be read in `final`", span)
                    .help("share the value through shared memory")
            });
            return;
        }
        let Some(Item::Thread(item)) = self.tables.item(thread.name) else {
            self.report_unknown_thread(thread);
            return;
        };
        let Some(instance) = self.instance(thread, item, index, local) else { return };
        if let Some(found) = self.find_thread_local(thread, item, local) {
            let index = self.observe(instance, found);
            self.tables.meanings[id.index()] = Meaning::Observed { thread: instance, index };
        }
    }

    /// The number of a local among those of its thread that `final` reads.
    fn observe(&mut self, thread: ThreadId, local: LocalId) -> u32 {
        let Some(list) = self.tables.observed.get_mut(thread.index()) else { return 0 };
        *self.observed.entry((thread, local)).or_insert_with(|| {
            list.push(local);
            list.len() as u32 - 1
        })
    }

    fn report_unknown_thread(&mut self, ident: Ident) {
        if self.ast.items_lost {
            return;
        }
        self.error("unknown-thread", ident.span, |checker| {
            let name = checker.text(ident.name);
            let threads = checker.ast.threads.iter().map(|thread| checker.text(thread.ident.name));
            let diagnostic = match checker.tables.item(ident.name) {
                Some(item) => Diagnostic::error("", format!("`{name}` is {}, not a thread", item.kind()), ident.span),
                None => Diagnostic::error("", format!("there is no thread `{name}`"), ident.span),
            };
            let known: Vec<String> =
                checker.ast.threads.iter().take(8).map(|t| format!("`{}`", checker.text(t.ident.name))).collect();
            diagnostic.help(
                suggest::did_you_mean(name, threads).unwrap_or_else(|| format!("the threads are {}", known.join(", "))),
            )
        });
    }

    /// Which instance of a thread item is meant.
    fn instance(&mut self, ident: Ident, item: u32, index: Option<ExprId>, local: Ident) -> Option<ThreadId> {
        let instances = self.tables.threads[item as usize];
        match (instances.count, index) {
            (None, None) => Some(instances.first),
            (Some(count), None) => {
                self.error("missing-index", ident.span, |checker| {
                    let name = checker.text(ident.name);
                    let message = format!("there are {count} threads `{name}`; which one is meant?");
                    Diagnostic::error("", message, ident.span)
                        .help(format!("write `{name}[0].{}`", checker.text(local.name)))
                });
                None
            }
            (None, Some(_)) => {
                self.error("not-an-array", ident.span, |checker| {
                    let name = checker.text(ident.name);
                    Diagnostic::error("", format!("`{name}` is a single thread"), ident.span)
                        .help(format!("write `{name}.{}`", checker.text(local.name)))
                });
                None
            }
            (Some(count), Some(index)) => {
                let span = self.ast.expr(index).span;
                let value = self.constant(index, "the index of a thread")?;
                if value >= 0 && value < i64::from(count) {
                    return Some(ThreadId::new(instances.first.index() + value as usize));
                }
                self.error("index-out-of-range", span, |checker| {
                    let name = checker.text(ident.name);
                    Diagnostic::error("", format!("there is no thread `{name}[{value}]`"), span)
                        .help(format!("the threads are {}", cells_are_named(name, count)))
                });
                None
            }
        }
    }

    /// The local of the outermost block, or else the only one of that name.
    fn find_thread_local(&mut self, thread: Ident, item: u32, ident: Ident) -> Option<LocalId> {
        let found = self.thread_locals.get(&(item, ident.name)).cloned().unwrap_or_default();
        let outermost = found.iter().find(|local| self.tables.locals[local.index()].depth == 1);
        match (outermost, found.as_slice()) {
            (Some(&local), _) | (None, &[local]) => Some(local),
            (None, []) => {
                self.report_no_local(thread, item, ident);
                None
            }
            (None, several) => {
                self.error("ambiguous-local", ident.span, |checker| {
                    let (thread, name) = (checker.text(thread.name), checker.text(ident.name));
                    let message = format!("thread `{thread}` declares `{name}` in {} blocks", several.len());
                    let diagnostic = Diagnostic::error("", message, ident.span);
                    let diagnostic = several.iter().take(4).fold(diagnostic, |diagnostic, local| {
                        diagnostic.related(checker.tables.locals[local.index()].ident.span, "one of them")
                    });
                    diagnostic
                        .help("give the one that is meant a name of its own, or declare it in the outermost block")
                });
                None
            }
        }
    }

    fn report_no_local(&mut self, thread: Ident, item: u32, ident: Ident) {
        self.error("unknown-name", ident.span, |checker| {
            let (thread, name) = (checker.text(thread.name), checker.text(ident.name));
            let diagnostic = Diagnostic::error("", format!("thread `{thread}` has no local `{name}`"), ident.span);
            let locals = checker.thread_locals.keys().filter(|key| key.0 == item);
            let mut locals: Vec<&str> = locals.map(|key| checker.text(key.1)).collect();
            locals.sort_unstable();
            let help = match (suggest::did_you_mean(name, locals.iter().copied()), locals.len()) {
                (Some(close), _) => close,
                (None, 0) => format!("declare it in the thread: `let {name} = …;`"),
                (None, 1) => format!("its only local is `{}`", locals[0]),
                (None, _) => {
                    let names: Vec<String> = locals.iter().take(8).map(|local| format!("`{local}`")).collect();
                    format!("its locals are {}", names.join(", "))
                }
            };
            diagnostic.help(help)
        });
    }
}

fn arguments(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        _ => format!("{count} arguments"),
    }
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn cells_are_named(name: &str, length: u32) -> String {
    match length {
        1 => format!("`{name}[0]` only"),
        2 => format!("`{name}[0]` and `{name}[1]`"),
        _ => format!("`{name}[0]` to `{name}[{}]`", length - 1),
    }
}

fn cells_are(name: &str, length: u32) -> String {
    let verb = if length == 1 { "cell is" } else { "cells are" };
    format!("its {verb} {}", cells_are_named(name, length))
}
