//! Small programs with all orderings, and a generator of them.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

pub const LOCATIONS: usize = 2;
pub const CELLS: usize = 2;
pub const LOCKS: usize = 2;

/// One operation. Values are small, locations are indices.
#[derive(Debug, Clone, Copy)]
pub enum Operation {
    Load(usize, Ordering),
    Store(usize, u8, Ordering),
    Swap(usize, u8, Ordering),
    Add(usize, u8, Ordering),
    /// Expected, new, on success, on failure.
    CompareExchange(usize, u8, u8, Ordering, Ordering),
    Fence(Ordering),
    ReadCell(usize),
    WriteCell(usize),
    Lock(usize),
    Unlock(usize),
}

/// An operation, done only if the last value that its thread has read is this one.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub only_after: Option<u8>,
    pub operation: Operation,
}

/// The steps of each thread. Thread 0 starts the others and joins them.
pub type Program = Vec<Vec<Step>>;

/// xorshift, multiplied.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20) % bound as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const ATOMIC: [Ordering; 7] = [Relaxed, Relaxed, Relaxed, Acquire, Release, AcqRel, SeqCst];

fn operation(random: &mut Random, held: &mut Vec<usize>) -> Operation {
    let location = random.below(LOCATIONS);
    let value = 1 + random.below(2) as u8;
    match random.below(22) {
        0..=6 => Operation::Load(location, random.pick(&[Relaxed, Acquire, SeqCst])),
        7..=13 => Operation::Store(location, value, random.pick(&[Relaxed, Relaxed, Release, SeqCst])),
        14 => Operation::Swap(location, value, random.pick(&ATOMIC)),
        15 => Operation::Add(location, value, random.pick(&ATOMIC)),
        16 => {
            let failure = random.pick(&[Relaxed, Acquire, SeqCst]);
            Operation::CompareExchange(location, random.below(3) as u8, value, random.pick(&ATOMIC), failure)
        }
        17 | 18 => Operation::Fence(random.pick(&[Acquire, Release, AcqRel, SeqCst])),
        19 => Operation::ReadCell(random.below(CELLS)),
        20 => Operation::WriteCell(random.below(CELLS)),
        _ => {
            let lock = random.below(LOCKS);
            if held.contains(&lock) {
                held.retain(|&other| other != lock);
                return Operation::Unlock(lock);
            }
            held.push(lock);
            Operation::Lock(lock)
        }
    }
}

fn thread(random: &mut Random) -> Vec<Step> {
    let mut held = Vec::new();
    (0..=random.below(4))
        .map(|_| {
            let operation = operation(random, &mut held);
            let is_lock = matches!(operation, Operation::Lock(_) | Operation::Unlock(_));
            let only_after = (!is_lock && random.below(5) == 0).then(|| random.below(3) as u8);
            Step { only_after, operation }
        })
        .collect()
}

/// Two or three threads, of which the first may have nothing to do.
pub fn program(random: &mut Random) -> Program {
    let mut threads: Program = (0..2 + random.below(2)).map(|_| thread(random)).collect();
    if random.below(3) == 0 {
        threads[0].clear();
    }
    threads
}
