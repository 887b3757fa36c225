//! What the network between the nodes may do to the order of messages.

use std::fmt;

use catraca_algorithms::{Channels, Spec, SpecError};

/// The orders in which messages may arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// From one node to another in the order of sending; different pairs are independent.
    Fifo,
    /// In any order: the messages on their way are a bag.
    Any,
}

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
    fn the_network_of_a_spec_is_what_its_algorithm_needs() {
        assert_eq!(Network::of(&Spec::new("ricart-agrawala", 3)), Ok(Network::Any));
        assert!(Network::of(&Spec::new("nobody", 3)).is_err());
    }
}
