//! SIGTERM and SIGINT: the first asks the server to stop, the second ends it at once. SIGHUP reads
//! the file of settings again, and those of certificates; SIGUSR1 opens the log's file again.
//! SIGXFSZ does nothing.

use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::Ordering::SeqCst;

use crate::state::server::Server;

/// Watches from a thread of its own.
#[cfg(unix)]
pub(crate) fn watch(server: &Arc<Server>) -> anyhow::Result<()> {
    use anyhow::Context as _;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
    use signal_hook::iterator::Signals;

    use super::reload::reload;
    use crate::process::{log, sd_notify};
    use crate::state::server::StopReason;

    let signals = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGXFSZ];
    let mut signals = Signals::new(signals).context("cannot watch for signals")?;
    let server = Arc::clone(server);
    let watch = move || {
        for signal in signals.forever() {
            match signal {
                SIGHUP => {
                    // Who is not ready yet, or not any more, does not become so by this.
                    let is_stopping = server.is_signalled.load(SeqCst);
                    let is_ready = !is_stopping && !server.is_loading();
                    if is_ready {
                        sd_notify::reloading(server.clock.monotonic_ns());
                    }
                    reload(&server);
                    renew_certificates(&server);
                    if is_ready {
                        sd_notify::ready("the settings were read again");
                    }
                }
                SIGUSR1 => log::reopen(),
                // By itself it ends the process. The write that made a file too long fails, too,
                // and whoever wrote says so.
                SIGXFSZ => {}
                // Somebody is in a hurry.
                _ if server.is_signalled.swap(true, SeqCst) => {
                    tracing::warn!(signal, "ended by a second signal: nothing more is saved");
                    std::process::exit(1);
                }
                _ => {
                    tracing::info!(signal, "asked to stop");
                    server.ask_to_stop(StopReason::Signal);
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)
        .context("cannot start a thread")?;
    Ok(())
}

/// Reads the files of certificates again. What cannot be read leaves the old ones in force.
#[cfg(unix)]
fn renew_certificates(server: &Server) {
    let settings = server.config.current();
    let now_s = server.clock.now().wall_ms() / 1_000;
    match server.tls_terms.renew(&settings, now_s) {
        Err(why) => {
            tracing::error!("the certificates stay as they were: {why:#}");
        }
        Ok(()) if server.tls_terms.current().is_some() => {
            tracing::info!("the files of certificates were read again (SIGHUP)");
        }
        Ok(()) => {}
    }
}

/// Does nothing: other systems end the process at once.
#[cfg(not(unix))]
pub(crate) fn watch(_: &Arc<Server>) -> anyhow::Result<()> {
    Ok(())
}
