//! Objects of Git LFS that a node keeps, byte by byte.

use std::net::SocketAddr;
use std::path::PathBuf;

use catraca_node::Node;
use serde_json::{Value, json};
use sha2::Digest as _;
use tempfile::TempDir;

use crate::client::{Answer, Client};
use crate::{BASE, User, alone, refused, start, user};

fn oid(content: &[u8]) -> String {
    let digest: [u8; 32] = sha2::Sha256::digest(content).into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A node that keeps objects, and where.
async fn keeper() -> (TempDir, Node, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let objects = folder.path().join("objects");
    let (node, at) = start(|config| config.git.objects = Some(objects)).await;
    (folder, node, at)
}

async fn send(user: &User, method: &str, path: &str, content: &[u8]) -> Answer {
    let mut client = Client::open(user.at).await;
    client.send(user.request(method, path, Some(content))).await;
    client.answer().await.expect("an answer")
}

async fn batch(user: &User, operation: &str, transfers: &[&str], content: &[u8]) -> Value {
    let asked = json!({
        "operation": operation, "transfers": transfers, "ref": {"name": "refs/heads/main"},
        "objects": [{"oid": oid(content), "size": content.len()}], "hash_algo": "sha256",
    });
    let answer = user.ask("POST", &format!("{BASE}/objects/batch"), asked).await.with(200);
    assert_eq!(answer.header("content-type"), Some("application/vnd.git-lfs+json"));
    answer.json()
}

/// The part of an address behind the host.
fn path(href: &Value) -> String {
    let href = href.as_str().unwrap();
    href.strip_prefix("http://localhost").unwrap_or_else(|| panic!("{href}")).to_string()
}

fn files(folder: &TempDir) -> Vec<PathBuf> {
    fn all(folder: PathBuf, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { all(path, into) } else { into.push(path) }
        }
    }
    let mut files = Vec::new();
    all(folder.path().to_path_buf(), &mut files);
    files
}

#[tokio::test]
async fn an_object_is_sent_verified_and_read_again_whole_and_in_parts() {
    let (_folder, _node, at) = keeper().await;
    let ann = user(at, "ann");
    let content = "0123456789".repeat(100_000).into_bytes();
    let told = batch(&ann, "upload", &["basic", "ssh"], &content).await;
    assert_eq!(told["transfer"], "basic");
    let actions = &told["objects"][0]["actions"];
    let missing = batch(&ann, "download", &["basic"], &content).await;
    assert_eq!(missing["objects"][0]["error"]["code"], 404);
    let verify = path(&actions["verify"]["href"]);
    let whole = json!({"oid": oid(&content), "size": content.len()});
    refused(&ann.ask("POST", &verify, whole.clone()).await, 404, "no-such-object");
    send(&ann, "PUT", &path(&actions["upload"]["href"]), &content).await.with(200);
    ann.ask("POST", &verify, whole).await.with(200);
    let wrong = json!({"oid": oid(&content), "size": 7});
    refused(&ann.ask("POST", &verify, wrong).await, 409, "other-size");
    let again = batch(&ann, "upload", &["basic"], &content).await;
    assert_eq!(again["objects"][0].get("actions"), None, "it is there already");
    let told = batch(&ann, "download", &[], &content).await;
    let href = path(&told["objects"][0]["actions"]["download"]["href"]);
    let read = ann.ask("GET", &href, None).await.with(200);
    assert!(read.body.as_bytes() == content);
    let head = Client::open(at).await.ask_head(&ann, &href).await;
    assert!(head.contains("content-length: 1000000"), "{head}");
    for (range, status, expected) in [
        ("bytes=999990-", 206, "0123456789"),
        ("bytes=3-5", 206, "345"),
        ("bytes=-2", 206, "89"),
        ("bytes=1000000-", 416, ""),
    ] {
        let asked = user(at, "ann").with(&format!("Range: {range}"));
        let part = asked.ask("GET", &href, None).await.with(status);
        assert_eq!(part.body, expected, "{range}");
        assert!(part.header("content-range").unwrap().ends_with("/1000000"));
    }
}

impl Client {
    /// The head of an answer that has no body, although it says how long that would be.
    async fn ask_head(&mut self, user: &User, path: &str) -> String {
        self.send(user.request("HEAD", path, None)).await;
        self.head().await
    }
}

#[tokio::test]
async fn what_is_something_else_or_cut_off_is_no_object_and_leaves_nothing() {
    let (folder, _node, at) = keeper().await;
    let ann = user(at, "ann");
    let href = format!("{BASE}/objects/{}?size=7", oid(b"content"));
    refused(&send(&ann, "PUT", &href, b"CONTENT").await, 400, "other-digest");
    refused(&send(&ann, "PUT", &href, b"content that is longer").await, 400, "too-long");
    let mut client = Client::open(at).await;
    let mut ask = ann.request("PUT", &href, Some(b"content"));
    ask.truncate(ask.len() - 2);
    client.send(ask).await;
    drop(client);
    let gone = async {
        while !files(&folder).is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::client::LIMIT, gone).await.expect("nothing is left");
    refused(
        &ann.ask("GET", &format!("{BASE}/objects/{}", oid(b"content")), None).await,
        404,
        "no-such-object",
    );
    for bad in ["x", "..", &"A".repeat(64), &"g".repeat(64)] {
        refused(&send(&ann, "PUT", &format!("{BASE}/objects/{bad}"), b"x").await, 400, "bad-oid");
    }
    send(&ann, "PUT", &href, b"content").await.with(200);
    // Another repository does not have it.
    let other = ann.ask("GET", &format!("/git/art/other/objects/{}", oid(b"content")), None).await;
    refused(&other, 404, "no-such-object");
}

#[tokio::test]
async fn an_upload_that_was_cut_off_is_continued_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let objects = folder.path().join("objects");
    let kept = objects.clone();
    let (node, at) = start(|config| config.git.objects = Some(kept)).await;
    let ann = user(at, "ann");
    let content = "0123456789".repeat(50_000).into_bytes();
    let told = batch(&ann, "upload", &["basic", "tus"], &content).await;
    assert_eq!(told["transfer"], "tus");
    let href = path(&told["objects"][0]["actions"]["upload"]["href"]);
    let head = Client::open(at).await.ask_head(&ann, &href).await;
    assert!(head.contains("upload-offset: 0") && head.contains("tus-resumable: 1.0.0"), "{head}");
    // The connection is cut in the middle.
    let from =
        |at: SocketAddr, offset: usize| user(at, "ann").with(&format!("Upload-Offset: {offset}"));
    let mut client = Client::open(at).await;
    let ask = from(at, 0).request("PATCH", &href, Some(&content));
    client.send(&ask[..ask.len() - 200_000]).await;
    let ann = user(at, "ann");
    let come = async || -> usize {
        let head = Client::open(at).await.ask_head(&ann, &href).await;
        let line = head.lines().find(|line| line.starts_with("upload-offset: ")).unwrap();
        line["upload-offset: ".len()..].trim().parse().unwrap()
    };
    // It has begun: nobody else is in its way below.
    while come().await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    drop(client);
    let offset = loop {
        let offset = come().await;
        let wrong = send(&from(at, offset + 1), "PATCH", &href, b"x").await;
        match wrong.json()["code"].as_str().unwrap() {
            // It has been noticed that the client is gone.
            "other-offset" => break offset,
            "busy" => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            other => panic!("{other}"),
        }
    };
    assert!(offset > 0 && offset <= content.len() - 200_000, "{offset}");
    node.stop().await;
    let (_node, at) = start(|config| config.git.objects = Some(objects)).await;
    let ann = user(at, "ann");
    let head = Client::open(at).await.ask_head(&ann, &href).await;
    assert!(head.contains(&format!("upload-offset: {offset}\r\n")), "{head}");
    let middle = (offset + content.len()) / 2;
    let part = send(&from(at, offset), "PATCH", &href, &content[offset..middle]).await.with(204);
    assert_eq!(part.header("upload-offset"), Some(middle.to_string().as_str()));
    let get = format!("{BASE}/objects/{}", oid(&content));
    refused(&ann.ask("GET", &get, None).await, 404, "no-such-object");
    send(&from(at, middle), "PATCH", &href, &content[middle..]).await.with(204);
    assert!(ann.ask("GET", &get, None).await.with(200).body.as_bytes() == content);
    let head = Client::open(at).await.ask_head(&ann, &href).await;
    assert!(head.contains(&format!("upload-offset: {}\r\n", content.len())), "{head}");
}

#[tokio::test]
async fn a_node_without_objects_says_so_or_sends_the_client_on() {
    let (_node, at) = alone().await;
    let ann = user(at, "ann");
    let asked = json!({"operation": "download", "objects": []});
    let said = refused(
        &ann.ask("POST", &format!("{BASE}/objects/batch"), asked.clone()).await,
        501,
        "locks-only",
    );
    assert!(said["message"].as_str().unwrap().contains("keeps locks only"), "{said}");
    refused(
        &ann.ask("GET", &format!("{BASE}/objects/{}", oid(b"x")), None).await,
        501,
        "locks-only",
    );
    let forge = "https://forge.example/{team}/{repo}.git/info/lfs";
    let (_node, at) = start(|config| config.git.forward = Some(forge.to_string())).await;
    let sent_on =
        user(at, "ann").ask("POST", &format!("{BASE}/objects/batch"), asked).await.with(307);
    let there = "https://forge.example/art/game.git/info/lfs/objects/batch";
    assert_eq!(sent_on.header("location"), Some(there));
    let whoami = user(at, "ann").ask("GET", &format!("{BASE}/whoami"), None).await.json();
    assert_eq!(whoami["objects"], "forward");
}
