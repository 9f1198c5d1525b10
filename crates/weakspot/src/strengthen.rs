//! Which operations to make `SeqCst`: the fewest that help, tried out by running the test with them.

use std::time::{Duration, Instant};

use crate::builder::Builder;
use crate::failure::SourcePlace;
use crate::model::{Found, explore};
use crate::rt::Place;
use crate::rt::runtime::Runtime;

/// An operation to strengthen.
#[derive(Debug, Clone)]
pub struct Suggestion {
    /// Where it is.
    pub place: SourcePlace,
    /// The test was run with all suggestions in place, and the violations are gone.
    pub tried: bool,
}

/// Explorations that took longer than this are not repeated.
const QUICK: Duration = Duration::from_secs(2);

/// The stores to strengthen. All stores of the violations help; what can be left out is left out.
pub(crate) fn suggest(builder: &Builder, runtime: &Runtime, found: &[Found], took: Duration) -> Vec<Suggestion> {
    let mut places: Vec<Place> = found.iter().map(|found| found.store_place).collect();
    places.sort_by_key(|place| (place.file(), place.line(), place.column()));
    places.dedup_by_key(|place| std::ptr::from_ref(*place).addr());
    let tried = took < QUICK && helps(builder, runtime, &places);
    if tried {
        let mut at = 0;
        while at < places.len() && places.len() > 1 {
            let mut fewer = places.clone();
            fewer.remove(at);
            if helps(builder, runtime, &fewer) {
                places = fewer;
            } else {
                at += 1;
            }
        }
    }
    places.into_iter().map(|place| Suggestion { place: place.into(), tried }).collect()
}

/// Are there no violations and no failures if the operations at these places are `SeqCst`?
fn helps(builder: &Builder, runtime: &Runtime, places: &[Place]) -> bool {
    *runtime.strengthened.borrow_mut() = places.iter().map(|place| std::ptr::from_ref(*place).addr()).collect();
    let judge = explore(builder, runtime, Instant::now());
    runtime.strengthened.borrow_mut().clear();
    judge.found.is_empty() && judge.report.failure.is_none()
}
