//! Commands and flags that documents mention within a sentence or a table: the program has them.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use super::document::repository;
use super::followed::documents;

#[test]
fn every_command_that_a_document_mentions_is_there_with_its_flags() {
    let mut mentioned: BTreeMap<String, String> = BTreeMap::new();
    for document in of_today() {
        let text = std::fs::read_to_string(repository().join(&document)).unwrap();
        for command in commands(&text) {
            mentioned.entry(command).or_insert_with(|| document.clone());
        }
    }
    let mut helps = Helps::default();
    let wrong = mentioned.iter().filter_map(|(command, document)| {
        let error = helps.look(command).err()?;
        Some(format!("{document}: `{command}`: {error}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(mentioned.len() > 100, "only {} were found", mentioned.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The documents that tell how things are, and not how they were.
fn of_today() -> impl Iterator<Item = String> {
    documents().into_iter().filter(|document| document != "CHANGELOG.md")
}

/// Flags of other programs: of cargo, cargo xtask, git and etcd.
const OF_OTHERS: [&str; 6] =
    ["--auto-compaction-retention", "--binary", "--break", "--locked", "--no-verify", "--trial"];

#[test]
fn every_flag_that_a_document_mentions_alone_is_one_of_some_command() {
    let mut helps = Helps::default();
    helps.read_all("");
    let help: Vec<String> = helps.0.into_values().flatten().collect();
    let help = help.join("\n");
    let known: BTreeSet<&str> = help.split([' ', '\n', '[', ']', '=', ',', '|']).collect();
    let mut unknown = Vec::new();
    for document in of_today() {
        let text = std::fs::read_to_string(repository().join(&document)).unwrap();
        for span in spans(&text).into_iter().filter(|span| span.starts_with("--") && span != "--") {
            let flag = span.split([' ', '=', ',']).next().unwrap_or("");
            if !known.contains(flag) && !OF_OTHERS.contains(&flag) {
                unknown.push(format!("{document}: {span}"));
            }
        }
    }
    assert!(known.len() > 200, "{help}");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// Mentioned commands of the program.
fn commands(text: &str) -> Vec<String> {
    spans(text).into_iter().filter(|span| span.starts_with("catraca ")).collect()
}

/// What stands between backquotes, outside of blocks.
fn spans(text: &str) -> Vec<String> {
    let mut prose = String::new();
    for (at, part) in text.split("```").enumerate() {
        prose.push_str(if at % 2 == 0 { part } else { "\n\n" });
    }
    let paragraphs = prose.split("\n\n").flat_map(|paragraph| {
        let is_table = paragraph.trim_start().starts_with('|');
        let rows = if is_table { paragraph.split('\n') } else { paragraph.split('\0') };
        rows.map(|row| row.replace('\n', " ")).collect::<Vec<_>>()
    });
    let spans = paragraphs.flat_map(|paragraph| {
        let spans = paragraph.split('`').skip(1).step_by(2);
        spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    });
    spans.collect()
}

/// The help of each command, once it was looked at; nothing if there is no such command.
#[derive(Default)]
struct Helps(BTreeMap<String, Option<String>>);

impl Helps {
    /// Whether the program knows this command and its flags.
    fn look(&mut self, command: &str) -> Result<(), String> {
        // What stands behind '--' is somebody else's command.
        let own = command.split(" -- ").next().unwrap_or("").trim_end_matches(" --");
        let words: Vec<&str> = own.split(' ').skip(1).collect();
        let (mut path, mut help) = (String::new(), self.of("").ok_or("no help at all")?);
        for word in &words {
            if word.starts_with('-') {
                break;
            }
            let longer = format!("{path} {word}");
            let is_name = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            match self.of(&longer) {
                Some(of_longer) => (path, help) = (longer, of_longer),
                None if is_name && help.contains("\nCommands:\n") => {
                    return Err(format!("there is no 'catraca{longer}'"));
                }
                None => break,
            }
        }
        for word in words.iter().filter(|word| word.starts_with('-')) {
            let flag = word.split(['=', ',']).next().unwrap_or("");
            let is_flag = |found: &str| found.trim_end_matches(',') == flag;
            if !help.split([' ', '\n', '[', ']', '=']).any(is_flag) {
                return Err(format!("'catraca{path}' has no {flag}"));
            }
        }
        Ok(())
    }

    /// Reads the help of this command and of all below it.
    fn read_all(&mut self, path: &str) {
        let help = self.of(path).unwrap_or_default();
        let Some((_, list)) = help.split_once("\nCommands:\n") else { return };
        let lines = list.lines().take_while(|line| !line.is_empty());
        let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        for name in names.filter(|name| !name.is_empty() && *name != "help") {
            self.read_all(&format!("{path} {name}"));
        }
    }

    fn of(&mut self, path: &str) -> Option<String> {
        let read = || {
            let mut help = Command::new(env!("CARGO_BIN_EXE_catraca"));
            let output = help.arg("help").args(path.split_whitespace()).output().unwrap();
            output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
        };
        self.0.entry(path.to_string()).or_insert_with(read).clone()
    }
}

#[test]
fn commands_are_found_between_backquotes_and_judged_by_the_help() {
    let text =
        "One `catraca lock -n\nx -- ls`, `lock`.\n\n```\n`catraca no`\n```\n| `catraca a` | `\n";
    assert_eq!(commands(text), ["catraca lock -n x -- ls", "catraca a"]);
    let mut helps = Helps::default();
    for right in ["catraca lock --wait 5 x -- ls --all", "catraca members add NAME=ADDR"] {
        assert_eq!(helps.look(right), Ok(()), "{right}");
    }
    for wrong in ["catraca lock --patience 5", "catraca members enlist", "catraca knock"] {
        assert!(helps.look(wrong).is_err(), "{wrong}");
    }
}
