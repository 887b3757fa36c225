//! What the commands that ask a node have in common: the exit codes and the words for what goes wrong.

use std::io;

use catraca_client::{Class, ClientError, Refusal};

use crate::failure::Failure;
use crate::output::reason;
use crate::{Outcome, interrupt};

/// A node answers, but cannot do what it was asked for.
pub(crate) const UNSERVED: u8 = 122;
/// No node answers.
pub(crate) const NO_NODE: u8 = 125;

/// Runs what talks to a node, until it is done or somebody asks us to end.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    block_on_to_the_end(until_interrupted(work))
}

/// The work, until it is done or somebody asks us to end.
pub(crate) async fn until_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        done = work => done,
        () = interrupt::asked() => Err(Failure::Interrupted),
    }
}

/// Runs what sees to it by itself that it ends when it is asked to.
pub(crate) fn block_on_to_the_end<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| of_system(&error))?;
    let done = runtime.block_on(work);
    // A thread of its own may still look up a name: nobody waits for that any more.
    runtime.shutdown_background();
    done
}

/// Who says so, for those who read what was done: the user of this machine, as far as it can be told.
pub(crate) fn administrator() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let host = nix::unistd::gethostname().ok().and_then(|host| host.into_string().ok());
    match (user, host) {
        (Ok(user), Some(host)) => format!("{user} at {host}"),
        (Ok(user), None) => user,
        (Err(_), Some(host)) => format!("somebody at {host}"),
        (Err(_), None) => "somebody".to_string(),
    }
}

/// The system failed a command that has exit codes of its own.
pub(crate) fn of_system(error: &io::Error) -> Failure {
    Failure::Own(NO_NODE, Some(reason(error)))
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let words = words(&error);
        match error.class() {
            Some(Class::Input) => Failure::Input(words),
            Some(Class::Unavailable | Class::Taken | Class::TimedOut) => {
                Failure::Own(UNSERVED, Some(words))
            }
            Some(Class::Gone) | None => Failure::Own(NO_NODE, Some(words)),
        }
    }
}

/// What went wrong, with the flag or the command that would help.
fn words(error: &ClientError) -> String {
    match error {
        ClientError::Unreachable { .. } | ClientError::NoneOf(_) if error.class().is_none() => {
            format!("{error}; start a node with 'catraca node'")
        }
        ClientError::Refused(why) => match flag(why) {
            Some(flag) => format!("{flag}: {why}"),
            None => why.to_string(),
        },
        _ => error.to_string(),
    }
}

/// The flag of `catraca lock` that a refusal is about.
fn flag(why: &Refusal) -> Option<&'static str> {
    match why {
        Refusal::Permits(_)
        | Refusal::Seats { .. }
        | Refusal::OtherPermits { .. }
        | Refusal::SetOfSemaphores => Some("--permits"),
        Refusal::Ttl { .. } | Refusal::LongTtl { .. } => Some("--ttl"),
        _ => None,
    }
}

/// Nothing more to be done, and an exit code that tells something.
pub(crate) fn ends_with(code: u8) -> Outcome {
    if code == 0 { Ok(()) } else { Err(Failure::Own(code, None)) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn told(error: ClientError) -> (Option<u8>, String) {
        match Failure::from(error) {
            Failure::Own(code, words) => (Some(code), words.unwrap()),
            Failure::Input(words) => (None, words),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_node_that_cannot_serve_has_another_exit_code_than_no_node() {
        let dead = |address: &str| ClientError::Unreachable {
            address: address.to_string(),
            reason: Arc::new(io::ErrorKind::ConnectionRefused.into()),
        };
        let (code, words) = told(dead("a:1"));
        assert_eq!(code, Some(NO_NODE));
        assert!(words.ends_with("start a node with 'catraca node'"), "{words}");
        let full = ClientError::Refused(Refusal::Full);
        assert_eq!(told(full.clone()).0, Some(UNSERVED));
        let (code, words) = told(ClientError::NoneOf(vec![dead("a:1"), full]));
        assert_eq!(code, Some(UNSERVED));
        assert!(words.contains("a:1") && !words.contains("start a node"), "{words}");
    }

    #[test]
    fn wrong_input_is_told_with_its_flag() {
        let second = Duration::from_secs(1);
        let long = Refusal::LongTtl { ttl: second * 2, most: second };
        let (code, words) = told(long.into());
        assert!(code.is_none() && words.starts_with("--ttl: "), "{words}");
        let (_, words) = told(Refusal::Permits(65).into());
        assert!(words.starts_with("--permits: a semaphore has 1 to"), "{words}");
    }
}
