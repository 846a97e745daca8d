//! Half-open connections, by slot.

use mio::net::TcpStream;

use crate::config::Address;
use crate::net::tls::stream::TlsStream;

/// A connection whose handshake is not over.
#[derive(Debug)]
pub(super) struct HalfOpen {
    pub(super) stream: Box<TlsStream<TcpStream>>,
    pub(super) peer: Address,
    pub(super) local: Address,
    /// The tick at which it was accepted.
    pub(super) since: u64,
    /// The tick since which the peer's next message has not been whole.
    pub(super) awaited_since: u64,
    /// True if its hello was answered: what is awaited are its last messages.
    pub(super) is_answered: bool,
}

/// All of one thread.
#[derive(Debug, Default)]
pub(super) struct HalfOpens {
    slots: Vec<Option<HalfOpen>>,
    free: Vec<usize>,
    len: usize,
    /// The number that others know.
    pub(super) published: usize,
}

impl HalfOpens {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn next_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        })
    }

    /// Gives a slot back that was not used after all.
    pub(super) fn unused(&mut self, slot: usize) {
        self.free.push(slot);
    }

    pub(super) fn put(&mut self, slot: usize, half: HalfOpen) {
        self.slots[slot] = Some(half);
        self.len += 1;
    }

    pub(super) fn get(&mut self, slot: usize) -> Option<&mut HalfOpen> {
        self.slots.get_mut(slot)?.as_mut()
    }

    pub(super) fn take(&mut self, slot: usize) -> Option<HalfOpen> {
        let half = self.slots.get_mut(slot)?.take()?;
        self.len -= 1;
        self.free.push(slot);
        Some(half)
    }

    /// Returns one that was accepted at this tick or before.
    pub(super) fn oldest(&self, tick: u64) -> Option<usize> {
        self.first_by(|half| half.since, tick)
    }

    /// Returns the one whose message has been awaited for longest, if that is since this tick or
    /// before.
    pub(super) fn longest_awaited(&self, tick: u64) -> Option<usize> {
        self.first_by(|half| half.awaited_since, tick)
    }

    /// Looks at all of them: there are not many.
    fn first_by(&self, key: impl Fn(&HalfOpen) -> u64, tick: u64) -> Option<usize> {
        let taken = self.slots.iter().enumerate();
        let keys = taken.filter_map(|(slot, half)| Some((key(half.as_ref()?), slot)));
        keys.min()
            .filter(|(key, _)| *key <= tick)
            .map(|(_, slot)| slot)
    }
}
