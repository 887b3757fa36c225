//! What `catraca node` is told about HTTP.

use std::path::PathBuf;

use catraca_node::HttpConfig;

#[derive(clap::Args)]
#[command(next_help_heading = "HTTP")]
pub(super) struct HttpArguments {
    /// Serve HTTP and JSON there too, as in 127.0.0.1:7880; docs/HTTP.md tells the rest.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Keep the state of Terraform and OpenTofu in this directory too, and not only their locks.
    #[arg(long, value_name = "DIR")]
    terraform_state: Option<PathBuf>,
}

impl HttpArguments {
    /// What the flags and the file say together; flags win.
    pub(super) fn add_to(&self, config: &mut HttpConfig) {
        config.listen = self.http.clone().or_else(|| config.listen.take());
        let state = self.terraform_state.clone();
        config.terraform_state = state.or_else(|| config.terraform_state.take());
    }
}
