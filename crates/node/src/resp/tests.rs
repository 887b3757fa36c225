//! Limits in time, who may do what, and a pipe that holds next to nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, timeout};

use super::client::Shared;
use super::server::{AUTH_TIME, COMMAND_TIME, MOST_BEHIND, MOST_UNREAD, Server};
use crate::Node;
use crate::access::{Origin, Role, TokenFile};
use crate::native::quota::{MOST_UNFINISHED, Quota};
use crate::patience::READ_TIME;
use crate::testing::alone_with as alone;

/// Nothing takes so long, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(600);

/// A client at the other end of a pipe that holds so many bytes.
fn pipe(node: &Node, bytes: usize) -> DuplexStream {
    pipe_within(node, bytes, Arc::default())
}

/// The same, within a quota.
fn pipe_within(node: &Node, bytes: usize, quota: Arc<Quota>) -> DuplexStream {
    let (near, far) = tokio::io::duplex(bytes);
    let (reader, writer) = tokio::io::split(far);
    let acceptor = node.protection.acceptor.clone();
    let (engine, access) = (Arc::clone(&node.engine), Arc::clone(&acceptor.access));
    let shared = Arc::new(Shared::new(engine, node.gateway().clone(), access, Duration::ZERO));
    let server = Server { shared, quota, acceptor };
    let from: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let place = server.quota.enter(from.ip()).unwrap();
    tokio::spawn(async move { server.serve(reader, writer, from, Origin::Loopback, place).await });
    near
}

/// What is said until the connection ends, and when that is.
async fn rest(client: &mut DuplexStream) -> (String, Duration) {
    let began = Instant::now();
    let mut rest = Vec::new();
    timeout(LIMIT, client.read_to_end(&mut rest)).await.expect("the end").unwrap();
    (String::from_utf8(rest).unwrap(), began.elapsed())
}

/// The first line of the answer to a command.
async fn call(client: &mut DuplexStream, line: &str) -> String {
    client.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n") {
        heard.push(timeout(LIMIT, client.read_u8()).await.unwrap().unwrap());
    }
    String::from_utf8(heard).unwrap().trim_end().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_command_that_never_comes_to_its_end_is_cut_off() {
    let node = alone(|_| {}).await;
    for words in [&b"*"[..], b"*1\r\n$4\r\nPI", b"PIN", b"\r\n\r\n*3\r\n"] {
        let mut client = pipe(&node, 1 << 10);
        client.write_all(words).await.unwrap();
        let (told, after) = rest(&mut client).await;
        assert!(
            told.starts_with("-ERR Protocol error: the command did not come to its end"),
            "{told}"
        );
        assert_eq!(after.as_secs(), COMMAND_TIME.as_secs());
    }
}

#[tokio::test(start_paused = true)]
async fn a_byte_now_and_then_does_not_keep_a_command_alive() {
    let node = alone(|_| {}).await;
    let mut client = pipe(&node, 1 << 10);
    let began = Instant::now();
    while client.write_all(b"x").await.is_ok() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(began.elapsed() <= COMMAND_TIME + Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_may_stay() {
    let node = alone(|_| {}).await;
    let mut client = pipe(&node, 1 << 10);
    assert_eq!(call(&mut client, "PING").await, "+PONG");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(call(&mut client, "PING").await, "+PONG");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_is_cut_off_and_not_much_is_kept_for_it() {
    let node = alone(|_| {}).await;
    let mut client = pipe(&node, 64);
    let began = Instant::now();
    let echo = format!("ECHO {}\r\n", "x".repeat(1000));
    let mut said = 0;
    while client.write_all(echo.as_bytes()).await.is_ok() {
        said += echo.len();
    }
    assert!(said < 2 * MOST_UNREAD, "{said} bytes were heard");
    assert_eq!(began.elapsed().as_secs(), READ_TIME.as_secs());
}

#[tokio::test]
async fn behind_a_command_that_waits_not_much_is_heard_and_it_counts() {
    let node = alone(|_| {}).await;
    let held = node.lock("x").await.unwrap();
    let quota = Arc::new(Quota::default());
    let mut others = quota.unfinished();
    let mut client = pipe_within(&node, 1 << 10, Arc::clone(&quota));
    client.write_all(b"CATRACA.LOCK x\r\n").await.unwrap();
    let ping = b"PING\r\n".repeat(100);
    let mut said = 0;
    // The pipe is full when the node hears no more: it is alone with this task, and has had its turns.
    let mut turns = 0;
    while turns < 10_000 {
        let mut saying = std::pin::pin!(client.write(&ping));
        let tried =
            std::future::poll_fn(|context| std::task::Poll::Ready(saying.as_mut().poll(context)));
        if let std::task::Poll::Ready(written) = tried.await {
            said += written.unwrap();
            assert!(said < 2 * MOST_BEHIND, "{said} bytes were heard");
        }
        turns += 1;
        tokio::task::yield_now().await;
    }
    assert!(said >= MOST_BEHIND, "{said} bytes were heard");
    assert!(!others.set(MOST_UNFINISHED, MOST_UNFINISHED), "they count");
    drop((others, held));
    let mut heard = [0; 1];
    timeout(LIMIT, client.read_exact(&mut heard)).await.unwrap().unwrap();
    assert_eq!(&heard, b"*", "it has the lock");

    drop(client);
    let (held, quota) = (node.lock("y").await.unwrap(), Arc::new(Quota::default()));
    let mut others = quota.unfinished();
    let mut client = pipe_within(&node, 1 << 10, Arc::clone(&quota));
    client.write_all(b"CATRACA.LOCK y\r\n").await.unwrap();
    assert!(others.set(MOST_UNFINISHED, MOST_UNFINISHED));
    // It may have been cut off already.
    client.write_all(&b"PING\r\n".repeat(200)).await.ok();
    let (told, _) = rest(&mut client).await;
    assert!(told.starts_with("-ERR too many commands have not come to their end"), "{told}");
    drop(held);
    assert!(node.lock("y").or_refuse().await.is_ok(), "it waits no more");
}

#[tokio::test]
async fn whoever_waits_when_its_token_is_revoked_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let token = TokenFile::change(&path, |file| file.add("job", Role::Lock, &[], "now")).unwrap();
    let node = alone(|config| config.security.tokens = Some(path.clone())).await;
    let held = node.lock("x").await.unwrap();
    let mut client = pipe(&node, 1 << 10);
    assert_eq!(call(&mut client, &format!("AUTH {token}")).await, "+OK");
    client.write_all(b"CATRACA.LOCK x\r\n").await.unwrap();
    let waits = async {
        while node.status().waiting == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, waits).await.expect("it waits");
    TokenFile::change(&path, |file| file.revoke("job")).unwrap();
    node.protection.acceptor.access.reload().unwrap();
    assert_eq!(rest(&mut client).await.0, "-NOAUTH the token was revoked\r\n");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn who_has_to_say_who_it_is_does_so_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    TokenFile::change(&path, |_| Ok(())).unwrap();
    let node = alone(|config| config.security.tokens = Some(path.clone())).await;
    let mut client = pipe(&node, 1 << 10);
    let began = Instant::now();
    let denied = call(&mut client, "PING").await;
    assert!(denied.starts_with("-NOAUTH"), "{denied}");
    rest(&mut client).await;
    assert_eq!(began.elapsed().as_secs(), AUTH_TIME.as_secs());
}

#[tokio::test]
async fn a_token_is_good_for_its_role_and_its_names_until_it_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens");
    let add = |name: &str, role: Role, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        TokenFile::change(&path, |file| file.add(name, role, &names, "now")).unwrap()
    };
    let (job, watcher) = (add("job", Role::Lock, &["ci/*"]), add("eve", Role::Observe, &[]));
    let node = alone(|config| config.security.tokens = Some(path.clone())).await;

    let mut client = pipe(&node, 1 << 10);
    for denied in ["GET ci/x", "SET ci/x v NX PX 60000", "CATRACA.LOCKS", "INFO", "HELLO 3"] {
        let answer = call(&mut client, denied).await;
        assert!(answer.starts_with("-NOAUTH"), "{denied}: {answer}");
    }
    assert!(call(&mut client, "AUTH wrong").await.starts_with("-WRONGPASS"));
    assert!(call(&mut client, &format!("AUTH eve {job}")).await.starts_with("-WRONGPASS"));
    assert_eq!(call(&mut client, &format!("AUTH {job}")).await, "+OK");
    assert_eq!(call(&mut client, "SET ci/x v NX PX 60000").await, "+OK");
    for denied in ["SET x v NX PX 60000", "CATRACA.LOCK x", "GET x", "DEL ci/x x", "EXISTS x"] {
        let answer = call(&mut client, denied).await;
        assert!(answer.starts_with("-NOPERM 'job' may not use the lock 'x'"), "{denied}: {answer}");
    }
    assert_eq!(call(&mut client, "SET ci/durable v NX").await, "+OK");
    assert_eq!(call(&mut client, "DELIFEQ ci/durable v").await, ":1");

    let mut observer = pipe(&node, 1 << 10);
    assert!(call(&mut observer, &format!("HELLO 2 AUTH eve {watcher}")).await.starts_with('*'));
    let mut drained = vec![0; 4096];
    let _ = observer.read(&mut drained).await.unwrap();
    assert_eq!(call(&mut observer, "EXISTS ci/x").await, ":1");
    assert!(call(&mut observer, "DEL ci/x").await.starts_with("-NOPERM 'eve' may only observe"));

    TokenFile::change(&path, |file| file.revoke("job")).unwrap();
    node.protection.acceptor.access.reload().unwrap();
    assert_eq!(rest(&mut client).await.0, "");
    assert_eq!(call(&mut observer, "PING").await, "+PONG");
}
