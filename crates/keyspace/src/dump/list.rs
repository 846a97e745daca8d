//! Lists.

use tidewheel_collections::{List, ListRef};

use super::packed::Elements;
use super::packed::listpack::{Builder, Listpack};
use super::packed::ziplist::Ziplist;
use super::reader::PayloadReader;
use super::writer::Writer;
use super::{Malformed, ReadParameters, few, kind};

/// A node of a list that is one long element.
const PLAIN: u64 = 1;
/// A node that is a listpack.
const PACKED: u64 = 2;

/// A node that is written has about this many bytes at most.
const NODE_MAX: usize = 8 << 10;

pub(super) fn read(
    kind: u8,
    reader: &mut PayloadReader<'_>,
    setting: &ReadParameters<'_>,
) -> Result<List, Malformed> {
    let mut list = List::new();
    match kind {
        kind::LIST => {
            for _ in 0..setting.count(reader, 1)? {
                list.push_back(&reader.string()?, &setting.list);
            }
        }
        kind::LIST_ZIPLIST => push_all(&mut list, Ziplist::new(&reader.string()?)?, setting)?,
        kind::LIST_QUICKLIST => {
            for _ in 0..setting.count(reader, 1)? {
                push_all(&mut list, Ziplist::new(&reader.string()?)?, setting)?;
            }
        }
        _ => {
            for _ in 0..setting.count(reader, 2)? {
                let form = reader.number()?;
                let node = reader.string()?;
                match form {
                    PLAIN => list.push_back(&node, &setting.list),
                    PACKED => push_all(&mut list, Listpack::new(&node)?, setting)?,
                    _ => return Err(Malformed),
                }
            }
        }
    }
    list.tighten();
    if list.get().is_empty() && !setting.may_be_empty {
        Err(Malformed)
    } else {
        Ok(list)
    }
}

fn push_all<'e>(
    list: &mut List,
    elements: impl Elements<'e>,
    setting: &ReadParameters<'_>,
) -> Result<(), Malformed> {
    let mut memory = itoa::Buffer::new();
    for element in elements {
        list.push_back(element?.text(&mut memory), &setting.list);
    }
    Ok(())
}

/// Bytes that the nodes have.
pub(super) fn measure(kind: u8, mut reader: PayloadReader<'_>) -> usize {
    let mut bytes = 0_usize;
    for _ in 0..few(&mut reader, 1).unwrap_or(0) {
        if kind == kind::LIST_QUICKLIST_2 && reader.number().is_err() {
            break;
        }
        match reader.string_len() {
            Ok(len) => bytes = bytes.saturating_add(len),
            Err(Malformed) => break,
        }
    }
    bytes
}

/// Writes a list.
pub(super) fn write(list: ListRef<'_>, writer: &mut Writer) {
    writer.reserve(list.bytes());
    writer.kind(kind::LIST_QUICKLIST_2);
    let number_at = writer.number_later();
    let (mut nodes, mut node) = (0, Builder::new());
    for element in list.forward(0) {
        if !node.is_empty() && node.len() + element.len() > NODE_MAX {
            nodes += flush(&mut node, writer);
        }
        if element.len() > NODE_MAX {
            nodes += 1;
            writer.number(PLAIN);
            writer.string(element);
        } else {
            node.push(element);
        }
    }
    nodes += flush(&mut node, writer);
    writer.number_at(number_at, nodes);
}

/// Writes a node, if there is something in it, and begins another one. Returns how many it has
/// written.
fn flush(node: &mut Builder, writer: &mut Writer) -> u32 {
    let full = std::mem::replace(node, Builder::new());
    if full.is_empty() {
        return 0;
    }
    writer.number(PACKED);
    writer.string(&full.finish());
    1
}
