//! The two languages a program may be written in, as far as inserting fences goes.

use std::sync::Arc;

use weakspot_front::{litmus, weak};
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::source::{Diagnostic, SourceFile};

use crate::FenceError;

/// What a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// The modelling language.
    Weak,
    /// x86 litmus tests.
    Litmus,
}

/// What marks a gap in `.weak`: it touches no memory, waits for nothing and has one way to go on.
const MARKER: &str = "assume(choose(1..=1));";

impl Language {
    /// Compiles a text that was made from one that compiles.
    pub(crate) fn compile(self, source: &Arc<SourceFile>) -> Result<Program, FenceError> {
        match self {
            Self::Weak => weak::compile(source).map(|compiled| compiled.program).map_err(first),
            Self::Litmus => litmus::parse(source).map(|test| test.program).map_err(first),
        }
    }

    /// Compiles a text with markers.
    pub(crate) fn compile_marked(self, source: &Arc<SourceFile>) -> Result<Program, FenceError> {
        match self {
            Self::Weak => self.compile(source),
            Self::Litmus => litmus::parse_marked(source).map(|test| test.program).map_err(first),
        }
    }

    /// What marks a gap.
    pub(crate) fn marker(self) -> &'static str {
        match self {
            Self::Weak => MARKER,
            Self::Litmus => litmus::GAP,
        }
    }

    /// Where in a marker the choice begins.
    pub(crate) fn choice(self) -> usize {
        match self {
            Self::Weak => "assume(".len(),
            Self::Litmus => 0,
        }
    }

    /// A fence as it is written.
    pub(crate) fn keyword(self, kind: FenceKind) -> &'static str {
        match (self, kind) {
            (Self::Weak, FenceKind::Full) => "fence;",
            (Self::Weak, FenceKind::StoreStore) => "fence(store_store);",
            (Self::Weak, FenceKind::StoreLoad) => "fence(store_load);",
            (Self::Litmus, FenceKind::StoreStore) => "SFENCE",
            (Self::Litmus, FenceKind::Full | FenceKind::StoreLoad) => "MFENCE",
        }
    }

    /// Kinds of fences that are weaker than a full one, the weakest first.
    pub(crate) fn weaker_kinds(self) -> &'static [FenceKind] {
        match self {
            Self::Weak => &[FenceKind::StoreStore, FenceKind::StoreLoad],
            Self::Litmus => &[FenceKind::StoreStore],
        }
    }
}

/// The first of many mistakes, which are ours: the text compiled before it was changed.
pub(crate) fn first(diagnostics: Vec<Diagnostic>) -> FenceError {
    FenceError::Layout(diagnostics.into_iter().next().map_or_else(String::new, |diagnostic| diagnostic.message))
}
