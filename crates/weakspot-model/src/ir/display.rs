//! The text of `--dump-ir`: one line an instruction, with its source place.

use std::fmt;

use super::{BinaryOp, FenceKind, Instr, Operand, Place, Program, RmwOp, Thread, UnaryOp};
use crate::ids::Reg;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for location in &self.locations {
            write!(f, "shared {} = {}", location.name, location.init)?;
            if let Some((lo, hi)) = location.range {
                write!(f, " in {lo}..={hi}")?;
            }
            writeln!(f)?;
        }
        for mutex in &self.mutexes {
            writeln!(f, "mutex {mutex}")?;
        }
        for condvar in &self.condvars {
            writeln!(f, "condvar {condvar}")?;
        }
        for thread in &self.threads {
            writeln!(f, "\nthread {}", thread.name)?;
            self.write_code(f, thread)?;
        }
        if let Some(block) = &self.final_block {
            writeln!(f, "\nfinal")?;
            self.write_code(f, block)?;
        }
        Ok(())
    }
}

impl Program {
    fn write_code(&self, f: &mut fmt::Formatter<'_>, thread: &Thread) -> fmt::Result {
        for (pc, instr) in thread.code.iter().enumerate() {
            let text = Line { program: self, thread, instr }.to_string();
            let site = &self.sites[thread.sites[pc].index()];
            let event = if instr.is_event() { '*' } else { ' ' };
            let inside = if thread.critical[pc] { '|' } else { ' ' };
            write!(f, "{pc:5} {event}{inside} {text:<44} ; {}:{}", site.position.line, site.position.column)?;
            if let Some(label) = &site.label {
                write!(f, " {label}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// One instruction with the names it needs.
struct Line<'a> {
    program: &'a Program,
    thread: &'a Thread,
    instr: &'a Instr,
}

impl Line<'_> {
    fn reg(&self, reg: Reg) -> String {
        match &self.thread.registers[reg.index()].name {
            Some(name) => format!("{name}.{}", reg.0),
            None => format!("%{}", reg.0),
        }
    }

    fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Const(value) => value.to_string(),
            Operand::Reg(reg) => self.reg(reg),
        }
    }

    fn place(&self, place: Place) -> String {
        match place {
            Place::Fixed(loc) => format!("[{}]", self.program.locations[loc.index()].name),
            Place::Indexed { base, len, index } => {
                let first = &self.program.locations[base.index()].name;
                let array = first.split('[').next().unwrap_or(first);
                format!("[{array} + {} < {len}]", self.operand(index))
            }
        }
    }

    fn rmw(&self, op: RmwOp, place: Place) -> String {
        let place = self.place(place);
        match op {
            RmwOp::Cas { old, new } => format!("cas {place}, {}, {}", self.operand(old), self.operand(new)),
            RmwOp::Swap(v) => format!("swap {place}, {}", self.operand(v)),
            RmwOp::Add(v) => format!("fetch_add {place}, {}", self.operand(v)),
            RmwOp::Or(v) => format!("fetch_or {place}, {}", self.operand(v)),
            RmwOp::And(v) => format!("fetch_and {place}, {}", self.operand(v)),
            RmwOp::CompareExchange { old, new } => {
                format!("compare_exchange {place}, {}, {}", self.operand(old), self.operand(new))
            }
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.instr {
            Instr::Load { dst, place } => write!(f, "{} = load {}", self.reg(dst), self.place(place)),
            Instr::Store { place, value } => write!(f, "store {}, {}", self.place(place), self.operand(value)),
            Instr::Rmw { dst, place, op, drains_all } => {
                if let Some(dst) = dst {
                    write!(f, "{} = ", self.reg(dst))?;
                }
                write!(f, "{}{}", if drains_all { "locked " } else { "" }, self.rmw(op, place))
            }
            Instr::Fence(FenceKind::Full) => write!(f, "fence"),
            Instr::Fence(kind) => write!(f, "fence {}", kind.name()),
            Instr::Lock(mutex) => write!(f, "lock {}", self.program.mutexes[mutex.index()]),
            Instr::Unlock(mutex) => write!(f, "unlock {}", self.program.mutexes[mutex.index()]),
            Instr::Wait { condvar, mutex } => {
                let (condvar, mutex) = (&self.program.condvars[condvar.index()], &self.program.mutexes[mutex.index()]);
                write!(f, "wait {condvar}, {mutex}")
            }
            Instr::Notify { condvar, all } => {
                let which = if all { "all" } else { "one" };
                write!(f, "notify_{which} {}", self.program.condvars[condvar.index()])
            }
            Instr::Choose { dst, lo, hi } => {
                write!(f, "{} = choose {}..={}", self.reg(dst), self.operand(lo), self.operand(hi))
            }
            Instr::LeaveCritical => write!(f, "leave critical"),
            Instr::EnterCritical => write!(f, "enter critical"),
            Instr::Set { dst, value } => write!(f, "{} = {}", self.reg(dst), self.operand(value)),
            Instr::Unary { dst, op, value } => {
                let op = match op {
                    UnaryOp::Neg => "-",
                    UnaryOp::Not => "!",
                };
                write!(f, "{} = {op}{}", self.reg(dst), self.operand(value))
            }
            Instr::Binary { dst, op, left, right } => {
                write!(f, "{} = {} {} {}", self.reg(dst), self.operand(left), op.symbol(), self.operand(right))
            }
            Instr::Jump { target } => write!(f, "jump {}", target.0),
            Instr::Branch { cond, then, otherwise } => {
                write!(f, "branch {} ? {} : {}", self.operand(cond), then.0, otherwise.0)
            }
            Instr::Assert { cond, message } => {
                write!(f, "assert {}", self.operand(cond))?;
                match message {
                    Some(message) => write!(f, " {:?}", self.program.messages[message as usize]),
                    None => Ok(()),
                }
            }
            Instr::Assume { cond } => write!(f, "assume {}", self.operand(cond)),
            Instr::ThreadRegister { dst, thread, register } => {
                let thread = &self.program.threads[thread.index()];
                let name = thread.registers[register.index()].name.as_deref().unwrap_or("?");
                write!(f, "{} = {}.{name}", self.reg(dst), thread.name)
            }
            Instr::End => write!(f, "end"),
        }
    }
}

impl BinaryOp {
    /// As written in the language.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "^",
            Self::Shl => "<<",
            Self::Shr => ">>",
        }
    }
}
