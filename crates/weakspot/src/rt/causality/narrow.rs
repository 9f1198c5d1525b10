//! Catching up where a clock is one register: in models of up to four threads, which most are.
//!
//! This is done in every run for all that has happened in it, so it is written out: no row is looked for, none is gone
//! through in a loop. It does what `Causality::catch_up_wide` does.

use super::{Causality, Deed, Done, LANES, Lanes, NO_CLOCK, ROWS_OF_A_THREAD, Sync, join_lanes};

/// The clocks of a run.
struct Narrow<'c> {
    threads: &'c mut [Lanes],
    objects: &'c mut Vec<Lanes>,
    released: &'c mut Vec<u32>,
}

fn knows(thread: u32) -> usize {
    (thread * ROWS_OF_A_THREAD) as usize
}

fn unacquired(thread: u32) -> usize {
    knows(thread) + 1
}

fn fenced(thread: u32) -> usize {
    knows(thread) + 2
}

impl Narrow<'_> {
    #[inline]
    fn time(&self, thread: u32) -> u32 {
        self.threads[knows(thread)][thread as usize % LANES]
    }

    #[inline]
    fn tick(&mut self, thread: u32) {
        self.threads[knows(thread)][thread as usize % LANES] += 1;
    }

    #[inline]
    fn released(&self, object: u32) -> Option<Lanes> {
        let released = *self.released.get(object as usize)?;
        if released == NO_CLOCK { None } else { Some(self.objects[released as usize]) }
    }

    #[inline]
    fn read(&mut self, thread: u32, object: u32, sync: Sync) {
        if let Some(released) = self.released(object) {
            let into = if sync.acquires() { knows(thread) } else { unacquired(thread) };
            join_lanes(&mut self.threads[into], released);
        }
    }

    #[inline]
    fn write(&mut self, thread: u32, object: u32, sync: Sync, continues: bool) {
        let from = self.threads[if sync.releases() { knows(thread) } else { fenced(thread) }];
        if self.released.len() <= object as usize {
            self.released.resize(object as usize + 1, NO_CLOCK);
        }
        let released = &mut self.released[object as usize];
        if *released == NO_CLOCK {
            if !sync.releases() && from == [0; LANES] {
                return;
            }
            *released = self.objects.len() as u32;
            self.objects.push(from);
        } else if continues {
            join_lanes(&mut self.objects[*released as usize], from);
        } else {
            self.objects[*released as usize] = from;
        }
        if sync.releases() {
            self.tick(thread);
        }
    }

    fn fence(&mut self, thread: u32, sync: Sync) {
        if sync.acquires() {
            let read = self.threads[unacquired(thread)];
            join_lanes(&mut self.threads[knows(thread)], read);
        }
        if sync.releases() {
            self.threads[fenced(thread)] = self.threads[knows(thread)];
            self.tick(thread);
        }
    }

    fn is_after(&self, thread: u32, object: u32) -> bool {
        let known = self.threads[knows(thread)];
        self.released(object)
            .is_none_or(|released| released.iter().zip(known).all(|(&released, known)| released <= known))
    }
}

impl Causality {
    pub(super) fn catch_up_narrow(&mut self) {
        let Self { done, applied, answers, threads, objects, released, births, .. } = self;
        let mut clocks = Narrow { threads: &mut threads.lanes, objects: &mut objects.lanes, released };
        for Done { deed, thread, other, time } in &mut done[*applied..] {
            let (thread, other) = (*thread, *other);
            *time = clocks.time(thread);
            match *deed {
                Deed::Read(sync) => clocks.read(thread, other, sync),
                Deed::Write(sync) => clocks.write(thread, other, sync, false),
                Deed::Continue(sync) => clocks.write(thread, other, sync, true),
                Deed::Update(sync) => {
                    clocks.read(thread, other, sync);
                    clocks.write(thread, other, sync, true);
                }
                Deed::Fence(sync) => clocks.fence(thread, sync),
                Deed::Start => {
                    clocks.threads[knows(other)] = clocks.threads[knows(thread)];
                    clocks.tick(other);
                    clocks.tick(thread);
                }
                Deed::Join => {
                    let ended = clocks.threads[knows(other)];
                    join_lanes(&mut clocks.threads[knows(thread)], ended);
                }
                Deed::Ask => answers.push(clocks.is_after(thread, other)),
                Deed::Birth => births.push((thread, *time)),
            }
        }
        *applied = done.len();
    }
}
