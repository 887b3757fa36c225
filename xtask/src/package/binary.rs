//! The binary that is packed: where it comes from, and what it needs to run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// A binary of `catraca`.
pub(super) struct Binary {
    path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// The machine that it is for, as Rust calls it.
    pub(super) machine: &'static str,
    /// The shared libraries that it needs, with the loader; none for a static one.
    pub(super) libraries: Vec<PathBuf>,
}

impl Binary {
    /// Builds one for users: a static one where the system can, for this machine in any case.
    pub(super) fn build() -> Result<Self> {
        let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        let target = match no_musl(&musl)? {
            None => {
                println!("builds for {musl}: the binary needs nothing else");
                format!("--target {musl}")
            }
            Some(why) => {
                println!("builds for this system, with its C library: {why}");
                String::new()
            }
        };
        // Only the last step is another one than for a usual release build.
        shell::run(&format!(
            "cargo rustc --release --locked --package catraca --bin catraca {target} -- -C strip=symbols"
        ))?;
        let place = if target.is_empty() { String::new() } else { format!("{musl}/") };
        Self::read(&shell::built(&format!("{place}release/catraca")))
    }

    /// Takes one that is there.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let path = path
            .canonicalize()
            .with_context(|| format!("there is no binary at {}", path.display()))?;
        let bytes =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let machine = machine(&bytes)
            .with_context(|| format!("{} is no program for a known machine", path.display()))?;
        let libraries = libraries(&path)?;
        let binary = Binary { path, bytes, machine, libraries };
        let told = String::from_utf8_lossy(&binary.run(&["--version"])?).trim().to_string();
        let expected = format!("catraca {}", super::VERSION);
        if told != expected {
            bail!("{} is '{told}' and not '{expected}'", binary.path.display());
        }
        Ok(binary)
    }

    /// One that is packed and never run.
    #[cfg(test)]
    pub(super) fn for_tests(bytes: Vec<u8>) -> Self {
        Binary { path: PathBuf::new(), bytes, machine: "x86_64", libraries: Vec::new() }
    }

    /// What it prints.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = Command::new(&self.path).args(arguments).output();
        let output = output.with_context(|| format!("cannot run {}", self.path.display()))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_string();
            bail!("'catraca {}' failed: {why}", arguments.join(" "));
        }
        Ok(output.stdout)
    }

    /// What it is, in a sentence.
    pub(super) fn words(&self) -> String {
        let (size, machine) = (self.bytes.len() >> 20, self.machine);
        match self.libraries.len() {
            0 => format!("a static binary of {size} MiB for {machine}"),
            count => format!("a binary of {size} MiB for {machine} that needs {count} libraries"),
        }
    }

    /// The machine as Debian and container images call it.
    pub(super) fn architecture(&self) -> &'static str {
        if self.machine == "aarch64" { "arm64" } else { "amd64" }
    }

    /// The oldest version of the GNU C library that has everything the binary asks of it.
    pub(super) fn libc(&self) -> Option<(u32, u32)> {
        const MARK: &[u8] = b"GLIBC_";
        let found = self.bytes.windows(MARK.len()).enumerate().filter(|(_, part)| *part == MARK);
        let versions = found.filter_map(|(at, _)| {
            let rest = &self.bytes[at + MARK.len()..];
            let end = rest.iter().position(|&byte| !byte.is_ascii_digit() && byte != b'.')?;
            let text = std::str::from_utf8(&rest[..end]).ok()?;
            let mut numbers = text.split('.').map(|number| number.parse::<u32>().ok());
            Some((numbers.next()??, numbers.next()??))
        });
        versions.max()
    }
}

/// Why no static binary can be built, if so.
fn no_musl(target: &str) -> Result<Option<String>> {
    let output =
        Command::new("rustc").args(["--print", "sysroot"]).current_dir(shell::root()).output();
    let output = output.context("cannot run rustc")?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if !sysroot.join("lib/rustlib").join(target).is_dir() {
        return Ok(Some(format!(
            "the target {target} is not installed ('rustup target add {target}')"
        )));
    }
    if !shell::succeeds("musl-gcc --version") {
        return Ok(Some("musl-gcc is not there (Debian's package musl-tools)".to_string()));
    }
    Ok(None)
}

/// The machine that a program in the ELF format is for.
fn machine(bytes: &[u8]) -> Option<&'static str> {
    const PLACE: usize = 18;
    let number = bytes.strip_prefix(b"\x7fELF").and(bytes.get(PLACE..PLACE + 2))?;
    match number {
        [62, 0] => Some("x86_64"),
        [183, 0] => Some("aarch64"),
        _ => None,
    }
}

/// The files that the loader of this system takes for a program, with the loader itself.
fn libraries(path: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(path).env("LC_ALL", "C").output();
    let output = output.context("cannot run ldd, which tells the libraries of a program")?;
    // It fails for a static binary, of some kinds.
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.lines().filter(|line| !line.contains("not found"));
    let mut paths: Vec<PathBuf> = words
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect();
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn this_program_needs_the_c_library_of_this_system() {
        let path = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(machine(&bytes), Some(std::env::consts::ARCH));
        let libraries = libraries(&path).unwrap();
        let binary = Binary { path, bytes, machine: "x86_64", libraries };
        if binary.libraries.is_empty() {
            return;
        }
        let names: Vec<String> =
            binary.libraries.iter().map(|path| path.display().to_string()).collect();
        assert!(names.iter().any(|name| name.contains("libc.so")), "{names:?}");
        assert!(names.iter().any(|name| name.contains("/ld-")), "{names:?}");
        assert!(binary.libc().unwrap() >= (2, 17));
    }

    #[test]
    fn what_is_no_program_is_not_packed() {
        for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\nexit 0\n# and more of it\n"] {
            assert_eq!(machine(bytes), None);
        }
        assert!(Binary::read(Path::new("/etc/passwd")).is_err());
    }
}
