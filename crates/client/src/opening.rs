//! How a client gets to a node: several addresses, sessions that are opened, and sessions that go on.

use std::time::Duration;

use catraca_group::{Class, Refusal, SessionId, Time, Who};

use crate::clock;
use crate::connection::{ANSWER_TIME, Connection};
use crate::error::ClientError;
use crate::nodes::Nodes;
use crate::protocol::Over;

/// From one attempt to connect to the next.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// The time to live, unless the program asks for another.
pub(crate) const USUAL_TTL: Duration = Duration::from_secs(10);

/// Where nodes are, and what a session is asked for with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) nodes: Nodes,
    pub(crate) who: Who,
    /// The time to live; the usual one, or a shorter one if the group wants that, unless given.
    pub(crate) ttl: Option<Duration>,
    /// For how long a connection that breaks before the session is open is made anew.
    pub(crate) retry: Duration,
}

/// A session that has been opened.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) session: SessionId,
    pub(crate) ttl: Duration,
    /// For how long, from asking, the node is certain of what it grants.
    pub(crate) certain: Duration,
    /// When it was asked for.
    pub(crate) sent: Time,
    /// At which of the addresses.
    pub(crate) place: usize,
}

impl Settings {
    /// The time to live of the first session.
    pub(crate) fn first_ttl(&self) -> Duration {
        self.ttl.unwrap_or(USUAL_TTL)
    }

    /// A shorter time to live that `why` leaves, if the program has not asked for a certain one.
    pub(crate) fn shorter_ttl(&self, why: &Refusal, ttl: Duration) -> Option<Duration> {
        match why {
            Refusal::LongTtl { most, .. } if self.ttl.is_none() && *most < ttl => Some(*most),
            _ => None,
        }
    }

    /// Opens a session at the first address that serves, beginning with the one in `places` that comes
    /// first.
    pub(crate) async fn open(
        &self,
        places: &[usize],
        ttl: Duration,
    ) -> Result<Opened, ClientError> {
        let until = clock::now() + self.retry;
        loop {
            let mut errors = Vec::new();
            for &place in places {
                match self.open_at(place, ttl).await {
                    Ok(opened) => return Ok(opened),
                    // Another node would say the same.
                    Err(error) if error.class() == Some(Class::Input) => return Err(error),
                    Err(error) => errors.push(error),
                }
            }
            let error = ClientError::of_all(errors);
            if !error.is_broken() || until <= clock::now() {
                return Err(error);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn open_at(&self, place: usize, mut ttl: Duration) -> Result<Opened, ClientError> {
        loop {
            let mut connection = self.connect(place).await?;
            let sent = clock::now();
            let opening = connection.open_session(self.who.clone(), Some(ttl));
            let error = match self.in_time(place, opening).await {
                Ok((session, certain)) => {
                    return Ok(Opened { connection, session, ttl, certain, sent, place });
                }
                Err(error) => error,
            };
            let shorter = error.refusal().and_then(|why| self.shorter_ttl(why, ttl));
            ttl = shorter.ok_or(error)?;
        }
    }

    async fn connect(&self, place: usize) -> Result<Connection, ClientError> {
        Connection::open_with(&self.nodes.addresses[place], &self.nodes.credentials).await
    }

    /// Goes on with `session` over a new connection. [`ClientError::Over`] if that cannot be.
    pub(crate) async fn resume(
        &self,
        place: usize,
        session: SessionId,
    ) -> Result<Connection, ClientError> {
        let mut connection = self.connect(place).await?;
        if connection.incarnation() != session.incarnation {
            return Err(ClientError::Over(Over::Unknown));
        }
        match self.in_time(place, connection.resume(session)).await {
            Ok(_) => Ok(connection),
            Err(ClientError::Refused(Refusal::UnknownSession)) => {
                Err(ClientError::Over(Over::Unknown))
            }
            Err(error) => Err(error),
        }
    }

    /// What a node answers, if it does so in time.
    async fn in_time<T>(
        &self,
        place: usize,
        answer: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let address = || self.nodes.addresses[place].clone();
        let silent = |_| Err(ClientError::Silent { address: address() });
        tokio::time::timeout(ANSWER_TIME, answer).await.unwrap_or_else(silent)
    }

    /// The addresses from `first` on, and then those before it.
    pub(crate) fn places_from(&self, first: usize) -> Vec<usize> {
        let count = self.nodes.addresses.len();
        (0..count).map(|step| (first + step) % count).collect()
    }
}
