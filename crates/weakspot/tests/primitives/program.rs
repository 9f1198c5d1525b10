//! Small programs with atomics and one kind of primitive each, and a generator of them.

pub const LOCATIONS: usize = 2;
pub const MOST_THREADS: usize = 3;

/// What threads have besides atomics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    RwLock,
    Barrier,
    OnceLock,
    /// Messages that it holds, if there is a limit. The first thread receives, the others send.
    Channel(Option<usize>),
    Parking,
    Condvar,
    /// A lock that threads poison, and clear.
    Poison {
        has_readers: bool,
    },
}

/// What a thread does next. What it finds is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    Load(usize),
    Store(usize, u8),
    /// A release store.
    Publish(usize, u8),
    Read,
    Write,
    TryRead,
    TryWrite,
    Downgrade,
    /// The lock is given back, if the thread has it.
    EndLock,
    /// Whether it came last is noted if it asks.
    Meet {
        asks: bool,
    },
    Get,
    Set(u8),
    /// The closure looks at a location.
    GetOrInit(u8, usize),
    Send(u8),
    TrySend(u8),
    Receive,
    TryReceive,
    Park,
    Unpark(usize),
    Lock,
    Unlock,
    Wait,
    Notify {
        all: bool,
    },
    /// Gets the lock for itself. Whether it is poisoned is noted.
    Enter,
    /// Gets it to read.
    EnterToRead,
    /// Gives it back.
    Leave,
    /// Panics while it has it.
    Panic,
    AskPoison,
    ClearPoison,
}

const MEET: Act = Act::Meet { asks: true };

impl Act {
    /// The same without a question. If nobody asks, orders of readers, of those who meet, and of senders that go are not explored.
    fn without_question(self) -> Self {
        match self {
            Self::Meet { .. } => Self::Meet { asks: false },
            Self::TryRead => Self::Read,
            Self::TryWrite => Self::Write,
            Self::TryReceive => Self::Receive,
            act => act,
        }
    }
}

/// The program in which nobody asks, if somebody does.
pub fn without_questions(program: &Program) -> Option<Program> {
    let answer: Program =
        program.iter().map(|thread| thread.iter().map(|act| act.without_question()).collect()).collect();
    (answer != *program).then_some(answer)
}

pub type Program = Vec<Vec<Act>>;

/// Numbers that look random.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as usize % limit
    }
}

fn plain(random: &mut Random) -> Act {
    let (location, value) = (random.below(LOCATIONS), 1 + random.below(2) as u8);
    match random.below(7) {
        0..=2 => Act::Load(location),
        3..=5 => Act::Store(location, value),
        _ => Act::Publish(location, value),
    }
}

/// A few acts that belong together.
fn acts(kind: Kind, me: usize, threads: usize, random: &mut Random) -> Vec<Act> {
    let value = 3 + random.below(2) as u8;
    let choice = random.below(8);
    match kind {
        Kind::RwLock => match choice {
            0 | 1 => vec![Act::Read, plain(random), Act::EndLock],
            2 | 3 => vec![Act::Write, plain(random), Act::EndLock],
            4 => vec![Act::TryRead, plain(random), Act::EndLock],
            5 => vec![Act::TryWrite, plain(random), Act::EndLock],
            6 => vec![Act::Write, Act::Downgrade, plain(random), Act::EndLock],
            _ => vec![Act::Read, Act::EndLock],
        },
        Kind::Barrier => vec![MEET],
        Kind::OnceLock => match choice {
            0..=2 => vec![Act::Get],
            3 | 4 => vec![Act::Set(value)],
            _ => vec![Act::GetOrInit(value, random.below(LOCATIONS))],
        },
        Kind::Channel(_) if me == 0 => vec![if choice < 5 { Act::Receive } else { Act::TryReceive }],
        Kind::Channel(limit) => {
            vec![if choice < 6 || limit.is_none() { Act::Send(value) } else { Act::TrySend(value) }]
        }
        Kind::Parking if choice < 3 => vec![Act::Park],
        Kind::Parking => vec![Act::Unpark(if me == 0 { 1 + random.below(threads - 1) } else { 0 })],
        Kind::Condvar => match choice {
            0 | 1 => vec![Act::Lock, Act::Wait, Act::Unlock],
            2 => vec![Act::Lock, Act::Notify { all: true }, Act::Unlock],
            3 | 4 => vec![Act::Lock, plain(random), Act::Unlock],
            5 => vec![Act::Notify { all: true }],
            _ => vec![Act::Notify { all: false }],
        },
        Kind::Poison { has_readers } => match choice {
            0 | 1 => vec![Act::Enter, Act::Panic],
            2 => vec![Act::Enter, plain(random), Act::Panic],
            3 if has_readers => vec![Act::EnterToRead, Act::Panic],
            3 => vec![Act::Enter, Act::ClearPoison, Act::Leave],
            4 if has_readers => vec![Act::EnterToRead, plain(random), Act::Leave],
            4 => vec![Act::Enter, plain(random), Act::Leave],
            5 => vec![Act::Enter, Act::Leave],
            6 => vec![Act::AskPoison],
            _ => vec![Act::ClearPoison],
        },
    }
}

/// A program and what its threads have.
pub fn program(random: &mut Random) -> (Kind, Program) {
    let kind = match random.below(8) {
        0 => Kind::RwLock,
        1 => Kind::Barrier,
        2 => Kind::OnceLock,
        3 => Kind::Channel(None),
        4 => Kind::Channel(Some(1)),
        5 => Kind::Channel(Some(0)),
        6 => Kind::Parking,
        _ => Kind::Condvar,
    };
    with_threads(kind, random)
}

/// A program whose threads have a lock that is poisoned now and then.
pub fn poisonous(random: &mut Random) -> (Kind, Program) {
    let has_readers = random.below(2) == 0;
    with_threads(Kind::Poison { has_readers }, random)
}

fn with_threads(kind: Kind, random: &mut Random) -> (Kind, Program) {
    let threads = 2 + random.below(MOST_THREADS - 1);
    let thread = |me: usize, random: &mut Random| {
        let mut own = vec![plain(random)];
        for _ in 0..=random.below(if threads == 2 { 3 } else { 2 }) {
            match random.below(3) {
                0 => own.push(plain(random)),
                _ => own.extend(acts(kind, me, threads, random)),
            }
        }
        own.push(plain(random));
        own
    };
    let mut program: Program = (0..threads).map(|me| thread(me, random)).collect();
    if kind == Kind::Barrier && random.below(4) > 0 {
        // Otherwise most of them wait for somebody who does not come.
        let meetings = 1 + random.below(2);
        for thread in &mut program {
            thread.retain(|act| *act != MEET);
            (0..meetings).for_each(|_| thread.insert(random.below(thread.len() + 1), MEET));
        }
    }
    let is_wider = kind == Kind::Channel(Some(1)) && random.below(3) == 0;
    (if is_wider { Kind::Channel(Some(2)) } else { kind }, program)
}
