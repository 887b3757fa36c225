//! Bodies of strangers.

use serde::de::DeserializeOwned;

use super::force::ForceBody;
use super::holds::{AcquireBody, RenewBody};
use super::locks::CheckBody;
use super::terraform::LockInfo;

/// The body of every request that has one.
pub(crate) fn bodies(bytes: &[u8]) {
    read::<AcquireBody>(bytes);
    read::<RenewBody>(bytes);
    read::<CheckBody>(bytes);
    read::<ForceBody>(bytes);
    read::<LockInfo>(bytes);
}

fn read<T: DeserializeOwned>(bytes: &[u8]) {
    // A body that cannot be read is refused; the reason is told, so it must have a text.
    if let Err(error) = serde_json::from_slice::<T>(bytes) {
        assert!(!error.to_string().is_empty());
    }
}
