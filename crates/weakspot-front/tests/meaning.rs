//! Random expressions, compiled and run, against an evaluator of a few lines: the same value, the same loads in the same
//! order, a fault exactly where there is one.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use weakspot_front::weak;
use weakspot_model::ir::Program;
use weakspot_model::local::{self, Advance, Pause};
use weakspot_model::source::SourceFile;

const SHARED: [(&str, i64); 3] = [("x", 0), ("y", 1), ("z", -3)];
const LOCALS: [(&str, i64); 2] = [("steady", 2), ("changing", 5)];

#[derive(Debug, Clone)]
enum Tree {
    Integer(i64),
    Shared(usize),
    Local(usize),
    Call(Box<Tree>),
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
}

const OPERATORS: [&str; 18] =
    ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>", "&&", "||"];

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        (-3..4_i64).prop_map(Tree::Integer),
        (0..SHARED.len()).prop_map(Tree::Shared),
        (0..LOCALS.len()).prop_map(Tree::Local),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let pair = (proptest::sample::select(&OPERATORS[..]), inner.clone(), inner.clone());
        prop_oneof![
            4 => pair.prop_map(|(op, left, right)| Tree::Binary(op, Box::new(left), Box::new(right))),
            1 => (proptest::sample::select(&["-", "!"][..]), inner.clone()).prop_map(|(op, t)| Tree::Unary(op, Box::new(t))),
            1 => inner.prop_map(|argument| Tree::Call(Box::new(argument))),
        ]
    })
}

/// `twice(e)` is `e + e`, with `e` evaluated once.
fn text(tree: &Tree) -> String {
    match tree {
        Tree::Integer(value) => format!("({value})"),
        Tree::Shared(index) => SHARED[*index].0.to_owned(),
        Tree::Local(index) => LOCALS[*index].0.to_owned(),
        Tree::Call(argument) => format!("twice({})", text(argument)),
        Tree::Unary(op, operand) => format!("{op}({})", text(operand)),
        Tree::Binary(op, left, right) => format!("({} {op} {})", text(left), text(right)),
    }
}

/// The value, or `None` for a fault; loads are recorded.
fn evaluate(tree: &Tree, loads: &mut Vec<usize>) -> Option<i64> {
    Some(match tree {
        Tree::Integer(value) => *value,
        Tree::Shared(index) => {
            loads.push(*index);
            SHARED[*index].1
        }
        Tree::Local(index) => LOCALS[*index].1,
        Tree::Call(argument) => evaluate(argument, loads)?.checked_mul(2)?,
        Tree::Unary("!", operand) => i64::from(evaluate(operand, loads)? == 0),
        Tree::Unary(_, operand) => evaluate(operand, loads)?.checked_neg()?,
        Tree::Binary("&&", left, right) => i64::from(evaluate(left, loads)? != 0 && evaluate(right, loads)? != 0),
        Tree::Binary("||", left, right) => i64::from(evaluate(left, loads)? != 0 || evaluate(right, loads)? != 0),
        Tree::Binary(op, left, right) => {
            let (left, right) = (evaluate(left, loads)?, evaluate(right, loads)?);
            arithmetic(op, left, right)?
        }
    })
}

fn arithmetic(op: &str, left: i64, right: i64) -> Option<i64> {
    let shift = u32::try_from(right).ok().filter(|&amount| amount < 64);
    match op {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "&" => Some(left & right),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "<<" => i64::try_from(i128::from(left) << shift?).ok(),
        ">>" => Some(left >> shift?),
        _ => Some(i64::from(match op {
            "==" => left == right,
            "!=" => left != right,
            "<" => left < right,
            "<=" => left <= right,
            ">" => left > right,
            _ => left >= right,
        })),
    }
}

/// Runs the only thread: the value stored last, or `None` after a fault, and the loads.
fn run(program: &Program) -> (Option<i64>, Vec<usize>) {
    let thread = &program.threads[0];
    let (mut loads, mut stored) = (Vec::new(), None);
    let (mut state, mut advance) = local::start(thread, &program.locations);
    loop {
        let Ok(Advance::Paused { pause, .. }) = advance else { return (None, loads) };
        let result = match pause {
            Pause::Load { loc } => {
                loads.push(loc.index());
                program.locations[loc.index()].init
            }
            Pause::Store { value, .. } => {
                stored = Some(value);
                0
            }
            Pause::End => return (stored, loads),
            other => panic!("unexpected {other:?}"),
        };
        advance = local::resume(thread, &program.locations, &mut state, result);
    }
}

/// The program that stores an expression, in one of several settings that lower differently.
fn program(expression: &str, setting: usize) -> String {
    let shared: Vec<String> = SHARED.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let body = match setting {
        0 => format!("out = {expression};"),
        1 => format!("let r = {expression}; out = r;"),
        2 => format!("let r = 0; r = {expression}; out = r;"),
        3 => format!("if {expression} {{ out = 1; }} else {{ out = 0; }}"),
        _ => format!("let r = 7; while !({expression}) {{ r = 0; break; }} out = r != 0;"),
    };
    format!(
        "shared {}, out; fn twice(e) {{ let copy = e; return copy + e; }}
         thread t {{ let steady = 2; let changing = 4; changing = changing + 1; {body} }}",
        shared.join(", ")
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expressions_mean_what_they_say(tree in tree(), setting in 0..5_usize) {
        let source = program(&text(&tree), setting);
        let compiled = weak::compile(&SourceFile::new("test.weak", source.clone()));
        let compiled = compiled.unwrap_or_else(|errors| panic!("{source}\n{errors:?}"));
        let mut loads = Vec::new();
        let value = evaluate(&tree, &mut loads);
        let expected = if setting >= 3 { value.map(|value| i64::from(value != 0)) } else { value };
        prop_assert_eq!(run(&compiled.program), (expected, loads), "{}\n{}", source, compiled.program);
    }
}

#[test]
fn operators_bind_as_in_rust() {
    let cases = [
        ("1 + 2 * 3", 7),
        ("7 - 2 - 1", 4),
        ("2 * 7 / 3 % 3", 1),
        ("1 << 2 + 1", 8),
        ("4 | 2 ^ 3 & 2", 4),
        ("4 & 6 == 4", i64::from((4 & 6) == 4)),
        ("1 + 1 == 2 && 3 < 2 || 1 == 1", 1),
        ("0 && 0 || 1", 1),
        ("1 || 0 && 0", 1),
        ("!0 + 1", 2),
        ("-2 * -3", 6),
        ("- - 2", 2),
        ("!!5", 1),
        ("-9223372036854775808 + 1", i64::MIN + 1),
        ("0x10 + 0b11 + 1_000", 1019),
        ("true + true - false", 2),
    ];
    for (expression, value) in cases {
        let compiled = weak::compile(&SourceFile::new("test.weak", program(expression, 0))).unwrap();
        assert_eq!(run(&compiled.program).0, Some(value), "{expression}");
    }
}
