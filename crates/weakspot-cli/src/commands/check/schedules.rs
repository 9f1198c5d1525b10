//! Schedules on the command line: the line that runs a finding again, and what is said about a schedule that does not
//! fit the program.

use weakspot_check::{Movable, NotPossible, Schedule, ScheduleError};
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::Program;
use weakspot_model::machine::Action;

use crate::args::{CheckArgs, Model};
use crate::exit::Failure;

/// The command that leads to a finding again, ready to be pasted. It asks for no monitor, so that all look at the schedule:
/// it may show a finding in a form that another monitor than the one that found it recognises.
pub fn command(args: &CheckArgs, schedule: &Schedule) -> String {
    let mut command = format!("weakspot check {}", quoted(&args.file.display().to_string()));
    match args.model {
        Model::Sc => command.push_str(" --model sc"),
        Model::Tso => {}
        Model::Pso => command.push_str(" --model pso"),
    }
    for (given, option) in [(args.allow_deadlock, "--allow-deadlock"), (args.spurious_wakeups, "--spurious-wakeups")] {
        if given {
            command.push(' ');
            command.push_str(option);
        }
    }
    format!("{command} --replay {}", quoted(&schedule.to_string()))
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A schedule from its text.
pub fn parse(text: &str) -> Result<Schedule, Failure> {
    text.parse().map_err(|error: ScheduleError| Failure::Usage {
        message: error.to_string(),
        help: "a schedule looks like 0x3.1=2.0: three steps of thread 0, one of thread 1 that chooses 2, one of thread 0; \
               `weakspot check` prints one with every finding"
            .to_owned(),
    })
}

/// What is wrong with a schedule, and what would have been possible.
pub fn refusal(program: &Program, args: &CheckArgs, schedule: &Schedule, error: &NotPossible) -> Failure {
    let NotPossible { step, action, ref possible, ref over } = *error;
    let thread = action.thread();
    let done = step - 1;
    let name = |thread: ThreadId| format!("thread {} (`{}`)", thread.0, program.threads[thread.index()].name);
    let (why, mut help) = if thread.index() >= program.threads.len() {
        let threads = program.thread_ids().map(name).collect::<Vec<_>>().join(", ");
        (format!("there is no thread {}", thread.0), format!("the program has {threads}"))
    } else if possible.is_empty() {
        let problem = over.as_ref().map_or(String::new(), |problem| format!(" ({})", problem.message));
        let why = format!("the execution is over after {done} {}{problem}", steps(done));
        (why, format!("these steps are `{}`", Schedule::of(&schedule.actions()[..done])))
    } else {
        let why = match (action, possible.iter().find(|movable| movable.thread == thread)) {
            (Action::Step { choice, .. }, Some(_)) => format!("{} cannot choose {choice} here", name(thread)),
            (Action::Wake { .. }, _) => format!("{} cannot wake up here", name(thread)),
            _ => format!("{} cannot move here", name(thread)),
        };
        let ways = possible.iter().map(|movable| way(program, &name(movable.thread), movable)).collect::<Vec<_>>();
        (why, format!("after {done} {} {}", steps(done), ways.join("; ")))
    };
    if matches!(action, Action::Wake { .. }) && !args.spurious_wakeups {
        help = format!("to wake up without a notification takes `--spurious-wakeups`; {help}");
    }
    let message = format!("step {step} of the schedule is not possible in `{}`: {why}", program.source.name);
    Failure::Usage { message, help }
}

fn steps(count: usize) -> &'static str {
    if count == 1 { "step" } else { "steps" }
}

/// What a thread could do: where, and with which choices.
fn way(program: &Program, name: &str, movable: &Movable) -> String {
    let info = &program.sites[movable.site.index()];
    let text = program.source.text.get(info.span.range()).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let place = format!("at {}:{} (`{text}`)", info.position.line, info.position.column);
    match movable.choices.as_slice() {
        [] => format!("{name} can wake up unasked {place}"),
        [0] => format!("{name} can go on {place}"),
        [only] => format!("{name} can go on with ={only} {place}"),
        [first, .., last] => format!("{name} can go on with ={first} to ={last} {place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_or_change_them() {
        assert_eq!(quoted("a/b-c.weak"), "a/b-c.weak");
        assert_eq!(quoted("my file"), "'my file'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$x"), "'$x'");
        assert_eq!(quoted(""), "''");
    }
}
