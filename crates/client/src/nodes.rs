//! Where the nodes of a group are, and what is shown to them.

use crate::credentials::Credentials;

/// Nodes of one group, in the order of trying, and what a client shows of itself to them.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// Where they listen.
    pub addresses: Vec<String>,
    /// What is shown to each of them.
    pub credentials: Credentials,
}

impl Nodes {
    /// These nodes, to whom nothing is shown.
    pub fn at<S: Into<String>>(addresses: impl IntoIterator<Item = S>) -> Self {
        let addresses = addresses.into_iter().map(Into::into).collect();
        Nodes { addresses, credentials: Credentials::default() }
    }

    /// The same nodes, to whom this is shown.
    pub fn showing(self, credentials: Credentials) -> Self {
        Nodes { credentials, ..self }
    }

    /// The same, in another order of trying: from the one at `place` on.
    pub(crate) fn starting_at(&self, place: usize) -> Self {
        let mut addresses = self.addresses.clone();
        addresses.rotate_left(place % self.addresses.len().max(1));
        Nodes { addresses, credentials: self.credentials.clone() }
    }
}

impl From<&[String]> for Nodes {
    fn from(addresses: &[String]) -> Self {
        Nodes::at(addresses)
    }
}

impl<const COUNT: usize> From<&[String; COUNT]> for Nodes {
    fn from(addresses: &[String; COUNT]) -> Self {
        Nodes::at(addresses)
    }
}

impl From<&Vec<String>> for Nodes {
    fn from(addresses: &Vec<String>) -> Self {
        Nodes::at(addresses)
    }
}

impl From<&Nodes> for Nodes {
    fn from(nodes: &Nodes) -> Self {
        nodes.clone()
    }
}
