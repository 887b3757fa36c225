//! Locks that others have stolen from the user, who is told of them by whatever command comes next.

use std::os::unix::fs::PermissionsExt;

use super::api::{Filter, Lock};
use super::repository::Repository;
use super::server::Server;
use super::{lockable, say};
use crate::failure::Failure;

/// The locks that others have now and that were stolen from whoever asks.
pub(super) async fn look(server: &mut Server) -> Result<Vec<Lock>, Failure> {
    let stolen = server.locks(&Filter { stolen: true, ..Filter::default() }).await?;
    // A server that knows nothing of thefts lists all locks.
    Ok(stolen.into_iter().filter(|lock| !lock.stolen_from.is_empty()).collect())
}

/// Tells the user of them, and makes the files read-only that are so without a lock. A command that has done
/// what it is for does not fail because of this.
pub(super) async fn tell(server: &mut Server, repository: &Repository) {
    let Ok(stolen) = look(server).await else { return };
    for lock in &stolen {
        say(&lock.stolen_in_words());
    }
    if repository.top.is_none() {
        return;
    }
    let is_writable = |path: &String| {
        let about = repository.root().join(path).symlink_metadata();
        about.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o222 != 0)
    };
    let paths = stolen.into_iter().map(|lock| lock.path).filter(is_writable);
    let paths: Vec<String> = paths.collect();
    if !paths.is_empty() {
        lockable::is_released(repository, &paths);
    }
}
