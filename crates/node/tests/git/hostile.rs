//! What nobody should send: paths that lead elsewhere, wrong addresses, credentials that are none, huge bodies.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::client::Client;
use crate::{BASE, User, alone, refused, start, user};

#[tokio::test]
async fn paths_that_lead_elsewhere_are_refused() {
    let (_node, at) = alone().await;
    let ann = user(at, "ann");
    let long = "x".repeat(800);
    for path in
        ["", "..", "../x", "a/../b", "/etc/passwd", "C:\\x", "a//b", "a/", "./a", "a\0b", &long]
    {
        refused(&ann.lock(path).await, 400, "bad-path");
        let batch = ann.batch(&["good", path]).await;
        refused(&batch, 400, "bad-path");
    }
    assert_eq!(ann.list("").await, json!({"locks": []}), "nothing was locked");
    let note = json!({"path": "x", "note": "n".repeat(2000)});
    refused(&ann.ask("POST", &format!("{BASE}/locks"), note).await, 400, "long-note");
    for body in [json!([]), json!({"path": 7}), json!({"path": null})] {
        refused(&ann.ask("POST", &format!("{BASE}/locks"), body).await, 400, "bad-body");
    }
    refused(
        &ann.ask("POST", &format!("{BASE}/locks/batch"), json!({"paths": []})).await,
        400,
        "bad-paths",
    );
    let many: Vec<String> = (0..257).map(|number| number.to_string()).collect();
    refused(
        &ann.ask("POST", &format!("{BASE}/locks/batch"), json!({"paths": many})).await,
        400,
        "bad-paths",
    );
}

#[tokio::test]
async fn nobody_who_verifies_is_told_that_there_is_nothing() {
    let (_node, at) = alone().await;
    let ann = user(at, "ann");
    let unknown = ann.ask("POST", "/git/no/body/locks/verify", json!({})).await.with(200).json();
    assert_eq!(unknown, json!({"ours": [], "theirs": []}));
    let long = "x".repeat(65);
    for path in [
        "/git/art/locks/verify".to_string(),
        "/git/locks/verify".to_string(),
        "/locks/verify".to_string(),
        "/art/game/locks/verify".to_string(),
        "/git//game/locks/verify".to_string(),
        "/git/art/game/sub/locks/verify".to_string(),
        "/git/art/game/info/lfs/locks/verify".to_string(),
        "/git/../game/locks/verify".to_string(),
        "/git/a%20b/game/locks/verify".to_string(),
        format!("/git/art/{long}/locks/verify"),
    ] {
        let answer = ann.ask("POST", &path, json!({})).await;
        refused(&answer, 400, "bad-repository");
    }
    refused(
        &ann.ask("POST", &format!("{BASE}/locks/verify"), json!({"cursor": "x"})).await,
        400,
        "bad-cursor",
    );
    refused(&ann.ask("GET", &format!("{BASE}/nothing"), None).await, 404, "no-such-path");
    let wrong = ann.ask("PUT", &format!("{BASE}/locks"), json!({})).await;
    refused(&wrong, 405, "wrong-method");
    assert_eq!(wrong.header("allow"), Some("GET, POST"));
}

#[tokio::test]
async fn whoever_has_mistyped_the_address_is_told_so_in_words_that_the_client_shows() {
    let (_node, at) = alone().await;
    let lfs = user(at, "ann").with("Accept: application/vnd.git-lfs+json");
    let asked = json!({"path": "x"});
    refused(&lfs.ask("POST", "/art/game/locks", asked.clone()).await, 404, "no-such-path");
    refused(&lfs.ask("POST", "/v1/locks", asked.clone()).await, 405, "wrong-method");
    // Whoever does not speak Git LFS is told as everywhere else.
    user(at, "ann").ask("POST", "/art/game/locks", asked).await.refused(404, "no-such-path");
}

#[tokio::test]
async fn whoever_does_not_say_who_it_is_is_asked_and_an_empty_password_is_none() {
    let (_node, at) = alone().await;
    let as_is = |authorization: &str| User {
        at,
        authorization: authorization.to_string(),
        headers: String::new(),
    };
    // "ann:", ":x", "ann", and things that are nothing.
    let cases = [
        "Basic YW5uOg==",
        "Basic Ong=",
        "Basic YW5u",
        "Bearer ",
        "Bearer x",
        "Digest x",
        "Basic !",
    ];
    for given in cases {
        let answer = as_is(given).lock("x").await;
        let body = answer.json();
        assert_eq!(answer.status, 401, "{given} {answer:?}");
        assert!(!body["message"].as_str().unwrap().is_empty());
        for header in ["lfs-authenticate", "www-authenticate"] {
            assert!(answer.header(header).unwrap().starts_with("Basic realm="), "{answer:?}");
        }
    }
    let mut client = Client::open(at).await;
    let bare = format!("GET {BASE}/locks HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.send(bare).await;
    assert_eq!(client.answer().await.unwrap().status, 401);
    refused(&as_is("Basic YQFiOng=").lock("x").await, 400, "bad-owner");
}

#[tokio::test]
async fn a_form_or_a_text_of_another_site_takes_no_lock() {
    let (_node, at) = alone().await;
    let ann = user(at, "ann");
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
    {
        let body = r#"{"path":"x"}"#;
        let mut client = Client::open(at).await;
        let head = format!(
            "POST {BASE}/locks HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n{body}",
            ann.authorization,
            body.len()
        );
        client.send(head).await;
        refused(&client.answer().await.unwrap(), 415, "not-json");
    }
    assert_eq!(ann.list("").await, json!({"locks": []}));
}

#[tokio::test]
async fn huge_bodies_are_refused_and_large_lists_of_paths_are_not() {
    let (_node, at) = alone().await;
    let ann = user(at, "ann");
    let lock = ann.locks("dir/file-099999.bin").await;
    let paths: Vec<String> =
        (0..100_000).map(|number| format!("dir/file-{number:06}.bin")).collect();
    let path = format!("{BASE}/locks/match");
    let found = ann.ask("POST", &path, json!({"paths": paths})).await.with(200).json();
    assert_eq!(found, json!({"locks": [lock]}));
    let too_many: Vec<&str> = vec!["x"; 100_001];
    refused(&ann.ask("POST", &path, json!({"paths": too_many})).await, 413, "too-many-paths");
    for (path, length) in
        [("locks", 300 << 10), ("locks/verify", 300 << 10), ("locks/match", 40 << 20)]
    {
        let mut client = Client::open(at).await;
        let head = format!(
            "POST {BASE}/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
            ann.authorization
        );
        client.send(head).await;
        refused(&client.answer().await.unwrap(), 413, "too-large");
    }
}

#[tokio::test]
async fn whoever_loses_its_token_while_it_waits_gets_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let ann = ("ann", "lock", "a-token");
    let others = [("bob", "lock", "b-token"), ("cay", "lock", "c-token")];
    let file = tokens(folder.path(), &[ann, others[0], others[1]]);
    let (node, at) = start(|config| config.security.tokens = Some(file)).await;
    let with =
        |token: &str| User { at, authorization: format!("Bearer {token}"), headers: String::new() };
    let lock = with("a-token").locks("x").await;
    let bob = with("b-token").with("Catraca-Wait: 1h");
    let cay = with("c-token").with("Catraca-Wait: 1h");
    let mut one = Client::open(at).await;
    let asked = json!({"path": "x"}).to_string();
    one.send(bob.request("POST", &format!("{BASE}/locks"), Some(asked.as_bytes()))).await;
    one.head().await;
    let mut several = Client::open(at).await;
    let asked = json!({"paths": ["x", "y"]}).to_string();
    several.send(cay.request("POST", &format!("{BASE}/locks/batch"), Some(asked.as_bytes()))).await;
    several.head().await;
    tokens(folder.path(), &[ann]);
    node.reload().unwrap();
    with("a-token").unlock(&lock, false).await.with(200);
    for mut waiting in [one, several] {
        let rest = waiting.until("0\r\n\r\n").await;
        let body = &rest[rest.find('{').unwrap()..=rest.rfind('}').unwrap()];
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["status"], &body["code"]), (&401.into(), &"unknown-token".into()));
    }
    assert_eq!(with("a-token").list("").await, json!({"locks": []}));
}

/// A file of tokens, as the command makes it.
fn tokens(folder: &std::path::Path, entries: &[(&str, &str, &str)]) -> std::path::PathBuf {
    let path = folder.join("tokens.toml");
    let mut text = String::new();
    for (name, role, token) in entries {
        let digest = sha256(token);
        text +=
            &format!("[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{digest}\"\n");
    }
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    let digest: [u8; 32] = sha2::Sha256::digest(text.as_bytes()).into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn with_tokens_the_owner_is_whom_the_token_is_for_and_roles_count() {
    let folder = tempfile::tempdir().unwrap();
    let entries = [
        ("ann", "lock", "a-token"),
        ("eve", "observe", "e-token"),
        ("root", "administer", "r-token"),
    ];
    let file = tokens(folder.path(), &entries);
    let (_node, at) = start(|config| config.security.tokens = Some(file)).await;
    let with =
        |token: &str| User { at, authorization: format!("Bearer {token}"), headers: String::new() };
    let (ann, eve, root) = (with("a-token"), with("e-token"), with("r-token"));
    let lock = ann.locks("x").await;
    assert_eq!(lock["owner"]["name"], "ann");
    // As the password it is the same, whatever the user name says.
    let basic =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "whoever:a-token");
    let basic = User { at, authorization: format!("Basic {basic}"), headers: String::new() };
    let own = |body: &Value| body["ours"].as_array().unwrap().len();
    assert_eq!(own(&basic.verify().await), 1);
    refused(&with("other").lock("y").await, 401, "unknown-token");
    // A proxy on this machine passes the name on by which it was called: the client is asked who it is.
    let mut proxied = Client::open(at).await;
    proxied.send(format!("GET {BASE}/locks HTTP/1.1\r\nHost: locks.example\r\n\r\n")).await;
    refused(&proxied.answer().await.unwrap(), 401, "no-token");
    refused(&eve.lock("y").await, 403, "wrong-role");
    assert_eq!(eve.list("").await, json!({"locks": [lock]}));
    refused(&eve.steal(&lock, "").await, 403, "wrong-role");
    // Force, and the name of somebody else, take an administrator.
    let bob_file = root.locks("y").await;
    refused(&ann.unlock(&bob_file, true).await, 403, "wrong-role");
    let on_behalf = with("a-token").with("Catraca-Owner: root");
    refused(&on_behalf.unlock(&bob_file, false).await, 403, "wrong-role");
    refused(&ann.unlock(&bob_file, false).await, 403, "not-owner");
    root.unlock(&lock, true).await.with(200);
    let whoami = eve.ask("GET", &format!("{BASE}/whoami"), None).await.with(200).json();
    assert_eq!((&whoami["name"], &whoami["roles"]), (&"eve".into(), &json!(["observe"])));
}
