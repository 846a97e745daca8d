//! Addresses of clients, and of the sockets to which they have come.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// An address of the network, or the path of a Unix socket: its clients have no address of their
/// own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Network(SocketAddr),
    Unix(Arc<str>),
}

impl Address {
    /// Returns true if the client is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            // A socket for both versions shows 127.0.0.1 as ::ffff:127.0.0.1.
            Self::Network(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Returns true if it came by a Unix socket.
    pub(crate) fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Returns the address without its port.
    pub(crate) fn ip(&self) -> String {
        match self {
            Self::Network(address) => address.ip().to_string(),
            Self::Unix(path) => path.to_string(),
        }
    }

    /// Returns the form in which MONITOR shows it.
    pub(crate) fn for_monitors(&self) -> String {
        match self {
            Self::Network(address) => address.to_string(),
            Self::Unix(path) => format!("unix:{path}"),
        }
    }
}

/// As CLIENT LIST shows it: a Unix socket has port 0, as in Redis.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{path}:0"),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Network(address)
    }
}
