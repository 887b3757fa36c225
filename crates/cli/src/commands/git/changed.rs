//! Which files a push changes, as git says: however many refs are pushed, git is called a few times.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use super::repository::{git, not_started};
use crate::failure::Failure;

/// A ref goes from one commit to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// Nothing for a ref that is new.
    pub(super) old: Option<String>,
    /// Nothing for a ref that is deleted.
    pub(super) new: Option<String>,
    pub(super) name: String,
}

/// A branch that was there and still is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) name: &'a str,
}

impl Update {
    /// The branch, if it is one that moves. A tag that moves changes no file of anybody.
    pub(super) fn moved(&self) -> Option<Moved<'_>> {
        let (old, new) = (self.old.as_deref()?, self.new.as_deref()?);
        let is_branch = self.name.starts_with("refs/heads/") && old != new;
        is_branch.then_some(Moved { old, new, name: &self.name })
    }
}

/// The lines that pre-receive and post-receive are told: OLD NEW REF.
pub(super) fn received(input: impl Read) -> Result<Vec<Update>, Failure> {
    let expected = "OLD-ID NEW-ID REF on each line of standard input, as git tells a hook";
    let mut updates = Vec::new();
    for line in BufReader::new(input).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            continue;
        }
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let update = match words[..] {
            [old, new, name] => id(old).zip(id(new)).map(|(old, new)| (old, new, name)),
            _ => None,
        };
        let (old, new, name) = update.ok_or_else(|| {
            Failure::input(format!("'{line}' is not what was expected: {expected}"))
        })?;
        updates.push(Update { old, new, name: name.to_string() });
    }
    Ok(updates)
}

/// The lines that pre-push is told: LOCAL-REF LOCAL-ID REMOTE-REF REMOTE-ID.
pub(super) fn pushed(input: impl Read) -> Result<Vec<Update>, Failure> {
    let mut lines = Vec::new();
    for line in BufReader::new(input).lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [_, local, remote_ref, remote] => {
                lines.push(format!("{remote} {local} {remote_ref}\n"));
            }
            [""] => {}
            _ => {
                return Err(Failure::input(format!(
                    "'{line}' is not what was expected: LOCAL-REF LOCAL-ID REMOTE-REF REMOTE-ID on each \
                     line of standard input, as git tells a hook"
                )));
            }
        }
    }
    received(lines.concat().as_bytes())
}

/// The id of an object: nothing for zeros; nothing at all for what is none.
fn id(text: &str) -> Option<Option<String>> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_nothing = text.bytes().all(|byte| byte == b'0');
    is_id.then(|| (!is_nothing).then(|| text.to_string()))
}

/// Paths, each once, in order. Whatever is no text cannot be locked, and is left out.
pub(super) type Paths = Vec<String>;

/// A call of git that is under way, and tells paths.
pub(super) struct Telling {
    /// Those that feed each other; the last one tells.
    children: Vec<(Command, Child)>,
    /// Whoever writes what the first one is told, while the last one is read.
    feeder: JoinHandle<()>,
}

impl Telling {
    /// The files that commits change, each compared with its parents: those that can be reached from one
    /// of `new` but not from one of `known`, nor from what `options` of rev-list say.
    pub(super) fn of_commits(
        new: &[&str],
        known: &[&str],
        options: &[&str],
    ) -> Result<Self, Failure> {
        let mut list = git();
        list.args(["rev-list", "--stdin"])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut lister = start(&mut list)?;
        let mut input = String::new();
        for id in new {
            input += &format!("{id}\n");
        }
        for id in known {
            input += &format!("^{id}\n");
        }
        let feeder = feed(&mut lister, input);
        let mut compare = comparing();
        if let Some(commits) = lister.stdout.take() {
            compare.stdin(commits);
        }
        let comparer = start(&mut compare)?;
        Ok(Telling { children: vec![(list, lister), (compare, comparer)], feeder })
    }

    /// The files that differ between the old and the new tips of branches.
    pub(super) fn of_tips(moved: &[Moved<'_>]) -> Result<Self, Failure> {
        let mut compare = comparing();
        let mut comparer = start(compare.stdin(Stdio::piped()))?;
        // A commit, followed by what is to be taken for its parent.
        let lines = moved.iter().map(|it| format!("{} {}\n", it.new, it.old));
        let feeder = feed(&mut comparer, lines.collect());
        Ok(Telling { children: vec![(compare, comparer)], feeder })
    }

    /// All that it tells.
    pub(super) fn paths(mut self) -> Result<Paths, Failure> {
        let mut paths: HashSet<Box<[u8]>> = HashSet::new();
        if let Some(told) = self.children.last_mut().and_then(|(_, child)| child.stdout.take()) {
            let mut told = BufReader::with_capacity(1 << 16, told);
            let mut path = Vec::new();
            while told.read_until(0, &mut path).map_err(Failure::from)? > 0 {
                path.pop_if(|byte| *byte == 0);
                if !paths.contains(path.as_slice()) {
                    paths.insert(path.as_slice().into());
                }
                path.clear();
            }
        }
        // It has written all that is read.
        self.feeder.join().ok();
        for (command, mut child) in self.children.drain(..) {
            let status = child.wait().map_err(|error| not_started(&command, &error))?;
            if !status.success() {
                let action = command.get_args().next().unwrap_or_default().to_string_lossy();
                return Err(Failure::input(format!("git {action} failed: {status}")));
            }
        }
        let texts = paths.into_iter().filter_map(|path| String::from_utf8(path.into()).ok());
        let mut texts: Paths = texts.collect();
        texts.sort_unstable();
        Ok(texts)
    }
}

/// Compares commits with their parents: merges with all of them at once, so that whoever merges is not
/// taken for whoever wrote.
fn comparing() -> Command {
    let mut compare = git();
    let words = ["diff-tree", "--stdin", "-r", "-z", "-c", "--root", "--no-renames", "--name-only"];
    compare.args(words).args(["--no-commit-id", "--no-ext-diff"]).stdout(Stdio::piped());
    compare
}

fn start(command: &mut Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| not_started(command, &error))
}

/// Writes all that it is told.
fn feed(child: &mut Child, input: String) -> JoinHandle<()> {
    let stdin = child.stdin.take();
    std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            // One that does not read on says why by its exit code.
            stdin.write_all(input.as_bytes()).ok();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_hooks_are_read_and_zeros_are_nothing() {
        let (zero, one) = ("0".repeat(40), "a".repeat(40));
        let lines = format!("{zero} {one} refs/heads/new\n{one} {zero} refs/tags/x y\n");
        let updates = received(lines.as_bytes()).unwrap();
        assert_eq!((&updates[0].old, updates[0].new.as_deref()), (&None, Some(one.as_str())));
        assert_eq!((updates[1].new.is_none(), updates[1].name.as_str()), (true, "refs/tags/x y"));
        assert!(updates.iter().all(|update| update.moved().is_none()));
        let (long, other) = ("b".repeat(64), "c".repeat(64));
        let updates = received(format!("{long} {other} refs/heads/x\n").as_bytes()).unwrap();
        assert_eq!(updates[0].moved().unwrap().name, "refs/heads/x");
        let pushed =
            pushed(format!("refs/heads/a {one} refs/heads/b {zero}\n").as_bytes()).unwrap();
        assert_eq!((pushed[0].name.as_str(), pushed[0].old.is_none()), ("refs/heads/b", true));
        for wrong in ["x", "a b c", &format!("{one} {one}"), &format!("{one} -{one} refs/x")] {
            assert!(received(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!(received(&b""[..]).unwrap(), []);
    }
}
