//! Happens-before of the C11 orderings, and data races.
//!
//! Every run is one SC interleaving, so a read reads the newest write of its object and one clock for each object is
//! enough: what a thread learns that reads the newest write with acquire. Release sequences: a read-modify-write hands
//! on what its predecessor released; a plain store does not. `SeqCst` counts as `AcqRel`: the order in which SC executes
//! things is *not* a synchronisation of the program.
//!
//! # Not before somebody asks
//! Clocks are needed only where they are compared, and many models never compare any. So what happens is written down
//! ([`Deed`]s, in order) and the clocks are brought up to date by whoever asks.
//!
//! Clocks are compared only where plain memory is accessed ([`super::Tracked`]). A race is reported with both places. It
//! is exact for each trace: happens-before depends on reads-from and release sequences alone, not on the interleaving.

mod narrow;
mod questions;

use super::Place;
use super::objects::NO_BIRTH;
use crate::failure::PlainMoment;
pub(crate) use questions::{Began, Marked, Question};

/// No clock.
const NO_CLOCK: u32 = u32::MAX;

/// How an operation synchronises. (In the order of the standard library's, which makes one from the other quickly.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Not at all.
    Relaxed,
    /// With those that read what it writes.
    Release,
    /// With the writes it reads from.
    Acquire,
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

/// Entries of a clock that are handled together.
const LANES: usize = 4;
type Lanes = [u32; LANES];

/// Clocks of the same width. Most models have at most [`LANES`] threads, and then a clock is one register.
#[derive(Debug)]
struct Clocks {
    stride: usize,
    lanes: Vec<Lanes>,
}

impl Clocks {
    fn new(threads: usize) -> Self {
        Self { stride: threads.div_ceil(LANES), lanes: Vec::new() }
    }

    fn rows(&self) -> usize {
        self.lanes.len() / self.stride
    }

    #[inline]
    fn row(&self, row: u32) -> &[Lanes] {
        if self.stride == 1 {
            return std::slice::from_ref(&self.lanes[row as usize]);
        }
        let start = row as usize * self.stride;
        &self.lanes[start..start + self.stride]
    }

    #[inline]
    fn row_mut(&mut self, row: u32) -> &mut [Lanes] {
        if self.stride == 1 {
            return std::slice::from_mut(&mut self.lanes[row as usize]);
        }
        let start = row as usize * self.stride;
        &mut self.lanes[start..start + self.stride]
    }

    #[inline]
    fn entry(&self, row: u32, thread: u32) -> u32 {
        self.lanes.as_flattened()[row as usize * self.stride * LANES + thread as usize]
    }

    #[inline]
    fn tick(&mut self, row: u32, thread: u32) {
        self.lanes.as_flattened_mut()[row as usize * self.stride * LANES + thread as usize] += 1;
    }

    #[inline]
    fn resize(&mut self, rows: usize) {
        self.lanes.resize(rows * self.stride, [0; LANES]);
    }

    /// Joins one clock into another.
    #[inline]
    fn join_rows(&mut self, into: u32, from: u32) {
        for at in 0..self.stride {
            let other = self.lanes[from as usize * self.stride + at];
            join_lanes(&mut self.lanes[into as usize * self.stride + at], other);
        }
    }

    /// Makes room for more threads.
    fn widen(&mut self, threads: usize) {
        let stride = threads.div_ceil(LANES);
        if stride > self.stride {
            let (rows, old) = (self.rows(), self.stride);
            self.stride = stride;
            self.resize(rows);
            for row in (0..rows).rev() {
                // The rows before it are still where they were.
                self.lanes.copy_within(row * old..(row + 1) * old, row * stride);
                self.lanes[row * stride + old..(row + 1) * stride].fill([0; LANES]);
            }
        }
    }
}

#[inline]
fn join_lanes(into: &mut Lanes, from: Lanes) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(from);
    }
}

/// `into` becomes the least clock that is not before either.
#[inline]
fn join(into: &mut [Lanes], from: &[Lanes]) {
    if let ([into], &[from]) = (&mut *into, from) {
        return join_lanes(into, from);
    }
    for (into, &from) in into.iter_mut().zip(from) {
        join_lanes(into, from);
    }
}

/// An access to plain memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) thread: u32,
    /// The thread's time then.
    time: u32,
    pub(crate) place: Place,
    pub(crate) writes: bool,
    /// Events of the run before it.
    pub(crate) events: u32,
    pub(crate) began: Began,
}

/// What an access to plain memory races with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Racing {
    Access(Access),
    /// Its making, in this allocation.
    Making(u32),
}

/// Plain memory: its last write, and the reads since.
#[derive(Debug, Clone, Copy)]
struct Plain {
    /// The allocation it was made in.
    birth: u32,
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

/// Something that has happened.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// A thread has read the newest write of an object.
    Read(Sync),
    /// A thread has written an object.
    Write(Sync),
    /// The same, continuing a release sequence.
    Continue(Sync),
    /// A thread has read an object and written it at once.
    Update(Sync),
    /// A thread has passed a fence.
    Fence(Sync),
    /// A thread has started another one.
    Start,
    /// A thread knows that another one has ended.
    Join,
    /// Does everything that was released to an object happen before what the thread does next?
    Ask,
    /// What a thread knows is written down.
    Mark,
    /// A thread forgets what it has learnt since it asked a question, if the answer was no.
    Forget,
    /// A thread has allocated memory.
    Birth,
}

impl Deed {
    /// Does it access an object, and write it?
    fn accesses(self) -> Option<bool> {
        match self {
            Self::Read(_) => Some(false),
            Self::Write(_) | Self::Continue(_) | Self::Update(_) => Some(true),
            Self::Fence(_) | Self::Start | Self::Join => None,
            Self::Ask | Self::Mark | Self::Forget | Self::Birth => None,
        }
    }
}

/// A deed, whose it is, and the object or the other thread.
#[derive(Debug, Clone, Copy)]
struct Done {
    deed: Deed,
    thread: u32,
    other: u32,
    /// The thread's time before, once it is in the clocks.
    time: u32,
}

/// The clocks of a run.
#[derive(Debug)]
pub(crate) struct Causality {
    /// What has happened.
    done: Vec<Done>,
    /// How much of it is in the clocks.
    applied: usize,
    /// How many questions there were, and the answers to the first of them.
    questions: u32,
    answers: Vec<bool>,
    /// What was known to those who asked.
    asked: Clocks,
    /// Of the threads.
    threads: Clocks,
    /// Of the objects that have released something.
    objects: Clocks,
    /// Which of these clocks is that of an object.
    released: Vec<u32>,
    plains: Vec<Plain>,
    reads: Vec<Read>,
    /// Who has allocated memory, and the thread's time then.
    births: Vec<(u32, u32)>,
}

impl Causality {
    pub(crate) fn new() -> Self {
        Self {
            done: Vec::new(),
            applied: 0,
            questions: 0,
            answers: Vec::new(),
            asked: Clocks::new(1),
            threads: Clocks::new(1),
            objects: Clocks::new(1),
            released: Vec::new(),
            plains: Vec::new(),
            reads: Vec::new(),
            births: Vec::new(),
        }
    }

    /// Forgets everything but its memory: there is one thread again.
    pub(crate) fn restart(&mut self) {
        for clocks in [&mut self.threads, &mut self.objects, &mut self.asked] {
            clocks.stride = 1;
            clocks.lanes.clear();
        }
    }

    /// A new run.
    pub(crate) fn reset(&mut self) {
        self.done.clear();
        self.applied = 0;
        self.questions = 0;
        self.answers.clear();
        self.asked.lanes.clear();
        self.threads.lanes.fill([0; LANES]);
        if self.threads.lanes.is_empty() {
            self.threads.resize(ROWS_OF_A_THREAD as usize);
        }
        self.objects.lanes.clear();
        self.released.clear();
        self.plains.clear();
        self.reads.clear();
        self.births.clear();
        self.threads.tick(0, 0);
    }

    /// There are more threads.
    pub(crate) fn widen(&mut self, threads: usize) {
        self.threads.widen(threads);
        self.objects.widen(threads);
        self.asked.widen(threads);
        self.threads.resize(threads * ROWS_OF_A_THREAD as usize);
    }

    #[inline]
    fn note(&mut self, deed: Deed, thread: u32, other: u32) {
        self.done.push(Done { deed, thread, other, time: 0 });
    }

    /// A thread reads the newest write of an object.
    #[inline]
    pub(crate) fn read(&mut self, thread: u32, object: u32, sync: Sync) {
        self.note(Deed::Read(sync), thread, object);
    }

    /// A thread writes an object; `continues` a release sequence if it is a read-modify-write.
    #[inline]
    pub(crate) fn write(&mut self, thread: u32, object: u32, sync: Sync, continues: bool) {
        self.note(if continues { Deed::Continue(sync) } else { Deed::Write(sync) }, thread, object);
    }

    /// A thread reads the newest write of an object and writes it.
    #[inline]
    pub(crate) fn update(&mut self, thread: u32, object: u32, sync: Sync) {
        self.note(Deed::Update(sync), thread, object);
    }

    /// A fence.
    pub(crate) fn fence(&mut self, thread: u32, sync: Sync) {
        self.note(Deed::Fence(sync), thread, 0);
    }

    /// A thread is started.
    pub(crate) fn start(&mut self, parent: u32, child: u32) {
        self.note(Deed::Start, parent, child);
    }

    /// A thread has ended, and another one knows.
    pub(crate) fn join(&mut self, thread: u32, ended: u32) {
        self.note(Deed::Join, thread, ended);
    }

    /// A thread allocates memory.
    #[cfg_attr(
        not(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static"))),
        allow(dead_code)
    )]
    #[inline]
    pub(crate) fn born(&mut self, thread: u32) {
        self.note(Deed::Birth, thread, 0);
    }

    /// Does this allocation, counted from 0, happen before what the thread does next?
    pub(crate) fn knows_birth(&mut self, thread: u32, number: u32) -> bool {
        self.catch_up();
        self.is_after_birth(thread, number)
    }

    fn is_after_birth(&self, thread: u32, number: u32) -> bool {
        let (maker, time) = self.births[number as usize];
        self.threads.entry(Self::knows(thread), maker) >= time
    }

    /// A thread makes a store that is not in memory yet: the clock of what it releases, for the object to take later.
    pub(crate) fn issue(&mut self, thread: u32, sync: Sync) -> u32 {
        self.catch_up();
        let row = self.objects.rows() as u32;
        self.objects.lanes.extend_from_slice(self.threads.row(Self::source_of(thread, sync)));
        if sync.releases() {
            self.tick(thread);
        }
        row
    }

    /// Such a store has reached memory.
    pub(crate) fn commit(&mut self, object: u32, row: u32) {
        self.catch_up();
        *self.released_by(object) = row;
    }

    /// Brings the clocks up to date.
    #[inline]
    fn catch_up(&mut self) {
        if self.applied == self.done.len() {
            return;
        }
        if self.threads.stride == 1 {
            self.catch_up_narrow();
        } else {
            self.catch_up_wide();
        }
    }

    #[cold]
    fn catch_up_wide(&mut self) {
        let mut done = std::mem::take(&mut self.done);
        for Done { deed, thread, other, time } in &mut done[self.applied..] {
            let (thread, other) = (*thread, *other);
            *time = self.threads.entry(Self::knows(thread), thread);
            match *deed {
                Deed::Read(sync) => self.apply_read(thread, other, sync),
                Deed::Write(sync) => self.apply_write(thread, other, sync, false),
                Deed::Continue(sync) => self.apply_write(thread, other, sync, true),
                Deed::Update(sync) => {
                    self.apply_read(thread, other, sync);
                    self.apply_write(thread, other, sync, true);
                }
                Deed::Fence(sync) => self.apply_fence(thread, sync),
                Deed::Start => {
                    self.copy(Self::knows(other), Self::knows(thread));
                    self.tick(other);
                    self.tick(thread);
                }
                Deed::Join => self.threads.join_rows(Self::knows(thread), Self::knows(other)),
                Deed::Ask => {
                    let answer = self.is_after(thread, other);
                    self.write_down(thread, answer);
                }
                Deed::Mark => self.write_down(thread, true),
                Deed::Forget => self.forget_wide(thread, other),
                Deed::Birth => self.births.push((thread, *time)),
            }
        }
        self.applied = done.len();
        self.done = done;
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
        self.threads.tick(Self::knows(thread), thread);
    }

    fn copy(&mut self, into: u32, from: u32) {
        let stride = self.threads.stride;
        let from = from as usize * stride;
        self.threads.lanes.copy_within(from..from + stride, into as usize * stride);
    }

    /// Which clock of a thread its writes release.
    fn source_of(thread: u32, sync: Sync) -> u32 {
        if sync.releases() { Self::knows(thread) } else { Self::fenced(thread) }
    }

    /// The clock of an object.
    #[inline]
    fn released_by(&mut self, object: u32) -> &mut u32 {
        if self.released.len() <= object as usize {
            self.released.resize(object as usize + 1, NO_CLOCK);
        }
        &mut self.released[object as usize]
    }

    #[inline]
    fn apply_read(&mut self, thread: u32, object: u32, sync: Sync) {
        let released = *self.released_by(object);
        if released != NO_CLOCK {
            let into = if sync.acquires() { Self::knows(thread) } else { Self::unacquired(thread) };
            join(self.threads.row_mut(into), self.objects.row(released));
        }
    }

    fn apply_write(&mut self, thread: u32, object: u32, sync: Sync, continues: bool) {
        let released = *self.released_by(object);
        let from = self.threads.row(Self::source_of(thread, sync));
        if released == NO_CLOCK {
            if !sync.releases() && from.iter().flatten().all(|&time| time == 0) {
                return;
            }
            self.released[object as usize] = self.objects.rows() as u32;
            self.objects.lanes.extend_from_slice(from);
        } else if continues {
            join(self.objects.row_mut(released), from);
        } else {
            self.objects.row_mut(released).copy_from_slice(from);
        }
        if sync.releases() {
            self.tick(thread);
        }
    }

    fn apply_fence(&mut self, thread: u32, sync: Sync) {
        if sync.acquires() {
            self.threads.join_rows(Self::knows(thread), Self::unacquired(thread));
        }
        if sync.releases() {
            self.copy(Self::fenced(thread), Self::knows(thread));
            self.tick(thread);
        }
    }

    fn is_after(&mut self, thread: u32, object: u32) -> bool {
        let released = *self.released_by(object);
        released == NO_CLOCK || {
            let (released, known) = (self.objects.row(released), self.threads.row(Self::knows(thread)));
            released.iter().flatten().zip(known.iter().flatten()).all(|(released, known)| released <= known)
        }
    }

    /// New plain memory, made in this allocation.
    pub(crate) fn add_plain(&mut self, birth: u32) -> u32 {
        self.plains.push(Plain { birth, write: None, reads: u32::MAX });
        self.plains.len() as u32 - 1
    }

    fn happened_before(&self, access: &Access, thread: u32) -> bool {
        self.threads.entry(Self::knows(thread), access.thread) >= access.time
    }

    /// A thread that has accessed the object, or (with `written`) written it, in a way that does not happen before what this
    /// thread does next.
    pub(crate) fn unordered(&mut self, thread: u32, object: u32, written: bool) -> Option<u32> {
        self.catch_up();
        let conflicts = |done: &&Done| {
            let accesses = done.other == object && done.thread != thread;
            accesses && done.deed.accesses().is_some_and(|writes| writes || !written)
        };
        let knows = |done: &Done| self.threads.entry(Self::knows(thread), done.thread) >= done.time;
        self.done.iter().rev().filter(conflicts).find(|done| !knows(done)).map(|done| done.thread)
    }

    /// An access to plain memory; what it races with, if anything.
    pub(crate) fn access(
        &mut self,
        thread: u32,
        plain: u32,
        (writes, began): (bool, Began),
        moment: PlainMoment,
    ) -> Result<(), Racing> {
        self.catch_up();
        let Plain { birth, write, reads } = self.plains[plain as usize];
        match write {
            Some(write) if !self.happened_before(&write, thread) => return Err(Racing::Access(write)),
            // What happens after a write happens after the making, too.
            None if birth != NO_BIRTH && !self.is_after_birth(thread, birth) => return Err(Racing::Making(birth)),
            _ => {}
        }
        let time = self.threads.entry(Self::knows(thread), thread);
        let PlainMoment { place, events } = moment;
        let access = Access { thread, time, place, writes, events, began };
        if writes {
            self.reads_before(reads, thread).map_err(Racing::Access)?;
            self.plains[plain as usize] = Plain { birth, write: Some(access), reads: u32::MAX };
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
