//! What is an event only where the program looks at it: reference counts (see [`crate::sync::Arc`]) and whether a thread
//! has ended.

mod weak;

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::causality::{Question, Sync};
use super::objects::Object;
use super::observed::Observed;
use super::owners::{Act, Acted, Learnt, Pairs};
use super::runtime::Company;
use super::{Place, Runtime, Step, Word, current};
pub(crate) use weak::{
    added_by_pointer, downgraded, look_at_both_by_weak, look_by_weak, made_at_last, making, upgrading, weak_added,
    weak_dropped,
};

/// How long an `Arc` lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It is older than the run: a static, or something captured.
    Older,
    /// As long as the run at most.
    Run,
    /// It may outlive the run: it was made for a static.
    Kept,
}

/// What somebody knows of an `Arc` without an event.
#[derive(Debug, Default, Clone, Copy)]
struct Looked {
    /// That there was one owner.
    at_owners: bool,
    /// That there was no weak pointer.
    for_weak: bool,
}

/// What is known of an `Arc`, by the address of its value.
struct Counted {
    made: Place,
    life: Life,
    /// What its dropped owners have released.
    dropped: u32,
    /// Its counts as a state word, if they are observed: see [`Owners`].
    word: Option<Rc<Word>>,
    /// Weak pointers are part of it.
    counts_weak: bool,
    /// There was a weak pointer.
    had_weak: bool,
    /// A weak pointer was made an owner, which was no event.
    upgraded: Option<Box<Pairs>>,
    looked: Looked,
    /// Who makes its value, as long as there is none.
    maker: Option<u32>,
    /// Its last owner is gone, or there is none yet.
    is_over: bool,
}

/// What there is to know of an `Arc` whenever something is done to it.
struct Known {
    word: Option<Rc<Word>>,
    /// The object that stands for it.
    arc: u32,
    made: Place,
    /// Somebody knows that there was one owner.
    was_counted: bool,
    was_upgraded: bool,
}

/// How many pointers of each kind there are. As a state word: the owners in the lower half, and in the upper half the weak
/// pointers, if the program asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owners {
    pub(crate) strong: usize,
    pub(crate) weak: usize,
}

const ONE_WEAK: u64 = 1 << 32;

impl Owners {
    /// One owner, and nobody else.
    pub(crate) const ONE: Self = Self { strong: 1, weak: 0 };

    fn as_word(self, counts_weak: bool) -> u64 {
        let weak = if counts_weak { self.weak as u64 } else { 0 };
        self.strong as u64 + weak * ONE_WEAK
    }

    /// Of a state word.
    pub(crate) fn of(word: u64) -> Self {
        Self { strong: (word % ONE_WEAK) as usize, weak: (word / ONE_WEAK) as usize }
    }
}

/// A thread that destroys what an `Arc` has owned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastOwner {
    key: usize,
    /// Do all others that owned it come before that in every order?
    is_last: Question,
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
    /// What was done to owners that are not observed.
    pub(super) acts: Vec<Acted>,
    /// Who may have learnt something from them.
    pub(super) learnt: Vec<Learnt>,
}

/// What is to be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arcs {
    Owners,
    OwnersAndWeak,
}

impl Counts {
    /// A new run.
    pub(crate) fn reset(&mut self) {
        self.counted.clear();
        self.ends.clear();
        self.acts.clear();
        self.learnt.clear();
    }

    /// Complains if there are `Arc`s of this run that still have an owner.
    pub(crate) fn check_leaks(&self) -> Result<(), String> {
        let leaked = self.counted.values().filter(|counted| counted.life == Life::Run && !counted.is_over);
        let mut places: Vec<Place> = leaked.map(|counted| counted.made).collect();
        if places.is_empty() {
            return Ok(());
        }
        places.sort();
        let list: Vec<String> = places.iter().map(|place| format!("  made at {place}")).collect();
        Err(format!("{} Arc(s) leaked: an owner was never dropped\n{}", list.len(), list.join("\n")))
    }

    /// The last owner is gone. Weak pointers may still ask for the count.
    fn end(&mut self, key: usize) {
        let Some(counted) = self.counted.get_mut(&key) else { return };
        counted.is_over = true;
        if counted.word.is_none() && !counted.had_weak {
            self.counted.remove(&key);
        }
    }

    /// Forgets everything but its memory.
    pub(crate) fn restart(&mut self) {
        self.reset();
        self.observed.clear();
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

/// The runtime, if counts are kept now.
fn runtime<'a>() -> Option<&'a Runtime> {
    current().filter(|runtime| !runtime.is_free())
}

impl Runtime {
    fn counted(&self, key: usize, physical: Owners, place: Place) -> Option<Rc<Word>> {
        self.counted_as(key, physical, place, false).word
    }

    fn counted_as(&self, key: usize, physical: Owners, place: Place, new: bool) -> Known {
        let (known, life) = {
            let is_kept = self.state().lanes[self.thread.get() as usize].keeping > 0;
            let counts = &mut *self.counts.borrow_mut();
            let observed = &counts.observed;
            let counted = counts.counted.entry(key).or_insert_with(|| {
                let dropped = self.add_object(Object::new(0, place));
                let (is_observed, had_weak) = (observed.is_observed(place), physical.weak > 0);
                let counts_weak = observed.is_weak_observed(place);
                let word = is_observed.then(|| Rc::new(Word::new(physical.as_word(counts_weak))));
                let life = match (new, is_kept) {
                    (false, _) => Life::Older,
                    (true, false) => Life::Run,
                    (true, true) => Life::Kept,
                };
                Counted {
                    made: place,
                    life,
                    dropped,
                    word,
                    counts_weak,
                    had_weak,
                    upgraded: None,
                    looked: Looked::default(),
                    maker: None,
                    is_over: false,
                }
            });
            let &mut Counted { ref word, dropped, made, looked, ref upgraded, life, .. } = counted;
            let (was_counted, was_upgraded) = (looked.at_owners, upgraded.is_some());
            (Known { word: word.clone(), arc: dropped, made, was_counted, was_upgraded }, life)
        };
        if life == Life::Older && known.word.is_some() {
            self.check_company(place);
        }
        known
    }

    /// The count of something older than the run is looked at, and other workers may change it.
    fn check_company(&self, place: Place) {
        if self.company.get() != Company::Alone {
            self.get_in_the_way(place);
        }
    }

    /// The `Arc` is observed from now on, and its weak pointers, too, if that is asked for: everything begins anew.
    fn observe(&self, key: usize, what: Arcs) -> ! {
        let (made, life) = {
            let counted = &self.counts.borrow().counted[&key];
            (counted.made, counted.life)
        };
        if life == Life::Older {
            self.check_company(made);
        }
        self.observe_all(made, &[], what)
    }

    /// The same for all that were made at these places.
    pub(super) fn observe_all(&self, first: Place, others: &[Place], what: Arcs) -> ! {
        {
            let mut counts = self.counts.borrow_mut();
            for made in std::iter::once(&first).chain(others) {
                counts.observed.observe(made, what == Arcs::OwnersAndWeak);
            }
            counts.found = true;
        }
        self.fail("the count of an Arc is observed".to_owned(), first)
    }

    /// Changes what is known of an `Arc` that has an entry.
    fn note(&self, key: usize, change: impl FnOnce(&mut Counted)) {
        if let Some(counted) = self.counts.borrow_mut().counted.get_mut(&key) {
            change(counted);
        }
    }

    /// What stands for the `Arc`.
    fn object_of(&self, key: usize) -> u32 {
        self.counts.borrow().counted[&key].dropped
    }

    /// There is one more owner, which is no event.
    fn add_owner(&self, key: usize, act: Act) {
        let (arc, was_counted) = {
            let counted = &self.counts.borrow().counted[&key];
            (counted.dropped, counted.looked.at_owners)
        };
        self.add_owner_of(key, arc, was_counted, act);
    }

    /// The same, if the `Arc` is known.
    fn add_owner_of(&self, key: usize, arc: u32, was_counted: bool, act: Act) {
        if was_counted && !self.knows_all(arc, Act::Looked) {
            self.observe(key, Arcs::Owners);
        }
        self.act(arc, act);
    }

    /// There is one owner less, which is no event.
    fn remove_owner(&self, key: usize) {
        self.act(self.object_of(key), Act::Removed);
        self.check_upgrades(key);
    }

    /// Weak pointers that have become owners must have found one in every order.
    fn check_upgrades(&self, key: usize) {
        let (arc, pairs) = {
            let mut counts = self.counts.borrow_mut();
            let Some(counted) = counts.counted.get_mut(&key) else { return };
            (counted.dropped, counted.upgraded.take())
        };
        let Some(mut pairs) = pairs else { return };
        if !self.is_settled(arc, &mut pairs) {
            self.observe(key, Arcs::Owners);
        }
        self.note(key, |counted| counted.upgraded = Some(pairs));
    }

    /// Do all owners that are gone come before what the current thread does next?
    fn is_after_all_drops(&self, key: usize) -> bool {
        let dropped = self.object_of(key);
        let thread = self.thread.get();
        let causality = &mut self.state().causality;
        let question = causality.ask(thread, dropped);
        causality.answer(question)
    }
}

/// An `Arc` is made, with one owner.
pub(crate) fn made(key: usize, place: Place) {
    if let Some(runtime) = runtime() {
        runtime.counts.borrow_mut().counted.remove(&key);
        runtime.counted_as(key, Owners::ONE, place, true);
    }
}

/// The value of an `Arc` has moved to other memory, because there are weak pointers to the old one.
pub(crate) fn moved(from: usize, to: usize) {
    let Some(runtime) = runtime() else { return };
    let made_at = {
        let counts = &mut *runtime.counts.borrow_mut();
        let made_at = counts.counted.get(&from).map(|counted| counted.made);
        counts.end(from);
        made_at
    };
    if let Some(place) = made_at {
        made(to, place);
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
pub(crate) fn cloned(key: usize, physical: &dyn Fn() -> Owners, place: Place) {
    let Some(runtime) = runtime() else { return };
    let Known { word, arc, was_counted, .. } = runtime.counted_as(key, physical(), place, false);
    if let Some(word) = word {
        word.count_at(place, "Arc::clone", Sync::Relaxed, |count| Step::Write(count + 1));
    } else {
        runtime.add_owner_of(key, arc, was_counted, Act::Added);
        runtime.owe_drain("Arc::clone", Sync::Relaxed, place);
    }
}

/// A count that is known was asked for, or changed, by an interlocked operation.
pub(crate) fn interlocked(what: &'static str, sync: Sync, place: Place) {
    if let Some(runtime) = runtime() {
        runtime.owe_drain(what, sync, place);
    }
}

/// What [`dropping`] tells [`dropped`].
pub(crate) struct Dropping {
    is_last: bool,
    /// What was asked before the thread learnt what it has to know to destroy the value.
    asked: Option<Question>,
    /// In the destructor of what the thread was before.
    before: Option<LastOwner>,
}

/// An owner is about to go. `physical` is how many there are.
pub(crate) fn dropping(key: usize, physical: &dyn Fn() -> Owners, place: Place) -> Option<Dropping> {
    let Some(runtime) = runtime() else {
        return current().map(|_| Dropping { is_last: physical().strong == 1, asked: None, before: None });
    };
    let Known { word: observed, arc: dropped, made, was_upgraded, .. } =
        runtime.counted_as(key, physical(), place, false);
    // The compiler calls destructors, so there is no place in the source; others may come first.
    if let Some(word) = &observed {
        word.update_at(made, "drop of an Arc", Sync::AcqRel, one_owner_less);
    } else {
        runtime.act(dropped, Act::Removed);
        if was_upgraded {
            runtime.check_upgrades(key);
        }
        runtime.owe_drain("drop of an Arc", Sync::Release, made);
    }
    let thread = runtime.thread.get();
    let state = &mut *runtime.state();
    let before = state.lanes[thread as usize].last_owner_of;
    if physical().strong > 1 {
        state.causality.write(thread, dropped, Sync::Release, true);
        return Some(Dropping { is_last: false, asked: None, before });
    }
    let mut asked = None;
    if observed.is_none() {
        // Does who comes last depend on the order? It matters if the destructor does something that others can see.
        let is_last = state.causality.ask(thread, dropped);
        asked = Some(is_last);
        runtime.counts.borrow_mut().learnt.push(Learnt { made, knew: is_last });
        // In the destructor of something else, for which that is so, it need not be so for this as well.
        let is_inner = before.is_some_and(|outer: LastOwner| !state.causality.answer(outer.is_last));
        if !is_inner || !state.causality.answer(is_last) {
            state.lanes[thread as usize].last_owner_of = Some(LastOwner { key, is_last });
        }
    }
    state.causality.read(thread, dropped, Sync::Acquire);
    Some(Dropping { is_last: true, asked, before })
}

/// An owner is gone. Also called when the run is over and what it stored is destroyed.
pub(crate) fn dropped(key: usize, Dropping { is_last, asked, before }: Dropping) {
    if !is_last {
        return;
    }
    if let Some(runtime) = current() {
        if !runtime.is_free() {
            let thread = runtime.thread.get();
            let state = &mut *runtime.state();
            state.lanes[thread as usize].last_owner_of = before;
            if let Some(asked) = asked {
                state.causality.forget_since(thread, asked);
            }
        }
        runtime.counts.borrow_mut().end(key);
    }
}

/// The current thread does something that others can see. If that is in the destructor of an `Arc` whose last owner
/// depends on the order, its count has to be observed.
pub(crate) fn check_destructor(runtime: &Runtime, LastOwner { key, is_last }: LastOwner) {
    let is_last = runtime.state().causality.answer(is_last);
    if !is_last && runtime.counts.borrow().counted.contains_key(&key) {
        runtime.observe(key, Arcs::Owners);
    }
}

/// What the current thread does depends on which one it is: in such a destructor others can see that, sooner or later.
pub(crate) fn check_who(runtime: &Runtime) {
    if runtime.is_free() {
        return;
    }
    let last_owner_of = runtime.state().lanes[runtime.thread.get() as usize].last_owner_of;
    if let Some(owner) = last_owner_of {
        check_destructor(runtime, owner);
    }
}

/// An owner less, where there is one.
pub(crate) fn one_owner_less(word: u64) -> Step {
    if Owners::of(word).strong == 0 { Step::Keep } else { Step::Write(word - 1) }
}

/// The only owner takes the value out. Weak pointers may still ask for the count.
pub(crate) fn gone(key: usize) {
    let Some(runtime) = current() else { return };
    if !runtime.is_free() && runtime.counts.borrow().counted.get(&key).is_some_and(|counted| counted.word.is_none()) {
        runtime.remove_owner(key);
    }
    runtime.counts.borrow_mut().end(key);
}

/// An owner has left the others alone, which was an event.
pub(crate) fn left(key: usize) {
    if let Some(runtime) = runtime() {
        let dropped = runtime.object_of(key);
        runtime.state().causality.write(runtime.thread.get(), dropped, Sync::Release, true);
    }
}

/// The count is asked for.
pub(crate) fn look(key: usize, physical: Owners, place: Place) -> Count {
    let Some(runtime) = runtime() else { return Count::Known };
    if let Some(word) = runtime.counted(key, physical, place) {
        return Count::Word(word);
    }
    if physical.strong == 1 && runtime.is_after_all_drops(key) {
        runtime.act(runtime.object_of(key), Act::Looked);
        runtime.note(key, |counted| counted.looked.at_owners = true);
        return Count::Known;
    }
    runtime.observe(key, Arcs::Owners)
}

/// Both counts are asked for. `for_all`: the weak one even if there are other owners.
pub(crate) fn look_at_both(key: usize, physical: Owners, for_all: bool, place: Place) -> Count {
    let count = look(key, physical, place);
    let Some(runtime) = runtime() else { return count };
    if runtime.weakly_counted(key).is_some() {
        return count;
    }
    let had_weak = runtime.counts.borrow().counted[&key].had_weak;
    if had_weak || (for_all && physical.strong > 1) {
        runtime.observe(key, Arcs::OwnersAndWeak);
    }
    runtime.act(runtime.object_of(key), Act::LookedForWeak);
    runtime.note(key, |counted| counted.looked.for_weak = true);
    count
}

/// What a thread was started for is done. Its thread-locals are destroyed later.
pub(crate) fn ends(runtime: &Runtime, thread: u32) {
    if runtime.counts.borrow().observed.ends {
        // Its last event, or where it was started.
        let place = runtime.state().lanes[thread as usize].place;
        runtime.end_of(thread).update_at(place, "ends", Sync::Relaxed, |_| Step::Write(1));
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
    Some(runtime.end_of(thread).look("JoinHandle::is_finished", Sync::Relaxed) == 1)
}

impl Runtime {
    fn end_of(&self, thread: u32) -> Rc<Word> {
        let mut counts = self.counts.borrow_mut();
        counts.ends.entry(thread).or_insert_with(|| Rc::new(Word::new(0))).clone()
    }
}
