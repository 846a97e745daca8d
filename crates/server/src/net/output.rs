//! A connection's output that is not sent yet.

use std::collections::VecDeque;
use std::io::{self, Write};

/// A buffer that was bigger than this is given back when it has been sent.
const KEEP: usize = 16 << 10;

/// Bytes that the socket did not take yet, or that wait for the log.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    sent: usize,
    /// What has left since the first byte that ever waited for the log.
    left: u64,
    /// Ends of bytes, counted as `left` is, and the number of records that must be on disk before
    /// these leave.
    held: VecDeque<(u64, u64)>,
}

impl Output {
    /// Bytes still to send.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.compact();
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes over a buffer whose first `sent` bytes have left already. Only for an empty output.
    pub(crate) fn adopt(&mut self, bytes: Vec<u8>, sent: usize) {
        debug_assert!(self.is_empty(), "nothing may be overtaken");
        self.bytes = bytes;
        self.sent = sent;
    }

    /// Appends messages in the client's protocol: RESP2 has arrays where RESP3 has pushes. Lines
    /// are the same in both. `starts` says where in `bytes` each begins.
    pub(crate) fn append_messages(
        &mut self,
        bytes: &[u8],
        starts: impl Iterator<Item = usize>,
        resp3: bool,
    ) {
        self.compact();
        let base = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        if !resp3 {
            for start in starts {
                if let Some(first @ b'>') = self.bytes.get_mut(base + start) {
                    *first = b'*';
                }
            }
        }
    }

    /// Holds all bytes that are here, and were not held yet, until so many records are on disk.
    pub(crate) fn hold(&mut self, records: u64) {
        let end = self.left + self.len() as u64;
        match self.held.back_mut() {
            _ if end == self.left => {}
            Some((last, _)) if *last == end => {}
            Some((last, needed)) if *needed == records => *last = end,
            _ => self.held.push_back((end, records)),
        }
    }

    /// The number of bytes that may leave once so many records are on disk.
    pub(crate) fn released(&mut self, records: u64) -> usize {
        while let Some((end, needed)) = self.held.front() {
            if *needed > records {
                break;
            }
            // What was released stays so: the end is kept until the bytes have left.
            if self.left < *end {
                return usize::try_from(*end - self.left).unwrap_or(usize::MAX);
            }
            self.held.pop_front();
        }
        match self.held.is_empty() {
            true => self.len(),
            false => 0,
        }
    }

    /// Sends what the socket takes, but no more than one turn's share, and no more than `most`
    /// bytes. Returns the bytes sent, whether the socket is full, and the buffer, if it was big and
    /// is no longer needed.
    pub(crate) fn send(
        &mut self,
        socket: &mut impl Write,
        most: usize,
    ) -> io::Result<(usize, bool, Option<Vec<u8>>)> {
        let end = self.bytes.len().min(self.sent.saturating_add(most));
        let (sent, full) = write_some(socket, &self.bytes[self.sent..end])?;
        self.sent += sent;
        self.left += sent as u64;
        if self.sent < self.bytes.len() {
            return Ok((sent, full, None));
        }
        self.sent = 0;
        if self.bytes.capacity() > KEEP {
            return Ok((sent, full, Some(std::mem::take(&mut self.bytes))));
        }
        self.bytes.clear();
        Ok((sent, full, None))
    }

    /// Gives the buffer up unsent.
    pub(crate) fn discard(&mut self) -> Vec<u8> {
        self.sent = 0;
        self.held.clear();
        std::mem::take(&mut self.bytes)
    }

    /// Moves the rest to the front when more than half has been sent and more is to be appended:
    /// amortised, each byte moves at most once for a byte that was sent.
    fn compact(&mut self) {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// The most that one call writes: a fast reader of a huge reply must not keep the loop from others.
pub(crate) const SHARE: usize = 1 << 20;

/// Writes until everything or its share has left or the socket is full. Returns how much has left
/// and whether the socket is full.
pub(crate) fn write_some(socket: &mut impl Write, bytes: &[u8]) -> io::Result<(usize, bool)> {
    let share = bytes.len().min(SHARE);
    let mut sent = 0;
    while sent < share {
        match socket.write(&bytes[sent..share]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => sent += n,
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok((sent, true)),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok((sent, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `room` bytes, then blocks.
    struct Narrow {
        room: usize,
        taken: Vec<u8>,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let n = bytes.len().min(self.room).min(3);
            self.room -= n;
            self.taken.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_socket_does_not_take_stays_in_order() {
        let mut output = Output::default();
        let mut socket = Narrow {
            room: 4,
            taken: Vec::new(),
        };
        output.append(b"abcdef");
        assert_eq!(output.send(&mut socket, usize::MAX).unwrap().0, 4);
        assert_eq!(output.len(), 2);
        output.append(b"ghi");
        socket.room = 100;
        assert_eq!(output.send(&mut socket, usize::MAX).unwrap().0, 5);
        assert!(output.is_empty());
        assert_eq!(socket.taken, b"abcdefghi");
    }

    #[test]
    fn bytes_leave_when_their_records_are_on_disk_and_no_other_ones_do() {
        let mut output = Output::default();
        let mut socket = Narrow {
            room: usize::MAX,
            taken: Vec::new(),
        };
        assert_eq!(output.released(0), 0);
        output.append(b"ab");
        output.hold(5);
        output.append(b"cd");
        output.hold(5);
        output.append(b"efg");
        output.hold(7);
        output.hold(9);
        assert_eq!(output.released(4), 0);
        assert_eq!(output.released(5), 4);
        output.send(&mut socket, 3).unwrap();
        assert_eq!(output.released(6), 1);
        output.send(&mut socket, 1).unwrap();
        assert_eq!(output.released(6), 0);
        assert_eq!(output.released(7), 3);
        output.send(&mut socket, 3).unwrap();
        output.append(b"h");
        assert_eq!(output.released(7), 1, "it was never held");
        output.hold(8);
        assert_eq!(output.released(7), 0);
        output.discard();
        output.append(b"i");
        assert_eq!(output.released(7), 1);
        assert_eq!(socket.taken, b"abcdefg");
    }

    #[test]
    fn messages_are_arrays_for_resp2_and_pushes_for_resp3() {
        let mut output = Output::default();
        output.append(b"+OK\r\n");
        output.append_messages(b">1\r\n>2\r\n", [0, 4].into_iter(), false);
        output.append_messages(b">3\r\n", [0].into_iter(), true);
        output.append_messages(b"+4\r\n", [0].into_iter(), false);
        assert_eq!(output.bytes, b"+OK\r\n*1\r\n*2\r\n>3\r\n+4\r\n");
    }

    #[test]
    fn a_big_buffer_is_given_back() {
        let mut output = Output::default();
        output.adopt(vec![0; KEEP + 1], 1);
        let mut socket = Narrow {
            room: usize::MAX,
            taken: Vec::new(),
        };
        let (sent, _, buffer) = output.send(&mut socket, usize::MAX).unwrap();
        assert_eq!(
            (sent, buffer.unwrap().len(), output.capacity()),
            (KEEP, KEEP + 1, 0)
        );
    }
}
