//! A port: whoever calls is taken, and served by a task of its own.
//!
//! Every interface has its own port, and all take calls in this one way. A call that cannot be taken ends
//! nothing: most likely too many files are open, and others will close theirs.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::socket::Socket;

/// When no call can be taken, it is tried again after so long.
const PAUSE: Duration = Duration::from_secs(1);

/// Where calls come in.
pub(crate) trait Port {
    /// A connection, and from where.
    type Call;

    /// The next one.
    fn next(&self) -> impl Future<Output = io::Result<Self::Call>> + Send;
}

impl Port for TcpListener {
    type Call = (TcpStream, SocketAddr);

    async fn next(&self) -> io::Result<Self::Call> {
        self.accept().await
    }
}

/// All who call here are users of this machine.
impl Port for Socket {
    type Call = UnixStream;

    async fn next(&self) -> io::Result<Self::Call> {
        self.accept().await
    }
}

/// Takes one call after the other, for as long as it is polled. `serve` makes a task of a call, which then
/// runs among `tasks`, or turns it away by making none.
pub(crate) async fn take_calls<P: Port, T>(
    port: &P,
    tasks: &mut JoinSet<()>,
    mut serve: impl FnMut(P::Call) -> Option<T>,
) -> Infallible
where
    T: Future<Output = ()> + Send + 'static,
{
    loop {
        let taken = tokio::select! {
            taken = port.next() => taken,
            Some(_) = tasks.join_next() => continue,
        };
        match taken.map(&mut serve) {
            Ok(Some(task)) => {
                tasks.spawn(task);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "a call could not be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A port at which the first calls cannot be taken, and then numbers call.
    struct Troubled(AtomicUsize);

    impl Port for Troubled {
        type Call = usize;

        async fn next(&self) -> io::Result<usize> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0..3 => Err(io::Error::other("too many open files")),
                number @ 3..9 => Ok(number),
                _ => std::future::pending().await,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_cannot_be_taken_keep_nobody_out_for_long_and_some_are_turned_away() {
        let (port, mut tasks) = (Troubled(AtomicUsize::new(0)), JoinSet::new());
        let (tell, mut served) = tokio::sync::mpsc::unbounded_channel();
        let began = tokio::time::Instant::now();
        let taking = take_calls(&port, &mut tasks, |number| {
            let tell = tell.clone();
            (number % 2 == 0).then_some(async move { tell.send(number).unwrap() })
        });
        let hearing = async { [served.recv().await, served.recv().await, served.recv().await] };
        tokio::select! {
            heard = hearing => assert_eq!(heard, [Some(4), Some(6), Some(8)]),
            never = taking => match never {},
        }
        assert_eq!(began.elapsed(), 3 * PAUSE);
    }

    #[tokio::test]
    async fn tasks_that_have_ended_are_not_kept() {
        let (port, mut tasks) = (Troubled(AtomicUsize::new(3)), JoinSet::new());
        let left = Arc::new(AtomicUsize::new(0));
        let taking = take_calls(&port, &mut tasks, |_| {
            let left = Arc::clone(&left);
            Some(async move {
                left.fetch_add(1, Ordering::Relaxed);
            })
        });
        let all_ran = async {
            while left.load(Ordering::Relaxed) < 6 {
                tokio::task::yield_now().await;
            }
            // The port is polled once more after the last one.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = all_ran => {}
            never = taking => match never {},
        }
        assert!(tasks.is_empty(), "{} are left", tasks.len());
    }
}
