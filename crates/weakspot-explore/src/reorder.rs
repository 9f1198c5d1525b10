//! Can a program be reordered at all? A look at its text before any exploration.
//!
//! A trace that is not sequentially consistent has a cycle of program order and conflicts between threads. In a
//! shortest one every program-order step leads from an access that conflicts with another thread's to one that does,
//! and some step (first, second) is not kept by the model. Under TSO `first` is then a plain store, `second` a load of
//! another cell, and nothing between them waits for the buffer; under PSO `second` may be a store behind no store fence,
//! too, or an atomic that does not wait for the whole buffer. (If both were of the same cell, coherence would give a
//! shorter cycle without the step.) So a program in which no thread can come from such a `first` to such a `second` is
//! store-buffer safe, and no monitor has to watch it.
//!
//! The search is over the control flow of each thread: the stores that may be pending before each instruction, by cell.
//! An array whose index is not a constant stands for all its cells.
//!
//! # Deliberately absent
//! Values. What this finds possible may still be impossible: the monitors decide.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::Pc;
use weakspot_model::ir::{FenceKind, Instr, Operand, Place, Program, Thread};
use weakspot_model::liveness::successors;

/// A set of memory cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CellSet(Vec<u64>);

impl CellSet {
    fn none(cells: usize) -> Self {
        Self(vec![0; cells.div_ceil(64)])
    }

    fn contains(&self, cell: usize) -> bool {
        self.0[cell / 64] >> (cell % 64) & 1 == 1
    }

    fn insert(&mut self, cell: usize) {
        self.0[cell / 64] |= 1 << (cell % 64);
    }

    fn remove(&mut self, cell: usize) {
        self.0[cell / 64] &= !(1 << (cell % 64));
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    /// Does it have a member that `also` has, other than this cell?
    fn meets_besides(&self, also: &Self, cell: usize) -> bool {
        self.0.iter().zip(&also.0).enumerate().any(|(index, (word, also))| {
            let own = if index == cell / 64 { 1 << (cell % 64) } else { 0 };
            word & also & !own != 0
        })
    }
}

/// The cells an instruction may mean.
fn cells_of(place: Place) -> std::ops::Range<usize> {
    match place {
        Place::Fixed(cell) => cell.index()..cell.index() + 1,
        Place::Indexed { base, len, index: Operand::Const(index) } if (0..i64::from(len)).contains(&index) => {
            let cell = base.index() + index as usize;
            cell..cell + 1
        }
        Place::Indexed { base, len, .. } => base.index()..base.index() + len as usize,
    }
}

/// What one thread, or several, may do to each cell.
#[derive(Debug, Clone)]
struct Footprint {
    accessed: CellSet,
    written: CellSet,
}

impl Footprint {
    fn none(cells: usize) -> Self {
        Self { accessed: CellSet::none(cells), written: CellSet::none(cells) }
    }

    fn add(&mut self, thread: &Thread) {
        for instr in &thread.code {
            let (place, writes) = match *instr {
                Instr::Load { place, .. } => (place, false),
                Instr::Store { place, .. } | Instr::Rmw { place, .. } => (place, true),
                _ => continue,
            };
            for cell in cells_of(place) {
                self.accessed.insert(cell);
                if writes {
                    self.written.insert(cell);
                }
            }
        }
    }
}

/// Stores that may be pending, by cell.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Buffered {
    /// Behind no store fence.
    loose: CellSet,
    /// All of them.
    all: CellSet,
}

impl Buffered {
    fn clear(&mut self) {
        self.loose.clear();
        self.all.clear();
    }

    /// After an instruction.
    fn follow(&mut self, instr: &Instr, model: MemoryModel) {
        match *instr {
            Instr::Store { place, .. } => cells_of(place).for_each(|cell| {
                self.loose.insert(cell);
                self.all.insert(cell);
            }),
            Instr::Rmw { place, drains_all, .. } if model == MemoryModel::Pso && !drains_all => {
                let cells = cells_of(place);
                if cells.len() == 1 {
                    self.loose.remove(cells.start);
                    self.all.remove(cells.start);
                }
            }
            Instr::Fence(FenceKind::StoreStore) => self.loose.clear(),
            Instr::Rmw { .. }
            | Instr::Fence(_)
            | Instr::Lock(_)
            | Instr::Unlock(_)
            | Instr::Wait { .. }
            | Instr::Notify { .. } => self.clear(),
            _ => {}
        }
    }

    /// May an instruction act before one of these stores, so that other threads can tell?
    fn are_passed(&self, instr: &Instr, model: MemoryModel, others: &Footprint) -> bool {
        let pso = model == MemoryModel::Pso;
        let (place, passed, noticed) = match *instr {
            Instr::Load { place, .. } => (place, &self.all, &others.written),
            Instr::Store { place, .. } if pso => (place, &self.loose, &others.accessed),
            Instr::Rmw { place, drains_all: false, .. } if pso => (place, &self.all, &others.accessed),
            _ => return false,
        };
        let mut noticed = cells_of(place).filter(|&cell| noticed.contains(cell));
        noticed.any(|cell| passed.meets_besides(&others.accessed, cell))
    }
}

/// May the model show an execution of the program that is not sequentially consistent? If not, the program is
/// store-buffer safe.
pub fn may_reorder(program: &Program, model: MemoryModel) -> bool {
    if model == MemoryModel::Sc {
        return false;
    }
    let cells = program.locations.len();
    program.threads.iter().enumerate().any(|(index, thread)| {
        let mut others = Footprint::none(cells);
        program.threads.iter().enumerate().filter(|&(other, _)| other != index).for_each(|(_, t)| others.add(t));
        thread_may_reorder(thread, model, cells, &others)
    })
}

/// How many pairs of a write and an access of another thread a monitor could ever name: of the same cell, and the access
/// not the first event of its thread. A search that has seen as many has seen all. Some monitors name stores only, some
/// name loads only.
pub fn possible_pairs(program: &Program, stores_only: bool, loads_only: bool) -> usize {
    let is_write = |instr: &Instr| match instr {
        Instr::Store { .. } => true,
        Instr::Rmw { .. } => !stores_only,
        _ => false,
    };
    let mut pairs = 0;
    for (index, thread) in program.threads.iter().enumerate() {
        let late = comes_after_an_event(thread);
        let is_named = |instr: &Instr| !loads_only || matches!(instr, Instr::Load { .. });
        let accesses = thread.code.iter().zip(late).filter(|&(instr, late)| late && is_named(instr));
        for cells in accesses.filter_map(|(instr, _)| place_of(instr)).map(cells_of) {
            let others = program.threads.iter().enumerate().filter(|&(other, _)| other != index);
            let writes = others.flat_map(|(_, other)| other.code.iter().filter(|instr| is_write(instr)));
            pairs += writes
                .filter_map(place_of)
                .map(cells_of)
                .filter(|written| written.start < cells.end && cells.start < written.end)
                .count();
        }
    }
    pairs
}

fn place_of(instr: &Instr) -> Option<Place> {
    match *instr {
        Instr::Load { place, .. } | Instr::Store { place, .. } | Instr::Rmw { place, .. } => Some(place),
        _ => None,
    }
}

/// For each instruction: may the thread have had an event before it?
fn comes_after_an_event(thread: &Thread) -> Vec<bool> {
    let mut late = vec![false; thread.code.len()];
    let pauses = |instr: &Instr| instr.is_event() || matches!(instr, Instr::Choose { .. } | Instr::LeaveCritical);
    let mut open: Vec<usize> = (0..thread.code.len()).filter(|&at| pauses(&thread.code[at])).collect();
    while let Some(at) = open.pop() {
        for next in successors(&thread.code[at], Pc::new(at)).map(Pc::index) {
            if !std::mem::replace(&mut late[next], true) {
                open.push(next);
            }
        }
    }
    late
}

fn thread_may_reorder(thread: &Thread, model: MemoryModel, cells: usize, others: &Footprint) -> bool {
    let nothing = Buffered { loose: CellSet::none(cells), all: CellSet::none(cells) };
    let mut before = vec![nothing; thread.code.len()];
    let mut changed: Vec<usize> = (0..thread.code.len()).rev().collect();
    while let Some(at) = changed.pop() {
        let instr = &thread.code[at];
        if before[at].are_passed(instr, model, others) {
            return true;
        }
        let mut after = before[at].clone();
        after.follow(instr, model);
        for next in successors(instr, Pc::new(at)).map(Pc::index) {
            let mut joined = before[next].clone();
            joined.loose.add_all(&after.loose);
            joined.all.add_all(&after.all);
            if joined != before[next] {
                before[next] = joined;
                changed.push(next);
            }
        }
    }
    false
}
