//! `catraca git pre-push`: the same check as on the server, before anything is sent.

use super::changed::{Telling, pushed};
use super::pre_receive::{Push, finish};
use super::repository::{Repository, run_with};
use super::server::ServerArguments;
use super::stolen;
use super::taken_over::default_tip;
use crate::Outcome;
use crate::failure::Failure;
use crate::service::block_on;

/// A hook for clones: refuses a push that changes what somebody else has locked, before it is sent.
///
/// 'catraca git init' sets it up. It reads what git tells a hook of this name. It is a courtesy to whoever
/// pushes, who can leave it out with --no-verify; the hook 'catraca git pre-receive' of the remote cannot be
/// left out.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// The remote, as git tells it.
    #[arg(value_name = "REMOTE")]
    remote: Option<String>,
    /// Its URL, as git tells it.
    #[arg(value_name = "REMOTE-URL")]
    remote_url: Option<String>,
}

const HELP: &str = "\
Where no server for locks is known, it lets everything pass. If the server does not answer, pushes are
refused, unless 'catraca.unreachable' of git's configuration is 'allow'.

Exit codes:
    0  the push may go on
    1  it may not; the message says why
    2  wrong input";

impl Arguments {
    pub(super) fn run(self, server: &ServerArguments) -> Outcome {
        let updates = pushed(std::io::stdin().lock())?;
        let repository = Repository::find()?;
        let config = &repository.config;
        if server.known(config).is_none() || updates.iter().all(|update| update.new.is_none()) {
            return Ok(());
        }
        let mut remotes = config.subsections("remote", "url").map(|(remote, _)| remote);
        let remote = self.remote.filter(|name| remotes.any(|known| known == name));
        let mut updates = updates;
        let there = present(&repository, updates.iter().filter_map(|it| it.old.clone()).collect())?;
        for update in &mut updates {
            // What the remote has and nobody here knows cannot be compared with.
            update.old.take_if(|old| !there.contains(old));
        }
        let news: Vec<&str> = updates.iter().filter_map(|it| it.new.as_deref()).collect();
        let olds: Vec<&str> = updates.iter().filter_map(|it| it.old.as_deref()).collect();
        let known = match &remote {
            Some(remote) => format!("--remotes={remote}"),
            None => "--remotes".to_string(),
        };
        let mut who = String::new();
        let mut asked = || {
            let mut server = server.server(config)?;
            let of_commits = Telling::of_commits(&news, &olds, &["--not", &known])?;
            block_on(async {
                let me = server.whoami().await?;
                who = format!("you are '{}'", me.name);
                stolen::tell(&mut server, &repository).await;
                let remote = remote.as_deref().unwrap_or("origin");
                let default = default_tip(&format!("refs/remotes/{remote}/HEAD"));
                let named = || default_tip(&format!("refs/remotes/{remote}/{}", me.default_branch));
                let default = default.or_else(named);
                let push = Push { of_commits, updates: &updates, default, owners: &[me.name] };
                push.refused(&mut server).await
            })
        };
        let asked = asked();
        finish(asked, config, &who)
    }
}

/// Those of the objects that are here.
fn present(repository: &Repository, ids: Vec<String>) -> Result<Vec<String>, Failure> {
    if ids.is_empty() {
        return Ok(ids);
    }
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let mut command = repository.git();
    command.args(["cat-file", "--batch-check=%(objectname)"]);
    let answer = run_with(&mut command, input.into_bytes())?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.lines().filter(|line| !line.contains(' ')).map(String::from).collect())
}
