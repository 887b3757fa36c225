//! What a failed call means: whether something was done, and whether another member can help.
//!
//! Nobody may believe that a transaction was not carried out if perhaps it was. So a failure counts as
//! 'nothing was done' only if that is known: the request never left, or etcd says that it looked at it
//! and did nothing. Everything else is unknown.

use std::error::Error;

use tonic::{Code, ConnectError, Status};

use crate::Trouble;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing was done. Another member, or another time, may do better.
    NotDone(String),
    /// Perhaps it was done.
    Unknown(String),
    /// Nothing was done: etcd does not accept the proof of who asks any more.
    Stale(String),
    /// Nothing was done, and nothing will be.
    Refused(String),
    /// This is not the registry that it was.
    Lost(String),
}

impl Fault {
    pub(super) fn text(&self) -> &str {
        match self {
            Fault::NotDone(text)
            | Fault::Unknown(text)
            | Fault::Stale(text)
            | Fault::Refused(text)
            | Fault::Lost(text) => text,
        }
    }

    /// The same for a call that changes nothing: not knowing whether it was done does no harm.
    pub(super) fn of_read(self) -> Self {
        match self {
            Fault::Unknown(text) => Fault::NotDone(text),
            other => other,
        }
    }

    /// The same for a call that comes first on a connection: only then does the other side say what it
    /// thinks of our certificate. Later an alert can end anything, and says nothing of what was done.
    pub(super) fn of_first_call(self) -> Self {
        match self.of_read() {
            Fault::NotDone(text) if is_certificate(&text) => {
                Fault::Refused(format!("{text}. {CERTIFICATES}"))
            }
            other => other,
        }
    }

    /// The same, with the member that it is about.
    pub(super) fn at(self, endpoint: &str) -> Self {
        let text = format!("{}: {}", endpoint, self.text());
        match self {
            Fault::NotDone(_) => Fault::NotDone(text),
            Fault::Unknown(_) => Fault::Unknown(text),
            Fault::Stale(_) => Fault::Stale(text),
            Fault::Refused(_) => Fault::Refused(text),
            Fault::Lost(_) => Fault::Lost(text),
        }
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotDone(text) | Fault::Stale(text) => Trouble::Unreachable(text),
            Fault::Unknown(text) => Trouble::Unknown(text),
            Fault::Refused(text) => Trouble::Refused(text),
            Fault::Lost(text) => Trouble::Lost(text),
        }
    }
}

/// What etcd says, word for word, where its code alone is not enough.
const STALE: [&str; 3] =
    ["invalid auth token", "revision of auth store is old", "user name is empty"];
const NOT_DONE: [&str; 4] =
    ["etcdserver: no leader", "too many requests", "database space exceeded", "not capable"];

/// What a status means for the call that it ended.
pub(super) fn of_status(status: &Status) -> Fault {
    let said = status.message();
    let text = chain(status);
    let says = |word: &&str| said.contains(*word);
    if never_left(status) {
        return Fault::NotDone(text);
    }
    if STALE.iter().any(says) {
        return Fault::Stale(format!("etcd does not accept the user: {said}"));
    }
    if NOT_DONE.iter().any(says) {
        return Fault::NotDone(advice(said));
    }
    match status.code() {
        Code::PermissionDenied => Fault::Refused("etcd denies permission".to_string()),
        Code::InvalidArgument if said.contains("authentication failed") => {
            Fault::Refused("etcd does not know the user, or the password is wrong".to_string())
        }
        Code::Unauthenticated => Fault::Stale(format!("etcd does not accept the user: {said}")),
        // 'larger than max' comes from below etcd, before anything is read.
        Code::ResourceExhausted if said.contains("larger than max") => {
            Fault::Refused(format!("{said}. Give etcd a higher --max-request-bytes"))
        }
        Code::InvalidArgument if said.contains("too large") => {
            Fault::Refused(format!("{said}. Give etcd a higher --max-request-bytes"))
        }
        // What etcd says before it proposes anything, and would say again.
        Code::InvalidArgument | Code::FailedPrecondition | Code::Unimplemented
            if said.starts_with("etcdserver:") || said.starts_with("unknown service") =>
        {
            Fault::Refused(said.to_string())
        }
        _ => Fault::Unknown(text),
    }
}

/// What a failure to connect means.
pub(super) fn of_connect(error: &(dyn Error + 'static)) -> Fault {
    Fault::NotDone(chain(error)).of_first_call()
}

const CERTIFICATES: &str = "Look at 'ca', 'cert' and 'key' in the URL of etcd, and at the names in \
                            etcd's certificate";

/// TLS has no types here: its errors come through two libraries that do not name it.
fn is_certificate(text: &str) -> bool {
    text.contains("invalid peer certificate") || text.contains("received fatal alert")
}

fn advice(said: &str) -> String {
    match said.contains("database space exceeded") {
        true => format!(
            "{said}. etcd needs compaction ('--auto-compaction-retention=1h'), 'etcdctl defrag' and \
             'etcdctl alarm disarm'"
        ),
        false => said.to_string(),
    }
}

/// Whether there was no connection to send anything on.
fn never_left(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error with its causes, without repetitions.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = match error.downcast_ref::<Status>() {
        Some(status) => status.message().to_string(),
        None => error.to_string(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = if text.is_empty() { more } else { format!("{text}: {more}") };
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_surely_was_not_done_counts_as_not_done() {
        let of = |code, said: &str| of_status(&Status::new(code, said));
        for (code, said) in [
            (Code::Unavailable, "etcdserver: request timed out"),
            (Code::Unavailable, "etcdserver: leader changed"),
            (Code::Unavailable, "transport is closing"),
            (Code::DeadlineExceeded, "context deadline exceeded"),
            (Code::Cancelled, "Timeout expired"),
            (Code::Internal, "h2 protocol error"),
            (Code::Unknown, "etcdserver: server stopped"),
        ] {
            assert!(matches!(of(code, said), Fault::Unknown(_)), "{said}");
        }
        for (code, said) in [
            (Code::Unavailable, "etcdserver: no leader"),
            (Code::ResourceExhausted, "etcdserver: too many requests"),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
        ] {
            assert!(matches!(of(code, said), Fault::NotDone(_)), "{said}");
        }
    }

    #[test]
    fn an_alert_is_about_certificates_only_at_the_beginning() {
        let alert = of_status(&Status::unknown("received fatal alert: BadCertificate"));
        assert!(matches!(alert, Fault::Unknown(_)));
        assert!(matches!(alert.of_first_call(), Fault::Refused(_)));
    }

    #[test]
    fn what_etcd_will_never_do_is_refused_and_an_old_token_is_renewed() {
        let of = |code, said: &str| of_status(&Status::new(code, said));
        for (code, said) in [
            (Code::PermissionDenied, "etcdserver: permission denied"),
            (Code::InvalidArgument, "etcdserver: request is too large"),
            (
                Code::InvalidArgument,
                "etcdserver: authentication failed, invalid user ID or password",
            ),
            (Code::ResourceExhausted, "grpc: received message larger than max (3 vs. 2)"),
        ] {
            assert!(matches!(of(code, said), Fault::Refused(_)), "{said}");
        }
        for (code, said) in [
            (Code::Unauthenticated, "etcdserver: invalid auth token"),
            (Code::InvalidArgument, "etcdserver: revision of auth store is old"),
            (Code::InvalidArgument, "etcdserver: user name is empty"),
        ] {
            assert!(matches!(of(code, said), Fault::Stale(_)), "{said}");
        }
    }
}
