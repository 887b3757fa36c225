//! Ctrl-C and SIGTERM: the first asks for an orderly end, so that no half-written file is left
//! behind.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::sync::Notify;

use crate::output;

/// How long a computation may take to notice that it is to end.
const GRACE: Duration = Duration::from_millis(700);

/// How long it may take to undo what is not to be left behind.
pub(crate) const UNDOING: Duration = Duration::from_secs(10);

static STOP: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(false)));

/// Wakes whoever waits for somebody to ask us to end.
static WOKEN: Notify = Notify::const_new();

/// Whether something is to be undone before the end.
static TO_UNDO: AtomicBool = AtomicBool::new(false);

/// Sets the flag on the first signal; a second one ends the process at once.
///
/// A process that does not end `in_order` is ended after [`GRACE`] in any case, or [`UNDOING`] later if it
/// [has to undo](has_to_undo) something. So a step that takes long, or an output that nobody reads, need not look
/// at the flag.
pub(crate) fn install(in_order: bool) {
    let handler = move || {
        if STOP.swap(true, Ordering::Relaxed) {
            end();
        }
        WOKEN.notify_waiters();
        if !in_order {
            thread::spawn(|| {
                thread::sleep(GRACE);
                if TO_UNDO.load(Ordering::Relaxed) {
                    thread::sleep(UNDOING);
                }
                end();
            });
        }
    };
    // Without a handler the default applies: the process ends at the first signal.
    ctrlc::set_handler(handler).ok();
}

fn end() -> ! {
    output::remove_pending(|| {
        // If standard error is closed there is nobody to tell.
        tell(&mut io::stderr()).ok();
        std::process::exit(130)
    })
}

/// Says that this is why the process ends, whoever comes first to say it.
pub(crate) fn tell(stderr: &mut impl Write) -> io::Result<()> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if TOLD.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    writeln!(stderr, "catraca: interrupted")
}

/// The flag that long runs look at.
pub(crate) fn flag() -> Arc<AtomicBool> {
    Arc::clone(&STOP)
}

/// Whether somebody has asked us to end.
pub(crate) fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Says whether there is something to be undone before the end: then there are [`UNDOING`] for it after
/// the first signal.
pub(crate) fn has_to_undo(something: bool) {
    TO_UNDO.store(something, Ordering::Relaxed);
}

/// Waits until somebody has asked us to end.
pub(crate) async fn asked() {
    // It hears of what happens from here on; what has happened is in the flag.
    let woken = WOKEN.notified();
    if !requested() {
        woken.await;
    }
}
