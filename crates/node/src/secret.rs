//! Bytes that nobody can guess.

use rustix::rand::{GetRandomFlags, getrandom};

/// So many bytes from the system's random source.
pub(crate) fn secret<const COUNT: usize>() -> [u8; COUNT] {
    let mut secret = [0; COUNT];
    let mut filled = 0;
    while filled < COUNT {
        match getrandom(&mut secret[filled..], GetRandomFlags::empty()) {
            Ok(bytes) => filled += bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                // Without secrets anybody could use anybody's sessions and holds.
                tracing::error!(%error, "the system has no random numbers; this process ends");
                std::process::abort();
            }
        }
    }
    secret
}
