//! The last steps: the order of the observables, the condition as text, and the condition as a `final` block.

use std::fmt::Write as _;

use weakspot_model::ids::{Loc, Reg, Site, ThreadId};
use weakspot_model::ir::{BinaryOp, Instr, Operand, Place, Program, Register, Thread, UnaryOp};
use weakspot_model::litmus::{Condition, Observable, Quantifier};

/// Sorts registers by (thread, name), then memory by name.
pub(super) fn sort_observables(observed: &mut [Observable], program: &Program) {
    observed.sort_unstable_by_key(|observable| match *observable {
        Observable::Register(thread, register) => (false, thread, register_name(program, thread, register)),
        Observable::Memory(loc) => (true, ThreadId(0), program.locations[loc.index()].name.as_str()),
    });
}

/// The name of a register of the test; empty for temporaries.
pub(super) fn register_name(program: &Program, thread: ThreadId, register: Reg) -> &str {
    program.threads[thread.index()].registers[register.index()].name.as_deref().unwrap_or_default()
}

/// Appends `0:EAX` or `x`.
pub(super) fn write_observable(text: &mut String, program: &Program, observable: Observable) {
    let written = match observable {
        Observable::Register(thread, register) => {
            write!(text, "{}:{}", thread.index(), register_name(program, thread, register))
        }
        Observable::Memory(loc) => write!(text, "{}", program.locations[loc.index()].name),
    };
    written.expect("invariant: writing to a string cannot fail");
}

/// The condition as herd prints it: memory in brackets, other brackets only where they are needed.
pub(super) fn condition_text(quantifier: Quantifier, condition: &Condition, program: &Program) -> String {
    let mut text = String::with_capacity(64);
    text.push_str(match quantifier {
        Quantifier::Exists => "exists (",
        Quantifier::NotExists => "~exists (",
        Quantifier::Forall => "forall (",
    });
    write_condition(&mut text, condition, program);
    text.push(')');
    text
}

fn write_condition(text: &mut String, condition: &Condition, program: &Program) {
    match condition {
        Condition::True => text.push_str("true"),
        Condition::False => text.push_str("false"),
        Condition::Equals(observable, value) => {
            let memory = matches!(observable, Observable::Memory(_));
            text.push_str(if memory { "[" } else { "" });
            write_observable(text, program, *observable);
            text.push_str(if memory { "]" } else { "" });
            write!(text, "={value}").expect("invariant: writing to a string cannot fail");
        }
        Condition::Not(inner) => {
            text.push_str("not (");
            write_condition(text, inner, program);
            text.push(')');
        }
        Condition::And(all) => write_joined(text, all, " /\\ ", program, |part| matches!(part, Condition::Or(_))),
        Condition::Or(any) => write_joined(text, any, " \\/ ", program, |_| false),
    }
}

fn write_joined(
    text: &mut String,
    parts: &[Condition],
    separator: &str,
    program: &Program,
    needs_brackets: impl Fn(&Condition) -> bool,
) {
    for (index, part) in parts.iter().enumerate() {
        text.push_str(if index > 0 { separator } else { "" });
        let brackets = needs_brackets(part);
        text.push_str(if brackets { "(" } else { "" });
        write_condition(text, part, program);
        text.push_str(if brackets { ")" } else { "" });
    }
}

/// What the failed assertion of the `final` block says.
pub(super) fn message(quantifier: Quantifier, condition_text: &str) -> String {
    match quantifier {
        Quantifier::Exists => format!("the state of `{condition_text}` is reached"),
        Quantifier::NotExists => format!("the state that `{condition_text}` excludes is reached"),
        Quantifier::Forall => format!("a state outside `{condition_text}` is reached"),
    }
}

/// The condition as a specification: `exists C` and `~exists C` assert that C does not hold, `forall C` that it does.
pub(super) fn final_block(quantifier: Quantifier, condition: &Condition, message: u32, site: Site) -> Thread {
    let mut block = FinalBlock::default();
    let holds = match condition {
        Condition::True => Operand::Const(1),
        Condition::False => Operand::Const(0),
        other => Operand::Reg(block.condition(other, 0)),
    };
    let cond = match (quantifier, holds) {
        (Quantifier::Forall, holds) => holds,
        (_, Operand::Const(value)) => Operand::Const(1 - value),
        (_, Operand::Reg(register)) => {
            block.code.push(Instr::Unary { dst: register, op: UnaryOp::Not, value: holds });
            holds
        }
    };
    block.code.push(Instr::Assert { cond, message: Some(message) });
    block.code.push(Instr::End);
    let length = block.code.len();
    Thread {
        name: "final".to_owned(),
        template: "final".to_owned(),
        index: 0,
        registers: vec![Register { name: None, observed: false }; usize::from(block.registers)],
        code: block.code,
        sites: vec![site; length],
        critical: vec![false; length],
    }
}

/// The code of the block so far.
#[derive(Default)]
struct FinalBlock {
    code: Vec<Instr>,
    registers: u16,
    /// Where each observable's value already is.
    values: Vec<(Observable, Reg)>,
    /// The register that holds the value of the condition at each depth of nesting.
    by_depth: Vec<Reg>,
}

impl FinalBlock {
    /// Code that leaves 1 in the register of this depth if the condition holds, else 0.
    fn condition(&mut self, condition: &Condition, depth: usize) -> Reg {
        let dst = self.at_depth(depth);
        match condition {
            Condition::True => self.code.push(Instr::Set { dst, value: Operand::Const(1) }),
            Condition::False => self.code.push(Instr::Set { dst, value: Operand::Const(0) }),
            Condition::Equals(observable, value) => {
                let left = Operand::Reg(self.value(*observable));
                self.code.push(Instr::Binary { dst, op: BinaryOp::Eq, left, right: Operand::Const(*value) });
            }
            Condition::Not(inner) => {
                self.condition(inner, depth);
                self.code.push(Instr::Unary { dst, op: UnaryOp::Not, value: Operand::Reg(dst) });
            }
            Condition::And(parts) => self.join(parts, BinaryOp::BitAnd, depth),
            Condition::Or(parts) => self.join(parts, BinaryOp::BitOr, depth),
        }
        dst
    }

    fn join(&mut self, parts: &[Condition], op: BinaryOp, depth: usize) {
        for (index, part) in parts.iter().enumerate() {
            if index == 0 {
                self.condition(part, depth);
            } else {
                let right = Operand::Reg(self.condition(part, depth + 1));
                let dst = self.at_depth(depth);
                self.code.push(Instr::Binary { dst, op, left: Operand::Reg(dst), right });
            }
        }
    }

    fn fresh(&mut self) -> Reg {
        self.registers += 1;
        Reg(self.registers - 1)
    }

    fn at_depth(&mut self, depth: usize) -> Reg {
        while self.by_depth.len() <= depth {
            let register = self.fresh();
            self.by_depth.push(register);
        }
        self.by_depth[depth]
    }

    /// The register with the final value of an observable, read once.
    fn value(&mut self, observable: Observable) -> Reg {
        if let Some(&(_, register)) = self.values.iter().find(|(known, _)| *known == observable) {
            return register;
        }
        let dst = self.fresh();
        self.code.push(match observable {
            Observable::Register(thread, register) => Instr::ThreadRegister { dst, thread, register },
            Observable::Memory(loc) => Instr::Load { dst, place: Place::Fixed(loc) },
        });
        self.values.push((observable, dst));
        dst
    }
}

/// Every register that the code writes (not those that only the initial state sets) and every location it names.
pub(super) fn named_by_code(program: &Program) -> Vec<Observable> {
    let mut found = Vec::new();
    for (index, thread) in program.threads.iter().enumerate() {
        let is_initial = |pc: usize| {
            let span = program.sites[thread.sites[pc].index()].span;
            // Only entries of the initial state hold a `=`; instructions never do.
            program.source.text[span.range()].contains('=')
        };
        for (pc, instr) in thread.code.iter().enumerate() {
            let written = written_register(instr).filter(|register| thread.registers[register.index()].name.is_some());
            if let Some(register) = written.filter(|_| !is_initial(pc)) {
                found.push(Observable::Register(ThreadId::new(index), register));
            }
            found.extend(named_location(instr).map(Observable::Memory));
        }
    }
    found.sort_unstable();
    found.dedup();
    sort_observables(&mut found, program);
    found
}

fn written_register(instr: &Instr) -> Option<Reg> {
    match *instr {
        Instr::Load { dst, .. }
        | Instr::Set { dst, .. }
        | Instr::Unary { dst, .. }
        | Instr::Binary { dst, .. }
        | Instr::Rmw { dst: Some(dst), .. } => Some(dst),
        _ => None,
    }
}

fn named_location(instr: &Instr) -> Option<Loc> {
    match *instr {
        Instr::Load { place: Place::Fixed(loc), .. }
        | Instr::Store { place: Place::Fixed(loc), .. }
        | Instr::Rmw { place: Place::Fixed(loc), .. } => Some(loc),
        _ => None,
    }
}
