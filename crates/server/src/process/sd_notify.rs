//! Tells systemd, if it has started the server, what the server does (`sd_notify`).
//!
//! A message is a datagram of lines, to the Unix socket that `NOTIFY_SOCKET` names. Without that
//! variable nothing is sent. Crates for it are as long as this file, and either take the variable
//! out of the environment, which is unsafe beside other threads, or link against systemd.
//!
//! There are no messages for systemd's watchdog: it would end a server whose loops stand still for
//! a while, and with it the data that is not saved.

/// The server answers. Sent again after [`reloading`].
pub(crate) fn ready(status: &str) {
    send(&format!("READY=1\nSTATUS={status}"));
}

/// The file of settings is being read again, since a moment of the monotonic clock.
pub(crate) fn reloading(since_ns: u64) {
    send(&format!("RELOADING=1\nMONOTONIC_USEC={}", since_ns / 1_000));
}

/// The data is being loaded. Whoever waits for [`ready`] shall wait for another minute.
pub(crate) fn loading(percent: f64) {
    send(&format!(
        "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=loading: {percent:.0} %"
    ));
}

/// The server is about to stop.
pub(crate) fn stopping() {
    send("STOPPING=1\nSTATUS=stopping");
}

/// What the server does, for people.
pub(crate) fn status(text: &str) {
    send(&format!("STATUS={text}"));
}

#[cfg(target_os = "linux")]
fn send(lines: &str) {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    /// Nobody waits for a reader that does not read.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let to = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&name),
    };
    let sent = to.and_then(|to| {
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.send_to_addr(lines.as_bytes(), &to)
    });
    if let Err(why) = sent {
        tracing::warn!(%why, socket = %name.display(), "cannot tell systemd: {lines:?}");
    }
}

/// Does nothing: there is no systemd here.
#[cfg(not(target_os = "linux"))]
fn send(_: &str) {}
