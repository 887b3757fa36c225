//! The state of Terraform and OpenTofu, one file for each, where a node keeps it.
//!
//! States have secrets in them: only the user that the node runs as can read the files. A file is replaced as a
//! whole or not at all. While a run has the lock of a state, only requests that carry its id change it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequestParts, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Api;
use super::caller::Caller;
use super::input::{Asked, BODY_TIME, check_json, whole};
use super::problem::{Kind, Problem};
use super::server::HasTurn;
use super::terraform::{locked, other_holder, wrong_method};
use crate::access::Role;
use crate::secret::secret;

/// The largest state, in bytes.
pub(super) const LARGEST_STATE: usize = 32 << 20;
/// So many states are on their way at a time, as each takes so much memory.
const MOST_TRANSFERS: usize = 4;
/// The longest name of a file. File systems allow a little more.
const LONGEST_FILE_NAME: usize = 240;

/// The directory where a node keeps states.
pub(crate) struct States {
    folder: PathBuf,
    transfers: Arc<Semaphore>,
}

impl States {
    /// Opens the directory, and makes it if it is not there.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            // What was being written when the node was killed. No state is called so.
            if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
                fs::remove_file(path)?;
            }
        }
        let transfers = Arc::new(Semaphore::new(MOST_TRANSFERS));
        Ok(States { folder: folder.to_path_buf(), transfers })
    }

    fn path(&self, name: &str) -> Result<PathBuf, Problem> {
        let file = file_name(name);
        if file.len() > LONGEST_FILE_NAME {
            let detail = "the name is too long for a state that is kept in a file; shorten it";
            return Err(Problem::new(Kind::BadRequest, "long-state-name", detail));
        }
        Ok(self.folder.join(file))
    }

    async fn transfer(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = timeout(BODY_TIME, Arc::clone(&self.transfers).acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            let detail = "too many states are on their way; try again later";
            Problem::new(Kind::Unavailable, "busy", detail)
        })
    }
}

/// A name without anything that means something in paths. Different names are different files.
fn file_name(name: &str) -> String {
    let mut file = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => file.push(byte.into()),
            other => file.push_str(&format!("%{other:02X}")),
        }
    }
    file + "%.tfstate"
}

/// Which run asks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunQuery {
    #[serde(rename = "ID")]
    id: Option<String>,
}

pub(super) async fn serve(
    api: &Api,
    caller: &Caller,
    name: &str,
    lock: String,
    request: Request,
) -> Result<Response, Problem> {
    let method = request.method().clone();
    let (is_reading, is_known) = match method {
        Method::GET | Method::HEAD => (true, true),
        Method::POST | Method::DELETE => (false, true),
        _ => (false, false),
    };
    if !is_known {
        return Err(wrong_method(&method));
    }
    caller.may(if is_reading { Role::Observe } else { Role::Lock }, [lock.as_str()])?;
    let Some(states) = &api.states else {
        let detail = "this node serves the locks of Terraform and keeps no state; set the backend's address to \
                      where the state is, and only lock_address and unlock_address to here";
        return Err(Problem::new(Kind::NotOffered, "no-state", detail));
    };
    let path = states.path(name)?;
    let (mut parts, body) = request.into_parts();
    let Asked(RunQuery { id }) = Asked::from_request_parts(&mut parts, api).await?;
    if is_reading {
        return read(states, path).await;
    }
    if let Some(other) = other_holder(api, caller, lock.clone(), id.as_deref()).await? {
        return Ok(locked(&other));
    }
    if method == Method::DELETE {
        return run(move || remove(&path)).await.map(|()| StatusCode::OK.into_response());
    }
    check_json(&parts.headers)?;
    let turn = states.transfer().await?;
    let state = whole(body, LARGEST_STATE, BODY_TIME, None).await?;
    // It may have lost the lock while the state was on its way.
    if let Some(other) = other_holder(api, caller, lock, id.as_deref()).await? {
        return Ok(locked(&other));
    }
    run(move || write(&path, &state)).await?;
    drop(turn);
    Ok(StatusCode::OK.into_response())
}

async fn read(states: &States, path: PathBuf) -> Result<Response, Problem> {
    let turn = states.transfer().await?;
    let state = run(move || match fs::read(path) {
        Ok(state) => Ok(Some(state)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    });
    match state.await? {
        Some(state) => {
            let body = Body::new(Transfer { state: Some(state.into()), _turn: turn });
            let mut response = ([(CONTENT_TYPE, "application/json")], body).into_response();
            response.extensions_mut().insert(HasTurn);
            Ok(response)
        }
        // The backend takes it as that there is none yet.
        None => {
            Err(Problem::new(Kind::NotFound, "no-such-state", "there is no state of this name"))
        }
    }
}

/// Replaces a file as a whole.
fn write(path: &Path, state: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let pending = folder.join(format!(".{:032x}", u128::from_be_bytes(secret())));
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&pending)?;
        file.write_all(state)?;
        file.sync_all()?;
        fs::rename(&pending, path)
    })();
    if written.is_err() {
        // What is left of it is removed when the node starts the next time, if not now.
        let _ = fs::remove_file(&pending);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Uses the disk where that holds nobody up.
async fn run<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    let done = spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| {
        tracing::error!(%error, "a state of Terraform could not be read or written");
        let detail = "the state could not be read or written; the log of the node says why";
        Problem::new(Kind::Unavailable, "state-unavailable", detail)
    })
}

/// A state on its way to a client. Its turn is over when it has gone.
struct Transfer {
    state: Option<Bytes>,
    _turn: OwnedSemaphorePermit,
}

impl HttpBody for Transfer {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.state.take().map(|state| Ok(Frame::data(state))))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        hyper::body::SizeHint::with_exact(self.state.as_ref().map_or(0, Bytes::len) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn no_name_leads_out_of_the_directory_and_no_two_to_one_file() {
        let names =
            ["a", "A", "a/b", "a%2Fb", "..", "../x", ".hidden", "a.tfstate", "é", "/etc/passwd"];
        let mut files: Vec<String> = names.iter().map(|name| file_name(name)).collect();
        for file in &files {
            assert!(!file.contains('/') && !file.starts_with('.'), "{file}");
        }
        files.sort();
        files.dedup();
        assert_eq!(files.len(), names.len());
    }

    #[test]
    fn a_state_is_replaced_as_a_whole_and_only_its_user_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let states = States::open(&folder.path().join("a/b")).unwrap();
        let path = states.path("prod/net").unwrap();
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&states.folder)), (0o600, 0o700));
        assert_eq!(fs::read_dir(&states.folder).unwrap().count(), 1, "nothing else is left");
        fs::write(states.folder.join(".0123"), "cut off").unwrap();
        States::open(&states.folder).unwrap();
        assert_eq!(fs::read_dir(&states.folder).unwrap().count(), 1);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(states.path(&"é".repeat(100)).is_err());
    }
}
