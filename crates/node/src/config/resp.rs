//! What a node is told about the Redis protocol.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, is_address};

/// A `SET NX` waits no longer in a queue: clients of Redis do not expect that it takes long.
const LONGEST_PARK: Duration = Duration::from_secs(60);

/// What a node is told about the Redis protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RespConfig {
    /// Where to listen; nothing if it is not served.
    pub listen: Option<String>,
    /// How long a `SET NX` waits in the queue of a lock that somebody has. Clients that poll become a queue.
    pub park: Duration,
}

impl RespConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match self.listen.as_ref().filter(|listen| !is_address(listen)) {
            Some(listen) => Err(ConfigError::Address(listen.clone())),
            None if self.park > LONGEST_PARK => Err(ConfigError::Park(self.park, LONGEST_PARK)),
            None => Ok(()),
        }
    }
}

/// The table `[resp]` of a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RespEntry {
    listen: Option<Spanned<String>>,
    /// In seconds.
    park: Option<Spanned<f64>>,
}

impl RespEntry {
    pub(super) fn config(&self) -> RespConfig {
        let listen = self.listen.as_ref().map(|listen| listen.as_ref().clone());
        let park = self.park.as_ref().map_or(0.0, |park| *park.as_ref());
        RespConfig { listen, park: Duration::try_from_secs_f64(park).unwrap_or(Duration::MAX) }
    }

    /// Where that is what `error` complains about.
    pub(super) fn place(&self, error: &ConfigError) -> Option<usize> {
        match error {
            ConfigError::Address(bad) => {
                let listen = self.listen.as_ref().filter(|listen| listen.as_ref() == bad);
                listen.map(|listen| listen.span().start)
            }
            ConfigError::Park(..) => self.park.as_ref().map(|park| park.span().start),
            _ => None,
        }
    }
}
