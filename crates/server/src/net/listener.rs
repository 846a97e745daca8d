//! Listening sockets: opening them, and accepting within a budget.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::stream::Stream;
#[cfg(unix)]
use super::unix_socket::{self, SocketFile};
use crate::config::{Address, Port, Settings};

/// Connections that may wait to be accepted (the system caps it, too).
const BACKLOG: i32 = 4096;

/// A connection that has just been made.
#[derive(Debug)]
pub(crate) struct Accepted<S = Stream> {
    pub(crate) stream: S,
    pub(crate) peer: Address,
    pub(crate) local: Address,
}

/// All sockets at which the server listens.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    pub(crate) plain: Vec<TcpListener>,
    pub(crate) tls: Vec<TcpListener>,
    #[cfg(unix)]
    pub(crate) unix: Option<(mio::net::UnixListener, std::sync::Arc<str>)>,
    /// Removes the Unix socket's file at the end.
    #[cfg(unix)]
    pub(crate) file: Option<SocketFile>,
}

/// Opens everything that the settings name, or says what it cannot open and which flag changes it.
pub(crate) fn open(settings: &Settings) -> anyhow::Result<Listeners> {
    let listeners = Listeners {
        plain: open_port(settings, settings.port, "--port")?,
        tls: open_port(settings, settings.tls.port, "--tls-port")?,
        ..Listeners::default()
    };
    #[cfg(unix)]
    let listeners = with_unix(listeners, settings)?;
    if listeners.facts().is_empty() {
        anyhow::bail!(
            "there is nothing to listen at: --port is 0, and neither --tls-port nor --unixsocket is set (`--port any` \
             is any free port)"
        );
    }
    Ok(listeners)
}

/// Opens the Unix socket, if there is to be one.
#[cfg(unix)]
fn with_unix(mut listeners: Listeners, settings: &Settings) -> anyhow::Result<Listeners> {
    if !settings.unix_socket.is_empty() {
        let path = settings.unix_socket.as_str();
        let (listener, file) = unix_socket::open(path, settings.unix_socket_mode, BACKLOG)?;
        listeners.unix = Some((listener, path.into()));
        listeners.file = Some(file);
    }
    Ok(listeners)
}

/// A kind of listener, and where its sockets are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenerFacts {
    /// As INFO calls it.
    pub(crate) name: &'static str,
    pub(crate) addresses: Vec<String>,
    /// 0 for a Unix socket.
    pub(crate) port: u16,
}

impl Listeners {
    /// Returns those whose connections are served without a handshake.
    pub(crate) fn into_plain(self) -> Vec<Listener> {
        let mut plain: Vec<Listener> = self.plain.into_iter().map(Listener::Network).collect();
        #[cfg(unix)]
        plain.extend(
            self.unix
                .map(|(listener, path)| Listener::Unix(listener, path)),
        );
        plain
    }

    /// Says where the server listens.
    pub(crate) fn facts(&self) -> Vec<ListenerFacts> {
        let mut facts = Vec::new();
        for (name, listeners) in [("tcp", &self.plain), ("tls", &self.tls)] {
            let found = listeners.iter().filter_map(|of| of.local_addr().ok());
            let found: Vec<SocketAddr> = found.collect();
            if let Some(first) = found.first() {
                facts.push(ListenerFacts {
                    name,
                    port: first.port(),
                    addresses: found.iter().map(ToString::to_string).collect(),
                });
            }
        }
        #[cfg(unix)]
        facts.extend(self.unix.iter().map(|(_, path)| ListenerFacts {
            name: "unix",
            addresses: vec![path.to_string()],
            port: 0,
        }));
        facts
    }
}

/// Opens a port at every address of `bind`.
fn open_port(settings: &Settings, port: Port, flag: &str) -> anyhow::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    let mut port = match port {
        Port::Off => return Ok(listeners),
        Port::Any => 0,
        Port::Number(port) => port,
    };
    for bind in &settings.bind {
        let (name, address) = (bind.name(), SocketAddr::new(bind.ip(), port));
        let opened = listen(address, true);
        if let Err(why) = &opened
            && bind.is_optional()
            && is_missing(why)
        {
            tracing::info!("this machine has no address {name}, without which it goes");
            continue;
        }
        let listener = opened.map_err(|why| match why.kind() {
            io::ErrorKind::AddrInUse => anyhow::anyhow!(
                "port {port} of {name} is taken by another program; choose another with {flag}"
            ),
            io::ErrorKind::PermissionDenied => anyhow::anyhow!(
                "port {port} of {name} is not allowed for this user; choose another with {flag}"
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
        listeners.push(TcpListener::from_std(listener));
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
/// accepted. When it overflows, clients wait a whole second before they try again. A socket for all
/// addresses of IPv6 has those of IPv4 too, if not `only_its_version`.
pub(crate) fn listen(
    address: SocketAddr,
    only_its_version: bool,
) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() && only_its_version {
        socket.set_only_v6(true)?;
    }
    // Elsewhere the option would let two servers share the port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A socket whose connections are served without a handshake.
#[derive(Debug)]
pub(crate) enum Listener {
    Network(TcpListener),
    #[cfg(unix)]
    Unix(mio::net::UnixListener, std::sync::Arc<str>),
}

impl Listener {
    /// Accepts one connection; `None` when nobody is waiting.
    pub(crate) fn accept(&self) -> io::Result<Option<Accepted>> {
        match self {
            Self::Network(listener) => Ok(accept(listener)?.map(|accepted| Accepted {
                stream: Stream::Plain(accepted.stream),
                peer: accepted.peer,
                local: accepted.local,
            })),
            #[cfg(unix)]
            Self::Unix(listener, path) => {
                let accepted = waiting(|| listener.accept())?;
                Ok(accepted.map(|(stream, _)| Accepted {
                    stream: Stream::Unix(stream),
                    peer: Address::Unix(path.clone()),
                    local: Address::Unix(path.clone()),
                }))
            }
        }
    }

    /// Watches it.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let source: &mut dyn Source = match self {
            Self::Network(listener) => listener,
            #[cfg(unix)]
            Self::Unix(listener, _) => listener,
        };
        source.register(registry, token, Interest::READABLE)
    }
}

/// Returns another descriptor of the same socket, for another thread.
pub(crate) fn duplicate(listener: &TcpListener) -> io::Result<TcpListener> {
    let socket = SockRef::from(listener).try_clone()?;
    Ok(TcpListener::from_std(socket.into()))
}

/// Accepts one connection; `None` when nobody is waiting.
pub(crate) fn accept(listener: &TcpListener) -> io::Result<Option<Accepted<TcpStream>>> {
    while let Some((stream, peer)) = waiting(|| listener.accept())? {
        // Without an address it is gone already.
        if let Ok(local) = stream.local_addr() {
            return Ok(Some(Accepted {
                stream,
                peer: peer.into(),
                local: local.into(),
            }));
        }
    }
    Ok(None)
}

/// Calls `accept` until it has somebody; `None` when nobody is waiting.
fn waiting<T>(accept: impl Fn() -> io::Result<T>) -> io::Result<Option<T>> {
    loop {
        match accept() {
            Ok(accepted) => return Ok(Some(accepted)),
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
pub(crate) fn tune(stream: &Stream, keepalive_s: u64) -> io::Result<()> {
    let Some(stream) = stream.tcp() else {
        return Ok(());
    };
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
    use crate::config::BindAddress;

    /// A socket for all addresses of IPv6 took those of IPv4 too, and the other one found its port
    /// taken. Redis's own `bind * -::*` was no address.
    #[test]
    fn all_addresses_of_both_versions_share_a_port() {
        for bind in [["*", "-::*"], ["-::*", "*"]] {
            let bind = bind.map(|name| BindAddress::parse(name).expect("an address"));
            let settings = Settings {
                bind: bind.to_vec(),
                port: Port::Any,
                ..Settings::default()
            };
            let listeners = open(&settings).expect("a free port");
            let addresses = listeners.plain.iter().map(TcpListener::local_addr);
            let addresses: Vec<SocketAddr> = addresses.map(|of| of.expect("an address")).collect();
            assert!(addresses.iter().any(SocketAddr::is_ipv4), "{addresses:?}");
            let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
            assert_eq!(addresses.iter().any(SocketAddr::is_ipv6), has_ipv6);
        }
    }

    /// The system refused a long keep-alive, and then the server refused the connection.
    #[test]
    fn keep_alive_of_any_length_refuses_nobody() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        for (asked, set) in [(7_200, 7_200), (32_768, 32_767), (i32::MAX as u64, 32_767)] {
            let stream = std::net::TcpStream::connect(address).expect("a connection");
            stream.set_nonblocking(true).expect("a socket");
            let stream = Stream::Plain(TcpStream::from_std(stream));
            tune(&stream, asked).expect("nobody is refused");
            #[cfg(target_os = "linux")]
            assert_eq!(
                SockRef::from(stream.tcp().expect("it is one"))
                    .tcp_keepalive_time()
                    .expect("a time"),
                Duration::from_secs(set)
            );
            let _ = set;
        }
    }
}
