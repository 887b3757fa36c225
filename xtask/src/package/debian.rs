//! A package for Debian and its relatives.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::binary::Binary;
use super::tree::Tree;
use super::{VERSION, archive, source};

const MAINTAINER: &str = "The Catraca authors <catraca@example.org>";
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: catraca

Files: *
Copyright: 2026 The Catraca authors
License: Expat or Apache-2.0

License: Apache-2.0
 On Debian systems the text of this licence is in /usr/share/common-licenses/Apache-2.0.

License: Expat
";

pub(super) fn file_name(binary: &Binary) -> String {
    format!("catraca_{VERSION}_{}.deb", binary.architecture())
}

/// The package, as bytes.
pub(super) fn package(binary: &Binary, shared: &Tree, time: u64) -> Result<Vec<u8>> {
    let data = data(binary, shared)?;
    let control = control(binary, &data)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive::gzip(&archive::tar(&control, time)?)?),
        ("data.tar.gz", archive::gzip(&archive::tar(&data, time)?)?),
    ];
    let members: Vec<(&str, &[u8])> =
        members.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    Ok(archive::ar(&members, time))
}

/// What is installed.
fn data(binary: &Binary, shared: &Tree) -> Result<Tree> {
    let mut tree = Tree::default();
    tree.file("usr/bin/catraca", 0o755, binary.bytes.clone());
    tree.merge("usr", shared);
    tree.file(
        "usr/lib/systemd/system/catraca.service",
        0o644,
        source("packaging/catraca.service")?,
    );
    tree.file("etc/catraca/catraca.toml", 0o644, source("packaging/catraca.toml")?);
    let documents = "usr/share/doc/catraca";
    tree.file(&format!("{documents}/copyright"), 0o644, copyright()?);
    let changes = archive::gzip(&source("CHANGELOG.md")?)?;
    tree.file(&format!("{documents}/NEWS.gz"), 0o644, changes);
    // As they are: they lead to each other, and to pictures.
    tree.merge(documents, &super::documents()?);
    Ok(tree)
}

/// The terms, in the form that Debian reads: the text of the short one as a whole.
fn copyright() -> Result<Vec<u8>> {
    let mut text = COPYRIGHT.to_string();
    let licence = String::from_utf8(source("LICENSE-MIT")?).context("LICENSE-MIT is not text")?;
    for line in licence.lines() {
        let line = if line.is_empty() { "." } else { line };
        text += &format!(" {line}\n");
    }
    Ok(text.into_bytes())
}

/// What is told about it, and what runs when it comes and goes.
fn control(binary: &Binary, data: &Tree) -> Result<Tree> {
    let mut tree = Tree::default();
    let size: usize = data.files().map(|(_, content)| content.len()).sum();
    let libraries = match binary.libc() {
        Some((major, minor)) if !binary.libraries.is_empty() => {
            format!("libc6 (>= {major}.{minor}), libgcc-s1, ")
        }
        _ => String::new(),
    };
    let text = format!(
        "\
Package: catraca
Version: {VERSION}
Architecture: {}
Maintainer: {MAINTAINER}
Installed-Size: {}
Depends: {libraries}adduser, init-system-helpers (>= 1.51)
Section: net
Priority: optional
Description: locks for programs, scripts and jobs of several machines
 A group of nodes grants named locks, semaphores and sets of locks. Every grant
 carries a number to fence with. Nodes may crash, pause, be cut off and come
 back: nobody is let in beside a holder.
 .
 This package has the program and a service that runs one node.
",
        binary.architecture(),
        size.div_ceil(1024),
    );
    tree.file("control", 0o644, text.into_bytes());
    tree.file("conffiles", 0o644, b"/etc/catraca/catraca.toml\n".to_vec());
    for script in ["postinst", "prerm", "postrm"] {
        tree.file(script, 0o755, source(&format!("packaging/debian/{script}"))?);
    }
    if let Some(sums) = sums(data)? {
        tree.file("md5sums", 0o644, sums);
    }
    Ok(tree)
}

/// What 'dpkg --verify' compares with, where coreutils can say so: the sums that Debian has always had.
fn sums(data: &Tree) -> Result<Option<Vec<u8>>> {
    let mut lines = Vec::new();
    for (path, content) in data.files().filter(|(path, _)| !path.starts_with("etc/")) {
        let mut command = Command::new("md5sum");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = child else { return Ok(None) };
        // It says what it has read when its input ends, and not before.
        child.stdin.take().context("it has an input")?.write_all(content)?;
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some(sum) = text.split_whitespace().next().filter(|_| output.status.success()) else {
            bail!("md5sum failed ({})", output.status);
        };
        lines.extend(format!("{sum}  {path}\n").into_bytes());
    }
    Ok(Some(lines))
}
