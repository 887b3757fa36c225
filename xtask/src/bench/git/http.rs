//! As much of HTTP as the measurements need: messages with a length, on one connection.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};

/// "ana:x", as a client sends it.
const ANA: &str = "Basic YW5hOng=";

/// The next message: its head, and its body. Nothing if there is none any more.
pub(super) fn read_message(from: &mut impl BufRead) -> Result<Option<(String, Vec<u8>)>> {
    let mut head = String::new();
    let mut length = 0;
    loop {
        let begin = head.len();
        if from.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        let line = head[begin..].trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some((head, body)))
}

/// A connection to a node, for one repository.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    repository: String,
}

impl Connection {
    pub(super) fn open(address: &str, repository: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream: BufReader::new(stream), repository: repository.to_string() })
    }

    /// What is answered; it has to be a success.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        let request = format!(
            "{method} /git/{}{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {ANA}\r\n\
             Accept: application/vnd.git-lfs+json\r\nContent-Type: application/vnd.git-lfs+json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.repository,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let answer = read_message(&mut self.stream)?;
        let (head, body) = answer.context("the node has closed the connection")?;
        let text = String::from_utf8_lossy(&body);
        ensure!(head.starts_with("HTTP/1.1 20"), "{method} {path}: {head}{text}");
        Ok(body)
    }
}
