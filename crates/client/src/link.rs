//! The way from a client to its node: a connection, or an attempt to make one.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use catraca_group::SessionId;

use crate::connection::Connection;
use crate::error::ClientError;
use crate::opening::{Opened, Settings};
use crate::protocol::ServerMessage;

type Attempt<T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>;

/// The way to the node.
pub(crate) enum Link {
    /// There is no session, and nobody needs one.
    None,
    Up(Connection),
    /// A new session is being opened.
    Opening(Attempt<Opened>),
    /// The session goes on over a new connection, which is being made.
    Resuming(Attempt<Connection>),
}

/// What comes over it.
pub(crate) enum Arrival {
    Message(Result<ServerMessage, ClientError>),
    Opened(Result<Opened, ClientError>),
    Resumed(Result<Connection, ClientError>),
}

impl Link {
    /// Opens a session at the first of `places` that serves, after a pause.
    pub(crate) fn open(
        settings: &Arc<Settings>,
        places: Vec<usize>,
        ttl: Duration,
        pause: Duration,
    ) -> Self {
        let settings = Arc::clone(settings);
        Link::Opening(Box::pin(async move {
            tokio::time::sleep(pause).await;
            settings.open(&places, ttl).await
        }))
    }

    /// Goes on with a session, after a pause.
    pub(crate) fn resume(
        settings: &Arc<Settings>,
        place: usize,
        session: SessionId,
        pause: Duration,
    ) -> Self {
        let settings = Arc::clone(settings);
        Link::Resuming(Box::pin(async move {
            tokio::time::sleep(pause).await;
            settings.resume(place, session).await
        }))
    }

    /// What comes next. Nothing is lost if the future is dropped. An attempt that has come to its end
    /// has to be replaced.
    pub(crate) async fn next(&mut self) -> Arrival {
        match self {
            Link::None => std::future::pending().await,
            Link::Up(connection) => Arrival::Message(connection.receive().await),
            Link::Opening(attempt) => Arrival::Opened(attempt.await),
            Link::Resuming(attempt) => Arrival::Resumed(attempt.await),
        }
    }

    /// Ends the session, and returns when everything that it held is free. Where the connection
    /// breaks, another one is made.
    pub(crate) async fn close(
        mut self,
        settings: &Arc<Settings>,
        place: usize,
        session: SessionId,
    ) -> Result<(), ClientError> {
        loop {
            let connection = match self {
                Link::None => return Ok(()),
                Link::Up(connection) => connection,
                Link::Opening(attempt) => attempt.await?.connection,
                Link::Resuming(attempt) => match attempt.await {
                    Ok(connection) => connection,
                    // It is over already.
                    Err(ClientError::Over(_)) => return Ok(()),
                    Err(error) => return Err(error),
                },
            };
            match connection.close().await {
                Err(error) if error.is_broken() => {
                    self = Link::resume(settings, place, session, Duration::ZERO);
                }
                closed => return closed,
            }
        }
    }
}
