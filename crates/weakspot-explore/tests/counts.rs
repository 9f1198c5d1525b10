//! Small cousins of the programs to measure with: as many executions as brute force finds traces.
#![allow(clippy::unwrap_used)]

use weakspot_explore::exhaustive::{ExploreOptions, explore};
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_testkit::oracle::{self, Bounds};

/// Executions, and traces that brute force finds.
fn counts(text: &str) -> (u64, u64) {
    let program = compile(&SourceFile::new("test.weak", text)).unwrap().program;
    let options = ExploreOptions { monitor: None, all: true, ..ExploreOptions::default() };
    let outcome = explore(&program, &options, &Budget::unlimited(), &());
    let bounds = Bounds { visits: 3_000_000, ..Bounds::default() };
    let traces = oracle::traces(&Machine::new(&program, MemoryModel::Sc), bounds).expect("few enough");
    (outcome.executions, traces.len() as u64)
}

fn assert_exact(text: &str, expected: u64) {
    assert_eq!(counts(text), (expected, expected), "{text}");
}

#[test]
fn adders() {
    let adders = |rounds: u32| {
        format!(
            "shared i = 1, j = 1;
            thread a {{ let k = 0; while k < {rounds} {{ i = i + j; k = k + 1; }} }}
            thread b {{ let k = 0; while k < {rounds} {{ j = j + i; k = k + 1; }} }}
            thread look {{ let x = i; let y = j; }}"
        )
    };
    assert_exact(&adders(1), 11);
    assert_exact(&adders(2), 140);
}

#[test]
fn readers_and_writers() {
    assert_exact("shared x; thread w { x = 1; } thread r[4] { let v = x; }", 16);
    let last_zero = "shared a[4];
        thread reader { let n = 3; while a[n] != 0 { n = n - 1; } }
        thread writer[3] { a[me + 1] = a[me] + 1; }";
    assert_exact(last_zero, 12);
}

#[test]
fn a_stack() {
    let stack = "shared top, next[3];
        thread t[2] {
            let node = me + 1;
            let done = 0;
            while done == 0 { let old = top; next[node] = old; done = cas(top, old, node); }
            done = 0;
            while done == 0 {
                let old = top;
                if old == 0 { done = 1; } else { let n = next[old]; done = cas(top, old, n); }
            }
        }";
    let (executions, traces) = counts(stack);
    assert_eq!(executions, traces);
    assert!(executions > 20, "{executions}");
}

#[test]
fn a_queue() {
    let queue = "shared head = 1, tail = 1, next[3];
        thread enqueue {
            let t = tail;
            let n = next[t];
            if n == 0 { if cas(next[t], 0, 2) { cas(tail, t, 2); } }
        }
        thread dequeue[2] {
            let done = 0;
            while done == 0 {
                let h = head;
                let t = tail;
                let n = next[h];
                if h == head {
                    if h == t { if n == 0 { done = 1; } else { cas(tail, t, n); } } else { done = cas(head, h, n); }
                }
            }
        }";
    let (executions, traces) = counts(queue);
    assert_eq!(executions, traces);
    assert!(executions > 20, "{executions}");
}
