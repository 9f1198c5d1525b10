//! What may stand where in a trace. Both readers ask here, so that both formats mean the same.

use weakspot_model::ir::FenceKind;

use super::CellSort;
use crate::happening::Kind;

/// What has been declared and begun so far.
#[derive(Debug, Default)]
pub struct Rules {
    files: u32,
    threads: u32,
    cells: Vec<CellSort>,
    places: u32,
    executing: bool,
    /// Executions that were begun.
    pub executions: u64,
    /// Events of all of them.
    pub events: u64,
}

/// More threads than this are not a program but damage.
const MOST_THREADS: u32 = 1 << 16;

/// A breach: what is wrong, without a full stop.
pub type Breach = Result<(), String>;

fn declared(what: &str, number: u64, count: u32) -> Breach {
    match (number < u64::from(count), count) {
        (true, _) => Ok(()),
        (false, 0) => Err(format!("there is no {what} {number}: none is declared so far")),
        (false, _) => Err(format!("there is no {what} {number}: the last one declared so far is {}", count - 1)),
    }
}

impl Rules {
    /// The number the next declaration of this kind gets.
    pub fn next_number(&self, what: &str) -> u32 {
        match what {
            "file" => self.files,
            "thread" => self.threads,
            "place" => self.places,
            _ => self.cells.len() as u32,
        }
    }

    pub fn declare_file(&mut self) {
        self.files += 1;
    }

    pub fn declare_thread(&mut self) -> Breach {
        self.threads += 1;
        if self.threads > MOST_THREADS { Err(format!("there are more than {MOST_THREADS} threads")) } else { Ok(()) }
    }

    pub fn declare_cell(&mut self, sort: CellSort) -> Breach {
        self.cells.push(sort);
        if self.cells.len() >= u32::MAX as usize { Err("there are too many locations".to_owned()) } else { Ok(()) }
    }

    pub fn declare_place(&mut self) -> Breach {
        self.places = self.places.checked_add(1).ok_or("there are too many places")?;
        Ok(())
    }

    pub fn file(&self, number: u64) -> Breach {
        declared("file", number, self.files)
    }

    pub fn thread(&self, number: u64) -> Breach {
        declared("thread", number, self.threads)
    }

    pub fn place(&self, number: u64) -> Breach {
        declared("place", number, self.places)
    }

    /// Is the cell declared, and does the kind of event fit it?
    pub fn cell(&self, number: u64, kind: Kind) -> Breach {
        let wanted = sort_of(kind);
        let Some(&sort) = usize::try_from(number).ok().and_then(|number| self.cells.get(number)) else {
            return declared(wanted.map_or("location", CellSort::name), number, self.cells.len() as u32);
        };
        match wanted {
            Some(wanted) if wanted != sort => Err(format!("{number} is a {}, not a {}", sort.name(), wanted.name())),
            _ => Ok(()),
        }
    }

    pub fn begin(&mut self) -> Breach {
        if self.executing {
            return Err("an execution begins inside another one".to_owned());
        }
        self.executing = true;
        self.executions += 1;
        Ok(())
    }

    pub fn event(&mut self) -> Breach {
        if !self.executing {
            return Err("there is an event outside of any execution".to_owned());
        }
        self.events += 1;
        Ok(())
    }

    pub fn end(&mut self) -> Breach {
        if !self.executing {
            return Err("an execution ends that has not begun".to_owned());
        }
        self.executing = false;
        Ok(())
    }

    /// The trace is closed with these totals.
    pub fn close(&self, executions: u64, events: u64) -> Breach {
        if self.executing {
            return Err("the trace ends inside an execution".to_owned());
        }
        if (executions, events) != (self.executions, self.events) {
            return Err(format!(
                "the trace should have {executions} executions and {events} events, but has {} and {}",
                self.executions, self.events
            ));
        }
        Ok(())
    }
}

/// What an event of this kind acts on; nothing for a fence.
pub fn sort_of(kind: Kind) -> Option<CellSort> {
    match kind {
        Kind::Load | Kind::Store | Kind::Rmw { .. } => Some(CellSort::Location),
        Kind::Lock | Kind::Unlock => Some(CellSort::Mutex),
        Kind::Wait | Kind::Wake | Kind::Notify { .. } | Kind::Leave => Some(CellSort::Condvar),
        Kind::Fence(_) => None,
    }
}

/// Which values an event of this kind can have: read, written.
pub fn values_of(kind: Kind) -> (bool, bool) {
    match kind {
        Kind::Load => (true, false),
        Kind::Store => (false, true),
        Kind::Rmw { writes, .. } => (true, writes),
        _ => (false, false),
    }
}

/// Every kind with its words in the text format. The index is its number in the binary one, but for the last: that is a `notify`
/// with a flag.
pub const KINDS: [(Kind, &str); 16] = [
    (Kind::Load, "load"),
    (Kind::Store, "store"),
    (Kind::Rmw { writes: true, drains_all: false }, "rmw"),
    (Kind::Rmw { writes: false, drains_all: false }, "rmw-failed"),
    (Kind::Rmw { writes: true, drains_all: true }, "rmw!"),
    (Kind::Rmw { writes: false, drains_all: true }, "rmw-failed!"),
    (Kind::Fence(FenceKind::Full), "fence"),
    (Kind::Fence(FenceKind::StoreStore), "fence-store-store"),
    (Kind::Fence(FenceKind::StoreLoad), "fence-store-load"),
    (Kind::Lock, "lock"),
    (Kind::Unlock, "unlock"),
    (Kind::Wait, "wait"),
    (Kind::Wake, "wake"),
    (Kind::Notify { wakes: true }, "notify"),
    (Kind::Leave, "leave"),
    (Kind::Notify { wakes: false }, "notify-nobody"),
];

/// The index of a kind in [`KINDS`].
#[inline]
pub const fn code_of(kind: Kind) -> u8 {
    match kind {
        Kind::Load => 0,
        Kind::Store => 1,
        Kind::Rmw { writes, drains_all } => 2 + !writes as u8 + 2 * drains_all as u8,
        Kind::Fence(FenceKind::Full) => 6,
        Kind::Fence(FenceKind::StoreStore) => 7,
        Kind::Fence(FenceKind::StoreLoad) => 8,
        Kind::Lock => 9,
        Kind::Unlock => 10,
        Kind::Wait => 11,
        Kind::Wake => 12,
        Kind::Notify { wakes: true } => 13,
        Kind::Leave => 14,
        Kind::Notify { wakes: false } => 15,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_table() {
        for (index, (kind, _)) in KINDS.iter().enumerate() {
            assert_eq!(usize::from(code_of(*kind)), index, "{kind:?}");
        }
    }
}
