//! What a thread knew when it did something, to be asked about later.
//!
//! Something comes before something else in every order if who did the latter knew all that was known to who did the former.
//! (What the doer itself had done by then is part of that.) So to write down a clock is enough, whoever acts.

use super::{Access, Causality, Deed, Done, LANES};

/// A question that need not be answered, and what was known to who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question(u32);

/// What a thread knew, and how much had been done by then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marked {
    knew: Question,
    done: usize,
}

/// When an access to plain memory began, which may take time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Began {
    /// Which of its thread's accesses it is.
    pub(crate) ordinal: u32,
    /// Events of the run before.
    pub(crate) since: u32,
}

impl Causality {
    /// What the thread knows now.
    pub(crate) fn mark_here(&mut self, thread: u32) -> Marked {
        Marked { knew: self.mark(thread), done: self.done.len() }
    }

    /// Did the last use of an object by a thread before this happen before it? Not if it is none that the clocks tell of.
    pub(crate) fn knew_use(&mut self, marked: Marked, thread: u32, object: u32) -> bool {
        self.catch_up();
        let is_use = |done: &&Done| (done.thread, done.other) == (thread, object) && done.deed.accesses().is_some();
        let last = self.done[..marked.done].iter().rev().find(is_use);
        last.is_some_and(|last| self.asked.entry(marked.knew.0, thread) >= last.time)
    }

    /// The same for an access to plain memory.
    pub(crate) fn knew_access(&mut self, marked: Marked, access: &Access) -> bool {
        self.catch_up();
        self.asked.entry(marked.knew.0, access.thread) >= access.time
    }

    /// The same for what was done when this was asked.
    pub(crate) fn was_known(&mut self, done: Question, marked: Marked) -> bool {
        self.is_before(done, marked.knew)
    }

    /// The last accesses of threads to plain memory: the last write, and the reads since.
    pub(crate) fn accesses_of(&self, plain: u32) -> impl Iterator<Item = Access> {
        let known = self.plains.get(plain as usize);
        let reads = std::iter::successors(known.and_then(|plain| self.reads.get(plain.reads as usize)), |read| {
            self.reads.get(read.previous as usize)
        });
        known.and_then(|plain| plain.write).into_iter().chain(reads.map(|read| read.access))
    }

    /// Does everything that was released to an object happen before what the thread does next? To be answered later.
    pub(crate) fn ask(&mut self, thread: u32, object: u32) -> Question {
        self.question(Deed::Ask, thread, object)
    }

    /// The thread does something that others may ask about.
    pub(crate) fn mark(&mut self, thread: u32) -> Question {
        self.question(Deed::Mark, thread, 0)
    }

    fn question(&mut self, deed: Deed, thread: u32, object: u32) -> Question {
        self.note(deed, thread, object);
        self.questions += 1;
        Question(self.questions - 1)
    }

    /// The answer to a question of this run.
    pub(crate) fn answer(&mut self, question: Question) -> bool {
        self.catch_up();
        self.answers[question.0 as usize]
    }

    /// If the answer was no, the thread knows again what it knew when it asked, apart from what it has done itself.
    pub(crate) fn forget_since(&mut self, thread: u32, question: Question) {
        self.note(Deed::Forget, thread, question.0);
    }

    /// Does what was done first, in this order, come before the other one in every order?
    pub(crate) fn is_before(&mut self, first: Question, second: Question) -> bool {
        self.catch_up();
        let (first, second) = (self.asked.row(first.0), self.asked.row(second.0));
        first.iter().flatten().zip(second.iter().flatten()).all(|(first, second)| first <= second)
    }

    /// Does it come before what the thread does next, in every order?
    pub(crate) fn is_known(&mut self, done: Question, thread: u32) -> bool {
        self.catch_up();
        let (done, known) = (self.asked.row(done.0), self.threads.row(Self::knows(thread)));
        done.iter().flatten().zip(known.iter().flatten()).all(|(done, known)| done <= known)
    }

    pub(super) fn write_down(&mut self, thread: u32, answer: bool) {
        self.answers.push(answer);
        self.asked.lanes.extend_from_slice(self.threads.row(Self::knows(thread)));
    }

    pub(super) fn forget_wide(&mut self, thread: u32, question: u32) {
        if self.answers[question as usize] {
            return;
        }
        let own = self.threads.entry(Self::knows(thread), thread);
        let row = self.threads.row_mut(Self::knows(thread));
        row.copy_from_slice(self.asked.row(question));
        row[thread as usize / LANES][thread as usize % LANES] = own;
    }
}
