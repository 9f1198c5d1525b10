//! Reference counts as weak pointers see them.

use std::rc::Rc;

use super::{Arcs, Count, ONE_WEAK, Owners, runtime};
use crate::rt::causality::Sync;
use crate::rt::owners::{Act, Learnt};
use crate::rt::{Place, Runtime, Step, Word};

/// The value of an `Arc` is about to be made, which has weak pointers already.
pub(crate) fn making(key: usize, place: Place) {
    let Some(runtime) = runtime() else { return };
    runtime.counts.borrow_mut().counted.remove(&key);
    runtime.counted_as(key, Owners { strong: 0, weak: 0 }, place, true);
    runtime.note(key, |counted| {
        counted.had_weak = true;
        counted.is_over = true;
        counted.maker = Some(runtime.thread.get());
    });
}

/// Now it is there, and has an owner.
pub(crate) fn made_at_last(key: usize, place: Place) {
    let Some(runtime) = runtime() else { return };
    let Some(word) = runtime.counts.borrow().counted.get(&key).map(|counted| counted.word.clone()) else { return };
    if let Some(word) = word {
        word.update_at(place, "Arc::new_cyclic", Sync::Release, |word| Step::Write(word + 1));
    } else {
        runtime.owe_drain("Arc::new_cyclic", Sync::Release, place);
        runtime.act(runtime.object_of(key), Act::Made);
    }
    runtime.note(key, |counted| {
        counted.is_over = false;
        counted.maker = None;
    });
}

/// A weak pointer is made of an owner.
pub(crate) fn downgraded(key: usize, physical: Owners, place: Place) {
    let Some(runtime) = runtime() else { return };
    runtime.counted(key, physical, place);
    let (arc, looked) = {
        let counted = &runtime.counts.borrow().counted[&key];
        (counted.dropped, counted.looked.for_weak)
    };
    if looked && !runtime.knows_all(arc, Act::LookedForWeak) {
        runtime.observe(key, Arcs::OwnersAndWeak);
    }
    runtime.note(key, |counted| counted.had_weak = true);
    weak_added(key, "Arc::downgrade", Sync::Acquire, place);
}

/// There is one more weak pointer.
pub(crate) fn weak_added(key: usize, what: &'static str, sync: Sync, place: Place) {
    let Some(runtime) = runtime() else { return };
    if let Some(word) = runtime.weakly_counted(key) {
        word.count_at(place, what, sync, |word| Step::Write(word + ONE_WEAK));
    } else if runtime.counts.borrow().counted.contains_key(&key) {
        runtime.owe_drain(what, sync, place);
    }
}

/// There is one weak pointer less.
pub(crate) fn weak_dropped(key: usize) {
    let Some(runtime) = runtime() else { return };
    let Some(made) = runtime.counts.borrow().counted.get(&key).map(|counted| counted.made) else { return };
    match runtime.weakly_counted(key) {
        Some(word) => _ = word.update_at(made, "drop of a Weak", Sync::Release, |word| Step::Write(word - ONE_WEAK)),
        None => runtime.owe_drain("drop of a Weak", Sync::Release, made),
    }
}

impl Runtime {
    /// The counts of an `Arc`, if its weak pointers are counted.
    pub(super) fn weakly_counted(&self, key: usize) -> Option<Rc<Word>> {
        let counts = self.counts.borrow();
        let counted = counts.counted.get(&key)?;
        counted.word.clone().filter(|_| counted.counts_weak)
    }

    /// Is there no owner, in whatever order things are done?
    fn has_no_owner(&self, key: usize, physical: Owners) -> bool {
        let (arc, maker) = {
            let counted = &self.counts.borrow().counted[&key];
            (counted.dropped, counted.maker)
        };
        match maker {
            Some(maker) => maker == self.thread.get(),
            None => physical.strong == 0 && self.knows_all(arc, Act::Removed),
        }
    }
}

/// How a count is to be asked for that a weak pointer sees. `Known`: there is no owner. Nothing: the caller looks by itself.
fn seen_by_weak(key: usize, physical: Owners, weak: bool, place: Place) -> Option<Count> {
    let runtime = runtime()?;
    if physical.strong == 0 && !runtime.counts.borrow().counted.contains_key(&key) {
        return None;
    }
    if let Some(word) = runtime.counted(key, physical, place) {
        // What is done to owners that are counted is known to the word alone.
        if weak && runtime.weakly_counted(key).is_none() {
            runtime.observe(key, Arcs::OwnersAndWeak);
        }
        return Some(Count::Word(word));
    }
    if !runtime.has_no_owner(key, physical) {
        runtime.observe(key, if weak { Arcs::OwnersAndWeak } else { Arcs::Owners });
    }
    Some(Count::Known)
}

/// The number of owners is asked for by a weak pointer.
pub(crate) fn look_by_weak(key: usize, physical: Owners, place: Place) -> Option<Count> {
    seen_by_weak(key, physical, false, place)
}

/// Both numbers are.
pub(crate) fn look_at_both_by_weak(key: usize, physical: Owners, place: Place) -> Option<Count> {
    seen_by_weak(key, physical, true, place)
}

/// What comes of making a weak pointer an owner, if it is no event.
pub(crate) fn upgrading(key: usize, physical: Owners, place: Place) -> Option<Rc<Word>> {
    let runtime = runtime()?;
    if physical.strong == 0 && !runtime.counts.borrow().counted.contains_key(&key) {
        return None;
    }
    let word = runtime.counted(key, physical, place);
    if word.is_some() {
        return word;
    }
    let is_made = runtime.counts.borrow().counted[&key].maker.is_none();
    if physical.strong == 0 || !is_made {
        if !runtime.has_no_owner(key, physical) {
            runtime.observe(key, Arcs::Owners);
        }
        return None;
    }
    let (arc, made) = {
        let counted = &runtime.counts.borrow().counted[&key];
        (counted.dropped, counted.made)
    };
    runtime.add_owner(key, Act::Upgraded);
    runtime.note(key, |counted| _ = counted.upgraded.get_or_insert_default());
    if !runtime.knows_all(arc, Act::Made) {
        runtime.observe(key, Arcs::Owners);
    }
    runtime.check_upgrades(key);
    let knew = runtime.state().causality.ask(runtime.thread.get(), arc);
    runtime.counts.borrow_mut().learnt.push(Learnt { made, knew });
    runtime.owe_drain("Weak::upgrade", Sync::Acquire, place);
    None
}

/// An owner is added through a raw pointer, by somebody who may own nothing: there has to be one, in every order.
pub(crate) fn added_by_pointer(key: usize, physical: Owners, place: Place) {
    let what = "Arc::increment_strong_count";
    let Some(runtime) = runtime() else { return };
    if let Some(word) = runtime.counted(key, physical, place) {
        let add = |word| if Owners::of(word).strong == 0 { Step::Keep } else { Step::Write(word + 1) };
        if Owners::of(word.count_at(place, what, Sync::Relaxed, add)).strong == 0 {
            runtime.fail("an owner is added to an `Arc` that nobody owns any more".to_owned(), place);
        }
    } else if physical.strong == 0 {
        runtime.fail("an owner is added to an `Arc` that nobody owns any more".to_owned(), place);
    } else {
        runtime.add_owner(key, Act::Upgraded);
        runtime.note(key, |counted| _ = counted.upgraded.get_or_insert_default());
        runtime.check_upgrades(key);
        runtime.owe_drain(what, Sync::Relaxed, place);
    }
}
