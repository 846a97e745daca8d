//! What a turn reads: fresh input in the loop's buffer, or more of a command that is not whole yet.

use std::io::{self, Read, Write};

use tidewheel_resp::Parser;

use super::{Halt, Turn, note};
use crate::connection::{Connection, Held, Link};
use crate::desk::{INPUT_CHUNK, Tray};

/// The most that one read adds to a command that has not arrived whole.
const HELD_CHUNK: usize = 1 << 20;

/// How many times what has arrived of a command may be reserved for the rest of it.
const RESERVE_FACTOR: usize = 256;

/// What an unauthenticated client may leave unfinished.
const UNAUTHENTICATED_INPUT: usize = 1 << 20;

impl Turn<'_> {
    /// Reads into the loop's buffer and runs what is whole. Returns the bytes read.
    pub(super) fn read_fresh<S: Read + Write>(
        &mut self,
        link: &mut Link<S>,
        tray: &mut Tray,
    ) -> io::Result<usize> {
        let Some(n) = read_once(link, tray)? else {
            return Ok(0);
        };
        self.note_read(link, n);
        let (parser, input) = tray.fresh();
        let (used, halt) = self.run(link, parser, input);
        if used < n && halt != Halt::Closing {
            let wanted = halt.wanted();
            let parser = if wanted > 0 {
                std::mem::take(parser)
            } else {
                Parser::new()
            };
            let held = Held {
                bytes: input[used..].to_vec(),
                most: 0,
                at: 0,
                parser,
                wanted,
            };
            link.held = Some(Box::new(held));
        }
        note(link, halt);
        Ok(n)
    }

    /// Bytes have arrived. Waiting for them, or copying them, may have taken long.
    fn note_read<S>(&mut self, link: &mut Link<S>, n: usize) {
        self.worker.refresh_time();
        self.worker.tally.reads += 1;
        self.worker.tally.input_bytes += n as u64;
        if n > 0 {
            link.conn.last_active = self.worker.time.tick;
        }
    }

    /// Reads more of a command that has not arrived whole. Returns the bytes read.
    pub(super) fn read_more<S: Read + Write>(
        &mut self,
        link: &mut Link<S>,
        tray: &mut Tray,
        mut held: Box<Held>,
    ) -> io::Result<usize> {
        let too_big = held.forget_run();
        let (room, too_small) = make_room(link, &mut held);
        for buffer in too_big.into_iter().chain(too_small) {
            self.server.reclaimer.drop_buffer(buffer);
        }
        let before = held.bytes.len();
        let result = (&mut link.stream)
            .take(room as u64)
            .read_to_end(&mut held.bytes);
        let n = held.bytes.len() - before;
        self.note_read(link, n);
        match result {
            Ok(n) => link.at_end(n < room),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => link.readable = false,
            Err(why) => return Err(why),
        }
        if held.bytes.len() > self.input_limit(link) {
            self.tally.input_limit_closes += 1;
            tracing::warn!(client = link.client.id, "closed: its command is too long");
            link.closing = true;
            return Ok(n);
        }
        if n >= held.wanted {
            self.run_held(link, tray, held);
        } else {
            held.wanted -= n;
            link.held = Some(held);
        }
        Ok(n)
    }

    /// What a client may leave unfinished.
    fn input_limit(&self, conn: &Connection) -> usize {
        match self.is_stranger(conn) {
            false => usize::try_from(self.settings.query_buffer_limit).unwrap_or(usize::MAX),
            true => UNAUTHENTICATED_INPUT,
        }
    }

    /// Runs what is whole of the input that waits. Returns the bytes run.
    pub(super) fn run_held<S: Read + Write>(
        &mut self,
        link: &mut Link<S>,
        tray: &mut Tray,
        mut held: Box<Held>,
    ) -> usize {
        let mut parser = std::mem::take(&mut held.parser);
        let (used, halt) = self.run(link, &mut parser, &held.bytes[held.at..]);
        held.parser = parser;
        held.at += used;
        if held.at < held.bytes.len() && halt != Halt::Closing {
            held.wanted = halt.wanted();
            link.held = Some(held);
        } else {
            let Held { bytes, parser, .. } = *held;
            self.server.reclaimer.drop_buffer(bytes);
            tray.keep(parser);
        }
        note(link, halt);
        used
    }
}

/// Makes room for the next read of a command that has not arrived whole. Returns how much to read, and a
/// buffer that has become too small.
fn make_room(conn: &Connection, held: &mut Held) -> (usize, Option<Vec<u8>>) {
    let room = held.wanted.clamp(INPUT_CHUNK, HELD_CHUNK);
    let len = held.bytes.len();
    if held.bytes.capacity() - len >= room {
        return (room, None);
    }
    // Address space for the whole of a long command saves copying it again and again while it
    // grows, but nobody gets more than a multiple of what has arrived: an announced length alone
    // reserves nothing.
    let ahead = match len < INPUT_CHUNK {
        true => 0,
        false => held.wanted.min(len.saturating_mul(RESERVE_FACTOR)),
    };
    let mut wider = Vec::new();
    if wider
        .try_reserve_exact(len + ahead.max(len).max(room))
        .is_err()
    {
        tracing::debug!(client = conn.client.id, ahead, "no address space ahead");
        held.bytes.reserve(room);
        return (room, None);
    }
    // A buffer that grows where it is may be moved with all that was reserved, which takes memory for it.
    wider.extend_from_slice(&held.bytes);
    held.most = len;
    (room, Some(std::mem::replace(&mut held.bytes, wider)))
}

/// Reads once. `None` when nothing has arrived; then, or at the end of the stream, the connection's
/// state says so.
fn read_once<S: Read>(link: &mut Link<S>, tray: &mut Tray) -> io::Result<Option<usize>> {
    loop {
        match tray.read(&mut link.stream) {
            Ok(0) => {
                link.at_end(true);
                return Ok(None);
            }
            Ok(n) => {
                // On Linux a short read has emptied the socket, and an edge will announce more. The end
                // of the stream has no edge of its own if it was announced with the data.
                if cfg!(target_os = "linux") && n < INPUT_CHUNK && !link.ending {
                    link.readable = false;
                }
                return Ok(Some(n));
            }
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                link.readable = false;
                return Ok(None);
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}
