//! Notes what tracking clients read, and tells them when it is invalid: the page is
//! [`tracking`](crate::tracking).

use crate::context::Context;
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::rows::{Command, Flags};
use crate::session::Waiter;
use crate::tracking::{Invalid, PrefixError, Readers, TrackingMode, TrackingStats};

impl Context<'_, '_> {
    /// Notes the keys of a command that only reads, if its client tracks. The shards of the keys
    /// are locked, and the command runs next.
    #[inline(always)]
    pub(crate) fn note_reads(&mut self, row: &Command) {
        if self.session.tracks && row.flags.has(Flags::READONLY) {
            self.note_tracked(row);
        }
    }

    #[cold]
    fn note_tracked(&mut self, row: &Command) {
        let Some(reader) = self.session.waiter else {
            return;
        };
        let (keyspace, args) = (self.keyspace, self.args);
        for at in row.keys.positions(args) {
            let key = keyspace.key(args.get(at).unwrap_or_default());
            self.hold_of(key).track(key.bytes, reader);
        }
    }
}

impl Keyspace {
    /// A client tracks from now on, or in another way than before.
    ///
    /// # Errors
    ///
    /// If its prefixes overlap, or are too many. Then nothing has changed.
    pub fn track(&self, client: Waiter, mode: TrackingMode) -> Result<(), PrefixError> {
        let broadcasts = mode.prefixes.is_some();
        self.shared.registry.add(client, mode)?;
        if broadcasts {
            for shard in 0..self.shards() {
                drop(self.act_on(shard, Box::new(|hold| hold.observe_broadcasts())));
            }
        }
        Ok(())
    }

    /// A client tracks no longer, or is gone.
    pub fn untrack(&self, client: Waiter) {
        let left = self.shared.registry.remove(client);
        if left.ends_tables || left.ends_prefixes {
            for shard in 0..self.shards() {
                drop(self.act_on(shard, Box::new(|hold| hold.end_tracking())));
            }
        }
    }

    /// True if more keys are tracked than may be. Lock-free.
    #[must_use]
    #[inline]
    pub fn tracks_too_many(&self) -> bool {
        self.shared.tracks_too_many()
    }

    /// Lets at most `budget` tracked keys of one shard leave, while there are more than may be, and
    /// tells their readers. Returns true if a key has left. It passes over a shard that others
    /// have, and exclusive users that wait go first.
    pub fn bound_tracked(&self, seat: &mut Seat, shard: usize, budget: u32) -> bool {
        if !seat.try_give_way() && seat.is_shut_out() {
            return false;
        }
        let _visit = seat.visit();
        let Some(mut hold) = self.shards[shard].try_lock() else {
            return false;
        };
        let since = self.hooks.stopwatch_ns();
        let some = hold.bound_tracked(budget);
        let invalid = hold.take_invalid();
        self.record_hold(since);
        drop(hold);
        self.tell_invalid(None, invalid);
        some
    }

    /// The prefixes of a client, in order.
    #[must_use]
    pub fn tracked_prefixes(&self, client: Waiter) -> Vec<Box<[u8]>> {
        self.shared.registry.prefixes_of(client)
    }

    /// Sizes of all that is tracked at this moment.
    #[must_use]
    pub fn tracking_stats(&self) -> TrackingStats {
        let (clients, prefixes, bytes) = self.shared.registry.sizes();
        let tables = &self.shared.tracking;
        TrackingStats {
            clients,
            keys: tables.keys(),
            items: tables.items(),
            prefixes,
            bytes: tables.bytes() + bytes,
        }
    }

    /// Tells the readers of keys that these are invalid. `author` has changed them. No shard is
    /// locked.
    #[cold]
    pub(crate) fn tell_invalid(&self, author: Option<Waiter>, invalid: Vec<Invalid>) {
        let registry = &self.shared.registry;
        for invalid in &invalid {
            let author = author.filter(|_| !invalid.by_itself);
            let readers = invalid.readers.iter().flat_map(Readers::iter);
            let told = registry.told(readers, author);
            if !told.is_empty() {
                self.hooks.invalidate(&told, Some(&[&invalid.key]));
            }
        }
        for (told, keys) in registry.broadcasts(&invalid, author) {
            self.hooks.invalidate(&told, Some(&keys));
        }
    }

    /// Tells all tracking clients that whatever they have read is invalid. No shard is locked.
    pub(crate) fn tell_all_invalid(&self) {
        let all = self.shared.registry.all();
        if !all.is_empty() {
            self.hooks.invalidate(&all, None);
        }
    }
}
