//! Registers of one thread. Observed locals come first, so that the `final` block knows their numbers.

use rustc_hash::FxHashMap;
use weakspot_model::ids::Reg;
use weakspot_model::ir::Register;

use super::Whole;
use crate::weak::check::LocalId;

/// The registers of one thread.
#[derive(Debug)]
pub(super) struct Registers {
    all: Vec<Register>,
    observed: FxHashMap<LocalId, Reg>,
    /// Temporaries, as a stack: those below `in_use` hold values.
    temporaries: Vec<Reg>,
    in_use: usize,
    /// Registers of locals of functions whose inlining has ended.
    free: FxHashMap<LocalId, Vec<Reg>>,
}

impl Registers {
    /// The observed ones.
    pub(super) fn new(observed: &[LocalId], whole: &Whole<'_>) -> Self {
        let register = |local: &LocalId| {
            let name = whole.names.text(whole.checked.locals[local.index()].ident.name);
            Register { name: Some(name.to_owned()), observed: true }
        };
        Self {
            all: observed.iter().map(register).collect(),
            observed: observed.iter().enumerate().map(|(index, &local)| (local, register_number(index))).collect(),
            temporaries: Vec::new(),
            in_use: 0,
            free: FxHashMap::default(),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The register of an observed local.
    pub(super) fn observed(&self, local: LocalId) -> Option<Reg> {
        self.observed.get(&local).copied()
    }

    fn add(&mut self, name: Option<String>) -> Reg {
        self.all.push(Register { name, observed: false });
        register_number(self.all.len() - 1)
    }

    /// A register for a local that is not observed.
    pub(super) fn take_local(&mut self, local: LocalId, name: &str) -> Reg {
        match self.free.get_mut(&local).and_then(Vec::pop) {
            Some(reg) => reg,
            None => self.add(Some(name.to_owned())),
        }
    }

    /// The inlining that took it has ended.
    pub(super) fn give_back(&mut self, local: LocalId, reg: Reg) {
        self.free.entry(local).or_default().push(reg);
    }

    /// The next temporary.
    pub(super) fn take_temporary(&mut self) -> Reg {
        if self.in_use == self.temporaries.len() {
            let reg = self.add(None);
            self.temporaries.push(reg);
        }
        self.in_use += 1;
        self.temporaries[self.in_use - 1]
    }

    /// How many temporaries hold values.
    pub(super) fn mark(&self) -> usize {
        self.in_use
    }

    /// The temporaries taken since the mark are free again.
    pub(super) fn release(&mut self, mark: usize) {
        self.in_use = mark;
    }

    /// The table.
    pub(super) fn finish(self) -> Vec<Register> {
        self.all
    }
}

/// One register too many is reported by the lowerer, and the program dropped; until then its number must exist.
fn register_number(index: usize) -> Reg {
    Reg(u16::try_from(index).unwrap_or(u16::MAX))
}
