//! Objects on their way: as a whole, in parts that can be continued (tus 1.0), and back, from any byte on.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::answer::{Refused, json};
use super::asking::Asking;
use super::objects::{named, no_such_object, on_disk};
use super::store::{Incoming, StoreError};
use crate::access::Role;
use crate::http::pieces::Pieces;
use crate::http::problem::Kind;

/// A client that sends nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(60);
/// So much of an object is read at once.
const CHUNK: usize = 256 << 10;
/// So many pieces wait for the disk.
const PIECES: usize = 8;
/// The version of the protocol for uploads that can be continued.
const TUS: &str = "1.0.0";
const TUS_RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
const OCTETS: &str = "application/octet-stream";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SizeQuery {
    size: Option<u64>,
}

fn size(asking: &Asking) -> Result<Option<u64>, Refused> {
    let query = Query::<SizeQuery>::try_from_uri(&asking.parts.uri);
    query.map(|Query(query)| query.size).map_err(|_| {
        Refused::new(Kind::BadRequest, "bad-query", "'size' is how many bytes the object has")
    })
}

async fn turn(asking: &Asking) -> Result<OwnedSemaphorePermit, Refused> {
    turn_of(&asking.git.objects.transfers, PATIENCE).await
}

/// A place among the transfers, if there is one within this time.
async fn turn_of(
    transfers: &Arc<Semaphore>,
    patience: Duration,
) -> Result<OwnedSemaphorePermit, Refused> {
    let turn = timeout(patience, Arc::clone(transfers).acquire_owned()).await;
    turn.ok().and_then(Result::ok).ok_or_else(|| {
        Refused::new(
            Kind::Unavailable,
            "busy",
            "too many objects are on their way; try again later",
        )
    })
}

/// Takes an object as a whole.
pub(crate) async fn put(asking: Asking, oid: &str, body: Body) -> Result<Response, Refused> {
    let store = Arc::clone(asking.git.objects.store()?);
    asking.may_all(Role::Lock)?;
    let (oid, size) = (named(oid)?, size(&asking)?);
    let _turn = turn(&asking).await?;
    let repository = asking.repository.clone();
    let begin = move || store.begin(&repository, &oid, size.unwrap_or(u64::MAX));
    receive(body, begin, |incoming, is_whole| match is_whole {
        true => incoming.finish(),
        // What is dropped here is removed.
        false => Ok(()),
    })
    .await?;
    Ok(json(StatusCode::OK, "{}"))
}

/// Says how much has come of an object.
pub(crate) async fn offset(asking: Asking, oid: &str) -> Result<Response, Refused> {
    let store = Arc::clone(asking.git.objects.store()?);
    asking.may_all(Role::Lock)?;
    let (oid, size) = (named(oid)?, whole_size(&asking)?);
    let repository = asking.repository.clone();
    let offset = on_disk(move || store.progress(&repository, &oid, size));
    Ok(progress(StatusCode::OK, offset.await?, Some(size)))
}

fn whole_size(asking: &Asking) -> Result<u64, Refused> {
    size(asking)?.ok_or_else(|| {
        Refused::new(Kind::BadRequest, "no-size", "say how many bytes the object has: ?size=N")
    })
}

fn progress(status: StatusCode, offset: u64, size: Option<u64>) -> Response {
    let headers = [(TUS_RESUMABLE, TUS.to_string()), (UPLOAD_OFFSET, offset.to_string())];
    let length = size.map(|size| [(UPLOAD_LENGTH, size.to_string())]);
    match length {
        Some(length) => (status, headers, length).into_response(),
        None => (status, headers).into_response(),
    }
}

/// Takes a part of an object, behind what has come of it. What comes is kept, also if it is cut off.
pub(crate) async fn append(asking: Asking, oid: &str, body: Body) -> Result<Response, Refused> {
    let store = Arc::clone(asking.git.objects.store()?);
    asking.may_all(Role::Lock)?;
    let (oid, size) = (named(oid)?, whole_size(&asking)?);
    let given = asking.parts.headers.get(UPLOAD_OFFSET).and_then(|value| value.to_str().ok());
    let given: u64 = given.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let detail = "say from which byte on this is, in the header 'Upload-Offset'";
        Refused::new(Kind::BadRequest, "no-offset", detail)
    })?;
    let _turn = turn(&asking).await?;
    let repository = asking.repository.clone();
    let begin = move || store.resume(&repository, &oid, given, size);
    let taken = receive(body, begin, |incoming, _| match incoming.is_complete() {
        true => {
            let length = incoming.length();
            incoming.finish().map(|()| length)
        }
        false => incoming.pause(),
    });
    match taken.await {
        Ok(offset) => Ok(progress(StatusCode::NO_CONTENT, offset, None)),
        Err(refused) => Err(refused),
    }
}

/// What goes to the disk.
enum Piece {
    Bytes(Bytes),
    /// Everything has come.
    End,
}

/// What comes next of a body, if it comes within this time.
async fn piece(body: &mut Body, patience: Duration) -> Result<Piece, Refused> {
    loop {
        let frame = timeout(patience, body.frame()).await.map_err(|_| {
            let detail = format!("nothing has come for {patience:?}");
            Refused::new(Kind::SlowBody, "slow-body", detail)
        })?;
        let Some(frame) = frame else { return Ok(Piece::End) };
        let frame = frame.map_err(|error| {
            let detail = format!("the body is cut off: {error}");
            Refused::new(Kind::BadRequest, "bad-body", detail)
        })?;
        // Trailers say nothing that is needed.
        if let Ok(data) = frame.into_data() {
            return Ok(Piece::Bytes(data));
        }
    }
}

/// Lets a thread write what comes, and then says whether all of it came.
async fn receive<T: Send + 'static>(
    mut body: Body,
    begin: impl FnOnce() -> Result<Incoming, StoreError> + Send + 'static,
    end: impl FnOnce(Incoming, bool) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refused> {
    let (pieces, mut coming) = mpsc::channel::<Piece>(PIECES);
    let writing = spawn_blocking(move || {
        let mut incoming = begin()?;
        loop {
            match coming.blocking_recv() {
                Some(Piece::Bytes(bytes)) => incoming.write(&bytes)?,
                Some(Piece::End) => return end(incoming, true),
                None => return end(incoming, false),
            }
        }
    });
    let cut = loop {
        let piece = match piece(&mut body, PATIENCE).await {
            Ok(piece) => piece,
            Err(refused) => break Some(refused),
        };
        let is_end = matches!(piece, Piece::End);
        // Whoever writes may have given up: then it says why.
        if pieces.send(piece).await.is_err() || is_end {
            break None;
        }
    };
    drop(pieces);
    let failed = |error| Err(StoreError::Disk(std::io::Error::other(error)));
    let written = writing.await.unwrap_or_else(failed);
    match cut {
        Some(refused) => Err(refused),
        None => Ok(written?),
    }
}

/// Sends an object, or a part of it.
pub(crate) async fn get(asking: Asking, oid: &str) -> Result<Response, Refused> {
    let store = Arc::clone(asking.git.objects.store()?);
    asking.may_all(Role::Observe)?;
    let oid = named(oid)?;
    let turn = turn(&asking).await?;
    let repository = asking.repository.clone();
    let found = on_disk(move || Ok(store.find(&repository, &oid)?)).await?;
    let (mut file, size) = found.ok_or_else(no_such_object)?;
    let common = [(CONTENT_TYPE, OCTETS.to_string()), (ACCEPT_RANGES, "bytes".to_string())];
    let (status, first, last) = match range(&asking.parts.headers, size) {
        Wanted::Whole => (StatusCode::OK, 0, size),
        Wanted::Part(first, last) => (StatusCode::PARTIAL_CONTENT, first, last + 1),
        Wanted::Nothing => {
            let whole = [(CONTENT_RANGE, format!("bytes */{size}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, whole).into_response());
        }
    };
    let length = [(CONTENT_LENGTH, (last - first).to_string())];
    let part = (status == StatusCode::PARTIAL_CONTENT)
        .then(|| [(CONTENT_RANGE, format!("bytes {first}-{}/{size}", last - 1))]);
    let body = if asking.parts.method == Method::HEAD {
        Body::empty()
    } else {
        if first > 0 {
            let sought = on_disk(move || {
                file.seek(SeekFrom::Start(first))?;
                Ok(file)
            });
            file = sought.await?;
        }
        let reading = Reading { file, left: last - first, _turn: turn };
        Body::new(Pieces::new(reading, next))
    };
    Ok(match part {
        Some(part) => (status, common, length, part, body).into_response(),
        None => (status, common, length, body).into_response(),
    })
}

/// An object that is being read.
struct Reading {
    file: File,
    left: u64,
    _turn: OwnedSemaphorePermit,
}

/// The next piece of it. If it cannot be read, the answer ends before its end, which the client notices.
async fn next(mut reading: Reading) -> Option<(Reading, Bytes)> {
    if reading.left == 0 {
        return None;
    }
    let read = spawn_blocking(move || {
        let most = usize::try_from(reading.left).unwrap_or(CHUNK).min(CHUNK);
        let mut bytes = vec![0; most];
        let count = reading.file.read(&mut bytes)?;
        bytes.truncate(count);
        Ok::<_, std::io::Error>((reading, bytes))
    });
    match read.await {
        Ok(Ok((mut reading, bytes))) if !bytes.is_empty() => {
            reading.left -= bytes.len() as u64;
            Some((reading, bytes.into()))
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "an object of Git LFS could not be read");
            None
        }
        _ => None,
    }
}

/// Which bytes are wanted.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Whole,
    /// From the first to the last.
    Part(u64, u64),
    /// None that there are.
    Nothing,
}

/// Reads the header 'Range'. What is not understood is as good as not said.
fn range(headers: &HeaderMap, size: u64) -> Wanted {
    let given = headers.get(RANGE).and_then(|value| value.to_str().ok());
    let bounds = given.and_then(|text| text.strip_prefix("bytes=")?.split_once('-'));
    let Some((first, last)) = bounds else { return Wanted::Whole };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (first.trim(), last.trim()) {
        ("", count) => match number(count) {
            Some(0) => Wanted::Nothing,
            Some(_) if size == 0 => Wanted::Nothing,
            Some(count) => Wanted::Part(size.saturating_sub(count), size - 1),
            None => Wanted::Whole,
        },
        (first, last) => match (number(first), number(last), last) {
            (Some(first), _, _) if first >= size => Wanted::Nothing,
            (Some(first), _, "") => Wanted::Part(first, size - 1),
            (Some(first), Some(last), _) if first <= last => {
                Wanted::Part(first, last.min(size - 1))
            }
            _ => Wanted::Whole,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::objects::{MOST_TRANSFERS, Objects};
    use super::*;
    use crate::config::GitConfig;

    #[tokio::test]
    async fn only_so_many_objects_are_on_their_way_at_a_time() {
        let objects = Objects::open(&GitConfig::default(), false).unwrap();
        let turn = || turn_of(&objects.transfers, Duration::from_millis(1));
        let mut turns = Vec::new();
        for _ in 0..MOST_TRANSFERS {
            turns.push(turn().await.unwrap());
        }
        let busy = turn().await.unwrap_err();
        assert_eq!((busy.problem.kind(), busy.problem.code()), (Kind::Unavailable, "busy"));
        turns.pop();
        assert!(turn().await.is_ok());
    }

    /// A body that says this, and then nothing more, without an end.
    fn stalled(bytes: &'static [u8]) -> Body {
        let pieces = |bytes: Option<&'static [u8]>| async move {
            match bytes {
                Some(bytes) => Some((None, Bytes::from_static(bytes))),
                None => std::future::pending().await,
            }
        };
        Body::new(Pieces::new(Some(bytes), pieces))
    }

    #[tokio::test]
    async fn a_body_of_which_nothing_comes_is_given_up() {
        let moment = Duration::from_millis(1);
        let mut body = stalled(b"abc");
        assert!(
            matches!(piece(&mut body, PATIENCE).await, Ok(Piece::Bytes(bytes)) if bytes == "abc")
        );
        let refused = piece(&mut body, moment).await.err().unwrap();
        assert_eq!(refused.problem.kind(), Kind::SlowBody);
        assert!(matches!(piece(&mut Body::empty(), PATIENCE).await, Ok(Piece::End)));
    }

    #[test]
    fn a_range_is_a_part_of_what_there_is() {
        let read = |text: &str, size| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, text.parse().unwrap());
            range(&headers, size)
        };
        assert_eq!(range(&HeaderMap::new(), 9), Wanted::Whole);
        for (text, expected) in [
            ("bytes=0-", Wanted::Part(0, 9)),
            ("bytes=3-5", Wanted::Part(3, 5)),
            ("bytes=3-500", Wanted::Part(3, 9)),
            ("bytes=9-9", Wanted::Part(9, 9)),
            ("bytes=-4", Wanted::Part(6, 9)),
            ("bytes=-40", Wanted::Part(0, 9)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-3", Wanted::Whole),
            ("bytes=1-2,4-5", Wanted::Whole),
            ("bytes=x-", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("bytes=99999999999999999999-", Wanted::Whole),
        ] {
            assert_eq!(read(text, 10), expected, "{text}");
        }
        assert_eq!(read("bytes=0-", 0), Wanted::Nothing);
        assert_eq!(read("bytes=-1", 0), Wanted::Nothing);
    }
}
