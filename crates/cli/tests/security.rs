//! Tokens, certificates and sockets, with the real binary.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use support::Folder;
use support::service::{Process, addresses, at_terminal, wait_until};

/// A node alone in a folder, with these flags, that listens at an address of its own.
fn node(folder: &Folder, address: &str, flags: &[&str]) -> Process {
    let own = ["node", "--name", "a", "--listen", address, "--data", "data"];
    let node = Process::start(folder.command(&[&own, flags].concat()));
    node.says("listens at ");
    node
}

/// Makes a token, and puts it into a file.
fn token(folder: &Folder, name: &str, more: &[&str]) -> String {
    let words = [&["token", "add", name, "--file", "tokens"], more].concat();
    let token = folder.run(&words).quietly(0).stdout;
    folder.write(&format!("{name}.token"), &token);
    token.trim().to_string()
}

#[test]
fn tokens_are_made_listed_used_and_revoked() {
    let folder = Folder::new();
    let ci = token(&folder, "ci", &["--names", "ci/*", "--names", "nightly"]);
    token(&folder, "ana", &["--role", "administer"]);
    assert!(ci.starts_with("cat_") && !folder.read("tokens").contains(&ci[4..]));
    let about = std::fs::metadata(folder.path("tokens")).unwrap();
    assert_eq!(about.mode() & 0o777, 0o600);
    let list = folder.run(&["token", "list", "--file", "tokens"]).quietly(0).stdout;
    assert!(list.contains("ci     lock        ci/* nightly  20"), "{list}");
    let again = folder.run(&["token", "add", "ci", "--file", "tokens"]);
    again.refused(&["there is a token 'ci' already"]);
    let wrong = folder.run(&["token", "add", "x", "--role", "king", "--file", "tokens"]);
    wrong.refused(&["'king' is no role: say observe, lock or administer"]);
    folder.run(&["token", "revoke", "bo", "--file", "tokens"]).refused(&["there are: ci, ana"]);

    let address = &addresses(1)[0];
    let node = node(&folder, address, &["--tokens", "tokens"]);
    let lock = |flags: &[&str], name: &str| {
        folder.run(&[&["lock", "--node", address], flags, &[name, "--", "true"]].concat())
    };
    lock(&[], "ci/x").refused(&["this node wants to know who calls: give a token"]);
    lock(&["--token-file", "ci.token"], "ci/x").quietly(0);
    lock(&["--token-file", "ci.token"], "prod").refused(&["'ci' may not use the lock 'prod'"]);
    lock(&["--token-file", "none"], "ci/x").refused(&["--token-file: cannot read 'none'"]);
    let mut by_environment = folder.command(&["status", "--node", address]);
    by_environment.env("CATRACA_TOKEN", &ci);
    assert_eq!(Process::start(by_environment).ends().code, Some(0));
    let leave =
        |who: &str| folder.run(&["members", "remove", "b", "--node", address, "--token-file", who]);
    leave("ci.token").refused(&["this takes the role 'administer'"]);

    // A durable hold belongs to whoever has the token.
    let durable = ["lock", "--node", address, "--token-file", "ci.token", "--durable"];
    folder.run(&[&durable[..], &["ci/d", "--owner", "ana"]].concat()).refused(&["not 'ana'"]);
    folder.run(&[&durable[..], &["ci/d"]].concat()).quietly(0);
    let unlock = ["unlock", "ci/d", "--node", address, "--token-file", "ci.token"];
    folder.run(&[&unlock[..], &["--force"]].concat()).refused(&["'administer'"]);
    folder.run(&unlock).quietly(0).says("released ci/d");

    folder.run(&["token", "revoke", "ci", "--file", "tokens"]).quietly(0).says("kill -HUP");
    lock(&["--token-file", "ci.token"], "ci/x").quietly(0);
    node.signal("HUP");
    node.complains("tokens and certificates were read again");
    lock(&["--token-file", "ci.token"], "ci/x").refused(&["the token is not known here"]);
    // A file that others can write is not believed: what was read before stays.
    std::fs::set_permissions(folder.path("tokens"), PermissionsExt::from_mode(0o666)).unwrap();
    node.signal("HUP");
    node.complains("goes on with what it has read before, why others can write 'tokens'");
    lock(&["--token-file", "ana.token"], "x").quietly(0);
}

#[test]
fn a_node_that_others_reach_says_what_it_needs() {
    let folder = Folder::new();
    let start = |flags: &[&str]| {
        let own = ["node", "--listen", "0.0.0.0:0", "--data", "data"];
        Process::start(folder.command(&[&own, flags].concat()))
    };
    let refused = start(&[]).ends();
    refused.refused(&["--tokens FILE", "--tls-cert, --tls-key and --tls-ca", "--insecure"]);
    start(&["--insecure"]).says("listens at 0.0.0.0:");
    token(&folder, "ci", &[]);
    start(&["--tokens", "tokens"]).says("listens at 0.0.0.0:");
    let written = "listen = '0.0.0.0:0'\n[security]\ntokens = 'tokens'\n";
    folder.write("node.toml", written);
    Process::start(folder.command(&["node", "--config", "node.toml", "--data", "data"]))
        .says("listens at 0.0.0.0:");
    let half = folder.run(&["node", "--tls-cert", "x"]);
    assert!(half.code == Some(2) && half.stderr.contains("--tls-key"), "{half:?}");
    let unread = ["--insecure", "--tls-cert", "x", "--tls-key", "y"];
    start(&unread).ends().refused(&["cannot read 'x'"]);
}

#[test]
fn an_authority_of_ones_own_protects_a_group_and_its_clients() {
    let folder = Folder::new();
    folder.run(&["cert", "issue", "a"]).refused(&["'catraca cert ca' makes one"]);
    folder.run(&["cert", "ca", "--out", "pki"]).quietly(0).says("catraca cert issue a");
    folder.run(&["cert", "ca", "--out", "pki"]).refused(&["pki/ca.pem", "say --force"]);
    let addresses = addresses(3);
    let issue = |name: &str, more: &[&str]| {
        let words = ["cert", "issue", name, "--ca", "pki", "--out", "pki"];
        folder.run(&[&words, more].concat())
    };
    for (name, address) in ["a", "b", "c"].iter().zip(&addresses) {
        let ip = address.split(':').next().unwrap();
        issue(name, &["--ip", ip]).quietly(0).says("catraca node --name");
    }
    issue("ana", &["--client", "--days", "30"]).quietly(0).says("client 'ana', for 30 days");
    issue("1", &[]).refused(&["no certificate can be for '1'"]);
    issue("x", &["--dns", "no name"]).refused(&["--dns: 'no name' is no name"]);
    issue("a", &[]).refused(&["pki/a.pem", "say --force"]);
    for file in ["ca-key.pem", "a-key.pem", "a.pem"] {
        let about = std::fs::metadata(folder.path("pki").join(file)).unwrap();
        assert_eq!(about.mode() & 0o777, 0o600, "{file}");
    }

    let own = |name: &str| {
        let [certificate, key] = ["", "-key"].map(|part| format!("pki/{name}{part}.pem"));
        ["--tls-ca", "pki/ca.pem", "--tls-cert", &certificate, "--tls-key", &key]
            .map(str::to_string)
    };
    let list = format!("a={},b={}", addresses[0], addresses[1]);
    let start = |name: &str, more: &[&str]| {
        let (data, own) = (format!("data-{name}"), own(name));
        let own = own.each_ref().map(String::as_str);
        let words = ["node", "--name", name, "--data", &data, "--lease", "15s"];
        Process::start(folder.command(&[&words, more, &own].concat()))
    };
    let members = ["--members", &list];
    let _nodes = [start("a", &members), start("b", &members)];
    let ana = ["--ca", "pki/ca.pem", "--cert", "pki/ana.pem", "--key", "pki/ana-key.pem"];
    let status =
        |place: usize| folder.run(&[&["status", "--node", &addresses[place]], &ana[..]].concat());
    wait_until("they are together", || status(0).code == Some(0) && status(1).code == Some(0));
    let lock = ["lock", "--node", &addresses[1], "x", "--", "true"];
    folder.run(&[&lock[..1], &ana[..], &lock[1..]].concat()).quietly(0);
    let plain = folder.run(&lock);
    assert_eq!(plain.code, Some(125), "{plain:?}");
    plain.complained(&["this node speaks TLS only"]);
    let wrong = ["status", "--node", &addresses[0], "--cert", "pki/ana.pem"];
    folder.run(&wrong).refused(&["--cert and --key belong together"]);

    // One more joins with its certificate; without one it does not get to know the group.
    let join = ["--join", &addresses[0], "--listen", &addresses[2]];
    let stranger = Process::start(folder.command(&[&["node", "--name", "c"], &join[..]].concat()));
    stranger.complains("this node speaks TLS only");
    drop(stranger);
    let _third = start("c", &join);
    wait_until("all are together", || {
        status(2).code == Some(0) && status(0).stdout.contains(&addresses[2])
    });
}

#[test]
fn without_a_node_named_the_socket_of_this_machine_is_asked_first() {
    let folder = Folder::new();
    let runtime = folder.path("run");
    let with_runtime = |words: &[&str]| {
        let mut command = folder.command(words);
        command.env("XDG_RUNTIME_DIR", &runtime);
        command
    };
    let address = &addresses(1)[0];
    let own = ["node", "--listen", address, "--data", "data", "--group", "g", "--name", "n"];
    let mut node = Process::start(with_runtime(&own));
    node.says("listens at ");
    let socket = runtime.join("catraca/g-n.sock");
    let socket = socket.to_str().unwrap();
    folder.run(&["lock", "--node", socket, "x", "--", "true"]).quietly(0);
    // The socket of a node that was killed is replaced by the next one.
    node.signal("KILL");
    wait_until("it is dead", || node.has_ended());
    assert!(runtime.join("catraca/g-n.sock").exists());
    let dead = folder.run(&["status", "--node", socket]);
    assert_eq!(dead.code, Some(125), "{dead:?}");
    let usual = runtime.join("catraca/catraca.sock");
    let named = [&own[..], &["--socket", usual.to_str().unwrap()]].concat();
    let node = Process::start(with_runtime(&named));
    node.says("listens at ");
    let asked = Process::start(with_runtime(&["status"])).ends();
    // It may wait for the lease of its own last run.
    assert!(matches!(asked.code, Some(0 | 4)) && asked.stderr.is_empty(), "{asked:?}");
    assert!(asked.stdout.contains("'n'"), "{}", asked.stdout);
    let second = ["node", "--listen", "127.0.0.1:0", "--data", "other", "--socket"];
    let second = folder.run(&[&second[..], &[usual.to_str().unwrap()]].concat());
    second.refused(&["another node uses the socket"]);
    node.signal("TERM");
    assert_eq!(node.ends().code, Some(0));
    assert!(!usual.exists());
}

#[test]
fn another_user_of_the_machine_may_lock_and_not_administer() {
    if Command::new("id").arg("-u").output().unwrap().stdout != b"0\n" {
        // Only root can be somebody else.
        return;
    }
    let folder = Folder::new();
    // The folder is for whoever made it; the others need a way to the socket and to the binary.
    let shared = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir();
    let shared = shared.unwrap();
    let binary = shared.path().join("catraca");
    std::fs::copy(env!("CARGO_BIN_EXE_catraca"), &binary).unwrap();
    let socket = shared.path().join("run/x.sock");
    let socket = socket.to_str().unwrap();
    token(&folder, "ci", &[]);
    let address = &addresses(1)[0];
    let _node = node(&folder, address, &["--tokens", "tokens", "--socket", socket]);
    let as_nobody = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(&binary).args(words).args(["--node", socket]).current_dir(shared.path());
        Process::start(command).ends()
    };
    as_nobody(&["status"]).quietly(0).says("'a'");
    as_nobody(&["lock", "--durable", "x"]).quietly(0);
    as_nobody(&["unlock", "x", "--force"]).refused(&["may only lock"]);
    as_nobody(&["members", "remove", "b"]).refused(&["may only lock", "'administer'"]);
    // Root administers, and sees whose it is.
    let locks = folder.run(&["locks", "--json", "--node", socket]).quietly(0).stdout;
    assert!(locks.contains("nobody"), "{locks}");
    folder.run(&["unlock", "x", "--force", "--node", socket]).quietly(0);
}

#[test]
fn at_a_terminal_a_node_without_files_ends_with_it_and_one_with_files_reads_them() {
    let folder = Folder::new();
    token(&folder, "ci", &[]);
    let binary = env!("CARGO_BIN_EXE_catraca");
    let addresses = addresses(2);
    let start = |address: &str, more: &str| {
        // The shell tells which process is to get the signal.
        let line = format!(
            "echo pid $$; exec {binary} node --listen {address} --data data-{more} {}",
            if more.is_empty() { String::new() } else { format!("--tokens {more}") }
        );
        let node = at_terminal(&folder, &line);
        node.says("listens at ");
        let said = node.stdout();
        let id: u32 =
            said.split("pid ").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
        (node, id)
    };
    let (mut plain, id) = start(&addresses[0], "");
    support::service::signal(id, "HUP");
    wait_until("it ends", || plain.has_ended());
    let (with_files, id) = start(&addresses[1], "tokens");
    support::service::signal(id, "HUP");
    with_files.says("tokens and certificates were read again");
    support::service::signal(id, "TERM");
    with_files.ends();
}

#[test]
fn whoever_administers_releases_by_force_and_kicks_with_a_token_as_with_any_other_command() {
    let folder = Folder::new();
    token(&folder, "ci", &[]);
    token(&folder, "ana", &["--role", "administer"]);
    let address = &addresses(1)[0];
    let _node = node(&folder, address, &["--tokens", "tokens"]);
    let words = ["lock", "--node", address, "--token-file", "ci.token", "x", "--"];
    let line = ["sh", "-c", "echo inside; exec sleep 1000"];
    let holder = Process::start(folder.command(&[&words[..], &line].concat()));
    holder.says("inside");
    for command in [&["force-release", "--yes", "x"][..], &["kick", "a"]] {
        let run = |flags: &[&str]| folder.run(&[command, &["--node", address], flags].concat());
        run(&[]).refused(&["this node wants to know who calls: give a token"]);
        run(&["--token-file", "ci.token"]).refused(&["this takes the role 'administer'"]);
    }
    let force = ["force-release", "--yes", "x", "--node", address, "--token-file", "ana.token"];
    folder.run(&force).quietly(0).says("released x");
    assert_eq!(holder.ends().code, Some(123));
    let kick = folder.run(&["kick", "nobody", "--node", address, "--token-file", "ana.token"]);
    assert!(kick.code == Some(122) && kick.stderr.contains("'nobody'"), "{kick:?}");
}
