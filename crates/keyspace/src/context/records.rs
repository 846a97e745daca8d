//! Records what a command has changed, before it unlocks.

use super::{Context, Key};
use crate::commands::dump;
use crate::commands::handlers::{Handler, handler};
use crate::records::{Encoder, Recorded};
use crate::rows::Command;
use crate::shard::{CHANGED, Hold};
use crate::value;

/// Commands that are recorded in place of the one that runs: their databases and words.
pub(crate) type Instead = Vec<(u32, Vec<Box<[u8]>>)>;

impl<'a> Context<'a, '_> {
    /// True if changes are recorded.
    pub(crate) fn is_recording(&self) -> bool {
        self.keyspace.shared.records.is_on()
    }

    /// Has these words recorded in place of the command, which has just changed something. Several
    /// calls record several commands, as one.
    pub(crate) fn record_instead(&mut self, words: &[&[u8]]) {
        if self.has_changed() {
            self.put_instead(self.session.db, words);
        }
    }

    /// As [`record_instead`](Self::record_instead): records the value that a key of a database has
    /// now.
    pub(crate) fn record_result(&mut self, key: Key<'_>, db: u32) {
        if self.has_changed() {
            let (payload, deadline) = self.state_of(key, db);
            self.put_instead(
                db,
                &words_of_state(key.bytes, payload.as_deref(), &deadline),
            );
        }
    }

    fn put_instead(&mut self, db: u32, words: &[&[u8]]) {
        let words = words.iter().map(|word| Box::from(*word)).collect();
        self.instead.get_or_insert_default().push((db, words));
    }

    /// True if something has changed that is to be recorded, and was not yet.
    fn has_changed(&self) -> bool {
        let changed = |hold: &Hold<'_>| hold.after() & CHANGED != 0;
        self.one.as_ref().is_some_and(changed) || self.many.iter().any(|(_, hold)| changed(hold))
    }

    /// As [`record`](Self::record), of the only shard, which is about to be unlocked.
    #[inline(never)]
    pub(super) fn record_one(&mut self, guard: Hold<'a>) -> Hold<'a> {
        self.one = Some(guard);
        self.record();
        match self.one.take() {
            Some(guard) => guard,
            None => unreachable!("it was put there"),
        }
    }

    /// Records what the command has changed, if it has changed anything: before its locks are
    /// released, or lent to another command.
    pub(crate) fn record(&mut self) {
        let mut changed = self.one.as_mut().is_some_and(Hold::take_changed);
        for (_, hold) in &mut self.many {
            changed |= hold.take_changed();
        }
        if !changed {
            return;
        }
        if std::mem::replace(&mut self.recorded, true) {
            // It changes shard after shard, while nobody else is inside.
            debug_assert!(
                (self.row).is_some_and(|row| matches!(handler(row), Handler::Whole(_))),
                "other commands change data in one hold"
            );
            return self.keyspace.shared.records.release();
        }
        let queue = &self.keyspace.shared.records;
        let is_sent = |row: &Command| row.recorded == Recorded::AsSent;
        let as_sent = self.instead.is_none() && self.row.is_some_and(is_sent);
        match self.group.take() {
            None if as_sent => queue.push(&self.now, self.session.db, self.args.iter()),
            None => {
                let mut group = Encoder::default();
                self.record_into(&mut group);
                queue.push_group(&group);
            }
            Some(mut group) => {
                self.record_into(&mut group);
                self.group = Some(group);
            }
        }
    }

    fn record_into(&mut self, group: &mut Encoder) {
        let (now, db) = (self.now, self.session.db);
        if let Some(instead) = self.instead.take() {
            for (db, words) in &*instead {
                group.command(&now, *db, words.iter().map(|word| &**word));
            }
            return;
        }
        let Some(row) = self.row else {
            unreachable!("what is no command says what is recorded");
        };
        match row.recorded {
            Recorded::AsSent => group.command(&now, db, self.args.iter()),
            Recorded::AsResult => {
                for at in row.keys.written(self.args) {
                    let key = self.key(at);
                    let (payload, deadline) = self.state_of(key, db);
                    let words = words_of_state(key.bytes, payload.as_deref(), &deadline);
                    group.command(&now, db, words.iter().copied());
                }
            }
        }
    }

    /// The payload of a key, if it lives, and its deadline as wall time in text, 0 for none.
    fn state_of(&mut self, key: Key<'_>, db: u32) -> (Option<Vec<u8>>, String) {
        let now = self.now;
        let entries = self.entries_at(key, db);
        let seen = entries.look(key.hash, key.bytes);
        let slot = seen.filter(|seen| value::is_timed(seen.tag) || !seen.is_due(now.tick));
        let slot = slot.map(|seen| seen.slot);
        let own = slot.and_then(|slot| value::own_deadline(entries, slot));
        let payload = slot.map(|slot| dump::payload_of(entries, slot, &now));
        (payload, own.map_or(0, |own| now.wall_of(own)).to_string())
    }
}

fn words_of_state<'w>(
    key: &'w [u8],
    payload: Option<&'w [u8]>,
    deadline: &'w str,
) -> Vec<&'w [u8]> {
    match payload {
        None => vec![b"DEL", key],
        Some(payload) => vec![
            b"RESTORE",
            key,
            deadline.as_bytes(),
            payload,
            b"REPLACE",
            b"ABSTTL",
        ],
    }
}
