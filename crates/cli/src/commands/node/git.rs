//! What `catraca node` is told about Git.

use std::path::PathBuf;

use catraca_node::GitConfig;

#[derive(clap::Args)]
#[command(next_help_heading = "Git")]
pub(super) struct GitArguments {
    /// Keep the objects of Git LFS in this directory too, and not only the locks of files, which are served at
    /// /git/TEAM/REPO of --http; docs/GIT.md tells the rest.
    #[arg(long, value_name = "DIR", conflicts_with = "lfs_forward")]
    lfs_objects: Option<PathBuf>,
    /// Send requests for the objects of Git LFS on to this address, in which {team} and {repo} stand for the
    /// repository.
    #[arg(long, value_name = "URL")]
    lfs_forward: Option<String>,
}

impl GitArguments {
    /// What the flags and the file say together; flags win.
    pub(super) fn add_to(&self, config: &mut GitConfig) {
        if self.lfs_objects.is_some() || self.lfs_forward.is_some() {
            config.objects.clone_from(&self.lfs_objects);
            config.forward.clone_from(&self.lfs_forward);
        }
    }
}
