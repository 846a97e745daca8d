//! Reads input: fresh input into the loop's buffer, or more of a command that is not whole yet.

use std::io::{self, Read};

use tidewheel_resp::Parser;

use super::buffers::{INPUT_CHUNK, Input};
use super::run::Halt;
use crate::clients::connection::{Connection, Link, PendingInput};
use crate::commands::turn::Turn;
use crate::net::byte_stream::ByteStream;

/// The most that one read adds to a command that has not arrived whole.
const PENDING_CHUNK: usize = 1 << 20;

/// Memory that may be reserved for the rest of a command, as a multiple of what has arrived.
const RESERVE_FACTOR: usize = 256;

/// The unfinished input that an unauthenticated client may have, in bytes.
const UNAUTHENTICATED_INPUT: usize = 1 << 20;

impl Turn<'_> {
    /// Reads into the loop's buffer and runs what is whole. Returns the bytes read.
    pub(super) fn read_fresh<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        input: &mut Input,
    ) -> io::Result<usize> {
        let Some(n) = read_once(link, input)? else {
            return Ok(0);
        };
        self.note_read(link, n);
        let (mut cutter, bytes) = input.fresh();
        let (used, halt) = self.run(link, &mut cutter, bytes);
        if used < n && halt != Halt::Closing {
            let wanted = halt.wanted();
            let parser = if wanted > 0 || halt == Halt::Begun {
                std::mem::take(cutter.parser)
            } else {
                Parser::new()
            };
            let pending = PendingInput {
                bytes: bytes[used..].to_vec(),
                most: 0,
                at: 0,
                parser,
                wanted,
            };
            link.conn.pending = Some(Box::new(pending));
        }
        halt.note(&mut link.conn);
        Ok(n)
    }

    /// Bytes have arrived. Waiting for them, or copying them, may have taken long.
    fn note_read<S>(&mut self, link: &mut Link<S>, n: usize) {
        self.state.refresh_time();
        self.state.tally.reads += 1;
        self.state.tally.input_bytes += n as u64;
        link.conn.traffic.input += n as u64;
        if n > 0 {
            link.conn.last_active = self.state.time.tick;
        }
    }

    /// Reads more of a command that has not arrived whole. Returns the bytes read.
    pub(super) fn read_more<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        input: &mut Input,
        mut pending: Box<PendingInput>,
    ) -> io::Result<usize> {
        let n = self.append(link, &mut pending)?;
        if link.conn.closing {
            return Ok(n);
        }
        if n >= pending.wanted {
            self.run_pending(link, input, pending);
        } else {
            pending.wanted -= n;
            link.conn.pending = Some(pending);
        }
        Ok(n)
    }

    /// Reads what comes after a command that waits for a key. Returns the bytes read.
    pub(super) fn read_ahead<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        pending: Option<Box<PendingInput>>,
    ) -> io::Result<usize> {
        let mut pending = pending.unwrap_or_default();
        let n = self.append(link, &mut pending)?;
        if !pending.bytes.is_empty() {
            link.conn.pending = Some(pending);
        }
        Ok(n)
    }

    /// Reads more of the input that waits. Returns the bytes read.
    fn append<S: Read>(
        &mut self,
        link: &mut Link<S>,
        pending: &mut PendingInput,
    ) -> io::Result<usize> {
        let too_big = pending.forget_run();
        let (room, too_small) = make_room(&link.conn, pending);
        for buffer in too_big.into_iter().chain(too_small) {
            self.state.server.reclaimer.drop_buffer(buffer);
        }
        let before = pending.bytes.len();
        let result = (&mut link.stream)
            .take(room as u64)
            .read_to_end(&mut pending.bytes);
        let n = pending.bytes.len() - before;
        self.note_read(link, n);
        match result {
            Ok(n) => link.conn.at_end(n < room),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => link.conn.readable = false,
            Err(why) => return Err(why),
        }
        if pending.bytes.len() > self.input_limit(&link.conn) {
            self.state.tally.input_limit_closes += 1;
            tracing::warn!(
                client = link.conn.client.id,
                address = %link.conn.client.peer,
                "closed: its command is too long"
            );
            link.conn.closing = true;
        }
        Ok(n)
    }

    /// Returns the limit of a client's unfinished input, in bytes.
    fn input_limit(&self, conn: &Connection) -> usize {
        match conn.lacks_password(&self.state.server.config) {
            false => usize::try_from(self.state.settings.query_buffer_limit).unwrap_or(usize::MAX),
            true => UNAUTHENTICATED_INPUT,
        }
    }

    /// Runs what is whole of the input that waits. Returns the bytes run.
    pub(super) fn run_pending<S: ByteStream>(
        &mut self,
        link: &mut Link<S>,
        input: &mut Input,
        mut pending: Box<PendingInput>,
    ) -> usize {
        let mut parser = std::mem::take(&mut pending.parser);
        let mut cutter = input.cutter(&mut parser);
        let (used, halt) = self.run(link, &mut cutter, &pending.bytes[pending.at..]);
        pending.parser = parser;
        pending.at += used;
        if pending.at < pending.bytes.len() && halt != Halt::Closing {
            pending.wanted = halt.wanted();
            link.conn.pending = Some(pending);
        } else {
            let PendingInput { bytes, parser, .. } = *pending;
            self.state.server.reclaimer.drop_buffer(bytes);
            input.keep(parser);
        }
        halt.note(&mut link.conn);
        used
    }
}

/// Makes room for the next read of a command that has not arrived whole. Returns how much to read,
/// and a buffer that has become too small.
fn make_room(conn: &Connection, pending: &mut PendingInput) -> (usize, Option<Vec<u8>>) {
    let room = pending.wanted.clamp(INPUT_CHUNK, PENDING_CHUNK);
    let len = pending.bytes.len();
    if pending.bytes.capacity() - len >= room {
        return (room, None);
    }
    // Address space for the whole of a long command saves copying it again and again while it
    // grows. But a client gets only a multiple of what has arrived: a length that it announces
    // reserves nothing.
    let ahead = match len < INPUT_CHUNK {
        true => 0,
        false => pending.wanted.min(len.saturating_mul(RESERVE_FACTOR)),
    };
    let mut wider = Vec::new();
    if wider
        .try_reserve_exact(len + ahead.max(len).max(room))
        .is_err()
    {
        tracing::debug!(client = conn.client.id, ahead, "no address space ahead");
        pending.bytes.reserve(room);
        return (room, None);
    }
    // A buffer that grows where it is may be moved with all that was reserved, which takes memory
    // for it.
    wider.extend_from_slice(&pending.bytes);
    pending.most = len;
    (room, Some(std::mem::replace(&mut pending.bytes, wider)))
}

/// Reads once. `None` when nothing has arrived; then, or at the end of the stream, the connection's
/// state says so.
#[inline(always)]
fn read_once<S: ByteStream>(link: &mut Link<S>, input: &mut Input) -> io::Result<Option<usize>> {
    loop {
        match input.read(&mut link.stream) {
            Ok(0) => {
                link.conn.at_end(true);
                return Ok(None);
            }
            Ok(n) => {
                // The poller does not report the end of the stream again if it did so together with
                // the data.
                if link.stream.is_drained(n == INPUT_CHUNK) && !link.conn.ending {
                    link.conn.readable = false;
                }
                return Ok(Some(n));
            }
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                link.conn.readable = false;
                return Ok(None);
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}
