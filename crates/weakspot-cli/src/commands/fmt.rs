//! `weakspot fmt`: the canonical form of programs.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use weakspot_front::weak;
use weakspot_model::source::SourceFile;
use weakspot_report::json;

use super::replacement::Replacement;
use crate::args::FmtArgs;
use crate::exit::{Exit, Failure};
use crate::input::{self, InputError};
use crate::output::Output;

/// A program and its canonical form.
struct Formatted<'a> {
    path: &'a Path,
    file: Arc<SourceFile>,
    text: String,
}

impl Formatted<'_> {
    fn changed(&self) -> bool {
        self.text != self.file.text
    }
}

/// Prints, checks or rewrites. All inputs are read before anything is written.
pub fn run(args: &FmtArgs, output: &Output) -> Result<Exit, Failure> {
    let (formatted, failures): (Vec<_>, Vec<_>) = args.files.iter().map(|path| format(path)).partition(Result::is_ok);
    if !failures.is_empty() {
        return Err(Failure::Several(failures.into_iter().filter_map(Result::err).collect()));
    }
    let formatted: Vec<Formatted<'_>> = formatted.into_iter().flatten().collect();
    if args.write {
        for program in formatted.iter().filter(|program| program.changed()) {
            write(program)?;
        }
    }
    print(args, &formatted, output)?;
    let differs = args.check && formatted.iter().any(Formatted::changed);
    Ok(if differs { Exit::Problem } else { Exit::Good })
}

fn format(path: &Path) -> Result<Formatted<'_>, Failure> {
    let file = input::read(path)?;
    if input::is_litmus(path) {
        return Err(InputError::NotWeak { name: file.name.clone() }.into());
    }
    let text = weak::format(&file).map_err(|diagnostics| Failure::Source(Arc::clone(&file), diagnostics))?;
    Ok(Formatted { path, file, text })
}

fn print(args: &FmtArgs, formatted: &[Formatted<'_>], output: &Output) -> Result<(), Failure> {
    let shows_text = !args.check && (!args.write || formatted.iter().any(|program| program.path == Path::new("-")));
    if output.json {
        let objects: Vec<_> = formatted.iter().map(|program| object(args, program, output)).collect();
        return match objects.as_slice() {
            [one] => output.object(one),
            several => output.object(&several),
        };
    }
    for program in formatted {
        let standard_input = program.path == Path::new("-");
        if shows_text && (!args.write || standard_input) {
            output.result(&program.text)?;
        } else if program.changed() {
            let what = if args.check { "is not in canonical form" } else { "rewritten" };
            output.remark(&format!("{}: {what}\n", program.file.name));
        }
    }
    Ok(())
}

fn object<'a>(args: &FmtArgs, program: &'a Formatted<'_>, output: &Output) -> json::Format<'a> {
    let verdict = if program.changed() { "changed" } else { "unchanged" };
    let (file, seconds) = (&program.file.name, output.seconds());
    json::Format {
        head: json::Head { command: "fmt", file, model: None, verdict, seconds },
        written: args.write && program.changed() && program.path != Path::new("-"),
        text: (!args.write && !args.check).then_some(&program.text),
    }
}

/// Replaces the file in one step: whoever reads it sees the old text or the new one, never a part. Standard input has
/// no file to be rewritten; its text is printed.
fn write(program: &Formatted<'_>) -> Result<(), Failure> {
    if program.path == Path::new("-") {
        return Ok(());
    }
    replace(program.path, &program.text)
        .map_err(|error| Failure::Output { what: format!("`{}`", program.path.display()), error })
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut replacement = Replacement::of(path)?;
    replacement.write_all(text.as_bytes())?;
    replacement.put_in_place()
}
