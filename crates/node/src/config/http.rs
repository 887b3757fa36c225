//! What a node is told about HTTP.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::{ConfigError, is_address};

/// What a node is told about HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where to listen; nothing if HTTP is not served.
    pub listen: Option<String>,
    /// Where to keep the state of Terraform and OpenTofu; nothing if only their locks are served.
    pub terraform_state: Option<PathBuf>,
}

impl HttpConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match self.listen.as_ref().filter(|listen| !is_address(listen)) {
            Some(listen) => Err(ConfigError::Address(listen.clone())),
            None => Ok(()),
        }
    }
}

/// The table `[http]` of a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpEntry {
    listen: Option<Spanned<String>>,
    #[serde(rename = "terraform-state")]
    terraform_state: Option<PathBuf>,
}

impl HttpEntry {
    pub(super) fn config(&self) -> HttpConfig {
        HttpConfig {
            listen: self.listen.as_ref().map(|listen| listen.as_ref().clone()),
            terraform_state: self.terraform_state.clone(),
        }
    }

    /// Where the address is that `error` complains about.
    pub(super) fn place(&self, error: &ConfigError) -> Option<usize> {
        let listen = self.listen.as_ref()?;
        match error {
            ConfigError::Address(bad) if listen.as_ref() == bad => Some(listen.span().start),
            _ => None,
        }
    }
}
