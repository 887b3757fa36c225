//! Set-ups of teams as docs/GIT.md has them, with the stock client: real git, real Git LFS, real nodes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use support::git::{Clone, Studio, User};
use support::service::{Process, addresses, wait_until};
use support::{Folder, Ran, web};

/// Files that Git LFS keeps, and that are to be locked.
const KEPT: &str = "*.psd filter=lfs diff=lfs merge=lfs -text lockable\n";

/// A clone of `remote`, in a folder of its own; nothing of ours is set up in it.
fn cloned(studio: &Studio, user: &User, remote: &str) -> Clone {
    user.git(&studio.folder.path(""), &["lfs", "install"]).succeeded();
    let place = studio.folder.path(&format!("stock-{}", user.name));
    user.git(&studio.folder.path(""), &["clone", "--quiet", remote, place.to_str().unwrap()])
        .succeeded();
    Clone { user: user.clone(), place }
}

/// A bare repository without any hooks.
fn forge(studio: &Studio, name: &str) -> String {
    let place = studio.folder.path(name);
    let words = ["init", "--quiet", "--bare", place.to_str().unwrap()];
    studio.stranger("forge").git(&studio.folder.path(""), &words).quietly(0);
    place.to_str().unwrap().to_string()
}

#[test]
fn whoever_is_robbed_of_a_lock_is_told_by_every_command_that_comes_next() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    bo.catraca(&["steal", "a.psd", "--note", "ana is away"]).quietly(0);
    bo.catraca(&["locks"]).quietly(0);
    let words = "catraca: bo has stolen 'a.psd' from you (ana is away)";
    assert!(ana.is_writable("a.psd"), "nothing has looked yet");
    let mine = ana.catraca(&["locks", "--mine"]).failed(0, &[words]);
    mine.says("No file is locked by you.");
    assert!(!ana.is_writable("a.psd"));
    ana.catraca(&["lock", "a.psd"]).failed(1, &["'a.psd' is locked: bo", words]);
    ana.catraca(&["lock", "b.psd"]).failed(0, &[words]).says("locked b.psd");
    assert!(ana.is_writable("b.psd") && !ana.is_writable("a.psd"));
    ana.catraca(&["unlock", "b.psd"]).failed(0, &[words]);
    let ill = ana.catraca(&["doctor"]).failed(3, &[]);
    ill.says("bo has stolen 'a.psd' from you").says("catraca git steal").says("1 thing to mend.");
    let json = ana.catraca(&["locks", "--json"]).failed(0, &[words]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["locks"][0]["stolen_from"], serde_json::json!(["ana"]));
    // A push that does not touch it goes on, and says so too; one that does is refused.
    ana.change("code.c", "2");
    ana.git(&["push", "--quiet", "origin", "main"]).failed(0, &[words]);
    ana.change("a.psd", "2");
    ana.git(&["push", "--quiet", "origin", "main"]).failed(1, &[words, "'a.psd': bo"]);
    ana.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    // Whoever takes it back is the owner again, and the thief is told.
    ana.catraca(&["steal", "a.psd"]).quietly(0);
    assert!(ana.is_writable("a.psd"));
    ana.catraca(&["locks"]).quietly(0);
    bo.catraca(&["locks"]).failed(0, &["catraca: ana has stolen 'a.psd' from you\n"]);
    ana.catraca(&["unlock", "a.psd"]).quietly(0);
    bo.catraca(&["locks"]).quietly(0);
}

#[test]
fn objects_may_be_kept_by_another_node_than_locks() {
    let objects = Studio::open_with(&["--lfs-objects", "objects"]);
    let forward = format!("http://{}/git/{{team}}/{{repo}}", objects.address);
    let studio = Studio::open_with(&["--lfs-forward", &forward]);
    let remote = forge(&studio, "game.git");
    let user = |name: &str| {
        let user = studio.user(name);
        let there = format!("http://{name}:{}@{}\n", objects.token(name), objects.address);
        let file = user.home.join("credentials");
        let here = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, here + &there).unwrap();
        user
    };
    let ana = cloned(&studio, &user("ana"), &remote);
    ana.git(&["config", "-f", ".lfsconfig", "lfs.url", &studio.url("game")]).quietly(0);
    ana.git(&["config", "-f", ".lfsconfig", "lfs.locksverify", "true"]).quietly(0);
    ana.write(".gitattributes", KEPT);
    ana.change("a.psd", "kept elsewhere");
    ana.git(&["push", "--quiet", "origin", "HEAD:main"]).succeeded();
    let bo = cloned(&studio, &user("bo"), &remote);
    assert_eq!(std::fs::read_to_string(bo.place.join("a.psd")).unwrap(), "kept elsewhere");
    let kept = objects.folder.path("objects/art/game");
    assert!(kept.is_dir() && !studio.folder.path("objects").exists());
    // Locks are those of the first node.
    bo.git(&["lfs", "lock", "a.psd"]).succeeded();
    ana.git(&["lfs", "locks"]).succeeded().says("bo");
    ana.change("a.psd", "not mine");
    let blocked = ana.git(&["push", "origin", "HEAD:main"]);
    assert_ne!(blocked.code, Some(0), "{blocked:?}");
    assert!(format!("{}{}", blocked.stdout, blocked.stderr).contains("a.psd - bo"), "{blocked:?}");
}

#[test]
fn a_node_that_keeps_locks_only_says_so_to_whoever_pushes_objects() {
    let studio = Studio::open();
    let remote = forge(&studio, "game.git");
    let ana = cloned(&studio, &studio.user("ana"), &remote);
    ana.git(&["config", "-f", ".lfsconfig", "lfs.url", &studio.url("game")]).quietly(0);
    ana.write(".gitattributes", KEPT);
    ana.change("a.psd", "an object");
    let push = ana.git(&["push", "origin", "HEAD:main"]);
    assert_ne!(push.code, Some(0), "{push:?}");
    assert!(push.stderr.contains("this server keeps locks only"), "{push:?}");
    ana.git(&["lfs", "lock", "a.psd"]).succeeded();
}

#[test]
fn with_objects_at_a_forge_the_stock_client_locks_and_our_hook_refuses() {
    let studio = Studio::open();
    let remote = forge(&studio, "game.git");
    let ana = cloned(&studio, &studio.user("ana"), &remote);
    let words = ["init", "--locks-only", "--url", &studio.url("game"), "*.psd"];
    ana.catraca(&words).quietly(0).says("remote.locks.lfsurl");
    ana.write("a.psd", "1");
    ana.write("code.c", "1");
    ana.commit("first");
    ana.git(&["push", "origin", "HEAD:main"]).succeeded();
    let bo = cloned(&studio, &studio.user("bo"), &remote);
    bo.catraca(&["init"]).quietly(0);
    bo.catraca(&["doctor"]).quietly(0);
    ana.git(&["lfs", "lock", "a.psd"]).succeeded();
    assert_eq!(bo.git(&["lfs", "lock", "a.psd"]).code, Some(2));
    bo.git(&["lfs", "locks"]).succeeded().says("ana");
    bo.catraca(&["whohas", "a.psd"]).quietly(0).says("ana");
    bo.change("a.psd", "2");
    bo.git(&["push", "origin", "main"])
        .failed(1, &["the push is refused", "'a.psd': ana", "you are 'bo'"]);
    bo.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    bo.change("code.c", "2");
    bo.git(&["push", "origin", "main"]).succeeded();
    ana.git(&["pull", "--quiet", "--rebase", "origin", "main"]).succeeded();
    ana.change("a.psd", "2");
    ana.git(&["push", "origin", "main"]).succeeded();
    ana.git(&["lfs", "unlock", "a.psd"]).succeeded();
    bo.git(&["lfs", "lock", "a.psd"]).succeeded();
}

#[test]
fn the_stock_client_works_with_a_repository_that_is_reached_by_http() {
    let studio = Studio::open_with(&["--lfs-objects", "objects"]);
    let bare = studio.bare("game");
    studio.user("hook").git(&bare, &["config", "http.receivepack", "true"]).quietly(0);
    studio.user("hook").git(&bare, &["symbolic-ref", "HEAD", "refs/heads/main"]).quietly(0);
    let web = web::serve(&studio.folder.path(""));
    let remote = |name: &str| format!("http://{name}:x@{web}/game.git");
    let ana = cloned(&studio, &studio.user("ana"), &remote("ana"));
    ana.git(&["config", "-f", ".lfsconfig", "lfs.url", &studio.url("game")]).quietly(0);
    ana.git(&["config", "-f", ".lfsconfig", "lfs.locksverify", "true"]).quietly(0);
    ana.write(".gitattributes", KEPT);
    ana.change("a.psd", "1");
    ana.git(&["push", "--quiet", "origin", "HEAD:main"]).succeeded();
    let bo = cloned(&studio, &studio.user("bo"), &remote("bo"));
    assert_eq!(std::fs::read_to_string(bo.place.join("a.psd")).unwrap(), "1");
    assert!(!bo.is_writable("a.psd"));
    ana.git(&["lfs", "lock", "a.psd"]).succeeded();
    assert_eq!(bo.git(&["lfs", "lock", "a.psd"]).code, Some(2));
    bo.change("a.psd", "of bo");
    // The stock client refuses; whoever leaves it out is refused by the server.
    let blocked = bo.git(&["push", "origin", "HEAD:main"]);
    assert_ne!(blocked.code, Some(0), "{blocked:?}");
    assert!(format!("{}{}", blocked.stdout, blocked.stderr).contains("a.psd - ana"), "{blocked:?}");
    bo.push(&["origin", "HEAD:main"])
        .failed(1, &["'a.psd': ana", "you push as 'bo', by the variable REMOTE_USER"]);
    ana.change("a.psd", "of ana");
    ana.git(&["push", "--quiet", "origin", "HEAD:main"]).succeeded();
    ana.git(&["lfs", "unlock", "a.psd"]).succeeded();
    bo.git(&["fetch", "--quiet"]).succeeded();
    bo.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    assert_eq!(std::fs::read_to_string(bo.place.join("a.psd")).unwrap(), "of ana");
    bo.git(&["lfs", "lock", "a.psd"]).succeeded();
    bo.change("a.psd", "of bo again");
    bo.git(&["push", "--quiet", "origin", "HEAD:main"]).succeeded();
}

#[test]
fn the_doctor_knows_when_git_lfs_is_not_there_and_when_the_url_is_wrong() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bin = studio.folder.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let folders = std::env::var("PATH").unwrap();
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join("git"));
    let git = places.find(|file| file.is_file()).unwrap();
    std::os::unix::fs::symlink(git, bin.join("git")).unwrap();
    let without: Ran = ana.command(&["doctor"]).env("PATH", &bin).output().unwrap().into();
    let without = without.failed(3, &[]).says("git-lfs is not there").says("apt-get install");
    without.says("1 thing to mend.");

    let wrong = |url: &str| {
        ana.git(&["config", "lfs.url", url]).quietly(0);
        ana.catraca(&["doctor"]).failed(3, &[])
    };
    wrong(&format!("http://{}/nothing", studio.address))
        .says("there are no locks at")
        .says("correct the URL: catraca git init --url");
    wrong("http://127.0.0.1:1/git/art/game")
        .says("nobody listens there")
        .says("start the node with --http ADDR, or correct the URL");
    wrong(&format!("http://{}/git/art", studio.address))
        .says("there are no locks at")
        .says("correct the URL");
    wrong(&format!("http://ana@{}/git/art/game", studio.address)).says("leave 'NAME@' out of it");
    wrong("elsewhere").says("'elsewhere' is no URL");
    ana.git(&["config", "--unset", "lfs.url"]).quietly(0);
    ana.catraca(&["doctor"]).quietly(0);
}

/// Passes on all that comes to `at`, as a proxy before a node does. Tells how many connections it has had.
fn proxy(at: &str, node: &str) -> Arc<AtomicUsize> {
    let (listener, node) = (TcpListener::bind(at).unwrap(), node.to_string());
    let passed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&passed);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(&node).unwrap());
            counted.fetch_add(1, Ordering::Relaxed);
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            // A connection that is cut off is no fault of the proxy.
            std::thread::spawn(move || {
                std::io::copy(&mut from, &mut to).ok();
                to.shutdown(std::net::Shutdown::Write).ok();
            });
            std::thread::spawn(move || {
                std::io::copy(&mut server, &mut client).ok();
                client.shutdown(std::net::Shutdown::Write).ok();
            });
        }
    });
    passed
}

#[test]
fn all_of_it_works_over_tls_with_tokens_and_objects_are_where_the_configuration_says() {
    let before = addresses(1).remove(0);
    let studio = Studio::open_over_tls(&before, &["--lfs-objects", "objects"]);
    let passed = proxy(&before, &studio.address);
    let bare = studio.bare("game");
    let user = |name: &str| {
        let user = studio.user(name);
        let file = user.home.join("credentials");
        let here = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, here.clone() + &here.replace(&studio.address, &before)).unwrap();
        user
    };
    let ana = cloned(&studio, &user("ana"), bare.to_str().unwrap());
    ana.catraca(&["init", "--url", &studio.url("game")]).quietly(0);
    ana.write(".gitattributes", KEPT);
    ana.change("a.psd", "an object");
    // Locks are asked for at the address that the repository says, objects at the one that the node says.
    ana.git(&["push", "--quiet", "origin", "HEAD:main"]).succeeded();
    assert!(passed.load(Ordering::Relaxed) > 0, "nothing went through the proxy");
    let bo = cloned(&studio, &user("bo"), bare.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(bo.place.join("a.psd")).unwrap(), "an object");
    ana.git(&["lfs", "lock", "a.psd"]).succeeded();
    assert_eq!(bo.git(&["lfs", "lock", "a.psd"]).code, Some(2));
    bo.catraca(&["whohas", "a.psd"]).quietly(0).says("ana");
    bo.catraca(&["lock", "a.psd"]).failed(1, &["'a.psd' is locked: ana"]);
    bo.change("a.psd", "of bo");
    bo.push(&["origin", "HEAD:main"]).failed(1, &["'a.psd': ana", "you push as 'bo'"]);
    bo.catraca(&["init"]).quietly(0);
    bo.catraca(&["doctor"]).quietly(0).says("the server calls you 'bo'");
    // Whoever does not trust the node, and whoever has no token, is told what to do.
    studio.folder.run(&["cert", "ca", "--out", "other"]).quietly(0);
    let other = studio.folder.path("other/ca.pem");
    let distrusts: Ran =
        bo.command(&["doctor"]).env("GIT_SSL_CAINFO", other).output().unwrap().into();
    distrusts.failed(3, &[]).says("an authority that is not trusted here").says("http.sslCAInfo");
    std::fs::remove_file(bo.user.home.join("credentials")).unwrap();
    bo.catraca(&["doctor"]).failed(3, &[]).says("give your token as the password");
    let wrong = studio.token("ana").replace("cat_", "cat_0");
    let wrong = |words: &[&str]| -> Ran {
        let url = studio.url("game");
        let words = [words, &["--url", &url]].concat();
        ana.command(&words).env("CATRACA_TOKEN", &wrong).output().unwrap().into()
    };
    wrong(&["locks"]).refused(&["does not know you"]);
    let told = wrong(&["doctor"]).failed(3, &[]).says("does not know you");
    told.says("catraca token add NAME --role lock");
    ana.git(&["lfs", "unlock", "a.psd"]).succeeded();
}

#[test]
fn the_keys_of_the_manual_tell_who_pushes_where_all_come_in_by_one_account() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/GIT.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let line = manual.lines().find_map(|line| line.strip_prefix("command=\"")).unwrap();
    let command = line.split("\",no-pty ").next().unwrap().replace("\\\"", "\"");
    assert!(command.starts_with("CATRACA_PUSHER=ana "), "{command}");
    // What sshd does for whoever has shown a key: git gives it the options, the host and the command.
    let by_key = |clone: &Clone| {
        let name = &clone.user.name;
        let sshd = studio.folder.path(&format!("sshd-{name}"));
        let own = command.replace("CATRACA_PUSHER=ana", &format!("CATRACA_PUSHER={name}"));
        let script = format!(
            "#!/bin/sh\nfor last; do :; done\nexport SSH_ORIGINAL_COMMAND=\"$last\"\n\
             unset CATRACA_PUSHER\n{own}\n"
        );
        std::fs::write(&sshd, script).unwrap();
        let mut push = clone.user.command("git", &clone.place);
        let remote = format!("ssh://git@host.example{}", bare.display());
        push.args(["push", "--quiet", "--no-verify", &remote, "HEAD:main"]);
        let ssh = format!("sh {}", sshd.display());
        push.env("GIT_SSH_COMMAND", ssh).env("GIT_SSH_VARIANT", "simple");
        Ran::from(push.output().unwrap())
    };
    bo.change("a.psd", "2");
    by_key(&bo).failed(1, &["'a.psd': ana", "you push as 'bo', by the variable CATRACA_PUSHER"]);
    ana.change("a.psd", "2");
    by_key(&ana).succeeded();
}

/// A node of a group whose members carry the labels of their teams.
struct Office {
    node: Process,
    url: String,
}

fn offices(folder: &Folder) -> Vec<Office> {
    let names = [("rio1", "rio"), ("rio2", "rio"), ("paris1", "paris")];
    let (peers, http) = (addresses(3), addresses(3));
    let member = |((name, team), address): (&(&str, &str), &String)| {
        format!("{name} = {{ address = '{address}', cluster = '{team}' }}\n")
    };
    let members: String = names.iter().zip(&peers).map(member).collect();
    folder.write("group.toml", format!("[members]\n{members}"));
    let office = |((name, _), http): ((&str, &str), &String)| {
        let audit = format!("{name}.log");
        let words = ["node", "--config", "group.toml", "--name", name, "--data", name];
        let flags = ["--lease", "15s", "--http", http, "--audit", &audit];
        let node = Process::start(folder.command(&[&words[..], &flags].concat()));
        Office { node, url: format!("http://{http}/git/art/game") }
    };
    names.into_iter().zip(&http).map(office).collect()
}

/// `catraca git` for somebody, who asks the node of the own office.
fn at(folder: &Folder, place: &Path, name: &str, office: &Office, words: &[&str]) -> Process {
    let url = office.url.replace("http://", &format!("http://{name}:x@"));
    let mut command = folder.command(&[&["git"], words, &["--url", &url]].concat());
    command.current_dir(place).env("HOME", place);
    Process::start(command)
}

#[test]
fn the_report_of_teams_is_beside_that_of_the_simulated_ones() {
    let folder = Folder::new();
    let offices = offices(&folder);
    let place = folder.path("game");
    let mut init = std::process::Command::new("git");
    assert!(init.args(["init", "--quiet"]).arg(&place).status().unwrap().success());
    let [rio1, rio2, paris1] = &offices[..] else { panic!("three offices") };
    let run = |who: &str, office: &Office, words: &[&str]| {
        at(&folder, &place, who, office, words).ends().code == Some(0)
    };
    wait_until("all nodes serve", || offices.iter().all(|office| run("ana", office, &["locks"])));
    // ana, then bo of the same team, then cy of the other team.
    let lock = ["lock", "--even-if-stale", "a.psd"];
    wait_until("a file can be locked", || run("ana", rio1, &lock));
    let waits = ["lock", "--even-if-stale", "--wait", "5m", "a.psd"];
    let bo = at(&folder, &place, "bo", rio2, &waits);
    let is_there = |name: &str, what: &str| folder.read(name).contains(what);
    wait_until("bo waits", || is_there("rio2.log", "\"git waits\""));
    assert!(run("ana", rio1, &["unlock", "a.psd"]));
    assert_eq!(bo.ends().code, Some(0));
    let cy = at(&folder, &place, "cy", paris1, &waits);
    wait_until("cy waits", || is_there("paris1.log", "\"git waits\""));
    let dan =
        at(&folder, &place, "dan", paris1, &["lock", "--even-if-stale", "--wait", "1s", "a.psd"]);
    assert_eq!(dan.ends().code, Some(124));
    assert!(run("bo", rio2, &["unlock", "a.psd"]));
    assert_eq!(cy.ends().code, Some(0));
    // Whoever only asks does not give up waiting.
    assert!(!run("ana", rio1, &lock));
    wait_until("all is written", || is_there("paris1.log", "\"git locked\""));

    let logs = ["git", "report", "rio1.log", "rio2.log", "paris1.log", "--config", "group.toml"];
    let report = folder.run(&[&logs[..], &["--json"]].concat()).quietly(0).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let measured = &report["measured"];
    assert_eq!((&measured["locks"], &measured["people"]), (&3.into(), &3.into()), "{report}");
    assert_eq!((&measured["given_up"], &measured["files"]), (&1.into(), &1.into()), "{report}");
    assert_eq!(measured["at_once_share"], 1.0 / 3.0, "only ana found it free: {report}");
    assert_eq!(measured["within_team_share"], 0.5, "{report}");
    assert_eq!(report["teams"]["rio"]["within_team_share"], 1.0, "{report}");
    assert_eq!(report["teams"]["paris"]["within_team_share"], 0.0, "{report}");
    let time = |of: &Value, key: &str| of[key].as_f64().unwrap_or_else(|| panic!("{key}: {of}"));
    let whole = time(measured, "people_mean_ms") + time(measured, "network_mean_ms");
    assert!((whole - time(measured, "wait_mean_ms")).abs() < 1e-6, "{report}");
    assert!(time(measured, "network_mean_ms") > 0.0, "a registry takes its time: {report}");
    let simulated = &report["s0_teams"];
    assert_eq!(time(simulated, "hold_mean_ms"), 180.0 * 60_000.0);
    // With three teams of the same size a third stays within one by chance.
    let within = time(simulated, "within_team_share");
    assert!((0.3..0.9).contains(&within), "{within}");
    assert!(time(simulated, "people_share") > 0.9);
    let shown = folder.run(&logs).quietly(0);
    let shown =
        shown.says("stayed within the team").says("50.0 %").says("Messages are not measured");
    shown.says("3 locks on 1 file, by 3 people");
    for office in &offices {
        office.node.signal("TERM");
    }
}
