//! Candidates: the places of a text where a fence may stand, and the text with some of them fenced.
//!
//! Between any two neighbouring statements of a block, before its first and after its last there is one *gap*. A fence
//! after a statement and one before the next are the same gap; one in a thread template or in a function is one
//! statement of the text, however many threads execute it. What does not make a gap is the inside of a statement:
//! there is no place for a fence between the loads of one expression, nor between the rounds of an `await`.
//!
//! With [`Points::with_existing`] the fences of the text are candidates as well: a placement that leaves one out is the
//! text without it.
//!
//! Of a litmus test ([`Points::of_test`]) the gaps are the rows between instructions.
//!
//! # Markers
//! To learn which gaps an execution runs through, [`Points::marked`] writes a choice of one value into every gap.
//! The choice touches no memory, waits for nothing and has one way to go on; a thread that rests at it stands in that gap. So the front end and
//! the reference machine tell the path, and no second notion of control flow is needed.

mod table;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use weakspot_front::weak::{Outline, OutlineBlock, OutlineBody, OutlineStatement};
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::source::{Position, SourceFile};

use crate::FenceError;
use crate::hitting::Cost;
use crate::language::Language;
use crate::layout::{self, Frame};

/// Which candidates are fenced, and how.
pub(crate) type Kinds = BTreeMap<usize, FenceKind>;

/// Loops deeper than this weigh the same.
const DEEPEST_WEIGHED: u32 = 12;

/// What is chosen at a marker.
pub(crate) const CHOSEN: i64 = 1;

/// A place as it is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointPlace {
    /// The thread (a template's name stands for all its instances) or function.
    pub body: String,
    /// The statement before the place; at the start of a block, what the block belongs to.
    pub position: Position,
    /// That statement's label.
    pub label: Option<String>,
    /// That statement's text, up to its first block or line break; none at the start of a block.
    pub statement: Option<String>,
    /// Where in the text the fence goes; for one that stands there, where it stands.
    pub insertion: Position,
}

/// A place where a fence may stand.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) place: PointPlace,
    /// Which thread or function.
    pub(crate) body: usize,
    /// How many loops stand around it.
    pub(crate) loop_depth: u32,
    /// Does it directly follow a store?
    pub(crate) after_store: bool,
    /// A fence that stands in the text.
    pub(crate) existing: Option<FenceKind>,
    frame: Frame,
    /// For an existing fence: what goes when it goes.
    removal: Range<usize>,
}

/// All candidates of a text, in the order of the text.
#[derive(Debug)]
pub(crate) struct Points {
    source: Arc<SourceFile>,
    pub(crate) language: Language,
    pub(crate) candidates: Vec<Candidate>,
}

/// A text made from the original, and the way back.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// Where pieces of the original begin: (in the new text, in the original), ascending.
    pieces: Vec<(usize, usize)>,
    /// Where the choices of the markers begin, ascending, and whose they are.
    markers: Vec<(usize, usize)>,
    /// Where the fences of candidates begin, ascending.
    fences: Vec<usize>,
}

impl Rendered {
    /// The place in the original of a place in a copied piece.
    pub(crate) fn original(&self, at: usize) -> usize {
        let piece = self.pieces.partition_point(|&(new, _)| new <= at).saturating_sub(1);
        self.pieces.get(piece).map_or(0, |&(new, old)| old + at.saturating_sub(new))
    }

    /// The candidate for whose marker a choice begins here.
    pub(crate) fn marker(&self, at: usize) -> Option<usize> {
        let index = self.markers.binary_search_by_key(&at, |&(new, _)| new).ok()?;
        Some(self.markers[index].1)
    }

    /// Does the fence of a candidate begin here?
    pub(crate) fn is_fence(&self, at: usize) -> bool {
        self.fences.binary_search(&at).is_ok()
    }
}

impl Points {
    /// The gaps of a text; fences that stand in it stay.
    pub(crate) fn new(source: &Arc<SourceFile>, outline: &Outline) -> Self {
        Self::collect(source, outline, false)
    }

    /// The gaps of a text, and the fences that stand in it.
    pub(crate) fn with_existing(source: &Arc<SourceFile>, outline: &Outline) -> Self {
        Self::collect(source, outline, true)
    }

    fn collect(source: &Arc<SourceFile>, outline: &Outline, existing: bool) -> Self {
        let mut candidates = Vec::new();
        for (number, body) in outline.bodies.iter().enumerate() {
            for block in &body.blocks {
                let gaps = Gaps { source, number, body, block, existing };
                gaps.collect(&mut candidates);
            }
        }
        candidates.sort_by_key(|candidate| (candidate.frame.at.start, candidate.frame.at.end));
        Self { source: Arc::clone(source), language: Language::Weak, candidates }
    }

    /// The original text.
    pub(crate) fn source(&self) -> &Arc<SourceFile> {
        &self.source
    }

    /// What each candidate costs.
    pub(crate) fn costs(&self, weights: bool) -> Vec<Cost> {
        let cost = |candidate: &Candidate| Cost {
            weight: if weights { 10_u64.pow(candidate.loop_depth.min(DEEPEST_WEIGHED)) } else { 1 },
            count: 1,
            inserted: u32::from(candidate.existing.is_none()),
            rank: candidate.loop_depth.saturating_mul(2).saturating_add(u32::from(!candidate.after_store)),
        };
        self.candidates.iter().map(cost).collect()
    }

    /// Full fences at these candidates; fences of the text keep their kind.
    pub(crate) fn kinds(&self, set: &[usize]) -> Kinds {
        set.iter().map(|&index| (index, self.candidates[index].existing.unwrap_or(FenceKind::Full))).collect()
    }

    /// The text with these fences.
    pub(crate) fn fenced(&self, kinds: &Kinds) -> Rendered {
        self.render(kinds, false)
    }

    /// The text with these fences and a marker in every gap.
    pub(crate) fn marked(&self, kinds: &Kinds) -> Rendered {
        self.render(kinds, true)
    }

    fn render(&self, kinds: &Kinds, marked: bool) -> Rendered {
        let original = &self.source.text;
        let mut made = Rendered { text: String::new(), pieces: Vec::new(), markers: Vec::new(), fences: Vec::new() };
        let mut copied = 0;
        for (index, candidate) in self.candidates.iter().enumerate() {
            let fence = kinds.get(&index).copied();
            if !marked && fence == candidate.existing {
                continue;
            }
            let at = if fence.is_none() && !marked { candidate.removal.clone() } else { candidate.frame.at.clone() };
            made.copy(original, copied..at.start);
            copied = at.end;
            if fence.is_none() && !marked {
                continue;
            }
            self.fill(&mut made, index, fence, marked);
        }
        made.copy(original, copied..original.len());
        made
    }
}

impl Points {
    /// Writes what goes into one gap: between one frame, or in a litmus test each between its own.
    fn fill(&self, made: &mut Rendered, index: usize, fence: Option<FenceKind>, marked: bool) {
        let Frame { before, after, .. } = &self.candidates[index].frame;
        made.text.push_str(before);
        if marked {
            made.markers.push((made.text.len() + self.language.choice(), index));
            made.text.push_str(self.language.marker());
        }
        if let Some(kind) = fence {
            match self.language {
                _ if !marked => {}
                Language::Weak => made.text.push(' '),
                Language::Litmus => [after, before].into_iter().for_each(|part| made.text.push_str(part)),
            }
            made.fences.push(made.text.len());
            made.text.push_str(self.language.keyword(kind));
        }
        made.text.push_str(after);
    }

    /// Compiles a text with fences.
    pub(crate) fn compile(&self, text: String) -> Result<Program, FenceError> {
        self.language.compile(&SourceFile::new(self.source.name.clone(), text))
    }

    /// Compiles a text with markers.
    pub(crate) fn compile_marked(&self, text: String) -> Result<Program, FenceError> {
        self.language.compile_marked(&SourceFile::new(self.source.name.clone(), text))
    }
}

impl Rendered {
    fn copy(&mut self, original: &str, piece: Range<usize>) {
        self.pieces.push((self.text.len(), piece.start));
        self.text.push_str(&original[piece]);
    }
}

/// The gaps of one block.
struct Gaps<'a> {
    source: &'a SourceFile,
    number: usize,
    body: &'a OutlineBody,
    block: &'a OutlineBlock,
    /// Are the fences of the text candidates?
    existing: bool,
}

impl Gaps<'_> {
    fn collect(&self, candidates: &mut Vec<Candidate>) {
        let is_candidate = |statement: &&OutlineStatement| self.existing && statement.fence.is_some();
        let fixed: Vec<&OutlineStatement> =
            self.block.statements.iter().filter(|statement| !is_candidate(statement)).collect();
        for gap in 0..=fixed.len() {
            let previous = gap.checked_sub(1).map(|index| fixed[index]);
            let next = fixed.get(gap).copied();
            if previous.is_some_and(|previous| previous.leaves) {
                continue;
            }
            let from = previous.map_or(0, |previous| previous.span.end);
            let to = next.map_or(u32::MAX, |next| next.span.start);
            let inside = |statement: &&OutlineStatement| statement.span.start >= from && statement.span.end <= to;
            let here: Vec<&OutlineStatement> =
                self.block.statements.iter().filter(is_candidate).filter(inside).collect();
            candidates.extend(here.iter().map(|fence| self.existing_fence(fence, previous)));
            // beside a fence that stops everything another one is of no use
            if here.iter().all(|statement| statement.fence == Some(FenceKind::StoreStore)) {
                candidates.push(self.insertion(previous, next));
            }
        }
    }

    fn insertion(&self, previous: Option<&OutlineStatement>, next: Option<&OutlineStatement>) -> Candidate {
        let text = &self.source.text;
        let frame = match (previous, next) {
            (Some(previous), _) => layout::after_statement(text, previous.span),
            (None, Some(next)) => layout::before_statement(text, next.span),
            (None, None) => layout::in_empty_block(text, self.block.end),
        };
        let removal = frame.at.clone();
        self.candidate(previous, None, frame, removal)
    }

    fn existing_fence(&self, fence: &OutlineStatement, previous: Option<&OutlineStatement>) -> Candidate {
        let frame = Frame { at: fence.span.range(), before: String::new(), after: String::new() };
        let removal = layout::removal(&self.source.text, fence.span);
        let place = self.place(Some(fence), &frame);
        Candidate { place, ..self.candidate(previous, fence.fence, frame, removal) }
    }

    fn candidate(
        &self,
        previous: Option<&OutlineStatement>,
        existing: Option<FenceKind>,
        frame: Frame,
        removal: Range<usize>,
    ) -> Candidate {
        Candidate {
            place: self.place(previous, &frame),
            body: self.number,
            loop_depth: self.block.loop_depth,
            after_store: previous.is_some_and(|previous| previous.stores),
            existing,
            frame,
            removal,
        }
    }

    fn place(&self, statement: Option<&OutlineStatement>, frame: &Frame) -> PointPlace {
        let span = statement.map_or(self.block.head, |statement| statement.inner);
        PointPlace {
            body: self.body.name.clone(),
            position: self.source.position(span.start as usize),
            insertion: self.source.position(frame.at.start),
            label: statement.and_then(|statement| statement.label.clone()),
            statement: statement.map(|statement| {
                let text = &self.source.text[statement.inner.range()];
                text.split(['{', '\r', '\n']).next().unwrap_or(text).trim().to_owned()
            }),
        }
    }
}

#[cfg(test)]
mod tests;
