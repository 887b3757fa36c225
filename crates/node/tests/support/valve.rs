//! A way to a member over which nothing passes for a while.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on while it is open. Connections stay up while it is not, and nothing is lost.
pub(crate) struct Valve {
    /// Where to call, to get to the target.
    pub(crate) address: String,
    is_open: watch::Sender<bool>,
}

impl Valve {
    /// An open way to `target`.
    pub(crate) async fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (is_open, watching) = watch::channel(true);
        let watching = Arc::new(watching);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(&target).await else { continue };
                let (near_from, near_to) = near.into_split();
                let (far_from, far_to) = far.into_split();
                tokio::spawn(pass(near_from, far_to, watch::Receiver::clone(&watching)));
                tokio::spawn(pass(far_from, near_to, watch::Receiver::clone(&watching)));
            }
        });
        Valve { address, is_open }
    }

    /// From now on nothing passes.
    pub(crate) fn close(&self) {
        self.is_open.send_replace(false);
    }

    /// Everything passes again, what has come meanwhile too.
    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut is_open: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 << 10];
    // It ends with either side, or with the test.
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if is_open.wait_for(|is_open| *is_open).await.is_err()
            || to.write_all(&bytes[..count]).await.is_err()
        {
            return;
        }
    }
}
