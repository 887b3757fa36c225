//! `catraca leave`: takes a member out of its group in order, for ever.

use std::io::Write;

use catraca_client::{Connection, Status};

use crate::Outcome;
use crate::failure::Failure;
use crate::nodes::NodeArguments;
use crate::output::Stdout;
use crate::service::{UNSERVED, block_on};

/// Takes a member out of its group for ever, in order: its node grants nothing any more, whoever holds
/// locks there may finish (--drain of the node), the others go on at once, and the node stops.
///
/// To stop a node only for a while, send it SIGTERM: it leaves in order too, and comes back by itself.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The member; the one that is asked, unless said otherwise.
    member: Option<String>,
    #[command(flatten)]
    nodes: NodeArguments,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        block_on(async {
            let mut connection = Connection::open_any(self.nodes.nodes()?).await?;
            let status = connection.status().await?;
            let name = self.member.unwrap_or_else(|| status.node.clone());
            if status.members.iter().filter(|member| member.is_in_view).count() == 1 {
                return Err(Failure::input(
                    "this is the last member of the group; stop its node with SIGTERM instead",
                ));
            }
            if name != status.node {
                let mut nodes = self.nodes.nodes()?;
                nodes.addresses = vec![address(&status, &name)?];
                connection = Connection::open_any(nodes).await?;
            }
            if let Err(why) = connection.leave().await? {
                return Err(Failure::Own(UNSERVED, Some(why)));
            }
            let mut out = Stdout::lock();
            writeln!(out, "'{name}' leaves its group")?;
            out.flush()?;
            Ok(())
        })
    }
}

/// Where a member is.
fn address(status: &Status, name: &str) -> Result<String, Failure> {
    let known = status.members.iter().find(|member| member.name == name);
    match known {
        Some(member) if member.is_in_view => Ok(member.address.clone()),
        Some(_) => Err(Failure::Input(format!(
            "member '{name}' is not in the view; to take it out for ever say: catraca members remove {name}"
        ))),
        None => {
            let names: Vec<&str> = status.members.iter().map(|it| it.name.as_str()).collect();
            let names = names.join(", ");
            Err(Failure::Input(format!("there is no member '{name}'; the members are {names}")))
        }
    }
}
