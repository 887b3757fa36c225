//! Nodes that serve the dashboard, and what is asked of them beside it.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::Folder;
use super::service::{Process, Service, addresses};

/// A group whose members serve HTTP, and where.
pub(crate) struct Group {
    pub(crate) service: Service,
    pub(crate) http: Vec<String>,
}

impl Group {
    /// So many members, with these flags.
    pub(crate) fn start(count: u16, flags: &[&str]) -> Self {
        let folder = Folder::new();
        let service = Service { folder, addresses: addresses(count), nodes: Vec::new() };
        let mut group = Group { service, http: addresses(count) };
        let node = |member: usize| -> Process {
            let http = ["--http", &group.http[member]];
            group.service.node(member, &[flags, &http].concat())
        };
        let nodes = (0..usize::from(count)).map(node).collect();
        group.service.nodes = nodes;
        for (node, address) in group.service.nodes.iter().zip(&group.service.addresses) {
            node.says(&format!("listens at {address}"));
        }
        group
    }

    /// Where a member shows this part of its dashboard.
    pub(crate) fn page(&self, member: usize, part: &str) -> String {
        format!("http://{}/#/{part}", self.http[member])
    }
}

/// Asks a node, and reads its answer: the status, and the body.
pub(crate) fn ask(
    at: &str,
    who: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> (u16, Value) {
    let mut stream = TcpStream::connect(at).unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nAuthorization: {who}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}
