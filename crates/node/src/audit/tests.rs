//! What is in the log, whatever happens to its file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::file::numbered;
use super::*;
use crate::{Config, Node};

fn config(path: &Path) -> AuditConfig {
    AuditConfig { file: Some(path.to_path_buf()), ..AuditConfig::default() }
}

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.log");
    (directory, path)
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "the last line is whole");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn whats(path: &Path) -> Vec<String> {
    lines(path).iter().map(|line| line["what"].as_str().unwrap().to_string()).collect()
}

fn record(what: &'static str) -> Record {
    Record { what, name: Some("x".to_string()), ..Record::default() }
}

#[tokio::test]
async fn a_node_writes_down_who_held_what_and_who_came_and_went() {
    let (_directory, path) = place();
    let mut config = Config::alone();
    config.listen = Some("127.0.0.1:0".to_string());
    config.audit.file = Some(path.clone());
    let node = Node::start(config).await.unwrap();
    node.ready().await.unwrap();
    let guard = node.lock("deploy/web").await.unwrap();
    let fence = guard.fence();
    drop(guard);
    let lost = node.lock("kept").await.unwrap();
    node.fast_stop().stop();
    node.stop().await;
    drop(lost);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    let expected = ["log opened", "member joined", "granted", "released", "granted", "lost"];
    assert_eq!(whats(&path), expected);
    let granted = &lines(&path)[2];
    let time = granted["time"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    assert_eq!(granted["name"], "deploy/web");
    assert_eq!(granted["fence"], fence.to_string());
    assert_eq!(granted["member"], "alone");
    assert_eq!(granted["permits"], 1);
    assert_eq!(granted["who"], "(node)");
    assert_eq!(granted["epoch"], epoch_of(fence));
}

#[test]
fn a_long_log_is_moved_away_and_the_oldest_are_no_more() {
    let (_directory, path) = place();
    let config = AuditConfig { max_bytes: 4096, keep: 2, ..config(&path) };
    let audit = Audit::open(&config, "a").unwrap().unwrap();
    for _ in 0..1000 {
        audit.write(record("granted"));
    }
    audit.finish();
    let all = [path.clone(), numbered(&path, 1), numbered(&path, 2)];
    for path in &all {
        let length = fs::metadata(path).unwrap().len();
        assert!(length <= 4096, "{length}");
        assert!(!lines(path).is_empty());
    }
    assert!(!numbered(&path, 3).exists());
    assert_eq!(audit.dropped(), 0);
}

#[test]
fn a_log_goes_on_after_what_is_there_even_in_the_middle_of_a_line() {
    let (_directory, path) = place();
    fs::write(&path, "{\"what\":\"granted\"}\n{\"wha").unwrap();
    let audit = Audit::open(&config(&path), "a").unwrap().unwrap();
    audit.write(record("released"));
    audit.finish();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[1]), ("{\"what\":\"granted\"}", "{\"wha"));
    assert!(lines[2].contains("log opened") && lines[3].contains("released"), "{text}");
}

#[test]
fn a_log_that_was_moved_away_is_opened_anew() {
    let (_directory, path) = place();
    let audit = Audit::open(&config(&path), "a").unwrap().unwrap();
    audit.write(record("granted"));
    while fs::read_to_string(&path).unwrap().matches('\n').count() < 2 {
        std::thread::yield_now();
    }
    let moved = numbered(&path, 9);
    fs::rename(&path, &moved).unwrap();
    audit.reopen();
    while !path.exists() {
        std::thread::yield_now();
    }
    audit.write(record("released"));
    audit.finish();
    assert_eq!(whats(&moved), ["log opened", "granted"]);
    assert_eq!(whats(&path), ["log opened", "released"]);
}

#[test]
fn a_full_disk_holds_nobody_up_and_what_is_missing_is_said() {
    // Everything that is written there fails as on a full disk.
    let full = Path::new("/dev/full");
    let audit = Audit::open(&config(full), "a").unwrap().unwrap();
    for _ in 0..10 {
        audit.write(record("granted"));
    }
    while audit.dropped() < 10 {
        std::thread::yield_now();
    }
    audit.finish();

    let (_directory, path) = place();
    let audit = Audit::open(&config(&path), "a").unwrap().unwrap();
    audit.miss(12);
    audit.finish();
    let missing = lines(&path).pop().unwrap();
    assert_eq!((&missing["what"], &missing["count"]), (&"dropped".into(), &12.into()));
}

#[test]
fn more_records_than_there_is_room_for_are_counted() {
    let (directory, _) = place();
    // A pipe that nobody reads takes some, and then nothing.
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let audit = Audit::open(&config(&pipe), "a").unwrap().unwrap();
    let long = "x".repeat(200);
    for _ in 0..3 * MOST_WAITING {
        audit.write(Record { detail: Some(long.clone()), ..record("granted") });
    }
    assert!(audit.dropped() >= MOST_WAITING as u64, "{}", audit.dropped());
    // Nobody waits for its writer.
    drop(audit);
    drop(reader);
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error_and_none_is_none() {
    let nowhere = Path::new("/nowhere/audit.log");
    assert!(Audit::open(&config(nowhere), "a").is_err());
    assert!(Audit::open(&AuditConfig::default(), "a").unwrap().is_none());
}
