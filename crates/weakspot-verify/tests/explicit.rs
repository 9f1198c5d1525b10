//! What the explicit engine claims, one small program at a time.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel::{self, Pso, Sc, Tso};
use weakspot_model::ir::{Instr, Program};
use weakspot_model::machine::{Action, Machine};
use weakspot_model::problem::ProblemKind;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_verify::explicit::{self, ExplicitOptions, ExplicitReport};

fn compile(text: &str) -> Program {
    let source = SourceFile::new("claim.weak", text);
    weak::compile(&source).unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
}

fn run(text: &str, options: &ExplicitOptions) -> ExplicitReport {
    let program = compile(text);
    let report = explicit::verify(&program, options, &Budget::unlimited(), &());
    if let Verdict::Violated(witness) = &report.verdict {
        let machine = Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(&program, options.model) };
        witness.replay(&machine).unwrap();
    }
    report
}

/// The kind of problem found, with and without reduction; `None` if verified.
fn problem(text: &str, model: MemoryModel) -> Option<ProblemKind> {
    let kinds = [true, false].map(|reduce| {
        let options = ExplicitOptions { reduce, ..ExplicitOptions::new(model) };
        match run(text, &options).verdict {
            Verdict::Verified => None,
            Verdict::Violated(witness) => Some(witness.problem.kind),
            Verdict::Inconclusive(limit) => panic!("{limit:?}"),
        }
    });
    assert_eq!(kinds[0], kinds[1], "the reduction changes the answer");
    kinds[0]
}

fn problems(text: &str) -> [Option<ProblemKind>; 3] {
    MemoryModel::ALL.map(|model| problem(text, model))
}

const ASSERTION: Option<ProblemKind> = Some(ProblemKind::Assertion);

fn store_buffering(between: &str) -> String {
    format!(
        "shared x, y;
         thread a {{ x = 1; {between} let r = y; }}
         thread b {{ y = 1; {between} let r = x; }}
         final {{ assert(a.r == 1 || b.r == 1); }}"
    )
}

fn message_passing(between: &str) -> String {
    format!(
        "shared data, ready;
         thread a {{ data = 1; {between} ready = 1; }}
         thread b {{ let r = ready; let d = data; assert(r == 0 || d == 1); }}"
    )
}

#[test]
fn tso_and_pso_allow_store_buffering() {
    assert_eq!(problems(&store_buffering("")), [None, ASSERTION, ASSERTION]);
}

#[test]
fn a_full_fence_forbids_store_buffering() {
    assert_eq!(problems(&store_buffering("fence;")), [None; 3]);
    assert_eq!(problems(&store_buffering("fence(store_load);")), [None; 3]);
}

#[test]
fn a_store_store_fence_does_not_forbid_store_buffering() {
    assert_eq!(problems(&store_buffering("fence(store_store);")), [None, ASSERTION, ASSERTION]);
}

#[test]
fn an_atomic_waits_for_the_whole_buffer_under_tso_and_for_its_own_cell_under_pso() {
    let text = "shared x, y, z;
         thread a { x = 1; swap(z, 1); let r = y; }
         thread b { y = 1; swap(z, 1); let r = x; }
         final { assert(a.r == 1 || b.r == 1); }";
    assert_eq!(problems(text), [None, None, ASSERTION]);
}

#[test]
fn only_pso_reorders_stores() {
    assert_eq!(problems(&message_passing("")), [None, None, ASSERTION]);
    assert_eq!(problems(&message_passing("fence(store_store);")), [None; 3]);
}

#[test]
fn locks_are_full_fences() {
    let text = "shared x, y; mutex m;
         thread a { x = 1; lock(m); unlock(m); let r = y; }
         thread b { y = 1; lock(m); unlock(m); let r = x; }
         final { assert(a.r == 1 || b.r == 1); }";
    assert_eq!(problems(text), [None; 3]);
}

#[test]
fn a_load_takes_the_own_pending_store() {
    let text = "shared x;
         thread a { x = 1; let r = x; assert(r != 0); }
         thread b { x = 2; }";
    assert_eq!(problems(text), [None; 3]);
}

#[test]
fn a_thread_sees_its_store_before_others_do() {
    // n6: forwarding from the own buffer while the others' stores go first.
    let text = "shared x, y;
         thread a { x = 1; let r1 = x; let r2 = y; }
         thread b { y = 2; x = 2; }
         final { assert(!(a.r1 == 1 && a.r2 == 0 && x == 1)); }";
    assert_eq!(problems(text), [None, ASSERTION, ASSERTION]);
}

#[test]
fn an_ended_thread_keeps_draining() {
    let text = "shared x; thread a { x = 1; } thread b { await(x == 1); } final { assert(x == 1); }";
    assert_eq!(problems(text), [None; 3]);
}

#[test]
fn the_final_block_sees_memory_after_all_commits() {
    assert_eq!(problems("shared x; thread a { x = 1; } final { assert(x == 0); }"), [ASSERTION; 3]);
}

#[test]
fn an_assume_in_the_final_block_leaves_executions_out() {
    let mut program = compile("shared x; thread a { x = 1; } final { assert(x == 0); }");
    for instr in &mut program.final_block.as_mut().unwrap().code {
        if let Instr::Assert { cond, .. } = *instr {
            *instr = Instr::Assume { cond };
        }
    }
    let report = explicit::verify(&program, &ExplicitOptions::new(Tso), &Budget::unlimited(), &());
    assert_eq!(report.verdict, Verdict::Verified);
}

#[test]
fn dekker_needs_its_fences_under_tso() {
    let dekker = |fence: &str| {
        format!(
            "shared want[2], turn;
             thread p[2] {{
                 let other = 1 - me;
                 loop {{
                     want[me] = 1; {fence}
                     while want[other] == 1 {{
                         if turn != me {{ want[me] = 0; while turn != me {{ }} want[me] = 1; {fence} }}
                     }}
                     critical {{ }}
                     turn = other;
                     want[me] = 0;
                 }}
             }}"
        )
    };
    let exclusion = Some(ProblemKind::MutualExclusion);
    assert_eq!(problem(&dekker(""), Sc), None);
    assert_eq!(problem(&dekker(""), Tso), exclusion);
    assert_eq!(problem(&dekker("fence;"), Tso), None);
    assert_eq!(problem(&dekker("fence;"), Pso), None);
    assert_eq!(problem(&dekker("fence(store_store);"), Pso), exclusion);
}

#[test]
fn compare_and_swap_excludes() {
    let text = "shared taken;
         thread p[3] { loop { while cas(taken, 0, 1) == 0 { } critical { } swap(taken, 0); } }";
    assert_eq!(problems(text), [None; 3]);
}

#[test]
fn every_atomic_does_what_it_says() {
    let text = "shared x = 6;
         thread a {
             let old = fetch_add(x, 1); assert(old == 6 && x == 7);
             old = fetch_or(x, 8); assert(old == 7 && x == 15);
             old = fetch_and(x, 12); assert(old == 15 && x == 12);
             old = swap(x, 3); assert(old == 12 && x == 3);
             assert(cas(x, 4, 9) == 0 && x == 3);
             assert(cas(x, 3, 9) == 1 && x == 9);
         }";
    assert_eq!(problems(text), [None; 3]);
}

#[test]
fn all_values_are_chosen() {
    let text = |value: i64| format!("thread a {{ let v = choose(-1..=3); assert(v != {value}); }}");
    for value in -1..=3 {
        assert_eq!(problems(&text(value)), [ASSERTION; 3]);
    }
    assert_eq!(problems(&text(4)), [None; 3]);
}

#[test]
fn a_false_assume_is_no_execution() {
    let text = "shared x;
         thread a { let v = choose(0..=2); assume(v != 1); x = v; }
         final { assert(x != 1); }";
    assert_eq!(problems(text), [None; 3]);
}

#[test]
fn an_assume_does_not_hide_what_happens_before_it() {
    let text = "shared x;
         thread a { x = 1; let v = x; assume(v == 0); }
         thread b { let r = x; assert(r == 0); }";
    // Under SC the execution ends with the store's own load, after b had its chance.
    assert_eq!(problems(text), [ASSERTION; 3]);
}

#[test]
fn a_waiter_needs_a_notification() {
    let text = |notify: &str| {
        format!(
            "shared ready; mutex m; condvar c;
             thread a {{ lock(m); while ready == 0 {{ wait(c, m); }} unlock(m); }}
             thread b {{ lock(m); ready = 1; {notify} unlock(m); }}"
        )
    };
    assert_eq!(problems(&text("notify_one(c);")), [None; 3]);
    assert_eq!(problems(&text("notify_all(c);")), [None; 3]);
    assert_eq!(problems(&text("")), [Some(ProblemKind::Deadlock); 3]);
}

#[test]
fn notify_one_wakes_any_one_of_several() {
    let text = "shared woken; mutex m; condvar c;
         thread w[2] { lock(m); wait(c, m); woken = me + 1; unlock(m); }
         thread n { notify_one(c); }";
    let program = compile(text);
    let options = ExplicitOptions { allow_deadlock: true, ..ExplicitOptions::new(Sc) };
    assert_eq!(explicit::verify(&program, &options, &Budget::unlimited(), &()).verdict, Verdict::Verified);
    for thread in 1..=2 {
        let text = text.replace("woken = me + 1;", &format!("woken = me + 1; assert(woken != {thread});"));
        let report = run(&text, &options);
        assert!(matches!(report.verdict, Verdict::Violated(_)), "nobody wakes {thread}");
    }
}

#[test]
fn waiters_wake_by_themselves_only_when_asked_to() {
    let text = "mutex m; condvar c; thread a { lock(m); wait(c, m); unlock(m); assert(false); }";
    let options = ExplicitOptions { allow_deadlock: true, ..ExplicitOptions::new(Tso) };
    assert_eq!(run(text, &options).verdict, Verdict::Verified);
    let Verdict::Violated(witness) = run(text, &ExplicitOptions { spurious_wakeups: true, ..options }).verdict else {
        panic!("the assertion can fail");
    };
    assert!(witness.actions.iter().any(|action| matches!(action, Action::Wake { .. })));
}

#[test]
fn every_program_error_is_found() {
    let cases = [
        ("thread a { assert(false); }", ProblemKind::Assertion),
        ("mutex m; thread a { lock(m); lock(m); }", ProblemKind::Deadlock),
        ("shared x; thread p[2] { x = 1; critical { } }", ProblemKind::MutualExclusion),
        ("shared x: 0..=1; thread a { let v = choose(1..=2); x = v; }", ProblemKind::Range),
        ("shared x: 0..=1 = 1; thread a { fetch_add(x, 1); }", ProblemKind::Range),
        ("shared x = 9223372036854775807; thread a { x = x + 1; }", ProblemKind::Overflow),
        ("shared x = 9223372036854775807; thread a { fetch_add(x, 1); }", ProblemKind::Overflow),
        ("shared x = 64; thread a { x = 1 << x; }", ProblemKind::Overflow),
        ("shared x; thread a { x = 1 / x; }", ProblemKind::DivisionByZero),
        ("shared x = 2, a[2]; thread t { let v = a[x]; }", ProblemKind::Index),
        ("mutex m; thread a { unlock(m); }", ProblemKind::Unlock),
        ("mutex m; condvar c; thread a { wait(c, m); }", ProblemKind::Unlock),
        ("shared x = 1; thread a { let hi = x - 2; let v = choose(0..=hi); }", ProblemKind::Choice),
    ];
    for (text, kind) in cases {
        assert_eq!(problems(text), [Some(kind); 3], "{text}");
    }
}

#[test]
fn deadlock_is_no_problem_if_allowed() {
    let text = "mutex m, n;
         thread a { lock(m); lock(n); unlock(n); unlock(m); }
         thread b { lock(n); lock(m); unlock(m); unlock(n); }";
    assert_eq!(problems(text), [Some(ProblemKind::Deadlock); 3]);
    let options = ExplicitOptions { allow_deadlock: true, ..ExplicitOptions::new(Tso) };
    assert_eq!(run(text, &options).verdict, Verdict::Verified);
}

#[test]
fn spinning_is_not_deadlock() {
    assert_eq!(problems("shared x; thread a { await(x == 1); }"), [None; 3]);
    assert_eq!(problems("mutex m; thread a { lock(m); loop { } } thread b { lock(m); unlock(m); }"), [None; 3]);
}

#[test]
fn a_buffer_that_wants_to_grow_for_ever_leaves_the_answer_open() {
    let text = "shared x; thread a { loop { x = 1; } } thread b { let r = x; }";
    for (model, verdict) in [
        (Sc, Verdict::Verified),
        (Tso, Verdict::Inconclusive(Limit::Buffer(3))),
        (Pso, Verdict::Inconclusive(Limit::Buffer(3))),
    ] {
        for reduce in [true, false] {
            let report = run(text, &ExplicitOptions { buffer: 3, reduce, ..ExplicitOptions::new(model) });
            assert_eq!(report.verdict, verdict);
            assert_eq!(report.max_buffer, if model == Sc { 0 } else { 3 });
        }
    }
}

#[test]
fn a_store_that_does_not_fit_is_not_a_deadlock() {
    let text = "shared x; thread a { x = 1; x = 2; }";
    for buffer in [0, 1] {
        let report = run(text, &ExplicitOptions { buffer, reduce: false, ..ExplicitOptions::new(Tso) });
        assert_eq!(report.verdict, Verdict::Inconclusive(Limit::Buffer(buffer)));
    }
    let report = run(text, &ExplicitOptions { buffer: 2, reduce: false, ..ExplicitOptions::new(Tso) });
    assert_eq!((report.verdict, report.max_buffer), (Verdict::Verified, 2));
}

#[test]
fn a_violation_within_the_bound_is_real() {
    let text = "shared x; thread a { loop { x = 1; } } thread b { let r = x; assert(r == 0); }";
    let report = run(text, &ExplicitOptions { buffer: 1, ..ExplicitOptions::new(Tso) });
    assert!(matches!(report.verdict, Verdict::Violated(_)));
}

#[test]
fn the_shortest_counterexample_is_shortest() {
    let text = "shared x, y;
         thread a { x = 1; let r = y; x = 2; x = 3; }
         thread b { y = 1; let r = x; assert(r != 1); }";
    for jobs in [1, 2] {
        let options = ExplicitOptions { shortest: true, jobs, ..ExplicitOptions::new(Tso) };
        let Verdict::Violated(witness) = run(text, &options).verdict else { panic!("the assertion can fail") };
        // a's store, its commit, b's store, b's load.
        assert_eq!(witness.actions.len(), 4);
    }
}

#[test]
fn independent_threads_are_looked_at_once() {
    let text = "shared a[5]; thread p[5] { a[me] = 1; a[me] = 2; let r = a[me]; assert(r == 2); }";
    for model in [Tso, Pso] {
        let reduced = run(text, &ExplicitOptions::new(model));
        let unreduced = run(text, &ExplicitOptions { reduce: false, ..ExplicitOptions::new(model) });
        assert_eq!((reduced.verdict, unreduced.verdict), (Verdict::Verified, Verdict::Verified));
        assert!(reduced.states < 60, "{} states", reduced.states);
        assert!(unreduced.states > 10_000, "{} states", unreduced.states);
    }
}

const LARGE: &str = "shared x[4];
     thread p[4] { loop { let v = x[(me + 1) % 4]; x[me] = (v + 1) % 4; } }";

#[test]
fn limits_end_the_search_with_what_was_reached() {
    let program = compile(LARGE);
    let options = ExplicitOptions { buffer: 3, reduce: false, ..ExplicitOptions::new(Tso) };
    for jobs in [1, 2] {
        let verify = |budget: &Budget, max_states| {
            let options = ExplicitOptions { jobs, max_states, ..options.clone() };
            let report = explicit::verify(&program, &options, budget, &());
            assert!(report.states > 0);
            report.verdict
        };
        let cancelled = Budget::unlimited();
        cancelled.cancelled.store(true, Ordering::Relaxed);
        assert_eq!(verify(&cancelled, None), Verdict::Inconclusive(Limit::Cancelled));
        let hurried = Budget::unlimited().with_time(Duration::ZERO);
        assert_eq!(verify(&hurried, None), Verdict::Inconclusive(Limit::Time));
        let lean = Budget::unlimited().with_memory(1 << 20);
        assert_eq!(verify(&lean, None), Verdict::Inconclusive(Limit::Memory));
        assert_eq!(verify(&Budget::unlimited(), Some(5000)), Verdict::Inconclusive(Limit::States(5000)));
    }
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let text = store_buffering("fence;");
    let states = run(&text, &ExplicitOptions::new(Tso)).states;
    let report = run(&text, &ExplicitOptions { max_states: Some(states), ..ExplicitOptions::new(Tso) });
    assert_eq!(report.verdict, Verdict::Verified);
    let report = run(&text, &ExplicitOptions { max_states: Some(states - 1), ..ExplicitOptions::new(Tso) });
    assert_eq!(report.verdict, Verdict::Inconclusive(Limit::States(states - 1)));
}

#[test]
fn a_state_of_four_threads_and_eight_cells_takes_at_most_64_bytes() {
    let text = "shared x[4], y[4];
         thread p[4] { loop { let v = x[(me + 1) % 4]; x[me] = (v + 1) % 3; y[me] = v; } }";
    for jobs in [1, 2] {
        let options = ExplicitOptions { reduce: false, jobs, max_states: Some(400_000), ..ExplicitOptions::new(Tso) };
        let report = run(text, &options);
        assert!(report.states >= 400_000);
        let each = report.stored_bytes / report.states;
        assert!(each <= 64, "{each} bytes for each of {} states with {jobs} jobs", report.states);
    }
}

#[test]
fn progress_is_told_now_and_then() {
    struct Latest(AtomicU64);
    impl Progress for Latest {
        fn update(&self, states: u64, _transitions: u64, waiting: u64) {
            assert!(waiting <= states);
            self.0.store(states, Ordering::Relaxed);
        }
    }
    let latest = Latest(AtomicU64::new(0));
    let options = ExplicitOptions { reduce: false, ..ExplicitOptions::new(Tso) };
    let budget = Budget::unlimited().with_time(Duration::from_millis(400));
    explicit::verify(&compile(LARGE), &options, &budget, &latest);
    assert!(latest.0.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_program_without_threads_is_judged_by_its_final_block() {
    let mut program = compile("shared x; thread a { } final { assert(x == 1); }");
    let verdict =
        |program: &Program| explicit::verify(program, &ExplicitOptions::new(Tso), &Budget::unlimited(), &()).verdict;
    assert!(matches!(verdict(&program), Verdict::Violated(_)));
    program.threads.clear();
    assert!(matches!(verdict(&program), Verdict::Violated(_)));
    program.final_block = None;
    assert_eq!(verdict(&program), Verdict::Verified);
}

#[test]
fn sixty_four_threads_are_no_problem() {
    let text = "shared x; mutex m; thread p[64] { lock(m); x = me; unlock(m); }";
    let report = run(text, &ExplicitOptions { max_states: Some(3000), ..ExplicitOptions::new(Tso) });
    assert_eq!(report.verdict, Verdict::Inconclusive(Limit::States(3000)));
}

#[test]
fn many_cells_are_told_apart() {
    // More cells than the reduction has bits for: some share one, which may cost states but no answers.
    let text = |first: usize, second: usize, fence: &str| {
        format!(
            "shared cell[200];
             thread a {{ cell[{first}] = 1; {fence} let r = cell[{second}]; }}
             thread b {{ cell[{second}] = 1; {fence} let r = cell[{first}]; }}
             final {{ assert(a.r == 1 || b.r == 1); }}"
        )
    };
    for (first, second) in [(0, 63), (5, 68), (62, 125), (199, 10)] {
        assert_eq!(problems(&text(first, second, "")), [None, ASSERTION, ASSERTION]);
        assert_eq!(problems(&text(first, second, "fence;")), [None; 3]);
    }
}

#[test]
fn thousands_of_choices_do_not_outlast_a_deadline() {
    let text = "shared x; thread p[2] { loop { let v = choose(0..=30000); x = v; } }";
    let options = ExplicitOptions { reduce: false, ..ExplicitOptions::new(Tso) };
    let budget = Budget::unlimited().with_time(Duration::from_millis(200));
    let report = explicit::verify(&compile(text), &options, &budget, &());
    assert_eq!(report.verdict, Verdict::Inconclusive(Limit::Time));
}
