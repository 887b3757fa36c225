//! The registry in a real etcd, which the tests start themselves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod access;
mod faults;
mod server;
#[path = "../suite/mod.rs"]
mod suite;

use std::sync::Arc;

use catraca_registry::Registry;
use server::Server;
use suite::{Boxed, Subject};

/// An etcd for one test.
struct InEtcd(Server);

impl Subject for InEtcd {
    fn open<'a>(&'a self, group: &'a str) -> Boxed<'a, Arc<dyn Registry>> {
        Box::pin(async move { Arc::new(self.0.open(group).await) as Arc<dyn Registry> })
    }

    fn has_groups(&self) -> bool {
        true
    }

    fn forget<'a>(&'a self, group: &'a str) -> Boxed<'a, ()> {
        Box::pin(async move {
            let registry = self.0.open(group).await;
            let revision = suite::read(&registry).await.revision;
            self.0.control(&["compact", &revision.to_string()]);
        })
    }
}

conformance!(async { InEtcd(Server::alone()) });
