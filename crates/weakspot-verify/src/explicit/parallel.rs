//! How workers hand states to one another.
//!
//! A state belongs to the worker its hash names. Next states of another worker travel in batches over that worker's
//! channel. At the end of its part of a layer a worker sends everybody a mark; messages of one sender arrive in order,
//! so once the marks of all others are in, so are all states of the layer. Then everybody tells everybody whether it
//! has a next layer, and all come to the same conclusion. Nothing is counted, so nothing can be miscounted.
//!
//! Letting workers run ahead of each other, with a count of batches on their way to find the end, was tried: with two
//! workers on 7 million states it took a tenth more processor time than keeping in step, and the order was lost.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::board::Board;
use super::search::Worker;
use super::store::{StateStore, hash_row};

/// States of a batch.
const BATCH: usize = 256;

/// While waiting for the others, look up this often whether one of them is gone.
const PATIENCE: Duration = Duration::from_millis(100);

/// What workers tell each other.
enum Message<const W: usize> {
    /// States with their parents.
    States(Vec<([u32; W], u32)>),
    /// No more states of this layer.
    EndOfLayer,
    /// What this worker wants to do next.
    Next(Wish),
}

/// What a worker wants to do after a layer, weakest wish first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Wish {
    /// It has no states for another layer.
    Nothing,
    /// It has.
    GoOn,
    /// It knows a reason to stop.
    Stop,
}

/// A worker's end of all channels.
pub(crate) struct Exchange<const W: usize> {
    me: usize,
    senders: Vec<Sender<Message<W>>>,
    inbox: Receiver<Message<W>>,
    outgoing: Vec<Vec<([u32; W], u32)>>,
    /// Marks of the current layer received so far.
    marks: usize,
    /// Wishes received so far, and the strongest of them. A fast worker's wish may arrive before a slow worker's mark.
    wishes: usize,
    strongest: Wish,
}

impl<const W: usize> Exchange<W> {
    /// One end for each worker.
    pub fn connect(jobs: usize) -> Vec<Self> {
        let (senders, inboxes): (Vec<_>, Vec<_>) = (0..jobs).map(|_| channel()).unzip();
        let end = |(me, inbox)| Self {
            me,
            senders: senders.clone(),
            inbox,
            outgoing: (0..jobs).map(|_| Vec::new()).collect(),
            marks: 0,
            wishes: 0,
            strongest: Wish::Nothing,
        };
        inboxes.into_iter().enumerate().map(end).collect()
    }

    /// This worker.
    pub fn me(&self) -> usize {
        self.me
    }

    fn jobs(&self) -> usize {
        self.senders.len()
    }

    /// Which worker a state belongs to.
    pub fn owner(&self, hash: u64) -> usize {
        (((hash & 0xFFFF_FFFF) * self.jobs() as u64) >> 32) as usize
    }

    /// A number for a state of this worker that all workers understand.
    pub fn global(&self, index: usize) -> u32 {
        (index * self.jobs() + self.me) as u32
    }

    /// How many states a worker may own: [`Exchange::global`] has to fit, with room for what is on its way.
    pub fn most_states(&self) -> usize {
        let numbers = u32::MAX as usize / self.jobs();
        numbers.min(StateStore::<W>::MOST_ROWS) / 8 * 7
    }

    /// Hands states to their owners, sooner or later; `store` is this worker's own.
    pub fn send(&mut self, states: &[[u32; W]], parent: u32, store: &mut StateStore<W>, board: &Board<'_>) {
        if self.jobs() == 1 {
            self.outgoing[0].extend(states.iter().map(|&state| (state, parent)));
        } else {
            for state in states {
                let owner = self.owner(hash_row(state));
                self.outgoing[owner].push((*state, parent));
            }
        }
        for owner in 0..self.jobs() {
            if self.outgoing[owner].len() >= BATCH {
                self.dispatch(owner, store, board);
            }
        }
    }

    fn dispatch(&mut self, owner: usize, store: &mut StateStore<W>, board: &Board<'_>) {
        if owner == self.me {
            store.insert_batch(&self.outgoing[owner]);
            self.outgoing[owner].clear();
        } else if !self.outgoing[owner].is_empty() {
            let batch = std::mem::replace(&mut self.outgoing[owner], Vec::with_capacity(BATCH));
            board.on_the_way(size_of_val(&batch[..]) as u64);
            self.post(owner, Message::States(batch));
        }
    }

    /// A worker that is gone has panicked; the search as a whole will say so.
    fn post(&self, to: usize, message: Message<W>) {
        let _ = self.senders[to].send(message);
    }

    fn post_to_others(&self, message: impl Fn() -> Message<W>) {
        (0..self.jobs()).filter(|&other| other != self.me).for_each(|other| self.post(other, message()));
    }

    /// Takes in what has arrived.
    pub fn receive(&mut self, store: &mut StateStore<W>, board: &Board<'_>) {
        while let Ok(message) = self.inbox.try_recv() {
            self.take_in(message, store, board);
        }
    }

    fn take_in(&mut self, message: Message<W>, store: &mut StateStore<W>, board: &Board<'_>) {
        match message {
            Message::States(batch) => {
                store.insert_batch(&batch);
                board.arrived(size_of_val(&batch[..]) as u64);
            }
            Message::EndOfLayer => self.marks += 1,
            Message::Next(wish) => {
                self.wishes += 1;
                self.strongest = self.strongest.max(wish);
            }
        }
    }

    /// Sends what is left of this layer, and waits until all others have.
    pub fn finish_layer(&mut self, store: &mut StateStore<W>, board: &Board<'_>) {
        for owner in 0..self.jobs() {
            self.dispatch(owner, store, board);
        }
        self.post_to_others(|| Message::EndOfLayer);
        while self.marks + 1 < self.jobs() && !board.abandoned() {
            self.wait(store, board);
        }
        self.marks = 0;
    }

    /// Is there another layer for anybody, and does nobody want to stop? All workers get the same answer.
    pub fn agree_to_go_on(&mut self, has_next: bool, store: &mut StateStore<W>, board: &Board<'_>) -> bool {
        let wish = match (board.is_last_layer(), has_next) {
            (true, _) => Wish::Stop,
            (false, true) => Wish::GoOn,
            (false, false) => Wish::Nothing,
        };
        self.post_to_others(|| Message::Next(wish));
        while self.wishes + 1 < self.jobs() && !board.abandoned() {
            self.wait(store, board);
        }
        self.wishes = 0;
        let strongest = std::mem::replace(&mut self.strongest, Wish::Nothing).max(wish);
        strongest == Wish::GoOn && !board.abandoned()
    }

    fn wait(&mut self, store: &mut StateStore<W>, board: &Board<'_>) {
        match self.inbox.recv_timeout(PATIENCE) {
            Ok(message) => self.take_in(message, store, board),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

/// Runs all workers, the first on this thread.
pub(crate) fn run<const W: usize>(workers: &mut [Worker<'_, '_, W>], initial: &[u32; W]) {
    let Some((first, others)) = workers.split_first_mut() else { return };
    std::thread::scope(|scope| {
        for worker in others {
            scope.spawn(move || worker.run(initial));
        }
        first.run(initial);
    });
}
