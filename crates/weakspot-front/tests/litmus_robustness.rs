//! No text makes the litmus reader panic, hang or run out of stack, and whatever it refuses it refuses with a place
//! inside the text.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use weakspot_front::litmus;
use weakspot_model::ids::Pc;
use weakspot_model::ir::{Instr, Thread};
use weakspot_model::source::{SourceFile, Span};

const SEED: &str = "X86 seed (Tag) \"doc\"
Key=Value
{ x=1; [y]=2; int z=-3; 0:EAX=1; P1:EBX = 0x2; };
 P0                | P1                  | P2          ;
 MOV [x],$1        | LOCK CMPXCHG [x],EBX | mov ecx,[x] ;
 MFENCE (* c *)    | JNE out             | XCHG [y],ECX ;
 L: DEC EAX        | LOCK; INC [y]       | SETE DL     ;
 JNZ L             | out: SUB EBX,[z]    | CMP ECX,$1  ;
 MOV EBX,[y]       | JA out              |             ;
locations [x; 0:EAX; int z;]
~exists (0:EBX=0 /\\ (1:EAX=1 \\/ ~([x]=2)) /\\ true);
<< show 0 >>
";

/// Pieces of litmus tests, right and wrong.
const PIECES: [&str; 60] = [
    "X86 ",
    "t",
    "{",
    "}",
    ";",
    "|",
    "\n",
    " ",
    "P0",
    "P1",
    "P9",
    "MOV ",
    "XCHG ",
    "LOCK ",
    "LOCK;",
    "CMPXCHG ",
    "XADD ",
    "INC ",
    "JNE ",
    "JMP ",
    "L0",
    "L0:",
    "CMP ",
    "SETE ",
    "CMOVE ",
    "MFENCE",
    "EAX",
    "AL",
    "rax",
    "%eax",
    "[x]",
    "[y",
    "(x)",
    "(*",
    "*)",
    ",",
    "$1",
    "-",
    "0x",
    "99999999999999999999",
    "exists ",
    "~",
    "forall ",
    "final ",
    "with ",
    "not ",
    "filter ",
    "locations [",
    "]",
    "(",
    ")",
    "/\\",
    "\\/",
    "=",
    "0:EAX",
    "5:EAX",
    "<<",
    ">>",
    "\"",
    "é",
];

/// Reads a text and checks what every result promises.
fn check(text: &str) {
    let source = SourceFile::new("fuzz", text);
    match litmus::parse(&source) {
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            for diagnostic in diagnostics {
                check_span(text, diagnostic.span);
                diagnostic.related.iter().for_each(|(span, _)| check_span(text, *span));
                assert!(diagnostic.help.is_some(), "no hint: {diagnostic:?}");
            }
        }
        Ok(test) => {
            test.program.threads.iter().chain(&test.program.final_block).for_each(check_thread);
            test.program.sites.iter().for_each(|site| check_span(text, site.span));
            for observable in litmus::all_observables(&test) {
                assert!(!litmus::observable_name(&test, observable).is_empty());
            }
        }
    }
}

fn check_span(text: &str, span: Span) {
    assert!(span.start <= span.end, "{span:?}");
    assert!(text.get(span.range()).is_some(), "{span:?} is not inside the text, or splits a character");
}

fn check_thread(thread: &Thread) {
    assert_eq!(thread.code.len(), thread.sites.len());
    assert_eq!(thread.code.len(), thread.critical.len());
    assert_eq!(thread.code.last(), Some(&Instr::End));
    let inside = |pc: Pc| assert!(pc.index() < thread.code.len());
    for instr in &thread.code {
        match *instr {
            Instr::Jump { target } => inside(target),
            Instr::Branch { then, otherwise, .. } => {
                inside(then);
                inside(otherwise);
            }
            _ => {}
        }
    }
}

#[test]
fn the_seed_is_a_right_test() {
    let text =
        SEED.replace(" JA out              |", " JE out              |").replace(" SETE DL     ;", " MOV EDX,ECX ;");
    assert!(litmus::parse(&SourceFile::new("seed", text)).is_ok());
}

#[test]
fn large_and_deep_texts_are_refused_in_good_time() {
    let head = "X86 t\n{ }\n P0 ;\n";
    let many = |piece: &str, count: usize| piece.repeat(count);
    check(&format!("{head}exists {}x=1", many("(", 100_000)));
    check(&format!("{head}exists {}x=1", many("~", 100_000)));
    check(&format!("{head}exists {}x=1", many("not ", 100_000)));
    check(&format!("{head}exists (x=0{})", many(" /\\ x=1", 50_000)));
    check(&format!("{head}{}", many(" MOV EAX,[x] ;\n", 50_000)));
    check(&format!("{head}{}", many("FOO ;\n", 50_000)));
    check(&format!("{head}{} ;\n", many("a:", 50_000)));
    check(&format!("{head}{}", many("(*", 100_000)));
    check(&format!("X86 t\n{{ }}\n{};\n", many("P0 | ", 50_000)));
    check(&format!("{head}{} ;\n", many("A", 1_000_000)));
    check(&many("X", 5 << 20));
    let locations: String = (0..20_000).map(|n| format!("v{n};")).collect::<Vec<_>>().concat();
    check(&format!("X86 t\n{{ {locations} }}\n P0 ;\n"));
    check(&format!("{head}locations [{locations}]\n"));
    let labels = (0..20_000).map(|n| format!("l{n}: JMP l{n} ;\n")).collect::<Vec<_>>().concat();
    check(&format!("{head}{labels}"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_characters(text in any::<String>()) {
        check(&text);
        check(&format!("X86 t\n{{ {text} }}\n P0 ;\n"));
        check(&format!("X86 t\n{{ }}\n P0 ;\n {text} ;\n"));
        check(&format!("X86 t\n{{ }}\n P0 ;\n MOV EAX,[x] ;\nexists {text}"));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn token_soup(pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..60), headed in any::<bool>()) {
        let soup = pieces.concat();
        if headed {
            check(&format!("X86 t\n{{ }}\n P0 | P1 ;\n MOV EAX,[x] | ;\n{soup}"));
        } else {
            check(&soup);
        }
    }

    #[test]
    fn mutated_tests(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, prop::sample::select(PIECES.to_vec())), 1..6),
    ) {
        let mut text: Vec<char> = SEED.chars().collect();
        for (at, length, piece) in cuts {
            let start = at.index(text.len() + 1);
            let end = (start + length).min(text.len());
            text.splice(start..end, piece.chars());
        }
        check(&text.into_iter().collect::<String>());
    }

    #[test]
    fn truncated_tests(at in 0..SEED.len()) {
        check(&SEED[..at]);
        check(&SEED[at..]);
    }
}
