//! Who is told what happens to locks: those who watch at any node, webhooks, and the audit log.

use std::net::SocketAddr;
use std::sync::Arc;

use catraca_node::WebhookConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::client::{Client, LIMIT};
use crate::pki::{Authority, Kind};
use crate::{BASE, start, three, user};

/// Somebody who watches, and the id of the last event.
struct Watcher(Client, String);

impl Watcher {
    async fn open(at: SocketAddr, header: &str) -> Self {
        let mut client = Client::open(at).await;
        let eve = match header {
            "" => user(at, "eve"),
            header => user(at, "eve").with(header),
        };
        client.send(eve.request("GET", &format!("{BASE}/changes"), None)).await;
        client.until("retry: 1000\n\n").await;
        Watcher(client, String::new())
    }

    /// The next event: its name, and its data.
    async fn next(&mut self) -> (String, Value) {
        let text = self.0.until("\n\n").await;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {text:?}")).to_string()
        };
        self.1 = field("id: ");
        (field("event: "), serde_json::from_str(&field("data: ")).unwrap())
    }

    /// The next event that is no gap.
    async fn lock(&mut self) -> Value {
        loop {
            match self.next().await {
                (name, data) if name == "lock" => return data,
                (name, _) => assert_eq!(name, "gap"),
            }
        }
    }
}

#[tokio::test]
async fn whoever_watches_at_another_node_is_told_what_happened_and_by_whom() {
    let (_nodes, at) = three().await;
    let mut watcher = Watcher::open(at[2], "").await;
    // The other nodes have been asked when one of them has said something.
    let mut first = user(at[0], "ann").locks("probe-0").await;
    let mut probes = 1;
    loop {
        let heard =
            tokio::time::timeout(std::time::Duration::from_millis(200), watcher.lock()).await;
        if let Ok(mut data) = heard {
            while data["lock"] != first {
                data = watcher.lock().await;
            }
            break;
        }
        first = user(at[0], "ann").locks(&format!("probe-{probes}")).await;
        probes += 1;
    }
    let lock = user(at[0], "ann").locks("x").await;
    let data = watcher.lock().await;
    assert_eq!(
        (&data["kind"], &data["lock"], &data["by"]["name"]),
        (&"locked".into(), &lock, &"ann".into())
    );
    assert_eq!(data["repository"], "art/game");
    let stolen = user(at[0], "bob").steal(&lock, "mine now").await.json()["lock"].clone();
    let data = watcher.lock().await;
    assert_eq!((&data["kind"], &data["lock"], &data["was"]), (&"stolen".into(), &stolen, &lock));
    let last = watcher.1.clone();
    user(at[0], "root").unlock(&stolen, true).await.with(200);
    let data = watcher.lock().await;
    assert_eq!((&data["kind"], &data["by"]["name"]), (&"unlocked".into(), &"root".into()));
    assert_eq!(data["lock"]["owner"]["name"], "bob");
    // Whoever comes back is told what it has missed; other repositories are not told of.
    user(at[0], "ann")
        .ask("POST", "/git/art/other/locks", serde_json::json!({"path": "x"}))
        .await
        .with(201);
    let mut again = Watcher::open(at[2], &format!("Last-Event-ID: {last}")).await;
    assert_eq!(again.lock().await["kind"], "unlocked");
    user(at[2], "ann").locks("y").await;
    assert_eq!(again.lock().await["lock"]["path"], "y");
    let bad = user(at[2], "eve").with("Last-Event-ID: x");
    let answer = bad.ask("GET", &format!("{BASE}/changes"), None).await;
    crate::refused(&answer, 400, "bad-event-id");
}

#[tokio::test]
async fn what_is_taken_by_other_means_is_told_too() {
    let (_node, at) = crate::alone().await;
    let mut watcher = Watcher::open(at, "").await;
    let ann = user(at, "ann");
    let asked = |name: &str| serde_json::json!({"names": [name], "durable": true, "owner": "robot", "note": "hm"});
    ann.ask("POST", "/v1/acquire", asked("git/art/other/x")).await.with(201);
    let hold = ann.ask("POST", "/v1/acquire", asked("git/art/game/x")).await.with(201).json();
    let data = watcher.lock().await;
    assert_eq!(
        (&data["kind"], &data["lock"]["path"], &data["by"]["name"]),
        (&"locked".into(), &"x".into(), &"robot".into())
    );
    assert_eq!((&data["lock"]["id"], &data["lock"]["note"]), (&hold["id"], &"hm".into()));
    let path = format!("/v1/holds/{}?owner=robot", hold["id"].as_str().unwrap());
    ann.ask("DELETE", &path, None).await.with(204);
    assert_eq!(watcher.lock().await["kind"], "unlocked");
    // A lock of the interface for Git itself is told once.
    ann.locks("y").await;
    ann.locks("z").await;
    for path in ["y", "z"] {
        let data = watcher.lock().await;
        assert_eq!((&data["kind"], &data["lock"]["path"]), (&"locked".into(), &path.into()));
    }
}

#[tokio::test]
async fn those_who_watch_all_locks_are_not_told_in_the_words_of_git() {
    let (_node, at) = crate::alone().await;
    let mut client = Client::open(at).await;
    client.send("GET /v1/changes?prefix=git/ HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    client.until("retry: 1000\n\n").await;
    let lock = user(at, "ann").locks("x").await;
    user(at, "ann").unlock(&lock, false).await.with(200);
    let text = client.until("event: released").await;
    assert!(text.contains("event: granted") && !text.contains("event: git"), "{text}");
}

/// A receiver of webhooks that answers as it is told to, and what it got.
async fn receive(listener: &TcpListener, status: &str) -> (String, Value, Vec<u8>) {
    let receiving = async {
        let (stream, _) = listener.accept().await.unwrap();
        take(stream, status).await
    };
    tokio::time::timeout(LIMIT, receiving).await.expect("a message comes")
}

/// The same, of a connection.
async fn take(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    status: &str,
) -> (String, Value, Vec<u8>) {
    let mut read = Vec::new();
    let (head, body) = loop {
        stream.read_buf(&mut read).await.unwrap();
        let Some(end) = read.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(read[..end].to_vec()).unwrap().to_lowercase();
        let line = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = line.unwrap().parse().unwrap();
        if read.len() >= end + 4 + length {
            break (head, read[end + 4..].to_vec());
        }
    };
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.ok();
    (head, serde_json::from_slice(&body).unwrap(), body)
}

/// Speaks TLS with a certificate of this authority for localhost.
fn acceptor(authority: &Authority, file: &str, kind: Kind) -> TlsAcceptor {
    let files = authority.issue(file, "localhost", kind);
    let chain = CertificateDer::pem_file_iter(files.certificate).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(files.key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()))
}

#[tokio::test]
async fn a_webhook_over_https_is_sent_only_to_whom_the_authority_has_certified() {
    let folder = tempfile::tempdir().unwrap();
    let strangers = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "authority");
    let stranger = Authority::new(strangers.path(), "stranger");
    let secret_file = folder.path().join("secret");
    std::fs::write(&secret_file, "something that nobody can guess\n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/hook", listener.local_addr().unwrap().port());
    let ca_file = Some(authority.file.clone());
    let (_node, at) = start(|config| {
        let repository = "*".to_string();
        config.git.webhooks.push(WebhookConfig { repository, url, secret_file, ca_file });
    })
    .await;
    let lock = user(at, "ann").locks("x").await;
    // Whoever is not certified, or not any more, is told nothing.
    for bad in [
        acceptor(&stranger, "stranger", Kind::Member),
        acceptor(&authority, "expired", Kind::Expired),
    ] {
        let (stream, _) = tokio::time::timeout(LIMIT, listener.accept()).await.unwrap().unwrap();
        let accepted = tokio::time::timeout(LIMIT, bad.accept(stream)).await.unwrap();
        let mut text = Vec::new();
        if let Ok(mut stream) = accepted {
            stream.read_to_end(&mut text).await.ok();
        }
        assert!(text.is_empty(), "{}", String::from_utf8_lossy(&text));
    }
    let good = acceptor(&authority, "good", Kind::Member);
    let (stream, _) = tokio::time::timeout(LIMIT, listener.accept()).await.unwrap().unwrap();
    let stream = tokio::time::timeout(LIMIT, good.accept(stream)).await.unwrap().unwrap();
    let (head, body, _) = tokio::time::timeout(LIMIT, take(stream, "204 Fine")).await.unwrap();
    assert!(head.starts_with("post /hook http/1.1"), "{head}");
    assert_eq!((&body["kind"], &body["lock"]), (&"locked".into(), &lock));
}

#[tokio::test]
async fn a_webhook_is_signed_and_sent_again_until_it_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let secret_file = folder.path().join("secret");
    std::fs::write(&secret_file, "something that nobody can guess\n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?x=1", listener.local_addr().unwrap());
    let audit = folder.path().join("audit");
    let log = audit.clone();
    let (node, at) = start(|config| {
        let (repository, ca_file) = ("art/*".to_string(), None);
        config.git.webhooks.push(WebhookConfig { repository, url, secret_file, ca_file });
        config.audit.file = Some(audit);
    })
    .await;
    user(at, "ann")
        .ask("POST", "/git/code/game/locks", serde_json::json!({"path": "x"}))
        .await
        .with(201);
    let lock = user(at, "ann").locks("x").await;
    let (head, first, _) = receive(&listener, "503 Not Now").await;
    assert!(head.starts_with("post /hook?x=1 http/1.1"), "{head}");
    let (again, body, bytes) = receive(&listener, "204 Fine").await;
    assert_eq!(first, body, "it is the same message");
    assert_eq!((&body["kind"], &body["lock"]), (&"locked".into(), &lock));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"something that nobody can guess");
    let signed = ring::hmac::sign(&key, &bytes);
    let hex: String = signed.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(again.contains(&format!("x-hub-signature-256: sha256={hex}")), "{again}");
    let delivery = body["delivery"].as_str().unwrap();
    assert!(again.contains(&format!("catraca-delivery: {delivery}")), "{again}");
    // One that is refused is given up, and the next one comes.
    user(at, "bob").steal(&lock, "").await.with(200);
    assert_eq!(receive(&listener, "404 Nobody").await.1["kind"], "stolen");
    user(at, "root").unlock(&lock, true).await.with(200);
    assert_eq!(receive(&listener, "200 OK").await.1["kind"], "unlocked");
    node.stop().await;
    let log = std::fs::read_to_string(log).unwrap();
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = |what: &str| {
        records.iter().find(|it| it["what"] == what).unwrap_or_else(|| panic!("{log}"))
    };
    let steal = found("git steal");
    assert_eq!(
        (&steal["who"], &steal["identity"], &steal["name"]),
        (&"ann".into(), &"bob".into(), &"git/art/game/x".into())
    );
    let force = found("git unlock by force");
    assert_eq!((&force["who"], &force["identity"]), (&"bob".into(), &"root".into()));
}
