//! Hooks of a repository: small scripts that run what we add, and then what was there before.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::output::reason;

/// By this line a hook is known to be ours.
const MARK: &str = "# Written by 'catraca git init'.";
/// What a hook that was there before is called.
const BEFORE: &str = "before-catraca";

/// What a hook runs, in this order.
pub(super) struct Hook {
    pub(super) name: &'static str,
    /// Of `catraca git`.
    pub(super) own: Option<&'static str>,
    /// Of `git lfs`, unless the hook that was there before does it.
    pub(super) lfs: Option<&'static str>,
}

/// Those of a clone. Those of Git LFS keep lockable files read-only.
pub(super) const OF_CLONES: [Hook; 4] = [
    Hook { name: "pre-push", own: Some("pre-push"), lfs: Some("pre-push") },
    Hook { name: "post-checkout", own: None, lfs: Some("post-checkout") },
    Hook { name: "post-commit", own: None, lfs: Some("post-commit") },
    Hook { name: "post-merge", own: None, lfs: Some("post-merge") },
];

/// Those of a bare repository.
pub(super) const OF_BARE: [Hook; 2] = [
    Hook { name: "pre-receive", own: Some("pre-receive"), lfs: None },
    Hook { name: "post-receive", own: Some("post-receive"), lfs: None },
];

/// What is in the place of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Ours,
    /// Somebody else's, and it does what ours would do for Git LFS.
    Lfs,
    Other,
}

impl Hook {
    pub(super) fn found(&self, hooks: &Path) -> Found {
        match std::fs::read(hooks.join(self.name)) {
            Err(_) => Found::Nothing,
            Ok(script) if says(&script, MARK) => Found::Ours,
            Ok(script) if says(&script, &format!("git lfs {}", self.name)) => Found::Lfs,
            Ok(_) => Found::Other,
        }
    }

    /// Whether git runs it.
    pub(super) fn is_executable(&self, hooks: &Path) -> bool {
        is_executable(&hooks.join(self.name))
    }

    /// Puts the hook there; what changed, in words.
    pub(super) fn install(&self, hooks: &Path, program: &Path) -> Result<Option<String>, Failure> {
        let place = hooks.join(self.name);
        let before = hooks.join(format!("{}.{BEFORE}", self.name));
        let found = self.found(hooks);
        if found == Found::Lfs && self.own.is_none() {
            return Ok(None);
        }
        if matches!(found, Found::Lfs | Found::Other) && before.exists() {
            return Err(Failure::input(format!(
                "'{}' was written anew since 'catraca git init', and '{}' is there already: put both \
                 together, or remove one of them, and say it again",
                place.display(),
                before.display()
            )));
        }
        let kept = if found == Found::Ours { &before } else { &place };
        let is_lfs_run = std::fs::read(kept).is_ok_and(|script| {
            says(&script, &format!("git lfs {}", self.name)) && is_executable(kept)
        });
        let script = self.script(program, !is_lfs_run);
        if found == Found::Ours
            && self.is_executable(hooks)
            && std::fs::read(&place).is_ok_and(|there| there == script.as_bytes())
        {
            return Ok(None);
        }
        std::fs::create_dir_all(hooks).map_err(|error| cannot(hooks, &error))?;
        let mut words = format!("hook {}", self.name);
        if matches!(found, Found::Lfs | Found::Other) {
            std::fs::rename(&place, &before).map_err(|error| cannot(&before, &error))?;
            words += &format!("; what was there runs after it, as {}.{BEFORE}", self.name);
        }
        write(&place, &script).map_err(|error| cannot(&place, &error))?;
        Ok(Some(words))
    }

    fn script(&self, program: &Path, with_lfs: bool) -> String {
        let name = self.name;
        let mut lines = vec![
            "#!/bin/sh".to_string(),
            format!("{MARK} What was here before is '{name}.{BEFORE}', and still runs."),
        ];
        // Git tells the first of them something on its input, which all of them have to read.
        let reads = matches!(name, "pre-push" | "pre-receive" | "post-receive");
        let (input, shell) = match reads {
            true => (
                " < \"$told\"",
                "told=$(mktemp) || exit 1\ntrap 'rm -f \"$told\"' EXIT\ncat > \"$told\"",
            ),
            false => ("", ""),
        };
        lines.extend((!shell.is_empty()).then(|| shell.to_string()));
        // What happens after the fact stops nothing: all of it is run.
        let or_end = if name.starts_with("pre-") { " || exit" } else { "" };
        if let Some(own) = self.own {
            let program = quoted(&program.to_string_lossy());
            lines.push("catraca=$(command -v catraca) || catraca=".to_string() + &program);
            lines.push(format!("\"$catraca\" git {own} \"$@\"{input}{or_end}"));
        }
        if let Some(lfs) = self.lfs.filter(|_| with_lfs) {
            lines.push("if command -v git-lfs > /dev/null 2>&1; then".to_string());
            lines.push(format!("    git lfs {lfs} \"$@\"{input}{or_end}"));
            lines.push("fi".to_string());
        }
        lines.push(format!("before=$(dirname \"$0\")/{name}.{BEFORE}"));
        lines.push("if [ -x \"$before\" ]; then".to_string());
        lines.push(format!("    \"$before\" \"$@\"{input}{or_end}"));
        lines.push("fi".to_string());
        lines.join("\n") + "\n"
    }
}

/// A word as a shell reads it as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn says(script: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(script).contains(text)
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
}

/// A script is there whole or not at all: git may run it at any moment.
fn write(place: &Path, script: &str) -> io::Result<()> {
    let folder = place.parent().map_or_else(|| PathBuf::from("."), PathBuf::from);
    let mut file = tempfile::Builder::new()
        .prefix(".catraca-")
        .permissions(PermissionsExt::from_mode(0o755))
        .tempfile_in(folder)?;
    io::Write::write_all(&mut file, script.as_bytes())?;
    file.persist(place)?;
    Ok(())
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::input(format!("cannot write '{}': {}", path.display(), reason(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_kept_and_a_second_time_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (hooks, program) = (folder.path(), Path::new("/opt/it's/catraca"));
        let hook = &OF_CLONES[0];
        assert_eq!(hook.found(hooks), Found::Nothing);
        std::fs::write(hooks.join("pre-push"), "#!/bin/sh\nexit 0\n").unwrap();
        let words = hook.install(hooks, program).unwrap().unwrap();
        assert!(words.contains("pre-push.before-catraca"), "{words}");
        assert_eq!((hook.found(hooks), hook.is_executable(hooks)), (Found::Ours, true));
        assert!(hooks.join("pre-push.before-catraca").exists());
        assert_eq!(hook.install(hooks, program).unwrap(), None);
        let script = std::fs::read_to_string(hooks.join("pre-push")).unwrap();
        assert!(script.contains(r"catraca='/opt/it'\''s/catraca'"), "{script}");
        assert!(script.contains("git lfs pre-push"), "the hook before does not do it");
        // Somebody writes another hook over ours: neither of the two is lost.
        std::fs::write(hooks.join("pre-push"), "#!/bin/sh\ngit lfs pre-push \"$@\"\n").unwrap();
        assert!(hook.install(hooks, program).is_err());
    }

    #[test]
    fn git_lfs_is_run_once() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pre-push");
        std::fs::write(&place, "#!/bin/sh\ngit lfs pre-push \"$@\"\n").unwrap();
        std::fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).unwrap();
        for _ in 0..2 {
            OF_CLONES[0].install(folder.path(), Path::new("x")).unwrap();
            assert!(!std::fs::read_to_string(&place).unwrap().contains("git lfs"));
        }
        let commit = folder.path().join("post-commit");
        std::fs::write(&commit, "#!/bin/sh\ngit lfs post-commit \"$@\"\n").unwrap();
        assert_eq!(OF_CLONES[2].install(folder.path(), Path::new("x")).unwrap(), None);
    }
}
