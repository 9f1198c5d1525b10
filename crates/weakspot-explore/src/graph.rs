//! Execution graphs: events with program order, reads-from and coherence, in flat arrays.
//!
//! Events are numbered in the order in which they were added (the insertion order of `TruSt`), so going back is popping. The
//! three relations are links between events; coherence of a cell is a doubly linked list, so that a write can be put
//! anywhere and taken out again in constant time. Two clocks a row each are kept for every event: (po ∪ rf)\* and
//! happens-before, (po ∪ rf ∪ co ∪ fr)\*. Adding an event that is not last in coherence changes the happens-before
//! rows of events that are already there; the old rows go to a trail and come back when the event is popped.
//!
//! # Deliberately absent
//! The graph knows nothing of programs and never decides what to add; `trust` does.

mod answers;
mod buffered;
mod clocks;
mod event;
mod growth;
mod past;
mod propagate;
mod relaxed;
mod revisit;
mod rows;
mod watch;

use crate::system::CellId;

use answers::{Answers, Change};
use event::Order;
pub use event::{Event, EventKind, Manner, Phase, Status, ThreadEnd};
pub(crate) use past::PastOrder;
pub use rows::MOST_EVENTS;
use rows::{Lanes, Rows, copy_row, join, join_masked, make_row};
pub use watch::Watching;

/// No event; as the source of a read: the initial value.
pub const NONE: u32 = u32::MAX;

/// The ends of the coherence order of a cell, and its initial value.
#[derive(Debug, Clone, Copy)]
struct CellEnds {
    first: u32,
    last: u32,
    initial: i64,
}

impl CellEnds {
    fn new(initial: i64) -> Self {
        Self { first: NONE, last: NONE, initial }
    }
}

/// An execution graph.
#[derive(Debug, Clone)]
pub struct Graph {
    events: Vec<Event>,
    threads: Vec<ThreadEnd>,
    cells: Vec<CellEnds>,
    /// The last read of each cell by each thread.
    last_read: Vec<u32>,
    happens_before: Rows,
    /// (po ∪ rf)\*
    causes: Rows,
    /// Events whose happens-before rows have changed; the old rows are in `trail_rows`.
    trail: Vec<u32>,
    trail_rows: Vec<Lanes>,
    scratch: Vec<Lanes>,
    /// Tables of the [`revisit`]: the last write of each cell, how many events of each thread have gone, and how many
    /// are what they were.
    latest: Vec<u32>,
    gone: Vec<u32>,
    unchanged: Vec<Lanes>,
    /// Events that were not put at the end: reads of something that was overwritten, writes before others.
    aslant: Vec<u32>,
    /// Reads whose sources were added after them.
    revisited: Vec<u32>,
    strict_scratch: Vec<Lanes>,
    /// Lets the entries of happens-before through, and not those of relaxed happens-before.
    strict: Vec<Lanes>,
    /// Which question is asked of the accesses.
    watching: Watching,
    /// The number of that question.
    question: u8,
    /// Relaxed happens-before is kept, too.
    watched: bool,
    /// What is known of the accesses.
    answers: Answers,
    /// Bytes of the graphs that this one was made from, which wait until it is done with.
    below: usize,
}

impl Graph {
    /// No events.
    pub fn new(threads: usize, initial: impl Iterator<Item = i64>) -> Self {
        let mut graph = Self {
            events: Vec::new(),
            threads: Vec::new(),
            last_read: Vec::new(),
            cells: Vec::new(),
            happens_before: Rows::default(),
            causes: Rows::default(),
            trail: Vec::new(),
            trail_rows: Vec::new(),
            scratch: Vec::new(),
            latest: Vec::new(),
            gone: Vec::new(),
            unchanged: Vec::new(),
            aslant: Vec::new(),
            revisited: Vec::new(),
            strict_scratch: Vec::new(),
            strict: Vec::new(),
            watching: Watching::Nothing,
            question: 0,
            watched: false,
            answers: Answers::default(),
            below: 0,
        };
        graph.restart(threads, initial);
        graph
    }

    /// Forgets everything but its memory.
    pub(crate) fn restart(&mut self, threads: usize, initial: impl Iterator<Item = i64>) {
        self.events.clear();
        self.threads.clear();
        self.threads.resize(threads, ThreadEnd::START);
        self.cells.clear();
        self.cells.extend(initial.map(CellEnds::new));
        self.last_read.clear();
        self.last_read.resize(self.cells.len() * threads, NONE);
        self.happens_before.restart(threads);
        self.causes.restart(threads);
        self.trail.clear();
        self.trail_rows.clear();
        self.aslant.clear();
        self.revisited.clear();
        make_row(&mut self.scratch, 0, threads, 0);
        make_row(&mut self.strict_scratch, 0, threads, 0);
        make_row(&mut self.strict, threads, threads, u16::MAX);
        self.set_watching(Watching::Nothing);
        self.answers.reset();
        self.below = 0;
    }

    /// All events, in the order in which they were added.
    #[inline]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// One event.
    #[inline]
    pub fn event(&self, id: u32) -> &Event {
        &self.events[id as usize]
    }

    #[inline]
    pub(crate) fn event_mut(&mut self, id: u32) -> &mut Event {
        &mut self.events[id as usize]
    }

    /// Number of events.
    #[inline]
    pub fn len(&self) -> u32 {
        self.events.len() as u32
    }

    /// Nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Number of threads.
    pub fn width(&self) -> usize {
        self.threads.len()
    }

    /// Number of cells.
    pub fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// A thread, at the end of its events.
    #[inline]
    pub fn thread(&self, thread: usize) -> &ThreadEnd {
        &self.threads[thread]
    }

    #[inline]
    pub(crate) fn thread_mut(&mut self, thread: usize) -> &mut ThreadEnd {
        &mut self.threads[thread]
    }

    /// Is any thread stuck?
    #[inline]
    pub(crate) fn has_stuck_thread(&self) -> bool {
        self.threads.iter().any(|end| end.status == Status::Stuck)
    }

    /// The last write of a cell, or [`NONE`].
    #[inline]
    pub fn last_write(&self, cell: CellId) -> u32 {
        self.cells[cell as usize].last
    }

    /// The first write of a cell, or [`NONE`].
    #[inline]
    pub fn first_write(&self, cell: CellId) -> u32 {
        self.cells[cell as usize].first
    }

    /// The write after a source of a cell; the first write for the initial value.
    #[inline]
    pub fn write_after(&self, cell: CellId, source: u32) -> u32 {
        if source == NONE { self.cells[cell as usize].first } else { self.event(source).co_next }
    }

    /// The last read of a cell by a thread, or [`NONE`].
    #[inline]
    pub fn last_read(&self, cell: CellId, thread: usize) -> u32 {
        self.last_read[cell as usize * self.threads.len() + thread]
    }

    /// The value of a source of a cell.
    #[inline]
    pub fn value_of(&self, cell: CellId, source: u32) -> i64 {
        if source == NONE { self.cells[cell as usize].initial } else { self.event(source).value }
    }

    /// The value a cell ends with.
    pub fn final_value(&self, cell: CellId) -> i64 {
        self.value_of(cell, self.last_write(cell))
    }

    /// Is `earlier` before `later`, or equal to it, in (po ∪ rf)\*?
    #[inline]
    pub fn causes(&self, earlier: u32, later: u32) -> bool {
        let earlier = self.event(earlier);
        self.causes.entry(later, earlier.thread as usize) > earlier.index
    }

    /// Does `earlier` happen before `later`, or equal it?
    #[inline]
    pub fn happens_before(&self, earlier: u32, later: u32) -> bool {
        let earlier = self.event(earlier);
        self.happens_before.entry(later, earlier.thread as usize) > earlier.index
    }

    /// Does an event happen before what the thread does next?
    #[inline]
    pub fn happens_before_next_of(&self, earlier: u32, thread: usize) -> bool {
        let last = self.threads[thread].last;
        last != NONE && self.happens_before(earlier, last)
    }

    /// Bytes in use, with those of the graphs that wait until this one is done with.
    pub fn bytes(&self) -> usize {
        self.below
            + self.events.capacity() * size_of::<Event>()
            + self.happens_before.bytes()
            + self.causes.bytes()
            + self.trail_rows.capacity() * size_of::<Lanes>()
            + (self.trail.capacity() + self.last_read.capacity()) * size_of::<u32>()
    }

    /// Notes that a graph waits until this one is done with.
    pub(crate) fn set_above(&mut self, other: Option<&Self>) {
        self.below = other.map_or(0, Self::bytes);
    }

    /// Bytes of the graphs that wait until this one is done with.
    pub(crate) fn bytes_below(&self) -> usize {
        self.below
    }

    #[inline]
    fn blank(&self, thread: usize, kind: EventKind) -> Event {
        let end = &self.threads[thread];
        let (mut last_load, mut last_store) = self.last_in_order(end.last);
        let id = self.events.len() as u32;
        let order = kind.order();
        if matches!(order, Order::Load | Order::Interlocked) {
            last_load = id;
        }
        if matches!(order, Order::Store | Order::Interlocked) {
            last_store = id;
        }
        Event {
            kind,
            first_choice: true,
            stuck: false,
            has_write: false,
            notifies_all: false,
            early_reader: false,
            repeated: false,
            status: end.status,
            phase: end.phase,
            thread: thread as u32,
            index: end.len,
            cell: NONE,
            value: 0,
            source: NONE,
            co_prev: NONE,
            co_next: NONE,
            po_prev: end.last,
            read_prev: NONE,
            before: end.token,
            last_load,
            last_store,
            trail: self.trail.len() as u32,
            put_aside: self.answers.put_aside(),
        }
    }

    /// Fills the scratch row with the clock of what the thread does next, as far as program order goes.
    #[inline]
    fn start_clock(&mut self, event: &Event) {
        if event.po_prev == NONE {
            self.scratch.fill(Lanes::default());
        } else if self.watched {
            self.start_relaxed_clock(event, event.kind.order());
        } else {
            copy_row(&mut self.scratch, self.happens_before.row(event.po_prev));
        }
        self.set_own_entries(event);
    }

    /// An event comes after itself.
    #[inline]
    fn set_own_entries(&mut self, event: &Event) {
        let (width, own) = (self.threads.len(), event.thread as usize);
        let row = self.scratch.as_flattened_mut();
        row[own] = event.index as u16 + 1;
        if self.watched && matches!(event.kind.order(), Order::Store | Order::Interlocked) {
            row[width + own] = event.index as u16 + 1;
        }
    }

    #[inline]
    fn push_causes(&mut self, event: &Event) {
        if event.po_prev == NONE {
            self.causes.push_zero();
        } else {
            self.causes.push_copy(event.po_prev);
        }
        let id = self.events.len() as u32;
        if event.source != NONE {
            self.causes.join_rows(id, event.source);
        }
        self.causes.set(id, event.thread as usize, event.index + 1);
    }

    /// Appends an event whose happens-before clock is in the scratch row.
    #[inline]
    fn push(&mut self, event: Event) -> u32 {
        let id = self.events.len() as u32;
        self.push_causes(&event);
        self.happens_before.push(&self.scratch);
        let end = &mut self.threads[event.thread as usize];
        end.last = id;
        end.len += 1;
        end.status = Status::Live;
        self.events.push(event);
        id
    }

    /// Adds an event that touches no cell.
    pub fn add_local(&mut self, thread: usize, kind: EventKind, value: i64, first_choice: bool) -> u32 {
        let event = Event { first_choice, value, ..self.blank(thread, kind) };
        self.start_clock(&event);
        self.push(event)
    }

    /// Adds a read. The caller has checked that the write after the source does not happen before it.
    pub fn add_read(&mut self, thread: usize, kind: EventKind, cell: CellId, source: u32) -> u32 {
        let overwritten_by = self.write_after(cell, source);
        if overwritten_by != NONE {
            self.prepare_for_change(kind);
        }
        let id = self.push_read(thread, kind, cell, source);
        if overwritten_by != NONE {
            self.aslant.push(id);
            self.propagate(overwritten_by);
        }
        id
    }

    /// Adds an atomic whose source has been taken by another one. The graph is then no execution, and is there for the
    /// sake of the revisits only, which do not ask for the clocks of what comes after: those stay as they are.
    pub(crate) fn add_doomed(
        &mut self,
        thread: usize,
        (read, write): (EventKind, EventKind),
        cell: CellId,
        source: u32,
        value: i64,
    ) -> u32 {
        let read = self.push_read(thread, read, cell, source);
        self.event_mut(read).has_write = true;
        let write = self.push_write_part(read, write, value);
        self.aslant.extend([read, write]);
        write
    }

    #[inline]
    fn push_read(&mut self, thread: usize, kind: EventKind, cell: CellId, source: u32) -> u32 {
        let slot = cell as usize * self.threads.len() + thread;
        let event = Event {
            cell,
            value: self.value_of(cell, source),
            source,
            read_prev: self.last_read[slot],
            ..self.blank(thread, kind)
        };
        self.start_clock(&event);
        if source != NONE {
            self.join_source(&event);
        }
        let id = self.push(event);
        self.last_read[slot] = id;
        id
    }

    /// Joins the clock of the source of a read into the scratch row.
    #[inline]
    fn join_source(&mut self, read: &Event) {
        let row = self.happens_before.row(read.source);
        if self.is_forwarded(read) {
            join_masked(&mut self.scratch, row, &self.strict);
        } else {
            join(&mut self.scratch, row);
        }
    }

    /// Adds a write after `after` in coherence ([`NONE`]: first). The caller has checked that the write that comes
    /// after it does not happen before it.
    pub fn add_write(&mut self, thread: usize, kind: EventKind, cell: CellId, value: i64, after: u32) -> u32 {
        let before = self.write_after(cell, after);
        if before != NONE {
            self.prepare_for_change(kind);
        }
        let slot = cell as usize * self.threads.len() + thread;
        let read_prev = if kind.is_exclusive_write() { NONE } else { self.last_read[slot] };
        let event = Event { cell, value, read_prev, ..self.blank(thread, kind) };
        self.start_clock(&event);
        if after != NONE {
            join(&mut self.scratch, self.happens_before.row(after));
        }
        self.join_readers(cell, after, before == NONE);
        let id = self.push(event);
        self.link(id, after);
        if before != NONE {
            self.aslant.push(id);
            self.propagate(before);
        }
        id
    }

    /// Adds the write of an atomic, right after the source of its read, which is the newest event.
    pub(crate) fn add_write_part(&mut self, read: u32, kind: EventKind, value: i64) -> u32 {
        let Event { cell, source, .. } = *self.event(read);
        let before = self.write_after(cell, source);
        if before != NONE {
            self.prepare_for_change(kind);
        }
        let id = self.push_write_part(read, kind, value);
        if before != NONE {
            self.aslant.push(id);
            self.propagate(before);
        }
        id
    }

    /// The clock is that of the read, and what other readers of the source bring along.
    #[inline]
    fn push_write_part(&mut self, read: u32, kind: EventKind, value: i64) -> u32 {
        debug_assert_eq!(read + 1, self.len(), "nothing comes between the parts of an atomic");
        let Event { kind: read_kind, thread, cell, source, .. } = *self.event(read);
        let event = Event { cell, value, ..self.blank(thread as usize, kind) };
        if read_kind.order() == Order::Load {
            // A look may have overtaken a store, and this does not.
            self.start_clock(&event);
        } else {
            copy_row(&mut self.scratch, self.happens_before.row(read));
            self.set_own_entries(&event);
        }
        let before = self.write_after(cell, source);
        self.join_readers(cell, source, before == NONE);
        let id = self.push(event);
        self.link(id, source);
        id
    }

    /// Joins the clocks of the reads of a source into the scratch row. Of each thread the last one is enough.
    fn join_readers(&mut self, cell: CellId, source: u32, is_last: bool) {
        let width = self.threads.len();
        for slot in cell as usize * width..(cell as usize + 1) * width {
            let mut read = self.last_read[slot];
            // Reads of a thread never go back in coherence: where nothing is after the source, one look is enough.
            while read != NONE && self.event(read).source != source && !is_last {
                read = self.event(read).read_prev;
            }
            if read != NONE && self.event(read).source == source {
                join(&mut self.scratch, self.happens_before.row(read));
            }
        }
    }

    /// Puts a write after `after` in the coherence order of its cell.
    pub(crate) fn link(&mut self, write: u32, after: u32) {
        let cell = self.event(write).cell as usize;
        let before = self.write_after(cell as u32, after);
        let event = self.event_mut(write);
        (event.co_prev, event.co_next) = (after, before);
        if after == NONE {
            self.cells[cell].first = write;
        } else {
            self.event_mut(after).co_next = write;
        }
        if before == NONE {
            self.cells[cell].last = write;
        } else {
            self.event_mut(before).co_prev = write;
        }
    }

    /// Takes a write out of the coherence order of its cell.
    pub(crate) fn unlink(&mut self, write: u32) {
        let Event { cell, co_prev, co_next, .. } = *self.event(write);
        if co_prev == NONE {
            self.cells[cell as usize].first = co_next;
        } else {
            self.event_mut(co_prev).co_next = co_next;
        }
        if co_next == NONE {
            self.cells[cell as usize].last = co_prev;
        } else {
            self.event_mut(co_next).co_prev = co_prev;
        }
    }

    /// Takes the last event of a thread out of all links.
    fn detach(&mut self, id: u32) {
        let event = *self.event(id);
        if event.kind.is_write() {
            self.unlink(id);
        } else if event.kind.is_read() {
            let slot = event.cell as usize * self.threads.len() + event.thread as usize;
            self.last_read[slot] = event.read_prev;
        }
        self.threads[event.thread as usize] = ThreadEnd {
            last: event.po_prev,
            len: event.index,
            token: event.before,
            phase: event.phase,
            status: event.status,
        };
    }

    /// Takes back the newest events until `len` are left.
    pub fn truncate(&mut self, len: u32) {
        let Some(&Event { trail, put_aside, .. }) = self.events.get(len as usize) else { return };
        while self.events.len() as u32 > len {
            self.detach(self.events.len() as u32 - 1);
            self.events.pop();
        }
        while self.aslant.pop_if(|id| *id >= len).is_some() {}
        if self.watching.is_anything() {
            let rows = &self.happens_before;
            let concerns =
                |&Change { after: (thread, index), .. }: &Change, access| rows.entry(access, thread as usize) > index;
            self.answers.take_back(put_aside, len, concerns);
        }
        self.unwind(trail as usize);
        self.happens_before.truncate(len as usize);
        self.causes.truncate(len as usize);
    }
}
