//! Programs of the language as live code: their threads run on the mirrors of the standard library.

use std::sync::Arc as Shared;

use weakspot::sync::Arc;
use weakspot::sync::atomic::{AtomicI64, Ordering, fence};
use weakspot::{hint, rt, thread};
use weakspot_model::ids::Pc;
use weakspot_model::ir::{FenceKind, Instr, Program, RmwOp};
use weakspot_model::local::{self, Advance, Pause};

/// What the threads of a program share.
type Cells = Arc<Vec<AtomicI64>>;

fn atomic(cell: &AtomicI64, op: RmwOp<i64>, drains_all: bool) -> i64 {
    let order = if drains_all { Ordering::SeqCst } else { Ordering::Relaxed };
    match op {
        RmwOp::Cas { old, new } => i64::from(cell.compare_exchange(old, new, order, Ordering::Relaxed).is_ok()),
        RmwOp::CompareExchange { old, new } => {
            cell.compare_exchange(old, new, order, Ordering::Relaxed).unwrap_or_else(|found| found)
        }
        RmwOp::Swap(value) => cell.swap(value, order),
        RmwOp::Add(delta) => cell.fetch_add(delta, order),
        RmwOp::Or(bits) => cell.fetch_or(bits, order),
        RmwOp::And(bits) => cell.fetch_and(bits, order),
    }
}

/// Ends a round of a loop. Some loops share a marker.
fn end_round(pc: Pc) {
    match pc.0 % 3 {
        0 => hint::spin_loop(),
        1 => thread::yield_now(),
        _ => hint::spin_loop(),
    }
}

/// Runs one thread of a program with the real primitives: its registers at the end.
fn run_thread(program: &Program, number: usize, cells: &Cells) -> Vec<i64> {
    let code = &program.threads[number];
    let (mut state, mut advance) = local::start(code, &program.locations);
    loop {
        let Ok(Advance::Paused { pause, jumped_back }) = advance else { panic!("an assertion of the program fails") };
        if jumped_back {
            end_round(state.pc);
        }
        let result = match pause {
            Pause::Load { loc } => cells[loc.0 as usize].load(Ordering::Relaxed),
            Pause::Store { loc, value } => {
                cells[loc.0 as usize].store(value, Ordering::Relaxed);
                0
            }
            Pause::Rmw { loc, op, drains_all } => atomic(&cells[loc.0 as usize], op, drains_all),
            Pause::Fence(FenceKind::StoreStore) => {
                fence(Ordering::Release);
                0
            }
            Pause::Fence(_) => {
                fence(Ordering::SeqCst);
                0
            }
            Pause::Choose { lo, hi } => lo + i64::from(rt::choose((hi - lo + 1) as u32)),
            _ => return state.registers,
        };
        advance = local::resume(code, &program.locations, &mut state, result);
    }
}

/// A program of straight lines as C11 has it: an atomic that no store of its thread comes before since the last fence waits for
/// all stores. That is so for live code (a fence with `Release` and a relaxed atomic publish), and not in the language.
#[allow(dead_code, reason = "not all tests have such programs")]
pub fn as_in_c11(mut program: Program) -> Program {
    for thread in &mut program.threads {
        let mut has_stored = false;
        for instr in &mut thread.code {
            match instr {
                Instr::Store { .. } => has_stored = true,
                Instr::Fence(_) => has_stored = false,
                Instr::Rmw { drains_all, .. } => *drains_all |= !has_stored,
                _ => {}
            }
        }
    }
    program
}

/// Runs a program: what its cells hold at the end, and its registers.
pub fn run(program: &Shared<Program>) -> (Vec<i64>, Vec<Vec<i64>>) {
    let cells: Cells = Arc::new(program.locations.iter().map(|location| AtomicI64::new(location.init)).collect());
    let threads: Vec<_> = (0..program.threads.len())
        .map(|number| {
            let (program, cells) = (program.clone(), cells.clone());
            thread::spawn(move || run_thread(&program, number, &cells))
        })
        .collect();
    let registers: Vec<Vec<i64>> =
        threads.into_iter().map(|thread| thread.join().expect("a thread that fails ends the model")).collect();
    run_final(program, &cells, &registers);
    (cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect(), registers)
}

/// Runs the `final` block of a program.
fn run_final(program: &Program, cells: &Cells, registers: &[Vec<i64>]) {
    let Some(block) = &program.final_block else { return };
    let (mut state, mut advance) = local::start(block, &program.locations);
    loop {
        let Ok(Advance::Paused { pause, .. }) = advance else { panic!("the final assertion fails") };
        let result = match pause {
            Pause::Load { loc } => cells[loc.0 as usize].load(Ordering::Relaxed),
            Pause::ThreadRegister { thread, register } => registers[thread.index()][register.index()],
            _ => return,
        };
        advance = local::resume(block, &program.locations, &mut state, result);
    }
}
