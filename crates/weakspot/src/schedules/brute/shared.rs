//! Loops that share the one call that says that they wait, against a machine that tries all schedules: where nothing is
//! said of rounds that were left out, everything that can come of a program has been found.

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
    /// Looks so many times, until there is something, and notes whether there was.
    Look(usize, usize),
    /// The same, and notes how often it has looked.
    Rounds(usize, usize),
    /// Looks until there is something.
    Wait(usize),
    /// The same with a fence before each look.
    Fenced(usize),
    /// Looks until there is something, and notes how often it has looked, if that is less than so many times.
    Count(usize, usize),
}

type Program = Vec<Vec<Act>>;

fn program(random: &mut Random) -> Program {
    let act = |random: &mut Random| {
        let (cell, rounds) = (usize::from(random.below(4) == 0), 1 + random.below(3));
        match random.below(16) {
            0..=1 => Act::Load(cell),
            2..=4 => Act::Store(cell, random.below(3)),
            5..=8 => Act::Look(cell, rounds),
            9 => Act::Rounds(cell, rounds),
            10..=13 => Act::Wait(cell),
            14 => Act::Fenced(cell),
            _ => Act::Count(cell, rounds),
        }
    };
    let mut threads: Program = (0..2).map(|_| (0..=random.below(3)).map(|_| act(random)).collect()).collect();
    // Somebody ends the waiting.
    threads.push((0..=random.below(2)).map(|_| Act::Store(usize::from(random.below(4) == 0), 1)).collect());
    threads
}

/// Where all threads are, and what they have noted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// By thread: the act, and the round, as far as it matters.
    next: Vec<(usize, usize)>,
    seen: Vec<Vec<usize>>,
    cells: [usize; 2],
}

impl State {
    /// One event of a thread later; nothing if it has ended.
    fn step(&self, program: &Program, thread: usize) -> Option<Self> {
        let mut after = self.clone();
        let (act, round) = self.next[thread];
        let mut next = (act + 1, 0);
        match *program[thread].get(act)? {
            Act::Load(cell) => after.seen[thread].push(self.cells[cell]),
            Act::Store(cell, value) => after.cells[cell] = value,
            Act::Look(cell, most) => match self.cells[cell] {
                0 if round + 1 < most => next = (act, round + 1),
                found => after.seen[thread].push(usize::from(found != 0)),
            },
            Act::Rounds(cell, most) => match self.cells[cell] {
                0 if round + 1 < most => next = (act, round + 1),
                _ => after.seen[thread].push(round),
            },
            Act::Wait(cell) | Act::Fenced(cell) => {
                if self.cells[cell] == 0 {
                    next = (act, 0);
                }
            }
            Act::Count(cell, most) => match self.cells[cell] {
                0 => next = (act, most.min(round + 1)),
                _ => after.seen[thread].push(round),
            },
        }
        after.next[thread] = next;
        Some(after)
    }
}

/// What the threads have noted in the end, over all schedules; nothing if a thread may wait for ever.
fn tried_out(program: &Program) -> Option<Outcomes> {
    let threads = program.len();
    let mut outcomes = Outcomes::new();
    let mut known = HashSet::new();
    let mut open = vec![State { next: vec![(0, 0); threads], seen: vec![Vec::new(); threads], cells: [0; 2] }];
    while let Some(state) = open.pop() {
        if !known.insert(state.clone()) {
            continue;
        }
        let steps: Vec<_> = (0..threads).filter_map(|thread| state.step(program, thread)).collect();
        if steps.is_empty() {
            outcomes.insert(state.seen.concat().into_iter().chain(state.cells).collect());
        } else if steps.iter().all(|after| *after == state) {
            return None;
        }
        open.extend(steps);
    }
    Some(outcomes)
}

/// What all loops say that they wait with.
fn give_way() {
    thread::yield_now();
}

fn perform(cells: &[AtomicUsize; 2], acts: &[Act]) -> Vec<usize> {
    let mut seen = Vec::new();
    for &act in acts {
        match act {
            Act::Load(cell) => seen.push(cells[cell].load(SeqCst)),
            Act::Store(cell, value) => cells[cell].store(value, SeqCst),
            Act::Look(cell, most) => {
                let mut found = 0;
                for round in 0..most {
                    found = cells[cell].load(SeqCst);
                    if found != 0 {
                        break;
                    }
                    if round + 1 < most {
                        give_way();
                    }
                }
                seen.push(usize::from(found != 0));
            }
            Act::Rounds(cell, most) => {
                let mut round = 0;
                while cells[cell].load(SeqCst) == 0 && round + 1 < most {
                    round += 1;
                    give_way();
                }
                seen.push(round);
            }
            Act::Wait(cell) => {
                while cells[cell].load(SeqCst) == 0 {
                    give_way();
                }
            }
            Act::Fenced(cell) => loop {
                crate::sync::atomic::fence(SeqCst);
                if cells[cell].load(SeqCst) != 0 {
                    break;
                }
                give_way();
            },
            Act::Count(cell, most) => {
                let mut rounds = 0;
                while cells[cell].load(SeqCst) == 0 {
                    rounds += 1;
                    give_way();
                }
                seen.push(most.min(rounds));
            }
        }
    }
    seen
}

fn run(program: &Program) -> Vec<usize> {
    let cells = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let start = |acts: &Vec<Act>| {
        let (cells, acts) = (cells.clone(), acts.clone());
        thread::spawn(move || {
            let seen = perform(&cells, &acts);
            // What nobody sees does not matter.
            AtomicUsize::new(0).store(seen.iter().fold(1, |all, one| 4 * all + one), SeqCst);
            seen
        })
    };
    let threads: Vec<_> = program.iter().map(start).collect();
    let mut seen: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    seen.extend(cells.iter().map(|cell| cell.load(SeqCst)));
    seen
}

#[test]
fn loops_that_share_a_call_come_to_what_a_machine_that_tries_all_comes_to() {
    let mut random = Random(0x5ba2);
    let (mut tried, mut noted) = (0, 0);
    for number in 0..600 {
        let program = StdArc::new(program(&mut random));
        let Some(all) = tried_out(&program) else { continue };
        let which = format!("{number}: {program:?}");
        let counts = program.iter().flatten().any(|act| matches!(act, Act::Count(..)));
        let (everything, leaves_out) = found_in_all(move || run(&program));
        assert!(everything.is_subset(&all), "{which}: {:?}", everything.difference(&all).next());
        assert!(leaves_out || everything == all, "{which}: {:?}", all.difference(&everything).next());
        assert!(counts || !leaves_out, "{which}");
        (tried, noted) = (tried + 1, noted + usize::from(leaves_out));
    }
    assert!(tried > 300 && noted > 20, "{noted} of {tried}");
}
