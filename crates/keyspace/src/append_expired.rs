//! Appends what has expired to streams: the page is [`expired`](crate::expired).

use std::sync::Arc;

use tidewheel_collections::{Keep, Trim};
use tidewheel_resp::{Args, Writer, parse_i64};

use crate::commands::stream::{AppendFn, append_to_stream};
use crate::context::Context;
use crate::expired::{
    AppendedExpired, ExpiredEvent, ExpiredStream, ExpiredStreamStats, ExpiredStreamTrouble,
    ExpiredStreams, TRIMMED_MAX,
};
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::records::Record;
use crate::session::Session;
use crate::shard::Hold;
use crate::time::{Now, Time};
use crate::value;

impl Keyspace {
    /// Has each key that expires in these databases become an entry of a stream, and in no others.
    /// Of two for one database the last one counts. Locks shard after shard.
    pub fn set_expired_streams(&self, streams: &[ExpiredStream]) {
        let by_db = streams.iter().map(|of| (of.db, Arc::new(of.clone())));
        let streams: Arc<ExpiredStreams> = Arc::new(by_db.collect());
        for shard in 0..self.shards() {
            let streams = Arc::clone(&streams);
            drop(self.act_on(shard, Box::new(move |hold| hold.observe_expired(&streams))));
        }
    }

    /// True if events wait to be appended. Lock-free.
    #[must_use]
    #[inline]
    pub fn expired_pending(&self) -> bool {
        self.shared.expired.pending()
    }

    /// Appends some of the events that wait, in one hold of a stream's shard. Call it again while
    /// there are [some](AppendedExpired::Some), within a budget. Exclusive users that wait go
    /// first.
    pub fn append_expired(&self, seat: &mut Seat, time: Time) -> AppendedExpired {
        if !self.expired_pending() {
            return AppendedExpired::All;
        }
        if !seat.try_give_way() && seat.is_shut_out() || seat.has_whole() {
            return AppendedExpired::Blocked;
        }
        let seat_stays = seat.stays();
        let _visit = seat.visit();
        if self.is_paused() {
            return AppendedExpired::Blocked;
        }
        let Some((db, stream)) = self.shared.expired.next() else {
            return AppendedExpired::All;
        };
        let shard = self.key(&stream.name).shard;
        // Who has locks already tries for no other.
        let hold = match seat_stays {
            true => self.shards[shard].try_lock(),
            false => self.shards[shard].lock_at_once(),
        };
        let Some(hold) = hold else {
            return AppendedExpired::Blocked;
        };
        let now = Now::of(&self.timeline, time);
        self.append_in((shard, hold), now, db, &stream, seat_stays);
        match self.expired_pending() {
            true => AppendedExpired::Some,
            false => AppendedExpired::All,
        }
    }

    /// Appends all events that wait, for one who is alone: what is written to a file next has them.
    pub(crate) fn append_all_expired(&self, now: Now) {
        while !self.is_paused()
            && let Some((db, stream)) = self.shared.expired.next()
        {
            let shard = self.key(&stream.name).shard;
            let Some(hold) = self.shards[shard].try_lock() else {
                return;
            };
            self.append_in((shard, hold), now, db, &stream, true);
        }
    }

    /// A record was replayed. If it has appended the event of a key that has expired, the key
    /// leaves, if it is there, and nothing is owed of it any more.
    pub(crate) fn settle_expired(&self, seat: &mut Seat, record: &Record<'_>) {
        let [b"XADD", _, _, b"key", key, b"deadline", at, b"fired", ..] = record.words() else {
            return;
        };
        let (Some(wall_ms), db) = (parse_i64(at), record.db()) else {
            return;
        };
        let _visit = seat.visit();
        let mut session = Session {
            db,
            ..Session::default()
        };
        let (args, mut out) = (Args::from_slices(&[]), Writer::default());
        let now = Now::of(&self.timeline, record.time());
        let mut context = Context::new(self, &mut session, now, args, &mut out, None);
        if context.step_in(key).is_ok() && context.locked().has_expired_stream(db) {
            let only = context.only_key(key);
            context.find_at(only, db);
        }
        context.finish();
        let is_it =
            |event: &ExpiredEvent| *event.key == **key && now.wall_of(event.deadline) == wall_ms;
        self.shared.expired.settle(db, is_it);
    }

    /// `beside`: this thread has other shards locked.
    fn append_in(
        &self,
        (shard, mut hold): (usize, Hold<'_>),
        mut now: Now,
        db: u32,
        stream: &Arc<ExpiredStream>,
        beside: bool,
    ) {
        hold.meet(&mut now);
        let since = self.hooks.stopwatch_ns();
        let events = self.shared.expired.take(db, stream);
        let (mut session, mut out) = (Session::default(), Writer::default());
        session.db = db;
        let args = Args::from_slices(&[]);
        let mut context = Context::new(self, &mut session, now, args, &mut out, None);
        context.keep(vec![(shard, hold)]);
        self.append(&mut context, stream, &events);
        context.record();
        let locks = context.hand_back();
        let large = context.carry_on();
        drop(context);
        self.record_hold(since);
        match locks.iter().any(|(_, hold)| hold.has_ready()) {
            true if beside => self.serve_all_and_unlock(now, locks),
            true => self.serve_and_unlock(now, locks),
            false => self.unlock_shards(locks, None),
        }
        if large.is_some() {
            let mut context = Context::new(self, &mut session, now, args, &mut out, None);
            context.carry(large);
            context.finish();
        }
    }

    /// Appends events to their stream, whose shard is locked.
    fn append(&self, ctx: &mut Context<'_, '_>, stream: &ExpiredStream, events: &[ExpiredEvent]) {
        if events.is_empty() {
            return;
        }
        let now = ctx.now;
        let trim = Trim {
            keep: Keep::Len(stream.max_len),
            approximate: true,
            limit: TRIMMED_MAX,
        };
        let key = self.key(&stream.name);
        let appended = append_to_stream(ctx, key, trim, |append| {
            events
                .iter()
                .take_while(|event| append_one(append, event, &now))
                .count()
        });
        let (appended, trimmed) = appended.unwrap_or((0, 0));
        let failed = events.len() - appended;
        if appended > 0 {
            self.shared.expired.count(appended as u64, trimmed);
        }
        if failed > 0 {
            self.shared.expired.count_failed(stream, failed as u64);
        }
    }

    /// Takes the events that wait instead of appending them, each with its database, and its
    /// deadline and the time of its removal in engine ticks. For tests.
    #[doc(hidden)]
    pub fn take_expired(&self) -> Vec<(u32, Box<[u8]>, u64, u64)> {
        let mut all = Vec::new();
        while let Some((db, stream)) = self.shared.expired.next() {
            let taken = self.shared.expired.take(db, &stream).into_iter();
            all.extend(taken.map(|event| (stream.db, event.key, event.deadline, event.fired)));
        }
        all
    }

    /// What became of events for streams of expired keys.
    #[must_use]
    pub fn expired_stream_stats(&self) -> ExpiredStreamStats {
        self.shared.expired.stats()
    }

    /// What the log should say of these streams, each thing once.
    #[must_use]
    pub fn expired_stream_troubles(&self) -> Vec<ExpiredStreamTrouble> {
        self.shared.expired.take_troubles()
    }
}

/// Appends the entry of an event. False if no id is left for it.
fn append_one(append: &mut AppendFn<'_>, event: &ExpiredEvent, now: &Now) -> bool {
    let fired_ms = now.wall_of(event.fired);
    let (mut deadline, mut fired) = (itoa::Buffer::new(), itoa::Buffer::new());
    let mut words: Vec<&[u8]> = Vec::with_capacity(10);
    words.extend([b"key", &*event.key]);
    words.extend([
        &b"deadline"[..],
        deadline.format(now.wall_of(event.deadline)).as_bytes(),
    ]);
    words.extend([&b"fired"[..], fired.format(fired_ms).as_bytes()]);
    if event.stream.values {
        words.extend([b"type", value::type_name(event.tag).as_bytes()]);
    }
    if let Some(value) = &event.value {
        words.extend([b"value", &**value]);
    }
    append(fired_ms, &words)
}
