//! The search against brute force over all placements.
#![allow(clippy::unwrap_used)]

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;

use super::*;

/// Programs with more candidates are left out.
const MOST_CANDIDATES: usize = 16;

/// Is the program with these fences correct?
fn is_correct(points: &Points, options: &FenceOptions, set: &[usize]) -> Option<bool> {
    let text = points.fenced(&points.kinds(set)).text;
    let program = points.compile(text).unwrap();
    let budget = Budget::unlimited();
    let mut oracle = Oracle { options, budget: &budget, progress: &(), states: 0 };
    match oracle.ask(&program, Effort::Full).unwrap() {
        Answer::Correct => Some(true),
        Answer::Broken(_) => Some(false),
        Answer::Undecided(_) => None,
    }
}

/// All minimum placements by trying all sets of up to three candidates; `None` if some question has no answer, or if
/// a larger set might be cheaper.
fn brute_force(points: &Points, options: &FenceOptions) -> Option<Vec<Vec<usize>>> {
    let costs = points.costs(options.weights);
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for size in 0..3 {
        let smaller: Vec<Vec<usize>> = sets.iter().filter(|set| set.len() == size).cloned().collect();
        for set in smaller {
            let next = set.last().map_or(0, |last| last + 1);
            sets.extend((next..costs.len()).map(|candidate| [&set[..], &[candidate]].concat()));
        }
    }
    sets.sort_by_key(|set| hitting::cost_of(set, &costs).essential());
    let mut best = None;
    let mut found = Vec::new();
    for set in sets {
        let cost = hitting::cost_of(&set, &costs).essential();
        if cost.0 > 3 || best.is_some_and(|best| cost > best) {
            break;
        }
        if is_correct(points, options, &set)? {
            best = Some(cost);
            found.push(set);
        }
    }
    best.map(|_| found)
}

/// Compares; gives the number of fences, or `None` if there is nothing to compare.
fn compare(text: &str, options: &FenceOptions) -> Option<usize> {
    let source = SourceFile::new("t", text);
    let program = weak::compile(&source).unwrap().program;
    let outline = weak::outline(&source).unwrap();
    let points =
        if options.minimise { Points::with_existing(&source, &outline) } else { Points::new(&source, &outline) };
    if points.candidates.len() > MOST_CANDIDATES {
        return None;
    }
    let budget = Budget::unlimited();
    let oracle = Oracle { options, budget: &budget, progress: &(), states: 0 };
    let report = Inference::new(&points, oracle)
        .and_then(|inference| inference.run(&program))
        .unwrap_or_else(|error| panic!("{error}: {options:?}\n{text}"));
    if let FenceVerdict::Impossible(Some(_)) = report.verdict {
        return None;
    }
    let expected = brute_force(&points, options)?;
    let texts = |sets: &[Vec<usize>]| -> Vec<String> {
        let mut texts: Vec<String> = sets.iter().map(|set| points.fenced(&points.kinds(set)).text).collect();
        texts.sort();
        texts
    };
    let first = report.placement.unwrap_or_else(|| panic!("no placement, but {expected:?}\n{text}"));
    let mut found: Vec<String> = report.alternatives.iter().map(|placement| placement.text.clone()).collect();
    found.push(first.text);
    found.sort();
    assert_eq!(found, texts(&expected), "{options:?}\n{text}");
    assert!(report.minimal && !report.more_alternatives, "{options:?}\n{text}");
    Some(expected[0].len())
}

fn all_options() -> Vec<FenceOptions> {
    let mut all = Vec::new();
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        for goal in [Goal::Spec, Goal::Robust] {
            let options = FenceOptions { alternatives: true, ..FenceOptions::new(model, goal) };
            all.push(FenceOptions { minimise: true, ..options.clone() });
            all.push(FenceOptions { weights: true, ..options.clone() });
            if goal == Goal::Spec {
                let avoid = FenceOptions { strategy: Strategy::Avoid, ..options.clone() };
                all.push(FenceOptions { minimise: true, ..avoid.clone() });
                all.push(FenceOptions { weights: true, ..avoid.clone() });
                all.push(avoid);
            }
            all.push(options);
        }
    }
    all
}

fn random(shape: &Shape, seeds: std::ops::Range<u64>, required: [usize; 3]) {
    let mut counts = [0; 3];
    for seed in seeds {
        let text = shape.generate(seed).text();
        for options in all_options() {
            if let Some(count) = compare(&text, &options) {
                counts[count.min(2)] += 1;
            }
        }
    }
    assert!(counts.iter().zip(required).all(|(count, required)| *count >= required), "{counts:?}");
}

#[test]
fn straight_line_programs_get_the_minimum_that_brute_force_finds() {
    random(
        &Shape { threads: 2..=2, statements: 2..=3, cells: 2..=2, ..Shape::straight_line() },
        0..800,
        [9000, 200, 50],
    );
}

#[test]
fn terminating_programs_get_the_minimum_that_brute_force_finds() {
    random(&Shape { threads: 2..=2, statements: 2..=3, cells: 2..=2, ..Shape::terminating() }, 0..800, [5000, 10, 10]);
}

#[test]
fn looping_programs_get_the_minimum_that_brute_force_finds() {
    random(&Shape { statements: 1..=3, ..Shape::looping() }, 0..800, [5000, 5, 5]);
}

#[test]
fn known_shapes_get_all_their_minimum_placements() {
    let buffering = "shared x, y; thread a { x = 1; skip; let r = y; } thread b { y = 1; let r = x; }
        final { assert(a.r == 1 || b.r == 1); }";
    let passing = "shared d, f; thread a { d = 1; f = 1; } thread b { let r = f; let s = d; }
        final { assert(b.r == 0 || b.s == 1); }";
    let template = "shared x[2]; thread p[2] { x[me] = 1; if x[1 - me] == 0 { critical { } } }";
    let options = |model| FenceOptions { alternatives: true, ..FenceOptions::new(model, Goal::Spec) };
    assert_eq!(compare(buffering, &options(MemoryModel::Tso)), Some(2));
    assert_eq!(compare(passing, &options(MemoryModel::Tso)), Some(0));
    assert_eq!(compare(passing, &options(MemoryModel::Pso)), Some(1));
    assert_eq!(compare(template, &options(MemoryModel::Tso)), Some(1));
    for (text, model, count) in [
        (buffering, MemoryModel::Tso, 2),
        (passing, MemoryModel::Tso, 0),
        (passing, MemoryModel::Pso, 1),
        (template, MemoryModel::Pso, 1),
    ] {
        let avoid = FenceOptions { strategy: Strategy::Avoid, ..options(model) };
        assert_eq!(compare(text, &avoid), Some(count));
    }
}
