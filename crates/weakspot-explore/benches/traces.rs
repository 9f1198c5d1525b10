//! Events a second of recorded traces: writing, reading, and each monitor; and that memory stays flat however long one
//! execution is.
//!
//! `cargo bench -p weakspot-explore --bench traces -- 100` generates a trace with one execution of 100 million events (20
//! if nothing is said) in a temporary file.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _};
use std::time::Instant;

use weakspot_explore::exhaustive::MonitorKind;
use weakspot_explore::graph::NONE;
use weakspot_explore::happening::{Happening, Kind};
use weakspot_explore::recorded::reader::Reader;
use weakspot_explore::recorded::watch::Watch;
use weakspot_explore::recorded::{CellSort, Ending, Format, Record, TraceEvent, TracePlace, Writer};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;
use weakspot_model::task::Budget;

const THREADS: u64 = 8;
const CELLS: u64 = 64;
const PLACES: u64 = 200;

/// splitmix64
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Threads that mostly work on locations of their own, read those of others now and then, and seldom synchronise: stores
/// stay pending for long.
fn event(random: &mut Random) -> TraceEvent {
    let thread = random.below(THREADS);
    let kind = match random.below(1_000) {
        0 => Kind::Fence(FenceKind::Full),
        1..=3 => Kind::Rmw { writes: true, drains_all: false },
        4..=599 => Kind::Load,
        _ => Kind::Store,
    };
    let own = thread * (CELLS / THREADS) + random.below(CELLS / THREADS);
    let cell = if random.below(20) > 0 { own } else { random.below(CELLS) };
    let cell = if matches!(kind, Kind::Fence(_)) { NONE } else { cell as u32 };
    let value = random.below(1_000) as i64;
    let read = matches!(kind, Kind::Load | Kind::Rmw { .. }).then_some(value);
    let written = matches!(kind, Kind::Store | Kind::Rmw { .. }).then_some(value + 1);
    let happening = Happening { kind, cell, read, written };
    TraceEvent { thread: thread as u32, happening, place: Some(random.below(PLACES) as u32) }
}

fn generate(file: File, format: Format, events: u64) -> File {
    let mut writer = Writer::new(BufWriter::with_capacity(1 << 16, file), format).unwrap();
    writer.write(&Record::File { name: "generated".to_owned(), hash: 0 }).unwrap();
    for thread in 0..THREADS {
        writer.write(&Record::Thread { name: format!("t{thread}") }).unwrap();
    }
    for cell in 0..CELLS {
        writer.write(&Record::Cell { sort: CellSort::Location, name: format!("x{cell}") }).unwrap();
    }
    for line in 1..=PLACES as u32 {
        writer.write(&Record::Place(TracePlace { file: 0, line, column: 1, length: 0, label: None })).unwrap();
    }
    writer.write(&Record::Begin).unwrap();
    let mut random = Random(1);
    for _ in 0..events {
        writer.write(&Record::Event(event(&mut random))).unwrap();
    }
    writer.write(&Record::End(Ending::Complete)).unwrap();
    writer.close().unwrap().into_inner().unwrap()
}

/// What the process takes, where the system tells.
fn resident() -> String {
    let mut status = String::new();
    let _ = File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut status));
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or("unknown".to_owned(), |size| size.trim().to_owned())
}

fn rate(events: u64, since: Instant) -> String {
    format!("{:6.1} million events/s", events as f64 / 1e6 / since.elapsed().as_secs_f64())
}

fn read(file: &mut File, events: u64) {
    file.rewind().unwrap();
    let start = Instant::now();
    let mut reader = Reader::new(&*file).unwrap();
    let mut records = 0;
    while reader.read().unwrap().is_some() {
        records += 1;
    }
    assert!(records > events);
    println!("  read                {}", rate(events, start));
}

fn watch(file: &mut File, events: u64, name: &str, kind: MonitorKind) {
    file.rewind().unwrap();
    let budget = Budget::unlimited();
    let start = Instant::now();
    let mut reader = Reader::new(&*file).unwrap();
    let mut watch = Watch::new(kind, &budget);
    let mut next = events / 4;
    let mut sizes = Vec::new();
    while let Some(record) = reader.read().unwrap() {
        watch.accept(&record).unwrap();
        if watch.watched().events == next {
            sizes.push(watch.bytes() >> 10);
            next += events / 4;
        }
    }
    let pairs = watch.watched().pairs.len();
    println!(
        "  {name:18} {}, tables {sizes:?} KiB after each quarter, {pairs} pairs, process {}",
        rate(events, start),
        resident()
    );
}

fn main() {
    let asked = std::env::args().skip(1).find_map(|argument| argument.parse::<u64>().ok());
    let events = asked.unwrap_or(20) * 1_000_000;
    for (format, events) in [(Format::Binary, events), (Format::Text, events / 4)] {
        let start = Instant::now();
        let mut file = generate(tempfile::tempfile().unwrap(), format, events);
        let size = file.metadata().unwrap().len();
        println!(
            "{} trace, one execution of {events} events, {:.2} bytes an event",
            format.name(),
            size as f64 / events as f64
        );
        println!("  generate and write  {}", rate(events, start));
        read(&mut file, events);
        watch(&mut file, events, "sober", MonitorKind::Sober);
        watch(&mut file, events, "operational tso", MonitorKind::Operational(MemoryModel::Tso));
        watch(&mut file, events, "operational pso", MonitorKind::Operational(MemoryModel::Pso));
    }
}
