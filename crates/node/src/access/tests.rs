//! What tokens, users and certificates are good for.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use catraca_group::{Line, LineKey, Page, Query, Selection};
use proptest::prelude::*;

use super::*;
use crate::config::TlsFiles;

/// A file of tokens, and how to change it.
struct Tokens {
    folder: tempfile::TempDir,
}

impl Tokens {
    fn new() -> Self {
        let tokens = Tokens { folder: tempfile::tempdir().unwrap() };
        TokenFile::change(&tokens.path(), |_| Ok(())).unwrap();
        tokens
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tokens")
    }

    fn add(&self, name: &str, role: Role, names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        TokenFile::change(&self.path(), |file| file.add(name, role, &names, "now")).unwrap()
    }

    fn revoke(&self, name: &str) {
        TokenFile::change(&self.path(), |file| file.revoke(name)).unwrap();
    }

    fn access(&self) -> Access {
        let config = SecurityConfig { tokens: Some(self.path()), ..SecurityConfig::default() };
        Access::new(&config).unwrap()
    }
}

fn certificate(name: &str, is_member: bool) -> Origin {
    Origin::Certificate(Certificate { names: vec![name.to_string()], is_member })
}

#[test]
fn a_node_that_was_told_nothing_asks_nobody() {
    let access = Access::new(&SecurityConfig::default()).unwrap();
    for origin in [Origin::Loopback, Origin::Network, Origin::Unix { uid: 12345, gid: 1 }] {
        for token in [None, Some("whatever")] {
            let identity = access.identify(token, &origin).unwrap();
            assert_eq!(identity.may(Role::Administer, ["x"]), Ok(()));
            assert_eq!(identity.may_own("somebody"), Ok(()));
            let is_called = !matches!(origin, Origin::Unix { .. });
            assert_eq!(access.admit_member(token, &origin).is_ok(), is_called);
        }
    }
}

#[test]
fn with_tokens_everybody_shows_one() {
    let tokens = Tokens::new();
    let token = tokens.add("ci", Role::Lock, &["ci/*", "nightly"]);
    let access = tokens.access();
    for origin in [Origin::Loopback, Origin::Network] {
        assert_eq!(access.identify(None, &origin).unwrap_err(), Denied::NoToken);
        let longer = format!("{token}x");
        let long = "x".repeat(1 << 20);
        for wrong in ["", "cat_", &token[..token.len() - 1], &longer, &long] {
            let denied = access.identify(Some(wrong), &origin).unwrap_err();
            assert_eq!(denied, Denied::UnknownToken, "{wrong:.80}");
        }
        let identity = access.identify(Some(&token), &origin).unwrap();
        assert_eq!(identity.name, "ci");
        assert_eq!(identity.may(Role::Observe, []), Ok(()));
        assert_eq!(identity.may(Role::Lock, ["ci/build", "nightly"]), Ok(()));
        for wrong in ["ci", "prod/x", "nightly/x", "../ci/x", "ci/", "CI/x"] {
            let may = identity.may(Role::Lock, ["ci/build", wrong]);
            let covered = wrong == "ci/";
            assert_eq!(may.is_ok(), covered, "{wrong}: {may:?}");
        }
        let denied = identity.may(Role::Administer, ["ci/build"]).unwrap_err();
        assert!(matches!(denied, Denied::Role { has: Role::Lock, .. }), "{denied:?}");
        assert!(identity.may_everywhere(Role::Lock).is_err());
    }
}

#[test]
fn a_holder_of_a_token_owns_what_has_its_name() {
    let tokens = Tokens::new();
    let (one, all) = (tokens.add("ci", Role::Lock, &[]), tokens.add("ana", Role::Administer, &[]));
    let access = tokens.access();
    let ci = access.identify(Some(&one), &Origin::Loopback).unwrap();
    assert_eq!((ci.may_own("ci"), ci.may_own("ci/job-1")), (Ok(()), Ok(())));
    for other in ["", "c", "ci2", "ana", "cix/ci"] {
        assert!(matches!(ci.may_own(other), Err(Denied::Owner { .. })), "{other}");
    }
    let ana = access.identify(Some(&all), &Origin::Loopback).unwrap();
    assert_eq!(ana.may_own("ci"), Ok(()));
}

#[test]
fn what_was_revoked_is_of_no_use_also_to_whoever_came_before() {
    let tokens = Tokens::new();
    let (kept, gone) = (tokens.add("kept", Role::Lock, &[]), tokens.add("gone", Role::Lock, &[]));
    let access = tokens.access();
    let mut readings = access.readings();
    let identities =
        [&kept, &gone].map(|token| access.identify(Some(token), &Origin::Network).unwrap());
    tokens.revoke("gone");
    assert!(identities.iter().all(Identity::is_known), "nobody has read the file again");
    access.reload().unwrap();
    assert!(readings.has_changed().unwrap());
    readings.mark_unchanged();
    assert!(identities[0].is_known() && !identities[1].is_known());
    assert_eq!(identities[1].may(Role::Observe, []), Err(Denied::UnknownToken));
    assert!(!identities[1].sees("x"));
    assert!(access.identify(Some(&gone), &Origin::Network).is_err());
    // A file that cannot be read changes nothing.
    std::fs::write(tokens.path(), "nonsense").unwrap();
    assert!(access.reload().is_err());
    assert!(identities[0].is_known() && !readings.has_changed().unwrap());
}

#[test]
fn a_role_that_changes_changes_for_whoever_is_there() {
    let tokens = Tokens::new();
    let token = tokens.add("ci", Role::Lock, &[]);
    let access = tokens.access();
    let identity = access.identify(Some(&token), &Origin::Network).unwrap();
    let text = std::fs::read_to_string(tokens.path()).unwrap();
    std::fs::write(tokens.path(), text.replace("\"lock\"", "\"observe\"")).unwrap();
    access.reload().unwrap();
    assert!(matches!(identity.may(Role::Lock, []), Err(Denied::Role { has: Role::Observe, .. })));
}

#[test]
fn the_system_says_who_a_user_of_this_machine_is() {
    let tokens = Tokens::new();
    let other = 4_000_000_000;
    let mut access = tokens.access();
    let role_of = |access: &Access, uid| {
        let identity = access.identify(None, &Origin::Unix { uid, gid: uid }).unwrap();
        let roles = [Role::Administer, Role::Lock, Role::Observe];
        (identity.name.clone(), roles.into_iter().find(|&role| identity.may(role, []).is_ok()))
    };
    assert_eq!(role_of(&access, 0), ("root".to_string(), Some(Role::Administer)));
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(role_of(&access, own).1, Some(Role::Administer));
    assert_eq!(role_of(&access, other), (format!("uid-{other}"), Some(Role::Lock)));
    access.config.socket_role = Role::Observe;
    assert_eq!(role_of(&access, other).1, Some(Role::Observe));
    access.config.socket_administrators.push(other);
    assert_eq!(role_of(&access, other).1, Some(Role::Administer));
    // A token counts more than what the system says.
    let token = tokens.add("ci", Role::Observe, &[]);
    access.reload().unwrap();
    let identity = access.identify(Some(&token), &Origin::Unix { uid: 0, gid: 0 }).unwrap();
    assert_eq!(identity.name, "ci");
}

#[test]
fn members_prove_themselves_by_what_the_group_uses() {
    let tokens = Tokens::new();
    let lock = tokens.add("ci", Role::Lock, &[]);
    let administer = tokens.add("members", Role::Administer, &[]);
    let mut access = tokens.access();
    let member = access.admit_member(Some(&administer), &Origin::Network).unwrap().unwrap();
    assert!(member.name == "members" && member.is_by_token());
    let some = tokens.add("some", Role::Administer, &["ci/*"]);
    access.reload().unwrap();
    let refused = access.admit_member(Some(&some), &Origin::Network).unwrap_err();
    assert!(matches!(refused, Denied::Group { .. }), "a member has every name: {refused}");
    let refused = access.admit_member(None, &Origin::Loopback).unwrap_err();
    assert_eq!((refused.who(), &refused), (None, &Denied::NoToken));
    assert!(matches!(access.admit_member(Some(&lock), &Origin::Network), Err(Denied::Role { .. })));
    let file = || PathBuf::from("x");
    access.config.tls =
        Some(TlsFiles { certificate: file(), key: file(), authority: Some(file()) });
    for (origin, admitted) in [
        (certificate("a", true), true),
        (certificate("a", false), false),
        (Origin::Network, false),
        (Origin::Loopback, false),
        (Origin::Unix { uid: 0, gid: 0 }, false),
    ] {
        let answer = access.admit_member(Some(&administer), &origin);
        assert_eq!(answer.is_ok(), admitted, "{origin:?}");
    }
}

#[test]
fn a_certificate_names_whoever_shows_it() {
    let file = || PathBuf::from("x");
    let tls = TlsFiles { certificate: file(), key: file(), authority: Some(file()) };
    let config = SecurityConfig {
        tls: Some(tls),
        certificate_administrators: vec!["ana".to_string()],
        ..SecurityConfig::default()
    };
    let access = Access::new(&config).unwrap();
    assert_eq!(access.identify(None, &Origin::Loopback).unwrap_err(), Denied::NoToken);
    let may = |origin, role| access.identify(None, &origin).unwrap().may(role, ["x"]).is_ok();
    assert!(may(certificate("ana", false), Role::Administer));
    assert!(may(certificate("bo", false), Role::Lock));
    assert!(!may(certificate("bo", false), Role::Administer));
    assert!(may(certificate("bo", true), Role::Administer));
}

/// Bytes that count how many of them were looked at.
fn counted<'a>(bytes: &'a [u8], looks: &'a Cell<usize>) -> impl Iterator<Item = u8> + 'a {
    bytes.iter().map(|byte| {
        looks.set(looks.get() + 1);
        *byte
    })
}

proptest! {
    #[test]
    fn a_comparison_looks_at_every_byte_wherever_the_first_difference_is(
        one in any::<Digest>(), place in 0..32usize, bit in 0..8u32,
    ) {
        let mut other = one;
        other[place] ^= 1 << bit;
        let looks = Cell::new(0);
        prop_assert!(difference(counted(&one, &looks), counted(&other, &looks)) != 0);
        prop_assert_eq!(looks.get(), 64);
        prop_assert!(is_same(&one, &one) && !is_same(&one, &other));
    }
}

#[test]
fn a_token_has_256_random_bits_and_only_its_digest_is_stored() {
    let tokens = Tokens::new();
    let made: Vec<String> =
        (0..20).map(|it| tokens.add(&format!("n{it}"), Role::Lock, &[])).collect();
    let text = std::fs::read_to_string(tokens.path()).unwrap();
    for (place, token) in made.iter().enumerate() {
        // 32 bytes take 43 letters.
        assert_eq!((&token[..4], token.len()), ("cat_", 47));
        assert!(!made[..place].contains(token) && !text.contains(&token[4..]));
    }
    let mode = std::fs::metadata(tokens.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_file_that_others_can_write_or_that_is_wrong_is_refused_with_the_reason() {
    let tokens = Tokens::new();
    tokens.add("ci", Role::Lock, &["ci/*"]);
    let text = std::fs::read_to_string(tokens.path()).unwrap();
    for mode in [0o620, 0o602, 0o666] {
        std::fs::set_permissions(tokens.path(), PermissionsExt::from_mode(mode)).unwrap();
        let error = TokenFile::read(&tokens.path()).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    std::fs::set_permissions(tokens.path(), PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(TokenFile::read(&tokens.path()).unwrap().entries.len(), 1);
    let cases = [
        (text.replace("\"lock\"", "\"king\""), "unknown variant"),
        (text.replace("sha256 = \"", "sha256 = \"zz"), "is not 64 hexadecimal digits"),
        (text.replace("\"ci\"", "\"c i\""), "is no name for a token"),
        (text.replace("\"ci/*\"", "\"\""), "a pattern of names is not empty"),
        (format!("{text}\n{text}"), "is there twice"),
        (text.replace("names", "nmaes"), "line 5: unknown field"),
    ];
    for (wrong, expected) in cases {
        std::fs::write(tokens.path(), wrong).unwrap();
        let error = TokenFile::read(&tokens.path()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
    std::fs::remove_file(tokens.path()).unwrap();
    assert!(TokenFile::read(&tokens.path()).unwrap_err().to_string().contains("cannot read"));
}

#[test]
fn a_file_has_so_many_tokens_and_no_more() {
    let mut file = TokenFile::default();
    for number in 0..MOST_TOKENS {
        file.add(&number.to_string(), Role::Observe, &[], "").unwrap();
    }
    assert!(matches!(file.add("more", Role::Observe, &[], ""), Err(TokenError::Full)));
    assert!(matches!(file.add("1", Role::Observe, &[], ""), Err(TokenError::Twice(_))));
    file.revoke("1").unwrap();
    file.add("more", Role::Observe, &[], "").unwrap();
    assert!(matches!(file.revoke("1"), Err(TokenError::Unknown { .. })));
    let long = "n".repeat(LONGEST_TOKEN_NAME);
    assert!(matches!(file.add(&format!("{long}n"), Role::Lock, &[], ""), Err(TokenError::Name(_))));
}

#[test]
fn two_who_add_tokens_at_once_lose_none() {
    let tokens = Tokens::new();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let tokens = &tokens;
            scope.spawn(move || tokens.add(&format!("w{writer}"), Role::Lock, &[]));
        }
    });
    assert_eq!(TokenFile::read(&tokens.path()).unwrap().entries.len(), 8);
}

fn line(name: &str) -> Line {
    let key =
        LineKey { name: name.to_string(), permits: 1, place: 0, node: "a".to_string(), ticket: 0 };
    let (label, host) = (String::new(), String::new());
    Line { key, fence: None, label, pid: 0, host, millis: 0, durable: None }
}

#[tokio::test]
async fn a_list_has_what_one_may_see_and_all_of_that() {
    let tokens = Tokens::new();
    let token = tokens.add("ci", Role::Observe, &["ci/a*", "ci/m"]);
    let identity = tokens.access().identify(Some(&token), &Origin::Loopback).unwrap();
    let all = ["ci/a1", "ci/b", "ci/c", "ci/d", "ci/m", "ci/z"];
    let mut asked = Vec::new();
    // Pages of two lines each.
    let make = |query: &Query| {
        let after = query.after.as_ref().map(|key| key.name.clone()).unwrap_or_default();
        let rest: Vec<Line> =
            all.iter().filter(|name| **name > after.as_str()).map(|name| line(name)).collect();
        let lines: Vec<Line> = rest.iter().take(2).cloned().collect();
        Page { more: rest.len() > 2, lines, silent: Vec::new() }
    };
    let mut query = Query::default();
    let mut seen = Vec::new();
    loop {
        let page = identity
            .visible(query.clone(), |query| {
                asked.push(query.names.clone());
                std::future::ready(Some(make(&query)))
            })
            .await
            .unwrap();
        seen.extend(page.lines.iter().map(|line| line.key.name.clone()));
        match page.lines.last().filter(|_| page.more) {
            Some(last) => query.after = Some(last.key.clone()),
            None => break,
        }
    }
    assert_eq!(seen, ["ci/a1", "ci/m"]);
    assert!(asked.iter().all(|names| *names == Selection::Prefix("ci/".to_string())));
    let narrower = Selection::Prefix("ci/a".to_string());
    let named = Selection::Name("x".to_string());
    for selection in [narrower, named] {
        let query = Query { names: selection.clone(), ..Query::default() };
        let none = |query: Query| {
            assert_eq!(query.names, selection);
            std::future::ready(None)
        };
        assert!(identity.visible(query, none).await.is_none());
    }
}
