//! Consumer groups: who was given which entry, and has not acknowledged it.

use super::id::StreamId;
use super::id_map::IdMap;
use super::log::Log;

/// An entry that was given to a consumer and is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// The number of its consumer.
    pub consumer: u32,
    /// The wall time in milliseconds at which it was given last.
    pub delivered_ms: i64,
    /// The number of times that it was given.
    pub deliveries: u64,
}

/// One who reads.
#[derive(Debug, Clone)]
pub struct Consumer {
    name: Box<[u8]>,
    /// The wall time of its last attempt to read, in milliseconds.
    pub seen_ms: i64,
    /// The wall time at which it was last given something.
    pub active_ms: Option<i64>,
    pending: IdMap<()>,
}

impl Consumer {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The number of entries that it has not acknowledged.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The ids of these entries, from one on.
    pub fn pending_from(&self, start: StreamId) -> impl Iterator<Item = StreamId> {
        self.pending.from(start).map(|(id, ())| id)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len() + self.pending.heap_bytes()
    }
}

/// A group. Each entry is given to one of its consumers.
#[derive(Debug, Clone)]
pub struct Group {
    name: Box<[u8]>,
    /// The highest id that was given.
    pub last: StreamId,
    /// The number of entries that were read, as far as it is known.
    pub entries_read: Option<u64>,
    pending: IdMap<Pending>,
    /// Consumers, each at its number.
    consumers: Vec<Option<Box<Consumer>>>,
    /// The numbers of consumers, in the order of their names.
    by_name: Vec<u32>,
    /// Bytes of all consumers.
    held: usize,
}

impl Group {
    pub(super) fn new(name: &[u8], last: StreamId, entries_read: Option<u64>) -> Self {
        Self {
            name: name.into(),
            last,
            entries_read,
            pending: IdMap::default(),
            consumers: Vec::new(),
            by_name: Vec::new(),
            held: 0,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.name.len()
            + self.pending.heap_bytes()
            + self.consumers.capacity() * size_of::<Option<Box<Consumer>>>()
            + self.by_name.capacity() * size_of::<u32>()
            + self.held
    }

    /// The number of entries that are not acknowledged.
    #[must_use]
    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// The lowest and the highest id of these.
    #[must_use]
    pub fn pending_ends(&self) -> Option<(StreamId, StreamId)> {
        let (first, _) = self.pending.from(StreamId::MIN).next()?;
        Some((first, self.pending.last()?))
    }

    /// The note of an entry that is not acknowledged.
    #[must_use]
    pub fn pending(&self, id: StreamId) -> Option<Pending> {
        self.pending.get(id)
    }

    /// Entries that are not acknowledged, from an id on.
    pub fn pending_from(&self, start: StreamId) -> impl Iterator<Item = (StreamId, Pending)> {
        self.pending.from(start)
    }

    /// Those of these entries that are not acknowledged. The ids are in order.
    pub(super) fn pending_among(&self, ids: &[StreamId]) -> Vec<StreamId> {
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
            return Vec::new();
        };
        let between = || {
            let from = self.pending.from(*first).map(|(id, _)| id);
            from.take_while(|id| id <= last)
        };
        if between().next().is_none() {
            return Vec::new();
        }
        if ids.len() < self.pending.len() {
            let is_there = |id: &StreamId| self.pending.get(*id).is_some();
            return ids.iter().copied().filter(is_there).collect();
        }
        between()
            .filter(|id| ids.binary_search(id).is_ok())
            .collect()
    }

    /// Consumers in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.by_name.iter().map(|number| self.consumer(*number))
    }

    /// The consumer with a number.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn consumer(&self, number: u32) -> &Consumer {
        match &self.consumers[number as usize] {
            Some(consumer) => consumer,
            None => unreachable!("a number is a consumer's"),
        }
    }

    /// The consumer with a number, for a change of its times.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn consumer_mut(&mut self, number: u32) -> &mut Consumer {
        match &mut self.consumers[number as usize] {
            Some(consumer) => consumer,
            None => unreachable!("a number is a consumer's"),
        }
    }

    fn place_of(&self, name: &[u8]) -> Result<usize, usize> {
        self.by_name
            .binary_search_by(|number| self.consumer(*number).name().cmp(name))
    }

    /// The number of the consumer of that name.
    #[must_use]
    pub fn find_consumer(&self, name: &[u8]) -> Option<u32> {
        self.place_of(name).ok().map(|place| self.by_name[place])
    }

    /// The number of the consumer of that name; a new one is seen now. Returns whether it is new.
    pub fn consumer_or_new(&mut self, name: &[u8], now_ms: i64) -> (u32, bool) {
        let place = match self.place_of(name) {
            Ok(place) => return (self.by_name[place], false),
            Err(place) => place,
        };
        let has_free = self.by_name.len() < self.consumers.len();
        let mut numbers = self.consumers.iter();
        let free = has_free
            .then(|| numbers.position(Option::is_none))
            .flatten();
        let number = free.unwrap_or(self.consumers.len());
        let consumer = Box::new(Consumer {
            name: name.into(),
            seen_ms: now_ms,
            active_ms: None,
            pending: IdMap::default(),
        });
        self.held += consumer.bytes();
        match free {
            Some(number) => self.consumers[number] = Some(consumer),
            None => self.consumers.push(Some(consumer)),
        }
        self.by_name.insert(place, number as u32);
        (number as u32, true)
    }

    /// Removes a consumer and forgets what it has not acknowledged. Returns how many entries that
    /// were; `None` if there is no such consumer.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let place = self.place_of(name).ok()?;
        let number = self.by_name.remove(place);
        let consumer = self.consumers[number as usize].take()?;
        self.held -= consumer.bytes();
        for id in consumer.pending_from(StreamId::MIN) {
            self.pending.remove(id);
        }
        Some(consumer.pending())
    }

    fn change_consumer(&mut self, number: u32, change: impl FnOnce(&mut Consumer)) {
        let consumer = self.consumer_mut(number);
        let before = consumer.bytes();
        change(consumer);
        let after = consumer.bytes();
        self.held = self.held + after - before;
    }

    /// Gives an entry to a consumer, whoever had it before.
    pub fn assign(&mut self, id: StreamId, to: Pending) {
        let before = self.pending.insert(id, to);
        if before.is_some_and(|before| before.consumer == to.consumer) {
            return;
        }
        if let Some(before) = before {
            self.change_consumer(before.consumer, |consumer| {
                consumer.pending.remove(id);
            });
        }
        self.change_consumer(to.consumer, |consumer| {
            consumer.pending.insert(id, ());
        });
    }

    /// Says when and how often an entry was given to the consumer that has it.
    pub fn redeliver(&mut self, id: StreamId, delivered_ms: i64, deliveries: u64) {
        if let Some(pending) = self.pending.get_mut(id) {
            pending.delivered_ms = delivered_ms;
            pending.deliveries = deliveries;
        }
    }

    /// Acknowledges an entry. Returns whether it was given to somebody.
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(id) else {
            return false;
        };
        self.change_consumer(pending.consumer, |consumer| {
            consumer.pending.remove(id);
        });
        true
    }

    /// An entry behind the last one is given to somebody: the group's place moves on.
    #[inline]
    pub fn advance(&mut self, log: &Log, id: StreamId) {
        if id <= self.last {
            return;
        }
        self.entries_read = match self.entries_read {
            Some(read) if self.last >= log.first_id() && !log.has_deleted_from(self.last) => {
                Some(read + 1)
            }
            read if log.entries_added() == 0 => read,
            _ => log.read_until(id),
        };
        self.last = id;
    }

    /// The number of entries that are still to be given; `None` if nobody knows.
    #[must_use]
    pub fn lag(&self, log: &Log) -> Option<u64> {
        if log.entries_added() == 0 || log.is_empty() {
            return Some(0);
        }
        if self.last < log.first_id() && log.max_deleted_id() < log.first_id() {
            return Some(log.len());
        }
        let read = match self.entries_read {
            Some(read) if !log.has_deleted_from(self.last) => Some(read),
            _ => log.read_until(self.last),
        };
        read.map(|read| log.entries_added().wrapping_sub(read))
    }

    pub(super) fn validate(&self) {
        self.pending.validate();
        assert_eq!(
            self.by_name.len(),
            self.consumers.iter().flatten().count(),
            "consumers"
        );
        assert!(
            self.consumers().is_sorted_by(|a, b| a.name() < b.name()),
            "order of names"
        );
        let (mut held, mut pending) = (0, 0);
        for number in &self.by_name {
            let consumer = self.consumer(*number);
            consumer.pending.validate();
            held += consumer.bytes();
            pending += consumer.pending();
            let owns = |id| self.pending(id).is_some_and(|one| one.consumer == *number);
            assert!(
                consumer.pending_from(StreamId::MIN).all(owns),
                "a consumer's entries"
            );
        }
        assert_eq!(held, self.held, "bytes of consumers");
        assert_eq!(pending, self.pending.len(), "entries of consumers");
    }
}

impl Log {
    /// True if an entry may have been deleted from this id on, other than by trimming.
    fn has_deleted_from(&self, start: StreamId) -> bool {
        self.len > 0
            && self.max_deleted != StreamId::MIN
            && self.first <= self.max_deleted
            && start <= self.max_deleted
    }

    /// The number of entries that there have been up to an id, if it is known.
    #[must_use]
    pub fn read_until(&self, id: StreamId) -> Option<u64> {
        if self.added == 0 || self.len == 0 && id <= self.last {
            return Some(self.added);
        }
        if id != StreamId::MIN && id < self.max_deleted {
            return None;
        }
        if id >= self.last {
            return (id == self.last).then_some(self.added);
        }
        if self.max_deleted != StreamId::MIN && self.max_deleted >= self.first {
            return None;
        }
        match id.cmp(&self.first) {
            std::cmp::Ordering::Less => Some(self.added.wrapping_sub(self.len)),
            std::cmp::Ordering::Equal => Some(self.added.wrapping_sub(self.len).wrapping_add(1)),
            std::cmp::Ordering::Greater => None,
        }
    }
}
