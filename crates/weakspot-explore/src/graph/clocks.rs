//! The happens-before clocks of a whole graph, computed anew.
//!
//! This is done for every revisit, so it is written out for the widths that rows have in practice: the compiler then
//! makes a few instructions of each join.

use super::event::Order;
use super::rows::{LANES, Lanes, join_lanes, masked, merged};
use super::{Graph, NONE};

/// The rows of a graph; `STRIDE` is how many lanes a row has, or 0 if that is not known before.
struct Table<'a, const STRIDE: usize> {
    lanes: &'a mut [Lanes],
    strict: &'a [Lanes],
    stride: usize,
}

impl<const STRIDE: usize> Table<'_, STRIDE> {
    #[inline]
    fn stride(&self) -> usize {
        if STRIDE == 0 { self.stride } else { STRIDE }
    }

    /// Joins what `keep` leaves of one row (it is given lanes of the row and of the mask) into another.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions where the stride is known")]
    fn join(&mut self, into: u32, from: u32, keep: impl Fn(&Lanes, &Lanes) -> Lanes) {
        let stride = self.stride();
        let (into, from) = (into as usize * stride, from as usize * stride);
        for at in 0..stride {
            let kept = keep(&self.lanes[from + at], &self.strict[at]);
            join_lanes(&mut self.lanes[into + at], &kept);
        }
    }

    /// Joins one row as far as it is about happens-before, and others as far as they are about relaxed happens-before.
    #[inline]
    fn join_merged(&mut self, into: u32, row: u32, others: [u32; 2]) {
        let stride = self.stride();
        for at in 0..stride {
            let lanes = |row: u32| self.lanes[row as usize * stride + at];
            let [first, second] = others.map(|other| if other == NONE { [0; LANES] } else { lanes(other) });
            let merged = merged(&lanes(row), &first, &second, &self.strict[at]);
            join_lanes(&mut self.lanes[into as usize * stride + at], &merged);
        }
    }

    #[inline]
    fn set(&mut self, row: u32, column: usize, entry: u32) {
        let start = row as usize * self.stride() * LANES;
        self.lanes.as_flattened_mut()[start + column] = entry as u16;
    }
}

/// Everything.
fn all(lanes: &Lanes, _: &Lanes) -> Lanes {
    *lanes
}

/// Happens-before.
fn strictly(lanes: &Lanes, mask: &Lanes) -> Lanes {
    masked(lanes, mask)
}

impl Graph {
    /// Computes the happens-before clocks anew, along a linearisation.
    pub(crate) fn compute_clocks(&mut self, order: &[u32]) {
        let mut rows = std::mem::take(&mut self.happens_before);
        rows.reset(self.events.len());
        let stride = rows.stride();
        let (lanes, strict) = (rows.lanes_mut(), self.strict.as_slice());
        match (stride, self.watched) {
            (1, true) => self.compute::<1, true>(Table { lanes, strict, stride }, order),
            (1, false) => self.compute::<1, false>(Table { lanes, strict, stride }, order),
            (2, true) => self.compute::<2, true>(Table { lanes, strict, stride }, order),
            (_, true) => self.compute::<0, true>(Table { lanes, strict, stride }, order),
            (_, false) => self.compute::<0, false>(Table { lanes, strict, stride }, order),
        }
        self.happens_before = rows;
    }

    fn compute<const STRIDE: usize, const WATCHED: bool>(&self, mut table: Table<'_, STRIDE>, order: &[u32]) {
        let width = self.threads.len();
        for &id in order {
            let event = self.event(id);
            let (thread, order) = (event.thread as usize, event.kind.order());
            if event.po_prev != NONE {
                self.join_program_order::<STRIDE, WATCHED>(&mut table, id, order);
            }
            table.set(id, thread, event.index + 1);
            if WATCHED && matches!(order, Order::Store | Order::Interlocked) {
                table.set(id, width + thread, event.index + 1);
            }
            if event.kind.is_read() {
                if event.source != NONE {
                    if WATCHED && self.is_forwarded(event) {
                        table.join(id, event.source, strictly);
                    } else {
                        table.join(id, event.source, all);
                    }
                }
                // From-read: the write that overwrites what is read comes later in the order and waits for this row.
                let overwritten_by = self.write_after(event.cell, event.source);
                if overwritten_by != NONE {
                    table.join(overwritten_by, id, all);
                }
            } else if event.kind.is_write() && event.co_prev != NONE {
                table.join(id, event.co_prev, all);
            }
        }
    }

    /// What comes before an event in program order: all of it in happens-before, as far as TSO keeps it in the other half.
    #[inline]
    fn join_program_order<const STRIDE: usize, const WATCHED: bool>(
        &self,
        table: &mut Table<'_, STRIDE>,
        id: u32,
        order: Order,
    ) {
        let before = self.event(id).po_prev;
        if !WATCHED {
            return table.join(id, before, all);
        }
        table.join_merged(id, before, self.kept_in_order(before, order));
    }
}
