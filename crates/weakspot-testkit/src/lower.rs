//! From a sketch to IR, independently of the front end, so that the two can be compared.

use weakspot_model::ids::{CondvarId, Loc, MutexId, Pc, Reg, Site, ThreadId};
use weakspot_model::ir::{BinaryOp, Instr, Location, Operand, Place, Program, Register, RmwOp, Thread, UnaryOp};
use weakspot_model::source::{SiteInfo, SourceFile, Span};

use crate::sketch::{Expr, Observed, Sketch, Stmt, cell_name};

/// Lowers a sketch whose text and statement places are already known.
pub(crate) fn lower(sketch: &Sketch, text: String, spans: &[Span]) -> Program {
    let source = SourceFile::new("sketch.weak", text);
    let place = |&span: &Span| SiteInfo { span, position: source.position(span.start as usize), label: None };
    let sites: Vec<SiteInfo> = spans.iter().map(place).collect();
    let mut next_site = 0;
    let threads = (0..sketch.threads.len()).map(|index| lower_thread(sketch, index, &mut next_site)).collect();
    let last_site = Site::new(sites.len().saturating_sub(1));
    Program {
        locations: sketch
            .cells
            .iter()
            .enumerate()
            .map(|(index, cell)| Location { name: cell_name(index), init: cell.init, range: cell.range })
            .collect(),
        mutexes: (0..sketch.mutexes).map(|index| format!("m{index}")).collect(),
        condvars: (0..sketch.condvars).map(|index| format!("c{index}")).collect(),
        threads,
        final_block: (!sketch.forbidden.is_empty()).then(|| lower_final(sketch, last_site)),
        messages: Vec::new(),
        sites: if sites.is_empty() { vec![place(&Span::default())] } else { sites },
        source,
    }
}

fn lower_thread(sketch: &Sketch, index: usize, next_site: &mut usize) -> Thread {
    let observed = |reg| sketch.forbidden.iter().any(|(o, _)| *o == Observed::Register(index, reg));
    let named = (0..sketch.registers).map(|reg| Register { name: Some(format!("r{reg}")), observed: observed(reg) });
    let temporaries = (0..TEMPORARIES).map(|_| Register { name: None, observed: false });
    let mut lowering = Lowering {
        code: Vec::new(),
        sites: Vec::new(),
        critical: Vec::new(),
        depth: 0,
        site: Site::new((*next_site).saturating_sub(1)),
        next_site,
        first_temporary: sketch.registers,
        breaks: Vec::new(),
    };
    lowering.block(&sketch.threads[index]);
    lowering.emit(Instr::End);
    Thread {
        name: format!("t{index}"),
        template: format!("t{index}"),
        index: 0,
        registers: named.chain(temporaries).collect(),
        code: lowering.code,
        sites: lowering.sites,
        critical: lowering.critical,
    }
}

/// Each statement needs at most two at a time.
const TEMPORARIES: usize = 2;

struct Lowering<'a> {
    code: Vec<Instr>,
    sites: Vec<Site>,
    critical: Vec<bool>,
    /// Critical blocks around the current statement.
    depth: usize,
    site: Site,
    next_site: &'a mut usize,
    first_temporary: usize,
    /// For each loop around: its `break`s, to be patched.
    breaks: Vec<Vec<usize>>,
}

impl Lowering<'_> {
    fn emit(&mut self, instr: Instr) -> usize {
        self.code.push(instr);
        self.sites.push(self.site);
        self.critical.push(self.depth > 0);
        self.code.len() - 1
    }

    fn here(&self) -> Pc {
        Pc::new(self.code.len())
    }

    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            let own_site = Site::new(*self.next_site);
            *self.next_site += 1;
            self.site = own_site;
            self.statement(stmt, own_site);
        }
    }

    /// The value of an expression, computed into a temporary where it needs one.
    fn operand(&mut self, expr: Expr, temporary: usize) -> Operand {
        let dst = Reg::new(self.first_temporary + temporary);
        let reg = |reg| Operand::Reg(Reg::new(reg));
        let mut binary = |op, left, right| {
            self.emit(Instr::Binary { dst, op, left, right: Operand::Const(right) });
            Operand::Reg(dst)
        };
        match expr {
            Expr::Const(value) => Operand::Const(value),
            Expr::Reg(index) => reg(index),
            Expr::Next(index) => {
                let sum = binary(BinaryOp::Add, reg(index), 1);
                binary(BinaryOp::Rem, sum, 3)
            }
            Expr::Eq(index, value) => binary(BinaryOp::Eq, reg(index), value),
            Expr::Ne(index, value) => binary(BinaryOp::Ne, reg(index), value),
        }
    }

    fn rmw(&mut self, dst: Option<usize>, cell: usize, op: RmwOp<Expr>) {
        let op = match op {
            RmwOp::Cas { old, new } => RmwOp::Cas { old: self.operand(old, 0), new: self.operand(new, 1) },
            RmwOp::CompareExchange { old, new } => {
                RmwOp::CompareExchange { old: self.operand(old, 0), new: self.operand(new, 1) }
            }
            RmwOp::Swap(value) => RmwOp::Swap(self.operand(value, 0)),
            RmwOp::Add(value) => RmwOp::Add(self.operand(value, 0)),
            RmwOp::Or(value) => RmwOp::Or(self.operand(value, 0)),
            RmwOp::And(value) => RmwOp::And(self.operand(value, 0)),
        };
        let place = Place::Fixed(Loc::new(cell));
        self.emit(Instr::Rmw { dst: dst.map(Reg::new), place, op, drains_all: false });
    }

    fn statement(&mut self, stmt: &Stmt, site: Site) {
        match stmt {
            Stmt::Load(reg, cell) => {
                self.emit(Instr::Load { dst: Reg::new(*reg), place: Place::Fixed(Loc::new(*cell)) });
            }
            Stmt::Store(cell, value) => {
                let value = self.operand(*value, 0);
                self.emit(Instr::Store { place: Place::Fixed(Loc::new(*cell)), value });
            }
            Stmt::Rmw(dst, cell, op) => self.rmw(*dst, *cell, *op),
            Stmt::Fence(kind) => {
                self.emit(Instr::Fence(*kind));
            }
            Stmt::Set(reg, value) => {
                let value = self.operand(*value, 0);
                self.emit(Instr::Set { dst: Reg::new(*reg), value });
            }
            Stmt::Choose(reg, lo, hi) => {
                let (lo, hi) = (Operand::Const(*lo), Operand::Const(*hi));
                self.emit(Instr::Choose { dst: Reg::new(*reg), lo, hi });
            }
            Stmt::Assume(cond) => {
                let cond = self.operand(*cond, 0);
                self.emit(Instr::Assume { cond });
            }
            Stmt::Assert(cond) => {
                let cond = self.operand(*cond, 0);
                self.emit(Instr::Assert { cond, message: None });
            }
            Stmt::Lock(mutex) => {
                self.emit(Instr::Lock(MutexId::new(*mutex)));
            }
            Stmt::Unlock(mutex) => {
                self.emit(Instr::Unlock(MutexId::new(*mutex)));
            }
            Stmt::Wait(condvar, mutex) => {
                self.emit(Instr::Wait { condvar: CondvarId::new(*condvar), mutex: MutexId::new(*mutex) });
            }
            Stmt::Notify(condvar, all) => {
                self.emit(Instr::Notify { condvar: CondvarId::new(*condvar), all: *all });
            }
            Stmt::Critical(body) => {
                self.emit(Instr::EnterCritical);
                self.depth += 1;
                self.block(body);
                self.site = site;
                self.emit(Instr::LeaveCritical);
                self.depth -= 1;
            }
            Stmt::If(cond, then, otherwise) => self.branch(*cond, then, otherwise),
            Stmt::While(cond, body) => self.repeat(Some(*cond), body, site),
            Stmt::Loop(body) => self.repeat(None, body, site),
            Stmt::Break => {
                let jump = self.emit(Instr::Jump { target: Pc(0) });
                self.breaks.last_mut().expect("invariant: `break` stands inside a loop").push(jump);
            }
        }
    }

    fn branch(&mut self, cond: Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let cond = self.operand(cond, 0);
        let branch = self.emit(Instr::Branch { cond, then: Pc(0), otherwise: Pc(0) });
        let then_start = self.here();
        self.block(then);
        let jump = self.emit(Instr::Jump { target: Pc(0) });
        let otherwise_start = self.here();
        self.block(otherwise);
        let end = self.here();
        self.code[branch] = Instr::Branch { cond, then: then_start, otherwise: otherwise_start };
        self.code[jump] = Instr::Jump { target: end };
    }

    fn repeat(&mut self, cond: Option<Expr>, body: &[Stmt], site: Site) {
        let start = self.here();
        let branch = cond.map(|cond| {
            let cond = self.operand(cond, 0);
            (cond, self.emit(Instr::Branch { cond, then: Pc(0), otherwise: Pc(0) }))
        });
        let body_start = self.here();
        self.breaks.push(Vec::new());
        self.block(body);
        self.site = site;
        self.emit(Instr::Jump { target: start });
        let end = self.here();
        if let Some((cond, branch)) = branch {
            self.code[branch] = Instr::Branch { cond, then: body_start, otherwise: end };
        }
        for jump in self.breaks.pop().expect("invariant: pushed above") {
            self.code[jump] = Instr::Jump { target: end };
        }
    }
}

/// `assert(!(a && b && …))`, every observable read once, from left to right.
fn lower_final(sketch: &Sketch, site: Site) -> Thread {
    let (all, value, equal) = (Reg(0), Reg(1), Reg(2));
    let mut code = vec![Instr::Set { dst: all, value: Operand::Const(1) }];
    for &(observed, expected) in &sketch.forbidden {
        code.push(match observed {
            Observed::Register(thread, reg) => {
                Instr::ThreadRegister { dst: value, thread: ThreadId::new(thread), register: Reg::new(reg) }
            }
            Observed::Cell(cell) => Instr::Load { dst: value, place: Place::Fixed(Loc::new(cell)) },
        });
        let binary = |dst, op, left, right| Instr::Binary { dst, op, left: Operand::Reg(left), right };
        code.push(binary(equal, BinaryOp::Eq, value, Operand::Const(expected)));
        code.push(binary(all, BinaryOp::BitAnd, all, Operand::Reg(equal)));
    }
    code.push(Instr::Unary { dst: all, op: UnaryOp::Not, value: Operand::Reg(all) });
    code.push(Instr::Assert { cond: Operand::Reg(all), message: None });
    code.push(Instr::End);
    Thread {
        name: "final".to_owned(),
        template: "final".to_owned(),
        index: 0,
        registers: vec![Register { name: None, observed: false }; 3],
        sites: vec![site; code.len()],
        critical: vec![false; code.len()],
        code,
    }
}
