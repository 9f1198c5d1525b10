//! Snapshots of drawn executions. The schedules are written out, so that the pictures do not depend on which execution
//! an engine happens to find. `INSTA_UPDATE=always cargo test -p weakspot-report` accepts new pictures.
#![allow(clippy::unwrap_used)]

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Machine};
use weakspot_model::replay::{Ending, Replay, replay};
use weakspot_model::source::SourceFile;
use weakspot_report::json;
use weakspot_report::style::Style;
use weakspot_report::timeline::Execution;

const DEKKER: &str = "\
// Dekker's algorithm, entered again and again, without fences.
shared want[2], turn;

thread p[2] {
    let other = 1 - me;
    loop {
        want[me] = 1;
        while want[other] == 1 {
            if turn != me {
                want[me] = 0;
                while turn != me { }
                want[me] = 1;
            }
        }
        critical { }
        turn = other;
        want[me] = 0;
    }
}
";

const STORE_BUFFERING: &str = "\
shared x, y;
thread a { x = 1; let r = y; }
thread b { y = 1; let r = x; }
final { assert(a.r == 1 || b.r == 1); }
";

const MESSAGE_PASSING: &str = "\
shared data, ready;
thread writer {
    publish: data = 42;
    ready = 1;
}
thread reader {
    await(ready == 1);
    let r = data;
    assert(r == 42, \"the message is complete\");
}
";

const CROSSED_LOCKS: &str = "\
mutex left, right;
thread a { lock(left); lock(right); unlock(right); unlock(left); }
thread b { lock(right); lock(left); unlock(left); unlock(right); }
";

const FOUR_THREADS: &str = "\
shared x, y;
thread w1 { x = 1; }
thread w2 { y = 1; }
thread r1 { let a = x; let b = y; }
thread r2 { let c = y; let d = x; }
final { assert(!(r1.a == 1 && r1.b == 0 && r2.c == 1 && r2.d == 0 && x == 1)); assert(x == 0); }
";

fn compile(text: &str) -> Program {
    let file = SourceFile::new("test.weak", text);
    weak::compile(&file).unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}")).program
}

/// `a` is a step of thread a, `a:x` the commit of its oldest pending store to x, `a=3` a step that chooses 3.
fn action(program: &Program, word: &str) -> Action {
    let find = |name: &str| program.thread_ids().find(|id| program.threads[id.index()].name == name).expect(name);
    if let Some((thread, location)) = word.split_once(':') {
        let at = program.locations.iter().position(|l| l.name == location).expect(location);
        return Action::Commit { thread: find(thread), loc: weakspot_model::ids::Loc::new(at) };
    }
    let (thread, choice) = word.split_once('=').unwrap_or((word, "0"));
    Action::Step { thread: find(thread), choice: choice.parse().unwrap() }
}

fn run(program: &Program, model: MemoryModel, schedule: &str) -> Replay {
    let actions: Vec<Action> = schedule.split_whitespace().map(|word| action(program, word)).collect();
    let replay = replay(&Machine::new(program, model), &actions).expect("the schedule is possible");
    assert!(matches!(replay.ending, Ending::Failed(_)), "{:?}", replay.ending);
    replay
}

fn draw_within(width: usize, text: &str, model: MemoryModel, schedule: &str) -> String {
    let program = compile(text);
    let replay = run(&program, model, schedule);
    let execution = Execution { program: &program, replay: &replay };
    let plain = execution.render(&Style { colour: false, width });
    let coloured = execution.render(&Style { colour: true, width });
    assert!(coloured.contains("\u{1b}["), "colour was asked for");
    assert!(!plain.contains('\u{1b}'), "colour was not asked for");
    let table = plain.split("\nerror").next().unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= width), "a row is wider than {width}:\n{table}");
    plain
}

fn draw(text: &str, model: MemoryModel, schedule: &str) -> String {
    draw_within(80, text, model, schedule)
}

#[test]
fn store_buffering_under_tso() {
    insta::assert_snapshot!(draw(STORE_BUFFERING, MemoryModel::Tso, "a a b b a:x b:y"));
}

#[test]
fn dekker_under_tso_breaks_mutual_exclusion() {
    insta::assert_snapshot!(draw(DEKKER, MemoryModel::Tso, "p[0] p[0] p[1] p[1]"));
}

#[test]
fn message_passing_under_pso() {
    insta::assert_snapshot!(draw(
        MESSAGE_PASSING,
        MemoryModel::Pso,
        "reader writer writer reader writer:ready reader reader"
    ));
}

#[test]
fn a_deadlock() {
    insta::assert_snapshot!(draw(CROSSED_LOCKS, MemoryModel::Sc, "a b"));
}

#[test]
fn a_final_assertion_under_sc() {
    let text = "shared x;\nthread a[2] { let r = x; x = r + 1; }\nfinal { assert(x == 2, \"no update is lost\"); }\n";
    insta::assert_snapshot!(draw(text, MemoryModel::Sc, "a[0] a[1] a[0] a[1]"));
}

#[test]
fn mutual_exclusion_at_two_places() {
    let text = "shared x;\nthread a { x = 1; critical { x = 2; } }\nthread b {\n    let r = x;\n    critical {\n        \
                skip;\n    }\n}\n";
    insta::assert_snapshot!(draw(text, MemoryModel::Tso, "a b"));
}

#[test]
fn an_instruction_that_fails_itself() {
    let text = "mutex m;\nthread a { lock(m); unlock(m); unlock(m); }\n";
    insta::assert_snapshot!(draw(text, MemoryModel::Tso, "a a a"));
}

#[test]
fn a_failure_before_the_first_step() {
    insta::assert_snapshot!(draw("thread a { assert(1 == 2); }\n", MemoryModel::Tso, ""));
}

#[test]
fn three_threads_fit_80_columns() {
    let text = "\
shared x, y, z;
thread a { x = 1; let r = y; }
thread b { y = 1; let r = z; }
thread c { z = 1; let r = x; }
final { assert(a.r == 1 || b.r == 1 || c.r == 1); }
";
    insta::assert_snapshot!(draw(text, MemoryModel::Tso, "a a b b c c a:x b:y c:z"));
}

#[test]
fn more_threads_than_columns_become_a_list() {
    insta::assert_snapshot!(draw(FOUR_THREADS, MemoryModel::Tso, "w1 w2 r1 w1:x r1 r2 r2 w2:y"));
}

#[test]
fn a_narrow_terminal_gets_a_list() {
    insta::assert_snapshot!(draw_within(44, STORE_BUFFERING, MemoryModel::Tso, "a a b b a:x b:y"));
}

#[test]
fn own_buffer_atomics_fences_choices_and_condition_variables() {
    let text = "\
shared x, y, total;
mutex m;
condvar c;
thread a {
    x = 1; y = 2; x = 3;
    let r = x;
    fence;
    let old = fetch_add(total, r);
    let swapped = cas(total, 0, 9);
    lock(m);
    wait(c, m);
    unlock(m);
    assert(total == 4);
}
thread b { let v = choose(1..=3); lock(m); notify_one(c); unlock(m); }
";
    let schedule = "a a a a a:x a:y a:x a a a a a b=2 b b b a a a";
    insta::assert_snapshot!(draw(text, MemoryModel::Tso, schedule));
}

#[test]
fn the_json_trace_of_store_buffering() {
    let program = compile(STORE_BUFFERING);
    let replay = run(&program, MemoryModel::Tso, "a a b b a:x b:y");
    insta::assert_snapshot!(json::to_text(&json::trace(&program, &replay)));
}

#[test]
fn the_json_error_of_a_mutual_exclusion_has_a_place() {
    let program = compile(DEKKER);
    let replay = run(&program, MemoryModel::Tso, "p[0] p[0] p[1] p[1]");
    insta::assert_snapshot!(json::to_text(&json::Failure::of(&program, &replay)));
}
