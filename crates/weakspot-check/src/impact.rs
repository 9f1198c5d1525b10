//! What comes of a program that is not store-buffer safe.
//!
//! Harm or its absence is a question for the [portfolio](weakspot_verify::portfolio) of verification engines, unless the
//! program has nothing in it that can fail.

use weakspot_model::ids::Pc;
use weakspot_model::ir::{BinaryOp, Instr, Location, Operand, Place, Program, RmwOp, UnaryOp};
use weakspot_model::liveness::successors;
use weakspot_model::replay::Witness;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_verify::explicit::ExplicitOptions;
use weakspot_verify::portfolio;

use crate::endings::pauses;
use crate::{CheckOptions, InternalError};

/// Does it matter that the program is not store-buffer safe?
#[derive(Debug, Clone)]
pub enum Impact {
    /// This relaxed execution breaks the specification.
    Harmful(Witness),
    /// No relaxed execution breaks the specification: proved with unbounded buffers.
    Benign,
    /// Neither found nor proved within this limit.
    Unknown(Limit),
}

/// Bounds on store buffers, tried in this order.
const BUFFER_BOUNDS: [usize; 4] = [1, 2, 4, 8];

/// States after which a bound is given up, so that `check` always ends.
pub const MAX_STATES: u64 = 20_000_000;

/// The same where executions were bounded, perhaps because there is no end of them.
pub const MAX_STATES_UNDER_BOUNDS: u64 = 500_000;

/// The same where one schedule or some schedules were asked for, which takes a moment.
pub const MAX_STATES_OF_SAMPLING: u64 = 200_000;

/// The same where a violation is known, and another search would only show it with fewer events.
pub const MAX_STATES_FOR_BREVITY: u64 = 500_000;

/// Abstract states after which there is no proof; they are dearer than those of the machine.
const MAX_ABSTRACT_STATES: u64 = 2_000_000;

/// States among which one worker looks for harm alone, before all of them do: what several find first is chance, and a
/// finding should not depend on their number where that costs nothing.
const STATES_ALONE: u64 = 50_000;

/// Searches for harm, then for a proof that there is none.
pub fn judge(
    program: &Program,
    options: &CheckOptions,
    max_states: u64,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Impact, InternalError> {
    if !can_fail(program) {
        return Ok(Impact::Benign);
    }
    let search = ExplicitOptions { max_states: Some(max_states), ..options.explicit(options.model) };
    if options.jobs > 1 {
        let alone = ExplicitOptions { jobs: 1, max_states: Some(max_states.min(STATES_ALONE)), ..search.clone() };
        let answer = portfolio::climb(program, &alone, &BUFFER_BOUNDS, budget, progress)?;
        if let Verdict::Violated(witness) = answer.verdict {
            return Ok(Impact::Harmful(witness));
        }
    }
    let max_abstract_states = max_states.min(MAX_ABSTRACT_STATES);
    let mut answer = portfolio::decide(program, &search, &BUFFER_BOUNDS, max_abstract_states, budget, progress)?;
    if let Verdict::Inconclusive(reached @ Limit::Buffer(_)) = answer.verdict {
        answer = portfolio::unbounded(program, &search, reached, budget, progress)?;
    }
    Ok(match answer.verdict {
        Verdict::Violated(witness) => Impact::Harmful(witness),
        Verdict::Verified => Impact::Benign,
        Verdict::Inconclusive(limit) => Impact::Unknown(limit),
    })
}

/// Is there an instruction that can break the specification, or keep others from going on, for some values? This follows
/// [`weakspot_model::local`], which says what each of them does.
pub fn can_fail(program: &Program) -> bool {
    let mut threads = program.threads.iter().chain(&program.final_block);
    threads.any(|thread| {
        computes_in_a_circle(&thread.code) || thread.code.iter().any(|instr| is_fallible(instr, &program.locations))
    })
}

/// Can a thread go round a loop without an event? Doing so for too long is an error.
fn computes_in_a_circle(code: &[Instr]) -> bool {
    let next = |pc: usize| {
        let next = if pauses(&code[pc]) { None } else { Some(successors(&code[pc], Pc::new(pc))) };
        next.into_iter().flatten().map(Pc::index)
    };
    // What nothing leads to is taken away until nothing is left but circles, and what they lead to.
    let mut ways_to = vec![0; code.len()];
    (0..code.len()).flat_map(next).for_each(|to| ways_to[to] += 1);
    let mut free: Vec<usize> = (0..code.len()).filter(|&pc| ways_to[pc] == 0).collect();
    let mut taken = 0;
    while let Some(pc) = free.pop() {
        taken += 1;
        for to in next(pc) {
            ways_to[to] -= 1;
            if ways_to[to] == 0 {
                free.push(to);
            }
        }
    }
    taken < code.len()
}

fn is_fallible(instr: &Instr, locations: &[Location]) -> bool {
    let is_missed = |place: Place| match place {
        Place::Fixed(_) => false,
        Place::Indexed { len, index: Operand::Const(index), .. } => {
            !u32::try_from(index).is_ok_and(|index| index < len)
        }
        Place::Indexed { .. } => true,
    };
    // Any value may come to a cell that takes all of them.
    let is_narrow = |place: Place| match place {
        Place::Fixed(loc) => locations[loc.index()].range.is_some(),
        Place::Indexed { base, len, .. } => locations[base.index()..][..len as usize].iter().any(|l| l.range.is_some()),
    };
    match *instr {
        Instr::Load { place, .. } => is_missed(place),
        Instr::Store { place, .. } => is_missed(place) || is_narrow(place),
        Instr::Rmw { place, op, .. } => matches!(op, RmwOp::Add(_)) || is_missed(place) || is_narrow(place),
        Instr::Unary { op, .. } => op != UnaryOp::Not,
        Instr::Binary { op, .. } => !matches!(
            op,
            BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor
        ),
        Instr::Fence(_)
        | Instr::Set { .. }
        | Instr::Jump { .. }
        | Instr::Branch { .. }
        | Instr::Assume { .. }
        | Instr::ThreadRegister { .. }
        | Instr::End => false,
        Instr::Assert { .. }
        | Instr::EnterCritical
        | Instr::LeaveCritical
        | Instr::Choose { .. }
        | Instr::Lock(_)
        | Instr::Unlock(_)
        | Instr::Wait { .. }
        | Instr::Notify { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use weakspot_front::weak::compile;
    use weakspot_model::source::SourceFile;

    #[test]
    fn what_can_fail_is_known() {
        let can = |text: &str| can_fail(&compile(&SourceFile::new("test.weak", text)).unwrap().program);
        assert!(!can("shared x, y; thread p[2] { loop { let r = swap(x, me); y = r; } }"));
        assert!(!can(
            "shared x, y; thread a { x = 1; let r = y; if r == 1 && x < 3 { fence; } } thread b { await(x == 1); }"
        ));
        for failing in [
            "shared x; thread a { x = x + 1; }",
            "shared x: 0..=1; thread a { x = 1; }",
            "shared x, t[2]; thread a { let r = x; t[r] = 1; }",
            "shared x; thread a { assert(x == 0); }",
            "shared x; thread a { x = 1; } final { assert(x == 1); }",
            "shared x; thread a { critical { x = 1; } }",
            "shared x; mutex m; thread a { lock(m); unlock(m); x = 1; }",
            "shared x; thread a { let r = fetch_add(x, 1); }",
            "shared x; thread a { let r = x; let s = 1 << r; }",
            "shared x; thread a { let r = x; while r == 1 { } }",
            "shared x; thread a { let r = x; loop { if r == 1 { r = 0; } else { r = 1; } } }",
        ] {
            assert!(can(failing), "{failing}");
        }
    }
}
