//! HTTP over TLS, with curl.

use std::path::Path;
use std::process::Command;

use tokio::task::spawn_blocking;

use crate::client::Client;
use crate::pki::{Authority, Kind};
use crate::start;

/// The status that curl is told, and what it prints; 0 if there is no answer.
async fn curl(arguments: &[&str]) -> (u16, String) {
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "60", "--write-out", "\n%{http_code}"]).args(arguments);
    let output = spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), body.to_string())
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[tokio::test]
async fn a_certificate_says_who_calls_and_who_has_none_needs_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "authority");
    let security = authority.member("alone");
    let (_node, at) = start(|config| config.security = security).await;
    let address = |path: &str| format!("https://{at}{path}");
    let trust = ["--cacert", path(&authority.file)];
    let (status, body) = curl(&[trust[0], trust[1], &address("/healthz")]).await;
    assert_eq!((status, body.as_str()), (200, "ok\n"));
    let (status, body) = curl(&[trust[0], trust[1], &address("/v1/status")]).await;
    assert_eq!(status, 401, "{body}");
    let ann = authority.issue("ann", "ann", Kind::Client);
    let own = ["--cert", path(&ann.certificate), "--key", path(&ann.key)];
    let all = [trust[0], trust[1], own[0], own[1], own[2], own[3]];
    let wanted = r#"{"names": ["x"], "durable": true}"#;
    let acquire = address("/v1/acquire");
    let (status, body) = curl(&[&all[..], &["--json", wanted, &acquire]].concat()).await;
    assert_eq!(status, 201, "{body}");
    assert!(body.contains("\"owner\":\"ann\""), "{body}");

    let strangers = tempfile::tempdir().unwrap();
    let other = Authority::new(strangers.path(), "another");
    let (status, _) = curl(&["--cacert", path(&other.file), &address("/healthz")]).await;
    assert_eq!(status, 0, "the node is not trusted");
    let eve = other.issue("eve", "eve", Kind::Client);
    let own = ["--cert", path(&eve.certificate), "--key", path(&eve.key)];
    let status = address("/v1/status");
    let (status, body) = curl(&[&trust[..], &own, &[&status]].concat()).await;
    assert_eq!(status, 0, "and eve is not trusted: {body}");
}

#[tokio::test]
async fn whoever_does_not_speak_tls_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let security = Authority::new(folder.path(), "authority").member("alone");
    let (_node, at) = start(|config| config.security = security).await;
    let mut client = Client::open(at).await;
    client.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let body = client.answer().await.unwrap().refused(400, "no-tls");
    assert_eq!(body["detail"], "this port speaks TLS only: use https://");
}
