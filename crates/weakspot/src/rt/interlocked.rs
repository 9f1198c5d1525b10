//! Read-modify-writes: how they are posted, and what comes of them in a run that was given up.

use super::lane::{Effect, Operation, Probe};
use super::{Place, Runtime};

/// What a read-modify-write waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    /// For the whole own buffer under PSO too.
    pub(crate) drains_all: bool,
    /// For nothing, unless it writes: it looks first, and is a plain load where it comes to nothing.
    pub(crate) looks: bool,
}

impl Runtime {
    /// An atomic: the value it read. The caller writes memory afterwards if the probe says so for that value. Nothing: see
    /// [`Self::post_access`].
    pub(crate) fn rmw(
        &self,
        object: u32,
        drains_all: bool,
        probe: Probe<'_>,
        what: &'static str,
        place: Place,
    ) -> Option<u64> {
        self.rmw_that(false, object, Manner { drains_all, looks: false }, probe, what, place)
    }

    /// The same, if it may wait for another value, or look first.
    pub(crate) fn blocking_rmw(
        &self,
        object: u32,
        manner: Manner,
        probe: Probe<'_>,
        what: &'static str,
        place: Place,
    ) -> u64 {
        if self.has_debts() && (!manner.drains_all || manner.looks) {
            self.pay();
        }
        let found = self.rmw_that(true, object, manner, probe, what, place);
        found.expect("invariant: it does not take steps of the script")
    }

    #[inline]
    fn rmw_that(
        &self,
        may_block: bool,
        object: u32,
        Manner { drains_all, looks }: Manner,
        probe: Probe<'_>,
        what: &'static str,
        place: Place,
    ) -> Option<u64> {
        if !self.is_free() {
            // SAFETY: only the lifetime changes. The pointer is used while this thread is suspended in `post`, below,
            // and the probe outlives that.
            let probe = unsafe { std::mem::transmute::<Probe<'_>, Probe<'static>>(probe) };
            let operation = Operation::Rmw { object, drains_all, may_block, looks, probe };
            let result =
                if may_block { self.post(operation, what, place) } else { self.post_access(operation, what, place)? };
            if !self.is_free() {
                return Some(result as u64);
            }
        }
        loop {
            let (value, effect) = probe(None);
            let is_over = may_block && self.state().lanes[self.thread.get() as usize].may_time_out();
            if effect != Effect::Blocks || is_over || !self.give_way() {
                return Some(value);
            }
        }
    }
}
