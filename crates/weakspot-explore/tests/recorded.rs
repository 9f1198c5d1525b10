//! Recorded traces: what monitors find in them, that they survive being copied, and that damage is noticed.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use weakspot_explore::bounded::{Mode, explore_interleavings_recorded};
use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind};
use weakspot_explore::outcome::Outcome;
use weakspot_explore::recorded::reader::Reader;
use weakspot_explore::recorded::recorder::{Placed, Recorder, Sink, explore_recorded};
use weakspot_explore::recorded::watch::{Party, Watch, Watched};
use weakspot_explore::recorded::{At, Ending, Format, Record, TraceError, TracePlace, Writer};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Action;
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::rng::Rng;

const MONITORS: [MonitorKind; 4] = [
    MonitorKind::Sober,
    MonitorKind::SoberPublished,
    MonitorKind::Operational(MemoryModel::Tso),
    MonitorKind::Operational(MemoryModel::Pso),
];

fn options(monitor: MonitorKind) -> ExploreOptions {
    ExploreOptions { monitor: Some(monitor), all: true, ..ExploreOptions::default() }
}

/// Explores a program and gives what was found with the record of it.
fn recorded(program: &Program, monitor: MonitorKind, mode: Option<Mode>, format: Format) -> (Outcome, Vec<u8>) {
    let writer = Writer::new(Vec::new(), format).unwrap();
    let mut recorder = Recorder::new(program, false, false, writer).unwrap();
    let (options, budget) = (options(monitor), Budget::unlimited());
    let outcome = match mode {
        None => explore_recorded(program, &options, &budget, &(), &mut recorder),
        Some(mode) => explore_interleavings_recorded(program, mode, &options, &budget, &(), Some(&mut recorder)).0,
    };
    (outcome, recorder.finish().unwrap().0)
}

fn records(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
    let mut reader = Reader::new(bytes)?;
    let mut records = Vec::new();
    while let Some(record) = reader.read()? {
        records.push(record);
    }
    assert!(reader.read()?.is_none(), "the end is the end");
    Ok(records)
}

fn written(records: &[Record], format: Format) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), format).unwrap();
    for record in records {
        writer.write(record).unwrap();
    }
    writer.close().unwrap()
}

fn watched(records: &[Record], monitor: MonitorKind) -> Watched {
    let budget = Budget::unlimited();
    let mut watch = Watch::new(monitor, &budget);
    for record in records {
        watch.accept(record).unwrap();
    }
    watch.watched().clone()
}

/// Thread, line and column of both accesses.
type Pairs = BTreeSet<[(u32, u32, u32); 2]>;

fn pairs_of_trace(records: &[Record], watched: &Watched) -> Pairs {
    let places: Vec<&TracePlace> = records
        .iter()
        .filter_map(|record| if let Record::Place(place) = record { Some(place) } else { None })
        .collect();
    let party = |party: Party| {
        let place = places[party.place.unwrap() as usize];
        (party.thread, place.line, place.column)
    };
    watched.pairs.iter().map(|pair| [party(pair.store), party(pair.access)]).collect()
}

fn pairs_of_search(program: &Program, outcome: &Outcome) -> Pairs {
    let party = |access: &weakspot_explore::outcome::Access| {
        let position = program.sites[access.site.index()].position;
        (u32::from(access.thread.0), position.line, position.column)
    };
    outcome.violations.keys().map(|(store, access)| [party(store), party(access)]).collect()
}

/// Random programs, with everything that the language has and with many plain accesses.
fn programs(count: u64) -> impl Iterator<Item = (String, Program)> {
    let everything = Shape { threads: 2..=3, statements: 1..=4, ..Shape::terminating() };
    let straight = Shape { threads: 2..=3, statements: 2..=4, cells: 2..=2, ..Shape::straight_line() };
    (0..count).map(move |seed| {
        let shape = if seed % 2 == 0 { &everything } else { &straight };
        let sketch = shape.generate(seed);
        (sketch.text(), sketch.program())
    })
}

#[test]
fn a_monitor_finds_in_the_record_what_it_found_in_the_search() {
    let (mut violations, mut errors) = (0, 0);
    for (text, program) in programs(400) {
        for monitor in MONITORS {
            let (outcome, bytes) = recorded(&program, monitor, None, Format::Binary);
            let records = records(&bytes).unwrap();
            let watched = watched(&records, monitor);
            assert_eq!(pairs_of_trace(&records, &watched), pairs_of_search(&program, &outcome), "{monitor:?}\n{text}");
            assert_eq!(watched.error.is_some(), outcome.error.is_some(), "{text}");
            assert!(watched.complete >= outcome.executions, "{text}");
            if matches!(monitor, MonitorKind::Sober | MonitorKind::SoberPublished) && outcome.failures == 0 {
                assert_eq!((watched.complete, watched.borderline), (outcome.executions, outcome.borderline), "{text}");
            }
            violations += watched.pairs.len();
            errors += usize::from(watched.error.is_some());
        }
    }
    assert!(violations > 150 && errors > 100, "{violations} {errors}");
}

#[test]
fn interleavings_are_recorded_one_by_one() {
    let mut violations = 0;
    for (text, program) in programs(60) {
        for (monitor, mode) in [
            (MONITORS[0], Mode::Preemptions(2)),
            (MONITORS[2], Mode::Random { executions: 30, seed: 3 }),
            (MONITORS[3], Mode::Pct { executions: 30, depth: 2, seed: 4 }),
        ] {
            let (outcome, bytes) = recorded(&program, monitor, Some(mode), Format::Text);
            let records = records(&bytes).unwrap();
            let watched = watched(&records, monitor);
            assert_eq!(pairs_of_trace(&records, &watched), pairs_of_search(&program, &outcome), "{mode:?}\n{text}");
            assert_eq!((watched.complete, watched.borderline), (outcome.executions, outcome.borderline), "{text}");
            violations += watched.pairs.len();
        }
    }
    assert!(violations > 15, "{violations}");
}

#[test]
fn copies_of_a_trace_are_the_trace() {
    for (text, program) in programs(60) {
        let (_, binary) = recorded(&program, MONITORS[0], None, Format::Binary);
        let (_, lines) = recorded(&program, MONITORS[0], None, Format::Text);
        let records = records(&binary).unwrap();
        assert_eq!(records, self::records(&lines).unwrap(), "{text}");
        assert_eq!(written(&records, Format::Binary), binary, "{text}");
        assert_eq!(written(&records, Format::Text), lines, "{text}");
    }
}

#[test]
fn names_and_values_of_any_kind_survive() {
    use weakspot_explore::happening::{Happening, Kind};
    use weakspot_explore::recorded::{CellSort, TraceEvent};
    let odd = ["", " ", "a \"b\" \\ c", "tab\tline\nreturn\r", "\u{0}\u{1b}\u{7f}", "ünï çødé 🦀", "# no comment"];
    let mut records: Vec<Record> = Vec::new();
    for name in odd {
        records.push(Record::File { name: name.to_owned(), hash: u64::MAX - name.len() as u64 });
        records.push(Record::Thread { name: name.to_owned() });
        records.push(Record::Cell { sort: CellSort::Location, name: name.to_owned() });
    }
    let label = Some("a label".to_owned());
    records.push(Record::Place(TracePlace { file: 6, line: u32::MAX, column: 1, length: 0, label }));
    records.push(Record::Assumes);
    for value in [0, -1, 1, 63, -64, 64, i64::MAX, i64::MIN] {
        let happening = Happening {
            kind: Kind::Rmw { writes: true, drains_all: true },
            cell: 6,
            read: Some(value),
            written: Some(value),
        };
        records.push(Record::Begin);
        records.push(Record::Event(TraceEvent { thread: 6, happening, place: Some(0) }));
        records.push(Record::End(Ending::Error(format!("{value}\n"))));
    }
    for format in [Format::Text, Format::Binary] {
        assert_eq!(self::records(&written(&records, format)).unwrap(), records, "{format:?}");
    }
}

/// A trace of several blocks.
fn long_trace() -> Vec<u8> {
    let program = Shape { threads: 3..=3, statements: 4..=4, cells: 2..=2, ..Shape::straight_line() };
    let program = program.generate(5).program();
    let mode = Mode::Random { executions: 6_000, seed: 1 };
    recorded(&program, MONITORS[0], Some(mode), Format::Binary).1
}

#[test]
fn damage_to_a_binary_trace_is_always_noticed() {
    let whole = long_trace();
    assert!(whole.len() > 3 << 16, "several blocks: {}", whole.len());
    let mut rng = Rng::new(11);
    for _ in 0..400 {
        let mut bytes = whole.clone();
        match rng.below(5) {
            0 => bytes[rng.below(whole.len())] ^= 1 << rng.below(8),
            1 => bytes.truncate(rng.below(whole.len())),
            2 => {
                let at = rng.below(whole.len());
                bytes.remove(at);
            }
            3 => bytes.insert(rng.below(whole.len() + 1), rng.below(256) as u8),
            _ => {
                let (from, to) = (rng.below(whole.len()), rng.below(whole.len()));
                let length = rng.below(300).min(whole.len() - from.max(to));
                bytes.copy_within(from..from + length, to);
            }
        }
        if bytes == whole {
            continue;
        }
        match records(&bytes) {
            Err(TraceError::Damaged { at: At::Byte(offset), .. }) => assert!(offset <= bytes.len() as u64),
            // only the very first byte says that it is no text
            Err(TraceError::Damaged { at: At::Line { line: 1, .. }, .. }) => assert_ne!(bytes.first(), Some(&0x89)),
            other => panic!("{:?}", other.map(|records| records.len())),
        }
    }
}

#[test]
fn every_truncation_of_a_trace_is_noticed() {
    let program = Shape::straight_line().generate(3).program();
    for format in [Format::Binary, Format::Text] {
        let (_, whole) = recorded(&program, MONITORS[0], None, format);
        for length in 0..whole.len() {
            // a text is whole without its last line feed, and without its checksum
            let rest = whole.len() - length;
            let is_whole = format == Format::Text && [1, 9, 10].contains(&rest);
            assert_eq!(records(&whole[..length]).is_ok(), is_whole, "{format:?} cut to {length}");
        }
    }
}

/// A block may be exchanged for another with the same checksum only together with all before it.
#[test]
fn blocks_cannot_change_places() {
    let whole = long_trace();
    let mut blocks = Vec::new();
    let mut at = 9;
    while at < whole.len() {
        let length = u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
        let end = at + 8 + if length == 0 { 16 } else { length };
        blocks.push(&whole[at..end]);
        at = end;
    }
    assert!(blocks.len() >= 4);
    let joined = |order: &[usize]| {
        order.iter().fold(whole[..9].to_vec(), |mut bytes, &block| {
            bytes.extend_from_slice(blocks[block]);
            bytes
        })
    };
    let last = blocks.len() - 1;
    let all: Vec<usize> = (0..=last).collect();
    assert!(records(&joined(&all)).is_ok());
    let without = |lost: usize| all.iter().copied().filter(|&block| block != lost).collect::<Vec<_>>();
    for lost in 0..=last {
        assert!(records(&joined(&without(lost))).is_err(), "block {lost} is lost");
    }
    let swapped: Vec<usize> = [1, 0].into_iter().chain(2..=last).collect();
    assert!(records(&joined(&swapped)).is_err());
    let repeated: Vec<usize> = [0, 1, 1].into_iter().chain(2..=last).collect();
    assert!(records(&joined(&repeated)).is_err());
}

/// A recorded text as a person would write it.
fn without_checksum(whole: &[u8]) -> &[u8] {
    &whole[..whole.len() - " 01234567\n".len()]
}

#[test]
fn no_changed_bit_of_a_recorded_text_is_taken_for_what_was_recorded() {
    let mut believed = 0;
    for (name, program) in programs(4) {
        let (_, whole) = recorded(&program, MONITORS[0], Some(Mode::Random { executions: 2, seed: 1 }), Format::Text);
        let expected = records(&whole).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                // Where the checksum became a comment, everything else is as it was.
                if let Ok(found) = records(&bytes) {
                    assert_eq!(found, expected, "{name}: bit {bit} of byte {at}");
                }
                believed += u32::from(records(without_checksum(&bytes)).is_ok_and(|found| found != expected));
            }
        }
    }
    assert!(believed > 100, "without a checksum many changes go unnoticed: {believed}");
}

#[test]
fn damage_to_a_text_never_panics_and_names_a_place_inside_it() {
    let mut rng = Rng::new(12);
    let (mut refused, mut taken) = (0, 0);
    for (_, program) in programs(20) {
        let (_, whole) = recorded(&program, MONITORS[0], Some(Mode::Random { executions: 3, seed: 1 }), Format::Text);
        let unsigned = without_checksum(&whole);
        for _ in 0..150 {
            let mut bytes = unsigned.to_vec();
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len());
                match rng.below(4) {
                    0 => bytes[at] = rng.below(256) as u8,
                    1 => bytes.truncate(at.max(1)),
                    2 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, b" \n\"@-<>0123456789abcx\\\t#:+"[rng.below(26)]),
                }
                if bytes.is_empty() {
                    bytes.push(b'w');
                }
            }
            match records(&bytes) {
                // what is accepted is a trace: it can be watched and copied
                Ok(records) => {
                    watched(&records, MONITORS[3]);
                    assert_eq!(self::records(&written(&records, Format::Text)).unwrap(), records);
                    taken += 1;
                }
                Err(TraceError::Damaged { at: At::Line { line, column, text, .. }, .. }) => {
                    let lines = bytes.split(|&byte| byte == b'\n').count() as u64;
                    assert!(line >= 1 && line <= lines + 1 && column <= text.chars().count() as u64 + 1);
                    refused += 1;
                }
                // the first byte has become that of the binary format
                Err(TraceError::Damaged { at: At::Byte(_), .. }) => assert_eq!(bytes[0], 0x89),
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(refused > 1_000 && taken > 60, "{refused} {taken}");
}

#[test]
fn a_line_without_end_is_not_read_to_its_end() {
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += buffer.len() as u64;
            buffer.fill(b'w');
            Ok(buffer.len())
        }
    }
    let mut reader = Reader::new(Endless(0)).unwrap();
    assert!(matches!(reader.read(), Err(TraceError::Damaged { .. })));
}

/// A sink that has had enough.
struct Full(u64);

impl Sink for Full {
    fn execution(&mut self, _: &[Action], _: Ending) -> ControlFlow<()> {
        self.0 += 1;
        if self.0 == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn events(&mut self, _: &[Placed], ending: Ending) -> ControlFlow<()> {
        self.execution(&[], ending)
    }
}

#[test]
fn a_sink_can_end_the_search() {
    let text = "shared x; thread a { x = 1; x = 2; } thread b { x = 3; x = 4; }";
    let file = weakspot_model::source::SourceFile::new("t.weak", text);
    let program = weakspot_front::weak::compile(&file).unwrap().program;
    let (budget, options) = (Budget::unlimited(), options(MonitorKind::Sober));
    let mut full = Full(0);
    let outcome = explore_recorded(&program, &options, &budget, &(), &mut full);
    assert!(full.0 == 3 && !outcome.exhaustive);
    let mut full = Full(0);
    let mode = Mode::Random { executions: 100, seed: 0 };
    explore_interleavings_recorded(&program, mode, &options, &budget, &(), Some(&mut full));
    assert_eq!(full.0, 3);
}

#[test]
fn a_record_that_cannot_be_written_is_an_error() {
    #[derive(Debug)]
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if bytes.len() > 1_000 { Err(std::io::Error::other("the disk is full")) } else { Ok(bytes.len()) }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let program = Shape::straight_line().generate(3).program();
    let mut recorder = Recorder::new(&program, false, false, Writer::new(Broken, Format::Binary).unwrap()).unwrap();
    let mode = Mode::Random { executions: 100_000, seed: 0 };
    let options = options(MonitorKind::Sober);
    let (outcome, _) =
        explore_interleavings_recorded(&program, mode, &options, &Budget::unlimited(), &(), Some(&mut recorder));
    assert!(outcome.executions < 100_000, "the search ends when nothing more can be written");
    assert!(recorder.finish().unwrap_err().to_string().contains("full"));
}

#[test]
fn a_text_that_ends_inside_a_line_is_truncated() {
    let whole = "weakspot-trace 1\nthread 0 \"a\"\nlocation 0 \"x\"\nbegin\n0 store 0 <- 1\nend complete\nclose 1 1\n";
    assert!(records(whole.as_bytes()).is_ok());
    for (cut, line) in [("\nbegin", "\nbeg"), ("\n0 store", "\n0 st"), ("\nlocation 0 \"x\"", "\nlocation 0 \"x")] {
        let text = format!("{}{line}", &whole[..whole.find(cut).unwrap()]);
        let error = records(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("it ends inside this line"), "{text}: {error}");
    }
}
