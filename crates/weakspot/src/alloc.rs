//! Memory whose release is checked: what is allocated here in an execution must be freed when the execution is over.

use crate::rt;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::Location;

pub use std::alloc::{Layout, LayoutError, handle_alloc_error};

/// What is allocated and not freed yet, with the place of the allocation.
#[derive(Default)]
struct Ledger {
    by_address: BTreeMap<usize, Place>,
    tracked: BTreeMap<u64, Place>,
    next: u64,
}

type Place = &'static Location<'static>;

std::thread_local! {
    /// The ledger of the execution that this OS thread is in the middle of. It outlives the storage of the execution,
    /// whose destructors may free something.
    static LEDGER: RefCell<Option<Ledger>> = const { RefCell::new(None) };
}

/// Closes the ledger at the end of the execution, however it ends.
struct Closing;

impl Drop for Closing {
    fn drop(&mut self) {
        LEDGER.take();
    }
}

impl Ledger {
    /// Does something with the ledger of this execution.
    fn with<R>(f: impl FnOnce(&mut Self) -> R) -> R {
        if LEDGER.with_borrow(Option::is_none) {
            LEDGER.set(Some(Self::default()));
            let closing = Closing;
            rt::at_end(move || {
                let checked = LEDGER.with_borrow(|ledger| ledger.as_ref().map_or(Ok(()), Self::check));
                drop(closing);
                checked
            });
        }
        LEDGER.with_borrow_mut(|ledger| f(ledger.get_or_insert_default()))
    }

    fn track(&mut self, place: Place) -> u64 {
        let number = self.next;
        self.next += 1;
        self.tracked.insert(number, place);
        number
    }

    fn check(&self) -> Result<(), String> {
        let mut places: Vec<String> = self
            .by_address
            .values()
            .chain(self.tracked.values())
            .map(|place| format!("  allocated at {place}"))
            .collect();
        if places.is_empty() {
            return Ok(());
        }
        places.sort();
        Err(format!("{} allocation(s) leaked:\n{}", places.len(), places.join("\n")))
    }
}

/// Allocates memory. Mirrors [`std::alloc::alloc`].
///
/// # Safety
/// As for [`std::alloc::alloc`].
#[track_caller]
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's.
    let pointer = unsafe { std::alloc::alloc(layout) };
    enter(pointer);
    pointer
}

/// Allocates memory that is zero. Mirrors [`std::alloc::alloc_zeroed`].
///
/// # Safety
/// As for [`std::alloc::alloc_zeroed`].
#[track_caller]
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's.
    let pointer = unsafe { std::alloc::alloc_zeroed(layout) };
    enter(pointer);
    pointer
}

/// Changes the size of memory. Mirrors [`std::alloc::realloc`].
///
/// # Safety
/// As for [`std::alloc::realloc`].
#[track_caller]
pub unsafe fn realloc(pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    // SAFETY: the caller's.
    let moved = unsafe { std::alloc::realloc(pointer, layout, new_size) };
    if !moved.is_null() {
        leave(pointer);
        enter(moved);
    }
    moved
}

/// Frees memory. Mirrors [`std::alloc::dealloc`].
///
/// # Safety
/// As for [`std::alloc::dealloc`].
#[track_caller]
pub unsafe fn dealloc(pointer: *mut u8, layout: Layout) {
    leave(pointer);
    // SAFETY: the caller's.
    unsafe { std::alloc::dealloc(pointer, layout) }
}

#[track_caller]
fn enter(pointer: *mut u8) {
    if rt::in_model() && !pointer.is_null() {
        let place = Location::caller();
        Ledger::with(|ledger| ledger.by_address.insert(pointer.addr(), place));
    }
}

#[track_caller]
fn leave(pointer: *mut u8) {
    if rt::in_model() && Ledger::with(|ledger| ledger.by_address.remove(&pointer.addr())).is_none() {
        rt::fail("memory is freed that is not allocated: freed twice, or not allocated here".to_owned());
    }
}

/// A value that must be dropped before the execution is over.
#[derive(Debug)]
pub struct Track<T> {
    value: T,
    /// Ends the tracking when it is dropped.
    _entry: Option<Entry>,
}

#[derive(Debug)]
struct Entry(u64);

impl Drop for Entry {
    fn drop(&mut self) {
        if rt::in_model() {
            Ledger::with(|ledger| ledger.tracked.remove(&self.0));
        }
    }
}

impl<T> Track<T> {
    /// Tracks a value.
    #[track_caller]
    pub fn new(value: T) -> Self {
        let place = Location::caller();
        let entry = rt::in_model().then(|| Entry(Ledger::with(|ledger| ledger.track(place))));
        Self { value, _entry: entry }
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The value, no longer tracked.
    pub fn into_inner(self) -> T {
        self.value
    }
}
