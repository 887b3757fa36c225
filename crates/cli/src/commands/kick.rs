//! `catraca kick`: takes a member out of the view at once.

use std::io::Write;

use catraca_client::Connection;

use crate::Outcome;
use crate::failure::Failure;
use crate::nodes::NodeArguments;
use crate::output::Stdout;
use crate::service::{UNSERVED, administrator, block_on};

/// Takes a member out of the view at once: whoever holds locks there gets no time to finish, and its node
/// stops. It belongs to the group as before, and comes back when it is started again.
///
/// A member that does not answer is out of the view when its lease is over, and not before: it may believe
/// until then that it holds its locks.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// The member.
    member: String,
    #[command(flatten)]
    nodes: NodeArguments,
}

const HELP: &str = "\
Exit codes:
    0  it is out of the view
    2  wrong input
  122  a node answers, but it is not done
  125  no node answers
  130  interrupted

Example:
  catraca kick b";

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        block_on(async {
            let mut connection = Connection::open_any(self.nodes.nodes()?).await?;
            if let Err(why) = connection.kick(&self.member, &administrator()).await? {
                return Err(Failure::Own(UNSERVED, Some(why)));
            }
            let mut out = Stdout::lock();
            writeln!(out, "'{}' is out of the view", self.member)?;
            out.flush()?;
            Ok(())
        })
    }
}
