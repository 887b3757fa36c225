//! The web server: a few files, and two questions that a page may put.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::answer::{MOST_SECONDS, Question, explore, state};
use crate::assets::asset;
use crate::catalogue::catalogue;
use crate::host::{Denied, check_host, check_question};
use crate::link::{LONGEST_LINK, Link};

/// So many connections are served at a time; others wait until one has ended.
const MOST_CONNECTIONS: usize = 64;
/// So many states are computed at a time.
const MOST_STATES_AT_ONCE: usize = 2;
/// A header, or a body, has come to its end after this time.
const READ_TIME: Duration = Duration::from_secs(10);
/// A connection does not last longer, whatever it does.
const WHOLE_TIME: Duration = Duration::from_secs(MOST_SECONDS + 30);
/// What is kept of a request until it is understood. What is longer is refused.
const BUFFER: usize = 16 << 10;
/// The longest question: a link, and what is around it.
const LONGEST_QUESTION: usize = LONGEST_LINK + 4096;
/// How long a question waits for the one before it, which may just have been taken back.
const PATIENCE: Duration = Duration::from_secs(2);
/// When no connection can be taken, it is tried again after so long.
const PAUSE: Duration = Duration::from_millis(200);
/// Answers that are being written when the server is to end have so long.
const FAREWELL: Duration = Duration::from_millis(300);

/// No script and no style but the server's own files, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What all connections share.
struct Lab {
    states: Semaphore,
    questions: Semaphore,
    stop: AtomicBool,
}

/// Serves until `end` is ready. Nothing is left over then.
pub async fn serve(listener: TcpListener, end: impl Future<Output = ()>) {
    let lab = Arc::new(Lab {
        states: Semaphore::new(MOST_STATES_AT_ONCE),
        questions: Semaphore::new(1),
        stop: AtomicBool::new(false),
    });
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut end = std::pin::pin!(end);
    loop {
        let accepted = tokio::select! {
            () = end.as_mut() => break,
            Some(_) = connections.join_next() => continue,
            accepted = next(&listener, &places) => accepted,
        };
        match accepted {
            Some((stream, from, place)) => {
                let lab = Arc::clone(&lab);
                connections.spawn(async move {
                    let _place = place;
                    // A client that takes longer, or goes away, is no fault of the server.
                    let _ = timeout(WHOLE_TIME, serve_one(lab, stream, from)).await;
                });
            }
            // Too many open files, most likely: others may close.
            None => sleep(PAUSE).await,
        }
    }
    lab.stop.store(true, Ordering::Relaxed);
    let all_served = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(FAREWELL, all_served).await;
}

/// The next connection, once there is a place for it.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    let (stream, from) = listener.accept().await.ok()?;
    Some((stream, from, place))
}

/// One request, and its answer: connections of one machine cost nothing, and none is kept open for nothing.
async fn serve_one(lab: Arc<Lab>, stream: TcpStream, from: SocketAddr) {
    let service = service_fn(|request: Request<Incoming>| {
        let lab = Arc::clone(&lab);
        async move {
            let is_head = request.method() == Method::HEAD;
            let answer = answer(&lab, request, from)
                .await
                .unwrap_or_else(|(status, what)| say(status, &json!({ "error": what })));
            let (head, body) = answer.into_parts();
            let body = if is_head { Full::default() } else { body };
            Ok::<_, Infallible>(Response::from_parts(head, body))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIME)
        .max_headers(64)
        .max_buf_size(BUFFER)
        .keep_alive(false);
    // A client that goes away is no fault of the server.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    lab: &Arc<Lab>,
    request: Request<Incoming>,
    from: SocketAddr,
) -> Result<Response<Full<Bytes>>, Denied> {
    check_host(&request, from)?;
    let path = request.uri().path().to_string();
    let is_question = path == "/state" || path == "/explore";
    let allowed = if is_question { "POST" } else { "GET, HEAD" };
    let is_allowed = match *request.method() {
        Method::POST => is_question,
        Method::GET | Method::HEAD => !is_question,
        _ => false,
    };
    let file = asset(&path);
    if !is_question && file.is_none() && path != "/catalogue" {
        return Err((StatusCode::NOT_FOUND, "there is no such page; the lab is at /".to_string()));
    }
    if !is_allowed {
        let what = json!({ "error": format!("say {allowed} here") });
        let mut answer = say(StatusCode::METHOD_NOT_ALLOWED, &what);
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        return Ok(answer);
    }
    if let Some((kind, text)) = file {
        return Ok(dressed(StatusCode::OK, kind, Bytes::from_static(text.as_bytes())));
    }
    if path == "/catalogue" {
        return Ok(say(StatusCode::OK, &catalogue()));
    }
    check_question(request.headers())?;
    let question = read(request).await?;
    let asked: Link = question.link.parse().map_err(refused)?;
    if path == "/state" { tell_state(lab, asked).await } else { look(lab, asked, question).await }
}

async fn read(request: Request<Incoming>) -> Result<Question, Denied> {
    let body = Limited::new(request.into_body(), LONGEST_QUESTION).collect();
    let body = timeout(READ_TIME, body).await.map_err(|_| {
        (StatusCode::REQUEST_TIMEOUT, "the question did not come to its end".to_string())
    })?;
    let body = body.map_err(|_| {
        let what = format!("the question is cut, or longer than {LONGEST_QUESTION} bytes");
        (StatusCode::PAYLOAD_TOO_LARGE, what)
    })?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("this is no question: {error}")))
}

/// A refusal repeats what was wrong, which may be very long; the beginning and the end say enough.
fn refused(refusal: impl ToString) -> Denied {
    const KEPT: usize = 140;
    let text = refusal.to_string();
    let count = text.chars().count();
    if count <= 2 * KEPT {
        return (StatusCode::BAD_REQUEST, text);
    }
    let (begin, end): (String, String) =
        (text.chars().take(KEPT).collect(), text.chars().skip(count - KEPT).collect());
    (StatusCode::BAD_REQUEST, format!("{begin} ... {end}"))
}

fn gone<E>(_: E) -> Denied {
    (StatusCode::SERVICE_UNAVAILABLE, "the lab is about to end".to_string())
}

async fn tell_state(lab: &Lab, link: Link) -> Result<Response<Full<Bytes>>, Denied> {
    let _turn = lab.states.acquire().await.map_err(gone)?;
    let told = spawn_blocking(move || state(&link)).await.map_err(gone)?;
    Ok(say(StatusCode::OK, &told.map_err(refused)?))
}

/// Stops an exploration whose answer nobody waits for any more.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn look(
    lab: &Arc<Lab>,
    link: Link,
    question: Question,
) -> Result<Response<Full<Bytes>>, Denied> {
    let Ok(turn) = timeout(PATIENCE, lab.questions.acquire()).await else {
        let what = "the checker is busy with another question; ask again when it is done";
        let mut answer = say(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": what }));
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
        return Ok(answer);
    };
    let _turn = turn.map_err(gone)?;
    let stop = StopOnDrop(Arc::default());
    let flag = Arc::clone(&stop.0);
    let mut exploring = spawn_blocking(move || explore(&link, &question, flag));
    let seen = loop {
        tokio::select! {
            seen = &mut exploring => break seen.map_err(gone)?,
            () = sleep(PAUSE) => if lab.stop.load(Ordering::Relaxed) {
                return Err(gone(()));
            },
        }
    };
    Ok(say(StatusCode::OK, &seen.map_err(refused)?))
}

fn say(status: StatusCode, what: &Value) -> Response<Full<Bytes>> {
    dressed(status, "application/json", Bytes::from(what.to_string()))
}

fn dressed(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in headers {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
