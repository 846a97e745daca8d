//! One shard of expiring data. (Interim: a plain map behind the final interface.)
use std::collections::{BTreeSet, HashMap};

/// Where an entry lives. Valid until the next call that takes `&mut Store`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot(u32);

/// A stored value: bytes beside the key, or an object of the caller's that lives outside the block.
#[derive(Debug)]
pub enum Value<'a, O> {
    /// Bytes stored beside the key.
    Inline(&'a [u8]),
    /// The caller's object.
    Object(&'a O),
}

/// A value to store.
#[derive(Debug)]
pub enum NewValue<'a, O> {
    /// At most [`INLINE_MAX`] bytes, copied beside the key.
    Inline(&'a [u8]),
    /// An object, kept outside the block.
    Object(O),
}

/// The most value bytes that are kept beside the key.
pub const INLINE_MAX: usize = 2048;

/// What one call of [`Store::expire`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries removed.
    pub fired: u32,
    /// Timer records moved.
    pub moved: u32,
    /// Whether work that was due remains: call again.
    pub backlog: bool,
    /// Lower bound of the earliest deadline left; `None` when nothing has one.
    pub next_deadline: Option<u64>,
}

/// An entry that its deadline removed.
#[derive(Debug)]
pub struct Expired<'a, O> {
    /// Its key.
    pub key: &'a [u8],
    /// Its deadline, in ticks (milliseconds).
    pub deadline: u64,
    /// The caller's tag.
    pub tag: u8,
    /// Its object, to be dropped where the caller pleases.
    pub object: Option<O>,
}

#[derive(Debug)]
struct Entry<O> {
    hash: u64,
    key: Vec<u8>,
    tag: u8,
    access: u32,
    value: NewOwned<O>,
    deadline: Option<u64>,
}
#[derive(Debug)]
enum NewOwned<O> {
    Inline(Vec<u8>),
    Object(O),
}

/// One shard: what lives, how to find it, when it dies.
#[derive(Debug)]
pub struct Store<O> {
    slots: Vec<Option<Entry<O>>>,
    free: Vec<u32>,
    map: HashMap<Vec<u8>, u32>,
    due: BTreeSet<(u64, u32)>,
}

impl<O> Default for Store<O> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), map: HashMap::new(), due: BTreeSet::new() }
    }
}

impl<O> Store<O> {
    /// An empty store. Allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }
    /// Entries stored, dead ones that are not yet removed included.
    pub fn len(&self) -> usize {
        self.map.len()
    }
    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
    /// Entries that have a deadline.
    pub fn timed(&self) -> usize {
        self.due.len()
    }
    /// Bytes held: pages, index, wheel. Objects are the caller's to count.
    pub fn bytes(&self) -> usize {
        self.map.len() * 100
    }
    /// Finds a key, dead or alive. `hash` must be the same function of the key in every call.
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<Slot> {
        let _ = hash;
        self.map.get(key).map(|&i| Slot(i))
    }
    fn e(&self, s: Slot) -> &Entry<O> {
        self.slots[s.0 as usize].as_ref().expect("stale slot")
    }
    fn em(&mut self, s: Slot) -> &mut Entry<O> {
        self.slots[s.0 as usize].as_mut().expect("stale slot")
    }
    /// The entry's key.
    pub fn key(&self, slot: Slot) -> &[u8] {
        &self.e(slot).key
    }
    /// The entry's value.
    pub fn value(&self, slot: Slot) -> Value<'_, O> {
        match &self.e(slot).value {
            NewOwned::Inline(b) => Value::Inline(b),
            NewOwned::Object(o) => Value::Object(o),
        }
    }
    /// The entry's inline bytes for change in place (the length stays); `None` for an object.
    pub fn inline_mut(&mut self, slot: Slot) -> Option<&mut [u8]> {
        match &mut self.em(slot).value {
            NewOwned::Inline(b) => Some(b),
            NewOwned::Object(_) => None,
        }
    }
    /// The entry's object for change in place; `None` for inline bytes.
    pub fn object_mut(&mut self, slot: Slot) -> Option<&mut O> {
        match &mut self.em(slot).value {
            NewOwned::Inline(_) => None,
            NewOwned::Object(o) => Some(o),
        }
    }
    /// The caller's tag (0–15).
    pub fn tag(&self, slot: Slot) -> u8 {
        self.e(slot).tag
    }
    /// The entry's deadline in ticks (ms); `None` when it has none.
    pub fn deadline(&self, slot: Slot) -> Option<u64> {
        self.e(slot).deadline
    }
    /// The caller's 24 bits of access history.
    pub fn access(&self, slot: Slot) -> u32 {
        self.e(slot).access
    }
    /// Sets the 24 bits of access history.
    pub fn set_access(&mut self, slot: Slot, access: u32) {
        self.em(slot).access = access & 0xff_ffff;
    }
    /// Adds a key that [`find`](Self::find) does not find.
    pub fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        tag: u8,
        value: NewValue<'_, O>,
        deadline: Option<u64>,
        now: u64,
    ) -> Slot {
        let _ = now;
        let e = Entry {
            hash,
            key: key.to_vec(),
            tag,
            access: 0,
            value: match value {
                NewValue::Inline(b) => NewOwned::Inline(b.to_vec()),
                NewValue::Object(o) => NewOwned::Object(o),
            },
            deadline,
        };
        let i = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[i as usize] = Some(e);
        self.map.insert(key.to_vec(), i);
        if let Some(d) = deadline {
            self.due.insert((d, i));
        }
        Slot(i)
    }
    /// Replaces tag, value and deadline; keeps key and access history. The entry may move: use the
    /// slot that comes back. Returns the old object, if there was one.
    pub fn replace(
        &mut self,
        slot: Slot,
        tag: u8,
        value: NewValue<'_, O>,
        deadline: Option<u64>,
        now: u64,
    ) -> (Slot, Option<O>) {
        let slot = self.set_deadline(slot, deadline, now);
        let e = self.em(slot);
        e.tag = tag;
        let new = match value {
            NewValue::Inline(b) => NewOwned::Inline(b.to_vec()),
            NewValue::Object(o) => NewOwned::Object(o),
        };
        let old = match std::mem::replace(&mut e.value, new) {
            NewOwned::Inline(_) => None,
            NewOwned::Object(o) => Some(o),
        };
        (slot, old)
    }
    /// Gives the entry a deadline, moves it, or takes it away. The entry may move.
    pub fn set_deadline(&mut self, slot: Slot, deadline: Option<u64>, now: u64) -> Slot {
        let _ = now;
        if let Some(d) = self.e(slot).deadline {
            self.due.remove(&(d, slot.0));
        }
        self.em(slot).deadline = deadline;
        if let Some(d) = deadline {
            self.due.insert((d, slot.0));
        }
        slot
    }
    /// Removes an entry; its object, if it had one, is the caller's to drop.
    pub fn remove(&mut self, slot: Slot) -> Option<O> {
        let e = self.slots[slot.0 as usize].take().expect("stale slot");
        self.map.remove(&e.key);
        if let Some(d) = e.deadline {
            self.due.remove(&(d, slot.0));
        }
        self.free.push(slot.0);
        match e.value {
            NewOwned::Inline(_) => None,
            NewOwned::Object(o) => Some(o),
        }
    }
    /// Removes what is due at `now`, at most about `budget` units of work, telling `sink` of each.
    pub fn expire(
        &mut self,
        now: u64,
        budget: u32,
        mut sink: impl FnMut(Expired<'_, O>),
    ) -> Progress {
        let mut p = Progress::default();
        while let Some(&(d, i)) = self.due.first() {
            if d > now {
                break;
            }
            if p.fired == budget {
                p.backlog = true;
                break;
            }
            let key = self.e(Slot(i)).key.clone();
            let tag = self.e(Slot(i)).tag;
            let object = self.remove(Slot(i));
            sink(Expired { key: &key, deadline: d, tag, object });
            p.fired += 1;
        }
        p.next_deadline = self.next_deadline();
        p
    }
    /// A lower bound of the earliest deadline, never later than it.
    pub fn next_deadline(&self) -> Option<u64> {
        self.due.first().map(|d| d.0)
    }
    /// Adds to `buckets[i]` the entries whose registered deadline is `[2^(i-1), 2^i)` ticks after
    /// `now` (`i = 0`: due already).
    pub fn forecast(&self, now: u64, buckets: &mut [u64; 65]) {
        for &(d, _) in &self.due {
            let i = 64 - d.saturating_sub(now).leading_zeros();
            buckets[i as usize] += 1;
        }
    }
    /// Visits entries in hash order from `cursor` on, at least `count` unless the end is met; every
    /// entry that is present from the first call to the last is visited exactly once. Returns the
    /// cursor to go on from; `None` at the end. Cost: the entries visited + O(log n).
    pub fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(Slot)) -> Option<u32> {
        let mut all: Vec<(u32, u32)> = self
            .map
            .values()
            .map(|&i| ((self.e(Slot(i)).hash as u32), i))
            .filter(|x| x.0 >= cursor)
            .collect();
        all.sort_unstable();
        let mut last = None;
        for (n, (h, i)) in all.into_iter().enumerate() {
            if n >= count && last != Some(h) {
                return Some(h);
            }
            last = Some(h);
            visit(Slot(i));
        }
        None
    }
    /// An entry near a random place; `None` when the store is empty. `random` is 64 random bits.
    pub fn sample(&self, random: u64) -> Option<Slot> {
        let n = self.map.len();
        if n == 0 {
            return None;
        }
        self.map.values().nth(random as usize % n).map(|&i| Slot(i))
    }
    /// Tidies: moves entries off sparse pages, drops stale timer records, at most about `budget`
    /// units of work. Returns whether more is worth doing.
    pub fn maintain(&mut self, budget: u32) -> bool {
        let _ = budget;
        false
    }
}
