//! A client of the Redis protocol that shows everything that it is told.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Nothing takes so long, however busy the machine is.
pub(crate) const GENEROUS: Duration = Duration::from_secs(60);

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Push(Vec<Value>),
}

impl Value {
    pub(crate) fn text(&self) -> String {
        match self {
            Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Simple(text) | Value::Error(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }

    pub(crate) fn items(&self) -> &[Value] {
        match self {
            Value::Array(items) | Value::Push(items) => items,
            other => panic!("no array: {other:?}"),
        }
    }

    pub(crate) fn is_error(&self, begins: &str) -> bool {
        matches!(self, Value::Error(text) if text.starts_with(begins))
    }
}

pub(crate) fn ok() -> Value {
    Value::Simple("OK".to_string())
}

pub(crate) fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// A connection.
pub(crate) struct Redis {
    stream: BufReader<TcpStream>,
}

impl Redis {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Redis { stream: BufReader::new(TcpStream::connect(address).await.unwrap()) }
    }

    /// Says a command whose words are in one line, with spaces between them.
    pub(crate) async fn call(&mut self, line: &str) -> Value {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.call_words(&words).await
    }

    pub(crate) async fn call_words(&mut self, words: &[&[u8]]) -> Value {
        self.say(words).await;
        self.hear().await
    }

    /// Says a command and does not wait for its answer.
    pub(crate) async fn say(&mut self, words: &[&[u8]]) {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend_from_slice(word);
            bytes.extend(b"\r\n");
        }
        self.say_bytes(&bytes).await;
    }

    pub(crate) async fn say_line(&mut self, line: &str) {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.say(&words).await;
    }

    pub(crate) async fn say_bytes(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Value {
        tokio::time::timeout(GENEROUS, self.read()).await.expect("an answer").expect("an answer")
    }

    /// Waits for the end of the connection. Returns what comes before it.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let reading = self.stream.read_to_end(&mut rest);
        // A connection that is cut is at its end too.
        let _ = tokio::time::timeout(GENEROUS, reading).await.expect("the end");
        rest
    }

    /// One value; nothing at the end of the connection.
    async fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let text = line.trim_end_matches("\r\n");
        let (kind, text) = text.split_at(1);
        let count = || text.parse::<i64>().unwrap();
        Some(match kind {
            "+" => Value::Simple(text.to_string()),
            "-" => Value::Error(text.to_string()),
            ":" => Value::Integer(count()),
            "_" => Value::Nil,
            "$" | "*" if count() < 0 => Value::Nil,
            "$" => {
                let mut bytes = vec![0; count() as usize + 2];
                self.stream.read_exact(&mut bytes).await.ok()?;
                assert!(bytes.ends_with(b"\r\n"));
                bytes.truncate(bytes.len() - 2);
                Value::Bulk(bytes)
            }
            "*" => Value::Array(self.read_all(count()).await?),
            ">" => Value::Push(self.read_all(count()).await?),
            "%" => {
                let all = self.read_all(2 * count()).await?;
                Value::Map(all.chunks(2).map(|it| (it[0].clone(), it[1].clone())).collect())
            }
            _ => panic!("no value: {line:?}"),
        })
    }

    async fn read_all(&mut self, count: i64) -> Option<Vec<Value>> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(Box::pin(self.read()).await?);
        }
        Some(all)
    }
}
