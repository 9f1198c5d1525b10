//! Fences for litmus tests: all tests of the corpus, and how the new rows look.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use weakspot_fence::{Confirmation, FenceOptions, FenceReport, FenceVerdict, Goal, Language, Strategy, confirm, infer};
use weakspot_front::litmus;
use weakspot_model::buffer::MemoryModel::{self, Pso, Sc, Tso};
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Verdict};
use weakspot_testkit::corpus::files;
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractVerdict};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};

fn options(model: MemoryModel, goal: Goal) -> FenceOptions {
    FenceOptions { language: Language::Litmus, ..FenceOptions::new(model, goal) }
}

fn ask(source: &Arc<SourceFile>, options: &FenceOptions) -> FenceReport {
    infer(source, options, &Budget::unlimited(), &()).unwrap()
}

fn corpus() -> Vec<Arc<SourceFile>> {
    let read = |path: &PathBuf| {
        SourceFile::new(path.file_name().unwrap().to_string_lossy(), fs::read_to_string(path).unwrap())
    };
    files("corpus/litmus", &["litmus"]).iter().map(read).collect()
}

fn parsed(source: &Arc<SourceFile>) -> Program {
    litmus::parse(source).unwrap().program
}

fn verdict(program: &Program, model: MemoryModel) -> Verdict {
    explicit::verify(program, &ExplicitOptions::new(model), &Budget::unlimited(), &()).verdict
}

/// The words of the rows: what is left when new rows go.
fn without_fences(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|word| !matches!(*word, "MFENCE" | "SFENCE" | "|" | ";")).collect()
}

/// What explicit search says of the test decides what inference must say; the result is a test again, with the same
/// instructions, and the abstract engine, which took no part, verifies it.
#[test]
fn tests_of_the_corpus_are_fenced_as_explicit_search_demands() {
    let mut fenced = 0;
    for source in corpus() {
        let program = parsed(&source);
        for model in [Tso, Pso] {
            let report = ask(&source, &options(model, Goal::Spec));
            let (calm, relaxed) = (verdict(&program, Sc), verdict(&program, model));
            let name = format!("{} {}", source.name, model.name());
            match (&report.verdict, calm, relaxed) {
                (FenceVerdict::Impossible(Some(_)), Verdict::Violated(_), _)
                | (FenceVerdict::NoneNeeded, Verdict::Verified, Verdict::Verified) => continue,
                (FenceVerdict::Fenced, Verdict::Verified, Verdict::Violated(_)) => fenced += 1,
                (found, calm, relaxed) => panic!("{name}: {found:?}, {calm:?}, {relaxed:?}"),
            }
            assert!(report.minimal, "{name}");
            let placement = report.placement.unwrap();
            let result = SourceFile::new(source.name.as_str(), placement.text.as_str());
            let abstracted = AbstractOptions::new(model);
            let opinion = abstraction::climb(&parsed(&result), &abstracted, &Budget::unlimited(), &()).unwrap();
            assert_eq!(opinion.verdict, AbstractVerdict::Verified, "{name}\n{}", placement.text);
            assert_eq!(without_fences(&placement.text), without_fences(&source.text), "{name}");
        }
    }
    assert!(fenced >= 30, "{fenced}");
}

#[test]
fn tests_of_the_corpus_are_made_store_buffer_safe() {
    let mut fenced = 0;
    for source in corpus() {
        for model in [Tso, Pso] {
            let asked = options(model, Goal::Robust);
            let report = ask(&source, &asked);
            let robust = RobustOptions::new(model);
            let before = robust::check(&parsed(&source), robust, &Budget::unlimited(), &()).unwrap().verdict;
            let needs = before != RobustVerdict::Robust;
            assert_eq!(matches!(report.verdict, FenceVerdict::Fenced), needs, "{} {}", source.name, model.name());
            fenced += usize::from(needs);
            let text = report.placement.unwrap().text;
            let result = SourceFile::new(source.name.as_str(), text);
            assert_eq!(confirm(&result, &asked, &Budget::unlimited(), &()).unwrap(), Confirmation::Correct);
            assert!(report.minimal);
        }
    }
    assert!(fenced >= 55, "{fenced}");
}

const SB: &str = "\
X86 SB
{ }
  P0          | P1          ;
  MOV [x],$1  | MOV [y],$1  ;
  MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";

#[test]
fn a_fence_is_a_row_with_the_columns_of_the_row_above() {
    let expected = "\
X86 SB
{ }
  P0          | P1          ;
  MOV [x],$1  | MOV [y],$1  ;
  MFENCE      |             ;
              | MFENCE      ;
  MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";
    for (text, expected) in [(SB.to_owned(), expected.to_owned()), (crlf(SB), crlf(expected))] {
        let report = ask(&SourceFile::new("SB.litmus", text), &options(Tso, Goal::Spec));
        assert_eq!(report.placement.unwrap().text, expected);
    }
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[test]
fn rows_that_share_a_line_or_go_over_several_get_plain_ones() {
    let text = "X86 SB { } P0|P1; MOV [x],$1|MOV [y],$1; MOV EAX,[y]|MOV EAX,[x]; exists (0:EAX=0 /\\ 1:EAX=0)";
    let report = ask(&SourceFile::new("SB.litmus", text), &options(Tso, Goal::Spec));
    let expected = "X86 SB { } P0|P1; MOV [x],$1|MOV [y],$1; MFENCE | ; | MFENCE ; MOV EAX,[y]|MOV EAX,[x]; \
                    exists (0:EAX=0 /\\ 1:EAX=0)";
    assert_eq!(report.placement.unwrap().text, expected);
    let text = SB.replace("| MOV [y],$1  ;", "|\n  MOV [y],$1  ;");
    let report = ask(&SourceFile::new("SB.litmus", text), &options(Tso, Goal::Robust));
    assert!(matches!(report.verdict, FenceVerdict::Fenced) && report.placement.unwrap().cost == 2);
}

#[test]
fn both_strategies_find_all_placements_and_fine_fences_are_sfences() {
    let text = SB.replace("exists", "locations [x;]\nexists");
    let both = [Strategy::Guided, Strategy::Avoid].map(|strategy| {
        let asked = FenceOptions { strategy, alternatives: true, ..options(Tso, Goal::Spec) };
        let report = ask(&SourceFile::new("SB.litmus", text.as_str()), &asked);
        assert!(report.minimal && !report.more_alternatives);
        (report.placement.unwrap().text, report.alternatives.len())
    });
    assert_eq!(both[0], both[1]);
    let passing = "\
X86 MP
{ }
 P0         | P1          ;
 MOV [x],$1 | MOV EAX,[y] ;
 MOV [y],$1 | MOV EBX,[x] ;
exists (1:EAX=1 /\\ 1:EBX=0)
";
    let asked = FenceOptions { fine: true, ..options(Pso, Goal::Spec) };
    let placement = ask(&SourceFile::new("MP.litmus", passing), &asked).placement.unwrap();
    assert_eq!((placement.fences[0].kind, placement.cost), (FenceKind::StoreStore, 1));
    assert!(placement.text.contains("\n SFENCE     |             ;\n"), "{}", placement.text);
}
