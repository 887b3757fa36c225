//! Changes of a branch that no commit of the push makes by itself: those of a merge, of a branch that is
//! set to what is there already, of a push by force.
//!
//! The tips of the branch differ in a file that somebody else has locked, and still the push may be right:
//! whoever merges the default branch takes over what its authors were allowed to do, and whoever merges
//! the owner's branch brings the owner's change on. It is not right if
//!
//! - a change of the file is taken back: by force, or by a merge that leaves out what one side did to it
//!   (`git merge -s ours`), or
//! - a change comes that is older than the lock and not on the default branch. A younger one can only
//!   have been pushed by the owner of the lock.

use std::collections::BTreeMap;

use super::changed::Moved;
use super::repository::{git, line_of, run, run_with};
use crate::failure::Failure;

/// A file that differs between the tips of a branch, and since when somebody else has locked it.
pub(super) struct Suspect {
    pub(super) path: String,
    /// In milliseconds since 1970; nothing if the server does not say.
    pub(super) locked_at: Option<u64>,
}

/// What is wrong about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    TakenBack,
    Older,
    /// There is too much to look at.
    Unclear,
}

impl Wrong {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Wrong::TakenBack => "the push takes a change of it back",
            Wrong::Older => "the push brings a change of it from before the lock",
            Wrong::Unclear => "there is too much in this push to see whose change it is",
        }
    }
}

/// So many files are looked at in this way.
const MOST_SUSPECTS: usize = 64;
/// So many merges are.
const MOST_MERGES: usize = 2000;
/// Clocks of people differ by no more: milliseconds.
const TOLERANCE: u64 = 5 * 60 * 1000;

/// What is wrong about each of the suspects, in their order. `default` is the tip of the default branch
/// before the push.
pub(super) fn judge(
    moved: &Moved<'_>,
    suspects: &[Suspect],
    default: Option<&str>,
) -> Result<Vec<Option<Wrong>>, Failure> {
    let is_odd = |suspect: &Suspect| suspect.path.contains(['\n', '\0']);
    if suspects.len() > MOST_SUSPECTS || suspects.iter().any(is_odd) {
        return Ok(vec![Some(Wrong::Unclear); suspects.len()]);
    }
    let Some(merges) = merges(moved)? else {
        return Ok(vec![Some(Wrong::Unclear); suspects.len()]);
    };
    let mut history = History::default();
    let mut verdicts = Vec::new();
    for suspect in suspects {
        let wrong = if takes_back(&mut history, moved, &merges, &suspect.path)? {
            Some(Wrong::TakenBack)
        } else if brings_older(moved, suspect, default)? {
            Some(Wrong::Older)
        } else {
            None
        };
        verdicts.push(wrong);
    }
    Ok(verdicts)
}

/// A merge and its parents.
type Merge = Vec<String>;

/// The merges that the branch gains; nothing if they are too many.
fn merges(moved: &Moved<'_>) -> Result<Option<Vec<Merge>>, Failure> {
    let not_old = format!("^{}", moved.old);
    let most = format!("--max-count={}", MOST_MERGES + 1);
    let list =
        line_of(git().args(["rev-list", "--merges", "--parents", &most, moved.new, &not_old]))?;
    let merges: Vec<Merge> =
        list.lines().map(|line| line.split(' ').map(String::from).collect()).collect();
    Ok((merges.len() <= MOST_MERGES).then_some(merges))
}

fn takes_back(
    history: &mut History,
    moved: &Moved<'_>,
    merges: &[Merge],
    path: &str,
) -> Result<bool, Failure> {
    let revisions = merges.iter().flatten().map(String::as_str);
    history.look_up(revisions.chain([moved.old, moved.new]), path)?;
    if !history.is_ancestor(moved.old, moved.new)? && history.drops(moved.new, moved.old, path)? {
        return Ok(true);
    }
    for merge in merges {
        let Some((merged, parents)) = merge.split_first() else { continue };
        let version = history.version(merged, path)?;
        let (mut kept, mut others) = (Vec::new(), Vec::new());
        for parent in parents {
            let is_kept = history.version(parent, path)? == version;
            if is_kept { &mut kept } else { &mut others }.push(parent);
        }
        // A merge that has none of its parents' versions is a change of its own, and seen as one.
        for other in others {
            let mut is_dropped = !kept.is_empty();
            for kept in &kept {
                is_dropped = is_dropped && history.drops(kept, other, path)?;
            }
            if is_dropped {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether the branch gains a commit that changes the file and is older than the lock, and that the default
/// branch does not have.
fn brings_older(
    moved: &Moved<'_>,
    suspect: &Suspect,
    default: Option<&str>,
) -> Result<bool, Failure> {
    let Some(locked_at) = suspect.locked_at else { return Ok(true) };
    let mut list = git();
    list.args(["rev-list", "--timestamp", "--full-history", "--no-merges", moved.new]);
    list.arg(format!("^{}", moved.old)).args(default.map(|default| format!("^{default}")));
    let list = line_of(list.args(["--", &suspect.path]))?;
    let seconds = locked_at.saturating_sub(TOLERANCE) / 1000;
    let is_older = |line: &str| {
        let time = line.split(' ').next().and_then(|time| time.parse::<u64>().ok());
        time.is_none_or(|time| time < seconds)
    };
    Ok(list.lines().any(is_older))
}

/// What commits have at paths, and where they come from. What was looked up is kept.
#[derive(Default)]
struct History {
    versions: BTreeMap<(String, String), Option<String>>,
    bases: BTreeMap<(String, String), Vec<String>>,
}

impl History {
    /// Looks up many versions at once.
    fn look_up<'a>(
        &mut self,
        revisions: impl Iterator<Item = &'a str>,
        path: &str,
    ) -> Result<(), Failure> {
        let is_new = |revision: &&str| {
            !self.versions.contains_key(&(revision.to_string(), path.to_string()))
        };
        let revisions: Vec<&str> = revisions.filter(is_new).collect();
        let input: String =
            revisions.iter().map(|revision| format!("{revision}:{path}\n")).collect();
        let mut command = git();
        command.args(["cat-file", "--batch-check=%(objectname)"]);
        let answer = run_with(&mut command, input.into_bytes())?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        for (revision, line) in revisions.iter().zip(answer.lines()) {
            let version = (!line.contains(' ')).then(|| line.to_string());
            self.versions.insert((revision.to_string(), path.to_string()), version);
        }
        Ok(())
    }

    fn version(&mut self, revision: &str, path: &str) -> Result<Option<String>, Failure> {
        let key = (revision.to_string(), path.to_string());
        if !self.versions.contains_key(&key) {
            self.look_up([revision].into_iter(), path)?;
        }
        Ok(self.versions.get(&key).cloned().flatten())
    }

    fn bases(&mut self, one: &str, other: &str) -> Result<Vec<String>, Failure> {
        let key = (one.to_string(), other.to_string());
        if let Some(bases) = self.bases.get(&key) {
            return Ok(bases.clone());
        }
        let mut command = git();
        command.args(["merge-base", "--all", one, other]);
        let output = command.output();
        let output = output.map_err(|error| super::repository::not_started(&command, &error))?;
        // Histories that have nothing in common are no fault.
        if !output.status.success() && output.status.code() != Some(1) {
            return Err(super::repository::complaint(&command, &output));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let bases: Vec<String> = text.lines().map(String::from).collect();
        self.bases.insert(key, bases.clone());
        Ok(bases)
    }

    fn is_ancestor(&mut self, old: &str, new: &str) -> Result<bool, Failure> {
        Ok(self.bases(old, new)? == [old])
    }

    /// Whether whoever keeps `kept` leaves out what `other` did to the file since both parted.
    fn drops(&mut self, kept: &str, other: &str, path: &str) -> Result<bool, Failure> {
        let version = self.version(other, path)?;
        if self.version(kept, path)? == version {
            return Ok(false);
        }
        let bases = self.bases(kept, other)?;
        if bases.is_empty() {
            return Ok(version.is_some());
        }
        for base in bases {
            if self.version(&base, path)? == version {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The tip of the default branch of this repository, if it has one.
pub(super) fn default_tip(name: &str) -> Option<String> {
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
    let tip = run(git().args(words).arg(format!("{name}^{{commit}}"))).ok()?;
    Some(String::from_utf8_lossy(&tip).trim().to_string()).filter(|tip| !tip.is_empty())
}
