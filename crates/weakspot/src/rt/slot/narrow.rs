//! An atomic that is as large as a value.
//!
//! A token is made of a tag, the number of the model among those that are explored now, the lowest bits of the number of the
//! run, the worker, and the number of the object: no two that are in use at the same time are the same. A value that looks
//! like one of the current run would be taken for it: of 64 bits 40 would have to be right. The tag is such that neither
//! small numbers nor pointers nor numbers near the largest have it.
//!
//! Whoever accesses an atomic outside of models, on another OS thread, while a model uses it, waits for the end of the run:
//! it sees what was there before. (So do ordinary tests that run beside a model and count with the same static.)
//!
//! An atomic that was used in a run, then moved, and is used again in a later run holds a token that means nothing any
//! more. That would have to be in memory that outlives the run, and unused since it was moved there.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

use super::{Found, Memory};
use crate::rt::objects::{NO_BIRTH, Object};
use crate::rt::runtime::{Company, Runtime, State};
use crate::rt::{Place, current, statics};

const OBJECT_BITS: u32 = 24;
/// The bit that says that a thread of the run has made the object; those below are its number.
const BORN: u64 = 1 << (OBJECT_BITS - 1);
/// The lowest bits of the number of a run: six for the worker, and eight.
const RUN_BITS: u32 = 14;
const RUN: u64 = ((1 << RUN_BITS) - 1) << OBJECT_BITS;
/// Those of the number of a model.
const MODEL_BITS: u32 = statics::MOST_MODELS.ilog2();
const TAG_SHIFT: u32 = OBJECT_BITS + RUN_BITS + MODEL_BITS;
const TAG: u64 = 0xb75d << TAG_SHIFT;
const TAG_MASK: u64 = !((1 << TAG_SHIFT) - 1);

/// How long somebody waits for a model at most: a value may look like a token, and two models may wait for each other.
const PATIENCE: Duration = Duration::from_millis(500);

/// What tokens of a run begin with.
pub(crate) fn token_of_run(model: u64, run: u64) -> u64 {
    TAG | model << (OBJECT_BITS + RUN_BITS) | run << OBJECT_BITS & RUN
}

fn is_token(bits: u64) -> bool {
    bits & TAG_MASK == TAG
}

/// Models that are explored now, on any OS thread.
static MODELS: AtomicUsize = AtomicUsize::new(0);

/// A model begins, which will write tokens.
pub(crate) fn model_begins() {
    MODELS.fetch_add(1, Ordering::SeqCst);
}

/// No token of the model is left.
pub(crate) fn model_ends() {
    MODELS.fetch_sub(1, Ordering::SeqCst);
}

/// May atomics be accessed outside of models as any other memory? If not, [`Slot::update_outside`] will do.
#[inline]
pub(crate) fn is_quiet() -> bool {
    MODELS.load(Ordering::Relaxed) == 0
}

/// The memory of an atomic.
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct Slot<M>(M);

impl<M> Slot<M> {
    pub(crate) const fn new(memory: M) -> Self {
        Self(memory)
    }

    /// The memory as it is.
    pub(crate) const fn memory(&self) -> &M {
        &self.0
    }

    pub(crate) fn memory_mut(&mut self) -> &mut M {
        &mut self.0
    }
}

#[allow(clippy::unused_self, reason = "the wide layout needs it")]
impl<M: Memory> Slot<M> {
    /// Something is written outside of models.
    pub(crate) fn written_outside(&self) {}

    /// Reads, and writes what `new` says, outside of models: what was read.
    pub(crate) fn update_outside(&self, new: &dyn Fn(u64) -> Option<u64>) -> u64 {
        let start = Instant::now();
        let mut old = self.0.get();
        loop {
            if is_token(old) && !statics::is_checking() && start.elapsed() < PATIENCE {
                std::thread::yield_now();
                old = self.0.get();
                continue;
            }
            let Some(new) = new(old) else {
                fence(Ordering::SeqCst);
                return old;
            };
            match self.0.exchange(old, new) {
                Ok(old) => return old,
                Err(found) => old = found,
            }
        }
    }

    /// The object in this run.
    #[inline]
    pub(crate) fn object(&self, runtime: &Runtime, place: Place) -> Found {
        let bits = self.0.get();
        if bits & !(BORN | (BORN - 1)) == runtime.token.get() {
            return Found { object: (bits & (BORN - 1)) as u32, is_born: bits & BORN != 0 };
        }
        self.first_use(runtime, place)
    }

    /// The number in this run, if it was used in it.
    pub(crate) fn used(&self, runtime: &Runtime) -> Option<u32> {
        let bits = self.0.get();
        if bits & !(BORN | (BORN - 1)) == runtime.token.get() {
            return Some((bits & (BORN - 1)) as u32);
        }
        runtime.state().homes.in_place(self.address())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).expose_provenance()
    }

    #[inline(never)]
    fn first_use(&self, runtime: &Runtime, place: Place) -> Found {
        let address = self.address();
        runtime.note_object(address);
        let bits = self.wait_for_other_models(runtime);
        let mut state = runtime.state();
        if let Some(object) = state.homes.in_place(address) {
            return Found { object, is_born: false };
        }
        let (object, birth) = (state.objects.len() as u32, state.birth_at(address));
        let is_born = birth.is_some();
        state.objects.push(Object { birth: birth.unwrap_or(NO_BIRTH), ..Object::new(bits, place) });
        let token = runtime.token.get() | (u64::from(is_born) * BORN) | u64::from(object);
        if runtime.company == Company::Alone {
            self.0.set(token);
            state.homes.homes.push(Home { address, token });
        } else {
            drop(state);
            self.share(runtime, bits, Home { address, token }, place);
        }
        Found { object, is_born }
    }

    /// The bits, when no other model uses the atomic. (One that is no static: those are given to one model at a time. Two
    /// models share it through memory that `std` has allocated, and have it in turns, an execution each.)
    fn wait_for_other_models(&self, runtime: &Runtime) -> u64 {
        let mut bits = self.0.get();
        if is_of_other_model(runtime, bits) {
            let start = Instant::now();
            while is_of_other_model(runtime, bits) && start.elapsed() < PATIENCE {
                std::thread::yield_now();
                bits = self.0.get();
            }
        }
        bits
    }

    /// Writes the token where other workers may do the same. What another one uses cannot be used.
    fn share(&self, runtime: &Runtime, bits: u64, home: Home, place: Place) {
        if is_of_other_worker(runtime, bits) || self.0.exchange(bits, home.token).is_err() {
            runtime.get_in_the_way(place);
        } else {
            runtime.state().homes.homes.push(home);
        }
    }

    /// The value in memory, for a thread of the run.
    #[inline]
    pub(crate) fn get(&self, runtime: &Runtime, object: u32) -> u64 {
        runtime.state().objects[object as usize].value
    }

    /// Writes the value.
    #[inline]
    pub(crate) fn set(&self, runtime: &Runtime, object: u32, bits: u64) {
        let state = &mut *runtime.state();
        state.objects[object as usize].value = bits;
        if !state.homes.in_place.is_empty() {
            self.set_in_place(state, object, bits);
        }
    }

    /// Writes a value that the object has already.
    #[inline]
    pub(crate) fn set_again(&self, runtime: &Runtime, object: u32, bits: u64) {
        let state = runtime.state();
        if !state.homes.in_place.is_empty() {
            self.set_in_place(&state, object, bits);
        }
    }

    #[cold]
    fn set_in_place(&self, state: &State, object: u32, bits: u64) {
        if state.homes.in_place(self.address()) == Some(object) {
            self.0.set(bits);
        }
    }

    /// Puts the value into its memory from now on, until the run is over: somebody has a pointer to it.
    pub(crate) fn put_in_place(&self, place: Place) {
        let Some(runtime) = current() else { return };
        let Found { object, .. } = self.object(runtime, place);
        let state = &mut *runtime.state();
        let address = self.address();
        if state.homes.in_place(address).is_none() {
            self.0.set(state.objects[object as usize].value);
            state.homes.in_place.push((address, object));
        }
    }

    /// Whoever has it exclusively begins a new life of it: its memory holds the value.
    pub(crate) fn settle(&mut self) {
        let bits = self.peek();
        if bits != self.0.get() {
            self.0.set(bits);
        } else if let Some(runtime) = current() {
            let address = self.address();
            runtime.state().homes.in_place.retain(|&(place, _)| place != address);
        }
    }

    /// The value, without an event.
    pub(crate) fn peek(&self) -> u64 {
        match current() {
            Some(runtime) => match self.used(runtime) {
                Some(object) => self.get(runtime, object),
                None => self.0.get(),
            },
            None if is_quiet() => self.0.get(),
            None => self.update_outside(&|_| None),
        }
    }
}

/// Is this a token of another model that is explored now?
fn is_of_other_model(runtime: &Runtime, bits: u64) -> bool {
    let model = bits >> (OBJECT_BITS + RUN_BITS) & ((1 << MODEL_BITS) - 1);
    is_token(bits) && model != runtime.number && statics::is_explored(model)
}

/// Is this a token of another worker of the model?
fn is_of_other_worker(runtime: &Runtime, bits: u64) -> bool {
    const WORKER: u64 = 0x3f << OBJECT_BITS;
    is_token(bits) && bits & WORKER != runtime.token.get() & WORKER
}

/// Where an atomic was when it was used first, and the token that was written there.
#[derive(Debug, Clone, Copy)]
struct Home {
    address: usize,
    token: u64,
}

/// Where the atomics of a run are.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    homes: Vec<Home>,
    /// Those whose memory holds the value.
    in_place: Vec<(usize, u32)>,
}

impl Homes {
    fn in_place(&self, address: usize) -> Option<u32> {
        self.in_place.iter().find(|&&(place, _)| place == address).map(|&(_, object)| object)
    }
}

impl State {
    /// The run is over: atomics get back the values they had before, where they are still there.
    #[inline]
    pub(crate) fn give_values_back(&mut self) {
        let Self { homes, objects, .. } = self;
        for Home { address, token } in homes.homes.drain(..) {
            // SAFETY: there was an atomic here in this run. Its memory may have been freed since, but what a run frees is
            // kept until this has been done, and stacks of threads are kept for later runs.
            let memory = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(address) };
            // Another worker may look at it now, but writes only if it finds no token.
            if memory.load(Ordering::Relaxed) == token {
                memory.store(objects[(token & (BORN - 1)) as usize].initial, Ordering::Relaxed);
            }
        }
        for (address, object) in homes.in_place.drain(..) {
            // SAFETY: as above.
            let memory = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(address) };
            let Object { initial, value, .. } = objects[object as usize];
            let _ = memory.compare_exchange(value, initial, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}
