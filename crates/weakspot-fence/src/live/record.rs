//! What a test of live code says of its models: the blocks that the library `weakspot` writes to `WEAKSPOT_SUGGESTIONS`.
//! Its module `suggestions` documents the format.

use std::str::FromStr;

use thiserror::Error;

/// A place in Rust code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodePlace {
    /// The file as the compiler names it.
    pub file: String,
    /// One-based.
    pub line: u32,
    /// One-based, in characters.
    pub column: u32,
}

impl std::fmt::Display for CodePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// How an operation is strengthened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strengthening {
    /// A store or read-modify-write releases.
    Release,
    /// A store is `SeqCst`, or a full fence follows it.
    SeqCst,
    /// A full fence stands before a load.
    FenceBefore,
    /// A load or read-modify-write acquires.
    Acquire,
    /// A read-modify-write or a fence acquires and releases.
    AcqRel,
    /// A read-modify-write that does not write acquires: the second of two orderings.
    AcquireOnFailure,
}

impl Strengthening {
    const ALL: [Self; 6] =
        [Self::Release, Self::SeqCst, Self::FenceBefore, Self::Acquire, Self::AcqRel, Self::AcquireOnFailure];

    /// What the library calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Release => "Release",
            Self::SeqCst => "SeqCst",
            Self::FenceBefore => "FenceBefore",
            Self::Acquire => "Acquire",
            Self::AcqRel => "AcqRel",
            Self::AcquireOnFailure => "AcquireOnFailure",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// An operation to strengthen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Where it is.
    pub place: CodePlace,
    /// How.
    pub how: Strengthening,
    /// It is a call that says its ordering. Of others only a fence beside them does the same.
    pub says_ordering: bool,
    /// The file, if it is there.
    pub path: Option<String>,
    /// The line as it should read, or the one to put before it.
    pub line: Option<String>,
    /// Which line that is: that of the place, or another one if what stands there takes several lines.
    pub row: u32,
}

/// What the library says of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelVerdict {
    /// Correct, and store buffers add nothing.
    Safe,
    /// It fails on every processor.
    Failed,
    /// It fails because a store is delayed.
    Harmful,
    /// Store buffers add executions, and none of them fails.
    Benign,
    /// Store buffers add executions; none that fails was found, and not all were looked at.
    Unknown,
    /// Nothing was found, and not everything was looked at.
    Bounded,
}

impl ModelVerdict {
    const ALL: [Self; 6] = [Self::Safe, Self::Failed, Self::Harmful, Self::Benign, Self::Unknown, Self::Bounded];

    /// The name in the file, and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Failed => "failed",
            Self::Harmful => "harmful",
            Self::Benign => "benign",
            Self::Unknown => "unknown",
            Self::Bounded => "bounded",
        }
    }
}

/// Why a model is not as it should be, or not known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// `panic`, `race`, `deadlock`, …, or `bounded`.
    pub kind: String,
    /// In words.
    pub message: String,
    /// Where, if that is one place.
    pub place: Option<CodePlace>,
}

/// A store that may come late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// The store.
    pub store: CodePlace,
    /// What its thread does before the store is visible: `load`, …
    pub what: String,
    /// Where.
    pub later: CodePlace,
}

/// What was found of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Which model of its OS thread it is, from 1 on.
    pub number: u32,
    /// Where it is started.
    pub start: CodePlace,
    /// The verdict.
    pub verdict: ModelVerdict,
    /// Was every execution explored?
    pub exhaustive: bool,
    /// SC executions.
    pub executions: u64,
    /// Why it is not as it should be.
    pub why: Option<Why>,
    /// Stores that may come late.
    pub late: Vec<Late>,
    /// Of each of these, one change has to be made.
    pub clauses: Vec<Vec<Change>>,
    /// Changes with which nothing was found, and whether everything was explored then.
    pub helps: Option<(Vec<Change>, bool)>,
}

/// A file that is not what the library writes.
#[derive(Debug, Error)]
#[error("line {line} of what the test has recorded is not understood: `{text}`")]
pub struct RecordError {
    line: usize,
    text: String,
}

/// Reads the models of a run. A block without its end is that of a process that was killed meanwhile: it counts for nothing.
pub fn models(text: &str) -> Result<Vec<Model>, RecordError> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        let fields: Vec<String> = line.split('\t').map(unescaped).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        reader.take(&fields).ok_or_else(|| RecordError { line: index + 1, text: line.to_owned() })?;
    }
    Ok(reader.models)
}

/// Whose changes are read.
#[derive(Default)]
enum Changes {
    #[default]
    Nobodys,
    Clause,
    Helps,
}

#[derive(Default)]
struct Reader {
    models: Vec<Model>,
    open: Option<Model>,
    changes: Changes,
}

impl Reader {
    fn take(&mut self, fields: &[&str]) -> Option<()> {
        match (fields.split_first()?, &mut self.open) {
            ((&"model", fields), _) => (self.open, self.changes) = (Some(model(fields)?), Changes::Nobodys),
            ((&"why", fields), Some(model)) => model.why = Some(why(fields)?),
            ((&"late", fields), Some(model)) => model.late.push(late(fields)?),
            ((&"clause", _), Some(model)) => {
                model.clauses.push(Vec::new());
                self.changes = Changes::Clause;
            }
            ((&"helps", [how]), Some(model)) => {
                model.helps = Some((Vec::new(), *how == "proved"));
                self.changes = Changes::Helps;
            }
            ((&"change", fields), Some(model)) => {
                let list = match self.changes {
                    Changes::Nobodys => None,
                    Changes::Clause => model.clauses.last_mut(),
                    Changes::Helps => model.helps.as_mut().map(|(changes, _)| changes),
                };
                list?.push(change(fields)?);
            }
            ((&"end", _), open) => self.models.extend(open.take()),
            _ => return None,
        }
        Some(())
    }
}

fn model(fields: &[&str]) -> Option<Model> {
    let [number, file, line, column, _, verdict, extent, executions] = fields else { return None };
    Some(Model {
        number: parsed(number)?,
        start: place(&[file, line, column])?,
        verdict: ModelVerdict::ALL.into_iter().find(|known| known.name() == *verdict)?,
        exhaustive: *extent == "all",
        executions: parsed(executions)?,
        why: None,
        late: Vec::new(),
        clauses: Vec::new(),
        helps: None,
    })
}

fn why(fields: &[&str]) -> Option<Why> {
    let [kind, message, at @ ..] = fields else { return None };
    Some(Why { kind: (*kind).to_owned(), message: (*message).to_owned(), place: place(at) })
}

fn late(fields: &[&str]) -> Option<Late> {
    let [file, line, column, what, later @ ..] = fields else { return None };
    Some(Late { store: place(&[file, line, column])?, what: (*what).to_owned(), later: place(later)? })
}

fn change(fields: &[&str]) -> Option<Change> {
    let [how, file, line, column, says, path, new, more @ ..] = fields else { return None };
    let known = |text: &&str| (!text.is_empty()).then(|| (*text).to_owned());
    Some(Change {
        place: place(&[file, line, column])?,
        how: Strengthening::of(how)?,
        says_ordering: *says == "ordering",
        path: known(path),
        line: known(new),
        // A library that does not say it only knows lines of places.
        row: parsed(more.first().filter(|row| !row.is_empty()).unwrap_or(line))?,
    })
}

fn place(fields: &[&str]) -> Option<CodePlace> {
    let [file, line, column] = fields else { return None };
    Some(CodePlace { file: (*file).to_owned(), line: parsed(line)?, column: parsed(column)? })
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn unescaped(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.extend(letters.next().map(|escaped| match escaped {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                other => other,
            })),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HARMFUL: &str = "model\t2\tsrc/lib.rs\t14\t5\ttso\tharmful\tall\t3\n\
        why\tpanic\tboth are \\\\ in\\tthere\tsrc/lib.rs\t18\t9\n\
        late\tsrc/lib.rs\t7\t10\tload\tsrc/lib.rs\t8\t12\n\
        clause\n\
        change\tSeqCst\tsrc/lib.rs\t7\t10\tordering\t/p/src/lib.rs\t\\tx.store(1, SeqCst);\n\
        change\tFenceBefore\tsrc/lib.rs\t8\t12\tcall\t\t\n\
        helps\tproved\n\
        change\tSeqCst\tsrc/lib.rs\t7\t10\tordering\t/p/src/lib.rs\t\\tx.store(1, SeqCst);\n\
        end\n";

    #[test]
    fn a_block_is_read() {
        let models = models(HARMFUL).unwrap();
        let [model] = &models[..] else { panic!("{models:?}") };
        assert_eq!((model.number, model.verdict, model.exhaustive), (2, ModelVerdict::Harmful, true));
        assert_eq!(model.why.as_ref().unwrap().message, "both are \\ in\tthere");
        assert_eq!(model.late[0].later.to_string(), "src/lib.rs:8:12");
        let [clause] = &model.clauses[..] else { panic!("{model:?}") };
        assert_eq!(clause[0].line.as_deref(), Some("\tx.store(1, SeqCst);"));
        assert_eq!(
            (clause[1].how, &clause[1].path, clause[1].says_ordering),
            (Strengthening::FenceBefore, &None, false)
        );
        assert_eq!(model.helps, Some((vec![clause[0].clone()], true)));
    }

    #[test]
    fn a_block_without_an_end_counts_for_nothing() {
        let (whole, _) = HARMFUL.split_once("helps").unwrap();
        assert_eq!(models(whole).unwrap(), []);
        assert_eq!(models(&format!("{whole}{HARMFUL}")).unwrap().len(), 1);
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        for (wrong, line) in [("nonsense", 1), ("end\nchange\tSeqCst", 2), ("model\t1\n", 1), ("", 0)] {
            match models(wrong) {
                Err(error) => assert!(error.to_string().contains(&format!("line {line} ")), "{wrong}: {error}"),
                Ok(models) => assert_eq!((models.len(), line), (0, 0), "{wrong}"),
            }
        }
    }
}
