//! Which registers can still matter at an instruction.
//!
//! Two thread states that differ only in registers nobody will read again behave alike. An engine that matches states
//! sets dead registers to 0 first ([`Liveness::forget_dead`]), and most temporaries vanish from its states.
//!
//! This is the textbook backward analysis: a register is live at an instruction if some path from there reads it
//! before it is written. Every operand of every instruction counts as read, even if the result is dead, because
//! reading may be a program error (overflow, an index out of range). Registers the `final` block observes are read by
//! [`Instr::End`].
//!
//! Deliberately absent: values. A branch is taken to go both ways.

use crate::ids::{Pc, Reg};
use crate::ir::{Instr, Operand, Thread};
use crate::local::LocalState;

/// The live registers of each instruction of a thread.
#[derive(Debug, Clone)]
pub struct Liveness {
    /// Words of a row.
    words: usize,
    /// One row of bits for each instruction: the registers live just before it.
    rows: Vec<u64>,
}

impl Liveness {
    /// Analyses a thread (or the `final` block).
    pub fn of(thread: &Thread) -> Self {
        let words = thread.registers.len().div_ceil(64);
        let mut liveness = Self { words, rows: vec![0; words * thread.code.len()] };
        let mut changed = true;
        while changed {
            changed = false;
            for pc in (0..thread.code.len()).rev() {
                changed |= liveness.update(thread, pc);
            }
        }
        liveness
    }

    /// Recomputes the row of one instruction from its successors; true if it grew.
    fn update(&mut self, thread: &Thread, pc: usize) -> bool {
        let instr = &thread.code[pc];
        let mut row = vec![0; self.words];
        for next in successors(instr, Pc::new(pc)) {
            for (word, &live) in row.iter_mut().zip(self.row(next)) {
                *word |= live;
            }
        }
        if let Some(reg) = written(instr) {
            row[reg.index() / 64] &= !(1 << (reg.index() % 64));
        }
        let mut read = |reg: Reg| row[reg.index() / 64] |= 1 << (reg.index() % 64);
        for_each_read(instr, &mut read);
        if matches!(instr, Instr::End) {
            let observed = thread.registers.iter().enumerate().filter(|(_, register)| register.observed);
            observed.for_each(|(index, _)| read(Reg::new(index)));
        }
        let target = &mut self.rows[pc * self.words..(pc + 1) * self.words];
        let grew = *target != row[..];
        target.copy_from_slice(&row);
        grew
    }

    fn row(&self, pc: Pc) -> &[u64] {
        &self.rows[pc.index() * self.words..(pc.index() + 1) * self.words]
    }

    /// May the register be read at or after `pc` before it is written?
    pub fn is_live(&self, pc: Pc, reg: Reg) -> bool {
        self.row(pc)[reg.index() / 64] >> (reg.index() % 64) & 1 == 1
    }

    /// The registers that may be read at or after `pc` before they are written, in order.
    pub fn live_at(&self, pc: Pc) -> impl Iterator<Item = Reg> + '_ {
        self.row(pc).iter().enumerate().flat_map(|(word, &bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                let offset = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (offset < 64).then(|| Reg::new(word * 64 + offset))
            })
        })
    }

    /// Sets the registers that no longer matter to 0.
    pub fn forget_dead(&self, local: &mut LocalState) {
        let row = self.row(local.pc);
        for (index, value) in local.registers.iter_mut().enumerate() {
            if row[index / 64] >> (index % 64) & 1 == 0 {
                *value = 0;
            }
        }
    }
}

/// Where control may go from an instruction; nowhere from [`Instr::End`].
pub fn successors(instr: &Instr, pc: Pc) -> impl Iterator<Item = Pc> + use<> {
    let next = Pc(pc.0 + 1);
    let (first, second) = match *instr {
        Instr::Jump { target } => (Some(target), None),
        Instr::Branch { then, otherwise, .. } => (Some(then), Some(otherwise)),
        Instr::End => (None, None),
        _ => (Some(next), None),
    };
    first.into_iter().chain(second)
}

/// The register an instruction writes.
fn written(instr: &Instr) -> Option<Reg> {
    match *instr {
        Instr::Load { dst, .. }
        | Instr::Choose { dst, .. }
        | Instr::Set { dst, .. }
        | Instr::Unary { dst, .. }
        | Instr::Binary { dst, .. }
        | Instr::ThreadRegister { dst, .. } => Some(dst),
        Instr::Rmw { dst, .. } => dst,
        _ => None,
    }
}

/// Calls `read` for each register an instruction reads.
fn for_each_read(instr: &Instr, read: &mut impl FnMut(Reg)) {
    instr.for_each_operand(|operand| {
        if let Operand::Reg(reg) = operand {
            read(reg);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Loc, Site};
    use crate::ir::Place;
    use crate::ir::{BinaryOp, Register};

    fn thread(code: Vec<Instr>, observed: &[bool]) -> Thread {
        Thread {
            name: "t".into(),
            template: "t".into(),
            index: 0,
            registers: observed.iter().map(|&observed| Register { name: None, observed }).collect(),
            sites: vec![Site(0); code.len()],
            critical: vec![false; code.len()],
            code,
        }
    }

    const X: Place = Place::Fixed(Loc(0));

    #[test]
    fn a_register_dies_after_its_last_read() {
        let code = vec![
            Instr::Load { dst: Reg(0), place: X },
            Instr::Store { place: X, value: Operand::Reg(Reg(0)) },
            Instr::End,
        ];
        let liveness = Liveness::of(&thread(code, &[false]));
        let live = [0, 1, 2].map(|pc| liveness.is_live(Pc(pc), Reg(0)));
        assert_eq!(live, [false, true, false]);
    }

    #[test]
    fn an_observed_register_lives_to_the_end() {
        let code = vec![
            Instr::Load { dst: Reg(0), place: X },
            Instr::Store { place: X, value: Operand::Const(1) },
            Instr::End,
        ];
        let liveness = Liveness::of(&thread(code, &[true]));
        assert!(!liveness.is_live(Pc(0), Reg(0)), "it is overwritten on every path to the end");
        assert!(liveness.is_live(Pc(1), Reg(0)));
        assert!(liveness.is_live(Pc(2), Reg(0)));
    }

    #[test]
    fn a_loop_keeps_its_counter_alive() {
        let counter = Operand::Reg(Reg(0));
        let code = vec![
            Instr::Store { place: X, value: Operand::Const(1) },
            Instr::Binary { dst: Reg(0), op: BinaryOp::Add, left: counter, right: Operand::Const(1) },
            Instr::Branch { cond: counter, then: Pc(0), otherwise: Pc(3) },
            Instr::End,
        ];
        let liveness = Liveness::of(&thread(code, &[false]));
        let live = [0, 1, 2, 3].map(|pc| liveness.is_live(Pc(pc), Reg(0)));
        assert_eq!(live, [true, true, true, false]);
        assert_eq!([2, 3].map(|pc| liveness.live_at(Pc(pc)).collect::<Vec<_>>()), [vec![Reg(0)], vec![]]);
        let mut local = LocalState { pc: Pc(3), registers: vec![7] };
        liveness.forget_dead(&mut local);
        assert_eq!(local.registers, [0]);
    }
}
