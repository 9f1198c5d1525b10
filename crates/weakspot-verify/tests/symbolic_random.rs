//! The symbolic engine against brute force over the reference machine, on programs nobody wrote.
//!
//! Every violation comes with an execution that the engine has replayed on the reference machine, so a violation that
//! is none shows as an error of [`symbolic::verify`]; what is left to compare is that none is missed.

#![allow(clippy::unwrap_used)]

use std::ops::Range;

use weakspot_front::litmus;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Verdict};
use weakspot_testkit::corpus;
use weakspot_testkit::cycles::Cycle;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::Sketch;
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::symbolic::{self, Method, SymbolicOptions};

/// States brute force may visit, and states the engine may store.
const VISITS: usize = 20_000;
const STORED: u64 = 1_000;

/// The machine a comparison is about.
#[derive(Clone, Copy)]
struct Setting {
    model: MemoryModel,
    spurious_wakeups: bool,
    all_errors: bool,
    method: Method,
}

impl Setting {
    fn new(model: MemoryModel) -> Self {
        Self { model, spurious_wakeups: false, all_errors: false, method: Method::Both }
    }
}

/// How a comparison came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// Both violated.
    Violated,
    /// Both verified, and no buffer reached the bound of brute force.
    Verified,
    /// The engine verified for all buffers what brute force could verify up to its bound only, or found a violation
    /// (a real one) beyond it.
    Beyond,
    /// The engine gave up, or refused.
    Open,
    /// Brute force gave up.
    Unknown,
    /// Different answers, or an internal error.
    Differ,
}

fn compare(sketch: &Sketch, setting: Setting) -> Comparison {
    let program = sketch.program();
    let Setting { model, spurious_wakeups, all_errors, method } = setting;
    let machine = Machine { spurious_wakeups, ..Machine::new(&program, model) };
    let Some(reach) = oracle::reach(&machine, Bounds { visits: VISITS, buffer: Some(4) }) else {
        return Comparison::Unknown;
    };
    let options = SymbolicOptions {
        spurious_wakeups,
        all_errors,
        method,
        max_states: Some(STORED),
        ..SymbolicOptions::new(model)
    };
    let verdict = match symbolic::verify(&program, &options, &Budget::unlimited(), &()) {
        Ok(report) => report.verdict,
        Err(error) if error.is_refusal() => return Comparison::Open,
        Err(_) => return Comparison::Differ,
    };
    match (verdict, reach.problems.is_empty(), reach.buffer_was_full) {
        (Verdict::Violated(_), false, _) => Comparison::Violated,
        (Verdict::Verified, true, false) => Comparison::Verified,
        (Verdict::Verified | Verdict::Violated(_), true, true) => Comparison::Beyond,
        (Verdict::Inconclusive(_), ..) => Comparison::Open,
        (Verdict::Verified, false, _) | (Verdict::Violated(_), true, false) => Comparison::Differ,
    }
}

/// Compares on many programs; shrinks the first disagreement. Gives how often each other comparison came out.
fn compare_all(shape: &Shape, seeds: Range<u64>, setting: Setting) -> impl Fn(Comparison) -> usize + use<> {
    let mut all = Vec::new();
    for seed in seeds {
        let sketch = shape.generate(seed);
        let comparison = compare(&sketch, setting);
        if comparison == Comparison::Differ {
            let small = shrink(&sketch, |sketch| compare(sketch, setting) == Comparison::Differ);
            panic!("seed {seed} under {}:\n{}", setting.model.name(), small.text());
        }
        all.push(comparison);
    }
    move |wanted| all.iter().filter(|&&comparison| comparison == wanted).count()
}

#[test]
fn agrees_with_brute_force_on_looping_programs_under_tso() {
    let count = compare_all(&Shape::looping(), 0..10_000, Setting::new(MemoryModel::Tso));
    assert!(count(Comparison::Violated) > 300 && count(Comparison::Verified) > 300);
    assert!(count(Comparison::Beyond) > 20, "some buffers grow for ever");
    assert!(count(Comparison::Open) < 5, "acceleration ends the search nearly always");
}

#[test]
fn agrees_with_brute_force_on_terminating_programs_under_tso() {
    let count = compare_all(&Shape::terminating(), 0..4_000, Setting::new(MemoryModel::Tso));
    assert!(count(Comparison::Violated) > 200 && count(Comparison::Verified) > 200);
    assert_eq!(count(Comparison::Open), 0);
}

/// Two or three threads that do little but store and load in loops.
fn growing(threads: usize) -> Shape {
    Shape {
        threads: threads..=threads,
        statements: 2..=5,
        cells: 2..=2,
        atomics: threads > 2,
        full_fences: false,
        store_fences: false,
        locks: false,
        condvars: false,
        choose: threads == 2,
        assume: false,
        critical: false,
        range_errors: false,
        ..Shape::looping()
    }
}

#[test]
fn agrees_with_brute_force_where_buffers_grow_for_ever() {
    for (model, threads, seeds) in
        [(MemoryModel::Tso, 2, 0..1_500), (MemoryModel::Tso, 3, 0..400), (MemoryModel::Pso, 2, 0..1_000)]
    {
        let count = compare_all(&growing(threads), seeds.clone(), Setting::new(model));
        let all = (seeds.end - seeds.start) as usize;
        assert!(count(Comparison::Beyond) > all / 20 && count(Comparison::Violated) > all / 10);
        assert!(count(Comparison::Open) < all / 100, "acceleration ends the search nearly always");
    }
}

#[test]
fn agrees_with_brute_force_under_pso() {
    let looping = Shape { store_fences: false, ..Shape::looping() };
    let terminating = Shape { store_fences: false, ..Shape::terminating() };
    for shape in [looping, terminating] {
        let count = compare_all(&shape, 0..3_000, Setting::new(MemoryModel::Pso));
        assert!(count(Comparison::Violated) > 500 && count(Comparison::Verified) > 500);
        assert_eq!(count(Comparison::Open), 0);
    }
}

#[test]
fn agrees_with_brute_force_about_store_store_fences_under_pso() {
    for shape in [Shape::looping(), Shape::terminating()] {
        let count = compare_all(&shape, 3_000..6_000, Setting::new(MemoryModel::Pso));
        assert!(count(Comparison::Violated) > 500 && count(Comparison::Verified) > 500);
        assert_eq!(count(Comparison::Open), 0, "no fence is refused");
    }
    // Loops that do little but store, with fences between the stores.
    let fenced = Shape { store_fences: true, ..growing(2) };
    let count = compare_all(&fenced, 0..1_000, Setting::new(MemoryModel::Pso));
    assert!(count(Comparison::Beyond) > 50 && count(Comparison::Violated) > 100);
    assert!(count(Comparison::Open) < 10, "the search ends nearly always");
}

#[test]
fn agrees_with_brute_force_under_sc() {
    let count = compare_all(&Shape::looping(), 0..2_000, Setting::new(MemoryModel::Sc));
    assert!(count(Comparison::Violated) > 100 && count(Comparison::Verified) > 100);
    assert_eq!(count(Comparison::Beyond) + count(Comparison::Open), 0);
}

#[test]
fn agrees_with_brute_force_with_spurious_wakeups() {
    let setting = Setting { spurious_wakeups: true, ..Setting::new(MemoryModel::Tso) };
    let count = compare_all(&Shape::terminating(), 5_000..7_000, setting);
    assert!(count(Comparison::Violated) > 100 && count(Comparison::Verified) > 100);
}

/// The search by memory alone, to the end: under PSO nothing else looks first then.
#[test]
fn agrees_with_brute_force_when_all_errors_are_wanted() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let setting = Setting { all_errors: true, ..Setting::new(model) };
        for shape in [Shape::looping(), Shape::terminating(), growing(2)] {
            let count = compare_all(&shape, 30_000..30_700, setting);
            assert!(count(Comparison::Violated) > 30 && count(Comparison::Verified) > 30);
            assert!(count(Comparison::Open) < 7);
        }
    }
}

/// The search over products alone: it answers where the search by memory gives up, which no small program makes it do.
#[test]
fn agrees_with_brute_force_over_products_alone() {
    let three = Shape { threads: 3..=3, statements: 1..=3, ..Shape::looping() };
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        let setting = Setting { method: Method::Products, ..Setting::new(model) };
        for shape in [Shape::looping(), Shape::terminating(), three.clone(), growing(2)] {
            let count = compare_all(&shape, 40_000..41_000, setting);
            assert!(count(Comparison::Violated) > 30 && count(Comparison::Verified) > 30);
        }
    }
}

/// Larger programs than brute force manages.
#[test]
fn agrees_with_the_explicit_engine_wherever_that_is_exact() {
    let shape = Shape { threads: 2..=3, statements: 3..=6, ..Shape::looping() };
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let (mut exact, mut within) = (0, 0);
        for seed in 20_000..21_000 {
            let sketch = shape.generate(seed);
            let program = sketch.program();
            let options = ExplicitOptions { buffer: 4, max_states: Some(50_000), ..ExplicitOptions::new(model) };
            let explicit = explicit::verify(&program, &options, &Budget::unlimited(), &()).verdict;
            let options = SymbolicOptions { max_states: Some(STORED), ..SymbolicOptions::new(model) };
            let symbolic = symbolic::verify(&program, &options, &Budget::unlimited(), &()).unwrap().verdict;
            match (&explicit, &symbolic) {
                (Verdict::Verified, Verdict::Verified) | (Verdict::Violated(_), Verdict::Violated(_)) => exact += 1,
                (Verdict::Inconclusive(Limit::Buffer(_)), Verdict::Verified | Verdict::Violated(_)) => within += 1,
                (Verdict::Inconclusive(_), _) | (_, Verdict::Inconclusive(_)) => {}
                _ => panic!("seed {seed}: explicit {explicit:?}, symbolic {symbolic:?}\n{}", sketch.text()),
            }
        }
        assert!(exact > 200 && within > 5, "{exact} exact, {within} beyond the bound");
    }
}

/// Both engines on a litmus test, whose condition is its specification; says whether it is violated.
fn litmus_agrees(name: &str, text: String, model: MemoryModel) -> bool {
    let test = litmus::parse(&SourceFile::new(name, text)).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
    let options = ExplicitOptions { buffer: 64, ..ExplicitOptions::new(model) };
    let explicit = explicit::verify(&test.program, &options, &Budget::unlimited(), &()).verdict;
    let options = SymbolicOptions::new(model);
    let symbolic = symbolic::verify(&test.program, &options, &Budget::unlimited(), &()).unwrap().verdict;
    match (&explicit, &symbolic) {
        (Verdict::Verified, Verdict::Verified) => false,
        (Verdict::Violated(_), Verdict::Violated(_)) => true,
        _ => panic!("{name} under {}: explicit {explicit:?}, symbolic {symbolic:?}", model.name()),
    }
}

#[test]
fn agrees_with_the_explicit_engine_on_litmus_tests() {
    let files = corpus::files("corpus/litmus", &["litmus"]);
    assert!(files.len() > 80);
    for model in MemoryModel::ALL {
        for file in &files {
            let name = file.file_name().unwrap().to_str().unwrap();
            litmus_agrees(name, std::fs::read_to_string(file).unwrap(), model);
        }
    }
    let (mut violated, mut all) = (0, 0);
    for seed in 0..400 {
        let cycle = Cycle::random(seed, 2..=3);
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            violated += usize::from(litmus_agrees(&cycle.name(), cycle.litmus(), model));
            all += 1;
        }
    }
    assert!(violated > 20 && violated < all, "{violated} of {all} violated");
}
