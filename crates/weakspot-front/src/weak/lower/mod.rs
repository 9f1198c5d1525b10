//! Checked tree to [`Program`]: three-address code, functions inlined, templates written out.
//!
//! The state space of an engine grows with every register and every instruction it has to tell apart, so the code is
//! kept tight: constants (with `me`, and locals and parameters that never change) are folded, an operation writes the
//! local it is assigned to directly, temporaries are taken from a stack and used again, code that cannot be reached
//! is never emitted, and `tidy.rs` removes jumps to jumps.
//!
//! Nothing is optimised away that is an event: every load the source shows is there, used or not.
//!
//! | file | does |
//! |---|---|
//! | `emit.rs` | code with labels, what can be reached, inside or outside `critical` |
//! | `tidy.rs` | labels to instruction numbers, jump threading |
//! | `registers.rs` | locals and temporaries |
//! | `statements.rs`, `expressions.rs`, `calls.rs` | the walk |
//! | `sites.rs` | the source map |

mod calls;
mod emit;
mod expressions;
mod registers;
mod sites;
mod statements;
mod tidy;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_model::ids::Reg;
use weakspot_model::ir::{Instr, Operand, Program, Thread};
use weakspot_model::source::{Diagnostic, SourceFile, Span};

use self::emit::{Emitter, Label};
use self::registers::Registers;
use self::sites::Sites;
use super::ast::{Ast, Block, Ident, StmtId};
use super::check::{Checked, LocalId};
use super::names::{self, Name, Names};
use super::problems::Problems;

/// The most instructions of a program.
const MOST_INSTRUCTIONS: usize = 1_000_000;
/// The most registers of a thread.
const MOST_REGISTERS: usize = 65_535;
/// The most statements and expressions visited: calls of calls may multiply without an instruction coming of it.
const MOST_VISITS: usize = 16 * MOST_INSTRUCTIONS;
/// Statements, expressions and calls inside one another.
const DEEPEST_WALK: usize = 1024;

/// Lowers a file without errors. A program that is too large is reported, and is then of no use.
pub(super) fn lower(
    source: &Arc<SourceFile>,
    ast: &Ast,
    names: &Names<'_>,
    checked: &Checked,
    problems: &mut Problems,
) -> Program {
    let mut whole = Whole {
        text: &source.text,
        ast,
        names,
        checked,
        problems,
        sites: Sites::default(),
        messages: Vec::new(),
        message_numbers: FxHashMap::default(),
        instructions: 0,
        visits: 0,
        stopped: false,
        labels_seen: FxHashSet::default(),
        labels_used: FxHashSet::default(),
    };
    let threads = whole.threads();
    let final_block = ast.finals.first().map(|item| {
        let ident = Ident { name: names::FINAL, span: item.word };
        whole.thread(&Task { ident, body: item.body, name: "final".to_owned(), me: None, observed: &[] })
    });
    whole.warn_unused_labels();
    let text = |ident: &Ident| names.text(ident.name).to_owned();
    Program {
        source: Arc::clone(source),
        locations: checked.locations.clone(),
        mutexes: ast.mutexes.iter().map(text).collect(),
        condvars: ast.condvars.iter().map(text).collect(),
        threads,
        final_block,
        messages: whole.messages,
        sites: whole.sites.finish(source, names),
    }
}

/// What all threads share.
struct Whole<'a> {
    text: &'a str,
    ast: &'a Ast,
    names: &'a Names<'a>,
    checked: &'a Checked,
    problems: &'a mut Problems,
    sites: Sites,
    messages: Vec<String>,
    /// Messages by their place, so that a template's instances share them.
    message_numbers: FxHashMap<Span, u32>,
    /// Emitted for the threads before this one.
    instructions: usize,
    visits: usize,
    /// A limit has been reported.
    stopped: bool,
    /// Labels of statements that can be reached.
    labels_seen: FxHashSet<(Span, Name)>,
    /// Labels of statements that some instruction came of.
    labels_used: FxHashSet<(Span, Name)>,
}

/// One thread to lower.
struct Task<'a> {
    ident: Ident,
    body: Block,
    name: String,
    me: Option<u32>,
    observed: &'a [LocalId],
}

impl Whole<'_> {
    fn threads(&mut self) -> Vec<Thread> {
        let mut threads = Vec::new();
        for (item, instances) in self.ast.threads.iter().zip(&self.checked.threads) {
            let template = self.names.text(item.ident.name);
            for index in 0..instances.count.unwrap_or(1) {
                if self.stopped {
                    return threads;
                }
                let me = instances.count.map(|_| index);
                let name = if me.is_some() { format!("{template}[{index}]") } else { template.to_owned() };
                let observed = &self.checked.observed[instances.first.index() + index as usize];
                let thread = self.thread(&Task { ident: item.ident, body: item.body, name, me, observed });
                threads.push(thread);
            }
        }
        threads
    }

    fn thread(&mut self, task: &Task<'_>) -> Thread {
        let mut lowerer = Lowerer {
            registers: Registers::new(task.observed, self),
            emitter: Emitter::new(),
            bindings: FxHashMap::default(),
            me: task.me.map(i64::from),
            label: None,
            inherited_label: None,
            loops: Vec::new(),
            frames: Vec::new(),
            depth: 0,
            ident: task.ident,
            whole: self,
        };
        let end = lowerer.emitter.label();
        lowerer.frames.push(Frame { end, result: None, critical_depth: 0, taken: Vec::new() });
        lowerer.block(task.body);
        lowerer.emitter.bind(end);
        lowerer.emitter.reachable = true;
        lowerer.emit(Instr::End, task.body.end);
        let Lowerer { emitter, registers, .. } = lowerer;
        let (code, sites, critical) = tidy::tidy(emitter);
        self.instructions += code.len();
        Thread {
            name: task.name.clone(),
            template: self.names.text(task.ident.name).to_owned(),
            index: task.me.unwrap_or(0),
            registers: registers.finish(),
            code,
            sites,
            critical,
        }
    }

    /// Reports a limit, the first time, and ends the walk.
    fn stop(&mut self, span: Span, message: String, help: &str) {
        if !std::mem::replace(&mut self.stopped, true) {
            self.problems.error(span, || Diagnostic::error("too-large", message, span).help(help));
        }
    }

    fn warn_unused_labels(&mut self) {
        if self.stopped {
            return;
        }
        let mut unused: Vec<_> = self.labels_seen.difference(&self.labels_used).copied().collect();
        unused.sort_unstable();
        for (span, name) in unused {
            let name = self.names.text(name);
            self.problems.warning("unused-label", span, || {
                let message = format!("label `{name}` names a statement that does nothing");
                Diagnostic::warning("unused-label", message, span)
                    .help("messages use the labels of events; remove it, or label an event")
            });
        }
    }
}

/// A loop around the current statement.
#[derive(Debug, Clone, Copy)]
struct Loop {
    head: Label,
    end: Label,
    critical_depth: u32,
}

/// A thread body or an inlined function body.
#[derive(Debug)]
struct Frame {
    /// Where `return` goes.
    end: Label,
    /// Where its value goes, if anybody wants it.
    result: Option<Reg>,
    critical_depth: u32,
    /// Registers of its locals, given back when it ends.
    taken: Vec<(LocalId, Reg)>,
}

/// Where the value of an expression should go if it needs a register.
#[derive(Debug, Clone, Copy)]
enum Want {
    /// Any temporary.
    Anywhere,
    /// This one.
    In(Reg),
    /// The register of this local, which is taken only if it is needed.
    Local(LocalId),
}

/// The walk over one thread.
struct Lowerer<'w, 'a> {
    whole: &'w mut Whole<'a>,
    emitter: Emitter,
    registers: Registers,
    /// What each local in scope stands for.
    bindings: FxHashMap<LocalId, Operand>,
    me: Option<i64>,
    /// The label of the current statement.
    label: Option<Name>,
    /// The label of the call whose body is being inlined.
    inherited_label: Option<Name>,
    loops: Vec<Loop>,
    frames: Vec<Frame>,
    depth: usize,
    /// The thread's name, for messages about its size.
    ident: Ident,
}

impl Lowerer<'_, '_> {
    /// Appends an instruction, if it can be reached.
    fn emit(&mut self, instr: Instr, span: Span) {
        if !self.emitter.reachable || self.whole.stopped {
            return;
        }
        if self.whole.instructions + self.emitter.len() >= MOST_INSTRUCTIONS {
            self.stop_too_large();
            return;
        }
        let site = self.whole.sites.intern(span, self.label);
        self.emitter.push(instr, site);
    }

    fn jump(&mut self, label: Label, span: Span) {
        if self.emitter.reachable {
            self.emitter.use_label(label);
            self.emit(Instr::Jump { target: label.as_target() }, span);
            self.emitter.reachable = false;
        }
    }

    fn branch(&mut self, cond: Operand, then: Label, otherwise: Label, span: Span) {
        match cond {
            Operand::Const(0) => self.jump(otherwise, span),
            Operand::Const(_) => self.jump(then, span),
            Operand::Reg(_) if self.emitter.reachable => {
                self.emitter.use_label(then);
                self.emitter.use_label(otherwise);
                let (then, otherwise) = (then.as_target(), otherwise.as_target());
                self.emit(Instr::Branch { cond, then, otherwise }, span);
                self.emitter.reachable = false;
            }
            Operand::Reg(_) => {}
        }
    }

    fn stop_too_large(&mut self) {
        let name = self.whole.names.text(self.ident.name);
        let message = format!("with `{name}` the program grows beyond {MOST_INSTRUCTIONS} instructions");
        let help = "functions are inlined and templates written out: use fewer calls of calls, or fewer threads";
        self.whole.stop(self.ident.span, message, help);
    }

    /// Counts a visit and a level; `false` if that is too much, else [`Self::leave`] follows.
    fn enter(&mut self) -> bool {
        if self.whole.stopped {
            return false;
        }
        self.whole.visits += 1;
        if self.whole.visits > MOST_VISITS {
            self.stop_too_large();
            return false;
        }
        if self.depth >= DEEPEST_WALK {
            let name = self.whole.names.text(self.ident.name);
            let message =
                format!("in `{name}` calls are nested too deeply: more than {DEEPEST_WALK} levels when inlined");
            self.whole.stop(self.ident.span, message, "let functions call fewer functions that call functions");
            return false;
        }
        self.depth += 1;
        true
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn block(&mut self, block: Block) {
        let ast = self.whole.ast;
        self.statements(ast.block(block));
    }

    fn statements(&mut self, statements: &[StmtId]) {
        for &statement in statements {
            self.statement(statement);
        }
    }

    /// The register of a local: the observed one, one from an earlier inlining, or a new one.
    fn local_register(&mut self, local: LocalId) -> Reg {
        if let Some(reg) = self.registers.observed(local) {
            return reg;
        }
        let reg = self.take_local(local);
        if let Some(frame) = self.frames.last_mut() {
            frame.taken.push((local, reg));
        }
        reg
    }

    fn take_local(&mut self, local: LocalId) -> Reg {
        let name = self.whole.checked.locals[local.index()].ident.name;
        let reg = self.registers.take_local(local, self.whole.names.text(name));
        self.check_registers();
        reg
    }

    fn temporary(&mut self) -> Reg {
        let reg = self.registers.take_temporary();
        self.check_registers();
        reg
    }

    fn check_registers(&mut self) {
        if self.registers.len() > MOST_REGISTERS {
            let name = self.whole.names.text(self.ident.name);
            let message = format!("thread `{name}` needs more than {MOST_REGISTERS} locals");
            self.whole.stop(self.ident.span, message, "use fewer locals, or a shared array");
        }
    }

    /// The register that is wanted.
    fn wanted(&mut self, want: Want) -> Reg {
        match want {
            Want::Anywhere => self.temporary(),
            Want::In(reg) => reg,
            Want::Local(local) => self.local_register(local),
        }
    }
}
