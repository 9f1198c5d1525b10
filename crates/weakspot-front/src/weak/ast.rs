//! What the parser builds: flat tables, and numbers into them instead of boxes.
//!
//! A chain such as `a + b - c` is one node with a list, an `else if` chain one statement with a list of arms: no walk
//! over the tree recurses further than the nesting a reader sees, which [`super::parser`] limits, and dropping the
//! tree recurses not at all.

use weakspot_model::ir::{BinaryOp, FenceKind, UnaryOp};
use weakspot_model::source::Span;

use super::names::Name;

/// An expression: index into [`Ast::expressions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ExprId(pub(super) u32);

impl ExprId {
    /// Index for tables with one entry an expression.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A statement: index into [`Ast::statements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StmtId(pub(super) u32);

impl StmtId {
    /// Index for tables with one entry a statement.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A run of entries in one of the list tables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct List {
    /// The first.
    pub(super) start: u32,
    /// How many.
    pub(super) len: u32,
}

impl List {
    /// As a range of indices.
    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// A name where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ident {
    /// Which.
    pub(super) name: Name,
    /// Where.
    pub(super) span: Span,
}

/// An expression with the text it covers, without parentheses around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expr {
    /// What.
    pub(super) kind: ExprKind,
    /// Where.
    pub(super) span: Span,
}

/// Operators of chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChainOp {
    /// Arithmetic, bits, comparison.
    Binary(BinaryOp),
    /// `&&`
    And,
    /// `||`
    Or,
}

/// One `op operand` of a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// The operator; all links of a chain have the same precedence.
    pub(super) op: ChainOp,
    /// Its right operand.
    pub(super) operand: ExprId,
    /// Where the right operand ends, closing parentheses included.
    pub(super) end: u32,
}

/// Kinds of expressions.
#[derive(Debug, Clone, Copy)]
pub(super) enum ExprKind {
    /// Could not be parsed; has been reported.
    Error,
    /// A literal.
    Integer(i64),
    /// `me`
    Me,
    /// `"…"`, which is never right where an expression is expected.
    Text,
    /// A name.
    Name(Name),
    /// `name[index]`
    Index { array: Ident, index: ExprId },
    /// `thread.local` or `thread[index].local`
    ThreadLocal { thread: Ident, index: Option<ExprId>, local: Ident },
    /// `op operand`
    Unary { op: UnaryOp, operand: ExprId },
    /// `first op operand op operand …`; links are in [`Ast::links`].
    Chain { first: ExprId, links: List },
    /// `name(arguments)`; arguments are in [`Ast::expression_lists`].
    Call { function: Ident, arguments: List },
    /// `choose(lo..=hi)`
    Choose { lo: ExprId, hi: ExprId },
}

/// A statement with the text it covers, without its `;`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stmt {
    /// What.
    pub(super) kind: StmtKind,
    /// Where; without the label.
    pub(super) span: Span,
    /// Where it ends, its `;` included.
    pub(super) end: u32,
    /// `label: statement`
    pub(super) label: Option<Ident>,
}

/// Statements between braces, in [`Ast::statement_lists`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Block {
    /// The statements.
    pub(super) statements: List,
    /// The closing brace.
    pub(super) end: Span,
}

/// `if condition { … }` of an `if` chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arm {
    /// The condition.
    pub(super) condition: ExprId,
    /// What is done.
    pub(super) block: Block,
}

/// Kinds of statements.
#[derive(Debug, Clone, Copy)]
pub(super) enum StmtKind {
    /// Could not be parsed; has been reported.
    Error,
    /// `let local = value;`
    Let { local: Ident, value: ExprId },
    /// `target = value;`
    Assign { target: ExprId, value: ExprId },
    /// `if … { … } else if … { … } else { … }`; arms are in [`Ast::arms`].
    If { arms: List, otherwise: Option<Block> },
    /// `while condition { … }`
    While { condition: ExprId, body: Block },
    /// `loop { … }`
    Loop { body: Block },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return;` or `return value;`
    Return { value: Option<ExprId> },
    /// `fence;` and the like
    Fence(FenceKind),
    /// `assert(condition);` or with a message, whose quotes are included
    Assert { condition: ExprId, message: Option<Span> },
    /// `assume(condition);`
    Assume { condition: ExprId },
    /// `await(condition);`
    Await { condition: ExprId },
    /// `lock(mutex);`
    Lock(Ident),
    /// `unlock(mutex);`
    Unlock(Ident),
    /// `wait(condvar, mutex);`
    Wait { condvar: Ident, mutex: Ident },
    /// `notify_one(condvar);` and `notify_all(condvar);`
    Notify { condvar: Ident, all: bool },
    /// `critical { … }`; the span is that of the word
    Critical { word: Span, body: Block },
    /// `skip;`
    Skip,
    /// An expression for its effect.
    Evaluate(ExprId),
}

/// `name`, `name[length]`, with range and initial value.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedDeclaration {
    /// Its name.
    pub(super) ident: Ident,
    /// For arrays.
    pub(super) length: Option<ExprId>,
    /// Declared range.
    pub(super) range: Option<(ExprId, ExprId)>,
    /// Initial values.
    pub(super) initial: Initial,
}

/// What stands after `=` in a declaration of shared memory.
#[derive(Debug, Clone, Copy)]
pub(super) enum Initial {
    /// Nothing.
    Zero,
    /// One value.
    Value(ExprId),
    /// `[…]` in [`Ast::expression_lists`], and where.
    List(List, Span),
}

/// `thread name[count] { … }`
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadItem {
    /// Its name.
    pub(super) ident: Ident,
    /// How many; `None` for a single thread.
    pub(super) count: Option<ExprId>,
    /// What it does.
    pub(super) body: Block,
}

/// `fn name(parameters) { … }`
#[derive(Debug, Clone)]
pub(super) struct Function {
    /// Its name.
    pub(super) ident: Ident,
    /// Its parameters.
    pub(super) parameters: Vec<Ident>,
    /// What it does.
    pub(super) body: Block,
    /// Some `return` in it has a value.
    pub(super) returns_value: bool,
    /// How many `return` statements it has.
    pub(super) returns: u32,
}

/// `final { … }`
#[derive(Debug, Clone, Copy)]
pub(super) struct FinalItem {
    /// The word.
    pub(super) word: Span,
    /// The checks.
    pub(super) body: Block,
}

/// A parsed file.
#[derive(Debug, Default)]
pub(super) struct Ast {
    /// All expressions; operands come before what uses them.
    pub(super) expressions: Vec<Expr>,
    /// All statements.
    pub(super) statements: Vec<Stmt>,
    /// Links of chains.
    pub(super) links: Vec<Link>,
    /// Arguments and initial values.
    pub(super) expression_lists: Vec<ExprId>,
    /// Blocks.
    pub(super) statement_lists: Vec<StmtId>,
    /// Arms of `if`.
    pub(super) arms: Vec<Arm>,
    /// `const name = value;`
    pub(super) constants: Vec<(Ident, ExprId)>,
    /// `shared …;`
    pub(super) shared: Vec<SharedDeclaration>,
    /// `mutex …;`
    pub(super) mutexes: Vec<Ident>,
    /// `condvar …;`
    pub(super) condvars: Vec<Ident>,
    /// `thread … { … }`
    pub(super) threads: Vec<ThreadItem>,
    /// `fn … { … }`
    pub(super) functions: Vec<Function>,
    /// `final { … }`; the checker refuses a second one.
    pub(super) finals: Vec<FinalItem>,
    /// Some item could not be understood, so a name may be unknown for that reason.
    pub(super) items_lost: bool,
}

impl Ast {
    /// An expression.
    pub(super) fn expr(&self, id: ExprId) -> &Expr {
        &self.expressions[id.index()]
    }

    /// A statement.
    pub(super) fn stmt(&self, id: StmtId) -> &Stmt {
        &self.statements[id.index()]
    }

    /// The statements of a block.
    pub(super) fn block(&self, block: Block) -> &[StmtId] {
        &self.statement_lists[block.statements.range()]
    }

    /// Arguments or initial values.
    pub(super) fn list(&self, list: List) -> &[ExprId] {
        &self.expression_lists[list.range()]
    }
}
