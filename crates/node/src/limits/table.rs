//! The limits as the manual has them.

use std::time::Duration;

use catraca_client::frame::{LONGEST_CLIENT_FRAME, LONGEST_FRAME};
use catraca_group::registry::{MOST_HOLD_BYTES, MOST_HOLDS};
use catraca_group::{
    BYTES_OF_A_NAME, LONGEST_NAME, LONGEST_TOKEN, MOST_LINES, MOST_MEMBERS, MOST_NAME_BYTES,
    MOST_NAMES, MOST_PERMITS, MOST_REQUESTS, MOST_REQUESTS_IN_ALL, MOST_SESSIONS, MOST_WAITERS,
    TTL_RANGE,
};

use crate::Config;
use crate::acceptor::{MOST_HANDSHAKES, MOST_HELLOS, TLS_TIME};
use crate::engine::administering::MOST_AT_A_TIME;
use crate::engine::opening::MOST_SESSIONS_OF_ONE;
use crate::link::MOST_PENDING;
use crate::native::quota::{MOST_CONNECTIONS, MOST_OF_ONE, MOST_PAGES, MOST_UNFINISHED};
use crate::native::{
    IDLE_TIME, MESSAGE_TIME, MOST_LISTS, MOST_UNDER_WAY, MOST_UNREAD, MOST_UNREAD_BYTES,
};
use crate::patience::READ_TIME;
use crate::transport::HANDSHAKE_TIME;

/// A number as people read it.
fn number(count: usize) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}

fn bytes(count: usize) -> String {
    match count {
        _ if count.is_multiple_of(1 << 20) => format!("{} MiB", number(count >> 20)),
        _ if count.is_multiple_of(1 << 10) && count > 1 << 10 => {
            format!("{} KiB", number(count >> 10))
        }
        _ => format!("{} bytes", number(count)),
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

#[test]
fn the_manual_has_every_limit_with_the_number_that_the_code_has() {
    let most_locks = Config::alone().most_locks;
    let days = TTL_RANGE.end().as_secs() / 86_400;
    let rows = [
        ("a name", bytes(LONGEST_NAME)),
        ("names in one request", number(MOST_NAMES)),
        ("permits of a semaphore", number(MOST_PERMITS as usize)),
        ("a time to live", format!("{days} day")),
        ("a token of a timed hold", bytes(LONGEST_TOKEN)),
        (
            "a message of a client",
            format!("{}, complete within {}", bytes(LONGEST_CLIENT_FRAME), seconds(MESSAGE_TIME)),
        ),
        ("requests of a session at a time", number(MOST_REQUESTS)),
        ("requests of an identity under way over HTTP and RESP", number(MOST_REQUESTS)),
        ("durable holds and orders that a connection waits for", number(MOST_UNDER_WAY)),
        ("lists that a connection waits for", number(MOST_LISTS)),
        (
            "answers that it has not read",
            format!("{} messages or {}", number(MOST_UNREAD), bytes(MOST_UNREAD_BYTES)),
        ),
        ("time without reading, although there is something", seconds(READ_TIME)),
        ("silence without a session", seconds(IDLE_TIME)),
        ("connections of one machine", number(MOST_OF_ONE)),
        ("sessions of one machine", number(MOST_SESSIONS_OF_ONE)),
        ("locks that its clients begin", format!("`locks` of its file, {}", number(most_locks))),
        ("sessions", number(MOST_SESSIONS)),
        ("requests of all sessions", number(MOST_REQUESTS_IN_ALL)),
        (
            "names of all requests",
            format!(
                "{}, each {} more than it is long",
                bytes(MOST_NAME_BYTES),
                bytes(BYTES_OF_A_NAME)
            ),
        ),
        ("clients that wait for one lock", number(MOST_WAITERS)),
        ("connections of clients", number(MOST_CONNECTIONS)),
        (
            "callers that have not said who they are",
            format!("{}, for {}", number(MOST_HELLOS), seconds(HANDSHAKE_TIME)),
        ),
        (
            "TLS handshakes under way",
            format!("{}, for {}", number(MOST_HANDSHAKES), seconds(TLS_TIME)),
        ),
        ("messages that have begun and not ended", bytes(MOST_UNFINISHED)),
        ("answers that are written and not read", bytes(MOST_PAGES)),
        ("orders of administrators at a time", number(MOST_AT_A_TIME)),
        ("members of a group", number(MOST_MEMBERS)),
        ("durable holds of a group that keeps its registry itself", number(MOST_HOLDS)),
        ("names, owners and notes of all these", bytes(MOST_HOLD_BYTES)),
        ("a message between members", bytes(LONGEST_FRAME)),
        ("messages that a member does not take", bytes(MOST_PENDING)),
    ];
    let manual = include_str!("../../../../docs/SERVICE.md");
    for (what, most) in rows {
        let row = format!("| {what} | {most} |");
        assert!(manual.contains(&row), "docs/SERVICE.md has no row {row}");
    }
    let page = format!("| a page of a list | {} lines, ", number(MOST_LINES));
    assert!(manual.contains(&page), "{page}");
}
