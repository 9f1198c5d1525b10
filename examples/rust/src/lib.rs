//! Well-known low-lock algorithms as one writes them in Rust, each once right and once with the mistake that store
//! buffers turn into a bug.
//!
//! Every structure has a `const` parameter that is `true` in the right version. Where it is `false`, exactly one fence
//! is left out or one ordering is weakened; the mark `WEAK` says where that is felt. The tests beside the code show that
//! weakspot proves the right version for TSO and PSO and, for the wrong one, finds the failure and names the store that
//! comes too late, which carries the mark `DELAYED`.
//!
//! | module | the mistake | breaks under |
//! |---|---|---|
//! | [`dekker`], [`peterson`], [`bakery`] | no fence between announcing oneself and looking at the other | TSO |
//! | [`chase_lev`] | no fence between lowering `bottom` and reading `top` | TSO |
//! | [`event_count`] | no fence between setting the condition and looking for a waiter | TSO |
//! | [`hazard`], [`rcu`] | no fence between announcing a reader and reading the pointer | TSO |
//! | [`ticket_lock`] | the lock is handed on by a relaxed store | PSO |
//! | [`spsc_ring`], [`mpsc_queue`], [`two_lock_queue`], [`lazy_list`] | an element is published by a relaxed store | PSO |
//! | [`treiber_stack`], [`michael_scott_queue`], [`harris_list`] | an element is published by a relaxed compare-and-swap | PSO |
//! | [`seqlock`] | no fence between the odd sequence number and the data | PSO |
//!
//! `tests/wrong.rs` has small tests that go wrong in other ways, to try `weakspot fence --test` on.
//!
//! # Nodes
//! Linked structures take their nodes from a [`pool::Pool`] and link them by index, as code without an allocator does.
//! A node is used once, so that nothing here depends on memory reclamation except the two modules about it.

pub mod bakery;
pub mod chase_lev;
pub mod dekker;
pub mod event_count;
pub mod harris_list;
pub mod hazard;
pub mod lazy_list;
pub mod michael_scott_queue;
pub mod mpsc_queue;
pub mod peterson;
pub mod pool;
pub mod rcu;
pub mod seqlock;
pub mod spsc_ring;
pub mod ticket_lock;
pub mod treiber_stack;
pub mod two_lock_queue;

#[cfg(test)]
mod harness;
