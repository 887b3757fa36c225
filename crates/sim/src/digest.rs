//! A number that identifies a whole run: equal runs have equal digests, on every machine.

use catraca_trace::Event;

/// FNV-1a over the lines that a trace file would hold. Written here because it must never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Takes one event in.
    pub fn add(&mut self, event: &Event) {
        // An event is plain data that JSON can always say.
        self.add_bytes(&serde_json::to_vec(event).unwrap_or_default());
    }

    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
