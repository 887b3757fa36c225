//! Locks: taken, listed, verified, released, stolen; at any node, and after restarts.

use std::time::Duration;

use catraca_node::{Fold, Memory, Policy, RepositoryConfig, RepositorySettings};
use serde_json::{Value, json};

use crate::client::{Client, LIMIT};
use crate::{BASE, User, alone, paths, refused, start, start_with, three, user};

#[tokio::test]
async fn a_lock_is_seen_at_every_node_and_only_its_owner_releases_it() {
    let (_nodes, at) = three().await;
    let (ann, bob) = (user(at[0], "ann"), user(at[1], "bob"));
    let lock = ann.locks("art/a b.psd").await;
    assert_eq!((&lock["path"], &lock["owner"]["name"]), (&"art/a b.psd".into(), &"ann".into()));
    let id = lock["id"].as_str().unwrap();
    assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "it goes into a URL as it is");
    assert!(lock["locked_at"].as_str().unwrap().contains('T'));
    assert!(lock["fence"].as_str().unwrap().parse::<u64>().is_ok());
    for at in &at {
        assert_eq!(user(*at, "cay").list("").await, json!({"locks": [lock]}));
    }
    let taken = refused(&bob.lock("art/a b.psd").await, 409, "taken");
    assert_eq!(taken["lock"], lock);
    assert!(
        taken["message"].as_str().unwrap().starts_with("'ann' has locked 'art/a b.psd' since 20")
    );
    let own = refused(&user(at[2], "ann").lock("art/a b.psd").await, 409, "own-lock");
    assert!(own["message"].as_str().unwrap().starts_with("you have locked 'art/a b.psd' already"));
    assert_eq!(own["lock"], lock);
    let verified = json!({"ours": [lock], "theirs": []});
    assert_eq!(user(at[2], "ann").verify().await, verified);
    assert_eq!(bob.verify().await, json!({"ours": [], "theirs": [lock]}));
    let not_his = refused(&bob.unlock(&lock, false).await, 403, "not-owner");
    assert_eq!(not_his["lock"], lock);
    let released = user(at[2], "ann").unlock(&lock, false).await.with(200).json();
    assert_eq!(released, json!({"lock": lock}));
    refused(&ann.unlock(&lock, false).await, 404, "no-such-lock");
    for at in &at {
        assert_eq!(user(*at, "cay").list("").await, json!({"locks": []}));
    }
    let next = bob.locks("art/a b.psd").await;
    let fence = |lock: &Value| lock["fence"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(fence(&next) > fence(&lock));
}

#[tokio::test]
async fn a_lock_is_found_by_path_id_folder_owner_and_age() {
    let (_nodes, at) = three().await;
    let (ann, bob) = (user(at[0], "ann"), user(at[1], "bob"));
    let first = ann.locks("a/1").await;
    bob.locks("a/b/2").await;
    ann.locks("a.txt").await;
    let last = bob.locks("-dash \"ü\"").await;
    let all = bob.list("").await;
    assert_eq!(paths(&all["locks"]), ["-dash \"ü\"", "a.txt", "a/1", "a/b/2"]);
    let one = |locks: Value| assert_eq!(locks, json!({"locks": [first]}));
    one(bob.list("?path=a%2F1&refspec=refs%2Fheads%2Fmain").await);
    let id = format!("?id={}", first["id"].as_str().unwrap());
    one(bob.list(&id).await);
    // What else is asked for counts too.
    one(bob.list(&format!("{id}&owner=ann&under=a&before=2999-01-01T00:00:00Z")).await);
    for other in ["owner=bob", "under=b", "before=2020-01-01T00:00:00Z", "stolen=true"] {
        let none = json!({"locks": []});
        assert_eq!(bob.list(&format!("{id}&{other}")).await, none, "{other}");
        assert_eq!(bob.list(&format!("?path=a%2F1&{other}")).await, none, "{other}");
    }
    assert_eq!(bob.list("?path=a").await, json!({"locks": []}));
    assert_eq!(bob.list("?id=what").await, json!({"locks": []}));
    assert_eq!(paths(&bob.list("?under=a").await["locks"]), ["a/1", "a/b/2"]);
    assert_eq!(paths(&bob.list("?under=a/b/").await["locks"]), ["a/b/2"]);
    assert_eq!(paths(&bob.list("?owner=ann").await["locks"]), ["a.txt", "a/1"]);
    assert_eq!(bob.list("?before=2020-01-01T00:00:00Z").await, json!({"locks": []}));
    assert_eq!(paths(&bob.list("?before=2999-01-01T00:00:00Z").await["locks"]).len(), 4);
    assert_eq!(paths(&bob.list("?path=-dash%20%22%C3%BC%22").await["locks"]), ["-dash \"ü\""]);
    for query in
        ["?limit=0", "?limit=x", "?cursor=x", "?before=yesterday", "?path=../x", "?under=/"]
    {
        let answer = bob.ask("GET", &format!("{BASE}/locks{query}"), None).await;
        assert!(answer.status == 400 || query == "?under=/", "{query} {answer:?}");
    }
    let matched = bob
        .ask(
            "POST",
            &format!("{BASE}/locks/match"),
            json!({"paths": ["a/1", "none", "../x", "-dash \"ü\""]}),
        )
        .await
        .with(200)
        .json();
    assert_eq!(matched, json!({"locks": [last, first]}));
}

#[tokio::test]
async fn a_lock_is_stolen_in_one_step_and_its_owner_has_it_no_more() {
    let (_nodes, at) = three().await;
    let (ann, bob, cay) = (user(at[0], "ann"), user(at[1], "bob"), user(at[2], "cay"));
    let before = ann.locks("x").await;
    let stolen = bob.steal(&before, "ann is on holiday").await.with(200).json();
    assert_eq!(stolen["was"], before);
    let lock = &stolen["lock"];
    assert_eq!(
        (&lock["owner"]["name"], &lock["note"]),
        (&"bob".into(), &"ann is on holiday".into())
    );
    assert_eq!((&lock["id"], &lock["path"]), (&before["id"], &before["path"]));
    for at in &at {
        assert_eq!(user(*at, "ann").list("").await, json!({"locks": [lock]}));
    }
    // The stock client shows what it is told here, and tells of thefts in no other way.
    let told = "'bob' has stolen it from you";
    for answer in [ann.lock("x").await, ann.unlock(&before, false).await] {
        let code = if answer.status == 409 { "taken" } else { "not-owner" };
        let body = refused(&answer, answer.status, code);
        assert!(body["message"].as_str().unwrap().contains(told), "{body}");
    }
    let other = refused(&cay.unlock(&before, false).await, 403, "not-owner");
    assert!(!other["message"].as_str().unwrap().contains("stolen it"), "{other}");
    refused(&bob.steal(lock, "").await, 409, "own-lock");
    cay.unlock(lock, true).await.with(200);
    refused(&ann.steal(lock, "").await, 404, "no-such-lock");
}

#[tokio::test]
async fn of_many_who_steal_a_lock_from_one_owner_one_gets_it() {
    let (_nodes, at) = three().await;
    for round in 0..20 {
        let path = format!("x{round}");
        let lock = user(at[round % 3], "ann").locks(&path).await;
        let thieves = (0..6).map(|thief| {
            let (at, lock) = (at[thief % 3], lock.clone());
            tokio::spawn(async move {
                // Each has seen that it is ann's.
                user(at, &format!("thief{thief}")).steal(&lock, "").await.json()
            })
        });
        let mut answers = Vec::new();
        for thief in thieves.collect::<Vec<_>>() {
            answers.push(thief.await.unwrap());
        }
        // Whoever came later may have stolen it from an earlier thief; the last one has it.
        let from_ann = answers.iter().filter(|it| it["was"]["owner"]["name"] == "ann").count();
        assert_eq!(from_ann, 1, "{answers:?}");
        let owner = user(at[0], "ann").list(&format!("?path={path}")).await;
        assert_eq!(owner["locks"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn somebody_waits_as_the_stock_client_can_and_gets_the_lock_when_it_is_free() {
    let (_nodes, at) = three().await;
    let ann = user(at[0], "ann");
    let lock = ann.locks("x").await;
    let bob = user(at[1], "bob").with("Catraca-Wait: 5m");
    let mut waiting = Client::open(at[1]).await;
    let body = json!({"path": "x"}).to_string();
    let ask = bob.request("POST", &format!("{BASE}/locks"), Some(body.as_bytes()));
    waiting.send(ask).await;
    let head = waiting.head().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    assert!(waiting.until("1\r\n \r\n").await == "1\r\n \r\n", "a blank comes at once");
    ann.unlock(&lock, false).await.with(200);
    let rest = waiting.until("0\r\n\r\n").await;
    let body = &rest[rest.find('{').unwrap()..=rest.rfind('}').unwrap()];
    let got: Value = serde_json::from_str(body).unwrap();
    assert_eq!(got["lock"]["owner"]["name"], "bob");
    assert_eq!(got.get("message"), None);
    // Whoever has it already does not wait for itself.
    refused(&bob.lock("x").await, 409, "own-lock");
}

#[tokio::test]
async fn who_waits_too_long_is_told_who_has_it_and_who_goes_leaves_nothing() {
    let (_nodes, at) = three().await;
    let ann = user(at[0], "ann");
    let lock = ann.locks("x").await;
    let bob = user(at[1], "bob");
    let body = json!({"path": "x", "wait_ms": 50}).to_string();
    let mut waiting = Client::open(at[1]).await;
    waiting.send(bob.request("POST", &format!("{BASE}/locks"), Some(body.as_bytes()))).await;
    waiting.head().await;
    let rest = waiting.until("0\r\n\r\n").await;
    let body = &rest[rest.find('{').unwrap()..=rest.rfind('}').unwrap()];
    let got: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&got["lock"], &got["status"]), (&lock, &409.into()));
    assert!(got["message"].as_str().unwrap().contains("'ann' has locked 'x'"));
    // Somebody else waits, and hangs up.
    let cay = user(at[2], "cay").with("Catraca-Wait: 1h");
    let mut gone = Client::open(at[2]).await;
    let body = json!({"path": "x"}).to_string();
    gone.send(cay.request("POST", &format!("{BASE}/locks"), Some(body.as_bytes()))).await;
    gone.head().await;
    drop(gone);
    ann.unlock(&lock, false).await.with(200);
    // If cay got it in the last moment, it is given back.
    let taking = async {
        loop {
            let answer = bob.lock("x").await;
            match answer.status {
                201 => break,
                409 => tokio::time::sleep(Duration::from_millis(20)).await,
                _ => panic!("{answer:?}"),
            }
        }
    };
    tokio::time::timeout(LIMIT, taking).await.expect("it is free soon");
    for wait in ["x", "-1s", "2d"] {
        let odd = user(at[0], "ann").with(&format!("Catraca-Wait: {wait}"));
        refused(&odd.lock("y").await, 400, "bad-wait");
    }
}

#[tokio::test]
async fn locks_are_there_after_a_restart() {
    let registry = Memory::default();
    let (node, at) = start_with(&registry, |_| {}).await;
    let lock = user(at, "ann").locks("x").await;
    node.stop().await;
    let (_node, at) = start_with(&registry, |_| {}).await;
    let bob = user(at, "bob");
    assert_eq!(bob.list("").await, json!({"locks": [lock]}));
    assert_eq!(refused(&bob.lock("x").await, 409, "taken")["lock"], lock);
    user(at, "ann").unlock(&lock, false).await.with(200);
    bob.locks("x").await;
}

#[tokio::test]
async fn paths_are_folded_where_that_is_configured() {
    let folded = RepositorySettings {
        fold: Fold { case: true, backslash: true, unicode: true },
        policy: Policy::Merge,
        default_branch: "trunk".to_string(),
        ..RepositorySettings::default()
    };
    let (_node, at) = start(|config| {
        let repository = RepositoryConfig { name: "art/*".to_string(), settings: folded };
        config.git.repositories.push(repository);
    })
    .await;
    let (ann, bob) = (user(at, "ann"), user(at, "bob"));
    let lock = ann.locks("Art\\Caf\u{e9}.PSD").await;
    assert_eq!(lock["path"], "Art\\Caf\u{e9}.PSD", "it is shown as it was given");
    assert_eq!(refused(&bob.lock("art/cafe\u{301}.psd").await, 409, "taken")["lock"], lock);
    assert_eq!(bob.list("?path=ART/CAFE%CC%81.psd").await, json!({"locks": [lock]}));
    assert_eq!(paths(&bob.list("?under=ART").await["locks"]).len(), 1);
    let whoami = bob.ask("GET", &format!("{BASE}/whoami"), None).await.with(200).json();
    let expected = json!({
        "name": "bob", "roles": ["observe", "lock", "administer"], "repository": "art/game",
        "policy": "merge", "default_branch": "trunk", "objects": "none",
        "fold": {"case": true, "backslash": true, "unicode": true},
        "steal": "lock",
    });
    assert_eq!(whoami, expected);
    // Another repository folds nothing.
    for path in ["X", "x", "X\\y", "X/y"] {
        bob.ask("POST", "/git/code/game/locks", json!({"path": path})).await.with(201);
    }
}

#[tokio::test]
async fn repositories_know_nothing_of_each_other() {
    let (_node, at) = alone().await;
    let ann = user(at, "ann");
    let lock = ann.locks("x").await;
    let id = lock["id"].as_str().unwrap();
    let other = "/git/art/other";
    ann.ask("POST", &format!("{other}/locks"), json!({"path": "x"})).await.with(201);
    refused(
        &ann.ask("POST", &format!("{other}/locks/{id}/unlock"), json!({})).await,
        404,
        "no-such-lock",
    );
    let listed = ann.ask("GET", &format!("{other}/locks?id={id}"), None).await.json();
    assert_eq!(listed, json!({"locks": []}));
    // With a suffix it is the same repository.
    let same = ann.ask("GET", "/git/art/game.git/locks", None).await.with(200).json();
    assert_eq!(same, json!({"locks": [lock]}));
}

#[tokio::test]
async fn a_hold_that_was_taken_by_other_means_is_a_lock_too_and_one_that_is_none_is_in_the_way() {
    let (_node, at) = alone().await;
    let ann = user(at, "ann");
    let hold =
        json!({"names": ["git/art/game/x%20y"], "durable": true, "owner": "robot", "note": "hm"});
    ann.ask("POST", "/v1/acquire", hold).await.with(201);
    let locks = ann.list("").await;
    assert_eq!(
        (&locks["locks"][0]["path"], &locks["locks"][0]["note"]),
        (&"x y".into(), &"hm".into())
    );
    refused(&ann.lock("x y").await, 409, "taken");
    ann.ask("POST", "/v1/acquire", json!({"names": ["git/art/game/z"], "ttl_ms": 600_000}))
        .await
        .with(201);
    let taken = refused(&ann.lock("z").await, 409, "taken");
    assert!(
        taken["message"].as_str().unwrap().contains("/v1/locks?name=git/art/game/z"),
        "{taken}"
    );
}

#[tokio::test]
async fn ten_thousand_locks_are_listed_and_paged() {
    let (_node, at) = alone().await;
    let mut tasks = Vec::new();
    for part in 0..20_usize {
        tasks.push(tokio::spawn(async move {
            let ann = user(at, "ann");
            let mut client = Client::open(at).await;
            for number in 0..500 {
                let body = json!({"path": format!("d{part:02}/f{number:04}")}).to_string();
                let ask = ann.request("POST", &format!("{BASE}/locks"), Some(body.as_bytes()));
                client.send(ask).await;
                client.answer().await.unwrap().with(201);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let bob = user(at, "bob");
    let begun = std::time::Instant::now();
    let whole = bob.list("?limit=10000").await;
    let took = begun.elapsed();
    assert_eq!(whole["locks"].as_array().unwrap().len(), 10_000);
    assert_eq!(whole.get("next_cursor"), None);
    let mut all = Vec::new();
    let mut query = "?limit=777".to_string();
    loop {
        let page = bob.list(&query).await;
        all.extend(page["locks"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("?limit=777&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(Value::from(all), whole["locks"]);
    assert_eq!(paths(&bob.list("?under=d07").await["locks"]).len(), 500);
    let mut theirs = 0;
    let mut cursor = Value::Null;
    loop {
        let asked = json!({"cursor": cursor, "limit": 3000});
        let page = bob.ask("POST", &format!("{BASE}/locks/verify"), asked).await.with(200).json();
        assert_eq!(page["ours"], json!([]));
        theirs += page["theirs"].as_array().unwrap().len();
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(theirs, 10_000);
    // The figure is for whoever looks at the output of the test; nothing depends on it.
    eprintln!("10,000 locks were listed in {took:?}");
}

#[tokio::test]
async fn a_request_in_the_name_of_somebody_else_takes_an_administrator() {
    let (_node, at) = alone().await;
    let hook = user(at, "hook");
    let lock = user(at, "ann").locks("x").await;
    let ours = |body: &Value| body["ours"].as_array().unwrap().len();
    let asked = json!({"owner": "ann"});
    let verified = hook.ask("POST", &format!("{BASE}/locks/verify"), asked).await.with(200).json();
    assert_eq!(ours(&verified), 1);
    let on_behalf: User = user(at, "hook").with("Catraca-Owner: ann");
    assert_eq!(ours(&on_behalf.verify().await), 1);
    assert_eq!(ours(&hook.verify().await), 0);
    on_behalf.unlock(&lock, false).await.with(200);
}
