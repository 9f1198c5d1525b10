//! The clocks of events that come after one that was not put at the end.

use super::rows::{copy_masked, exceeds_besides};
use super::{Event, Graph, NONE};

impl Graph {
    /// The scratch row is the clock of the newest event, which happens before `from`: so it does before everything
    /// after `from`.
    #[inline(never)]
    pub(super) fn propagate(&mut self, from: u32) {
        let Event { thread: from_thread, index: from_index, .. } = *self.event(from);
        let newest = self.events.len() as u32 - 1;
        let unchanged = self.trail.len();
        for end in &self.threads {
            let mut event = end.last;
            while event != NONE && self.happens_before.entry(event, from_thread as usize) > from_index {
                if event != newest {
                    self.trail.push(event);
                }
                event = self.events[event as usize].po_prev;
            }
        }
        // Most events that come before others bring nothing along that those do not come after already.
        let Event { thread, index, .. } = self.events[newest as usize];
        let is_alone = !exceeds_besides(&self.scratch, self.happens_before.row(from), thread as usize);
        if self.watching.is_anything() {
            self.put_answers_aside(from, (from_thread, from_index), unchanged, is_alone);
        }
        let changed = &self.trail[unchanged..];
        self.happens_before.copy_to(changed, &mut self.trail_rows);
        if is_alone {
            self.happens_before.set_all(changed, thread as usize, index + 1);
        } else if self.watched {
            // Relaxed happens-before goes on from an event only if it led there.
            copy_masked(&mut self.strict_scratch, &self.scratch, &self.strict);
            let column = self.threads.len() + from_thread as usize;
            self.happens_before.join_either(changed, column, from_index, &self.scratch, &self.strict_scratch);
        } else {
            self.happens_before.join_all(changed, &self.scratch);
        }
    }

    /// Takes back what was changed since the trail had this length.
    pub(super) fn unwind(&mut self, trail: usize) {
        self.happens_before.copy_back(&self.trail[trail..], &self.trail_rows);
        self.trail_rows.truncate(trail * self.happens_before.stride());
        self.trail.truncate(trail);
    }
}
