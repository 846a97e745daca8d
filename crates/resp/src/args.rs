//! The arguments of one command, borrowed from the buffer that they arrived in.

use std::fmt;
use std::ops::Index;

/// Where an argument lies in its buffer. 32 bits are enough because a command is below 4 GiB; a
/// command with seven arguments fits one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// A command's arguments, its name first. Cheap to copy; [`from`](Self::from) gives a tail.
#[derive(Clone, Copy)]
pub struct Args<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Spans { buf: &'a [u8], spans: &'a [Span] },
    Slices(&'a [&'a [u8]]),
}

impl<'a> Args<'a> {
    /// Arguments that do not come from a parser: tests, queued and scripted commands.
    pub fn from_slices(slices: &'a [&'a [u8]]) -> Self {
        Self(Source::Slices(slices))
    }

    pub(crate) fn from_spans(buf: &'a [u8], spans: &'a [Span]) -> Self {
        Self(Source::Spans { buf, spans })
    }

    /// Returns the number of arguments, the command's name included.
    #[inline]
    pub fn len(&self) -> usize {
        match self.0 {
            Source::Spans { spans, .. } => spans.len(),
            Source::Slices(slices) => slices.len(),
        }
    }

    /// Bytes of all arguments, and of what lies between them.
    #[inline]
    pub fn bytes(&self) -> usize {
        match self.0 {
            Source::Spans { spans, .. } => match (spans.first(), spans.last()) {
                (Some(first), Some(last)) => {
                    (last.start.saturating_sub(first.start) + last.len) as usize
                }
                _ => 0,
            },
            Source::Slices(slices) => slices.iter().map(|slice| slice.len()).sum(),
        }
    }

    /// Returns whether there is nothing to run (a blank inline line, `*0`).
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The argument at `i`; 0 is the command's name.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&'a [u8]> {
        match self.0 {
            Source::Spans { buf, spans } => {
                let span = spans.get(i)?;
                let start = span.start as usize;
                buf.get(start..start + span.len as usize)
            }
            Source::Slices(slices) => slices.get(i).copied(),
        }
    }

    /// The arguments from `i` on; empty when there are not that many.
    #[inline]
    #[must_use]
    pub fn from(self, i: usize) -> Self {
        Self(match self.0 {
            Source::Spans { buf, spans } => Source::Spans {
                buf,
                spans: spans.get(i..).unwrap_or_default(),
            },
            Source::Slices(slices) => Source::Slices(slices.get(i..).unwrap_or_default()),
        })
    }

    /// The arguments in order.
    #[inline]
    pub fn iter(&self) -> ArgsIter<'a> {
        ArgsIter {
            args: *self,
            next: 0,
        }
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    /// # Panics
    /// When there is no argument `i`, as slices do.
    #[inline]
    fn index(&self, i: usize) -> &[u8] {
        match self.get(i) {
            Some(arg) => arg,
            None => panic!("no argument {i} among {}", self.len()),
        }
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|arg| arg.escape_ascii().to_string()))
            .finish()
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

/// The iterator of [`Args::iter`].
#[derive(Clone, Debug)]
pub struct ArgsIter<'a> {
    args: Args<'a>,
    next: usize,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        Some(arg)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.args.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_from_spans_and_from_slices_behave_alike() {
        let spans = [
            Span { start: 0, len: 3 },
            Span { start: 3, len: 0 },
            Span { start: 5, len: 2 },
        ];
        let a = Args::from_spans(b"GET__ab", &spans);
        let b = Args::from_slices(&[b"GET", b"", b"ab"]);
        for args in [a, b] {
            assert_eq!(args.len(), 3);
            assert_eq!(args.iter().collect::<Vec<_>>(), [&b"GET"[..], b"", b"ab"]);
            assert_eq!(args.iter().len(), 3);
            assert_eq!(args.get(3), None);
            assert_eq!(args.from(2).iter().collect::<Vec<_>>(), [b"ab"]);
            assert!(args.from(3).is_empty());
            assert!(args.from(9).is_empty());
            assert_eq!(format!("{args:?}"), r#"["GET", "", "ab"]"#);
        }
    }

    #[test]
    #[should_panic(expected = "no argument 1 among 1")]
    fn indexing_beyond_the_end_names_the_index() {
        let _ = &Args::from_slices(&[b"GET"])[1];
    }
}
