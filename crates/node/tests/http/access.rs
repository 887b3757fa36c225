//! Who may do what over HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use catraca_node::{Node, Role, TokenFile};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Answer, Client, request};
use crate::start;
use crate::support::until;

/// A node that asks everybody for a token, and tokens of it.
struct Guarded {
    node: Node,
    at: SocketAddr,
    folder: TempDir,
    observer: String,
    locker: String,
    administrator: String,
}

impl Guarded {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = tokens(folder.path());
        let add = |name: &str, role, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            TokenFile::change(&path, |file| file.add(name, role, &names, "today")).unwrap()
        };
        let observer = add("olga", Role::Observe, &[]);
        let locker = add("ci", Role::Lock, &["ci/*", "terraform/ci/*"]);
        let administrator = add("root", Role::Administer, &[]);
        let (node, at) = start(|config| config.security.tokens = Some(path)).await;
        Guarded { node, at, folder, observer, locker, administrator }
    }

    async fn ask(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        let body = body.map(|body| body.to_string());
        let plain = request(method, path, body.as_deref());
        let line = format!("Host: localhost\r\nAuthorization: {token}\r\n");
        let mut client = Client::open(self.at).await;
        client.send(plain.replacen("Host: localhost\r\n", &line, 1)).await;
        client.answer().await.unwrap()
    }
}

fn tokens(folder: &Path) -> PathBuf {
    folder.join("tokens.toml")
}

#[tokio::test]
async fn whoever_has_no_token_of_the_node_gets_nothing_but_its_health() {
    let node = Guarded::start().await;
    let hold = format!("/v1/holds/{}", "0".repeat(32));
    let all = [
        ("POST", "/v1/acquire".to_string(), Some(json!({"names": ["x"]}))),
        ("GET", hold.clone(), None),
        ("DELETE", hold.clone(), None),
        ("POST", format!("{hold}/renew"), None),
        ("GET", "/v1/locks".to_string(), None),
        ("POST", "/v1/check".to_string(), Some(json!({"name": "x", "fence": "1"}))),
        ("POST", "/v1/force-release".to_string(), Some(json!({"name": "x"}))),
        ("GET", "/v1/changes".to_string(), None),
        ("GET", "/v1/anatomy?name=x".to_string(), None),
        ("GET", "/v1/git/repositories".to_string(), None),
        ("GET", "/v1/status".to_string(), None),
        ("GET", "/v1/links".to_string(), None),
        ("GET", "/v1/live".to_string(), None),
        ("GET", "/v1/rates".to_string(), None),
        ("GET", "/v1/times".to_string(), None),
        ("GET", "/v1/alerts".to_string(), None),
        ("GET", "/v1/me".to_string(), None),
        ("GET", "/metrics".to_string(), None),
        ("LOCK", "/terraform/x".to_string(), Some(json!({"ID": "1"}))),
        ("GET", "/terraform/x".to_string(), None),
    ];
    for (method, path, body) in all {
        let refused = crate::client::ask(node.at, method, &path, body.clone()).await;
        refused.refused(401, "no-token");
        assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"), "{path}");
        let wrong = node.ask("Bearer catraca_wrong", method, &path, body.clone()).await;
        wrong.refused(401, "unknown-token");
        node.ask("Negotiate x", method, &path, body).await.refused(401, "bad-authorization");
    }
    for path in ["/healthz", "/readyz", "/openapi.json", "/", "/assets/app.js", "/try", "/page.js"]
    {
        crate::client::ask(node.at, "GET", path, None).await.with(200);
    }
    assert_eq!(node.node.status().grants, 0);
}

#[tokio::test]
async fn a_token_is_good_for_its_role_and_its_names() {
    let node = Guarded::start().await;
    let bearer = |token: &str| format!("Bearer {token}");
    let (observer, locker) = (bearer(&node.observer), bearer(&node.locker));
    let take = |name: &str| Some(json!({"names": [name]}));
    node.ask(&observer, "POST", "/v1/acquire", take("ci/1")).await.refused(403, "wrong-role");
    node.ask(&locker, "POST", "/v1/acquire", take("prod")).await.refused(403, "wrong-names");
    let both = Some(json!({"names": ["ci/1", "prod"]}));
    node.ask(&locker, "POST", "/v1/acquire", both).await.refused(403, "wrong-names");
    let held = node.ask(&locker, "POST", "/v1/acquire", take("ci/1")).await.with(201).json();
    let place = format!("/v1/holds/{}", held["id"].as_str().unwrap());
    node.ask(&observer, "GET", &place, None).await.with(200);
    node.ask(&observer, "DELETE", &place, None).await.refused(403, "wrong-role");
    node.ask(&observer, "POST", &format!("{place}/renew"), None).await.refused(403, "wrong-role");

    let root = bearer(&node.administrator);
    let prod = node.ask(&root, "POST", "/v1/acquire", take("prod")).await.with(201).json();
    let other = format!("/v1/holds/{}", prod["id"].as_str().unwrap());
    node.ask(&locker, "DELETE", &other, None).await.refused(403, "wrong-names");
    node.ask(&locker, "GET", &other, None).await.refused(403, "wrong-names");
    let listed = node.ask(&locker, "GET", "/v1/locks", None).await.with(200).json();
    assert_eq!(listed["locks"].as_array().unwrap().len(), 1, "only its own names: {listed}");
    node.ask(&locker, "GET", "/v1/locks?name=prod", None).await.refused(403, "wrong-names");
    let check = Some(json!({"name": "prod", "fence": "1"}));
    node.ask(&locker, "POST", "/v1/check", check).await.refused(403, "wrong-names");
    let force = || Some(json!({"name": "ci/1"}));
    node.ask(&locker, "POST", "/v1/force-release", force()).await.refused(403, "wrong-role");
    // As Terraform says it: "x:" and the token.
    let basic = base64_of(&format!("x:{}", node.locker));
    node.ask(&format!("Basic {basic}"), "DELETE", &place, None).await.with(204);
}

#[tokio::test]
async fn a_durable_hold_belongs_to_whoever_has_shown_who_it_is() {
    let node = Guarded::start().await;
    let locker = format!("Bearer {}", node.locker);
    let durable = |owner: Option<&str>| {
        let mut body = json!({"names": ["ci/1"], "durable": true, "request_id": "1"});
        if let Some(owner) = owner {
            body["owner"] = json!(owner);
        }
        Some(body)
    };
    node.ask(&locker, "POST", "/v1/acquire", durable(Some("root")))
        .await
        .refused(403, "wrong-owner");
    let hold = node.ask(&locker, "POST", "/v1/acquire", durable(None)).await.with(201).json();
    assert_eq!(hold["owner"], "ci");
    let place = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
    node.ask(&locker, "DELETE", &place, None).await.with(204);
}

#[tokio::test]
async fn a_run_of_another_token_is_not_unlocked_by_its_id() {
    let node = Guarded::start().await;
    let path = tokens(node.folder.path());
    let names = ["terraform/*".to_string()];
    let add = |file: &mut TokenFile| file.add("eve", Role::Lock, &names, "today");
    let eve = format!("Bearer {}", TokenFile::change(&path, add).unwrap());
    node.node.reload().unwrap();
    let locker = format!("Bearer {}", node.locker);
    let run = || Some(json!({"ID": "7", "Who": "ci"}));
    node.ask(&locker, "LOCK", "/terraform/ci/net", run()).await.with(200);
    node.ask(&eve, "UNLOCK", "/terraform/ci/net", run()).await.refused(409, "not-owner");
    node.ask(&eve, "UNLOCK", "/terraform/ci/net", None).await.refused(409, "not-owner");
    node.ask(&eve, "LOCK", "/terraform/ci/net", run()).await.with(423);
    // By force, as an administrator.
    let root = format!("Bearer {}", node.administrator);
    node.ask(&root, "UNLOCK", "/terraform/ci/net", run()).await.with(200);
    node.ask(&eve, "LOCK", "/terraform/ci/net", run()).await.with(200);
    node.ask(&locker, "LOCK", "/terraform/prod", run()).await.refused(403, "wrong-names");
}

#[tokio::test]
async fn a_token_that_is_revoked_is_of_no_use_to_whoever_waits_or_watches() {
    let node = Guarded::start().await;
    let held = node.node.lock("ci/1").await.unwrap();
    let line = format!("Host: localhost\r\nAuthorization: Bearer {}\r\n", node.locker);
    let send = |text: String| text.replacen("Host: localhost\r\n", &line, 1);
    let mut watching = Client::open(node.at).await;
    watching.send(send(request("GET", "/v1/changes", None))).await;
    watching.until("retry: 1000\n\n").await;
    let mut waiting = Client::open(node.at).await;
    let wanted = json!({"names": ["ci/1"], "wait_ms": 3_600_000}).to_string();
    waiting.send(send(request("POST", "/v1/acquire", Some(&wanted)))).await;
    until("it waits", || node.node.status().waiting == 1).await;
    let path = tokens(node.folder.path());
    TokenFile::change(&path, |file| file.revoke("ci")).unwrap();
    node.node.reload().unwrap();
    held.release().await;
    waiting.answer().await.unwrap().refused(401, "unknown-token");
    until("what it got is released", || node.node.status().held == 0).await;
    let rest = watching.until("\r\n0\r\n\r\n").await;
    assert!(!rest.contains("event: granted"), "{rest:?}");
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[tokio::test]
async fn a_page_is_told_only_of_the_names_that_its_token_is_good_for() {
    let node = Guarded::start().await;
    let bearer = |token: &str| format!("Bearer {token}");
    let me = node.ask(&bearer(&node.locker), "GET", "/v1/me", None).await.with(200).json();
    let expected = json!({
        "name": "ci", "role": "lock", "names": ["ci/*", "terraform/ci/*"], "by_token": true,
    });
    assert_eq!(me, expected);
    let me = node.ask(&bearer(&node.administrator), "GET", "/v1/me", None).await.with(200).json();
    assert_eq!((&me["role"], &me["names"]), (&json!("administer"), &json!([])));
    let line = format!("Host: localhost\r\nAuthorization: Bearer {}\r\n", node.locker);
    let mut watching = Client::open(node.at).await;
    let asked = request("GET", "/v1/live?locks=true", None);
    watching.send(asked.replacen("Host: localhost\r\n", &line, 1)).await;
    watching.until("event: status").await;
    let _secret = node.node.lock("secret").await.unwrap();
    let _own = node.node.lock("ci/1").await.unwrap();
    let told = watching.until("\"ci/1\"").await;
    assert!(!told.contains("secret"), "{told}");
    let path = tokens(node.folder.path());
    TokenFile::change(&path, |file| file.revoke("ci")).unwrap();
    node.node.reload().unwrap();
    watching.end().await;
}
