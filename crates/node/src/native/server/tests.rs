//! A client that asks more at a time than is kept unread.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use catraca_client::frame::LONGEST_FRAME;
use catraca_group::{Wait, Who};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::*;
use crate::access::Origin;
use crate::testing::{LIMIT, alone};

fn frame_of(message: &ClientMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(message, &mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn whoever_asks_much_at_a_time_is_answered_all_of_it() {
    const RELEASES: u32 = 1200;
    let node = alone().await;
    let access = Arc::clone(&node.protection.acceptor.access);
    let identity = access.identify(None, &Origin::Loopback).unwrap();
    let server = Server::new(Arc::clone(&node.engine), node.gateway().clone(), access);
    // The second message comes in two pieces. For the rest of it there is so much room that very many short
    // ones are read with it.
    let mut begin = frame_of(&ClientMessage::Open { who: Who::default(), ttl: None });
    let names = vec!["x".repeat(200), "y".repeat(200), "z".repeat(200)];
    let long = ClientMessage::Acquire { request: u32::MAX, names, permits: 1, wait: Wait::no() };
    let long = frame_of(&long);
    let (one, other) = long.split_at(550);
    begin.extend_from_slice(one);
    let mut rest = other.to_vec();
    for request in 0..RELEASES {
        rest.extend(frame_of(&ClientMessage::Release { request }));
    }
    let (near, mut heard) = tokio::io::duplex(1 << 20);
    // It says no more, and does not hang up.
    let (open, nothing) = tokio::io::duplex(1);
    let asking = (&begin[..]).chain(&rest[..]).chain(nothing);
    let answers = async {
        let (mut bytes, mut count) = (Vec::new(), 0);
        while count < RELEASES + 2 {
            assert_ne!(heard.read_buf(&mut bytes).await.unwrap(), 0, "it hangs up");
            while let Some((body, after)) = frame::split(&bytes, LONGEST_FRAME).unwrap() {
                frame::read::<ServerMessage>(body).unwrap();
                let taken = bytes.len() - after.len();
                bytes.drain(..taken);
                count += 1;
            }
        }
    };
    tokio::select! {
        () = server.serve(identity, asking, near, None) => panic!("it goes on"),
        answered = timeout(LIMIT, answers) => answered.expect("all is answered"),
    }
    drop(open);
}
