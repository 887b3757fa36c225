//! The way to the locks: a session, a request, and the wait for what comes of it.

use std::time::{Duration, Instant};

use catraca_node::{Client, ClientError, Denial, LinkStatus, Who};
use nix::unistd::{User, getuid};

use super::ending::Ending;
use super::keeper::{Keeper, News, PAUSE, Patience, Wish};
use super::lease::Lease;
use super::signals::Signals;
use super::{ANSWER, Arguments, FAREWELL, LAST_CHANCE, LONG_WAIT, NO_NODE, USUAL_TTL};
use crate::failure::Failure;

/// What comes of waiting.
enum Turn {
    /// The locks are had, with these fences.
    Come(Vec<u64>),
    /// They will not be had; this ends so.
    Never(Result<Ending, Failure>),
    /// The session has run out: we were stopped, or the node did not answer. Nothing is lost by asking
    /// again but the place in the queue; a node that still does not answer is told of then.
    RanOut,
    /// The group wants a shorter time to live, and the user has not asked for one.
    Shorter(Duration),
}

impl Arguments {
    /// Asks for the locks until they are had. Otherwise says how this ends.
    pub(super) async fn enter(
        &self,
        begin: Instant,
        signals: &mut Signals,
    ) -> Result<(Keeper, Lease, Vec<u64>), Result<Ending, Failure>> {
        let mut ttl = self.ttl.unwrap_or(USUAL_TTL);
        loop {
            let (mut keeper, mut lease) = self.ask(begin, ttl, signals).await?;
            let turn = self.inside(begin, &mut keeper, &mut lease, signals).await;
            if let Turn::Come(fences) = turn {
                return Ok((keeper, lease, fences));
            }
            keeper.close(FAREWELL).await;
            match turn {
                Turn::Never(end) => return Err(end),
                Turn::Shorter(shorter) => ttl = shorter,
                _ => self.tell(|| "the session ran out while waiting; asks again".to_string()),
            }
        }
    }

    /// Opens a session and asks for the locks. A connection that breaks before the session is open is
    /// made anew, for as long as the user waits, or a few seconds. Otherwise says how this ends.
    async fn ask(
        &self,
        begin: Instant,
        ttl: Duration,
        signals: &mut Signals,
    ) -> Result<(Keeper, Lease), Result<Ending, Failure>> {
        let late = self.limit().map(|limit| begin + limit);
        let until = late.unwrap_or_else(|| Instant::now() + ANSWER);
        let mut broken = None;
        loop {
            let client = tokio::select! {
                client = Client::connect(&self.node) => client,
                signal = signals.next() => return Err(Ok(Ending::Signal(signal))),
                () = at(late) => {
                    let timed_out = || self.denied(&Denial::TimedOut);
                    return Err(broken.map_or_else(timed_out, |error| Err(no_node(error))));
                }
            };
            let begun = match client {
                // From here on there is something to be closed.
                Ok(client) => {
                    let silent = |_| Err(ClientError::Silent { address: self.node.clone() });
                    let begun = tokio::time::timeout(ANSWER, self.begin(client, begin, ttl));
                    begun.await.unwrap_or_else(silent)
                }
                Err(error) => Err(error),
            };
            match begun {
                Err(error) if error.is_broken() && Instant::now() < until => broken = Some(error),
                begun => return begun.map_err(|error| Err(no_node(error))),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn begin(
        &self,
        client: Client,
        begin: Instant,
        ttl: Duration,
    ) -> Result<(Keeper, Lease), ClientError> {
        let patience = match self.limit() {
            _ if self.refuses() => Patience::None,
            Some(limit) => Patience::Until(begin + limit),
            None => Patience::Endless,
        };
        let wish = Wish { names: self.names.clone(), permits: self.permits, patience };
        Keeper::begin(client, &self.node, self.who(), ttl, wish).await
    }

    /// Whether it is refused rather than to wait.
    fn refuses(&self) -> bool {
        self.nonblock || self.wait == Some(Duration::ZERO)
    }

    /// How long it waits, if it waits, and not for ever.
    fn limit(&self) -> Option<Duration> {
        self.wait.filter(|wait| !wait.is_zero())
    }

    fn who(&self) -> Who {
        let program = self.command.first().map(|program| program.to_string_lossy());
        let label = match (&self.label, program) {
            (Some(label), _) => label.clone(),
            (None, Some(program)) => format!("{}:{program}", user()),
            (None, None) => user(),
        };
        let host = nix::unistd::gethostname().unwrap_or_default();
        Who { label, pid: std::process::id(), host: host.to_string_lossy().into_owned() }
    }

    /// Waits until the locks are had, or something else comes of it.
    async fn inside(
        &self,
        begin: Instant,
        keeper: &mut Keeper,
        lease: &mut Lease,
        signals: &mut Signals,
    ) -> Turn {
        // The node says so itself, if it can be heard.
        let (give_up, not_had) = match self.limit() {
            _ if self.refuses() => (Some(Instant::now() + ANSWER), Denial::Taken),
            limit => (limit.map(|limit| begin + limit + LAST_CHANCE), Denial::TimedOut),
        };
        let mut trouble = std::pin::pin!(self.trouble());
        let mut is_told = false;
        loop {
            let news = tokio::select! {
                what = &mut trouble, if !is_told => {
                    is_told = true;
                    what.inspect(|what| self.warn(what));
                    continue;
                }
                signal = signals.next() => return Turn::Never(Ok(Ending::Signal(signal))),
                news = keeper.news() => news,
                () = at(give_up) => News::Denied(not_had.clone()),
                () = tokio::time::sleep_until(lease.deadline().into()) => return Turn::RanOut,
            };
            match news {
                // We may have been stopped, and hear of it too late.
                News::Granted(_) if lease.warning() <= Instant::now() => return Turn::RanOut,
                News::Lost(_) if lease.deadline() <= Instant::now() => return Turn::RanOut,
                News::Granted(fences) => return Turn::Come(fences),
                News::Renewed(renewed) => *lease = renewed,
                News::Denied(Denial::LongTtl(most, _)) if self.ttl.is_none() => {
                    return Turn::Shorter(most);
                }
                News::Denied(why) => return Turn::Never(self.denied(&why)),
                News::Lost(_) => {
                    let why = format!("{}: the node has stopped or was restarted", self.node);
                    return Turn::Never(Err(Failure::Own(NO_NODE, Some(why))));
                }
            }
        }
    }

    /// After a while, what may be the reason that the locks do not come.
    async fn trouble(&self) -> Option<String> {
        tokio::time::sleep(LONG_WAIT).await;
        let look = async { Client::connect(&self.node).await?.status().await };
        let status = tokio::time::timeout(ANSWER, look).await.ok()?.ok()?;
        let is_away = |link: &LinkStatus| !matches!(link, LinkStatus::Itself | LinkStatus::Up(_));
        let away = status.members.iter().find(|member| is_away(&member.link))?;
        let (member, node) = (&away.name, &self.node);
        Some(format!(
            "waits; member '{member}' is not connected: see 'catraca status --node {node}'"
        ))
    }
}

/// Who runs this, by name if the system knows one.
fn user() -> String {
    let told = std::env::var("USER").ok().filter(|user| !user.is_empty());
    told.unwrap_or_else(|| {
        let id = getuid();
        User::from_uid(id).ok().flatten().map_or_else(|| id.to_string(), |user| user.name)
    })
}

fn no_node(error: ClientError) -> Failure {
    Failure::Own(NO_NODE, Some(error.to_string()))
}

/// Waits until then, if that is ever.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
