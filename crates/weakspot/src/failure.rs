//! Why an execution has failed.

use std::backtrace::Backtrace;
use std::panic::Location;

use crate::rt::Place;
use crate::rt::causality::Access;

/// A place in the source of the model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePlace {
    /// The file, as the compiler names it.
    pub file: String,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1.
    pub column: u32,
}

impl From<&Location<'_>> for SourcePlace {
    fn from(place: &Location<'_>) -> Self {
        Self { file: place.file().to_owned(), line: place.line(), column: place.column() }
    }
}

impl std::fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One side of a data race.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RacingAccess {
    /// Number of the thread.
    pub thread: u32,
    /// Does it write?
    pub writes: bool,
    /// Does it make the atomic or the cell? Then `place` is what the thread does next.
    pub makes: bool,
    /// Where.
    pub place: SourcePlace,
    /// When, if it is no event itself.
    pub(crate) moment: Option<PlainMoment>,
}

/// When plain memory was accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlainMoment {
    pub(crate) place: Place,
    /// Events of the run that had happened before.
    pub(crate) events: u32,
}

/// Memory is freed, while others may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freeing {
    /// Number of the thread.
    pub thread: u32,
    /// The last event of the thread before it does so.
    pub after: Option<SourcePlace>,
    /// How many events it has done by then.
    pub(crate) events: u32,
}

impl std::fmt::Display for Freeing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let thread = self.thread;
        match &self.after {
            Some(place) => write!(f, "by thread {thread}, after its event at {place}"),
            None => write!(f, "by thread {thread}, before its first event"),
        }
    }
}

/// What went wrong in an execution.
#[derive(Debug)]
pub enum FailureKind {
    /// A thread panicked.
    Panic {
        /// Where it panicked from.
        backtrace: Option<Backtrace>,
    },
    /// Two accesses to plain memory, at least one a write, that nothing orders: the earlier one.
    Race {
        /// The access that came first in this execution.
        first: RacingAccess,
        /// The other one.
        second: RacingAccess,
    },
    /// An atomic, a lock or a cell is used after its memory was freed.
    UsedAfterFree(Freeing),
    /// Nobody can go on.
    Deadlock,
    /// Threads go round loops that wait for what nobody will write.
    Livelock,
    /// An execution has more events than it may.
    TooLong,
    /// A check at the end of an execution complained.
    Leak,
    /// The model does not do the same when it is run again.
    NotDeterministic,
    /// What was to be run again is no schedule of this model.
    Schedule,
    /// The model asked for it.
    Other,
}

/// Why an execution has failed.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub kind: FailureKind,
    /// In words.
    pub message: String,
    /// Whose doing, if one thread's.
    pub thread: Option<u32>,
    /// Where.
    pub place: Option<SourcePlace>,
    static_place: Option<Place>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: String) -> Self {
        Self { kind, message, thread: None, place: None, static_place: None }
    }

    pub(crate) fn of_thread(mut self, thread: u32) -> Self {
        self.thread = Some(thread);
        self
    }

    pub(crate) fn at(mut self, place: Option<SourcePlace>) -> Self {
        self.place = place;
        self
    }

    pub(crate) fn message(thread: u32, message: String, place: Place) -> Self {
        let mut failure = Self::new(FailureKind::Other, message).of_thread(thread).at(Some(place.into()));
        failure.static_place = Some(place);
        failure
    }

    /// A thread uses what is in memory that was freed.
    pub(crate) fn used_after_free(thread: u32, place: Place, freeing: Freeing) -> Self {
        let message = format!("memory is used that was freed before, {freeing}");
        let mut failure = Self::message(thread, message, place);
        failure.kind = FailureKind::UsedAfterFree(freeing);
        failure
    }

    pub(crate) fn race(thread: u32, writes: bool, moment: PlainMoment, other: Access) -> Self {
        let Access { thread: by, writes: wrote, place, events, .. } = other;
        let then = Some(PlainMoment { place, events });
        let first = RacingAccess { thread: by, writes: wrote, makes: false, place: place.into(), moment: then };
        Self::race_with(thread, writes, moment.place, Some(moment), first)
    }

    /// The second access is an event, or was made at this moment.
    pub(crate) fn race_with(
        thread: u32,
        writes: bool,
        place: Place,
        moment: Option<PlainMoment>,
        first: RacingAccess,
    ) -> Self {
        let second = RacingAccess { thread, writes, makes: false, place: place.into(), moment };
        let name = |access: &RacingAccess| match (access.makes, access.writes) {
            (true, _) => "making before",
            (false, true) => "write at",
            (false, false) => "read at",
        };
        let message = format!(
            "data race: a {} {} and a {} {} are not ordered by any synchronisation",
            name(&first),
            first.place,
            name(&second),
            second.place
        );
        let mut failure =
            Self::new(FailureKind::Race { first, second }, message).of_thread(thread).at(Some(place.into()));
        failure.static_place = Some(place);
        failure
    }

    /// A thread accesses memory while another access of its own is not over; each is whether it writes, and where.
    pub(crate) fn overlap(thread: u32, first: (bool, PlainMoment), second: (bool, PlainMoment)) -> Self {
        let access = |(writes, moment): (bool, PlainMoment)| RacingAccess {
            thread,
            writes,
            makes: false,
            place: moment.place.into(),
            moment: Some(moment),
        };
        let verb = |writes| if writes { "writes" } else { "reads" };
        let message = format!(
            "two accesses of one thread overlap: it {} a cell at {} while it still {} it at {}",
            verb(second.0),
            SourcePlace::from(second.1.place),
            verb(first.0),
            SourcePlace::from(first.1.place),
        );
        let kind = FailureKind::Race { first: access(first), second: access(second) };
        let mut failure = Self::new(kind, message).of_thread(thread).at(Some(second.1.place.into()));
        failure.static_place = Some(second.1.place);
        failure
    }

    /// Where, or here.
    #[track_caller]
    pub(crate) fn place(&self) -> Place {
        self.static_place.unwrap_or(Location::caller())
    }

    pub(crate) fn is_race(&self) -> bool {
        matches!(self.kind, FailureKind::Race { .. })
    }
}
