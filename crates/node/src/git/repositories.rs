//! Which repositories there are: those in which something is locked, and those that the configuration names.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::Git;
use super::repository::{Repository, RepositoryError};
use crate::calendar::rfc3339;
use crate::http::caller::Caller;
use crate::http::problem::{Kind, Problem};

/// So many repositories are told at a time, at the most.
pub(crate) const MOST_REPOSITORIES: usize = 1000;

/// A repository.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct KnownRepository {
    /// `TEAM/REPO`.
    repository: String,
    /// How many locks there are of which the caller may know.
    locks: usize,
    /// When the oldest of them was taken.
    oldest: Option<String>,
}

/// A part of the list of repositories.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Repositories {
    /// By name.
    repositories: Vec<KnownRepository>,
    /// What to give as `after` for the next part; nothing after the last one.
    next: Option<String>,
}

impl Git {
    /// The repositories of which the caller may know, after this one.
    pub(crate) async fn repositories(
        &self,
        caller: &Caller,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Repositories, Problem> {
        let after = after.map(of_text).transpose()?;
        self.following.fresh().await.map_err(|refused| *refused.problem)?;
        let sees_all = |repository: &Repository| caller.sees(&repository.all());
        let (found, more) = self.following.look(|index| {
            index.repositories(after.as_ref(), limit, sees_all, |lock| caller.sees(&lock.name))
        });
        let mut known: BTreeMap<Repository, (usize, Option<u64>)> =
            found.into_iter().map(|(name, locks, oldest)| (name, (locks, Some(oldest)))).collect();
        let last = known.last_key_value().map(|(name, _)| name.clone()).filter(|_| more);
        // Of those without locks those that are named; a pattern is none.
        let named = self.config.repositories.iter().filter_map(|entry| of_text(&entry.name).ok());
        for repository in named.filter(|it| sees_all(it)) {
            let is_here = after.as_ref().is_none_or(|after| repository > *after)
                && last.as_ref().is_none_or(|last| repository <= *last);
            if is_here {
                known.entry(repository).or_default();
            }
        }
        let more = more || known.len() > limit;
        let known: Vec<_> = known.into_iter().take(limit).collect();
        let next = known.last().filter(|_| more).map(|(name, _)| name.to_string());
        let repository = |(name, (locks, oldest)): (Repository, (usize, Option<u64>))| {
            let (repository, oldest) = (name.to_string(), oldest.map(rfc3339));
            KnownRepository { repository, locks, oldest }
        };
        Ok(Repositories { repositories: known.into_iter().map(repository).collect(), next })
    }
}

fn of_text(text: &str) -> Result<Repository, Problem> {
    let parts = text.split_once('/').ok_or(RepositoryError);
    let repository = parts.and_then(|(team, repo)| Repository::new(team, repo));
    repository.map_err(|_| {
        let detail = format!("'{text}' is no repository: say TEAM/REPO");
        Problem::new(Kind::BadRequest, "bad-query", detail)
    })
}
