//! `catraca man`: the manual pages, made of the same definitions as the help.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::failure::Failure;
use crate::output::{PendingFile, Stdout, reason};
use crate::suggest::unknown;
use crate::{Outcome, shown};

/// Prints the manual page of a command, or writes those of all commands to a folder.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Whose page to print, as in 'lock' or 'graph run'; that of catraca, unless said otherwise.
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands to this folder instead. It is made if it is not there.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  catraca man lock | man -l -
  catraca man --out ~/.local/share/man/man1";

/// Commands are in this section of the manual.
const SECTION: &str = "1";

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        // 'catraca help' needs no page: it prints what the pages say.
        let mut root = shown().disable_help_subcommand(true);
        root.build();
        match &self.out {
            Some(folder) => {
                let failed = |error: io::Error| {
                    let (place, why) = (folder.display(), reason(&error));
                    Failure::Input(format!("cannot make the folder '{place}': {why}"))
                };
                std::fs::create_dir_all(folder).map_err(failed)?;
                for command in with_descendants(&root) {
                    let name = format!("{}.{SECTION}", title(command));
                    PendingFile::create(&folder.join(name))?.finish_with(&page(command)?)?;
                }
                Ok(())
            }
            None => {
                let mut command = &root;
                for word in &self.command {
                    let inner = command.get_subcommands().find(|it| it.get_name() == word);
                    command = inner.ok_or_else(|| no_such(command, word))?;
                }
                let mut out = Stdout::lock();
                out.write_all(&page(command)?)?;
                out.flush()?;
                Ok(())
            }
        }
    }
}

fn no_such(command: &Command, word: &str) -> Failure {
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    match names.is_empty() {
        true => Failure::Input(format!("'{}' has no commands of its own", title(command))),
        false => Failure::Input(unknown("command", word, &names)),
    }
}

/// A command and all commands within it that are shown to users.
fn with_descendants(command: &Command) -> Vec<&Command> {
    let inner = command.get_subcommands().filter(|it| !it.is_hide_set());
    std::iter::once(command).chain(inner.flat_map(with_descendants)).collect()
}

/// The name of its page: `catraca-lock`.
fn title(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of a command that has been built.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    let mut head = Roff::new();
    let source = concat!("catraca ", env!("CARGO_PKG_VERSION"));
    // No date: the same source gives the same bytes.
    let empty = "\"\"";
    head.control("TH", [title(command).to_uppercase().as_str(), SECTION, empty, source, "Catraca"]);
    head.to_writer(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    notes(&mut rest, command);
    environment(&mut rest, command);
    related(&mut rest, command);
    rest.to_writer(&mut page)?;
    Ok(page)
}

/// What the help says below its flags: a line that ends with a colon is a heading, lines that are indented
/// stay as they are.
fn notes(roff: &mut Roff, command: &Command) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut is_literal = false;
    let mut has_heading = false;
    for line in text.lines() {
        let indented = line.starts_with(' ');
        if is_literal && !indented {
            roff.control("fi", []);
            is_literal = false;
        }
        if line.is_empty() {
            roff.control("PP", []);
        } else if indented {
            if !is_literal {
                roff.control("nf", []);
                is_literal = true;
            }
            roff.text([roman(line)]);
        } else if let Some(heading) = line.strip_suffix(':') {
            roff.control("SH", [heading.to_uppercase().as_str()]);
            has_heading = true;
        } else {
            if !has_heading {
                roff.control("SH", ["NOTES"]);
                has_heading = true;
            }
            roff.text([roman(line)]);
        }
    }
    if is_literal {
        roff.control("fi", []);
    }
}

/// The variables that stand for flags.
fn environment(roff: &mut Roff, command: &Command) {
    let variables = command.get_arguments().filter(|it| !it.is_hide_set());
    let variables = variables.filter_map(|it| Some((it.get_env()?.to_str()?, it.get_long()?)));
    for (index, (variable, flag)) in variables.enumerate() {
        if index == 0 {
            roff.control("SH", ["ENVIRONMENT"]);
        }
        roff.control("TP", []);
        roff.text([bold(variable)]);
        roff.text([
            roman("Stands for "),
            bold(format!("--{flag}")),
            roman(" where that is not said."),
        ]);
    }
}

/// Where to read on; the exit codes that most commands have are told once.
fn related(roff: &mut Roff, command: &Command) {
    if title(command) == "catraca" {
        return;
    }
    let told = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    if !told.contains("Exit codes") {
        roff.control("SH", ["EXIT CODES"]);
        roff.text([roman("As in "), bold("catraca"), roman("(1).")]);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("catraca"), roman("(1)")]);
}
