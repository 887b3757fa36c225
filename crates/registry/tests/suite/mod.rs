//! What every registry has to do, wherever it is.
//!
//! A [`Subject`] says how a registry is made; [`conformance!`] makes one test of each rule for it.
//! Nothing here counts on the number of a revision, only on the order: in etcd all groups share one
//! count. But every test needs a registry that nobody else writes to meanwhile.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]
#![allow(unreachable_pub, missing_docs, reason = "a module of tests")]

pub mod races;
pub mod rules;
pub mod watching;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use catraca_registry::{Answer, Registry, Trouble, Txn};

/// No step of a test takes longer on the busiest machine.
pub const LIMIT: Duration = Duration::from_secs(60);

pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How a registry is made that is to be tested.
pub trait Subject: Send + Sync {
    /// A way to the registry of a group. Each call gives another way, as another member has, to the
    /// same registry.
    fn open<'a>(&'a self, group: &'a str) -> Boxed<'a, Arc<dyn Registry>>;

    /// Whether groups of several names can be opened. Else every name means the same registry.
    fn has_groups(&self) -> bool;

    /// Makes it forget what has changed up to now: for whoever watches there is a gap.
    fn forget<'a>(&'a self, group: &'a str) -> Boxed<'a, ()> {
        Box::pin(async move {
            let registry = self.open(group).await;
            // A store remembers 4,096 changes.
            for _ in 0..70 {
                let all = (0..64).fold(Txn::default(), |txn, n| txn.put(format!("f{n}"), vec![]));
                write(&*registry, all).await;
            }
        })
    }
}

/// A transaction that has to be carried out.
pub async fn write(registry: &dyn Registry, txn: Txn) -> Answer {
    let answer = settle(registry, txn).await;
    assert!(answer.applied);
    answer
}

pub async fn read(registry: &dyn Registry) -> Answer {
    write(registry, Txn::read()).await
}

/// The answer of a registry that works.
pub async fn settle(registry: &dyn Registry, txn: Txn) -> Answer {
    tokio::time::timeout(LIMIT, registry.txn(txn)).await.expect("no transaction hangs").unwrap()
}

pub fn is_refused(answer: &Result<Answer, Trouble>) -> bool {
    matches!(answer, Err(Trouble::Refused(_)))
}

/// One test of every rule. The subject is an expression that can be awaited.
#[macro_export]
macro_rules! conformance {
    ($subject:expr) => {
        $crate::conformance! { $subject;
            rules::each_guard_holds_when_it_is_true_and_else_nothing_is_done,
            rules::several_operations_are_carried_out_as_one,
            rules::a_key_that_is_created_anew_is_born_anew,
            rules::deleting_what_is_not_there_is_no_change,
            rules::keys_and_values_of_any_kind_come_back_as_they_were,
            rules::durable_holds_come_in_pages_and_other_keys_always,
            rules::what_no_registry_can_do_is_refused,
            rules::groups_do_not_see_each_other,
            races::one_of_many_racers_wins,
            races::a_read_sees_what_was_written_elsewhere,
            races::histories_are_linearizable,
            races::what_was_given_up_and_repeated_is_done_once,
            races::nobody_sees_half_of_a_transaction,
            watching::changes_are_told_in_order,
            watching::whoever_comes_back_misses_nothing,
            watching::what_is_forgotten_is_a_gap,
        }
    };
    ($subject:expr; $($module:ident::$rule:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $rule() {
            let subject = $subject.await;
            let limit = $crate::suite::LIMIT;
            let rule = $crate::suite::$module::$rule(&subject);
            tokio::time::timeout(limit, rule).await.expect("the rule is tried in time");
        }
    )*};
}
