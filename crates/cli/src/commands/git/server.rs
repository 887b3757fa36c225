//! A server for locks, as the commands use it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use catraca_client::tls::Tls;
use hyper::Method;
use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::address::{Address, encoded, without_secrets};
use super::api::{Asked, Filter, Lock, Whoami};
use super::config::{Config, LFS_CONFIG, Origin};
use super::credentials::{Credential, basic, bearer};
use super::http::{Answer, Call, Http, HttpError};
use super::{LATE, TAKEN};
use crate::failure::Failure;
use crate::output::reason;
use crate::service::{NO_NODE, UNSERVED};

/// The token itself, where no file has it.
const TOKEN: &str = "CATRACA_TOKEN";
/// A token file has no more bytes.
const LONGEST_TOKEN: usize = 4096;
/// How long a server may say nothing, unless 'catraca.timeout' says otherwise: seconds.
const PATIENCE: u64 = 60;
/// Locks are listed in parts of so many.
const PAGE: usize = 1000;
/// So many paths, and about so many bytes of them, are asked for at once.
const MOST_PATHS: usize = 50_000;
const MOST_BYTES: usize = 4 << 20;
/// What a refusal ends with of which the doctor knows more.
pub(super) const ASK_DOCTOR: &str = "; 'catraca git doctor' tells more";
/// Where systems keep the authorities that everybody trusts.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Which server is asked, and what it is shown: the flags of all of `catraca git`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ServerArguments {
    /// The locks of the repository: http(s)://HOST:PORT/git/TEAM/REPOSITORY.
    #[arg(long, global = true, value_name = "URL")]
    pub(super) url: Option<String>,
    /// A file with the token to show; without it the token is what CATRACA_TOKEN says.
    #[arg(long, global = true, env = "CATRACA_TOKEN_FILE", value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Trust the authority whose certificate is in this file; by default 'http.sslCAInfo' of git, or those
    /// of the system.
    #[arg(long, visible_alias = "cacert", global = true, env = "CATRACA_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A certificate to show; by default 'http.sslCert' of git.
    #[arg(long, global = true, env = "CATRACA_CERT", value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The key that belongs to the certificate; by default 'http.sslKey' of git.
    #[arg(long, global = true, env = "CATRACA_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
}

/// Where the URL comes from.
pub(super) struct Known {
    pub(super) url: String,
    pub(super) origin: Origin,
    /// The flag, the setting or the file that says so.
    pub(super) place: String,
}

impl ServerArguments {
    /// The URL of the server, if any is known.
    pub(super) fn known(&self, config: &Config) -> Option<Known> {
        if let Some(url) = &self.url {
            return Some(Known { url: url.clone(), origin: Origin::Flag, place: "--url".into() });
        }
        if let Some(url) = config.value("catraca.url") {
            let place = "catraca.url in git's configuration".to_string();
            return Some(Known { url: url.to_string(), origin: Origin::Own, place });
        }
        let pushed_to = config.value("remote.lfspushdefault").unwrap_or("locks");
        let keys = [format!("remote.{pushed_to}.lfsurl"), "lfs.url".to_string()];
        keys.iter().find_map(|key| {
            let (url, origin) = config.value_or_shared(key)?;
            let whose = if origin == Origin::Shared { LFS_CONFIG } else { "git's configuration" };
            Some(Known { url: url.to_string(), origin, place: format!("{key} in {whose}") })
        })
    }

    /// The server, for a command of a user.
    pub(super) fn server(&self, config: &Config) -> Result<Server, Failure> {
        let known = self.known(config).ok_or_else(|| {
            Failure::input(
                "no server for locks is known here: say 'catraca git init --url \
                 https://HOST:PORT/git/TEAM/REPOSITORY', or --url",
            )
        })?;
        let token = match known.origin {
            // Whoever wrote the repository must not learn the token.
            Origin::Shared => None,
            Origin::Flag | Origin::Own => self.token(config)?,
        };
        self.server_at(&known, config, token.map(|token| bearer(&token)), true)
    }

    /// The server, for a hook: it is never named by the repository itself, and nobody can be asked.
    /// Without a token the hook speaks as `owner`.
    pub(super) fn server_for_hook(&self, config: &Config, owner: &str) -> Result<Server, Failure> {
        let known = self.known(config).filter(|known| known.origin != Origin::Shared);
        let known = known.ok_or_else(|| {
            Failure::input(
                "no server for locks is set for this repository: whoever administers it says \
                 'catraca git init --url https://HOST:PORT/git/TEAM/REPOSITORY' in it",
            )
        })?;
        let authorization = match self.token(config)? {
            Some(token) => bearer(&token),
            None => basic(owner, "catraca-hook"),
        };
        let mut server = self.server_at(&known, config, Some(authorization), false)?;
        server.is_token_missing = self.token(config)?.is_none();
        Ok(server)
    }

    fn server_at(
        &self,
        known: &Known,
        config: &Config,
        authorization: Option<String>,
        may_ask: bool,
    ) -> Result<Server, Failure> {
        let wrong = |why: String| Failure::Input(format!("{} ({})", why, known.place));
        let address = Address::parse(&known.url).map_err(wrong)?;
        let tls = if address.is_safe { Some(self.tls(config, &address)?) } else { None };
        let mut headers = Vec::new();
        for header in config.http("extraheader", &address) {
            let (name, value) = header.split_once(':').ok_or_else(|| {
                Failure::input("http.extraHeader in git's configuration is no 'NAME: VALUE'")
            })?;
            headers.push((name.trim().to_string(), value.trim().to_string()));
        }
        let is_shown = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let of_url = || match (&address.user, &address.password) {
            (Some(user), Some(password)) => Some(basic(user, password)),
            _ => None,
        };
        let authorization = if is_shown { None } else { authorization.or_else(of_url) };
        let seconds = match config.value("catraca.timeout") {
            None => PATIENCE,
            Some(text) => text.parse().ok().filter(|it| (1..=3600).contains(it)).ok_or_else(|| {
                Failure::input("catraca.timeout in git's configuration is no number of seconds from 1 to 3600")
            })?,
        };
        let patience = Duration::from_secs(seconds);
        let http = Http::new(address.clone(), tls, headers, patience);
        let may_ask_git = authorization.is_none() && !is_shown;
        Ok(Server {
            http,
            address,
            authorization,
            may_ask_git,
            may_ask,
            credential: None,
            is_token_missing: false,
            status: None,
        })
    }

    /// The token of the flags, of the environment or of git's configuration.
    fn token(&self, config: &Config) -> Result<Option<String>, Failure> {
        if let Some(file) = &self.token_file {
            return read_token(file, "--token-file").map(Some);
        }
        if let Some(token) = std::env::var(TOKEN).ok().filter(|token| !token.trim().is_empty()) {
            return Ok(Some(token.trim().to_string()));
        }
        let file = config.value("catraca.tokenfile").map(PathBuf::from);
        file.map(|file| read_token(&file, "catraca.tokenFile")).transpose()
    }

    fn tls(&self, config: &Config, address: &Address) -> Result<Tls, Failure> {
        let last = |variable: &str| config.http(variable, address).last().map(PathBuf::from);
        if config.http("sslverify", address).last().is_some_and(|it| !super::config::is_true(it)) {
            return Err(Failure::input(
                "http.sslVerify is off in git's configuration, and certificates are always verified \
                 here: name the authority with --ca or http.sslCAInfo",
            ));
        }
        let environment = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let authority = self.ca.clone();
        let authority = authority.or_else(|| environment("GIT_SSL_CAINFO"));
        let authority = authority.or_else(|| last("sslcainfo"));
        let authority = authority.or_else(|| environment("SSL_CERT_FILE"));
        let usual = || BUNDLES.iter().map(PathBuf::from).find(|path| path.is_file());
        let authority = authority.or_else(usual).ok_or_else(|| {
            Failure::input("this system has no list of trusted authorities: name one with --ca")
        })?;
        let certificate = self.cert.clone().or_else(|| last("sslcert"));
        let key = self.key.clone().or_else(|| last("sslkey"));
        let own = match (&certificate, &key) {
            (Some(certificate), Some(key)) => Some((certificate.as_path(), key.as_path())),
            (None, None) => None,
            _ => return Err(Failure::input("--cert and --key belong together: say both")),
        };
        Tls::new(&authority, own).map_err(Failure::input)
    }
}

fn read_token(file: &Path, said: &str) -> Result<String, Failure> {
    let wrong =
        |why: String| Failure::Input(format!("{said}: cannot read '{}': {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(reason(&error)))?;
    match text.trim() {
        "" => Err(wrong("there is no token in it".to_string())),
        token if token.len() > LONGEST_TOKEN => {
            Err(wrong("it is too long for a token".to_string()))
        }
        token => Ok(token.to_string()),
    }
}

/// A server for locks, and how the caller proves itself there.
pub(super) struct Server {
    http: Http,
    pub(super) address: Address,
    authorization: Option<String>,
    /// Whether git may be asked for a name and a password.
    may_ask_git: bool,
    /// Whether git may ask the user.
    may_ask: bool,
    /// What git gave, until the server has said that it is right.
    credential: Option<Credential>,
    /// A hook without a token: said if the server refuses it.
    is_token_missing: bool,
    /// The status of its last answer, if it has given one.
    pub(super) status: Option<u16>,
}

impl Server {
    pub(super) async fn whoami(&mut self) -> Result<Whoami, Failure> {
        let answer = self.get("/whoami".to_string()).await?;
        read(answer.body).ok_or_else(|| self.strange())
    }

    /// Asks for one file, or for several all at once.
    pub(super) async fn lock(
        &mut self,
        paths: &[String],
        note: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<Asked, Failure> {
        let (path, mut body) = match paths {
            [path] => ("/locks", json!({ "path": path })),
            paths => ("/locks/batch", json!({ "paths": paths })),
        };
        if let Some(note) = note {
            body["note"] = json!(note);
        }
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            body["wait_ms"] = json!(wait.as_millis() as u64);
        }
        let answer = self.post(path, &body, Vec::new(), false).await?;
        let body = answer.body;
        let locks = || match &body["lock"] {
            Value::Null => read::<Vec<Lock>>(body["locks"].clone()).unwrap_or_default(),
            lock => read::<Lock>(lock.clone()).into_iter().collect(),
        };
        let message = message(&body);
        // Somebody who waited has been told 200 long before it was known how it ends.
        let status = body["status"].as_u64().unwrap_or(u64::from(answer.status));
        match (status, message) {
            (200 | 201, None) => {
                let locks = locks();
                // Paths that are the same file for the server are one lock.
                if locks.is_empty() { Err(self.strange()) } else { Ok(Asked::Locked(locks)) }
            }
            (200 | 408 | 409, message) if answer.status == 200 => {
                Ok(Asked::Late(message.unwrap_or_default(), locks()))
            }
            (409, message) => Ok(Asked::Taken(message.unwrap_or_default(), locks())),
            (status, message) => Err(self.refused(status as u16, message)),
        }
    }

    /// All locks of the repository that are meant.
    pub(super) async fn locks(&mut self, filter: &Filter) -> Result<Vec<Lock>, Failure> {
        let mut query = format!("/locks?limit={PAGE}");
        let texts = [
            ("path", &filter.path),
            ("id", &filter.id),
            ("under", &filter.under),
            ("owner", &filter.owner),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                query += &format!("&{key}={}", encoded(value));
            }
        }
        if let Some(before) = filter.before {
            query += &format!("&before={}", encoded(&catraca_node::rfc3339(before)));
        }
        if filter.stolen {
            query += "&stolen=true";
        }
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = match &cursor {
                Some(cursor) => format!("{query}&cursor={}", encoded(cursor)),
                None => query.clone(),
            };
            let body = self.get(page).await?.body;
            let locks: Vec<Lock> = read(body["locks"].clone()).ok_or_else(|| self.strange())?;
            all.extend(locks);
            let next = body["next_cursor"].as_str().filter(|next| !next.is_empty());
            match next.map(String::from) {
                // The same part over and over would be read for ever.
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                Some(_) => return Err(self.strange()),
                None => return Ok(all),
            }
        }
    }

    /// The lock of a path, if there is one.
    pub(super) async fn lock_of(&mut self, path: &str) -> Result<Option<Lock>, Failure> {
        let filter = Filter { path: Some(path.to_string()), ..Filter::default() };
        Ok(self.locks(&filter).await?.into_iter().next())
    }

    /// The locks of these paths.
    pub(super) async fn locks_on(&mut self, paths: &[&str]) -> Result<Vec<Lock>, Failure> {
        let mut all = Vec::new();
        for part in parts(paths) {
            let answer =
                self.post("/locks/match", &json!({ "paths": part }), Vec::new(), true).await?;
            if answer.status != 200 {
                let why = message(&answer.body);
                return Err(self.refused(answer.status, why));
            }
            let locks: Option<Vec<Lock>> = read(answer.body["locks"].clone());
            all.extend(locks.ok_or_else(|| self.strange())?);
        }
        Ok(all)
    }

    /// Releases a lock. `owner` is for whom an administrator does it.
    pub(super) async fn unlock(
        &mut self,
        lock: &Lock,
        force: bool,
        owner: Option<&str>,
    ) -> Result<(), Failure> {
        let path = format!("/locks/{}/unlock", lock.id);
        let headers = owner.map(|owner| ("Catraca-Owner", owner.to_string())).into_iter().collect();
        let answer = self.post(&path, &json!({ "force": force }), headers, false).await?;
        match answer.status {
            200 => Ok(()),
            status => Err(self.refused(status, message(&answer.body))),
        }
    }

    /// Makes a lock the caller's: the lock now, and what it was.
    pub(super) async fn steal(
        &mut self,
        lock: &Lock,
        note: Option<&str>,
    ) -> Result<(Lock, Option<Lock>), Failure> {
        let path = format!("/locks/{}/steal", lock.id);
        let body = note.map_or(json!({}), |note| json!({ "note": note }));
        let answer = self.post(&path, &body, Vec::new(), false).await?;
        if answer.status != 200 {
            return Err(self.refused(answer.status, message(&answer.body)));
        }
        let now = read(answer.body["lock"].clone()).ok_or_else(|| self.strange())?;
        Ok((now, read(answer.body["was"].clone())))
    }

    async fn get(&mut self, path: String) -> Result<Answer, Failure> {
        let call = Call {
            method: Method::GET,
            path,
            body: None,
            headers: Vec::new(),
            is_repeatable: true,
        };
        let answer = self.call(&call).await?;
        match answer.status {
            200 => Ok(answer),
            status => Err(self.refused(status, message(&answer.body))),
        }
    }

    async fn post(
        &mut self,
        path: &str,
        body: &Value,
        headers: Vec<(&'static str, String)>,
        is_repeatable: bool,
    ) -> Result<Answer, Failure> {
        let body = Some(Bytes::from(body.to_string()));
        let path = path.to_string();
        self.call(&Call { method: Method::POST, path, body, headers, is_repeatable }).await
    }

    /// Sends it; where the server wants to know who calls, git is asked, and it is sent again.
    async fn call(&mut self, call: &Call) -> Result<Answer, Failure> {
        loop {
            let answer = self.http.call(call, self.authorization.as_deref()).await;
            self.status = answer.as_ref().ok().map(|answer| answer.status);
            let answer = answer.map_err(|error| self.unanswered(error))?;
            if answer.status != 401 {
                if let Some(credential) = self.credential.take() {
                    credential.approve();
                }
                return Ok(answer);
            }
            if let Some(credential) = self.credential.take() {
                credential.reject();
                self.authorization = None;
                return Err(self.refused(401, message(&answer.body)));
            }
            if !self.may_ask_git {
                return Err(self.refused(401, message(&answer.body)));
            }
            let credential = Credential::fill(&self.address, self.may_ask)?;
            self.authorization = Some(credential.header.clone());
            self.credential = Some(credential);
            self.may_ask_git = false;
        }
    }

    fn unanswered(&self, error: HttpError) -> Failure {
        match error {
            HttpError::Unreachable(why) => Failure::Own(NO_NODE, Some(why)),
            HttpError::Lost(why) => Failure::Own(
                NO_NODE,
                Some(format!(
                    "{why}; what was asked for may have been done: 'catraca git locks --mine' tells"
                )),
            ),
            HttpError::Strange(why) => Failure::Input(why),
        }
    }

    /// What the server refuses, in its words, with the exit code for it.
    fn refused(&self, status: u16, message: Option<String>) -> Failure {
        let address = &self.address;
        let said =
            message.clone().unwrap_or_else(|| format!("{address} answers with status {status}"));
        match status {
            401 if self.is_token_missing => Failure::Input(format!(
                "{said}; the hook needs a token: git config catraca.tokenFile FILE"
            )),
            401 => Failure::Input(format!(
                "{address} does not know you: {}{ASK_DOCTOR}",
                message.unwrap_or_else(|| "the name or the password is wrong".to_string())
            )),
            403 => Failure::Own(TAKEN, Some(said)),
            404 if message.is_none() => Failure::Input(format!(
                "there are no locks at {address}: the path has to be /git/TEAM/REPOSITORY, at the HTTP \
                 port of a node"
            )),
            404 | 409 | 410 => Failure::Own(TAKEN, Some(said)),
            408 => Failure::Own(LATE, Some(said)),
            429 | 500..=599 => Failure::Own(UNSERVED, Some(said)),
            _ => Failure::Input(said),
        }
    }

    fn strange(&self) -> Failure {
        Failure::Input(format!(
            "what answers at {} does not speak of locks as Catraca does{ASK_DOCTOR}",
            without_secrets(&self.address.to_string())
        ))
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// Why something was refused, on one line.
fn message(body: &Value) -> Option<String> {
    // Whoever has no locks says something else: that there is nothing here.
    if body["status"] == 404 {
        return None;
    }
    let text = body["message"].as_str().or_else(|| body["detail"].as_str())?;
    Some(super::api::shown(text))
}

/// The paths in parts that a server takes at once.
fn parts<'a, 'p>(paths: &'a [&'p str]) -> Vec<&'a [&'p str]> {
    let mut parts = Vec::new();
    let (mut begin, mut bytes) = (0, 0);
    for (at, path) in paths.iter().enumerate() {
        if at - begin >= MOST_PATHS || bytes + path.len() > MOST_BYTES && at > begin {
            parts.push(&paths[begin..at]);
            (begin, bytes) = (at, 0);
        }
        bytes += path.len() + 3;
    }
    if begin < paths.len() {
        parts.push(&paths[begin..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_paths_are_asked_for_in_parts_and_none_is_left_out() {
        assert!(parts(&[]).is_empty());
        assert_eq!(parts(&["a", "b"]), [["a", "b"]]);
        let many = vec!["x"; 2 * MOST_PATHS + 1];
        let sizes: Vec<usize> = parts(&many).iter().map(|part| part.len()).collect();
        assert_eq!(sizes, [MOST_PATHS, MOST_PATHS, 1]);
        let long = "y".repeat(MOST_BYTES);
        assert_eq!(parts(&[&long, &long, "z"]).len(), 3);
    }
}
