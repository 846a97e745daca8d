//! Collections as values: a packed one lies beside its key if it is short, any other is an object.
//!
//! **Deadlines.** The wheel knows one deadline of an entry. While members have deadlines (the tag
//! says so), that is the earlier of two: the key's own deadline, and its members' earliest. The
//! key's own is then kept with the value: in eight bytes in front of the packed ones, or in
//! [`Owned`].

use tidewheel_collections::{
    Hash, HashRef, List, ListRef, Packed, PackedList, PackedListRef, PackedRef, Set, SetForm,
    SetRef, Stream, ZSet, ZSetRef,
};
use tidewheel_store::{Progress, Seen, Slot, Value};

use crate::error::CommandError;
use crate::events::NotifyClass;
use crate::time::Now;
use crate::value::{
    self, Entries, Object, TAG_HASH, TAG_HASH_TIMED, TAG_LIST, TAG_SET, TAG_SET_TIMED, TAG_STREAM,
    TAG_ZSET, TAG_ZSET_TIMED,
};

/// A collection outside of its key's block.
#[derive(Debug)]
pub(crate) struct Owned<C> {
    /// The key's own deadline, while members have deadlines.
    pub(crate) own_deadline: Option<u64>,
    pub(crate) of: C,
}

/// Bytes in front of a packed collection whose members have deadlines: the key's own deadline.
pub(crate) const OWN_DEADLINE_BYTES: usize = 8;

/// The number that means no deadline there.
const NO_DEADLINE: u64 = u64::MAX;

/// The bytes in front that stand for a deadline.
pub(crate) fn prefix(own_deadline: Option<u64>) -> [u8; OWN_DEADLINE_BYTES] {
    own_deadline.unwrap_or(NO_DEADLINE).to_le_bytes()
}

/// The key's own deadline, and the packed bytes behind it.
pub(crate) fn split(bytes: &[u8]) -> (Option<u64>, &[u8]) {
    match bytes.split_first_chunk() {
        Some((own, packed)) => {
            let own = u64::from_le_bytes(*own);
            ((own != NO_DEADLINE).then_some(own), packed)
        }
        None => (None, &[]),
    }
}

/// One type of collection.
pub(crate) trait Collection: Sized {
    /// The tag while no member has a deadline.
    const TAG: u8;
    /// The tag while one has.
    const TIMED_TAG: u8;
    /// The class of its events.
    const CLASS: NotifyClass;
    /// The event of members whose deadline was reached.
    const EXPIRED: &'static str;
    /// A view for reading.
    type Ref<'a>: Copy;

    /// Reads packed bytes.
    fn read(bytes: &[u8]) -> Self::Ref<'_>;
    fn view(&self) -> Self::Ref<'_>;
    /// An empty collection, which reuses `memory`.
    fn empty(memory: Vec<u8>) -> Self;
    /// A collection from its packed bytes.
    fn unpack(bytes: Vec<u8>) -> Self;
    /// The packed bytes, or itself if it is large.
    fn pack(self) -> Result<Vec<u8>, Self>;
    fn len(&self) -> usize;
    /// True if its key leaves: nothing is in it.
    fn is_gone(&self) -> bool {
        self.len() == 0
    }
    /// Gives back memory that members have left behind, in about `budget` steps.
    fn maintain(&mut self, budget: u32);
    fn heap_bytes(&self) -> usize;
    fn next_deadline(&self) -> Option<u64>;
    /// True if the deadlines of all members are reached. For a large collection, only if that is
    /// known at once.
    fn is_over(&self, now: u64) -> bool;
    fn is_large(&self) -> bool;
    /// Removes due members, and tells `sink` their deadlines.
    fn expire(&mut self, now: u64, budget: u32, sink: &mut dyn FnMut(u64)) -> Progress;
    fn copy(&self, now: u64) -> Self;
    fn into_object(owned: Box<Owned<Self>>) -> Object;
    fn of_object(object: &Object) -> Option<&Owned<Self>>;
    fn of_object_mut(object: &mut Object) -> Option<&mut Owned<Self>>;
}

/// True if the tag is one of the type's two.
pub(crate) fn is<C: Collection>(tag: u8) -> bool {
    tag == C::TAG || tag == C::TIMED_TAG
}

/// The type's tag while no member has a deadline.
pub(crate) fn untimed(tag: u8) -> u8 {
    match tag {
        TAG_HASH_TIMED => TAG_HASH,
        TAG_SET_TIMED => TAG_SET,
        TAG_ZSET_TIMED => TAG_ZSET,
        other => other,
    }
}

/// True if nothing of an entry is alive: its own deadline was reached, or those of all its members
/// were. A large collection whose members have different deadlines does not always know that all
/// are dead; then it counts as alive.
pub(crate) fn is_dead(entries: &Entries, slot: Slot, now: &Now) -> bool {
    let reached = |deadline: Option<u64>| deadline.is_some_and(|deadline| now.reached(deadline));
    if !reached(entries.deadline(slot)) {
        return false;
    }
    let (tag, value) = entries.tagged(slot);
    if !value::is_timed(tag) || reached(value::own_deadline(entries, slot)) {
        return true;
    }
    match value {
        Value::Inline(bytes) => PackedRef::new(split(bytes).1).is_over(now.tick),
        Value::Object(object) => object.is_over(now.tick),
    }
}

/// True if an entry's deadline was reached: the key's own, or that of one of its members.
pub(crate) fn is_due(entries: &Entries, slot: Slot, now: &Now) -> bool {
    entries
        .deadline(slot)
        .is_some_and(|deadline| now.reached(deadline))
}

/// A value's collection; `None` if it is of another type.
#[inline]
pub(crate) fn view<'a, C: Collection + 'a>(
    tag: u8,
    value: &Value<'a, Object>,
) -> Option<C::Ref<'a>> {
    if !is::<C>(tag) {
        return None;
    }
    match value {
        Value::Inline(bytes) if tag == C::TAG => Some(C::read(bytes)),
        Value::Inline(bytes) => Some(C::read(split(bytes).1)),
        Value::Object(object) => C::of_object(object).map(|owned| owned.of.view()),
    }
}

/// A key's collection.
#[inline]
pub(crate) fn read<'a, C: Collection + 'a>(
    entries: &'a Entries,
    slot: Slot,
) -> Result<C::Ref<'a>, CommandError> {
    let (tag, value) = entries.tagged(slot);
    view::<C>(tag, &value).ok_or(CommandError::WRONG_TYPE)
}

/// A key's collection, which was just looked at.
#[inline]
pub(crate) fn read_seen<'a, C: Collection + 'a>(
    entries: &'a Entries,
    seen: &Seen,
) -> Result<C::Ref<'a>, CommandError> {
    match entries.seen_bytes(seen) {
        Some(bytes) if seen.tag == C::TAG => Ok(C::read(bytes)),
        _ => read::<C>(entries, seen.slot),
    }
}

/// The name that OBJECT ENCODING replies.
pub(crate) fn encoding(entries: &Entries, slot: Slot) -> &'static str {
    let (tag, value) = entries.tagged(slot);
    match &value {
        _ if !is_collection(tag) => value::encoding(tag, value::bytes(&value)),
        _ if is::<Set>(tag) => match read::<Set>(entries, slot).map(SetRef::form) {
            Ok(SetForm::Integers) => "intset",
            Ok(SetForm::Large) => "hashtable",
            _ => "listpack",
        },
        Value::Object(Object::Hash(hash)) if matches!(hash.of, Hash::Large(_)) => "hashtable",
        Value::Object(Object::ZSet(zset)) if matches!(zset.of, ZSet::Large(_)) => "skiplist",
        Value::Object(Object::List(list)) if matches!(list.of, List::Large(_)) => "quicklist",
        Value::Object(Object::Stream(_)) => "stream",
        _ => "listpack",
    }
}

fn is_collection(tag: u8) -> bool {
    tag >= TAG_HASH
}

macro_rules! as_object {
    ($variant:ident) => {
        fn into_object(owned: Box<Owned<Self>>) -> Object {
            Object::$variant(owned)
        }

        fn of_object(object: &Object) -> Option<&Owned<Self>> {
            match object {
                Object::$variant(owned) => Some(owned),
                _ => None,
            }
        }

        fn of_object_mut(object: &mut Object) -> Option<&mut Owned<Self>> {
            match object {
                Object::$variant(owned) => Some(owned),
                _ => None,
            }
        }
    };
}

/// A type whose packed form is a `Packed`.
macro_rules! packed_collection {
    ($type:ident, $view:ident, $tags:expr, $class:expr, $expired:literal) => {
        impl Collection for $type {
            const TAG: u8 = $tags.0;
            const TIMED_TAG: u8 = $tags.1;
            const CLASS: NotifyClass = $class;
            const EXPIRED: &'static str = $expired;
            type Ref<'a> = $view<'a>;

            fn read(bytes: &[u8]) -> $view<'_> {
                $view::Packed(PackedRef::new(bytes))
            }

            fn view(&self) -> $view<'_> {
                self.get()
            }

            fn empty(memory: Vec<u8>) -> Self {
                Self::reuse(memory)
            }

            fn unpack(bytes: Vec<u8>) -> Self {
                Self::Packed(Packed::from_bytes(bytes))
            }

            fn pack(self) -> Result<Vec<u8>, Self> {
                match self {
                    Self::Packed(packed) => Ok(packed.into_bytes()),
                    large @ Self::Large(_) => Err(large),
                }
            }

            fn len(&self) -> usize {
                self.get().len()
            }

            fn maintain(&mut self, budget: u32) {
                self.maintain(budget);
            }

            fn heap_bytes(&self) -> usize {
                self.bytes()
            }

            fn next_deadline(&self) -> Option<u64> {
                self.get().next_deadline()
            }

            fn is_over(&self, now: u64) -> bool {
                self.get().is_over(now)
            }

            fn is_large(&self) -> bool {
                matches!(self, Self::Large(_))
            }

            fn expire(&mut self, now: u64, budget: u32, sink: &mut dyn FnMut(u64)) -> Progress {
                self.expire(now, budget, |member| sink(member.deadline.unwrap_or(now)))
            }

            fn copy(&self, now: u64) -> Self {
                self.get().copy(now)
            }

            as_object!($type);
        }
    };
}

packed_collection!(
    Hash,
    HashRef,
    (TAG_HASH, TAG_HASH_TIMED),
    NotifyClass::Hash,
    "hexpired"
);
packed_collection!(
    Set,
    SetRef,
    (TAG_SET, TAG_SET_TIMED),
    NotifyClass::Set,
    "sexpired"
);

packed_collection!(
    ZSet,
    ZSetRef,
    (TAG_ZSET, TAG_ZSET_TIMED),
    NotifyClass::SortedSet,
    "zexpired"
);

impl Collection for List {
    const TAG: u8 = TAG_LIST;
    /// Elements have no deadlines.
    const TIMED_TAG: u8 = TAG_LIST;
    const CLASS: NotifyClass = NotifyClass::List;
    const EXPIRED: &'static str = "";
    type Ref<'a> = ListRef<'a>;

    fn read(bytes: &[u8]) -> ListRef<'_> {
        ListRef::Packed(PackedListRef::new(bytes))
    }

    fn view(&self) -> ListRef<'_> {
        self.get()
    }

    fn empty(memory: Vec<u8>) -> Self {
        Self::Packed(PackedList::reuse(memory))
    }

    fn unpack(bytes: Vec<u8>) -> Self {
        Self::Packed(PackedList::from_bytes(bytes))
    }

    fn pack(self) -> Result<Vec<u8>, Self> {
        match self {
            Self::Packed(list) => Ok(list.into_bytes()),
            large @ Self::Large(_) => Err(large),
        }
    }

    fn len(&self) -> usize {
        self.get().len()
    }

    /// A list gives its memory back by itself.
    fn maintain(&mut self, _: u32) {}

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn next_deadline(&self) -> Option<u64> {
        None
    }

    fn is_over(&self, _: u64) -> bool {
        false
    }

    fn is_large(&self) -> bool {
        matches!(self, Self::Large(_))
    }

    fn expire(&mut self, _: u64, _: u32, _: &mut dyn FnMut(u64)) -> Progress {
        Progress::default()
    }

    fn copy(&self, _: u64) -> Self {
        self.clone()
    }

    as_object!(List);
}

/// A stream is an object always.
impl Collection for Stream {
    const TAG: u8 = TAG_STREAM;
    /// Entries have no deadlines.
    const TIMED_TAG: u8 = TAG_STREAM;
    const CLASS: NotifyClass = NotifyClass::Stream;
    const EXPIRED: &'static str = "";
    type Ref<'a> = &'a Self;

    fn read(_: &[u8]) -> &Self {
        unreachable!("a stream is an object")
    }

    fn view(&self) -> &Self {
        self
    }

    fn empty(_: Vec<u8>) -> Self {
        Self::new()
    }

    fn unpack(_: Vec<u8>) -> Self {
        unreachable!("a stream is an object")
    }

    fn pack(self) -> Result<Vec<u8>, Self> {
        Err(self)
    }

    fn len(&self) -> usize {
        usize::try_from(self.log.len()).unwrap_or(usize::MAX)
    }

    /// Its last id and its groups stay when the last entry has left.
    fn is_gone(&self) -> bool {
        false
    }

    /// A stream gives its memory back by itself.
    fn maintain(&mut self, _: u32) {}

    fn heap_bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn next_deadline(&self) -> Option<u64> {
        None
    }

    fn is_over(&self, _: u64) -> bool {
        false
    }

    fn is_large(&self) -> bool {
        true
    }

    fn expire(&mut self, _: u64, _: u32, _: &mut dyn FnMut(u64)) -> Progress {
        Progress::default()
    }

    fn copy(&self, _: u64) -> Self {
        self.clone()
    }

    as_object!(Stream);
}

/// All that a value holds, in an order of its own.
#[cfg(test)]
pub(crate) fn content(entries: &Entries, slot: Slot) -> Vec<u8> {
    use tidewheel_collections::StreamId;

    let (tag, value) = entries.tagged(slot);
    let mut members = Vec::new();
    if is::<Hash>(tag) {
        let hash = read::<Hash>(entries, slot).expect("its type");
        hash.for_each(|entry| members.push(format!("{entry:?}")));
    } else if is::<Set>(tag) {
        let set = read::<Set>(entries, slot).expect("its type");
        set.for_each(|entry| members.push(format!("{entry:?}")));
    } else if is::<ZSet>(tag) {
        let zset = read::<ZSet>(entries, slot).expect("its type");
        members.extend(zset.forward(0).map(|member| format!("{member:?}")));
    } else if is::<List>(tag) {
        let list = read::<List>(entries, slot).expect("its type");
        return format!("{:?}", list.forward(0).collect::<Vec<_>>()).into_bytes();
    } else if is::<Stream>(tag) {
        let stream = read::<Stream>(entries, slot).expect("its type");
        let log = &stream.log;
        let entries = log.range(StreamId::MIN, StreamId::MAX);
        let entries =
            entries.map(|entry| format!("{} {:?}", entry.id, entry.fields.collect::<Vec<_>>()));
        let mut all: Vec<_> = entries.collect();
        let (deleted, added) = (log.max_deleted_id(), log.entries_added());
        all.push(format!("{} {deleted} {added}", log.last_id()));
        for group in stream.groups.iter() {
            all.push(format!(
                "{:?} {} {:?}",
                group.name(),
                group.last,
                group.entries_read
            ));
            all.push(format!(
                "{:?}",
                group.pending_from(StreamId::MIN).collect::<Vec<_>>()
            ));
            // The times at which consumers came are no content.
            let names = group
                .consumers()
                .map(|consumer| format!("{:?}", consumer.name()));
            all.extend(names);
        }
        return all.concat().into_bytes();
    } else {
        return value::bytes(&value).to_vec();
    }
    members.sort_unstable();
    members.concat().into_bytes()
}
