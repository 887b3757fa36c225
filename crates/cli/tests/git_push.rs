//! Pushes that are refused or not, and locks that are released by them: real git, real hooks, real nodes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::path::Path;

use support::git::{Clone, Studio, User};
use support::{Ran, web};

/// The words that a push is refused with.
const REFUSED: &str = "the push is refused: it changes what somebody else has locked";

/// Two people with a clone each; ana has locked 'a.psd' and 'b.psd'.
fn two(studio: &Studio, name: &str) -> (Clone, Clone) {
    let bare = studio.bare(name);
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    ana.catraca(&["lock", "a.psd", "b.psd"]).quietly(0);
    (ana, bo)
}

#[test]
fn changes_deletions_and_renames_of_what_others_have_locked_are_refused_on_any_branch() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "game");
    let main = "HEAD:refs/heads/main";
    bo.change("a.psd", "2");
    let refused =
        bo.push(&["origin", main]).failed(1, &[REFUSED, "'a.psd': ana, for", "you push as 'bo'"]);
    assert!(!refused.stderr.contains("b.psd"), "{}", refused.stderr);
    bo.push(&["origin", "HEAD:refs/heads/new"]).failed(1, &[REFUSED]);
    bo.push(&["origin", "HEAD:refs/tags/v1"]).failed(1, &[REFUSED]);
    // A later commit that undoes it does not help: the change would be there.
    bo.change("a.psd", "1");
    bo.push(&["origin", main]).failed(1, &[REFUSED]);
    bo.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    bo.git(&["rm", "--quiet", "b.psd"]).succeeded();
    bo.commit("without b");
    bo.push(&["origin", main]).failed(1, &["'b.psd': ana"]);
    bo.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    bo.git(&["mv", "a.psd", "renamed.psd"]).succeeded();
    bo.commit("renamed");
    bo.push(&["origin", main]).failed(1, &["'a.psd': ana"]);
    bo.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    bo.change("code.c", "2");
    bo.push(&["origin", main]).succeeded();
    bo.push(&["origin", "HEAD:refs/heads/new"]).succeeded();
    bo.push(&["origin", ":refs/heads/new"]).succeeded();
    // The owner may do all of it.
    ana.git(&["pull", "--quiet", "--rebase"]).succeeded();
    ana.change("a.psd", "2");
    ana.git(&["rm", "--quiet", "b.psd"]).succeeded();
    ana.commit("without b");
    ana.push(&["origin", main]).succeeded();
    // By hand is the policy: they stay locked.
    ana.catraca(&["locks", "--mine"]).quietly(0).says("2 locks");
}

#[test]
fn merging_what_others_were_allowed_to_do_is_no_change() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "game");
    // ana's change is on the default branch; bo merges it into a branch of his.
    bo.git(&["checkout", "--quiet", "-b", "topic"]).succeeded();
    bo.change("code.c", "2");
    bo.push(&["origin", "topic"]).succeeded();
    ana.change("a.psd", "2");
    ana.push(&["origin", "main"]).succeeded();
    bo.git(&["fetch", "--quiet"]).succeeded();
    bo.git(&["merge", "--quiet", "--no-edit", "origin/main"]).succeeded();
    bo.push(&["origin", "topic"]).succeeded();
    // ana's change is on a branch of hers; bo merges it into the default branch, with and without a commit.
    ana.git(&["checkout", "--quiet", "-b", "helmet"]).succeeded();
    ana.change("a.psd", "3");
    ana.push(&["origin", "helmet"]).succeeded();
    bo.git(&["fetch", "--quiet"]).succeeded();
    bo.git(&["checkout", "--quiet", "-B", "main", "origin/main"]).succeeded();
    bo.git(&["merge", "--quiet", "--no-ff", "--no-edit", "origin/helmet"]).succeeded();
    bo.push(&["origin", "main"]).succeeded();
    ana.change("b.psd", "3");
    ana.git(&["fetch", "--quiet"]).succeeded();
    ana.git(&["rebase", "--quiet", "origin/main"]).succeeded();
    ana.push(&["--force", "origin", "helmet"]).succeeded();
    bo.git(&["fetch", "--quiet"]).succeeded();
    bo.push(&["origin", "refs/remotes/origin/helmet:refs/heads/main"]).succeeded();
    // A merge that changes the file itself is a change.
    bo.git(&["checkout", "--quiet", "-B", "main", "origin/main"]).succeeded();
    bo.git(&["checkout", "--quiet", "-b", "evil", "HEAD~1"]).succeeded();
    bo.change("code.c", "3");
    bo.git(&["merge", "--quiet", "--no-commit", "--no-ff", "main"]).succeeded();
    bo.write("a.psd", "evil");
    bo.commit("merge");
    bo.push(&["origin", "evil:main"]).failed(1, &["'a.psd': ana"]);
}

#[test]
fn what_the_owner_did_is_not_taken_back() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "game");
    bo.git(&["config", "receive.denyNonFastForwards", "false"]).succeeded();
    bo.change("code.c", "2");
    ana.change("a.psd", "2");
    ana.push(&["origin", "main"]).succeeded();
    let takes_back = "the push takes a change of it back";
    // A merge that keeps only one's own side.
    bo.git(&["fetch", "--quiet"]).succeeded();
    bo.git(&["merge", "--quiet", "--strategy=ours", "--no-edit", "origin/main"]).succeeded();
    bo.push(&["origin", "main"]).failed(1, &[REFUSED, "'a.psd': ana", takes_back]);
    // Not in two steps either: on a branch of one's own it hurts nobody, but it may not go on from there.
    bo.push(&["origin", "main:refs/heads/side"]).succeeded();
    bo.git(&["fetch", "--quiet"]).succeeded();
    bo.push(&["origin", "refs/remotes/origin/side:refs/heads/main"]).failed(1, &[takes_back]);
    // By force.
    bo.push(&["--force", "origin", "main~1:refs/heads/main"]).failed(1, &[takes_back]);
    // One's own work may be taken back.
    bo.git(&["checkout", "--quiet", "-B", "mine", "origin/main"]).succeeded();
    bo.change("code.c", "3");
    bo.push(&["origin", "mine"]).succeeded();
    bo.push(&["--force", "origin", "mine~1:refs/heads/mine"]).succeeded();
}

#[test]
fn a_change_from_before_the_lock_waits_for_its_end() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    bo.git(&["checkout", "--quiet", "-b", "early"]).succeeded();
    bo.write("a.psd", "early");
    bo.git(&["add", "a.psd"]).succeeded();
    let mut commit = bo.user.command("git", &bo.place);
    commit
        .args(["commit", "--quiet", "-m", "early"])
        .env("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z");
    Ran::from(commit.output().unwrap()).succeeded();
    bo.push(&["origin", "early"]).succeeded();
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    bo.git(&["fetch", "--quiet"]).succeeded();
    let to_main = ["origin", "refs/remotes/origin/early:refs/heads/main"];
    bo.push(&to_main).failed(1, &["'a.psd': ana", "from before the lock"]);
    ana.catraca(&["unlock", "a.psd"]).quietly(0);
    bo.push(&to_main).succeeded();
}

#[test]
fn the_first_push_odd_tags_submodules_and_many_refs_are_looked_at_in_the_same_way() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "game");
    // Tags of a tree and of a file say nothing of paths.
    let tree = bo.git(&["rev-parse", "HEAD^{tree}"]).stdout.trim().to_string();
    let blob = bo.git(&["rev-parse", "HEAD:a.psd"]).stdout.trim().to_string();
    bo.git(&["tag", "-a", "-m", "x", "tree", &tree]).succeeded();
    bo.git(&["tag", "blob", &blob]).succeeded();
    bo.git(&["tag", "-a", "-m", "x", "twice", "tree"]).succeeded();
    bo.push(&["origin", "tree", "blob", "twice"]).succeeded();
    // Four thousand tags, and one more that changes something.
    let head = bo.git(&["rev-parse", "HEAD"]).stdout.trim().to_string();
    let lines: String =
        (0..4000).map(|number| format!("create refs/tags/t{number} {head}\n")).collect();
    std::fs::write(bo.place.join(".git/refs-to-make"), lines).unwrap();
    let made = "git update-ref --stdin < .git/refs-to-make";
    Ran::from(bo.user.command("sh", &bo.place).args(["-c", made]).output().unwrap()).succeeded();
    bo.push(&["--tags", "origin"]).succeeded();
    bo.git(&["tag", "--list"]).succeeded();
    bo.change("a.psd", "2");
    let all: String =
        (0..4000).map(|number| format!("create refs/tags/u{number} HEAD\n")).collect();
    std::fs::write(bo.place.join(".git/refs-to-make"), all).unwrap();
    Ran::from(bo.user.command("sh", &bo.place).args(["-c", made]).output().unwrap()).succeeded();
    bo.push(&["--tags", "origin"]).failed(1, &["'a.psd': ana"]);
    bo.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    // A submodule is a path like others.
    ana.catraca(&["lock", "lib"]).failed(0, &["no file 'lib' yet"]);
    let place = bo.place.to_str().unwrap();
    bo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", place, "lib"])
        .succeeded();
    bo.commit("a submodule");
    bo.push(&["origin", "HEAD:main"]).failed(1, &["'lib': ana"]);
    // The first push to an empty repository.
    let empty = studio.bare("empty");
    let fresh = studio.folder.path("fresh");
    bo.user
        .git(&studio.folder.path(""), &["clone", "--quiet", empty.to_str().unwrap(), "fresh"])
        .succeeded();
    let fresh = Clone { user: bo.user.clone(), place: fresh };
    let (url, token) = (studio.url("empty"), studio.token_file("ana"));
    ana.catraca(&["lock", "x.psd", "--url", &url, "--token-file", &token]).failed(0, &[]);
    fresh.change("x.psd", "1");
    fresh.push(&["origin", "HEAD:main"]).failed(1, &["'x.psd': ana"]);
    fresh.git(&["mv", "x.psd", "y.psd"]).succeeded();
    fresh.git(&["commit", "--quiet", "--amend", "-m", "y"]).succeeded();
    fresh.push(&["origin", "HEAD:main"]).succeeded();
    fresh.push(&["origin", "HEAD:main"]).succeeded();
}

#[test]
fn a_repository_with_long_ids_is_no_different() {
    let studio = Studio::open();
    let bare = studio.bare_with("long", &["--object-format=sha256"]);
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    bo.change("a.psd", "2");
    bo.push(&["origin", "HEAD:main"]).failed(1, &[REFUSED]);
    bo.push(&["origin", "HEAD:refs/heads/new"]).failed(1, &[REFUSED]);
    bo.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    bo.change("code.c", "2");
    bo.push(&["origin", "HEAD:main"]).succeeded();
}

#[test]
fn who_pushes_is_told_by_the_server_of_the_repository_and_mapped_to_owners() {
    let studio = Studio::open();
    let (ana, _) = two(&studio, "game");
    let bare = studio.folder.path("game.git");
    ana.change("a.psd", "2");
    let push_as = |variables: &[(&str, &str)]| -> Ran {
        // The hook is asked as git would ask it: nothing arrives, however it answers.
        let ids = ana.git(&["rev-parse", "origin/main", "HEAD"]).stdout;
        let ids: Vec<&str> = ids.lines().collect();
        let line = format!("{} {} refs/heads/main\n", ids[0], ids[1]);
        std::fs::write(studio.folder.path("told"), line).unwrap();
        let mut hook = ana.user.command("hooks/pre-receive", &bare);
        let objects = ana.place.join(".git/objects");
        hook.env_remove("CATRACA_PUSHER").env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects);
        hook.env("GIT_QUARANTINE_PATH", bare.join("objects/incoming-x")).env("GIT_DIR", ".");
        hook.stdin(std::fs::File::open(studio.folder.path("told")).unwrap())
            .envs(variables.iter().copied());
        hook.output().unwrap().into()
    };
    for variable in ["GL_USERNAME", "GITEA_PUSHER_NAME", "GL_USER", "REMOTE_USER"] {
        push_as(&[(variable, "ana")]).quietly(0);
        push_as(&[(variable, "bo")])
            .failed(1, &[REFUSED, &format!("you push as 'bo', by the variable {variable}")]);
    }
    push_as(&[("REMOTE_USER", "ana"), ("GL_USERNAME", "bo")]).failed(1, &[REFUSED]);
    push_as(&[]).failed(1, &["by the user of the system"]);
    let config = |words: &[&str]| ana.user.git(&bare, &[&["config"], words].concat()).quietly(0);
    config(&["catraca.Ana.Maria@example.org.owner", "ana"]);
    push_as(&[("GL_USERNAME", "Ana.Maria@example.org")]).quietly(0);
    config(&["catraca.ana.owner", "bo"]);
    push_as(&[("GL_USERNAME", "ana")])
        .failed(1, &["you push as 'ana', whose locks are those of 'bo'"]);
    // Whoever has a name for each clone has the locks of all of them, and an empty name takes those before back.
    config(&["--add", "catraca.ana.owner", "ana"]);
    push_as(&[("GL_USERNAME", "ana")]).quietly(0);
    config(&["--add", "catraca.ana.owner", ""]);
    config(&["--add", "catraca.ana.owner", "ana-desk"]);
    config(&["--add", "catraca.ana.owner", "ana-laptop"]);
    push_as(&[("GL_USERNAME", "ana")])
        .failed(1, &["you push as 'ana', whose locks are those of 'ana-desk' and 'ana-laptop'"]);
    config(&["catraca.pusherVariable", "GITEA_PUSHER_NAME"]);
    push_as(&[("GL_USERNAME", "x")])
        .failed(2, &["cannot tell who pushes: none of GITEA_PUSHER_NAME is set"]);
    push_as(&[("GITEA_PUSHER_NAME", "Ana.Maria@example.org")]).quietly(0);
}

#[test]
fn pushes_by_http_are_refused_too() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "game");
    let bare = studio.folder.path("game.git");
    ana.user.git(&bare, &["config", "http.receivepack", "true"]).quietly(0);
    let address = web::serve(&studio.folder.path(""));
    let remote = |user: &User| format!("http://{}:x@{address}/game.git", user.name);
    let check = |clone: &Clone| clone.git(&["ls-remote", &remote(&clone.user)]).succeeded();
    check(&ana).says("refs/heads/main");
    // More than git sends in one piece.
    bo.write("large.bin", &"0123456789abcdef".repeat(1 << 12));
    bo.change("a.psd", "2");
    bo.push(&[&remote(&bo.user), "HEAD:main"])
        .failed(1, &[REFUSED, "you push as 'bo', by the variable REMOTE_USER"]);
    ana.change("a.psd", "3");
    ana.push(&[&remote(&ana.user), "HEAD:main"]).succeeded();
}

#[test]
fn a_push_that_nobody_can_judge_is_refused_unless_it_is_allowed() {
    let studio = Studio::open();
    let (_, bo) = two(&studio, "game");
    let bare = studio.folder.path("game.git");
    let config = |words: &[&str]| bo.user.git(&bare, &[&["config"], words].concat()).quietly(0);
    bo.change("code.c", "2");
    config(&["catraca.url", "http://127.0.0.1:1/git/art/game"]);
    let words =
        ["the push is refused, because nobody can tell what is locked", "nobody listens there"];
    bo.push(&["origin", "HEAD:main"]).failed(1, &words);
    config(&["catraca.unreachable", "allow"]);
    let allowed = bo.push(&["origin", "HEAD:main"]).succeeded();
    assert!(allowed.stderr.contains("goes on without a look at the locks"), "{}", allowed.stderr);
    // A file of the repository never says whom the hook asks.
    config(&["--unset", "catraca.url"]);
    bo.change("code.c", "3");
    bo.push(&["origin", "HEAD:main"])
        .failed(1, &["no server for locks is set for this repository"]);
    config(&["catraca.url", &studio.url("game")]);
    config(&["catraca.tokenFile", "/nowhere"]);
    bo.push(&["origin", "HEAD:main"]).failed(1, &["catraca.tokenFile: cannot read '/nowhere'"]);
    config(&["--unset", "catraca.tokenFile"]);
    bo.push(&["origin", "HEAD:main"])
        .failed(1, &["the hook needs a token: git config catraca.tokenFile FILE"]);
    config(&["catraca.tokenFile", &studio.token_file("eve")]);
    bo.push(&["origin", "HEAD:main"]).succeeded();
    let nonsense =
        bo.user.command(env!("CARGO_BIN_EXE_catraca"), &bare).args(["git", "pre-receive"]).output();
    Ran::from(nonsense.unwrap()).quietly(0);
}

#[test]
fn the_hook_of_a_clone_refuses_before_anything_is_sent() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "game");
    bo.change("a.psd", "2");
    let refused = bo.git(&["push", "origin", "main"]);
    let refused = refused.failed(1, &[REFUSED, "'a.psd': ana", "you are 'bo'"]);
    assert!(!refused.stderr.contains("remote:"), "{}", refused.stderr);
    bo.git(&["push", "origin", "HEAD:refs/heads/new"]).failed(1, &[REFUSED]);
    bo.git(&["reset", "--quiet", "--hard", "origin/main"]).succeeded();
    bo.change("code.c", "2");
    bo.git(&["push", "--quiet", "origin", "main"]).succeeded();
    // What the remote has gained meanwhile is not known here, and is git's to refuse.
    ana.git(&["pull", "--quiet", "--rebase"]).succeeded();
    ana.change("a.psd", "2");
    ana.git(&["push", "--quiet", "origin", "main"]).succeeded();
    bo.change("code.c", "3");
    bo.git(&["push", "--quiet", "origin", "main"]).failed(1, &["fetch first"]);
    bo.git(&["pull", "--quiet", "--no-rebase", "--no-edit"]).succeeded();
    bo.git(&["push", "--quiet", "origin", "main"]).succeeded();
    bo.git(&["push", "--quiet", "origin", ":refs/heads/none"]).succeeded();
    // A clone that knows of no server lets everything pass.
    std::fs::remove_file(bo.place.join(".lfsconfig")).unwrap();
    bo.commit("no server");
    bo.git(&["push", "--quiet", "origin", "HEAD:refs/heads/free"]).succeeded();
}

/// Whether somebody has the lock, as `clone` sees it.
fn is_locked(clone: &Clone, path: &str) -> bool {
    clone.catraca(&["whohas", path]).code == Some(0)
}

#[test]
fn locks_are_released_when_their_owner_pushes() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "pushed");
    bo.catraca(&["lock", "code.c"]).quietly(0);
    ana.change("a.psd", "2");
    let pushed = ana.push(&["origin", "HEAD:refs/heads/helmet"]).succeeded();
    assert!(pushed.stderr.contains("unlocked 'a.psd'"), "{}", pushed.stderr);
    assert!(!is_locked(&ana, "a.psd") && is_locked(&ana, "b.psd") && is_locked(&ana, "code.c"));
    // What was pushed before is not pushed again.
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    ana.push(&["origin", "HEAD:refs/heads/other"]).succeeded();
    assert!(is_locked(&ana, "a.psd"));
    ana.push(&["origin", ":refs/heads/other"]).succeeded();
    assert!(is_locked(&ana, "a.psd"));
}

#[test]
fn locks_of_all_clones_of_whoever_pushes_are_released() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "pushed");
    // ana has locked 'a.psd' in one of her clones, and 'code.c' under the name of another.
    bo.catraca(&["lock", "code.c"]).quietly(0);
    let bare = studio.folder.path("pushed.git");
    for owner in ["ana", "bo"] {
        ana.user.git(&bare, &["config", "--add", "catraca.ana.owner", owner]).quietly(0);
    }
    ana.write("code.c", "2");
    ana.change("a.psd", "2");
    let pushed = ana.push(&["origin", "HEAD:refs/heads/helmet"]).succeeded();
    assert!(pushed.stderr.contains("unlocked 'a.psd'"), "{}", pushed.stderr);
    assert!(pushed.stderr.contains("unlocked 'code.c'"), "{}", pushed.stderr);
    assert!(!is_locked(&ana, "a.psd") && !is_locked(&ana, "code.c") && is_locked(&ana, "b.psd"));
}

#[test]
fn a_change_that_is_written_in_other_letters_keeps_a_lock_where_letters_do_not_count() {
    let studio = Studio::open();
    let bare = studio.bare("folded");
    let ana = studio.clone(&studio.user("ana"), &bare);
    ana.write("Art/A\u{e9}.psd", "1");
    ana.commit("art");
    ana.push(&["origin", "HEAD:main"]).succeeded();
    // The same file, as commits from two kinds of machines write it.
    ana.catraca(&["lock", "Art/A\u{e9}.psd"]).quietly(0);
    ana.git(&["checkout", "--quiet", "-b", "more"]).succeeded();
    ana.git(&["rm", "--quiet", "--cached", "Art/A\u{e9}.psd"]).succeeded();
    std::fs::remove_dir_all(ana.place.join("Art")).unwrap();
    ana.change("art/Ae\u{301}.psd", "3");
    ana.push(&["origin", "more"]).succeeded();
    ana.git(&["checkout", "--quiet", "main"]).succeeded();
    ana.change("Art/A\u{e9}.psd", "2");
    let pushed = ana.push(&["origin", "HEAD:main"]).succeeded();
    let said = &pushed.stderr;
    assert!(said.contains("stays locked: another branch has a change of it"), "{said}");
    assert!(is_locked(&ana, "Art/A\u{e9}.psd"));
    ana.git(&["merge", "--quiet", "--strategy=ours", "--no-edit", "more"]).succeeded();
    ana.change("Art/A\u{e9}.psd", "4");
    ana.push(&["origin", "HEAD:main"]).succeeded();
    assert!(!is_locked(&ana, "Art/A\u{e9}.psd"));
}

#[test]
fn a_lock_that_is_written_in_other_letters_is_of_the_same_file_for_hooks_and_copies() {
    let studio = Studio::open();
    let bare = studio.bare("folded");
    let ana = studio.clone(&studio.user("ana"), &bare);
    // The commits have e with an accent, the lock has é.
    let (written, locked) = ("Cafe\u{301}.psd", "caf\u{e9}.psd");
    ana.change(written, "1");
    ana.push(&["origin", "HEAD:main"]).succeeded();
    let bo = studio.clone(&studio.user("bo"), &bare);
    bo.push(&["origin", "main:refs/heads/topic"]).succeeded();
    ana.catraca(&["lock", locked]).succeeded();
    ana.git(&["checkout", "--quiet", "-b", "helmet"]).succeeded();
    ana.change(written, "2");
    ana.push(&["origin", "helmet"]).succeeded();
    // What the owner did may be taken over, and not be taken back.
    bo.git(&["fetch", "--quiet"]).succeeded();
    bo.push(&["origin", "refs/remotes/origin/helmet:refs/heads/topic"]).succeeded();
    bo.push(&["--force", "origin", "main:refs/heads/topic"])
        .failed(1, &[REFUSED, "the push takes a change of it back"]);
    ana.catraca(&["unlock", locked]).succeeded();
    ana.push(&["origin", "helmet:main"]).succeeded();
    bo.catraca(&["lock", locked]).failed(3, &["your copy of 'caf\u{e9}.psd' is older"]);
    ana.catraca(&["lock", written]).succeeded();
    // Nobody waits for what is theirs.
    ana.catraca(&["lock", locked, "code.c", "--wait", "1h"])
        .succeeded()
        .says("is yours already")
        .says("locked code.c");
}

#[test]
fn a_push_of_more_files_than_are_asked_for_at_once_is_looked_at_as_a_whole() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "game");
    // Nothing is changed, and nothing is new: there is nothing to be refused.
    bo.git(&["commit", "--quiet", "--allow-empty", "--message", "nothing"]).succeeded();
    bo.push(&["origin", "HEAD:main"]).succeeded();
    bo.push(&["origin", "HEAD:main"]).succeeded();
    ana.catraca(&["lock", "--even-if-stale", "many/500/50000.bin"]).succeeded();
    let mut made = String::from("blob\nmark :1\ndata 1\nx\n");
    made += "commit refs/heads/many\ncommitter bo <bo@example.org> now\ndata 4\nmany\n";
    made += "from refs/heads/main\n";
    // A name that is no text cannot be locked, and hinders nobody.
    made += "M 100644 :1 \"odd\\377.bin\"\n";
    for number in 0..=50_000 {
        made += &format!("M 100644 :1 many/{:03}/{number:05}.bin\n", number / 100);
    }
    std::fs::write(bo.place.join(".git/made"), made).unwrap();
    let import = "git fast-import --quiet --date-format=now < .git/made";
    Ran::from(bo.user.command("sh", &bo.place).args(["-c", import]).output().unwrap()).succeeded();
    let refused = bo.push(&["origin", "many"]).failed(1, &[REFUSED, "'many/500/50000.bin': ana"]);
    assert_eq!(refused.stderr.matches(": ana, for").count(), 1, "{}", refused.stderr);
    ana.catraca(&["unlock", "many/500/50000.bin"]).succeeded();
    bo.push(&["origin", "many"]).succeeded();
}

#[test]
fn a_push_with_more_locks_in_its_way_than_can_be_judged_is_refused_and_names_some() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "game");
    let files: Vec<String> = (0..65).map(|number| format!("set/{number:02}.bin")).collect();
    let lock = ["lock", "--all-or-none", "--even-if-stale"];
    let words: Vec<&str> = lock.into_iter().chain(files.iter().map(String::as_str)).collect();
    ana.catraca(&words).succeeded();
    for file in &files {
        ana.write(file, "1");
    }
    ana.commit("a set");
    ana.push(&["origin", "HEAD:main"]).succeeded();
    bo.push(&["--force", "origin", "HEAD:main"]).failed(
        1,
        &[REFUSED, "'set/00.bin': ana", "there is too much in this push", "and 45 more"],
    );
}

#[test]
fn four_thousand_tags_are_pushed_with_all_hooks() {
    let studio = Studio::open();
    let (_, bo) = two(&studio, "game");
    let lines: String =
        (0..4000).map(|number| format!("create refs/tags/t{number} HEAD\n")).collect();
    std::fs::write(bo.place.join(".git/refs-to-make"), lines).unwrap();
    let made = "git update-ref --stdin < .git/refs-to-make";
    Ran::from(bo.user.command("sh", &bo.place).args(["-c", made]).output().unwrap()).succeeded();
    let mut push = bo.user.command("git", &bo.place);
    push.args(["push", "--quiet", "--tags", "origin"]).env("GIT_TRACE", "1");
    let pushed = Ran::from(push.output().unwrap()).succeeded();
    // The stock client asks once for each ref.
    let asked = pushed
        .stderr
        .lines()
        .filter(|line| line.contains("POST") && line.contains("/locks/verify"));
    assert!(asked.count() >= 4000, "the stock client has asked less often");
    // And ours looks at what the remote does not have yet.
    assert!(pushed.stderr.contains("--remotes=origin"), "our hook was not run");
    let there = bo.git(&["ls-remote", "--tags", "origin"]).succeeded().stdout;
    assert_eq!(there.lines().count(), 4000);
}

#[test]
fn locks_are_released_when_the_change_has_reached_the_default_branch() {
    let studio = Studio::open();
    let (ana, bo) = two(&studio, "merged");
    ana.git(&["checkout", "--quiet", "-b", "helmet"]).succeeded();
    ana.change("a.psd", "2");
    ana.change("b.psd", "2");
    ana.push(&["origin", "helmet"]).succeeded();
    assert!(is_locked(&ana, "a.psd") && is_locked(&ana, "b.psd"));
    // There is more to come of one of them, on another branch.
    ana.git(&["checkout", "--quiet", "-b", "more"]).succeeded();
    ana.change("b.psd", "3");
    ana.push(&["origin", "more"]).succeeded();
    // Somebody else merges.
    bo.git(&["fetch", "--quiet"]).succeeded();
    bo.git(&["merge", "--quiet", "--no-ff", "--no-edit", "origin/helmet"]).succeeded();
    let merged = bo.push(&["origin", "main"]).succeeded();
    let said = &merged.stderr;
    assert!(said.contains("unlocked 'a.psd'") && said.contains("'b.psd' stays locked"), "{said}");
    assert!(!is_locked(&ana, "a.psd") && is_locked(&ana, "b.psd"));
    bo.git(&["merge", "--quiet", "--no-edit", "origin/more"]).succeeded();
    bo.push(&["origin", "main"]).succeeded();
    assert!(!is_locked(&ana, "b.psd"));
}

#[test]
fn a_token_that_may_not_release_is_told_and_the_push_has_happened() {
    let studio = Studio::open();
    let (ana, _) = two(&studio, "pushed");
    let bare: &Path = &studio.folder.path("pushed.git");
    let words = ["config", "catraca.tokenFile", &studio.token_file("eve")];
    ana.user.git(bare, &words).quietly(0);
    ana.change("a.psd", "2");
    let pushed = ana.push(&["origin", "HEAD:main"]).succeeded();
    assert!(pushed.stderr.contains("'a.psd' stays locked"), "{}", pushed.stderr);
    assert!(is_locked(&ana, "a.psd"));
}
