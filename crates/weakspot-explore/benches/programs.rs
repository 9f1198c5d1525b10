//! The programs of the bench, as text-free IR: a few lines of assembler.

use weakspot_model::ids::{Loc, Pc, Reg, Site, ThreadId};
use weakspot_model::ir::{BinaryOp, Instr, Location, Operand, Place, Program, Register, RmwOp, Thread};
use weakspot_model::source::{SiteInfo, SourceFile, Span};

/// A register.
pub fn r(register: u16) -> Operand {
    Operand::Reg(Reg(register))
}

/// A constant.
pub fn c(value: i64) -> Operand {
    Operand::Const(value)
}

/// A fixed cell.
pub fn at(loc: u32) -> Place {
    Place::Fixed(Loc(loc))
}

/// A cell of an array.
pub fn cell(base: u32, len: u32, index: Operand) -> Place {
    Place::Indexed { base: Loc(base), len, index }
}

/// Writes code.
#[derive(Default)]
pub struct Code(pub Vec<Instr>);

impl Code {
    pub fn here(&self) -> Pc {
        Pc::new(self.0.len())
    }

    pub fn load(&mut self, dst: u16, place: Place) -> &mut Self {
        self.0.push(Instr::Load { dst: Reg(dst), place });
        self
    }

    pub fn store(&mut self, place: Place, value: Operand) -> &mut Self {
        self.0.push(Instr::Store { place, value });
        self
    }

    pub fn cas(&mut self, dst: u16, place: Place, old: Operand, new: Operand) -> &mut Self {
        self.0.push(Instr::Rmw { dst: Some(Reg(dst)), place, op: RmwOp::Cas { old, new }, drains_all: false });
        self
    }

    pub fn binary(&mut self, dst: u16, left: Operand, op: BinaryOp, right: Operand) -> &mut Self {
        self.0.push(Instr::Binary { dst: Reg(dst), op, left, right });
        self
    }

    pub fn set(&mut self, dst: u16, value: Operand) -> &mut Self {
        self.0.push(Instr::Set { dst: Reg(dst), value });
        self
    }

    pub fn jump(&mut self, target: Pc) -> &mut Self {
        self.0.push(Instr::Jump { target });
        self
    }

    /// A branch whose targets are filled in later.
    pub fn branch(&mut self, cond: Operand) -> usize {
        self.0.push(Instr::Branch { cond, then: Pc(0), otherwise: Pc(0) });
        self.0.len() - 1
    }

    pub fn patch(&mut self, branch: usize, then: Pc, otherwise: Pc) {
        if let Instr::Branch { cond, .. } = self.0[branch] {
            self.0[branch] = Instr::Branch { cond, then, otherwise };
        }
    }

    fn thread(mut self, name: String) -> Thread {
        self.0.push(Instr::End);
        Thread {
            template: name.clone(),
            name,
            index: 0,
            registers: vec![Register { name: None, observed: false }; 8],
            sites: vec![Site(0); self.0.len()],
            critical: vec![false; self.0.len()],
            code: self.0,
        }
    }
}

/// A program of these cells and threads.
pub fn program(initial: &[i64], threads: Vec<Code>) -> Program {
    let source = SourceFile::new("bench", "");
    Program {
        locations: initial
            .iter()
            .enumerate()
            .map(|(index, &init)| Location { name: format!("x{index}"), init, range: None })
            .collect(),
        mutexes: Vec::new(),
        condvars: Vec::new(),
        threads: threads.into_iter().enumerate().map(|(i, code)| code.thread(format!("t{i}"))).collect(),
        final_block: None,
        messages: Vec::new(),
        sites: vec![SiteInfo { span: Span::default(), position: source.position(0), label: None }],
        source,
    }
}

/// Two threads add to each other's number: `i += j` against `j += i`.
pub fn fib(rounds: usize) -> Program {
    let thread = |own: u32, other: u32| {
        let mut code = Code::default();
        for _ in 0..rounds {
            code.load(0, at(own)).load(1, at(other)).binary(0, r(0), BinaryOp::Add, r(1)).store(at(own), r(0));
        }
        code
    };
    let mut main = Code::default();
    main.load(0, at(0)).load(1, at(1));
    program(&[1, 1], vec![thread(0, 1), thread(1, 0), main])
}

/// A thread looks for the last cell that is 0 while each writer makes its cell one more than its neighbour.
pub fn lastzero(writers: usize) -> Program {
    let cells = writers as u32 + 1;
    let mut reader = Code::default();
    reader.set(0, c(writers as i64));
    let again = reader.here();
    reader.load(1, cell(0, cells, r(0)));
    let branch = reader.branch(r(1));
    let down = reader.here();
    reader.binary(0, r(0), BinaryOp::Sub, c(1)).jump(again);
    let end = reader.here();
    reader.patch(branch, down, end);
    let mut threads = vec![reader];
    for writer in 1..=writers as u32 {
        let mut code = Code::default();
        code.load(0, at(writer - 1)).binary(0, r(0), BinaryOp::Add, c(1)).store(at(writer), r(0));
        threads.push(code);
    }
    program(&vec![0; cells as usize], threads)
}

/// One store, many loads.
pub fn readers(count: usize) -> Program {
    let mut writer = Code::default();
    writer.store(at(0), c(1));
    let mut threads = vec![writer];
    for _ in 0..count {
        let mut code = Code::default();
        code.load(0, at(0));
        threads.push(code);
    }
    program(&[0], threads)
}

/// Not used by every program.
pub fn _thread(index: usize) -> ThreadId {
    ThreadId::new(index)
}
