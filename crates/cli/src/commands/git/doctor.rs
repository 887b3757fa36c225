//! `catraca git doctor`: what is wrong with the set-up of a repository, and how to mend it.

use std::io::Write;

use serde_json::json;

use super::address::{Address, without_secrets};
use super::api::{Lock, Policy, Whoami, shown};
use super::config::{LFS_CONFIG, Origin, is_true};
use super::hook_files::{Found, Hook, OF_BARE, OF_CLONES};
use super::pusher::Pusher;
use super::repository::{Repository, by_zeros, git, line_if_any, run, succeeds};
use super::server::{ASK_DOCTOR, ServerArguments};
use super::{AMISS, lockable, stolen};
use crate::Outcome;
use crate::failure::Failure;
use crate::output::Stdout;
use crate::service::{NO_NODE, UNSERVED, block_on, ends_with};
use crate::table::counted;

/// Finds what is wrong with the set-up for locks, and says how to mend it.
///
/// It looks at git and Git LFS, at the configuration, the files of the repository and the hooks, and asks
/// the server who you are there. It changes nothing.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Exit codes:
    0  everything is as it should be
    2  this is no repository
    3  something has to be mended";

/// Something that was looked at.
struct Finding {
    what: String,
    /// How to mend it; nothing if it is as it should be.
    remedy: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn good(&mut self, what: impl Into<String>) {
        self.0.push(Finding { what: what.into(), remedy: None });
    }

    fn bad(&mut self, what: impl Into<String>, remedy: impl Into<String>) {
        self.0.push(Finding { what: what.into(), remedy: Some(remedy.into()) });
    }
}

impl Arguments {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let repository = Repository::find()?;
        let mut findings = Findings::default();
        programs(&repository, &mut findings);
        let about = ask(&repository, server, &mut findings);
        match repository.top {
            Some(_) => of_clone(&repository, server, about.as_ref(), &mut findings)?,
            None => of_bare(&repository, about.as_ref(), &mut findings),
        }
        let Findings(findings) = findings;
        self.print(&findings)?;
        ends_with(if findings.iter().any(|it| it.remedy.is_some()) { AMISS } else { 0 })
    }

    fn print(&self, findings: &[Finding]) -> Outcome {
        let mut out = Stdout::lock();
        if self.json {
            let one = |it: &Finding| json!({"what": it.what, "remedy": it.remedy});
            writeln!(out, "{:#}", json!(findings.iter().map(one).collect::<Vec<_>>()))?;
        } else {
            for Finding { what, remedy } in findings {
                match remedy {
                    None => writeln!(out, "good   {what}")?,
                    Some(remedy) => writeln!(out, "wrong  {what}\n       {remedy}")?,
                }
            }
            let wrong = findings.iter().filter(|it| it.remedy.is_some()).count() as u64;
            match wrong {
                0 => writeln!(out, "\nEverything is as it should be.")?,
                wrong => writeln!(out, "\n{} to mend.", counted(wrong, "thing", "things"))?,
            }
        }
        out.flush()?;
        Ok(())
    }
}

fn programs(repository: &Repository, findings: &mut Findings) {
    if let Some(version) = line_if_any(git().arg("--version")) {
        findings.good(version);
    }
    match line_if_any(repository.git().args(["lfs", "version"])) {
        Some(version) => findings.good(version.split(" (").next().unwrap_or_default()),
        None if repository.top.is_some() => findings.bad(
            "git-lfs is not there: files that are not locked are not kept read-only",
            "install it: apt-get install git-lfs, or https://git-lfs.com",
        ),
        None => {}
    }
    if !succeeds(git().args(["catraca", "--version"])) {
        findings.good(
            "'git catraca' is not there; to have it: ln -s \"$(command -v catraca)\" \
             ~/.local/bin/git-catraca",
        );
    }
}

/// Asks the server, and tells what it says.
fn ask(
    repository: &Repository,
    arguments: &ServerArguments,
    findings: &mut Findings,
) -> Option<Whoami> {
    let config = &repository.config;
    let Some(known) = arguments.known(config) else {
        findings.bad(
            "no server for locks is known here",
            "catraca git init --url https://HOST:PORT/git/TEAM/REPOSITORY",
        );
        return None;
    };
    findings.good(format!("the server is {}, by {}", without_secrets(&known.url), known.place));
    match Address::parse(&known.url) {
        Ok(address) if address.user.is_some() && address.password.is_none() => findings.bad(
            "the URL has a name without a password, with which Git LFS asks nobody for one",
            "leave 'NAME@' out of it; git asks for both, and a credential helper keeps them",
        ),
        Ok(address) if !address.is_safe && !is_local(&address.host) => findings.bad(
            "the server is reached without TLS: everybody on the way can read tokens",
            "give the node a certificate, and use https: docs/SECURITY-SETUP.md",
        ),
        _ => {}
    }
    let server = match repository.top {
        Some(_) => arguments.server(config),
        None => Pusher::of_environment(config)
            .and_then(|pusher| arguments.server_for_hook(config, pusher.first_owner())),
    };
    let mut status = None;
    let asked = server.and_then(|mut server| {
        let asked = block_on(async {
            let about = server.whoami().await?;
            let stolen = match repository.top {
                Some(_) => stolen::look(&mut server).await?,
                None => Vec::new(),
            };
            Ok((about, stolen))
        });
        status = server.status;
        asked
    });
    match asked {
        Ok((about, stolen)) => {
            of_server(repository, &about, findings);
            of_stolen(&stolen, findings);
            Some(about)
        }
        Err(failure) => {
            let (what, remedy) = in_words(failure, status, repository.top.is_some());
            findings.bad(what, remedy);
            None
        }
    }
}

/// Nobody but the thief has said so yet.
fn of_stolen(stolen: &[Lock], findings: &mut Findings) {
    for lock in stolen {
        let path = shown(&lock.path);
        findings.bad(
            lock.stolen_in_words(),
            format!(
                "ask '{}'; what you have changed in it cannot be pushed; 'catraca git steal' takes '{path}' back",
                shown(&lock.owner.name)
            ),
        );
    }
}

fn is_local(host: &str) -> bool {
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// What went wrong when the server was asked, and how to mend it. `status` is that of its answer, if there was one.
fn in_words(failure: Failure, status: Option<u16>, is_clone: bool) -> (String, &'static str) {
    let (code, what) = match failure {
        Failure::Input(what) => (2, what),
        Failure::Own(code, what) => (code, what.unwrap_or_default()),
        Failure::System(error) => (1, format!("{error:#}")),
        _ => (1, "the server could not be asked".to_string()),
    };
    let remedy = match (code, status) {
        (NO_NODE, _) if what.contains("not trusted here") => {
            "name the authority of the node: git config http.sslCAInfo FILE, or --ca FILE"
        }
        (NO_NODE, _) => "start the node with --http ADDR, or correct the URL",
        (UNSERVED, _) => "wait until the group of nodes is complete: catraca status",
        (_, Some(401)) if is_clone => {
            "run 'catraca git locks' at a terminal, and give your token as the password; whoever \
             administers the node makes one: catraca token add NAME --role lock"
        }
        (_, Some(401)) => {
            "git config catraca.tokenFile FILE, with a token that the node knows: catraca token add \
             hook --role observe, or administer if locks are released by pushes"
        }
        (_, Some(403)) => {
            "give the token the role that it takes: catraca token add NAME --role ROLE"
        }
        (_, Some(_)) => {
            "correct the URL: catraca git init --url https://HOST:PORT/git/TEAM/REPOSITORY, with the \
             port of --http of a node"
        }
        (_, None) => {
            "correct what it says, in git's configuration (git config --show-origin --list) or in \
             .lfsconfig; docs/GIT.md tells what is looked at"
        }
    };
    (what.trim_end_matches(ASK_DOCTOR).to_string(), remedy)
}

fn of_server(repository: &Repository, about: &Whoami, findings: &mut Findings) {
    let who = if repository.top.is_some() { "you" } else { "the hook" };
    findings.good(format!("the server calls {who} '{}'", about.name));
    let needed = match (repository.top.is_some(), about.policy) {
        (true, _) => "lock",
        (false, Policy::Hand) => "observe",
        (false, _) => "administer",
    };
    if !about.roles.iter().any(|role| role == needed) {
        findings.bad(
            format!("'{}' has not the role '{needed}'", about.name),
            format!("catraca token add NAME --role {needed}"),
        );
    }
    let default = &about.default_branch;
    findings.good(format!(
        "locks of {} are released {}; the default branch is '{default}'",
        about.repository,
        about.policy.in_words()
    ));
}

fn of_clone(
    repository: &Repository,
    arguments: &ServerArguments,
    about: Option<&Whoami>,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let config = &repository.config;
    if arguments.known(config).is_some_and(|known| known.origin == Origin::Shared)
        && !succeeds(repository.git().args(["ls-files", "--error-unmatch", "--", LFS_CONFIG]))
    {
        findings.bad(
            format!("{LFS_CONFIG} is not in the repository: nobody else has it"),
            format!("git add {LFS_CONFIG} && git commit"),
        );
    }
    locks_verify(repository, findings);
    if config.shared_value("remote.locks.lfsurl").is_some()
        && config.value("remote.lfspushdefault") != Some("locks")
    {
        findings.bad(
            "'git lfs lock' of this clone asks the forge, and not the server for locks",
            "git config remote.lfspushdefault locks",
        );
    }
    hooks(repository, &OF_CLONES, findings);
    files(repository, about, findings)
}

/// Git LFS switches the check before a push off by itself when a server does not know it.
fn locks_verify(repository: &Repository, findings: &mut Findings) {
    let config = &repository.config;
    let per_url: Vec<(&str, &str)> = config.subsections("lfs", "locksverify").collect();
    let off: Vec<String> = per_url
        .iter()
        .filter(|(_, value)| !is_true(value))
        .map(|(url, _)| format!("lfs.{url}.locksverify"))
        .chain(
            config
                .value("lfs.locksverify")
                .filter(|it| !is_true(it))
                .map(|_| "lfs.locksverify".into()),
        )
        .collect();
    let shared = config.shared_value("lfs.locksverify");
    let is_on = per_url.iter().any(|(_, value)| is_true(value))
        || config.value_or_shared("lfs.locksverify").is_some_and(|(value, _)| is_true(value));
    for key in &off {
        findings.bad(
            format!("{key} is off: Git LFS pushes without a look at the locks"),
            format!("git config --unset '{key}'"),
        );
    }
    match is_on {
        true if off.is_empty() => findings.good("Git LFS looks at the locks before it pushes"),
        false if off.is_empty() && shared.is_none() => findings.bad(
            "lfs.locksverify is not set: Git LFS pushes when the server cannot be asked",
            format!("git config --file {LFS_CONFIG} lfs.locksverify true"),
        ),
        _ => {}
    }
}

fn hooks(repository: &Repository, hooks: &[Hook], findings: &mut Findings) {
    let folder = &repository.hooks;
    let mut missing = Vec::new();
    for hook in hooks {
        match hook.found(folder) {
            Found::Ours | Found::Lfs if !hook.is_executable(folder) => findings.bad(
                format!("git does not run the hook {}: it is not executable", hook.name),
                format!("chmod +x '{}'", folder.join(hook.name).display()),
            ),
            Found::Ours => {}
            Found::Lfs if hook.own.is_none() => {}
            _ => missing.push(hook.name),
        }
    }
    match missing.is_empty() {
        true => findings.good(format!("the hooks are in '{}'", folder.display())),
        false => findings.bad(
            format!(
                "these hooks are missing, or others are in their place: {}",
                missing.join(", ")
            ),
            "catraca git init",
        ),
    }
}

/// Files that are to be locked before they are changed.
fn files(
    repository: &Repository,
    about: Option<&Whoami>,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let listed = run(repository.git().args(["ls-files", "-z"]))?;
    let paths: Vec<String> =
        by_zeros(&listed).map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    let lockable = lockable::of(repository, &paths);
    match lockable.len() as u64 {
        0 => findings.bad(
            "no file of the repository is lockable: nothing is read-only until it is locked",
            "catraca git init '*.psd', with the patterns of your files",
        ),
        count => findings.good(format!("{} lockable", counted(count, "file is", "files are"))),
    }
    let attributes = std::fs::read_to_string(repository.root().join(".gitattributes"));
    let uses_objects = attributes.is_ok_and(|text| text.contains("filter=lfs"));
    let is_separate = repository.config.value("remote.lfspushdefault") == Some("locks");
    if let Some(about) =
        about.filter(|about| about.objects == "none" && uses_objects && !is_separate)
    {
        findings.bad(
            format!("files of {} are kept by Git LFS, and this server has room for locks only", about.repository),
            "start the node with --lfs-objects or --lfs-forward, or say 'catraca git init --locks-only'",
        );
    }
    Ok(())
}

fn of_bare(repository: &Repository, about: Option<&Whoami>, findings: &mut Findings) {
    hooks(repository, &OF_BARE, findings);
    match Pusher::of_environment(&repository.config) {
        Ok(pusher) => findings.good(format!(
            "whoever pushes is told by {}; here that is '{}', whose locks are those of {}",
            pusher.source,
            pusher.name,
            pusher.owners_in_words()
        )),
        // Only the server of the repository sets it.
        Err(_) => findings.good(format!(
            "whoever pushes is told by {}",
            repository.config.values("catraca.pushervariable").collect::<Vec<_>>().join(", ")
        )),
    }
    match repository.config.value("catraca.unreachable") {
        Some("allow") => findings.good("pushes go on while no server for locks answers"),
        None | Some("refuse") => {
            findings.good("pushes are refused while no server for locks answers");
        }
        Some(other) => findings.bad(
            format!("catraca.unreachable is '{other}', which means nothing"),
            "git config catraca.unreachable refuse, or allow",
        ),
    }
    let head = line_if_any(git().args(["symbolic-ref", "--short", "HEAD"]));
    if let (Some(about), Some(head)) = (about.filter(|it| it.policy == Policy::Merge), head)
        && about.default_branch != head
    {
        findings.bad(
            format!(
                "the default branch is '{head}' here, and '{}' for the server for locks",
                about.default_branch
            ),
            "set 'default-branch' of the repository in the configuration of the nodes",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_of_a_server_has_a_remedy_of_its_own() {
        let remedy = |status, is_clone| {
            in_words(Failure::input(format!("refused{ASK_DOCTOR}")), status, is_clone)
        };
        let (what, of_user) = remedy(Some(401), true);
        assert_eq!(what, "refused", "the doctor does not send people to the doctor");
        assert!(of_user.contains("give your token as the password"), "{of_user}");
        assert!(remedy(Some(401), false).1.contains("catraca.tokenFile"));
        for status in [200, 400, 404] {
            assert!(remedy(Some(status), true).1.starts_with("correct the URL"), "{status}");
        }
        assert!(remedy(None, true).1.contains("--show-origin"));
        let unreached = |why: &str| Failure::Own(NO_NODE, Some(why.to_string()));
        assert!(in_words(unreached("nobody listens"), None, true).1.starts_with("start the node"));
        let unknown = "its certificate is from an authority that is not trusted here";
        assert!(in_words(unreached(unknown), None, true).1.contains("http.sslCAInfo"));
    }
}
