//! `verify --engine symbolic`: unbounded store buffers as automata.

pub mod automaton;
