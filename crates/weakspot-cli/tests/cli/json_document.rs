//! The examples of docs/json.md are real: each is run again and must have the same fields, of the same types.

use std::path::Path;

use serde_json::Value;

use crate::fence_test::in_examples;
use crate::support::{SB_LITMUS, STORE_BUFFERING, Workspace};

/// One example: the command line, the documented value, the documented exit status.
struct Example {
    arguments: Vec<String>,
    value: Value,
    code: i32,
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> Option<(&'t str, &'t str)> {
    text.split_once(from).and_then(|(_, rest)| rest.split_once(to))
}

fn examples(mut text: &str) -> Vec<Example> {
    let mut examples = Vec::new();
    while let Some((command, rest)) = between(text, "```console\n$ weakspot ", "\n```") {
        let (value, rest) = between(rest, "```json\n", "\n```").expect("a value follows each command");
        let (code, rest) = between(rest, "Exit status ", ".").expect("a status follows each value");
        examples.push(Example {
            arguments: command.split(' ').map(str::to_owned).collect(),
            value: serde_json::from_str(value).unwrap(),
            code: code.parse().unwrap(),
        });
        text = rest;
    }
    examples
}

/// Same fields and same types, all the way down; elements of arrays are compared as far as both have them. Traces may
/// differ in their steps, so events are only asked for the fields that every event has.
fn compare(path: &str, documented: &Value, found: &Value) {
    match (documented, found) {
        (Value::Object(documented), Value::Object(found)) if documented.contains_key("step") => {
            for field in ["step", "kind", "place", "buffer"] {
                compare(&format!("{path}.{field}"), &documented[field], &found[field]);
            }
        }
        (Value::Object(documented), Value::Object(found)) => {
            let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(documented), names(found), "fields of {path}");
            for (name, value) in documented {
                compare(&format!("{path}.{name}"), value, &found[name]);
            }
        }
        (Value::Array(documented), Value::Array(found)) => {
            for (index, (documented, found)) in documented.iter().zip(found).enumerate() {
                compare(&format!("{path}[{index}]"), documented, found);
            }
        }
        (documented, found) => {
            let (one, other) = (std::mem::discriminant(documented), std::mem::discriminant(found));
            assert_eq!(one, other, "{path}: {documented} and {found}");
        }
    }
}

#[test]
fn the_examples_of_the_document_have_the_fields_of_real_runs() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let text = std::fs::read_to_string(document).unwrap();
    assert!(text.contains(STORE_BUFFERING), "the document shows the program it runs");
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("sb.litmus", SB_LITMUS);
    assert_eq!(workspace.run(&["check", "sb.weak", "--record", "sb.wtrace", "-q"]).code, 1);
    let examples = examples(&text);
    assert!(examples.len() >= 8, "only {} examples", examples.len());
    for Example { arguments, value, code } in examples {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // A test of Rust code is one of the examples.
        let run = if arguments.contains(&"--test") { in_examples(&arguments) } else { workspace.run(&arguments) };
        assert_eq!(run.code, code, "{arguments:?}: {run:?}");
        compare(&arguments.join(" "), &value, &run.json());
        let verdict = |value: &Value| value.get("verdict").or_else(|| value[0].get("verdict")).cloned();
        assert_eq!(verdict(&value), verdict(&run.json()), "{arguments:?}");
    }
}
