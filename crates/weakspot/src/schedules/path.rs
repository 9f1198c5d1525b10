//! All schedules with few preemptions, one after the other.
//!
//! A schedule is a list of choices. The next one differs in the last of them that can be made in another way. What was known
//! before some of the choices is kept, so that the next schedule need not find it out again.

use weakspot_explore::buffered::Saved;
use weakspot_explore::monitor::Event;

use super::trace::{Seen, Trace};
use super::{Choose, Look, Options};

/// Choices from one snapshot to the next, and from one look at the trace to the next where there is nothing to choose:
/// both take time, too.
const BETWEEN: usize = 4;
/// Choices after which none are made any more: they take memory.
const LAST: usize = 1 << 12;

/// What is known before a choice.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) machine: Saved,
    /// Moves before it, what the log tells of them, and how many events of the monitor they were.
    pub(super) moves: usize,
    pub(super) log: usize,
    pub(super) events: usize,
    pub(super) held_back: Vec<Event>,
    pub(super) indices: Vec<u32>,
    pub(super) trace: Trace,
    /// The thread that has moved last.
    pub(super) last: Option<usize>,
    pub(super) yields: u64,
    preemptions: u32,
}

/// One choice of a schedule.
#[derive(Default)]
struct Choice {
    /// What there is to choose from.
    looks: Vec<Look>,
    /// Positions of the moves that may be taken.
    allowed: Vec<u32>,
    /// Which of them is.
    taken: usize,
    /// Moves before it.
    at: usize,
    /// What is known before it, if that is kept.
    snapshot: Option<Box<Snapshot>>,
}

/// The choices of one schedule, and how to get to the next.
#[derive(Default)]
pub(super) struct Path {
    most: u32,
    choices: Vec<Choice>,
    /// What there is to choose from now.
    looks: Vec<Look>,
    depth: usize,
    preemptions: u32,
    /// Traces that were seen, where those tell everything.
    seen: Option<Seen>,
    /// Nothing is kept: every schedule is run from its beginning.
    pub(super) is_forgetful: bool,
    /// For the choice that comes next.
    room: Option<Box<Snapshot>>,
    /// Snapshots and choices that nobody needs any more, for their memory.
    #[expect(clippy::vec_box, reason = "they move between choices")]
    spare: Vec<Box<Snapshot>>,
    spare_choices: Vec<Choice>,
}

impl Path {
    /// All schedules with at most so many preemptions; if traces tell everything, one of those that are the same.
    pub(super) fn new(most: u32, is_determined: bool) -> Self {
        Self { most, seen: is_determined.then(Seen::default), ..Self::default() }
    }

    /// Is there more than one way to go on?
    fn can_choose(&self, options: &Options) -> bool {
        options.costs.iter().filter(|&cost| self.preemptions + cost <= self.most).nth(1).is_some()
    }

    /// Begins anew: more is known, and other schedules are possible.
    pub(super) fn forget(&mut self) {
        self.choices.clear();
        if let Some(seen) = &mut self.seen {
            *seen = Seen::default();
        }
    }

    /// The next schedule; false if there is none.
    pub(super) fn advance(&mut self) -> bool {
        while let Some(choice) = self.choices.last_mut() {
            if choice.taken + 1 < choice.allowed.len() {
                choice.taken += 1;
                return true;
            }
            if let Some(mut choice) = self.choices.pop() {
                self.spare.extend(choice.snapshot.take());
                self.spare_choices.push(choice);
            }
        }
        false
    }
}

impl Choose for Path {
    fn choose(&mut self, Options { costs, .. }: &Options, taken: usize) -> usize {
        if self.depth == self.choices.len() {
            let is_allowed = |at: &u32| self.preemptions + costs[*at as usize] <= self.most;
            let mut choice = self.spare_choices.pop().unwrap_or_default();
            choice.allowed.clear();
            choice.allowed.extend((0..costs.len() as u32).filter(is_allowed));
            // Staying comes first: schedules with few preemptions are tried first.
            choice.allowed.sort_by_key(|&at| costs[at as usize]);
            std::mem::swap(&mut choice.looks, &mut self.looks);
            (choice.taken, choice.at, choice.snapshot) = (0, taken, self.room.take());
            self.choices.push(choice);
        }
        let Choice { allowed, taken, .. } = &self.choices[self.depth];
        let at = (allowed[*taken] as usize).min(costs.len() - 1);
        self.depth += 1;
        self.preemptions += costs[at];
        at
    }

    fn compare(&mut self, looks: &[Look]) -> Option<(Look, Look)> {
        let Some(before) = self.choices.get(self.depth) else {
            self.looks.clear();
            self.looks.extend_from_slice(looks);
            return None;
        };
        before.looks.iter().zip(looks).find(|(was, is)| !was.is_like(is)).map(|(was, is)| (*was, *is))
    }

    fn in_common(&self) -> usize {
        self.choices.last().map_or(0, |choice| choice.at)
    }

    fn is_known(&mut self, options: &Options, trace: impl FnOnce() -> u64) -> bool {
        let is_new = self.depth == self.choices.len();
        let is_asked = options.moves.len() > 1 && (self.can_choose(options) || self.depth.is_multiple_of(BETWEEN));
        is_new && is_asked && self.seen.as_mut().is_some_and(|seen| seen.is_known(trace(), self.preemptions))
    }

    fn begin(&mut self) -> Option<&Snapshot> {
        (self.depth, self.preemptions) = (0, 0);
        let kept = self.choices.iter().rposition(|choice| choice.snapshot.is_some())?;
        let snapshot = self.choices[kept].snapshot.as_deref()?;
        (self.depth, self.preemptions) = (kept, snapshot.preemptions);
        Some(snapshot)
    }

    /// What was kept is of no use, then, nor does a trace tell everything: the model does not repeat itself.
    fn begin_anew(&mut self) {
        (self.depth, self.preemptions) = (0, 0);
        (self.is_forgetful, self.seen) = (true, None);
        self.choices.iter_mut().for_each(|choice| choice.snapshot = None);
    }

    fn room(&mut self, options: &Options) -> Option<&mut Snapshot> {
        let is_wanted = !self.is_forgetful
            && self.depth == self.choices.len()
            && self.depth.is_multiple_of(BETWEEN)
            && self.depth < LAST;
        if !(is_wanted && self.can_choose(options)) {
            return None;
        }
        let snapshot = self.room.insert(self.spare.pop().unwrap_or_default());
        snapshot.preemptions = self.preemptions;
        Some(snapshot)
    }
}
