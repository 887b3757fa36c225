//! `catraca recover`: the last resort when a majority of the voters is lost for good.

use std::io::Write;
use std::path::PathBuf;

use crate::Outcome;
use crate::failure::Failure;
use crate::output::Stdout;

/// Makes the registry in one node's directory go on alone, with all that it knows.
///
/// Only when a majority of the members that vote is lost for good, disks and all: what this node had not
/// heard of before is gone, durable holds among it. The nodes must be stopped. Afterwards start this one
/// as before, delete the directories of the other voters, and let them join again: they must never come
/// back with what they had.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The directory of the node that is to go on (--data of the node).
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Says that you have read this.
    #[arg(long = "i-know-the-others-are-gone")]
    is_certain: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Outcome {
        let place = self.data.display();
        if !self.is_certain {
            return Err(Failure::Input(format!(
                "this forgets what only the other voters know. If they are gone for good, say: catraca recover --data {place} --i-know-the-others-are-gone"
            )));
        }
        catraca_node::recover_alone(&self.data)
            .map_err(|error| Failure::System(anyhow::Error::msg(error.to_string())))?;
        let mut out = Stdout::lock();
        writeln!(
            out,
            "The registry in {place} goes on alone. Start its node as before; delete the"
        )?;
        writeln!(out, "directories of the other voters before their nodes are started again.")?;
        out.flush()?;
        Ok(())
    }
}
