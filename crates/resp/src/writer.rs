//! Appending replies in the protocol that the client speaks.

use crate::float::format_f64_short;

/// The version of the protocol that a client speaks; HELLO changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// RESP2, what every connection begins with.
    #[default]
    Resp2,
    /// RESP3: maps, sets, doubles, nulls and pushes have types of their own.
    Resp3,
}

/// Whole numbers below this magnitude are written with all their digits.
const WHOLE_END: u64 = 1 << 52;

/// A buffer of replies. Types that RESP2 lacks fall back to what Redis sends instead.
///
/// ```
/// use tidewheel_resp::{Protocol, Writer};
///
/// let mut out = Writer::new(Protocol::Resp2);
/// out.map(1);
/// out.bulk(b"score");
/// out.double(1.5);
/// assert_eq!(out.as_bytes(), b"*2\r\n$5\r\nscore\r\n$3\r\n1.5\r\n");
/// ```
///
/// A [limit](Self::set_limit) bounds the memory of one reply, also if the reply has many small
/// parts. It is tested only when the buffer must grow, so small replies do not pay for it.
#[derive(Debug)]
pub struct Writer {
    buf: Vec<u8>,
    protocol: Protocol,
    /// The buffer grows to this at most.
    limit: usize,
    /// Something was left out.
    over: bool,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new(Protocol::default())
    }
}

impl Writer {
    /// An empty buffer without a limit. It allocates nothing until something is written.
    pub fn new(protocol: Protocol) -> Self {
        Self {
            buf: Vec::new(),
            protocol,
            limit: usize::MAX,
            over: false,
        }
    }

    /// From here on the buffer grows to `bytes` at most. What would end beyond that is left out,
    /// and the buffer [is over](Self::is_over) its limit: what was written is then of no use.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Returns the largest length of the buffer.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns whether something was left out since the buffer was last cleared or truncated.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Makes room for `more` bytes and no more, so that a long reply is not copied while it grows.
    /// False if the limit does not allow it.
    #[must_use]
    pub fn reserve(&mut self, more: usize) -> bool {
        let admitted = self.admits(more);
        if admitted {
            self.buf.reserve_exact(more);
        }
        admitted
    }

    /// Marks the reply as over its limit, also if parts of it were written elsewhere.
    pub fn refuse(&mut self) {
        self.over = true;
    }

    /// Returns whether `more` bytes are within the limit. If not, the caller leaves them out, and
    /// the buffer counts as over its limit.
    #[inline]
    pub fn admits(&mut self, more: usize) -> bool {
        self.over |= more > self.limit.saturating_sub(self.buf.len());
        !self.over
    }

    /// The protocol of what is written next.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the protocol of what is written next.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.put(b"+OK\r\n");
    }

    /// A status. A line end within it becomes a blank.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// An error, `text` being all of it: `ERR syntax error`. A line end within it becomes a blank.
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text);
    }

    /// A signed integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        match u8::try_from(value) {
            Ok(small @ 0..=9) => self.put(&[b':', b'0' + small, b'\r', b'\n']),
            _ => self.long_integer(value),
        }
    }

    /// An integer whose digits, and sign if it is negative, are at hand.
    #[inline]
    pub fn digits(&mut self, digits: &str) {
        self.number(b':', digits);
    }

    /// A byte string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        if !self.fits(bytes.len() + 16) {
            return;
        }
        // As `header`, without its test for room.
        match bytes.len() {
            len @ 0..=9 => {
                let line = [b'$', b'0' + len as u8, b'\r', b'\n'];
                self.buf.extend_from_slice(&line);
            }
            len @ 10..=99 => self.buf.extend_from_slice(&two_digits(b'$', len)),
            len => self.number(b'$', itoa::Buffer::new().format(len)),
        }
        self.buf.extend_from_slice(bytes);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// The absence of a value.
    #[inline]
    pub fn null(&mut self) {
        self.put(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The absence of an array.
    pub fn null_array(&mut self) {
        self.put(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array; `len` replies must follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// The head of a map; `len` keys and values must follow in turn. RESP2: a flat array.
    pub fn map(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', len.saturating_mul(2)),
            Protocol::Resp3 => self.header(b'%', len),
        }
    }

    /// The head of a set; `len` replies must follow. RESP2: an array.
    pub fn set(&mut self, len: usize) {
        self.header(self.either(b'*', b'~'), len);
    }

    /// The head of an out-of-band message; `len` replies must follow. RESP2: an array.
    pub fn push(&mut self, len: usize) {
        self.header(self.either(b'*', b'>'), len);
    }

    /// A floating-point number. RESP2: a bulk string.
    pub fn double(&mut self, value: f64) {
        // Most scores are whole: there is no shorter text to look for.
        let whole = value as i64;
        let is_whole = (whole as f64).to_bits() == value.to_bits();
        if is_whole && whole.unsigned_abs() < WHOLE_END {
            return self.double_text(itoa::Buffer::new().format(whole));
        }
        self.double_text(&format_f64_short(value));
    }

    fn double_text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.number(b',', text),
        }
    }

    /// A truth value. RESP2: `1` or `0`.
    pub fn boolean(&mut self, value: bool) {
        self.put(match (self.protocol, value) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// Text to be shown as it is; `format` is three letters (`txt`, `mkd`). RESP2: a bulk string.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        debug_assert_eq!(format.len(), 3);
        if self.protocol == Protocol::Resp2 {
            return self.bulk(text);
        }
        if !self.fits(text.len() + format.len() + 16) {
            return;
        }
        self.header(b'=', text.len() + format.len() + 1);
        self.buf.extend_from_slice(format.as_bytes());
        self.buf.push(b':');
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// An integer of any size, as decimal digits. RESP2: a bulk string.
    pub fn big_number(&mut self, digits: &str) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(digits.as_bytes()),
            Protocol::Resp3 => self.line(b'(', digits),
        }
    }

    /// Appends replies that are encoded already, e.g. one message for many subscribers.
    pub fn raw(&mut self, encoded: &[u8]) {
        self.put(encoded);
    }

    /// Puts replies that are encoded already before everything that was written. Moves that once.
    pub fn raw_first(&mut self, encoded: &[u8]) {
        self.buf.splice(..0, encoded.iter().copied());
    }

    /// Bytes written and not taken.
    #[inline]
    pub fn len(&self) -> usize {
        self.buf.len()
    }

    /// Returns whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// Returns the bytes that were written.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buf
    }

    /// The place to which [`truncate`](Self::truncate) may return.
    #[inline]
    pub fn mark(&self) -> usize {
        self.buf.len()
    }

    /// Takes back what was written, or left out, since `mark`.
    pub fn truncate(&mut self, mark: usize) {
        self.buf.truncate(mark);
        self.over = false;
    }

    /// Drops the first `sent` bytes, at most all.
    pub fn consume(&mut self, sent: usize) {
        self.buf.drain(..sent.min(self.buf.len()));
    }

    /// Drops everything but keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.buf.clear();
        self.over = false;
    }

    /// Takes the bytes and leaves an empty buffer of the same protocol.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buf)
    }

    /// The bytes.
    pub fn into_vec(self) -> Vec<u8> {
        self.buf
    }

    /// Bytes of memory held.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.buf.capacity()
    }

    /// Gives back memory beyond what is written or `bytes`, whichever is more.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.buf.shrink_to(bytes);
    }

    /// Makes room for a string, if the limit allows it.
    #[inline]
    fn fits(&mut self, bytes: usize) -> bool {
        bytes <= self.buf.capacity() - self.buf.len() || self.grow(bytes)
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> bool {
        let admitted = self.admits(bytes);
        if admitted {
            self.buf.reserve(bytes);
        }
        admitted
    }

    fn either(&self, resp2: u8, resp3: u8) -> u8 {
        match self.protocol {
            Protocol::Resp2 => resp2,
            Protocol::Resp3 => resp3,
        }
    }

    /// Appends bytes, if they are within the limit.
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.fits(bytes.len()) {
            self.buf.extend_from_slice(bytes);
        }
    }

    /// Writes `kind`, a length and a line end.
    #[inline]
    fn header(&mut self, kind: u8, len: usize) {
        match len {
            0..=9 => self.put(&[kind, b'0' + len as u8, b'\r', b'\n']),
            10..=99 => self.put(&two_digits(kind, len)),
            _ => self.number(kind, itoa::Buffer::new().format(len)),
        }
    }

    fn long_integer(&mut self, value: i64) {
        self.number(b':', itoa::Buffer::new().format(value));
    }

    /// A line of digits.
    fn number(&mut self, kind: u8, digits: &str) {
        if self.fits(digits.len() + 3) {
            self.buf.push(kind);
            self.buf.extend_from_slice(digits.as_bytes());
            self.buf.extend_from_slice(b"\r\n");
        }
    }

    fn line(&mut self, kind: u8, text: &str) {
        if !self.fits(text.len() + 3) {
            return;
        }
        self.buf.push(kind);
        let start = self.buf.len();
        self.buf.extend_from_slice(text.as_bytes());
        // Text may quote a client's bytes; a line end in it would forge a second reply.
        for byte in &mut self.buf[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.buf.extend_from_slice(b"\r\n");
    }
}

/// The digits of the numbers below 100.
static TWO_DIGITS: [[u8; 2]; 100] = {
    let mut all = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        all[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    all
};

/// The line of a number from 10 to 99.
#[inline(always)]
fn two_digits(kind: u8, number: usize) -> [u8; 5] {
    let [tens, ones] = TWO_DIGITS[number % 100];
    [kind, tens, ones, b'\r', b'\n']
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(write: impl Fn(&mut Writer)) -> [String; 2] {
        [Protocol::Resp2, Protocol::Resp3].map(|protocol| {
            let mut out = Writer::new(protocol);
            write(&mut out);
            String::from_utf8(out.into_vec()).unwrap()
        })
    }

    #[test]
    fn every_type_has_its_form_in_both_protocols() {
        assert_eq!(both(Writer::ok), ["+OK\r\n"; 2]);
        assert_eq!(both(|w| w.simple("PONG")), ["+PONG\r\n"; 2]);
        assert_eq!(both(|w| w.error("ERR no")), ["-ERR no\r\n"; 2]);
        assert_eq!(both(|w| w.bulk(b"")), ["$0\r\n\r\n"; 2]);
        assert_eq!(both(|w| w.bulk(b"a\r\nb")), ["$4\r\na\r\nb\r\n"; 2]);
        assert_eq!(both(Writer::null), ["$-1\r\n", "_\r\n"]);
        assert_eq!(both(Writer::null_array), ["*-1\r\n", "_\r\n"]);
        assert_eq!(both(|w| w.array(3)), ["*3\r\n"; 2]);
        assert_eq!(both(|w| w.map(2)), ["*4\r\n", "%2\r\n"]);
        assert_eq!(both(|w| w.set(2)), ["*2\r\n", "~2\r\n"]);
        assert_eq!(both(|w| w.push(3)), ["*3\r\n", ">3\r\n"]);
        assert_eq!(both(|w| w.double(1.5)), ["$3\r\n1.5\r\n", ",1.5\r\n"]);
        assert_eq!(
            both(|w| w.double(f64::INFINITY)),
            ["$3\r\ninf\r\n", ",inf\r\n"]
        );
        assert_eq!(both(|w| w.boolean(true)), [":1\r\n", "#t\r\n"]);
        assert_eq!(both(|w| w.boolean(false)), [":0\r\n", "#f\r\n"]);
        assert_eq!(
            both(|w| w.verbatim("txt", b"hi")),
            ["$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"]
        );
        assert_eq!(both(|w| w.big_number("123")), ["$3\r\n123\r\n", "(123\r\n"]);
    }

    #[test]
    fn numbers_and_lengths_of_every_width_are_written_whole() {
        for value in [0, 9, 10, 99, 100, 12_345, -1, -10, i64::MAX, i64::MIN] {
            assert_eq!(
                both(|w| w.integer(value)),
                [0; 2].map(|_| format!(":{value}\r\n"))
            );
        }
        for len in [0, 9, 10, 99, 100, 1_000_000] {
            assert_eq!(
                both(|w| w.array(len)),
                [0; 2].map(|_| format!("*{len}\r\n"))
            );
        }
    }

    #[test]
    fn whole_doubles_are_written_as_all_others_are() {
        let end = WHOLE_END as f64;
        let values = [
            0.0,
            -0.0,
            1.0,
            -7.0,
            1e15,
            end - 1.0,
            end,
            -end,
            end + 1.0,
            1e16,
            1e18,
        ];
        for value in values.into_iter().chain([1e19, -1e300, 0.5, -1.5]) {
            let text = format_f64_short(value);
            let forms = [
                format!("${}\r\n{text}\r\n", text.len()),
                format!(",{text}\r\n"),
            ];
            assert_eq!(both(|w| w.double(value)), forms);
        }
    }

    #[test]
    fn a_line_end_in_a_line_cannot_forge_a_reply() {
        assert_eq!(
            both(|w| w.error("ERR 'a\r\n+OK\r\n'")),
            ["-ERR 'a  +OK  '\r\n"; 2]
        );
        assert_eq!(both(|w| w.simple("a\nb")), ["+a b\r\n"; 2]);
    }

    #[test]
    fn a_string_beyond_the_limit_is_left_out_and_takes_no_memory() {
        let large = vec![b'x'; 1 << 20];
        let mut out = Writer::new(Protocol::Resp3);
        out.set_limit(1000);
        out.ok();
        let mark = out.mark();
        let writes: [fn(&mut Writer, &[u8]); 3] = [
            |out, large| out.bulk(large),
            |out, large| out.raw(large),
            |out, large| out.verbatim("txt", large),
        ];
        for write in writes {
            write(&mut out, &large);
            assert!(out.is_over() && out.capacity() <= 2000);
            out.truncate(mark);
            assert!(!out.is_over());
        }
        for _ in 0..1000 {
            out.bulk(b"0123456789");
        }
        assert!(out.is_over() && out.capacity() <= 2000);
        out.clear();
        assert!(out.admits(1000) && !out.admits(1001) && out.is_over());
    }

    #[test]
    fn even_the_shortest_reply_is_refused_beyond_the_limit() {
        let writes: [fn(&mut Writer); 12] = [
            Writer::ok,
            Writer::null,
            Writer::null_array,
            |out| out.integer(1),
            |out| out.integer(i64::MIN),
            |out| out.simple("a"),
            |out| out.error("ERR a"),
            |out| out.array(1),
            |out| out.map(10),
            |out| out.set(100_000),
            |out| out.boolean(true),
            |out| out.double(1.5),
        ];
        for (i, write) in writes.into_iter().enumerate() {
            let mut out = Writer::new(Protocol::Resp3);
            out.set_limit(1000);
            (0..1000).for_each(|_| write(&mut out));
            assert!(out.is_over() && out.capacity() <= 2000, "{i}");
        }
    }

    #[test]
    fn truncating_to_a_mark_removes_replies_and_a_header_can_be_put_first() {
        let mut out = Writer::new(Protocol::Resp2);
        out.ok();
        let mark = out.mark();
        out.integer(1);
        out.raw_first(b"*2\r\n");
        assert_eq!(out.as_bytes(), b"*2\r\n+OK\r\n:1\r\n");
        out.consume(4);
        out.truncate(mark);
        assert_eq!(out.as_bytes(), b"+OK\r\n");
        out.consume(3);
        assert_eq!(out.take(), b"\r\n");
        out.consume(9);
        assert!(out.is_empty());
    }
}
