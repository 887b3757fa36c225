//! What the audit log of real nodes says of whoever uses them, over every interface.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

#[allow(dead_code, reason = "other tests use more of it")]
#[path = "http/client.rs"]
mod http;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "support/pki.rs"]
mod pki;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "resp/redis.rs"]
mod redis;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use catraca_client::{Client, Connection, Credentials, Who};
use catraca_node::{Config, Memory, Node, Role, TokenFile};
use redis::Redis;
use serde_json::{Value, json};
use support::until;
use tempfile::TempDir;

/// A node that writes everything down, serves every interface and asks everybody for a token.
struct Audited {
    node: Node,
    folder: TempDir,
}

impl Audited {
    async fn start(change: impl FnOnce(&mut Config, &Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (listener, _) = support::listener().await;
        let mut config = Config::alone();
        config.http.listen = Some("127.0.0.1:0".to_string());
        config.resp.listen = Some("127.0.0.1:0".to_string());
        config.lease = support::LONG_LEASE;
        config.audit.file = Some(folder.path().join("audit.log"));
        change(&mut config, folder.path());
        let node = support::start(config, listener, &Memory::default()).await;
        node.ready().await.unwrap();
        Audited { node, folder }
    }

    /// With these tokens, each of which may do something with locks that begin with `ci/`.
    async fn with_tokens(tokens: &[(&str, Role)]) -> (Self, Vec<String>) {
        let mut texts = Vec::new();
        let node = Self::start(|config, folder| {
            let path = tokens_in(folder);
            for (name, role) in tokens {
                let names = ["ci/*".to_string()];
                let add = |file: &mut TokenFile| file.add(name, *role, &names, "today");
                texts.push(TokenFile::change(&path, add).unwrap());
            }
            config.security.tokens = Some(path);
            config.security.socket = Some(folder.join("x.sock"));
        });
        (node.await, texts)
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What the log says of `name`, or of nothing in particular, in the order of writing.
    fn told(&self, what: &str, name: Option<&str>) -> Vec<Value> {
        let mut lines = self.lines();
        lines.retain(|line| line["what"] == what && line["name"].as_str() == name);
        lines
    }

    /// Waits until the log has so many such lines.
    async fn until_told(&self, what: &str, name: Option<&str>, count: usize) -> Vec<Value> {
        until(&format!("{count} times {what} {name:?}"), || self.told(what, name).len() >= count)
            .await;
        let told = self.told(what, name);
        assert_eq!(told.len(), count, "{told:?}");
        told
    }

    /// Who got this lock, and who is said to have released it.
    async fn holder(&self, name: &str, end: &str) -> [Value; 2] {
        let granted = self.until_told("granted", Some(name), 1).await.remove(0);
        let ended = self.until_told(end, Some(name), 1).await.remove(0);
        assert_eq!(granted["fence"], ended["fence"]);
        [granted["identity"].clone(), ended["identity"].clone()]
    }

    async fn ask(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> http::Answer {
        let body = body.map(|body| body.to_string());
        let plain = http::request(method, path, body.as_deref());
        let line = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
        let mut client = http::Client::open(self.node.http_address().unwrap()).await;
        client.send(plain.replacen("Host: localhost\r\n", &line, 1)).await;
        client.answer().await.unwrap()
    }

    async fn redis(&self) -> Redis {
        Redis::connect(self.node.resp_address().unwrap()).await
    }

    async fn client(&self, token: &str) -> Client {
        let builder = Client::builder().addresses([self.node.address().to_string()]);
        let credentials = Credentials::default().with_token(token);
        builder.credentials(credentials).connect().await.unwrap()
    }
}

fn tokens_in(folder: &Path) -> PathBuf {
    folder.join("tokens.toml")
}

#[tokio::test]
async fn who_is_denied_something_is_written_down_over_every_interface() {
    let (node, tokens) = Audited::with_tokens(&[("olga", Role::Observe)]).await;
    let olga = &tokens[0];
    let take = || Some(json!({"names": ["ci/x"]}));
    node.ask(olga, "POST", "/v1/acquire", take()).await.refused(403, "wrong-role");
    let mut client = node.redis().await;
    assert!(client.call("SET ci/x me NX PX 1000").await.is_error("NOAUTH"));
    assert_eq!(client.call(&format!("AUTH {olga}")).await, redis::ok());
    assert!(client.call("SET ci/x me NX PX 1000").await.is_error("NOPERM"));
    assert!(client.call("AUTH wrong").await.is_error("WRONGPASS"));
    assert!(client.call(&format!("AUTH somebody {olga}")).await.is_error("WRONGPASS"));
    node.ask("catraca_wrong", "GET", "/v1/locks", None).await.refused(401, "unknown-token");
    let at = node.node.address().to_string();
    Connection::open_with(&at, &Credentials::default()).await.map(|_| ()).unwrap_err();
    let mut native = Credentials::default().with_token(olga);
    let mut connection = Connection::open_with(&at, &native).await.unwrap();
    connection.open_session(Who::default(), None).await.unwrap_err();
    native = native.with_token("catraca_wrong");
    Connection::open_with(&at, &native).await.map(|_| ()).unwrap_err();

    let denied = node.until_told("denied", None, 9).await;
    let mut who: Vec<(Option<&str>, bool)> = denied
        .iter()
        .map(|line| (line["identity"].as_str(), !line["detail"].as_str().unwrap().is_empty()))
        .collect();
    who.sort_unstable();
    let (nobody, olga) = ((None, true), (Some("olga"), true));
    assert_eq!(who, [nobody, nobody, nobody, nobody, nobody, nobody, olga, olga, olga]);
}

#[tokio::test]
async fn whoever_is_denied_without_an_end_does_not_wash_the_log_away() {
    let (node, tokens) = Audited::with_tokens(&[("olga", Role::Observe)]).await;
    let mut client = node.redis().await;
    for _ in 0..200 {
        assert!(client.call("DEL ci/x").await.is_error("NOAUTH"));
    }
    // Whoever is known has records of its own.
    let take = Some(json!({"names": ["ci/x"]}));
    node.ask(&tokens[0], "POST", "/v1/acquire", take).await.refused(403, "wrong-role");
    until("the known one is written", || {
        node.told("denied", None).iter().any(|line| line["identity"] == "olga")
    })
    .await;
    let denied = node.told("denied", None);
    let nobody = denied.iter().filter(|line| line["identity"].is_null());
    let nobody: Vec<&str> = nobody.map(|line| line["detail"].as_str().unwrap()).collect();
    assert!((60..200).contains(&nobody.len()), "{}", nobody.len());
    assert!(nobody.iter().any(|why| why.contains("are not written for a minute")), "{nobody:?}");
}

#[tokio::test]
async fn holds_are_written_down_with_who_has_them_whatever_they_say_of_themselves() {
    let tokens = [("http", Role::Lock), ("resp", Role::Lock), ("native", Role::Lock)];
    let (node, tokens) = Audited::with_tokens(&tokens).await;
    let [over_http, over_resp, native] = &tokens[..] else { panic!() };

    let take = |name: &str| Some(json!({"names": [name], "label": "root"}));
    let held = node.ask(over_http, "POST", "/v1/acquire", take("ci/timed")).await.with(201).json();
    let place = format!("/v1/holds/{}", held["id"].as_str().unwrap());
    node.ask(over_http, "DELETE", &place, None).await.with(204);
    assert_eq!(node.holder("ci/timed", "released").await, ["http", "http"]);
    let short = Some(json!({"names": ["ci/short"], "ttl_ms": 1}));
    node.ask(over_http, "POST", "/v1/acquire", short).await.with(201);
    assert_eq!(node.holder("ci/short", "lost").await, ["http", "http"]);
    let durable = Some(json!({"names": ["ci/durable"], "durable": true, "owner": "http/job"}));
    let held = node.ask(over_http, "POST", "/v1/acquire", durable).await.with(201).json();
    let place = format!("/v1/holds/{}?owner=http/job", held["id"].as_str().unwrap());
    node.ask(over_http, "DELETE", &place, None).await.with(204);
    assert_eq!(node.holder("ci/durable", "released").await, ["http", "http"]);

    let mut client = node.redis().await;
    client.call(&format!("AUTH {over_resp}")).await;
    assert_eq!(client.call("SET ci/key me NX PX 60000").await, redis::ok());
    assert_eq!(client.call("DEL ci/key").await, redis::Value::Integer(1));
    assert_eq!(node.holder("ci/key", "released").await, ["resp", "resp"]);
    assert_eq!(client.call("CATRACA.LOCK ci/own").await.items().len(), 2);
    // From now on it is somebody else, and what it takes is somebody else's.
    client.call(&format!("AUTH {native}")).await;
    assert_eq!(client.call("CATRACA.LOCK ci/other").await.items().len(), 2);
    drop(client);
    assert_eq!(node.holder("ci/own", "released").await, ["resp", "resp"]);
    assert_eq!(node.holder("ci/other", "released").await, ["native", "native"]);

    let at = node.node.address().to_string();
    let credentials = Credentials::default().with_token(native);
    let mut connection = Connection::open_with(&at, &credentials).await.unwrap();
    // Nobody believes it.
    let who = Who { label: "me".into(), identity: "root".into(), ..Who::default() };
    connection.open_session(who, None).await.unwrap();
    connection
        .acquire(1, &["ci/native".to_string()], 1, catraca_client::Wait::Forever)
        .await
        .unwrap();
    connection.receive().await.unwrap();
    connection.close().await.unwrap();
    assert_eq!(node.holder("ci/native", "released").await, ["native", "native"]);

    // By the socket the system says who it is.
    let socket = node.node.socket().unwrap().to_str().unwrap().to_string();
    let client = Client::builder().addresses([socket]).connect().await.unwrap();
    let guard = client.lock("ci/user").await.unwrap();
    guard.release().await.unwrap();
    let [granted, released] = node.holder("ci/user", "released").await;
    assert!(granted.as_str().is_some_and(|name| !name.is_empty()), "{granted}");
    assert_eq!(granted, released);
    // The program itself has shown nothing.
    drop(node.node.lock("ci/program").await.unwrap());
    assert_eq!(node.holder("ci/program", "released").await, [Value::Null, Value::Null]);
}

#[tokio::test]
async fn a_certificate_is_written_down_with_what_it_names() {
    let keys = tempfile::tempdir().unwrap();
    let authority = pki::Authority::new(keys.path(), "ca");
    let node = Audited::start(|config, _| config.security = authority.member("alone")).await;
    let builder = Client::builder().addresses([node.node.address().to_string()]);
    let credentials = authority.client("ana", pki::Kind::Client);
    let client = builder.credentials(credentials).connect().await.unwrap();
    client.lock("x").await.unwrap().release().await.unwrap();
    assert_eq!(node.holder("x", "released").await, ["ana", "ana"]);
    assert!(node.told("token used", None).is_empty(), "there are no tokens");
}

#[tokio::test]
async fn who_asked_is_known_to_the_member_that_takes_a_hold_over() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = tokens_in(folder.path());
    let add = |file: &mut TokenFile| file.add("ci", Role::Administer, &[], "today");
    let token = TokenFile::change(&tokens, add).unwrap();
    let own = folder.path().join("own-token");
    std::fs::write(&own, &token).unwrap();
    std::fs::set_permissions(&own, PermissionsExt::from_mode(0o600)).unwrap();
    let (listeners, addresses) = support::listeners(2).await;
    let mut configs = support::configs(&addresses, "naimi-trehel");
    for (place, config) in configs.iter_mut().enumerate() {
        config.http.listen = Some("127.0.0.1:0".to_string());
        config.audit.file = Some(folder.path().join(format!("audit-{place}")));
        config.security.tokens = Some(tokens.clone());
        config.security.own_token = Some(own.clone());
    }
    let mut nodes = support::group_of(configs, listeners).await;
    let at = nodes[0].http_address().unwrap();
    let body = json!({"names": ["x"], "ttl_ms": 600_000}).to_string();
    let plain = http::request("POST", "/v1/acquire", Some(&body));
    let line = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
    let mut client = http::Client::open(at).await;
    client.send(plain.replacen("Host: localhost\r\n", &line, 1)).await;
    let held = client.answer().await.unwrap().with(201).json();
    drop(client);
    nodes.remove(0).stop().await;
    support::together(&nodes).await;
    let place = format!("/v1/holds/{}", held["id"].as_str().unwrap());
    let plain = http::request("DELETE", &place, None);
    let mut client = http::Client::open(nodes[0].http_address().unwrap()).await;
    client.send(plain.replacen("Host: localhost\r\n", &line, 1)).await;
    client.answer().await.unwrap().with(204);
    let released = || {
        let text = std::fs::read_to_string(folder.path().join("audit-1")).unwrap();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.into_iter().find(|line| line["what"] == "released" && line["name"] == "x")
    };
    until("the other member says so", || released().is_some()).await;
    assert_eq!(released().unwrap()["identity"], "ci");
}

#[tokio::test]
async fn the_first_use_of_a_token_is_written_down_and_not_every_request() {
    let (node, tokens) = Audited::with_tokens(&[("a", Role::Lock), ("b", Role::Lock)]).await;
    let of = |who: &str, how: &str| {
        let used = node.told("token used", None);
        let is_it = |line: &&Value| {
            line["identity"] == who && line["detail"].as_str().unwrap().starts_with(how)
        };
        used.iter().filter(is_it).count()
    };
    for _ in 0..5 {
        for token in &tokens {
            node.ask(token, "GET", "/v1/locks", None).await.with(200);
        }
    }
    until("once over HTTP", || of("a", "HTTP") > 0 && of("b", "HTTP") > 0).await;
    let client = node.client(&tokens[0]).await;
    let other = node.client(&tokens[0]).await;
    for client in [&client, &client, &other] {
        client.lock("ci/x").await.unwrap().release().await.unwrap();
    }
    until("once for each connection", || of("a", "native, from 127.0.0.1") == 2).await;
    let mut redis = node.redis().await;
    for token in [&tokens[0], &tokens[0], &tokens[1]] {
        assert_eq!(redis.call(&format!("AUTH {token}")).await, redis::ok());
        redis.call("TTL ci/x").await;
    }
    until("once for each token", || of("b", "RESP, from") == 1).await;
    assert_eq!((of("a", "RESP, from 127.0.0.1"), of("a", "native")), (1, 2));
    // A run of five requests may be in two minutes.
    assert!(of("a", "HTTP") <= 2 && of("b", "HTTP") <= 2);
}

#[tokio::test]
async fn a_guard_within_the_program_that_is_ended_by_force_is_not_said_to_be_released() {
    let node = Audited::start(|_, _| {}).await;
    for (name, other) in [("x", None), ("y", Some("z"))] {
        let guard = match other {
            None => node.node.lock(name).await.unwrap(),
            Some(other) => node.node.lock_all(&[name, other]).await.unwrap(),
        };
        let giving_up = async {
            let lost = guard.lost();
            tokio::time::timeout(Duration::from_secs(60), lost).await.expect("it is told");
            drop(guard);
        };
        let body = Some(json!({ "name": name }));
        let forcing = node.ask("none", "POST", "/v1/force-release", body);
        let (forced, ()) = tokio::join!(forcing, giving_up);
        forced.with(200);
        node.until_told("forced", Some(name), 1).await;
        assert!(node.told("released", Some(name)).is_empty());
        // The next one is nobody's concern.
        drop(node.node.lock(name).await.unwrap());
        node.until_told("released", Some(name), 1).await;
    }
}
