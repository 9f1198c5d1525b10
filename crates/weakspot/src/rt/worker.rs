//! Runtimes of workers, each of which explores a part of a model on an OS thread of its own.
//!
//! A [`Runtime`] cannot be sent to another OS thread; what it takes to make one like it can.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashSet;
use weakspot_model::buffer::MemoryModel;

use super::Place;
use super::observed::Observed;
use super::runtime::{Body, Company, Runtime};
use crate::failure::SourcePlace;
use crate::strengthen::Change;

impl Runtime {
    /// A runtime that explores a part of this one's model.
    pub(crate) fn for_worker(&self, worker: usize) -> Worker {
        Worker {
            first_run: self.first_run,
            number: self.number,
            claim: self.claim.get(),
            company: Company::Worker(worker as u64),
            model: self.model,
            max_threads: self.max_threads,
            start: self.start,
            lasting: self.lasting.get(),
            fair: self.fair.get(),
            body: self.body.clone(),
            strengthened: self.strengthened.changes(),
            met: Arc::clone(&self.strengthened.met),
            observed: self.counts.borrow().observed.clone(),
            ending_loops: self.ending_loops.borrow().clone(),
            incomplete: self.incomplete.borrow().clone(),
        }
    }
}

/// What a worker needs to make its own runtime.
pub(crate) struct Worker {
    first_run: u64,
    number: u64,
    claim: Option<u64>,
    company: Company,
    model: MemoryModel,
    max_threads: usize,
    start: Place,
    lasting: bool,
    fair: bool,
    body: Body,
    strengthened: Vec<(SourcePlace, Change)>,
    met: Arc<Mutex<FxHashSet<SourcePlace>>>,
    observed: Observed,
    ending_loops: FxHashSet<u32>,
    incomplete: FxHashSet<usize>,
}

impl Worker {
    pub(crate) fn runtime(self) -> Runtime {
        let mut runtime = Runtime::new(self.model, self.max_threads, self.body);
        (runtime.first_run, runtime.number) = (self.first_run, self.number);
        runtime.start = self.start;
        runtime.company.set(self.company);
        runtime.claim.set(self.claim);
        runtime.lasting.set(self.lasting);
        runtime.fair.set(self.fair);
        runtime.strengthen(self.strengthened);
        runtime.strengthened.met = self.met;
        runtime.counts.borrow_mut().observed = self.observed;
        *runtime.ending_loops.borrow_mut() = self.ending_loops;
        *runtime.incomplete.borrow_mut() = self.incomplete;
        runtime
    }
}
