//! A socket in memory: the bytes on their way in both directions, and the ways in which it ends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;

use crate::loops::loop_core::Readiness;
use crate::net::byte_stream::ByteStream;

/// Both directions of one connection.
#[derive(Debug)]
pub(super) struct Wire {
    to_server: VecDeque<u8>,
    to_client: Vec<u8>,
    /// Bytes that the server may write before its socket is full.
    room: usize,
    /// The most that one write takes.
    write_max: usize,
    /// The client sends no more.
    ended: bool,
    /// The client has sent RST.
    reset: bool,
    /// Reading fails when what has arrived is read.
    breaks_off: bool,
    /// Writing fails, whatever else works.
    unwritable: bool,
    /// Writing panics, as a mistake of ours might.
    panics: bool,
    /// The server has closed its side.
    closed: bool,
    /// The server has met a full socket and waits for room.
    full: bool,
    /// A byte was read or written since somebody asked.
    moved: bool,
    /// The changes that the poller has to report.
    news: Readiness,
}

/// The server's end of a wire.
#[derive(Debug, Clone)]
pub(super) struct Socket(pub(super) Rc<RefCell<Wire>>);

impl Wire {
    pub(super) fn new() -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            to_server: VecDeque::new(),
            to_client: Vec::new(),
            room: usize::MAX,
            write_max: usize::MAX,
            ended: false,
            reset: false,
            breaks_off: false,
            unwritable: false,
            panics: false,
            closed: false,
            full: false,
            moved: false,
            news: Readiness::default(),
        }))
    }

    /// The client's bytes arrive.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        assert!(!self.ended, "a client that has ended sends nothing");
        if !self.reset && !self.closed {
            self.to_server.extend(bytes);
            self.news.readable = true;
        }
    }

    /// The client closes its sending side.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.news.readable = true;
        self.news.read_closed = true;
    }

    /// The client is gone, and what is on its way with it.
    pub(super) fn reset(&mut self) {
        self.reset = true;
        self.to_server.clear();
        self.news.readable = true;
        self.news.broken = true;
    }

    /// The client is gone before all that it has sent is read.
    pub(super) fn break_off(&mut self) {
        self.breaks_off = true;
    }

    /// The client goes away in the moment in which the server answers: reading works, writing
    /// fails.
    pub(super) fn break_writes(&mut self) {
        self.unwritable = true;
    }

    /// The next write panics.
    pub(super) fn plant_a_panic(&mut self) {
        self.panics = true;
    }

    /// From here on the server's socket takes `room` bytes, at most `write_max` at a time.
    pub(super) fn narrow(&mut self, room: usize, write_max: usize) {
        (self.room, self.write_max) = (room, write_max);
        if room > 0 && self.full {
            self.full = false;
            self.news.writable = true;
        }
    }

    /// Takes the bytes that the client reads.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.to_client)
    }

    /// Bytes that the client has yet to read.
    pub(super) fn sent(&self) -> usize {
        self.to_client.len()
    }

    /// Returns true if the server has read or written anything since the last call.
    pub(super) fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.moved)
    }

    /// Returns true if the server has closed the connection.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.to_server.clear();
    }

    /// Reports each change once, as the poller does.
    pub(super) fn news(&mut self) -> Option<Readiness> {
        let any = self.has_news();
        let news = std::mem::take(&mut self.news);
        any.then_some(news)
    }

    pub(super) fn has_news(&self) -> bool {
        let news = self.news;
        news.readable || news.writable || news.read_closed || news.broken
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut wire = self.0.borrow_mut();
        if wire.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if wire.to_server.is_empty() && wire.breaks_off {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if wire.to_server.is_empty() && !wire.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // As on Linux, a read that is short has emptied the socket: a queue gives its two halves
        // apart.
        let first = wire.to_server.read(buffer)?;
        let second = wire.to_server.read(&mut buffer[first..])?;
        wire.moved |= first > 0;
        Ok(first + second)
    }
}

impl ByteStream for Socket {
    fn is_drained(&self, filled: bool) -> bool {
        !filled
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut wire = self.0.borrow_mut();
        assert!(!std::mem::take(&mut wire.panics), "a planted panic");
        if wire.reset || wire.unwritable {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let n = bytes.len().min(wire.room).min(wire.write_max);
        if n == 0 {
            wire.full = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        wire.room -= n;
        wire.moved = true;
        wire.to_client.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
