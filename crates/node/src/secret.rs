//! Secrets, from the random source of the system.

/// Bytes that nobody can guess.
pub(crate) fn secret<const BYTES: usize>() -> [u8; BYTES] {
    let mut secret = [0; BYTES];
    let mut filled = 0;
    while filled < secret.len() {
        match rustix::rand::getrandom(&mut secret[filled..], rustix::rand::GetRandomFlags::empty())
        {
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
