//! The interfaces beside the native one, over TLS.

use std::net::SocketAddr;

use catraca_client::Credentials;
use catraca_client::stream::Stream;
use catraca_node::{Config, Node, SecurityConfig};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::GENEROUS;
use crate::pki::{Authority, Kind, credentials};

/// One of them.
#[derive(Clone, Copy, Debug)]
enum Face {
    Http,
    Resp,
}

impl Face {
    const ALL: [Face; 2] = [Face::Http, Face::Resp];

    fn at(self, node: &Node) -> SocketAddr {
        let address = match self {
            Face::Http => node.http_address(),
            Face::Resp => node.resp_address(),
        };
        address.unwrap()
    }

    /// Asks for what only somebody is told who is known.
    async fn ask(self, stream: &mut Stream) -> Result<(), String> {
        let (question, answer, end) = match self {
            Face::Http => {
                ("HEAD /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200", "\r\n\r\n")
            }
            Face::Resp => ("EXISTS x\r\n", ":0", "\r\n"),
        };
        let mut heard = Vec::new();
        let asking = async {
            stream.write_all(question.as_bytes()).await?;
            stream.flush().await?;
            while !heard.ends_with(end.as_bytes()) {
                if stream.read_buf(&mut heard).await? == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        };
        let asked = tokio::time::timeout(GENEROUS, asking).await.expect("an answer or an end");
        asked.map_err(|error: std::io::Error| error.to_string())?;
        let heard = String::from_utf8(heard).unwrap();
        if heard.starts_with(answer) { Ok(()) } else { Err(heard) }
    }

    /// A connection that is served.
    async fn open(self, node: &Node, shown: &Credentials) -> Result<Stream, String> {
        let stream = TcpStream::connect(self.at(node)).await.unwrap();
        let opened = shown.tls().unwrap().connect(stream, "127.0.0.1").await;
        let mut stream = opened.map_err(|error| error.to_string())?;
        self.ask(&mut stream).await?;
        Ok(stream)
    }
}

/// A node that serves every interface.
async fn with_faces(security: SecurityConfig) -> Node {
    let mut config = Config::alone();
    let anywhere = || Some("127.0.0.1:0".to_string());
    (config.listen, config.http.listen, config.resp.listen) = (anywhere(), anywhere(), anywhere());
    config.security = security;
    let node = Node::start(config).await.unwrap();
    node.ready().await.unwrap();
    node
}

#[tokio::test]
async fn every_interface_judges_certificates_and_takes_new_ones_without_dropping_connections() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) =
        (Authority::new(folder.path(), "ca"), Authority::new(folder.path(), "other"));
    let mut security = authority.member("alone");
    let trusted = folder.path().join("trusted.pem");
    std::fs::copy(&authority.file, &trusted).unwrap();
    security.tls.as_mut().unwrap().authority = Some(trusted.clone());
    let node = with_faces(security).await;
    let ana = authority.client("ana", Kind::Client);
    let bo = other.client("bo", Kind::Client);
    let mut kept = Vec::new();
    for face in Face::ALL {
        kept.push((face, face.open(&node, &ana).await.unwrap()));
        let nothing_shown = credentials(&authority.file, None);
        let expired = authority.client("late", Kind::Expired);
        let strangers = other.issue("eve", "eve", Kind::Client);
        let strangers = (&*strangers.certificate, &*strangers.key);
        let stranger = credentials(&authority.file, Some(strangers));
        for shown in [&nothing_shown, &expired, &stranger, &bo] {
            assert!(face.open(&node, shown).await.is_err(), "{face:?}");
        }
    }
    // Another authority, and a certificate of it.
    std::fs::copy(&other.file, &trusted).unwrap();
    other.issue("alone", "alone", Kind::Member);
    node.reload().unwrap();
    for (face, mut stream) in kept {
        face.ask(&mut stream).await.unwrap();
        assert!(face.open(&node, &ana).await.is_err(), "{face:?}");
        face.open(&node, &bo).await.unwrap();
    }
    // The node's own has expired.
    other.issue("alone", "alone", Kind::Expired);
    node.reload().unwrap();
    for face in Face::ALL {
        let why = face.open(&node, &bo).await.map(drop).unwrap_err();
        assert!(why.contains("expired"), "{face:?}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_never_end_keep_nobody_out_of_any_interface() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    let node = with_faces(authority.member("alone")).await;
    let mut endless = Vec::new();
    for number in 0..500 {
        for face in Face::ALL {
            let mut stream = TcpStream::connect(face.at(&node)).await.unwrap();
            if number % 2 == 0 {
                // The beginning of a record that announces more.
                stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
            }
            endless.push(stream);
        }
    }
    let ana = authority.client("ana", Kind::Client);
    for face in Face::ALL {
        for _ in 0..10 {
            face.open(&node, &ana).await.unwrap();
        }
    }
    for mut stream in endless {
        let end = tokio::time::timeout(GENEROUS, stream.read(&mut [0; 64])).await;
        assert!(matches!(end.expect("it is cut off"), Ok(_) | Err(_)));
    }
}
