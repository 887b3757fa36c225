//! Whatever reads bytes from outside, with bytes that nobody has thought of.
//!
//! The inputs are those of `fuzz/corpus`, changed at random. `fuzz/` has the same targets for cargo-fuzz,
//! which looks where an input leads, but needs a compiler that is not released.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use catraca_node::fuzzing::{TARGETS, Target};
use catraca_sim::Random;

use crate::shell;

/// No input is longer, in bytes.
const LONGEST: usize = 64 << 10;
/// Nothing reads an input for so long, on the busiest machine.
const SLOW: Duration = Duration::from_secs(10);
/// At most so many changes are made to an input.
const MOST_CHANGES: u64 = 8;
/// Bytes at which something ends or begins.
const EDGES: &[u8] = &[0, 1, 0x0a, 0x0d, b'"', b'$', b'*', b'-', b'{', 0x7f, 0x80, 0xfe, 0xff];

/// All targets, for `time` together.
pub(crate) fn all(seed: u64, time: Duration) -> Result<()> {
    println!("{:<20} {:>10} {:>13}", "target", "corpus", "inputs");
    for target in TARGETS {
        let corpus = corpus(target.name)?;
        let inputs = fuzz(target, &corpus, seed, time / TARGETS.len() as u32)?;
        println!("{:<20} {:>10} {inputs:>13}", target.name, corpus.len());
    }
    Ok(())
}

/// All targets with cargo-fuzz, which looks where an input leads, for `time` together; if it is there.
pub(crate) fn guided(time: Duration) -> Result<()> {
    if !shell::succeeds("cargo +nightly fuzz --version") {
        println!("cargo-fuzz was left out: 'cargo +nightly fuzz' does not run here");
        return Ok(());
    }
    for target in TARGETS {
        std::fs::create_dir_all(shell::root().join("target/fuzz-corpus").join(target.name))?;
        shell::run(&guided_command(target.name, time / TARGETS.len() as u32))?;
    }
    Ok(())
}

/// What it finds new is written to the first folder, which is not kept; from the others it only reads.
fn guided_command(target: &str, time: Duration) -> String {
    let (seconds, slow) = (time.as_secs().max(1), SLOW.as_secs());
    format!(
        "cargo +nightly fuzz run {target} target/fuzz-corpus/{target} fuzz/corpus/{target} -- \
         -max_total_time={seconds} -max_len={LONGEST} -timeout={slow}"
    )
}

/// The inputs that are kept for a target.
fn corpus(target: &str) -> Result<Vec<Vec<u8>>> {
    let folder = shell::root().join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder);
    let entries = entries.with_context(|| format!("no corpus at {}", folder.display()))?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    // A run depends on its seed alone.
    files.sort();
    files.iter().map(|file| Ok(std::fs::read(file)?)).collect()
}

/// Every input of the corpus, and then changed ones until the time is over. Returns how many there were.
fn fuzz(target: &Target, corpus: &[Vec<u8>], seed: u64, time: Duration) -> Result<u64> {
    for input in corpus {
        give(target, input)?;
    }
    let (began, mut random) = (Instant::now(), Random::new(seed));
    let mut inputs = corpus.len() as u64;
    while began.elapsed() < time {
        give(target, &changed(corpus, &mut random))?;
        inputs += 1;
    }
    Ok(inputs)
}

/// Gives a target one input. One that it cannot stand is kept.
fn give(target: &Target, input: &[u8]) -> Result<()> {
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(input)));
    let what = match outcome {
        Ok(()) if began.elapsed() < SLOW => return Ok(()),
        Ok(()) => "takes too long for",
        Err(_) => "panics at",
    };
    let folder = shell::root().join("target/fuzz").join(target.name);
    std::fs::create_dir_all(&folder)?;
    let digest = input
        .iter()
        .fold(0u64, |sum, &byte| sum.wrapping_mul(0x100_0000_01b3).wrapping_add(u64::from(byte)));
    let file = folder.join(format!("{digest:016x}"));
    std::fs::write(&file, input)?;
    let (name, file) = (target.name, file.display());
    bail!(
        "'{name}' {what} {file}: move it to fuzz/corpus/{name}, and 'cargo nextest run -p xtask' shows it"
    )
}

/// Something of the corpus, with some changes.
fn changed(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = picked(corpus, random).to_vec();
    for _ in 0..=random.below(MOST_CHANGES) {
        change(&mut bytes, corpus, random);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn picked<'a>(corpus: &'a [Vec<u8>], random: &mut Random) -> &'a [u8] {
    match corpus.len() {
        0 => &[],
        count => &corpus[random.below(count as u64) as usize],
    }
}

/// One change.
fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let (start, end) = range(bytes.len(), random);
    match random.below(8) {
        0 => bytes.truncate(start),
        1 => drop(bytes.drain(start..end)),
        // Something twice.
        2 => {
            let copy = bytes[start..end].to_vec();
            bytes.splice(start..start, copy);
        }
        // A piece of something else.
        3 => {
            let other = picked(corpus, random);
            let (from, to) = range(other.len(), random);
            bytes.splice(start..end, other[from..to].iter().copied());
        }
        4 => {
            let edge = EDGES[random.below(EDGES.len() as u64) as usize];
            bytes.insert(start, edge);
        }
        // A number that is too large for what it counts.
        5 => {
            let digits = ["0", "-1", "65536", "4294967296", "9223372036854775808"];
            let digits = digits[random.below(digits.len() as u64) as usize];
            bytes.splice(start..end.min(start + 4), digits.bytes());
        }
        _ => {
            if let Some(byte) = bytes.get_mut(start) {
                *byte = match random.below(3) {
                    0 => *byte ^ (1 << random.below(8)),
                    1 => EDGES[random.below(EDGES.len() as u64) as usize],
                    _ => random.below(256) as u8,
                };
            }
        }
    }
}

/// Where a piece of so many bytes begins and ends: a short one, mostly.
fn range(length: usize, random: &mut Random) -> (usize, usize) {
    let start = random.below(length as u64 + 1) as usize;
    let longest = if random.below(4) == 0 { length } else { 16 };
    let end = start + random.below(longest as u64 + 1) as usize;
    (start, end.min(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for thousands of inputs.
    const BRIEFLY: Duration = Duration::from_secs(2);

    fn survives(name: &str) {
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        let corpus = corpus(name).unwrap();
        assert!(!corpus.is_empty());
        let inputs = fuzz(target, &corpus, 1, BRIEFLY).unwrap();
        assert!(inputs > corpus.len() as u64);
    }

    #[test]
    fn frames_of_strangers_never_panic() {
        survives("frame");
    }

    #[test]
    fn commands_of_strangers_never_panic_and_are_the_same_however_they_come() {
        survives("resp");
    }

    #[test]
    fn bodies_of_strangers_never_panic() {
        survives("http");
    }

    #[test]
    fn a_configuration_of_a_stranger_never_panics() {
        survives("config");
    }

    #[test]
    fn a_target_that_cannot_stand_an_input_is_told_of_with_the_input() {
        let read = |bytes: &[u8]| assert!(!bytes.contains(&0xff), "there it is");
        let target = Target { name: "xtask-test", read };
        let error = fuzz(&target, &[vec![0; 8]], 1, SLOW).unwrap_err().to_string();
        assert!(error.contains("'xtask-test' panics at"), "{error}");
        let folder = shell::root().join("target/fuzz/xtask-test");
        let kept = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
        assert!(std::fs::read(kept.path()).unwrap().contains(&0xff));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn cargo_fuzz_has_every_target_and_keeps_the_corpus_as_it_is() {
        let manifest = std::fs::read_to_string(shell::root().join("fuzz/Cargo.toml")).unwrap();
        for target in TARGETS {
            assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
            let command = guided_command(target.name, Duration::from_millis(1500));
            let words: Vec<&str> = command.split_whitespace().collect();
            let place = words.iter().position(|word| *word == target.name).unwrap();
            assert!(words[place + 1].starts_with("target/"), "{command}");
            assert!(shell::root().join(words[place + 2]).is_dir(), "{command}");
            assert!(words.contains(&"-max_total_time=1"), "{command}");
        }
    }

    #[test]
    fn a_run_depends_on_its_seed_alone_and_inputs_have_a_limit() {
        let corpus = [b"name = \"a\"".to_vec(), vec![7; LONGEST]];
        let inputs = |seed| {
            let mut random = Random::new(seed);
            (0..200).map(|_| changed(&corpus, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(1).iter().all(|input| input.len() <= LONGEST));
        assert!(!changed(&[], &mut Random::new(1)).len() > LONGEST);
    }
}
