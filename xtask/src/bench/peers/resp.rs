//! Redis's protocol, as a client speaks it.

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::server::connect;

/// No answer of a benchmark is nearly so long.
const LONGEST: usize = 1 << 20;

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Nil,
    Integer(i64),
    Text(Vec<u8>),
    Array(Vec<Reply>),
}

/// A connection, on which one command at a time is under way.
pub(super) struct Connection {
    stream: TcpStream,
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: &str) -> Result<Self> {
        let stream = connect(address).await?;
        Ok(Connection { stream, sent: Vec::new(), received: Vec::new() })
    }

    /// Sends a command and waits for the answer.
    pub(super) async fn call(&mut self, words: &[&str]) -> Result<Reply> {
        self.sent.clear();
        encode(words, &mut self.sent);
        self.stream.write_all(&self.sent).await?;
        loop {
            if let Some((reply, length)) = decode(&self.received)? {
                self.received.drain(..length);
                return reply.map_err(|error| anyhow::anyhow!("{}: {error}", words[0]));
            }
            if self.received.len() > LONGEST {
                bail!("the answer does not end");
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                bail!("the server has closed the connection");
            }
        }
    }
}

fn encode(words: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// An answer, or the server's error, and how long it is; None if it is not complete.
type Decoded = Option<(Result<Reply, String>, usize)>;

fn decode(bytes: &[u8]) -> Result<Decoded> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = std::str::from_utf8(&bytes[1..end]).context("not the protocol of Redis")?;
    let rest = end + 2;
    let reply = match bytes[0] {
        b'+' => Reply::Text(line.as_bytes().to_vec()),
        b'-' => return Ok(Some((Err(line.to_string()), rest))),
        b':' => Reply::Integer(line.parse()?),
        b'_' => Reply::Nil,
        b'$' | b'*' if line == "-1" => Reply::Nil,
        b'$' => {
            let length: usize = line.parse()?;
            let Some(text) = bytes.get(rest..rest + length + 2) else { return Ok(None) };
            return Ok(Some((Ok(Reply::Text(text[..length].to_vec())), rest + length + 2)));
        }
        b'*' => return array(bytes, line.parse()?, rest),
        other => bail!("an answer begins with {other}: not the protocol of Redis"),
    };
    Ok(Some((Ok(reply), rest)))
}

fn array(bytes: &[u8], count: usize, mut at: usize) -> Result<Decoded> {
    let mut replies = Vec::new();
    for _ in 0..count {
        let Some((reply, length)) = decode(&bytes[at..])? else { return Ok(None) };
        at += length;
        match reply {
            Ok(reply) => replies.push(reply),
            Err(error) => return Ok(Some((Err(error), at))),
        }
    }
    Ok(Some((Ok(Reply::Array(replies)), at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_only_when_it_is_complete() {
        let bytes = b"*3\r\n$3\r\na\r\n\r\n:-7\r\n$-1\r\n+next\r\n";
        let whole = bytes.len() - b"+next\r\n".len();
        for end in 0..whole {
            assert!(decode(&bytes[..end]).unwrap().is_none(), "{end}");
        }
        let (reply, length) = decode(bytes).unwrap().unwrap();
        let text = Reply::Text(b"a\r\n".to_vec());
        assert_eq!(reply, Ok(Reply::Array(vec![text, Reply::Integer(-7), Reply::Nil])));
        assert_eq!(length, whole);
        assert_eq!(decode(b"-ERR no\r\n").unwrap(), Some((Err("ERR no".to_string()), 9)));
        assert!(decode(b"HTTP/1.1 400\r\n").is_err());
    }

    #[test]
    fn a_command_is_an_array_of_texts() {
        let mut out = Vec::new();
        encode(&["GET", "ü"], &mut out);
        assert_eq!(out, "*2\r\n$3\r\nGET\r\n$2\r\nü\r\n".as_bytes());
    }
}
