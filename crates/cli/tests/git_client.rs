//! `catraca git` as people use it: real git, real Git LFS, real nodes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod support;

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use support::git::Studio;
use support::service::{Process, wait_until};

#[test]
fn a_repository_is_set_up_once_and_a_second_time_changes_nothing() {
    let studio = Studio::open();
    let ana = studio.user("ana");
    let place = studio.folder.path("fresh");
    ana.git(&studio.folder.path(""), &["init", "--quiet", "fresh"]).quietly(0);
    let hooks = place.join(".git/hooks");
    std::fs::write(hooks.join("pre-push"), "#!/bin/sh\ncat > .git/seen\n").unwrap();
    std::fs::set_permissions(hooks.join("pre-push"), PermissionsExt::from_mode(0o755)).unwrap();
    ana.catraca(&place, &["git", "init"]).refused(&["which server? say --url"]);
    let url = studio.url("fresh");
    let secret = url.replace("http://", "http://ana:secret@");
    let refused = ana.catraca(&place, &["git", "init", "--url", &secret]);
    assert!(!refused.refused(&["leave name and password out"]).stderr.contains("secret"));
    ana.catraca(&place, &["git", "init", "--url", "host/x"]).refused(&["'host/x' is no URL"]);
    let words = ["git", "init", "--url", &url, "*.psd", "a b/*.bin"];
    let changed = ana.catraca(&place, &words).quietly(0).stdout;
    for text in [
        &format!(".lfsconfig: lfs.url = {url}"),
        ".lfsconfig: lfs.locksverify = true",
        ".gitattributes: *.psd lockable",
        ".gitattributes: \"a b/*.bin\" lockable",
        "hook pre-push; what was there runs after it, as pre-push.before-catraca",
        "hook post-commit",
        "git add .lfsconfig .gitattributes && git commit",
    ] {
        assert!(changed.contains(text), "'{text}' is not in {changed}");
    }
    let before = everything(&place);
    ana.catraca(&place, &words).quietly(0).says("Nothing to change");
    assert_eq!(everything(&place), before);
    let attributes =
        ana.git(&place, &["check-attr", "lockable", "a b/x.bin", "x.psd", "x.c"]).stdout;
    assert_eq!(attributes.matches("lockable: set").count(), 2, "{attributes}");

    // The hook that was there is told what git tells, after ours.
    let bare = studio.bare("fresh");
    ana.git(&place, &["remote", "add", "origin", bare.to_str().unwrap()]).quietly(0);
    ana.git(&place, &["add", "--all"]).quietly(0);
    ana.git(&place, &["commit", "--quiet", "-m", "x"]).succeeded();
    ana.git(&place, &["push", "--quiet", "origin", "main"]).succeeded();
    let seen = std::fs::read_to_string(place.join(".git/seen")).unwrap();
    assert!(seen.starts_with("refs/heads/main "), "{seen}");
    ana.catraca(&bare, &["git", "init", "*.psd"])
        .refused(&["patterns and --locks-only are for its clones"]);
    let url = studio.url("elsewhere");
    ana.catraca(&bare, &["git", "init", "--url", &url]).quietly(0).says("(was http");
}

/// The files of a repository and of its hooks, with their content.
fn everything(place: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for folder in [place.to_path_buf(), place.join(".git"), place.join(".git/hooks")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                all.push((path.display().to_string(), std::fs::read(path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn ten_thousand_locks_are_listed_by_the_stock_client_and_by_ours() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let files: Vec<String> = (0..10_000).map(|number| format!("scene/{number:05}.psd")).collect();
    for part in files.chunks(250) {
        let words = ["lock", "--all-or-none", "--even-if-stale"];
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        ana.catraca(&[&words[..], &part].concat()).succeeded();
    }
    let stock = ana.git(&["lfs", "locks"]);
    let listed: Vec<&str> =
        stock.stdout.lines().filter_map(|line| line.split('\t').next()).collect();
    let listed: Vec<&str> = listed.iter().map(|path| path.trim()).collect();
    assert_eq!(listed, files, "{}", stock.stderr);
    let ours = ana.catraca(&["locks", "--json"]).succeeded();
    let ours: Value = serde_json::from_str(&ours.stdout).unwrap();
    let ours = ours.as_array().or_else(|| ours["locks"].as_array()).unwrap();
    let paths: Vec<&str> = ours.iter().map(|lock| lock["path"].as_str().unwrap()).collect();
    assert_eq!(paths, files);
}

#[test]
fn a_client_that_is_stopped_in_the_middle_keeps_nobody_out_and_goes_on_later() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    bo.catraca(&["lock", "a.psd"]).quietly(0);
    let waiting = Process::start(ana.command(&["lock", "a.psd", "b.psd", "--wait", "5m"]));
    wait_until("it waits", || studio.folder.read("audit.log").contains("\"git waits\""));
    waiting.signal("STOP");
    // Nothing is held meanwhile.
    bo.catraca(&["lock", "b.psd"]).quietly(0);
    bo.catraca(&["unlock", "a.psd", "b.psd"]).succeeded();
    // The server gives them to whoever waits, also if it does not read at this moment.
    wait_until("they are locked", || {
        let locks = bo.catraca(&["locks"]).stdout;
        locks.contains("a.psd") && locks.contains("b.psd") && !locks.contains("bo")
    });
    waiting.signal("CONT");
    assert_eq!(waiting.ends().code, Some(0));
    assert!(ana.is_writable("a.psd") && ana.is_writable("b.psd"));
}

#[test]
fn files_are_locked_listed_and_unlocked_beside_the_stock_client() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    assert!(!bo.is_writable("a.psd"), "a file that is lockable is read-only until it is locked");
    ana.catraca(&["lock", "a.psd", "--note", "new helmet"]).quietly(0).says("locked a.psd");
    assert!(ana.is_writable("a.psd"));
    let again = ana.catraca(&["lock", "a.psd"]);
    again.quietly(0).says("'a.psd' is yours already");
    bo.catraca(&["lock", "a.psd"])
        .failed(1, &["'a.psd' is locked: ana, for", "(new helmet) has it"]);
    bo.catraca(&["whohas", "a.psd"]).quietly(0).says("ana, for");
    bo.catraca(&["whohas", "code.c"]).failed(1, &[]).says("nobody has locked 'code.c'");
    let json: Value =
        serde_json::from_str(&bo.catraca(&["whohas", "a.psd", "--json"]).stdout).unwrap();
    assert_eq!(
        (json["owner"]["name"].as_str(), json["note"].as_str()),
        (Some("ana"), Some("new helmet"))
    );

    // The same locks as those of Git LFS.
    bo.git(&["lfs", "locks"]).succeeded().says("a.psd");
    assert_eq!(bo.git(&["lfs", "lock", "a.psd"]).code, Some(2));
    bo.git(&["lfs", "lock", "b.psd"]).succeeded();
    let all = ana.catraca(&["locks"]).quietly(0).stdout;
    assert!(all.contains("a.psd") && all.contains("b.psd") && all.contains("2 locks"), "{all}");
    let mine = ana.catraca(&["locks", "--mine"]).quietly(0).stdout;
    assert!(mine.contains("a.psd") && !mine.contains("b.psd"), "{mine}");
    ana.catraca(&["locks", "--owner", "nobody"]).quietly(0).says("No file is locked by 'nobody'.");
    ana.catraca(&["locks", "--older", "2w"]).quietly(0).says("for longer than 14 d");
    let mut listed = 0;
    wait_until("a second has passed", || {
        let older = ana.catraca(&["locks", "--older", "1s", "--json"]).quietly(0).stdout;
        let older: Value = serde_json::from_str(&older).unwrap();
        listed = older["locks"].as_array().unwrap().len();
        listed == 2
    });

    // Commits of a file that is locked leave it writable: Git LFS was told.
    ana.write("a.psd", "2");
    ana.catraca(&["unlock", "a.psd"]).failed(3, &["changes that are not committed"]);
    ana.commit("helmet");
    assert!(ana.is_writable("a.psd"));
    ana.catraca(&["unlock", "a.psd"])
        .failed(0, &["'a.psd' has commits that are not pushed"])
        .says("unlocked a.psd");
    assert!(!ana.is_writable("a.psd"));
    ana.catraca(&["unlock", "a.psd"]).failed(1, &["nobody has locked 'a.psd'"]);
    ana.catraca(&["unlock", "b.psd"]).failed(1, &["'b.psd'", "bo"]);
    ana.catraca(&["unlock", "b.psd", "--force"]).failed(1, &["administer"]);
    let id = |clone: &support::git::Clone| -> String {
        let lock: Value =
            serde_json::from_str(&clone.catraca(&["whohas", "b.psd", "--json"]).stdout).unwrap();
        lock["id"].as_str().unwrap().to_string()
    };
    bo.catraca(&["unlock", "--id", &id(&bo)]).quietly(0).says("unlocked b.psd");
    bo.catraca(&["unlock", "--id", "nonsense"]).failed(1, &["no lock with the id"]);
    ana.catraca(&["locks"]).quietly(0).says("No file is locked.");
}

#[test]
fn paths_may_have_any_character_and_are_seen_from_where_one_is() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    let names = [
        "art/with space.psd",
        "art/quo\"te'.psd",
        "art/ünï-日本.psd",
        "-dash.psd",
        "art/*.psd",
        "art/%41&x=1?.psd",
    ];
    for name in names {
        ana.write(name, "1");
    }
    ana.commit("odd names");
    ana.push(&["origin", "main"]).succeeded();
    let words = [&["lock", "--even-if-stale", "--"], &names[..]].concat();
    ana.catraca(&words).quietly(0);
    bo.git(&["pull", "--quiet"]).succeeded();
    for name in names {
        bo.catraca(&["whohas", "--", name]).quietly(0).says("ana");
        assert!(ana.is_writable(name) && !bo.is_writable(name), "{name}");
    }
    let under = ana.catraca(&["locks", "--under", "art", "--json"]).quietly(0).stdout;
    let under: Value = serde_json::from_str(&under).unwrap();
    let mut under: Vec<&str> =
        under["locks"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    under.sort_unstable();
    let mut expected: Vec<&str> =
        names.into_iter().filter(|name| name.starts_with("art/")).collect();
    expected.sort_unstable();
    assert_eq!(under, expected);
    // From within a folder, and by an absolute path.
    let art = ana.place.join("art");
    let inside = ana.user.catraca(&art, &["git", "unlock", "with space.psd", "../-dash.psd"]);
    inside.quietly(0).says("unlocked art/with space.psd").says("unlocked -dash.psd");
    let absolute = art.join("ünï-日本.psd");
    ana.catraca(&["unlock", absolute.to_str().unwrap()]).quietly(0);
    for name in &names[1..] {
        bo.change(name, "2");
    }
    bo.push(&["origin", "main"])
        .failed(1, &["'art/quo\"te'.psd'", "'art/*.psd'", "'art/%41&x=1?.psd'"]);
    ana.catraca(&["lock", "../outside"]).refused(&["'../outside' is not in this repository"]);
    ana.catraca(&["lock", "/etc/passwd"]).refused(&["is not in this repository"]);
    ana.catraca(&["lock", "art"]).refused(&["'art' is a folder"]);
    ana.catraca(&["lock", ".git/config"]).refused(&["belongs to git itself"]);
    ana.catraca(&["lock", ""]).refused(&["a path is empty"]);
    let early = ana.catraca(&["lock", "not-yet.psd"]);
    early.failed(0, &["there is no file 'not-yet.psd' yet"]).says("locked not-yet.psd");
    ana.user.catraca(&bare, &["git", "lock", "x"]).refused(&["this is a bare repository"]);
    let nowhere = ana.user.catraca(&studio.folder.path(""), &["git", "lock", "x"]);
    nowhere.refused(&["not a git repository"]);
}

#[test]
fn nobody_waits_for_what_they_have_themselves() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    ana.git(&["lfs", "lock", "a.psd"]).succeeded();
    ana.catraca(&["lock", "a.psd", "b.psd", "--wait", "1h"])
        .quietly(0)
        .says("'a.psd' is yours already")
        .says("locked b.psd");
    bo.catraca(&["lock", "b.psd", "--all-or-none"]).failed(1, &["ana"]);
    ana.catraca(&["lock", "a.psd", "b.psd", "--wait", "1h"]).quietly(0).says("'b.psd' is yours");
    bo.catraca(&["lock", "code.c"]).quietly(0);
    ana.catraca(&["lock", "a.psd", "code.c", "--all-or-none"])
        .failed(1, &["'code.c' is locked: bo"]);
}

#[test]
fn several_files_are_taken_all_or_none_and_waited_for() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    ana.catraca(&["lock", "b.psd"]).quietly(0);
    // One by one, what is free is locked.
    bo.catraca(&["lock", "a.psd", "b.psd"])
        .failed(1, &["'b.psd' is locked: ana"])
        .says("locked a.psd");
    bo.catraca(&["unlock", "a.psd"]).quietly(0);
    let none = bo.catraca(&["lock", "--all-or-none", "a.psd", "b.psd", "c.psd"]);
    none.failed(1, &["'b.psd' is locked: ana", "nothing was locked"]);
    bo.catraca(&["locks", "--mine"]).quietly(0).says("No file is locked by you.");
    let late = bo.catraca(&["lock", "--wait", "1s", "a.psd", "b.psd"]);
    late.failed(124, &["waits for 'b.psd': ana", "not had in time"]);
    bo.catraca(&["locks", "--mine"]).quietly(0).says("No file is locked by you.");
    let waiting = Process::start(bo.command(&["lock", "--wait", "5m", "a.psd", "b.psd"]));
    waiting.complains("waits for 'b.psd': ana");
    ana.change("b.psd", "2");
    ana.push(&["origin", "main"]).succeeded();
    ana.catraca(&["unlock", "b.psd"]).quietly(0);
    let had = waiting.ends();
    assert_eq!(had.code, Some(0), "{}", had.stderr);
    assert!(had.stdout.contains("locked a.psd\nlocked b.psd"), "{}", had.stdout);
    assert!(had.stderr.contains("'b.psd' was changed while you waited: pull"), "{}", had.stderr);
    // Ctrl-C gives up, and leaves nothing behind.
    let waiting = Process::start(ana.command(&["lock", "--wait", "5m", "a.psd"]));
    waiting.complains("waits for 'a.psd': bo");
    waiting.signal("INT");
    assert_eq!(waiting.ends().code, Some(130));
    bo.catraca(&["unlock", "a.psd", "b.psd"]).quietly(0);
    bo.catraca(&["lock", "a.psd"]).failed(0, &[]).says("locked a.psd");
    ana.catraca(&["lock", "--wait", "5", "a.psd"]).refused(&["--wait: '5' is no time", "5m"]);
    ana.catraca(&["lock", "--wait", "2d", "a.psd"]).refused(&["at most 24h"]);
    let many: Vec<String> = (0..257).map(|number| format!("f{number}")).collect();
    let many: Vec<&str> =
        ["lock", "--all-or-none"].into_iter().chain(many.iter().map(String::as_str)).collect();
    ana.catraca(&many).refused(&["257 files are too many to lock at once"]);
    ana.catraca(&[&many[..2], &many[2..258]].concat()).failed(0, &[]).says("locked f255");
}

#[test]
fn whoever_is_stopped_while_copies_are_compared_has_locked_nothing() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    // A remote that does not answer as long as a file is there.
    let [slow, asked, hangs] = ["slow", "asked", "hangs"].map(|name| studio.folder.path(name));
    let script = format!(
        "#!/bin/sh\necho >'{}'\nwhile [ -e '{}' ]; do sleep 0.05; done\nexec git upload-pack \"$@\"\n",
        asked.display(),
        hangs.display()
    );
    std::fs::write(&slow, script).unwrap();
    std::fs::set_permissions(&slow, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(&hangs, "").unwrap();
    ana.git(&["config", "remote.origin.uploadpack", slow.to_str().unwrap()]).quietly(0);
    let was_writable = ana.is_writable("a.psd");
    let all = ["lock", "--all-or-none", "a.psd", "b.psd"];
    for words in [&["lock", "a.psd", "b.psd"][..], &all] {
        let locking = Process::start(ana.command(words));
        wait_until("the remote is asked", || asked.exists());
        ana.catraca(&["whohas", "b.psd"]).quietly(0).says("ana");
        locking.signal("INT");
        let stopped = locking.ends();
        assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(130), ""), "{}", stopped.stderr);
        ana.catraca(&["locks"]).quietly(0).says("No file is locked.");
        assert_eq!(ana.is_writable("a.psd"), was_writable);
        std::fs::remove_file(&asked).unwrap();
    }
    std::fs::remove_file(&hangs).unwrap();
    ana.catraca(&all).quietly(0).says("locked b.psd");
}

#[test]
fn a_lock_is_stolen_in_one_step() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    bo.catraca(&["steal", "a.psd"]).failed(1, &["nobody has locked 'a.psd'"]);
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    ana.catraca(&["steal", "a.psd"]).quietly(0).says("'a.psd' is yours already");
    bo.catraca(&["steal", "a.psd", "--note", "ana is away"])
        .quietly(0)
        .says("'a.psd' is yours now; before, ana");
    assert!(bo.is_writable("a.psd"));
    ana.catraca(&["whohas", "a.psd"]).quietly(0).says("(ana is away)");
    ana.catraca(&["unlock", "a.psd"]).failed(1, &["bo"]);
    // Whoever has an older copy has the lock, and is told to pull.
    bo.change("a.psd", "2");
    bo.push(&["origin", "main"]).succeeded();
    ana.catraca(&["steal", "a.psd"])
        .failed(0, &["your copy of 'a.psd' is older", "pull before you change it"])
        .says("'a.psd' is yours now; before, bo");
    bo.catraca(&["steal", "a.psd"]).quietly(0);
    let eve = studio.clone(&studio.user("eve"), &bare);
    eve.catraca(&["steal", "a.psd"]).failed(1, &["'a.psd'", "lock"]);
    eve.catraca(&["lock", "b.psd"]).failed(1, &["lock"]);
    wait_until("it is in the audit log", || studio.folder.read("audit.log").contains("stolen"));
}

#[test]
fn a_stale_copy_is_not_locked() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    ana.change("a.psd", "2");
    ana.push(&["origin", "main"]).succeeded();
    bo.catraca(&["lock", "b.psd"]).quietly(0);
    bo.catraca(&["unlock", "b.psd"]).quietly(0);
    let stale = bo.catraca(&["lock", "a.psd", "b.psd"]);
    stale.failed(3, &["your copy of 'a.psd' is older", "pull first"]).says("locked b.psd");
    bo.catraca(&["whohas", "a.psd"]).failed(1, &[]);
    bo.catraca(&["lock", "--wait", "1m", "a.psd"]).failed(3, &["your copy of 'a.psd' is older"]);
    let none = bo.catraca(&["lock", "--all-or-none", "a.psd", "code.c"]);
    none.failed(3, &["your copy of 'a.psd' is older"]);
    bo.catraca(&["whohas", "code.c"]).failed(1, &[]);
    bo.catraca(&["lock", "--even-if-stale", "a.psd"]).quietly(0);
    bo.catraca(&["unlock", "a.psd"]).quietly(0);
    bo.git(&["pull", "--quiet"]).succeeded();
    bo.catraca(&["lock", "a.psd"]).quietly(0);
    bo.catraca(&["unlock", "a.psd"]).quietly(0);
    // On a branch of one's own the default branch of the remote counts too.
    bo.git(&["checkout", "--quiet", "-b", "mine"]).succeeded();
    ana.change("a.psd", "3");
    ana.push(&["origin", "main"]).succeeded();
    bo.catraca(&["lock", "a.psd"]).failed(3, &["your copy of 'a.psd' is older"]);
    // Nobody knows without the remote.
    std::fs::rename(&bare, studio.folder.path("away.git")).unwrap();
    bo.catraca(&["lock", "a.psd"])
        .failed(3, &["cannot tell whether your copy is current", "--even-if-stale"]);
    bo.catraca(&["whohas", "a.psd"]).failed(1, &[]);
}

#[test]
fn users_prove_themselves_as_to_git() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    let credentials = ana.user.home.join("credentials");
    let good = std::fs::read_to_string(&credentials).unwrap();
    // A wrong password is forgotten.
    std::fs::write(&credentials, good.replace("cat_", "cat_0")).unwrap();
    ana.catraca(&["locks"]).refused(&["does not know you"]);
    assert_eq!(std::fs::read_to_string(&credentials).unwrap(), "");
    ana.catraca(&["locks"]).refused(&["wants to know who you are", "credential helper"]);
    // A token is not shown to a server that only the repository names.
    let with_token = |words: &[&str]| -> support::Ran {
        ana.command(words).env("CATRACA_TOKEN", studio.token("ana")).output().unwrap().into()
    };
    with_token(&["locks"]).refused(&["wants to know who you are"]);
    let url = studio.url("game");
    with_token(&["locks", "--url", &url]).quietly(0).says("a.psd");
    let file = studio.token_file("ana");
    ana.catraca(&["locks", "--url", &url, "--token-file", &file]).quietly(0);
    ana.catraca(&["locks", "--url", &url, "--token-file", "/nowhere"])
        .refused(&["cannot read '/nowhere'"]);
    ana.git(&["config", "catraca.url", &url]).quietly(0);
    with_token(&["locks"]).quietly(0);
    ana.git(&["config", "--unset", "catraca.url"]).quietly(0);
    let header = format!("Authorization: Bearer {}", studio.token("ana"));
    let key = format!("http.http://{}/.extraHeader", studio.address);
    ana.git(&["config", &key, &header]).quietly(0);
    ana.catraca(&["locks"]).quietly(0).says("a.psd");
    ana.git(&["config", "--unset", &key]).quietly(0);
    let with_secret = url.replace("http://", &format!("http://ana:{}@", studio.token("ana")));
    ana.git(&["config", "lfs.url", &with_secret]).quietly(0);
    ana.catraca(&["locks"]).quietly(0).says("a.psd");
    ana.git(&["config", "lfs.url", "http://127.0.0.1:1/git/x/y"]).quietly(0);
    ana.catraca(&["locks"])
        .failed(125, &["cannot reach http://127.0.0.1:1/git/x/y: nobody listens there"]);
    ana.git(&["config", "lfs.url", &format!("http://{}/nothing", studio.address)]).quietly(0);
    assert_eq!(with_token(&["locks"]).code, Some(2));
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_how_to_mend_it() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let well = ana.catraca(&["doctor"]).quietly(0);
    let well = well.says("the server calls you 'ana'").says("Everything is as it should be.");
    assert!(well.stdout.contains("2 files are lockable"), "{}", well.stdout);
    // What Git LFS does when a server does not know how to verify.
    let key = format!("lfs.{}.locksverify", studio.url("game"));
    ana.git(&["config", &key, "false"]).quietly(0);
    std::fs::remove_file(ana.place.join(".git/hooks/pre-push")).unwrap();
    let ill = ana.catraca(&["doctor"]);
    assert_eq!(ill.code, Some(3));
    let ill = ill.says(&format!("git config --unset '{key}'")).says("hooks are missing");
    ill.says("2 things to mend.");
    ana.git(&["config", "--unset", &key]).quietly(0);
    ana.catraca(&["init"]).quietly(0).says("hook pre-push");
    ana.catraca(&["doctor"]).quietly(0);
    std::fs::set_permissions(
        ana.place.join(".git/hooks/pre-push"),
        PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    ana.catraca(&["doctor"]).failed(3, &[]).says("it is not executable").says("chmod +x");
    ana.catraca(&["init"]).quietly(0).says("hook pre-push");
    std::fs::remove_file(ana.user.home.join("credentials")).unwrap();
    let json = ana.catraca(&["doctor", "--json"]).failed(3, &[]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let wrong: Vec<&Value> =
        json.as_array().unwrap().iter().filter(|it| !it["remedy"].is_null()).collect();
    assert!(
        wrong.len() == 1 && wrong[0]["what"].as_str().unwrap().contains("who you are"),
        "{json}"
    );
    ana.user.catraca(&bare, &["git", "doctor"]).quietly(0).says("the server calls the hook 'hook'");
    ana.user.git(&bare, &["config", "catraca.unreachable", "maybe"]).quietly(0);
    ana.user.catraca(&bare, &["git", "doctor"]).failed(3, &[]).says("'maybe', which means nothing");
}

#[test]
fn git_calls_the_program_by_its_own_name() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let folder = studio.folder.path("bin");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_catraca"), folder.join("git-catraca")).unwrap();
    let mut command = ana.user.command("git", &ana.place);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let ran: support::Ran =
        command.args(["catraca", "lock", "a.psd"]).env("PATH", path).output().unwrap().into();
    ran.quietly(0).says("locked a.psd");
}

#[test]
fn locks_outlive_the_node_and_whoever_asks_again_is_told() {
    let mut studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    studio.restart();
    wait_until("the node serves again", || ana.catraca(&["locks"]).code == Some(0));
    ana.catraca(&["whohas", "a.psd"]).quietly(0).says("ana");
    wait_until("the node grants again", || ana.catraca(&["lock", "b.psd"]).code == Some(0));
    ana.catraca(&["lock", "a.psd"]).quietly(0).says("is yours already");
}

#[test]
fn the_report_tells_what_people_waited_for() {
    let studio = Studio::open();
    let bare = studio.bare("game");
    let ana = studio.clone(&studio.user("ana"), &bare);
    let bo = studio.clone(&studio.user("bo"), &bare);
    ana.catraca(&["lock", "a.psd"]).quietly(0);
    let waiting = Process::start(bo.command(&["lock", "--wait", "5m", "a.psd"]));
    waiting.complains("waits for 'a.psd': ana");
    wait_until("bo waits", || studio.folder.read("audit.log").contains("\"what\":\"waits\""));
    ana.catraca(&["unlock", "a.psd"]).quietly(0);
    assert_eq!(waiting.ends().code, Some(0));
    wait_until("all is written", || {
        studio.folder.read("audit.log").matches("\"granted\"").count() >= 2
    });
    let words = ["git", "report", "audit.log", "--no-simulation", "--json"];
    let report = studio.folder.run(&words).quietly(0).stdout;
    let report: Value = serde_json::from_str(&report).unwrap();
    let measured = &report["measured"];
    assert_eq!(
        (measured["locks"].as_u64(), measured["people"].as_u64()),
        (Some(2), Some(2)),
        "{report}"
    );
    assert!(measured["people_mean_ms"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(measured["at_once_share"], 0.5, "ana found it free: {report}");
    let people = measured["people_share"].as_f64().unwrap();
    assert!(people > 0.0 && people <= 1.0, "{report}");
    let other = studio.folder.run(&[
        "git",
        "report",
        "audit.log",
        "--no-simulation",
        "--repository",
        "art/other",
    ]);
    other.quietly(0).says("No file was locked");
    studio.folder.run(&["git", "report", "none.log"]).refused(&["cannot read 'none.log'"]);
    studio.folder.run(&["git", "report", "tokens"]).refused(&["'tokens' is no audit log"]);
}
