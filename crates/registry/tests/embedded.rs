//! The embedded registry does what every registry has to do, with one voter and with three.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

mod suite;
mod support;

use std::sync::Arc;
use std::time::Duration;

use catraca_registry::Registry;
use suite::{Boxed, Subject};
use support::{Group, insist, put};

/// Each way to the registry is that of the next member.
struct Ways {
    group: Group,
    next: std::sync::atomic::AtomicUsize,
}

impl Subject for Ways {
    fn open<'a>(&'a self, _: &'a str) -> Boxed<'a, Arc<dyn Registry>> {
        let next = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let members = &self.group.members;
        let node = self.group.node(&members[next % members.len()]);
        Box::pin(async move { Arc::new(node) as Arc<dyn Registry> })
    }

    fn has_groups(&self) -> bool {
        false
    }
}

/// Nobody fails here, so nobody need be quick to notice.
async fn ways(members: &[&str]) -> Ways {
    let mut group = Group::new(members);
    group.elections = Duration::from_millis(1000)..Duration::from_millis(2000);
    group.patience = Duration::from_secs(20);
    for name in members {
        group.start(name).await;
    }
    insist(&group.node(members[0]), put("first", "")).await;
    insist(&group.node(members[0]), catraca_registry::Txn::default().delete("first")).await;
    Ways { group, next: 0.into() }
}

mod one {
    crate::conformance!(super::ways(&["a"]));
}

mod three {
    crate::conformance!(super::ways(&["a", "b", "c"]));
}

/// The last does not vote.
mod four {
    crate::conformance! { super::ways(&["a", "b", "c", "d"]);
        races::a_read_sees_what_was_written_elsewhere,
        races::histories_are_linearizable,
        races::what_was_given_up_and_repeated_is_done_once,
        watching::changes_are_told_in_order,
        watching::whoever_comes_back_misses_nothing,
        watching::what_is_forgotten_is_a_gap,
    }
}
