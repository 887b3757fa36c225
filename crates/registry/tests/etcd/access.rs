//! Who may use etcd, and how both sides know each other.

use std::path::Path;
use std::time::Duration;

use catraca_registry::{Etcd, Registry, Trouble, Txn};

use super::server::{Server, address, connect, hasty, openssl, patient};

/// Two authorities; etcd and a client have certificates of the first, and a stranger of the second.
fn make_certificates(directory: &Path) {
    let run = |arguments: &str| openssl(directory, arguments);
    for authority in ["ca", "other"] {
        run(&format!("ecparam -name prime256v1 -genkey -noout -out {authority}.key"));
        run(&format!(
            "req -x509 -new -key {authority}.key -subj /CN={authority} -days 2 -out {authority}.pem"
        ));
    }
    let address = address();
    std::fs::write(
        directory.join("names"),
        format!("subjectAltName=IP:{address}\nbasicConstraints=CA:FALSE\n"),
    )
    .unwrap();
    for (name, authority) in [("server", "ca"), ("client", "ca"), ("stranger", "other")] {
        run(&format!("ecparam -name prime256v1 -genkey -noout -out {name}.sec1"));
        run(&format!("pkcs8 -topk8 -nocrypt -in {name}.sec1 -out {name}.key"));
        run(&format!("req -new -key {name}.key -subj /CN={name} -out {name}.csr"));
        run(&format!(
            "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial \
             -days 2 -extfile names -out {name}.pem"
        ));
    }
}

async fn refusal(url: &str, group: &str) -> String {
    match connect(patient(url, group)).await {
        Err(Trouble::Refused(why)) => why,
        Err(other) => panic!("{url}: {other}"),
        Ok(_) => panic!("{url} lets us in"),
    }
}

#[tokio::test]
async fn both_sides_show_certificates() {
    let directory = tempfile::tempdir().unwrap();
    make_certificates(directory.path());
    let file = |name: &str| directory.path().join(name).display().to_string();
    let mut server = Server::members(
        1,
        "https",
        &[
            "--client-cert-auth",
            &format!("--trusted-ca-file={}", file("ca.pem")),
            &format!("--cert-file={}", file("server.pem")),
            &format!("--key-file={}", file("server.key")),
        ],
    )
    .remove(0);
    server.start();
    let url = |ca: &str, who: &str| {
        let own =
            format!("cert={}&key={}", file(&format!("{who}.pem")), file(&format!("{who}.key")));
        format!("etcds://{}?ca={}&{own}", server.endpoint, file(ca))
    };
    let etcd = connect(patient(&url("ca.pem", "client"), "g")).await.unwrap();
    assert!(etcd.txn(Txn::default().put("a", vec![])).await.unwrap().applied);

    let why = refusal(&url("other.pem", "client"), "g").await;
    assert!(why.contains("certificate") && why.contains("'ca'"), "{why}");
    let why = refusal(&url("ca.pem", "stranger"), "g").await;
    assert!(why.contains("'cert'"), "{why}");
    let nobody = format!("etcds://{}?ca={}", server.endpoint, file("ca.pem"));
    let why = refusal(&nobody, "g").await;
    assert!(why.contains("'cert'"), "{why}");
    let why = refusal(&url("none.pem", "client"), "g").await;
    assert!(why.contains("none.pem"), "{why}");
    let plain = Etcd::connect(hasty(&server.url(), "g")).await.err().unwrap();
    assert!(matches!(plain, Trouble::Unreachable(_)), "{plain}");
}

/// An etcd that asks for users: 'member' may use the group 'g'.
async fn with_users(settings: &[&str]) -> Server {
    let mut server = Server::with(settings);
    server.open("g").await;
    for command in [
        "user add root:rootpass",
        "user grant-role root root",
        "role add member",
        "role grant-permission member --prefix=true readwrite catraca/g/",
        "user add member:right",
        "user grant-role member member",
        "auth enable",
    ] {
        server.control(&command.split(' ').collect::<Vec<_>>());
    }
    server.access = vec!["--user=root:rootpass".to_string()];
    server
}

#[tokio::test]
async fn a_user_needs_the_password_and_permission_for_the_group() {
    let server = with_users(&["--bcrypt-cost=4"]).await;
    let place = &server.endpoint;
    let etcd = connect(patient(&format!("etcd://member:right@{place}"), "g")).await.unwrap();
    assert!(etcd.txn(Txn::default().put("a", vec![])).await.unwrap().applied);

    let file = server.directory.path().join("password");
    std::fs::write(&file, "right\n").unwrap();
    let with_file = format!("etcd://member@{place}?password-file={}", file.display());
    let etcd = connect(patient(&with_file, "g")).await.unwrap();
    assert!(etcd.txn(Txn::read()).await.unwrap().state.contains_key("a"));

    for (url, group, expected) in [
        (format!("etcd://member:wrong@{place}"), "g", "the password is wrong"),
        (format!("etcd://nobody:right@{place}"), "g", "does not know the user"),
        (format!("etcd://member:right@{place}"), "other", "readwrite catraca/other/"),
        (format!("etcd://{place}"), "g", "wants a user"),
        (format!("etcd://member@{place}?password-env=NOT_THERE"), "g", "'NOT_THERE'"),
        (format!("etcd://member@{place}?password-file=/none"), "g", "'/none'"),
    ] {
        let why = refusal(&url, group).await;
        assert!(why.contains(expected), "{url}: {why}");
    }
}

#[tokio::test]
async fn a_token_is_renewed_when_it_expires_or_users_change() {
    let server = with_users(&["--bcrypt-cost=4", "--auth-token-ttl=1"]).await;
    let url = format!("etcd://member:right@{}", server.endpoint);
    let etcd = connect(patient(&url, "g")).await.unwrap();
    let mut words = etcd.watch(etcd.txn(Txn::read()).await.unwrap().revision);
    server.control(&["role", "add", "another"]);
    assert!(etcd.txn(Txn::default().put("a", vec![])).await.unwrap().applied);
    // However long it takes, the token is not valid any more afterwards.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(etcd.txn(Txn::default().put("b", vec![])).await.unwrap().applied);
    for expected in ["a", "b"] {
        let word = tokio::time::timeout(super::suite::LIMIT, words.recv()).await.unwrap().unwrap();
        assert!(matches!(word, catraca_registry::Word::Changed { key, .. } if key == expected));
    }
    server.control(&["role", "revoke-permission", "member", "--prefix=true", "catraca/g/"]);
    let trouble = etcd.txn(Txn::default().put("c", vec![])).await.unwrap_err();
    assert!(matches!(&trouble, Trouble::Refused(why) if why.contains("catraca/g/")), "{trouble}");
}

#[tokio::test]
async fn an_etcd_without_users_takes_any_and_operators_are_told() {
    let server = Server::alone();
    server.open("g").await;
    let etcd =
        connect(patient(&format!("etcd://member:right@{}", server.endpoint), "g")).await.unwrap();
    let started = tokio::time::Instant::now();
    while !etcd.health().trouble.is_some_and(|trouble| trouble.contains("auth enable")) {
        assert!(started.elapsed() < super::suite::LIMIT);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
