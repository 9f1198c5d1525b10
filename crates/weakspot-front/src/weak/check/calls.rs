//! The call graph: functions are inlined, so they may not call themselves.

use weakspot_model::source::Diagnostic;

use super::{Body, Call, Checker};

impl Checker<'_> {
    /// Checks all calls.
    pub(super) fn calls(&mut self) {
        let graph = CallGraph::new(&self.calls, self.ast.functions.len());
        if let Some(cycle) = graph.find_cycle() {
            self.report_cycle(&cycle);
        }
    }

    fn report_cycle(&mut self, cycle: &[Call]) {
        let Some(last) = cycle.last() else { return };
        let span = last.span;
        self.error("recursion", span, |checker| {
            let name = |function: u32| checker.text(checker.ast.functions[function as usize].ident.name);
            let mut path: Vec<String> = cycle
                .iter()
                .take(8)
                .map(|call| match call.caller {
                    Body::Function(caller) => format!("`{}`", name(caller)),
                    _ => String::new(),
                })
                .collect();
            if cycle.len() > 8 {
                path.push("…".to_owned());
            }
            path.push(format!("`{}`", name(last.callee)));
            let message = match cycle.len() {
                1 => format!("function {} calls itself", path[0]),
                _ => format!("functions call each other in a circle: {}", path.join(" calls ")),
            };
            let diagnostic = Diagnostic::error("", message, span);
            let others = cycle[..cycle.len() - 1].iter().take(4);
            others
                .fold(diagnostic, |diagnostic, call| diagnostic.related(call.span, "a call on the way"))
                .help("functions are inlined, so they cannot be recursive; use a loop")
        });
    }
}

/// Calls between functions, by caller.
struct CallGraph {
    /// For each function: where its calls begin in `calls`; one more entry for the end.
    starts: Vec<usize>,
    calls: Vec<Call>,
}

impl CallGraph {
    fn new(calls: &[Call], functions: usize) -> Self {
        let caller = |call: &Call| match call.caller {
            Body::Function(caller) => Some(caller),
            _ => None,
        };
        let mut sorted: Vec<Call> = calls.iter().filter(|call| caller(call).is_some()).copied().collect();
        sorted.sort_by_key(|call| (caller(call), call.span));
        let mut starts = vec![0; functions + 1];
        for call in &sorted {
            if let Some(caller) = caller(call) {
                starts[caller as usize + 1] += 1;
            }
        }
        for function in 0..functions {
            starts[function + 1] += starts[function];
        }
        Self { starts, calls: sorted }
    }

    fn callees(&self, function: u32) -> &[Call] {
        &self.calls[self.starts[function as usize]..self.starts[function as usize + 1]]
    }

    /// A cycle of calls, found by depth-first search with an explicit stack.
    fn find_cycle(&self) -> Option<Vec<Call>> {
        let functions = self.starts.len() - 1;
        let mut finished = vec![false; functions];
        let mut on_path = vec![false; functions];
        for root in 0..functions as u32 {
            // the path: each function with the number of its calls already followed
            let mut path: Vec<(u32, usize)> = vec![(root, 0)];
            while let Some(&mut (function, ref mut followed)) = path.last_mut() {
                if finished[function as usize] {
                    path.pop();
                    continue;
                }
                on_path[function as usize] = true;
                let Some(call) = self.callees(function).get(*followed) else {
                    finished[function as usize] = true;
                    on_path[function as usize] = false;
                    path.pop();
                    continue;
                };
                *followed += 1;
                if on_path[call.callee as usize] {
                    return Some(self.cycle_of(&path, call.callee));
                }
                path.push((call.callee, 0));
            }
        }
        None
    }

    /// The calls of a path from where it met `start` first.
    fn cycle_of(&self, path: &[(u32, usize)], start: u32) -> Vec<Call> {
        let first = path.iter().position(|&(function, _)| function == start).unwrap_or(0);
        path[first..].iter().map(|&(function, followed)| self.callees(function)[followed - 1]).collect()
    }
}
