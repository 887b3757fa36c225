//! Locks of files in Git repositories: the Git LFS API, at `/git/TEAM/REPO` of the HTTP port of any node.
//!
//! A lock is a durable hold of the name `git/TEAM/REPO/PATH`. `taking.rs` and `sets.rs` take them, those who want several
//! in turns (`turns.rs`); `index.rs` knows all of them by repository and `following.rs` keeps it up to date; `locks.rs` is what clients ask for. Who is
//! told of changes is in `telling.rs`, `changes.rs` and `webhooks.rs`. Large files are in `objects.rs`,
//! `store.rs` and `transfer.rs`.

mod answer;
mod asking;
mod changes;
mod following;
mod index;
mod lock;
mod locks;
mod objects;
mod path;
mod repositories;
mod repository;
mod sets;
mod store;
mod taking;
mod telling;
mod transfer;
mod turns;
mod waiting;
mod webhooks;

use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use self::answer::Refused;
pub(crate) use self::answer::{asks_for_lfs, for_lfs};
use self::asking::Asking;
use self::following::Following;
use self::objects::Objects;
pub(crate) use self::path::folded;
pub(crate) use self::repositories::{MOST_REPOSITORIES, Repositories};
use self::repository::{Repository, RepositoryError};
use self::webhooks::Webhooks;
use crate::access::Role;
use crate::config::GitConfig;
use crate::gateway::Gateway;
use crate::http::Api;
use crate::http::problem::Kind;
use crate::mutex::hold;
use crate::node::StartError;

/// So many large bodies are read at a time.
const MOST_BODIES: usize = 4;

/// What is served for Git.
pub(crate) struct Git {
    config: Arc<GitConfig>,
    gateway: Gateway,
    following: Arc<Following>,
    webhooks: Webhooks,
    objects: Objects,
    bodies: Semaphore,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Git {
    /// Reads what is configured. Nothing runs yet.
    pub(crate) fn open(
        config: &GitConfig,
        gateway: &Gateway,
        has_tls: bool,
    ) -> Result<Self, StartError> {
        let config = Arc::new(config.clone());
        Ok(Git {
            following: Arc::new(Following::new(gateway, &config)),
            webhooks: Webhooks::open(&config.webhooks)?,
            objects: Objects::open(&config, has_tls)?,
            gateway: gateway.clone(),
            bodies: Semaphore::new(MOST_BODIES),
            tasks: Mutex::default(),
            config,
        })
    }

    /// Begins with what goes on all the time.
    pub(crate) fn start(self: &Arc<Self>) {
        let mut tasks = hold(&self.tasks);
        tasks.push(tokio::spawn(Arc::clone(&self.following).run()));
        tasks.push(tokio::spawn(Arc::clone(self).tidy()));
        tasks.push(tokio::spawn(Arc::clone(self).tell_of_others()));
        tasks.extend(self.webhooks.start());
        tasks.extend(self.objects.start());
    }

    /// Ends it.
    pub(crate) fn stop(&self) {
        for task in hold(&self.tasks).drain(..) {
            task.abort();
        }
    }
}

/// Serves whatever is below `/git/`.
pub(crate) async fn serve(State(api): State<Api>, request: Request) -> Response {
    route(api, request).await.unwrap_or_else(IntoResponse::into_response)
}

/// What somebody is told whose address of a repository is none.
pub(crate) fn bad_repository() -> Response {
    Refused::from(RepositoryError).into_response()
}

async fn route(api: Api, request: Request) -> Result<Response, Refused> {
    let path = request.uri().path().to_string();
    let mut parts = path.strip_prefix("/git/").unwrap_or_default().splitn(3, '/');
    let (team, repo) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let repository = Repository::new(team, repo)?;
    let rest: Vec<&str> = parts.next().unwrap_or_default().split('/').collect();
    let (parts, body) = request.into_parts();
    let method = parts.method.clone();
    let allowed = match rest[..] {
        ["locks"] => "GET, POST",
        ["locks", "verify" | "batch" | "match"] | ["locks", _, "unlock" | "steal"] => "POST",
        ["whoami" | "changes"] => "GET",
        ["objects", "batch" | "verify"] => "POST",
        ["objects", _] => "GET, HEAD, PUT",
        ["objects", _, "upload"] => "HEAD, PATCH",
        // Whoever finds nothing there would push without asking for locks ever again.
        _ if path.ends_with("/locks/verify") => return Err(RepositoryError.into()),
        _ => {
            let detail =
                "there is nothing here: a repository has locks, objects, whoami and changes";
            return Err(Refused::new(Kind::NotFound, "no-such-path", detail));
        }
    };
    if !allowed.split(", ").any(|it| it == method.as_str()) {
        return Err(Refused::wrong_method(allowed));
    }
    if let ["objects", "batch"] = rest[..]
        && let Some(elsewhere) = api.git.objects.elsewhere(&repository)
    {
        // Whoever is asked there says who may.
        return Ok(elsewhere);
    }
    let asking = Asking::new(&api, repository, parts)?;
    match (method.as_str(), &rest[..]) {
        ("POST", ["locks"]) => locks::lock(asking, body).await,
        (_, ["locks"]) => locks::locks(asking).await,
        (_, ["locks", "verify"]) => locks::verify(asking, body).await,
        (_, ["locks", "batch"]) => locks::batch(asking, body).await,
        (_, ["locks", "match"]) => locks::matching(asking, body).await,
        (_, ["locks", id, "unlock"]) => locks::unlock(asking, id, body).await,
        (_, ["locks", id, _]) => locks::steal(asking, id, body).await,
        (_, ["whoami"]) => whoami(&asking),
        (_, ["changes"]) => changes::watch(asking).await,
        (_, ["objects", "batch"]) => objects::batch(asking, body).await,
        (_, ["objects", "verify"]) => objects::verify(asking, body).await,
        ("PUT", ["objects", oid]) => transfer::put(asking, oid, body).await,
        (_, ["objects", oid]) => transfer::get(asking, oid).await,
        ("PATCH", ["objects", oid, _]) => transfer::append(asking, oid, body).await,
        (_, [_, oid, ..]) => transfer::offset(asking, oid).await,
        _ => Err(RepositoryError.into()),
    }
}

/// Who asks, what it may do, and what holds for the repository.
fn whoami(asking: &Asking) -> Result<Response, Refused> {
    let roles = [Role::Observe, Role::Lock, Role::Administer];
    let roles: Vec<Role> = roles.into_iter().filter(|&role| asking.may(role).is_ok()).collect();
    let body = json!({
        "name": asking.name,
        "roles": roles,
        "repository": asking.repository.to_string(),
        "policy": asking.settings.policy,
        "default_branch": asking.settings.default_branch,
        "fold": asking.settings.fold,
        "steal": asking.settings.steal,
        "objects": asking.git.objects.word(),
    });
    Ok(answer::json(StatusCode::OK, body.to_string()))
}
