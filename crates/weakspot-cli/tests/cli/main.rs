//! The `weakspot` command as its users see it: exit status, standard output, standard error.
#![allow(clippy::unwrap_used)]

mod abstraction;
mod bad_input;
mod check;
mod documents;
mod fence;
mod fence_test;
mod fmt;
mod interrupt;
mod json;
mod json_document;
mod litmus;
mod schedules;
mod support;
mod traces;
mod usage;
mod verify;
