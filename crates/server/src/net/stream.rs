//! A client's socket: plain, Unix or TLS.

use std::io::{self, Read, Write};

use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use rustls::pki_types::CertificateDer;

use super::byte_stream::{ByteStream, empties_socket};
use super::tls::stream::TlsStream;

/// A client's socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Returns its TCP socket, if it has one.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(stream) => Some(stream),
            #[cfg(unix)]
            Self::Unix(_) => None,
            Self::Tls(stream) => Some(stream.socket()),
        }
    }

    /// Returns the number that CLIENT LIST shows.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> i64 {
        use std::os::fd::AsRawFd as _;
        i64::from(match self {
            Self::Plain(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
            Self::Tls(stream) => stream.socket().as_raw_fd(),
        })
    }

    /// Returns -1: there are no numbers.
    #[cfg(not(unix))]
    pub(crate) fn descriptor(&self) -> i64 {
        -1
    }

    /// Returns what the poller watches.
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Plain(stream) => stream,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
            Self::Tls(stream) => stream.socket_mut(),
        }
    }
}

impl ByteStream for Stream {
    #[inline]
    fn is_drained(&self, filled: bool) -> bool {
        match self {
            Self::Tls(stream) => stream.is_drained(filled),
            _ => empties_socket(filled),
        }
    }

    #[inline]
    fn held_bytes(&self) -> usize {
        match self {
            Self::Tls(stream) => stream.held_bytes(),
            _ => 0,
        }
    }

    fn tls(&self) -> &'static str {
        match self {
            Self::Tls(stream) => stream.tls(),
            _ => "no",
        }
    }

    fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Tls(stream) => stream.certificate(),
            _ => None,
        }
    }

    fn say_goodbye(&mut self) {
        if let Self::Tls(stream) = self {
            stream.say_goodbye();
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, what: Interest) -> io::Result<()> {
        self.source().register(registry, token, what)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, what: Interest) -> io::Result<()> {
        self.source().reregister(registry, token, what)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.source().deregister(registry)
    }
}
