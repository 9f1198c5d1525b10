//! The abstract transition system that fence inference reads.

#![allow(clippy::unwrap_used)]

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::{Instr, Program};
use weakspot_model::problem::ProblemKind;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit};
use weakspot_verify::abstraction::graph::{self, Graph, Step, Target};
use weakspot_verify::abstraction::{self, AbstractOptions, Domain};

/// The only way to fail is that a store is delayed past the load behind it.
const STORE_BUFFERING: &str = "\
shared x, y;
thread a { x = 1; let r = y; }
thread b { y = 1; let r = x; }
final { assert(a.r == 1 || b.r == 1); }
";

/// Fig. 6 of the paper.
const FIGURE_6: &str = "\
shared x;
thread a { x = 1; x = 2; }
thread b { let r1 = x; let r2 = x; assert(r1 <= r2); }
";

fn program(text: &str) -> Program {
    weak::compile(&SourceFile::new("test.weak", text)).unwrap().program
}

fn build(program: &Program, domain: Domain, k: u32) -> Graph {
    let options = AbstractOptions { domain, k, ..AbstractOptions::new(MemoryModel::Pso) };
    graph::build(program, &options, &Budget::unlimited(), &()).unwrap()
}

#[test]
fn pending_stores_carry_the_instruction_that_stored() {
    let program = program(STORE_BUFFERING);
    for (domain, certain) in [(Domain::Fd, true), (Domain::Pd, false)] {
        let graph = build(&program, domain, 1);
        assert_eq!(graph.is_certain(), certain);
        let late_loads = graph.nodes().flat_map(|node| graph.edges(node).iter().map(move |edge| (node, edge)));
        let late_loads = late_loads.filter(|(node, edge)| {
            let Step::Event { pc, .. } = edge.step else { return false };
            let loads = matches!(program.threads[edge.thread.index()].code[pc.index()], Instr::Load { .. });
            let pending = graph.pending(*node, edge.thread);
            let store = |pc: usize| matches!(program.threads[edge.thread.index()].code[pc], Instr::Store { .. });
            assert!(pending.iter().all(|pending| store(pending.pc.index()) && pending.pc < pc || !loads));
            loads && !pending.is_empty()
        });
        assert!(late_loads.count() > 0, "a load can pass the store before it");
        assert!(!graph.failing().is_empty(), "`final` fails in some state");
        let kinds: Vec<ProblemKind> = graph.errors().iter().map(|problem| problem.kind).collect();
        assert_eq!(kinds, [ProblemKind::Assertion]);
    }
}

#[test]
fn every_target_is_a_state_of_the_graph_and_every_state_is_reached() {
    let program = program(FIGURE_6);
    for (domain, k) in [(Domain::Fd, 0), (Domain::Fd, 1), (Domain::Pd, 0), (Domain::Pd, 1), (Domain::Pd, 2)] {
        let graph = build(&program, domain, k);
        let mut reached = vec![false; graph.len()];
        for target in graph.initial().iter().copied() {
            if let Target::Node(node) = target {
                reached[node.index()] = true;
            }
        }
        for node in graph.nodes() {
            for edge in graph.edges(node) {
                match edge.target {
                    Target::Node(to) => reached[to.index()] = true,
                    Target::Error(error) => assert!((error.0 as usize) < graph.errors().len()),
                }
            }
        }
        assert!(reached.iter().all(|&reached| reached), "{domain:?} with k = {k}");
    }
}

/// With k = 0 the stores of process 1 can be seen in the wrong order, with k = 1 not (Sec. 5.3.1).
#[test]
fn figure_6_needs_k_1() {
    let program = program(FIGURE_6);
    for (domain, k, fails) in [(Domain::Fd, 0, true), (Domain::Fd, 1, false), (Domain::Pd, 0, true)] {
        let graph = build(&program, domain, k);
        let errors =
            graph.nodes().flat_map(|node| graph.edges(node)).filter(|edge| matches!(edge.target, Target::Error(_)));
        assert_eq!(errors.count() > 0, fails, "{domain:?} with k = {k}");
        let options = AbstractOptions { domain, k, ..AbstractOptions::new(MemoryModel::Pso) };
        let explored = abstraction::explore(&program, &options, &Budget::unlimited(), &()).unwrap();
        assert_eq!(explored.fails, fails);
    }
}

#[test]
fn a_limit_on_states_is_honoured() {
    let text = "shared x: 0..=900; thread a { loop { let r = x; if r < 900 { x = r + 1; } } } thread b { let r = x; }";
    let options = AbstractOptions { max_states: Some(1_000), ..AbstractOptions::new(MemoryModel::Tso) };
    let built = graph::build(&program(text), &options, &Budget::unlimited(), &());
    assert_eq!(built.err(), Some(Limit::States(1_000)));
}

#[test]
fn a_start_that_fails_is_an_error_without_states() {
    let graph = build(&program("thread a { assert(false); }"), Domain::Fd, 1);
    assert!(graph.is_empty() && matches!(graph.initial(), [Target::Error(_)]));
    assert_eq!(graph.errors()[0].thread, Some(ThreadId(0)));
}
