//! The Unix socket at which users of this machine find a node.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use catraca_client::system::plain;
use tokio::net::{UnixListener, UnixStream};

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The system says no.
    #[error("cannot listen at the socket '{}': {}", .path.display(), plain(.reason))]
    System {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// Another node has it.
    #[error("another node uses the socket '{}'; give each node one of its own", .0.display())]
    Taken(PathBuf),
    /// Something else is there.
    #[error("'{}' is there and is no socket; choose another path", .0.display())]
    Other(PathBuf),
}

/// A socket that a node listens at. It is gone when this is dropped.
pub(crate) struct Socket {
    path: PathBuf,
    listener: UnixListener,
    /// Whoever has it has the socket, however its process ends.
    _lock: File,
}

impl Socket {
    /// Listens there. A socket that a dead process has left is replaced.
    pub(crate) fn bind(path: &Path) -> Result<Self, SocketError> {
        let system = |reason| SocketError::System { path: path.into(), reason };
        if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            // Others may look into it: who may use the socket is asked for each connection.
            DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(system)?;
        }
        let lock = File::options().create(true).truncate(false).write(true).open(beside(path));
        let lock = lock.map_err(system)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SocketError::Taken(path.into())),
            Err(TryLockError::Error(reason)) => return Err(system(reason)),
        }
        match fs::symlink_metadata(path) {
            Ok(about) if about.file_type().is_socket() => fs::remove_file(path).map_err(system)?,
            Ok(_) => return Err(SocketError::Other(path.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(system(error)),
        }
        let listener = UnixListener::bind(path).map_err(system)?;
        // Everybody may call: the system says who it is.
        fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(system)?;
        Ok(Socket { path: path.into(), listener, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The lock is still held: it is ours. If it stays, the next node replaces it.
        let _ = fs::remove_file(&self.path);
    }
}

/// The file that is locked for as long as the socket is in use. It stays: to remove it would let two nodes
/// have it at once.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(".lock");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_in_use_is_refused_and_one_that_was_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/x.sock");
        let first = Socket::bind(&path).unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::Taken(_))));
        UnixStream::connect(&path).await.unwrap();
        drop(first);
        assert!(!path.exists());
        // What a process leaves that was killed: the socket, and nobody behind it.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(UnixStream::connect(&path).await.is_err());
        let second = Socket::bind(&path).unwrap();
        let (accepted, connected) = tokio::join!(second.accept(), UnixStream::connect(&path));
        assert_eq!(accepted.unwrap().peer_cred().unwrap().pid(), Some(std::process::id() as i32));
        drop(connected);
        drop(second);
        fs::write(&path, "a letter").unwrap();
        assert!(matches!(Socket::bind(&path), Err(SocketError::Other(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "a letter");
        let long = folder.path().join("x".repeat(200));
        assert!(matches!(Socket::bind(&long), Err(SocketError::System { .. })));
    }
}
