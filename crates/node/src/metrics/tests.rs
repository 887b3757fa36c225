//! What a scrape says, and that the dashboard asks for nothing else.

use std::collections::BTreeSet;

use catraca_client::Connection;
use catraca_group::{Wait, Who};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::testing::{LIMIT, alone, alone_with};

/// The value of a line that begins so.
fn value(text: &str, line: &str) -> f64 {
    let found = text.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {line} in {text}")).parse().unwrap()
}

#[tokio::test]
async fn a_scrape_tells_what_has_happened() {
    let node = alone().await;
    let mut client = Connection::open(&node.address().to_string()).await.unwrap();
    client.open_session(Who::default(), None).await.unwrap();
    client.acquire(1, &["x".to_string()], 1, Wait::Forever).await.unwrap();
    client.receive().await.unwrap();
    client.acquire(2, &["no name".to_string()], 1, Wait::Forever).await.unwrap();
    client.receive().await.unwrap();
    client.acquire(3, &["x".to_string()], 1, Wait::Forever).await.unwrap();
    while node.status().waiting == 0 {
        tokio::task::yield_now().await;
    }
    let before = text(&node.engine);
    assert_eq!(value(&before, "catraca_ready"), 1.0);
    assert_eq!(value(&before, "catraca_holds"), 1.0);
    assert_eq!(value(&before, "catraca_waiters"), 1.0);
    assert_eq!(value(&before, "catraca_longest_queue"), 1.0);
    assert_eq!(value(&before, "catraca_sessions"), 1.0);
    assert_eq!(value(&before, "catraca_rejected_total{code=\"bad-name\"}"), 1.0);
    assert_eq!(value(&before, "catraca_connections{interface=\"native\"}"), 1.0);
    assert!(value(&before, "catraca_received_bytes_total{interface=\"native\"}") > 0.0);
    assert!(value(&before, "catraca_sent_bytes_total{interface=\"native\"}") > 0.0);
    assert!(value(&before, "catraca_registry_seconds_count") > 0.0);
    assert!(value(&before, "process_resident_memory_bytes") > 1e6);
    client.release(1).await.unwrap();
    client.receive().await.unwrap();
    client.receive().await.unwrap();
    let after = text(&node.engine);
    assert_eq!(value(&after, "catraca_grants_total"), 2.0);
    assert_eq!(value(&after, "catraca_handovers_total"), 1.0);
    for times in ["wait", "hold", "handover"] {
        assert_eq!(value(&after, &format!("catraca_{times}_seconds_count")), 1.0, "{times}");
        let all = value(&after, &format!("catraca_{times}_seconds_bucket{{le=\"+Inf\"}}"));
        assert_eq!(all, 1.0, "{times}");
    }
    assert!(after.ends_with("# EOF\n"), "it is whole");
    drop(client);
    while value(&text(&node.engine), "catraca_connections{interface=\"native\"}") > 0.0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn connections_of_every_interface_are_counted_with_their_bytes() {
    let node = alone_with(|config| {
        config.http.listen = Some("127.0.0.1:0".to_string());
        config.resp.listen = Some("127.0.0.1:0".to_string());
    })
    .await;
    let cases = [
        ("http", node.http_address(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "ok\n"),
        ("resp", node.resp_address(), "PING\r\n", "+PONG\r\n"),
    ];
    for (interface, address, said, expected) in cases {
        let count = |name: &str| {
            value(&text(&node.engine), &format!("catraca_{name}{{interface=\"{interface}\"}}"))
        };
        assert_eq!(count("connections"), 0.0, "{interface}");
        let mut client = TcpStream::connect(address.unwrap()).await.unwrap();
        client.write_all(said.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(expected.as_bytes()) {
            let read = timeout(LIMIT, client.read_buf(&mut heard)).await.unwrap().unwrap();
            assert_ne!(read, 0, "{interface}: {heard:?}");
        }
        assert_eq!(count("connections"), 1.0, "{interface}");
        assert_eq!(count("connections_opened_total"), 1.0, "{interface}");
        assert_eq!(count("received_bytes_total"), said.len() as f64, "{interface}");
        assert_eq!(count("sent_bytes_total"), heard.len() as f64, "{interface}");
        drop(client);
        let is_gone = async {
            while count("connections") > 0.0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, is_gone).await.expect("it is gone");
    }
}

#[tokio::test]
async fn no_name_of_a_lock_is_told() {
    let node = alone().await;
    let guard = node.lock("secret/name").await.unwrap();
    assert!(!text(&node.engine).contains("secret"));
    drop(guard);
}

/// The names of metrics in an expression of the dashboard.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    words.filter(|word| word.starts_with("catraca_") || word.starts_with("process_"))
}

fn expressions(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            out.extend(fields.get("expr").and_then(Value::as_str).map(String::from));
            fields.values().for_each(|field| expressions(field, out));
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, out)),
        _ => {}
    }
}

/// The alarms for Prometheus.
const RULES: &str = include_str!("../../../../contrib/prometheus/catraca.rules.yml");

/// What stands behind a key, on all lines that have it.
fn fields<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| line.trim_start().strip_prefix(key))
}

#[test]
fn every_rule_has_an_expression_and_a_section_of_the_runbook() {
    let runbook = include_str!("../../../../docs/RUNBOOK.md");
    let alarms: Vec<&str> = fields(RULES, "- alert: ").collect();
    assert!(alarms.len() >= 10, "{alarms:?}");
    assert_eq!(fields(RULES, "expr: ").count(), alarms.len());
    for alarm in alarms {
        assert!(runbook.contains(&format!("\n## {alarm}: ")), "{alarm} has no section");
    }
}

#[tokio::test]
async fn every_metric_that_the_dashboard_or_a_rule_names_exists() {
    let dashboard = include_str!("../../../../contrib/grafana/catraca.json");
    let mut all: Vec<String> = fields(RULES, "expr: ").map(String::from).collect();
    expressions(&serde_json::from_str(dashboard).unwrap(), &mut all);
    let named: BTreeSet<&str> = all.iter().flat_map(|expression| names(expression)).collect();
    assert!(named.len() > 20, "{named:?}");
    let node = alone().await;
    drop(node.lock("x").await.unwrap());
    node.engine.metrics().reject("taken");
    let mut others = String::new();
    // Alone there is no other member.
    others.push_str("catraca_link_up{member=\"b\"} 1\n");
    let text = text(&node.engine) + &others;
    for name in named {
        let is_it = |line: &str| {
            line.starts_with(&format!("{name} ")) || line.starts_with(&format!("{name}{{"))
        };
        assert!(text.lines().any(is_it), "{name} is in no scrape");
    }
}
