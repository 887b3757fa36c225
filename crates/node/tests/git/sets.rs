//! Several locks at once: all of them, or none.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Answer, Client};
use crate::support;
use crate::{BASE, SHORT_LEASE, alone, paths, refused, three, three_with, user};

#[tokio::test]
async fn two_hundred_locks_are_taken_at_once_and_each_is_released_by_itself() {
    let (_nodes, at) = three().await;
    let ann = user(at[0], "ann");
    let wanted: Vec<String> = (0..200).map(|number| format!("scene/{number:03} ü.blend")).collect();
    let asked = json!({"paths": wanted, "note": "the big change"});
    let got = ann.ask("POST", &format!("{BASE}/locks/batch"), asked).await.with(201).json();
    assert_eq!(got["locks"].as_array().unwrap().len(), 200);
    let listed = user(at[1], "bob").list("").await;
    assert_eq!(paths(&listed["locks"]), wanted.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        listed["locks"].as_array().unwrap().iter().all(|lock| lock["note"] == "the big change")
    );
    let first = &listed["locks"][0];
    user(at[2], "ann").unlock(first, false).await.with(200);
    assert_eq!(user(at[1], "bob").list("").await["locks"].as_array().unwrap().len(), 199);
    // What was kept of the set is gone.
    let held =
        user(at[0], "x").ask("GET", "/v1/locks?prefix=git-set/", None).await.with(200).json();
    assert_eq!(held["locks"], json!([]));
}

#[tokio::test]
async fn if_one_lock_is_missing_none_is_taken_and_all_in_the_way_are_named() {
    let (_nodes, at) = three().await;
    let (ann, bob) = (user(at[0], "ann"), user(at[1], "bob"));
    let b = bob.locks("b").await;
    let d = bob.locks("d").await;
    let taken = refused(&ann.batch(&["a", "b", "c", "d"]).await, 409, "taken");
    assert_eq!(taken["locks"], json!([b, d]));
    assert_eq!(paths(&ann.list("").await["locks"]), ["b", "d"]);
    // One's own are in the way too, and of the same file twice there is one lock.
    let own = refused(&bob.batch(&["a", "b"]).await, 409, "own-lock");
    assert_eq!(own["locks"], json!([b]));
    let twice = ann.batch(&["a", "a"]).await.with(201).json();
    assert_eq!(paths(&twice["locks"]), ["a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_those_who_want_the_same_locks_in_different_orders_exactly_one_gets_them_all() {
    let (_nodes, at) = three().await;
    for round in 0..25_usize {
        let mut racers = JoinSet::new();
        for racer in 0..4_usize {
            let at = at[racer % 3];
            racers.spawn(async move {
                let mut wanted: Vec<String> = (0..6).map(|it| format!("r{round}/{it}")).collect();
                match racer {
                    0 => wanted.reverse(),
                    1 => wanted.rotate_left(3),
                    _ => {}
                }
                let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
                user(at, &format!("racer{racer}")).batch(&wanted).await
            });
        }
        let answers = racers.join_all().await;
        let winners: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!(winners.len(), 1, "round {round}: {answers:?}");
        let locks = user(at[0], "x").list(&format!("?under=r{round}")).await;
        let owners: Vec<&Value> =
            locks["locks"].as_array().unwrap().iter().map(|lock| &lock["owner"]["name"]).collect();
        assert_eq!(owners.len(), 6);
        assert!(owners.iter().all(|owner| *owner == owners[0]), "{owners:?}");
    }
}

/// Several who want files of which each shares one with the next, at different nodes; and some who want one.
async fn race(at: &[SocketAddr], round: usize) -> Vec<(Vec<String>, Answer)> {
    let mut racers = JoinSet::new();
    for racer in 0..9_usize {
        let at = at[(racer + round) % at.len()];
        racers.spawn(async move {
            let file = |number: usize| format!("r{round}/{number}");
            let who = user(at, &format!("racer{racer}"));
            if racer % 4 == 3 {
                let only = file(racer);
                let answer = who.lock(&only).await;
                return (vec![only], answer);
            }
            let files = vec![file(racer), file(racer + 1)];
            let names: Vec<&str> = files.iter().map(String::as_str).collect();
            let answer = who.batch(&names).await;
            (files, answer)
        });
    }
    racers.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_refused_because_of_somebody_who_has_nothing_in_the_end() {
    let (_nodes, at) = three().await;
    for round in 0..40 {
        let answers = race(&at, round).await;
        let locks = user(at[0], "x").list(&format!("?under=r{round}")).await["locks"].clone();
        let locks = locks.as_array().unwrap();
        let mut owned = paths(&json!(locks)).len();
        for (files, answer) in answers {
            let said = answer.json();
            if answer.status == 201 {
                let got = said["locks"].as_array().cloned();
                let got = got.unwrap_or_else(|| vec![said["lock"].clone()]);
                assert_eq!(paths(&json!(got)), files);
                assert!(got.iter().all(|lock| locks.contains(lock)), "{said} {locks:?}");
                owned -= got.len();
                continue;
            }
            assert_eq!(answer.status, 409, "{answer:?}");
            let named = said["locks"].as_array().cloned();
            let named = named.unwrap_or_else(|| vec![said["lock"].clone()]);
            assert!(!named.is_empty(), "round {round}: {said}");
            let is_there = |lock: &Value| locks.contains(lock);
            assert!(named.iter().all(is_there), "round {round}: {said}, but there are {locks:?}");
        }
        assert_eq!(owned, 0, "round {round}: what nobody was told of is locked");
    }
    // Turns are over with the attempts.
    let turns = user(at[0], "x").ask("GET", "/v1/locks?prefix=git-batch/", None).await.json();
    assert_eq!(turns["locks"], json!([]));
}

#[tokio::test]
async fn whoever_holds_the_turns_of_files_by_other_means_only_makes_others_wait() {
    let (nodes, at) = three().await;
    let held = nodes[1].lock("git-batch/art/game/a").await.unwrap();
    let asked = std::time::Instant::now();
    user(at[0], "ann").batch(&["a", "b"]).await.with(201);
    assert!(asked.elapsed() >= std::time::Duration::from_secs(9), "nobody has waited");
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_sets_than_fit_at_a_node_are_all_taken() {
    let (_nodes, at) = three().await;
    let mut asking = JoinSet::new();
    for number in 0..100_usize {
        let at = at[0];
        asking.spawn(async move {
            let (a, b) = (format!("{number}/a"), format!("{number}/b"));
            user(at, &format!("user{number}")).batch(&[&a, &b]).await.with(201);
        });
    }
    asking.join_all().await;
    assert_eq!(user(at[1], "x").list("").await["locks"].as_array().unwrap().len(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_for_sets_that_cross_all_get_them_in_the_end() {
    let (_nodes, at) = three().await;
    let mut racers = JoinSet::new();
    for racer in 0..6_usize {
        let at = at[racer % 3];
        racers.spawn(async move {
            let ann = user(at, &format!("racer{racer}"));
            let files = [["a", "b"], ["b", "c"], ["c", "a"]][racer % 3];
            let asked = json!({"paths": files, "wait_ms": 60_000}).to_string();
            let mut client = Client::open(at).await;
            let ask = ann.request("POST", &format!("{BASE}/locks/batch"), Some(asked.as_bytes()));
            client.send(ask).await;
            let head = client.head().await;
            let text = match head.starts_with("HTTP/1.1 201") {
                true => client.until("]}").await,
                false => client.until("0\r\n\r\n").await,
            };
            let text = &text[text.find('{').unwrap()..=text.rfind('}').unwrap()];
            let got: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"));
            let locks = got["locks"].as_array().unwrap_or_else(|| panic!("{got}"));
            assert_eq!(locks.len(), 2, "{got}");
            for lock in locks {
                ann.unlock(lock, false).await.with(200);
            }
        });
    }
    racers.join_all().await;
    assert_eq!(user(at[0], "x").list("").await, json!({"locks": []}));
}

#[tokio::test]
async fn what_a_node_had_taken_of_a_set_when_it_was_lost_is_given_back() {
    let wanted: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
    let asked = json!({"paths": wanted}).to_string();
    let mut cut_short = 0;
    for round in 0..3 {
        let (mut nodes, at) = three_with(SHORT_LEASE).await;
        let mut client = Client::open(at[0]).await;
        let ask = user(at[0], "ann").request(
            "POST",
            &format!("{BASE}/locks/batch"),
            Some(asked.as_bytes()),
        );
        client.send(ask).await;
        // Until it is somewhere in the middle.
        while user(at[1], "x").list("").await["locks"].as_array().unwrap().len() < 5 * (round + 1) {
            tokio::task::yield_now().await;
        }
        drop(nodes.remove(0));
        support::together(&nodes).await;
        let left = loop {
            let set = user(at[1], "x").ask("GET", "/v1/locks?prefix=git-set/", None).await.json();
            if set["locks"] == json!([]) {
                break user(at[1], "x").list("").await["locks"].as_array().unwrap().len();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        };
        assert!(left == 0 || left == 100, "{left} of 100 locks are left");
        cut_short += usize::from(left == 0);
        if left == 0 {
            user(at[2], "bob").batch(&["000", "050", "099"]).await.with(201);
        }
    }
    assert!(cut_short > 0, "no node was lost in the middle of a set");
}

#[tokio::test]
async fn a_set_is_finished_also_if_its_client_hangs_up() {
    let (_node, at) = alone().await;
    let wanted: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
    let asked = json!({"paths": wanted}).to_string();
    let mut client = Client::open(at).await;
    let ask =
        user(at, "ann").request("POST", &format!("{BASE}/locks/batch"), Some(asked.as_bytes()));
    client.send(ask).await;
    while user(at, "x").list("").await["locks"].as_array().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(client);
    let all = async {
        while user(at, "x").list("").await["locks"].as_array().unwrap().len() < 100 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::client::LIMIT, all).await.expect("all of them");
}
