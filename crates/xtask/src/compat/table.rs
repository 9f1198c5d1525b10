//! What the command prints.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use super::Ran;
use super::build::Engine;
use super::measure::{Measure, Test, Verdict};
use super::suites::{LoomVersion, Suite};

/// How wide the names of tests are.
const NAME: usize = 58;

/// The suites with their flags.
pub fn list(out: &mut impl Write, suites: &[&Suite]) -> io::Result<()> {
    for suite in suites {
        let loom = match suite.loom {
            LoomVersion::Five => "loom 0.5",
            LoomVersion::Six => "loom 0.6",
            LoomVersion::Seven => "loom 0.7",
        };
        writeln!(out, "{:22}{loom}  {}", suite.name, words(suite).join(" "))?;
    }
    Ok(())
}

/// What to say to run a suite: variables, flags of the compiler and of cargo, and which tests.
fn words(suite: &Suite) -> Vec<String> {
    let mut words: Vec<_> = suite.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    words.extend(Some(suite.rustflags()).filter(|flags| !flags.is_empty()));
    if suite.release {
        words.push("--release".to_owned());
    }
    if !suite.default_features {
        words.push("--no-default-features".to_owned());
    }
    if !suite.features.is_empty() {
        words.push(format!("--features {}", suite.features));
    }
    words.extend(suite.targets.iter().map(|&target| target.to_owned()));
    words.extend(Some(suite.filter.to_owned()).filter(|filter| !filter.is_empty()));
    words
}

/// The head of a suite's table.
pub fn heading(out: &mut impl Write, suite: &Suite, engines: &[Engine]) -> io::Result<()> {
    writeln!(out, "\n{} {}", suite.name, suite.version)?;
    write!(out, "  {:NAME$}", "")?;
    for engine in engines {
        write!(out, "{:^33}", engine.name())?;
    }
    writeln!(out)?;
    out.flush()
}

/// One test.
pub fn row(out: &mut impl Write, test: &Test, measures: &[Measure]) -> io::Result<()> {
    write!(out, "  {:NAME$}", test.name)?;
    for measure in measures {
        let executions = executions(measure);
        write!(out, "{executions:>13} {:>7} {:>10} ", measure.verdict.word(), seconds(measure.elapsed))?;
    }
    writeln!(out)?;
    out.flush()
}

fn executions(measure: &Measure) -> String {
    match (measure.executions, measure.verdict) {
        (None, _) => "?".to_owned(),
        (Some(count), Verdict::OutOfTime) => format!("> {count}"),
        (Some(count), _) => count.to_string(),
    }
}

/// The tables of several suites as a page of documentation.
pub fn document(suites: &[Ran<'_>], limit: Duration, release: bool) -> String {
    let profile = if release { "with optimisation" } else { "without optimisation" };
    let mut page = format!(
        "# Published suites\n\nWritten by `cargo xtask compat … --document`. Every test ran in a process of its own, built \
         {profile}, with a limit of {} seconds. \"passed\": everything was explored; \"bounded\": a bound of the test itself \
         or a loop left something out; \"no end\": stopped at the limit. Executions of loom are those it had logged.\n",
        limit.as_secs()
    );
    for Ran { suite, rows } in suites {
        let _ = writeln!(page, "\n## {} {}\n", suite.name, suite.version);
        let engines = rows.first().map_or(0, |(_, measures)| measures.len());
        page.push_str("| test | weakspot: executions | verdict | time |");
        page.push_str(if engines > 1 { " loom: executions | verdict | time |\n" } else { "\n" });
        page.push_str("|---|---:|---|---:|");
        page.push_str(if engines > 1 { "---:|---|---:|\n" } else { "\n" });
        for (test, measures) in rows {
            let _ = write!(page, "| `{}` |", test.name);
            for measure in measures {
                let _ = write!(
                    page,
                    " {} | {} | {} |",
                    executions(measure),
                    measure.verdict.word(),
                    seconds(measure.elapsed)
                );
            }
            page.push('\n');
        }
    }
    page
}

/// How the tests of a suite went with each engine: how many passed, failed and did not end.
pub fn summary(out: &mut impl Write, rows: &[(Test, Vec<Measure>)]) -> io::Result<()> {
    write!(out, "  {:NAME$}", format!("{} tests", rows.len()))?;
    for engine in 0..rows.first().map_or(0, |(_, measures)| measures.len()) {
        let count = |verdict| rows.iter().filter(|(_, row)| row[engine].verdict == verdict).count();
        let passed = count(Verdict::Passed) + count(Verdict::Bounded);
        let (failed, open) = (count(Verdict::Failed), count(Verdict::OutOfTime));
        let time: Duration = rows.iter().map(|(_, row)| row[engine].elapsed).sum();
        let counts = format!("{passed}+ {failed}- {open}?");
        write!(out, "{counts:>21} {:>10} ", seconds(time))?;
    }
    writeln!(out)?;
    out.flush()
}

/// Lines that are shown of what cargo says.
const SHOWN: usize = 40;

/// The first error and what follows it; warnings may come before and after. The end if no line begins like an error.
fn first_errors(log: &str) -> Vec<&str> {
    let lines: Vec<_> = log.lines().collect();
    let end = lines.len().saturating_sub(SHOWN);
    let first = lines.iter().position(|line| line.starts_with("error")).unwrap_or(end);
    lines[first..].iter().take(SHOWN).copied().collect()
}

/// cargo could not build it.
pub fn not_built(out: &mut impl Write, engine: Engine, log: &str) -> io::Result<()> {
    writeln!(out, "  does not build with {}:", engine.name())?;
    for line in first_errors(log) {
        writeln!(out, "    {line}")?;
    }
    out.flush()
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{SHOWN, first_errors};

    #[test]
    fn errors_are_shown_rather_than_warnings() {
        let warnings = "warning: unused\n".repeat(SHOWN);
        let log = format!("{warnings}error[E0277]: no\n  --> here\n{warnings}");
        assert_eq!(first_errors(&log)[..2], ["error[E0277]: no", "  --> here"]);
        assert_eq!(first_errors(&log).len(), SHOWN);
        assert_eq!(first_errors(&warnings).len(), SHOWN);
        assert_eq!(first_errors("the end"), ["the end"]);
    }
}
