//! The commands of Catraca itself.

use std::time::Duration;

use catraca_client::Connection;
use catraca_node::Query;

use crate::redis::{Value, bulk, ok};
use crate::support::until;
use crate::{alone, alone_with, connect, group};

fn fence(granted: &Value) -> u64 {
    granted.items()[1].text().parse().unwrap()
}

fn id(granted: &Value) -> String {
    granted.items()[0].text()
}

#[tokio::test]
async fn a_lock_is_granted_with_its_fence_and_released_by_name_or_by_id() {
    let node = alone().await;
    let mut client = connect(&node).await;
    let first = client.call("CATRACA.LOCK x").await;
    assert_eq!(client.call(&format!("CATRACA.CHECK x {}", fence(&first))).await, Value::Integer(1));
    assert_eq!(client.call("CATRACA.FENCE x").await.text(), fence(&first).to_string());
    assert_eq!(client.call("CATRACA.UNLOCK x").await, Value::Integer(1));
    assert_eq!(client.call("CATRACA.UNLOCK x").await, Value::Integer(0));
    assert_eq!(client.call(&format!("CATRACA.CHECK x {}", fence(&first))).await, Value::Integer(0));
    assert_eq!(client.call("CATRACA.FENCE x").await, Value::Nil);
    let second = client.call("CATRACA.LOCK x").await;
    assert!(fence(&second) > fence(&first));
    assert_eq!(client.call(&format!("CATRACA.UNLOCK {}", id(&second))).await, Value::Integer(1));
    let third = client.call("CATRACA.LOCK x WAIT 0").await;
    assert!(fence(&third) > fence(&second));
}

#[tokio::test]
async fn who_does_not_wait_for_long_is_told_nil() {
    let node = alone().await;
    let held = node.lock("x").await.unwrap();
    let mut client = connect(&node).await;
    assert_eq!(client.call("CATRACA.LOCK x WAIT 0").await, Value::Nil);
    assert_eq!(client.call("CATRACA.LOCK x WAIT 20").await, Value::Nil);
    assert_eq!(client.call("CATRACA.LOCK x WAIT 0 TTL 1000").await, Value::Nil);
    assert_eq!(client.call("CATRACA.LOCK x WAIT 20 TTL 1000").await, Value::Nil);
    drop(held);
    assert_eq!(client.call("CATRACA.LOCK x WAIT 0").await.items().len(), 2);
}

#[tokio::test]
async fn the_locks_of_a_connection_are_free_when_it_is_cut() {
    let node = alone().await;
    let mut client = connect(&node).await;
    client.call("CATRACA.LOCK x").await;
    client.call("CATRACA.LOCK y").await;
    let mut waiter = connect(&node).await;
    waiter.say_line("CATRACA.LOCK x y").await;
    until("it waits", || node.status().waiting == 1).await;
    drop(client);
    assert_eq!(waiter.hear().await.items().len(), 3);
}

#[tokio::test]
async fn waiting_ends_with_the_connection() {
    let node = alone().await;
    let held = node.lock("x").await.unwrap();
    for wait in ["CATRACA.LOCK x", "CATRACA.LOCK x TTL 60000", "CATRACA.LOCK x WAIT 60000"] {
        let mut client = connect(&node).await;
        client.say_line(wait).await;
        until("it waits", || node.status().waiting == 1).await;
        drop(client);
        until("it waits no more", || node.status().waiting == 0).await;
    }
    drop(held);
    assert!(node.lock("x").or_refuse().await.is_ok());
}

#[tokio::test]
async fn commands_behind_one_that_waits_are_answered_after_it_and_in_order() {
    let node = alone().await;
    let held = node.lock("x").await.unwrap();
    let mut client = connect(&node).await;
    client.say_bytes(b"ECHO before\r\nCATRACA.LOCK x\r\nECHO after\r\nCATRACA.UNL").await;
    assert_eq!(client.hear().await, bulk("before"));
    until("it waits", || node.status().waiting == 1).await;
    client.say_bytes(b"OCK x\r\nECHO last\r\n").await;
    drop(held);
    assert_eq!(client.hear().await.items().len(), 2);
    assert_eq!(client.hear().await, bulk("after"));
    assert_eq!(client.hear().await, Value::Integer(1));
    assert_eq!(client.hear().await, bulk("last"));
}

#[tokio::test]
async fn many_commands_at_once_are_answered_in_order() {
    let node = alone().await;
    let mut client = connect(&node).await;
    let mut bytes = Vec::new();
    for number in 0..2000 {
        bytes.extend(format!("CATRACA.LOCK x{number}\r\nECHO {number}\r\n").bytes());
    }
    let sending = client.say_bytes(&bytes);
    sending.await;
    for number in 0..2000 {
        assert_eq!(client.hear().await.items().len(), 2);
        assert_eq!(client.hear().await, bulk(&number.to_string()));
    }
    assert_eq!(node.status().held, 2000);
}

#[tokio::test]
async fn several_locks_are_taken_at_once_or_not_at_all() {
    let node = alone().await;
    let held = node.lock("b").await.unwrap();
    let mut client = connect(&node).await;
    assert_eq!(client.call("CATRACA.LOCK a b c WAIT 0").await, Value::Nil);
    assert!(node.lock("a").or_refuse().await.is_ok());
    drop(held);
    assert_eq!(client.call("CATRACA.LOCK a b c WAIT 0").await.items().len(), 4);
    assert!(node.lock("c").or_refuse().await.is_err());
    assert_eq!(client.call("CATRACA.UNLOCK b").await, Value::Integer(1));
    assert!(node.lock("c").or_refuse().await.is_ok());
}

#[tokio::test]
async fn a_semaphore_lets_as_many_in_as_it_has_permits() {
    let node = alone().await;
    let mut client = connect(&node).await;
    for _ in 0..2 {
        assert_eq!(client.call("CATRACA.LOCK s PERMITS 2 WAIT 0").await.items().len(), 2);
    }
    assert_eq!(client.call("CATRACA.LOCK s PERMITS 2 WAIT 50").await, Value::Nil);
    assert!(client.call("CATRACA.LOCK s PERMITS 65").await.is_error("ERR a semaphore has"));
}

#[tokio::test]
async fn a_lock_with_a_time_to_live_outlives_its_connection_and_is_known_at_every_member() {
    let nodes = group(3).await;
    let granted = connect(&nodes[0]).await.call("CATRACA.LOCK x TTL 30000").await;
    let mut other = connect(&nodes[1]).await;
    assert_eq!(other.call("CATRACA.LOCK x WAIT 0").await, Value::Nil);
    let renew = format!("CATRACA.RENEW {} 60000", id(&granted));
    assert_eq!(other.call(&renew).await, Value::Integer(1));
    assert_eq!(
        other.call(&format!("CATRACA.CHECK x {}", fence(&granted))).await,
        Value::Integer(1)
    );
    let mut third = connect(&nodes[2]).await;
    let unlock = format!("CATRACA.UNLOCK {}", id(&granted));
    assert_eq!(third.call(&unlock).await, Value::Integer(1));
    assert_eq!(third.call(&unlock).await, Value::Integer(0));
    assert_eq!(other.call(&renew).await, Value::Integer(0));
    assert!(fence(&other.call("CATRACA.LOCK x").await) > fence(&granted));
}

#[tokio::test]
async fn a_time_to_live_ends() {
    let node = alone().await;
    let mut client = connect(&node).await;
    client.call("CATRACA.LOCK x TTL 50").await;
    // It waits for as long as the other lives.
    assert_eq!(client.call("CATRACA.LOCK x").await.items().len(), 2);
    assert!(
        client.call("CATRACA.RENEW x 1000").await.is_error("ERR 'x' belongs to this connection")
    );
    assert!(client.call("CATRACA.LOCK y TTL 86400001").await.is_error("ERR a time to live goes"));
}

#[tokio::test]
async fn a_list_shows_labels_and_comes_in_pages() {
    let node = alone().await;
    let mut client = connect(&node).await;
    for number in 0..250 {
        client.call(&format!("CATRACA.LOCK page/{number:03} LABEL nightly")).await;
    }
    client.call("CATRACA.LOCK other").await;
    let mut names = Vec::new();
    let mut cursor = "0".to_string();
    loop {
        let page = client.call(&format!("CATRACA.LOCKS page/ {cursor}")).await;
        let [next, lines, silent] = page.items() else { panic!("{page:?}") };
        assert_eq!(silent.items(), []);
        for line in lines.items() {
            let line: Vec<String> = line
                .items()
                .iter()
                .map(|it| if *it == Value::Nil { String::new() } else { it.text() })
                .collect();
            assert!(
                line.contains(&"nightly".to_string()) && line.contains(&"127.0.0.1".to_string())
            );
            names.push(line[1].clone());
        }
        cursor = next.text();
        if cursor == "0" {
            break;
        }
    }
    assert!(names.len() == 250 && names.is_sorted());
    assert!(client.call("CATRACA.LOCKS page/ x").await.is_error("ERR invalid cursor"));
}

#[tokio::test]
async fn a_connection_gives_so_many_labels_and_no_more() {
    let node = alone().await;
    let mut client = connect(&node).await;
    for number in 0..16 {
        client.call(&format!("CATRACA.LOCK x{number} LABEL l{number}")).await;
    }
    assert!(
        client.call("CATRACA.LOCK y LABEL l16").await.is_error("ERR a connection gives at most")
    );
    assert_eq!(client.call("CATRACA.LOCK y LABEL l0").await.items().len(), 2);
    assert_eq!(node.status().sessions, 16);
    drop(client);
    until("all is free", || node.status().sessions == 0 && node.status().held == 0).await;
}

#[tokio::test]
async fn whoever_watches_is_told_what_happens() {
    let node = alone().await;
    for (version, holder) in [(2, "a"), (3, "b")] {
        let mut watcher = connect(&node).await;
        watcher.call(&format!("HELLO {version}")).await;
        assert_eq!(watcher.call("CATRACA.WATCH watched/").await.items()[0], bulk("subscribe"));
        let mut client = connect(&node).await;
        client.call("CATRACA.LOCK elsewhere").await;
        client.call(&format!("CATRACA.LOCK watched/{holder} LABEL me")).await;
        let told = watcher.hear().await;
        assert_eq!(matches!(told, Value::Push(_)), version == 3);
        assert_eq!(told.items()[..2], [bulk("message"), bulk("catraca")]);
        let change = told.items()[2].text();
        for part in
            [r#""what":"granted""#, &format!(r#""name":"watched/{holder}""#), r#""label":"me""#]
        {
            assert!(change.contains(part), "{change}");
        }
        drop(client);
        let change = watcher.hear().await.items()[2].text();
        assert!(change.contains(r#""what":"#) && !change.contains("granted"), "{change}");
        if version == 2 {
            assert!(watcher.call("GET x").await.is_error("ERR Can't execute 'get'"));
            assert_eq!(watcher.call("PING").await.items()[0], bulk("pong"));
        }
        assert_eq!(watcher.call("CATRACA.UNWATCH").await.items()[0], bulk("unsubscribe"));
        assert_eq!(watcher.call("ECHO x").await, bulk("x"));
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_begins_anew() {
    let node = alone().await;
    let mut client = connect(&node).await;
    client.call("HELLO 3").await;
    client.call("CATRACA.LOCK x").await;
    client.call("CATRACA.WATCH").await;
    assert_eq!(client.call("RESET").await, Value::Simple("RESET".to_string()));
    assert!(node.lock("x").or_refuse().await.is_ok());
    assert_eq!(client.call("CATRACA.UNLOCK x").await, Value::Integer(0));
    assert_eq!(client.call("CATRACA.LOCK x").await.items().len(), 2);
}

#[tokio::test]
async fn a_node_that_stops_ends_connections_that_wait_and_that_hold() {
    let node = alone_with(|config| config.drain = Duration::ZERO).await;
    let mut holder = connect(&node).await;
    holder.call("CATRACA.LOCK x").await;
    let mut waiters = Vec::new();
    for wait in ["CATRACA.LOCK x", "CATRACA.LOCK x TTL 60000"] {
        let mut waiter = connect(&node).await;
        waiter.say_line(wait).await;
        waiters.push(waiter);
    }
    until("they wait", || node.status().waiting == 2).await;
    let mut idle = connect(&node).await;
    assert_eq!(idle.call("PING").await.text(), "PONG");
    node.stop().await;
    holder.rest().await;
    idle.rest().await;
    for mut waiter in waiters {
        let rest = String::from_utf8(waiter.rest().await).unwrap();
        assert!(rest.is_empty() || rest.starts_with("-UNAVAILABLE"), "{rest}");
    }
}

#[tokio::test]
async fn the_end_by_force_of_a_lock_of_a_connection_is_the_end_of_the_connection() {
    let node = alone().await;
    for waits in [false, true] {
        let mut holder = connect(&node).await;
        holder.call("CATRACA.LOCK x").await;
        let mut other = connect(&node).await;
        other.call("CATRACA.LOCK y").await;
        if waits {
            holder.say_line("CATRACA.LOCK y").await;
            until("it waits", || node.status().waiting == 1).await;
        }
        let mut administrator = Connection::open(&node.address().to_string()).await.unwrap();
        let forced = administrator.force_release("x", &[], "ana").await.unwrap();
        assert_eq!(forced.len(), 1);
        holder.rest().await;
        until("x is free", || node.status().held == 1).await;
        other.call("CATRACA.UNLOCK y").await;
    }
}

#[tokio::test]
async fn a_client_is_told_for_how_long_its_locks_are_certain() {
    let lease = Duration::from_secs(30);
    let node = alone_with(|config| config.lease = lease).await;
    let mut client = connect(&node).await;
    client.call("CATRACA.LOCK x").await;
    let Value::Integer(millis) = client.call("CATRACA.CERTAIN").await else { panic!("no number") };
    let certain = Duration::from_millis(millis.try_into().unwrap());
    assert!(!certain.is_zero() && certain < lease, "{certain:?}");
}

#[tokio::test]
async fn help_and_status_say_what_there_is() {
    let node = alone().await;
    let mut client = connect(&node).await;
    assert!(client.call("CATRACA.HELP").await.items()[0].text().starts_with("CATRACA.LOCK"));
    client.call("HELLO 3").await;
    let Value::Map(status) = client.call("CATRACA.STATUS").await else { panic!("no map") };
    assert!(status.contains(&(bulk("ready"), Value::Integer(1))));
    assert!(status.contains(&(bulk("group"), bulk("catraca"))));
}

#[tokio::test]
async fn native_clients_and_those_of_this_protocol_exclude_each_other() {
    let node = alone().await;
    let mut client = connect(&node).await;
    client.call("CATRACA.LOCK x").await;
    assert!(node.lock("x").or_refuse().await.is_err());
    let page = node.locks(Query { limit: 10, ..Query::default() }).await;
    assert_eq!((page.lines.len(), page.lines[0].host.as_str()), (1, "127.0.0.1"));
    assert_eq!(client.call("SET x v NX PX 1000").await, Value::Nil);
    assert_eq!(client.call("CLIENT SETNAME job-7").await, ok());
}
