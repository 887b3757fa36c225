//! `catraca force-release`: ends whatever holds a lock.

use std::io::{self, BufRead, IsTerminal, Write};

use catraca_client::protocol::ForcedHold;
use catraca_client::{ClientError, Connection, Line, Query, Refusal, Selection};

use crate::Outcome;
use crate::failure::Failure;
use crate::nodes::NodeArguments;
use crate::output::Stdout;
use crate::service::{administrator, block_on};

/// Ends whatever holds a lock, at whichever member: a hold of a session, a timed or a durable one.
///
/// The client is told, and its session goes on; 'catraca lock' stops its command. The next one is let in
/// when the holder has released the lock, or when it cannot be certain of it any more: within the time of
/// a lease. Whoever gets the lock meanwhile is not meant.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// The lock.
    name: String,
    /// Do not ask whether that is meant.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    nodes: NodeArguments,
}

const HELP: &str = "\
Exit codes:
    0  it is released
    1  nobody holds it, or it was not meant
    2  wrong input
  122  a node answers, but cannot serve now
  125  no node answers
  130  interrupted

Example:
  catraca force-release deploy/web";

/// There is nothing to be released, or it is not to be.
const NOT_HELD: u8 = 1;
/// So many holders are shown; a semaphore has no more.
const MOST_SHOWN: u32 = 1000;

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        block_on(async {
            let mut connection = Connection::open_any(self.nodes.nodes()?).await?;
            let fences = if self.yes { Vec::new() } else { self.confirm(&mut connection).await? };
            let forced = connection.force_release(&self.name, &fences, &administrator()).await;
            match forced {
                Ok(forced) => tell(&forced),
                Err(ClientError::Refused(Refusal::NoSuchHold(_))) => Err(self.nobody()),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn nobody(&self) -> Failure {
        Failure::Own(NOT_HELD, Some(format!("nobody holds '{}'", self.name)))
    }

    /// Shows who holds the lock, and asks. Returns which holds are meant.
    async fn confirm(&self, connection: &mut Connection) -> Result<Vec<u64>, Failure> {
        if !io::stdin().is_terminal() {
            return Err(Failure::input("there is nobody to ask whether that is meant: say --yes"));
        }
        let names = Selection::Name(self.name.clone());
        let query = Query { whole_group: true, names, limit: MOST_SHOWN, ..Query::default() };
        let page = connection.page(query).await?;
        let holders: Vec<&Line> = page.lines.iter().filter(|line| line.fence.is_some()).collect();
        if holders.is_empty() {
            return Err(self.nobody());
        }
        let mut out = Stdout::lock();
        for line in &holders {
            let (node, fence) = (&line.key.node, line.fence.unwrap_or_default());
            let owner = line.durable.as_ref().map_or(&line.label, |durable| &durable.owner);
            writeln!(out, "{} is held by {owner} at {node}, fence {fence}", self.name)?;
        }
        write!(out, "Release it by force? [y/N] ")?;
        out.flush()?;
        drop(out);
        match answer().await?.trim() {
            "y" | "Y" | "yes" => Ok(holders.iter().filter_map(|line| line.fence).collect()),
            _ => Err(Failure::Own(NOT_HELD, Some("nothing was released".to_string()))),
        }
    }
}

/// What is typed. It is read by a thread of its own, which does not keep the process from ending.
async fn answer() -> Result<String, Failure> {
    let (typed, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // Nobody waits for it any more if the process is about to end.
        typed.send(read.map(|_| line)).ok();
    });
    answer.await.unwrap_or_else(|_| Ok(String::new())).map_err(Failure::from)
}

fn tell(forced: &[ForcedHold]) -> Outcome {
    let mut out = Stdout::lock();
    for ForcedHold { name, fence, member, label, .. } in forced {
        writeln!(out, "released {name}, held by {label} at {member}, fence {fence}")?;
    }
    out.flush()?;
    Ok(())
}
