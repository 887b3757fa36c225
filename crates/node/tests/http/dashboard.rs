//! What the dashboard is made of, and what it asks a node for.

use serde_json::{Value, json};

use crate::client::{Client, ask, request};
use crate::{alone, three};

/// The next event of a stream: its name and its data.
async fn event(client: &mut Client) -> (String, Value) {
    let text = client.until("\n\n").await;
    let text = text.split_once("event: ").unwrap_or_else(|| panic!("{text:?}")).1;
    let (name, rest) = text.split_once("\ndata: ").unwrap();
    (name.to_string(), serde_json::from_str(rest.trim_end()).unwrap())
}

/// The next event of this name.
async fn next(client: &mut Client, wanted: &str) -> Value {
    loop {
        let (name, data) = event(client).await;
        if name == wanted {
            return data;
        }
    }
}

async fn watch(at: std::net::SocketAddr, query: &str) -> Client {
    let mut client = Client::open(at).await;
    client.send(request("GET", &format!("/v1/live{query}"), None)).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
    client
}

#[tokio::test]
async fn a_page_comes_in_files_of_which_nothing_is_inline_and_that_are_sent_once() {
    let (_node, at) = alone().await;
    let page = ask(at, "GET", "/", None).await.with(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
    let is_handler = |word: &str| word.starts_with("on") && word.contains('=');
    assert!(!page.body.contains("<style") && !page.body.split_whitespace().any(is_handler));
    assert_eq!(page.body.matches("<script").count(), 1);
    for (file, media_type) in [
        ("app.js", "text/javascript; charset=utf-8"),
        ("dashboard.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let path = format!("/assets/{file}");
        let first = ask(at, "GET", &path, None).await.with(200);
        assert_eq!(first.header("content-type"), Some(media_type), "{file}");
        assert_eq!(first.header("cache-control"), Some("no-cache"));
        let line =
            format!("If-None-Match: {}\r\nHost: localhost\r\n", first.header("etag").unwrap());
        let mut client = Client::open(at).await;
        let again = request("GET", &path, None).replacen("Host: localhost\r\n", &line, 1);
        client.send(again).await;
        let second = client.answer().await.unwrap().with(304);
        assert_eq!(second.body, "");
    }
    ask(at, "GET", "/assets/missing.js", None).await.refused(404, "no-such-path");
    ask(at, "GET", "/assets/..%2fhttp.rs", None).await.refused(404, "no-such-path");
}

#[tokio::test]
async fn what_changes_is_told_merged_and_without_what_came_and_went() {
    let (node, at) = alone().await;
    let mut client = watch(at, "?locks=true&prefix=w/").await;
    let status = next(&mut client, "status").await;
    assert_eq!(
        (&status["readiness"], &status["members"][0]["in_view"]),
        (&json!("ready"), &json!(true))
    );
    assert_eq!(next(&mut client, "alerts").await, json!({"alerts": []}));
    for _ in 0..1000 {
        drop(node.lock("w/busy").await.unwrap());
    }
    let held = node.lock("w/held").await.unwrap();
    drop(node.lock("other").await.unwrap());
    let (mut changes, mut words) = (0, 0);
    let entered = loop {
        let told = next(&mut client, "changes").await;
        changes += told["changes"].as_u64().unwrap();
        words += 1;
        let locks = told["locks"].as_array().unwrap();
        assert!(locks.iter().all(|lock| lock["name"] != "other"), "{told}");
        if let Some(lock) = locks.iter().find(|lock| lock["name"] == "w/held") {
            break lock["entered"][0].clone();
        }
    };
    assert_eq!(entered["fence"], held.fence().to_string());
    assert!(changes == 2001 && words < 100, "{changes} changes in {words} words");
    let fence = held.fence();
    drop(held);
    let left = next(&mut client, "changes").await;
    assert_eq!(left["locks"][0]["left"], json!([fence.to_string()]));
}

#[tokio::test]
async fn a_second_passes_between_samples_and_they_are_kept() {
    let (_node, at) = alone().await;
    let mut client = watch(at, "").await;
    let first = next(&mut client, "sample").await;
    // As a client: of the program that runs the node not every hold is measured.
    let hold = ask(at, "POST", "/v1/acquire", json!({"names": ["x"]})).await.with(201).json();
    let place = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
    ask(at, "DELETE", &place, None).await.with(204);
    let mut grants = 0;
    let mut last = first["unix_ms"].as_u64().unwrap();
    while grants == 0 {
        let sample = next(&mut client, "sample").await;
        assert!(sample["unix_ms"].as_u64().unwrap() > last);
        last = sample["unix_ms"].as_u64().unwrap();
        grants += sample["grants"].as_u64().unwrap();
    }
    let kept = ask(at, "GET", "/v1/rates", None).await.with(200).json();
    let samples = kept["samples"].as_array().unwrap();
    assert_eq!(samples.iter().map(|it| it["grants"].as_u64().unwrap()).sum::<u64>(), 1);
    let one = ask(at, "GET", "/v1/rates?seconds=1", None).await.with(200).json();
    assert_eq!(one["samples"].as_array().unwrap().len(), 1);
    for bad in ["0", "601", "x"] {
        let path = format!("/v1/rates?seconds={bad}");
        ask(at, "GET", &path, None).await.refused(400, "bad-query");
    }
    let times = ask(at, "GET", "/v1/times", None).await.with(200).json();
    assert_eq!(times["holds"]["count"], 1);
    let counted: u64 = times["holds"]["buckets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bucket| bucket["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 1);
}

#[tokio::test]
async fn changes_of_other_members_are_told_too() {
    let (nodes, at) = three().await;
    let mut client = watch(at[0], "?locks=true").await;
    // From when on another member is heard is not known: until then there are gaps.
    let told = async {
        loop {
            let held = nodes[1].lock("x").await.unwrap();
            let (name, told) = event(&mut client).await;
            drop(held);
            if name == "changes" && told["locks"].to_string().contains("\"member\":\"b\"") {
                return;
            }
        }
    };
    tokio::time::timeout(crate::client::LIMIT, told).await.expect("it is told");
}

#[tokio::test]
async fn streams_end_when_the_node_stops() {
    for query in ["", "?locks=true"] {
        let (node, at) = alone().await;
        let mut client = watch(at, query).await;
        node.stop().await;
        let rest = client.end().await;
        assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
    }
}

#[tokio::test]
async fn a_page_that_does_not_read_holds_nobody_up() {
    let (node, at) = alone().await;
    let _client = watch(at, "?locks=true").await;
    for round in 0..20_000 {
        drop(node.lock(&format!("w/{round:0>200}")).await.unwrap());
    }
    ask(at, "GET", "/v1/alerts", None).await.with(200);
}

#[tokio::test]
async fn a_note_of_somebody_who_uses_force_has_an_end() {
    let (node, at) = alone().await;
    let held = node.lock("x").await.unwrap();
    let long = json!({"name": "x", "note": "n".repeat(1025)});
    ask(at, "POST", "/v1/force-release", long).await.refused(400, "long-note");
    let asked = json!({"name": "x", "note": "its machine is gone"});
    let forced = tokio::spawn(async move { ask(at, "POST", "/v1/force-release", asked).await });
    held.lost().await;
    drop(held);
    forced.await.unwrap().with(200);
}
