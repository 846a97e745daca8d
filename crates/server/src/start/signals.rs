//! SIGTERM and SIGINT: the first asks the server to stop, the second ends it at once.

use std::sync::Arc;

use crate::state::server::Server;

/// Watches from a thread of its own.
#[cfg(unix)]
pub(crate) fn watch(server: &Arc<Server>) -> anyhow::Result<()> {
    use anyhow::Context as _;
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    use crate::state::server::StopReason;

    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot watch for signals")?;
    let server = Arc::clone(server);
    let watch = move || {
        let mut asked = false;
        for signal in signals.forever() {
            if asked {
                // Somebody is in a hurry.
                std::process::exit(1);
            }
            asked = true;
            tracing::info!(signal, "asked to stop");
            server.ask_to_stop(StopReason::Signal);
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .context("cannot start a thread")?;
    Ok(())
}

/// Does nothing: other systems end the process at once.
#[cfg(not(unix))]
pub(crate) fn watch(_: &Arc<Server>) -> anyhow::Result<()> {
    Ok(())
}
