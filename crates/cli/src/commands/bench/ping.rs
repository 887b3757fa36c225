//! What the machine itself can do: 32 bytes to another process and back.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::median;
use super::peer::{Cores, Peer};

const BYTES: usize = 32;

/// One way of 32 bytes between two processes, in nanoseconds.
pub(super) fn one_way(time: Duration, cores: Cores) -> Result<u64> {
    let mut echo = Peer::start(&["echo"], cores)?;
    let address = echo.line()?;
    let mut ping = Peer::start(&["ping", &address, &time.as_secs_f64().to_string()], cores)?;
    Ok(ping.line()?.parse()?)
}

/// The peer that answers.
pub(super) fn echo(mut say: impl FnMut(&str)) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    say(&listener.local_addr()?.to_string());
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut bytes = [0; BYTES];
    while stream.read_exact(&mut bytes).is_ok() {
        stream.write_all(&bytes)?;
    }
    Ok(())
}

/// The peer that asks, and measures.
pub(super) fn ping(address: &str, time: Duration, mut say: impl FnMut(&str)) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut bytes = [0; BYTES];
    let mut trips = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < time {
        let start = Instant::now();
        stream.write_all(&bytes)?;
        stream.read_exact(&mut bytes)?;
        trips.push(start.elapsed().as_nanos() as u64);
    }
    say(&(median(&mut trips) / 2).to_string());
    Ok(())
}
