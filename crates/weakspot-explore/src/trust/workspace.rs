//! The memory of a search, used by the next one: setting it up takes longer than a small search.

use super::{Explorer, Frame};
use crate::graph::Graph;
use crate::linearise::Lineariser;
use crate::system::{Repeated, System};

/// Memory that an explorer has used, for the next one.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(super) frames: Vec<Frame>,
    pub(super) lineariser: Lineariser,
    pub(super) map: Vec<u32>,
    pub(super) script: Vec<Repeated>,
}

/// Frames whose memory is kept for the next explorer.
const FRAMES_TO_KEEP: usize = 32;
/// How large their graphs may be.
const BYTES_TO_KEEP: usize = 1 << 17;

impl Workspace {
    /// With one frame at least, and nothing to come back to.
    pub(super) fn emptied(mut self) -> Self {
        for frame in &mut self.frames {
            frame.items.clear();
            frame.order.clear();
        }
        if self.frames.is_empty() {
            self.frames.push(Frame::new(Graph::new(0, std::iter::empty())));
        }
        self
    }
}

impl<S: System> Explorer<'_, S> {
    /// The memory, for the next explorer.
    pub fn into_workspace(self) -> Workspace {
        let Self { mut frames, lineariser, map, script, .. } = self;
        frames.retain(|frame| frame.graph.bytes() <= BYTES_TO_KEEP);
        frames.truncate(FRAMES_TO_KEEP);
        Workspace { frames, lineariser, map, script }
    }
}
