//! A server that only answers from memory: what the stock client takes by itself.

use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde_json::{Value, json};

use super::http::read_message;

/// The paths that are locked, and the answers to those who locked them.
type Locks = Arc<Mutex<BTreeMap<String, Value>>>;

/// Serves until the process ends.
pub(super) fn serve() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let locks = Locks::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let locks = Arc::clone(&locks);
            // A client that hangs up is no failure.
            std::thread::spawn(move || answer_all(&stream, &locks).ok());
        }
    });
    Ok(address)
}

fn answer_all(stream: &TcpStream, locks: &Locks) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some((head, body)) = read_message(&mut reader)? {
        let is_lock = head.starts_with("POST ") && head.contains("/locks HTTP/1.1");
        let (status, answer) = match serde_json::from_slice::<Value>(&body) {
            Ok(asked) if is_lock => lock(asked["path"].as_str().unwrap_or_default(), locks),
            _ => ("200 OK", json!({"locks": [], "ours": [], "theirs": []})),
        };
        let answer = answer.to_string();
        let whole = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/vnd.git-lfs+json\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        );
        let mut writer = stream;
        writer.write_all(whole.as_bytes())?;
    }
    Ok(())
}

fn lock(path: &str, locks: &Locks) -> (&'static str, Value) {
    let mut locks = locks.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lock) = locks.get(path) {
        return ("409 Conflict", json!({"message": "lock already created", "lock": lock}));
    }
    let lock = json!({
        "id": locks.len().to_string(), "path": path, "owner": {"name": "ana"},
        "locked_at": "2026-11-18T12:00:00Z",
    });
    locks.insert(path.to_string(), lock.clone());
    ("201 Created", json!({"lock": lock}))
}
