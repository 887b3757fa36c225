//! The way to the locks: a session, a request, and the wait for what comes of it.

use std::time::Duration;

use catraca_client::{
    Class, Client, ClientError, Guard, LinkStatus, Nodes, Refusal, Time, Wait, Who, clock,
};
use nix::unistd::{User, getuid};

use super::ending::Ending;
use super::{Arguments, FAREWELL, LAST_CHANCE, TIMED_OUT, farewell};
use crate::failure::Failure;
use crate::signals::Signals;

/// Whoever waits for so long is told if a member is not there.
const LONG_WAIT: Duration = Duration::from_secs(3);

/// Why the locks are not had.
enum Stop {
    Signal(nix::sys::signal::Signal),
    Error(ClientError),
    /// The flags are wrong.
    Input(Failure),
}

impl Arguments {
    /// Asks for the locks until they are had. Otherwise says how this ends.
    pub(super) async fn enter(
        &self,
        begin: Time,
        signals: &mut Signals,
    ) -> Result<(Client, Guard), Result<Ending, Failure>> {
        let client = self.connect(begin, signals).await.map_err(|stop| self.stopped(stop))?;
        match self.acquire(&client, begin, signals).await {
            Ok(guard) => Ok((client, guard)),
            Err(stop) => {
                // Nothing is left behind at the node.
                farewell(client, FAREWELL, signals).await;
                Err(self.stopped(stop))
            }
        }
    }

    /// Opens a session. A connection that breaks before that is made anew, for as long as the user
    /// waits, or a few seconds.
    async fn connect(&self, begin: Time, signals: &mut Signals) -> Result<Client, Stop> {
        let Nodes { addresses, credentials } = self.nodes.nodes().map_err(Stop::Input)?;
        let mut builder =
            Client::builder().addresses(addresses).credentials(credentials).who(self.who());
        if let Some(ttl) = self.ttl {
            builder = builder.ttl(ttl);
        }
        if let Some(limit) = self.limit() {
            builder = builder.retry(limit);
        }
        let end = self.limit().map(|limit| begin + limit + LAST_CHANCE);
        tokio::select! {
            client = builder.connect() => client.map_err(Stop::Error),
            signal = signals.next() => Err(Stop::Signal(signal)),
            () = at(end) => Err(Stop::Error(Refusal::TimedOut.into())),
        }
    }

    /// Waits until the locks are had.
    async fn acquire(
        &self,
        client: &Client,
        begin: Time,
        signals: &mut Signals,
    ) -> Result<Guard, Stop> {
        let wait = match self.limit() {
            _ if self.refuses() => Wait::no(),
            Some(limit) => Wait::AtMost((begin + limit).since(clock::now())),
            None => Wait::Forever,
        };
        let names = client.lock_all(&self.names).permits(self.permits).wait(wait);
        let mut locks = std::pin::pin!(names.into_future());
        let mut trouble = std::pin::pin!(self.trouble(client));
        let mut is_told = false;
        loop {
            tokio::select! {
                guard = &mut locks => return guard.map_err(Stop::Error),
                signal = signals.next() => return Err(Stop::Signal(signal)),
                what = &mut trouble, if !is_told => {
                    is_told = true;
                    what.inspect(|what| self.warn(what));
                }
            }
        }
    }

    /// How this ends without the locks.
    fn stopped(&self, stop: Stop) -> Result<Ending, Failure> {
        let error = match stop {
            Stop::Signal(signal) => return Ok(Ending::Signal(signal)),
            Stop::Input(failure) => return Err(failure),
            Stop::Error(error) => error,
        };
        let usual = match error.class() {
            Some(Class::Taken) => 1,
            Some(Class::TimedOut) => TIMED_OUT,
            _ => return Err(error.into()),
        };
        self.tell(|| error.to_string());
        Ok(Ending::Code(self.conflict_exit_code.unwrap_or(usual)))
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
        let host = host.to_string_lossy().into_owned();
        Who { label, pid: std::process::id(), host, ..Who::default() }
    }

    /// After a while, what may be the reason that the locks do not come.
    async fn trouble(&self, client: &Client) -> Option<String> {
        tokio::time::sleep(LONG_WAIT).await;
        let status = client.status().await.ok()?;
        let is_away = |link: &LinkStatus| !matches!(link, LinkStatus::Itself | LinkStatus::Up(_));
        let away = status.members.iter().find(|member| is_away(&member.link))?;
        let (member, node) = (&away.name, client.address());
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

/// Waits until then, if that is ever.
pub(super) async fn at(time: Option<Time>) {
    match time {
        Some(time) => clock::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
