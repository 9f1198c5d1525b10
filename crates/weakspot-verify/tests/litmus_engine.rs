//! Claims about the litmus engine, one at a time.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use weakspot_front::litmus::parse;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::litmus::{Condition, LitmusTest};
use weakspot_model::problem::ProblemKind;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit};
use weakspot_testkit::sketch::{Expr, Sketch, SketchCell, Stmt};
use weakspot_verify::litmus::{
    LitmusError, LitmusOutcome, MAX_EVENTS, Observation, Scratch, Witnesses, run, run_within,
};

fn test(text: &str) -> LitmusTest {
    parse(&SourceFile::new("test.litmus", text)).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn outcome(text: &str, model: MemoryModel) -> LitmusOutcome {
    run(&test(text), model, &mut Scratch::default()).unwrap()
}

const STORE_BUFFERING: &str = "X86 SB
{ }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";

#[test]
fn tso_allows_store_buffering() {
    let sc = outcome(STORE_BUFFERING, MemoryModel::Sc);
    assert_eq!(sc.states, [(vec![0, 1], 1), (vec![1, 0], 1), (vec![1, 1], 1)]);
    assert_eq!((sc.observation, sc.condition_holds, sc.robust), (Observation::Never, false, true));
    let tso = outcome(STORE_BUFFERING, MemoryModel::Tso);
    assert_eq!(tso.witnesses, Witnesses { positive: 1, negative: 3 });
    assert_eq!((tso.observation, tso.condition_holds, tso.robust), (Observation::Sometimes, true, false));
    assert_eq!(tso.executions, 4);
}

#[test]
fn quantifiers_ask_different_questions_of_the_same_executions() {
    let forall = STORE_BUFFERING.replace("exists (0:EAX=0 /\\ 1:EAX=0)", "forall (0:EAX=0 \\/ 0:EAX=1)");
    let all = outcome(&forall, MemoryModel::Tso);
    assert_eq!((all.observation, all.condition_holds), (Observation::Always, true));
    let none = outcome(&STORE_BUFFERING.replace("exists", "~exists"), MemoryModel::Tso);
    assert_eq!((none.observation, none.condition_holds), (Observation::Sometimes, false));
}

#[test]
fn a_scratch_carries_nothing_from_test_to_test() {
    let mut scratch = Scratch::default();
    let branches = "X86 b
{ }
 P0         | P1          ;
 MOV [x],$1 | MOV EAX,[x] ;
            | CMP EAX,$1  ;
            | JNE end     ;
            | MOV [y],$1  ;
            | end:        ;
exists (y=1)
";
    for text in [branches, STORE_BUFFERING, branches, STORE_BUFFERING] {
        for model in MemoryModel::ALL {
            assert_eq!(run(&test(text), model, &mut scratch).unwrap(), outcome(text, model));
        }
    }
}

#[test]
fn a_spin_loop_is_cut_off_and_the_outcome_says_so() {
    let text = "X86 spin
{ }
 P0         | P1          ;
 MOV [x],$1 | again:      ;
 MOV [y],$1 | MOV EAX,[y] ;
            | CMP EAX,$1  ;
            | JNE again   ;
            | MOV EBX,[x] ;
exists (1:EBX=0)
";
    let tso = outcome(text, MemoryModel::Tso);
    assert!(tso.unrolled && !tso.condition_holds);
    // The flag is seen in the first, second or third round.
    assert_eq!(tso.states, [(vec![1], 3)]);
    assert!(outcome(text, MemoryModel::Pso).condition_holds);
}

#[test]
fn a_loop_that_constants_decide_ends_by_itself() {
    let text = "X86 count
{ }
 P0          ;
 MOV EAX,$0  ;
 again:      ;
 INC EAX     ;
 MOV [x],EAX ;
 CMP EAX,$2  ;
 JNE again   ;
forall (x=2)
";
    let sc = outcome(text, MemoryModel::Sc);
    assert!(sc.condition_holds && !sc.unrolled);
    assert_eq!(sc.executions, 1);
}

#[test]
fn a_store_whose_value_was_read_carries_it_on() {
    let text = "X86 forward
{ x=5; }
 P0          | P1          ;
 MOV EAX,[x] | MOV EBX,[y] ;
 ADD EAX,$2  | MOV [z],EBX ;
 MOV [y],EAX |             ;
exists (z=7)
";
    let sc = outcome(text, MemoryModel::Sc);
    assert_eq!(sc.states, [(vec![0], 1), (vec![7], 1)]);
}

#[test]
fn values_out_of_thin_air_are_no_execution() {
    let text = "X86 LB+datas
{ }
 P0          | P1          ;
 MOV EAX,[x] | MOV EAX,[y] ;
 MOV [y],EAX | MOV [x],EAX ;
locations [x;y;]
exists (0:EAX=1)
";
    let pso = outcome(text, MemoryModel::Pso);
    assert_eq!((pso.executions, pso.states.len()), (3, 1));
}

#[test]
fn an_overflow_in_an_execution_is_an_error() {
    let text = "X86 overflow
{ x=9223372036854775807; }
 P0          ;
 LOCK INC [x] ;
exists (x=0)
";
    match run(&test(text), MemoryModel::Tso, &mut Scratch::default()) {
        Err(LitmusError::Failed(problem)) => assert_eq!(problem.kind, ProblemKind::Overflow),
        other => panic!("{other:?}"),
    }
}

/// Store buffering with `length` loads of a third location on each side.
fn padded(length: usize) -> LitmusTest {
    let side = |own, other| {
        let mut side = vec![Stmt::Store(own, Expr::Const(1))];
        side.extend((0..length).map(|_| Stmt::Load(1, 2)));
        side.push(Stmt::Load(0, other));
        side
    };
    let cell = SketchCell { init: 0, range: None };
    let sketch = Sketch {
        cells: vec![cell; 3],
        mutexes: 0,
        condvars: 0,
        registers: 2,
        threads: vec![side(0, 1), side(1, 0)],
        forbidden: Vec::new(),
    };
    LitmusTest { program: sketch.program(), ..test(STORE_BUFFERING) }
}

#[test]
fn long_tests_are_decided_like_short_ones() {
    let mut scratch = Scratch::default();
    for length in [1, 20, 30, 31, 100, 126, 127, 250] {
        let test = padded(length);
        let executions = MemoryModel::ALL.map(|model| run(&test, model, &mut scratch).unwrap().executions);
        assert_eq!(executions, [3, 4, 4], "{length} loads");
        assert!(!run(&test, MemoryModel::Tso, &mut scratch).unwrap().robust);
    }
    let events = 2 * (255 + 2);
    assert!(events > MAX_EVENTS);
    let refused = run(&padded(255), MemoryModel::Tso, &mut scratch);
    assert_eq!(refused, Err(LitmusError::TooManyEvents { events }));
}

/// Four threads that write the same location five times each: more coherence orders than anybody can count.
#[test]
fn a_search_that_is_too_long_ends_with_its_budget() {
    let cell = SketchCell { init: 0, range: None };
    let sketch = Sketch {
        cells: vec![cell],
        mutexes: 0,
        condvars: 0,
        registers: 1,
        threads: vec![vec![Stmt::Store(0, Expr::Const(1)); 5]; 4],
        forbidden: Vec::new(),
    };
    let test = LitmusTest {
        program: sketch.program(),
        observed: Vec::new(),
        condition: Condition::True,
        ..test(STORE_BUFFERING)
    };
    let budget = Budget::unlimited().with_time(Duration::from_millis(20));
    let answer = run_within(&test, MemoryModel::Tso, &budget, &mut Scratch::default());
    assert_eq!(answer, Err(LitmusError::OutOf(Limit::Time)));
}

#[test]
fn what_no_litmus_test_has_is_refused() {
    let sketch = Sketch {
        cells: Vec::new(),
        mutexes: 1,
        condvars: 0,
        registers: 1,
        threads: vec![vec![Stmt::Lock(0)], Vec::new()],
        forbidden: Vec::new(),
    };
    let test = LitmusTest { program: sketch.program(), ..test(STORE_BUFFERING) };
    let refused = run(&test, MemoryModel::Sc, &mut Scratch::default()).unwrap_err();
    assert_eq!(refused.to_string(), "a mutex cannot be part of a litmus test");
}
