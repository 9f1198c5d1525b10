//! Litmus tests from critical cycles, in the manner of the `diy` generator.
//!
//! A cycle visits the threads one after the other. Inside a thread it goes from access to access, with or without a
//! fence, to another location or the same; between threads it stays at one location, so the kind of each such step
//! follows from the two accesses: write to read is reads-from (`Rfe`), read to write from-read (`Fre`), write to
//! write coherence (`Coe`). Two reads in a row across threads are no step and are not generated.
//!
//! Locations are used in the order of the cycle, each for one *run* of neighbouring accesses. The writes of a run write
//! 1, 2, … and its reads expect what the write before wrote, so that the test's condition describes the cycle: if a run
//! has at most two writes, only an execution with exactly this cycle satisfies it.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use crate::rng::Rng;

/// How a location is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// `MOV REG,[x]`.
    Read,
    /// `MOV [x],$v`.
    Write,
    /// `XCHG [x],REG`: counts as a write in the cycle.
    Exchange,
}

impl Access {
    fn writes(self) -> bool {
        self != Self::Read
    }

    fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::Exchange => 'X',
        }
    }
}

/// How the cycle goes on to the next access of the same thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Internal {
    /// To another location?
    pub other_location: bool,
    /// With an `MFENCE` between?
    pub fence: bool,
}

/// One thread's part of a cycle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The first access.
    pub first: Access,
    /// The accesses after it.
    pub rest: Vec<(Internal, Access)>,
}

impl Segment {
    fn accesses(&self) -> impl Iterator<Item = Access> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().map(|&(_, access)| access))
    }

    fn last(&self) -> Access {
        self.rest.last().map_or(self.first, |&(_, access)| access)
    }
}

/// A cycle through at least two threads and at least two locations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cycle {
    /// The threads in the order of the cycle.
    pub segments: Vec<Segment>,
}

/// An access with its place in the cycle.
#[derive(Debug, Clone, Copy)]
struct Visit {
    thread: usize,
    access: Access,
    location: usize,
    /// For a write the value it writes, for a read the value it expects.
    value: u32,
    fence_before: bool,
}

impl Cycle {
    /// A random cycle.
    pub fn random(seed: u64, threads: RangeInclusive<usize>) -> Self {
        let mut rng = Rng::new(seed);
        loop {
            let segments = (0..rng.within(threads.clone())).map(|_| random_segment(&mut rng)).collect();
            let cycle = Self { segments };
            if cycle.is_proper() {
                return cycle;
            }
        }
    }

    /// Two locations at least, and no two reads in a row across threads.
    fn is_proper(&self) -> bool {
        let next = |index: usize| &self.segments[(index + 1) % self.segments.len()];
        let mut ends = self.segments.iter().enumerate().map(|(index, segment)| (segment.last(), next(index).first));
        self.locations() >= 2 && ends.all(|(from, to)| from.writes() || to.writes())
    }

    /// How many locations it visits.
    pub fn locations(&self) -> usize {
        self.segments.iter().flat_map(|segment| &segment.rest).filter(|(step, _)| step.other_location).count()
    }

    /// Does the condition hold only in executions that contain the cycle? True if no location has three writes.
    pub fn is_pinned(&self) -> bool {
        let visits = self.visits();
        (0..self.locations()).all(|location| writes_of(&visits, location) <= 2)
    }

    /// `PodWR+Fre+MFencedWW+…`, the steps in order.
    pub fn name(&self) -> String {
        let mut steps = Vec::new();
        for (index, segment) in self.segments.iter().enumerate() {
            let mut from = segment.first;
            for &(step, to) in &segment.rest {
                let fence = if step.fence { "MFence" } else { "Po" };
                let place = if step.other_location { 'd' } else { 's' };
                steps.push(format!("{fence}{place}{}{}", from.letter(), to.letter()));
                from = to;
            }
            let to = self.segments[(index + 1) % self.segments.len()].first;
            steps.push(match (from.writes(), to.writes()) {
                (true, false) => "Rfe".to_owned(),
                (false, _) => "Fre".to_owned(),
                (true, true) => "Coe".to_owned(),
            });
        }
        steps.join("+")
    }

    /// As a test in herd's X86 dialect; its condition asks for the cycle.
    pub fn litmus(&self) -> String {
        let visits = self.visits();
        let mut columns = vec![Vec::new(); self.segments.len()];
        let mut registers = vec![0; self.segments.len()];
        let mut atoms = Vec::new();
        for visit in &visits {
            let column: &mut Vec<String> = &mut columns[visit.thread];
            if visit.fence_before {
                column.push("MFENCE".to_owned());
            }
            let (register, location) = (register(registers[visit.thread]), location(visit.location));
            registers[visit.thread] += usize::from(visit.access != Access::Write);
            match visit.access {
                Access::Read => {
                    column.push(format!("MOV {register},[{location}]"));
                    atoms.push(format!("{}:{register}={}", visit.thread, visit.value));
                }
                Access::Write => column.push(format!("MOV [{location}],${}", visit.value)),
                Access::Exchange => {
                    column.push(format!("MOV {register},${}", visit.value));
                    column.push(format!("XCHG [{location}],{register}"));
                }
            }
        }
        for index in 0..self.locations() {
            let writes = writes_of(&visits, index);
            if writes >= 2 {
                atoms.push(format!("{}={writes}", location(index)));
            }
        }
        format!("X86 {}\n{{ }}\n{}exists ({})\n", self.name(), code_table(&columns), atoms.join(" /\\ "))
    }

    fn visits(&self) -> Vec<Visit> {
        let locations = self.locations();
        let mut visits = Vec::new();
        let mut location = 0;
        for (thread, segment) in self.segments.iter().enumerate() {
            let steps = segment.rest.iter().map(|&(step, _)| Some(step));
            for (access, step) in segment.accesses().zip(std::iter::once(None).chain(steps)) {
                let step: Option<Internal> = step;
                location += usize::from(step.is_some_and(|step| step.other_location));
                let fence_before = step.is_some_and(|step| step.fence);
                visits.push(Visit { thread, access, location: location % locations, value: 0, fence_before });
            }
        }
        number_values(&mut visits);
        visits
    }
}

/// Numbers the writes of each run, in the order of the cycle. The run of location 0 begins at the end of the list.
fn number_values(visits: &mut [Visit]) {
    let wrapped = visits.iter().rev().take_while(|visit| visit.location == 0).count();
    visits.rotate_right(wrapped);
    let mut written = 0;
    for index in 0..visits.len() {
        if index > 0 && visits[index].location != visits[index - 1].location {
            written = 0;
        }
        written += u32::from(visits[index].access.writes());
        visits[index].value = written;
    }
    visits.rotate_left(wrapped);
}

fn writes_of(visits: &[Visit], location: usize) -> usize {
    visits.iter().filter(|visit| visit.location == location && visit.access.writes()).count()
}

fn random_segment(rng: &mut Rng) -> Segment {
    let accesses =
        [Access::Read, Access::Read, Access::Read, Access::Write, Access::Write, Access::Write, Access::Exchange];
    let first = rng.pick(&accesses);
    let mut rest = Vec::new();
    for _ in 0..rng.pick(&[1, 1, 1, 2, 2, 3]) {
        let step = Internal { other_location: !rng.one_in(4), fence: rng.one_in(4) };
        rest.push((step, rng.pick(&accesses)));
    }
    Segment { first, rest }
}

fn register(index: usize) -> &'static str {
    ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI"][index]
}

fn location(index: usize) -> String {
    match index {
        0 => "x".to_owned(),
        1 => "y".to_owned(),
        2 => "z".to_owned(),
        more => format!("a{more}"),
    }
}

/// The threads side by side.
fn code_table(columns: &[Vec<String>]) -> String {
    let width = |column: &Vec<String>| column.iter().map(String::len).max().unwrap_or(0).max(2);
    let widths: Vec<usize> = columns.iter().map(width).collect();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..=rows {
        for (thread, column) in columns.iter().enumerate() {
            let head = format!("P{thread}");
            let cell = if row == 0 { head.as_str() } else { column.get(row - 1).map_or("", String::as_str) };
            let separator = if thread == 0 { "" } else { "|" };
            let _ = write!(text, "{separator} {cell:<width$} ", width = widths[thread]);
        }
        text.push_str(";\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(other_location: bool, fence: bool) -> Internal {
        Internal { other_location, fence }
    }

    #[test]
    fn store_buffering_is_a_cycle() {
        let side = Segment { first: Access::Write, rest: vec![(step(true, false), Access::Read)] };
        let cycle = Cycle { segments: vec![side.clone(), side] };
        assert_eq!(cycle.name(), "PodWR+Fre+PodWR+Fre");
        let expected = "\
X86 PodWR+Fre+PodWR+Fre
{ }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";
        assert_eq!(cycle.litmus(), expected);
    }

    #[test]
    fn values_follow_the_run_of_a_location_around_the_end() {
        let side = Segment { first: Access::Exchange, rest: vec![(step(true, true), Access::Write)] };
        let cycle = Cycle { segments: vec![side.clone(), side] };
        let text = cycle.litmus();
        assert!(text.contains(" MOV [y],$1   | MOV [x],$1   ;\n"), "{text}");
        assert!(text.contains(" MOV EAX,$2   | MOV EAX,$2   ;\n"), "{text}");
        assert!(text.ends_with("exists (x=2 /\\ y=2)\n"), "{text}");
        assert!(cycle.is_pinned());
    }

    #[test]
    fn random_cycles_are_proper() {
        for seed in 0..300 {
            let cycle = Cycle::random(seed, 2..=4);
            assert!(cycle.is_proper());
            assert_eq!(cycle, Cycle::random(seed, 2..=4));
        }
    }
}
