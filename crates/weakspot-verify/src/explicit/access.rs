//! What a thread may still do to shared objects, from each of its instructions on.
//!
//! The partial-order reduction asks of the *other* threads: may you still read or write this? A backward fixpoint over
//! the control-flow graph answers it. An access to an array cell whose index is not a constant counts for the whole
//! array; a branch goes both ways.
//!
//! Objects are numbered: locations, then mutexes, then condition variables.
//!
//! | event | reads | writes |
//! |---|---|---|
//! | load | its cell | |
//! | store | | its cell |
//! | read-modify-write | its cell | its cell |
//! | lock, and getting the mutex back after `wait` | | the mutex |
//! | unlock | | |
//! | wait | the condition variable | |
//! | notify | | the condition variable |
//! | entering a critical block | | [`Objects::ENTRY`] |
//!
//! Unlocking is not an access: only the owner can do it, and until it does nobody else can lock, so it commutes with
//! everything the others *can* do. That it enables their locks is what the stubborn sets look at instead.

use weakspot_model::ids::{CondvarId, Loc, MutexId, Pc};
use weakspot_model::ir::{Instr, Operand, Place, Program, Thread};
use weakspot_model::liveness::successors;
use weakspot_model::local::Pause;

use super::config::Objects;

/// Numbers of the shared objects of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectNumbers {
    locations: u32,
    mutexes: u32,
}

impl ObjectNumbers {
    pub fn of(program: &Program) -> Self {
        Self { locations: program.locations.len() as u32, mutexes: program.mutexes.len() as u32 }
    }

    /// Cells of memory: locations, then owners of mutexes.
    pub fn cells(self) -> u32 {
        self.locations + self.mutexes
    }

    pub fn mutex(self, mutex: MutexId) -> u32 {
        self.locations + u32::from(mutex.0)
    }

    pub fn condvar(self, condvar: CondvarId) -> u32 {
        self.cells() + u32::from(condvar.0)
    }
}

/// Objects read and objects written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Accesses {
    pub reads: Objects,
    pub writes: Objects,
}

impl Accesses {
    pub const NONE: Self = Self { reads: Objects::NONE, writes: Objects::NONE };

    pub fn reading(object: u32) -> Self {
        Self { reads: Objects::only(object), ..Self::NONE }
    }

    pub fn writing(object: u32) -> Self {
        Self { writes: Objects::only(object), ..Self::NONE }
    }

    pub fn with(self, other: Self) -> Self {
        Self { reads: self.reads.with(other.reads), writes: self.writes.with(other.writes) }
    }

    /// What a resolved pause does.
    pub fn of_pause(pause: Pause, numbers: ObjectNumbers) -> Self {
        match pause {
            Pause::Load { loc } => Self::reading(loc.0),
            Pause::Store { loc, .. } => Self::writing(loc.0),
            Pause::Rmw { loc, .. } => Self::reading(loc.0).with(Self::writing(loc.0)),
            Pause::Lock(mutex) => Self::writing(numbers.mutex(mutex)),
            Pause::Wait { condvar, mutex } => Self::waiting(condvar, mutex, numbers),
            Pause::Notify { condvar, .. } => Self::writing(numbers.condvar(condvar)),
            Pause::Fence(_)
            | Pause::Unlock(_)
            | Pause::Choose { .. }
            | Pause::LeaveCritical
            | Pause::ThreadRegister { .. }
            | Pause::Spin
            | Pause::End => Self::NONE,
        }
    }

    fn of_instr(instr: &Instr, numbers: ObjectNumbers) -> Self {
        let each =
            |place: Place, access: fn(u32) -> Self| cells(place).map(|loc| access(loc.0)).fold(Self::NONE, Self::with);
        match *instr {
            Instr::Load { place, .. } => each(place, Self::reading),
            Instr::Store { place, .. } => each(place, Self::writing),
            Instr::Rmw { place, .. } => each(place, Self::reading).with(each(place, Self::writing)),
            Instr::Lock(mutex) => Self::writing(numbers.mutex(mutex)),
            Instr::Wait { condvar, mutex } => Self::waiting(condvar, mutex, numbers),
            Instr::Notify { condvar, .. } => Self::writing(numbers.condvar(condvar)),
            _ => Self::NONE,
        }
    }

    fn waiting(condvar: CondvarId, mutex: MutexId, numbers: ObjectNumbers) -> Self {
        Self::reading(numbers.condvar(condvar)).with(Self::writing(numbers.mutex(mutex)))
    }
}

/// The cells a place may name.
fn cells(place: Place) -> impl Iterator<Item = Loc> {
    let (base, len) = match place {
        Place::Fixed(loc) => (loc.0, 1),
        Place::Indexed { base, len, index: Operand::Const(index) } if (0..i64::from(len)).contains(&index) => {
            (base.0 + index as u32, 1)
        }
        Place::Indexed { base, len, .. } => (base.0, len),
    };
    (base..base + len).map(Loc)
}

/// The accesses of a thread from each instruction on.
#[derive(Debug)]
pub(crate) struct FutureAccesses(Vec<Accesses>);

impl FutureAccesses {
    pub fn of(thread: &Thread, numbers: ObjectNumbers) -> Self {
        let mut future = Self(vec![Accesses::NONE; thread.code.len()]);
        let mut changed = true;
        while changed {
            changed = false;
            for (pc, instr) in thread.code.iter().enumerate().rev() {
                let pc = Pc::new(pc);
                let ahead = successors(instr, pc).map(|next| future.beyond(thread, pc, next));
                let accesses = ahead.fold(Accesses::of_instr(instr, numbers), Accesses::with);
                changed |= future.0[pc.index()] != accesses;
                future.0[pc.index()] = accesses;
            }
        }
        future
    }

    /// What may happen when control goes from one instruction to the next one and on.
    fn beyond(&self, thread: &Thread, pc: Pc, next: Pc) -> Accesses {
        let enters = !thread.critical[pc.index()] && thread.critical[next.index()];
        let entry = if enters { Objects::ENTRY } else { Objects::NONE };
        self.0[next.index()].with(Accesses { writes: entry, ..Accesses::NONE })
    }

    /// What a thread may do that rests at `pause`, which is the instruction at `pc`.
    pub fn ahead_of(&self, thread: &Thread, pc: Pc, pause: Pause, numbers: ObjectNumbers) -> Accesses {
        match pause {
            Pause::Spin | Pause::End => Accesses::NONE,
            _ => Accesses::of_pause(pause, numbers).with(self.beyond(thread, pc, Pc(pc.0 + 1))),
        }
    }
}
