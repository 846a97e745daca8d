//! Opens the files that settings name, and waits for none of them.
//!
//! Who opens a pipe waits for its other end, and some files of the system, such as `/proc/kmsg`,
//! have a reader wait for what is not there yet. A loop that waits so keeps all its clients
//! waiting, and the thread of signals would not hear SIGTERM.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file to read it, if it is a regular one.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    // To open a device may do something.
    is_regular(&std::fs::metadata(path)?)?;
    let file = without_waiting(OpenOptions::new().read(true)).open(path)?;
    // It may have been replaced meanwhile.
    is_regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens a file, or whatever else is there, to append to it: a pipe that nobody reads is an error.
pub(crate) fn open_to_append(path: &Path) -> io::Result<File> {
    without_waiting(OpenOptions::new().create(true).append(true)).open(path)
}

fn is_regular(of: &std::fs::Metadata) -> io::Result<()> {
    match of.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        )),
    }
}

#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;

    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
}

#[cfg(not(unix))]
fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read as _;
    use std::path::PathBuf;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// The longest time for something that should not wait at all.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Does this on another thread, and fails if it waits.
    fn at_once<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, done) = mpsc::channel();
        std::thread::spawn(move || send.send(act()));
        done.recv_timeout(PATIENCE).expect("it does not wait")
    }

    fn pipe(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tidewheel-{name}-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        path
    }

    #[test]
    fn a_pipe_is_no_regular_file() {
        let path = pipe("read");
        let there = path.clone();
        let refused = at_once(move || open_regular(&there)).expect_err("it is a pipe");
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(refused.to_string(), "it is no regular file");
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_no_place_for_the_log() {
        let path = pipe("append");
        let there = path.clone();
        let refused = at_once(move || open_to_append(&there));
        std::fs::remove_file(&path).expect("it is there");
        assert!(refused.is_err(), "nobody reads it");
    }

    /// It says that it is a regular file. Only root may read it.
    #[cfg(target_os = "linux")]
    #[test]
    fn nobody_waits_for_the_kernels_log() {
        let read = || {
            let mut text = Vec::new();
            open_regular(Path::new("/proc/kmsg"))?.read_to_end(&mut text)
        };
        let refused = at_once(read).expect_err("it has no end");
        let kinds = [
            io::ErrorKind::WouldBlock,
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::NotFound,
        ];
        assert!(kinds.contains(&refused.kind()), "{refused}");
    }
}
