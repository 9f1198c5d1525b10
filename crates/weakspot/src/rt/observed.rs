//! What the program looks at: survives runs, and belongs to a schedule.
//!
//! Counts that are observed are events, others are not. So a schedule fits only if what was observed when it was found is
//! observed again, and that may have been found in an execution that has nothing to do with this one. The places are
//! written behind the schedule, each as a hash of the name of its file, its line and its column: `~1f00ba2c`, with `w` before it
//! if weak pointers count. `~e`: the program asks whether threads have ended. `~r6`: threads 1 and 2 (one bit each) read what an
//! `RwLock` holds, and `~l`: it matters which of them comes first (see [`shares`](super::shares)). `~m7`: threads 0, 1 and 2 come to a
//! `Barrier`, and `~o`: it matters in which order (see [`meetings`](super::meetings)). `~n`: somebody waits for the end of a channel,
//! and `~s`: somebody asks whether it has come (see [`channels`](super::channels)).

use std::collections::BTreeSet;
use std::fmt::Write;

use rustc_hash::FxHashSet;

use super::Place;
use super::channels::Closing;

/// What the text of it begins with, behind a schedule.
pub(crate) const OBSERVED: char = '~';

/// What stands for them: of groups, what stands for the order, and before the threads.
const ENDS: &str = "e";
const AWAITED: &str = "n";
const ASKED: &str = "s";
const READERS: (&str, char) = ("l", 'r');
const MEMBERS: (&str, char) = ("o", 'm');

/// Threads that do the same.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Group {
    /// One bit for each.
    pub(super) threads: u64,
    /// Does it matter in which order they do it?
    pub(super) is_ordered: bool,
}

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
    /// Threads that read what an `RwLock` holds.
    pub(super) readers: Group,
    /// Threads that come to a `Barrier`.
    pub(super) members: Group,
    /// What is seen of the end of channels.
    pub(super) closing: Closing,
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

/// What is seen of the end of channels, if this tells of it.
fn closing_of(part: &str) -> Option<Closing> {
    match part {
        AWAITED => Some(Closing::Awaited),
        ASKED => Some(Closing::Asked),
        _ => None,
    }
}

/// A number without a sign.
fn hexadecimal(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

impl Group {
    /// As it is written behind a schedule.
    fn write(self, (order, before): (&str, char), text: &mut String) {
        // Who they are does not matter if their order does.
        if self.is_ordered {
            let _ = write!(text, "{OBSERVED}{order}");
        } else if self.threads != 0 {
            let _ = write!(text, "{OBSERVED}{before}{:x}", self.threads);
        }
    }

    /// Is this a part of what is written that tells of it?
    fn is_read<'t>(&mut self, (order, before): (&str, char), part: &'t str) -> Result<bool, &'t str> {
        if part == order {
            self.is_ordered = true;
            return Ok(true);
        }
        let Some(threads) = part.strip_prefix(before) else { return Ok(false) };
        self.threads = hexadecimal(threads).ok_or(part)?;
        Ok(true)
    }
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
        for (group, other) in [(&mut self.readers, other.readers), (&mut self.members, other.members)] {
            group.threads |= other.threads;
            group.is_ordered |= other.is_ordered;
        }
        self.closing = self.closing.max(other.closing);
    }

    /// Nothing is observed.
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.weak_places.clear();
        self.hashes.clear();
        self.weak_hashes.clear();
        (self.is_told, self.ends) = (false, false);
        (self.readers, self.members) = (Group::default(), Group::default());
        self.closing = Closing::default();
    }

    /// As it is written behind a schedule.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for hash in &self.hashes {
            let weak = if self.weak_hashes.contains(hash) { "w" } else { "" };
            let _ = write!(text, "{OBSERVED}{weak}{hash:x}");
        }
        if self.ends {
            let _ = write!(text, "{OBSERVED}{ENDS}");
        }
        self.readers.write(READERS, &mut text);
        self.members.write(MEMBERS, &mut text);
        let closing = [AWAITED, ASKED].into_iter().find(|closing| closing_of(closing) == Some(self.closing));
        let _ = closing.map(|closing| write!(text, "{OBSERVED}{closing}"));
        text
    }

    /// Takes over what is written behind a schedule, which is given without the first [`OBSERVED`]; otherwise the part that is
    /// wrong.
    pub(crate) fn read<'t>(&mut self, text: &'t str) -> Result<(), &'t str> {
        for part in text.split(OBSERVED) {
            if part == ENDS {
                self.ends = true;
                continue;
            }
            if let Some(closing) = closing_of(part) {
                self.closing = closing;
                continue;
            }
            if self.readers.is_read(READERS, part)? || self.members.is_read(MEMBERS, part)? {
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

    use super::{Closing, Group, OBSERVED, Observed};

    #[test]
    fn what_was_written_is_read() {
        let (one, other, third) = (Location::caller(), Location::caller(), Location::caller());
        let mut observed = Observed::default();
        assert_eq!(observed.text(), "");
        observed.observe(one, false);
        observed.observe(other, true);
        observed.ends = true;
        observed.readers.threads = 0x8000_0000_0000_0006;
        observed.members.threads = 7;
        observed.closing = Closing::Awaited;
        let text = observed.text();
        let mut again = Observed::default();
        assert_eq!(again.read(text.strip_prefix(OBSERVED).unwrap_or_default()), Ok(()));
        assert!(again.is_observed(one) && !again.is_weak_observed(one), "{text}");
        assert!(again.is_observed(other) && again.is_weak_observed(other), "{text}");
        assert!(!again.is_observed(third) && again.ends, "{text}");
        assert_eq!((again.readers, again.members), (observed.readers, observed.members), "{text}");
        assert_eq!(again.closing, Closing::Awaited, "{text}");
        assert_eq!(again.text(), text);
        // Who they are does not matter then.
        (observed.readers.is_ordered, observed.members.is_ordered) = (true, true);
        observed.closing = Closing::Asked;
        let text = observed.text();
        let mut again = Observed::default();
        assert_eq!(again.read(text.strip_prefix(OBSERVED).unwrap_or_default()), Ok(()));
        let ordered = Group { threads: 0, is_ordered: true };
        assert_eq!((again.readers, again.members, again.closing), (ordered, ordered, Closing::Asked), "{text}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = [("", ""), ("e~", ""), ("12~x", "x"), ("1ffffffff", "1ffffffff"), ("+1", "+1"), ("w", "w")];
        let wrong_readers =
            [("r", "r"), ("r+1", "r+1"), ("r10000000000000000", "r10000000000000000"), ("lr", "lr"), ("m", "m")];
        for (text, part) in wrong.into_iter().chain(wrong_readers) {
            assert_eq!(Observed::default().read(text), Err(part), "{text}");
        }
    }
}
