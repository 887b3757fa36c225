//! What a hostile or broken client sends: it is refused or cut, and others are served.

use std::time::Duration;

use serde_json::json;

use crate::alone;
use crate::client::{Client, ask, request};
use crate::support::until;

const OK: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[tokio::test]
async fn what_is_nowhere_or_not_with_this_method_is_a_problem_too() {
    let (_node, at) = alone().await;
    for path in [
        "/v1",
        "/v1/",
        "/v1/acquire/",
        "/v2/locks",
        "/../etc/passwd",
        "/v1/%2e%2e/x",
        "//",
        "/problems/x",
    ] {
        assert_eq!(ask(at, "GET", path, None).await.status, 404, "{path}");
    }
    ask(at, "GET", "/nowhere", None).await.refused(404, "no-such-path");
    for (method, path, allow) in [
        ("GET", "/v1/acquire", "POST"),
        ("PUT", "/v1/locks", "GET,HEAD"),
        ("PATCH", "/v1/holds/x", "GET,HEAD,DELETE"),
        ("BREW", "/healthz", "GET,HEAD"),
        ("TRACE", "/", "GET,HEAD"),
    ] {
        let refused = ask(at, method, path, None).await;
        refused.refused(405, "wrong-method");
        assert_eq!(refused.header("allow"), Some(allow), "{method} {path}");
    }
    let options = ask(at, "OPTIONS", "/v1/acquire", None).await.with(204);
    assert_eq!(options.header("allow"), Some("POST"));
    assert_eq!(options.header("access-control-allow-origin"), None);
    let explained = ask(at, "GET", "/problems/taken", None).await.with(200);
    assert!(explained.body.starts_with("409 Somebody else holds the lock"), "{explained:?}");
}

/// Also what the framework refuses before anything of this node sees it.
#[tokio::test]
async fn a_path_or_a_query_that_is_no_text_is_a_problem() {
    let (_node, at) = alone().await;
    for (method, path) in [
        ("GET", "/v1/holds/%FF"),
        ("DELETE", "/v1/holds/%FF"),
        ("POST", "/v1/holds/%FF/renew"),
        ("GET", "/terraform/%FF"),
        ("LOCK", "/terraform/%FF"),
        ("POST", "/terraform-lock/%FF"),
        ("GET", "/assets/%FF"),
        ("GET", "/problems/%FF"),
    ] {
        let body = ask(at, method, path, None).await.refused(400, "bad-path");
        assert!(body["detail"].as_str().unwrap().contains("UTF-8"), "{method} {path}: {body}");
    }
    for query in ["limit=x", "limit=1&limit=2", "nothing=1", "name=a&name=b"] {
        ask(at, "GET", &format!("/v1/locks?{query}"), None).await.refused(400, "bad-query");
    }
    for body in ["", "{", "[]", "{\"names\": 7}", "{\"names\": [\"x\"], \"other\": 1}"] {
        let answer = Client::open(at).await.ask("POST", "/v1/acquire", Some(body)).await;
        answer.refused(400, "bad-body");
    }
}

#[tokio::test]
async fn a_head_request_gets_no_body() {
    let (_node, at) = alone().await;
    let mut client = Client::open(at).await;
    client.send("HEAD /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    client.ask("GET", "/healthz", None).await.with(200);
}

#[tokio::test]
async fn every_answer_says_that_it_is_not_to_be_kept() {
    let (_node, at) = alone().await;
    // Files of the page say nothing of locks: a browser keeps them, and asks whether they are still the same.
    let paths = ["/healthz", "/nowhere", "/v1/locks", "/openapi.json", "/", "/assets/app.js"];
    for (number, path) in paths.into_iter().enumerate() {
        let kept = if number < 4 { "no-store" } else { "no-cache" };
        let answer = ask(at, "GET", path, None).await;
        assert_eq!(answer.header("cache-control"), Some(kept), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}

#[tokio::test]
async fn only_what_is_said_to_be_json_is_read() {
    let (_node, at) = alone().await;
    let body = json!({"names": ["x"]}).to_string();
    for kind in
        ["", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"]
    {
        let head = format!("POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n{kind}");
        let mut client = Client::open(at).await;
        client.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await;
        client.answer().await.unwrap().refused(415, "not-json");
    }
    let kind = "Content-Type: Application/JSON; charset=utf-8";
    let head = format!("POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n");
    let mut client = Client::open(at).await;
    client.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await;
    client.answer().await.unwrap().with(201);
}

/// A second request is never seen in what is the body of the first.
#[tokio::test]
async fn no_request_is_smuggled_behind_another() {
    let (node, at) = alone().await;
    let wanted = json!({"names": ["smuggled"]}).to_string();
    let inner = request("POST", "/v1/acquire", Some(&wanted));
    let length = inner.len();
    let post = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let shapes = [
        // Both lengths: the chunks count, and the connection ends.
        format!("{post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n{inner}"),
        format!("{post}Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{inner}"),
        format!("{post}Content-Length: 0, {length}\r\n\r\n{inner}"),
        format!("{post}Content-Length: +0\r\n\r\n{inner}"),
        format!("{post}Content-Length: -1\r\n\r\n{inner}"),
        format!("{post}Content-Length: 0x0\r\n\r\n{inner}"),
        format!("{post}Content-Length: 99999999999999999999\r\n\r\n{inner}"),
        format!("{post}Content-Length : 0\r\n\r\n{inner}"),
        format!("{post}Content-Length:\r\n 0\r\n\r\n{inner}"),
        format!("{post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{inner}"),
        format!("{post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n{inner}"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n{inner}"),
        format!("{post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n\r\n{inner}"),
        format!("POST /v1/check HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("POST /v1/check HTTP/1.1 HTTP/1.1\r\nHost: localhost\r\n\r\n{inner}"),
        format!("{post}A: b\0c\r\n\r\n{inner}"),
    ];
    for shape in shapes {
        let mut client = Client::open(at).await;
        client.send(&shape).await;
        let said = client.end().await;
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{shape:?}: {said}");
        assert!(said.starts_with("HTTP/1.1 400"), "{shape:?}: {said}");
    }
    let status = node.status();
    assert_eq!((status.held, status.grants), (0, 0));
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_their_order() {
    let (_node, at) = alone().await;
    let mut client = Client::open(at).await;
    let take = json!({"names": ["x"]}).to_string();
    let all = [
        request("POST", "/v1/acquire", Some(&take)),
        request("GET", "/nowhere", None),
        request("POST", "/v1/acquire", Some(&take)),
        OK.to_string(),
    ];
    client.send(all.concat()).await;
    for status in [201, 404, 409, 200] {
        client.answer().await.unwrap().with(status);
    }
    // In the form for proxies, the host of the first line counts.
    client.send("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    client.answer().await.unwrap().with(200);
    client.send("GET http://example.com/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    client.answer().await.unwrap().refused(421, "wrong-host");
}

#[tokio::test]
async fn a_site_that_leads_to_this_machine_is_turned_away() {
    let (_node, at) = alone().await;
    for (line, status) in [
        ("Host: evil.example\r\n", 421),
        ("Host: localhost:80\r\n", 200),
        ("Host: 127.0.0.1\r\n", 200),
        ("Host: [::1]:8080\r\n", 200),
        ("", 400),
        ("Host: a\r\nHost: b\r\n", 400),
    ] {
        let mut client = Client::open(at).await;
        client.send(format!("GET /v1/locks HTTP/1.1\r\n{line}\r\n")).await;
        assert_eq!(client.answer().await.unwrap().status, status, "{line:?}");
    }
}

#[tokio::test]
async fn headers_and_addresses_have_a_longest_form() {
    let (_node, at) = alone().await;
    let head = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n";
    let long = "x".repeat(17 << 10);
    let cases = [
        format!("{head}A: {long}\r\n\r\n"),
        format!("{head}{}\r\n", "A: b\r\n".repeat(70)),
        format!("GET /v1/locks?name={long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ];
    let mut client = Client::open(at).await;
    for case in cases {
        client.send(&case).await;
        client.answer().await.unwrap().refused(431, "long-header");
    }
    // It is not even read to its end.
    let cases = [
        format!("{head}{}\r\n", "A: b\r\n".repeat(200)),
        format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(70 << 10)),
    ];
    for case in cases {
        let mut client = Client::open(at).await;
        client.send(&case).await;
        let said = client.end().await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
    }
    // Without an end: it is cut however long it goes on.
    let mut client = Client::open(at).await;
    client.send(head).await;
    let line = "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n".repeat(100);
    let mut sent = 0;
    use tokio::io::AsyncWriteExt;
    while client.stream.write_all(line.as_bytes()).await.is_ok() {
        sent += line.len();
        assert!(sent < 64 << 20, "it reads on");
    }
    ask(at, "GET", "/healthz", None).await.with(200);
}

#[tokio::test]
async fn a_body_has_a_largest_size_in_every_form() {
    let (_node, at) = alone().await;
    let post = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let mut client = Client::open(at).await;
    client.send(format!("{post}Content-Length: 1000000000\r\n\r\n")).await;
    client.answer().await.unwrap().refused(413, "too-large");
    let mut client = Client::open(at).await;
    client.send(format!("{post}Transfer-Encoding: chunked\r\n\r\n")).await;
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..5 {
        client.send(&chunk).await;
    }
    client.answer().await.unwrap().refused(413, "too-large");
    // As many names as can be, and as long.
    let names: Vec<String> = (0..256).map(|n| format!("{n:0>255}")).collect();
    ask(at, "POST", "/v1/acquire", json!({"names": names})).await.with(201);
}

#[tokio::test]
async fn who_sends_slowly_is_cut_and_the_others_are_served() {
    let (_node, at) = alone().await;
    let mut no_header = Client::open(at).await;
    no_header.send("GET /healthz HTTP/1.1\r\nHost: ").await;
    let mut nothing = Client::open(at).await;
    let mut idle = Client::open(at).await;
    idle.send(OK).await;
    idle.answer().await.unwrap().with(200);
    let mut no_body = Client::open(at).await;
    let post = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    no_body.send(format!("{post}Content-Length: 10\r\n\r\n{{")).await;
    ask(at, "GET", "/healthz", None).await.with(200);
    no_body.answer().await.unwrap().refused(408, "slow-body");
    for client in [&mut no_header, &mut nothing, &mut idle, &mut no_body] {
        assert_eq!(client.end().await, "");
    }
}

#[tokio::test]
async fn a_body_that_is_cut_off_does_nothing() {
    let (node, at) = alone().await;
    let body = json!({"names": ["x"]}).to_string();
    let whole = request("POST", "/v1/acquire", Some(&body));
    for length in 0..whole.len() {
        let mut client = Client::open(at).await;
        client.send(&whole[..length]).await;
        drop(client);
    }
    ask(at, "GET", "/healthz", None).await.with(200);
    until("nothing is held", || node.status().held == 0).await;
    assert_eq!(node.status().grants, 0);
}

#[tokio::test]
async fn bytes_that_are_no_http_are_hung_up_on() {
    let (_node, at) = alone().await;
    let garbage: Vec<u8> = (0..=255).cycle().take(4096).collect();
    for bytes in [
        &garbage[..],
        b"\x16\x03\x01\x02\x00\x01",
        b"*1\r\n$4\r\nPING\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut client = Client::open(at).await;
        client.send(bytes).await;
        let said = tokio::time::timeout(Duration::from_secs(60), client.end()).await.unwrap();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    ask(at, "GET", "/healthz", None).await.with(200);
}
