//! Many who want one lock at different nodes: one gets it. And nodes that go away in between.

use serde_json::json;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::support::{self, until};
use crate::{BASE, SHORT_LEASE, three, three_with, user};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_want_a_lock_at_different_nodes_exactly_one_gets_it() {
    let (_nodes, at) = three().await;
    for round in 0..100_usize {
        let path = format!("round {round}");
        let mut racers = JoinSet::new();
        for racer in 0..6_usize {
            let (at, path) = (at[racer % 3], path.clone());
            racers.spawn(async move { user(at, &format!("racer{racer}")).lock(&path).await });
        }
        let answers = racers.join_all().await;
        let winners: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!(winners.len(), 1, "round {round}: {answers:?}");
        let lock = winners[0].json()["lock"].clone();
        for loser in answers.iter().filter(|answer| answer.status != 201) {
            assert_eq!(loser.status, 409, "{loser:?}");
            assert_eq!(loser.json()["lock"], lock, "they are told who has it");
        }
        let listed = user(at[round % 3], "x").list(&format!("?path=round%20{round}")).await;
        assert_eq!(listed, json!({"locks": [lock]}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_owner_that_asks_several_times_at_once_has_the_lock_once() {
    let (_nodes, at) = three().await;
    for round in 0..30_usize {
        let path = format!("x{round}");
        let mut racers = JoinSet::new();
        for racer in 0..6_usize {
            let (at, path) = (at[racer % 3], path.clone());
            racers.spawn(async move { user(at, "ann").lock(&path).await.status });
        }
        let mut answers = racers.join_all().await;
        answers.sort_unstable();
        assert_eq!(answers, [201, 409, 409, 409, 409, 409], "round {round}");
    }
}

#[tokio::test]
async fn a_lock_that_is_released_is_free_at_every_node_at_once() {
    let (_nodes, at) = three().await;
    for round in 0..30_usize {
        let lock = user(at[round % 3], "ann").locks("x").await;
        // Where it is not held, and somebody else asks at a third node, which has not heard of anything.
        user(at[(round + 1) % 3], "ann").unlock(&lock, false).await.with(200);
        let next = user(at[(round + 2) % 3], "bob").locks("x").await;
        user(at[round % 3], "bob").unlock(&next, false).await.with(200);
    }
}

#[tokio::test]
async fn a_node_that_is_lost_between_request_and_answer_leaves_one_lock_or_none_and_asking_tells() {
    for wait in [0, 3, 30, 300] {
        let (mut nodes, at) = three_with(SHORT_LEASE).await;
        let ann = user(at[0], "ann");
        let mut client = Client::open(at[0]).await;
        let body = json!({"path": "x"}).to_string();
        client.send(ann.request("POST", &format!("{BASE}/locks"), Some(body.as_bytes()))).await;
        for _ in 0..wait {
            tokio::task::yield_now().await;
        }
        drop(nodes.remove(0));
        support::together(&nodes).await;
        let again = user(at[1], "ann").lock("x").await;
        let listed = user(at[2], "bob").list("").await;
        let locks = listed["locks"].as_array().unwrap();
        assert_eq!((locks.len(), &locks[0]["owner"]["name"]), (1, &"ann".into()), "{listed}");
        match again.status {
            201 => assert_eq!(again.json()["lock"], locks[0]),
            409 => {
                let body = crate::refused(&again, 409, "own-lock");
                assert_eq!(body["lock"], locks[0]);
            }
            _ => panic!("{again:?}"),
        }
        assert_eq!(user(at[2], "bob").lock("x").await.status, 409);
        user(at[2], "ann").unlock(&locks[0], false).await.with(200);
        user(at[1], "bob").locks("x").await;
    }
}

#[tokio::test]
async fn a_group_that_is_not_there_says_so_and_never_that_there_are_no_locks() {
    let (_listeners, addresses) = support::listeners(2).await;
    let mut config = support::configs(&addresses, "naimi-trehel").remove(0);
    config.http.listen = Some("127.0.0.1:0".to_string());
    let (listener, _) = support::listener().await;
    let registry = Unreachable;
    let node = catraca_node::Node::start_with(config, listener, std::sync::Arc::new(registry));
    let node = node.await.unwrap();
    let at = node.http_address().unwrap();
    let verify = user(at, "ann").ask("POST", &format!("{BASE}/locks/verify"), json!({})).await;
    crate::refused(&verify, 503, "registry-unavailable");
    let list = user(at, "ann").ask("GET", &format!("{BASE}/locks"), None).await;
    crate::refused(&list, 503, "registry-unavailable");
    until("it does not become ready", || node.status().readiness != catraca_node::Readiness::Ready)
        .await;
}

/// A registry that nobody can reach.
struct Unreachable;

impl catraca_node::Registry for Unreachable {
    fn txn(&self, _: catraca_registry::Txn) -> catraca_registry::Answering<'_> {
        Box::pin(async { Err(catraca_registry::Trouble::Unreachable("cut".to_string())) })
    }

    fn watch(
        &self,
        _: catraca_registry::Revision,
    ) -> tokio::sync::mpsc::Receiver<catraca_registry::Word> {
        tokio::sync::mpsc::channel(1).1
    }

    fn health(&self) -> catraca_registry::Health {
        catraca_registry::Health::default()
    }
}
