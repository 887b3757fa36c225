//! Holds: asked for, kept, lost and given back.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Client, LIMIT, ask, request};
use crate::support::until;
use crate::{alone, start, three};

/// The id of a hold that was granted.
#[track_caller]
fn id(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_string()
}

fn fence(hold: &Value) -> u64 {
    hold["fences"][0].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_lock_is_taken_looked_at_renewed_and_released() {
    let (_node, at) = alone().await;
    let wanted = json!({"names": ["x"], "ttl_ms": 60_000, "label": "me"});
    let taken = ask(at, "POST", "/v1/acquire", wanted.clone()).await.with(201);
    let hold = taken.json();
    assert_eq!((&hold["names"], &hold["permits"]), (&json!(["x"]), &json!(1)));
    assert_eq!((&hold["durable"], &hold["label"]), (&json!(false), &json!("me")));
    assert_eq!((&hold["ttl_ms"], &hold["member"]), (&json!(60_000), &json!("alone")));
    let left = hold["expires_in_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
    assert!(hold["expires_at"].as_str().unwrap().ends_with('Z'));
    let place = taken.header("location").unwrap().to_string();
    assert_eq!(place, format!("/v1/holds/{}", id(&taken)));

    let refused = ask(at, "POST", "/v1/acquire", wanted).await.refused(409, "taken");
    assert_eq!(refused["type"], "/problems/taken");
    let holder = &refused["holders"][0];
    assert_eq!((&holder["label"], &holder["fence"]), (&json!("me"), &hold["fences"][0]));
    assert!(!refused.to_string().contains(&id(&taken)), "the id is the holder's alone");

    let looked = ask(at, "GET", &place, None).await.with(200).json();
    assert_eq!(looked["fences"], hold["fences"]);
    let renewed = ask(at, "POST", &format!("{place}/renew"), json!({"ttl_ms": 90_000})).await;
    let left = renewed.with(200).json()["expires_in_ms"].as_u64().unwrap();
    assert!((60_001..=90_000).contains(&left), "{left}");
    // Without a body, it lasts as long as it was to last before.
    ask(at, "POST", &format!("{place}/renew"), None).await.with(200);

    assert_eq!(ask(at, "DELETE", &place, None).await.with(204).body, "");
    for method in ["DELETE", "GET"] {
        ask(at, method, &place, None).await.refused(410, "gone");
    }
    ask(at, "POST", &format!("{place}/renew"), None).await.refused(410, "gone");
    let again = ask(at, "POST", "/v1/acquire", json!({"names": ["x"]})).await.with(201).json();
    assert!(fence(&again) > fence(&hold));
    assert!(fence(&again) < i64::MAX as u64);
}

#[tokio::test]
async fn whoever_waits_is_inside_when_the_holder_leaves() {
    let (node, at) = alone().await;
    let first = id(&ask(at, "POST", "/v1/acquire", json!({"names": ["x"]})).await);
    let mut second = Client::open(at).await;
    let wanted = json!({"names": ["x"], "wait_ms": 60_000}).to_string();
    second.send(request("POST", "/v1/acquire", Some(&wanted))).await;
    until("it waits", || node.status().waiting == 1).await;
    ask(at, "DELETE", &format!("/v1/holds/{first}"), None).await.with(204);
    second.answer().await.unwrap().with(201);
}

#[tokio::test]
async fn a_wait_that_is_over_says_who_holds() {
    let (node, at) = alone().await;
    let _held = node.lock("x").await.unwrap();
    let wanted = json!({"names": ["y", "x"], "wait_ms": 1});
    let refused = ask(at, "POST", "/v1/acquire", wanted).await.refused(408, "timed-out");
    assert_eq!(refused["holders"][0]["name"], "x");
    assert_eq!(refused["holders"].as_array().unwrap().len(), 1);
    // Nothing of it has stayed.
    ask(at, "POST", "/v1/acquire", json!({"names": ["y"]})).await.with(201);
}

#[tokio::test]
async fn a_node_that_cannot_serve_says_so_and_who_holds() {
    let (node, at) = start(|config| config.drain = LIMIT).await;
    let held = node.lock("x").await.unwrap();
    let fence = held.fence().to_string();
    let asking = async {
        // Until it leaves, the lock is only taken.
        let refused = loop {
            let wanted = json!({"names": ["y", "x"]});
            let answer = ask(at, "POST", "/v1/acquire", wanted).await;
            if answer.status != 409 {
                break answer.refused(503, "leaving");
            }
        };
        let holders = refused["holders"].as_array().unwrap();
        assert_eq!(holders.len(), 1, "{refused}");
        assert_eq!((&holders[0]["name"], &holders[0]["fence"]), (&json!("x"), &json!(fence)));
        held.release().await;
    };
    tokio::join!(node.leave(), asking);
}

#[tokio::test]
async fn a_hold_that_is_not_renewed_ends() {
    let (_node, at) = alone().await;
    let short = json!({"names": ["x"], "ttl_ms": 50});
    let first = ask(at, "POST", "/v1/acquire", short).await;
    let patient = json!({"names": ["x"], "wait_ms": 60_000});
    let second = ask(at, "POST", "/v1/acquire", patient).await.with(201);
    assert!(fence(&second.json()) > fence(&first.json()));
    let place = format!("/v1/holds/{}", id(&first));
    ask(at, "DELETE", &place, None).await.refused(410, "gone");
    ask(at, "GET", &format!("/v1/holds/{}", id(&second)), None).await.with(200);
}

#[tokio::test]
async fn a_client_that_goes_away_waits_no_more() {
    let (node, at) = alone().await;
    let held = node.lock("x").await.unwrap();
    // With nothing behind the request, with a part of the next one, and with several.
    for behind in ["", "GET /healthz HT", &request("GET", "/healthz", None).repeat(100)] {
        let mut client = Client::open(at).await;
        let wanted = json!({"names": ["x"], "wait_ms": 3_600_000}).to_string();
        client.send(request("POST", "/v1/acquire", Some(&wanted))).await;
        client.send(behind).await;
        until("it waits", || node.status().waiting == 1).await;
        drop(client);
        until("it waits no more", || node.status().waiting == 0).await;
    }
    held.release().await;
    ask(at, "POST", "/v1/acquire", json!({"names": ["x"]})).await.with(201);
}

#[tokio::test]
async fn a_node_that_stops_tells_whoever_waits() {
    let (node, at) = start(|config| config.drain = Duration::ZERO).await;
    let held = node.lock("x").await.unwrap();
    let mut client = Client::open(at).await;
    let wanted = json!({"names": ["x"], "wait_ms": 3_600_000}).to_string();
    client.send(request("POST", "/v1/acquire", Some(&wanted))).await;
    until("it waits", || node.status().waiting == 1).await;
    drop(held);
    // Whether it is told that the node leaves, or gets the lock at the last moment, it gets an answer.
    node.stop().await;
    let answer = client.answer().await.expect("an answer");
    assert!([201, 503].contains(&answer.status), "{answer:?}");
    assert_eq!(client.answer().await, None, "and then the node hangs up");
}

#[tokio::test]
async fn a_hold_is_renewed_and_released_at_whichever_member_one_asks() {
    let (_nodes, at) = three().await;
    let hold = ask(at[0], "POST", "/v1/acquire", json!({"names": ["x", "y"]})).await;
    let place = format!("/v1/holds/{}", id(&hold));
    let looked = ask(at[1], "GET", &place, None).await.with(200).json();
    assert_eq!((&looked["member"], &looked["fences"]), (&json!("a"), &hold.json()["fences"]));
    ask(at[2], "POST", &format!("{place}/renew"), None).await.with(200);
    let refused = ask(at[2], "POST", "/v1/acquire", json!({"names": ["x"]})).await;
    assert_eq!(refused.refused(409, "taken")["holders"][0]["member"], "a");
    ask(at[1], "DELETE", &place, None).await.with(204);
    ask(at[0], "DELETE", &place, None).await.refused(410, "gone");
    ask(at[2], "POST", "/v1/acquire", json!({"names": ["x"], "wait_ms": 60_000})).await.with(201);
}

#[tokio::test]
async fn a_durable_hold_is_found_again_by_its_request_and_released_by_its_owner() {
    let (_nodes, at) = three().await;
    let wanted =
        json!({"names": ["x"], "durable": true, "owner": "ann", "note": "why", "request_id": "7"});
    let first = ask(at[0], "POST", "/v1/acquire", wanted.clone()).await.with(201).json();
    assert_eq!((&first["durable"], &first["owner"]), (&json!(true), &json!("ann")));
    assert_eq!((&first["expires_in_ms"], &first["note"]), (&Value::Null, &json!("why")));
    let again = ask(at[1], "POST", "/v1/acquire", wanted.clone()).await.with(201).json();
    assert_eq!((&again["id"], &again["fences"]), (&first["id"], &first["fences"]));
    let mut other = wanted;
    other["names"] = json!(["y"]);
    ask(at[1], "POST", "/v1/acquire", other).await.refused(409, "other-request");
    let third = json!({"names": ["x"], "durable": true, "owner": "bob"});
    let refused = ask(at[2], "POST", "/v1/acquire", third).await.refused(409, "taken");
    assert_eq!(refused["holders"][0]["durable"]["owner"], "ann");

    let place = format!("/v1/holds/{}", first["id"].as_str().unwrap());
    ask(at[2], "GET", &place, None).await.with(200);
    ask(at[2], "POST", &format!("{place}/renew"), None).await.refused(409, "durable");
    ask(at[2], "DELETE", &place, None).await.refused(400, "no-owner");
    ask(at[2], "DELETE", &format!("{place}?owner=bob"), None).await.refused(403, "not-owner");
    ask(at[2], "DELETE", &format!("{place}?owner=ann"), None).await.with(204);
    ask(at[0], "DELETE", &format!("{place}?owner=ann"), None).await.refused(410, "gone");
}

#[tokio::test]
async fn a_semaphore_lets_so_many_in() {
    let (_node, at) = alone().await;
    let permit = json!({"names": ["s"], "permits": 2});
    for _ in 0..2 {
        ask(at, "POST", "/v1/acquire", permit.clone()).await.with(201);
    }
    let refused = ask(at, "POST", "/v1/acquire", permit).await.refused(409, "taken");
    assert_eq!(refused["holders"].as_array().unwrap().len(), 2);
    let other = json!({"names": ["s"], "permits": 3});
    ask(at, "POST", "/v1/acquire", other).await.refused(409, "other-permits");
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_refused_with_its_reason() {
    let (_node, at) = alone().await;
    let long = "x".repeat(256);
    let cases: &[(Value, &str, &str)] = &[
        (json!({"names": []}), "no-names", "name at least one lock"),
        (json!({"names": ["a b"]}), "bad-name", "no spaces"),
        (json!({"names": ["a\u{0}b"]}), "bad-name", "no control characters"),
        (json!({"names": ["a\u{202e}b"]}), "bad-name", "invisible"),
        (json!({"names": [long]}), "bad-name", "at most 255"),
        (json!({"names": vec!["x"; 257]}), "too-many-names", "257"),
        (json!({"names": ["x"], "permits": 0}), "bad-permits", "1 to 64"),
        (json!({"names": ["x"], "permits": 65}), "bad-permits", "1 to 64"),
        (json!({"names": ["x", "y"], "permits": 2}), "set-of-semaphores", "one semaphore"),
        (json!({"names": ["x"], "ttl_ms": 0}), "bad-ttl", "time to live"),
        (json!({"names": ["x"], "ttl_ms": 86_400_001}), "bad-ttl", "time to live"),
        (json!({"names": ["x"], "wait_ms": 86_400_001}), "bad-wait", "a day"),
        (json!({"names": ["x"], "owner": "me"}), "not-durable", "'owner'"),
        (json!({"names": ["x"], "note": ""}), "not-durable", "'note'"),
        (json!({"names": ["x"], "request_id": "1"}), "not-durable", "'request_id'"),
        (json!({"names": ["x"], "durable": true}), "no-owner", "owner"),
        (json!({"names": ["x"], "durable": true, "owner": ""}), "bad-durable-text", "owner"),
        (json!({"names": ["x"], "durable": true, "owner": "a", "ttl_ms": 1}), "durable", "ttl_ms"),
        (json!({"names": ["x"], "ttl": 1}), "bad-body", "unknown field `ttl`"),
        (json!({"name": "x"}), "bad-body", "unknown field `name`"),
        (json!({"names": "x"}), "bad-body", "expected a sequence"),
        (json!({"names": ["x"], "ttl_ms": -1}), "bad-body", "-1"),
        (json!({"names": ["x"], "ttl_ms": 1.5}), "bad-body", "1.5"),
        (json!({}), "bad-body", "missing field `names`"),
        (json!([["x"]]), "bad-body", "no JSON object"),
        (json!(null), "bad-body", "no JSON object"),
    ];
    for (body, code, text) in cases {
        let refused = ask(at, "POST", "/v1/acquire", body.clone()).await.refused(400, code);
        assert!(refused["detail"].as_str().unwrap().contains(text), "{body}: {refused}");
        assert_eq!(refused.get("holders"), None, "{refused}");
    }
    for body in ["", "{", "{}}", "\u{feff}{}", "{\"names\":[\"x\"],\"names\":[\"y\"]}", "[[[["] {
        Client::open(at)
            .await
            .ask("POST", "/v1/acquire", Some(body))
            .await
            .refused(400, "bad-body");
    }
    let deep = "[".repeat(100_000);
    Client::open(at).await.ask("POST", "/v1/acquire", Some(&deep)).await.refused(400, "bad-body");
    for bad in ["x", "0F", "%2e%2e%2f", &"0".repeat(31), &"0".repeat(33), &"G".repeat(32)] {
        ask(at, "GET", &format!("/v1/holds/{bad}"), None).await.refused(404, "bad-id");
    }
    let unknown = "0".repeat(32);
    ask(at, "GET", &format!("/v1/holds/{unknown}"), None).await.refused(410, "gone");
    let listed = ask(at, "GET", "/v1/locks", None).await.with(200).json();
    assert_eq!(listed["locks"], json!([]), "nothing has stayed");
}
