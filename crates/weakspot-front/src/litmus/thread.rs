//! One thread on its way from cells to [`weakspot_model::ir::Thread`]: its registers, labels and code.
//!
//! What each instruction becomes is told in [`super::lower`].

use weakspot_model::ids::{Pc, Reg, Site};
use weakspot_model::ir::{Instr, Register, Thread};
use weakspot_model::source::{Diagnostic, SiteInfo, SourceFile, Span};

use crate::suggest;

use super::context::{Context, clip, too_large};
use super::instruction::{Instruction, NamedRegister};
use super::registers::MachineRegister;

/// Labels in one thread; real ones have one or two.
const MOST_LABELS: usize = 1024;

/// A thread that is being built.
pub(super) struct ThreadBuilder<'a> {
    /// Its number.
    pub(super) index: usize,
    /// Where its name stands in the head of the table.
    pub(super) head: Span,
    /// What it does, in order.
    pub(super) statements: Vec<Statement<'a>>,
    /// Registers: those the test names and temporaries.
    registers: Vec<Register>,
    /// The machine register behind each entry of `registers`; `None` for temporaries.
    machine: Vec<Option<MachineRegister>>,
    /// Temporaries, used again by every instruction.
    temporaries: Vec<Reg>,
    /// How many of them the instruction in hand uses.
    temporaries_used: usize,
    /// The code so far.
    code: Vec<Instr>,
    /// The place of each instruction.
    sites: Vec<Site>,
    /// The place of the instruction in hand.
    site: Site,
    /// Where each label leads.
    labels: Vec<(&'a str, Span, Pc)>,
    /// Jumps whose target is not known yet.
    jumps: Vec<(Pc, &'a str, Span)>,
}

/// What a cell adds to a thread.
pub(super) enum Statement<'a> {
    /// A label.
    Label(&'a str, Span),
    /// An instruction.
    Instruction(Instruction<'a>),
}

/// The table of places that all threads share.
pub(super) struct Sites<'a> {
    /// The file.
    pub(super) source: &'a SourceFile,
    /// The places so far.
    pub(super) table: Vec<SiteInfo>,
}

impl Sites<'_> {
    /// A new place.
    pub(super) fn add(&mut self, span: Span, label: Option<&str>) -> Site {
        let position = self.source.position(span.start as usize);
        self.table.push(SiteInfo { span, position, label: label.map(str::to_owned) });
        Site::new(self.table.len() - 1)
    }
}

impl<'a> ThreadBuilder<'a> {
    /// A thread without code.
    pub(super) fn new(index: usize, head: Span) -> Self {
        Self {
            index,
            head,
            statements: Vec::with_capacity(8),
            registers: Vec::with_capacity(4),
            machine: Vec::with_capacity(4),
            temporaries: Vec::new(),
            temporaries_used: 0,
            code: Vec::with_capacity(8),
            sites: Vec::with_capacity(8),
            site: Site::new(0),
            labels: Vec::new(),
            jumps: Vec::new(),
        }
    }

    /// The register of this name, made if it is new. Reports a name that is a part of a register already in use.
    pub(super) fn register(&mut self, context: &mut Context<'a>, named: NamedRegister<'a>) -> Reg {
        if let Some(known) = self.find(named.register) {
            return known;
        }
        if let Some(other) = self.other_part(named.register) {
            context.report(mixed_parts(self.index, other, named));
        }
        self.add_register(Some(named.name.to_owned()), Some(named.register))
    }

    /// The register, if the thread has it.
    pub(super) fn find(&self, register: MachineRegister) -> Option<Reg> {
        self.machine.iter().position(|known| *known == Some(register)).map(Reg::new)
    }

    /// The name of another part of the same machine register that the thread uses.
    pub(super) fn other_part(&self, register: MachineRegister) -> Option<&str> {
        let is_other = |known: &Option<MachineRegister>| {
            known.is_some_and(|known| known.number == register.number && known.part != register.part)
        };
        let index = self.machine.iter().position(is_other)?;
        self.registers[index].name.as_deref()
    }

    /// The names of the thread's registers.
    pub(super) fn register_names(&self) -> impl Iterator<Item = &str> {
        self.registers.iter().filter_map(|register| register.name.as_deref())
    }

    /// The final state shows this register.
    pub(super) fn observe(&mut self, register: Reg) {
        self.registers[register.index()].observed = true;
    }

    fn add_register(&mut self, name: Option<String>, machine: Option<MachineRegister>) -> Reg {
        self.registers.push(Register { name, observed: false });
        self.machine.push(machine);
        Reg::new(self.registers.len() - 1)
    }

    /// A register that is the reader's own for the whole thread.
    pub(super) fn hidden_register(&mut self) -> Reg {
        self.add_register(None, None)
    }

    /// A temporary for the instruction in hand.
    pub(super) fn temporary(&mut self) -> Reg {
        if self.temporaries_used == self.temporaries.len() {
            let fresh = self.hidden_register();
            self.temporaries.push(fresh);
        }
        self.temporaries_used += 1;
        self.temporaries[self.temporaries_used - 1]
    }

    /// From here on code belongs to this place, and all temporaries are free again.
    pub(super) fn start_instruction(&mut self, site: Site) {
        self.site = site;
        self.temporaries_used = 0;
    }

    /// Appends an instruction.
    pub(super) fn emit(&mut self, instr: Instr) {
        self.code.push(instr);
        self.sites.push(self.site);
    }

    /// Where the next instruction will stand.
    pub(super) fn here(&self) -> Pc {
        Pc::new(self.code.len())
    }

    /// A label stands here.
    pub(super) fn define_label(&mut self, context: &mut Context<'a>, name: &'a str, span: Span) {
        if let Some(&(_, first, _)) = self.labels.iter().find(|(known, ..)| *known == name) {
            let message = format!("thread P{} has two labels `{}`", self.index, clip(name));
            context.report(
                Diagnostic::error("duplicate-label", message, span)
                    .label("defined again")
                    .related(first, "first defined here")
                    .help("rename one of them"),
            );
        } else if self.labels.len() < MOST_LABELS {
            self.labels.push((name, span, self.here()));
        } else {
            let message = format!("thread P{} has more than {MOST_LABELS} labels", self.index);
            context.report(too_large(message, span));
        }
    }

    /// The instruction at `pc` jumps to a label.
    pub(super) fn jump_to(&mut self, pc: Pc, name: &'a str, span: Span) {
        self.jumps.push((pc, name, span));
    }

    /// All jumps get their targets, the code gets its end.
    pub(super) fn finish(mut self, context: &mut Context<'a>) -> Thread {
        self.emit(Instr::End);
        for (pc, name, span) in std::mem::take(&mut self.jumps) {
            match self.labels.iter().find(|(known, ..)| *known == name) {
                Some(&(_, _, destination)) => self.code[pc.index()].set_jump_target(destination),
                None if context.is_full() => break,
                None => context.report(self.unknown_label(name, span)),
            }
        }
        let name = format!("P{}", self.index);
        Thread {
            template: name.clone(),
            name,
            index: 0,
            registers: self.registers,
            critical: vec![false; self.code.len()],
            code: self.code,
            sites: self.sites,
        }
    }

    fn unknown_label(&self, name: &str, span: Span) -> Diagnostic {
        let message = format!("thread P{} has no label `{}`", self.index, clip(name));
        let diagnostic = Diagnostic::error("unknown-label", message, span).label("jumps nowhere");
        let names: Vec<&str> = self.labels.iter().map(|&(name, ..)| name).collect();
        match (suggest::closest(name, names.iter().copied()), names.is_empty()) {
            (Some(known), _) => diagnostic.help(format!("did you mean `{known}`?")),
            (None, true) => diagnostic.help(format!("put `{}:` in the cell where execution should go on", clip(name))),
            (None, false) => diagnostic.help(format!("the thread's labels are: {}", clip(&names.join(", ")))),
        }
    }
}

/// Giving a jump its target.
trait SetJumpTarget {
    fn set_jump_target(&mut self, destination: Pc);
}

impl SetJumpTarget for Instr {
    fn set_jump_target(&mut self, destination: Pc) {
        match self {
            Self::Jump { target } | Self::Branch { then: target, .. } => *target = destination,
            other => unreachable!("invariant: only jumps are noted as jumps, not {other:?}"),
        }
    }
}

/// The message about `AL` in a thread that also uses `EAX`.
fn mixed_parts(thread: usize, other: &str, named: NamedRegister<'_>) -> Diagnostic {
    let message = format!("thread P{thread} uses `{}` and `{other}`, which are parts of one register", named.name);
    Diagnostic::error("mixed-register-parts", message, named.span)
        .label(format!("overlaps `{other}`"))
        .help("parts of a register are not modelled; use another register, or one name for all of it")
}
