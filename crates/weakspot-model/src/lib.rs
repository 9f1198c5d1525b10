//! The ground floor of weakspot: what a program, an event, a store buffer and a trace *are*.
//!
//! | module | what lives there |
//! |---|---|
//! | [`ids`] | newtypes for threads, locations, registers, places in code |
//! | [`source`] | source text, spans, sites, and diagnostics as plain data |
//! | [`ir`] | the [`ir::Program`] every front end produces and every stateful engine reads |
//! | [`liveness`] | which registers can still matter |
//! | [`litmus`] | litmus tests: a program, what is observed, a condition |
//! | [`local`] | thread-local execution: from one event to the next |
//! | [`buffer`] | the store buffer of SC, TSO and PSO, written once |
//! | [`machine`] | the operational reference machine: enabled actions, one step at a time |
//! | [`problem`] | what can go wrong in an execution, and how it is put into words |
//! | [`replay`] | witnesses, and the replay every one of them has to survive |
//! | [`task`] | what an engine is given and what it gives back |
//! | [`trace`] | traces: program order, reads-from and coherence of an execution |
//! | [`axioms`] | which traces a model allows, and the cycle that forbids one |
//! | [`relation`] | small relations as rows of bits |
//!
//! Nothing here searches, prints, reads files or looks at the environment.

pub mod axioms;
pub mod buffer;
pub mod ids;
pub mod ir;
pub mod litmus;
pub mod liveness;
pub mod local;
pub mod machine;
pub mod problem;
pub mod relation;
pub mod replay;
pub mod source;
pub mod task;
pub mod trace;
