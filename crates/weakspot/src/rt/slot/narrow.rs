//! An atomic that is as large as a value.
//!
//! A token is made of a tag, the number of the run, which no other run of the process has, and the number of the object. A
//! value that looks like one of the current run would be taken for it: of 64 bits 44 would have to be right. The tag is
//! such that neither small numbers nor pointers nor numbers near the largest have it.
//!
//! Tokens and values change places by compare-and-swap only, and nobody but its model overwrites a token. Whoever accesses
//! an atomic outside of models, on another OS thread, while a model uses it, waits for the end of the run and sees what was
//! there before. (So do ordinary tests that run beside a model and count with the same static.) So does another model,
//! which shares it through memory that `std` has allocated: see [`turns`].
//!
//! An atomic that was used in a run, and then moved into memory that outlives the run, takes its token along. What it was
//! before is kept for a while: see [`lost`].

mod lost;

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Found, Memory};
use crate::rt::anew::{Waited, Whom};
use crate::rt::objects::{NO_BIRTH, Object};
use crate::rt::runtime::{Company, Runtime, without_worker};
use crate::rt::state::State;
use crate::rt::turns::{self, Waiter};
use crate::rt::{Place, current, foreign, ordinary, statics};
use lost::Lost;

const OBJECT_BITS: u32 = 20;
/// The bit that says that a thread of the run has made the object; those below are its number.
const BORN: u64 = 1 << (OBJECT_BITS - 1);
/// The lowest bits of the number of a run: after so many runs they come again.
const RUN_BITS: u32 = 28;
const RUN: u64 = ((1 << RUN_BITS) - 1) << OBJECT_BITS;
const TAG_SHIFT: u32 = OBJECT_BITS + RUN_BITS;
const TAG: u64 = 0xb75d << TAG_SHIFT;
const TAG_MASK: u64 = !((1 << TAG_SHIFT) - 1);

/// What tokens of a run begin with.
pub(crate) fn token_of_run(run: u64) -> u64 {
    TAG | without_worker(run) << OBJECT_BITS & RUN
}

/// Is this a token of the run whose tokens begin so?
pub(crate) fn is_token_of(bits: u64, token_of_run: u64) -> bool {
    bits & !(BORN | (BORN - 1)) == token_of_run
}

/// The object of such a token.
pub(crate) fn object_of(bits: u64, token_of_run: u64) -> Option<u32> {
    is_token_of(bits, token_of_run).then_some((bits & (BORN - 1)) as u32)
}

fn is_token(bits: u64) -> bool {
    bits & TAG_MASK == TAG
}

/// The model whose current run writes such tokens.
fn owner_of(token: u64) -> Option<u64> {
    let start = token & !(BORN | (BORN - 1));
    turns::owner_where(|run| token_of_run(run) == start)
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

impl<M: Memory> Slot<M> {
    /// Reads, and writes what `new` says, outside of models: what was read.
    pub(crate) fn update_outside(&self, new: &dyn Fn(u64) -> Option<u64>) -> u64 {
        let start = |bits: u64| bits & !(BORN | (BORN - 1));
        foreign::use_outside(self.address(), |run| start(self.0.get()) == token_of_run(run), None);
        loop {
            let bits = self.0.get();
            let Some(value) = self.value_outside(bits) else { continue };
            let Some(new) = new(value) else { return value };
            if self.0.exchange(bits, new).is_ok() {
                return value;
            }
        }
    }

    /// Reads outside of models.
    pub(crate) fn load_outside(&self) -> u64 {
        self.update_outside(&|_| None)
    }

    /// The value that these bits of it are, outside of models. Nothing if they were a token that is gone now.
    fn value_outside(&self, bits: u64) -> Option<u64> {
        if is_token(bits) { self.value_behind(bits) } else { Some(bits) }
    }

    #[cold]
    fn value_behind(&self, token: u64) -> Option<u64> {
        let is_there = || self.0.get() == token;
        if !statics::is_checking()
            && let Some(model) = owner_of(token)
        {
            let has_ended = Waiter::new(model, &ordinary::all_held()).waits(|| is_there() && owner_of(token).is_some());
            assert!(
                has_ended,
                "a model uses this atomic, and its execution has not come to an end for {}. Ordinary code, on another OS \
                 thread, cannot use it meanwhile: perhaps they wait for each other",
                turns::patience_in_words()
            );
        }
        is_there().then(|| lost::find(token).unwrap_or(token))
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

    /// A thread that had stopped before its access to this object goes on: is the atomic still where it was?
    #[inline]
    pub(crate) fn check_freed(&self, runtime: &Runtime, place: Place) {
        if self.0.get() & !(BORN | (BORN - 1)) != runtime.token.get() {
            runtime.check_freed(self.address(), place);
        }
    }

    /// The number in this run, if it was used in it.
    pub(crate) fn used(&self, runtime: &Runtime) -> Option<u32> {
        let bits = self.0.get();
        if bits & !(BORN | (BORN - 1)) == runtime.token.get() {
            return Some((bits & (BORN - 1)) as u32);
        }
        self.in_place(&mut runtime.state())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).expose_provenance()
    }

    /// The object, if its value is in its memory. If another one is there, somebody has written it through a pointer, or made
    /// another atomic in its place: that is a new object.
    fn in_place(&self, state: &mut State) -> Option<u32> {
        let in_place = &mut state.homes.in_place;
        let address = self.address();
        let at = in_place.iter().position(|one| one.address == address)?;
        if in_place[at].bits == self.0.get() {
            return Some(in_place[at].object);
        }
        in_place.swap_remove(at);
        None
    }

    #[inline(never)]
    fn first_use(&self, runtime: &Runtime, place: Place) -> Found {
        let address = self.address();
        runtime.note_object(address);
        runtime.check_freed(address, place);
        if let Some(object) = self.in_place(&mut runtime.state()) {
            return Found { object, is_born: false };
        }
        let (object, birth, offset) = {
            let state = runtime.state();
            let birth = state.birth_at(address);
            (state.objects.len() as u32, birth, state.offset_in(birth, address))
        };
        if u64::from(object) >= BORN {
            runtime.fail(format!("an execution uses more than {BORN} atomics and locks, which is too many"), place);
        }
        if let Some(message) = runtime.foreign_use(address) {
            runtime.fail(message, place);
        }
        let is_born = birth.is_some();
        let token = runtime.token.get() | (u64::from(is_born) * BORN) | u64::from(object);
        let taken = self.take(runtime, token, place);
        let initial = taken.unwrap_or_else(|| self.0.get());
        {
            let state = &mut *runtime.state();
            let birth = birth.unwrap_or(NO_BIRTH);
            state.objects.push(Object { birth, offset, ..Object::new(initial, place) });
            state.homes.noted.extend(taken.map(|_| Home { address, token }));
        }
        if taken.is_none() {
            runtime.get_in_the_way(place);
        }
        Found { object, is_born }
    }

    /// Writes the token: the value that was there. Nothing if another worker uses it.
    fn take(&self, runtime: &Runtime, token: u64, place: Place) -> Option<u64> {
        let is_alone = runtime.company.get() == Company::Alone;
        loop {
            let (bits, _waiter) = self.wait_for_other_models(runtime, place);
            // Between two looks another model may have taken it, or the run of a token that nobody owns may have ended.
            if other_owner(runtime, bits).is_some() || is_token(bits) && self.0.get() != bits {
                continue;
            }
            if !is_alone && is_token(bits) && owner_of(bits).is_some() {
                return None;
            }
            let value = if is_token(bits) { value_of_lost(runtime, bits, place) } else { bits };
            if self.0.exchange(bits, token).is_ok() {
                return Some(value);
            }
            if !is_alone {
                return None;
            }
        }
    }

    /// The bits, when no other model uses the atomic. (One that is no static: those are given to one model at a time.) They
    /// have it in turns, an execution each.
    fn wait_for_other_models(&self, runtime: &Runtime, place: Place) -> (u64, Option<Waiter>) {
        let bits = self.0.get();
        let Some(other) = other_owner(runtime, bits) else { return (bits, None) };
        let waiter = Waiter::new(other, &[]);
        let is_free = || other_owner(runtime, self.0.get()).is_none().then_some(());
        match runtime.wait_outside(self.address(), Whom::Model(other), is_free) {
            Waited::Found(()) => {}
            Waited::InTheWay => {
                drop(waiter);
                runtime.make_way(self.address());
            }
            Waited::TooLong => {
                // The thread stops, and what it has on its stack is never dropped.
                drop(waiter);
                let message = format!(
                    "another model, on another OS thread, uses this atomic, and its execution has not come to an end for {}: \
                     perhaps they wait for each other. Give each model atomics of its own",
                    turns::patience_in_words()
                );
                runtime.fail(message, place);
            }
        }
        (self.0.get(), Some(waiter))
    }

    /// The value in memory, for a thread of the run.
    #[inline]
    #[allow(clippy::unused_self, reason = "the wide layout needs it")]
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
        let state = &mut *runtime.state();
        if !state.homes.in_place.is_empty() {
            self.set_in_place(state, object, bits);
        }
    }

    #[cold]
    fn set_in_place(&self, state: &mut State, object: u32, bits: u64) {
        let address = self.address();
        let mut in_place = state.homes.in_place.iter_mut();
        if let Some(one) = in_place.find(|one| (one.address, one.object) == (address, object)) {
            one.bits = bits;
            self.0.set(bits);
        }
    }

    /// Puts the value into its memory from now on, until the run is over: somebody has a pointer to it.
    pub(crate) fn put_in_place(&self, place: Place) {
        let Some(runtime) = current() else { return };
        let Found { object, .. } = self.object(runtime, place);
        let state = &mut *runtime.state();
        if self.in_place(state).is_none() {
            let bits = state.objects[object as usize].value;
            self.0.set(bits);
            state.homes.in_place.push(InPlace { address: self.address(), object, bits });
        }
    }

    /// Whoever has it exclusively begins a new life of it: its memory holds the value.
    pub(crate) fn settle(&mut self) {
        let bits = self.peek();
        if bits != self.0.get() {
            self.0.set(bits);
        } else if let Some(runtime) = current() {
            let address = self.address();
            runtime.state().homes.in_place.retain(|one| one.address != address);
        }
    }

    /// The value, without an event.
    pub(crate) fn peek(&self) -> u64 {
        let Some(runtime) = current() else { return self.load_outside() };
        if let Some(object) = self.used(runtime) {
            return self.get(runtime, object);
        }
        let bits = self.0.get();
        if is_token(bits) { known_value(runtime, bits).unwrap_or(bits) } else { bits }
    }
}

/// What an atomic was before a run that is over, in which it was used and moved.
#[cold]
fn value_of_lost(runtime: &Runtime, token: u64, place: Place) -> u64 {
    if let Some(value) = known_value(runtime, token) {
        return value;
    }
    if lost::is_likely(token, runtime.token.get()) {
        let message = "this atomic was used in an execution that is over, and was moved meanwhile, into memory that \
                       outlives the execution: what it was before is not known any more. Make it in the execution \
                       that uses it, or leave it where it is (in a `Box`, for example)";
        runtime.fail(message.to_owned(), place);
    }
    token
}

/// What was kept of a value that was lost.
fn known_value(runtime: &Runtime, token: u64) -> Option<u64> {
    let kept = runtime.state().homes.lost.find(token);
    kept.or_else(|| lost::find(token))
}

/// The other model whose current run writes such tokens.
fn other_owner(runtime: &Runtime, bits: u64) -> Option<u64> {
    if !is_token(bits) {
        return None;
    }
    owner_of(bits).filter(|&model| model != runtime.number)
}

/// Where an atomic was when it was used first, and the token that was written there.
#[derive(Debug, Clone, Copy)]
struct Home {
    address: usize,
    token: u64,
}

/// An atomic whose memory holds the value.
#[derive(Debug, Clone, Copy)]
struct InPlace {
    address: usize,
    object: u32,
    /// What was written there last, unless somebody else has done so.
    bits: u64,
}

/// Where the atomics of a run are.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    noted: Vec<Home>,
    in_place: Vec<InPlace>,
    /// Those of earlier runs, which may have been moved.
    lost: Lost,
}

impl Homes {
    /// The model is over. Atomics that were moved may be used by others now.
    pub(crate) fn publish(&mut self) {
        if !self.lost.is_empty() {
            lost::publish(&mut self.lost);
        }
    }
}

impl State {
    /// The run is over: atomics get back the values they had before, where they are still there.
    #[inline]
    pub(crate) fn give_values_back(&mut self) {
        let Self { homes, objects, .. } = self;
        for Home { address, token } in homes.noted.drain(..) {
            // SAFETY: there was an atomic here in this run. Its memory may have been freed since, but what a run frees is
            // kept until this has been done, and stacks of threads are kept for later runs.
            let memory = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(address) };
            let initial = objects[(token & (BORN - 1)) as usize].initial;
            // It may be elsewhere now even if this, which it has left behind, is unchanged.
            homes.lost.keep(token, initial);
            // Others may look at it now, but write only if they find no token.
            if memory.load(Ordering::Relaxed) == token {
                memory.store(initial, Ordering::Relaxed);
            }
        }
        for InPlace { address, object, bits } in homes.in_place.drain(..) {
            // SAFETY: as above.
            let memory = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(address) };
            let initial = objects[object as usize].initial;
            let _ = memory.compare_exchange(bits, initial, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}
