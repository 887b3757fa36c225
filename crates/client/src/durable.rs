//! Durable holds, for programs of other processes.
//!
//! They need no session: whoever asks is told when the hold is written, and may go. Asking again with the
//! same owner and name of the request gives the same hold, so a connection that breaks is no reason to
//! give up: it is made anew, to any of the nodes, and asked again.

use std::time::Duration;

use catraca_group::{AcquireDurable, Class, DurableHold, Refusal, Time, Unlock, Wait};

use crate::clock;
use crate::connection::Connection;
use crate::error::ClientError;
use crate::nodes::Nodes;
use crate::opening::PAUSE;
use crate::protocol::{ClientMessage, ServerMessage};

/// A node that says nothing is asked whether it is there.
const QUIET: Duration = Duration::from_secs(3);
/// If no node serves for so long, that is an error.
const UNSERVED: Duration = Duration::from_secs(15);
/// The number of the only request of a connection.
const ONLY: u32 = 1;

/// Asks for a durable hold at the first node that serves, and again at the next if that one is lost.
///
/// What is not granted in time, by `asked.wait`, is [`Refusal::TimedOut`] or [`Refusal::Taken`].
pub async fn lock_durable(
    nodes: impl Into<Nodes>,
    asked: AcquireDurable,
) -> Result<DurableHold, ClientError> {
    let end = asked.wait.limit().map(|limit| clock::now() + limit);
    let message = |now: Time| {
        let left = |limit: Duration| end.map_or(limit, |end| end.since(now));
        let wait = match asked.wait {
            Wait::Forever => Wait::Forever,
            Wait::AtMost(limit) => Wait::AtMost(left(limit)),
            Wait::No(limit) => Wait::No(left(limit)),
        };
        let asked = AcquireDurable { wait, ..asked.clone() };
        ClientMessage::AcquireDurable { request: ONLY, asked }
    };
    Ok(ask(&nodes.into(), &message).await?)
}

/// Releases a durable hold, and returns what it was.
pub async fn unlock(
    nodes: impl Into<Nodes>,
    unlock: Unlock,
) -> Result<Option<DurableHold>, ClientError> {
    let message = |_| ClientMessage::Unlock { request: ONLY, unlock: unlock.clone() };
    match ask(&nodes.into(), &message).await {
        Ok(hold) => Ok(Some(hold)),
        // A node that did not live to tell may have released it.
        Err(Failed { why: ClientError::Refused(Refusal::NoSuchHold(_)), was_cut: true }) => {
            Ok(None)
        }
        Err(failed) => Err(failed.why),
    }
}

/// Why there is no answer, and whether a node may have done something before its connection broke.
struct Failed {
    why: ClientError,
    was_cut: bool,
}

impl From<Failed> for ClientError {
    fn from(failed: Failed) -> Self {
        failed.why
    }
}

/// Asks one node after the other until one answers.
async fn ask(
    nodes: &Nodes,
    message: &(dyn Fn(Time) -> ClientMessage + Sync),
) -> Result<DurableHold, Failed> {
    let mut was_cut = false;
    let mut served_at = clock::now();
    let mut place = 0;
    loop {
        let why = match Connection::open_any(nodes.starting_at(place)).await {
            Ok(mut connection) => match ask_at(&mut connection, &message(clock::now())).await {
                Ok(hold) => return Ok(hold),
                Err(why) => {
                    if !matches!(why, ClientError::Refused(_)) {
                        (was_cut, served_at) = (true, clock::now());
                    }
                    why
                }
            },
            Err(why) => why,
        };
        let may_serve_later = match &why {
            ClientError::Refused(why) => why.class() == Class::Unavailable,
            why => why.class().is_none(),
        };
        if !may_serve_later || clock::now().since(served_at) > UNSERVED {
            return Err(Failed { why, was_cut });
        }
        place += 1;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks one node, for as long as it is there.
async fn ask_at(
    connection: &mut Connection,
    message: &ClientMessage,
) -> Result<DurableHold, ClientError> {
    connection.send(message).await?;
    let mut is_asked = false;
    loop {
        match tokio::time::timeout(QUIET, connection.receive()).await {
            Ok(Ok(ServerMessage::Durable { result, .. })) => {
                return result.map(|hold| *hold).map_err(ClientError::Refused);
            }
            Ok(Ok(ServerMessage::Over(why))) => return Err(ClientError::Over(why)),
            Ok(Ok(_)) => is_asked = false,
            Ok(Err(error)) => return Err(error),
            Err(_) if is_asked => {
                return Err(ClientError::Silent { address: connection.address().to_string() });
            }
            Err(_) => {
                is_asked = true;
                connection.send(&ClientMessage::Status).await?;
            }
        }
    }
}
