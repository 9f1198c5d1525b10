//! The source map: one [`Site`] for each place and label, shared by all instances of a template.

use rustc_hash::FxHashMap;
use weakspot_model::ids::Site;
use weakspot_model::source::{Position, SiteInfo, SourceFile, Span};

use crate::weak::names::{Name, Names};

/// A place and the label of its statement.
type Key = (Span, Option<Name>);

/// Places met so far.
#[derive(Debug, Default)]
pub(super) struct Sites {
    numbers: FxHashMap<Key, Site>,
    places: Vec<Key>,
}

impl Sites {
    /// The number of a place.
    pub(super) fn intern(&mut self, span: Span, label: Option<Name>) -> Site {
        *self.numbers.entry((span, label)).or_insert_with(|| {
            self.places.push((span, label));
            Site::new(self.places.len() - 1)
        })
    }

    /// The table. Lines and columns are counted in one pass over the text, however long its lines are.
    pub(super) fn finish(self, source: &SourceFile, names: &Names<'_>) -> Vec<SiteInfo> {
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_unstable_by_key(|&index| self.places[index].0.start);
        let mut positions = vec![Position { line: 1, column: 1 }; self.places.len()];
        let (mut offset, mut here) = (0, Position { line: 1, column: 1 });
        for index in order {
            let start = self.places[index].0.start as usize;
            for character in source.text[offset..start].chars() {
                match character {
                    '\n' => here = Position { line: here.line + 1, column: 1 },
                    _ => here.column += 1,
                }
            }
            offset = start;
            positions[index] = here;
        }
        let site = |(&(span, label), position): (&Key, Position)| {
            let label = label.map(|name| names.text(name).to_owned());
            SiteInfo { span, position, label }
        };
        self.places.iter().zip(positions).map(site).collect()
    }
}
