//! docs/COMMANDS.md: the index has every command of the program, and no other.

use std::collections::BTreeSet;
use std::process::Command;

use super::document::repository;

/// The commands below a command, as its help lists them.
fn below(command: &[&str]) -> Vec<String> {
    let mut catraca = Command::new(env!("CARGO_BIN_EXE_catraca"));
    let help = catraca.args(command).arg("--help").output().unwrap();
    assert!(help.status.success(), "{command:?}");
    let text = String::from_utf8(help.stdout).unwrap();
    let Some((_, list)) = text.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty());
    // Long descriptions go on in the lines below, further to the right.
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|it| !it.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_string).collect()
}

/// Every command that does something itself.
fn all() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for command in below(&[]) {
        // 'help' lists the others once more.
        let further = if command == "help" { Vec::new() } else { below(&[&command]) };
        if further.is_empty() {
            all.insert(format!("catraca {command}"));
        }
        let further = further.iter().filter(|name| *name != "help");
        all.extend(further.map(|name| format!("catraca {command} {name}")));
    }
    all
}

#[test]
fn the_index_has_every_command_and_no_other() {
    let text = std::fs::read_to_string(repository().join("docs/COMMANDS.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `catraca "));
    let index: BTreeSet<String> =
        rows.filter_map(|row| Some(format!("catraca {}", row.split_once('`')?.0))).collect();
    assert!(index.len() > 40, "{index:?}");
    assert_eq!(index, all());
}
