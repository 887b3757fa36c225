//! What there is to see of a lock, of groups of three.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use catraca_node::{HttpConfig, Memory, Node, Role, TokenFile};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::client::ask;
use crate::support::{self, until};
use crate::{alone, start};

/// Three nodes that guard everything with `algorithm` and serve HTTP, and where.
async fn three(algorithm: &str) -> (Vec<Arc<Node>>, Vec<SocketAddr>) {
    let (listeners, addresses) = support::listeners(3).await;
    let mut configs = support::configs(&addresses, algorithm);
    for config in &mut configs {
        config.http =
            HttpConfig { listen: Some("127.0.0.1:0".to_string()), ..HttpConfig::default() };
    }
    let nodes = support::group_with(configs, listeners, &Memory::default()).await;
    let addresses = nodes.iter().map(|node| node.http_address().unwrap()).collect();
    (nodes.into_iter().map(Arc::new).collect(), addresses)
}

/// Somebody waits for the lock `x` there, and releases it when it has got it.
fn wait_at(node: &Arc<Node>) -> JoinHandle<()> {
    let node = Arc::clone(node);
    tokio::spawn(async move { node.lock("x").await.unwrap().release().await })
}

async fn look(at: SocketAddr, name: &str) -> Value {
    let path = format!("/v1/anatomy?name={}", name.replace('/', "%2F"));
    ask(at, "GET", &path, None).await.with(200).json()
}

#[tokio::test]
async fn members_tell_which_of_them_reaches_which() {
    let (_nodes, at) = three("naimi-trehel").await;
    let limit = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let seen = ask(at[2], "GET", "/v1/links", None).await.with(200).json();
        let links = seen["links"].as_array().unwrap();
        if links.len() == 6 && links.iter().all(|link| link["up"] == true) {
            assert_eq!((&seen["members"], &seen["silent"]), (&json!(["a", "b", "c"]), &json!([])));
            break;
        }
        assert!(tokio::time::Instant::now() < limit, "{seen}");
    }
}

/// What `member` has told of the instance.
fn part<'a>(instance: &'a Value, member: &str) -> &'a Value {
    let parts = instance["members"].as_array().unwrap();
    parts.iter().find(|part| part["member"] == member).unwrap()
}

fn variable<'a>(node: &'a Value, name: &str) -> &'a Value {
    let variables = node["variables"].as_array().unwrap();
    let found = variables.iter().find(|variable| variable["name"] == name);
    &found.unwrap_or_else(|| panic!("no {name} in {node}"))["value"]
}

fn arrows<'a>(instance: &'a Value, kind: &str) -> Vec<(&'a str, &'a str)> {
    let arrows = instance["arrows"].as_array().unwrap().iter();
    let ends = |arrow: &'a Value| (arrow["from"].as_str().unwrap(), arrow["to"].as_str().unwrap());
    arrows.filter(|arrow| arrow["kind"] == kind).map(ends).collect()
}

/// Somebody is inside at `b` and somebody waits at `c`; what `a` has to say of it. Returns the instance.
async fn held_at_b(algorithm: &str) -> Value {
    let (nodes, at) = three(algorithm).await;
    let held = nodes[1].lock("x").await.unwrap();
    let waiting = wait_at(&nodes[2]);
    until("it waits", || nodes[2].status().waiting == 1).await;
    // What it asks for may be on its way still; so may what that leads to.
    let mut seen = look(at[0], "x").await;
    let limit = tokio::time::Instant::now() + Duration::from_secs(60);
    while tokio::time::Instant::now() < limit {
        let instance = &seen["instances"][0];
        let all_known = ["b", "c"].iter().all(|it| part(instance, it)["known"] == true);
        if all_known && instance["held"] == 1 && instance["waiting"] == 1 {
            break;
        }
        seen = look(at[0], "x").await;
    }
    let instance = seen["instances"][0].clone();
    assert_eq!((&seen["known"], &seen["silent"]), (&json!(true), &json!([])), "{seen}");
    assert_eq!(seen["members"], json!(["a", "b", "c"]));
    assert_eq!(instance["algorithm"], algorithm);
    let holder = &instance["holders"][0];
    let fence = held.fence().to_string();
    assert_eq!((&holder["member"], &holder["fence"]), (&json!("b"), &json!(fence)), "{seen}");
    assert_eq!(instance["queue"][0]["member"], "c", "{seen}");
    assert!(instance["queue"][0]["waited_ms"].is_u64());
    let grant = instance["grants"].as_array().unwrap().last().unwrap();
    assert_eq!((&grant["fence"], &grant["state"]), (&json!(fence), &json!("held")), "{seen}");
    let node = &part(&instance, "b")["nodes"][0];
    assert_eq!((&node["node"], &node["state"]), (&json!("b"), &json!("inside")), "{seen}");
    held.release().await;
    waiting.await.unwrap();
    assert!(nodes.iter().all(|node| node.status().anomalies == 0));
    instance
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn naimi_trehel_shows_the_token_where_it_is_and_who_is_asked_for_it() {
    let instance = held_at_b("naimi-trehel").await;
    assert_eq!(instance["token"], json!(["b"]));
    assert_eq!((&instance["family"], &instance["seats"]), (&json!("token"), &json!(1)));
    assert_eq!(variable(&part(&instance, "b")["nodes"][0], "token"), &json!(true));
    assert!(arrows(&instance, "pointer").iter().all(|(from, to)| from != to));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raymond_shows_the_tree_that_leads_to_the_token() {
    let instance = held_at_b("raymond").await;
    assert_eq!(instance["token"], json!(["b"]));
    // Whoever knows the lock leads there; the home always does.
    let home = instance["home"].as_str().unwrap();
    let pointers = arrows(&instance, "pointer");
    let mut at = "c";
    for _ in 0..3 {
        if at == "b" {
            break;
        }
        let next = pointers.iter().find(|(from, _)| *from == at);
        at = next.unwrap_or_else(|| panic!("{at} points to nobody, home {home}: {instance}")).1;
    }
    assert_eq!(at, "b", "{instance}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn maekawa_shows_the_quorums_and_which_arbiters_have_granted_to_the_holder() {
    let instance = held_at_b("maekawa").await;
    assert_eq!((&instance["family"], &instance["token"]), (&json!("quorum"), &Value::Null));
    let quorums = instance["quorums"].as_array().unwrap();
    let of_b = quorums.iter().find(|quorum| quorum["node"] == "b").unwrap();
    let quorum: Vec<&str> =
        of_b["members"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    let granted = arrows(&instance, "granted");
    for arbiter in quorum {
        assert!(granted.contains(&(arbiter, "b")), "{arbiter} in {instance}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ricart_agrawala_shows_who_owes_a_reply() {
    let (nodes, at) = three("ricart-agrawala").await;
    let held = nodes[1].lock("x").await.unwrap();
    let waiting = wait_at(&nodes[2]);
    let mut seen = look(at[0], "x").await;
    let limit = tokio::time::Instant::now() + Duration::from_secs(60);
    while arrows(&seen["instances"][0], "deferred").is_empty() {
        assert!(tokio::time::Instant::now() < limit, "{seen}");
        seen = look(at[0], "x").await;
    }
    let instance = &seen["instances"][0];
    assert_eq!(arrows(instance, "deferred"), [("b", "c")]);
    let b = &part(instance, "b")["nodes"][0];
    assert_eq!(variable(b, "Reply_Deferred"), &json!(["c"]));
    assert_eq!((&instance["family"], &instance["token"]), (&json!("permission"), &Value::Null));
    held.release().await;
    waiting.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_semaphore_is_shown_with_all_its_holders() {
    let (nodes, at) = three("naimi-trehel").await;
    let one = nodes[0].semaphore("pool", 2).await.unwrap();
    let two = nodes[2].semaphore("pool", 2).await.unwrap();
    let seen = look(at[1], "pool").await;
    let instance = &seen["instances"][0];
    assert_eq!((&instance["algorithm"], &instance["permits"]), (&json!("raymond-k"), &json!(2)));
    assert_eq!((&instance["held"], &instance["seats"]), (&json!(2), &json!(2)));
    let holders = instance["holders"].as_array().unwrap().iter();
    let members: Vec<&str> = holders.map(|it| it["member"].as_str().unwrap()).collect();
    assert_eq!(members, ["a", "c"]);
    let node = &part(instance, "a")["nodes"][0];
    assert_eq!((&node["node"], &node["state"]), (&json!("a/1"), &json!("inside")), "{seen}");
    assert_eq!(variable(node, "reply_count").as_array().unwrap().len(), 6);
    one.release().await;
    two.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_taken_in_sets_are_shown_with_what_guards_them_all() {
    let (nodes, at) = three("bouabdallah-laforest").await;
    let held = nodes[1].lock_all(&["x", "y"]).await.unwrap();
    let seen = look(at[0], "y").await;
    let instance = &seen["instances"][0];
    assert_eq!((&instance["guards"], &instance["held"]), (&json!("*"), &json!(1)), "{seen}");
    assert_eq!(instance["holders"][0]["member"], "b");
    let inside = &part(instance, "b")["nodes"][0];
    assert_eq!((&inside["state"], &inside["node"]), (&json!("inside"), &json!("b/1")));
    assert_ne!(variable(inside, "claim"), &json!(""));
    held.release().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_gone_is_named_and_the_others_are_shown() {
    let (mut nodes, at) = three("naimi-trehel").await;
    let held = nodes[1].lock("x").await.unwrap();
    drop(nodes.pop());
    // It is named until the others go on without it, as their lease is long.
    let mut seen = look(at[0], "x").await;
    let limit = tokio::time::Instant::now() + Duration::from_secs(10);
    while seen["silent"] != json!(["c"]) && tokio::time::Instant::now() < limit {
        seen = look(at[0], "x").await;
    }
    assert_eq!(seen["silent"], json!(["c"]), "{seen}");
    let instance = &seen["instances"][0];
    assert_eq!(part(instance, "c")["answered"], false);
    assert_eq!(instance["holders"][0]["member"], "b");
    held.release().await;
}

#[tokio::test]
async fn a_queue_that_is_very_long_is_cut_and_counted() {
    let (node, at) = alone().await;
    let held = node.lock("x").await.unwrap();
    let node = Arc::new(node);
    let waiting: Vec<_> = (0..300).map(|_| wait_at(&node)).collect();
    until("all wait", || node.status().waiting == 300).await;
    let seen = look(at, "x").await;
    let instance = &seen["instances"][0];
    assert_eq!(instance["waiting"], 300);
    let shown = instance["queue"].as_array().unwrap().len();
    assert!((1..100).contains(&shown), "{shown}");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    held.release().await;
}

#[tokio::test]
async fn a_name_that_nobody_has_used_is_said_to_be_one() {
    let (_node, at) = alone().await;
    let seen = look(at, "never/used").await;
    assert_eq!(seen["known"], false);
    assert!(seen["remarks"][0].as_str().unwrap().contains("nobody has asked for it"), "{seen}");
    assert_eq!(seen["instances"][0]["algorithm"], "naimi-trehel");
    // Looking makes no lock of it.
    assert_eq!(look(at, "never/used").await["known"], false);
    for query in ["", "?name=", "?name=a%20b%00", "?nam=x"] {
        let refused = ask(at, "GET", &format!("/v1/anatomy{query}"), None).await;
        assert_eq!(refused.status, 400, "{query}: {refused:?}");
    }
}

#[tokio::test]
async fn whoever_may_not_see_the_name_may_not_see_its_anatomy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let names = ["ci/*".to_string()];
    let add = |file: &mut TokenFile| file.add("ci", Role::Observe, &names, "today");
    let token = TokenFile::change(&path, add).unwrap();
    let (_node, at) = start(|config| config.security.tokens = Some(path)).await;
    let ask_for = async |name: &str| {
        let mut client = crate::client::Client::open(at).await;
        let head = format!("GET /v1/anatomy?name={name} HTTP/1.1\r\nHost: localhost\r\n");
        client.send(format!("{head}Authorization: Bearer {token}\r\n\r\n")).await;
        client.answer().await.unwrap()
    };
    ask_for("ci%2F1").await.with(200);
    ask_for("prod").await.refused(403, "wrong-names");
    ask(at, "GET", "/v1/anatomy?name=ci%2F1", None).await.refused(401, "no-token");
}
