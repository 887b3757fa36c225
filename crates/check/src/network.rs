//! What the network between the nodes may do to the order of messages.

use std::fmt;
use std::str::FromStr;

use catraca_algorithms::{Channels, Spec, SpecError};

/// The orders in which messages may arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// From one node to another in the order of sending; different pairs are independent.
    Fifo,
    /// In any order: the messages on their way are a bag.
    Any,
}

/// A name that no network has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no network '{0}'; say 'fifo' (each channel keeps its order) or 'any' (none does)"
)]
pub struct UnknownNetwork(String);

impl Network {
    /// The least orderly network that the algorithm of `spec` is made for.
    pub fn of(spec: &Spec) -> Result<Self, SpecError> {
        Ok(spec.entry()?.channels.into())
    }
}

impl From<Channels> for Network {
    fn from(needed: Channels) -> Self {
        match needed {
            Channels::Fifo => Network::Fifo,
            Channels::Any => Network::Any,
        }
    }
}

impl FromStr for Network {
    type Err = UnknownNetwork;

    fn from_str(name: &str) -> Result<Self, UnknownNetwork> {
        match name {
            "fifo" => Ok(Network::Fifo),
            "any" => Ok(Network::Any),
            _ => Err(UnknownNetwork(name.to_string())),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Network::Fifo => "fifo",
            Network::Any => "any",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_reads_back_from_its_name_and_others_are_refused() {
        for network in [Network::Fifo, Network::Any] {
            assert_eq!(network.to_string().parse(), Ok(network));
        }
        let error = "lifo".parse::<Network>().unwrap_err().to_string();
        assert!(error.contains("'lifo'") && error.contains("'fifo'") && error.contains("'any'"));
    }

    #[test]
    fn the_network_of_a_spec_is_what_its_algorithm_needs() {
        assert_eq!(Network::of(&Spec::new("ricart-agrawala", 3)), Ok(Network::Any));
        assert!(Network::of(&Spec::new("nobody", 3)).is_err());
    }
}
