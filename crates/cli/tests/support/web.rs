//! A small web server for repositories: `git http-backend` behind it, and names without passwords.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::service::addresses;

/// Serves all repositories below `root`; whoever gives a name by Basic is believed. It runs until the test
/// ends.
pub(crate) fn serve(root: &Path) -> String {
    let address = addresses(1).remove(0);
    let listener = TcpListener::bind(&address).unwrap();
    let root = root.to_path_buf();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, root) = (stream.unwrap(), root.clone());
            // A client that goes away is no fault of the server.
            std::thread::spawn(move || answer(stream, &root).ok());
        }
    });
    address
}

fn answer(stream: TcpStream, root: &PathBuf) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [method, target, _] = words[..] else { return Ok(()) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = headers(&mut reader)?;
    let header = |name: &str| headers.get(name).map_or("", String::as_str);
    let mut stream = stream;
    let Some(user) = user(header("authorization")) else {
        let refusal = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\n\
                       Content-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(refusal.as_bytes());
    };
    if header("expect").eq_ignore_ascii_case("100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = body(&mut reader, header("transfer-encoding"), header("content-length"))?;
    let mut backend = Command::new("git");
    backend.arg("http-backend").env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1");
    backend.env("REQUEST_METHOD", method).env("PATH_INFO", path).env("QUERY_STRING", query);
    backend
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string());
    backend.env("HTTP_CONTENT_ENCODING", header("content-encoding"));
    backend.env("GIT_PROTOCOL", header("git-protocol")).env("REMOTE_USER", user);
    backend
        .env("REMOTE_ADDR", "127.0.0.1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("CATRACA_PUSHER");
    backend.env("HOME", root).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = backend.spawn()?;
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || stdin.write_all(&body));
    let said = child.wait_with_output()?.stdout;
    feeder.join().unwrap().ok();
    let end = said.windows(4).position(|part| part == b"\r\n\r\n").unwrap_or(said.len());
    let head = String::from_utf8_lossy(&said[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let rest = said.get(end + 4..).unwrap_or_default();
    let length = rest.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(rest)
}

fn headers(reader: &mut impl BufRead) -> std::io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { return Ok(headers) };
        headers.insert(name.to_lowercase(), value.trim().to_string());
    }
}

fn body(reader: &mut impl BufRead, encoding: &str, length: &str) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if encoding.eq_ignore_ascii_case("chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
            reader.by_ref().take(size).read_to_end(&mut body)?;
            reader.read_line(&mut line)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    reader.by_ref().take(length.parse().unwrap_or(0)).read_to_end(&mut body)?;
    Ok(body)
}

/// The name of a caller that gives one.
fn user(authorization: &str) -> Option<String> {
    let code = authorization.strip_prefix("Basic ")?;
    let mut decode = Command::new("base64");
    let mut child = decode.arg("-d").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take()?.write_all(code.as_bytes()).ok()?;
    let said = child.wait_with_output().ok()?.stdout;
    let text = String::from_utf8(said).ok()?;
    Some(text.split(':').next()?.to_string()).filter(|user| !user.is_empty())
}
