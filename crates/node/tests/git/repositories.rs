//! Which repositories there are, and who may steal in them.

use catraca_node::{RepositoryConfig, RepositorySettings, Role, StealRole, TokenFile};
use serde_json::{Value, json};

use crate::{User, refused, start, user};

/// Somebody with a token.
fn bearer(at: std::net::SocketAddr, token: &str) -> User {
    User { authorization: format!("Bearer {token}"), ..user(at, "") }
}

fn names(listed: &Value) -> Vec<(&str, u64)> {
    let all = listed["repositories"].as_array().unwrap().iter();
    all.map(|it| (it["repository"].as_str().unwrap(), it["locks"].as_u64().unwrap())).collect()
}

#[tokio::test]
async fn repositories_are_listed_in_parts_and_each_caller_sees_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let add = |name: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        TokenFile::change(&path, |file| file.add(name, Role::Lock, &names, "today")).unwrap()
    };
    let (all, art, part) =
        (add("all", &[]), add("art", &["git/art/*"]), add("part", &["git/code/lib/src/*"]));
    let (_node, at) = start(|config| {
        config.security.tokens = Some(path.clone());
        let named = |name: &str| RepositoryConfig {
            name: name.to_string(),
            settings: RepositorySettings::default(),
        };
        config.git.repositories = vec![named("art/empty"), named("web/*")];
    })
    .await;
    let lock = async |repository: &str, path: &str| {
        let asked = json!({"path": path});
        bearer(at, &all).ask("POST", &format!("/git/{repository}/locks"), asked).await.with(201);
    };
    for (repository, path) in [
        ("art/game", "a"),
        ("art/game", "b"),
        ("code/lib", "src/a"),
        ("code/lib", "doc/a"),
        ("web/site", "a"),
    ] {
        lock(repository, path).await;
    }
    let list = async |token: &str, query: &str| {
        let path = format!("/v1/git/repositories{query}");
        bearer(at, token).ask("GET", &path, None).await.with(200).json()
    };
    let listed = list(&all, "").await;
    let expected = [("art/empty", 0), ("art/game", 2), ("code/lib", 2), ("web/site", 1)];
    assert_eq!((names(&listed), &listed["next"]), (expected.to_vec(), &Value::Null));
    assert!(listed["repositories"][1]["oldest"].as_str().unwrap().ends_with('Z'), "{listed}");
    assert_eq!(listed["repositories"][0]["oldest"], Value::Null);
    assert_eq!(names(&list(&art, "").await), [("art/empty", 0), ("art/game", 2)]);
    assert_eq!(names(&list(&part, "").await), [("code/lib", 1)]);

    let mut parts = Vec::new();
    let mut query = "?limit=1".to_string();
    loop {
        let listed = list(&all, &query).await;
        parts.extend(names(&listed).into_iter().map(|(name, _)| name.to_string()));
        let Some(next) = listed["next"].as_str() else { break };
        query = format!("?limit=1&after={next}");
    }
    assert_eq!(parts, ["art/empty", "art/game", "code/lib", "web/site"]);
    for bad in ["?limit=0", "?limit=1001", "?after=x", "?what=1"] {
        let answer = bearer(at, &all).ask("GET", &format!("/v1/git/repositories{bad}"), None).await;
        answer.refused(400, "bad-query");
    }
}

#[tokio::test]
async fn where_it_is_configured_so_only_administrators_steal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    let add = |name: &str, role| {
        TokenFile::change(&path, |file| file.add(name, role, &[], "today")).unwrap()
    };
    let tokens = [add("ann", Role::Lock), add("bob", Role::Lock), add("root", Role::Administer)];
    let (_node, at) = start(|config| {
        config.security.tokens = Some(path.clone());
        config.git.others.steal = StealRole::Administer;
    })
    .await;
    let [ann, bob, root] = tokens.each_ref().map(|token| bearer(at, token));
    let lock = ann.locks("hero.psd").await;
    let about = refused(&bob.steal(&lock, "mine").await, 403, "wrong-role");
    assert_eq!(about["lock"]["owner"]["name"], "ann");
    assert_eq!(ann.list("").await["locks"][0]["owner"]["name"], "ann");
    let stolen = root.steal(&lock, "ann is on holiday").await.with(200).json();
    assert_eq!(stolen["lock"]["owner"]["name"], "root");
    let whoami = bob.ask("GET", &format!("{}/whoami", crate::BASE), None).await.with(200).json();
    assert_eq!(whoami["steal"], "administer");
}
