//! What is an event only where the program looks at it: reference counts (see [`crate::sync::Arc`]) and whether a thread
//! has ended.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::causality::{Question, Sync};
use super::objects::Object;
use super::runtime::Company;
use super::{Place, Runtime, Step, Word, current};

/// What is known of an `Arc`, by the address of its value.
struct Counted {
    made: Place,
    /// It is older than the run: a static, or something captured.
    old: bool,
    /// What its dropped owners have released.
    dropped: u32,
    /// Its count as a state word, if it is observed.
    word: Option<Rc<Word>>,
    /// It may outlive the run: it was made for a static.
    kept: bool,
    /// Its last owner is gone.
    is_over: bool,
}

/// A thread that destroys what an `Arc` has owned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastOwner {
    key: usize,
    /// Do all others that owned it come before that in every order?
    is_last: Question,
}

/// What the program looks at. Survives runs.
#[derive(Default, Clone)]
pub(crate) struct Observed {
    /// Places whose `Arc`s are observed.
    places: FxHashSet<usize>,
    /// Does the program ask whether threads have ended?
    ends: bool,
}

impl Observed {
    /// Takes over what another worker has found.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.places.extend(&other.places);
        self.ends |= other.ends;
    }
}

/// The reference counts of a run.
#[derive(Default)]
pub(crate) struct Counts {
    counted: FxHashMap<usize, Counted>,
    pub(crate) observed: Observed,
    /// Whether a thread has ended, if that is observed: by its number.
    ends: FxHashMap<u32, Rc<Word>>,
    /// The run has found something that is not observed and has to be.
    pub(crate) found: bool,
}

impl Counts {
    /// A new run.
    pub(crate) fn reset(&mut self) {
        self.counted.clear();
        self.ends.clear();
    }

    /// Complains if there are `Arc`s of this run that still have an owner.
    pub(crate) fn check_leaks(&self) -> Result<(), String> {
        let leaked = self.counted.values().filter(|counted| !(counted.old || counted.kept || counted.is_over));
        let mut places: Vec<Place> = leaked.map(|counted| counted.made).collect();
        if places.is_empty() {
            return Ok(());
        }
        places.sort();
        let list: Vec<String> = places.iter().map(|place| format!("  made at {place}")).collect();
        Err(format!("{} Arc(s) leaked: an owner was never dropped\n{}", list.len(), list.join("\n")))
    }

    /// The last owner is gone. Weak pointers may still ask for a count that is observed.
    fn end(&mut self, key: usize) {
        let Some(counted) = self.counted.get_mut(&key) else { return };
        counted.is_over = true;
        if counted.word.is_none() {
            self.counted.remove(&key);
        }
    }

    /// Forgets everything but its memory.
    pub(crate) fn restart(&mut self) {
        self.reset();
        self.observed.places.clear();
        self.observed.ends = false;
        self.found = false;
    }
}

/// How a count is to be asked for.
pub(crate) enum Count {
    /// It is the same in every order of what happened.
    Known,
    /// By an event.
    Word(Rc<Word>),
}

fn address(place: Place) -> usize {
    std::ptr::from_ref(place).addr()
}

/// The runtime, if counts are kept now.
fn runtime<'a>() -> Option<&'a Runtime> {
    current().filter(|runtime| !runtime.is_free())
}

impl Runtime {
    fn counted(&self, key: usize, physical: usize, place: Place) -> Option<Rc<Word>> {
        self.counted_as(key, physical, place, false)
    }

    fn counted_as(&self, key: usize, physical: usize, place: Place, new: bool) -> Option<Rc<Word>> {
        let (word, old) = {
            let kept = new && self.state().lanes[self.thread.get() as usize].keeping > 0;
            let counts = &mut *self.counts.borrow_mut();
            let observed = &counts.observed;
            let counted = counts.counted.entry(key).or_insert_with(|| {
                let dropped = self.add_object(Object::new(0, place));
                let word = observed.places.contains(&address(place)).then(|| Rc::new(Word::new(physical as u64)));
                Counted { made: place, old: !new, dropped, word, kept, is_over: false }
            });
            (counted.word.clone(), counted.old)
        };
        if old && word.is_some() {
            self.check_company(place);
        }
        word
    }

    /// The count of something older than the run is looked at, and other workers may change it.
    fn check_company(&self, place: Place) {
        if self.company != Company::Alone {
            self.get_in_the_way(place);
        }
    }

    /// The `Arc` is observed from now on: everything begins anew.
    fn observe(&self, key: usize) -> ! {
        let (made, old) = {
            let counted = &self.counts.borrow().counted[&key];
            (counted.made, counted.old)
        };
        if old {
            self.check_company(made);
        }
        {
            let mut counts = self.counts.borrow_mut();
            counts.observed.places.insert(address(made));
            counts.found = true;
        }
        self.fail("the count of an Arc is observed".to_owned(), made)
    }

    /// Do all owners that are gone come before what the current thread does next?
    fn is_after_all_drops(&self, key: usize) -> bool {
        let dropped = self.counts.borrow().counted[&key].dropped;
        let thread = self.thread.get();
        let causality = &mut self.state().causality;
        let question = causality.ask(thread, dropped);
        causality.answer(question)
    }
}

/// An `Arc` is made.
pub(crate) fn made(key: usize, place: Place) {
    if let Some(runtime) = runtime() {
        runtime.counts.borrow_mut().counted.remove(&key);
        runtime.counted_as(key, 1, place, true);
    }
}

/// Makes a value that a static may keep until the execution is over, and longer: its `Arc`s are no leaks.
pub(crate) fn keeping<R>(make: impl FnOnce() -> R) -> R {
    let Some(runtime) = runtime() else { return make() };
    let thread = runtime.thread.get() as usize;
    let change = |by: i32| runtime.state().lanes[thread].keeping += by;
    change(1);
    let made = make();
    change(-1);
    made
}

/// An owner is added.
pub(crate) fn cloned(key: usize, place: Place) {
    if let Some(runtime) = runtime()
        && let Some(word) = runtime.counted(key, 1, place)
    {
        word.update_at(place, "Arc::clone", Sync::Relaxed, |count| Step::Write(count + 1));
    }
}

/// What [`dropping`] tells [`dropped`].
pub(crate) struct Dropping {
    is_last: bool,
    /// In the destructor of what the thread was before.
    before: Option<LastOwner>,
}

/// An owner is about to go. `physical` is how many there are.
pub(crate) fn dropping(key: usize, physical: &dyn Fn() -> usize, place: Place) -> Option<Dropping> {
    let Some(runtime) = runtime() else {
        return current().map(|_| Dropping { is_last: physical() == 1, before: None });
    };
    let observed = runtime.counted(key, physical(), place);
    let (dropped, made) = {
        let counted = &runtime.counts.borrow().counted[&key];
        (counted.dropped, counted.made)
    };
    if let Some(word) = &observed {
        // The compiler calls destructors, so there is no place in the source; others may come first.
        word.update_at(made, "drop of an Arc", Sync::AcqRel, |count| Step::Write(count.saturating_sub(1)));
    }
    let thread = runtime.thread.get();
    let state = &mut *runtime.state();
    let before = state.lanes[thread as usize].last_owner_of;
    if physical() > 1 {
        state.causality.write(thread, dropped, Sync::Release, true);
        return Some(Dropping { is_last: false, before });
    }
    if observed.is_none() {
        // Does who comes last depend on the order? It matters if the destructor does something that others can see.
        let is_last = state.causality.ask(thread, dropped);
        // In the destructor of something else, for which that is so, it need not be so for this as well.
        let is_inner = before.is_some_and(|outer: LastOwner| !state.causality.answer(outer.is_last));
        if !is_inner || !state.causality.answer(is_last) {
            state.lanes[thread as usize].last_owner_of = Some(LastOwner { key, is_last });
        }
    }
    state.causality.read(thread, dropped, Sync::Acquire);
    Some(Dropping { is_last: true, before })
}

/// An owner is gone. Also called when the run is over and what it stored is destroyed.
pub(crate) fn dropped(key: usize, Dropping { is_last, before }: Dropping) {
    if !is_last {
        return;
    }
    if let Some(runtime) = current() {
        if !runtime.is_free() {
            let thread = runtime.thread.get() as usize;
            runtime.state().lanes[thread].last_owner_of = before;
        }
        runtime.counts.borrow_mut().end(key);
    }
}

/// The current thread does something that others can see. If that is in the destructor of an `Arc` whose last owner
/// depends on the order, its count has to be observed.
pub(crate) fn check_destructor(runtime: &Runtime, LastOwner { key, is_last }: LastOwner) {
    let is_last = runtime.state().causality.answer(is_last);
    if !is_last && runtime.counts.borrow().counted.contains_key(&key) {
        runtime.observe(key);
    }
}

/// The only owner takes the value out.
pub(crate) fn gone(key: usize) {
    if let Some(runtime) = current() {
        runtime.counts.borrow_mut().counted.remove(&key);
    }
}

/// The count is asked for.
pub(crate) fn look(key: usize, physical: usize, place: Place) -> Count {
    let Some(runtime) = runtime() else { return Count::Known };
    if let Some(word) = runtime.counted(key, physical, place) {
        return Count::Word(word);
    }
    if physical == 1 && runtime.is_after_all_drops(key) {
        return Count::Known;
    }
    runtime.observe(key)
}

/// Weak pointers make the count something to be seen.
pub(crate) fn observe(key: usize, place: Place) {
    if let Some(runtime) = runtime()
        && runtime.counted(key, 1, place).is_none()
    {
        runtime.observe(key);
    }
}

/// The count that a weak pointer sees, in a model.
pub(crate) fn word_of_weak(key: usize, physical: usize, place: Place) -> Option<Rc<Word>> {
    let runtime = runtime()?;
    let is_known = runtime.counts.borrow().counted.contains_key(&key);
    if is_known { runtime.counted(key, physical, place) } else { None }
}

/// A thread ends.
#[track_caller]
pub(crate) fn ends(runtime: &Runtime, thread: u32) {
    if runtime.counts.borrow().observed.ends {
        runtime.end_of(thread).update("end", Sync::Relaxed, |_| Step::Write(1));
    }
}

/// Has a thread ended? `None` where no events are: the caller looks by itself.
#[track_caller]
pub(crate) fn is_finished(thread: u32, place: Place) -> Option<bool> {
    let runtime = runtime()?;
    if !runtime.counts.borrow().observed.ends {
        {
            let mut counts = runtime.counts.borrow_mut();
            counts.observed.ends = true;
            counts.found = true;
        }
        runtime.fail("the end of a thread is observed".to_owned(), place)
    }
    Some(runtime.end_of(thread).get("JoinHandle::is_finished", Sync::Relaxed) == 1)
}

impl Runtime {
    fn end_of(&self, thread: u32) -> Rc<Word> {
        let mut counts = self.counts.borrow_mut();
        counts.ends.entry(thread).or_insert_with(|| Rc::new(Word::new(0))).clone()
    }
}
