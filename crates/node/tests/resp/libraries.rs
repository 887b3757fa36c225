//! Lock libraries for Redis as people install them: the same program says the same, whether it talks to
//! Redis or to a node.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use catraca_node::TlsFiles;

use crate::redis::Redis;
use crate::support::left_out::{Source, judged, left_out};
use crate::{alone, alone_with};

/// What is installed for programs in Python.
const PYTHON: &[&str] = &[
    "redis==8.1.0",
    "redlock-py==1.0.8",
    "pottery==3.0.1",
    "aioredlock==0.7.3",
    "aioredis==1.3.1",
    "sherlock==0.4.1",
];
/// What is installed for programs in JavaScript.
const JAVASCRIPT: &[&str] = &[
    "redlock4@npm:redlock@4.2.0",
    "redlock5@npm:redlock@5.0.0-beta.2",
    "@sesamecare-oss/redlock@1.4.0",
    "redis-semaphore@5.8.0",
    "ioredis@6.0.0",
    "redis@6.3.1",
];
/// No program takes so long.
const LIMIT: Duration = Duration::from_secs(90);

/// Where libraries are kept from run to run.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("resp-libraries")
}

/// Installs what is not there yet, one test at a time. Returns why that cannot be done.
fn install(
    folder: &str,
    wanted: &[&str],
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let folder = cache().join(folder);
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let (marker, wanted) = (folder.join("installed"), wanted.join("\n"));
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    install(&folder)?;
    fs::write(marker, wanted).unwrap();
    Ok(folder)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn python() -> Result<PathBuf, String> {
    let folder = install("python", PYTHON, |folder| {
        run(Command::new("python3").args(["-m", "venv", "."]).current_dir(folder))?;
        let mut pip = Command::new(folder.join("bin/pip"));
        run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PYTHON))
    })?;
    Ok(folder.join("bin/python"))
}

fn javascript() -> Result<PathBuf, String> {
    let folder = install("javascript", JAVASCRIPT, |folder| {
        fs::write(folder.join("package.json"), r#"{"private": true}"#).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]);
        run(npm.args(JAVASCRIPT).current_dir(folder))
    })?;
    Ok(folder.join("node_modules"))
}

/// A Redis that ends with the test.
struct RealRedis {
    process: Child,
    port: u16,
}

impl RealRedis {
    fn start() -> Result<Self, String> {
        // Another program may take the port in between; then the next one is tried.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = Command::new("redis-server");
            command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
            command.current_dir(cache()).stdout(Stdio::null()).stderr(Stdio::null());
            let process = command.spawn().map_err(|error| format!("redis-server: {error}"))?;
            let mut redis = RealRedis { process, port };
            let began = Instant::now();
            while began.elapsed() < LIMIT && redis.process.try_wait().unwrap().is_none() {
                if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Ok(redis);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Err("redis-server does not start".to_string())
    }
}

impl Drop for RealRedis {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a program prints that talks to this port.
fn printed(program: &str, port: u16) -> Result<String, String> {
    printed_with(program, port, &[])
}

/// The same, with more arguments.
fn printed_with(program: &str, port: u16, more: &[&Path]) -> Result<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resp/programs").join(program);
    let mut command = if program.ends_with(".py") {
        let mut command = Command::new(python()?);
        // Old libraries use what newer versions of the language warn about.
        command.args(["-W", "ignore"]);
        command
    } else {
        let mut command = Command::new("node");
        command.env("NODE_PATH", javascript()?);
        command
    };
    let output = cache().join(format!("{program}.{port}"));
    let to = File::create(&output).unwrap();
    command.arg(file).arg(port.to_string()).args(more).stdin(Stdio::null());
    command.stdout(to.try_clone().unwrap()).stderr(to);
    let mut process = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = process.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > LIMIT {
            process.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = fs::read_to_string(&output).unwrap();
    fs::remove_file(output).unwrap();
    assert!(status.success(), "{program}: {status}\n{text}");
    Ok(text)
}

/// Where the libraries of a program come from.
fn source(program: &str) -> Source {
    if program.ends_with(".py") { Source::PyPi } else { Source::Npm }
}

/// Runs a program with Redis and with a node, and compares what it prints.
async fn compare(program: &'static str) {
    fs::create_dir_all(cache()).unwrap();
    let with_redis = tokio::task::spawn_blocking(move || {
        let redis = RealRedis::start()?;
        printed(program, redis.port)
    });
    let with_redis = match with_redis.await.unwrap() {
        Ok(text) => text,
        Err(why) => return left_out(program, &why, source(program)),
    };
    let node = alone().await;
    let port = node.resp_address().unwrap().port();
    let with_us = tokio::task::spawn_blocking(move || printed(program, port)).await.unwrap();
    assert!(!with_redis.is_empty());
    assert_eq!(with_us.unwrap(), with_redis, "{program}: the node's (left) and Redis's (right)");
}

macro_rules! programs {
    ($($name:ident: $file:literal,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                compare($file).await;
            }
        )*
    };
}

programs! {
    redis_py_locks_work_as_with_redis: "redis_py.py",
    redis_py_locks_of_asyncio_work_as_with_redis: "redis_py_async.py",
    redlock_py_works_as_with_redis: "redlock_py.py",
    pottery_works_as_with_redis: "pottery_program.py",
    aioredlock_works_as_with_redis: "aioredlock_program.py",
    sherlock_works_as_with_redis: "sherlock_program.py",
    redlock_4_works_as_with_redis: "redlock4.js",
    redlock_5_and_its_successor_work_as_with_redis: "redlock5.js",
    redis_semaphore_works_as_with_redis: "redis_semaphore.js",
    node_redis_works_as_with_redis: "node_redis.js",
    raw_answers_are_those_of_redis: "raw.py",
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_library_takes_locks_over_tls_and_without_it_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-nodes", "-days", "1", "-subj", "/CN=localhost"]);
    openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    if let Err(why) = run(openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key)) {
        return left_out("a library over TLS", &why, Source::Debian);
    }
    let files = TlsFiles { certificate: certificate.clone(), key, authority: None };
    let node = alone_with(|config| config.security.tls = Some(files)).await;
    let address = node.resp_address().unwrap();
    let mut plain = Redis::connect(address).await;
    plain.say_bytes(b"PING\r\n").await;
    let told = String::from_utf8(plain.rest().await).unwrap();
    assert!(told.starts_with("-ERR at this port everybody speaks TLS"), "{told}");
    fs::create_dir_all(cache()).unwrap();
    let printing = tokio::task::spawn_blocking(move || {
        printed_with("tls.py", address.port(), &[&certificate])
    });
    match printing.await.unwrap() {
        Ok(text) => {
            assert_eq!(text, "acquire True\ntaken False\necho True\nreleased 0\n");
        }
        Err(why) => left_out("tls.py", &why, source("tls.py")),
    }
}

#[test]
fn what_can_be_had_may_not_be_left_out_where_it_is_required() {
    let judged = |from, is_required, is_reached: bool| {
        judged("redis.py", "pip: no", from, is_required, || is_reached)
    };
    assert_eq!(judged(Source::PyPi, false, true), Ok("left out: redis.py: pip: no".to_string()));
    let failure = judged(Source::PyPi, true, true).unwrap_err();
    assert!(failure.contains("redis.py may not be left out"), "{failure}");
    let told = judged(Source::Npm, true, false).unwrap();
    assert!(told.contains("pip: no (Npm cannot be reached from here)"), "{told}");
    assert!(judged(Source::Nowhere, true, true).is_ok());
}
