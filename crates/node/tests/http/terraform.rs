//! The http backend of Terraform and OpenTofu: the exchange as it is documented, and the real program where
//! there is one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use catraca_node::Node;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::client::{Client, ask, request};
use crate::support::left_out::{Source, left_out};
use crate::{alone, start, three};

fn run(id: &str) -> Value {
    json!({
        "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "ann@builder",
        "Version": "1.11.4", "Created": "2026-07-01T12:00:00Z", "Path": "",
    })
}

/// A node that keeps states too.
async fn keeper() -> (TempDir, Node, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("states");
    let (node, at) = start(|config| config.http.terraform_state = Some(states)).await;
    (folder, node, at)
}

#[tokio::test]
async fn a_run_that_finds_the_lock_taken_is_told_who_has_it() {
    let (_nodes, at) = three().await;
    let path = "/terraform/prod/net";
    ask(at[0], "LOCK", path, run("1")).await.with(200);
    // It has not heard the answer, and asks again.
    ask(at[1], "LOCK", path, run("1")).await.with(200);
    let refused = ask(at[2], "LOCK", path, run("2")).await.with(423);
    assert_eq!(refused.json(), run("1"));
    ask(at[2], "UNLOCK", path, run("2")).await.refused(409, "not-owner");
    let listed = ask(at[2], "GET", "/v1/locks?name=terraform/prod/net", None).await.json();
    assert_eq!(listed["locks"][0]["holders"][0]["durable"]["owner"], "1");
    ask(at[2], "UNLOCK", path, run("1")).await.with(200);
    ask(at[2], "UNLOCK", path, run("1")).await.refused(409, "not-locked");
    ask(at[1], "LOCK", path, run("2")).await.with(200);
    // 'force-unlock' says nothing of the lock.
    ask(at[0], "UNLOCK", path, None).await.with(200);
    ask(at[0], "LOCK", path, run("3")).await.with(200);
}

/// How many states are on their way at a time.
const TRANSFERS: usize = 4;

/// Begins to send a state, and does not end.
async fn begin_upload(at: SocketAddr, name: usize) -> Client {
    let mut client = Client::open(at).await;
    let head = format!("POST /terraform/{name} HTTP/1.1\r\nHost: localhost\r\n");
    let kind = "Content-Type: application/json\r\nContent-Length: 12";
    client.send(format!("{head}{kind}\r\n\r\n{{\"version\"")).await;
    client
}

#[tokio::test]
async fn so_many_states_are_on_their_way_at_a_time_and_others_wait_for_their_turn() {
    let (_folder, _node, at) = keeper().await;
    let state = json!({"version": 4});
    ask(at, "POST", "/terraform/there", state.clone()).await.with(200);
    let mut uploads = Vec::new();
    for name in 0..TRANSFERS {
        uploads.push(begin_upload(at, name).await);
    }
    let mut reader = Client::open(at).await;
    reader.send(request("GET", "/terraform/there", None)).await;
    // Locks and everything else need no turn.
    ask(at, "LOCK", "/terraform/there", run("1")).await.with(200);
    ask(at, "GET", "/healthz", None).await.with(200);
    // One comes to its end: all of them have been waiting for that.
    uploads[0].send(":4}").await;
    let ended = uploads.remove(0).answer().await.unwrap();
    // If the machine was too busy, it was too slow for the node.
    assert!([200, 408].contains(&ended.status), "{ended:?}");
    assert_eq!(reader.answer().await.unwrap().with(200).json(), state);
    // Whoever goes away takes no turn from others.
    drop(uploads);
    ask(at, "GET", "/terraform/there", None).await.with(200);
}

#[tokio::test]
async fn whoever_sends_a_state_too_slowly_keeps_nobody_waiting_for_ever() {
    let (_folder, _node, at) = keeper().await;
    let mut uploads = Vec::new();
    for name in 0..TRANSFERS {
        uploads.push(begin_upload(at, name).await);
    }
    let late = ask(at, "GET", "/terraform/there", None);
    let (answer, cut) = tokio::join!(late, uploads[0].answer());
    cut.unwrap().refused(408, "slow-body");
    // It has had its turn, or was told to come again.
    assert!([404, 503].contains(&answer.status), "{answer:?}");
    ask(at, "GET", "/terraform/there", None).await.refused(404, "no-such-state");
}

#[tokio::test]
async fn other_methods_have_an_address_of_their_own() {
    let (_node, at) = alone().await;
    ask(at, "POST", "/terraform-lock/x", run("1")).await.with(200);
    ask(at, "LOCK", "/terraform/x", run("2")).await.with(423);
    ask(at, "DELETE", "/terraform-lock/x", run("1")).await.with(200);
    ask(at, "PUT", "/terraform-lock/x", run("2")).await.with(200);
    ask(at, "GET", "/terraform-lock/x", None).await.refused(405, "wrong-method");
}

#[tokio::test]
async fn a_lock_that_somebody_else_holds_is_taken_too() {
    let (_node, at) = alone().await;
    ask(at, "POST", "/v1/acquire", json!({"names": ["terraform/x"]})).await.with(201);
    let refused = ask(at, "LOCK", "/terraform/x", run("1")).await.with(423).json();
    assert!(refused["Info"].as_str().unwrap().contains("/v1/locks?name=terraform/x"), "{refused}");
}

#[tokio::test]
async fn a_node_without_a_directory_says_that_it_keeps_no_state() {
    let (_node, at) = alone().await;
    for (method, body) in [("GET", None), ("POST", Some(json!({}))), ("DELETE", None)] {
        ask(at, method, "/terraform/x", body).await.refused(501, "no-state");
    }
}

#[tokio::test]
async fn what_names_no_state_is_refused() {
    let (_folder, _node, at) = keeper().await;
    for name in ["%20", "a%00b", "%E2%80%AE", &"x".repeat(250)] {
        let path = format!("/terraform/{name}");
        ask(at, "LOCK", &path, run("1")).await.refused(400, "bad-name");
        ask(at, "GET", &path, None).await.refused(400, "bad-name");
    }
    ask(at, "LOCK", "/terraform/x", json!({"Who": "nobody"})).await.refused(400, "no-lock-id");
    ask(at, "LOCK", "/terraform/x", json!({"ID": "x".repeat(300)}))
        .await
        .refused(400, "bad-durable-text");
    ask(at, "LOCK", "/terraform/x", json!([])).await.refused(400, "bad-body");
    ask(at, "PATCH", "/terraform/x", None).await.refused(405, "wrong-method");
    assert_eq!(ask(at, "LOCK", "/terraform/", run("1")).await.status, 404);
}

#[tokio::test]
async fn a_state_is_kept_and_only_the_run_with_the_lock_changes_it() {
    let (folder, _node, at) = keeper().await;
    let path = "/terraform/prod/net";
    ask(at, "GET", path, None).await.refused(404, "no-such-state");
    ask(at, "POST", path, json!({"serial": 1})).await.with(200);
    ask(at, "LOCK", path, run("7")).await.with(200);
    assert_eq!(ask(at, "POST", path, json!({"serial": 2})).await.with(423).json(), run("7"));
    ask(at, "POST", &format!("{path}?ID=8"), json!({"serial": 2})).await.with(423);
    ask(at, "DELETE", path, None).await.with(423);
    ask(at, "POST", &format!("{path}?ID=7"), json!({"serial": 3})).await.with(200);
    let read = ask(at, "GET", path, None).await.with(200);
    assert_eq!(read.json(), json!({"serial": 3}));
    assert_eq!(read.header("content-type"), Some("application/json"));
    ask(at, "DELETE", &format!("{path}?ID=7"), None).await.with(200);
    ask(at, "GET", path, None).await.refused(404, "no-such-state");
    // Names with path tricks stay within the directory.
    for name in ["..%2F..%2Fescaped", "%2e%2e/escaped", "/etc/passwd"] {
        ask(at, "POST", &format!("/terraform/{name}"), json!({})).await.with(200);
        ask(at, "GET", &format!("/terraform/{name}"), None).await.with(200);
    }
    let outside: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(outside.len(), 1);
    assert_eq!(std::fs::read_dir(folder.path().join("states")).unwrap().count(), 3);
}

#[tokio::test]
async fn a_state_is_there_again_with_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("states");
    let (node, at) = start(|config| config.http.terraform_state = Some(states.clone())).await;
    ask(at, "POST", "/terraform/prod/net", json!({"serial": 7})).await.with(200);
    node.stop().await;
    let (_node, at) = start(|config| config.http.terraform_state = Some(states)).await;
    let read = ask(at, "GET", "/terraform/prod/net", None).await.with(200);
    assert_eq!(read.json(), json!({"serial": 7}));
}

#[tokio::test]
async fn a_state_has_a_largest_size_and_none_is_kept_in_part() {
    let (folder, _node, at) = keeper().await;
    let mut client = Client::open(at).await;
    let post =
        "POST /terraform/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    client.send(format!("{post}Content-Length: 33554433\r\n\r\n")).await;
    client.answer().await.unwrap().refused(413, "too-large");
    let large = json!({"text": "x".repeat(8 << 20)}).to_string();
    let mut client = Client::open(at).await;
    client.send(&request("POST", "/terraform/x", Some(&large))[..4 << 20]).await;
    drop(client);
    let mut client = Client::open(at).await;
    client.ask("POST", "/terraform/y", Some(&large)).await.with(200);
    assert_eq!(client.ask("GET", "/terraform/y", None).await.with(200).body, large);
    let kept: Vec<String> = std::fs::read_dir(folder.path().join("states"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(kept, ["y%.tfstate"]);
}

/// The program, if it is installed.
fn program() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let all = ["tofu", "terraform"].into_iter();
    all.flat_map(|name| folders.iter().map(move |it| it.join(name))).find(|path| path.is_file())
}

async fn terraform(program: &Path, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).env("HOME", folder);
    command.env("TF_CLI_CONFIG_FILE", folder.join("none.tfrc")).env("TF_IN_AUTOMATION", "1");
    command.env("CHECKPOINT_DISABLE", "1").env("NO_COLOR", "1");
    spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn the_real_program_locks_changes_and_unlocks() {
    let Some(program) = program() else {
        let why = "there is neither tofu nor terraform on this machine";
        return left_out("the http backend of the real program", why, Source::Nowhere);
    };
    let (folder, node, at) = keeper().await;
    let address = format!("http://{at}/terraform/demo");
    let backend = format!(
        "terraform {{\nbackend \"http\" {{\naddress = \"{address}\"\nlock_address = \"{address}\"\n\
         unlock_address = \"{address}\"\n}}\n}}\nresource \"terraform_data\" \"x\" {{\ninput = \"hello\"\n}}\n"
    );
    std::fs::write(folder.path().join("none.tfrc"), "").unwrap();
    std::fs::write(folder.path().join("main.tf"), backend).unwrap();
    let run_it = |arguments: &'static [&'static str]| terraform(&program, folder.path(), arguments);
    let done = run_it(&["init", "-input=false"]).await;
    assert!(done.status.success(), "{}", said(&done));
    let done = run_it(&["apply", "-auto-approve", "-input=false"]).await;
    assert!(done.status.success(), "{}", said(&done));
    let state = ask(at, "GET", "/terraform/demo", None).await.with(200).json();
    assert_eq!(state["resources"][0]["type"], "terraform_data");
    assert_eq!(node.status().held, 0, "it has unlocked");

    ask(at, "LOCK", "/terraform/demo", run("another-run")).await.with(200);
    let refused = run_it(&["plan", "-input=false", "-lock-timeout=0s"]).await;
    assert!(!refused.status.success());
    for text in ["Error acquiring the state lock", "already locked: ID=another-run"] {
        assert!(said(&refused).contains(text), "{text}: {}", said(&refused));
    }
    let forced = run_it(&["force-unlock", "-force", "another-run"]).await;
    assert!(forced.status.success(), "{}", said(&forced));
    let done = run_it(&["destroy", "-auto-approve", "-input=false"]).await;
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(node.status().held, 0);
}
