//! Archives: tar, ar and gzip, with nothing in them that differs from run to run.

use std::io::Write;

use anyhow::{Result, ensure};
use flate2::{Compression, GzBuilder};

use super::tree::{Entry, Tree};

/// Everything in a tar archive comes in blocks of so many bytes.
const BLOCK: usize = 512;
/// A path in a header has at most so many bytes.
const LONGEST_PATH: usize = 100;
/// The largest number of eleven octal digits.
const LARGEST: u64 = (1 << 33) - 1;

/// A tar archive (POSIX ustar), with this time for all files.
pub(super) fn tar(tree: &Tree, time: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (path, entry) in tree.entries() {
        bytes.extend(header(path, entry, time)?);
        let content = entry.content.as_deref().unwrap_or_default();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    }
    // Two empty blocks are the end.
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    Ok(bytes)
}

fn header(path: &str, entry: &Entry, time: u64) -> Result<[u8; BLOCK]> {
    let size = entry.content.as_ref().map_or(0, |content| content.len() as u64);
    let (kind, end) = if entry.content.is_some() { (b'0', "") } else { (b'5', "/") };
    // Readers of Debian's packages expect paths to begin so.
    let path = format!("./{path}{end}");
    ensure!(path.len() <= LONGEST_PATH, "the path {path} is too long for an archive");
    ensure!(size <= LARGEST && time <= LARGEST, "{path} is too large for an archive");
    let mut block = [0; BLOCK];
    let mut put = |place: usize, bytes: &[u8]| {
        block[place..place + bytes.len()].copy_from_slice(bytes);
    };
    let name = |name: &[u8]| if entry.owner == 0 { name.to_vec() } else { Vec::new() };
    put(0, path.as_bytes());
    put(100, format!("{:07o}\0", entry.mode).as_bytes());
    put(108, format!("{:07o}\0", entry.owner).as_bytes());
    put(116, format!("{:07o}\0", entry.owner).as_bytes());
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, format!("{time:011o}\0").as_bytes());
    // The sum is made as if it were blank.
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, &name(b"root"));
    put(297, &name(b"root"));
    let sum: u32 = block.iter().copied().map(u32::from).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// An ar archive, as Debian's packages are.
pub(super) fn ar(members: &[(&str, &[u8])], time: u64) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let size = content.len();
        bytes.extend(format!("{name:<16}{time:<12}0     0     100644  {size:<10}`\n").as_bytes());
        bytes.extend(*content);
        if size % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// The same bytes, smaller.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    // Neither a name nor a time. 255 is 'unknown', whatever system this is.
    let builder = GzBuilder::new().mtime(0).operating_system(255);
    let mut encoder = builder.write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn an_archive_has_its_files_in_order_whatever_the_order_of_putting_them() {
        let (mut one, mut other) = (Tree::default(), Tree::default());
        one.file("a/b", 0o644, b"1".to_vec());
        one.folder("z", 0o750, 7);
        other.folder("z", 0o750, 7);
        other.file("a/b", 0o644, b"1".to_vec());
        let bytes = tar(&one, 1_000_000_000).unwrap();
        assert_eq!(bytes, tar(&other, 1_000_000_000).unwrap());
        // Two folders, a file with its content, and the end.
        assert_eq!(bytes.len(), 6 * BLOCK);
        assert!(bytes.starts_with(b"./a/\0"));
        assert!(bytes[BLOCK..].starts_with(b"./a/b\0"));
        assert_eq!(bytes[2 * BLOCK..][..2], *b"1\0");
        assert_eq!(gzip(&bytes).unwrap(), gzip(&bytes).unwrap());
    }

    #[test]
    fn what_does_not_fit_a_header_is_refused() {
        let mut tree = Tree::default();
        tree.file(&"x".repeat(LONGEST_PATH - 2), 0o644, Vec::new());
        assert!(tar(&tree, 0).is_ok());
        assert!(tar(&tree, LARGEST + 1).is_err());
        tree.file(&"x".repeat(LONGEST_PATH - 1), 0o644, Vec::new());
        assert!(tar(&tree, 0).is_err());
    }

    #[test]
    fn members_of_an_ar_archive_begin_at_even_places() {
        let bytes = ar(&[("one", b"1"), ("two", b"22")], 5);
        let text = String::from_utf8(bytes).unwrap();
        let head = |name: &str, size: &str| {
            format!("{name:<16}5           0     0     100644  {size:<10}`\n")
        };
        assert_eq!(text, format!("!<arch>\n{}1\n{}22", head("one", "1"), head("two", "2")));
    }
}
