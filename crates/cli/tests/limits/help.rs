//! What the program says of itself: its commands, and the flags of each.

use super::support::Folder;

/// The flags of a command.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    /// Those with a value.
    pub(crate) valued: Vec<String>,
    /// Those that may have one, after '='.
    pub(crate) optional: Vec<String>,
    /// Those that may stand alone.
    pub(crate) switches: Vec<String>,
}

impl Flags {
    /// Those of the command that begins with these words.
    pub(crate) fn of(words: &[&str]) -> Self {
        let path = words.iter().take_while(|word| !word.starts_with('-'));
        let mut flags = Flags::default();
        for line in help(&path.copied().collect::<Vec<_>>()).lines() {
            // Flags stand at the left, with a short form or without one; what is said of them further right.
            let indent = line.len() - line.trim_start().len();
            if !matches!(indent, 2 | 6) || !line.trim_start().starts_with('-') {
                continue;
            }
            let mut words = line.split_whitespace();
            let Some(word) = words.find(|word| word.starts_with("--")) else { continue };
            match word.split_once("[=") {
                Some((flag, _)) => {
                    flags.optional.push(flag.to_string());
                    flags.switches.push(flag.to_string());
                }
                None if word == "--help" => {}
                None if words.next().is_some_and(|next| next.starts_with(['<', '['])) => {
                    flags.valued.push(word.to_string());
                }
                None => flags.switches.push(word.to_string()),
            }
        }
        flags
    }

    pub(crate) fn count(&self) -> usize {
        self.valued.len() + self.optional.len() + self.switches.len()
    }
}

fn help(path: &[&str]) -> String {
    Folder::new().run(&[path, &["--help"]].concat()).quietly(0).stdout
}

/// The words of every command that has none below it.
pub(crate) fn commands() -> Vec<Vec<String>> {
    below(&[])
}

fn below(path: &[String]) -> Vec<Vec<String>> {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    let text = help(&words);
    let list = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| line.is_empty() || line.starts_with(' '));
    // What is said of a command may go on further right.
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    if names.is_empty() {
        return vec![path.to_vec()];
    }
    let own = names.into_iter().filter(|name| *name != "help");
    own.flat_map(|name| below(&[path, &[name.to_string()]].concat())).collect()
}
