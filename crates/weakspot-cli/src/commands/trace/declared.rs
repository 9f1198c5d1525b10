//! What a trace declares, to put findings into words: names, places, and source files that are still as they were.

use std::path::Path;
use std::sync::Arc;

use weakspot_check::recorded::watch::{Pair, Party};
use weakspot_check::recorded::{Record, TracePlace, source_hash};
use weakspot_model::source::SourceFile;
use weakspot_report::{json, recorded};

/// Everything declared so far, by number.
#[derive(Debug, Default)]
pub struct Declared {
    files: Vec<(String, u64)>,
    threads: Vec<String>,
    cells: Vec<String>,
    places: Vec<TracePlace>,
}

impl Declared {
    /// Keeps a declaration; other records are none.
    pub fn note(&mut self, record: Record) {
        match record {
            Record::File { name, hash } => self.files.push((name, hash)),
            Record::Thread { name } => self.threads.push(name),
            Record::Cell { name, .. } => self.cells.push(name),
            Record::Place(place) => self.places.push(place),
            Record::Assumes | Record::Begin | Record::Event(_) | Record::End(_) => {}
        }
    }

    /// The source files that can be read and have not changed, looked for where they were and beside the trace.
    pub fn sources(&self, trace: &Path) -> Vec<Option<Arc<SourceFile>>> {
        let beside = trace.parent().unwrap_or(Path::new("."));
        let read = |(name, hash): &(String, u64)| {
            let candidates = [Path::new(name).to_owned(), beside.join(name)];
            let texts = candidates.iter().filter_map(|path| std::fs::read(path).ok());
            let unchanged =
                texts.filter(|text| source_hash(text) == *hash).find_map(|text| String::from_utf8(text).ok());
            unchanged.map(|text| SourceFile::new(name.clone(), text))
        };
        self.files.iter().map(read).collect()
    }

    fn thread(&self, number: u32) -> &str {
        &self.threads[number as usize]
    }

    /// A finding to be drawn.
    pub fn drawn<'a>(&'a self, pair: &Pair, sources: &'a [Option<Arc<SourceFile>>]) -> recorded::RecordedViolation<'a> {
        let party = |party: Party| recorded::Party {
            thread: self.thread(party.thread),
            place: party.place.map(|number| {
                let TracePlace { file, line, column, length, .. } = self.places[number as usize];
                let source = sources[file as usize].as_ref();
                recorded::RecordedPlace { file: &self.files[file as usize].0, line, column, length, source }
            }),
        };
        recorded::RecordedViolation {
            store: party(pair.store),
            access: party(pair.access),
            location: &self.cells[pair.cell as usize],
            executions: pair.executions,
            execution: pair.execution,
            event: pair.event,
        }
    }

    /// A finding for JSON.
    pub fn violation(&self, pair: &Pair) -> json::RecordedViolation<'_> {
        json::RecordedViolation {
            store: self.place(pair.store),
            access: self.place(pair.access),
            location: &self.cells[pair.cell as usize],
            executions: pair.executions,
            execution: pair.execution,
            event: pair.event,
        }
    }

    fn place(&self, party: Party) -> json::RecordedPlace<'_> {
        let place = party.place.map(|number| &self.places[number as usize]);
        json::RecordedPlace {
            file: place.map(|place| self.files[place.file as usize].0.as_str()),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            thread: self.thread(party.thread),
            label: place.and_then(|place| place.label.as_deref()),
        }
    }
}
