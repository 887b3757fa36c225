//! What a node is told about its audit log.

use std::path::PathBuf;

use serde::Deserialize;

/// A log is moved away when it is so long, unless said otherwise.
const USUAL_BYTES: u64 = 64 << 20;
/// So many old ones are kept, unless said otherwise.
const USUAL_KEEP: u32 = 5;
/// A log that is shorter would be moved away all the time.
const LEAST_BYTES: u64 = 4096;
/// More would take very long to move.
const MOST_KEPT: u32 = 1000;

/// Where a node writes down who holds what and who administers what, if anywhere.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AuditConfig {
    /// The file; without one nothing is written.
    pub file: Option<PathBuf>,
    /// It is moved away before it is longer.
    pub max_bytes: u64,
    /// How many files are kept that were moved away.
    pub keep: u32,
}

impl Default for AuditConfig {
    fn default() -> Self {
        AuditConfig { file: None, max_bytes: USUAL_BYTES, keep: USUAL_KEEP }
    }
}

impl AuditConfig {
    /// What is wrong with it, if something is: the key, what was given, and its range.
    pub(super) fn fault(&self) -> Option<(&'static str, u64, u64, u64)> {
        if self.max_bytes < LEAST_BYTES {
            return Some((MAX_BYTES, self.max_bytes, LEAST_BYTES, u64::MAX));
        }
        let keep = u64::from(self.keep);
        (self.keep > MOST_KEPT).then_some((KEEP, keep, 0, u64::from(MOST_KEPT)))
    }
}

pub(super) const MAX_BYTES: &str = "max-bytes of [audit]";
pub(super) const KEEP: &str = "keep of [audit]";
