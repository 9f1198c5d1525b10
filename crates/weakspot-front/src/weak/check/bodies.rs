//! Statements of threads, functions and `final`.

use weakspot_model::source::{Diagnostic, Span};

use super::{Body, Checker, Item, Local, LocalId, Meaning};
use crate::weak::ast::{Block, ExprId, ExprKind, Ident, Stmt, StmtId, StmtKind};

impl Checker<'_> {
    /// All bodies; `final` last, because it reads the locals of the others.
    pub(super) fn bodies(&mut self) {
        for (index, function) in self.ast.functions.iter().enumerate() {
            self.begin(Body::Function(index as u32));
            let mut parameters = Vec::with_capacity(function.parameters.len());
            for &parameter in &function.parameters {
                parameters.push(self.declare(parameter));
            }
            self.tables.parameters.push(parameters);
            self.block(function.body);
            self.end();
        }
        for (index, thread) in self.ast.threads.iter().enumerate() {
            self.begin(Body::Thread(index as u32, thread.count.is_some()));
            self.block(thread.body);
            self.end();
        }
        if self.ast.finals.is_empty() {
            return;
        }
        self.index_thread_locals();
        for block in &self.ast.finals {
            self.begin(Body::Final);
            self.block(block.body);
            self.end();
        }
    }

    fn begin(&mut self, body: Body) {
        self.body = body;
        self.depth = 0;
        self.scope.clear();
        self.hidden.clear();
        self.labels.clear();
        self.loops.clear();
        self.ended.clear();
    }

    fn end(&mut self) {
        self.leave_scope(0);
    }

    fn index_thread_locals(&mut self) {
        for (index, local) in self.tables.locals.iter().enumerate() {
            if let Body::Thread(thread, _) = local.body {
                self.thread_locals.entry((thread, local.ident.name)).or_default().push(LocalId(index as u32));
            }
        }
    }

    /// Declares a local in the innermost block. It may be named like a thread: `a` and `a.r` cannot be confused.
    fn declare(&mut self, ident: Ident) -> LocalId {
        let item = self.tables.item(ident.name).filter(|item| !matches!(item, Item::Thread(_)));
        if let Some(item) = item {
            self.error("duplicate-name", ident.span, |checker| {
                let message = format!("the name `{}` is taken", checker.text(ident.name));
                Diagnostic::error("", message, ident.span)
                    .related(checker.item_ident(item).span, format!("it is {} here", item.kind()))
                    .help("give the local another name")
            });
        } else if let Some(&earlier) = self.scope.get(&ident.name)
            && self.tables.locals[earlier.index()].depth == self.depth
        {
            let first = self.tables.locals[earlier.index()].ident.span;
            self.error("duplicate-name", ident.span, |checker| {
                let name = checker.text(ident.name);
                let message = format!("`{name}` is declared twice in this block");
                let diagnostic = Diagnostic::error("", message, ident.span).related(first, "first declared here");
                match checker.depth {
                    0 => diagnostic.help("give every parameter its own name"),
                    _ => diagnostic.help(format!("write `{name} = …;` to assign")),
                }
            });
        }
        let local = LocalId(self.tables.locals.len() as u32);
        self.tables.locals.push(Local { ident, assigned: false, body: self.body, depth: self.depth });
        let before = self.scope.insert(ident.name, local);
        self.hidden.push((ident.name, before));
        local
    }

    /// Undoes the declarations made since there were `mark` of them.
    fn leave_scope(&mut self, mark: usize) {
        while self.hidden.len() > mark {
            let Some((name, before)) = self.hidden.pop() else { return };
            let gone = match before {
                Some(before) => self.scope.insert(name, before),
                None => self.scope.remove(&name),
            };
            if let Some(gone) = gone {
                self.ended.insert(name, self.tables.locals[gone.index()].ident.span);
            }
        }
    }

    /// Checks a block. Can its end be reached?
    fn block(&mut self, block: Block) -> bool {
        let mark = self.hidden.len();
        self.depth += 1;
        let mut goes_on = true;
        let mut warned = false;
        for &id in self.ast.block(block) {
            if !goes_on && !warned {
                warned = true;
                let span = self.ast.stmt(id).span;
                self.problems.warning("unreachable", span, || {
                    Diagnostic::warning("unreachable", "this statement is never reached", span)
                        .help("remove it, or look at the statement before it")
                });
            }
            goes_on &= self.statement(id);
        }
        self.depth -= 1;
        self.leave_scope(mark);
        goes_on
    }

    /// Checks a statement. Can what follows it be reached?
    fn statement(&mut self, id: StmtId) -> bool {
        let stmt = *self.ast.stmt(id);
        if let Some(label) = stmt.label {
            self.label(label);
        }
        if self.body == Body::Final && !allowed_in_final(stmt.kind) {
            self.report_not_in_final(&stmt);
            return true;
        }
        match stmt.kind {
            StmtKind::Error | StmtKind::Skip | StmtKind::Fence(_) => {}
            StmtKind::Let { local, value } => {
                self.value(value);
                let local = self.declare(local);
                self.tables.declared[id.index()] = Some(local);
            }
            StmtKind::Assign { target, value } => {
                self.assignment(target);
                self.value(value);
            }
            StmtKind::If { arms, otherwise } => {
                let mut goes_on = false;
                for arm in &self.ast.arms[arms.range()] {
                    self.value(arm.condition);
                    goes_on |= self.block(arm.block);
                }
                return match otherwise {
                    Some(block) => self.block(block) || goes_on,
                    None => true,
                };
            }
            StmtKind::While { condition, body } => {
                self.value(condition);
                self.loop_body(body);
            }
            StmtKind::Loop { body } => return self.loop_body(body),
            StmtKind::Break | StmtKind::Continue => return self.jump(&stmt),
            StmtKind::Return { value } => {
                self.return_statement(value);
                return false;
            }
            StmtKind::Assert { condition, .. } | StmtKind::Assume { condition } | StmtKind::Await { condition } => {
                self.value(condition);
            }
            StmtKind::Lock(mutex) | StmtKind::Unlock(mutex) => self.expect_item(mutex, "mutex"),
            StmtKind::Wait { condvar, mutex } => {
                self.expect_item(condvar, "condvar");
                self.expect_item(mutex, "mutex");
            }
            StmtKind::Notify { condvar, .. } => self.expect_item(condvar, "condvar"),
            StmtKind::Critical { body, .. } => return self.block(body),
            StmtKind::Evaluate(value) => self.evaluate_for_effect(value),
        }
        true
    }

    fn label(&mut self, label: Ident) {
        if let Some(first) = self.labels.insert(label.name, label.span) {
            self.error("duplicate-label", label.span, |checker| {
                let message = format!("two statements are labelled `{}`", checker.text(label.name));
                Diagnostic::error("", message, label.span)
                    .related(first, "the first one")
                    .help("messages use the label, so give each statement its own")
            });
        }
    }

    fn report_not_in_final(&mut self, stmt: &Stmt) {
        self.error("not-in-final", stmt.span, |_| {
            Diagnostic::error("", "this statement cannot stand in `final`", stmt.span)
                .help("`final` looks at the end of an execution: it may hold `let`, `assert`, `if` and `skip`")
        });
    }

    /// A loop body. Is the loop ever left by `break`?
    fn loop_body(&mut self, body: Block) -> bool {
        self.loops.push(false);
        self.block(body);
        self.loops.pop().unwrap_or(true)
    }

    fn jump(&mut self, stmt: &Stmt) -> bool {
        let leaves = matches!(stmt.kind, StmtKind::Break);
        if let Some(left) = self.loops.last_mut() {
            *left |= leaves;
            return false;
        }
        let word = if leaves { "break" } else { "continue" };
        self.error("outside-loop", stmt.span, |_| {
            Diagnostic::error("", format!("`{word}` outside of a loop"), stmt.span)
                .help("it belongs into `while` or `loop`; `return;` ends a thread or function")
        });
        true
    }

    fn return_statement(&mut self, value: Option<ExprId>) {
        let Some(value) = value else { return };
        self.value(value);
        if matches!(self.body, Body::Thread(..)) {
            let span = self.ast.expr(value).span;
            self.error("return-value", span, |_| {
                Diagnostic::error("", "a thread has nobody to return a value to", span)
                    .help("write `return;`, and keep the value in a local that `final` can read")
            });
        }
    }

    /// A mutex or condition variable.
    fn expect_item(&mut self, ident: Ident, word: &str) {
        let fits = match self.tables.item(ident.name) {
            Some(Item::Mutex(_)) => word == "mutex",
            Some(Item::Condvar(_)) => word == "condvar",
            _ => false,
        };
        if let Some(Item::Shared(index)) = self.tables.item(ident.name) {
            self.tables.shared[index as usize].used = true;
        }
        if fits || (self.ast.items_lost && self.tables.item(ident.name).is_none()) {
            return;
        }
        let expected = if word == "mutex" { "a mutex" } else { "a condition variable" };
        self.error("wrong-kind", ident.span, |checker| {
            let name = checker.text(ident.name);
            let Some(item) = checker.tables.item(ident.name) else {
                let declared = if word == "mutex" { &checker.ast.mutexes } else { &checker.ast.condvars };
                let known = declared.iter().map(|ident| checker.text(ident.name));
                let close = crate::suggest::did_you_mean(name, known);
                let what = if word == "mutex" { "mutex" } else { "condition variable" };
                return Diagnostic::error("", format!("unknown {what} `{name}`"), ident.span)
                    .help(close.unwrap_or_else(|| format!("declare it outside the threads: `{word} {name};`")));
            };
            Diagnostic::error("", format!("expected {expected}, but `{name}` is {}", item.kind()), ident.span)
                .related(checker.item_ident(item).span, "declared here")
                .help(format!("declare one with `{word} name;`"))
        });
    }

    /// The left side of `=`.
    fn assignment(&mut self, target: ExprId) {
        let expr = *self.ast.expr(target);
        match expr.kind {
            ExprKind::Error => {}
            ExprKind::Name(_) | ExprKind::Index { .. } => {
                self.place(target, "be assigned to");
                match self.tables.meanings[target.index()] {
                    Meaning::Local(local) => self.tables.locals[local.index()].assigned = true,
                    Meaning::Shared(_) if self.body == Body::Final => self.error("not-in-final", expr.span, |_| {
                        Diagnostic::error("", "`final` cannot write shared memory", expr.span)
                            .help("it runs when every thread has ended; use a `let`")
                    }),
                    _ => {}
                }
            }
            _ => self.error("bad-assignment", expr.span, |_| {
                let diagnostic = Diagnostic::error("", "this cannot be assigned to", expr.span);
                match expr.kind {
                    ExprKind::Me => diagnostic.help("`me` is the index of the thread and never changes; use a `let`"),
                    ExprKind::ThreadLocal { .. } => diagnostic.help("a thread's locals are its own"),
                    ExprKind::Chain { .. } => diagnostic.help("`==` compares, `=` assigns"),
                    _ => diagnostic.help("assign to a local, a shared variable or a cell of a shared array"),
                }
            }),
        }
    }

    /// An expression as a statement.
    fn evaluate_for_effect(&mut self, id: ExprId) {
        let expr = *self.ast.expr(id);
        match expr.kind {
            ExprKind::Error => {}
            ExprKind::Call { .. } => self.call(id, false),
            _ => {
                self.value(id);
                self.report_no_effect(expr.kind, expr.span);
            }
        }
    }

    fn report_no_effect(&mut self, kind: ExprKind, span: Span) {
        self.error("no-effect", span, |_| {
            let diagnostic = Diagnostic::error("", "this expression does nothing as a statement", span);
            match kind {
                ExprKind::Chain { .. } => diagnostic.help("`=` assigns, `==` compares; `assert(…);` checks"),
                ExprKind::Name(_) | ExprKind::Index { .. } => {
                    diagnostic.help("to load it, give the value a name: `let r = …;`")
                }
                ExprKind::Choose { .. } => diagnostic.help("give the value a name: `let v = choose(…);`"),
                _ => diagnostic.help("only calls and atomic operations stand alone"),
            }
        });
    }
}

fn allowed_in_final(kind: StmtKind) -> bool {
    matches!(
        kind,
        StmtKind::Error
            | StmtKind::Let { .. }
            | StmtKind::Assign { .. }
            | StmtKind::Assert { .. }
            | StmtKind::If { .. }
            | StmtKind::Skip
    )
}
