//! Listening sockets: opening them, and accepting within a budget.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::config::Settings;

/// Connections that may wait to be accepted (the system caps it, too).
const BACKLOG: i32 = 4096;

/// A connection that has just been made.
#[derive(Debug)]
pub(crate) struct Accepted<S = TcpStream> {
    pub(crate) stream: S,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// Opens every address of `bind`, or says which one it cannot open and which flag changes it.
pub(crate) fn open(settings: &Settings) -> anyhow::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    let mut port = settings.port;
    for bind in &settings.bind {
        let (name, address) = (bind.name(), SocketAddr::new(bind.ip(), port));
        let opened = listen(address);
        if let Err(why) = &opened
            && bind.is_optional()
            && is_missing(why)
        {
            tracing::info!("this machine has no address {name}, without which it goes");
            continue;
        }
        let listener = opened.map_err(|why| match why.kind() {
            io::ErrorKind::AddrInUse => anyhow::anyhow!(
                "port {port} of {name} is taken by another program; choose another with --port"
            ),
            io::ErrorKind::PermissionDenied => anyhow::anyhow!(
                "port {port} of {name} is not allowed for this user; choose another with --port"
            ),
            io::ErrorKind::AddrNotAvailable => {
                anyhow::anyhow!("this machine has no address {name}; choose another with --bind")
            }
            _ => anyhow::Error::new(why).context(format!("cannot listen on {address}")),
        })?;
        // Any free port for the first address is the port of the others, too.
        port = listener
            .local_addr()
            .context("cannot ask for the port")?
            .port();
        listeners.push(listener);
    }
    if listeners.is_empty() {
        anyhow::bail!("this machine has none of the addresses of --bind");
    }
    Ok(listeners)
}

/// Returns true if the machine has no such address, or none of its kind.
fn is_missing(why: &io::Error) -> bool {
    #[cfg(unix)]
    let unsupported = why.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
    #[cfg(not(unix))]
    let unsupported = false;
    unsupported || why.kind() == io::ErrorKind::AddrNotAvailable
}

/// Binds as `TcpListener::bind` does, but with a longer queue of connections that wait to be
/// accepted. When it overflows, clients wait a whole second before they try again.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Elsewhere the option would let two servers share the port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// Accepts one connection; `None` when nobody is waiting.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<Option<Accepted>> {
    loop {
        match listener.accept() {
            Ok((stream, peer)) => {
                // Without an address it is gone already.
                let Ok(local) = stream.local_addr() else {
                    continue;
                };
                return Ok(Some(Accepted {
                    stream,
                    peer,
                    local,
                }));
            }
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            // The client gave up while it was waiting.
            Err(why)
                if matches!(
                    why.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                ) => {}
            Err(why) => return Err(why),
        }
    }
}

/// The longest time between two probes that Linux takes, in seconds.
const KEEPALIVE_MAX_S: u64 = 32_767;

/// Sets what every client's socket needs: replies leave at once, and a peer that has vanished is
/// noticed. A system that does not probe as asked is no reason to refuse anybody.
pub(crate) fn tune(stream: &TcpStream, keepalive_s: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if keepalive_s > 0
        && let Err(why) = keep_alive(stream, keepalive_s.min(KEEPALIVE_MAX_S))
    {
        tracing::debug!(%why, keepalive_s, "a connection is not probed");
    }
    Ok(())
}

fn keep_alive(stream: &TcpStream, seconds: u64) -> io::Result<()> {
    let idle = Duration::from_secs(seconds);
    let probe = Duration::from_secs((seconds / 3).max(1));
    let keepalive = TcpKeepalive::new().with_time(idle).with_interval(probe);
    #[cfg(not(windows))]
    let keepalive = keepalive.with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The system refused a long keep-alive, and then the server refused the connection.
    #[test]
    fn keep_alive_of_any_length_refuses_nobody() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        for (asked, set) in [(7_200, 7_200), (32_768, 32_767), (i32::MAX as u64, 32_767)] {
            let stream = std::net::TcpStream::connect(address).expect("a connection");
            stream.set_nonblocking(true).expect("a socket");
            let stream = TcpStream::from_std(stream);
            tune(&stream, asked).expect("nobody is refused");
            #[cfg(target_os = "linux")]
            assert_eq!(
                SockRef::from(&stream).tcp_keepalive_time().expect("a time"),
                Duration::from_secs(set)
            );
            let _ = set;
        }
    }
}
