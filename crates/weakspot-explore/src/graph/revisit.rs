//! The graph of a revisit: some events removed, one read given a new source.

use super::rows::Rows;
use super::{Event, Graph, NONE, Status};

impl Graph {
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.events.clone_from(&other.events);
        self.threads.clone_from(&other.threads);
        self.cells.clone_from(&other.cells);
        self.last_read.clone_from(&other.last_read);
        self.trail.clear();
        self.trail_rows.clear();
        if self.watching != other.watching || self.strict != other.strict {
            (self.watching, self.watched) = (other.watching, other.watched);
            self.scratch.clone_from(&other.scratch);
            self.strict.clone_from(&other.strict);
            self.happens_before = Rows::new(0);
            self.happens_before.copy_prefix(&other.happens_before, 0);
        }
    }

    /// Becomes `from` without the events that were added after `read` and do not cause its newest event, a write,
    /// which `read` then reads and which stands after `after` in coherence. Happens-before is not computed.
    ///
    /// The caller has checked that no remaining event reads a removed one.
    pub(crate) fn become_revisit(&mut self, from: &Self, read: u32, after: u32, map: &mut Vec<u32>) {
        let write = from.len() - 1;
        self.copy_from(from);
        self.unlink(write);
        map.clear();
        let mut removed = 0;
        for id in read..=write {
            let kept = id == read || from.causes(id, write);
            map.push(if kept { id - removed } else { NONE });
            removed += u32::from(!kept);
        }
        for id in (read + 1..write).rev() {
            if map[(id - read) as usize] == NONE {
                self.detach(id);
            }
        }
        self.link(write, after);
        let value = self.event(write).value;
        let event = self.event_mut(read);
        (event.source, event.value, event.stuck, event.has_write) = (write, value, false, false);
        let event = *self.event(read);
        self.event_mut(read).asked_about = self.is_asked_about(&event);
        let Event { thread, before, phase, .. } = event;
        let end = self.thread_mut(thread as usize);
        (end.token, end.phase, end.status) = (before, phase, Status::Live);
        self.causes.copy_prefix(&from.causes, read as usize);
        for id in read..=write {
            if map[(id - read) as usize] != NONE {
                self.causes.push(from.causes.row(id));
            }
        }
        if removed > 0 {
            self.renumber(read, map);
        }
        self.note_early_readers();
        let (read_event, write) = (*self.event(read), self.len() - 1);
        self.causes.row_mut(read).fill(Default::default());
        self.causes.set(read, read_event.thread as usize, read_event.index + 1);
        if read_event.po_prev != NONE {
            self.causes.join_rows(read, read_event.po_prev);
        }
        self.causes.join_rows(read, write);
    }

    /// Closes the gaps in the numbering from `first` on.
    pub(super) fn renumber(&mut self, first: u32, map: &[u32]) {
        let new = |id: &mut u32| {
            // Nothing at all is not a number either.
            if id.wrapping_add(1) > first {
                *id = map[(*id - first) as usize];
            }
        };
        // Of what has a lower number, only these may be later.
        for event in &mut self.events[..first as usize] {
            new(&mut event.source);
            new(&mut event.co_prev);
            new(&mut event.co_next);
        }
        let mut next = first as usize;
        for (offset, &id) in map.iter().enumerate() {
            if id == NONE {
                continue;
            }
            let mut event = self.events[first as usize + offset];
            new(&mut event.source);
            new(&mut event.co_prev);
            new(&mut event.co_next);
            new(&mut event.po_prev);
            new(&mut event.read_prev);
            new(&mut event.last_load);
            new(&mut event.last_store);
            self.events[next] = event;
            next += 1;
        }
        self.events.truncate(next);
        for cell in &mut self.cells {
            new(&mut cell.first);
            new(&mut cell.last);
        }
        self.last_read.iter_mut().for_each(new);
        for thread in &mut self.threads {
            new(&mut thread.last);
        }
    }

    pub(super) fn note_early_readers(&mut self) {
        for event in &mut self.events {
            event.early_reader = false;
            event.trail = 0;
            event.touched = NONE;
            event.asked = 0;
            event.first_pending = NONE;
        }
        for id in 0..self.events.len() {
            let Event { kind, source, .. } = self.events[id];
            if kind.is_read() && source != NONE && source as usize > id {
                self.events[source as usize].early_reader = true;
            }
        }
    }
}
