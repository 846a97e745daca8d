//! The buffers that a loop lends to one connection at a time.
//!
//! A loop reads into one buffer and gathers replies in one buffer, for all its connections. Nothing
//! of one connection may be left in them when the next one's turn begins: a client would get
//! another client's replies, or go on with another client's command.
//!
//! Invariant: between two turns the buffers are clear. The buffers can be reached only through
//! [`LentBuffers`], whose end clears them however a turn ends: by success, by error, or by a panic.
//! The beginning of each turn checks it once more, in release builds too.

use std::io::{self, Read};

use tidewheel_resp::{Parser, Protocol, Writer};

use super::prefetch::PrefetchedBatch;

/// The most that one read takes from a connection.
pub(crate) const INPUT_CHUNK: usize = 64 << 10;

/// A reply buffer that has grown beyond this is given back.
pub(crate) const REPLIES_KEEP: usize = 1 << 20;

/// A loop's buffers.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    replies: Writer,
    input: Input,
}

/// The buffers while they are lent to one connection.
#[derive(Debug)]
pub(crate) struct LentBuffers<'a>(&'a mut Buffers);

/// The bytes that were just read, and the parsers that cut them into commands.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Box<[u8]>,
    /// The number of bytes that belong to this connection.
    filled: usize,
    parser: Parser,
    prefetched: PrefetchedBatch,
}

impl Buffers {
    /// Lends the buffers to a connection that speaks `protocol`.
    ///
    /// # Panics
    /// When something of another connection is left in them: then nobody is answered, rather than
    /// with somebody else's bytes.
    pub(crate) fn lend(&mut self, protocol: Protocol) -> LentBuffers<'_> {
        let input = &self.input;
        let idle = input.filled == 0 && input.parser.is_idle() && input.prefetched.is_clear();
        let clear = self.replies.is_empty() && idle;
        assert!(clear, "a loop's buffers must be clear before they are lent");
        self.replies.set_protocol(protocol);
        LentBuffers(self)
    }
}

/// Cuts input into commands: many at once, or one of another shape.
#[derive(Debug)]
pub(super) struct Cutter<'a> {
    pub(super) parser: &'a mut Parser,
    pub(super) prefetched: &'a mut PrefetchedBatch,
}

impl LentBuffers<'_> {
    pub(crate) fn parts(&mut self) -> (&mut Writer, &mut Input) {
        (&mut self.0.replies, &mut self.0.input)
    }
}

impl Drop for LentBuffers<'_> {
    #[inline]
    fn drop(&mut self) {
        let Buffers { replies, input } = &mut *self.0;
        if replies.capacity() > REPLIES_KEEP {
            drop(replies.take());
        }
        replies.clear();
        input.filled = 0;
        input.parser.reset();
        input.prefetched.clear();
    }
}

impl Default for Input {
    fn default() -> Self {
        Self {
            bytes: vec![0; INPUT_CHUNK].into_boxed_slice(),
            filled: 0,
            parser: Parser::new(),
            prefetched: PrefetchedBatch::default(),
        }
    }
}

impl Input {
    /// Reads once, in place of what was read before. The bytes read are [`fresh`](Self::fresh).
    pub(crate) fn read(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        self.filled = 0;
        self.filled = stream.read(&mut self.bytes)?;
        Ok(self.filled)
    }

    /// Returns the bytes that were read, and the cutter for them.
    pub(super) fn fresh(&mut self) -> (Cutter<'_>, &[u8]) {
        let cutter = Cutter {
            parser: &mut self.parser,
            prefetched: &mut self.prefetched,
        };
        (cutter, &self.bytes[..self.filled])
    }

    /// Returns the cutter for other input, of which `parser` has seen a part.
    pub(super) fn cutter<'a>(&'a mut self, parser: &'a mut Parser) -> Cutter<'a> {
        Cutter {
            parser,
            prefetched: &mut self.prefetched,
        }
    }

    /// Takes a parser in the place of its own, cleared: its argument list is likely to be bigger.
    pub(crate) fn keep(&mut self, mut parser: Parser) {
        parser.reset();
        self.parser = parser;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tidewheel_resp::Limits;

    fn scribble(lent: &mut LentBuffers<'_>) {
        let (replies, input) = lent.parts();
        replies.bulk(b"secret");
        input.read(&mut &b"*2\r\n$3\r\nGET\r\n"[..]).unwrap();
        let (cutter, bytes) = input.fresh();
        assert!(cutter.parser.parse(bytes, &Limits::DEFAULT).is_ok());
        assert!(!cutter.parser.is_idle());
    }

    #[test]
    fn buffers_are_clear_after_every_end_of_a_turn() {
        let mut buffers = Buffers::default();
        scribble(&mut buffers.lend(Protocol::Resp3));
        let panics = catch_unwind(AssertUnwindSafe(|| {
            let mut lent = buffers.lend(Protocol::Resp2);
            scribble(&mut lent);
            panic!("as a handler might");
        }));
        assert!(panics.is_err());
        let mut lent = buffers.lend(Protocol::Resp2);
        let (replies, input) = lent.parts();
        assert!(replies.is_empty());
        assert_eq!(input.fresh().1, b"");
    }

    #[test]
    #[should_panic(expected = "a loop's buffers must be clear")]
    fn buffers_that_are_not_clear_are_not_lent() {
        let mut buffers = Buffers::default();
        buffers.replies.ok();
        buffers.lend(Protocol::Resp2);
    }
}
