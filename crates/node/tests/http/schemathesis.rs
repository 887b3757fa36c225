//! Thousands of requests, right and wrong, that schemathesis makes of the OpenAPI document. No answer may be an
//! error of the server, and none may be one that the document does not speak of.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tokio::task::spawn_blocking;

use crate::alone;
use crate::support::left_out::{Source, left_out};

/// The release that is used, so that a new one changes nothing by itself.
const RELEASE: &str = "schemathesis==4.32.5";
/// How long requests are made, in seconds.
const SECONDS: &str = "30";
/// What every answer is checked for.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
response_headers_conformance,response_schema_conformance,negative_data_rejection,\
allow_header_conformance,unsupported_method";
/// Keeps requests from waiting for long.
const HOOKS: &str = include_str!("schemathesis/hooks.py");

/// Where it is installed, or why it cannot be.
fn install() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let (marker, program) = (folder.join("installed"), folder.join("bin/schemathesis"));
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == RELEASE) {
        return Ok(program);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", RELEASE]))?;
    fs::write(folder.join("hooks.py"), HOOKS).unwrap();
    fs::write(marker, RELEASE).unwrap();
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn send_all(program: &Path, at: SocketAddr) -> Output {
    let mut command = Command::new(program);
    command.args(["run", "--max-time", SECONDS, "--checks", CHECKS, "--seed", "1", "--no-color"]);
    // The answers of these have no end.
    command.args(["--exclude-path", "/v1/changes", "--exclude-path", "/v1/live"]);
    command.args(["--request-timeout", "60"]);
    // Examples of documents are kept otherwise, in the folder that this runs in.
    command.args(["--generation-database", "none"]).arg(format!("http://{at}/openapi.json"));
    let folder = program.parent().and_then(Path::parent).unwrap();
    fs::write(folder.join("hooks.py"), HOOKS).unwrap();
    command.current_dir(folder).env("SCHEMATHESIS_HOOKS", "hooks").output().unwrap()
}

#[tokio::test]
async fn schemathesis_finds_no_error_and_no_answer_that_is_not_documented() {
    let program = match spawn_blocking(install).await.unwrap() {
        Ok(program) => program,
        Err(why) => return left_out("schemathesis", &why, Source::PyPi),
    };
    let (_node, at) = alone().await;
    let output = spawn_blocking(move || send_all(&program, at)).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
