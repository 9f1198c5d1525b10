//! As many workers as the machine has cores (`jobs` is 0).
//!
//! A model is explored alone until it takes long. Then whoever explores it goes on where it is, and gives parts of what
//! is left to workers on cores that no other model of the process uses.
//!
//! # The answer is that of one worker
//! Workers know when they share something of ours (see the module above). What the code under test shares by the standard
//! library's means, they do not see: a counter that every execution sets to zero and looks at in the end, say. Two
//! executions at the same time are more than such a test reckons with. So nothing that goes wrong while there are several
//! workers is believed:
//! - a failure has to come again when its schedule is run alone, or everything is explored again by one worker;
//! - if the model does not repeat itself, or a loop is left out that was not before, everything is explored again by one.
//!
//! A run that has failed is left behind, and what it has not given back to such a counter is missing for ever. Then even
//! the first execution of all fails, which did not before: that is no failure of the model, and the report says why it is
//! not complete.
//!
//! # Why it has to be asked for
//! Two things are not noticed. An execution that should fail may not, because another one has counted meanwhile. And a test
//! that keeps something in a `std` thread-local, and looks at it when the model is over, finds what one of the workers
//! has left there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weakspot_explore::trust::Explorer;

use super::{Office, work};
use crate::builder::Builder;
use crate::failure::FailureKind;
use crate::judge::Judge;
use crate::model::{explore, explorer_for, sum_up};
use crate::report::{Bound, Report};
use crate::rt::runtime::{Company, MOST_WORKERS, Runtime};
use crate::rt::spare;
use crate::rt::system::Live;
use crate::{repetition, replay};

/// How long a model is explored alone, and how long until it looks again for idle cores.
const ALONE: Duration = Duration::from_secs(1);

/// Workers of all models that are explored now.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Some of these workers.
pub(crate) struct Busy(usize);

impl Busy {
    /// Whoever explores a model.
    pub(crate) fn one() -> Self {
        BUSY.fetch_add(1, Ordering::Relaxed);
        Self(1)
    }

    /// One on every core that has none, if there is such a core, but not more than these.
    fn on_idle_cores(most: usize) -> Option<Self> {
        #[cfg(test)]
        if let Some(left) = tests::WORKERS.get() {
            tests::WORKERS.set(Some(left.saturating_sub(1)));
            return (left > 0).then(Self::one);
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let idle = |busy: usize| cores.saturating_sub(busy).min(most);
        let more = |busy: usize| (idle(busy) > 0).then(|| busy + idle(busy));
        let busy = BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self(idle(busy)))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// May workers join without being asked?
pub(crate) fn are_automatic(builder: &Builder) -> bool {
    builder.jobs == 0 && builder.max_executions.is_none()
}

fn time_alone() -> Duration {
    #[cfg(test)]
    if tests::WORKERS.get().is_some() {
        return Duration::ZERO;
    }
    ALONE
}

/// What comes of workers that were not asked for.
enum Outcome {
    /// What one worker would have found.
    Answer,
    /// It may be something else.
    Doubtful,
    /// It is something else, and one worker would not find it out any more.
    Spoilt,
}

/// What is said if the workers have left something behind that makes every execution fail.
const SPOILT: &str = "executions that ran at the same time got in each other's way in something of `std` that this test \
                      shares between them, so not all were explored. WEAKSPOT_JOBS=1 runs them one after the other";

/// Explores everything, with others if it takes long.
pub(crate) fn search_alone_at_first<'b>(builder: &'b Builder, runtime: &Runtime, start: Instant) -> Judge<'b> {
    let mut judge = Judge::new(builder, start);
    let mut system = Live { runtime };
    let mut explorer = explorer_for(builder, &mut system, &judge);
    judge.stop_after(time_alone());
    let mut ended = explorer.run(&mut judge);
    while std::mem::take(&mut judge.is_long) {
        // What models keep in statics is for one worker.
        if runtime.uses_statics() {
            ended = explorer.go_on(&mut judge);
        } else if let Some(workers) = Busy::on_idle_cores(MOST_WORKERS - 1) {
            sum_up(runtime, &mut judge, &explorer, ended);
            judge.report.exhaustive = true;
            let outcome = go_on_together(builder, runtime, start, &mut judge, &mut explorer, workers);
            spare::keep_workspace(explorer.into_workspace());
            match outcome {
                Outcome::Answer => {}
                Outcome::Doubtful => {
                    runtime.loops_left_out.take();
                    runtime.ending_loops.take();
                    judge = explore(builder, runtime, start, None);
                }
                Outcome::Spoilt => {
                    let mut report = Report::new(builder.model);
                    (report.executions, report.blocked) = (judge.report.executions, judge.report.blocked);
                    (report.bound, report.notes) = (Some(Bound::Time), vec![SPOILT.to_owned()]);
                    (judge.report, judge.first) = (report, Vec::new());
                }
            }
            return judge;
        } else {
            judge.stop_after(ALONE);
            ended = explorer.go_on(&mut judge);
        }
    }
    sum_up(runtime, &mut judge, &explorer, ended);
    spare::keep_workspace(explorer.into_workspace());
    judge
}

/// Goes on with a search, which gives parts of what is left to others: to these, and to those for whom there is room later.
fn go_on_together<'r>(
    builder: &Builder,
    runtime: &'r Runtime,
    start: Instant,
    judge: &mut Judge<'_>,
    explorer: &mut Explorer<'_, Live<'r>>,
    workers: Busy,
) -> Outcome {
    let left_out_before = runtime.loops_left_out.borrow().clone();
    let before = explorer.counters();
    let office = Office::default();
    runtime.company.set(Company::Worker(0));
    let all = office.crew.next_job().expect("invariant: the first job is there");
    let name = thread::current().name().map(str::to_owned);
    thread::scope(|scope| {
        let mut crew = vec![workers];
        let mut count = 0;
        let mut own = Judge::new(builder, start);
        own.colleague = Some(office.colleague(&all.key, runtime));
        let ended = loop {
            for number in count + 1..=crew.iter().map(|workers| workers.0).sum() {
                let (seed, office) = (runtime.for_worker(number), &office);
                let os_thread = thread::Builder::new();
                let os_thread = name.iter().fold(os_thread, |os_thread, name| os_thread.name(name.clone()));
                // If there cannot be more of them, those that are there do the work.
                let _ = os_thread.spawn_scoped(scope, move || {
                    let own = seed.runtime();
                    work(builder, &own, start, office);
                    office.take_over_loops(&own);
                });
                count = number;
            }
            own.stop_after(time_alone());
            let ended = explorer.go_on(&mut own);
            if !std::mem::take(&mut own.is_long) {
                break ended;
            }
            // Other tests may be over.
            crew.extend(Busy::on_idle_cores(MOST_WORKERS - 1 - count));
        };
        sum_up(runtime, &mut own, explorer, ended);
        own.report.events -= before.events;
        own.report.runs -= before.runs + 1;
        office.finish(&all.key, runtime, own);
        work(builder, runtime, start, &office);
    });
    runtime.company.set(Company::Alone);
    runtime.threads_are_known.set(false);
    runtime.in_the_way.set(false);
    let is_together = office.put_together(runtime, judge);
    // Everything begins anew if somebody looks at the count of an `Arc`.
    if runtime.counts.borrow().found {
        return Outcome::Answer;
    }
    if is_together.is_err() || *runtime.loops_left_out.borrow() != left_out_before {
        return Outcome::Doubtful;
    }
    judge_failure(builder, runtime, &judge.report)
}

/// Is a failure one of the model?
fn judge_failure(builder: &Builder, runtime: &Runtime, report: &Report) -> Outcome {
    let Some(failure) = &report.failure else { return Outcome::Answer };
    if matches!(failure.kind, FailureKind::NotDeterministic) {
        return Outcome::Doubtful;
    }
    let Some(schedule) = report.replay() else { return Outcome::Doubtful };
    let again = replay::failure_of(builder, runtime, schedule);
    if again.is_none_or(|again| !repetition::are_alike(&again, failure)) {
        return Outcome::Doubtful;
    }
    if repetition::first_fails(builder, runtime) { Outcome::Spoilt } else { Outcome::Answer }
}

#[cfg(test)]
pub(super) mod tests;
