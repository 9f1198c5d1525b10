//! Code being written: instructions, labels, and whether the next instruction can be reached at all.

use weakspot_model::ids::{Pc, Site};
use weakspot_model::ir::Instr;

/// A place to jump to. While code is being written, jumps hold the label's number in their [`Pc`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(u32);

impl Label {
    /// For a jump.
    pub(super) fn as_target(self) -> Pc {
        Pc(self.0)
    }
}

/// The code of one thread.
#[derive(Debug)]
pub(super) struct Emitter {
    /// Instructions.
    pub(super) code: Vec<Instr>,
    /// Their places.
    pub(super) sites: Vec<Site>,
    /// Inside a `critical` block?
    pub(super) critical: Vec<bool>,
    /// For each label: its instruction, once bound.
    pub(super) targets: Vec<u32>,
    /// For each label: does a jump go there?
    used: Vec<bool>,
    /// How many `critical` blocks are open.
    pub(super) critical_depth: u32,
    /// Can the next instruction be reached? If not, it is not written.
    pub(super) reachable: bool,
}

impl Emitter {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self {
            code: Vec::new(),
            sites: Vec::new(),
            critical: Vec::new(),
            targets: Vec::new(),
            used: Vec::new(),
            critical_depth: 0,
            reachable: true,
        }
    }

    /// How many instructions there are.
    pub(super) fn len(&self) -> usize {
        self.code.len()
    }

    /// Appends an instruction.
    pub(super) fn push(&mut self, instr: Instr, site: Site) {
        self.code.push(instr);
        self.sites.push(site);
        self.critical.push(self.critical_depth > 0);
    }

    /// A new label.
    pub(super) fn label(&mut self) -> Label {
        self.targets.push(u32::MAX);
        self.used.push(false);
        Label(self.targets.len() as u32 - 1)
    }

    /// A jump goes to this label.
    pub(super) fn use_label(&mut self, label: Label) {
        self.used[label.0 as usize] = true;
    }

    /// Does some jump go there?
    pub(super) fn is_used(&self, label: Label) -> bool {
        self.used[label.0 as usize]
    }

    /// The label stands before the next instruction.
    pub(super) fn bind(&mut self, label: Label) {
        self.targets[label.0 as usize] = self.code.len() as u32;
        self.reachable |= self.is_used(label);
    }
}
