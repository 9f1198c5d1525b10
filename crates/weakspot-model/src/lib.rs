//! The ground floor of weakspot: what a program, an event, a store buffer and a trace *are*.
//!
//! | module | what lives there |
//! |---|---|
//! | [`ids`] | newtypes for threads, locations, registers, places in code |
//! | [`source`] | source text, spans, sites, and diagnostics as plain data |
//! | [`ir`] | the [`ir::Program`] every front end produces and every stateful engine reads |
//! | [`litmus`] | litmus tests: a program, what is observed, a condition |
//!
//! Nothing here searches, prints, reads files or looks at the environment.

pub mod ids;
pub mod ir;
pub mod litmus;
pub mod source;
