//! Parts of the search that somebody else can do.
//!
//! A subtree is a graph and one alternative to it: nothing else is needed, because branches share nothing. What is given
//! away is the alternative that would be taken up last, which tends to be the largest. Tokens mean nothing to another
//! system, so whoever takes a subtree runs its threads again, once.
//!
//! What is known of loops goes with it: of those that threads of the graph rest in, because that is asked again in the
//! end, and how well each loop has been tried out, so that it is not taken for a new one.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use weakspot_model::ids::ThreadId;

use super::probe::{Loops, history_of};
use super::{Explorer, Frame, Item, Visitor};
use crate::graph::Graph;
use crate::system::{System, Token};

/// A part of the search: a graph and an alternative to it.
#[derive(Debug)]
pub struct Subtree {
    graph: Graph,
    order: Vec<u32>,
    item: Item,
    loops: Loops,
}

impl<S: System> Explorer<'_, S> {
    /// Gives away the alternative that would be taken up last.
    pub(super) fn give_away(&mut self) -> Option<Subtree> {
        let mut frames = self.below.iter_mut().chain([&mut self.frame]);
        let frame = frames.find(|frame| !frame.items.is_empty())?;
        let item = frame.items.remove(0);
        let mut graph = frame.graph.clone();
        graph.truncate(item.len);
        let order = frame.order.iter().copied().filter(|&id| id < item.len).collect();
        let histories = (0..graph.width()).map(|thread| history_of(&graph, thread));
        let loops = self.loops.for_somebody_else(histories);
        Some(Subtree { graph, order, item, loops })
    }

    /// Explores a subtree that another explorer of the same system gave away.
    pub fn run_subtree(&mut self, subtree: Subtree, visitor: &mut impl Visitor<S>) -> ControlFlow<()> {
        let Subtree { graph, order, item, loops } = subtree;
        self.below.clear();
        self.loops.take_over(loops);
        *self.frame = Frame { graph, items: vec![item], order };
        self.frame.graph.set_above(None);
        if !self.replays {
            self.renew_tokens();
        }
        self.backtrack(visitor)
    }

    /// Runs the threads of a foreign graph again and notes the own system's tokens.
    fn renew_tokens(&mut self) {
        self.system.restart();
        let mut known: FxHashMap<(u32, Token), Token> = FxHashMap::default();
        for id in 0..self.graph().len() {
            let event = *self.graph().event(id);
            let thread = ThreadId(event.thread as u16);
            let token = self.own_token(&mut known, thread, event.before);
            self.graph_mut().event_mut(id).before = token;
            self.system.restore(thread, token);
            self.feed(&event);
        }
        for thread in 0..self.graph().width() {
            let old = self.graph().thread(thread).token;
            let token = self.own_token(&mut known, ThreadId::new(thread), old);
            self.graph_mut().thread_mut(thread).token = token;
        }
    }

    /// The own token for a foreign one: where the thread was when it was first seen.
    fn own_token(&self, known: &mut FxHashMap<(u32, Token), Token>, thread: ThreadId, foreign: Token) -> Token {
        let here = || self.system.save(thread).expect("invariant: the system has tokens");
        *known.entry((u32::from(thread.0), foreign)).or_insert_with(here)
    }
}
