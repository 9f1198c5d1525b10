//! Storage of one run and of one thread.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::{Runtime, current};

type Check = Box<dyn FnOnce() -> Result<(), String>>;
/// A value, or its absence after it was destroyed.
type Slot = Option<Rc<dyn Any>>;

/// What a run keeps for `lazy_static!`, `thread_local!` and leak checks.
#[derive(Default)]
pub(crate) struct Storage {
    of_run: RefCell<FxHashMap<usize, Rc<dyn Any>>>,
    /// In the order in which they were made.
    order_of_run: RefCell<Vec<usize>>,
    of_threads: RefCell<FxHashMap<(u32, usize), Slot>>,
    order_of_threads: RefCell<Vec<(u32, usize)>>,
    checks: RefCell<Vec<Check>>,
}

impl Storage {
    /// Destroys what a thread has, newest first. Destructors may perform events and make new values.
    pub(crate) fn end_thread(&self, thread: u32) {
        loop {
            let key = {
                let mut order = self.order_of_threads.borrow_mut();
                let Some(at) = order.iter().rposition(|&(owner, _)| owner == thread) else { return };
                order.remove(at)
            };
            let value = self.of_threads.borrow_mut().insert(key, None);
            drop(value);
        }
    }

    /// Destroys what the run has and runs the checks: the first complaint.
    pub(crate) fn end_run(&self) -> Result<(), String> {
        while let Some(key) = self.order_of_run.borrow_mut().pop() {
            let value = self.of_run.borrow_mut().remove(&key);
            drop(value);
        }
        self.of_threads.borrow_mut().clear();
        self.order_of_threads.borrow_mut().clear();
        let checks = std::mem::take(&mut *self.checks.borrow_mut());
        checks.into_iter().try_for_each(|check| check())
    }

    /// Is there nothing of a run, not even that something was destroyed?
    pub(crate) fn is_empty(&self) -> bool {
        self.of_run.borrow().is_empty() && self.of_threads.borrow().is_empty() && self.checks.borrow().is_empty()
    }

    /// Forgets everything of a run that was given up.
    pub(crate) fn abandon(&self) {
        for (_, value) in self.of_run.borrow_mut().drain() {
            std::mem::forget(value);
        }
        for (_, value) in self.of_threads.borrow_mut().drain() {
            std::mem::forget(value);
        }
        self.order_of_run.borrow_mut().clear();
        self.order_of_threads.borrow_mut().clear();
        self.checks.borrow_mut().clear();
    }
}

fn runtime<'a>() -> &'a Runtime {
    current().expect("storage of a run is for threads of a model")
}

fn borrow_for_the_run<T: 'static>(value: &Rc<dyn Any>) -> &'static T {
    let value = value.downcast_ref::<T>().expect("invariant: a key has one type");
    // SAFETY: the storage keeps the value until the run, or the thread, is over; callers hand the reference to code of
    // that run only.
    unsafe { &*std::ptr::from_ref(value) }
}

/// Storage of one run, made on first use, destroyed when the run is over.
pub fn run_local<T: 'static>(key: *const (), init: impl FnOnce() -> T) -> &'static T {
    let storage = &runtime().storage;
    let key = key as usize;
    if let Some(value) = storage.of_run.borrow().get(&key) {
        return borrow_for_the_run(value);
    }
    let value = init();
    // Which thread comes here first has nothing to do with who makes what will be in there.
    let value: Rc<dyn Any> = runtime().unnoted(|| Rc::new(value));
    let start = Rc::as_ptr(&value).addr();
    runtime().state().unborn.push((start, start + size_of_val(&*value)));
    let mut of_run = storage.of_run.borrow_mut();
    // Another thread may have been first while `init` waited.
    let kept = of_run.entry(key).or_insert_with(|| {
        storage.order_of_run.borrow_mut().push(key);
        value
    });
    borrow_for_the_run(kept)
}

/// Storage of the current thread, made on first use, destroyed when the thread ends. `None`: it has been destroyed.
pub fn thread_local<T: 'static>(key: *const (), init: impl FnOnce() -> T) -> Option<&'static T> {
    let runtime = runtime();
    super::counts::check_who(runtime);
    let key = (runtime.thread.get(), key as usize);
    if let Some(slot) = runtime.storage.of_threads.borrow().get(&key) {
        return slot.as_ref().map(borrow_for_the_run);
    }
    let value: Rc<dyn Any> = Rc::new(init());
    let mut of_threads = runtime.storage.of_threads.borrow_mut();
    let slot = of_threads.entry(key).or_insert_with(|| {
        runtime.storage.order_of_threads.borrow_mut().push(key);
        Some(value)
    });
    slot.as_ref().map(borrow_for_the_run)
}

/// A check at the end of a run in which every thread has ended; its complaint fails the execution.
pub fn at_end(check: impl FnOnce() -> Result<(), String> + 'static) {
    runtime().storage.checks.borrow_mut().push(Box::new(check));
}
