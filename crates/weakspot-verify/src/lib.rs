//! Stateful engines over [`weakspot_model::ir::Program`].
