//! What the figures were measured on, and with what.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

use super::zookeeper;

/// The machine and the versions of everything.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) date: String,
    pub(super) processor: String,
    pub(super) cores: usize,
    pub(super) memory: String,
    pub(super) system: String,
    /// Where the servers that write anything write it.
    pub(super) disk: String,
    pub(super) versions: Vec<(&'static str, String)>,
}

impl Machine {
    /// What is found of it; what is not is an empty text.
    pub(super) fn look(catraca: &Path) -> Self {
        let said = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output().ok();
            let text = |output: std::process::Output| {
                // Java tells its version on standard error.
                let bytes = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&bytes);
                text.lines().next().unwrap_or_default().trim().to_string()
            };
            output.map(text).unwrap_or_default()
        };
        let line = |file: &str, field: &str| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let found = text.lines().find(|line| line.starts_with(field));
            let value = found.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
            value.unwrap_or_default().to_string()
        };
        let classes = std::fs::canonicalize(zookeeper::CLASSES).unwrap_or_default();
        let classes = classes.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let temporary = std::env::temp_dir();
        let ours = said(&catraca.to_string_lossy(), &["--version"]);
        let commit = said("git", &["rev-parse", "--short", "HEAD"]);
        let redis = said("redis-server", &["--version"]);
        let redis = redis.split_whitespace().find_map(|word| word.strip_prefix("v="));
        let java = said("java", &["-version"]);
        Machine {
            date: said("date", &["-u", "+%F"]),
            processor: line("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory: line("/proc/meminfo", "MemTotal"),
            system: said("uname", &["-sr"]),
            disk: said("stat", &["-f", "-c", "%T", &temporary.to_string_lossy()]),
            versions: vec![
                ("Catraca", format!("{} ({commit})", ours.trim_start_matches("catraca "))),
                ("etcd", said("etcd", &["--version"]).replace("etcd Version: ", "")),
                ("ZooKeeper", format!("{} on {java}", classes.replace("zookeeper-", ""))),
                ("Redis", redis.unwrap_or_default().to_string()),
            ],
        }
    }
}
