//! What a link writes to and reads from: a connection over TCP as it is, or over TLS.
//!
//! Whoever has something to send writes it from where it stands, without waiting. Over TLS the state of
//! the connection is behind a short mutex, which the reader takes too; nothing else is taken while it is
//! held.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex};

use catraca_client::stream::Stream;
use rustls::Connection;
use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_rustls::TlsStream;

use crate::mutex::hold;

/// How many encrypted bytes wait at the most for a connection that takes nothing.
const MOST_WAITING: usize = 256 << 10;
/// How much is read at once over TLS.
const CHUNK: usize = 64 << 10;

/// Where a link writes.
#[derive(Debug)]
pub(crate) enum WireWriter {
    Plain(OwnedWriteHalf),
    Safe(Arc<Safe>),
}

/// Where a link reads.
pub(crate) enum WireReader {
    Plain(OwnedReadHalf),
    Safe { safe: Arc<Safe>, buffer: Vec<u8> },
}

/// A connection over TLS whose handshake is over.
#[derive(Debug)]
pub(crate) struct Safe {
    socket: TcpStream,
    connection: Mutex<Connection>,
}

/// Both ends of a connection between members. Nothing if it is no connection over a network.
pub(crate) fn split(stream: Stream) -> Option<(WireReader, WireWriter)> {
    let (socket, mut connection): (TcpStream, Connection) = match stream {
        Stream::Unix(_) => return None,
        Stream::Tcp(stream) => {
            let (reader, writer) = stream.into_split();
            return Some((WireReader::Plain(reader), WireWriter::Plain(writer)));
        }
        Stream::Tls(stream) => match *stream {
            TlsStream::Client(stream) => {
                let (socket, connection) = stream.into_inner();
                (socket, connection.into())
            }
            TlsStream::Server(stream) => {
                let (socket, connection) = stream.into_inner();
                (socket, connection.into())
            }
        },
    };
    connection.set_buffer_limit(Some(MOST_WAITING));
    let safe = Arc::new(Safe { socket, connection: Mutex::new(connection) });
    let reader = WireReader::Safe { safe: Arc::clone(&safe), buffer: vec![0; CHUNK] };
    Some((reader, WireWriter::Safe(safe)))
}

impl WireWriter {
    /// Takes as many bytes as it can without waiting.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            WireWriter::Plain(stream) => stream.try_write(bytes),
            WireWriter::Safe(safe) => safe.try_write(bytes),
        }
    }

    /// Sends what was taken and has not left. An error that says it would have to wait if something stays.
    pub(crate) fn try_flush(&self) -> io::Result<()> {
        match self {
            WireWriter::Plain(_) => Ok(()),
            WireWriter::Safe(safe) => safe.send(&mut hold(&safe.connection)),
        }
    }

    /// Waits until something can be written.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.socket().writable().await
    }

    /// Ends the connection in both directions, which its reader notices.
    pub(crate) fn shut_down(&self) -> io::Result<()> {
        SockRef::from(self.socket()).shutdown(Shutdown::Both)
    }

    /// The socket under it.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            WireWriter::Plain(stream) => stream.as_ref(),
            WireWriter::Safe(safe) => &safe.socket,
        }
    }
}

impl WireReader {
    /// Reads what has come, after what is in `bytes`. 0 at the end.
    pub(crate) async fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            WireReader::Plain(stream) => stream.read_buf(bytes).await,
            WireReader::Safe { safe, buffer } => loop {
                match safe.try_read(buffer) {
                    Ok(read) => {
                        bytes.extend_from_slice(&buffer[..read]);
                        return Ok(read);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        safe.socket.readable().await?;
                    }
                    Err(error) => return Err(error),
                }
            },
        }
    }
}

impl Safe {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let connection = &mut *hold(&self.connection);
        // What was taken before goes first.
        self.send(connection)?;
        let taken = connection.writer().write(bytes)?;
        match self.send(connection) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what is encrypted already.
    fn send(&self, connection: &mut Connection) -> io::Result<()> {
        while connection.wants_write() {
            connection.write_tls(&mut Socket(&self.socket))?;
        }
        Ok(())
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let connection = &mut *hold(&self.connection);
        loop {
            match connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            // At the end of the connection the reader says so.
            connection.read_tls(&mut Socket(&self.socket))?;
            let processed = connection.process_new_packets();
            // The other side is to hear what is wrong. If it cannot, the connection ends all the same.
            let _ = self.send(connection);
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
    }
}

/// A socket that is read and written without waiting.
struct Socket<'a>(&'a TcpStream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tokio::net::TcpListener;

    use super::*;
    use crate::config::TlsFiles;
    use crate::tls::Tls;

    /// Two ends of a connection between members.
    async fn pair() -> [(WireReader, WireWriter); 2] {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["a".to_string()]).unwrap();
        let (certificate, key) = (folder.path().join("a.pem"), folder.path().join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let authority = Some(certificate.clone());
        let tls = Tls::new(&TlsFiles { certificate, key, authority }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answered = async { tls.accept(listener.accept().await.unwrap().0).await.unwrap().0 };
        let called =
            async { tls.call(TcpStream::connect(address).await.unwrap(), "a").await.unwrap() };
        let (answered, called) = tokio::join!(answered, called);
        [answered, called].map(|stream| split(stream).unwrap())
    }

    #[tokio::test]
    async fn what_a_connection_does_not_take_at_once_comes_later_and_in_order() {
        let [(mut reader, _kept), (_other, writer)] = pair().await;
        let all: Vec<u8> = (0..20_000_000u32).map(|it| (it / 7) as u8).collect();
        let mut written = 0;
        let full = loop {
            match writer.try_write(&all[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) => break error.kind(),
            }
        };
        assert_eq!(full, ErrorKind::WouldBlock);
        assert!(written < all.len(), "there is no limit");
        assert_eq!(writer.try_flush().unwrap_err().kind(), ErrorKind::WouldBlock);
        let writing = async {
            while written < all.len() || writer.try_flush().is_err() {
                writer.writable().await.unwrap();
                if let Ok(bytes) = writer.try_write(&all[written..]) {
                    written += bytes;
                }
            }
        };
        let reading = async {
            let mut came = Vec::new();
            while came.len() < all.len() {
                assert!(reader.read(&mut came).await.unwrap() > 0);
            }
            came
        };
        let ((), came) = tokio::join!(writing, reading);
        assert!(came == all, "it came as it was sent");
    }

    #[tokio::test]
    async fn a_connection_that_is_shut_down_or_tampered_with_ends() {
        let [(mut reader, writer), (mut other, far)] = pair().await;
        writer.try_write(b"x").unwrap();
        let mut came = Vec::new();
        assert_eq!(other.read(&mut came).await.unwrap(), 1);
        // Whoever sits between the two cannot say anything.
        far.socket()
            .try_write(&[
                0x17, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                19, 20,
            ])
            .unwrap();
        assert_eq!(reader.read(&mut came).await.unwrap_err().kind(), ErrorKind::InvalidData);
        far.shut_down().unwrap();
        assert!(other.read(&mut came).await.is_err());
        assert_eq!(came, b"x");
    }
}
