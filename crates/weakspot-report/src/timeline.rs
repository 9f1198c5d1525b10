//! A replayed execution, drawn for people: one column per thread, one row per step.
//!
//! ```text
//!      a                         b
//!      ────────────────────────  ────────────────────────
//!   1  ╭ 2: x = 1
//!      │    x=1 buffered ①
//!   2  │ 3: let r = y
//!      │    y=0 from memory
//!   3  ╰ ⇢ x=1 visible ①
//! ```
//!
//! A store that waits in its buffer opens a *lane* at the left of its thread's column; the lane runs down to the row
//! in which the store becomes visible, so store and commit are connected whatever happens in between. Stores that
//! waited while something else happened also carry a number (①, ②, …) that their commit and every load served by them
//! repeat. Below the table: the place that fails, with its source, and in words which store was late and what its
//! thread did meanwhile.
//!
//! | module | what it decides |
//! |---|---|
//! | `lanes` | which stores waited, from where to where, in which lane, under which number |
//! | `rows` | the words of each row |
//! | `layout` | side by side if the width allows it, else as a list |
//! | `failure` | the failing places and their source |
//! | `delays` | the sentences about late stores |
//!
//! Everything comes from the replay, nothing from what an engine claims. Executions are shown whole, however long.

mod delays;
mod failure;
mod lanes;
mod layout;
mod rows;

use weakspot_model::ids::{Loc, Site, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::problem::Problem;
use weakspot_model::replay::Replay;
use weakspot_model::source::SiteInfo;

use crate::style::Style;

/// An execution and the program it is one of.
#[derive(Debug, Clone, Copy)]
pub struct Execution<'a> {
    /// The program.
    pub program: &'a Program,
    /// What happened.
    pub replay: &'a Replay,
}

impl Execution<'_> {
    /// Draws the execution: table, failing place, late stores. Ends with a line break.
    pub fn render(&self, style: &Style) -> String {
        let lanes = lanes::Lanes::new(self);
        let rows = rows::rows(self, &lanes);
        let mut text = layout::draw(self, &lanes, &rows, style);
        for part in [failure::explain(self, style), delays::explain(self, &lanes, style)] {
            if !part.is_empty() {
                text.push('\n');
                text.push_str(&part);
            }
        }
        text
    }

    fn thread_name(&self, thread: ThreadId) -> &str {
        &self.program.threads[thread.index()].name
    }

    fn location_name(&self, loc: Loc) -> &str {
        &self.program.locations[loc.index()].name
    }

    fn site(&self, site: Site) -> &SiteInfo {
        &self.program.sites[site.index()]
    }

    /// What a row shows of the source: the whole statement if the line holds just one, else the text of the place.
    fn row_text(&self, site: Site) -> String {
        let line = self.program.source.line(self.site(site).position.line);
        lone_statement(line).unwrap_or_else(|| self.source_text(site))
    }

    fn source_text(&self, site: Site) -> String {
        place_text(self.program, site)
    }
}

/// The source text of a place on one line, with its label.
pub(crate) fn place_text(program: &Program, site: Site) -> String {
    let info = &program.sites[site.index()];
    let text = program.source.text.get(info.span.range()).unwrap_or_default();
    let (first, more) = text.split_once('\n').map_or((text, ""), |(first, rest)| (first, rest));
    let mut words = first.split_whitespace().collect::<Vec<_>>().join(" ");
    if more.trim().is_empty() {
        words.truncate(words.trim_end_matches(';').trim_end().len());
    } else {
        words.push_str(" …");
    }
    match &info.label {
        Some(label) if !words.starts_with(label.as_str()) => format!("{label}: {words}"),
        _ => words,
    }
}

/// The one statement (or head of a block) that a line holds: `let r = y` of `let r = y;  // read`, `while x == 1` of
/// `while x == 1 {` and of `while x == 1 { }`. `None` if there is more on the line, or less.
fn lone_statement(line: &str) -> Option<String> {
    let code = if line.contains('"') { line } else { line.split("//").next().unwrap_or_default() };
    let code = code.trim();
    let empty_block = code.strip_suffix('}').map(str::trim_end).filter(|head| head.ends_with('{'));
    let head = empty_block.unwrap_or(code).strip_suffix([';', '{'])?.trim_end();
    let single = !head.is_empty() && !head.contains([';', '{', '}']) && !head.contains(" | ");
    single.then(|| head.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The first of the places at which a failed execution fails, and whose it is (no thread: the `final` block).
pub fn failing_place(program: &Program, replay: &Replay, problem: &Problem) -> Option<(Option<ThreadId>, Site)> {
    failure::places(&Execution { program, replay }, problem).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::lone_statement;

    #[test]
    fn a_row_shows_the_statement_if_the_line_has_just_one() {
        let shown = |line: &str| lone_statement(line).unwrap_or_default();
        assert_eq!(shown("    let r  = y;   // one; load"), "let r = y");
        assert_eq!(shown("    while want[other] == 1 {"), "while want[other] == 1");
        assert_eq!(shown("    x = 1; y = 2;"), "");
        assert_eq!(shown("    while turn != me { }"), "while turn != me");
        assert_eq!(shown("    while turn != me { skip; }"), "");
        assert_eq!(shown("    }"), "");
        assert_eq!(shown("    if a {"), "if a");
        assert_eq!(shown("    } else {"), "");
        assert_eq!(shown(" MOV [x],$1  | MOV [y],$1  ;"), "");
        assert_eq!(shown("    let r = fetch_add(x,"), "");
    }
}
