//! Keys in forms that other servers know, and what of them is dead: for who writes what a log holds
//! for another server.

use tidewheel_collections::{Hash, Set, ZSet};
use tidewheel_store::{Slot, Value};

use crate::dump;
use crate::gate::Exclusive;
use crate::keyspace::Keyspace;
use crate::time::{Now, Time};
use crate::value::collection::view;
use crate::value::{self, Entries, Object};

/// Entries of a shard that are visited at once.
const VISITED: usize = 64;

/// A key with its value. Deadlines are wall time in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortableKey {
    /// The name of its type, as TYPE says it.
    pub type_name: &'static str,
    /// The payload for RESTORE, which servers from Redis 7.0 on read. It has all members, and none
    /// of their deadlines.
    pub payload: Vec<u8>,
    /// The key's own deadline.
    pub wall_ms: Option<i64>,
    /// The members that have deadlines.
    pub deadlines: Vec<(Box<[u8]>, i64)>,
}

/// What is dead of a key, and was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dead {
    /// All of it.
    Key,
    /// These members.
    Members(Vec<Box<[u8]>>),
}

/// A key that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookedAt<'a> {
    /// Its database.
    pub db: u32,
    /// The key.
    pub key: &'a [u8],
    /// The name of its type, as TYPE says it.
    pub type_name: &'static str,
    /// True if it is dead, or members of it may be.
    pub is_due: bool,
}

impl Keyspace {
    /// A key and all that is stored of it, dead or not. `None` if nothing is.
    #[must_use]
    pub fn portable(
        &self,
        _alone: &Exclusive<'_>,
        time: Time,
        db: u32,
        key: &[u8],
    ) -> Option<PortableKey> {
        let now = Now::of(&self.timeline, time);
        self.at(db, key, |entries, slot| portable(entries, slot, &now))
    }

    /// The name of a key's type, and what is dead of it at that time. `None` if nothing is.
    #[must_use]
    pub fn dead(
        &self,
        _alone: &Exclusive<'_>,
        time: Time,
        db: u32,
        key: &[u8],
    ) -> Option<(&'static str, Dead)> {
        let now = Now::of(&self.timeline, time);
        let found = self.at(db, key, |entries, slot| {
            let dead = dead(entries, slot, &now)?;
            Some((value::type_name(entries.tag(slot)), dead))
        });
        found.flatten()
    }

    /// Visits all keys, as they are at that time. A shard is locked meanwhile.
    pub fn look_at_all(
        &self,
        _alone: &Exclusive<'_>,
        time: Time,
        visit: &mut dyn FnMut(LookedAt<'_>),
    ) {
        let now = Now::of(&self.timeline, time);
        for shard in &*self.shards {
            let hold = shard.lock();
            for db in 0..hold.databases() {
                let entries = hold.entries(db);
                let mut cursor = (!entries.is_empty()).then_some(0);
                while let Some(from) = cursor {
                    cursor = entries.scan(from, VISITED, |slot| {
                        visit(LookedAt {
                            db,
                            key: entries.key(slot),
                            type_name: value::type_name(entries.tag(slot)),
                            is_due: is_due(entries, slot, &now),
                        });
                    });
                }
            }
        }
    }

    fn at<T>(&self, db: u32, key: &[u8], look: impl FnOnce(&Entries, Slot) -> T) -> Option<T> {
        let hash = self.hash(key);
        let hold = self.shards[self.shard_of(hash)].lock();
        let entries = hold.entries(db);
        let slot = entries.find(hash, key)?;
        Some(look(entries, slot))
    }
}

fn portable(entries: &Entries, slot: Slot, now: &Now) -> PortableKey {
    let (tag, value) = entries.tagged(slot);
    let mut deadlines = Vec::new();
    each_member(tag, &value, &mut |member, deadline| {
        deadlines.extend(deadline.map(|deadline| (Box::from(member), now.wall_of(deadline))));
    });
    PortableKey {
        type_name: value::type_name(tag),
        payload: dump::of_value_without_deadlines(tag, &value, now),
        wall_ms: value::own_deadline(entries, slot).map(|own| now.wall_of(own)),
        deadlines,
    }
}

/// True if the key is dead, or a member may be.
fn is_due(entries: &Entries, slot: Slot, now: &Now) -> bool {
    let (_, deadline) = entries.tag_and_deadline(slot);
    deadline.is_some_and(|deadline| now.reached(deadline))
}

fn dead(entries: &Entries, slot: Slot, now: &Now) -> Option<Dead> {
    if !is_due(entries, slot, now) {
        return None;
    }
    if value::own_deadline(entries, slot).is_some_and(|own| now.reached(own)) {
        return Some(Dead::Key);
    }
    let (tag, value) = entries.tagged(slot);
    let (mut members, mut lives) = (Vec::new(), false);
    each_member(tag, &value, &mut |member, deadline| match deadline {
        Some(deadline) if now.reached(deadline) => members.push(Box::from(member)),
        _ => lives = true,
    });
    match lives {
        false => Some(Dead::Key),
        true => (!members.is_empty()).then_some(Dead::Members(members)),
    }
}

/// Visits the members of a collection in which some have deadlines.
fn each_member(tag: u8, value: &Value<'_, Object>, visit: &mut dyn FnMut(&[u8], Option<u64>)) {
    if !value::is_timed(tag) {
        return;
    }
    if let Some(hash) = view::<Hash>(tag, value) {
        hash.for_each(|field| visit(field.key, field.deadline));
    } else if let Some(set) = view::<Set>(tag, value) {
        set.for_each(|member| visit(member.key, member.deadline));
    } else if let Some(zset) = view::<ZSet>(tag, value) {
        zset.forward(0)
            .for_each(|scored| visit(scored.member, scored.deadline));
    }
}
