//! Copies of entries, one after another, as they lie in memory.
//!
//! ```text
//! tag (1, its highest bit: the value is an object) · access (4) · own deadline (8, all ones: none)
//! key length (4) · value length (4) · key · value
//! ```
//!
//! Objects lie beside the bytes, in the same order. The bytes of strings, lists and streams are
//! shared with their keys, other collections are copied.

use tidewheel_store::{Slot, Value};

use super::output::Head;
use crate::value::{Entries, Object};

const HEAD: usize = 21;
const OBJECT: u8 = 0x80;
const NO_DEADLINE: u64 = u64::MAX;

/// Copies of entries.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    objects: Vec<Object>,
    object_bytes: usize,
}

impl Batch {
    /// Copies an entry. `counts`: what is shared counts too.
    pub(super) fn push(&mut self, entries: &mut Entries, slot: Slot, tick: u64, counts: bool) {
        let head = Head::of(entries, slot);
        let mark = match entries.object_mut(slot) {
            None => head.tag,
            Some(object) => {
                let shares = matches!(
                    object,
                    Object::Bytes(_) | Object::List(_) | Object::Stream(_)
                );
                if counts || !shares {
                    self.object_bytes += object.bytes();
                }
                self.objects.push(object.share(tick));
                head.tag | OBJECT
            }
        };
        let (key, bytes) = match entries.value(slot) {
            Value::Inline(bytes) => (entries.key(slot), bytes),
            Value::Object(_) => (entries.key(slot), &[][..]),
        };
        self.bytes.push(mark);
        self.bytes.extend_from_slice(&head.access.to_le_bytes());
        let deadline = head.deadline.unwrap_or(NO_DEADLINE);
        self.bytes.extend_from_slice(&deadline.to_le_bytes());
        let lengths = [key.len() as u32, bytes.len() as u32];
        for length in lengths {
            self.bytes.extend_from_slice(&length.to_le_bytes());
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.object_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Shows each entry to `show`, until it fails.
    pub(super) fn for_each<E>(
        &self,
        mut show: impl FnMut(Head, &[u8], &Value<'_, Object>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut rest, mut objects) = (&self.bytes[..], self.objects.iter());
        while let Some((head, behind)) = rest.split_first_chunk::<HEAD>() {
            let number = |at: usize| {
                let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
                u32::from_le_bytes(bytes)
            };
            let deadline = u64::from(number(9)) << 32 | u64::from(number(5));
            let (key, behind) = behind.split_at(number(13) as usize);
            let (bytes, behind) = behind.split_at(number(17) as usize);
            let value = match head[0] & OBJECT {
                0 => Value::Inline(bytes),
                _ => match objects.next() {
                    Some(object) => Value::Object(object),
                    None => unreachable!("each mark has its object"),
                },
            };
            let of = Head {
                tag: head[0] & !OBJECT,
                access: number(1),
                deadline: (deadline != NO_DEADLINE).then_some(deadline),
            };
            show(of, key, &value)?;
            rest = behind;
        }
        Ok(())
    }
}
