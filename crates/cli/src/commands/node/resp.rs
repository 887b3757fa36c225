//! What `catraca node` is told about the Redis protocol.

use std::time::Duration;

use catraca_node::RespConfig;

use crate::value::duration;

#[derive(clap::Args)]
#[command(next_help_heading = "Redis protocol")]
pub(super) struct RespArguments {
    /// Serve the Redis protocol there too, as in 127.0.0.1:7879: lock libraries for Redis work with it.
    /// docs/REDIS.md tells the rest.
    #[arg(long, value_name = "ADDR")]
    resp: Option<String>,
    /// How long a SET NX waits in the queue of a lock that somebody has, as in 200ms; by default not at all.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    park: Option<Duration>,
}

impl RespArguments {
    /// What the flags and the file say together; flags win.
    pub(super) fn add_to(&self, config: &mut RespConfig) {
        config.listen = self.resp.clone().or_else(|| config.listen.take());
        config.park = self.park.unwrap_or(config.park);
    }
}
