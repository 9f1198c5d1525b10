//! Stateful engines over [`weakspot_model::ir::Program`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`abstraction`] | finite abstractions of unbounded buffers and of values |
//! | [`threads`] | the automaton of one thread: local states as numbers, for all engines |
//! | [`explicit`] | every reachable state, one by one; buffers up to a bound |
//! | [`growth`] | a sign that there is no end of states |
//! | [`litmus`] | every execution of a litmus test, by the axioms |
//! | [`robust`] | store-buffer safety with unbounded loops and buffers, by attacks |
//! | [`portfolio`] | several engines for one question |
//! | [`symbolic`] | sets of states at once; unbounded buffers as automata |
//!
//! An engine takes a program, its options, a budget and a progress sink, and gives back a verdict
//! ([`weakspot_model::task`]). It prints nothing and reads no environment.

pub mod abstraction;
pub mod explicit;
pub mod growth;
mod intern;
pub mod litmus;
pub mod portfolio;
pub mod robust;
pub mod symbolic;
pub mod threads;
