//! Programs made for one claim about the symbolic engine each.

#![allow(clippy::unwrap_used)]

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel::{self, Pso, Sc, Tso};
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Machine};
use weakspot_model::problem::ProblemKind;
use weakspot_model::replay::Witness;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Verdict};
use weakspot_verify::symbolic::{self, SymbolicOptions, SymbolicReport};

fn program(text: &str) -> Program {
    weak::compile(&SourceFile::new("test.weak", text)).unwrap().program
}

fn report(text: &str, model: MemoryModel) -> SymbolicReport {
    symbolic::verify(&program(text), &SymbolicOptions::new(model), &Budget::unlimited(), &()).unwrap()
}

fn verdict(text: &str, model: MemoryModel) -> Verdict {
    report(text, model).verdict
}

/// The violation, replayed.
fn violation(text: &str, model: MemoryModel) -> Witness {
    let Verdict::Violated(witness) = verdict(text, model) else { panic!("nothing found under {}", model.name()) };
    witness.replay(&Machine::new(&program(text), model)).unwrap();
    witness
}

#[test]
fn a_cycle_is_unrolled_as_often_as_the_execution_needs() {
    // The reader wants to see the counter wrap round five times while the writer waits for nothing.
    let text = "shared x: 0..=2, done;
        thread w { loop { x = 1; x = 2; x = 0; } }
        thread r {
            let i = 0;
            while i < 5 { await(x == 1); await(x == 0); i = i + 1; }
            assert(false);
        }";
    let witness = violation(text, Tso);
    let writer_steps = |action: &&Action| matches!(action, Action::Step { thread, .. } if thread.index() == 0);
    assert!(
        witness.actions.iter().filter(writer_steps).count() >= 13,
        "five rounds of three stores, the last cut short"
    );
}

#[test]
fn a_buffer_longer_than_any_bound_is_found_at_once() {
    // The flag that lets the reader look is behind as many stores as the writer likes to make.
    let text = "shared x: 0..=1, flag, out;
        thread w { loop { x = 1; x = 0; if flag == 1 { out = 1; } } }
        thread r { flag = 1; await(out == 1); assert(x == 1); }";
    violation(text, Tso);
    assert!(report(text, Tso).accelerations > 0);
}

#[test]
fn a_cycle_that_commits_is_accelerated() {
    // Each round of both threads commits two stores of p and buffers four.
    let text = "shared x: 0..=1, y: 0..=1;
        thread p { loop { x = 1; x = 0; x = 1; x = 0; await(y == 1); await(y == 0); } }
        thread q { loop { await(x == 1); y = 1; await(x == 0); y = 0; } }";
    for model in [Tso, Pso] {
        let report = report(text, model);
        assert_eq!(report.verdict, Verdict::Verified);
        assert!(report.accelerations > 0);
    }
}

#[test]
fn two_buffers_of_a_thread_grow_in_step_under_pso() {
    let text = "shared x: 0..=1, y: 0..=1, z: 0..=2;
        thread p { loop { x = 1; y = 1; z = 2; x = 0; y = 0; z = 1; } }
        thread q { loop { let a = x; let b = y; assert(a + b <= 2); } }";
    for model in [Tso, Pso] {
        assert_eq!(verdict(text, model), Verdict::Verified);
    }
}

#[test]
fn pso_lets_a_flag_overtake_its_data_in_any_round() {
    let text = "shared data: 0..=2, flag: 0..=2;
        thread p { loop { data = 1; flag = 1; data = 2; flag = 2; } }
        thread q { await(flag == 1); await(flag == 2); let d = data; assert(d != 0); }";
    assert_eq!(verdict(text, Tso), Verdict::Verified);
    violation(text, Pso);
}

#[test]
fn forwarding_within_a_processor_is_table_1() {
    let text = "shared x, y;
        thread a { x = 1; assume(x == 1); assume(y == 0); }
        thread b { y = 1; assume(y == 1); assume(x == 0); }
        final { assert(false); }";
    assert_eq!(verdict(text, Sc), Verdict::Verified);
    violation(text, Tso);
}

/// Each thread takes its mutex and then the other's, but only if the other does not seem to be on its way.
const RELAXED_DEADLOCK: &str = "shared a, b; mutex m, n;
    thread p { a = 1; if b == 0 { lock(m); lock(n); unlock(n); unlock(m); } }
    thread q { b = 1; if a == 0 { lock(n); lock(m); unlock(m); unlock(n); } }";

#[test]
fn a_deadlock_that_exists_only_under_tso() {
    assert_eq!(verdict(RELAXED_DEADLOCK, Sc), Verdict::Verified);
    assert_eq!(violation(RELAXED_DEADLOCK, Tso).problem.kind, ProblemKind::Deadlock);
    let options = SymbolicOptions { allow_deadlock: true, ..SymbolicOptions::new(Tso) };
    let report = symbolic::verify(&program(RELAXED_DEADLOCK), &options, &Budget::unlimited(), &()).unwrap();
    assert_eq!(report.verdict, Verdict::Verified);
}

#[test]
fn a_deadlock_waits_until_the_buffers_are_empty() {
    // q is stuck for ever only if it never sees p's store, which is still in the buffer when p stops at its lock.
    let text = "shared x; mutex m;
        thread p { x = 1; lock(m); lock(m); }
        thread q { let r = x; }";
    let witness = violation(text, Tso);
    assert_eq!(witness.problem.kind, ProblemKind::Deadlock);
    assert!(witness.actions.iter().any(|action| matches!(action, Action::Commit { .. })));
}

#[test]
fn notifications_wake_and_spurious_wakeups_are_asked_for() {
    let text = "shared ready; mutex m; condvar c;
        thread p { lock(m); if ready == 0 { wait(c, m); } assert(ready == 1); unlock(m); }
        thread q { lock(m); ready = 1; notify_one(c); unlock(m); }";
    assert_eq!(verdict(text, Tso), Verdict::Verified);
    let options = SymbolicOptions { spurious_wakeups: true, ..SymbolicOptions::new(Tso) };
    let report = symbolic::verify(&program(text), &options, &Budget::unlimited(), &()).unwrap();
    assert!(matches!(report.verdict, Verdict::Violated(_)));
}

#[test]
fn a_problem_before_the_first_event_is_a_problem() {
    let witness = violation("shared x; thread p { assert(1 == 2); x = 1; }", Tso);
    assert!(witness.actions.is_empty());
    assert_eq!(verdict("shared x; thread p { assume(1 == 2); x = 1; assert(false); }", Tso), Verdict::Verified);
}

/// Data is written before the flag, again and again; `FENCE` stands between them.
const PUBLISH: &str = "shared data: 0..=2, flag: 0..=2;
    thread p { loop { data = 1; FENCE flag = 1; data = 2; FENCE flag = 2; } }
    thread q { await(flag == 1); let d = data; assert(d != 0); }";

#[test]
fn store_store_fences_are_exact_under_pso_also_in_loops() {
    violation(&PUBLISH.replace("FENCE", ""), Pso);
    assert_eq!(verdict(&PUBLISH.replace("FENCE", "fence(store_store);"), Pso), Verdict::Verified);
    assert_eq!(verdict(&PUBLISH.replace("FENCE", ""), Tso), Verdict::Verified);
}

#[test]
fn a_store_store_fence_holds_back_only_what_comes_after_it() {
    // The stores before the fence may come in either order, and the load after it does not wait.
    let swapped =
        "shared x, y; thread p { x = 1; y = 1; fence(store_store); } thread q { await(y == 1); assert(x == 1); }";
    violation(swapped, Pso);
    let early = "shared x, y;
        thread p { x = 1; fence(store_store); let r = y; }
        thread q { y = 1; fence; let s = x; }
        final { assert(p.r == 1 || q.s == 1); }";
    violation(early, Pso);
    let chain = "shared x, y, z;
        thread p { x = 1; fence(store_store); y = 1; fence(store_store); z = 1; }
        thread q { await(z == 1); assert(y == 1); assert(x == 1); }";
    assert_eq!(verdict(chain, Pso), Verdict::Verified);
}

#[test]
fn an_atomic_under_pso_waits_for_its_own_location_only() {
    let text = "shared x, y, z;
        thread p { x = 1; let r = swap(y, 1); }
        thread q { await(y == 1); assert(x == 1); }";
    assert_eq!(verdict(text, Tso), Verdict::Verified);
    violation(text, Pso);
    let same = "shared x; thread p { x = 1; let r = swap(x, 2); assert(r == 1); }";
    assert_eq!(verdict(same, Pso), Verdict::Verified);
}

#[test]
fn limits_give_an_inconclusive_answer() {
    let text = "shared x: 0..=1, y: 0..=1;
        thread p { loop { x = 1; let r = y; x = 0; } }
        thread q { loop { y = 1; let r = x; y = 0; } }";
    let options = SymbolicOptions { max_states: Some(1), ..SymbolicOptions::new(Tso) };
    let report = symbolic::verify(&program(text), &options, &Budget::unlimited(), &()).unwrap();
    assert_eq!(report.verdict, Verdict::Inconclusive(Limit::States(1)));
    let budget = Budget::unlimited().with_memory(1);
    let report = symbolic::verify(&program(text), &SymbolicOptions::new(Tso), &budget, &()).unwrap();
    assert_eq!(report.verdict, Verdict::Inconclusive(Limit::Memory));
}

/// The clock is looked at inside operations on automata too.
#[test]
fn no_time_at_all_is_an_inconclusive_answer() {
    let text = "shared x: 0..=1, y: 0..=1;
        thread p { loop { x = 1; let r = y; x = 0; } }
        thread q { loop { y = 1; let r = x; y = 0; } }";
    for model in [Sc, Tso, Pso] {
        let budget = Budget::unlimited().with_time(std::time::Duration::ZERO);
        let report = symbolic::verify(&program(text), &SymbolicOptions::new(model), &budget, &()).unwrap();
        let out_of_time = report.verdict == Verdict::Inconclusive(Limit::Time);
        // SC is done before the clock is looked at for the first time.
        assert!(out_of_time || model == Sc, "{} under {}", report.transitions, model.name());
    }
}

#[test]
fn a_program_too_large_for_the_search_by_memory_is_not_called_verified() {
    // One thread has more local states than that search takes in.
    let text = "shared x;
        thread a { let n = 0; while n < 220000 { let r = x; n = n + 1; } assert(false); }
        thread b { x = 1; }";
    violation(text, Tso);
}

#[test]
fn a_program_that_counts_for_ever_gets_no_verdict() {
    let text = "shared x, y;
        thread a { loop { x = x + 1; } }
        thread b { loop { y = x; } }";
    let options = SymbolicOptions { max_states: Some(2_000), ..SymbolicOptions::new(Tso) };
    let report = symbolic::verify(&program(text), &options, &Budget::unlimited(), &()).unwrap();
    assert_eq!(report.verdict, Verdict::Inconclusive(Limit::States(2_000)));
}

#[test]
fn a_thread_that_fails_when_it_notifies_wakes_one_that_waits() {
    let text = "shared flag; mutex m; condvar c;
        thread b { lock(m); let r = flag; if r == 1 { notify_one(c); assert(false); } unlock(m); }
        thread a { lock(m); flag = 1; wait(c, m); unlock(m); }";
    for model in [Sc, Tso, Pso] {
        let options = SymbolicOptions { allow_deadlock: true, all_errors: true, ..SymbolicOptions::new(model) };
        let report = symbolic::verify(&program(text), &options, &Budget::unlimited(), &()).unwrap();
        let Verdict::Violated(witness) = report.verdict else { panic!("nothing found under {}", model.name()) };
        assert_eq!(witness.problem.kind, ProblemKind::Assertion);
    }
}

#[test]
fn error_states_that_are_many_are_counted_without_being_listed() {
    // Five threads with 40 values each, all of them inside at once: no table could hold that many error states.
    let text = "shared x;
        thread p[5] { let v = choose(1..=40); let w = x; critical { } assert(v + w < 100); }";
    let options = SymbolicOptions { all_errors: true, ..SymbolicOptions::new(Tso) };
    let report = symbolic::verify(&program(text), &options, &Budget::unlimited(), &()).unwrap();
    assert!(matches!(report.verdict, Verdict::Violated(_)));
    // Each thread is at its start (1), has chosen (40), is inside (40) or has ended (1); two or more are inside.
    let (all, places): (u64, u64) = (1 + 40 + 40 + 1, 40);
    let outside = all - places;
    assert_eq!(report.errors, all.pow(5) - outside.pow(5) - 5 * places * outside.pow(4));
}
