//! `catraca completions`: what a shell has to know to complete command lines.

use std::io::Write;

use clap_complete::Shell;

use crate::output::Stdout;
use crate::{Outcome, shown};

/// Prints a script that lets a shell complete commands and flags of catraca.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell.
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  catraca completions bash > ~/.local/share/bash-completion/completions/catraca
  catraca completions zsh > ~/.zfunc/_catraca   # in a folder of $fpath
  catraca completions fish > ~/.config/fish/completions/catraca.fish";

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        // Writing to standard output may fail, of which the generator would panic.
        let mut script = Vec::new();
        let mut command = shown();
        clap_complete::generate(self.shell, &mut command, "catraca", &mut script);
        let mut out = Stdout::lock();
        out.write_all(&script)?;
        out.flush()?;
        Ok(())
    }
}
