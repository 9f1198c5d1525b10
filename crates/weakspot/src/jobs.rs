//! A model that is explored by several workers.
//!
//! Each worker has an OS thread, a runtime and coroutines of its own; parts of the search go from one to another as in
//! [`weakspot_explore::parallel`], and what comes of them is put together in the order of a single worker. So the answer
//! does not depend on how many there are, and neither does anything else in the report but the time and how often the closure
//! was run ([`Report::runs`](crate::Report::runs)): each worker tries out loops by itself.
//!
//! # What workers could share
//! - *Atomics, locks and cells* that are older than a run: statics, and what the closure captured. There is one of them,
//!   and all workers would write it. Its stamp says who has used it (`rt::objects`); whoever comes second says that they
//!   are in each other's way, before it has touched anything, and one worker explores everything.
//! - *Reference counts* of what the closure captured: the same, as soon as the model asks for such a count.
//! - *The numbers of threads*: they are given out as threads are found. All workers know those of the first execution;
//!   if a later one starts a thread that was never seen, one worker explores everything.
//! - *`thread_local!`, `lazy_static!`, leak checks*: these belong to a run, and so to its worker.
//! - *Panics and stack overflows* are those of the OS thread they happen on.
//!
//! Anything of the standard library that the closure captures is shared as the standard library says.
//!
//! # When there is one worker
//! A model with few executions is explored before other workers would have begun. A limit on executions or preemptions,
//! or random schedules, mean an order of executions: these are for one. As many workers as there are cores: see
//! [`automatic`].

mod automatic;

use rustc_hash::FxHashSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use weakspot_explore::parallel::{Crew, Job, Key, Worker};
use weakspot_explore::trust::Subtree;

use crate::builder::Builder;
use crate::judge::{Judge, Part};
use crate::model::{explore, explore_part, may_go_on};
use crate::report::Bound;
use crate::rt::numbers::ThreadNumbers;
use crate::rt::observed::Observed;
use crate::rt::runtime::{MOST_WORKERS, Runtime};
pub(crate) use automatic::{Busy, are_automatic, search_alone_at_first};

/// Executions that one worker explores before there are others.
const FEW: u64 = 1_000;

fn few() -> u64 {
    #[cfg(test)]
    if let Some(few) = tests::FEW.get() {
        return few;
    }
    FEW
}

/// How many graphs go by between two looks at where the others are.
const GRAPHS_BETWEEN_LOOKS: u64 = 64;

/// May this model have several workers?
pub(crate) fn are_possible(builder: &Builder) -> bool {
    builder.jobs > 1 && builder.max_executions.is_none()
}

/// Explores everything.
pub(crate) fn search<'b>(builder: &'b Builder, runtime: &Runtime, start: Instant) -> Judge<'b> {
    let alone = explore(builder, runtime, start, Some(few()));
    let observed = runtime.counts.borrow().found;
    if observed || alone.report.bound != Some(Bound::Executions) {
        return alone;
    }
    runtime.finish_run(true);
    // Everything is explored anew.
    runtime.loops_left_out.take();
    let together = explore_together(builder, runtime, start);
    let mut judge = together.unwrap_or_else(|_| explore(builder, runtime, start, None));
    judge.first = alone.first;
    judge
}

/// The workers were in each other's way.
struct InTheWay;

/// What all workers know and leave behind.
#[derive(Default)]
struct Office {
    crew: Crew,
    /// As the first worker knew them when it gave something away.
    numbers: OnceLock<ThreadNumbers>,
    done: Mutex<Vec<(Key, Part)>>,
    trouble: Mutex<Trouble>,
    /// Markers of loops that were found to end by themselves.
    ending_loops: Mutex<FxHashSet<u32>>,
}

/// Why everything has to begin anew.
#[derive(Default)]
struct Trouble {
    in_the_way: bool,
    /// What the program was found to look at.
    observed: Option<Observed>,
}

/// The other workers, as one of them sees them.
pub(crate) struct Colleague<'a> {
    worker: Worker<'a>,
    numbers: &'a OnceLock<ThreadNumbers>,
    runtime: &'a Runtime,
}

impl Colleague<'_> {
    pub(crate) fn wants_work(&self) -> bool {
        self.worker.wants_work()
    }

    pub(crate) fn hand_out(&mut self, subtree: Subtree) {
        if !self.runtime.threads_are_known.replace(true) {
            let _ = self.numbers.set(self.runtime.thread_numbers());
        }
        self.worker.hand_out(subtree);
    }

    /// Need the rest of this part not be explored? It is called after each graph.
    #[inline]
    pub(crate) fn is_needless(&self, graphs: u64) -> bool {
        self.runtime.in_the_way.get() || graphs.is_multiple_of(GRAPHS_BETWEEN_LOOKS) && self.worker.is_overtaken()
    }
}

fn explore_together<'b>(builder: &'b Builder, runtime: &Runtime, start: Instant) -> Result<Judge<'b>, InTheWay> {
    let office = Office::default();
    let jobs = builder.jobs.min(MOST_WORKERS - 1);
    // Number 0 is whoever explores alone.
    let seeds: Vec<Mutex<Option<_>>> = (1..=jobs).map(|number| Mutex::new(Some(runtime.for_worker(number)))).collect();
    office.crew.work(jobs, |number| {
        let seed = locked(&seeds[number]).take();
        let own = seed.expect("invariant: each worker comes once").runtime();
        work(builder, &own, start, &office);
        office.take_over_loops(&own);
    });
    let mut judge = Judge::new(builder, start);
    judge.report.exhaustive = true;
    office.put_together(runtime, &mut judge)?;
    Ok(judge)
}

impl Office {
    /// Who works on a job.
    fn colleague<'a>(&'a self, key: &Key, runtime: &'a Runtime) -> Colleague<'a> {
        Colleague { worker: self.crew.worker(key.clone()), numbers: &self.numbers, runtime }
    }

    /// A job is done, or there is trouble.
    fn finish(&self, key: &Key, runtime: &Runtime, judge: Judge<'_>) {
        let observed = std::mem::take(&mut runtime.counts.borrow_mut().found);
        let in_the_way = runtime.in_the_way.get();
        runtime.finish_run(!observed && !in_the_way && may_go_on(&judge.report));
        if observed || in_the_way {
            let mut trouble = locked(&self.trouble);
            trouble.in_the_way |= in_the_way;
            if observed {
                trouble.observed.get_or_insert_default().extend(&runtime.counts.borrow().observed);
            }
            self.crew.give_up();
        }
        let stopped = judge.report.failure.is_some();
        let part = judge.into_part(runtime.loops_left_out.take());
        locked(&self.done).push((key.clone(), part));
        self.crew.finish(key, stopped);
    }

    /// What a worker has learned of loops.
    fn take_over_loops(&self, runtime: &Runtime) {
        locked(&self.ending_loops).extend(runtime.ending_loops.borrow_mut().drain());
    }

    /// Adds what all workers have found to what was found before, in the order of a single worker.
    fn put_together(self, runtime: &Runtime, judge: &mut Judge<'_>) -> Result<(), InTheWay> {
        let trouble = self.trouble.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(observed) = trouble.observed {
            let mut counts = runtime.counts.borrow_mut();
            counts.observed.extend(&observed);
            counts.found = true;
            return Ok(());
        }
        if trouble.in_the_way {
            return Err(InTheWay);
        }
        runtime.ending_loops.borrow_mut().extend(locked(&self.ending_loops).drain());
        let done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (parts, all) = self.crew.in_order(done);
        judge.report.exhaustive &= all;
        for mut part in parts {
            runtime.loops_left_out.borrow_mut().append(&mut part.left_out);
            judge.add(part);
        }
        Ok(())
    }
}

fn work(builder: &Builder, runtime: &Runtime, start: Instant, office: &Office) {
    while let Some(Job { key, subtree }) = office.crew.next_job() {
        if let (Some(_), Some(numbers)) = (&subtree, office.numbers.get()) {
            runtime.know_threads(numbers);
        }
        let mut judge = Judge::new(builder, start);
        judge.colleague = Some(office.colleague(&key, runtime));
        if builder.max_duration.is_some_and(|most| start.elapsed() >= most) {
            judge.report.bound = Some(Bound::Time);
        } else {
            explore_part(builder, runtime, &mut judge, subtree);
        }
        office.finish(&key, runtime, judge);
    }
}

/// No worker panics while it holds one of these.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
