//! A repository, as the locks of its files are named.

use std::fmt;

/// What the names of all locks of files begin with.
pub(crate) const PREFIX: &str = "git/";
/// The longest name of a team, and of a repository of it.
const LONGEST_PART: usize = 64;

/// Why there is no such repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a repository is /git/TEAM/REPO here: two names of letters, digits, '-', '_' and '.', each of at most {LONGEST_PART} \
     characters and without a '.' in front; set lfs.url to that"
)]
pub(crate) struct RepositoryError;

/// A repository: `TEAM/REPO`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Repository {
    team: String,
    repo: String,
}

impl Repository {
    /// With or without `.git` behind it, it is the same repository.
    pub(crate) fn new(team: &str, repo: &str) -> Result<Self, RepositoryError> {
        let repo = repo.trim_end_matches(".git");
        match is_plain(team) && is_plain(repo) {
            true => Ok(Repository { team: team.to_string(), repo: repo.to_string() }),
            false => Err(RepositoryError),
        }
    }

    /// The repository whose lock has this name, and the rest of the name.
    pub(crate) fn of_lock(name: &str) -> Option<(Self, &str)> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '/');
        let (team, repo, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let repository = Repository::new(team, repo).ok()?;
        (repository.repo == repo && !rest.is_empty()).then_some((repository, rest))
    }

    pub(crate) fn team(&self) -> &str {
        &self.team
    }

    pub(crate) fn repo(&self) -> &str {
        &self.repo
    }

    /// What the names of its locks begin with.
    pub(crate) fn prefix(&self) -> String {
        format!("{PREFIX}{self}/")
    }

    /// A pattern of the names of all of its locks.
    pub(crate) fn all(&self) -> String {
        format!("{PREFIX}{self}/*")
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.team, self.repo)
    }
}

fn is_plain(part: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=LONGEST_PART).contains(&part.len()) && !part.starts_with('.') && part.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_has_two_plain_names_and_its_suffix_does_not_matter() {
        let game = Repository::new("art", "game").unwrap();
        assert_eq!(Repository::new("art", "game.git").unwrap(), game);
        assert_eq!(game.prefix(), "git/art/game/");
        let long = "x".repeat(65);
        for (team, repo) in [
            ("", "a"),
            ("a", ""),
            ("a", ".git"),
            ("..", "a"),
            ("a", "b c"),
            ("a", "ü"),
            ("a", "*"),
            ("a", "b/c"),
            ("a", "%2e%2e"),
            ("a", &long),
            ("a", ".git.git"),
        ] {
            assert_eq!(Repository::new(team, repo), Err(RepositoryError), "{team} {repo}");
        }
    }

    #[test]
    fn a_lock_says_which_repository_it_is_of() {
        let (repository, rest) = Repository::of_lock("git/art/game/a/b.psd").unwrap();
        assert_eq!((repository.to_string().as_str(), rest), ("art/game", "a/b.psd"));
        for other in ["x", "git/art/game", "git/art/game/", "git/a", "gits/a/b/c", "git/a/b.git/c"]
        {
            assert_eq!(Repository::of_lock(other), None, "{other}");
        }
    }
}
