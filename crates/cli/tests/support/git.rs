//! Real repositories, real users of them, and a real node that keeps their locks.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::service::{Process, addresses};
use super::{Folder, Ran};

/// What the node is told of repositories: one for each policy.
const NODE: &str = "
[git]
default-branch = 'main'
[[git.repository]]
name = 'art/pushed'
policy = 'push'
[[git.repository]]
name = 'art/merged'
policy = 'merge'
[[git.repository]]
name = 'art/folded'
policy = 'merge'
fold = ['case', 'backslash', 'unicode']
";

/// A node with tokens for some people, and a folder for their repositories.
pub(crate) struct Studio {
    pub(crate) folder: Folder,
    pub(crate) node: Process,
    /// Where it serves HTTP.
    pub(crate) address: String,
    listen: String,
    /// `http` or `https`.
    scheme: &'static str,
}

impl Studio {
    pub(crate) fn open() -> Self {
        Self::open_with(&[])
    }

    pub(crate) fn open_with(flags: &[&str]) -> Self {
        Self::set_up("http", NODE, flags)
    }

    /// The same over TLS; git trusts the authority of the node's certificate. The configuration says that
    /// clients reach the node at `before`.
    pub(crate) fn open_over_tls(before: &str, flags: &[&str]) -> Self {
        let config = NODE.replacen("[git]", &format!("[git]\nurl = 'https://{before}'"), 1);
        Self::set_up("https", &config, flags)
    }

    fn set_up(scheme: &'static str, config: &str, flags: &[&str]) -> Self {
        let folder = Folder::new();
        for (name, role) in
            [("ana", "lock"), ("bo", "lock"), ("eve", "observe"), ("hook", "administer")]
        {
            let words = ["token", "add", name, "--role", role, "--file", "tokens"];
            let token = folder.run(&words).quietly(0).stdout;
            folder.write(&format!("{name}.token"), token.trim());
        }
        folder.write("node.toml", config);
        let [listen, address] = addresses(2).try_into().unwrap();
        let mut flags = flags.to_vec();
        if scheme == "https" {
            let ip = address.split(':').next().unwrap();
            folder.run(&["cert", "ca", "--out", "pki"]).quietly(0);
            let issue = ["cert", "issue", "node", "--ip", ip, "--ca", "pki", "--out", "pki"];
            folder.run(&issue).quietly(0);
            flags.extend(["--tls-cert", "pki/node.pem", "--tls-key", "pki/node-key.pem"]);
        }
        let node = start(&folder, &listen, &address, &flags);
        Studio { folder, node, address, listen, scheme }
    }

    /// The node is killed, and another one started in its place.
    pub(crate) fn restart(&mut self) {
        self.node.signal("KILL");
        let (listen, address) = (self.listen.clone(), self.address.clone());
        super::service::wait_until("it is gone", || self.node.has_ended());
        self.node = start(&self.folder, &listen, &address, &[]);
    }

    pub(crate) fn token(&self, name: &str) -> String {
        self.folder.read(&format!("{name}.token"))
    }

    pub(crate) fn token_file(&self, name: &str) -> String {
        self.folder.path(&format!("{name}.token")).display().to_string()
    }

    /// The locks of a repository of the team 'art'.
    pub(crate) fn url(&self, repository: &str) -> String {
        format!("{}://{}/git/art/{repository}", self.scheme, self.address)
    }

    /// Somebody whose git knows name and token.
    pub(crate) fn user(&self, name: &str) -> User {
        let user = self.stranger(name);
        let line = format!("{}://{name}:{}@{}\n", self.scheme, self.token(name), self.address);
        std::fs::write(user.home.join("credentials"), line).unwrap();
        user
    }

    /// Somebody whose git knows nothing.
    pub(crate) fn stranger(&self, name: &str) -> User {
        let home = self.folder.path(&format!("home-{name}"));
        std::fs::create_dir_all(&home).unwrap();
        let config = format!(
            "[user]\nname = {name}\nemail = {name}@example.org\n[init]\ndefaultBranch = main\n\
             [credential]\nhelper = store --file={}\n[advice]\ndetachedHead = false\n\
             [protocol \"file\"]\nallow = always\n",
            home.join("credentials").display()
        );
        let authority = match self.scheme {
            "https" => {
                format!("[http]\nsslCAInfo = {}\n", self.folder.path("pki/ca.pem").display())
            }
            _ => String::new(),
        };
        std::fs::write(home.join(".gitconfig"), config + &authority).unwrap();
        User { name: name.to_string(), home }
    }

    /// A bare repository with the hooks, whose locks are those of `art/NAME`.
    pub(crate) fn bare(&self, name: &str) -> PathBuf {
        self.bare_with(name, &[])
    }

    pub(crate) fn bare_with(&self, name: &str, flags: &[&str]) -> PathBuf {
        let hook = self.stranger("hook");
        let place = self.folder.path(&format!("{name}.git"));
        let words = [&["init", "--quiet", "--bare"], flags, &[place.to_str().unwrap()]].concat();
        hook.git(&self.folder.path(""), &words).quietly(0);
        let (url, token) = (self.url(name), self.token_file("hook"));
        let words = ["git", "init", "--url", &url, "--token-file", &token];
        hook.catraca(&place, &words).quietly(0).says("hook pre-receive");
        place
    }

    /// A clone of a bare repository; the first one makes its first commit.
    pub(crate) fn clone(&self, user: &User, bare: &Path) -> Clone {
        let name = bare.file_stem().unwrap().to_str().unwrap().to_string();
        let place = self.folder.path(&format!("{}-{name}", user.name));
        let words = ["clone", "--quiet", bare.to_str().unwrap(), place.to_str().unwrap()];
        assert_eq!(user.git(&self.folder.path(""), &words).code, Some(0));
        let clone = Clone { user: user.clone(), place };
        let is_new = clone.git(&["rev-parse", "--verify", "--quiet", "HEAD"]).code != Some(0);
        if is_new {
            clone.catraca(&["init", "--url", &self.url(&name), "*.psd"]).quietly(0);
            clone.write("a.psd", "1");
            clone.write("b.psd", "1");
            clone.write("code.c", "1");
            clone.commit("first");
            clone.push(&["origin", "HEAD:main"]).succeeded();
            clone.git(&["branch", "--quiet", "--set-upstream-to=origin/main"]).succeeded();
        } else {
            clone.catraca(&["init"]).quietly(0);
        }
        clone
    }
}

fn start(folder: &Folder, listen: &str, address: &str, flags: &[&str]) -> Process {
    let own = ["node", "--config", "node.toml", "--listen", listen, "--data", "data"];
    let http = ["--http", address, "--tokens", "tokens", "--audit", "audit.log"];
    let node = Process::start(folder.command(&[&own[..], &http, flags].concat()));
    node.says("listens at ");
    node
}

/// Somebody with a home of their own.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) home: PathBuf,
}

impl User {
    /// A program in a folder, with nothing of whoever runs the tests.
    pub(crate) fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).stdin(std::process::Stdio::null());
        for (name, _) in std::env::vars() {
            if name.starts_with("GIT_") || name.starts_with("CATRACA_") {
                command.env_remove(name);
            }
        }
        command.env("HOME", &self.home).env("XDG_CONFIG_HOME", self.home.join("none"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
        command.env("CATRACA_PUSHER", &self.name).env("LC_ALL", "C.UTF-8");
        command
    }

    pub(crate) fn git(&self, folder: &Path, words: &[&str]) -> Ran {
        self.command("git", folder).args(words).output().unwrap().into()
    }

    pub(crate) fn catraca(&self, folder: &Path, words: &[&str]) -> Ran {
        self.command(env!("CARGO_BIN_EXE_catraca"), folder).args(words).output().unwrap().into()
    }
}

/// A clone of somebody's.
pub(crate) struct Clone {
    pub(crate) user: User,
    pub(crate) place: PathBuf,
}

impl Clone {
    pub(crate) fn git(&self, words: &[&str]) -> Ran {
        self.user.git(&self.place, words)
    }

    /// `catraca git` there.
    pub(crate) fn catraca(&self, words: &[&str]) -> Ran {
        self.user.catraca(&self.place, &[&["git"], words].concat())
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.user.command(env!("CARGO_BIN_EXE_catraca"), &self.place);
        command.arg("git").args(words);
        command
    }

    /// A file with this content, although it may be read-only.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let file = self.place.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::remove_file(&file).ok();
        std::fs::write(file, content).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]).succeeded();
        self.git(&["commit", "--quiet", "--message", message]).succeeded();
    }

    /// Changes a file and commits that.
    pub(crate) fn change(&self, name: &str, content: &str) {
        self.write(name, content);
        self.commit(&format!("{name}: {content}"));
    }

    /// Pushes past the hooks of the clone: what the remote says is what is tested.
    pub(crate) fn push(&self, words: &[&str]) -> Ran {
        self.git(&[&["push", "--quiet", "--no-verify"], words].concat())
    }

    /// Whether the file can be written to.
    pub(crate) fn is_writable(&self, name: &str) -> bool {
        !std::fs::metadata(self.place.join(name)).unwrap().permissions().readonly()
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    /// It failed with this code, and complained in all of these words.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, texts: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        for text in texts {
            assert!(self.stderr.contains(text), "'{text}' is not in: {}", self.stderr);
        }
        self
    }
}
