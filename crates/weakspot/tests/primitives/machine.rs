//! Everything that a program can come to on SC, TSO or PSO, by brute force: states are followed one step at a time. Nothing
//! here is shared with weakspot but what its documents say: primitives are full fences, and looking at a `OnceLock` that has
//! a value is a load, and so is being refused by an `RwLock`. The flag of a lock that says whether it is poisoned is one more location,
//! with relaxed loads and stores.

use std::collections::{BTreeSet, HashSet, VecDeque};

use weakspot::MemoryModel;

use crate::outcomes::Outcome;
use crate::program::{Act, Kind, LOCATIONS, MOST_THREADS, Program};

/// The location of the flag.
const FLAG: usize = LOCATIONS;

/// States after which a program is too large.
const MOST_STATES: usize = 150_000;

pub const NOTHING: u8 = 97;
pub const EMPTY: u8 = 98;
pub const GONE: u8 = 99;

#[derive(Debug, Default)]
pub struct Everything {
    pub outcomes: BTreeSet<Outcome>,
    pub deadlock: bool,
}

/// A store that is in a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Buffered {
    location: usize,
    value: u8,
    /// Store-store fences of its thread before it.
    fences: u8,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
struct Thread {
    next: usize,
    /// Inside an act that takes several steps.
    phase: u8,
    buffer: Vec<Buffered>,
    fences: u8,
    notes: Vec<u8>,
    reads: bool,
    writes: bool,
    token: bool,
    is_over: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Channel {
    messages: VecDeque<u8>,
    /// Senders that wait until their messages are taken.
    offers: Vec<(usize, u8)>,
    is_awaited: bool,
    handed: Option<u8>,
    senders: usize,
    has_receiver: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct State {
    threads: Vec<Thread>,
    memory: [u8; LOCATIONS + 1],
    arrived: usize,
    meetings: usize,
    /// Who waits for which meeting.
    meets: [usize; MOST_THREADS],
    once: Option<u8>,
    is_made: bool,
    channel: Channel,
    is_locked: bool,
    waiters: BTreeSet<usize>,
}

struct Machine<'a> {
    kind: Kind,
    program: &'a Program,
    model: MemoryModel,
}

impl Machine<'_> {
    fn start(&self) -> State {
        let threads = vec![Thread::default(); self.program.len()];
        let channel = Channel { senders: self.program.len() - 1, has_receiver: true, ..Channel::default() };
        State { threads, channel, ..State::default() }
    }

    /// What comes next if a store of a thread reaches memory.
    fn commits(&self, state: &State, me: usize, next: &mut Vec<State>) {
        let buffer = &state.threads[me].buffer;
        for (at, store) in buffer.iter().enumerate() {
            let may_overtake = |earlier: &Buffered| {
                self.model == MemoryModel::Pso && earlier.location != store.location && earlier.fences == store.fences
            };
            if buffer[..at].iter().all(may_overtake) {
                let mut after = state.clone();
                let Buffered { location, value, .. } = after.threads[me].buffer.remove(at);
                after.memory[location] = value;
                next.push(after);
            }
        }
    }

    fn load(state: &State, me: usize, location: usize) -> u8 {
        let own = state.threads[me].buffer.iter().rev().find(|store| store.location == location);
        own.map_or(state.memory[location], |store| store.value)
    }

    fn store(&self, state: &mut State, me: usize, location: usize, value: u8) {
        if self.model == MemoryModel::Sc {
            state.memory[location] = value;
        } else {
            let fences = state.threads[me].fences;
            state.threads[me].buffer.push(Buffered { location, value, fences });
        }
    }

    /// What comes next if a thread goes on. Primitives wait until its buffer is empty.
    fn steps(&self, state: &State, me: usize, next: &mut Vec<State>) {
        let thread = &state.threads[me];
        if thread.is_over {
            return;
        }
        let mut after = state.clone();
        let Some(&act) = self.program[me].get(thread.next) else {
            // What a thread has of a channel goes before it ends.
            if thread.buffer.is_empty() {
                after.threads[me].is_over = true;
                match me {
                    0 => after.channel.has_receiver = false,
                    _ => after.channel.senders -= 1,
                }
                next.push(after);
            }
            return;
        };
        let is_plain = match act {
            Act::Load(location) => {
                let value = Self::load(state, me, location);
                after.threads[me].notes.push(value);
                true
            }
            Act::Store(location, value) => {
                self.store(&mut after, me, location, value);
                true
            }
            Act::Publish(location, value) => {
                after.threads[me].fences += u8::from(self.model == MemoryModel::Pso);
                self.store(&mut after, me, location, value);
                true
            }
            Act::Get => {
                let value = state.once.filter(|_| state.is_made);
                after.threads[me].notes.push(value.unwrap_or(NOTHING));
                true
            }
            Act::AskPoison => {
                let value = Self::load(state, me, FLAG);
                after.threads[me].notes.push(value);
                true
            }
            Act::ClearPoison => {
                self.store(&mut after, me, FLAG, 0);
                true
            }
            // A reader poisons nothing.
            Act::Panic if thread.phase == 0 && thread.writes => {
                self.store(&mut after, me, FLAG, 1);
                after.threads[me].phase = 1;
                next.push(after);
                return;
            }
            Act::Enter | Act::EnterToRead if thread.phase == 1 => {
                let value = Self::load(state, me, FLAG);
                after.threads[me].notes.push(value);
                after.threads[me].phase = 0;
                true
            }
            // Whoever is refused has only looked.
            Act::TryRead if state.threads.iter().any(|thread| thread.writes) => {
                after.threads[me].notes.push(0);
                true
            }
            Act::TryWrite if state.threads.iter().any(|thread| thread.writes || thread.reads) => {
                after.threads[me].notes.push(0);
                true
            }
            // There is nothing to give back.
            Act::EndLock => !thread.reads && !thread.writes,
            Act::Downgrade => !thread.writes,
            _ => false,
        };
        if is_plain || Self::finds_value(&mut after, me, act) {
            after.threads[me].next += 1;
            next.push(after);
        } else if let Act::GetOrInit(_, location) = act
            && thread.phase == 1
        {
            let value = Self::load(state, me, location);
            after.threads[me].notes.push(value);
            after.threads[me].phase = 2;
            next.push(after);
        } else if thread.buffer.is_empty() {
            if let Act::Notify { all: false } = act {
                for &waiter in &state.waiters {
                    let mut after = after.clone();
                    after.waiters.remove(&waiter);
                    after.threads[me].next += 1;
                    next.push(after);
                }
                if !state.waiters.is_empty() {
                    return;
                }
            }
            if let Some(is_done) = self.primitive(&mut after, me, act) {
                if is_done {
                    after.threads[me].next += 1;
                    after.threads[me].phase = 0;
                }
                next.push(after);
            }
        }
    }

    /// Whoever finds a value in the `OnceLock` has only looked.
    fn finds_value(state: &mut State, me: usize, act: Act) -> bool {
        if !state.is_made || state.threads[me].phase != 0 {
            return false;
        }
        match (act, state.once) {
            (Act::Set(_), _) => state.threads[me].notes.push(0),
            (Act::GetOrInit(..), Some(value)) => state.threads[me].notes.push(value),
            _ => return false,
        }
        true
    }

    /// One step of a primitive: nothing if it has to wait, and whether that was its last one.
    fn primitive(&self, state: &mut State, me: usize, act: Act) -> Option<bool> {
        let phase = state.threads[me].phase;
        let others = |state: &State, holds: fn(&Thread) -> bool| state.threads.iter().any(holds);
        match act {
            Act::Read | Act::TryRead => {
                if others(state, |thread| thread.writes) {
                    return None;
                }
                state.threads[me].reads = true;
                if act == Act::TryRead {
                    state.threads[me].notes.push(1);
                }
            }
            Act::Write | Act::TryWrite => {
                if others(state, |thread| thread.writes || thread.reads) {
                    return None;
                }
                state.threads[me].writes = true;
                if act == Act::TryWrite {
                    state.threads[me].notes.push(1);
                }
            }
            Act::Downgrade => {
                let thread = &mut state.threads[me];
                (thread.reads, thread.writes) = (thread.writes, false);
            }
            Act::Enter | Act::EnterToRead => {
                let reads = act == Act::EnterToRead;
                if others(state, |thread| thread.writes) || !reads && others(state, |thread| thread.reads) {
                    return None;
                }
                (state.threads[me].reads, state.threads[me].writes) = (reads, !reads);
                state.threads[me].phase = 1;
                return Some(false);
            }
            Act::EndLock | Act::Leave | Act::Panic => {
                let thread = &mut state.threads[me];
                (thread.reads, thread.writes) = (false, false);
            }
            Act::Meet { asks } if phase == 0 => {
                state.arrived += 1;
                if state.arrived < self.program.len() {
                    state.meets[me] = state.meetings;
                    state.threads[me].phase = 1;
                    return Some(false);
                }
                (state.arrived, state.meetings) = (0, state.meetings + 1);
                state.threads[me].notes.extend(asks.then_some(1));
            }
            Act::Meet { asks } => {
                if state.meetings == state.meets[me] {
                    return None;
                }
                state.threads[me].notes.extend(asks.then_some(0));
            }
            Act::Set(value) | Act::GetOrInit(value, _) => return Self::initialise(state, me, act, value),
            Act::Send(value) | Act::TrySend(value) => return self.send(state, me, value, act == Act::Send(value)),
            Act::Receive | Act::TryReceive => return Self::receive(state, act == Act::Receive),
            Act::Park => {
                if !std::mem::take(&mut state.threads[me].token) {
                    return None;
                }
            }
            Act::Unpark(thread) => state.threads[thread].token = true,
            Act::Lock => {
                if std::mem::replace(&mut state.is_locked, true) {
                    return None;
                }
            }
            Act::Unlock => state.is_locked = false,
            Act::Wait if phase == 0 => {
                state.is_locked = false;
                state.waiters.insert(me);
                state.threads[me].phase = 1;
                return Some(false);
            }
            Act::Wait => {
                if state.waiters.contains(&me) || std::mem::replace(&mut state.is_locked, true) {
                    return None;
                }
            }
            Act::Notify { all: true } => state.waiters.clear(),
            Act::Notify { all: false } => {}
            Act::Load(_) | Act::Store(..) | Act::Publish(..) | Act::Get | Act::AskPoison | Act::ClearPoison => {
                unreachable!("no primitive")
            }
        }
        Some(true)
    }

    fn initialise(state: &mut State, me: usize, act: Act, value: u8) -> Option<bool> {
        if state.threads[me].phase == 0 {
            // Somebody is making it, or it is this one who will.
            if state.once.is_some() {
                return None;
            }
            state.once = Some(value);
            state.threads[me].phase = if matches!(act, Act::Set(_)) { 2 } else { 1 };
            return Some(false);
        }
        state.is_made = true;
        let note = if matches!(act, Act::Set(_)) { 1 } else { value };
        state.threads[me].notes.push(note);
        Some(true)
    }

    fn send(&self, state: &mut State, me: usize, value: u8, waits: bool) -> Option<bool> {
        let Kind::Channel(limit) = self.kind else { unreachable!("there is a channel") };
        let channel = &mut state.channel;
        let is_taken = !channel.offers.contains(&(me, value));
        let note = match limit {
            // A message that is taken is a message that was sent, whatever comes after.
            Some(0) if state.threads[me].phase == 1 => {
                if !is_taken && channel.has_receiver {
                    return None;
                }
                channel.offers.retain(|&offer| offer != (me, value));
                u8::from(is_taken)
            }
            _ if !channel.has_receiver => 0,
            None => {
                channel.messages.push_back(value);
                1
            }
            Some(0) if channel.is_awaited => {
                (channel.is_awaited, channel.handed) = (false, Some(value));
                1
            }
            Some(0) if waits => {
                channel.offers.push((me, value));
                state.threads[me].phase = 1;
                return Some(false);
            }
            Some(limit) if channel.messages.len() < limit => {
                channel.messages.push_back(value);
                1
            }
            Some(_) if waits => return None,
            Some(_) => 2,
        };
        state.threads[me].notes.push(note);
        Some(true)
    }

    fn receive(state: &mut State, waits: bool) -> Option<bool> {
        let State { channel, threads, .. } = state;
        let message = channel.messages.pop_front().or_else(|| channel.handed.take());
        let message = message.or_else(|| (!channel.offers.is_empty()).then(|| channel.offers.remove(0).1));
        let note = match message {
            Some(message) => message,
            None if channel.senders == 0 => GONE,
            None if !waits => EMPTY,
            None if threads[0].phase == 0 => {
                threads[0].phase = 1;
                channel.is_awaited = true;
                return Some(false);
            }
            None => return None,
        };
        channel.is_awaited = false;
        threads[0].notes.push(note);
        Some(true)
    }
}

/// Everything, unless that is too much.
pub fn run(kind: Kind, program: &Program, model: MemoryModel) -> Option<Everything> {
    let machine = Machine { kind, program, model };
    let mut everything = Everything::default();
    let mut open = vec![machine.start()];
    let mut known: HashSet<State> = open.iter().cloned().collect();
    while let Some(state) = open.pop() {
        let mut next = Vec::new();
        for me in 0..program.len() {
            machine.commits(&state, me, &mut next);
            machine.steps(&state, me, &mut next);
        }
        if next.is_empty() {
            if state.threads.iter().all(|thread| thread.is_over) {
                let notes = state.threads.iter().flat_map(|thread| thread.notes.iter().copied());
                everything.outcomes.insert(notes.chain(state.memory).collect());
            } else {
                everything.deadlock = true;
            }
        }
        for state in next {
            if known.insert(state.clone()) {
                open.push(state);
            }
        }
        if known.len() > MOST_STATES {
            return None;
        }
    }
    Some(everything)
}
