//! Schedules with few preemptions against a machine that tries all of them, and shares nothing with weakspot.

use std::collections::HashSet;

use super::*;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::{AtomicUsize, fence};
use crate::sync::{Arc, Mutex};
use crate::thread;

/// What a thread does, with one of two cells or with a lock and what it protects.
#[derive(Debug, Clone, Copy)]
enum Act {
    Load(usize),
    Store(usize, usize),
    Add(usize),
    /// From a value to 2.
    Exchange(usize, usize),
    Fence,
    /// Changes what the lock protects, and looks at a cell meanwhile.
    Locked(usize),
    TryLock,
}

type Program = Vec<Vec<Act>>;

fn program(random: &mut Random) -> Program {
    let act = |random: &mut Random| {
        let cell = random.below(2);
        match random.below(11) {
            0..=2 => Act::Load(cell),
            3..=5 => Act::Store(cell, 1 + random.below(2)),
            6 => Act::Add(cell),
            7 => Act::Exchange(cell, random.below(2)),
            8 => Act::Fence,
            9 => Act::Locked(cell),
            _ => Act::TryLock,
        }
    };
    let threads = 2 + random.below(2);
    (0..threads).map(|_| (0..=random.below(5 - threads)).map(|_| act(random)).collect()).collect()
}

/// Where all threads are, and what they have seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// By thread: the act, and which event of it comes next.
    next: Vec<(usize, usize)>,
    seen: Vec<Vec<usize>>,
    cells: [usize; 2],
    protected: usize,
    held: bool,
}

impl State {
    /// One event of a thread later; nothing if it cannot go on.
    fn step(&self, program: &Program, thread: usize) -> Option<Self> {
        let (act, event) = self.next[thread];
        let mut after = self.clone();
        let (mut seen, mut is_over) = (None, true);
        match (*program[thread].get(act)?, event) {
            (Act::Load(cell), _) => seen = Some(self.cells[cell]),
            (Act::Store(cell, value), _) => after.cells[cell] = value,
            (Act::Add(cell), _) => {
                seen = Some(self.cells[cell]);
                after.cells[cell] += 1;
            }
            (Act::Exchange(cell, old), _) => {
                seen = Some(self.cells[cell]);
                if self.cells[cell] == old {
                    after.cells[cell] = 2;
                }
            }
            (Act::Fence, _) => {}
            (Act::Locked(_), 0) if self.held => return None,
            (Act::TryLock, 0) if self.held => seen = Some(99),
            (Act::Locked(_) | Act::TryLock, 0) => (after.held, is_over) = (true, false),
            (Act::Locked(cell), 1) => {
                after.protected += 1;
                (seen, is_over) = (Some(self.cells[cell] * 10 + after.protected), false);
            }
            (Act::Locked(_) | Act::TryLock, _) => after.held = false,
        }
        after.seen[thread].extend(seen);
        after.next[thread] = if is_over { (act + 1, 0) } else { (act, event + 1) };
        Some(after)
    }
}

/// What can come of a program with at most so many preemptions.
fn tried_out(program: &Program, most: u32) -> Outcomes {
    let threads = program.len();
    let start = State {
        next: vec![(0, 0); threads],
        seen: vec![Vec::new(); threads],
        cells: [0; 2],
        protected: 0,
        held: false,
    };
    let (mut outcomes, mut known, mut open) = (Outcomes::new(), HashSet::new(), vec![(start, None, 0)]);
    while let Some((state, last, preemptions)) = open.pop() {
        if !known.insert((state.clone(), last, preemptions)) {
            continue;
        }
        let steps = (0..threads).filter_map(|thread| state.step(program, thread).map(|after| (thread, after)));
        let steps: Vec<_> = steps.collect();
        if steps.is_empty() {
            outcomes.insert(state.seen.concat().into_iter().chain(state.cells).collect());
        }
        let can_stay = steps.iter().any(|&(thread, _)| Some(thread) == last);
        for (thread, after) in steps {
            let preemptions = preemptions + u32::from(can_stay && Some(thread) != last);
            if preemptions <= most {
                open.push((after, Some(thread), preemptions));
            }
        }
    }
    outcomes
}

fn perform(cells: &[AtomicUsize; 2], lock: &Mutex<usize>, acts: &[Act]) -> Vec<usize> {
    let perform = |&act: &Act| match act {
        Act::Load(cell) => Some(cells[cell].load(Acquire)),
        Act::Store(cell, value) => {
            cells[cell].store(value, Release);
            None
        }
        Act::Add(cell) => Some(cells[cell].fetch_add(1, AcqRel)),
        Act::Exchange(cell, old) => {
            Some(cells[cell].compare_exchange(old, 2, AcqRel, Relaxed).unwrap_or_else(|found| found))
        }
        Act::Fence => {
            fence(SeqCst);
            None
        }
        Act::Locked(cell) => {
            let mut protected = lock.lock().unwrap();
            *protected += 1;
            Some(cells[cell].load(Relaxed) * 10 + *protected)
        }
        Act::TryLock => lock.try_lock().is_err().then_some(99),
    };
    acts.iter().filter_map(perform).collect()
}

fn run(program: &Program) -> Vec<usize> {
    let shared = Arc::new(([const { AtomicUsize::new(0) }; 2], Mutex::new(0)));
    let start = |acts: &Vec<Act>| {
        let (shared, acts) = (shared.clone(), acts.clone());
        thread::spawn(move || perform(&shared.0, &shared.1, &acts))
    };
    let threads: Vec<_> = program[1..].iter().map(start).collect();
    let mut seen = perform(&shared.0, &shared.1, &program[0]);
    seen.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
    seen.extend(shared.0.iter().map(|cell| cell.load(Relaxed)));
    seen
}

#[test]
fn schedules_with_few_preemptions_come_to_what_a_machine_that_tries_all_comes_to() {
    let mut random = Random(0xb007);
    for number in 0..60 {
        let program = StdArc::new(program(&mut random));
        for (most, is_determined) in (0..=3).flat_map(|most| [(most, false), (most, true)]) {
            let found = found_within(most, is_determined, runs(&program, run));
            assert_eq!(found, tried_out(&program, most), "{number}: {most} preemptions, {program:?}");
        }
        let (everything, _) = found_in_all(runs(&program, run));
        assert_eq!(everything, tried_out(&program, u32::MAX), "{number}: {program:?}");
    }
}
