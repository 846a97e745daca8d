//! The registry of clients, which every thread may read: for CLIENT LIST and CLIENT KILL.

use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidewheel_keyspace::{Ticket, WatchMark};
use tidewheel_resp::Protocol;

use crate::clients::tracking::TrackingFacts;
use crate::config::Address;
use crate::loop_handle::inbox::Target;
use crate::users::Users;

/// One client, as other threads see it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) peer: Address,
    pub(crate) local: Address,
    /// The version of TLS that it speaks, as CLIENT LIST shows it; `no` if none.
    pub(crate) tls: &'static str,
    pub(crate) descriptor: i64,
    /// The tick at which it connected.
    pub(crate) since: u64,
    /// The loop that owns it, and its slot there.
    pub(crate) owner: usize,
    pub(crate) slot: u32,
    /// Somebody has asked to close it.
    pub(crate) killed: AtomicBool,
    pub(crate) facts: Mutex<ClientFacts>,
    /// The ticket of a command that waits.
    pub(crate) waiting: Mutex<Option<Arc<Ticket>>>,
}

/// The state that changes while a client is connected. Its loop refreshes it after each batch of
/// commands.
#[derive(Debug)]
pub(crate) struct ClientFacts {
    /// Its user's name.
    pub(crate) user: Arc<[u8]>,
    pub(crate) names: ClientNames,
    pub(crate) db: u32,
    pub(crate) channels: usize,
    pub(crate) patterns: usize,
    pub(crate) shard_channels: usize,
    pub(crate) tracking: Option<TrackingFacts>,
    pub(crate) last_active: u64,
    pub(crate) holds: ClientMemory,
    pub(crate) traffic: ClientTraffic,
    pub(crate) command: &'static str,
    pub(crate) protocol: Protocol,
    /// The number of commands that are queued after MULTI.
    pub(crate) queued: Option<usize>,
    /// The mark that says whether a watched key has changed, if the client watches any.
    pub(crate) watched_changed: Option<WatchMark>,
    /// The number of keys that it watches.
    pub(crate) watched: usize,
    pub(crate) paused: bool,
    pub(crate) monitor: bool,
    pub(crate) no_evict: bool,
    pub(crate) no_touch: bool,
}

/// The client's own name, and the library that it uses.
#[derive(Debug, Default)]
pub(crate) struct ClientNames {
    pub(crate) own: Vec<u8>,
    pub(crate) lib: Vec<u8>,
    pub(crate) lib_version: Vec<u8>,
}

impl ClientNames {
    /// Returns the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.own.capacity() + self.lib.capacity() + self.lib_version.capacity()
    }
}

/// Bytes that are held for a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientMemory {
    /// Input that has not been run, and the parser's memory for it.
    pub(crate) input: usize,
    /// Replies and messages that have not been sent.
    pub(crate) output: usize,
    pub(crate) subscriptions: usize,
    /// Commands that are queued, and keys that are watched.
    pub(crate) queue: usize,
    pub(crate) names: usize,
}

impl ClientMemory {
    pub(crate) fn total(self) -> usize {
        self.input + self.output + self.subscriptions + self.queue + self.names
    }
}

/// The bytes that a client has sent and received, and the commands that it has run, since it
/// connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientTraffic {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) commands: u64,
}

impl ClientFacts {
    /// Returns true if the client has subscribed to anything.
    pub(crate) fn is_subscriber(&self) -> bool {
        self.channels + self.patterns + self.shard_channels > 0
    }

    /// Returns the facts of a client that has just connected.
    pub(crate) fn new(now: u64) -> Self {
        Self {
            user: Arc::clone(&Users::alone().name),
            names: ClientNames::default(),
            db: 0,
            channels: 0,
            patterns: 0,
            shard_channels: 0,
            tracking: None,
            last_active: now,
            holds: ClientMemory::default(),
            traffic: ClientTraffic::default(),
            command: "NULL",
            protocol: Protocol::Resp2,
            queued: None,
            watched_changed: None,
            watched: 0,
            paused: false,
            monitor: false,
            no_evict: false,
            no_touch: false,
        }
    }
}

impl Client {
    /// Asks to close it. False if somebody else has asked before. From now on nothing is taken for
    /// a command of its that waits.
    pub(crate) fn kill(&self) -> bool {
        let is_first = !self.killed.swap(true, Ordering::Relaxed);
        if let Some(ticket) = &*self.waiting.lock() {
            // If it was served already, the reply is lost with the connection.
            let _ = ticket.end();
        }
        is_first
    }

    pub(crate) fn target(&self) -> Target {
        Target {
            id: self.id,
            slot: self.slot,
        }
    }

    /// The letters of its flags in CLIENT LIST.
    pub(crate) fn flags(&self) -> String {
        self.flags_with(&self.facts.lock())
    }

    fn flags_with(&self, facts: &ClientFacts) -> String {
        let mut flags = String::new();
        for (is, letter) in [
            (facts.monitor, 'O'),
            (facts.is_subscriber(), 'P'),
            (facts.queued.is_some(), 'x'),
            (
                facts
                    .watched_changed
                    .as_ref()
                    .is_some_and(WatchMark::is_set),
                'd',
            ),
            (facts.paused, 'b'),
            (facts.tracking.is_some(), 't'),
            (facts.tracking.is_some_and(|tracking| tracking.broken), 'R'),
            (
                facts.tracking.is_some_and(|tracking| tracking.broadcast),
                'B',
            ),
            (self.killed.load(Ordering::Relaxed), 'A'),
            (facts.no_evict, 'e'),
            (facts.no_touch, 'T'),
            (self.peer.is_unix(), 'U'),
        ] {
            if is {
                flags.push(letter);
            }
        }
        if flags.is_empty() {
            flags.push('N');
        }
        flags
    }

    /// Writes its line of CLIENT LIST, without a line end.
    pub(crate) fn describe(&self, now: u64, out: &mut Vec<u8>) {
        let facts = self.facts.lock();
        let flags = self.flags_with(&facts);
        let age_s = now.saturating_sub(self.since) / 1000;
        let idle_s = now.saturating_sub(facts.last_active) / 1000;
        let mut line = String::new();
        let held = size_of::<Self>() + facts.holds.total();
        let written = write!(
            line,
            "id={} addr={} laddr={}",
            self.id, self.peer, self.local
        )
        .and_then(|()| write!(line, " fd={} name=", self.descriptor));
        debug_assert!(written.is_ok(), "a String takes everything");
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(&facts.names.own);
        line.clear();
        let resp = match facts.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        };
        let written = write!(
            line,
            " age={age_s} idle={idle_s} flags={flags} db={} sub={} psub={} ssub={} multi={} watch={} qbuf={} \
             qbuf-free=0 argv-mem=0 multi-mem={} rbs=0 rbp=0 obl=0 oll=0 omem={} tot-mem={held} \
             events=r cmd={} user=",
            facts.db,
            facts.channels,
            facts.patterns,
            facts.shard_channels,
            facts.queued.map_or(-1, |queued| queued as i64),
            facts.watched,
            facts.holds.input,
            facts.holds.queue,
            facts.holds.output,
            facts.command,
        );
        debug_assert!(written.is_ok(), "a String takes everything");
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(&facts.user);
        line.clear();
        let redirect = (facts.tracking).map_or(-1, |tracking| tracking.redirect as i64);
        let written = write!(line, " redir={redirect} resp={resp} lib-name=");
        debug_assert!(written.is_ok(), "a String takes everything");
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(&facts.names.lib);
        out.extend_from_slice(b" lib-ver=");
        out.extend_from_slice(&facts.names.lib_version);
        let ClientTraffic {
            input,
            output,
            commands,
        } = facts.traffic;
        line.clear();
        let written = write!(
            line,
            " tot-net-in={input} tot-net-out={output} tot-cmds={commands} tls={}",
            self.tls
        );
        debug_assert!(written.is_ok(), "a String takes everything");
        out.extend_from_slice(line.as_bytes());
    }
}

/// All clients, by id.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    next_id: AtomicU64,
    /// The tick after the last one in which a loop looked for clients to close.
    looked_at: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// Returns an id that no client had before.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn add(&self, client: Arc<Client>) {
        self.all.lock().insert(client.id, client);
    }

    pub(crate) fn remove(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.all.lock().get(&id).cloned()
    }

    /// Marks clients as killed until the others together hold no more than `limit` bytes. The
    /// biggest come first; clients that may not be evicted are left out, and those that are marked
    /// already do not count. The caller closes the clients that are returned.
    pub(crate) fn kill_biggest(&self, limit: u64) -> Vec<Arc<Client>> {
        let (mut sum, mut heap) = (0_u64, BinaryHeap::new());
        let all = self.all.lock();
        for client in all.values() {
            if client.killed.load(Ordering::Relaxed) {
                continue;
            }
            let facts = client.facts.lock();
            let held = facts.holds.total() as u64;
            sum = sum.saturating_add(held);
            if held > 0 && !facts.no_evict {
                heap.push((held, client.id));
            }
        }
        let mut killed = Vec::new();
        while sum > limit
            && let Some((held, id)) = heap.pop()
        {
            sum -= held;
            let client = &all[&id];
            // Somebody else may have been quicker.
            if client.kill() {
                killed.push(Arc::clone(client));
            }
        }
        killed
    }

    /// Returns true to the first caller in a tick.
    pub(crate) fn claim_check(&self, tick: u64) -> bool {
        let next = tick.saturating_add(1);
        self.looked_at.swap(next, Ordering::Relaxed) != next
    }

    /// Returns all clients at this moment, by id.
    pub(crate) fn snapshot(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.lock().len()
    }
}
