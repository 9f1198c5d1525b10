//! Which registers still matter: what makes a round of a waiting loop recognisable.
//!
//! A round of `while x == 0 { }` loads, decides and comes back. It changes nothing *that is live*: the loaded value is
//! dead once the branch is taken, but it still sits in a temporary. [`Liveness`] says which registers can be read later
//! on; the interpreter sets the others to 0, so that a thread that has gone once round such a loop is in exactly the
//! local state it was in before. That equality of states is the exact test the explorer uses for a round without
//! effect (see `trust`), and it covers loops of any shape: several loads, nested conditions, `await`.
//!
//! Liveness is the textbook backward analysis on the flat code: live before = (live after − written) ∪ read. A register
//! that the `final` block reads is live at the end of its thread.

use weakspot_model::ids::Reg;
use weakspot_model::ir::{Instr, Operand, Place, Program, RmwOp, Thread};
use weakspot_model::local::LocalState;

use crate::interpreter::written_register;

/// For each thread: the registers that `final` reads.
pub fn observed_registers(program: &Program) -> Vec<Vec<Reg>> {
    let mut observed = vec![Vec::new(); program.threads.len()];
    for instr in program.final_block.iter().flat_map(|block| &block.code) {
        if let Instr::ThreadRegister { thread, register, .. } = *instr {
            observed[thread.index()].push(register);
        }
    }
    observed
}

/// For each instruction of a thread: the registers that may be read from there on.
#[derive(Debug)]
pub struct Liveness {
    /// Row `pc`: one flag a register.
    live: Vec<Vec<bool>>,
}

impl Liveness {
    /// Analyses a thread; `observed` registers are read after its end.
    pub fn of(thread: &Thread, observed: &[Reg]) -> Self {
        let mut live = vec![vec![false; thread.registers.len()]; thread.code.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for pc in (0..thread.code.len()).rev() {
                let before = live_before(&thread.code[pc], pc, &live, observed, thread.registers.len());
                if before != live[pc] {
                    live[pc] = before;
                    changed = true;
                }
            }
        }
        Self { live }
    }

    /// Sets the registers nobody will read again to 0.
    pub fn clear_dead(&self, local: &mut LocalState) {
        for (value, &live) in local.registers.iter_mut().zip(&self.live[local.pc.index()]) {
            if !live {
                *value = 0;
            }
        }
    }
}

fn live_before(instr: &Instr, pc: usize, live: &[Vec<bool>], observed: &[Reg], registers: usize) -> Vec<bool> {
    let mut before = match instr {
        Instr::Jump { target } => live[target.index()].clone(),
        Instr::Branch { then, otherwise, .. } => {
            let both = live[then.index()].iter().zip(&live[otherwise.index()]);
            both.map(|(then, otherwise)| *then || *otherwise).collect()
        }
        Instr::End => {
            let mut at_end = vec![false; registers];
            for register in observed {
                at_end[register.index()] = true;
            }
            at_end
        }
        _ => live[pc + 1].clone(),
    };
    if let Some(dst) = written_register(instr) {
        before[dst.index()] = false;
    }
    for register in read_registers(instr) {
        before[register.index()] = true;
    }
    before
}

/// The registers an instruction reads.
fn read_registers(instr: &Instr) -> impl Iterator<Item = Reg> {
    let mut operands = [None; 3];
    let index = |place: Place| match place {
        Place::Fixed(_) => None,
        Place::Indexed { index, .. } => Some(index),
    };
    match *instr {
        Instr::Load { place, .. } => operands[0] = index(place),
        Instr::Store { place, value } => operands = [index(place), Some(value), None],
        Instr::Rmw { place, op, .. } => {
            operands[0] = index(place);
            match op {
                RmwOp::Cas { old, new } | RmwOp::CompareExchange { old, new } => {
                    operands[1] = Some(old);
                    operands[2] = Some(new);
                }
                RmwOp::Swap(value) | RmwOp::Add(value) | RmwOp::Or(value) | RmwOp::And(value) => {
                    operands[1] = Some(value);
                }
            }
        }
        Instr::Choose { lo, hi, .. } => operands = [Some(lo), Some(hi), None],
        Instr::Set { value, .. } | Instr::Unary { value, .. } => operands[0] = Some(value),
        Instr::Binary { left, right, .. } => operands = [Some(left), Some(right), None],
        Instr::Branch { cond, .. } | Instr::Assert { cond, .. } | Instr::Assume { cond } => operands[0] = Some(cond),
        _ => {}
    }
    operands.into_iter().flatten().filter_map(|operand| match operand {
        Operand::Reg(register) => Some(register),
        Operand::Const(_) => None,
    })
}
