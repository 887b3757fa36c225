//! Where the objects of Git LFS are: the batch API, which tells clients how to get and send them.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{HOST, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

use super::answer::{self, Refused};
use super::asking::Asking;
use super::repository::Repository;
use super::store::{Oid, Store, StoreError};
use crate::access::Role;
use crate::config::GitConfig;
use crate::http::problem::Kind;
use crate::node::StartError;

/// So many objects are on their way at a time.
pub(super) const MOST_TRANSFERS: usize = 64;
/// What was not finished is looked for so often.
const TIDY: Duration = Duration::from_secs(3600);
/// What nobody has written to for so long is not being written.
const IDLE: Duration = Duration::from_secs(3600);
/// The transfers that are known here.
const BASIC: &str = "basic";
const TUS: &str = "tus";

/// Where objects are.
pub(crate) struct Objects {
    place: Place,
    /// By which address clients reach the node, if not by that of the request.
    url: Option<String>,
    has_tls: bool,
    pub(super) transfers: Arc<Semaphore>,
}

enum Place {
    Here(Arc<Store>),
    Elsewhere(String),
    Nowhere,
}

impl Objects {
    pub(crate) fn open(config: &GitConfig, has_tls: bool) -> Result<Self, StartError> {
        let place = match (&config.objects, &config.forward) {
            (Some(folder), _) => {
                let failed = |reason| StartError::Folder { folder: folder.clone(), reason };
                Place::Here(Arc::new(Store::open(folder).map_err(failed)?))
            }
            (None, Some(url)) => Place::Elsewhere(url.clone()),
            (None, None) => Place::Nowhere,
        };
        let url = config.url.as_ref().map(|url| url.trim_end_matches('/').to_string());
        let transfers = Arc::new(Semaphore::new(MOST_TRANSFERS));
        Ok(Objects { place, url, has_tls, transfers })
    }

    /// Removes now and then what was not finished.
    pub(crate) fn start(&self) -> Option<JoinHandle<()>> {
        let Place::Here(store) = &self.place else { return None };
        let store = Arc::clone(store);
        Some(tokio::spawn(async move {
            loop {
                sleep(TIDY).await;
                let store = Arc::clone(&store);
                // How it ends does not matter: it is done again.
                spawn_blocking(move || store.tidy(IDLE)).await.ok();
            }
        }))
    }

    /// How it is said to clients.
    pub(crate) fn word(&self) -> &'static str {
        match self.place {
            Place::Here(_) => "here",
            Place::Elsewhere(_) => "forward",
            Place::Nowhere => "none",
        }
    }

    /// Where objects are kept, if they are kept here.
    pub(super) fn store(&self) -> Result<&Arc<Store>, Refused> {
        match &self.place {
            Place::Here(store) => Ok(store),
            _ => Err(locks_only()),
        }
    }

    /// Where requests for objects are sent on to, if they are.
    pub(crate) fn elsewhere(&self, repository: &Repository) -> Option<Response> {
        let Place::Elsewhere(url) = &self.place else { return None };
        let url = url.replace("{team}", repository.team()).replace("{repo}", repository.repo());
        let url = format!("{}/objects/batch", url.trim_end_matches('/'));
        let location = HeaderValue::from_str(&url).ok()?;
        Some((StatusCode::TEMPORARY_REDIRECT, [(LOCATION, location)]).into_response())
    }

    /// The address of a repository, as its clients reach it.
    fn base(&self, repository: &Repository, headers: &HeaderMap) -> Result<String, Refused> {
        let scheme = if self.has_tls { "https" } else { "http" };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let url = self.url.clone().or_else(|| Some(format!("{scheme}://{}", host?)));
        let url = url.ok_or_else(|| {
            Refused::new(
                Kind::BadRequest,
                "bad-host",
                "say which host you ask, in the header 'Host'",
            )
        })?;
        Ok(format!("{url}/git/{repository}"))
    }
}

fn locks_only() -> Refused {
    let detail = "this server keeps locks only, and no large files: set lfs.url to where those are, and only \
                  remote.NAME.lfsurl to here; or let the server keep them, with --lfs-objects";
    Refused::new(Kind::NotOffered, "locks-only", detail)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BatchBody {
    operation: String,
    transfers: Vec<String>,
    objects: Vec<ObjectBody>,
    hash_algo: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct ObjectBody {
    oid: String,
    size: u64,
}

/// Tells how to get or send objects.
pub(crate) async fn batch(asking: Asking, body: Body) -> Result<Response, Refused> {
    let store = Arc::clone(asking.git.objects.store()?);
    let asked: BatchBody = asking.body(body).await?;
    let is_upload = match asked.operation.as_str() {
        "upload" => true,
        "download" => false,
        _ => {
            let detail = "'operation' is 'upload' or 'download'";
            return Err(Refused::new(Kind::BadRequest, "bad-operation", detail));
        }
    };
    if asked.hash_algo.as_deref().is_some_and(|algorithm| algorithm != "sha256") {
        let detail = "objects are named by their SHA-256 here: 'hash_algo' is 'sha256'";
        return Err(Refused::new(Kind::BadRequest, "bad-hash", detail));
    }
    asking.may_all(if is_upload { Role::Lock } else { Role::Observe })?;
    let resumes = is_upload && asked.transfers.iter().any(|it| it == TUS);
    let base = asking.git.objects.base(&asking.repository, &asking.parts.headers)?;
    let repository = asking.repository.clone();
    let transfer = if resumes { TUS } else { BASIC };
    let objects = on_disk(move || {
        let object =
            |asked: &ObjectBody| object(&store, &repository, &base, asked, is_upload, resumes);
        asked.objects.iter().map(object).collect::<Result<Vec<Value>, StoreError>>()
    });
    let body = json!({"transfer": transfer, "objects": objects.await?, "hash_algo": "sha256"});
    Ok(answer::json(StatusCode::OK, body.to_string()))
}

/// What is said of one object.
fn object(
    store: &Store,
    repository: &Repository,
    base: &str,
    asked: &ObjectBody,
    is_upload: bool,
    resumes: bool,
) -> Result<Value, StoreError> {
    let ObjectBody { oid: name, size } = asked;
    let error = |code: u16, message: &str| json!({"oid": name, "size": size, "error": {"code": code, "message": message}});
    let Some(oid) = Oid::new(name) else {
        return Ok(error(422, "an object is named by the 64 digits of its SHA-256"));
    };
    let known = store.size(repository, &oid)?;
    let actions = match (is_upload, known) {
        (true, Some(known)) if known == *size => return Ok(json!({"oid": name, "size": size})),
        (true, _) => {
            let suffix = if resumes { "/upload" } else { "" };
            json!({
                "upload": {"href": format!("{base}/objects/{name}{suffix}?size={size}")},
                "verify": {"href": format!("{base}/objects/verify")},
            })
        }
        (false, Some(known)) if known == *size => {
            json!({"download": {"href": format!("{base}/objects/{name}")}})
        }
        (false, Some(known)) => {
            return Ok(error(422, &format!("the object has {known} bytes here")));
        }
        (false, None) => return Ok(error(404, "the object is not here: nobody has pushed it")),
    };
    Ok(json!({"oid": name, "size": size, "actions": actions}))
}

/// Whether an object has come.
pub(crate) async fn verify(asking: Asking, body: Body) -> Result<Response, Refused> {
    let store = Arc::clone(asking.git.objects.store()?);
    asking.may_all(Role::Observe)?;
    let asked: ObjectBody = asking.body(body).await?;
    let (repository, oid) = (asking.repository.clone(), named(&asked.oid)?);
    match on_disk(move || Ok(store.size(&repository, &oid)?)).await? {
        Some(size) if size == asked.size => Ok(answer::json(StatusCode::OK, "{}")),
        Some(size) => {
            let detail = format!("the object has {size} bytes here, not {}", asked.size);
            Err(Refused::new(Kind::Conflict, "other-size", detail))
        }
        None => Err(no_such_object()),
    }
}

pub(super) fn named(oid: &str) -> Result<Oid, Refused> {
    Oid::new(oid).ok_or_else(|| {
        let detail = "an object is named by the 64 digits of its SHA-256, in small letters";
        Refused::new(Kind::BadRequest, "bad-oid", detail)
    })
}

pub(super) fn no_such_object() -> Refused {
    let detail = "the object is not here: nobody has pushed it";
    Refused::new(Kind::NotFound, "no-such-object", detail)
}

/// Uses the disk where that holds nobody up.
pub(super) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refused> {
    let failed = |error| Err(StoreError::Disk(std::io::Error::other(error)));
    Ok(spawn_blocking(work).await.unwrap_or_else(failed)?)
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        let detail = error.to_string();
        match error {
            StoreError::Disk(error) => {
                tracing::error!(%error, "an object of Git LFS could not be read or written");
                let detail =
                    "the object could not be read or written; the log of the node says why";
                Refused::new(Kind::Unavailable, "objects-unavailable", detail)
            }
            StoreError::Digest(_) => Refused::new(Kind::BadRequest, "other-digest", detail),
            StoreError::Size => Refused::new(Kind::BadRequest, "too-long", detail),
            StoreError::Offset(_) => Refused::new(Kind::Conflict, "other-offset", detail),
            StoreError::Busy => Refused::new(Kind::Conflict, "busy", detail),
        }
    }
}
