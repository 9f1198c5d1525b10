//! Stateful engines over [`weakspot_model::ir::Program`].

pub mod litmus;
