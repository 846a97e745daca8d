//! The Unix socket: its file is made with its permissions, replaces a stale one, and is removed at
//! the end.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mio::net::UnixListener;
use socket2::{Domain, SockAddr, Socket, Type};

/// The file of a socket that listens. Dropping it removes the file, if it is still the same.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let same = identity(&self.path).is_ok_and(|found| found == self.identity);
        if same && let Err(why) = fs::remove_file(&self.path) {
            let path = self.path.display();
            tracing::warn!(%why, "cannot remove the Unix socket {path}");
        }
    }
}

/// What tells a file from a later one of the same name: its file system, its number there, which
/// may be given again, and when it was made.
type Identity = (u64, u64, i64, i64);

fn identity(path: &Path) -> io::Result<Identity> {
    let found = fs::symlink_metadata(path)?;
    let made = (found.mtime(), found.mtime_nsec());
    Ok((found.dev(), found.ino(), made.0, made.1))
}

/// Listens at a path. `mode`: the permissions of the file; without one, what the system's mask
/// leaves.
pub(crate) fn open(
    path: &str,
    mode: Option<u32>,
    backlog: i32,
) -> anyhow::Result<(UnixListener, SocketFile)> {
    let file = Path::new(path);
    remove_stale(file)?;
    let listener = listen(file, mode, backlog)
        .with_context(|| format!("cannot listen at the Unix socket {path} (--unixsocket)"))?;
    let identity = identity(file).context("cannot look at the Unix socket")?;
    let path = file.to_owned();
    Ok((listener, SocketFile { path, identity }))
}

/// Removes the socket of a server that is gone, or an empty file: `mktemp` makes one to keep a
/// name free. Another file stays, and so does a socket at which somebody listens.
fn remove_stale(path: &Path) -> anyhow::Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let shown = path.display();
    if found.is_file() && found.len() == 0 {
        return fs::remove_file(path).with_context(|| format!("cannot remove the file {shown}"));
    }
    if !found.file_type().is_socket() {
        anyhow::bail!("{shown} is no socket: choose another path with --unixsocket");
    }
    // A full queue means that somebody listens, too.
    match UnixStream::connect(path) {
        Err(why) if why.kind() == io::ErrorKind::ConnectionRefused => {}
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        _ => anyhow::bail!(
            "another program listens at {shown}: choose another path with --unixsocket"
        ),
    }
    fs::remove_file(path).with_context(|| format!("cannot remove the stale socket {shown}"))
}

fn listen(path: &Path, mode: Option<u32>, backlog: i32) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    let address = SockAddr::unix(path)?;
    let Some(mode) = mode else {
        socket.bind(&address)?;
        return listening(socket, backlog);
    };
    // On Linux a socket's file gets the permissions of the socket, so that at no time it has more.
    let unbound = File::from(OwnedFd::from(socket));
    let set = unbound.set_permissions(Permissions::from_mode(mode));
    let socket = Socket::from(OwnedFd::from(unbound));
    if cfg!(target_os = "linux") {
        set?;
    }
    socket.bind(&address)?;
    // The mask may have taken some.
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    listening(socket, backlog)
}

fn listening(socket: Socket, backlog: i32) -> io::Result<UnixListener> {
    socket.listen(backlog)?;
    socket.set_nonblocking(true)?;
    Ok(UnixListener::from_std(socket.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> String {
        let name = format!("tidewheel-{name}-{}.sock", std::process::id());
        std::env::temp_dir().join(name).display().to_string()
    }

    #[test]
    fn a_stale_socket_is_replaced_and_the_own_one_removed() {
        let path = path("stale");
        drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
        let (listener, file) = open(&path, Some(0o600), 8).expect("the stale one is replaced");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let taken = open(&path, None, 8).expect_err("somebody listens");
        assert!(taken.to_string().contains("another program"), "{taken}");
        drop((listener, file));
        assert!(!Path::new(&path).exists());
    }

    #[test]
    fn a_file_that_is_no_socket_stays() {
        let path = path("file");
        fs::write(&path, "data").expect("a file");
        let refused = open(&path, None, 8).expect_err("it is a file");
        assert!(refused.to_string().contains("is no socket"), "{refused}");
        assert_eq!(fs::read(&path).expect("it is still there"), b"data");
        fs::remove_file(&path).expect("it is ours");
    }

    #[test]
    fn an_empty_file_gives_its_name_to_the_socket() {
        let path = path("empty");
        fs::write(&path, "").expect("a file");
        let opened = open(&path, None, 8).expect("nothing is lost");
        UnixStream::connect(&path).expect("a socket");
        drop(opened);
    }

    #[test]
    fn the_socket_of_another_server_is_not_removed() {
        let path = path("later");
        let (_, file) = open(&path, None, 8).expect("a socket");
        fs::remove_file(&path).expect("it is there");
        let (_listener, later) = open(&path, None, 8).expect("a socket");
        drop(file);
        assert!(Path::new(&path).exists());
        drop(later);
        assert!(!Path::new(&path).exists());
    }
}
