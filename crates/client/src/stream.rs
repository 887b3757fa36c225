//! A connection to somebody: over TCP, over TLS, or by a Unix socket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio_rustls::TlsStream;

/// A connection. What is written over TLS leaves at the latest when it is flushed.
#[derive(Debug)]
pub enum Stream {
    /// As it is.
    Tcp(TcpStream),
    /// To a process of this machine.
    Unix(UnixStream),
    /// Nobody between the two ends can read or change it.
    Tls(Box<TlsStream<TcpStream>>),
}

/// The half of a connection that is read.
#[derive(Debug)]
pub enum Reader {
    /// Over TCP.
    Tcp(tcp::OwnedReadHalf),
    /// By a Unix socket.
    Unix(unix::OwnedReadHalf),
    /// Over TLS.
    Tls(ReadHalf<Box<TlsStream<TcpStream>>>),
}

/// The half of a connection that is written.
#[derive(Debug)]
pub enum Writer {
    /// Over TCP.
    Tcp(tcp::OwnedWriteHalf),
    /// By a Unix socket.
    Unix(unix::OwnedWriteHalf),
    /// Over TLS.
    Tls(WriteHalf<Box<TlsStream<TcpStream>>>),
}

impl Stream {
    /// Both halves, which may be used at the same time.
    pub fn into_split(self) -> (Reader, Writer) {
        match self {
            Stream::Tcp(stream) => {
                let (reader, writer) = stream.into_split();
                (Reader::Tcp(reader), Writer::Tcp(writer))
            }
            Stream::Unix(stream) => {
                let (reader, writer) = stream.into_split();
                (Reader::Unix(reader), Writer::Unix(writer))
            }
            Stream::Tls(stream) => {
                let (reader, writer) = tokio::io::split(stream);
                (Reader::Tls(reader), Writer::Tls(writer))
            }
        }
    }
}

/// Does the same with whatever the connection is.
macro_rules! with_any {
    ($connection:expr, $of:ident, $inner:ident => $do:expr) => {
        match $connection.get_mut() {
            $of::Tcp($inner) => $do,
            $of::Unix($inner) => $do,
            $of::Tls($inner) => $do,
        }
    };
}

macro_rules! read_by_its_kind {
    ($of:ident) => {
        impl AsyncRead for $of {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                with_any!(self, $of, inner => Pin::new(inner).poll_read(context, buffer))
            }
        }
    };
}

macro_rules! write_by_its_kind {
    ($of:ident) => {
        impl AsyncWrite for $of {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                with_any!(self, $of, inner => Pin::new(inner).poll_write(context, bytes))
            }

            fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                with_any!(self, $of, inner => Pin::new(inner).poll_flush(context))
            }

            fn poll_shutdown(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                with_any!(self, $of, inner => Pin::new(inner).poll_shutdown(context))
            }
        }
    };
}

read_by_its_kind!(Stream);
read_by_its_kind!(Reader);
write_by_its_kind!(Stream);
write_by_its_kind!(Writer);
