//! Names to meanings, and every rule that does not need an execution.
//!
//! The result is a set of tables beside the [`Ast`]: what each name stands for, how shared memory is laid out, which
//! locals the `final` block reads. Lowering only walks the tree with these tables and finds no further mistakes,
//! except that a program may turn out to be too large.
//!
//! | file | checks |
//! |---|---|
//! | `items.rs` | declarations: unique names, lengths, ranges, initial values, numbers of threads |
//! | `constants.rs` | evaluates what has to be constant |
//! | `bodies.rs` | statements of threads, functions and `final` |
//! | `expressions.rs` | expressions |
//! | `calls.rs` | recursion, and `me` in functions |

mod bodies;
mod calls;
mod constants;
mod expressions;
mod items;

use rustc_hash::FxHashMap;
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::ir::Location;
use weakspot_model::source::{Diagnostic, Span};

use super::ast::{Ast, Ident};
use super::names::{Name, Names};
use super::problems::Problems;

/// A local variable or parameter of a thread, function or `final` block: index into [`Checked::locals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LocalId(pub(super) u32);

impl LocalId {
    /// Index for tables with one entry a local.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A local variable or parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Local {
    /// Where it is declared.
    pub(super) ident: Ident,
    /// It is assigned after its declaration.
    pub(super) assigned: bool,
    /// Whose it is.
    body: Body,
    /// How many blocks it is declared in; 1 is the body itself.
    depth: u32,
}

/// What a name at the top of the file stands for, with the index into its table of the [`Ast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Constant(u32),
    Shared(u32),
    Mutex(u32),
    Condvar(u32),
    Thread(u32),
    Function(u32),
}

impl Item {
    /// In words.
    fn kind(self) -> &'static str {
        match self {
            Self::Constant(_) => "a constant",
            Self::Shared(_) => "a shared variable",
            Self::Mutex(_) => "a mutex",
            Self::Condvar(_) => "a condition variable",
            Self::Thread(_) => "a thread",
            Self::Function(_) => "a function",
        }
    }
}

/// What an expression with a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Meaning {
    /// Has no name, or a wrong one.
    #[default]
    Nothing,
    /// A constant.
    Constant(i64),
    /// A local.
    Local(LocalId),
    /// A shared variable or a cell of an array; index into [`Checked::shared`].
    Shared(u32),
    /// An atomic operation on the cell that is its first argument.
    Atomic,
    /// A call; index into the functions of the [`Ast`].
    Function(u32),
    /// In `final`: a thread's local, as an index into that thread's entry of [`Checked::observed`].
    Observed { thread: ThreadId, index: u32 },
}

/// Where a shared variable lives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared {
    /// Its first cell.
    pub(super) base: Loc,
    /// Number of cells of an array; `None` for a scalar.
    pub(super) length: Option<u32>,
    /// Declared range.
    pub(super) range: Option<(i64, i64)>,
    used: bool,
}

/// The instances of a thread item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instances {
    /// The first of them.
    pub(super) first: ThreadId,
    /// How many; `None` for a single thread without `me`.
    pub(super) count: Option<u32>,
}

/// The tables.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// For each name: the item.
    items: Vec<Option<Item>>,
    /// Memory.
    pub(super) locations: Vec<Location>,
    /// For each shared declaration.
    pub(super) shared: Vec<Shared>,
    /// For each thread item.
    pub(super) threads: Vec<Instances>,
    /// For each expression.
    pub(super) meanings: Vec<Meaning>,
    /// For each statement that is a `let`: its local.
    pub(super) declared: Vec<Option<LocalId>>,
    /// All locals.
    pub(super) locals: Vec<Local>,
    /// For each function: its parameters.
    pub(super) parameters: Vec<Vec<LocalId>>,
    /// For each thread instance: the locals that `final` reads.
    pub(super) observed: Vec<Vec<LocalId>>,
}

impl Checked {
    /// The item of this name.
    pub(super) fn item(&self, name: Name) -> Option<Item> {
        self.items[name.index()]
    }
}

/// Whose statements are being checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Body {
    /// Index into the threads of the [`Ast`], and whether it is a template with `me`.
    Thread(u32, bool),
    /// Index into the functions.
    Function(u32),
    /// The `final` block.
    Final,
}

/// A call of a function.
#[derive(Debug, Clone, Copy)]
struct Call {
    caller: Body,
    callee: u32,
    span: Span,
}

struct Checker<'a> {
    ast: &'a Ast,
    names: &'a Names<'a>,
    problems: &'a mut Problems,
    tables: Checked,
    /// Values of constants; `None` if wrong or not yet known.
    constants: Vec<Option<i64>>,
    calls: Vec<Call>,
    /// For `a.r`: locals of threads by thread and name.
    thread_locals: FxHashMap<(u32, Name), Vec<LocalId>>,
    /// For `a.r`: those already read, by thread instance and local.
    observed: FxHashMap<(ThreadId, LocalId), u32>,
    // of the body being checked:
    body: Body,
    scope: FxHashMap<Name, LocalId>,
    /// What each declaration hid, to be undone at the end of its block.
    hidden: Vec<(Name, Option<LocalId>)>,
    depth: u32,
    labels: FxHashMap<Name, Span>,
    /// For each enclosing loop: does a `break` leave it?
    loops: Vec<bool>,
    /// Locals of the body whose block has ended.
    ended: FxHashMap<Name, Span>,
}

/// Checks a file.
pub(super) fn check(ast: &Ast, names: &Names<'_>, problems: &mut Problems) -> Checked {
    let tables = Checked {
        items: vec![None; names.len()],
        meanings: vec![Meaning::Nothing; ast.expressions.len()],
        declared: vec![None; ast.statements.len()],
        ..Checked::default()
    };
    let mut checker = Checker {
        ast,
        names,
        problems,
        tables,
        constants: Vec::new(),
        calls: Vec::new(),
        thread_locals: FxHashMap::default(),
        observed: FxHashMap::default(),
        body: Body::Final,
        scope: FxHashMap::default(),
        hidden: Vec::new(),
        depth: 0,
        labels: FxHashMap::default(),
        loops: Vec::new(),
        ended: FxHashMap::default(),
    };
    checker.items();
    checker.bodies();
    checker.calls();
    checker.unused();
    checker.tables
}

impl Checker<'_> {
    fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// Reports an error; the message is worded only if it will be kept.
    fn error(&mut self, code: &'static str, span: Span, describe: impl FnOnce(&Self) -> Diagnostic) {
        let mut problems = std::mem::take(self.problems);
        problems.error(span, || {
            let diagnostic = describe(self);
            let code = if diagnostic.code.is_empty() { code } else { diagnostic.code };
            Diagnostic { code, ..diagnostic }
        });
        *self.problems = problems;
    }

    /// Where an item is declared.
    fn item_ident(&self, item: Item) -> Ident {
        let ast = self.ast;
        match item {
            Item::Constant(index) => ast.constants[index as usize].0,
            Item::Shared(index) => ast.shared[index as usize].ident,
            Item::Mutex(index) => ast.mutexes[index as usize],
            Item::Condvar(index) => ast.condvars[index as usize],
            Item::Thread(index) => ast.threads[index as usize].ident,
            Item::Function(index) => ast.functions[index as usize].ident,
        }
    }

    /// The names of all items, in the order of their numbers.
    fn item_names(&self) -> impl Iterator<Item = &str> {
        let items = self.tables.items.iter().flatten();
        items.map(|&item| self.text(self.item_ident(item).name))
    }

    /// Warns of shared memory that nobody touches.
    fn unused(&mut self) {
        for (shared, declaration) in self.tables.shared.iter().zip(&self.ast.shared) {
            if !shared.used {
                let span = declaration.ident.span;
                let name = self.names.text(declaration.ident.name);
                self.problems.warning("unused-shared", span, || {
                    Diagnostic::warning("unused-shared", format!("shared variable `{name}` is never used"), span)
                        .help("remove it")
                });
            }
        }
    }
}
