//! What happens to locks, as events.

use serde_json::{Value, json};

use crate::alone;
use crate::client::{Client, ask};

const WATCH: &str = "GET /v1/changes?prefix=w/ HTTP/1.1\r\nHost: localhost\r\n";

/// An event: its name, its id and its data.
async fn event(client: &mut Client) -> (String, String, Value) {
    let text = client.until("}\n\n").await;
    let field = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name} in {text:?}")).to_string()
    };
    (field("event: "), field("id: "), serde_json::from_str(&field("data: ")).unwrap())
}

async fn watch(at: std::net::SocketAddr, last: Option<&str>) -> Client {
    let mut client = Client::open(at).await;
    let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
    client.send(format!("{WATCH}{last}\r\n")).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    client.until("retry: 1000\n\n").await;
    client
}

async fn visit(at: std::net::SocketAddr, name: &str) {
    let wanted = json!({"names": [name], "label": "me", "wait_ms": 60_000});
    let hold = ask(at, "POST", "/v1/acquire", wanted).await.with(201).json();
    let place = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
    ask(at, "DELETE", &place, None).await.with(204);
}

#[tokio::test]
async fn whoever_watches_is_told_what_happens_and_whoever_comes_back_what_it_missed() {
    let (_node, at) = alone().await;
    let mut client = watch(at, None).await;
    visit(at, "other").await;
    visit(at, "w/1").await;
    let (what, id, data) = event(&mut client).await;
    assert_eq!(
        (what.as_str(), &data["name"], &data["label"]),
        ("granted", &json!("w/1"), &json!("me"))
    );
    assert!(data["fence"].as_str().unwrap().parse::<u64>().is_ok(), "{data}");
    assert!(data["at"].as_str().unwrap().ends_with('Z'), "{data}");
    drop(client);
    let mut back = watch(at, Some(&id)).await;
    let (what, _, data) = event(&mut back).await;
    assert_eq!((what.as_str(), &data["name"]), ("released", &json!("w/1")));
    visit(at, "w/2").await;
    assert_eq!(event(&mut back).await.2["name"], "w/2");
}

#[tokio::test]
async fn what_is_not_known_any_more_is_a_gap() {
    let (_node, at) = alone().await;
    let mut client = watch(at, Some("1")).await;
    let (what, id, data) = event(&mut client).await;
    assert_eq!((what.as_str(), data), ("gap", json!({})));
    drop(client);
    // Whoever comes back after the gap has missed nothing.
    let mut client = watch(at, Some(&id)).await;
    visit(at, "w/1").await;
    assert_eq!(event(&mut client).await.0, "granted");
}

#[tokio::test]
async fn events_end_when_the_node_stops() {
    let (node, at) = alone().await;
    let mut client = watch(at, None).await;
    node.stop().await;
    let rest = client.end().await;
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
}

#[tokio::test]
async fn what_is_no_id_of_an_event_is_refused() {
    let (_node, at) = alone().await;
    for bad in ["x", "-1", "1.5", "99999999999999999999"] {
        let mut client = Client::open(at).await;
        client.send(format!("{WATCH}Last-Event-ID: {bad}\r\n\r\n")).await;
        client.answer().await.unwrap().refused(400, "bad-event-id");
    }
    ask(at, "GET", "/v1/changes?name=x", None).await.refused(400, "bad-query");
}

#[tokio::test]
async fn a_watcher_that_does_not_read_holds_nobody_up() {
    let (node, at) = alone().await;
    let _client = watch(at, None).await;
    // More than any buffer between the two can take.
    for round in 0..20_000 {
        drop(node.lock(&format!("w/{round:0>200}")).await.unwrap());
    }
    visit(at, "w/1").await;
}
