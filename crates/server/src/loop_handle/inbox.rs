//! A loop's inbox: connections, requests to close and messages from other threads, in order and
//! bounded.
//!
//! Messages of one audience that follow each other are one *run*, which shares its list of targets
//! with the hub.
//!
//! A subscriber that publishes gets its own message right behind the reply. An example: messages 7
//! and 8 wait when it publishes 9.
//!
//! 1. The subscriber reads 7, 8 and 9 where they are, and notes that it has seen all messages
//!    before 10.
//! 2. When the loop copies the run to its targets, it skips the messages that this one has seen.
//!
//! So nothing is taken out of the middle of a run, and no list of targets is copied.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidewheel_keyspace::Served;
use tidewheel_resp::{Protocol, Writer};

use crate::net::listener::Accepted;

/// Message bytes that may wait for a loop.
const BYTES_MAX: usize = 64 << 20;

/// Runs of messages that may wait for a loop.
const RUNS_MAX: usize = 1 << 18;

/// The bytes of a list of targets that are free. A longer list counts as message bytes, once.
const AUDIENCE_FREE: usize = 1 << 10;

/// A connection, as other threads name it: its slot in its loop and the client's id, which is never
/// used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) id: u64,
    pub(crate) slot: u32,
}

/// A message from another thread to a loop.
#[derive(Debug)]
pub(crate) enum InboxItem {
    /// A new connection, for the loop to own.
    Connection(Box<Accepted>),
    /// A client that must be closed.
    Close(Target),
    /// A client whose user has changed: it may listen to what it may not hear any more.
    UserChanged(Target),
    /// The command that this client waits for has been served.
    Served(Box<Served>),
    /// A parked client whose shards are free now.
    GoOn(Target),
    /// A client whose wait has been ended.
    Unblocked(Target, Unblocking),
    /// Messages for all of these clients.
    Messages(Messages),
    /// Keys that are invalid for these clients.
    Invalid(Invalidations),
}

/// How a wait is ended before a key has come.
#[derive(Debug)]
pub(crate) enum Unblocking {
    /// As its time-out does.
    TimeOut,
    /// With the error of CLIENT UNBLOCK.
    Error(&'static str),
    /// Its user may not run the command any more, and is told this.
    Denied(String),
}

/// Keys that are invalid for clients that have read them.
#[derive(Debug)]
pub(crate) struct Invalidations {
    pub(crate) targets: Vec<Target>,
    /// The keys, as messages name them.
    pub(crate) keys: Arc<[u8]>,
    /// The targets are told instead of others.
    pub(crate) redirected: bool,
}

impl Invalidations {
    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(self.targets.as_slice()) + self.keys.len()
    }
}

/// All keys, as messages of RESP3 name them.
pub(crate) const ALL: &[u8] = b"_\r\n";

/// Returns keys as messages name them; `None` stands for all.
pub(crate) fn encode_keys(keys: Option<&[&[u8]]>) -> Arc<[u8]> {
    let Some(keys) = keys else {
        return ALL.into();
    };
    let mut out = Writer::new(Protocol::Resp3);
    out.array(keys.len());
    keys.iter().for_each(|key| out.bulk(key));
    out.as_bytes().into()
}

/// Encoded messages in order, for one audience.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) targets: Arc<Vec<Target>>,
    /// The number of the first.
    first: u64,
    /// RESP3 pushes. RESP2 differs in the first byte of each.
    bytes: Vec<u8>,
    /// The position of each message.
    starts: Vec<usize>,
}

/// The items that wait for one loop.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    items: Vec<InboxItem>,
    /// The number of the next message.
    next: u64,
    message_bytes: usize,
    /// Big audiences whose lists are counted, by address: runs keep them alive.
    audiences: BTreeSet<usize>,
    /// Clients that missed a message because the inbox was full.
    overrun: BTreeSet<Target>,
}

impl Messages {
    /// Returns the messages from a number on: their bytes, and the position of each.
    pub(crate) fn since(&self, number: u64) -> Option<(&[u8], impl Iterator<Item = usize>)> {
        let skipped = usize::try_from(number.saturating_sub(self.first)).ok()?;
        let starts = self.starts.get(skipped..)?;
        let base = *starts.first()?;
        Some((&self.bytes[base..], starts.iter().map(move |at| at - base)))
    }

    /// Returns the messages from a number on, one by one.
    pub(crate) fn each_since(&self, number: u64) -> impl Iterator<Item = &[u8]> {
        let skipped = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let starts = self.starts.get(skipped..).unwrap_or_default();
        let ends = starts.iter().skip(1).copied().chain([self.bytes.len()]);
        let spans = starts.iter().zip(ends);
        spans.map(|(from, to)| &self.bytes[*from..to])
    }

    /// Returns the number of the message that would follow.
    fn end(&self) -> u64 {
        self.first + self.starts.len() as u64
    }

    fn push(&mut self, message: &[u8]) {
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(message);
    }

    /// Forgets the messages. Returns how many bytes they had.
    fn clear(&mut self) -> usize {
        self.first = self.end();
        self.starts.clear();
        std::mem::take(&mut self.bytes).len()
    }
}

impl Inbox {
    pub(crate) fn push(&mut self, item: InboxItem) {
        self.items.push(item);
    }

    /// Adds a message. When the inbox is full the message is dropped, and its audience will be
    /// closed. `taken` bytes were collected and are still held.
    pub(crate) fn add(&mut self, targets: &Arc<Vec<Target>>, message: &[u8], taken: usize) {
        // One message always fits an empty inbox, however long.
        let held = self.message_bytes.saturating_add(taken);
        let full = self.message_bytes > 0 && held.saturating_add(message.len()) > BYTES_MAX;
        if full || self.items.len() >= RUNS_MAX {
            self.overrun.extend(targets.iter());
            return;
        }
        self.message_bytes += message.len();
        let number = self.next;
        self.next += 1;
        if let Some(InboxItem::Messages(run)) = self.items.last_mut()
            && Arc::ptr_eq(&run.targets, targets)
            && run.end() == number
        {
            run.push(message);
            return;
        }
        self.count_audience(targets);
        let mut run = Messages {
            targets: Arc::clone(targets),
            first: number,
            bytes: Vec::new(),
            starts: Vec::new(),
        };
        run.push(message);
        self.items.push(InboxItem::Messages(run));
    }

    /// Adds keys that are invalid. When the inbox is full the clients that track them will be
    /// closed: they must not go on with what they have read.
    pub(crate) fn add_invalid(&mut self, invalid: Invalidations, taken: usize) {
        let bytes = invalid.bytes();
        let held = self.message_bytes.saturating_add(taken);
        let full = self.message_bytes > 0 && held.saturating_add(bytes) > BYTES_MAX;
        if full || self.items.len() >= RUNS_MAX {
            self.overrun.extend(invalid.targets);
            return;
        }
        self.message_bytes += bytes;
        self.items.push(InboxItem::Invalid(invalid));
    }

    /// Counts a big audience, once. If it changes between two messages, each of them keeps its own
    /// list of targets.
    fn count_audience(&mut self, targets: &Arc<Vec<Target>>) {
        let bytes = size_of_val(targets.as_slice());
        if bytes > AUDIENCE_FREE && self.audiences.insert(Arc::as_ptr(targets) as usize) {
            self.message_bytes += bytes;
        }
    }

    /// Shows a client the messages that wait for it, from number `since` on. Returns the number to
    /// go on with.
    pub(crate) fn read(&mut self, who: Target, since: u64, mut take: impl FnMut(&Messages)) -> u64 {
        let fresh = |item: &InboxItem| match item {
            InboxItem::Messages(run) => run.end() > since,
            _ => true,
        };
        let known = self.items.iter().rposition(|item| !fresh(item));
        for item in &mut self.items[known.map_or(0, |at| at + 1)..] {
            let InboxItem::Messages(run) = item else {
                continue;
            };
            if run.targets.binary_search(&who).is_ok() {
                take(run);
                // Nobody else waits for these.
                if run.targets.len() == 1 {
                    self.message_bytes -= run.clear();
                }
            }
        }
        self.drop_empty_runs();
        self.next
    }

    fn drop_empty_runs(&mut self) {
        while let Some(InboxItem::Messages(run)) = self.items.last()
            && run.starts.is_empty()
        {
            self.items.pop();
        }
    }

    /// Takes just the new connections.
    pub(crate) fn take_connections(&mut self, into: &mut Vec<Accepted>) {
        let is_new = |item: &mut InboxItem| matches!(item, InboxItem::Connection(_));
        for item in self.items.extract_if(.., is_new) {
            if let InboxItem::Connection(accepted) = item {
                into.push(*accepted);
            }
        }
    }

    /// Returns the bytes of the messages that wait, with their lists of targets.
    pub(crate) fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Takes everything, into `items`, which must be empty.
    pub(crate) fn collect(&mut self, items: &mut Vec<InboxItem>) {
        std::mem::swap(&mut self.items, items);
        self.message_bytes = 0;
        self.audiences.clear();
        let overrun = std::mem::take(&mut self.overrun);
        items.extend(overrun.into_iter().map(InboxItem::Close));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(id: u64) -> Target {
        Target {
            id,
            slot: id as u32,
        }
    }

    fn audience(ids: std::ops::Range<u64>) -> Arc<Vec<Target>> {
        Arc::new(ids.map(target).collect())
    }

    /// The messages of a run from a number on, each as text.
    fn texts(run: &Messages, since: u64) -> Vec<String> {
        let whole: Vec<u8> = run.each_since(since).flatten().copied().collect();
        let at_once = run.since(since).map(|(bytes, _)| bytes);
        assert_eq!(at_once.unwrap_or_default(), whole, "either way");
        run.each_since(since)
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    fn read(inbox: &mut Inbox, id: u64, since: &mut u64) -> Vec<String> {
        let mut seen = Vec::new();
        let from = *since;
        *since = inbox.read(target(id), from, |run| seen.extend(texts(run, from)));
        seen
    }

    fn collected(inbox: &mut Inbox) -> Vec<InboxItem> {
        let mut items = Vec::new();
        inbox.collect(&mut items);
        items
    }

    fn closed(items: &[InboxItem]) -> usize {
        let close = |item: &&InboxItem| matches!(item, InboxItem::Close(_));
        items.iter().filter(close).count()
    }

    #[test]
    fn messages_for_one_audience_travel_together() {
        let mut inbox = Inbox::default();
        let both = audience(1..3);
        inbox.add(&both, b"a", 0);
        inbox.add(&both, b"bc", 0);
        inbox.add(&audience(1..2), b"d", 0);
        let items = collected(&mut inbox);
        let [InboxItem::Messages(first), InboxItem::Messages(second)] = items.as_slice() else {
            panic!("{items:?}")
        };
        assert_eq!(texts(first, 0), ["a", "bc"]);
        assert_eq!(texts(first, 1), ["bc"]);
        assert_eq!(texts(second, 0), ["d"]);
        assert!(second.since(3).is_none());
    }

    #[test]
    fn each_message_is_read_once_and_in_order() {
        let mut inbox = Inbox::default();
        let (both, other) = (audience(1..3), audience(2..3));
        let mut since = 0;
        inbox.add(&both, b"a", 0);
        inbox.add(&other, b"b", 0);
        assert_eq!(read(&mut inbox, 1, &mut since), ["a"]);
        inbox.add(&both, b"c", 0);
        inbox.add(&both, b"d", 0);
        assert_eq!(read(&mut inbox, 1, &mut since), ["c", "d"]);
        inbox.add(&both, b"e", 0);
        assert_eq!(read(&mut inbox, 1, &mut since), ["e"]);
        assert_eq!(read(&mut inbox, 1, &mut since), [""; 0]);
        let left = |run: &Messages| texts(run, since);
        let items = collected(&mut inbox);
        let runs = items.iter().filter_map(|item| match item {
            InboxItem::Messages(run) => Some(run),
            _ => None,
        });
        assert_eq!(runs.clone().flat_map(left).count(), 0);
        let all: Vec<String> = runs.flat_map(|run| texts(run, 0)).collect();
        assert_eq!(all, ["a", "b", "c", "d", "e"], "the other has missed none");
        assert_eq!(
            read(&mut inbox, 2, &mut 0),
            [""; 0],
            "they are on their way"
        );
    }

    /// Each message that a member of a big audience published used to cost a copy of the audience.
    #[test]
    fn a_subscriber_that_reads_its_own_messages_copies_no_audience_and_splits_no_run() {
        let mut inbox = Inbox::default();
        let many = audience(0..10_000);
        let mut since = 0;
        for _ in 0..100 {
            inbox.add(&many, b"m", 0);
            assert_eq!(read(&mut inbox, 7, &mut since), ["m"]);
        }
        let items = collected(&mut inbox);
        let [InboxItem::Messages(run)] = items.as_slice() else {
            panic!("{} runs", items.len())
        };
        assert!(Arc::ptr_eq(&run.targets, &many));
    }

    #[test]
    fn a_client_that_is_its_own_only_subscriber_leaves_nothing_in_the_inbox() {
        let mut inbox = Inbox::default();
        let rooms = [audience(1..2), audience(1..2)];
        let mut since = 0;
        let message = vec![0; BYTES_MAX / 3];
        for round in 0..10 {
            inbox.add(&rooms[round % 2], &message, 0);
            assert_eq!(read(&mut inbox, 1, &mut since).len(), 1);
            assert_eq!((inbox.message_bytes, inbox.items.len()), (0, 0));
        }
        assert_eq!(closed(&collected(&mut inbox)), 0);
    }

    #[test]
    fn messages_keep_their_numbers_when_a_run_between_two_others_is_dropped() {
        let mut inbox = Inbox::default();
        let (both, own) = (audience(1..3), audience(1..2));
        let mut since = 0;
        for (room, text) in [(&both, "a"), (&own, "b"), (&both, "c"), (&both, "d")] {
            inbox.add(room, text.as_bytes(), 0);
            assert_eq!(read(&mut inbox, 1, &mut since), [text]);
        }
        assert_eq!(read(&mut inbox, 2, &mut 0), ["a", "c", "d"]);
    }

    #[test]
    fn a_subscriber_that_misses_a_message_is_closed() {
        let mut inbox = Inbox::default();
        let both = audience(1..3);
        inbox.add(&both, b"a", 0);
        inbox.add(&both, &vec![0; BYTES_MAX], 0);
        let items = collected(&mut inbox);
        assert!(matches!(&items[0], InboxItem::Messages(run) if texts(run, 0) == ["a"]));
        assert_eq!(closed(&items), 2);
        // What has come back to rest may be filled again.
        inbox.add(&both, &vec![0; BYTES_MAX], 0);
        assert_eq!(closed(&collected(&mut inbox)), 0);
    }

    /// Waiting messages and messages that are being copied were counted separately. Each could
    /// reach the cap.
    #[test]
    fn collected_messages_count_towards_the_cap_until_they_are_dropped() {
        let mut inbox = Inbox::default();
        let both = audience(1..3);
        let half = vec![0; BYTES_MAX / 2];
        inbox.add(&both, &half, 0);
        let taken = inbox.message_bytes();
        let items = collected(&mut inbox);
        inbox.add(&both, b"a", taken);
        inbox.add(&both, &half, taken);
        assert_eq!(inbox.overrun.len(), 2);
        drop(items);
        inbox.add(&both, &half, 0);
        assert_eq!(inbox.message_bytes(), BYTES_MAX / 2 + 1);
    }

    #[test]
    fn one_big_message_always_fits_an_empty_inbox() {
        let mut inbox = Inbox::default();
        inbox.add(&audience(1..2), &vec![0; BYTES_MAX + 1], 0);
        let items = collected(&mut inbox);
        assert!(matches!(items.as_slice(), [InboxItem::Messages(_)]));
    }

    /// If the audience changes between two messages, each of them has a list of its own.
    #[test]
    fn lists_of_targets_count_towards_the_cap() {
        let mut inbox = Inbox::default();
        let list = size_of_val(audience(0..10_000).as_slice());
        for _ in 0..2 * BYTES_MAX / list {
            inbox.add(&audience(0..10_000), b"m", 0);
        }
        assert!(inbox.items.len() <= BYTES_MAX / list + 1);
        assert_eq!(inbox.overrun.len(), 10_000);
        let mut inbox = Inbox::default();
        let rooms = [audience(0..10_000), audience(0..10_000)];
        for round in 0..1_000 {
            inbox.add(&rooms[round % 2], b"m", 0);
        }
        assert_eq!(inbox.message_bytes, 1_000 + 2 * list, "each list once");
    }
}
