//! Whoever may connect may be hostile, or only broken.

use std::time::Duration;

use catraca_node::Node;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::redis::{GENEROUS, Value};
use crate::{alone, connect};

/// Somebody else is served.
async fn visit(node: &Node) {
    let mut client = connect(node).await;
    assert_eq!(client.call("CATRACA.LOCK visit").await.items().len(), 2);
    assert_eq!(client.call("CATRACA.UNLOCK visit").await, Value::Integer(1));
}

#[tokio::test]
async fn what_is_no_command_is_told_so_and_ends_the_connection() {
    let node = alone().await;
    for (garbage, error) in [
        (&b"*1\r\n:1\r\n"[..], "-ERR Protocol error: expected '$', got ':'"),
        (b"*99999\r\n", "-ERR Protocol error: invalid multibulk length"),
        (b"*1\r\n$999999\r\n", "-ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$-7\r\n", "-ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$1\r\nab\r\n", "-ERR Protocol error: a text of 1 bytes"),
        (b"GET \"x\r\n", "-ERR Protocol error: unbalanced quotes"),
        (&[b'x'; 5000], "-ERR Protocol error: too big inline request"),
    ] {
        let mut client = connect(&node).await;
        // What came before is answered.
        client.say_bytes(b"PING\r\n").await;
        client.say_bytes(garbage).await;
        let told = String::from_utf8_lossy(&client.rest().await).into_owned();
        let told = told.strip_prefix("+PONG\r\n").unwrap();
        assert!(told.starts_with(error) && told.ends_with("\r\n"), "{told}");
    }
    visit(&node).await;
}

#[tokio::test]
async fn a_browser_that_is_sent_here_does_nothing() {
    let node = alone().await;
    for request in [
        "POST / HTTP/1.1\r\nHost: a\r\n\r\nSETNX k v\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nSETNX k v\r\n",
    ] {
        let mut client = connect(&node).await;
        client.say_bytes(request.as_bytes()).await;
        client.rest().await;
    }
    assert_eq!(connect(&node).await.call("EXISTS k").await, Value::Integer(0));
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize
    }
}

#[tokio::test]
async fn random_bytes_and_random_commands_disturb_nobody() {
    const WORDS: &[&[u8]] = &[
        b"SET",
        b"GET",
        b"DEL",
        b"EVAL",
        b"EVALSHA",
        b"SCRIPT",
        b"CATRACA.LOCK",
        b"CATRACA.UNLOCK",
        b"HELLO",
        b"CLIENT",
        b"EXPIRE",
        b"PTTL",
        b"k",
        b"v",
        b"NX",
        b"PX",
        b"10",
        b"-1",
        b"",
        b"0",
        b"\xff",
        b"WAIT",
        b"return 1",
        b"LOAD",
        b"CATRACA.LOCKS",
        b"CATRACA.WATCH",
        b"RESET",
        b"COMMAND",
        b"3",
        b"TTL",
        b"9999999999999999999",
        b"CATRACA.CHECK",
        b"DELEX",
        b"IFEQ",
        b"AUTH",
        b"INFO",
        b"CATRACA.PARK",
    ];
    let node = alone().await;
    let mut numbers = Numbers(7);
    for round in 0..150 {
        let mut bytes = Vec::new();
        for _ in 0..numbers.next() % 20 {
            let count = 1 + numbers.next() % 6;
            bytes.extend(format!("*{count}\r\n").bytes());
            for _ in 0..count {
                let word = WORDS[numbers.next() % WORDS.len()];
                bytes.extend(format!("${}\r\n", word.len()).bytes());
                bytes.extend(word);
                bytes.extend(b"\r\n");
            }
        }
        if round % 2 == 0 {
            bytes.extend((0..numbers.next() % 300).map(|_| numbers.next() as u8));
        }
        let mut stream = TcpStream::connect(node.resp_address().unwrap()).await.unwrap();
        // The node may have had enough already.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let reading = async {
            let mut heard = Vec::new();
            let _ = stream.read_to_end(&mut heard).await;
        };
        tokio::time::timeout(GENEROUS, reading).await.expect("the connection ends");
    }
    visit(&node).await;
}

#[tokio::test]
async fn who_does_not_read_is_not_listened_to_and_others_are_served() {
    let node = alone().await;
    let mut deaf = TcpStream::connect(node.resp_address().unwrap()).await.unwrap();
    let word = "x".repeat(60_000);
    let echo = format!("*2\r\n$4\r\nECHO\r\n${}\r\n{word}\r\n", word.len());
    let mut said = 0;
    // Its own buffers and those of the system fill up, and then nothing goes on.
    let saying = async {
        loop {
            deaf.write_all(echo.as_bytes()).await.unwrap();
            said += echo.len();
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(2), saying).await.is_err());
    assert!(said < 64 << 20, "{said} bytes were heard");
    visit(&node).await;
}

#[tokio::test]
async fn clients_that_are_cut_in_the_middle_of_a_command_leave_nothing() {
    let node = alone().await;
    let command = b"*4\r\n$12\r\nCATRACA.LOCK\r\n$1\r\nx\r\n$4\r\nWAIT\r\n$4\r\n9999\r\n";
    for length in 0..command.len() {
        let mut stream = TcpStream::connect(node.resp_address().unwrap()).await.unwrap();
        stream.write_all(&command[..length]).await.unwrap();
    }
    visit(&node).await;
    assert!(node.lock("x").or_refuse().await.is_ok());
}
