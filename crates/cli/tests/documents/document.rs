//! One document, from top to bottom.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::block::{Block, Mark, Typed, blocks, without_comment};
use super::compare::is_as_shown;
use super::left_out::left_out;
use super::session::{Manner, Session};

/// Folders whose documents are followed where they are: in a copy of these folders.
const WITH_FILES: [&str; 2] = ["examples", "clients"];
/// Commands that serve until they are stopped: whoever types one goes on in another terminal.
const SERVERS: [&str; 3] = ["catraca node", "catraca lab serve", "catraca coordinator"];

/// The folder of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What became of the blocks of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) run: usize,
    /// Those that say that they are not run.
    pub(crate) not_run: usize,
    /// Those that need a program that is not here.
    pub(crate) lacking: usize,
}

/// Reads a document and does what it says; exactly `not_run` of its blocks may say that they are not run.
pub(crate) fn follow(document: &str, not_run: usize) {
    let tally = read(document);
    assert_eq!(tally.not_run, not_run, "{document}: {tally:?}");
    assert!(tally.run > 0, "{document} has no blocks to run");
}

/// Reads a document and does what it says: in a copy of its folder if it is an example or a client, and else in
/// an empty folder.
pub(crate) fn read(document: &str) -> Tally {
    let repository = repository();
    let text = std::fs::read_to_string(repository.join(document)).unwrap();
    let blocks = blocks(&text).unwrap_or_else(|error| panic!("{document}, {error}"));
    let (place, home) = (open_folder(), open_folder());
    let mut folder = place.path().to_path_buf();
    if WITH_FILES.iter().any(|folder| document.starts_with(folder)) {
        let folders = WITH_FILES.map(|folder| repository.join(folder));
        let copied = Command::new("cp").arg("-r").args(folders).arg(&folder).status();
        assert!(copied.unwrap().success());
        folder = folder.join(document).parent().unwrap().to_path_buf();
    }
    let session = Session::start(&folder, home.path());
    let mut reader = Reader { document, kept: &home, session, tally: Tally::default() };
    for block in &blocks {
        reader.reads(block);
    }
    println!("{document}: {:?}", reader.tally);
    reader.tally
}

/// An empty folder that every user of the machine may enter: PostgreSQL runs as one of its own.
fn open_folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    folder
}

/// Somebody who follows a document.
struct Reader<'a> {
    document: &'a str,
    /// Files on their way to where the shell is.
    kept: &'a TempDir,
    session: Session,
    tally: Tally,
}

impl Reader<'_> {
    fn reads(&mut self, block: &Block) {
        let (mut file, mut then, mut part, mut manner) = (None, None, None, Manner::Ends);
        for mark in &block.marks {
            match mark {
                Mark::NotRun(_) => {
                    self.tally.not_run += 1;
                    return;
                }
                Mark::Needs(program) if !is_here(program) => {
                    left_out(&format!("{}, line {}", self.document, block.line), program);
                    self.tally.lacking += 1;
                    return;
                }
                Mark::Needs(_) => {}
                Mark::File(name) => file = Some(name),
                Mark::Then(command) => then = Some(command),
                Mark::PartOf(path) => part = Some(path),
                Mark::GoesOn => manner = Manner::GoesOn,
            }
        }
        self.tally.run += 1;
        match (file, part) {
            (Some(name), _) => self.writes(block, name),
            (None, Some(path)) => self.finds(block, path),
            (None, None) => self.runs(block, manner),
        }
        if let Some(command) = then {
            self.does(block.line, command, Manner::Ends, &[]);
        }
    }

    /// A block that says by itself what it is.
    fn runs(&mut self, block: &Block, manner: Manner) {
        match block.language.as_str() {
            "" | "console" | "sh" | "bash" if block.is_session() => {
                for typed in block.session() {
                    self.types(&typed, manner);
                }
            }
            "sh" | "bash" => self.does(block.line, &block.text(), manner, &[]),
            "python" => {
                let code = block.text().replace('\'', "'\\''");
                self.does(block.line, &format!("python3 -c '{code}'"), manner, &[]);
            }
            "json" => {
                let read = serde_json::from_str::<serde_json::Value>(&block.text());
                assert!(read.is_ok(), "{}, line {}: {read:?}", self.document, block.line);
            }
            language => panic!(
                "{}, line {}: nobody can say what to do with this block ('{language}'); a comment \
                 before it can, see crates/cli/tests/documents/block.rs",
                self.document, block.line
            ),
        }
    }

    fn types(&mut self, typed: &Typed, manner: Manner) {
        let code = without_comment(&typed.command).trim_end();
        let is_server = SERVERS.iter().any(|server| code.starts_with(server));
        let manner = match manner {
            _ if code.ends_with('&') && is_server => Manner::Serves,
            _ if code.ends_with('&') => Manner::Background,
            Manner::Ends if is_server && expected_code(&typed.command) == 0 => Manner::GoesOn,
            manner => manner,
        };
        self.does(typed.line, &typed.command, manner, &typed.shown);
    }

    /// Types a command, which has to say what is shown, if anything is, and to end as its comment says.
    fn does(&mut self, line: usize, command: &str, manner: Manner, shown: &[String]) {
        let did = self.session.types(command, manner, shown);
        let place = format!("{}, line {line}: {command}", self.document);
        if manner == Manner::Ends {
            let expected = expected_code(command);
            let Some(code) = did.code else { panic!("{place}\ndoes not end:\n{}", did.said) };
            assert_eq!(code, expected, "{place}\nended with this code, having said:\n{}", did.said);
        }
        let is_right = shown.is_empty() || is_as_shown(shown, &did.said);
        assert!(is_right, "{place}\nshown:\n{}\nbut it said:\n{}", shown.join("\n"), did.said);
    }

    /// The file is made where the shell is by then.
    fn writes(&mut self, block: &Block, name: &str) {
        let file = self.kept.path().join("file");
        std::fs::write(&file, block.text()).unwrap();
        let command = format!("mkdir -p \"$(dirname {name})\" && cp {} {name}", file.display());
        self.does(block.line, &command, Manner::Ends, &[]);
    }

    /// The block has to stand in this file of the repository.
    fn finds(&self, block: &Block, path: &str) {
        let text = std::fs::read_to_string(repository().join(path)).unwrap();
        // The comment at the top of a crate may have an example, which is compiled with it.
        let bare = |line: &str| line.trim().trim_start_matches("//!").trim().to_string();
        let plain = |text: &str| -> String { text.lines().map(|line| bare(line) + "\n").collect() };
        let is_there = plain(&text).contains(&plain(&block.text()));
        assert!(is_there, "{}, line {}: this is not in {path}", self.document, block.line);
    }
}

/// The exit code that a comment behind a command says: `# exit code 3`.
fn expected_code(command: &str) -> i32 {
    let said = command.rsplit_once("# exit code ").map(|(_, rest)| rest);
    let digits = said.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn is_here(program: &str) -> bool {
    let folders = std::env::var("PATH").unwrap();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}
