//! Flags of a node for whoever operates it: its log and its audit log.

use std::path::PathBuf;

use catraca_node::AuditConfig;

use crate::log;

/// What a node tells its operator, and where.
#[derive(clap::Args)]
#[command(next_help_heading = "Operations")]
pub(crate) struct OperationArguments {
    /// How the lines on standard error look.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: log::Format,
    /// Append who held what and who administered what to this file, as JSON lines; docs/OPERATIONS.md
    /// tells the format. It is opened anew on SIGHUP.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
}

impl OperationArguments {
    /// What the flags and the file say together; flags win.
    pub(crate) fn audit(&self, told: AuditConfig) -> AuditConfig {
        AuditConfig { file: self.audit.clone().or(told.file), ..told }
    }
}
