//! The readers of one stream: they wait for entries with greater ids, and take nothing.
//!
//! Readers without a group are in the order of the ids above which they wait. A stream whose
//! last id is 7 serves those who wait above 6 or less, and looks at no other.
//!
//! Readers in a group get each entry once, so they are served in the order in which they came, as
//! long as the group has entries that it has not delivered. Groups are in the order of the last id
//! that they have delivered, so a stream looks at no group that has delivered everything. That id
//! is a note, and may be lower than the group's own: it is corrected when it says that there is
//! something to deliver. Only a change that may lower a group's own id, or remove the group, has
//! all groups looked at anew. A reader whose group is gone is served at once: with an error.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tidewheel_collections::{Stream, StreamId};

use super::ticket::TicketState;
use super::{Ticket, Want};
use crate::value::{Entries, collection};

/// A stream, as far as its readers ask.
pub(crate) trait Source {
    /// The greatest id among its entries; `None` if it has none.
    fn last(&self) -> Option<StreamId>;
    /// The last id that a group has delivered; `None` if there is no such group.
    fn delivered(&self, group: &[u8]) -> Option<StreamId>;
}

/// The readers of one key, by the order of their tickets.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// Those without a group.
    above: BTreeMap<(StreamId, u64), Arc<Ticket>>,
    groups: HashMap<Arc<[u8]>, Group>,
    /// The groups in the order of what they have delivered.
    by_delivered: BTreeSet<(Delivered, Arc<[u8]>)>,
}

/// The last id that a group has delivered, or a lower one. `None` if there is no such group.
type Delivered = Option<StreamId>;

#[derive(Debug)]
struct Group {
    delivered: Delivered,
    tickets: BTreeMap<u64, Arc<Ticket>>,
}

impl Readers {
    pub(crate) fn add(&mut self, want: &Want, ticket: &Arc<Ticket>) {
        let ticket = Arc::clone(ticket);
        match want {
            Want::Above(id) => {
                self.above.insert((*id, ticket.number), ticket);
            }
            Want::NewFor(name) => {
                let group = self.groups.entry(Arc::clone(name)).or_insert_with(|| {
                    let delivered = Some(StreamId::default());
                    self.by_delivered.insert((delivered, Arc::clone(name)));
                    Group {
                        delivered,
                        tickets: BTreeMap::new(),
                    }
                });
                group.tickets.insert(ticket.number, ticket);
            }
        }
    }

    pub(crate) fn remove(&mut self, want: &Want, ticket: &Ticket) {
        match want {
            Want::Above(id) => {
                self.above.remove(&(*id, ticket.number));
            }
            Want::NewFor(name) => {
                let Some(group) = self.groups.get_mut(name) else {
                    return;
                };
                group.tickets.remove(&ticket.number);
                if group.tickets.is_empty() {
                    self.by_delivered
                        .remove(&(group.delivered, Arc::clone(name)));
                    self.groups.remove(name);
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.above.is_empty() && self.groups.is_empty()
    }

    /// True if some read in a group: they end when there is no such key.
    pub(crate) fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Groups may have disappeared, or have been set back.
    pub(crate) fn look_anew(&mut self, stream: Option<&impl Source>) {
        self.by_delivered.clear();
        for (name, group) in &mut self.groups {
            group.delivered = stream.and_then(|stream| stream.delivered(name));
            let place = (group.delivered, Arc::clone(name));
            self.by_delivered.insert(place);
        }
    }

    /// The next who can be served. Those before it that do not wait any more are taken out.
    pub(crate) fn next(&mut self, stream: Option<&impl Source>) -> Option<Arc<Ticket>> {
        loop {
            let (want, ticket) = self.first(stream)?;
            if ticket.is(TicketState::Waiting) {
                return Some(ticket);
            }
            self.remove(&want, &ticket);
        }
    }

    fn first(&mut self, stream: Option<&impl Source>) -> Option<(Want, Arc<Ticket>)> {
        let last = stream.and_then(Source::last);
        if let Some((&(id, _), ticket)) = self.above.first_key_value()
            && last.is_some_and(|last| id < last)
        {
            return Some((Want::Above(id), Arc::clone(ticket)));
        }
        loop {
            let (noted, name) = self.by_delivered.first()?;
            let (noted, name) = (*noted, Arc::clone(name));
            // `None` is less than any id: the group is gone, or was.
            if noted.is_some() && noted >= last {
                return None;
            }
            let delivered = stream.and_then(|stream| stream.delivered(&name));
            if delivered.is_none() || delivered < last {
                let (_, ticket) = self.groups.get(&name)?.tickets.first_key_value()?;
                return Some((Want::NewFor(name), Arc::clone(ticket)));
            }
            self.by_delivered.remove(&(noted, Arc::clone(&name)));
            if let Some(group) = self.groups.get_mut(&name) {
                group.delivered = delivered;
            }
            self.by_delivered.insert((delivered, name));
        }
    }
}

/// The stream of a key; `None` if the key has none.
pub(crate) fn stream_of<'a>(entries: &'a Entries, hash: u64, key: &[u8]) -> Option<&'a Stream> {
    let slot = entries.find(hash, key)?;
    collection::read::<Stream>(entries, slot).ok()
}

impl Source for Stream {
    fn last(&self) -> Option<StreamId> {
        let mut back = self.log.range_back(StreamId::MIN, StreamId::MAX);
        back.next().map(|entry| entry.id)
    }

    fn delivered(&self, group: &[u8]) -> Option<StreamId> {
        self.groups.get(group).map(|group| group.last)
    }
}

#[cfg(test)]
mod tests;
