//! `catraca members`: who belongs to the group.

use std::io::Write;

use catraca_client::Connection;
use catraca_client::protocol::RosterChange;
use catraca_node::Config;

use crate::Outcome;
use crate::failure::Failure;
use crate::nodes::NodeArguments;
use crate::output::Stdout;
use crate::service::{UNSERVED, block_on};
use crate::table::{Align, Table};

/// Shows and changes who belongs to the group.
///
/// A member that is lost for a while still belongs to it. 'catraca node --join' adds a member by itself.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    nodes: NodeArguments,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Every member, and whether it is in the view.
    List,
    /// Lets one more node join, or changes the address of one: NAME=HOST:PORT or NAME=HOST:PORT@CLUSTER.
    Add {
        /// The member.
        member: String,
    },
    /// Takes a member out for ever. One that runs leaves in order; one that is lost is out already, or
    /// will be when its lease is over.
    Remove {
        /// The member's name.
        member: String,
    },
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let change = match &self.action {
            Action::List => None,
            Action::Add { member } => {
                let members = Config::members_from(member).map_err(Failure::input)?;
                let [member] = members.as_slice() else {
                    return Err(Failure::input("name one member at a time"));
                };
                Some(RosterChange::Add(member.clone()))
            }
            Action::Remove { member } => Some(RosterChange::Remove(member.clone())),
        };
        block_on(async {
            let mut connection = Connection::open_any(self.nodes.nodes()?).await?;
            match change {
                None => list(&mut connection).await,
                Some(change) => match connection.change_roster(change).await? {
                    Ok(()) => Ok(()),
                    Err(why) => Err(Failure::Own(UNSERVED, Some(why))),
                },
            }
        })
    }
}

async fn list(connection: &mut Connection) -> Outcome {
    let status = connection.status().await?;
    let mut table = Table::new(&[
        ("member", Align::Left),
        ("address", Align::Left),
        ("view", Align::Left),
        ("votes", Align::Left),
    ]);
    let voters = status.registry.map(|registry| registry.voters).unwrap_or_default();
    for member in status.members {
        let view = if member.is_in_view { "in" } else { "out" };
        let votes = if voters.contains(&member.name) { "yes" } else { "-" };
        table.row(vec![member.name, member.address, view.to_string(), votes.to_string()]);
    }
    let mut out = Stdout::lock();
    for line in table.lines() {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}
