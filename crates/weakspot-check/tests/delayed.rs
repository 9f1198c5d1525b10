//! What a report says about a violation is so: the store that it names is one that a buffer can hold back, the shown
//! execution holds it back past the access that is named, and a fence where it is suggested takes that away.
#![allow(clippy::unwrap_used)]

use weakspot_check::{Access, CheckOptions, Engine, MonitorKind, Sampling, Verdict, Violation, check};
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::ir::{Instr, Program};
use weakspot_model::machine::{Action, Effect};
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;

fn instr(program: &Program, access: Access) -> Instr {
    program.threads[access.thread.index()].code[access.pc.index()]
}

/// Is a step of the relaxed execution this access, performed by its thread?
fn performs(step: &weakspot_model::replay::Step, access: Access) -> bool {
    matches!(step.action, Action::Step { thread, .. } if thread == access.thread) && step.pc == access.pc
}

fn location(effect: Option<Effect>) -> Option<Loc> {
    match effect? {
        Effect::Load { loc, .. } | Effect::Store { loc, .. } | Effect::Rmw { loc, .. } => Some(loc),
        _ => None,
    }
}

/// What is wrong with a violation, if anything.
fn complaint(program: &Program, violation: &Violation) -> Option<String> {
    let Violation { store, passed, access, relaxed, cycle, .. } = violation;
    if !matches!(instr(program, *store), Instr::Store { .. }) {
        return Some("what is named as delayed is no plain store".to_owned());
    }
    let (Some(relaxed), Some(passed)) = (relaxed, passed) else {
        return Some("there is no relaxed execution".to_owned());
    };
    if passed.thread != store.thread {
        return Some("what the store is delayed past is not its own thread's".to_owned());
    }
    if access.thread == store.thread {
        return Some("the access is the store's own thread's".to_owned());
    }
    if cycle.is_empty() {
        return Some("there is no cycle".to_owned());
    }
    let delayed = |issued: usize| {
        let loc = location(relaxed.steps[issued].effect);
        let pending = issued + 1..relaxed.visible_at(issued);
        let passes = pending.clone().any(|at| performs(&relaxed.steps[at], *passed));
        let accessed = |at: usize| performs(&relaxed.steps[at], *access) && location(relaxed.steps[at].effect) == loc;
        passes && (pending.clone().any(accessed) || relaxed.steps.last().is_some_and(|last| performs(last, *access)))
    };
    let issues = |at: usize| performs(&relaxed.steps[at], *store);
    let is_delayed = (0..relaxed.steps.len()).filter(|&at| issues(at)).any(delayed);
    (!is_delayed).then(|| "the shown execution does not hold the store back past both accesses".to_owned())
}

fn modes(model: MemoryModel) -> Vec<CheckOptions> {
    let all = CheckOptions { all: true, ..CheckOptions::new(model) };
    let stateless = CheckOptions { engine: Some(Engine::Stateless), ..all.clone() };
    let random = Some(Sampling::Random { executions: 20, seed: 5 });
    let operational = Some(MonitorKind::Operational(model));
    vec![
        CheckOptions { engine: Some(Engine::Attack), ..all.clone() },
        stateless.clone(),
        CheckOptions { monitor: operational, ..stateless.clone() },
        CheckOptions { max_preemptions: Some(1), ..stateless.clone() },
        CheckOptions { sampling: random, ..all.clone() },
        CheckOptions { sampling: random, monitor: operational, ..all },
    ]
}

#[test]
fn the_store_that_is_named_is_delayed_past_the_accesses_that_are_named() {
    let straight = Shape { threads: 2..=3, statements: 2..=5, cells: 2..=2, ..Shape::straight_line() };
    let locked = Shape { locks: true, condvars: true, branches: true, ..straight.clone() };
    let mut named = 0;
    for seed in 0..600 {
        let sketch = if seed % 2 == 0 { straight.generate(seed) } else { locked.generate(seed) };
        let program = sketch.program();
        for options in [MemoryModel::Tso, MemoryModel::Pso].into_iter().flat_map(modes) {
            let options = CheckOptions { allow_deadlock: true, ..options };
            let report = check(&program, &options, &Budget::unlimited(), &()).unwrap();
            if !matches!(report.verdict, Verdict::Unsafe(_)) {
                continue;
            }
            for violation in &report.violations {
                if let Some(wrong) = complaint(&program, violation) {
                    let Violation { store, passed, access, schedule, .. } = violation;
                    let text = sketch.text();
                    panic!(
                        "seed {seed}: {wrong}: {store:?} past {passed:?}, {access:?}: {schedule}\n{options:?}\n{text}"
                    );
                }
                named += 1;
            }
        }
    }
    assert!(named > 500, "{named}");
}

fn compiled(text: &str) -> Program {
    compile(&SourceFile::new("test.weak", text)).unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
}

/// The line of the store of a violation, and the line and thread of its access.
fn lines(program: &Program, violation: &Violation) -> (u32, u32, ThreadId) {
    let line = |access: Access| program.sites[access.site.index()].position.line;
    (line(violation.store), line(violation.access), violation.access.thread)
}

/// Reports suggest a fence right after the store that they name.
#[test]
fn a_fence_after_the_store_that_is_named_takes_the_violation_away() {
    let shape = Shape { threads: 2..=3, statements: 2..=5, cells: 2..=2, ..Shape::straight_line() };
    let mut fenced = 0;
    for seed in 0..300 {
        let text = shape.generate(seed).text();
        let program = compiled(&text);
        for options in [MemoryModel::Tso, MemoryModel::Pso].into_iter().flat_map(modes) {
            let report = check(&program, &options, &Budget::unlimited(), &()).unwrap();
            for violation in &report.violations {
                let (store, ..) = lines(&program, violation);
                let with_fence: Vec<String> = text
                    .lines()
                    .zip(1..)
                    .map(|(line, number)| if number == store { format!("{line} fence;") } else { line.to_owned() })
                    .collect();
                let with_fence = compiled(&with_fence.join("\n"));
                let exact =
                    CheckOptions { engine: Some(Engine::Attack), all: true, ..CheckOptions::new(options.model) };
                let left = check(&with_fence, &exact, &Budget::unlimited(), &()).unwrap();
                let same = |other: &Violation| lines(&with_fence, other) == lines(&program, violation);
                assert!(!left.violations.iter().any(same), "seed {seed}: line {store}\n{text}");
                fenced += 1;
            }
        }
    }
    assert!(fenced > 200, "{fenced}");
}
