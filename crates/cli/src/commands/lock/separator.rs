//! Whether '--' is missing: names of locks that look like a command.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Characters that shells know and names of locks usually do not have.
const SHELL: &[char] = &['$', '&', '|', ';', '<', '>', '(', ')', '`', '\'', '"', '*', '?', '~'];

/// If `names`, without a command after them, look like a lock and a command: what to write instead.
/// `path` is where programs are.
pub(crate) fn missing(names: &[String], path: Option<&OsStr>) -> Option<String> {
    let place = (1..names.len()).find(|&place| is_command(&names[place], path))?;
    let (locks, command) = names.split_at(place);
    Some(format!(
        "'{}' looks like a command; to run it under the lock, put '--' before it: \
         catraca lock {} -- {}; to hold locks of these names, add --hold",
        command[0],
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
    fn names_are_not_taken_for_commands() {
        for line in ["x", "sleep", "sleep 1", "x y-z", "db/orders db/stock", "a.b a:c a@d a=e a+f"]
        {
            assert_eq!(check(line), None, "{line}");
        }
        assert_eq!(missing(&["x".to_string(), "sleep".to_string()], None), None);
    }
}
