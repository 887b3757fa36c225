//! `catraca status` for monitors, and `catraca locks` where there are many of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use catraca_client::Client;
use serde_json::{Value, json};
use support::service::{Process, Service, addresses};
use support::{Folder, Ran};

fn status(folder: &Folder, address: &str, flags: &[&str]) -> Ran {
    folder.run(&[&["status", "--node", address], flags].concat())
}

fn status_json(folder: &Folder, address: &str) -> (Option<i32>, Value) {
    let ran = status(folder, address, &["--json"]);
    (ran.code, serde_json::from_str(&ran.stdout).unwrap())
}

#[test]
fn a_group_that_is_well_is_told_from_one_that_is_degraded_or_useless() {
    let mut service = Service::start(2, &[]);
    let first = service.addresses[0].clone();
    let nowhere = addresses(1).remove(0);
    let both = format!("{nowhere},{first}");
    status(&service.folder, &both, &[]).quietly(0).says("\nready\n").says(", epoch ");
    let (code, json) = status_json(&service.folder, &first);
    assert_eq!((code, &json["readiness"]), (Some(0), &json!("ready")));
    assert!(json["epoch"].is_u64() && json["waits_for"].is_null());
    let node = service.nodes.remove(1);
    node.signal("TERM");
    node.ends();
    // The registry of a group of two is at the first.
    let (code, json) = status_json(&service.folder, &first);
    assert_eq!((code, &json["readiness"]), (Some(3), &json!("ready")), "{json}");
    let last = json["views"].as_array().unwrap().last().unwrap();
    assert!(last["cause"].as_str().unwrap().contains("'b'"), "{json}");
    service.nodes.push(service.node(1, &[]));
    service.is_whole();
}

#[test]
fn a_node_that_is_not_in_its_group_is_of_no_use_and_says_why() {
    let (folder, addresses) = (Folder::new(), addresses(3));
    let list = format!("a={},b={},c={}", addresses[0], addresses[1], addresses[2]);
    let words = ["node", "--name", "a", "--members", &list, "--data", "a"];
    let node = Process::start(folder.command(&words));
    node.says("listens at");
    let (code, json) = status_json(&folder, &addresses[0]);
    assert_eq!((code, &json["readiness"]), (Some(4), &json!("joining")));
    node.complains("the registry cannot be reached");
    let status = status(&folder, &addresses[0], &[]).quietly(4);
    status.says("not in its group yet: the registry cannot be reached");
}

#[test]
fn a_long_list_is_printed_page_by_page_and_as_a_whole() {
    const LOCKS: usize = 2500;
    let service = Service::start(1, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::builder().addresses(&service.addresses).connect().await.unwrap();
        let names: Vec<String> = (0..LOCKS).map(|number| format!("lock/{number:04}")).collect();
        let mut held = Vec::new();
        for names in names.chunks(250) {
            held.push(client.lock_all(names).await.unwrap());
        }
        let table = service.client(0, &["locks"], &[]).ends().quietly(0).stdout;
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("lock/")).collect();
        assert_eq!(rows.len(), LOCKS);
        assert!(rows.is_sorted() && table.matches("fence").count() == 1);
        assert!(table.ends_with("\n\n2,500 holders, 0 waiters\n"));
        for flags in [&["locks", "--json"][..], &["locks", "--json", "--watch"]] {
            let list = service.client(0, flags, &[]);
            list.says("\"silent\":[]");
            list.signal("INT");
            let text = list.ends().stdout;
            // With --watch, one line is one look.
            let look = if flags.len() > 2 { text.lines().next().unwrap() } else { &text };
            let json: Value = serde_json::from_str(look).unwrap();
            let listed = json["locks"].as_array().unwrap().iter();
            assert!(listed.map(|line| line["name"].as_str().unwrap()).eq(&names));
        }
    });
}
