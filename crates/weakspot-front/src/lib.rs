//! Front ends: `.weak` and `.litmus` text to [`weakspot_model::ir::Program`].

pub mod litmus;
pub mod suggest;
