//! Many commands of one read, cut at once.
//!
//! Whoever knows the next commands can ask for their data before it runs the first. A batch holds
//! only commands of the common shape: whole, with few arguments, in the order in which they
//! arrived. The [`Parser`](crate::Parser) takes whatever comes behind them.

use crate::Limits;
use crate::args::{Args, Span};
use crate::parser::{short_number, take_whole};

/// The most arguments of a command in a batch.
const ARGS_MAX: usize = 64;

/// Commands that were cut, and are not run yet.
///
/// ```
/// use tidewheel_resp::{Batch, Limits};
///
/// let input = b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$3\r\nGE";
/// let mut batch = Batch::default();
/// batch.fill(input, &Limits::DEFAULT, 16);
/// assert_eq!(batch.len(), 2);
/// assert_eq!(&batch.args(input, 1)[1], b"k");
/// // The third is not whole: it begins here.
/// assert_eq!(&input[batch.end(1)..], b"*2\r\n$3\r\nGE");
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    spans: Vec<Span>,
    commands: Vec<Cut>,
}

/// Where a command ends: its arguments among the spans, its bytes in the buffer.
#[derive(Clone, Copy, Debug)]
struct Cut {
    spans: usize,
    bytes: usize,
}

impl Batch {
    /// Cuts up to `most` commands from the start of `buf`, in place of those that it held. It stops
    /// before the first that is not of the common shape.
    pub fn fill(&mut self, buf: &[u8], limits: &Limits, most: usize) {
        self.clear();
        let mut at = 0;
        while self.commands.len() < most {
            let Some(end) = self.cut(buf, at, limits) else {
                break;
            };
            at = end;
            self.commands.push(Cut {
                spans: self.spans.len(),
                bytes: end,
            });
        }
    }

    /// Cuts the command at `at`; returns where it ends.
    #[inline]
    fn cut(&mut self, buf: &[u8], at: usize, limits: &Limits) -> Option<usize> {
        let (count, next) = short_number(buf, at, b'*')?;
        if !(1..=ARGS_MAX.min(limits.args)).contains(&count) {
            return None;
        }
        let before = self.spans.len();
        let (end, missing) = take_whole(buf, next, count, limits, &mut self.spans);
        if missing > 0 {
            self.spans.truncate(before);
        }
        (missing == 0).then_some(end)
    }

    /// Returns the number of commands.
    #[inline]
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns whether it holds no command.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Where command `i` ends in the buffer.
    ///
    /// # Panics
    /// When there is no such command.
    #[inline]
    pub fn end(&self, i: usize) -> usize {
        self.commands[i].bytes
    }

    /// The arguments of command `i`. `buf` is the buffer that [`fill`](Self::fill) saw.
    ///
    /// # Panics
    /// When there is no such command.
    #[inline]
    pub fn args<'a>(&'a self, buf: &'a [u8], i: usize) -> Args<'a> {
        let from = match i {
            0 => 0,
            _ => self.commands[i - 1].spans,
        };
        Args::from_spans(buf, &self.spans[from..self.commands[i].spans])
    }

    /// Forgets its commands, but keeps its memory.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.commands.clear();
    }
}
