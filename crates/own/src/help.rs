//! What the program says of itself.

use std::io::{self, Write};

use catraca_sim::KEYS;

use crate::OwnAlgorithm;
use crate::flags::Command;

const EXIT_CODES: &str = "\
Exit codes: 0 done, nothing wrong found; 1 the system failed; 2 wrong input; 3 a violation was found;
4 gave up without a verdict.";

/// All commands, each in a line.
pub(crate) fn overview<A: OwnAlgorithm>(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{}, an algorithm of your own, driven as those of the catalogue are.\n",
        A::NAME
    )?;
    writeln!(out, "Commands:")?;
    for command in
        [&crate::sim::SIM, &crate::compare::COMPARE, &crate::check::CHECK, &crate::sim::DIAGRAM]
    {
        writeln!(out, "  {:<8} {}", command.name, command.about)?;
    }
    let mutants: Vec<_> = A::mutations().iter().map(|mutation| mutation.listed()).collect();
    if !mutants.is_empty() {
        writeln!(out, "\nMutants, for --mutant of sim, check and diagram:")?;
    }
    for mutant in mutants {
        writeln!(out, "  {:<20} {}", mutant.name, mutant.breaks)?;
    }
    writeln!(out, "\n'COMMAND --help' lists the flags of a command. {EXIT_CODES}")
}

/// The flags of one command.
pub(crate) fn command(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let operand = command.operand.map(|name| format!(" {name}")).unwrap_or_default();
    writeln!(out, "{}\n\nUsage: {}{operand} [flags]\n", command.about, command.name)?;
    for flag in command.flags {
        writeln!(out, "  {:<28} {}", format!("--{} {}", flag.name, flag.value), flag.help)?;
    }
    for key in KEYS.iter().filter(|key| (command.takes)(key)) {
        let default =
            key.default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
        writeln!(out, "  {:<28} {}{default}", format!("--{} {}", key.flag, key.value), key.help)?;
    }
    writeln!(out, "\n{EXIT_CODES}")
}
