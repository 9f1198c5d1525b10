//! The memory of a search, used by the next one: setting it up takes longer than a small search, and memory that is
//! touched for the first time longer than computing what stands in it.

use std::cell::RefCell;

use super::{Explorer, Frames};
use crate::linearise::Lineariser;
use crate::system::{Repeated, System};

/// Memory that an explorer has used, for the next one.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(super) frames: Frames,
    pub(super) lineariser: Lineariser,
    pub(super) map: Vec<u32>,
    pub(super) script: Vec<Repeated>,
}

/// Frames whose memory is kept for the next explorer.
const FRAMES_TO_KEEP: usize = 32;
/// How large their graphs may be together.
const BYTES_TO_KEEP: usize = 1 << 22;

thread_local! {
    /// What the last search of this thread left.
    static SPARE: RefCell<Option<Workspace>> = const { RefCell::new(None) };
}

impl Workspace {
    /// What the last search of this thread left, if anything.
    pub(crate) fn spare() -> Self {
        SPARE.with_borrow_mut(Option::take).unwrap_or_default()
    }

    /// Leaves it for the next search of this thread.
    pub(crate) fn leave(self) {
        SPARE.set(Some(self));
    }

    /// With nothing to come back to.
    pub(super) fn emptied(mut self) -> Self {
        for frame in &mut self.frames {
            frame.items.clear();
            frame.order.clear();
        }
        self
    }
}

impl<S: System> Explorer<'_, S> {
    /// The memory, for the next explorer.
    pub fn into_workspace(self) -> Workspace {
        let Self { frame, mut below, spare: mut frames, lineariser, map, script, .. } = self;
        frames.append(&mut below);
        frames.push(frame);
        let mut left = BYTES_TO_KEEP;
        frames.retain_mut(|frame| {
            frame.graph.set_above(None);
            let bytes = frame.graph.bytes();
            let fits = bytes <= left;
            left -= if fits { bytes } else { 0 };
            fits
        });
        frames.truncate(FRAMES_TO_KEEP);
        Workspace { frames, lineariser, map, script }
    }
}
