//! What a thread does in the rounds of a loop, to be compared.

use crate::system::CellId;

/// Rounds that are enough to take a thread to do the same for ever once it has begun to do something else.
const FEWEST_OTHER_ROUNDS: u32 = 8;

/// What a thread did in one step, in a form that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    kind: StepKind,
    pub(super) cell: CellId,
    read: i64,
    /// What was written, if that is another value.
    pub(super) written: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepKind {
    Load,
    Store,
    Atomic,
    Other,
}

impl Step {
    pub(super) const NOTHING: Self = Self { kind: StepKind::Other, cell: CellId::MAX, read: 0, written: None };

    pub(super) fn load(cell: CellId, read: i64) -> Self {
        Self { kind: StepKind::Load, cell, read, written: None }
    }

    pub(super) fn store(cell: CellId, value: i64) -> Self {
        Self { kind: StepKind::Store, cell, read: 0, written: Some(value) }
    }

    pub(super) fn atomic(cell: CellId, read: i64, written: Option<i64>) -> Self {
        Self { kind: StepKind::Atomic, cell, read, written: written.filter(|&value| value != read) }
    }
}

/// Does a round do nothing but this, once or several times?
pub(super) fn repeats(steps: &[Step], part: &[Step]) -> bool {
    if part.is_empty() { steps.is_empty() } else { !steps.is_empty() && all_parts_are(steps, part) }
}

fn all_parts_are(steps: &[Step], part: &[Step]) -> bool {
    steps.chunks(part.len()).all(|chunk| chunk == part)
}

/// The shortest steps that a round is a repetition of.
pub(super) fn smallest_part(steps: &[Step]) -> &[Step] {
    let shorter = (1..steps.len()).filter(|len| steps.len().is_multiple_of(*len));
    let part = shorter.map(|len| &steps[..len]).find(|part| all_parts_are(steps, part));
    part.unwrap_or(steps)
}

/// The rounds of a loop from the first one on that is not like the last one of the graph.
pub(super) struct Other {
    part: Vec<Step>,
    rounds: u32,
    all_repeat: bool,
}

impl Other {
    pub(super) fn new(first: &[Step]) -> Self {
        Self { part: smallest_part(first).to_vec(), rounds: 1, all_repeat: true }
    }

    pub(super) fn see(&mut self, steps: &[Step]) {
        self.rounds += 1;
        self.all_repeat &= repeats(steps, &self.part);
    }

    /// Does the thread look at the same from then on?
    pub(super) fn goes_on(&self) -> bool {
        let only_looks = self.part.iter().all(|step| step.written.is_none());
        only_looks && self.all_repeat && self.rounds >= FEWEST_OTHER_ROUNDS
    }
}
