//! Standard error, which is often a pipe to a program that may not read it.
//!
//! A full pipe would hold whoever logs, and so the event loops. A line waits for [`PATIENCE`] and
//! is then lost; while nobody reads, further ones are lost at once. The first that is written again
//! is followed by how many were lost.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A line waits so long for a reader: a busy one is back sooner.
const PATIENCE: Duration = Duration::from_millis(100);

/// The bytes that can be written without waiting if anything can: systems promise 512 at least, and
/// Linux 4096.
const PIECE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// The number of lines that were lost since one was last written.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes a line of the log.
///
/// # Errors
///
/// If it cannot be written, or nobody reads. Then the line is lost, and its first part may be
/// there.
pub(super) fn write(line: &[u8]) -> io::Result<()> {
    let written = write_in_pieces(line);
    if written.is_err() {
        LOST.fetch_add(1, Ordering::Relaxed);
        return written;
    }
    if LOST.load(Ordering::Relaxed) > 0 {
        let lines = LOST.swap(0, Ordering::Relaxed);
        // This comes here again, behind the line.
        tracing::warn!(
            lines,
            "lines of the log were lost, since nobody read standard error"
        );
    }
    Ok(())
}

fn write_in_pieces(line: &[u8]) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    for piece in line.chunks(PIECE) {
        wait_for_reader(&stderr)?;
        stderr.write_all(piece)?;
    }
    Ok(())
}

/// Waits until a piece can be written.
#[cfg(unix)]
fn wait_for_reader(stderr: &io::StderrLock<'_>) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let patience = match LOST.load(Ordering::Relaxed) {
        0 => PATIENCE,
        _ => Duration::ZERO,
    };
    let patience = Timespec::try_from(patience).ok();
    let mut files = [PollFd::new(stderr, PollFlags::OUT)];
    match rustix::io::retry_on_intr(|| poll(&mut files, patience.as_ref())) {
        Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
        // What cannot be asked is tried.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Does not wait: it is unknown here whether a piece can be written.
#[cfg(not(unix))]
fn wait_for_reader(_: &io::StderrLock<'_>) -> io::Result<()> {
    Ok(())
}
