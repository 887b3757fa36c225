//! Bytes that nobody can guess.

use std::cell::RefCell;

use rustix::rand::{GetRandomFlags, getrandom};

/// How many bytes are fetched at once: asking the system takes longer than the rest of a request.
const STOCK: usize = 512;

/// Bytes of the system's random source that nobody has had yet.
struct Stock {
    bytes: [u8; STOCK],
    /// So many at the beginning are used up.
    used: usize,
}

thread_local! {
    static FETCHED: RefCell<Stock> = const { RefCell::new(Stock { bytes: [0; STOCK], used: STOCK }) };
}

/// So many bytes from the system's random source, which nobody gets a second time.
pub(crate) fn secret<const COUNT: usize>() -> [u8; COUNT] {
    const { assert!(COUNT <= STOCK, "more than is fetched at once") };
    FETCHED.with_borrow_mut(|stock| {
        if STOCK - stock.used < COUNT {
            fetch(&mut stock.bytes);
            stock.used = 0;
        }
        let taken = &mut stock.bytes[stock.used..][..COUNT];
        stock.used += COUNT;
        let mut secret = [0; COUNT];
        secret.copy_from_slice(taken);
        // What was given away is not kept.
        taken.fill(0);
        secret
    })
}

fn fetch(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                // Without secrets anybody could use anybody's sessions and holds.
                tracing::error!(%error, "the system has no random numbers; this process ends");
                std::process::abort();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_secret_comes_twice_whatever_was_fetched_at_once() {
        let mut seen = BTreeSet::new();
        for _ in 0..10 * STOCK / 16 {
            assert!(seen.insert(secret::<16>()));
        }
        // A part of what is left is never given together with bytes that were given away.
        for _ in 0..100 {
            let secret = secret::<48>();
            assert!(!secret.windows(16).any(|part| part == [0; 16]));
        }
    }
}
