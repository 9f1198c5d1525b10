//! What lowers to what, in the text of `--dump-ir`.
//!
//! Each case shows the instructions of one thread without the place column, except where places are the point.

#![allow(clippy::unwrap_used)]

use weakspot_front::weak::{self, Compiled};
use weakspot_model::ir::{Instr, Program};
use weakspot_model::source::SourceFile;

fn compile(text: &str) -> Compiled {
    weak::compile(&SourceFile::new("test.weak", text)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// The code of a thread (or `final`), one trimmed instruction a line, without places.
fn code(program: &Program, thread: &str) -> Vec<String> {
    let dump = program.to_string();
    let section = dump.trim_start().split("\n\n").find(|section| section.lines().next() == Some(thread)).unwrap();
    let lines = section.lines().skip(1);
    lines.map(|line| line.split(" ; ").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[track_caller]
fn assert_code(text: &str, thread: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(code(&compile(text).program, thread), expected);
}

#[test]
fn me_and_unchanging_locals_are_folded() {
    assert_code(
        "shared want[2], turn; thread p[2] { let other = 1 - me; want[me] = 1; while want[other] == 1 { } turn = other; }",
        "thread p[1]",
        "0 * store [want[1]], 1
         1 * %0 = load [want[0]]
         2 %0 = %0 == 1
         3 branch %0 ? 1 : 4
         4 * store [turn], 0
         5 end",
    );
}

#[test]
fn branches_on_constants_vanish() {
    assert_code(
        "const N = 2; shared x; thread p[2] { if me == 0 && N == 2 { x = 1; } else if false { x = 2; } else { x = 3; } }",
        "thread p[0]",
        "0 * store [x], 1
         1 end",
    );
}

#[test]
fn loads_happen_from_left_to_right_and_temporaries_are_used_again() {
    assert_code(
        "shared x, y, a[3]; thread t { a[x] = y + a[y] * 2 - x; }",
        "thread t",
        "0 * %0 = load [x]
         1 * %1 = load [y]
         2 * %2 = load [y]
         3 * %2 = load [a + %2 < 3]
         4 %2 = %2 * 2
         5 %1 = %1 + %2
         6 * %2 = load [x]
         7 %1 = %1 - %2
         8 * store [a + %0 < 3], %1
         9 end",
    );
}

#[test]
fn results_go_straight_into_the_local() {
    assert_code(
        "shared x; thread t { let r = x; r = r + x; r = cas(x, r, 1); r = choose(0..=r); r = -r; r = r; }",
        "thread t",
        "0 * r.0 = load [x]
         1 * %1 = load [x]
         2 r.0 = r.0 + %1
         3 * r.0 = cas [x], r.0, 1
         4 r.0 = choose 0..=r.0
         5 r.0 = -r.0
         6 end",
    );
}

#[test]
fn a_copy_of_a_changing_local_keeps_the_old_value() {
    assert_code(
        "shared x; fn same(p) { return p; } thread t { let r = x; let old = r; let also = same(r); r = 7; x = old + also; }",
        "thread t",
        "0 * r.0 = load [x]
         1 old.1 = r.0
         2 also.2 = r.0
         3 r.0 = 7
         4 %3 = old.1 + also.2
         5 * store [x], %3
         6 end",
    );
}

#[test]
fn a_copy_of_an_unchanging_local_costs_nothing() {
    assert_code(
        "shared x; thread t { let r = x; let copy = r; x = copy; }",
        "thread t",
        "0 * r.0 = load [x]
         1 * store [x], r.0
         2 end",
    );
}

#[test]
fn and_and_or_are_branches() {
    assert_code(
        "shared x, y; thread t { if x == 1 && !(y == 1 || x == 2) { y = 3; } let r = x || y; y = r; }",
        "thread t",
        "0 * %0 = load [x]
         1 %0 = %0 == 1
         2 branch %0 ? 3 : 10
         3 * %0 = load [y]
         4 %0 = %0 == 1
         5 branch %0 ? 10 : 6
         6 * %0 = load [x]
         7 %0 = %0 == 2
         8 branch %0 ? 10 : 9
         9 * store [y], 3
         10 * %0 = load [x]
         11 branch %0 ? 14 : 12
         12 * %0 = load [y]
         13 branch %0 ? 14 : 16
         14 r.1 = 1
         15 jump 17
         16 r.1 = 0
         17 * store [y], r.1
         18 end",
    );
}

#[test]
fn await_is_a_loop_of_loads() {
    let expected = "0 * %0 = load [x]
         1 %0 = %0 == 1
         2 branch %0 ? 3 : 0
         3 end";
    assert_code("shared x; thread t { await(x == 1); }", "thread t", expected);
    assert_code("shared x; thread t { while !(x == 1) { } }", "thread t", expected);
}

#[test]
fn loops_break_and_continue() {
    assert_code(
        "shared x; thread t { loop { if x == 1 { continue; } if x == 2 { break; } x = 3; } x = 4; }",
        "thread t",
        "0 * %0 = load [x]
         1 %0 = %0 == 1
         2 branch %0 ? 0 : 3
         3 * %0 = load [x]
         4 %0 = %0 == 2
         5 branch %0 ? 8 : 6
         6 * store [x], 3
         7 jump 0
         8 * store [x], 4
         9 end",
    );
}

#[test]
fn an_empty_loop_is_a_jump_to_itself_and_the_end_stays() {
    assert_code("thread t { loop { } }", "thread t", "0 jump 0\n1 end");
}

#[test]
fn functions_are_inlined_with_their_own_locals() {
    assert_code(
        "shared x;
         fn bounded(v) { if v > 3 { return 3; } v = v + x; return v; }
         thread t { let r = bounded(x) + bounded(5); x = r; }",
        "thread t",
        "0 * v.0 = load [x]
         1 %2 = v.0 > 3
         2 branch %2 ? 3 : 5
         3 %1 = 3
         4 jump 8
         5 * %2 = load [x]
         6 v.0 = v.0 + %2
         7 %1 = v.0
         8 v.0 = 5
         9 %3 = v.0 > 3
         10 branch %3 ? 11 : 13
         11 %2 = 3
         12 jump 16
         13 * %3 = load [x]
         14 v.0 = v.0 + %3
         15 %2 = v.0
         16 r.4 = %1 + %2
         17 * store [x], r.4
         18 end",
    );
}

#[test]
fn a_function_of_constants_is_a_constant() {
    assert_code(
        "shared a[4]; fn next(i) { let n = i + 1; return n % 4; } thread p[4] { a[next(me)] = next(next(me)); }",
        "thread p[3]",
        "0 * store [a[0]], 1
         1 end",
    );
}

#[test]
fn functions_without_a_value_give_nothing_and_falling_off_gives_zero() {
    assert_code(
        "shared x; fn set() { x = 1; } fn maybe(p) { if p { return 5; } } thread t { set(); x = maybe(x); maybe(x); }",
        "thread t",
        "0 * store [x], 1
         1 * %0 = load [x]
         2 branch %0 ? 3 : 5
         3 %1 = 5
         4 jump 6
         5 %1 = 0
         6 * store [x], %1
         7 * %0 = load [x]
         8 end",
    );
}

#[test]
fn leaving_critical_on_every_path() {
    let text = "shared x; fn f() { critical { if x == 5 { return; } } } \
                thread t { loop { critical { critical { if x == 1 { break; } } if x == 2 { continue; } } f(); } x = 9; }";
    assert_code(
        text,
        "thread t",
        "0 enter critical
         1 | enter critical
         2 *| %0 = load [x]
         3 | %0 = %0 == 1
         4 | branch %0 ? 5 : 8
         5 | leave critical
         6 | leave critical
         7 jump 23
         8 | leave critical
         9 *| %0 = load [x]
         10 | %0 = %0 == 2
         11 | branch %0 ? 12 : 14
         12 | leave critical
         13 jump 0
         14 | leave critical
         15 enter critical
         16 *| %0 = load [x]
         17 | %0 = %0 == 5
         18 | branch %0 ? 19 : 21
         19 | leave critical
         20 jump 0
         21 | leave critical
         22 jump 0
         23 * store [x], 9
         24 end",
    );
}

#[test]
fn locks_fences_and_atomics() {
    assert_code(
        "shared x; mutex m, n; condvar c, d;
         thread t { lock(n); wait(d, n); notify_one(c); notify_all(d); unlock(n); fence; fence(store_store);
                    fence(store_load); swap(x, 1); fetch_add(x, 1); fetch_or(x, 2); fetch_and(x, 3); lock(m); }",
        "thread t",
        "0 * lock n
         1 * wait d, n
         2 * notify_one c
         3 * notify_all d
         4 * unlock n
         5 * fence
         6 * fence store_store
         7 * fence store_load
         8 * swap [x], 1
         9 * fetch_add [x], 1
         10 * fetch_or [x], 2
         11 * fetch_and [x], 3
         12 * lock m
         13 end",
    );
}

#[test]
fn final_reads_observed_registers() {
    let text = "shared x; thread a { let unseen = x; let r = 5; x = r; } thread p[2] { if x == 1 { let r = x; } }
                final { let s = a.r; assert(s == 5 || p[1].r == x, \"say \\\"why\\\"\"); }";
    let program = compile(text).program;
    assert!(program.threads[0].registers[0].observed && !program.threads[1].registers.iter().any(|r| r.observed));
    assert_eq!(program.messages, ["say \"why\""]);
    assert_code(
        text,
        "thread a",
        "0 * unseen.1 = load [x]
         1 r.0 = 5
         2 * store [x], 5
         3 end",
    );
    assert_code(
        text,
        "final",
        "0 s.0 = a.r
         1 %1 = s.0 == 5
         2 branch %1 ? 8 : 3
         3 %1 = p[1].r
         4 * %2 = load [x]
         5 %1 = %1 == %2
         6 branch %1 ? 8 : 7
         7 assert 0 \"say \\\"why\\\"\"
         8 end",
    );
}

#[test]
fn asserts_and_assumes() {
    assert_code(
        "shared x; thread t { assume(x != 1); assert(x == 2, \"two\"); assert(true); assume(x == 1 && x == 2); assert(1 == 2); x = 1; }",
        "thread t",
        "0 * %0 = load [x]
         1 %0 = %0 != 1
         2 assume %0
         3 * %0 = load [x]
         4 %0 = %0 == 2
         5 assert %0 \"two\"
         6 * %0 = load [x]
         7 %0 = %0 == 1
         8 branch %0 ? 9 : 12
         9 * %0 = load [x]
         10 %0 = %0 == 2
         11 branch %0 ? 13 : 12
         12 assume 0
         13 assert 0
         14 end",
    );
}

#[test]
fn faults_that_depend_on_what_is_reached_are_left_to_run_time() {
    assert_code(
        "shared a[2], x: 0..=1; thread p[3] { a[me] = 1 / (me - 2); x = 5 << 64; }",
        "thread p[2]",
        "0 %0 = 1 / 0
         1 * store [a + 2 < 2], %0
         2 %0 = 5 << 64
         3 * store [x], %0
         4 end",
    );
}

#[test]
fn names_of_operations_may_be_variables_and_labels() {
    assert_code(
        "shared lock, wait; mutex swap; thread t { lock: lock = wait; lock(swap); swap(lock, 1); fence: fence; }",
        "thread t",
        "0 * %0 = load [wait]
         1 * store [lock], %0
         2 * lock swap
         3 * swap [lock], 1
         4 * fence
         5 end",
    );
}

#[test]
fn sites_name_the_occurrence_the_statement_and_the_label() {
    let text = "shared x, a[2];\nfn f() { x = 7; }\nthread t {\n  here: a[x] = a[1] + 1;\n  call: f();\n  f();\n  critical { }\n}";
    let program = compile(text).program;
    let site = |index: usize| {
        let info = &program.sites[program.threads[0].sites[index].index()];
        let part = &text[info.span.range()];
        (part, info.position.line, info.position.column, info.label.as_deref())
    };
    assert_eq!(site(0), ("x", 4, 11, Some("here")));
    assert_eq!(site(1), ("a[1]", 4, 16, Some("here")));
    assert_eq!(site(2), ("a[1] + 1", 4, 16, Some("here")));
    assert_eq!(site(3), ("a[x] = a[1] + 1", 4, 9, Some("here")));
    assert_eq!(site(4), ("x = 7", 2, 10, Some("call")));
    assert_eq!(site(5), ("x = 7", 2, 10, None));
    assert_eq!(site(6), ("critical", 7, 3, None));
}

#[test]
fn instances_of_a_template_share_their_sites() {
    let program = compile("shared x; thread p[2] { x = me; }").program;
    assert_eq!(program.threads[0].sites, program.threads[1].sites);
    assert_eq!((program.threads[1].name.as_str(), program.threads[1].template.as_str()), ("p[1]", "p"));
    assert_eq!(program.threads[1].index, 1);
}

#[test]
fn memory_is_laid_out_in_the_order_of_declaration() {
    let program =
        compile("const N = 2; shared x = -1, a[N]: 0..=N = [1, N], t: 0..=2; thread t1 { x = a[0] + t; }").program;
    let shown: Vec<_> = program.locations.iter().map(|l| (l.name.as_str(), l.init, l.range)).collect();
    let range = Some((0, 2));
    assert_eq!(shown, [("x", -1, None), ("a[0]", 1, range), ("a[1]", 2, range), ("t", 0, range)]);
}

#[test]
fn expectations_are_read_in_order() {
    let text = "//! expect check sc: safe\n//! a remark\n//! expect fence pso: 3\n//!expect verify pso : violated\nthread t { skip; }";
    let shown: Vec<String> = compile(text).expectations.iter().map(|e| e.expected.to_string()).collect();
    assert_eq!(shown, ["check sc: safe", "fence pso: 3", "verify pso: violated"]);
}

#[test]
fn the_first_example_of_the_language_lowers_without_registers_for_constants() {
    let text = "shared want[2], turn;
        thread p[2] {
            let other = 1 - me;
            loop {
                want[me] = 1;
                while want[other] == 1 {
                    if turn != me { want[me] = 0; while turn != me { } want[me] = 1; }
                }
                critical { }
                turn = other;
                want[me] = 0;
            }
        }";
    let compiled = compile(text);
    assert_eq!(compiled.warnings, []);
    for thread in &compiled.program.threads {
        assert_eq!(thread.registers.len(), 1, "one temporary");
        assert_eq!(thread.code.iter().filter(|instr| instr.is_event()).count(), 8);
        assert!(matches!(thread.code.last(), Some(Instr::End)));
    }
}
