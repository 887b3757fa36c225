//! `cargo xtask schemathesis`: thousands of requests, right and wrong, made from the OpenAPI document of a real
//! node. No answer may be an error of the server, and none may be one that the document does not speak of.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell::{root, run, succeeds};

/// The release that is used, so that a new one changes nothing by itself.
const RELEASE: &str = "schemathesis==4.32.5";
/// How long requests are made, in seconds.
const SECONDS: &str = "40";
/// What every answer is checked for. That a lock is taken or a node busy is no refusal of good data.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
response_headers_conformance,response_schema_conformance,negative_data_rejection,\
allow_header_conformance,unsupported_method";
/// Keeps requests from waiting for long.
const HOOKS: &str = include_str!("schemathesis/hooks.py");

/// Runs it, or says why it was left out.
pub(crate) fn all() -> Result<()> {
    let folder = root().join("target/schemathesis");
    let Some(program) = program(&folder)? else {
        println!("schemathesis was left out: it cannot be installed here");
        return Ok(());
    };
    run("cargo build --quiet --package catraca --bin catraca")?;
    let node = Node::start(&folder)?;
    std::fs::write(folder.join("hooks.py"), HOOKS)?;
    let mut command = Command::new(program);
    command.args(["run", "--max-time", SECONDS, "--checks", CHECKS, "--seed", "1", "--no-color"]);
    // Its answer has no end.
    command.args(["--exclude-path", "/v1/changes", "--request-timeout", "30"]);
    command.arg(format!("http://{}/openapi.json", node.address));
    command.current_dir(&folder).env("SCHEMATHESIS_HOOKS", "hooks");
    let status = command.status().context("schemathesis could not be started")?;
    if !status.success() {
        bail!("schemathesis has found something; see above");
    }
    Ok(())
}

/// The program, installed into `folder` if it is not there yet; nothing if that cannot be done.
fn program(folder: &Path) -> Result<Option<PathBuf>> {
    let program = folder.join("bin/schemathesis");
    let is_there = |program: &Path| succeeds(&format!("{} --version", program.display()));
    if is_there(&program) {
        return Ok(Some(program));
    }
    let python = format!("{}/bin/python", folder.display());
    let is_made = succeeds(&format!("python3 -m venv {}", folder.display()))
        && succeeds(&format!("{python} -m pip install --quiet {RELEASE}"));
    Ok(Some(program).filter(|program| is_made && is_there(program)))
}

/// A node of its own. It ends with this.
struct Node {
    child: Child,
    address: String,
}

impl Node {
    fn start(folder: &Path) -> Result<Self> {
        let data = folder.join("data");
        // What another run has left.
        let _ = std::fs::remove_dir_all(&data);
        let mut command = Command::new(root().join("target/debug/catraca"));
        command
            .args(["node", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"])
            .arg(data);
        let mut child = command.stdout(Stdio::piped()).spawn().context("no node")?;
        let output = child.stdout.take().context("a node says nothing")?;
        let mut node = Node { child, address: String::new() };
        for line in BufReader::new(output).lines() {
            let line = line?;
            if let Some((_, rest)) = line.split_once("curl http://") {
                node.address = rest.split('/').next().unwrap_or_default().to_string();
                return Ok(node);
            }
        }
        bail!("the node does not say where it serves HTTP")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
