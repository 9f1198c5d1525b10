use weakspot::Builder;

/// shuttle's `check_random_with_seed(test, seed, iterations)`.
pub fn check_random(test: fn(), seed: u64, iterations: u64) {
    Builder { seed: Some(seed), max_executions: Some(iterations), ..Builder::new() }.model(test);
}

/// `check_dfs(test, max_iterations)`: with `None` it is `weakspot::model(test)`.
pub fn check_dfs(test: fn(), max_iterations: Option<u64>) {
    Builder { max_executions: max_iterations, ..Builder::new() }.model(test);
}

/// In place of `check_pct(test, iterations, depth)`: all schedules with `depth - 1` preemptions or fewer.
pub fn check_preemptions(test: fn(), depth: u32) {
    Builder { max_preemptions: Some(depth - 1), ..Builder::new() }.model(test);
}

/// `replay(test, schedule)`.
pub fn replay(test: fn(), schedule: &str) {
    Builder { replay: Some(schedule.to_owned()), ..Builder::new() }.model(test);
}
