//! Runtimes of workers, each of which explores a part of a model on an OS thread of its own.
//!
//! A [`Runtime`] cannot be sent to another OS thread; what it takes to make one like it can.

use weakspot_model::buffer::MemoryModel;

use super::counts::Observed;
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
            lasting: self.lasting.get(),
            body: self.body.clone(),
            strengthened: self.strengthened.changes(),
            observed: self.counts.borrow().observed.clone(),
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
    lasting: bool,
    body: Body,
    strengthened: Vec<(SourcePlace, Change)>,
    observed: Observed,
}

impl Worker {
    pub(crate) fn runtime(self) -> Runtime {
        let Self { first_run, number, claim, company, model, max_threads, lasting, body, strengthened, observed } =
            self;
        let mut runtime = Runtime::new(model, max_threads, body);
        (runtime.first_run, runtime.number, runtime.company) = (first_run, number, company);
        runtime.claim.set(claim);
        runtime.lasting.set(lasting);
        runtime.strengthen(strengthened);
        runtime.counts.borrow_mut().observed = observed;
        runtime
    }
}
