//! Ctrl-C: the first asks for an orderly end, so that no half-written file is left behind.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(false)));

/// Sets the flag on the first signal; a second one ends the process at once.
pub(crate) fn install() {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    // Without a handler the default applies: the process ends at the first signal.
    ctrlc::set_handler(handler).ok();
}

/// The flag that long runs look at.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&STOP)
}

/// Whether somebody has asked us to end.
pub(crate) fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}
