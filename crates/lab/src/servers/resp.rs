//! The input of a connection that was not read yet.

use std::io::{ErrorKind, Read};

use anyhow::{Context, Result, bail, ensure};
use tidewheel_resp::Reply;

use super::keys::VALUE_BYTES;

/// No reply that the laboratory asks for is longer.
const MAX_BYTES: usize = 128 << 20;

/// One reply. Those to load are told by their first bytes, since [`Reply::read`] copies each.
#[derive(Debug, PartialEq)]
pub(super) enum Answer<'a> {
    Ok,
    /// A value of the workloads' length.
    Value(&'a [u8]),
    Other(Reply),
}

impl<'a> Answer<'a> {
    /// The answer at the front of `buf` and its length; `None` when more is needed.
    fn read(buf: &'a [u8]) -> Result<Option<(Self, usize)>> {
        if buf.starts_with(b"+OK\r\n") {
            return Ok(Some((Self::Ok, 5)));
        }
        let value = buf.strip_prefix(b"$32\r\n");
        if let Some((value, b"\r\n")) = value.and_then(|rest| {
            let value = rest.get(..VALUE_BYTES)?;
            Some((value, rest.get(VALUE_BYTES..VALUE_BYTES + 2)?))
        }) {
            return Ok(Some((Self::Value(value), VALUE_BYTES + 7)));
        }
        let other = Reply::read(buf)?;
        Ok(other.map(|(reply, used)| (Self::Other(reply), used)))
    }

    /// Itself, unless it is an error.
    pub(super) fn accepted(self) -> Result<Self> {
        match self {
            Self::Other(Reply::Error(text)) => bail!("the server answered: {text}"),
            accepted => Ok(accepted),
        }
    }
}

/// Bytes that have come; those before `head` were read.
#[derive(Debug)]
pub(super) struct Inbox {
    scratch: Box<[u8]>,
    held: Vec<u8>,
    head: usize,
}

impl Inbox {
    /// Takes at most this many bytes from a socket at a time.
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            scratch: vec![0; bytes].into(),
            held: Vec::new(),
            head: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == self.held.len()
    }

    /// Reads what has come: whether more may be waiting, and `None` when nothing came.
    pub(super) fn fill(&mut self, stream: &mut impl Read) -> Result<Option<bool>> {
        loop {
            match stream.read(&mut self.scratch) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => {
                    self.held.drain(..self.head);
                    self.head = 0;
                    let held = self.held.len();
                    ensure!(held < MAX_BYTES, "a reply of more than {MAX_BYTES} bytes");
                    self.held.extend_from_slice(&self.scratch[..count]);
                    return Ok(Some(count == self.scratch.len()));
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(None),
                    _ => return Err(error).context("the connection broke"),
                },
            }
        }
    }

    /// Takes the reply at the front, if it is whole.
    pub(super) fn take(&mut self) -> Result<Option<Reply>> {
        let found = Reply::read(&self.held[self.head..])?;
        self.head += found.as_ref().map_or(0, |(_, used)| *used);
        Ok(found.map(|(reply, _)| reply))
    }

    /// Shows the reply at the front where it lies and drops it, if it is whole.
    pub(super) fn show<T>(&mut self, see: impl FnOnce(Answer<'_>) -> T) -> Result<Option<T>> {
        let found = Answer::read(&self.held[self.head..])?;
        Ok(found.map(|(answer, used)| {
            self.head += used;
            see(answer)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_as_long_as_the_reader_says_and_a_prefix_is_none() {
        let value = format!("$32\r\n{}\r\n", "v".repeat(32));
        let replies = ["+OK\r\n", "$-1\r\n", "$2\r\nhi\r\n", ":7\r\n", "-ERR x\r\n"];
        for reply in replies.into_iter().chain([value.as_str()]) {
            let with_more = format!("{reply}+next\r\n");
            let with_more = with_more.as_bytes();
            let (_, shown) = Answer::read(with_more).expect("valid").expect("complete");
            let (_, read) = Reply::read(with_more).expect("valid").expect("complete");
            assert_eq!(shown, read);
            for cut in 0..reply.len() {
                let prefix = Answer::read(&with_more[..cut]);
                assert_eq!(prefix.expect("a prefix is no error"), None);
            }
        }
        for bad in ["?\r\n", "$x\r\n", "$99999999999999\r\n", "$1\r\nabc\r\n"] {
            assert!(Answer::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
