//! The log format of the herd7 simulator, so that the tools that read such logs read ours.
//!
//! ```text
//! Test SB Allowed
//! States 4
//! 0:EAX=0; 1:EAX=0;
//! …
//! Ok
//! Witnesses
//! Positive: 1 Negative: 3
//! Condition exists (0:EAX=0 /\ 1:EAX=0)
//! Observation SB Sometimes 1 3
//! Time SB 0.00
//! Robust SB no tso
//!
//! ```
//!
//! `Positive` and `Negative` count executions (pairs of reads-from and coherence) that satisfy the condition's formula
//! and that do not; for `~exists` the `Witnesses` line counts the other way round, as herd's does, while `Observation`
//! always speaks of the formula. `Loop Ok` means that loops were cut off and more states may be possible. The last line is ours: readers of such logs skip a line of the form
//! `Word NAME anything` behind the condition, so it is safe there.

use std::fmt::Write as _;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::litmus::{LitmusTest, Observable, Quantifier};

/// What is known about one litmus test under one model.
#[derive(Debug, Clone)]
pub struct LitmusResult<'a> {
    /// The test.
    pub test: &'a LitmusTest,
    /// The model it was run under.
    pub model: MemoryModel,
    /// Final states: the value of each of the test's observables, and how many executions end there.
    pub states: &'a [(Vec<i64>, u64)],
    /// Is the test store-buffer safe under the model?
    pub robust: bool,
    /// Were loops cut off, so that there may be more states?
    pub unrolled: bool,
    /// How long it took.
    pub seconds: f64,
}

/// How often the formula of a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Executions whose final state satisfies it.
    pub positive: u64,
    /// Executions whose final state does not.
    pub negative: u64,
}

impl Counts {
    /// `Always`, `Sometimes` or `Never`.
    pub fn observation(self) -> &'static str {
        match (self.positive, self.negative) {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        }
    }

    /// Is the condition met: `Ok`, or `No`?
    pub fn condition(self, quantifier: Quantifier) -> &'static str {
        let met = match quantifier {
            Quantifier::Exists => self.positive > 0,
            Quantifier::NotExists => self.positive == 0,
            Quantifier::Forall => self.negative == 0,
        };
        if met { "Ok" } else { "No" }
    }
}

impl LitmusResult<'_> {
    /// Counts the executions that satisfy the formula and those that do not.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { positive: 0, negative: 0 };
        for (values, executions) in self.states {
            let value = |wanted: Observable| {
                let at = self.test.observed.iter().position(|observable| *observable == wanted);
                at.and_then(|at| values.get(at)).copied().expect("invariant: a condition names observables only")
            };
            if self.test.condition.holds(&value) {
                counts.positive += executions;
            } else {
                counts.negative += executions;
            }
        }
        counts
    }

    /// The final states as printed, sorted.
    pub fn state_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.states.iter().map(|(values, _)| state_line(self.test, values)).collect();
        lines.sort();
        lines
    }

    /// The entry of the log; ends with an empty line.
    pub fn log(&self) -> String {
        let (name, counts) = (&self.test.name, self.counts());
        let mut text = String::new();
        self.write_log(&mut text, name, counts).expect("invariant: writing to a string does not fail");
        text
    }

    fn write_log(&self, text: &mut String, name: &str, counts: Counts) -> std::fmt::Result {
        let Counts { positive, negative } = counts;
        let (kind, witnesses) = match self.test.quantifier {
            Quantifier::Exists => ("Allowed", (positive, negative)),
            Quantifier::Forall => ("Required", (positive, negative)),
            Quantifier::NotExists => ("Forbidden", (negative, positive)),
        };
        writeln!(text, "Test {name} {kind}")?;
        writeln!(text, "States {}", self.states.len())?;
        for line in self.state_lines() {
            writeln!(text, "{line}")?;
        }
        let cut_off = if self.unrolled { "Loop " } else { "" };
        writeln!(text, "{cut_off}{}", counts.condition(self.test.quantifier))?;
        writeln!(text, "Witnesses")?;
        writeln!(text, "Positive: {} Negative: {}", witnesses.0, witnesses.1)?;
        writeln!(text, "Condition {}", self.test.condition_text)?;
        writeln!(text, "Observation {name} {} {positive} {negative}", counts.observation())?;
        writeln!(text, "Time {name} {:.2}", self.seconds)?;
        writeln!(text, "Robust {name} {} {}", if self.robust { "yes" } else { "no" }, self.model.name())?;
        writeln!(text)
    }
}

/// `0:EAX=0; [x]=1;`
fn state_line(test: &LitmusTest, values: &[i64]) -> String {
    let binding = |(observable, value): (&Observable, &i64)| match *observable {
        Observable::Register(thread, register) => {
            let name = &test.program.threads[thread.index()].registers[register.index()].name;
            format!("{}:{}={value};", thread.index(), name.as_deref().unwrap_or("?"))
        }
        Observable::Memory(loc) => format!("[{}]={value};", test.program.locations[loc.index()].name),
    };
    test.observed.iter().zip(values).map(binding).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use weakspot_model::ids::{Loc, Reg, ThreadId};
    use weakspot_model::ir::{Location, Program, Register, Thread};
    use weakspot_model::litmus::Condition;
    use weakspot_model::source::SourceFile;

    use super::*;

    fn test(quantifier: Quantifier, condition: Condition) -> LitmusTest {
        let thread = |name: &str| Thread {
            name: name.to_owned(),
            template: name.to_owned(),
            index: 0,
            registers: vec![Register { name: Some("EAX".to_owned()), observed: true }],
            code: Vec::new(),
            sites: Vec::new(),
            critical: Vec::new(),
        };
        LitmusTest {
            name: "T".to_owned(),
            program: Program {
                source: SourceFile::new("T.litmus", ""),
                locations: vec![Location { name: "x".to_owned(), init: 0, range: None }],
                mutexes: Vec::new(),
                condvars: Vec::new(),
                threads: vec![thread("P0"), thread("P1")],
                final_block: None,
                messages: Vec::new(),
                sites: Vec::new(),
            },
            observed: vec![Observable::Register(ThreadId(1), Reg(0)), Observable::Memory(Loc(0))],
            quantifier,
            condition,
            condition_text: "exists (1:EAX=1)".to_owned(),
        }
    }

    fn log(quantifier: Quantifier, states: &[(Vec<i64>, u64)]) -> String {
        let test = test(quantifier, Condition::Equals(Observable::Register(ThreadId(1), Reg(0)), 1));
        LitmusResult { test: &test, model: MemoryModel::Tso, states, robust: false, unrolled: false, seconds: 0.0 }
            .log()
    }

    #[test]
    fn a_log_entry_has_herds_lines_in_herds_order() {
        let expected = "Test T Allowed\nStates 2\n1:EAX=0; [x]=2;\n1:EAX=1; [x]=1;\nOk\nWitnesses\n\
                        Positive: 1 Negative: 3\nCondition exists (1:EAX=1)\nObservation T Sometimes 1 3\n\
                        Time T 0.00\nRobust T no tso\n\n";
        assert_eq!(log(Quantifier::Exists, &[(vec![1, 1], 1), (vec![0, 2], 3)]), expected);
    }

    #[test]
    fn a_forbidden_state_that_is_reached_counts_as_a_negative_witness() {
        let entry = log(Quantifier::NotExists, &[(vec![1, 1], 1), (vec![0, 2], 3)]);
        assert!(entry.contains("Test T Forbidden\n"), "{entry}");
        assert!(entry.contains("\nNo\nWitnesses\nPositive: 3 Negative: 1\n"), "{entry}");
        assert!(entry.contains("Observation T Sometimes 1 3\n"), "{entry}");
    }

    #[test]
    fn a_required_condition_is_ok_only_if_it_holds_always() {
        let entry = log(Quantifier::Forall, &[(vec![1, 1], 1), (vec![1, 2], 3)]);
        assert!(entry.contains("Test T Required\n") && entry.contains("\nOk\n"), "{entry}");
        assert!(entry.contains("Observation T Always 4 0\n"), "{entry}");
        let entry = log(Quantifier::Forall, &[(vec![0, 1], 2)]);
        assert!(entry.contains("\nNo\n") && entry.contains("Observation T Never 0 2\n"), "{entry}");
    }
}
