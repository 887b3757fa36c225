//! The stock client, `git lfs`, against a real node.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use catraca_node::Node;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::{start, user};

/// A node that keeps objects, and a bare repository with two clones: of ann and of bob.
struct Team {
    _folder: TempDir,
    _node: Node,
    at: SocketAddr,
    ann: Checkout,
    bob: Checkout,
}

/// A clone of somebody.
#[derive(Clone)]
struct Checkout {
    folder: PathBuf,
    home: PathBuf,
}

impl Checkout {
    fn git(&self, arguments: &[&str]) -> Output {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&self.folder).env("HOME", &self.home);
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        git.output().unwrap()
    }

    /// What it says when it works.
    #[track_caller]
    fn works(&self, arguments: &[&str]) -> String {
        let output = self.git(arguments);
        assert!(output.status.success(), "git {arguments:?}: {}", said(&output));
        said(&output)
    }

    /// What it says when it does not.
    #[track_caller]
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.git(arguments);
        assert!(!output.status.success(), "git {arguments:?}: {}", said(&output));
        said(&output)
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.folder.join(name), content).unwrap();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn checkout(folder: &Path, name: &str, at: SocketAddr) -> Checkout {
    let home = folder.join(format!("home-{name}"));
    std::fs::create_dir(&home).unwrap();
    let clone = Checkout { folder: folder.join(name), home: home.clone() };
    let above = Checkout { folder: folder.to_path_buf(), home };
    above.works(&["lfs", "install"]);
    for (key, value) in
        [("user.name", name), ("user.email", "x@example.com"), ("init.defaultBranch", "main")]
    {
        above.works(&["config", "--global", key, value]);
    }
    above.works(&["config", "--global", "credential.helper", "store"]);
    std::fs::write(clone.home.join(".git-credentials"), format!("http://{name}:secret@{at}\n"))
        .unwrap();
    above.works(&["clone", "origin.git", name]);
    clone
}

async fn team() -> Team {
    let folder = tempfile::tempdir().unwrap();
    let objects = folder.path().join("objects");
    let (node, at) = start(|config| config.git.objects = Some(objects)).await;
    let place = folder.path().to_path_buf();
    let (ann, bob) = spawn_blocking(move || {
        let mut git = Command::new("git");
        git.args(["init", "--bare", "-b", "main", "origin.git"]).current_dir(&place);
        let made = git.output().unwrap();
        assert!(made.status.success(), "{}", said(&made));
        let ann = checkout(&place, "ann", at);
        ann.works(&["config", "-f", ".lfsconfig", "lfs.url", &format!("http://{at}/git/art/game")]);
        ann.works(&["config", "-f", ".lfsconfig", "lfs.locksverify", "true"]);
        ann.write(".gitattributes", "*.psd filter=lfs diff=lfs merge=lfs -text lockable\n");
        ann.write("a b.psd", "first");
        ann.write("ü.psd", "second");
        ann.works(&["add", "-A"]);
        ann.works(&["commit", "-m", "begin"]);
        ann.works(&["push", "-u", "origin", "main"]);
        let bob = checkout(&place, "bob", at);
        (ann, bob)
    })
    .await
    .unwrap();
    Team { _folder: folder, _node: node, at, ann, bob }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stock_client_locks_lists_unlocks_and_pushes_only_what_nobody_else_has_locked() {
    let team = team().await;
    let (ann, bob) = (team.ann.clone(), team.bob.clone());
    spawn_blocking(move || {
        // Bob's clone has got the objects from the node.
        assert_eq!(std::fs::read_to_string(bob.folder.join("a b.psd")).unwrap(), "first");
        let is_read_only = |clone: &Checkout, name: &str| {
            std::fs::metadata(clone.folder.join(name)).unwrap().permissions().readonly()
        };
        assert!(is_read_only(&bob, "a b.psd"));
        assert!(ann.works(&["lfs", "lock", "a b.psd"]).contains("Locked a b.psd"));
        let taken = bob.fails(&["lfs", "lock", "a b.psd"]);
        assert!(taken.contains("'ann' has locked 'a b.psd' since"), "{taken}");
        let listed = bob.works(&["lfs", "locks"]);
        assert!(listed.contains("a b.psd") && listed.contains("ann"), "{listed}");
        assert!(bob.works(&["lfs", "lock", "ü.psd"]).contains("Locked ü.psd"));
        assert!(!is_read_only(&bob, "ü.psd"));
        let verified = bob.works(&["lfs", "locks", "--verify"]);
        assert!(verified.lines().any(|line| line.starts_with("O ü.psd")), "{verified}");
        // Bob changes what ann has locked.
        std::fs::remove_file(bob.folder.join("a b.psd")).unwrap();
        bob.write("a b.psd", "of bob");
        bob.works(&["commit", "-am", "not mine"]);
        let blocked = bob.fails(&["push"]);
        assert!(
            blocked.contains("Unable to push locked files")
                || blocked.contains("locked by ann")
                || blocked.contains("a b.psd - ann"),
            "{blocked}"
        );
        bob.works(&["reset", "--hard", "origin/main"]);
        // Ann changes it herself.
        ann.write("a b.psd", "of ann");
        ann.works(&["commit", "-am", "mine"]);
        ann.works(&["push"]);
        assert!(bob.fails(&["lfs", "unlock", "a b.psd"]).contains("'ann' has locked"));
        assert!(ann.works(&["lfs", "unlock", "a b.psd"]).contains("Unlocked a b.psd"));
        bob.works(&["pull"]);
        assert_eq!(std::fs::read_to_string(bob.folder.join("a b.psd")).unwrap(), "of ann");
        assert!(bob.works(&["lfs", "lock", "a b.psd"]).contains("Locked"));
        assert!(ann.works(&["lfs", "unlock", "--force", "a b.psd"]).contains("Unlocked"));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stock_client_locks_files_with_odd_names_as_they_are() {
    let team = team().await;
    let (ann, bob) = (team.ann.clone(), team.bob.clone());
    spawn_blocking(move || {
        let names = ["quo\"te'd.psd", "-dash.psd", "--force.psd", "日本 ünï.psd", "%41&x=1?#.psd"];
        for name in names {
            ann.write(name, "first");
        }
        ann.works(&["add", "-A"]);
        ann.works(&["commit", "-m", "odd names"]);
        ann.works(&["push"]);
        bob.works(&["pull"]);
        for name in names {
            let locked = ann.works(&["lfs", "lock", "--", name]);
            assert!(locked.contains(&format!("Locked {name}")), "{locked}");
            let taken = bob.fails(&["lfs", "lock", "--", name]);
            assert!(taken.contains(&format!("'ann' has locked '{name}' since")), "{taken}");
        }
        let listed = bob.works(&["lfs", "locks"]);
        let verified = ann.works(&["lfs", "locks", "--verify"]);
        for name in names {
            assert!(listed.contains(name), "{listed}");
            assert!(
                verified.lines().any(|line| line.starts_with(&format!("O {name}"))),
                "{verified}"
            );
            std::fs::remove_file(bob.folder.join(name)).unwrap();
            // The client looks at contents, of which each has one path.
            bob.write(name, &format!("of bob: {name}"));
        }
        bob.works(&["commit", "-am", "not mine"]);
        let blocked = bob.fails(&["push"]);
        for name in names {
            assert!(blocked.contains(&format!("{name} - ann")), "{blocked}");
            assert!(ann.works(&["lfs", "unlock", "--", name]).contains("Unlocked"));
        }
        assert_eq!(bob.works(&["lfs", "locks"]), "");
        bob.works(&["push"]);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stock_client_waits_for_a_lock_with_a_header() {
    let team = team().await;
    let (ann, bob, at) = (team.ann.clone(), team.bob.clone(), team.at);
    let ann_has = ann.clone();
    spawn_blocking(move || ann_has.works(&["lfs", "lock", "a b.psd"])).await.unwrap();
    let waiting = spawn_blocking(move || {
        bob.works(&["-c", "http.extraHeader=Catraca-Wait: 5m", "lfs", "lock", "a b.psd"])
    });
    // Bob waits when the node says so.
    let waiters = async {
        loop {
            let path = "/v1/locks?name=git/art/game/a%2520b.psd";
            let locks = user(at, "x").ask("GET", path, None).await.json();
            if locks["locks"][0]["queue"].as_array().is_some_and(|queue| !queue.is_empty()) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::client::LIMIT, waiters).await.expect("bob waits");
    assert!(!waiting.is_finished());
    spawn_blocking(move || ann.works(&["lfs", "unlock", "a b.psd"])).await.unwrap();
    assert!(waiting.await.unwrap().contains("Locked a b.psd"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stock_client_continues_uploads_where_it_is_told_to() {
    let team = team().await;
    let ann = team.ann.clone();
    spawn_blocking(move || {
        ann.works(&["config", "lfs.tustransfers", "true"]);
        ann.write("big.psd", &"0123456789".repeat(200_000));
        ann.works(&["add", "-A"]);
        ann.works(&["commit", "-m", "big"]);
        ann.works(&["push"]);
        // A clone from scratch gets it from the node.
        let above =
            Checkout { folder: ann.folder.parent().unwrap().to_path_buf(), home: ann.home.clone() };
        above.works(&["clone", "origin.git", "third"]);
        let read = std::fs::read_to_string(above.folder.join("third/big.psd")).unwrap();
        assert_eq!(read.len(), 2_000_000);
    })
    .await
    .unwrap();
}
