//! What instructions mean: one thread runs on the reference machine and leaves the values the processor would leave.

#![allow(clippy::unwrap_used)]

mod support;

use proptest::prelude::*;
use weakspot_front::litmus;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::{FenceKind, Instr};
use weakspot_model::litmus::{Condition, LitmusTest, Quantifier};

/// A test with one thread.
fn one_thread(initial: &str, code: &[&str]) -> LitmusTest {
    support::parse("one", &format!("X86 one\n{{ {initial} }}\n P0 ;\n {} ;\n", code.join(" ;\n ")))
}

/// Runs one thread and shows every register it writes and every location it names.
fn run(initial: &str, code: &[&str]) -> String {
    let test = one_thread(initial, code);
    let all = litmus::all_observables(&test);
    let states = MODELS_AGREE.map(|model| support::explore(&test, model, &all).states);
    assert!(states.iter().all(|other| *other == states[0]), "one thread, one result");
    support::state_text(&test, &all, &states[0])
}

const MODELS_AGREE: [MemoryModel; 3] = support::MODELS;

#[test]
fn moves() {
    assert_eq!(
        run("x=3", &["MOV EAX,[x]", "mov ebx , EAX", "MOV [y],$-2", "MOV ECX,0x10"]),
        "0:EAX=3,0:ECX=16,0:ebx=3,x=3,y=-2"
    );
    assert_eq!(run("x=3", &["mov eax, dword ptr [x]", "MOV DWORD PTR [y],eax"]), "0:eax=3,x=3,y=3");
}

#[test]
fn exchanges() {
    assert_eq!(run("x=3; 0:EAX=5", &["XCHG [x],EAX"]), "0:EAX=3,x=5");
    assert_eq!(run("x=3; 0:EAX=5", &["XCHG EAX,[x]"]), "0:EAX=3,x=5");
    assert_eq!(run("x=3; 0:EAX=5", &["LOCK XCHG EAX,[x]"]), "0:EAX=3,x=5");
    assert_eq!(run("0:EAX=5; 0:EBX=6", &["XCHG EAX,EBX"]), "0:EAX=6,0:EBX=5");
    assert_eq!(run("0:EAX=5", &["XCHG EAX,EAX"]), "0:EAX=5");
}

#[test]
fn arithmetic_on_registers_and_memory() {
    assert_eq!(run("x=12; 0:EAX=10", &["ADD EAX,[x]", "SUB [x],$2", "AND EAX,$7", "OR [x],EAX"]), "0:EAX=6,x=14");
    assert_eq!(run("x=12; 0:EAX=10", &["XOR EAX,EAX", "INC [x]", "DEC EAX", "NEG EAX", "NOT [x]"]), "0:EAX=1,x=-14");
}

#[test]
fn locked_arithmetic_gives_the_same_values_as_plain() {
    for code in ["ADD [x],$5", "SUB [x],$5", "SUB [x],EBX", "AND [x],$6", "OR [x],EBX", "INC [x]", "DEC [x]"] {
        let plain = run("x=12; 0:EBX=3", &[code]);
        assert_eq!(run("x=12; 0:EBX=3", &[&format!("LOCK {code}")]), plain, "{code}");
        assert_eq!(run("x=12; 0:EBX=3", &[&format!("lock; {code}")]), plain, "{code}");
    }
}

#[test]
fn exchange_and_add() {
    for prefix in ["", "LOCK "] {
        assert_eq!(run("x=12; 0:EBX=3", &[&format!("{prefix}XADD [x],EBX")]), "0:EBX=12,x=15");
    }
    assert_eq!(run("0:EAX=12; 0:EBX=3", &["XADD EAX,EBX"]), "0:EAX=15,0:EBX=12");
    assert_eq!(run("0:EAX=12", &["XADD EAX,EAX"]), "0:EAX=24");
}

#[test]
fn compare_and_exchange() {
    for prefix in ["", "LOCK "] {
        let code = format!("{prefix}CMPXCHG [x],ECX");
        assert_eq!(run("x=1; 0:EAX=1; 0:ECX=9", &[&code]), "0:EAX=1,x=9", "swaps");
        assert_eq!(run("x=2; 0:EAX=1; 0:ECX=9", &[&code]), "0:EAX=2,x=2", "fails");
        assert_eq!(run("x=1; 0:EAX=1; 0:ECX=9", &[&code, "SETE BL"]), "0:BL=1,0:EAX=1,x=9");
        assert_eq!(run("x=2; 0:EAX=1; 0:ECX=9", &[&code, "SETE BL"]), "0:BL=0,0:EAX=2,x=2");
    }
    assert_eq!(run("0:EAX=1; 0:EBX=1; 0:ECX=9", &["CMPXCHG EBX,ECX"]), "0:EAX=1,0:EBX=9");
    assert_eq!(run("0:EAX=1; 0:EBX=2; 0:ECX=9", &["CMPXCHG EBX,ECX"]), "0:EAX=2,0:EBX=2");
    assert_eq!(run("x=1; 0:RAX=1; 0:RCX=9", &["LOCK CMPXCHG [x],RCX"]), "0:RAX=1,x=9");
    assert_eq!(run("x=1; 0:AL=1; 0:CL=9", &["LOCK CMPXCHG [x],CL"]), "0:AL=1,x=9");
}

#[test]
fn jumps_and_labels() {
    let code = ["MOV EAX,$3", "L0: INC EBX", "DEC EAX", "JNZ L0", "JMP end", "MOV EBX,$99", "end:"];
    assert_eq!(run("", &code), "0:EAX=0,0:EBX=3");
    assert_eq!(run("", &["a: b:", "CMP EAX,$0", "JE c", "JMP a", "c: MOV [x],$1"]), "x=1");
}

#[test]
fn conditional_moves_read_memory_either_way() {
    assert_eq!(run("x=7; 0:EAX=1", &["CMP EAX,$1", "CMOVE EBX,[x]", "CMOVNE ECX,[x]"]), "0:EBX=7,0:ECX=0,x=7");
    let test = one_thread("", &["CMP EAX,$1", "CMOVE EBX,[x]"]);
    let loads = test.program.threads[0].code.iter().filter(|instr| matches!(instr, Instr::Load { .. })).count();
    assert_eq!(loads, 1);
}

#[test]
fn att_syntax_has_its_operands_turned_round() {
    let code = ["movl $1,(x)", "movl (x),%eax", "addl $4,%eax", "xchgl %eax,(y)", "movq %rax,%rbx", "lock incl (x)"];
    assert_eq!(run("y=8", &code), "0:eax=8,0:rbx=8,x=2,y=5");
    assert_eq!(run("", &["cmpl $1,%eax", "jl L", "movl $1,(x)", "L:"]), "x=0");
}

#[test]
fn fences_are_events_and_load_fences_are_nothing() {
    let code = &one_thread("", &["MFENCE", "SFENCE", "LFENCE", "NOP", "pause"]).program.threads[0].code;
    assert_eq!(code[..], [Instr::Fence(FenceKind::Full), Instr::Fence(FenceKind::StoreStore), Instr::End]);
}

#[test]
fn locked_instructions_and_exchanges_drain_the_whole_buffer() {
    let code = ["XCHG [x],EAX", "LOCK INC [x]", "LOCK XADD [x],EAX", "LOCK CMPXCHG [x],EAX", "LOCK AND [x],$1"];
    let test = one_thread("", &code);
    let events: Vec<&Instr> = test.program.threads[0].code.iter().filter(|instr| instr.is_event()).collect();
    assert_eq!(events.len(), code.len());
    assert!(events.iter().all(|instr| matches!(instr, Instr::Rmw { drains_all: true, .. })));
}

#[test]
fn unlocked_read_modify_write_is_a_load_and_a_store() {
    let events = |code| {
        let test = one_thread("", &[code]);
        test.program.threads[0].code.iter().filter(|instr| instr.is_event()).count()
    };
    for code in ["INC [x]", "ADD [x],EAX", "NEG [x]", "NOT [x]", "XADD [x],EAX", "XOR [x],$1"] {
        assert_eq!(events(code), 2, "{code}");
    }
}

#[test]
fn tabs_line_ends_and_byte_order_marks_do_not_matter() {
    let unix = "X86 t\n(* c *) {x=1}\n P0 | P1 ;\n MOV EAX,[x] | MFENCE ;\n| MOV EBX,[y] ;\nexists (0:EAX=1);";
    let tabs = unix.replace(' ', "\t");
    for text in [unix.replace('\n', "\r\n"), format!("\u{feff}{unix}"), tabs, unix.replace(" | ", "|")] {
        let (one, other) = (support::parse("t", unix), support::parse("t", &text));
        assert_eq!(one.condition_text, other.condition_text);
        assert_eq!(one.name, other.name);
        let code = |test: &LitmusTest| test.program.threads.iter().map(|t| t.code.clone()).collect::<Vec<_>>();
        assert_eq!(code(&one), code(&other));
    }
}

#[test]
fn rows_may_break_next_to_their_bars() {
    let test = support::parse("t", "X86 t\n{}\n P0 |\n P1\n ;\n MOV EAX,[x]\n | (* none *)\n ;\n");
    assert_eq!(test.program.threads.len(), 2);
    assert_eq!(test.program.threads[0].code.len(), 2);
}

#[test]
fn every_instruction_has_the_place_of_its_text() {
    let test = support::parse("t", "X86 t\n{ 0:EBX=4; }\n P0 | P1 ;\n MOV EAX,[x] | L: lock inc [x] ;\n");
    let place = |thread: usize, pc: usize| {
        let thread = &test.program.threads[thread];
        let site = &test.program.sites[thread.sites[pc].index()];
        let text = &test.program.source.text[site.span.range()];
        (site.position.line, site.position.column, text, site.label.as_deref())
    };
    assert_eq!(place(0, 0), (2, 3, "0:EBX=4", None));
    assert_eq!(place(0, 1), (4, 2, "MOV EAX,[x]", None));
    assert_eq!(place(1, 0), (4, 19, "lock inc [x]", Some("L")));
}

#[test]
fn and_binds_tighter_than_or_and_text_is_printed_as_herd_does() {
    let text = |condition: &str| {
        support::parse("t", &format!("X86 t\n{{}}\n P0 ;\n MOV EAX,[x] ;\n{condition}")).condition_text
    };
    assert_eq!(text("exists x=1 /\\ 0:EAX=2 \\/ [y]=-1"), "exists ([x]=1 /\\ 0:EAX=2 \\/ [y]=-1)");
    assert_eq!(text("~ exists (x=1 /\\ (P0:EAX = 2 \\/ y=0x10));"), "~exists ([x]=1 /\\ (0:EAX=2 \\/ [y]=16))");
    assert_eq!(text("not exists (not (x=1) /\\ ~x==2)"), "~exists (not ([x]=1) /\\ not ([x]=2))");
    assert_eq!(text("forall (true)"), "forall (true)");
    assert_eq!(text("final (x=1); with tso: ~exists; default: exists;"), "exists ([x]=1)");
    assert_eq!(text(""), "forall (true)");
    assert_eq!(text("<< show 3 >>"), "forall (true)");
}

#[test]
fn the_final_block_fails_exactly_where_the_condition_is_a_surprise() {
    use weakspot_model::machine::{Machine, Rest};
    for (condition, quantifier, fails) in [
        ("exists (x=1 /\\ 0:EAX=1)", Quantifier::Exists, true),
        ("exists (x=1 /\\ 0:EAX=0)", Quantifier::Exists, false),
        ("~exists (x=2 \\/ ~(y=3))", Quantifier::NotExists, true),
        ("forall (x=1 /\\ (y=3 \\/ y=0))", Quantifier::Forall, false),
        ("forall (false)", Quantifier::Forall, true),
        ("exists (true)", Quantifier::Exists, true),
    ] {
        let test = support::parse("t", &format!("X86 t\n{{}}\n P0 ;\n MOV [x],$1 ;\n MOV EAX,[x] ;\n{condition}"));
        assert_eq!(test.quantifier, quantifier);
        let machine = Machine::new(&test.program, MemoryModel::Sc);
        let (mut state, _) = machine.start();
        while let Some(&action) = machine.enabled(&state).first() {
            machine.apply(&mut state, action);
        }
        assert_eq!(matches!(machine.rest(&state), Rest::Failed(_)), fails, "{condition}");
    }
}

#[test]
fn a_test_without_condition_observes_its_locations() {
    let test = support::parse(
        "t",
        "X86 t\n{ int x=1; uint64_t *p = 2; [z]=3; }\n P0 ;\n MOV EAX,[x] ;\nlocations [x; 0:EAX; int z;]\n",
    );
    let names: Vec<String> = test.observed.iter().map(|&o| litmus::observable_name(&test, o)).collect();
    assert_eq!(names, ["0:EAX", "x", "z"]);
    assert_eq!((test.quantifier, test.condition), (Quantifier::Forall, Condition::True));
    let initial: Vec<i64> = test.program.locations.iter().map(|location| location.init).collect();
    assert_eq!(initial, [1, 2, 3]);
}

/// The processor's flags after `left - right` or after a logical operation, computed bit by bit.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the processor's flags are bits")]
struct Flags {
    zero: bool,
    sign: bool,
    carry: bool,
    overflow: bool,
}

impl Flags {
    fn of_difference(left: i64, right: i64) -> Self {
        let (result, overflow) = left.overflowing_sub(right);
        Self { zero: result == 0, sign: result < 0, carry: (left as u64) < (right as u64), overflow }
    }

    fn of_logic(result: i64) -> Self {
        Self { zero: result == 0, sign: result < 0, carry: false, overflow: false }
    }

    /// The processor's definition of each condition.
    fn test(self, condition: &str) -> bool {
        match condition {
            "E" | "Z" => self.zero,
            "NE" | "NZ" => !self.zero,
            "L" => self.sign != self.overflow,
            "GE" => self.sign == self.overflow,
            "LE" => self.zero || self.sign != self.overflow,
            "G" => !self.zero && self.sign == self.overflow,
            "B" => self.carry,
            "AE" => !self.carry,
            "BE" => self.carry || self.zero,
            "A" => !self.carry && !self.zero,
            "S" => self.sign,
            "NS" => !self.sign,
            other => unreachable!("{other}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conditions_follow_the_flags_of_the_processor(
        left in -4_i64..5,
        right in -4_i64..5,
        operation in prop::sample::select(vec!["CMP", "SUB", "TEST", "AND", "OR", "XOR", "NEG"]),
        condition in prop::sample::select(vec!["E", "Z", "NE", "NZ", "L", "GE", "LE", "G", "B", "AE", "BE", "A", "S", "NS"]),
        locked in any::<bool>(),
    ) {
        let flags = match operation {
            "CMP" | "SUB" => Flags::of_difference(left, right),
            "TEST" | "AND" => Flags::of_logic(left & right),
            "OR" => Flags::of_logic(left | right),
            "XOR" => Flags::of_logic(left ^ right),
            _ => Flags::of_difference(0, left),
        };
        let prefix = if locked && ["SUB", "AND", "OR"].contains(&operation) { "LOCK " } else { "" };
        let instruction = if operation == "NEG" { "NEG [x]".to_owned() } else { format!("{prefix}{operation} [x],EBX") };
        let set = format!("SET{condition} CL");
        let jump = format!("J{condition} yes");
        let code = [instruction.as_str(), &set, &jump, "JMP no", "yes: MOV ESI,$1", "no:"];
        let test = one_thread(&format!("x={left}; 0:EBX={right}; 0:ESI=0"), &code);
        let shown = [support::register(&test, 0, "CL"), support::register(&test, 0, "ESI")];
        let states = support::explore(&test, MemoryModel::Tso, &shown).states;
        let expected = i64::from(flags.test(condition));
        prop_assert_eq!(states.into_iter().collect::<Vec<_>>(), vec![vec![expected, expected]]);
    }
}
