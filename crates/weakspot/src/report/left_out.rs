//! Loops that were not explored in all ways.

use weakspot_explore::system::LeftOut;

use crate::failure::SourcePlace;

/// A loop some of whose rounds were not explored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopLeftOut {
    /// Where it says that it waits: its `spin_loop` or `yield_now`.
    pub place: SourcePlace,
    /// Which rounds, and why, in words.
    pub why: &'static str,
}

impl From<(SourcePlace, LeftOut)> for LoopLeftOut {
    fn from((place, why): (SourcePlace, LeftOut)) -> Self {
        let why = match why {
            LeftOut::ManyRounds => {
                "ends by itself after more rounds than `max_spins`: its first rounds and what comes after the last one \
                 were explored, but not what other threads do between the rounds in the middle"
            }
            LeftOut::Writes => {
                "writes in each round and never ends by itself: what it writes in rounds without news from other threads \
                 was explored for the first such round only"
            }
            LeftOut::Clock => {
                "ends after another number of rounds each time it is run (does it ask a clock?): its ending by itself was not \
                 explored"
            }
            LeftOut::Counts => {
                "has an effect on what its thread does later by the number of its rounds (does it count them, or is its \
                 `spin_loop` or `yield_now` in a function that another loop calls, too?): what comes of more rounds was not \
                 all explored"
            }
            LeftOut::Fails => {
                "fails after some rounds without news from other threads: it was taken to wait, since a fair scheduler would \
                 let the others go on"
            }
            LeftOut::Unseen => {
                "waits for something that weakspot does not see (a `std` static or thread-local?): it went on although nothing \
                 had changed that it looks at, and what comes then was not explored"
            }
            LeftOut::Together => {
                "does the same again and again because of what other threads write, which go round loops as well: \
                 executions with many such rounds were not explored (`max_preemptions` bounds what there is to explore)"
            }
            LeftOut::Timeouts => {
                "waits with a timeout that may be over again and again while other threads go on: it was taken to wait in the end"
            }
            LeftOut::Winds => {
                "has rounds that differ and never ends by itself: rounds without news from other threads were not all \
                 explored"
            }
            LeftOut::LongLoop => {
                "ends by itself only after more than 1,000 rounds: its ending by itself was not explored"
            }
            LeftOut::Unsure => {
                "seemed never to end by itself many times, and then did: its ending by itself was not explored everywhere"
            }
        };
        Self { place, why }
    }
}
