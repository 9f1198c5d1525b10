//! `weakspot man`: one page with everything, or a page for each command.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Prints or writes the manual.
pub fn run(args: &ManArgs, output: &Output) -> Result<Exit, Failure> {
    let mut command = Cli::command();
    command.build();
    let failed = |what: String| move |error| Failure::Output { what, error };
    match &args.directory {
        None => {
            let page = whole_manual(&command).map_err(failed("the manual".to_owned()))?;
            output.result(&String::from_utf8_lossy(&page))?;
        }
        Some(directory) => {
            let what = format!("the manual to `{}`", directory.display());
            write_pages(&command, directory).map_err(failed(what))?;
        }
    }
    Ok(Exit::Good)
}

/// The page of the command itself, with the options of every subcommand in sections of their own.
fn whole_manual(command: &Command) -> io::Result<Vec<u8>> {
    let main = Man::new(command.clone());
    let mut page = Vec::new();
    main.render_title(&mut page)?;
    main.render_name_section(&mut page)?;
    main.render_synopsis_section(&mut page)?;
    main.render_description_section(&mut page)?;
    for subcommand in documented(command) {
        page.extend(subcommand_section(subcommand)?);
    }
    main.render_extra_section(&mut page)?;
    main.render_version_section(&mut page)?;
    Ok(page)
}

/// The subcommands, without the one that only repeats `--help`.
fn documented(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help")
}

fn subcommand_section(subcommand: &Command) -> io::Result<Vec<u8>> {
    let manual = Man::new(subcommand.clone());
    let mut section = Vec::new();
    manual.render_synopsis_section(&mut section)?;
    manual.render_description_section(&mut section)?;
    manual.render_options_section(&mut section)?;
    let name = subcommand.get_name().to_uppercase();
    let mut first = true;
    let heading = |line: &str| -> String {
        match line.strip_prefix(".SH ") {
            Some(_) if std::mem::take(&mut first) => format!(".SH \"WEAKSPOT {name}\"\n"),
            Some("DESCRIPTION") => ".PP\n".to_owned(),
            Some(other) => format!(".SS {other}\n"),
            None => format!("{line}\n"),
        }
    };
    Ok(String::from_utf8_lossy(&section).lines().map(heading).collect::<String>().into_bytes())
}

fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut main = Vec::new();
    Man::new(command.clone()).render(&mut main)?;
    fs::write(directory.join("weakspot.1"), main)?;
    for subcommand in documented(command) {
        let name = format!("weakspot-{}", subcommand.get_name());
        let mut page = Vec::new();
        Man::new(subcommand.clone()).title(name.clone()).render(&mut page)?;
        fs::write(directory.join(format!("{name}.1")), page)?;
    }
    Ok(())
}
