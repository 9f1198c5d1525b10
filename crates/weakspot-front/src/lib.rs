//! Front ends: `.weak` and `.litmus` text to [`weakspot_model::ir::Program`].
//!
//! | module | what it reads |
//! |---|---|
//! | [`weak`] | the modelling language |
//! | [`litmus`] | x86 litmus tests |
//!
//! Bad input is data: every front end gives back diagnostics with a place and a hint, and never panics.

pub mod litmus;
pub mod suggest;
pub mod weak;
