//! Schedules as short strings: what `--replay` takes.
//!
//! A schedule is the list of steps of an SC execution. Its text is a list of runs separated by dots: the number of a
//! thread, `x` and how many steps it takes in a row if that is not 1, and `=` and the value if the step makes a choice
//! (the value of a `choose`, the thread woken by a `notify_one`). `0x3.1=2.0` is three steps of thread 0, one of thread
//! 1 that chooses 2, one of thread 0. `1w` is a wake-up of thread 1 that nobody asked for (`--spurious-wakeups`).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use weakspot_model::ids::ThreadId;
use weakspot_model::machine::Action;

/// The steps of an SC execution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedule {
    steps: Vec<Action>,
}

/// A text that is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{run}`, part {part} of the schedule, is not a thread number, alone or with `x` and a count, `=` and a choice, or `w`"
)]
pub struct ScheduleError {
    /// Which run, counted from 1.
    pub part: usize,
    /// Its text.
    pub run: String,
}

/// A run may not be longer than this: no text of a few characters makes millions of steps.
const LONGEST_RUN: usize = 10_000_000;

impl Schedule {
    /// The schedule of steps of the SC machine; other actions do not occur under SC and are left out.
    pub fn of(actions: &[Action]) -> Self {
        let is_sc = |action: &&Action| !matches!(action, Action::Commit { .. });
        Self { steps: actions.iter().filter(is_sc).copied().collect() }
    }

    /// As steps of the SC machine.
    pub fn actions(&self) -> &[Action] {
        &self.steps
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// No steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        while let Some(&step) = self.steps.get(at) {
            if at > 0 {
                f.write_str(".")?;
            }
            write!(f, "{}", step.thread().0)?;
            let run = self.steps[at..].iter().take_while(|other| **other == step).count();
            at += match step {
                Action::Step { choice: 0, .. } => {
                    if run > 1 {
                        write!(f, "x{run}")?;
                    }
                    run
                }
                Action::Step { choice, .. } => {
                    write!(f, "={choice}")?;
                    1
                }
                Action::Wake { .. } | Action::Commit { .. } => {
                    f.write_str("w")?;
                    1
                }
            };
        }
        Ok(())
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let mut steps = Vec::new();
        if text.is_empty() {
            return Ok(Self { steps });
        }
        for (index, run) in text.split('.').enumerate() {
            let error = || ScheduleError { part: index + 1, run: run.to_owned() };
            let (step, count) = parse_run(run).ok_or_else(error)?;
            steps.extend(std::iter::repeat_n(step, count));
            if steps.len() > LONGEST_RUN {
                return Err(error());
            }
        }
        Ok(Self { steps })
    }
}

fn parse_run(run: &str) -> Option<(Action, usize)> {
    let thread = |text: &str| text.parse().ok().map(ThreadId);
    if let Some((name, choice)) = run.split_once('=') {
        return Some((Action::Step { thread: thread(name)?, choice: choice.parse().ok()? }, 1));
    }
    if let Some(name) = run.strip_suffix('w') {
        return Some((Action::Wake { thread: thread(name)? }, 1));
    }
    let (name, count) = run.split_once('x').unwrap_or((run, "1"));
    let count = count.parse().ok().filter(|&count| (1..=LONGEST_RUN).contains(&count))?;
    Some((Action::Step { thread: thread(name)?, choice: 0 }, count))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn step(thread: u16, choice: i64) -> Action {
        Action::Step { thread: ThreadId(thread), choice }
    }

    #[test]
    fn runs_are_counted_and_choices_are_kept() {
        let actions = [step(0, 0), step(0, 0), step(0, 0), step(1, 2), step(1, -3), step(0, 0)];
        let schedule = Schedule::of(&actions);
        assert_eq!(schedule.to_string(), "0x3.1=2.1=-3.0");
        assert_eq!(schedule.to_string().parse::<Schedule>().unwrap().actions(), actions);
        assert_eq!("".parse::<Schedule>().unwrap(), Schedule::default());
        let woken = [step(0, 0), Action::Wake { thread: ThreadId(1) }, Action::Wake { thread: ThreadId(1) }];
        assert_eq!(Schedule::of(&woken).to_string(), "0.1w.1w");
        assert_eq!("0.1w.1w".parse::<Schedule>().unwrap().actions(), woken);
    }

    #[test]
    fn a_text_that_is_no_schedule_names_its_part() {
        for (text, part) in
            [("0.x", 2), ("a", 1), ("0x0", 1), ("1.0x2=3", 2), ("0..1", 2), ("0x99999999999", 1), ("w", 1), ("0x2w", 1)]
        {
            assert_eq!(text.parse::<Schedule>().unwrap_err().part, part, "{text}");
        }
    }
}
