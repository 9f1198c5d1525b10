//! Tables 1 and 2 of Kuperstein, Vechev and Yahav: partial-coherence abstractions and fence inference under PSO; and the
//! fences that other tools report for two processes under TSO.
//!
//! | module | table |
//! |---|---|
//! | [`verification`] | Table 1 |
//! | [`inference`] | Table 2, by counterexamples |
//! | [`avoid`] | Table 2, by avoid formulae |
//! | [`two_processes`] | two processes written out one by one, TSO |

mod avoid;
mod inference;
mod two_processes;
mod verification;

use super::Effort;
use super::document::Section;
use crate::repository::ChoreError;

/// All tables beside ours.
pub fn tables(effort: Effort) -> Result<Section, ChoreError> {
    let (verified, verification_facts) = verification::table()?;
    let (inferred, inference_facts) = inference::table()?;
    let (labelled, labelled_facts) = avoid::table(effort)?;
    let (two_processes, two_processes_facts) = two_processes::table()?;
    let facts = verification_facts.into_iter().chain(inference_facts).chain(labelled_facts).chain(two_processes_facts);
    Ok(Section {
        title: "BLENDER: Kuperstein, Vechev and Yahav (PLDI 2011), Tables 1 and 2",
        introduction: INTRODUCTION,
        tables: vec![verified, inferred, labelled, two_processes],
        facts: facts.collect(),
        reading: READING,
    })
}

const INTRODUCTION: &str = "\
The paper's benchmarks under PSO, two processes, entered again and again. States are in thousands. Marks: ● verified, or
the fewest fences found; ◐ more fences than needed; ○ a spurious counterexample, or no placement helps under the
abstraction; M out of memory (16 GB); ? a mark that cannot be told from the copy of the paper we have.";

const READING: &str = "\
What must agree: the marks of Table 1 and the number of fences of Table 2. What differs: the number of states, because the
programs are ours (the paper prints the text of Fast and Peterson only) and a state of ours is one between two events;
where a counterexample is found the search ends, while the paper's goes on. Table 2: counterexamples and minimum hitting
sets need a small part of the state space, so nothing runs out of memory. With avoid formulae we find the fewest fences
under coarser abstractions than the paper (Pet0 with pd), because a formula is satisfied by the cheapest fences rather
than by ordering constraints that are turned into fences afterwards; where the abstraction itself is too coarse (Fast with
k = 0) nothing helps, as in the paper. CLH needs one fence and not two: after the mark of the own node. The paper gives no
text of its CLH; in ours nobody but the successor writes to a released node, and the successor has read the release, so a
fence after it orders nothing that matters.";

/// A number of states in thousands.
fn thousands(states: u64) -> String {
    format!("{:.1}", states as f64 / 1000.0)
}
