//! `catraca unlock`: releases a durable hold.

use std::io::Write;

use catraca_client::{ClientError, HoldId, Refusal, Target, Unlock, unlock};

use crate::Outcome;
use crate::failure::Failure;
use crate::nodes::NodeArguments;
use crate::output::Stdout;
use crate::service::block_on;

/// Releases a durable hold: by one of its names, or by its id.
///
/// Its owner releases it; whoever administers the group may release it by force.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Arguments {
    /// One of the hold's locks, or its id.
    #[arg(value_name = "NAME|ID")]
    target: String,
    /// Who says so, the owner of the hold; by default whoever the token or the certificate names.
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,
    /// Release it whoever it belongs to. With an owner, only that one's.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    nodes: NodeArguments,
}

const HELP: &str = "\
Exit codes:
    0  it is released
    1  there is no such hold, or it belongs to somebody else
    2  wrong input
  122  a node answers, but cannot serve now
  125  no node answers
  130  interrupted

Examples:
  catraca unlock art/hero.psd --owner ana
  catraca unlock 4f1c6a0b9d2e8c7f5a3b1d0e6f9c8a7b --force";

/// There is nothing to be released by whoever says so.
const NOT_HELD: u8 = 1;

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let id = (self.target.len() == 32)
            .then(|| u128::from_str_radix(&self.target, 16).ok().map(HoldId))
            .flatten();
        let target = id.map_or_else(|| Target::Name(self.target.clone()), Target::Id);
        let owner = match self.force {
            true => self.owner.clone(),
            false => Some(self.owner.clone().unwrap_or_default()),
        };
        block_on(async {
            match unlock(self.nodes.nodes()?, Unlock { target, owner }).await {
                Ok(hold) => {
                    let mut out = Stdout::lock();
                    let names = hold.map_or(self.target.clone(), |hold| hold.names.join(" "));
                    writeln!(out, "released {names}")?;
                    out.flush()?;
                    Ok(())
                }
                Err(ClientError::Refused(
                    why @ (Refusal::NoSuchHold(_) | Refusal::NotOwner(_)),
                )) => Err(Failure::Own(NOT_HELD, Some(why.to_string()))),
                Err(error) => Err(error.into()),
            }
        })
    }
}
