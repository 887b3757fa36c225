//! Tells the service manager how a node is doing, as systemd's sd_notify does: lines of text in a datagram
//! to the socket that NOTIFY_SOCKET names. Without that variable nothing is told.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use catraca_node::{Readiness, Status};
use tokio::time::{Instant, sleep_until};

/// How often a node that is not in its group yet looks whether it is.
const JOINING: Duration = Duration::from_millis(100);
/// How often a node tells how it is doing, where no watchdog wants to hear more often.
const USUAL: Duration = Duration::from_secs(5);
/// A manager that does not read for so long is not told; the next time it is told again.
const PATIENCE: Duration = Duration::from_millis(100);
/// A node that stops is given so much longer than its clients are.
const FAREWELL: Duration = Duration::from_secs(10);
/// A status is one line of at most so many characters.
const LONGEST: usize = 200;

/// The service manager that has started this node, if there is one.
pub(crate) struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear from the node.
    watchdog: Option<Duration>,
    /// When it is to be told next.
    next: Instant,
    knows_ready: bool,
    /// What it was told last.
    told: String,
}

impl Manager {
    /// As the environment says.
    pub(crate) fn of_environment() -> Self {
        let place = std::env::var_os("NOTIFY_SOCKET");
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        // A variable that was meant for the process that started this one.
        let is_mine = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&micros| micros > 0 && is_mine);
        Self::new(place, watchdog.map(Duration::from_micros))
    }

    fn new(place: Option<OsString>, watchdog: Option<Duration>) -> Self {
        let socket = place.filter(|place| !place.is_empty()).and_then(|place| {
            let opened = open(&place);
            let complain =
                |error: &io::Error| tracing::warn!(%error, ?place, "cannot notify the manager");
            opened.inspect_err(complain).ok()
        });
        let (next, told) = (Instant::now(), String::new());
        Manager { socket, watchdog, next, knows_ready: false, told }
    }

    /// Returns when it is time to [`tell`](Self::tell) it more; never where there is no manager.
    pub(crate) async fn is_due(&self) {
        match self.socket {
            Some(_) => sleep_until(self.next).await,
            None => std::future::pending().await,
        }
    }

    /// Tells it how the node is doing. That the status could be asked for shows that the node goes on, which
    /// is what a watchdog wants to know.
    pub(crate) fn tell(&mut self, status: &Status) {
        let words = words(status);
        let is_ready = status.readiness == Readiness::Ready;
        let mut lines = Vec::new();
        if is_ready && !self.knows_ready {
            lines.push("READY=1".to_string());
        }
        if words != self.told {
            lines.push(format!("STATUS={words}"));
        }
        lines.extend(self.watchdog.map(|_| "WATCHDOG=1".to_string()));
        if lines.is_empty() || self.send(&lines) {
            self.knows_ready |= is_ready;
            self.told = words;
        }
        self.wait();
    }

    /// Tells it that the node reads something again; after that it is to be told that it is ready.
    pub(crate) fn reloading(&mut self) {
        self.send(&["RELOADING=1".to_string()]);
        if std::mem::take(&mut self.knows_ready) {
            self.next = Instant::now();
        }
    }

    /// Tells it that the node stops, for which its clients are given a while.
    pub(crate) fn stopping(&mut self, drain: Duration) {
        let time = (drain + FAREWELL).as_micros();
        let status = "STATUS=stopping: whoever holds locks may finish".to_string();
        let lines = ["STOPPING=1".to_string(), format!("EXTEND_TIMEOUT_USEC={time}"), status];
        self.send(&lines);
        self.wait();
    }

    /// Tells it that a node that stops still goes on.
    pub(crate) fn alive(&mut self) {
        if self.watchdog.is_some() {
            self.send(&["WATCHDOG=1".to_string()]);
        }
        self.wait();
    }

    fn wait(&mut self) {
        let usual = if self.knows_ready { USUAL } else { JOINING };
        // Twice in the time of the watchdog, so that one may be late.
        let period = self.watchdog.map_or(usual, |watchdog| usual.min(watchdog / 2));
        self.next = Instant::now() + period;
    }

    /// Returns whether it was sent. The manager may have gone, or be busy.
    fn send(&self, lines: &[String]) -> bool {
        let Some((socket, address)) = &self.socket else { return true };
        let sent = socket.send_to_addr(lines.join("\n").as_bytes(), address);
        sent.inspect_err(|error| tracing::debug!(%error, "the manager was not notified")).is_ok()
    }
}

/// A path, or a name in Linux's abstract namespace, which begins with '@'.
fn open(place: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match place.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(place)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok((socket, address))
}

/// One line for people.
fn words(status: &Status) -> String {
    let here = status.members.iter().filter(|member| member.is_in_view).count();
    let words = match &status.readiness {
        Readiness::Ready => format!(
            "in group '{}', epoch {}, {here} of {} members",
            status.group,
            status.epoch,
            status.members.len()
        ),
        Readiness::Joining(why) => format!("not in its group yet: {why}"),
        Readiness::Waiting(members) => format!("waits for {}", members.join(", ")),
        Readiness::Expelled(why) => format!("expelled, grants nothing: {why}"),
        Readiness::Excluded(by) => format!("taken for crashed by '{by}'"),
    };
    words.replace(char::is_control, " ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::idle_status;

    fn status(readiness: Readiness) -> Status {
        Status { readiness, ..idle_status() }
    }

    /// A manager's socket, and a node's side of it.
    fn pair(watchdog: Option<Duration>) -> (tempfile::TempDir, UnixDatagram, Manager) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("notify");
        let socket = UnixDatagram::bind(&place).unwrap();
        socket.set_nonblocking(true).unwrap();
        (folder, socket, Manager::new(Some(place.into()), watchdog))
    }

    fn received(socket: &UnixDatagram) -> Option<String> {
        let mut bytes = [0; 4096];
        let length = socket.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    #[tokio::test]
    async fn the_manager_hears_once_that_the_node_is_ready_and_what_is_new() {
        let (_folder, socket, mut manager) = pair(None);
        let joining = status(Readiness::Joining("no\nregistry".to_string()));
        manager.tell(&joining);
        let text = "STATUS=not in its group yet: no registry";
        assert_eq!(received(&socket).as_deref(), Some(text), "a line break would be another line");
        manager.tell(&joining);
        assert_eq!(received(&socket), None);
        let ready = status(Readiness::Ready);
        manager.tell(&ready);
        let text = "READY=1\nSTATUS=in group 'g', epoch 3, 0 of 0 members";
        assert_eq!(received(&socket).as_deref(), Some(text));
        manager.tell(&ready);
        assert_eq!(received(&socket), None);
        manager.reloading();
        assert_eq!(received(&socket).as_deref(), Some("RELOADING=1"));
        manager.tell(&ready);
        assert_eq!(received(&socket).as_deref(), Some("READY=1"));
        manager.stopping(Duration::from_secs(5));
        let text = received(&socket).unwrap();
        assert!(text.starts_with("STOPPING=1\nEXTEND_TIMEOUT_USEC=15000000\nSTATUS="), "{text}");
    }

    #[tokio::test]
    async fn a_watchdog_hears_twice_in_its_time() {
        let (_folder, socket, mut manager) = pair(Some(Duration::from_secs(2)));
        let ready = status(Readiness::Ready);
        manager.tell(&ready);
        assert!(received(&socket).unwrap().ends_with("\nWATCHDOG=1"));
        assert!(manager.next - Instant::now() <= Duration::from_secs(1));
        manager.tell(&ready);
        assert_eq!(received(&socket).as_deref(), Some("WATCHDOG=1"));
        manager.alive();
        assert_eq!(received(&socket).as_deref(), Some("WATCHDOG=1"));
    }

    #[tokio::test]
    async fn what_a_busy_manager_has_not_heard_is_told_again() {
        let (_folder, socket, mut manager) = pair(None);
        // The system keeps only so many datagrams that nobody reads.
        let mut sent = 0;
        while manager.send(&["X=1".to_string()]) {
            sent += 1;
            assert!(sent < 1_000_000, "it is never full");
        }
        let ready = status(Readiness::Ready);
        manager.tell(&ready);
        assert!(!manager.knows_ready);
        while received(&socket).is_some() {}
        manager.tell(&ready);
        assert!(received(&socket).unwrap().starts_with("READY=1"));
    }

    #[tokio::test]
    async fn an_abstract_socket_is_one_too_and_no_socket_is_none() {
        let name = format!("catraca-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let mut manager = Manager::new(Some(format!("@{name}").into()), None);
        manager.tell(&status(Readiness::Ready));
        assert!(received(&socket).unwrap().starts_with("READY=1"));
        for nothing in [None, Some(OsString::new())] {
            let mut manager = Manager::new(nothing, None);
            manager.tell(&status(Readiness::Ready));
            let due = tokio::time::timeout(Duration::from_millis(20), manager.is_due());
            assert!(due.await.is_err());
        }
    }
}
