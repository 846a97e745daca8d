//! A connection to a server: a question, and its reply.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use tidewheel_resp::{Protocol, Reply, Writer};
use tidewheel_time::monotonic_nanos;

use super::questions::refusal;
use crate::config::{TopCall, TopTls};
use crate::net::tls::caller;

/// The longest time until there is a connection, and until a reply is whole.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest reply, with the messages before it that nobody asked for.
const REPLY_MAX: usize = 16 << 20;

/// Bytes of one read. A reply is read again from its start after each, so they are many.
const READ: usize = 1 << 20;

/// Why there is no connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoEntry {
    /// Another try may help.
    Lost(String),
    /// The server has refused this user.
    Denied(String),
}

impl From<String> for NoEntry {
    fn from(why: String) -> Self {
        Self::Lost(why)
    }
}

pub(super) trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A connection.
pub(super) struct Asker {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    part: Box<[u8]>,
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").finish_non_exhaustive()
    }
}

impl Asker {
    /// Connects, and says who asks.
    pub(super) fn connect(call: &TopCall, password: Option<&str>) -> Result<Self, NoEntry> {
        let mut asker = Self::over(stream(call)?);
        let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
        let user = call.user.as_deref().unwrap_or("default");
        if let Some(password) = password {
            hello.extend([&b"AUTH"[..], user.as_bytes(), password.as_bytes()]);
        }
        hello.extend([&b"SETNAME"[..], b"tidewheel-top"]);
        let db = call.db.to_string();
        let select: [&[u8]; 2] = [b"SELECT", db.as_bytes()];
        let all = [&hello[..], &select];
        // Database 0 is there already, and a user need not have the right to choose another.
        for words in &all[..if call.db == 0 { 1 } else { 2 }] {
            if let Reply::Error(why) = asker.ask(words)? {
                return Err(NoEntry::Denied(refusal(&why)));
            }
        }
        Ok(asker)
    }

    pub(super) fn over(stream: Box<dyn Stream>) -> Self {
        Self {
            stream,
            input: Vec::new(),
            part: vec![0; READ].into_boxed_slice(),
        }
    }

    /// Asks. After an error the connection is of no use.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, String> {
        let mut out = Writer::new(Protocol::Resp2);
        out.array(words.len());
        words.iter().for_each(|word| out.bulk(word));
        let sent = self.stream.write_all(out.as_bytes());
        sent.and_then(|()| self.stream.flush()).map_err(said)?;
        let until = monotonic_nanos() + PATIENCE.as_nanos() as u64;
        let mut passed = 0;
        while passed <= REPLY_MAX {
            match self.read(until)? {
                (Reply::Push(_), used) => passed += used,
                (reply, _) => return Ok(reply),
            }
        }
        Err(too_long())
    }

    /// Reads a reply, whose length and time are limited, and says how many bytes it took.
    fn read(&mut self, until: u64) -> Result<(Reply, usize), String> {
        loop {
            if monotonic_nanos() > until {
                return Err(said(io::ErrorKind::TimedOut.into()));
            }
            let read = Reply::read(&self.input).map_err(|why| format!("no RESP: {why}"))?;
            if let Some((reply, used)) = read {
                self.input.drain(..used);
                return Ok((reply, used));
            }
            if self.input.len() > REPLY_MAX {
                return Err(too_long());
            }
            match self.stream.read(&mut self.part).map_err(said)? {
                0 => return Err("the server has closed the connection".to_owned()),
                len => self.input.extend_from_slice(&self.part[..len]),
            }
        }
    }
}

fn too_long() -> String {
    format!("a reply is longer than {} MiB", REPLY_MAX >> 20)
}

/// An error in words.
fn said(why: io::Error) -> String {
    match why.kind() {
        // What a socket says after its time.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!("nothing came for {} s", PATIENCE.as_secs())
        }
        io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
        io::ErrorKind::UnexpectedEof => {
            "the server has closed the connection without TLS's goodbye: is this its port for TLS?"
                .to_owned()
        }
        _ => super::text::plain(&why.to_string()),
    }
}

fn stream(call: &TopCall) -> Result<Box<dyn Stream>, String> {
    if let Some(path) = &call.socket {
        return unix(path);
    }
    let addresses = (call.host.as_str(), call.port).to_socket_addrs();
    let addresses = addresses.map_err(|why| format!("{}: {why}", call.host))?;
    let mut last = Err(format!("{} has no address", call.host));
    for address in addresses {
        last = TcpStream::connect_timeout(&address, PATIENCE).map_err(said);
        if last.is_ok() {
            break;
        }
    }
    let socket = last?;
    let limited = socket
        .set_nodelay(true)
        .and_then(|()| socket.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| socket.set_write_timeout(Some(PATIENCE)));
    limited.map_err(said)?;
    match &call.tls {
        None => Ok(Box::new(socket)),
        Some(tls) => secured(socket, &call.host, tls),
    }
}

fn secured(socket: TcpStream, host: &str, tls: &TopTls) -> Result<Box<dyn Stream>, String> {
    let own = tls.own.as_ref().map(|(chain, key)| (&chain[..], &key[..]));
    let terms = caller::terms(tls.authorities.as_deref(), own);
    let terms = terms.map_err(|why| format!("{why:#}"))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|why| format!("{host}: {why}"))?;
    let session = ClientConnection::new(Arc::new(terms), name);
    let session = session.map_err(|why| format!("TLS: {why}"))?;
    Ok(Box::new(StreamOwned::new(session, socket)))
}

#[cfg(unix)]
fn unix(path: &std::path::Path) -> Result<Box<dyn Stream>, String> {
    use socket2::{Domain, SockAddr, Socket, Type};

    let connected = Socket::new(Domain::UNIX, Type::STREAM, None).and_then(|socket| {
        socket.set_read_timeout(Some(PATIENCE))?;
        // The system limits with this how long a connection waits for its turn, too.
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.connect(&SockAddr::unix(path)?)?;
        Ok(socket)
    });
    Ok(Box::new(connected.map_err(said)?))
}

#[cfg(not(unix))]
fn unix(_: &std::path::Path) -> Result<Box<dyn Stream>, String> {
    Err("there are no Unix sockets here".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says this, whatever it is asked.
    struct Canned<R>(R);

    impl<R: Read> Read for Canned<R> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }

    impl<R> Write for Canned<R> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn asked(said: impl Read + Send + 'static) -> Result<Reply, String> {
        Asker::over(Box::new(Canned(said))).ask(&[b"PING"])
    }

    #[test]
    fn a_reply_is_found_behind_messages_that_nobody_asked_for() {
        let said: &[u8] = b">1\r\n+hint\r\n+PONG\r\n";
        assert_eq!(asked(said), Ok(Reply::Simple("PONG".to_owned())));
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for (said, expected) in [
            (
                &b"HTTP/1.1 400 Bad Request\r\n"[..],
                "no RESP: unknown reply type",
            ),
            (b"$-2\r\n", "no RESP: invalid number"),
            (b"$3\r\nabcd\r\n", "no RESP: missing line end"),
            (b"*1\r\n$3\r\nab", "the server has closed"),
            (b"", "the server has closed"),
        ] {
            let why = asked(said).expect_err("no reply");
            assert!(why.starts_with(expected), "{why}");
        }
        let deep = asked(io::Cursor::new(b"*1\r\n".repeat(100))).expect_err("too deep");
        assert_eq!(deep, "no RESP: replies nest too deeply");
    }

    /// The time began anew with each of them.
    #[test]
    fn messages_without_end_are_an_error() {
        let part = [&b">1\r\n$1048576\r\n"[..], &[b'x'; 1 << 20], b"\r\n"].concat();
        let all = (0..20).fold(Box::new(io::empty()) as Box<dyn Read + Send>, |all, _| {
            Box::new(all.chain(io::Cursor::new(part.clone())))
        });
        let said = all.chain(io::Cursor::new(b"+PONG\r\n"));
        let why = asked(said).expect_err("too much");
        assert_eq!(why, "a reply is longer than 16 MiB");
    }

    #[test]
    fn a_reply_without_end_costs_bounded_memory() {
        for start in ["$4294967295\r\n", "+", "%4294967295\r\n+"] {
            let said = io::Cursor::new(start).chain(io::repeat(b'x'));
            let why = asked(said).expect_err("too long");
            assert_eq!(why, "a reply is longer than 16 MiB");
        }
    }
}
