//! Value domains on small programs: what splits, what is an error, what ends.

#![allow(clippy::unwrap_used)]

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::problem::ProblemKind;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractVerdict, ValueDomain};

/// Verifies under PSO with k = 1, all cells of the variable with the domain.
fn verify(text: &str, variable: &str, domain: ValueDomain) -> AbstractVerdict {
    let program = weak::compile(&SourceFile::new("test.weak", text)).unwrap().program;
    let cell = |name: &str| name == variable || name.starts_with(&format!("{variable}["));
    let values = program.locations.iter().map(|location| cell(&location.name).then_some(domain)).collect();
    let options = AbstractOptions { values, max_states: Some(50_000), ..AbstractOptions::new(MemoryModel::Pso) };
    abstraction::verify(&program, &options, &Budget::unlimited(), &()).unwrap().verdict
}

#[track_caller]
fn alarm(verdict: AbstractVerdict) -> ProblemKind {
    match verdict {
        AbstractVerdict::Alarm(problem) => problem.kind,
        other => panic!("no alarm: {other:?}"),
    }
}

/// A counter without end beside another thread.
fn beside_counter(other: &str) -> String {
    format!("shared n, a[2];\nthread counter {{ loop {{ n = n + 1; }} }}\nthread other {{ {other} }}\n")
}

#[test]
fn comparisons_narrow_what_they_compare() {
    let text = beside_counter("loop { let v = n; if v > 3 { assert(v >= 4); } else { assert(v <= 3 && v >= 0); } }");
    assert_eq!(verify(&text, "n", ValueDomain::Interval), AbstractVerdict::Verified);
    let text = beside_counter("loop { let v = n; if v == 5 { assert(v - 5 == 0); } if v != 0 { assert(v > 0); } }");
    assert_eq!(verify(&text, "n", ValueDomain::Interval), AbstractVerdict::Verified);
}

#[test]
fn an_index_that_is_not_exact_means_every_cell_it_can_be() {
    let text = beside_counter("loop { let i = n & 1; a[i] = 1; let seen = a[i]; assert(seen == 1); }");
    for domain in ValueDomain::ALL {
        assert_eq!(verify(&text, "n", domain), AbstractVerdict::Verified, "{domain:?}");
    }
    let text = beside_counter("let v = n; assume(v > 1 << 40); let seen = a[v];");
    assert_eq!(alarm(verify(&text, "n", ValueDomain::Interval)), ProblemKind::Index);
}

/// A condition need not be a comparison: what may be 0 may fail, and where it does not, it is not 0.
#[test]
fn an_assertion_of_a_value_that_may_be_zero_may_fail() {
    let text = beside_counter("let v = n; assert(v);");
    assert!(matches!(verify(&text, "n", ValueDomain::Interval), AbstractVerdict::Violated(_)));
    // beyond what is searched one by one
    let text = beside_counter("loop { let v = n; if v > 1 << 40 { let w = v - (1 << 41); assert(w); } }");
    assert_eq!(alarm(verify(&text, "n", ValueDomain::Interval)), ProblemKind::Assertion);
    let text = beside_counter("loop { let v = n; assume(v); assert(v > 0); if v { assert(v != 0); } }");
    assert_eq!(verify(&text, "n", ValueDomain::Interval), AbstractVerdict::Verified);
}

#[test]
fn a_declared_range_is_respected_and_its_violation_found() {
    let bounded = "shared n: 0..=7;\nthread p[2] { loop { let v = n; if v < 7 { fence; n = v + 1; } } }\n";
    assert_eq!(verify(bounded, "n", ValueDomain::Interval), AbstractVerdict::Verified);
    let unbounded = "shared n: 0..=100000;\nthread p[2] { loop { n = n + 1; } }\n";
    for domain in ValueDomain::ALL {
        assert_eq!(alarm(verify(unbounded, "n", domain)), ProblemKind::Range, "{domain:?}");
    }
}

#[test]
fn a_local_loop_on_an_abstract_value_ends() {
    let text = beside_counter("loop { let v = n; while v < 3 { v = v + 1; } assert(v >= 3); }");
    assert_eq!(verify(&text, "n", ValueDomain::Interval), AbstractVerdict::Verified);
    let text = beside_counter("let v = n; assume(v > 5); while v > 0 { v = v - 1; } assert(v == 0);");
    assert_eq!(alarm(verify(&text, "n", ValueDomain::Interval)), ProblemKind::LocalLoop, "for a very large v");
}

#[test]
fn atomics_on_abstract_values_split() {
    let text = "\
shared n;
thread p[2] { loop { let v = fetch_add(n, 2); assert((v & 1) == 0); if cas(n, v, v + 2) { skip; } } }
";
    assert_eq!(verify(text, "n", ValueDomain::Parity), AbstractVerdict::Verified);
    let text =
        "shared n;\nthread p[2] { loop { let v = swap(n, 1); assert(v >= 0); fetch_add(n, 1); fetch_or(n, 4); } }\n";
    assert_eq!(verify(text, "n", ValueDomain::Interval), AbstractVerdict::Verified);
}

#[test]
fn division_by_a_value_that_may_be_zero_is_reported() {
    let text = beside_counter("let v = n; assume(v > 3); let q = 8 / (v - 4);");
    let verdict = verify(&text, "n", ValueDomain::Interval);
    assert!(matches!(verdict, AbstractVerdict::Violated(_)), "it is real: {verdict:?}");
    let text = beside_counter("let v = n; let q = 8 / (v + 1); assert(q >= 0 && q <= 8);");
    assert_eq!(verify(&text, "n", ValueDomain::Interval), AbstractVerdict::Verified);
}

#[test]
fn the_final_block_reads_abstract_values() {
    let text = "\
shared n;
thread a { let rounds = choose(1..=9); while rounds > 0 { n = n + 1; rounds = rounds - 1; } }
thread b { let seen = n; }
final { assert(n > 0 && b.seen >= 0); }
";
    assert_eq!(verify(text, "n", ValueDomain::Sign), AbstractVerdict::Verified);
}
