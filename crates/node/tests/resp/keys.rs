//! Keys, as clients of Redis use them.

use std::time::Duration;

use crate::redis::{Value, bulk, ok};
use crate::support::until;
use crate::{alone, alone_with, connect, group};

const RELEASE: &str = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

#[tokio::test]
async fn a_key_is_set_once_whatever_the_value() {
    let node = alone().await;
    let mut client = connect(&node).await;
    assert_eq!(client.call("SET k v NX PX 60000").await, ok());
    assert_eq!(client.call("SET k v NX PX 60000").await, Value::Nil);
    assert_eq!(client.call("SET k w NX EX 60").await, Value::Nil);
    assert_eq!(client.call("SETNX k v").await, Value::Integer(0));
    assert_eq!(client.call("GET k").await, bulk("v"));
    assert!(node.lock("k").or_refuse().await.is_err());
    // The connection may end: the time to live counts.
    drop(client);
    let mut client = connect(&node).await;
    assert_eq!(client.call("EXISTS k k nothing").await, Value::Integer(2));
    assert_eq!(client.call("DEL k nothing").await, Value::Integer(1));
    assert!(node.lock("k").or_refuse().await.is_ok());
}

#[tokio::test]
async fn a_release_that_arrives_elsewhere_is_passed_on() {
    let nodes = group(3).await;
    let mut clients = Vec::new();
    for node in &nodes {
        clients.push(connect(node).await);
    }
    for (place, key) in ["one", "two", "three", "four"].into_iter().enumerate() {
        let [taker, other, releaser] = [0, 1, 2].map(|step| (place + step) % 3);
        assert_eq!(clients[taker].call(&format!("SET {key} t NX PX 60000")).await, ok());
        assert_eq!(clients[other].call(&format!("SET {key} u NX PX 60000")).await, Value::Nil);
        assert_eq!(clients[other].call(&format!("GET {key}")).await, bulk("t"));
        let words = |token: &'static str| {
            [&b"EVAL"[..], RELEASE.as_bytes(), b"1", key.as_bytes(), token.as_bytes()]
        };
        assert_eq!(clients[releaser].call_words(&words("u")).await, Value::Integer(0));
        assert_eq!(clients[releaser].call_words(&words("t")).await, Value::Integer(1));
        assert_eq!(clients[other].call(&format!("SET {key} u NX PX 60000")).await, ok());
    }
}

#[tokio::test]
async fn a_key_without_a_time_to_live_is_a_durable_hold() {
    let nodes = group(2).await;
    let mut client = connect(&nodes[0]).await;
    assert_eq!(client.call("SET k secret NX").await, ok());
    assert_eq!(client.call("SET k secret NX").await, Value::Nil);
    assert_eq!(client.call("PTTL k").await, Value::Integer(-1));
    assert!(client.call("PEXPIRE k 1000").await.is_error("ERR 'k' never expires"));
    drop(client);
    let mut other = connect(&nodes[1]).await;
    assert_eq!(other.call("GET k").await, bulk("secret"));
    assert_eq!(other.call("SET k secret NX").await, Value::Nil);
    assert_eq!(other.call("DELIFEQ k wrong").await, Value::Integer(0));
    assert_eq!(other.call("DELIFEQ k secret").await, Value::Integer(1));
    assert_eq!(other.call("GET k").await, Value::Nil);
    assert_eq!(other.call("SETNX k again").await, Value::Integer(1));
    assert_eq!(other.call("DEL k").await, Value::Integer(1));
}

#[tokio::test]
async fn a_value_of_any_bytes_comes_back() {
    let node = alone().await;
    let mut client = connect(&node).await;
    let value: Vec<u8> = (0..=255).collect();
    for (key, options) in
        [(&b"timed"[..], &[&b"NX"[..], b"PX", b"60000"][..]), (b"durable", &[b"NX"])]
    {
        let mut words = vec![&b"SET"[..], key, &value[..]];
        words.extend(options);
        assert_eq!(client.call_words(&words).await, ok());
        assert_eq!(client.call_words(&[b"GET", key]).await, Value::Bulk(value.clone()));
        assert_eq!(client.call_words(&[b"DELEX", key, b"IFEQ", &value]).await, Value::Integer(1));
    }
    let long = vec![b'x'; 1025];
    let refused = client.call_words(&[b"SET", b"k", &long, b"NX", b"PX", b"1000"]).await;
    assert!(refused.is_error("ERR a token of 1025 bytes is too long"));
}

#[tokio::test]
async fn an_empty_value_proves_nothing() {
    let node = alone().await;
    let mut client = connect(&node).await;
    for set in [&[&b"SET"[..], b"k", b"", b"NX", b"PX", b"1000"][..], &[b"SETNX", b"k", b""]] {
        assert!(client.call_words(set).await.is_error("ERR a value is what"));
    }
    // This one has no value, and nobody can say that it is its own by saying nothing.
    client.call("CATRACA.LOCK x TTL 60000").await;
    let release = [&b"EVAL"[..], RELEASE.as_bytes(), b"1", b"x", b""];
    assert_eq!(client.call_words(&release).await, Value::Integer(0));
    assert!(client.call("DEL x").await.is_error("ERR 'x' is held by"));
    assert!(client.call("GET x").await.text().starts_with("catraca:"));
    assert!(node.lock("x").or_refuse().await.is_err());
}

#[tokio::test]
async fn a_lock_of_another_interface_is_a_key_that_cannot_be_deleted() {
    let node = alone().await;
    let held = node.lock("x").await.unwrap();
    let mut client = connect(&node).await;
    assert_eq!(client.call("EXISTS x").await, Value::Integer(1));
    assert!(client.call("GET x").await.text().starts_with("catraca:"));
    assert_eq!(client.call("PTTL x").await, Value::Integer(-1));
    assert!(client.call("DEL x").await.is_error("ERR 'x' is held by"));
    assert!(client.call("EXPIRE x 1").await.is_error("ERR 'x' is held by"));
    assert_eq!(client.call("CATRACA.FENCE x").await.text(), held.fence().to_string());
    assert_eq!(client.call("CATRACA.FENCE x token").await, Value::Nil);
}

#[tokio::test]
async fn a_fence_is_told_to_whoever_knows_the_value() {
    let node = alone().await;
    let mut client = connect(&node).await;
    let mut last = 0;
    for set in ["SET k v NX PX 60000", "SET k v NX"] {
        client.call(set).await;
        let fence: u64 = client.call("CATRACA.FENCE k v").await.text().parse().unwrap();
        assert!(fence > last);
        last = fence;
        assert_eq!(client.call(&format!("CATRACA.CHECK k {fence}")).await, Value::Integer(1));
        assert_eq!(client.call("CATRACA.FENCE k w").await, Value::Nil);
        client.call("DEL k").await;
        assert_eq!(client.call(&format!("CATRACA.CHECK k {fence}")).await, Value::Integer(0));
    }
}

#[tokio::test]
async fn a_set_can_wait_in_the_queue() {
    let node = alone_with(|config| config.resp.park = Duration::from_secs(60)).await;
    let held = node.lock("k").await.unwrap();
    let mut waiters = Vec::new();
    for place in 1..=3 {
        let mut waiter = connect(&node).await;
        waiter.say_line(&format!("SET k {place} NX PX 60000")).await;
        until("it waits", || node.status().waiting == place).await;
        waiters.push(waiter);
    }
    drop(held);
    let mut client = connect(&node).await;
    for (place, waiter) in (1..).zip(&mut waiters) {
        assert_eq!(waiter.hear().await, ok());
        assert_eq!(client.call("GET k").await, bulk(&place.to_string()));
        client.call("DEL k").await;
    }
    client.call("SET k v NX PX 60000").await;
    client.call("CATRACA.PARK 20").await;
    assert_eq!(client.call("SET k v NX PX 60000").await, Value::Nil);
    client.call("CATRACA.PARK 0").await;
    assert_eq!(client.call("SET k v NX").await, Value::Nil);
}

#[tokio::test]
async fn what_is_not_served_says_so_and_the_connection_goes_on() {
    let node = alone().await;
    let mut client = connect(&node).await;
    for (line, error) in [
        ("FLUSHALL", "ERR unknown command 'FLUSHALL': Catraca serves locks"),
        ("LPUSH a b", "ERR unknown command 'LPUSH'"),
        ("GET", "ERR wrong number of arguments for 'get' command"),
        ("SET k v", "ERR SET is served with NX"),
        ("SET k v XX", "ERR 'k' never expires"),
        ("EVAL return 0 k", "ERR this script is none of the known scripts"),
        ("EVALSHA 0123456789012345678901234567890123456789 1 k", "NOSCRIPT No matching script"),
        ("SCRIPT LOAD while", "ERR this script is none of the known scripts"),
        ("SCRIPT DEBUG YES", "ERR unknown subcommand 'DEBUG' of SCRIPT"),
        ("CLIENT MAINT_NOTIFICATIONS ON", "ERR unknown subcommand 'MAINT_NOTIFICATIONS' of CLIENT"),
        ("HELLO 4", "NOPROTO"),
        ("SELECT 16", "ERR DB index is out of range"),
        ("EXPIRE k 1 GT", "ERR EXPIRE with NX, GT or LT is not served"),
        ("CATRACA.LOCK x WAIT", "ERR syntax error"),
        ("CATRACA.CHECK x y", "ERR value is not an integer"),
    ] {
        let answer = client.call(line).await;
        assert!(answer.is_error(error), "{line}: {answer:?}");
    }
    for key in [&b"a b"[..], b"", b"\xff\xfe", &[b'x'; 256]] {
        let answer = client.call_words(&[b"SET", key, b"v", b"NX", b"PX", b"1000"]).await;
        assert!(answer.is_error("ERR "), "{answer:?}");
    }
    assert_eq!(client.call("PING").await.text(), "PONG");
    assert_eq!(client.call("QUIT").await, ok());
    assert_eq!(client.rest().await, b"");
}

#[tokio::test]
async fn scripts_are_found_by_their_digests_once_they_were_sent() {
    let node = alone().await;
    let mut client = connect(&node).await;
    let digest = client.call_words(&[b"SCRIPT", b"LOAD", RELEASE.as_bytes()]).await.text();
    let exists = client.call(&format!("SCRIPT EXISTS {digest} {}", "0".repeat(40))).await;
    assert_eq!(exists.items(), [Value::Integer(1), Value::Integer(0)]);
    client.call("SET k v NX PX 60000").await;
    assert_eq!(client.call(&format!("EVALSHA {digest} 1 k w")).await, Value::Integer(0));
    let mut other = connect(&node).await;
    assert_eq!(other.call(&format!("EVALSHA {digest} 1 k v")).await, Value::Integer(1));
    for (line, error) in [
        (format!("EVALSHA {digest} 2 k"), "ERR Number of keys can't be greater"),
        (format!("EVALSHA {digest} x k"), "ERR value is not an integer"),
        (format!("EVALSHA {digest} 0 k"), "ERR a script of a lock library has at least one key"),
        (format!("EVALSHA {digest} 1 k"), "ERR this script needs ARGV[1]"),
    ] {
        assert!(client.call(&line).await.is_error(error), "{line}");
    }
    assert_eq!(client.call("SCRIPT FLUSH").await, ok());
    assert!(client.call(&format!("EVALSHA {digest} 1 k v")).await.is_error("NOSCRIPT"));
}

#[tokio::test]
async fn a_client_may_say_hello_in_either_version() {
    let node = alone().await;
    let mut client = connect(&node).await;
    assert_eq!(client.call("HELLO").await.items().len(), 16);
    let Value::Map(map) = client.call("HELLO 3 AUTH default anything SETNAME job").await else {
        panic!("no map")
    };
    assert!(map.contains(&(bulk("proto"), Value::Integer(3))));
    assert_eq!(client.call("CLIENT GETNAME").await, bulk("job"));
    assert_eq!(client.call("GET nothing").await, Value::Nil);
    let info = client.call("INFO").await.text();
    for part in ["redis_version:", "loading:0", "role:master"] {
        assert!(info.contains(part), "{info}");
    }
    assert_eq!(
        client.call("COMMAND COUNT").await.text(),
        client.call("COMMAND").await.items().len().to_string()
    );
    assert_eq!(client.call("COMMAND INFO get nothing").await.items().len(), 2);
}

#[tokio::test]
async fn a_node_that_has_stopped_grants_nothing() {
    let node = alone_with(|config| config.drain = Duration::ZERO).await;
    let mut client = connect(&node).await;
    client.call("SET k v NX PX 60000").await;
    let address = node.resp_address().unwrap();
    node.stop().await;
    client.rest().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
