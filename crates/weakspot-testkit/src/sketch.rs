//! Programs as a few statements: small enough to shrink, and printable as `.weak` text, so that a failure found by
//! chance becomes a file of the corpus.
//!
//! Loads stand in statements of their own (`r0 = x;`), so the events of a sketch are the same however its text is
//! evaluated. Every register of a thread is declared at its top.

use std::fmt::Write as _;

use weakspot_model::ir::{FenceKind, Program, RmwOp};
use weakspot_model::source::Span;

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sketch {
    /// Shared cells.
    pub cells: Vec<SketchCell>,
    /// Number of mutexes.
    pub mutexes: usize,
    /// Number of condition variables.
    pub condvars: usize,
    /// Registers of each thread.
    pub registers: usize,
    /// The threads.
    pub threads: Vec<Vec<Stmt>>,
    /// `final` asserts that these do not all hold together; nothing is asserted if there are none.
    pub forbidden: Vec<(Observed, i64)>,
}

/// A shared cell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SketchCell {
    /// Initial value.
    pub init: i64,
    /// Declared range.
    pub range: Option<(i64, i64)>,
}

/// Something `final` can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Observed {
    /// Register of a thread.
    Register(usize, usize),
    /// A shared cell.
    Cell(usize),
}

/// A value: constants and registers only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant.
    Const(i64),
    /// A register.
    Reg(usize),
    /// `(r + 1) % 3`: arithmetic that keeps the state space finite.
    Next(usize),
    /// `r == k`.
    Eq(usize, i64),
    /// `r != k`.
    Ne(usize, i64),
}

/// A statement. Cells, registers, mutexes and condition variables are indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stmt {
    /// `r = x;`
    Load(usize, usize),
    /// `x = e;`
    Store(usize, Expr),
    /// `r = cas(x, …);` and the other atomics.
    Rmw(Option<usize>, usize, RmwOp<Expr>),
    /// `fence;` and its kinds.
    Fence(FenceKind),
    /// `r = e;`
    Set(usize, Expr),
    /// `r = choose(lo..=hi);`
    Choose(usize, i64, i64),
    /// `assume(e);`
    Assume(Expr),
    /// `assert(e);`
    Assert(Expr),
    /// `lock(m);`
    Lock(usize),
    /// `unlock(m);`
    Unlock(usize),
    /// `wait(c, m);`
    Wait(usize, usize),
    /// `notify_one(c);`, or `notify_all(c);` if true.
    Notify(usize, bool),
    /// `critical { … }`
    Critical(Vec<Stmt>),
    /// `if e { … } else { … }`
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// `while e { … }`
    While(Expr, Vec<Stmt>),
    /// `loop { … }`
    Loop(Vec<Stmt>),
    /// `break;`, inside a loop and not across the end of a critical block.
    Break,
}

impl Stmt {
    /// The statements inside, block by block.
    pub fn blocks(&self) -> Vec<&Vec<Self>> {
        match self {
            Self::Critical(body) | Self::While(_, body) | Self::Loop(body) => vec![body],
            Self::If(_, then, otherwise) => vec![then, otherwise],
            _ => Vec::new(),
        }
    }

    /// The statements inside, block by block.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Self>> {
        match self {
            Self::Critical(body) | Self::While(_, body) | Self::Loop(body) => vec![body],
            Self::If(_, then, otherwise) => vec![then, otherwise],
            _ => Vec::new(),
        }
    }
}

impl Sketch {
    /// How many statements it has, those inside others included.
    pub fn len(&self) -> usize {
        fn count(block: &[Stmt]) -> usize {
            block.iter().map(|stmt| 1 + stmt.blocks().into_iter().map(|inner| count(inner)).sum::<usize>()).sum()
        }
        self.threads.iter().map(|thread| count(thread)).sum()
    }

    /// No statements at all?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As `.weak` text.
    pub fn text(&self) -> String {
        Printer::print(self).text
    }

    /// As IR, with the text of [`Sketch::text`] as its source.
    pub fn program(&self) -> Program {
        let printed = Printer::print(self);
        crate::lower::lower(self, printed.text, &printed.spans)
    }

    /// The same program with its threads in another order: thread `i` becomes what was thread `order[i]`.
    #[must_use]
    pub fn with_threads_in_order(&self, order: &[usize]) -> Self {
        let position = |thread| order.iter().position(|&old| old == thread).expect("invariant: a permutation");
        let renamed = |&(observed, value): &(Observed, i64)| match observed {
            Observed::Register(thread, reg) => (Observed::Register(position(thread), reg), value),
            Observed::Cell(_) => (observed, value),
        };
        Self {
            threads: order.iter().map(|&old| self.threads[old].clone()).collect(),
            forbidden: self.forbidden.iter().map(renamed).collect(),
            ..self.clone()
        }
    }
}

/// The name of a shared cell.
pub(crate) fn cell_name(cell: usize) -> String {
    match cell {
        0 => "x".to_owned(),
        1 => "y".to_owned(),
        2 => "z".to_owned(),
        more => format!("v{more}"),
    }
}

/// Writes the text and remembers the place of each statement, in the order in which they begin, and of the `final`
/// assertion last.
struct Printer {
    text: String,
    spans: Vec<Span>,
    depth: usize,
}

impl Printer {
    fn print(sketch: &Sketch) -> Self {
        let mut printer = Self { text: String::new(), spans: Vec::new(), depth: 0 };
        printer.declarations(sketch);
        for (index, body) in sketch.threads.iter().enumerate() {
            let _ = write!(printer.text, "thread t{index} ");
            printer.thread(sketch.registers, body);
        }
        printer.final_block(&sketch.forbidden);
        printer
    }

    fn declarations(&mut self, sketch: &Sketch) {
        for (index, cell) in sketch.cells.iter().enumerate() {
            let _ = write!(self.text, "shared {}", cell_name(index));
            if let Some((lo, hi)) = cell.range {
                let _ = write!(self.text, ": {lo}..={hi}");
            }
            let _ = writeln!(self.text, " = {};", cell.init);
        }
        for index in 0..sketch.mutexes {
            let _ = writeln!(self.text, "mutex m{index};");
        }
        for index in 0..sketch.condvars {
            let _ = writeln!(self.text, "condvar c{index};");
        }
    }

    fn thread(&mut self, registers: usize, body: &[Stmt]) {
        self.text.push_str("{\n");
        for index in 0..registers {
            let _ = writeln!(self.text, "    let r{index} = 0;");
        }
        self.depth = 1;
        self.statements(body);
        self.text.push_str("}\n");
    }

    fn block(&mut self, body: &[Stmt]) {
        self.text.push_str("{\n");
        self.depth += 1;
        self.statements(body);
        self.depth -= 1;
        self.indent();
        self.text.push('}');
    }

    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("    ", self.depth));
    }

    fn statements(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.indent();
            let start = self.text.len();
            let span = self.spans.len();
            self.spans.push(Span::default());
            self.statement(stmt);
            self.spans[span] = Span::new(start, self.text.len());
            self.text.push('\n');
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Critical(body) => {
                self.text.push_str("critical ");
                self.block(body);
            }
            Stmt::If(cond, then, otherwise) => {
                let _ = write!(self.text, "if {} ", expr(*cond));
                self.block(then);
                if !otherwise.is_empty() {
                    self.text.push_str(" else ");
                    self.block(otherwise);
                }
            }
            Stmt::While(cond, body) => {
                let _ = write!(self.text, "while {} ", expr(*cond));
                self.block(body);
            }
            Stmt::Loop(body) => {
                self.text.push_str("loop ");
                self.block(body);
            }
            simple => self.text.push_str(&simple_statement(simple)),
        }
    }

    fn final_block(&mut self, forbidden: &[(Observed, i64)]) {
        if forbidden.is_empty() {
            return;
        }
        let atoms = forbidden.iter().map(|(observed, value)| match observed {
            Observed::Register(thread, reg) => format!("t{thread}.r{reg} == {value}"),
            Observed::Cell(cell) => format!("{} == {value}", cell_name(*cell)),
        });
        self.text.push_str("final {\n    ");
        let start = self.text.len();
        let _ = write!(self.text, "assert(!({}));", atoms.collect::<Vec<_>>().join(" && "));
        self.spans.push(Span::new(start, self.text.len()));
        self.text.push_str("\n}\n");
    }
}

fn expr(expr: Expr) -> String {
    match expr {
        Expr::Const(value) => value.to_string(),
        Expr::Reg(reg) => format!("r{reg}"),
        Expr::Next(reg) => format!("(r{reg} + 1) % 3"),
        Expr::Eq(reg, value) => format!("r{reg} == {value}"),
        Expr::Ne(reg, value) => format!("r{reg} != {value}"),
    }
}

fn simple_statement(stmt: &Stmt) -> String {
    match stmt {
        Stmt::Load(reg, cell) => format!("r{reg} = {};", cell_name(*cell)),
        Stmt::Store(cell, value) => format!("{} = {};", cell_name(*cell), expr(*value)),
        Stmt::Rmw(dst, cell, op) => rmw(*dst, &cell_name(*cell), *op),
        Stmt::Fence(FenceKind::Full) => "fence;".to_owned(),
        Stmt::Fence(kind) => format!("fence({});", kind.name()),
        Stmt::Set(reg, value) => format!("r{reg} = {};", expr(*value)),
        Stmt::Choose(reg, lo, hi) => format!("r{reg} = choose({lo}..={hi});"),
        Stmt::Assume(cond) => format!("assume({});", expr(*cond)),
        Stmt::Assert(cond) => format!("assert({});", expr(*cond)),
        Stmt::Lock(mutex) => format!("lock(m{mutex});"),
        Stmt::Unlock(mutex) => format!("unlock(m{mutex});"),
        Stmt::Wait(condvar, mutex) => format!("wait(c{condvar}, m{mutex});"),
        Stmt::Notify(condvar, false) => format!("notify_one(c{condvar});"),
        Stmt::Notify(condvar, true) => format!("notify_all(c{condvar});"),
        Stmt::Break => "break;".to_owned(),
        Stmt::Critical(_) | Stmt::If(..) | Stmt::While(..) | Stmt::Loop(_) => {
            unreachable!("invariant: statements with blocks are printed by their caller")
        }
    }
}

fn rmw(dst: Option<usize>, cell: &str, op: RmwOp<Expr>) -> String {
    let call = match op {
        RmwOp::Cas { old, new } => format!("cas({cell}, {}, {})", expr(old), expr(new)),
        RmwOp::Swap(value) => format!("swap({cell}, {})", expr(value)),
        RmwOp::Add(value) => format!("fetch_add({cell}, {})", expr(value)),
        RmwOp::Or(value) => format!("fetch_or({cell}, {})", expr(value)),
        RmwOp::And(value) => format!("fetch_and({cell}, {})", expr(value)),
        RmwOp::CompareExchange { .. } => unreachable!("invariant: not an operation of the language"),
    };
    match dst {
        Some(reg) => format!("r{reg} = {call};"),
        None => format!("{call};"),
    }
}
