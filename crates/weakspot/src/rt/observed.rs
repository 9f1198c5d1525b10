//! What the program looks at: survives runs, and belongs to a schedule.
//!
//! Counts that are observed are events, others are not. So a schedule fits only if what was observed when it was found is
//! observed again, and that may have been found in an execution that has nothing to do with this one. The places are
//! written behind the schedule, each as a hash of the name of its file, its line and its column: `~1f00ba2c`, with `w` before it
//! if weak pointers count. `~e`: the program asks whether threads have ended. `~r6`: threads 1 and 2 (one bit each) read what an
//! `RwLock` holds, and `~l`: it matters which of them comes first (see [`shares`](super::shares)).

use std::collections::BTreeSet;
use std::fmt::Write;

use rustc_hash::FxHashSet;

use super::Place;

/// What the text of it begins with, behind a schedule.
pub(crate) const OBSERVED: char = '~';

/// What the program looks at. Survives runs.
#[derive(Default, Clone)]
pub(crate) struct Observed {
    /// Places whose `Arc`s are observed.
    places: FxHashSet<usize>,
    /// Those whose weak pointers are.
    weak_places: FxHashSet<usize>,
    /// The same as hashes.
    hashes: BTreeSet<u32>,
    weak_hashes: BTreeSet<u32>,
    /// There are hashes whose places are not known.
    is_told: bool,
    /// Does the program ask whether threads have ended?
    pub(super) ends: bool,
    /// Threads that read what an `RwLock` holds: one bit for each.
    pub(super) readers: u64,
    /// Does it matter in which order they come and go?
    pub(super) orders_readers: bool,
}

fn address(place: Place) -> usize {
    std::ptr::from_ref(place).addr()
}

/// FNV-1a of where a place is, whatever the folder.
fn hash(place: Place) -> u32 {
    let file = place.file().rsplit(['/', '\\']).next().unwrap_or_default();
    let numbers = [place.line(), place.column()];
    let bytes = file.bytes().chain(numbers.into_iter().flat_map(u32::to_le_bytes));
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A number without a sign.
fn hexadecimal(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

impl Observed {
    /// Are the owners of `Arc`s that are made here counted?
    pub(super) fn is_observed(&self, made: Place) -> bool {
        self.places.contains(&address(made)) || self.is_told && self.hashes.contains(&hash(made))
    }

    /// Are their weak pointers?
    pub(super) fn is_weak_observed(&self, made: Place) -> bool {
        self.weak_places.contains(&address(made)) || self.is_told && self.weak_hashes.contains(&hash(made))
    }

    /// They are from now on.
    pub(super) fn observe(&mut self, made: Place, weak: bool) {
        self.places.insert(address(made));
        self.hashes.insert(hash(made));
        if weak {
            self.weak_places.insert(address(made));
            self.weak_hashes.insert(hash(made));
        }
    }

    /// Takes over what another worker has found.
    pub(crate) fn extend(&mut self, other: &Self) {
        self.places.extend(&other.places);
        self.weak_places.extend(&other.weak_places);
        self.hashes.extend(&other.hashes);
        self.weak_hashes.extend(&other.weak_hashes);
        self.is_told |= other.is_told;
        self.ends |= other.ends;
        self.readers |= other.readers;
        self.orders_readers |= other.orders_readers;
    }

    /// Nothing is observed.
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.weak_places.clear();
        self.hashes.clear();
        self.weak_hashes.clear();
        (self.is_told, self.ends) = (false, false);
        (self.readers, self.orders_readers) = (0, false);
    }

    /// As it is written behind a schedule.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for hash in &self.hashes {
            let weak = if self.weak_hashes.contains(hash) { "w" } else { "" };
            let _ = write!(text, "{OBSERVED}{weak}{hash:x}");
        }
        if self.ends {
            let _ = write!(text, "{OBSERVED}e");
        }
        if self.orders_readers {
            let _ = write!(text, "{OBSERVED}l");
        } else if self.readers != 0 {
            let _ = write!(text, "{OBSERVED}r{:x}", self.readers);
        }
        text
    }

    /// Takes over what is written behind a schedule, which is given without the first [`OBSERVED`]; otherwise the part that is
    /// wrong.
    pub(crate) fn read<'t>(&mut self, text: &'t str) -> Result<(), &'t str> {
        for part in text.split(OBSERVED) {
            if part == "e" {
                self.ends = true;
                continue;
            }
            if part == "l" {
                self.orders_readers = true;
                continue;
            }
            if let Some(readers) = part.strip_prefix('r') {
                self.readers = hexadecimal(readers).ok_or(part)?;
                continue;
            }
            let number = part.strip_prefix('w').unwrap_or(part);
            let hash = hexadecimal(number).and_then(|number| u32::try_from(number).ok()).ok_or(part)?;
            self.hashes.insert(hash);
            if number != part {
                self.weak_hashes.insert(hash);
            }
            self.is_told = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::{OBSERVED, Observed};

    #[test]
    fn what_was_written_is_read() {
        let (one, other, third) = (Location::caller(), Location::caller(), Location::caller());
        let mut observed = Observed::default();
        assert_eq!(observed.text(), "");
        observed.observe(one, false);
        observed.observe(other, true);
        observed.ends = true;
        observed.readers = 0x8000_0000_0000_0006;
        let text = observed.text();
        let mut again = Observed::default();
        assert_eq!(again.read(text.strip_prefix(OBSERVED).unwrap_or_default()), Ok(()));
        assert!(again.is_observed(one) && !again.is_weak_observed(one), "{text}");
        assert!(again.is_observed(other) && again.is_weak_observed(other), "{text}");
        assert!(!again.is_observed(third) && again.ends, "{text}");
        assert_eq!((again.readers, again.orders_readers), (observed.readers, false), "{text}");
        assert_eq!(again.text(), text);
        // Who reads does not matter then.
        observed.orders_readers = true;
        let text = observed.text();
        let mut again = Observed::default();
        assert_eq!(again.read(text.strip_prefix(OBSERVED).unwrap_or_default()), Ok(()));
        assert_eq!((again.readers, again.orders_readers), (0, true), "{text}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = [("", ""), ("e~", ""), ("12~x", "x"), ("1ffffffff", "1ffffffff"), ("+1", "+1"), ("w", "w")];
        let wrong_readers = [("r", "r"), ("r+1", "r+1"), ("r10000000000000000", "r10000000000000000"), ("lr", "lr")];
        for (text, part) in wrong.into_iter().chain(wrong_readers) {
            assert_eq!(Observed::default().read(text), Err(part), "{text}");
        }
    }
}
