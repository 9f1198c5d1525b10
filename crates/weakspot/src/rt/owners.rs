//! What is done to the owners of an `Arc` whose count is no event.
//!
//! Nobody may see the count change, and then the order of its changes does not matter. Who sees it all the same:
//! - **a weak pointer**, by whether it can be made an owner. If it cannot, it has to come after all owners that have gone. If
//!   it can, there has to be an owner in every order: see [`Runtime::is_settled`].
//! - **who asks for the count.** It has one answer if there is one owner and all others that there were have gone before.
//!   But nobody may be added who could have been there already.
//!
//! Where that is not so, the count has to be observed.
//!
//! # Synchronisation
//! To become an owner acquires what those have released that went before, and so does the last one that goes. But if that
//! is not so in every order, nothing that is to be true in every order may be concluded from it: who becomes an owner
//! learns nothing here, and the last one that goes forgets what it has learnt when the value has been destroyed. A race that
//! is found may then be none, if what orders the accesses is an order of counts that only events without
//! synchronisation enforce. So if there is a race, counts that somebody may have learnt from are observed first.

use super::causality::{Causality, Question};
use super::counts::Arcs;
use super::{Place, Runtime};

/// What was done to the owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The value of an `Arc` that has weak pointers already is there.
    Made,
    /// An owner has made another one.
    Added,
    /// A weak pointer has.
    Upgraded,
    /// One has gone.
    Removed,
    /// Somebody knows that there is one.
    Looked,
    /// Somebody knows that there is no weak pointer.
    LookedForWeak,
}

/// Something that was done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acted {
    /// The object that stands for the `Arc`.
    arc: u32,
    act: Act,
    at: Question,
}

/// Somebody may have learnt something from an order of counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Learnt {
    pub(super) made: Place,
    /// Did it know all of it anyway?
    pub(super) knew: Question,
}

impl Runtime {
    /// The current thread acts.
    pub(super) fn act(&self, arc: u32, act: Act) {
        let at = self.state().causality.mark(self.thread.get());
        self.counts.borrow_mut().acts.push(Acted { arc, act, at });
    }

    /// Do all these acts come before what the current thread does next?
    pub(super) fn knows_all(&self, arc: u32, act: Act) -> bool {
        let (counts, thread) = (self.counts.borrow(), self.thread.get());
        let causality = &mut self.state().causality;
        let mut acts = counts.acts.iter().filter(|acted| acted.arc == arc && acted.act == act);
        acts.all(|acted| causality.is_known(acted.at, thread))
    }

    /// A weak pointer has become an owner, or an owner has gone: have all weak pointers that have become owners still found
    /// one, in every order?
    ///
    /// Whatever may happen before one of them becomes an owner: everybody that goes comes after it, or else makes up for
    /// it by an owner that was added before, each by another one. Then the one that was there at first is there still, or
    /// one for it.
    pub(super) fn is_settled(&self, arc: u32, pairs: &mut Pairs) -> bool {
        let counts = self.counts.borrow();
        let causality = &mut self.state().causality;
        if pairs.follow(arc, &counts.acts, causality) {
            return true;
        }
        let acts: Vec<Acted> = counts.acts.iter().filter(|acted| acted.arc == arc).copied().collect();
        let newest = acts.len() - 1;
        let mut upgrades = Vec::new();
        for at in (0..=newest).filter(|&at| acts[at].act == Act::Upgraded) {
            if at == newest || acts[newest].act == Act::Removed && !causality.is_before(acts[at].at, acts[newest].at) {
                upgrades.push(at);
            }
        }
        let is_worth_it = newest < MOST_ACTS || upgrades.is_empty();
        is_worth_it && upgrades.into_iter().all(|upgrade| finds_an_owner(&acts, upgrade, causality))
    }

    /// There is a race. If somebody may have learnt something from an order of counts, these are observed.
    pub(crate) fn check_learnt(&self) {
        let learnt = std::mem::take(&mut self.counts.borrow_mut().learnt);
        let knew = |learnt: &Learnt| self.state().causality.answer(learnt.knew);
        let unknown: Vec<Place> = learnt.iter().filter(|learnt| !knew(learnt)).map(|learnt| learnt.made).collect();
        if let [first, others @ ..] = &*unknown {
            self.observe_all(first, others, Arcs::Owners);
        }
    }
}

/// Acts after which it is no longer worth the time to look for an owner for each upgrade.
const MOST_ACTS: usize = 200;

/// Owners that have gone and those that make up for them, found at once: mostly that is enough.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// How many acts of the run were looked at.
    seen: usize,
    /// Those that were added and make up for nobody.
    spare: Vec<Question>,
    /// Somebody has gone whom nobody makes up for.
    is_short: bool,
}

impl Pairs {
    /// Looks at what is new: does somebody make up for everybody that has gone?
    fn follow(&mut self, arc: u32, acts: &[Acted], causality: &mut Causality) -> bool {
        for acted in acts[self.seen..].iter().filter(|acted| acted.arc == arc) {
            match acted.act {
                Act::Added | Act::Upgraded => self.spare.push(acted.at),
                Act::Removed => match self.spare.iter().rposition(|&added| causality.is_before(added, acted.at)) {
                    Some(added) => _ = self.spare.remove(added),
                    None => self.is_short = true,
                },
                Act::Made | Act::Looked | Act::LookedForWeak => {}
            }
        }
        self.seen = acts.len();
        !self.is_short
    }
}

/// Is there an owner in every order when this weak pointer becomes one?
fn finds_an_owner(acts: &[Acted], upgrade: usize, causality: &mut Causality) -> bool {
    let removed: Vec<usize> = (0..acts.len()).filter(|&at| acts[at].act == Act::Removed).collect();
    let mut matched = Matched { causality, acts, made_up_for: vec![None; acts.len()] };
    let mut tried = vec![usize::MAX; acts.len()];
    removed.into_iter().all(|at| {
        let comes_later = at > upgrade && matched.causality.is_before(acts[upgrade].at, acts[at].at);
        comes_later || matched.find(at, at, &mut tried)
    })
}

/// Owners that were added, each for one that has gone.
struct Matched<'a> {
    causality: &'a mut Causality,
    acts: &'a [Acted],
    /// By those that were added.
    made_up_for: Vec<Option<usize>>,
}

impl Matched<'_> {
    /// Finds one for this, and others for those that it is taken from. Those that were tried for `what` are not tried again.
    fn find(&mut self, removed: usize, what: usize, tried: &mut [usize]) -> bool {
        // Few others know of the newest.
        for added in (0..removed).rev() {
            let Acted { act, at, .. } = self.acts[added];
            if tried[added] == what
                || !matches!(act, Act::Added | Act::Upgraded)
                || !self.causality.is_before(at, self.acts[removed].at)
            {
                continue;
            }
            tried[added] = what;
            if self.made_up_for[added].is_none_or(|other| self.find(other, what, tried)) {
                self.made_up_for[added] = Some(removed);
                return true;
            }
        }
        false
    }
}
