//! Is a run on store buffers one of SC?
//!
//! It is if what it does can be put in one order that agrees with the source of each thread and with who read what from
//! whom: program order, the order of writes to a location, reads from and reads before a write have no cycle together.
//! Where they have one, no SC execution does the same.

use rustc_hash::FxHashMap;
use weakspot_model::buffer::MemoryModel;

use super::delays::{Act, LONGEST, acts_of_run, reads_its_own, suspects};
use crate::report::Violation;
use crate::rt::lane::{Happened, Operation};

/// The violations of a run that are on such a cycle, one for each pair of places.
pub(crate) fn violations_on_cycles(log: &[Happened], model: MemoryModel) -> Vec<Violation> {
    if log.len() > LONGEST {
        return Vec::new();
    }
    let (acts, whose) = acts_of_run(log, model);
    let mut order = None;
    let mut violations: Vec<Violation> = Vec::new();
    for suspect in suspects(&acts) {
        let violation = suspect.violation(&whose);
        if violations.iter().any(|known| known.is_like(&violation)) {
            continue;
        }
        let order = order.get_or_insert_with(|| Order::new(&acts, &whose));
        // The store comes before what overtakes it in the source.
        if order.leads(suspect.later, suspect.other) && order.leads(suspect.other, suspect.store) {
            violations.push(violation);
        }
    }
    violations
}

/// What has to come directly after each operation.
struct Order {
    after: Vec<Vec<usize>>,
}

impl Order {
    fn new(acts: &[Act], whose: &[Happened]) -> Self {
        let mut after = vec![Vec::new(); acts.len()];
        let mut last_of: FxHashMap<u32, usize> = FxHashMap::default();
        let mut accesses: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (index, act) in acts.iter().enumerate() {
            if let Some(before) = last_of.insert(act.thread, index) {
                after[before].push(index);
            }
            if let Some((object, _)) = access(&whose[index]) {
                accesses.entry(object).or_default().push(index);
            }
        }
        for accesses in accesses.values_mut() {
            // A load that is served by the own buffer is where its store is in the order of writes.
            let time = |index: usize| {
                let own = reads_its_own(acts, index).map_or(acts[index].time, |store| acts[store].time);
                (own, acts[index].time != own)
            };
            accesses.sort_by_cached_key(|&index| time(index));
            let (mut last_write, mut reads) = (None, Vec::new());
            for &index in &*accesses {
                if let Some(write) = last_write {
                    let write: usize = write;
                    after[write].push(index);
                }
                if access(&whose[index]).is_some_and(|(_, writes)| writes) {
                    reads.drain(..).for_each(|read: usize| after[read].push(index));
                    last_write = Some(index);
                } else {
                    reads.push(index);
                }
            }
        }
        Self { after }
    }

    /// Does this one have to come before that one?
    fn leads(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.after.len()];
        let mut next = vec![from];
        while let Some(index) = next.pop() {
            if index == to {
                return true;
            }
            if !std::mem::replace(&mut seen[index], true) {
                next.extend(&self.after[index]);
            }
        }
        false
    }
}

/// The object of an operation and whether it is written. Where that is not known, it is not: there is no cycle then that
/// is none.
fn access(happened: &Happened) -> Option<(u32, bool)> {
    let object = happened.operation.object()?;
    let writes = match happened.operation {
        Operation::Rmw { .. } => happened.written.is_some(),
        Operation::TryLock(_) => happened.result == 1,
        Operation::Load(_)
        | Operation::Notify { .. }
        | Operation::Begin(_)
        | Operation::Join { .. }
        | Operation::Pass(_) => false,
        _ => true,
    };
    Some((object, writes))
}
