//! Loops that give way: schedules with few preemptions against a machine that tries all of them, and shares nothing with
//! weakspot.

use std::collections::HashSet;

use super::*;
use crate::sync::Arc;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::SeqCst;
use crate::thread;

/// What a thread does, with one of two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Load(usize),
    Store(usize, usize),
    Yield,
    /// Looks so many times, until there is something, and gives way after each look that fails.
    Look(usize, usize),
    /// The same with an exchange of 0 for 1.
    Take(usize, usize),
    /// The same, and adds to the other cell before each look.
    Count(usize, usize),
}

type Program = Vec<Vec<Act>>;

fn program(random: &mut Random) -> Program {
    let act = |random: &mut Random| {
        let (cell, rounds) = (random.below(2), 1 + random.below(4));
        match random.below(10) {
            0..=1 => Act::Load(cell),
            2..=4 => Act::Store(cell, random.below(3)),
            5 => Act::Yield,
            6..=7 => Act::Look(cell, rounds),
            8 => Act::Take(cell, rounds),
            _ => Act::Count(cell, rounds.min(3)),
        }
    };
    let threads = 2 + usize::from(random.below(3) == 0);
    (0..threads).map(|_| (0..=random.below(5 - threads)).map(|_| act(random)).collect()).collect()
}

/// Where all threads are, and what they have seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// By thread: the act, the round, and whether its first event is over.
    next: Vec<(usize, usize, bool)>,
    /// Has it given way since its last event?
    has_yielded: Vec<bool>,
    seen: Vec<Vec<usize>>,
    cells: [usize; 2],
}

impl State {
    /// One event of a thread later; nothing if it has ended.
    fn step(&self, program: &Program, thread: usize) -> Option<Self> {
        let mut after = self.clone();
        let (act, round, is_half) = self.next[thread];
        let act = *program[thread].get(act)?;
        after.has_yielded[thread] = false;
        let mut rounds = 1;
        let mut goes_on = false;
        match act {
            Act::Yield => return None,
            Act::Load(cell) => after.seen[thread].push(self.cells[cell]),
            Act::Store(cell, value) => after.cells[cell] = value,
            Act::Count(cell, _) if !is_half => {
                after.cells[1 - cell] += 1;
                after.next[thread].2 = true;
                return Some(after);
            }
            Act::Look(cell, most) | Act::Take(cell, most) | Act::Count(cell, most) => {
                let found = self.cells[cell];
                after.seen[thread].push(found);
                let takes = act == Act::Take(cell, most);
                if takes && found == 0 {
                    after.cells[cell] = 1;
                }
                goes_on = (found == 0) != takes;
                rounds = most;
            }
        }
        after.next[thread] = if goes_on && round + 1 < rounds {
            (self.next[thread].0, round + 1, false)
        } else {
            (self.next[thread].0 + 1, 0, false)
        };
        after.has_yielded[thread] = goes_on;
        after.pass_yields(program, thread);
        Some(after)
    }

    /// Giving way is no event: it belongs to the one before.
    fn pass_yields(&mut self, program: &Program, thread: usize) {
        while program[thread].get(self.next[thread].0) == Some(&Act::Yield) {
            self.next[thread].0 += 1;
            self.has_yielded[thread] = true;
        }
    }
}

/// What the threads have seen in the end, over all schedules with so many preemptions.
fn tried_out(program: &Program, most: u32) -> Outcomes {
    let threads = program.len();
    let mut outcomes = Outcomes::new();
    let mut known = HashSet::new();
    let mut start = State {
        next: vec![(0, 0, false); threads],
        has_yielded: vec![false; threads],
        seen: vec![Vec::new(); threads],
        cells: [0; 2],
    };
    (0..threads).for_each(|thread| start.pass_yields(program, thread));
    let mut open = vec![(start, None, 0)];
    while let Some((state, last, preemptions)) = open.pop() {
        if !known.insert((state.clone(), last, preemptions)) {
            continue;
        }
        let steps = (0..threads).filter_map(|thread| state.step(program, thread).map(|after| (thread, after)));
        let steps: Vec<_> = steps.collect();
        if steps.is_empty() {
            outcomes.insert(state.seen.concat().into_iter().chain(state.cells).collect());
        }
        let can_stay = steps.iter().any(|&(thread, _)| Some(thread) == last && !state.has_yielded[thread]);
        for (thread, after) in steps {
            let preemptions = preemptions + u32::from(can_stay && Some(thread) != last);
            if preemptions <= most {
                open.push((after, Some(thread), preemptions));
            }
        }
    }
    outcomes
}

fn perform(cells: &[AtomicUsize; 2], acts: &[Act]) -> Vec<usize> {
    let mut seen = Vec::new();
    for &act in acts {
        match act {
            Act::Load(cell) => seen.push(cells[cell].load(SeqCst)),
            Act::Store(cell, value) => cells[cell].store(value, SeqCst),
            Act::Yield => thread::yield_now(),
            Act::Look(cell, most) => {
                for _ in 0..most {
                    seen.push(cells[cell].load(SeqCst));
                    if seen.last() != Some(&0) {
                        break;
                    }
                    thread::yield_now();
                }
            }
            Act::Take(cell, most) => {
                for _ in 0..most {
                    let found = cells[cell].compare_exchange(0, 1, SeqCst, SeqCst).unwrap_or_else(|found| found);
                    seen.push(found);
                    if found == 0 {
                        break;
                    }
                    thread::yield_now();
                }
            }
            Act::Count(cell, most) => {
                for _ in 0..most {
                    cells[1 - cell].fetch_add(1, SeqCst);
                    seen.push(cells[cell].load(SeqCst));
                    if seen.last() != Some(&0) {
                        break;
                    }
                    thread::yield_now();
                }
            }
        }
    }
    seen
}

fn run(program: &Program) -> Vec<usize> {
    let cells = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let start = |acts: &Vec<Act>| {
        let (cells, acts) = (cells.clone(), acts.clone());
        thread::spawn(move || perform(&cells, &acts))
    };
    let threads: Vec<_> = program.iter().map(start).collect();
    let mut seen: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    seen.extend(cells.iter().map(|cell| cell.load(SeqCst)));
    seen
}

#[test]
fn loops_that_give_way_come_to_what_a_machine_that_tries_all_comes_to() {
    let mut random = Random(0x1009);
    for number in 0..300 {
        let program = StdArc::new(program(&mut random));
        let all = tried_out(&program, u32::MAX);
        let which = format!("{number}: {program:?}");
        compare_few(&which, &all, |most| tried_out(&program, most), runs(&program, run));
        let (everything, leaves_out) = found_in_all(runs(&program, run));
        assert!(!leaves_out, "{which}");
        assert_eq!(everything, all, "{which}");
    }
}
