//! Answers to requests that wait: with blanks until it is known what comes of them.
//!
//! The stock client gives up a connection on which nothing comes, and cannot be told to wait. But JSON may have
//! blanks before it. So the answer begins at once, with the status 200, and a blank comes now and then. What it
//! is in the end, the body says: one with a `message` is a failure for the client.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::answer::{Refused, json};
use super::asking::Asking;
use crate::http::pieces::Pieces;

/// A blank comes so often.
const BLANK: Duration = Duration::from_secs(5);

/// An answer whose end is what `work` comes to. If the client goes, the work is dropped.
pub(crate) fn waits<F>(asking: Asking, work: impl FnOnce(Asking) -> F) -> Response
where
    F: Future<Output = Result<String, Refused>> + Send + 'static,
{
    let (mut tell, answer) = oneshot::channel();
    let work = work(asking);
    tokio::spawn(async move {
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            () = tell.closed() => return,
        };
        let text = outcome.unwrap_or_else(|refused| refused.body().to_string());
        // Whoever is gone has been seen to be.
        tell.send(text).ok();
    });
    json(StatusCode::OK, Body::new(Pieces::new(Some(State { answer, has_begun: false }), next)))
}

struct State {
    answer: oneshot::Receiver<String>,
    has_begun: bool,
}

async fn next(state: Option<State>) -> Option<(Option<State>, String)> {
    let mut state = state?;
    if !std::mem::replace(&mut state.has_begun, true) {
        return Some((Some(state), " ".to_string()));
    }
    match timeout(BLANK, &mut state.answer).await {
        Err(_) => Some((Some(state), " ".to_string())),
        // A node that stops says nothing more.
        Ok(text) => text.ok().map(|text| (None, text)),
    }
}
