//! Publish and subscribe: the registry of subscriptions, and the delivery of messages.
//!
//! A message is delivered in three steps:
//!
//! 1. It is encoded once, as a RESP3 push.
//! 2. It is copied into the inbox of each loop that owns a subscriber.
//! 3. The loop copies it into its connections' output, as far as they may hold it.
//!
//! Publishers never wait for a reader. A subscriber that lags too far is closed: by its output
//! limit, by the limit of all clients, or by the bound of its loop's inbox.
//!
//! Keyspace events are drained from the keyspace's queue while the hub's lock is held. So they are
//! published in their order, whichever thread drains them. No shard is locked meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidewheel_keyspace::order::{Rank, Ranked};
use tidewheel_keyspace::{Event, Keyspace, NotifyFlags, glob_match};
use tidewheel_resp::{Protocol, Writer};

use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::Target;
use crate::pubsub::audience::Audience;
use crate::pubsub::subscribers::Subscribers;
use crate::pubsub::subscriptions::SubscriptionKind;

/// The channels that a search has found so far.
#[derive(Debug, Default)]
pub(crate) struct FoundChannels {
    pub(crate) count: usize,
    /// Their names, as they are sent.
    pub(crate) replies: Writer,
}

/// The registry of subscriptions.
#[derive(Debug)]
pub(crate) struct Hub {
    loops: Arc<[LoopHandle]>,
    /// Channels and patterns that have subscribers; events are not even encoded while there are
    /// none.
    names: AtomicUsize,
    /// Channels of shards that have subscribers.
    shard_names: AtomicUsize,
    state: Ranked<HubState>,
}

#[derive(Debug)]
struct HubState {
    channels: Subscribers,
    patterns: Subscribers,
    shards: Subscribers,
    message: Writer,
    channel: Vec<u8>,
}

impl Hub {
    pub(crate) fn new(loops: Arc<[LoopHandle]>) -> Self {
        let state = HubState {
            channels: Subscribers::in_tables(CHANNEL_TABLES),
            // Each message visits all patterns: one table is the fastest to visit.
            patterns: Subscribers::in_tables(1),
            shards: Subscribers::in_tables(CHANNEL_TABLES),
            message: Writer::new(Protocol::Resp3),
            channel: Vec::new(),
        };
        Self {
            loops,
            names: AtomicUsize::new(0),
            shard_names: AtomicUsize::new(0),
            state: Ranked::new(Rank::Hub, state),
        }
    }

    fn names(&self, kind: SubscriptionKind) -> &AtomicUsize {
        match kind {
            SubscriptionKind::Channel | SubscriptionKind::Pattern => &self.names,
            SubscriptionKind::Shard => &self.shard_names,
        }
    }

    /// Adds a subscription that does not exist yet.
    pub(crate) fn subscribe(
        &self,
        kind: SubscriptionKind,
        name: &[u8],
        owner: usize,
        target: Target,
    ) {
        let mut state = self.state.lock();
        let (audience, is_new) = state.of(kind).get_or_insert(name);
        audience.add(owner, target);
        self.names(kind)
            .fetch_add(usize::from(is_new), Ordering::Release);
    }

    /// Removes a subscription. Every message published before is in the loop's inbox by then.
    pub(crate) fn unsubscribe(
        &self,
        kind: SubscriptionKind,
        name: &[u8],
        owner: usize,
        target: Target,
    ) {
        let mut state = self.state.lock();
        let Some(audience) = state.of(kind).get_mut(name) else {
            return;
        };
        audience.remove(owner, target);
        if audience.is_empty() {
            state.of(kind).remove(name);
            self.names(kind).fetch_sub(1, Ordering::Release);
        }
    }

    /// Publishes a message and returns how many subscribers it was meant for.
    pub(crate) fn publish(&self, channel: &[u8], payload: &[u8]) -> usize {
        if self.names.load(Ordering::Acquire) == 0 {
            return 0;
        }
        self.state.lock().publish(&self.loops, channel, payload)
    }

    /// Publishes a message to a shard's channel. Returns how many subscribers it was meant for.
    pub(crate) fn publish_to_shard(&self, channel: &[u8], payload: &[u8]) -> usize {
        if self.shard_names.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(audience) = state.shards.get(channel) else {
            return 0;
        };
        write_message(&mut state.message, b"smessage", channel, payload);
        let receivers = audience.deliver(&self.loops, state.message.as_bytes());
        state.message.shrink_to(MESSAGE_KEEP);
        receivers
    }

    /// Publishes the keyspace events that are queued, and shows each to an observer.
    pub(crate) fn flush(&self, keyspace: &Keyspace, observe: impl Fn(&Event)) {
        let mut state = self.state.lock();
        if self.names.load(Ordering::Acquire) == 0 {
            keyspace.drain_events(&mut |_| {});
            return;
        }
        let flags = keyspace.notify_flags();
        let mut channel = std::mem::take(&mut state.channel);
        keyspace.drain_events(&mut |event: Event| {
            observe(&event);
            if flags.has(NotifyFlags::KEYSPACE) {
                name_channel(&mut channel, b"__keyspace@", event.db, &event.key);
                state.publish(&self.loops, &channel, event.name.as_bytes());
            }
            if flags.has(NotifyFlags::KEYEVENT) {
                name_channel(
                    &mut channel,
                    b"__keyevent@",
                    event.db,
                    event.name.as_bytes(),
                );
                state.publish(&self.loops, &channel, &event.key);
            }
        });
        state.channel = channel;
    }

    /// Adds the channels of that kind of one table that match `pattern` (all without one). Returns
    /// how many the table has; `None`: there is no such table.
    pub(crate) fn channels(
        &self,
        kind: SubscriptionKind,
        table: usize,
        pattern: Option<&[u8]>,
        found: &mut FoundChannels,
    ) -> Option<usize> {
        let mut state = self.state.lock();
        let mut seen = 0;
        for name in state.of(kind).in_table(table)? {
            seen += 1;
            if pattern.is_none_or(|pattern| glob_match(pattern, name)) {
                found.count += 1;
                found.replies.bulk(name);
            }
        }
        Some(seen)
    }

    /// Returns the number of clients that have subscribed to a name of that kind.
    pub(crate) fn subscribers(&self, kind: SubscriptionKind, name: &[u8]) -> usize {
        let mut state = self.state.lock();
        state.of(kind).get(name).map_or(0, Audience::len)
    }

    /// Returns the number of channels and of patterns that have subscribers.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        let [channels, patterns, _] = SubscriptionKind::ALL.map(|kind| self.count(kind));
        (channels, patterns)
    }

    /// Returns the number of names of that kind that have subscribers.
    pub(crate) fn count(&self, kind: SubscriptionKind) -> usize {
        self.state.lock().of(kind).len()
    }
}

impl HubState {
    fn of(&mut self, kind: SubscriptionKind) -> &mut Subscribers {
        match kind {
            SubscriptionKind::Channel => &mut self.channels,
            SubscriptionKind::Pattern => &mut self.patterns,
            SubscriptionKind::Shard => &mut self.shards,
        }
    }

    fn publish(&mut self, loops: &[LoopHandle], channel: &[u8], payload: &[u8]) -> usize {
        let mut receivers = 0;
        if let Some(audience) = self.channels.get(channel) {
            write_message(&mut self.message, b"message", channel, payload);
            receivers += audience.deliver(loops, self.message.as_bytes());
        }
        for (pattern, audience) in self.patterns.iter() {
            if !glob_match(pattern, channel) {
                continue;
            }
            self.message.clear();
            self.message.push(4);
            self.message.bulk(b"pmessage");
            self.message.bulk(pattern);
            self.message.bulk(channel);
            self.message.bulk(payload);
            receivers += audience.deliver(loops, self.message.as_bytes());
        }
        self.message.shrink_to(MESSAGE_KEEP);
        receivers
    }
}

/// The number of tables of channels: if there are a million channels, each table has a thousand.
const CHANNEL_TABLES: usize = 1 << 10;

/// A longer message does not keep its buffer.
const MESSAGE_KEEP: usize = 64 << 10;

fn write_message(message: &mut Writer, word: &[u8], channel: &[u8], payload: &[u8]) {
    message.clear();
    message.push(3);
    message.bulk(word);
    message.bulk(channel);
    message.bulk(payload);
}

fn name_channel(channel: &mut Vec<u8>, prefix: &[u8], db: u32, suffix: &[u8]) {
    channel.clear();
    channel.extend_from_slice(prefix);
    channel.extend_from_slice(db.to_string().as_bytes());
    channel.extend_from_slice(b"__:");
    channel.extend_from_slice(suffix);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_handle::inbox::InboxItem;

    fn hub() -> (Vec<mio::Poll>, Hub) {
        let polls: Vec<_> = (0..2).map(|_| mio::Poll::new().unwrap()).collect();
        let loops = polls
            .iter()
            .map(|poll| mio::Waker::new(poll.registry(), mio::Token(0)).unwrap())
            .map(LoopHandle::new);
        let loops: Arc<[LoopHandle]> = loops.collect();
        (polls, Hub::new(loops))
    }

    fn received(hub: &Hub, owner: usize) -> Vec<(Vec<u64>, Vec<u8>)> {
        let mut items = Vec::new();
        hub.loops[owner].collect(&mut items);
        let runs = items.into_iter().filter_map(|item| match item {
            InboxItem::Messages(run) => Some((
                run.targets.iter().map(|target| target.id).collect(),
                run.each_since(0).flatten().copied().collect(),
            )),
            _ => None,
        });
        runs.collect()
    }

    fn target(id: u64) -> Target {
        Target {
            id,
            slot: id as u32,
        }
    }

    #[test]
    fn a_message_reaches_channels_before_patterns_and_counts_both() {
        let (_polls, hub) = hub();
        assert_eq!(hub.publish(b"news", b"x"), 0);
        hub.subscribe(SubscriptionKind::Channel, b"news", 0, target(1));
        hub.subscribe(SubscriptionKind::Channel, b"news", 0, target(2));
        hub.subscribe(SubscriptionKind::Channel, b"news", 1, target(3));
        hub.subscribe(SubscriptionKind::Pattern, b"n*", 0, target(1));
        assert_eq!(hub.publish(b"news", b"x"), 4);
        let first = received(&hub, 0);
        assert_eq!(
            first[0],
            (
                vec![1, 2],
                b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n".to_vec()
            )
        );
        assert_eq!(first[1].0, [1]);
        assert!(
            first[1]
                .1
                .starts_with(b">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n")
        );
        assert_eq!(received(&hub, 1).len(), 1);
        assert_eq!(hub.subscribers(SubscriptionKind::Channel, b"news"), 3);
        for (kind, count) in SubscriptionKind::ALL.into_iter().zip([1, 1, 0]) {
            assert_eq!(hub.count(kind), count);
        }
    }

    #[test]
    fn a_shards_channel_is_another_than_the_channel_of_that_name() {
        let (_polls, hub) = hub();
        assert_eq!(hub.publish_to_shard(b"a", b"x"), 0);
        for (kind, id) in SubscriptionKind::ALL.into_iter().zip(1..) {
            hub.subscribe(kind, b"a", 0, target(id));
        }
        assert_eq!(
            (hub.publish(b"a", b"x"), hub.publish_to_shard(b"a", b"y")),
            (2, 1)
        );
        let last = received(&hub, 0).pop();
        let smessage = b">3\r\n$8\r\nsmessage\r\n$1\r\na\r\n$1\r\ny\r\n".to_vec();
        assert_eq!(last, Some((vec![3], smessage)));
        hub.unsubscribe(SubscriptionKind::Shard, b"a", 0, target(3));
        assert_eq!(hub.shard_names.load(Ordering::Relaxed), 0);
        assert_eq!(hub.publish_to_shard(b"a", b"y"), 0);
    }

    #[test]
    fn nothing_is_left_when_the_last_subscriber_leaves() {
        let (_polls, hub) = hub();
        hub.subscribe(SubscriptionKind::Channel, b"a", 0, target(1));
        hub.subscribe(SubscriptionKind::Channel, b"a", 1, target(2));
        hub.unsubscribe(SubscriptionKind::Channel, b"a", 0, target(1));
        let mut found = FoundChannels::default();
        let seen: usize = (0..)
            .map_while(|table| hub.channels(SubscriptionKind::Channel, table, None, &mut found))
            .sum();
        assert_eq!(
            (seen, found.count, found.replies.as_bytes()),
            (1, 1, &b"$1\r\na\r\n"[..])
        );
        hub.unsubscribe(SubscriptionKind::Channel, b"a", 1, target(2));
        hub.unsubscribe(SubscriptionKind::Channel, b"a", 1, target(2));
        assert_eq!(
            (
                hub.count(SubscriptionKind::Channel),
                hub.names.load(Ordering::Relaxed)
            ),
            (0, 0)
        );
    }

    #[test]
    fn messages_already_sent_keep_the_audience_that_they_were_sent_to() {
        let (_polls, hub) = hub();
        hub.subscribe(SubscriptionKind::Channel, b"a", 0, target(1));
        hub.publish(b"a", b"1");
        hub.subscribe(SubscriptionKind::Channel, b"a", 0, target(2));
        hub.publish(b"a", b"2");
        let audiences: Vec<_> = received(&hub, 0).into_iter().map(|(ids, _)| ids).collect();
        assert_eq!(audiences, [vec![1], vec![1, 2]]);
    }
}
