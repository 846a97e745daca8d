//! Replies of ids and entries.

use std::io::Write as _;

use tidewheel_collections::{Element, Log, StreamEntry, StreamId};
use tidewheel_resp::Writer;

/// Entries of a reply that are collected before they are written. More of them are counted first,
/// and read a second time.
const COLLECTED_MAX: usize = 256;

/// Writes an id.
pub(super) fn id(out: &mut Writer, id: StreamId) {
    let mut text = [0; 41];
    let mut rest = &mut text[..];
    let (mut ms, mut seq) = (itoa::Buffer::new(), itoa::Buffer::new());
    let parts = [ms.format(id.ms), "-", seq.format(id.seq)];
    for part in parts {
        // Two numbers of twenty digits have room.
        let _ = rest.write_all(part.as_bytes());
    }
    let len = 41 - rest.len();
    out.bulk(&text[..len]);
}

/// Writes an entry: its id, and its fields in turn.
pub(super) fn entry(out: &mut Writer, entry: StreamEntry<'_>) {
    out.array(2);
    id(out, entry.id);
    out.array(2 * entry.fields.len());
    for (name, value) in entry.fields {
        element(out, name);
        element(out, value);
    }
}

fn element(out: &mut Writer, of: Element<'_>) {
    match of {
        Element::Bytes(bytes) => out.bulk(bytes),
        Element::Integer(number) => out.bulk(itoa::Buffer::new().format(number).as_bytes()),
    }
}

/// Entries between two ids, in one of the two orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: StreamId,
    pub(super) end: StreamId,
    pub(super) reverse: bool,
    pub(super) most: usize,
}

impl Span {
    /// Writes an array of the entries.
    pub(super) fn write(&self, log: &Log, out: &mut Writer) {
        self.write_each(log, out, |_| {});
    }

    /// As [`write`](Self::write), and calls `each` with every id.
    pub(super) fn write_each(&self, log: &Log, out: &mut Writer, each: impl FnMut(StreamId)) {
        match self.reverse {
            false => self.write_of(|| log.range(self.start, self.end), out, each),
            true => self.write_of(|| log.range_back(self.start, self.end), out, each),
        }
    }

    fn write_of<'a, I: Iterator<Item = StreamEntry<'a>>>(
        &self,
        entries: impl Fn() -> I,
        out: &mut Writer,
        mut each: impl FnMut(StreamId),
    ) {
        let mut write = |of: StreamEntry<'_>, out: &mut Writer| {
            each(of.id);
            entry(out, of);
        };
        if self.most <= COLLECTED_MAX {
            let all: Vec<_> = entries().take(self.most).collect();
            out.array(all.len());
            all.into_iter().for_each(|entry| write(entry, out));
            return;
        }
        let len = entries().take(self.most).count();
        out.array(len);
        for entry in entries().take(len) {
            write(entry, out);
        }
    }
}
