//! Who holds and who waits, and whether a fence is still the newest; health and status.

use serde_json::{Value, json};

use crate::client::{Client, ask, request};
use crate::support::until;
use crate::{alone, three};

#[tokio::test]
async fn holders_and_their_queues_are_listed_part_by_part() {
    let (node, at) = alone().await;
    for name in ["ci/1", "ci/2", "ü/x"] {
        let wanted = json!({"names": [name], "label": format!("of {name}")});
        ask(at, "POST", "/v1/acquire", wanted).await.with(201);
    }
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut client = Client::open(at).await;
        let wanted = json!({"names": ["ci/1"], "wait_ms": 3_600_000, "label": "w"}).to_string();
        client.send(request("POST", "/v1/acquire", Some(&wanted))).await;
        waiting.push(client);
    }
    until("they wait", || node.status().waiting == 3).await;
    let all = ask(at, "GET", "/v1/locks", None).await.with(200).json();
    let names = |list: &Value| -> Vec<String> {
        let locks = list["locks"].as_array().unwrap().iter();
        locks.map(|lock| lock["name"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(names(&all), ["ci/1", "ci/2", "ü/x"]);
    assert_eq!((&all["next"], &all["silent"]), (&Value::Null, &json!([])));
    let first = &all["locks"][0];
    assert_eq!(first["holders"][0]["label"], "of ci/1");
    let places: Vec<&Value> =
        first["queue"].as_array().unwrap().iter().map(|waiter| &waiter["place"]).collect();
    assert_eq!(places, [1, 2, 3]);

    let some = ask(at, "GET", "/v1/locks?prefix=ci%2F", None).await.json();
    assert_eq!(names(&some), ["ci/1", "ci/2"]);
    let one = ask(at, "GET", "/v1/locks?name=%C3%BC/x", None).await.json();
    assert_eq!(names(&one), ["ü/x"]);
    let none = ask(at, "GET", "/v1/locks?name=nobody", None).await.json();
    assert_eq!(none["locks"], json!([]));

    let (mut path, mut lines, mut parts) = ("/v1/locks?limit=2".to_string(), 0, 0);
    loop {
        let part = ask(at, "GET", &path, None).await.with(200).json();
        for lock in part["locks"].as_array().unwrap() {
            let count = |what: &str| lock[what].as_array().unwrap().len();
            lines += count("holders") + count("queue");
        }
        parts += 1;
        let Some(next) = part["next"].as_str() else { break };
        path = format!("/v1/locks?limit=2&cursor={next}");
    }
    assert_eq!((lines, parts), (6, 3));
}

#[tokio::test]
async fn a_list_that_cannot_be_is_refused() {
    let (_node, at) = alone().await;
    let cases = [
        ("limit=0", "bad-query"),
        ("limit=1001", "bad-query"),
        ("limit=x", "bad-query"),
        ("nmae=x", "bad-query"),
        ("name=a&name=b", "bad-query"),
        ("name=a&prefix=b", "bad-query"),
        ("name=", "bad-name"),
        ("name=a%20b", "bad-name"),
        ("name=a%00b", "bad-name"),
        ("cursor=x", "bad-cursor"),
        ("cursor=", "bad-cursor"),
    ];
    let long = format!("/v1/locks?prefix={}", "x".repeat(256));
    ask(at, "GET", &long, None).await.refused(400, "bad-query");
    for (query, code) in cases {
        ask(at, "GET", &format!("/v1/locks?{query}"), None).await.refused(400, code);
    }
}

#[tokio::test]
async fn a_fence_is_the_newest_until_somebody_else_is_inside() {
    let (_nodes, at) = three().await;
    let wanted = json!({"names": ["x"]});
    let first = ask(at[0], "POST", "/v1/acquire", wanted.clone()).await.with(201).json();
    let check = json!({"name": "x", "fence": first["fences"][0]});
    let checked = ask(at[1], "POST", "/v1/check", check.clone()).await.with(200).json();
    assert_eq!((&checked["held"], &checked["newest"]), (&json!(true), &json!(true)), "{checked}");
    let place = format!("/v1/holds/{}", first["id"].as_str().unwrap());
    ask(at[0], "DELETE", &place, None).await.with(204);
    let checked = ask(at[2], "POST", "/v1/check", check.clone()).await.json();
    assert_eq!((&checked["held"], &checked["newest"]), (&json!(false), &json!(true)), "{checked}");
    let patient = json!({"names": ["x"], "wait_ms": 60_000});
    ask(at[1], "POST", "/v1/acquire", patient).await.with(201);
    let checked = ask(at[2], "POST", "/v1/check", check).await.json();
    assert_eq!((&checked["held"], &checked["newest"]), (&json!(false), &json!(false)), "{checked}");
    for bad in ["", "x", "-1", "+1", "9223372036854775808", "1.0", " 1"] {
        let body = json!({"name": "x", "fence": bad});
        ask(at[0], "POST", "/v1/check", body).await.refused(400, "bad-fence");
    }
    ask(at[0], "POST", "/v1/check", json!({"name": "x", "fence": 1}))
        .await
        .refused(400, "bad-body");
    ask(at[0], "POST", "/v1/check", json!({"name": "", "fence": "1"}))
        .await
        .refused(400, "bad-name");
}

#[tokio::test]
async fn health_readiness_and_status_are_told() {
    let (nodes, at) = three().await;
    assert_eq!(ask(at[0], "GET", "/healthz", None).await.with(200).body, "ok\n");
    assert_eq!(ask(at[0], "GET", "/readyz", None).await.with(200).body, "ready\n");
    let status = ask(at[1], "GET", "/v1/status", None).await.with(200).json();
    assert_eq!((&status["node"], &status["readiness"]), (&json!("b"), &json!("ready")));
    assert_eq!(status["members"].as_array().unwrap().len(), 3);
    assert_eq!(status["counters"]["anomalies"], 0);
    ask(at[0], "GET", "/nowhere", None).await.with(404);
    let counted = ask(at[0], "GET", "/metrics", None).await.with(200);
    assert!(counted.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(
        counted.body.ends_with("# EOF\n") && counted.body.contains("no-such-path"),
        "{counted:?}"
    );
    nodes[0].leave().await;
    ask(at[0], "GET", "/healthz", None).await.with(200);
    ask(at[0], "GET", "/readyz", None).await.refused(503, "not-ready");
    let refused = ask(at[0], "POST", "/v1/acquire", json!({"names": ["x"]})).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
}

#[tokio::test]
async fn a_lock_is_released_by_force_at_whichever_member_one_asks() {
    let (_nodes, at) = three().await;
    let take = json!({"names": ["x"], "label": "stuck"});
    let hold = ask(at[0], "POST", "/v1/acquire", take).await.with(201).json();
    let place = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
    let other = json!({"name": "x", "fences": ["1"]});
    ask(at[1], "POST", "/v1/force-release", other).await.refused(409, "not-held");
    ask(at[1], "GET", &place, None).await.with(200);
    let forced =
        ask(at[1], "POST", "/v1/force-release", json!({"name": "x"})).await.with(200).json();
    let released = &forced["released"][0];
    assert_eq!(
        (&released["label"], &released["member"]),
        (&json!("stuck"), &json!("a")),
        "{forced}"
    );
    assert_eq!(released["fence"], hold["fences"][0]);
    ask(at[2], "GET", &place, None).await.refused(410, "gone");
    ask(at[2], "POST", "/v1/acquire", json!({"names": ["x"], "wait_ms": 60_000})).await.with(201);
    ask(at[1], "POST", "/v1/force-release", json!({"name": "y"})).await.refused(409, "not-held");
    let bad = json!({"name": "x", "fences": [1]});
    ask(at[1], "POST", "/v1/force-release", bad).await.refused(400, "bad-body");
}
