//! `catraca git pre-receive`: the hook that refuses pushes which change what others have locked.

use std::collections::BTreeMap;

use catraca_node::{Fold, unix_millis_of};

use super::api::{Lock, shown};
use super::changed::{Moved, Paths, Telling, Update, received};
use super::config::Config;
use super::pusher::Pusher;
use super::server::{Server, ServerArguments};
use super::taken_over::{Suspect, Wrong, default_tip, judge};
use super::{TAKEN, say};
use crate::Outcome;
use crate::failure::Failure;
use crate::service::{NO_NODE, UNSERVED, block_on};

/// A hook for bare repositories: refuses a push that changes, deletes or renames what somebody else has
/// locked, on any branch, whatever client was used.
///
/// 'catraca git init' in the bare repository sets it up. It reads what git tells a hook of this name. If the
/// server for locks cannot be asked, pushes are refused, unless 'catraca.unreachable' is 'allow'.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {}

const HELP: &str = "\
Settings of git, in the bare repository or for the whole server:
  catraca.url             the locks of the repository; a file of the repository never says it
  catraca.tokenFile       a file with the token of the hook, with the role 'observe'; with
                          'administer' if post-receive releases locks
  catraca.PUSHER.owner    the owner of locks that somebody who pushes is, where names differ:
                          git config catraca.ana.maria@example.org.owner ana
                          several, for a name for each clone: git config --add; an empty one
                          takes back what was said before it, such as for the whole machine
  catraca.pusherVariable  the variable that says who pushes, if only one is to be believed; with
                          'none', no variable is: it is the user of the system
  catraca.unreachable     'refuse' (the default) or 'allow': pushes while no server answers
  catraca.timeout         how long a server may say nothing, in seconds: 60

Who pushes is what the first of these variables says: CATRACA_PUSHER, GL_USERNAME (GitLab),
GITEA_PUSHER_NAME (Gitea, Forgejo), GL_USER (Gitolite), REMOTE_USER (a web server); or else the user
of the system, as with SSH and an account for each.

Exit codes:
    0  the push may go on
    1  it may not; the message says why
    2  the hook is not set up rightly";

impl Arguments {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let updates = received(std::io::stdin().lock())?;
        let config = Config::read(None)?;
        let pusher = Pusher::of_environment(&config)?;
        let asked = || {
            let mut server = server.server_for_hook(&config, pusher.first_owner())?;
            let news: Vec<&str> = updates.iter().filter_map(|it| it.new.as_deref()).collect();
            let push = Push {
                of_commits: Telling::of_commits(&news, &[], &["--not", "--all"])?,
                updates: &updates,
                default: default_tip("HEAD"),
                owners: &pusher.owners,
            };
            block_on(push.refused(&mut server))
        };
        finish(asked(), &config, &pusher.in_words())
    }
}

/// What is pushed, and by whom.
pub(super) struct Push<'a> {
    /// The files that the commits of the push change.
    pub(super) of_commits: Telling,
    pub(super) updates: &'a [Update],
    /// The tip of the default branch before the push.
    pub(super) default: Option<String>,
    /// Whose locks do not stand against it.
    pub(super) owners: &'a [String],
}

/// A lock that stands against a push.
pub(super) struct Obstacle {
    lock: Lock,
    wrong: Option<Wrong>,
}

impl Push<'_> {
    /// The locks that stand against it.
    pub(super) async fn refused(self, server: &mut Server) -> Result<Vec<Obstacle>, Failure> {
        let moved: Vec<Moved<'_>> = self.updates.iter().filter_map(Update::moved).collect();
        let tips = if moved.is_empty() { None } else { Some(Telling::of_tips(&moved)?) };
        let by_commits = self.of_commits.paths()?;
        let is_other = |lock: &Lock| !self.owners.contains(&lock.owner.name);
        let by_tips: Paths = match tips {
            Some(tips) => tips.paths()?,
            None => Paths::new(),
        };
        let is_new = |path: &&str| by_commits.binary_search_by(|it| it.as_str().cmp(path)).is_err();
        let rest: Vec<&str> = by_tips.iter().map(String::as_str).filter(is_new).collect();
        let mut obstacles = BTreeMap::new();
        let paths: Vec<&str> = by_commits.iter().map(String::as_str).collect();
        for lock in locks_on(server, &paths).await?.into_iter().filter(is_other) {
            obstacles.insert(lock.path.clone(), Obstacle { lock, wrong: None });
        }
        let suspects = locks_on(server, &rest).await?;
        let suspects: Vec<Lock> = suspects.into_iter().filter(is_other).collect();
        let fold = match suspects.is_empty() {
            true => Fold::default(),
            false => server.whoami().await?.fold,
        };
        let written = Written::new(&rest, fold);
        for (lock, wrong) in suspected(&moved, &written, suspects, self.default.as_deref())? {
            let obstacle = Obstacle { lock: lock.clone(), wrong: Some(wrong) };
            obstacles.entry(lock.path).or_insert(obstacle);
        }
        Ok(obstacles.into_values().collect())
    }
}

async fn locks_on(server: &mut Server, paths: &[&str]) -> Result<Vec<Lock>, Failure> {
    if paths.is_empty() { Ok(Vec::new()) } else { server.locks_on(paths).await }
}

/// Those of the locks of others against which a branch is moved in a wrong way.
fn suspected(
    moved: &[Moved<'_>],
    written: &Written<'_>,
    locks: Vec<Lock>,
    default: Option<&str>,
) -> Result<Vec<(Lock, Wrong)>, Failure> {
    let mut found: Vec<(Lock, Wrong)> = Vec::new();
    let mut suspects = Vec::new();
    for lock in locks {
        let locked_at = unix_millis_of(&lock.locked_at);
        let paths = written.like(&lock.path);
        if paths.is_empty() {
            found.push((lock, Wrong::Unclear));
            continue;
        }
        for path in paths {
            suspects.push((lock.clone(), Suspect { path: path.to_string(), locked_at }));
        }
    }
    for moved in moved.iter().filter(|_| !suspects.is_empty()) {
        // Only what differs between these tips: a push may have many branches.
        let differs = Telling::of_tips(std::slice::from_ref(moved))?.paths()?;
        let (locks, those): (Vec<&Lock>, Vec<Suspect>) = suspects
            .iter()
            .filter(|(_, suspect)| differs.binary_search(&suspect.path).is_ok())
            .map(|(lock, it)| (lock, Suspect { path: it.path.clone(), locked_at: it.locked_at }))
            .unzip();
        let verdicts = judge(moved, &those, default)?;
        let wrong = locks.into_iter().zip(verdicts);
        found.extend(wrong.filter_map(|(lock, wrong)| Some((lock.clone(), wrong?))));
    }
    Ok(found)
}

/// Changed paths as the commits write them, by what they are for the server for locks: that is one file,
/// whatever letters, slashes and accents it is written with.
struct Written<'a> {
    fold: Fold,
    paths: BTreeMap<String, Vec<&'a str>>,
}

impl<'a> Written<'a> {
    fn new(changed: &[&'a str], fold: Fold) -> Self {
        let mut paths: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for path in changed {
            paths.entry(fold.path(path)).or_default().push(path);
        }
        Written { fold, paths }
    }

    /// All that are the file of a lock.
    fn like(&self, locked: &str) -> &[&'a str] {
        self.paths.get(&self.fold.path(locked)).map_or(&[], Vec::as_slice)
    }
}

/// So many locks are named; nobody reads more.
const MOST_NAMED: usize = 20;

/// Ends a hook: the push may go on, or is refused with the reason.
pub(super) fn finish(asked: Result<Vec<Obstacle>, Failure>, config: &Config, who: &str) -> Outcome {
    let obstacles = match asked {
        Ok(obstacles) if obstacles.is_empty() => return Ok(()),
        Ok(obstacles) => obstacles,
        Err(Failure::Own(code @ (NO_NODE | UNSERVED), Some(why))) => {
            let how = config.value("catraca.unreachable").unwrap_or("refuse");
            if how == "allow" {
                say(&format!(
                    "{why}; the push goes on without a look at the locks (catraca.unreachable)"
                ));
                return Ok(());
            }
            let why = why.split("; what was asked for").next().unwrap_or_default();
            let words =
                format!("the push is refused, because nobody can tell what is locked: {why}");
            return Err(Failure::Own(if how == "refuse" { TAKEN } else { code }, Some(words)));
        }
        Err(failure) => return Err(failure),
    };
    say("the push is refused: it changes what somebody else has locked");
    for Obstacle { lock, wrong } in obstacles.iter().take(MOST_NAMED) {
        let why = wrong.map_or(String::new(), |wrong| format!("; {}", wrong.in_words()));
        say(&format!("  '{}': {} has it{why}", shown(&lock.path), lock.in_words()));
    }
    if obstacles.len() > MOST_NAMED {
        say(&format!("  and {} more", obstacles.len() - MOST_NAMED));
    }
    say(&format!("{who}; ask the owners to unlock, or take these files out of the push"));
    Err(Failure::Own(TAKEN, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_lock_is_found_among_the_changed_however_it_is_written() {
        // é as one character, and as e with an accent.
        let changed = ["Art/A.psd", "art/b.psd", "caf\u{e9}", "x/Y", "x/y"];
        let like = |fold: Fold, locked: &str| Written::new(&changed, fold).like(locked).to_vec();
        let all = Fold { case: true, backslash: true, unicode: true };
        assert_eq!(like(all, "art/a.PSD"), ["Art/A.psd"]);
        assert_eq!(like(all, "art\\B.psd"), ["art/b.psd"]);
        assert_eq!(like(all, "Cafe\u{301}"), ["caf\u{e9}"]);
        assert_eq!(like(all, "X/Y"), ["x/Y", "x/y"], "both are the file of the lock");
        assert_eq!(like(all, "z"), [""; 0]);
        let unicode = Fold { unicode: true, ..Fold::default() };
        assert_eq!(like(unicode, "cafe\u{301}"), ["caf\u{e9}"]);
        assert_eq!(like(unicode, "art/a.psd"), [""; 0]);
        assert_eq!(like(Fold::default(), "x/y"), ["x/y"]);
        assert_eq!(like(Fold::default(), "cafe\u{301}"), [""; 0]);
    }
}
