//! Whether '--' is missing: several names of locks, of which some may be meant as a command.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Characters that shells know and names of locks usually do not have.
const SHELL: &[char] = &['$', '&', '|', ';', '<', '>', '(', ')', '`', '\'', '"', '*', '?', '~'];

/// If there are several `names` and no command after them: what to write instead. `path` is where programs are.
pub(crate) fn missing(names: &[String], path: Option<&OsStr>) -> Option<String> {
    let found = (1..names.len()).find(|&place| is_command(&names[place], path));
    let (locks, command) = names.split_at_checked(found.unwrap_or(1))?;
    let first = command.first()?;
    let what = match found {
        Some(_) => format!("'{first}' looks like a command"),
        None => format!("no command stands after '--', and '{first}' may be meant as one"),
    };
    Some(format!(
        "{what}; to run it under the lock, put '--' before it: catraca lock {} -- {}; \
         to hold locks of these names, add --hold",
        locks.join(" "),
        command.join(" ")
    ))
}

fn is_command(name: &str, path: Option<&OsStr>) -> bool {
    let is_path = ["/", "./", "../"].iter().any(|start| name.starts_with(start));
    if is_path || name.contains(SHELL) {
        return true;
    }
    if name.contains('/') {
        return is_program(Path::new(name));
    }
    path.is_some_and(|path| {
        std::env::split_paths(path).any(|folder| is_program(&folder.join(name)))
    })
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Option<String> {
        let names: Vec<String> = line.split(' ').map(str::to_string).collect();
        missing(&names, Some(OsStr::new("/nowhere:/usr/bin:/bin")))
    }

    #[test]
    fn a_program_after_a_name_is_a_command_without_its_separator() {
        let told = check("x sleep 1").unwrap();
        assert!(told.contains("catraca lock x -- sleep 1;"), "{told}");
        let told = check("x y sleep 1 1").unwrap();
        assert!(told.contains("catraca lock x y -- sleep 1 1;"), "{told}");
        for line in ["x ./run", "x ../run", "x /bin/run", "x $HOME/run", "x echo;ls"] {
            assert!(check(line).is_some(), "{line}");
        }
    }

    #[test]
    fn one_name_is_no_command() {
        for line in ["x", "sleep", "./run"] {
            assert_eq!(check(line), None, "{line}");
        }
    }

    #[test]
    fn several_names_may_be_a_command_that_is_not_there() {
        for line in ["sleep 1", "x y-z", "x deploy.sh now", "db/orders db/stock"] {
            let told = check(line).unwrap();
            let (lock, command) = line.split_once(' ').unwrap();
            assert!(told.contains(&format!("catraca lock {lock} -- {command};")), "{told}");
            assert!(told.contains("no command stands after '--'"), "{told}");
        }
        let words = ["x".to_string(), "sleep".to_string()];
        assert!(missing(&words, None).unwrap().contains("'sleep' may be meant as one"));
    }
}
