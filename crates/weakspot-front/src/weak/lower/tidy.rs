//! From labels to instruction numbers: jumps to jumps go straight to the end, jumps to the next instruction vanish,
//! and so does what nothing reaches any more.

use weakspot_model::ids::{Pc, Site};
use weakspot_model::ir::Instr;

use super::emit::Emitter;

/// Finished code, its places, and whether each instruction is inside a `critical` block.
pub(super) type Code = (Vec<Instr>, Vec<Site>, Vec<bool>);

/// Finishes the code of one thread. The last instruction is its `End`, which stays even if nothing reaches it.
pub(super) fn tidy(emitter: Emitter) -> Code {
    let Emitter { mut code, sites, critical, targets, .. } = emitter;
    // labels of code that was never written, for want of space, lead to the end
    let end = code.len().saturating_sub(1) as u32;
    map_targets(&mut code, |label| targets[label].min(end));
    thread_jumps(&mut code);
    for instr in &mut code {
        if let Instr::Branch { then, otherwise, .. } = *instr
            && then == otherwise
        {
            *instr = Instr::Jump { target: then };
        }
    }
    thread_jumps(&mut code);
    let mut kept = reached(&code);
    if let Some(last) = kept.last_mut() {
        *last = true;
    }
    drop_jumps_to_next(&code, &mut kept);
    compact(code, sites, critical, &kept)
}

/// Replaces every target.
fn map_targets(code: &mut [Instr], new: impl Fn(usize) -> u32) {
    for instr in code {
        match instr {
            Instr::Jump { target } => *target = Pc(new(target.index())),
            Instr::Branch { then, otherwise, .. } => {
                *then = Pc(new(then.index()));
                *otherwise = Pc(new(otherwise.index()));
            }
            _ => {}
        }
    }
}

/// Lets every jump and branch go where the jumps at its target would lead. In a circle of jumps all go to one of them.
fn thread_jumps(code: &mut [Instr]) {
    const UNKNOWN: u32 = u32::MAX;
    const ON_PATH: u32 = u32::MAX - 1;
    let mut destination = vec![UNKNOWN; code.len()];
    let mut path = Vec::new();
    for start in 0..code.len() {
        let mut at = start;
        let found = loop {
            match (destination[at], code[at]) {
                (UNKNOWN, Instr::Jump { target }) => {
                    destination[at] = ON_PATH;
                    path.push(at);
                    at = target.index();
                }
                (UNKNOWN | ON_PATH, _) => break at as u32,
                (known, _) => break known,
            }
        };
        destination[at] = found;
        for step in path.drain(..) {
            destination[step] = found;
        }
    }
    map_targets(code, |target| destination[target]);
}

/// Which instructions can be reached from the first.
fn reached(code: &[Instr]) -> Vec<bool> {
    let mut reached = vec![false; code.len()];
    let mut pending = vec![0_usize];
    while let Some(pc) = pending.pop() {
        if pc >= code.len() || std::mem::replace(&mut reached[pc], true) {
            continue;
        }
        match code[pc] {
            Instr::Jump { target } => pending.push(target.index()),
            Instr::Branch { then, otherwise, .. } => pending.extend([then.index(), otherwise.index()]),
            Instr::End => {}
            _ => pending.push(pc + 1),
        }
    }
    reached
}

fn drop_jumps_to_next(code: &[Instr], kept: &mut [bool]) {
    let mut next = None;
    for pc in (0..code.len()).rev() {
        match code[pc] {
            _ if !kept[pc] => {}
            Instr::Jump { target } if Some(target.index()) == next => kept[pc] = false,
            _ => next = Some(pc),
        }
    }
}

fn compact(mut code: Vec<Instr>, mut sites: Vec<Site>, mut critical: Vec<bool>, kept: &[bool]) -> Code {
    // the number of a dropped instruction becomes that of the next one that stays
    let mut numbers = Vec::with_capacity(kept.len());
    let mut count = 0_u32;
    for &keep in kept {
        numbers.push(count);
        count += u32::from(keep);
    }
    map_targets(&mut code, |target| numbers[target]);
    retain(&mut code, kept);
    retain(&mut sites, kept);
    retain(&mut critical, kept);
    (code, sites, critical)
}

fn retain<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut keep = kept.iter();
    list.retain(|_| keep.next().copied().unwrap_or(true));
}
