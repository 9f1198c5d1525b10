//! Litmus tests a second on one core: reading the text, and deciding it under each model.
//!
//! Two sets: generated two-thread cycles, and the reference directory where it stands beside the repository. Each
//! figure is the best of several passes over the whole set.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weakspot_front::litmus::parse;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::litmus::LitmusTest;
use weakspot_model::source::SourceFile;
use weakspot_testkit::cycles::Cycle;
use weakspot_verify::litmus::{Scratch, run};

const PASSES: usize = 7;

fn main() {
    println!(
        "{:<28} {:>6} {:>10} {:>10} {:>10} {:>10} {:>12}",
        "tests/s", "tests", "parse", "sc", "tso", "pso", "parse+all"
    );
    let generated = (0..2_000).map(|seed| Cycle::random(seed, 2..=2).litmus());
    measure("generated, two threads", &sources(generated));
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/litmus");
    match shared_texts(&shared) {
        Some(texts) => {
            let all = sources(texts.into_iter());
            let two: Vec<_> = all.iter().filter(|source| read(source).program.threads.len() == 2).cloned().collect();
            measure("reference, two threads", &two);
            measure("reference, all", &all);
        }
        None => println!("(no reference directory beside the repository)"),
    }
}

fn shared_texts(directory: &Path) -> Option<Vec<String>> {
    let mut files: Vec<_> = fs::read_dir(directory).ok()?.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "litmus"));
    files.sort();
    Some(files.iter().map(|file| fs::read_to_string(file).unwrap()).collect())
}

fn sources(texts: impl Iterator<Item = String>) -> Vec<Arc<SourceFile>> {
    texts.map(|text| SourceFile::new("bench.litmus", text)).collect()
}

fn read(source: &Arc<SourceFile>) -> LitmusTest {
    parse(source).unwrap()
}

fn measure(name: &str, sources: &[Arc<SourceFile>]) {
    let tests: Vec<LitmusTest> = sources.iter().map(read).collect();
    let mut scratch = Scratch::default();
    let per_second = |time: Duration| tests.len() as f64 / time.as_secs_f64();
    let parse_only = best(|| sources.iter().for_each(|source| drop(black_box(read(source)))));
    let engine = MemoryModel::ALL
        .map(|model| best(|| tests.iter().for_each(|test| drop(black_box(run(test, model, &mut scratch))))));
    let everything = best(|| {
        for source in sources {
            let test = read(source);
            for model in MemoryModel::ALL {
                drop(black_box(run(&test, model, &mut scratch)));
            }
        }
    });
    let [sc, tso, pso] = engine.map(per_second);
    let (parse_only, everything) = (per_second(parse_only), per_second(everything));
    println!("{name:<28} {:>6} {parse_only:>10.0} {sc:>10.0} {tso:>10.0} {pso:>10.0} {everything:>12.0}", tests.len());
}

fn best(mut pass: impl FnMut()) -> Duration {
    let timed = (0..PASSES).map(|_| {
        let start = Instant::now();
        pass();
        start.elapsed()
    });
    timed.min().unwrap()
}
