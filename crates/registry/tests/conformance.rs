//! The registry in memory does what every registry has to do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod suite;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use catraca_registry::{Memory, Registry};
use suite::{Boxed, Subject};

/// A registry in memory of each group.
#[derive(Default)]
struct InMemory(Mutex<BTreeMap<String, Memory>>);

impl Subject for InMemory {
    fn open<'a>(&'a self, group: &'a str) -> Boxed<'a, Arc<dyn Registry>> {
        let memory = self.0.lock().unwrap().entry(group.to_string()).or_default().clone();
        Box::pin(async move { Arc::new(memory) as Arc<dyn Registry> })
    }

    fn has_groups(&self) -> bool {
        true
    }
}

conformance!(async { InMemory::default() });
