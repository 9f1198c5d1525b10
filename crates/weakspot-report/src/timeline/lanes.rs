//! Which stores waited in a buffer, from which step to which, and how that is drawn.

use std::cmp::Ordering;
use std::collections::HashMap;

use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::machine::Effect;

use super::Execution;

/// More stores than this of one thread that wait at the same time get no lane of their own, only a number.
const MAX_LANES: usize = 4;

/// One buffered store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delay {
    pub thread: ThreadId,
    pub loc: Loc,
    pub value: i64,
    /// The step that issued the store.
    pub store: usize,
    /// The step that made it visible; `None`: it waits to the end.
    pub commit: Option<usize>,
    /// The lane of the thread's column that connects the two.
    pub lane: Option<usize>,
    /// ①, ②, … for a store that waited while something else happened.
    pub marker: Option<String>,
}

/// All buffered stores of an execution.
pub(super) struct Lanes {
    /// In the order of their stores.
    pub delays: Vec<Delay>,
    /// The delay that each storing step began.
    by_store: HashMap<usize, usize>,
    /// For each thread and lane: the delays drawn there, in the order of their stores; they do not overlap.
    by_lane: Vec<Vec<Vec<usize>>>,
}

impl Lanes {
    pub fn new(execution: &Execution<'_>) -> Self {
        let mut delays = buffered_stores(execution);
        number(&mut delays);
        let by_lane = assign_lanes(&mut delays, execution.program.threads.len());
        let by_store = delays.iter().enumerate().map(|(index, delay)| (delay.store, index)).collect();
        Self { delays, by_store, by_lane }
    }

    /// How many lanes a thread's column has.
    pub fn count(&self, thread: ThreadId) -> usize {
        self.by_lane[thread.index()].len()
    }

    /// The delay that a step began.
    pub fn of_store(&self, step: usize) -> Option<&Delay> {
        self.by_store.get(&step).map(|&index| &self.delays[index])
    }

    /// The number of the store that a step issued, committed or read from; empty if it has none.
    pub fn marker(&self, step: usize) -> &str {
        self.of_store(step).and_then(|delay| delay.marker.as_deref()).unwrap_or_default()
    }

    /// What stands in a lane of a thread in a row: rows are steps, then the rows of the ending. `last` gives for each
    /// delay the row in which it ends. `first_line`: is this the first line of the row?
    pub fn glyph(&self, thread: ThreadId, lane: usize, row: usize, last: &[usize], first_line: bool) -> char {
        let users = &self.by_lane[thread.index()][lane];
        let begun = users.partition_point(|&index| self.delays[index].store <= row);
        let Some(&index) = begun.checked_sub(1).and_then(|at| users.get(at)) else { return ' ' };
        match (row == self.delays[index].store, row.cmp(&last[index]), first_line) {
            (_, Ordering::Greater, _) => ' ',
            (true, _, true) => '╭',
            (_, Ordering::Equal, true) => '╰',
            (_, Ordering::Equal, false) => ' ',
            _ => '│',
        }
    }
}

fn buffered_stores(execution: &Execution<'_>) -> Vec<Delay> {
    let mut delays: Vec<Delay> = Vec::new();
    let mut by_store = HashMap::new();
    for (index, step) in execution.replay.steps.iter().enumerate() {
        let thread = step.action.thread();
        match step.effect {
            Some(Effect::Store { loc, value, buffered: true }) => {
                by_store.insert(index, delays.len());
                delays.push(Delay { thread, loc, value, store: index, commit: None, lane: None, marker: None });
            }
            Some(Effect::Commit { .. }) => {
                if let Some(&delay) = step.store.and_then(|store| by_store.get(&store)) {
                    delays[delay].commit = Some(index);
                }
            }
            _ => {}
        }
    }
    delays
}

fn number(delays: &mut [Delay]) {
    let waited = |delay: &&mut Delay| delay.commit != Some(delay.store + 1);
    for (index, delay) in delays.iter_mut().filter(waited).enumerate() {
        delay.marker = Some(marker(index + 1));
    }
}

/// ① to ⑳, then (21), (22), …
fn marker(number: usize) -> String {
    match u32::try_from(number) {
        Ok(small @ 1..=20) => char::from_u32('①' as u32 + small - 1).map(String::from),
        _ => None,
    }
    .unwrap_or_else(|| format!("({number})"))
}

/// Gives each delay the first lane of its thread that is free, and returns who uses each lane, in order.
fn assign_lanes(delays: &mut [Delay], threads: usize) -> Vec<Vec<Vec<usize>>> {
    let mut users: Vec<Vec<Vec<usize>>> = vec![Vec::new(); threads];
    for index in 0..delays.len() {
        let begins = delays[index].store;
        let lanes = &mut users[delays[index].thread.index()];
        let is_free = |lane: &Vec<usize>| {
            let last_user = lane.last().map(|&user| &delays[user]);
            last_user.is_none_or(|user| user.commit.is_some_and(|commit| commit < begins))
        };
        let lane = lanes.iter().position(is_free).unwrap_or(lanes.len());
        if lane == MAX_LANES {
            continue;
        }
        if lane == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[lane].push(index);
        delays[index].lane = Some(lane);
    }
    users
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(thread: u16, store: usize, commit: Option<usize>) -> Delay {
        Delay { thread: ThreadId(thread), loc: Loc(0), value: 1, store, commit, lane: None, marker: None }
    }

    #[test]
    fn stores_that_wait_together_get_lanes_of_their_own() {
        let mut delays = [delay(0, 0, Some(5)), delay(0, 1, Some(2)), delay(1, 1, None), delay(0, 3, Some(6))];
        assert_eq!(assign_lanes(&mut delays, 2), [vec![vec![0], vec![1, 3]], vec![vec![2]]]);
        assert_eq!(delays.map(|delay| delay.lane), [Some(0), Some(1), Some(0), Some(1)]);
    }

    #[test]
    fn only_stores_that_waited_are_numbered() {
        let mut delays = [delay(0, 0, Some(1)), delay(0, 2, Some(4)), delay(0, 3, None)];
        number(&mut delays);
        assert_eq!(delays.map(|delay| delay.marker.unwrap_or_default()), ["", "①", "②"]);
    }

    #[test]
    fn markers_go_on_after_the_last_circled_number() {
        assert_eq!((marker(20), marker(21)), ("⑳".to_owned(), "(21)".to_owned()));
    }
}
