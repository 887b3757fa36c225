//! How much memory the process uses.

use std::fs;

/// Resident memory in bytes, where the system tells.
pub(crate) fn resident() -> Option<u64> {
    // 'VmRSS:      1234 kB'. Other than statm it does not count in pages of unknown size.
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_grows_with_what_is_allocated_and_touched() {
        const BLOCK: usize = 64 << 20;
        let before = resident().unwrap();
        let block = std::hint::black_box(vec![1u8; BLOCK]);
        let grown = resident().unwrap().saturating_sub(before);
        assert!(grown > BLOCK as u64 / 2, "{grown} bytes more after touching {}", block.len());
    }
}
