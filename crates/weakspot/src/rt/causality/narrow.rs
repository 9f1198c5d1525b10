//! Catching up where a clock is one register: in models of up to four threads, which most are.
//!
//! This is done in every run for all that has happened in it, so it is written out: the clocks of a thread are looked for
//! once for each deed, no row is gone through in a loop, and an atomic that acquires and releases joins once. It does what
//! `Causality::catch_up_wide` does.

use super::{Causality, Deed, Done, LANES, Lanes, NO_CLOCK, ROWS_OF_A_THREAD, Sync, join_lanes};

/// The clocks of a thread, in the order of their rows: what it knows, what it has read without acquiring, what its last
/// release fence released.
type Own = [Lanes; ROWS_OF_A_THREAD as usize];
const KNOWS: usize = 0;
const UNACQUIRED: usize = 1;
const FENCED: usize = 2;

/// The clocks of the objects of a run.
struct Narrow<'c> {
    objects: &'c mut Vec<Lanes>,
    released: &'c mut Vec<u32>,
}

#[inline]
fn tick(own: &mut Own, thread: u32) {
    own[KNOWS][thread as usize % LANES] += 1;
}

/// What a write of the thread releases.
#[inline]
fn source(own: &Own, sync: Sync) -> Lanes {
    own[if sync.releases() { KNOWS } else { FENCED }]
}

impl Narrow<'_> {
    #[inline]
    fn released(&mut self, object: u32) -> Option<&mut Lanes> {
        let released = *self.released.get(object as usize)?;
        if released == NO_CLOCK { None } else { Some(&mut self.objects[released as usize]) }
    }

    #[inline]
    fn read(&mut self, own: &mut Own, object: u32, sync: Sync) {
        if let Some(released) = self.released(object) {
            join_lanes(&mut own[if sync.acquires() { KNOWS } else { UNACQUIRED }], *released);
        }
    }

    #[inline]
    fn write(&mut self, own: &mut Own, thread: u32, object: u32, sync: Sync) {
        let from = source(own, sync);
        match self.released(object) {
            Some(released) => *released = from,
            None if !sync.releases() && from == [0; LANES] => return,
            None => self.release_first(object, from),
        }
        if sync.releases() {
            tick(own, thread);
        }
    }

    /// The same for a write that continues a release sequence.
    #[inline]
    fn go_on(&mut self, own: &mut Own, thread: u32, object: u32, sync: Sync) {
        let from = source(own, sync);
        match self.released(object) {
            Some(released) => join_lanes(released, from),
            None if !sync.releases() && from == [0; LANES] => return,
            None => self.release_first(object, from),
        }
        if sync.releases() {
            tick(own, thread);
        }
    }

    #[inline]
    fn update(&mut self, own: &mut Own, thread: u32, object: u32, sync: Sync) {
        if let (Sync::AcqRel, Some(released)) = (sync, self.released(object)) {
            join_lanes(&mut own[KNOWS], *released);
            *released = own[KNOWS];
            return tick(own, thread);
        }
        self.read(own, object, sync);
        self.go_on(own, thread, object, sync);
    }

    /// An object has released nothing before.
    #[inline(never)]
    fn release_first(&mut self, object: u32, clock: Lanes) {
        if self.released.len() <= object as usize {
            self.released.resize(object as usize + 1, NO_CLOCK);
        }
        self.released[object as usize] = self.objects.len() as u32;
        self.objects.push(clock);
    }

    fn is_after(&mut self, own: &Own, object: u32) -> bool {
        self.released(object)
            .is_none_or(|released| released.iter().zip(own[KNOWS]).all(|(&released, known)| released <= known))
    }
}

fn pass_fence(own: &mut Own, thread: u32, sync: Sync) {
    if sync.acquires() {
        let read = own[UNACQUIRED];
        join_lanes(&mut own[KNOWS], read);
    }
    if sync.releases() {
        own[FENCED] = own[KNOWS];
        tick(own, thread);
    }
}

impl Causality {
    pub(super) fn catch_up_narrow(&mut self) {
        let Self { done, applied, answers, asked, threads, objects, released, births, .. } = self;
        let mut clocks = Narrow { objects: &mut objects.lanes, released };
        let (threads, _) = threads.lanes.as_chunks_mut::<{ ROWS_OF_A_THREAD as usize }>();
        for Done { deed, thread, other, time } in &mut done[*applied..] {
            let (thread, other) = (*thread, *other);
            let own = &mut threads[thread as usize];
            *time = own[KNOWS][thread as usize % LANES];
            match *deed {
                Deed::Read(sync) => clocks.read(own, other, sync),
                Deed::Write(sync) => clocks.write(own, thread, other, sync),
                Deed::Continue(sync) => clocks.go_on(own, thread, other, sync),
                Deed::Update(sync) => clocks.update(own, thread, other, sync),
                Deed::Fence(sync) => pass_fence(own, thread, sync),
                Deed::Start => {
                    let known = own[KNOWS];
                    tick(own, thread);
                    let child = &mut threads[other as usize];
                    child[KNOWS] = known;
                    tick(child, other);
                }
                Deed::Join => {
                    let ended = threads[other as usize][KNOWS];
                    join_lanes(&mut threads[thread as usize][KNOWS], ended);
                }
                Deed::Ask => {
                    answers.push(clocks.is_after(own, other));
                    asked.lanes.push(own[KNOWS]);
                }
                Deed::Mark => {
                    answers.push(true);
                    asked.lanes.push(own[KNOWS]);
                }
                Deed::Forget if !answers[other as usize] => {
                    own[KNOWS] = asked.lanes[other as usize];
                    own[KNOWS][thread as usize % LANES] = *time;
                }
                Deed::Forget => {}
                Deed::Birth => births.push((thread, *time)),
            }
        }
        *applied = done.len();
    }
}
