//! What the corpus says of the store-buffer safety of locks, queues and the like, against brute force. A program is safe
//! exactly if no execution of the model, however far it has come, leaves the SC traces; this can be tried out for
//! programs that never end, too. So every `unsafe` has to show in a short execution, and no `safe` may.

use weakspot_front::weak::{self, CheckVerdict, Expected};
use weakspot_model::axioms::Axioms;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_testkit::corpus;
use weakspot_testkit::oracle::{Bounds, Shortest, shortest};

/// Algorithms, as opposed to programs that try out a part of the language.
const FOLDERS: [&str; 4] = ["corpus/mutex", "corpus/sync", "corpus/structures", "corpus/papers"];

/// Executions to look at where all are expected to be SC: these have all lengths, so it is not quick.
const FEW: usize = 4_000;
/// Executions to look at until one is expected not to be.
const MANY: usize = 10_000;

fn look(program: &Program, model: MemoryModel, visits: usize) -> Shortest {
    shortest(&Machine::new(program, model), Bounds { visits, buffer: None }, |trace| !Axioms::Sc.allow(trace))
}

#[test]
fn brute_force_finds_what_is_unsafe_and_nothing_else() {
    let (mut wrong, mut agreed) = (Vec::new(), [0, 0]);
    for path in FOLDERS.iter().flat_map(|folder| corpus::files(folder, &["weak"])) {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let source = SourceFile::new(path.display().to_string(), text);
        let compiled = weak::compile(&source).unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()));
        for expectation in &compiled.expectations {
            let Expected::Check { model, verdict } = &expectation.expected else { continue };
            if *model == MemoryModel::Sc {
                continue;
            }
            let agrees = match verdict {
                CheckVerdict::Unsafe => matches!(look(&compiled.program, *model, MANY), Shortest::Found(_)),
                CheckVerdict::Safe => !matches!(look(&compiled.program, *model, FEW), Shortest::Found(_)),
                CheckVerdict::Error => continue,
            };
            if agrees {
                agreed[usize::from(*verdict == CheckVerdict::Safe)] += 1;
            } else {
                wrong.push(format!("{} is not {} under {}", path.display(), verdict.name(), model.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(agreed[0] >= 150 && agreed[1] >= 150, "unsafe and safe: {agreed:?}");
}
