//! Happens-before of the C11 orderings, and data races.
//!
//! Every run is one SC interleaving, so a read reads the newest write of its object and one clock for each object is
//! enough: what a thread learns that reads the newest write with acquire. Release sequences: a read-modify-write hands
//! on what its predecessor released; a plain store does not. `SeqCst` counts as `AcqRel`: the order in which SC executes
//! things is *not* a synchronisation of the program.
//!
//! Clocks are compared only where plain memory is accessed ([`super::Tracked`]). A race is reported with both places. It
//! is exact for each trace: happens-before depends on reads-from and release sequences alone, not on the interleaving.

use weakspot_explore::clocks::ClockTable;

use super::Place;
use super::objects::{NO_CLOCK, Object};

/// How an operation synchronises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Not at all.
    Relaxed,
    /// With the writes it reads from.
    Acquire,
    /// With those that read what it writes.
    Release,
    /// Both.
    AcqRel,
}

impl Sync {
    fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcqRel)
    }

    fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcqRel)
    }
}

/// Clocks of each thread: what it knows, what it has read without acquiring, what its last release fence released.
const ROWS_OF_A_THREAD: u32 = 3;

/// An access to plain memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) thread: u32,
    /// The thread's time then.
    time: u32,
    pub(crate) place: Place,
    pub(crate) writes: bool,
}

/// Plain memory: its last write, and the reads since.
#[derive(Debug, Clone, Copy)]
struct Plain {
    write: Option<Access>,
    /// The newest in the list of reads, or `u32::MAX`.
    reads: u32,
}

/// A read, and the one before it in the list.
#[derive(Debug, Clone, Copy)]
struct Read {
    access: Access,
    previous: u32,
}

/// The clocks of a run.
#[derive(Debug)]
pub(crate) struct Causality {
    clocks: ClockTable,
    plains: Vec<Plain>,
    reads: Vec<Read>,
    threads: usize,
}

impl Causality {
    pub(crate) fn new() -> Self {
        Self { clocks: ClockTable::new(1), plains: Vec::new(), reads: Vec::new(), threads: 1 }
    }

    /// A new run.
    pub(crate) fn reset(&mut self) {
        self.clocks.reset(self.threads * ROWS_OF_A_THREAD as usize);
        self.plains.clear();
        self.reads.clear();
        self.clocks.row_mut(0)[0] = 1;
    }

    /// There is one more thread. Rows of objects move behind those of the threads.
    pub(crate) fn widen(&mut self, threads: usize) {
        let old = std::mem::replace(&mut self.clocks, ClockTable::new(threads));
        let old_threads = std::mem::replace(&mut self.threads, threads);
        let own = old_threads * ROWS_OF_A_THREAD as usize;
        self.clocks.reset(threads * ROWS_OF_A_THREAD as usize + old.rows() - own);
        for row in 0..old.rows() {
            let to = if row < own { row } else { row + (threads - old_threads) * ROWS_OF_A_THREAD as usize };
            self.clocks.row_mut(to as u32)[..old_threads].copy_from_slice(old.row(row as u32));
        }
    }

    /// How far the rows of objects have moved when the number of threads has changed.
    pub(crate) fn first_free_row(&self) -> u32 {
        self.threads as u32 * ROWS_OF_A_THREAD
    }

    fn knows(thread: u32) -> u32 {
        thread * ROWS_OF_A_THREAD
    }

    fn unacquired(thread: u32) -> u32 {
        thread * ROWS_OF_A_THREAD + 1
    }

    fn fenced(thread: u32) -> u32 {
        thread * ROWS_OF_A_THREAD + 2
    }

    /// The thread's time passes: what it does now is after what it released before.
    fn tick(&mut self, thread: u32) {
        self.clocks.row_mut(Self::knows(thread))[thread as usize] += 1;
    }

    fn copy(&mut self, into: u32, from: u32) {
        self.clocks.row_mut(into).fill(0);
        self.clocks.join_rows(into, from);
    }

    fn row_of(&mut self, object: &mut Object) -> u32 {
        if object.released == NO_CLOCK {
            object.released = self.clocks.rows() as u32 - self.first_free_row();
            self.clocks.push_zero();
        }
        object.released + self.first_free_row()
    }

    /// A thread reads the newest write of an object.
    pub(crate) fn read(&mut self, thread: u32, object: &Object, sync: Sync) {
        if object.released == NO_CLOCK {
            return;
        }
        let into = if sync.acquires() { Self::knows(thread) } else { Self::unacquired(thread) };
        let row = object.released + self.first_free_row();
        self.clocks.join_rows(into, row);
    }

    /// A thread writes an object; `continues` a release sequence if it is a read-modify-write.
    pub(crate) fn write(&mut self, thread: u32, object: &mut Object, sync: Sync, continues: bool) {
        let from = if sync.releases() { Self::knows(thread) } else { Self::fenced(thread) };
        if !sync.releases() && object.released == NO_CLOCK && self.clocks.row(from).iter().all(|&time| time == 0) {
            return;
        }
        let row = self.row_of(object);
        if !continues {
            self.clocks.row_mut(row).fill(0);
        }
        self.clocks.join_rows(row, from);
        if sync.releases() {
            self.tick(thread);
        }
    }

    /// A thread makes a store that is not in memory yet: the row of what it releases, for the object to take later.
    pub(crate) fn issue(&mut self, thread: u32, sync: Sync) -> u32 {
        let from = if sync.releases() { Self::knows(thread) } else { Self::fenced(thread) };
        self.clocks.push_copy(from);
        if sync.releases() {
            self.tick(thread);
        }
        self.clocks.rows() as u32 - 1 - self.first_free_row()
    }

    /// A fence.
    pub(crate) fn fence(&mut self, thread: u32, sync: Sync) {
        if sync.acquires() {
            self.clocks.join_rows(Self::knows(thread), Self::unacquired(thread));
        }
        if sync.releases() {
            self.copy(Self::fenced(thread), Self::knows(thread));
            self.tick(thread);
        }
    }

    /// A thread is started.
    pub(crate) fn start(&mut self, parent: u32, child: u32) {
        self.copy(Self::knows(child), Self::knows(parent));
        self.tick(child);
        self.tick(parent);
    }

    /// A thread has ended, and another one knows.
    pub(crate) fn join(&mut self, thread: u32, ended: u32) {
        self.clocks.join_rows(Self::knows(thread), Self::knows(ended));
    }

    /// Does everything that `earlier` has done happen before what `thread` does next?
    pub(crate) fn is_after(&self, thread: u32, earlier: &Object) -> bool {
        if earlier.released == NO_CLOCK {
            return true;
        }
        let row = self.clocks.row(earlier.released + self.first_free_row());
        weakspot_explore::clocks::at_most(row, self.clocks.row(Self::knows(thread)))
    }

    /// New plain memory.
    pub(crate) fn add_plain(&mut self) -> u32 {
        self.plains.push(Plain { write: None, reads: u32::MAX });
        self.plains.len() as u32 - 1
    }

    fn happened_before(&self, access: &Access, thread: u32) -> bool {
        self.clocks.entry(Self::knows(thread), access.thread as usize) >= access.time
    }

    /// An access to plain memory; the access it races with, if any.
    pub(crate) fn access(&mut self, thread: u32, plain: u32, writes: bool, place: Place) -> Result<(), Access> {
        let Plain { write, reads } = self.plains[plain as usize];
        if let Some(write) = write
            && !self.happened_before(&write, thread)
        {
            return Err(write);
        }
        let time = self.clocks.entry(Self::knows(thread), thread as usize);
        let access = Access { thread, time, place, writes };
        if writes {
            self.reads_before(reads, thread)?;
            self.plains[plain as usize] = Plain { write: Some(access), reads: u32::MAX };
        } else {
            self.note_read(plain, access);
        }
        Ok(())
    }

    /// A read that races with a write by this thread, if any.
    fn reads_before(&self, newest: u32, thread: u32) -> Result<(), Access> {
        let mut read = newest;
        while read != u32::MAX {
            let Read { access, previous } = self.reads[read as usize];
            if !self.happened_before(&access, thread) {
                return Err(access);
            }
            read = previous;
        }
        Ok(())
    }

    fn note_read(&mut self, plain: u32, access: Access) {
        let newest = self.plains[plain as usize].reads;
        let mut read = newest;
        while read != u32::MAX {
            let known = &mut self.reads[read as usize];
            if known.access.thread == access.thread {
                known.access = access;
                return;
            }
            read = known.previous;
        }
        self.reads.push(Read { access, previous: newest });
        self.plains[plain as usize].reads = self.reads.len() as u32 - 1;
    }
}
