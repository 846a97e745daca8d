//! A socket behind TLS, as a stream of plain bytes.
//!
//! An idle connection holds no buffers, as a plain one: records are opened and sealed in memory of
//! the thread. A connection keeps only
//!
//! - a record that has not arrived whole,
//! - plain bytes that the reader had no room for,
//! - sealed bytes that the socket did not take.
//!
//! # Two rules
//!
//! **Plain bytes count as written when their sealed ones have left.** A `write` whose records the
//! socket does not take whole says that it would block. Its caller keeps the plain bytes, and
//! offers them again when the socket takes more. They are not sealed twice: the stream knows how
//! many it has sealed, and says that they are written as soon as the records have left. So an
//! output that is empty has left, whatever the stream is.
//!
//! **A short read says nothing.** A record may hold more than the reader took, or less than it. So
//! [`is_drained`](TlsStream::is_drained) looks at the socket's last read, and at what is kept.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
    WriteTraffic,
};
use rustls::{ProtocolVersion, ServerConfig};

use crate::net::byte_stream::empties_socket;

/// The most that one read takes from the socket.
const READ_MAX: usize = 64 << 10;

/// The longest part of a message that waits for its rest. A record has 18 KiB at most; a client's
/// certificates may take several.
const PART_MAX: usize = 32 << 10;

/// The most plain bytes that are sealed at once.
const SEAL_MAX: usize = 64 << 10;

/// Sealing adds to each record of 16 KiB.
const SEALED_ROOM: usize = SEAL_MAX + (1 << 10);

/// The first byte of a handshake.
const HANDSHAKE: u8 = 0x16;

/// A thread's memory for records.
struct Room {
    /// Records that arrived.
    opened: Box<[u8]>,
    /// Records to send.
    sealed: Vec<u8>,
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::new(Room {
        opened: vec![0; PART_MAX + READ_MAX].into_boxed_slice(),
        sealed: vec![0; SEALED_ROOM],
    });
}

/// A socket behind TLS.
pub(crate) struct TlsStream<S> {
    socket: S,
    session: UnbufferedServerConnection,
    /// The beginning of a record.
    part: Vec<u8>,
    /// Plain bytes that were not read yet, from `plain_at` on.
    plain: Vec<u8>,
    plain_at: usize,
    /// Sealed bytes that have not left, from `sealed_at` on.
    sealed: Vec<u8>,
    sealed_at: usize,
    /// The plain bytes among them, of which nobody was told that they are written.
    promised: usize,
    /// The socket's last read has emptied it.
    emptied: bool,
    /// A read has met the end of the input.
    ended: bool,
    /// Nothing has arrived yet.
    fresh: bool,
    /// The session has met an error. What it knows of its input is no longer true, so it is not
    /// asked again.
    failed: bool,
}

impl<S: std::fmt::Debug> std::fmt::Debug for TlsStream<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("TlsStream");
        shown.field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// A client spoke without TLS.
#[derive(Debug)]
pub(crate) struct NotTls;

impl std::fmt::Display for NotTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it does not speak TLS")
    }
}

impl std::error::Error for NotTls {}

/// What is sealed as soon as the session can.
enum Seal<'a> {
    Nothing,
    /// These bytes.
    Data(&'a [u8]),
    /// Its last word.
    Goodbye,
}

/// Where plain bytes go: into the reader's buffer, and what it has no room for is kept.
struct Sink<'a> {
    buffer: &'a mut [u8],
    filled: usize,
    rest: &'a mut Vec<u8>,
}

impl Sink<'_> {
    fn take(&mut self, bytes: &[u8]) {
        let room = self.buffer.len() - self.filled;
        let (now, later) = bytes.split_at(bytes.len().min(room));
        self.buffer[self.filled..self.filled + now.len()].copy_from_slice(now);
        self.filled += now.len();
        self.rest.extend_from_slice(later);
    }
}

impl<S: Read + Write> TlsStream<S> {
    /// Makes a stream whose handshake is to come.
    pub(crate) fn new(socket: S, terms: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self {
            socket,
            session: UnbufferedServerConnection::new(terms)?,
            part: Vec::new(),
            plain: Vec::new(),
            plain_at: 0,
            sealed: Vec::new(),
            sealed_at: 0,
            promised: 0,
            emptied: false,
            ended: false,
            fresh: true,
            failed: false,
        })
    }

    /// Goes on with the handshake as far as the peer has. True when it is over, and all that it
    /// needed has left.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        loop {
            match self.send_sealed() {
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(why) => return Err(why),
                Ok(()) if !self.session.is_handshaking() => return Ok(true),
                Ok(()) => {}
            }
            match self.fill(&mut []) {
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(why) => return Err(why),
                Ok(_) if self.ended && self.session.is_handshaking() => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(_) => {}
            }
        }
    }

    /// True if the peer's hello was whole, and was answered.
    pub(crate) fn has_answered(&self) -> bool {
        self.session.protocol_version().is_some()
    }

    /// Tells a client that speaks without TLS what is wrong, in its own protocol.
    pub(crate) fn answer_plainly(&mut self, text: &str) {
        if let Err(why) = self.socket.write(text.as_bytes()) {
            tracing::debug!(%why, "a client without TLS had gone already");
        }
    }

    /// Tells the peer that nothing more will come, if the socket takes it.
    pub(crate) fn say_goodbye(&mut self) {
        if self.failed || self.session.is_handshaking() || self.sealed_at < self.sealed.len() {
            return;
        }
        let said = ROOM.with_borrow_mut(|room| {
            let len = self.seal(room, Seal::Goodbye)?;
            self.socket.write(&room.sealed[..len])
        });
        if let Err(why) = said {
            tracing::debug!(%why, "a client was gone before the connection was closed");
        }
    }

    /// Returns true if nothing is left to read until the socket has more. The reader's buffer says
    /// nothing about that.
    pub(crate) fn is_drained(&self, _filled: bool) -> bool {
        self.emptied && self.plain.is_empty() && !self.ended
    }

    /// Reads the socket once, and opens the records that are whole. Returns the plain bytes that
    /// are in the buffer.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        ROOM.with_borrow_mut(|room| {
            let kept = self.part.len();
            let n = self.socket.read(&mut room.opened[kept..kept + READ_MAX])?;
            self.emptied = empties_socket(n == READ_MAX);
            if n == 0 {
                self.ended = true;
                return Ok(0);
            }
            room.opened[..kept].copy_from_slice(&self.part);
            if std::mem::take(&mut self.fresh) && room.opened[0] != HANDSHAKE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, NotTls));
            }
            let bytes = &mut room.opened[..kept + n];
            let mut rest = std::mem::take(&mut self.plain);
            let mut sink = Sink {
                buffer,
                filled: 0,
                rest: &mut rest,
            };
            let mut no_room = Vec::new();
            let opened = self.process(bytes, &mut sink, Seal::Nothing, &mut no_room);
            let filled = sink.filled;
            self.plain = rest;
            let used = match opened {
                Ok((used, _)) => used,
                Err(why) => {
                    self.send_alert();
                    return Err(why);
                }
            };
            let part = &bytes[used..];
            if part.len() > PART_MAX {
                self.failed = true;
                let why = "a message is too long";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            // Memory of its own only for what is there.
            self.part = if self.ended {
                Vec::new()
            } else {
                part.to_vec()
            };
            Ok(filled)
        })
    }

    /// Seals bytes into the room. Returns their length.
    fn seal(&mut self, room: &mut Room, what: Seal<'_>) -> io::Result<usize> {
        let mut part = std::mem::take(&mut self.part);
        let mut plain = std::mem::take(&mut self.plain);
        let mut sink = Sink {
            buffer: &mut [],
            filled: 0,
            rest: &mut plain,
        };
        // What the session knows of a part is where it is: it must see it.
        let done = self.process(&mut part, &mut sink, what, &mut room.sealed);
        self.plain = plain;
        if let Ok((used, _)) = &done {
            part.drain(..*used);
        }
        self.part = part;
        done.map(|(_, sealed)| sealed)
    }

    /// Lets the session go on until it needs more input. Returns how much of the input is done
    /// with, and the length of what was sealed.
    fn process(
        &mut self,
        input: &mut [u8],
        sink: &mut Sink<'_>,
        seal: Seal<'_>,
        room: &mut Vec<u8>,
    ) -> io::Result<(usize, usize)> {
        if self.failed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let done = self.go_on(input, sink, seal, room);
        self.failed = done.is_err();
        done
    }

    fn go_on(
        &mut self,
        input: &mut [u8],
        sink: &mut Sink<'_>,
        mut seal: Seal<'_>,
        room: &mut Vec<u8>,
    ) -> io::Result<(usize, usize)> {
        let (mut at, mut sealed) = (0, 0);
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(&mut input[at..]);
            let mut goes_on = true;
            match state.map_err(failed)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(failed)?;
                        discard += record.discard;
                        sink.take(record.payload);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    encode(&mut self.sealed, |to| data.encode(to))?;
                }
                // It is in the buffer of sealed bytes, which leaves before anything else.
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.ended = true,
                ConnectionState::WriteTraffic(traffic) => {
                    sealed = seal_with(traffic, std::mem::replace(&mut seal, Seal::Nothing), room)?;
                    goes_on = false;
                }
                ConnectionState::BlockedHandshake | ConnectionState::Closed => goes_on = false,
                // There is no early data, since no ticket allows it.
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
            at += discard;
            if !goes_on {
                return Ok((at, sealed));
            }
        }
    }

    /// Sends what the session wants to say about an error, as far as the socket takes it.
    #[cold]
    fn send_alert(&mut self) {
        while self.session.wants_write() {
            let UnbufferedStatus { state, .. } = self.session.process_tls_records(&mut []);
            let Ok(ConnectionState::EncodeTlsData(mut data)) = state else {
                break;
            };
            if encode(&mut self.sealed, |to| data.encode(to)).is_err() {
                break;
            }
        }
        if let Err(why) = self.send_sealed() {
            tracing::debug!(%why, "a client was gone before it was told of an error");
        }
    }

    /// Sends sealed bytes that have not left.
    fn send_sealed(&mut self) -> io::Result<()> {
        while self.sealed_at < self.sealed.len() {
            match self.socket.write(&self.sealed[self.sealed_at..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.sealed_at += n,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        self.sealed_at = 0;
        self.sealed = Vec::new();
        Ok(())
    }
}

impl<S> TlsStream<S> {
    /// Returns the socket.
    pub(crate) fn socket(&self) -> &S {
        &self.socket
    }

    /// Returns the socket, for the poller.
    pub(crate) fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Returns the memory of its buffers, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.part.capacity() + self.plain.capacity() + self.sealed.capacity()
    }

    /// Returns the client's certificate, which was checked.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.peer_certificates()?.first()
    }

    /// Returns the version of TLS that was agreed on.
    pub(crate) fn tls(&self) -> &'static str {
        match self.session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "?",
        }
    }
}

/// Seals what is to be sealed. Returns its length.
fn seal_with(
    mut traffic: WriteTraffic<'_, ServerConnectionData>,
    what: Seal<'_>,
    room: &mut Vec<u8>,
) -> io::Result<usize> {
    let mut seal = |room: &mut [u8]| match what {
        Seal::Nothing => Ok(0),
        Seal::Data(bytes) => traffic.encrypt(bytes, room),
        Seal::Goodbye => traffic.queue_close_notify(room),
    };
    match seal(room) {
        Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size })) => {
            room.resize(required_size, 0);
            seal(room).map_err(failed)
        }
        sealed => sealed.map_err(failed),
    }
}

/// Appends a message of the session.
fn encode(
    sealed: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> io::Result<()> {
    let start = sealed.len();
    if let Err(EncodeError::InsufficientSize(needs)) = encode(&mut []) {
        sealed.resize(start + needs.required_size, 0);
        encode(&mut sealed[start..]).map_err(failed)?;
    }
    Ok(())
}

fn failed(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl<S: Read + Write> Read for TlsStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.plain.is_empty() {
                let rest = &self.plain[self.plain_at..];
                let n = rest.len().min(buffer.len());
                buffer[..n].copy_from_slice(&rest[..n]);
                self.plain_at += n;
                if self.plain_at == self.plain.len() {
                    self.plain_at = 0;
                    self.plain = Vec::new();
                }
                return Ok(n);
            }
            if self.ended || buffer.is_empty() {
                return Ok(0);
            }
            let n = self.fill(buffer)?;
            if self.sealed_at < self.sealed.len() {
                // An answer of the session. If the socket is full, it leaves with the next bytes.
                match self.send_sealed() {
                    Err(why) if why.kind() != io::ErrorKind::WouldBlock => return Err(why),
                    _ => {}
                }
            }
            if n > 0 {
                return Ok(n);
            }
        }
    }
}

impl<S: Read + Write> Write for TlsStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.sealed_at < self.sealed.len() {
            self.send_sealed()?;
        }
        if self.promised > 0 {
            let n = self.promised.min(bytes.len());
            self.promised -= n;
            return Ok(n);
        }
        let bytes = &bytes[..bytes.len().min(SEAL_MAX)];
        ROOM.with_borrow_mut(|room| {
            let len = self.seal(room, Seal::Data(bytes))?;
            if len == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let mut sent = 0;
            while self.sealed.is_empty() && sent < len {
                match self.socket.write(&room.sealed[sent..len]) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(n) => sent += n,
                    Err(why) if why.kind() == io::ErrorKind::WouldBlock => break,
                    Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                    Err(why) => return Err(why),
                }
            }
            if sent < len {
                // Behind an answer of the session, if there is one.
                self.sealed.extend_from_slice(&room.sealed[sent..len]);
                self.promised = bytes.len();
                self.send_sealed()?;
                self.promised = 0;
            }
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{
        ClientConfig, ClientConnection, ConnectionTrafficSecrets, ContentType, RootCertStore,
    };

    use super::*;
    use crate::net::output::Output;

    /// A socket in memory.
    #[derive(Debug, Default)]
    struct Wire {
        to_server: VecDeque<u8>,
        to_client: Vec<u8>,
        /// Bytes that it takes before it is full.
        room: usize,
        ended: bool,
    }

    impl Read for Wire {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = buffer.len().min(self.to_server.len());
            if n == 0 && !self.ended {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            for (to, byte) in buffer.iter_mut().zip(self.to_server.drain(..n)) {
                *to = byte;
            }
            Ok(n)
        }
    }

    impl Write for Wire {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            if n == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= n;
            self.to_client.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Both ends of a connection whose handshake is over.
    struct Ends {
        server: TlsStream<Wire>,
        client: ClientConnection,
        heard: Vec<u8>,
    }

    impl Ends {
        fn new(version: &'static rustls::SupportedProtocolVersion) -> Self {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
            let made = made.expect("a certificate");
            let certificate: CertificateDer<'static> = made.cert.der().clone();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let terms = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_no_client_auth();
            let key = made.signing_key.serialize_der();
            let key = key.try_into().expect("a key");
            let terms = terms.with_single_cert(vec![certificate.clone()], key);
            let mut roots = RootCertStore::empty();
            roots.add(certificate).expect("an authority");
            let mut config = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .expect("a version")
                .with_root_certificates(roots)
                .with_no_client_auth();
            config.enable_secret_extraction = true;
            let name = ServerName::try_from("localhost").expect("a name");
            let wire = Wire {
                room: usize::MAX,
                ..Wire::default()
            };
            let mut ends = Self {
                server: TlsStream::new(wire, Arc::new(terms.expect("terms"))).expect("a session"),
                client: ClientConnection::new(Arc::new(config), name).expect("a session"),
                heard: Vec::new(),
            };
            while !ends.server.handshake().expect("a handshake") || ends.client.is_handshaking() {
                ends.carry();
            }
            ends.carry();
            ends
        }

        /// Carries what both have said.
        fn carry(&mut self) {
            let wire = &mut self.server.socket;
            let said = std::mem::take(&mut wire.to_client);
            let mut said = said.as_slice();
            while !said.is_empty() {
                self.client.read_tls(&mut said).expect("memory");
                self.client.process_new_packets().expect("our own records");
                match self.client.reader().read_to_end(&mut self.heard) {
                    Err(why) if why.kind() == io::ErrorKind::WouldBlock => {}
                    end => drop(end.expect("no error")),
                }
            }
            while self.client.wants_write() {
                self.client.write_tls(&mut wire.to_server).expect("memory");
            }
        }

        fn client_says(&mut self, bytes: &[u8]) {
            for part in bytes.chunks(16 << 10) {
                self.client.writer().write_all(part).expect("memory");
                self.carry();
            }
        }

        fn client_hears(&mut self) -> Vec<u8> {
            self.carry();
            std::mem::take(&mut self.heard)
        }
    }

    const VERSIONS: [&rustls::SupportedProtocolVersion; 2] =
        [&rustls::version::TLS12, &rustls::version::TLS13];

    /// The first trap: a short read had "emptied the socket", and the rest was never read.
    #[test]
    fn a_short_read_does_not_mean_that_nothing_is_left() {
        for version in VERSIONS {
            let mut ends = Ends::new(version);
            let sent: Vec<u8> = (0..300_000).map(|i| (i % 251) as u8).collect();
            ends.client_says(&sent);
            let (mut read, mut buffer) = (Vec::new(), vec![0; READ_MAX]);
            loop {
                let n = ends.server.read(&mut buffer).expect("it is there");
                read.extend_from_slice(&buffer[..n]);
                if ends.server.is_drained(n == buffer.len()) {
                    break;
                }
            }
            assert_eq!(read.len(), sent.len());
            assert!(read == sent);
            // Less than a record, by a reader with little room.
            ends.client_says(b"0123456789");
            let n = ends.server.read(&mut buffer[..4]).expect("it is there");
            assert_eq!((n, ends.server.is_drained(false)), (4, false));
            let n = ends.server.read(&mut buffer).expect("it is there");
            assert_eq!((n, ends.server.is_drained(false)), (6, true));
        }
    }

    /// The second trap: the output was empty while sealed bytes waited, and nobody sent them.
    #[test]
    fn an_output_is_empty_only_when_its_records_have_left() {
        for version in VERSIONS {
            let mut ends = Ends::new(version);
            let reply = vec![b'x'; 100_000];
            let mut output = Output::default();
            output.append(&reply);
            let (mut heard, mut rounds) = (Vec::new(), 0);
            while !output.is_empty() {
                ends.server.socket.room = 999;
                let (_, full, _) = output.send(&mut ends.server, usize::MAX).expect("a socket");
                let waits = ends.server.sealed.len() - ends.server.sealed_at;
                assert_eq!(full, waits > 0);
                assert_eq!(output.is_empty(), !full);
                heard.extend(ends.client_hears());
                rounds += 1;
            }
            assert_eq!(heard.len(), reply.len());
            assert!(heard == reply && rounds > 100);
            assert_eq!(ends.server.held_bytes(), 0);
        }
    }

    /// What was refused comes again in other portions, as when the log releases more of it.
    #[test]
    fn bytes_that_are_offered_again_are_sealed_once() {
        let mut ends = Ends::new(&rustls::version::TLS13);
        ends.server.socket.room = 10;
        let blocked = ends.server.write(b"0123456789").expect_err("no room");
        assert_eq!(blocked.kind(), io::ErrorKind::WouldBlock);
        ends.server.socket.room = usize::MAX;
        assert_eq!(ends.server.write(b"0123").expect("room"), 4);
        assert_eq!(ends.server.write(b"456789abc").expect("room"), 6);
        assert_eq!(ends.server.write(b"abc").expect("room"), 3);
        assert_eq!(ends.client_hears(), b"0123456789abc");
    }

    #[test]
    fn an_idle_connection_holds_no_buffers() {
        for version in VERSIONS {
            let mut ends = Ends::new(version);
            let mut buffer = vec![0; READ_MAX];
            for _ in 0..3 {
                ends.client_says(&vec![7; 100_000]);
                while !ends.server.is_drained(false) {
                    let n = ends.server.read(&mut buffer).expect("it is there");
                    assert!(n > 0);
                }
                ends.server.write_all(&vec![8; 100_000]).expect("room");
                assert_eq!(ends.client_hears().len(), 100_000);
            }
            assert_eq!(ends.server.held_bytes(), 0);
        }
    }

    #[test]
    fn after_the_peers_goodbye_the_end_is_read_and_replies_still_leave() {
        for version in VERSIONS {
            let mut ends = Ends::new(version);
            ends.client_says(b"PING\r\n");
            ends.client.send_close_notify();
            ends.carry();
            let mut buffer = [0; 100];
            assert_eq!(ends.server.read(&mut buffer).expect("it is there"), 6);
            assert!(!ends.server.is_drained(false), "the end is there, too");
            assert_eq!(ends.server.read(&mut buffer).expect("the end"), 0);
            ends.server.write_all(b"+PONG\r\n").expect("room");
            assert_eq!(ends.client_hears(), b"+PONG\r\n");
            ends.server.say_goodbye();
            ends.carry();
            let state = ends.client.process_new_packets().expect("a goodbye");
            assert!(state.peer_has_closed());
        }
    }

    #[test]
    fn a_record_in_parts_is_opened_when_it_is_whole() {
        let mut ends = Ends::new(&rustls::version::TLS13);
        ends.client_says(&[5; 5_000]);
        let whole: Vec<u8> = ends.server.socket.to_server.drain(..).collect();
        let (mut read, mut buffer) = (0, vec![0; READ_MAX]);
        for part in whole.chunks(700) {
            ends.server.socket.to_server.extend(part);
            match ends.server.read(&mut buffer) {
                Ok(n) => read += n,
                Err(why) => assert_eq!(why.kind(), io::ErrorKind::WouldBlock),
            }
            // A reply meanwhile does not disturb it.
            ends.server.write_all(b"+OK\r\n").expect("room");
        }
        assert_eq!((read, ends.server.held_bytes()), (5_000, 0));
        assert!(ends.client_hears().starts_with(b"+OK\r\n+OK\r\n"));
    }

    #[test]
    fn a_record_that_was_tampered_with_is_an_error() {
        let mut ends = Ends::new(&rustls::version::TLS13);
        ends.client_says(b"PING\r\n");
        if let Some(byte) = ends.server.socket.to_server.back_mut() {
            *byte ^= 1;
        }
        let refused = ends.server.read(&mut [0; 100]).expect_err("it is wrong");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        let said = ends.server.socket.to_client.len();
        assert!(said > 0, "an alert");
        // The session is not asked again.
        assert!(ends.server.write(b"+OK\r\n").is_err());
        assert!(ends.server.read(&mut [0; 100]).is_err());
        ends.server.say_goodbye();
        assert_eq!(ends.server.socket.to_client.len(), said);
    }

    #[test]
    fn keys_may_be_renewed_at_any_time() {
        let mut ends = Ends::new(&rustls::version::TLS13);
        let mut buffer = vec![0; 100];
        for round in 0..100 {
            ends.client.refresh_traffic_keys().expect("TLS 1.3");
            ends.client_says(b"PING\r\n");
            assert_eq!(ends.server.read(&mut buffer).expect("it is there"), 6);
            ends.server.write_all(b"+PONG\r\n").expect("room");
            assert_eq!(ends.client_hears(), b"+PONG\r\n", "{round}");
        }
    }

    /// A peer that has the keys, and keeps to no rule of what is in a record.
    struct Hostile {
        sealer: Box<dyn MessageEncrypter>,
        number: u64,
    }

    impl Hostile {
        /// Takes the client's place.
        fn new(version: &'static rustls::SupportedProtocolVersion) -> (Self, TlsStream<Wire>) {
            let Ends { server, client, .. } = Ends::new(version);
            let suite = client.negotiated_cipher_suite().expect("one");
            let secrets = client.dangerous_extract_secrets().expect("allowed");
            let (number, secrets) = secrets.tx;
            let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else {
                panic!("another suite")
            };
            let aead = suite.tls13().expect("TLS 1.3").aead_alg;
            let sealer = aead.encrypter(key, iv);
            (Self { sealer, number }, server)
        }

        fn says(&mut self, server: &mut TlsStream<Wire>, typ: ContentType, bytes: &[u8]) {
            let message = OutboundPlainMessage {
                typ,
                version: ProtocolVersion::TLSv1_2,
                payload: OutboundChunks::Single(bytes),
            };
            let record = self.sealer.encrypt(message, self.number).expect("a record");
            self.number += 1;
            server.socket.to_server.extend(record.encode());
        }
    }

    /// The session knows where in its input the parts of a message are. It must find them there,
    /// also when something is sealed meanwhile, and after an error.
    #[test]
    fn parts_of_messages_in_any_order_are_no_panic() {
        let (handshake, data) = (ContentType::Handshake, ContentType::ApplicationData);
        let renewal: &[u8] = &[24, 0, 0, 1, 0];
        let unknown: &[u8] = &[24, 0, 0, 1, 7, 24, 0, 0, 1, 0, 24, 0];
        for (records, serves) in [
            (
                vec![(handshake, &renewal[..3]), (handshake, &renewal[3..])],
                true,
            ),
            (vec![(handshake, &renewal[..3]), (data, b"PING")], false),
            (vec![(handshake, unknown)], false),
            (vec![(handshake, &renewal[..2])], true),
            (vec![(handshake, &[24, 255, 255, 255, 0])], false),
            (vec![(data, b""), (ContentType::Alert, &[1, 0])], true),
            (vec![(ContentType::Alert, &[2, 40])], false),
            (vec![(data, b""); 40], false),
            (vec![(handshake, renewal); 40], false),
        ] {
            let (mut peer, mut server) = Hostile::new(&rustls::version::TLS13);
            let mut went_wrong = false;
            for (typ, bytes) in &records {
                peer.says(&mut server, *typ, bytes);
                went_wrong |= matches!(
                    server.read(&mut [0; 100]),
                    Err(why) if why.kind() != io::ErrorKind::WouldBlock
                );
                went_wrong |= server.write(b"+OK\r\n").is_err();
            }
            assert_eq!(!went_wrong, serves, "{records:?}");
            server.say_goodbye();
        }
    }

    #[test]
    fn records_of_any_content_are_no_panic() {
        let mut state = 7_u64;
        let mut dice = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % most
        };
        for _ in 0..200 {
            let (mut peer, mut server) = Hostile::new(&rustls::version::TLS13);
            for _ in 0..8 {
                let typ = ContentType::from(20 + dice(6) as u8);
                let bytes: Vec<u8> = (0..dice(12))
                    .map(|_| [0, 1, 2, 24][dice(4) as usize])
                    .collect();
                peer.says(&mut server, typ, &bytes);
                if dice(2) == 0 {
                    // Or it stays there, and several arrive together.
                    drop(server.read(&mut [0; 100]));
                }
                if dice(2) == 0 {
                    drop(server.write(b"+OK\r\n"));
                }
            }
            server.say_goodbye();
        }
    }
}
