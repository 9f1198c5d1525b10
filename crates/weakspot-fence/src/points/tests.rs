//! Layouts.
#![allow(clippy::unwrap_used)]

use weakspot_front::weak;

use super::*;

fn points(text: &str, existing: bool) -> Points {
    let source = SourceFile::new("t.weak", text);
    let outline = weak::outline(&source).unwrap();
    Points::collect(&source, &outline, existing)
}

/// The text with a fence in every gap; it compiles, and so does the one with markers.
fn everywhere(text: &str) -> String {
    let points = points(text, false);
    let all: Vec<usize> = (0..points.candidates.len()).collect();
    for set in [&all[..], &[]] {
        for rendered in [points.fenced(&points.kinds(set)), points.marked(&points.kinds(set))] {
            weak::compile(&SourceFile::new("t.weak", rendered.text.as_str())).unwrap();
        }
    }
    assert_eq!(points.fenced(&Kinds::new()).text, text, "no fence, no change");
    points.fenced(&points.kinds(&all)).text
}

#[test]
fn a_line_for_a_line_with_the_same_indentation() {
    let text = "\
shared x, y;
thread a {
    x = 1;
    let r = y;
}
";
    let fenced = "\
shared x, y;
thread a {
    fence;
    x = 1;
    fence;
    let r = y;
    fence;
}
";
    assert_eq!(everywhere(text), fenced);
}

#[test]
fn one_line_stays_one_line() {
    let text = "shared x, y; thread a { x = 1; let r = y; } thread b {} thread c { }";
    let fenced =
        "shared x, y; thread a { fence; x = 1; fence; let r = y; fence; } thread b { fence; } thread c { fence; }";
    assert_eq!(everywhere(text), fenced);
}

#[test]
fn comments_stay_with_their_statement() {
    let text = "\
shared x, y;
thread a {
    // first the flag
    x = 1; // raised
    y = 1; /* and
    this */ let r = y; /* read */
    x = 2; /* done */
}
";
    let fenced = "\
shared x, y;
thread a {
    // first the flag
    fence;
    x = 1; // raised
    fence;
    y = 1; fence; /* and
    this */ let r = y; fence; /* read */
    x = 2; /* done */
    fence;
}
";
    assert_eq!(everywhere(text), fenced);
}

#[test]
fn blocks_in_blocks_have_their_own_gaps() {
    let text = "\
shared x;
fn f() {
    x = 1;
    return x;
}
thread a[2] {
    loop {
        if x == 0 { x = me; } else if f() == 1 {
            break;
        } else {
        }
        critical {
            // nothing
        }
        while x == 1 { }
    }
}
";
    let fenced = "\
shared x;
fn f() {
    fence;
    x = 1;
    fence;
    return x;
}
thread a[2] {
    fence;
    loop {
        fence;
        if x == 0 { fence; x = me; fence; } else if f() == 1 {
            fence;
            break;
        } else {
            fence;
        }
        fence;
        critical {
            // nothing
            fence;
        }
        fence;
        while x == 1 { fence; }
        fence;
    }
    fence;
}
";
    assert_eq!(everywhere(text), fenced);
}

#[test]
fn line_endings_and_tabs_are_kept() {
    let text = "shared x;\r\nthread a {\r\n\tx = 1; // c\r\n\twhile x == 0 {\r\n\t}\r\n}\r\n";
    let fenced = "shared x;\r\nthread a {\r\n\tfence;\r\n\tx = 1; // c\r\n\tfence;\r\n\twhile x == 0 {\r\n\t\tfence;\r\n\t}\r\n\tfence;\r\n}\r\n";
    assert_eq!(everywhere(text), fenced);
}

#[test]
fn labels_and_statements_over_several_lines_are_not_torn() {
    let text = "\
shared x;
thread a {
    up: x =
        1
    ;
    down:
    x = 0; }
";
    let fenced = "\
shared x;
thread a {
    fence;
    up: x =
        1
    ;
    fence;
    down:
    x = 0; fence; }
";
    assert_eq!(everywhere(text), fenced);
}

#[test]
fn existing_fences_can_go_with_their_line() {
    let text = "\
shared x, y;
thread a {
    x = 1;
    fence;
    fence; // twice
    let r = y; fence(store_store); y = 2;
    f: fence(store_load);
}
";
    let points = points(text, true);
    let existing: Vec<usize> =
        (0..points.candidates.len()).filter(|&index| points.candidates[index].existing.is_some()).collect();
    assert_eq!(existing.len(), 4);
    assert_eq!(points.fenced(&points.kinds(&existing)).text, text);
    let without = "\
shared x, y;
thread a {
    x = 1;
    // twice
    let r = y; y = 2;
}
";
    assert_eq!(points.fenced(&Kinds::new()).text, without);
    let inserted = points.candidates.len() - existing.len();
    assert_eq!(inserted, 2, "at the start, and beside the store-store fence");
    for set in [&existing[..], &[], &[0, 3]] {
        weak::compile(&SourceFile::new("t.weak", points.marked(&points.kinds(set)).text)).unwrap();
    }
}

#[test]
fn places_of_the_new_text_lead_back_to_the_original() {
    let text = "shared x, y;\nthread a {\n    x = 1;\n    y = 2;\n}\n";
    let points = points(text, false);
    let all: Vec<usize> = (0..points.candidates.len()).collect();
    let rendered = points.marked(&points.kinds(&all));
    for word in ["x = 1", "y = 2", "shared"] {
        assert_eq!(rendered.original(rendered.text.find(word).unwrap()), text.find(word).unwrap());
    }
    let markers: Vec<usize> = rendered
        .text
        .match_indices(Language::Weak.marker())
        .map(|(at, _)| rendered.marker(at + Language::Weak.choice()).unwrap())
        .collect();
    assert_eq!(markers, all);
}

#[test]
fn a_fence_in_a_loop_weighs_more() {
    let text = "shared x; thread a { x = 1; loop { x = 2; while x == 0 { } } }";
    let points = points(text, false);
    let weights: Vec<u64> = points.costs(true).iter().map(|cost| cost.weight).collect();
    assert_eq!(weights, [1, 1, 10, 10, 100, 10, 1]);
    assert!(points.costs(false).iter().all(|cost| cost.weight == 1));
}
