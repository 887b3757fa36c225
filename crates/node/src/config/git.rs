//! What a node is told about Git: its repositories, who is told what happens there, and where large files are.

use std::path::PathBuf;

use catraca_group::{Namespace, fits};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::ConfigError;
use crate::git::folded;

/// The branch of a repository of which nothing else was said.
const USUAL_BRANCH: &str = "main";

/// The names by which those who want several files take turns. They are guarded by an algorithm for sets in
/// every group, whatever else it is told.
pub const GIT_TURNS: &str = "git-batch/*";
const SETS: &str = "bouabdallah-laforest";

/// The namespace that every group has.
pub(super) fn turns() -> Namespace {
    Namespace::new(GIT_TURNS, SETS)
}

/// What a node is told about Git. All nodes of a group are told the same of repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitConfig {
    /// What holds for repositories; the first whose name fits counts.
    pub repositories: Vec<RepositoryConfig>,
    /// What holds for all others.
    pub others: RepositorySettings,
    /// Who is told what happens to locks.
    pub webhooks: Vec<WebhookConfig>,
    /// Where the objects of Git LFS are kept; nothing if they are not kept here.
    pub objects: Option<PathBuf>,
    /// Where requests for objects are sent instead, with `{team}` and `{repo}` in it.
    pub forward: Option<String>,
    /// The address by which clients reach this node, if not that by which they ask: `https://host:port`.
    pub url: Option<String>,
}

/// What holds for some repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryConfig {
    /// `TEAM/REPO`, in which `*` stands for anything.
    pub name: String,
    /// What holds for them.
    pub settings: RepositorySettings,
}

/// What holds for a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositorySettings {
    /// When locks are released.
    pub policy: Policy,
    /// Where changes have to be before locks are released by [`Policy::Merge`].
    pub default_branch: String,
    /// Which paths are the same.
    pub fold: Fold,
    /// Whose tokens may steal locks.
    pub steal: StealRole,
}

impl Default for RepositorySettings {
    fn default() -> Self {
        let (policy, fold, steal) = (Policy::default(), Fold::default(), StealRole::default());
        RepositorySettings { policy, default_branch: USUAL_BRANCH.to_string(), fold, steal }
    }
}

/// What it takes to steal the lock of somebody else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StealRole {
    /// Whoever may lock may also steal; it is recorded.
    #[default]
    Lock,
    /// Only those who administer the repository.
    Administer,
}

/// When the locks of a repository are released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// When somebody says so.
    #[default]
    Hand,
    /// When a change of the file is pushed.
    Push,
    /// When a change of the file has reached the default branch.
    Merge,
}

/// Which paths of a repository mean the same file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fold {
    /// Those that differ in capital and small letters only.
    pub case: bool,
    /// Those that differ in `\` and `/` only.
    pub backslash: bool,
    /// Those that Unicode takes for the same text.
    pub unicode: bool,
}

impl Fold {
    /// A path as it is the same for all that mean the same file. What is no path stays as it is.
    pub fn path(self, path: &str) -> String {
        folded(path, self).unwrap_or_else(|_| path.to_string())
    }
}

/// Somebody who is told what happens to locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {
    /// Of which repositories: `TEAM/REPO`, in which `*` stands for anything.
    pub repository: String,
    /// Where it is told: `http://` or `https://`.
    pub url: String,
    /// The file with the secret that messages are signed with.
    pub secret_file: PathBuf,
    /// Whose certificates are good there, if not those that the system trusts.
    pub ca_file: Option<PathBuf>,
}

impl GitConfig {
    /// What holds for the repository called `name`.
    pub fn settings(&self, name: &str) -> &RepositorySettings {
        let found = self.repositories.iter().find(|entry| fits(&entry.name, name));
        found.map_or(&self.others, |entry| &entry.settings)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |why: String| Err(ConfigError::Git(why));
        if self.objects.is_some() && self.forward.is_some() {
            return wrong(
                "objects are kept here or asked for elsewhere: say one of 'objects' and 'forward'"
                    .into(),
            );
        }
        for url in [&self.forward, &self.url].into_iter().flatten() {
            if !is_url(url) {
                return wrong(format!(
                    "'{url}' is no address: say https://HOST/... or http://HOST/..."
                ));
            }
        }
        let names = self.repositories.iter().map(|entry| &entry.name);
        let names = names.chain(self.webhooks.iter().map(|hook| &hook.repository));
        for name in names {
            if name != "*" && !name.contains('/') {
                return wrong(format!(
                    "'{name}' is no repository: say TEAM/REPO, as in 'art/*', or '*'"
                ));
            }
        }
        for (index, entry) in self.repositories.iter().enumerate() {
            let earlier = &self.repositories[..index];
            if let Some(first) = earlier.iter().find(|first| fits(&first.name, &entry.name)) {
                let (name, first) = (&entry.name, &first.name);
                return wrong(format!(
                    "repository '{name}' never applies: '{first}' comes first and fits its names; change their order"
                ));
            }
        }
        match self.webhooks.iter().find(|hook| !is_url(&hook.url)) {
            Some(hook) => wrong(format!(
                "a webhook's url is https://HOST/... or http://HOST/..., not '{}'",
                hook.url
            )),
            None => Ok(()),
        }
    }
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain && !host.is_empty() && !host.contains('@')
}

/// The table `[git]` of a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct GitEntry {
    objects: Option<PathBuf>,
    forward: Option<String>,
    url: Option<String>,
    policy: Option<Policy>,
    #[serde(alias = "default_branch")]
    default_branch: Option<String>,
    fold: Option<Vec<FoldEntry>>,
    steal: Option<StealRole>,
    repository: Vec<RepositoryEntry>,
    webhook: Vec<WebhookEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RepositoryEntry {
    name: String,
    policy: Option<Policy>,
    #[serde(alias = "default_branch")]
    default_branch: Option<String>,
    fold: Option<Vec<FoldEntry>>,
    steal: Option<StealRole>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WebhookEntry {
    #[serde(default = "everything")]
    repository: String,
    url: String,
    #[serde(alias = "secret_file")]
    secret_file: PathBuf,
    #[serde(alias = "ca_file")]
    ca_file: Option<PathBuf>,
}

fn everything() -> String {
    "*".to_string()
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FoldEntry {
    Case,
    Backslash,
    Unicode,
}

fn fold(entries: &[FoldEntry]) -> Fold {
    let has = |entry| entries.contains(&entry);
    Fold {
        case: has(FoldEntry::Case),
        backslash: has(FoldEntry::Backslash),
        unicode: has(FoldEntry::Unicode),
    }
}

impl GitEntry {
    pub(super) fn config(&self) -> GitConfig {
        let usual = RepositorySettings::default();
        let others = RepositorySettings {
            policy: self.policy.unwrap_or(usual.policy),
            default_branch: self.default_branch.clone().unwrap_or(usual.default_branch),
            fold: self.fold.as_deref().map_or(usual.fold, fold),
            steal: self.steal.unwrap_or(usual.steal),
        };
        let repository = |entry: &RepositoryEntry| RepositoryConfig {
            name: entry.name.clone(),
            settings: RepositorySettings {
                policy: entry.policy.unwrap_or(others.policy),
                default_branch: {
                    entry.default_branch.clone().unwrap_or_else(|| others.default_branch.clone())
                },
                fold: entry.fold.as_deref().map_or(others.fold, fold),
                steal: entry.steal.unwrap_or(others.steal),
            },
        };
        let webhook = |entry: &WebhookEntry| WebhookConfig {
            repository: entry.repository.clone(),
            url: entry.url.clone(),
            secret_file: entry.secret_file.clone(),
            ca_file: entry.ca_file.clone(),
        };
        GitConfig {
            repositories: self.repository.iter().map(repository).collect(),
            webhooks: self.webhook.iter().map(webhook).collect(),
            objects: self.objects.clone(),
            forward: self.forward.clone(),
            url: self.url.clone(),
            others,
        }
    }
}

/// Where the table is, if `error` complains about it.
pub(super) fn place(entry: Option<&Spanned<GitEntry>>, error: &ConfigError) -> Option<usize> {
    matches!(error, ConfigError::Git(_)).then(|| Some(entry?.span().start)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn the_first_repository_that_fits_counts_and_what_it_does_not_say_is_said_for_all() {
        let config = Config::from_toml(
            r#"
            name = "alone"
            [git]
            policy = "push"
            fold = ["unicode"]
            objects = "/var/lib/lfs"
            [[git.repository]]
            name = "art/*"
            fold = ["case", "backslash", "unicode"]
            default-branch = "trunk"
            steal = "administer"
            [[git.webhook]]
            repository = "art/*"
            url = "https://chat.example/hook"
            secret_file = "/etc/catraca/hook"
            "#,
        )
        .unwrap();
        let art = config.git.settings("art/game");
        assert_eq!((art.policy, art.default_branch.as_str()), (Policy::Push, "trunk"));
        assert_eq!(art.fold, Fold { case: true, backslash: true, unicode: true });
        let other = config.git.settings("code/game");
        assert_eq!((art.steal, other.steal), (StealRole::Administer, StealRole::Lock));
        assert_eq!((other.policy, other.default_branch.as_str()), (Policy::Push, "main"));
        assert_eq!(other.fold, Fold { case: false, backslash: false, unicode: true });
        assert_eq!(config.git.webhooks[0].secret_file, PathBuf::from("/etc/catraca/hook"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        let error = |text: &str| {
            let text = format!("name = 'alone'\n[git]\n{text}");
            Config::from_toml(&text).unwrap_err().to_string()
        };
        assert!(error("policy = 'never'").starts_with("line 3: "));
        assert!(error("fold = ['colour']").starts_with("line 3: "));
        assert!(error("steal = 'nobody'").starts_with("line 3: "));
        assert!(error("what = 1").starts_with("line 3: "));
        let both = error("objects = '/x'\nforward = 'https://forge/{team}'");
        assert_eq!(
            both,
            "line 2: [git]: objects are kept here or asked for elsewhere: say one of 'objects' and 'forward'"
        );
        assert!(error("forward = 'forge'").contains("'forge' is no address"));
        assert!(error("[[git.repository]]\nname = 'x'").contains("'x' is no repository"));
        let never = "[[git.repository]]\nname = 'a/*'\n[[git.repository]]\nname = 'a/b'";
        assert!(error(never).contains("'a/b' never applies"));
        let hook = "[[git.webhook]]\nurl = 'ftp://x/y'\nsecret-file = '/x'";
        assert!(error(hook).contains("not 'ftp://x/y'"));
    }
}
