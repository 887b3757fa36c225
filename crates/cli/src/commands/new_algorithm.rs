//! `catraca new-algorithm`: a small crate in which an algorithm of one's own is run, compared, checked
//! and drawn, without building all of Catraca again.

mod name;
mod source;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::failure::Failure;
use crate::output::{PendingFile, Stdout, Unfinished, reason};
use name::CrateName;
use source::Source;

const EXAMPLES: &str = "\
Examples:
  catraca new-algorithm ring
  cd ring && cargo run -- compare

The crate has a program with the commands sim, compare, check and diagram. It begins as a token ring; the
file to change is src/algorithm.rs. docs/OWN-ALGORITHM.md is a walk-through.";

/// Writes a crate in which an algorithm of your own can be run, compared, checked and drawn.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// What it is called: small letters, digits and '-'. The crate goes into a new folder of this name.
    #[arg(value_name = "NAME")]
    name: CrateName,
    /// The folder of Catraca's source, which the crate is built on [default: the one that this
    /// program was built from].
    #[arg(long, value_name = "PATH")]
    catraca: Option<PathBuf>,
}

/// The files that are the same whatever the name is, by their paths.
const FILES: [(&str, &str); 5] = [
    (".gitignore", include_str!("../../template/gitignore.txt")),
    ("src/main.rs", include_str!("../../template/src/main.rs")),
    ("src/algorithm.rs", include_str!("../../template/src/algorithm.rs")),
    ("src/mutants.rs", include_str!("../../template/src/mutants.rs")),
    ("src/tests.rs", include_str!("../../template/src/tests.rs")),
];
const MANIFEST: &str = include_str!("../../template/Cargo.toml.txt");
const README: &str = include_str!("../../template/README.md");

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let source = Source::find(self.catraca.as_deref())?;
        let name = self.name.as_str();
        let manifest = filled(MANIFEST, name, &source.as_toml());
        let readme = filled(README, name, source.as_str());
        let copied = source.pinned()?;
        let mut files: Vec<(&str, &str)> = vec![("Cargo.toml", &manifest), ("README.md", &readme)];
        files.extend(FILES);
        files.extend(copied.iter().map(|(name, content)| (*name, content.as_str())));
        write(Path::new(name), &files)?;
        let mut out = Stdout::lock();
        writeln!(out, "A token ring to begin with is in {name}/src/algorithm.rs. Now:")?;
        writeln!(out, "  cd {name}")?;
        writeln!(out, "  cargo run -- compare    # the first time compiles Catraca's simulator")?;
        writeln!(out, "  cargo run -- check")?;
        writeln!(out, "  cargo run -- diagram run.svg")?;
        Ok(writeln!(out, "  cargo test")?)
    }
}

fn filled(template: &str, name: &str, source: &str) -> String {
    template.replace("@NAME@", name).replace("@CATRACA@", source)
}

/// Makes a new folder with these files; all of them, or nothing is left.
fn write(folder: &Path, files: &[(&str, &str)]) -> Outcome {
    let refused = |error: io::Error| {
        let shown = folder.display();
        match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::input(format!(
                "'{shown}' is there already, and nothing in it is overwritten; choose another name"
            )),
            _ => Failure::input(format!(
                "cannot make the folder '{shown}': {}; go to a folder that you can write to",
                reason(&error)
            )),
        }
    };
    let made = |path: PathBuf| Unfinished::make(|| fs::create_dir(&path), |()| path.clone());
    // They are dropped when everything is there, and removed if the process ends before.
    let ((), whole) = made(folder.to_path_buf()).map_err(refused)?;
    let fill = || -> Outcome {
        let ((), inner) = made(folder.join("src"))
            .map_err(|error| Failure::System(anyhow::Error::new(error).context("src")))?;
        for (name, content) in files {
            PendingFile::create(&folder.join(name))?.finish_with(content.as_bytes())?;
        }
        drop(inner);
        Ok(())
    };
    let filled = fill();
    if filled.is_err() {
        // The folder is new: all that is in it was made here.
        fs::remove_dir_all(folder).ok();
    }
    drop(whole);
    filled
}
