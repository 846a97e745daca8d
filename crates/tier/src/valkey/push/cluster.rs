//! Watches the primaries of a cluster, each on a connection. Each heartbeat asks for the owners of
//! the slots.
//!
//! A node's answer counts only if it agrees with what is being watched. If it does not, its own
//! view is taken over: every watch ends. While nodes disagree, after a failover for example, little
//! is believed, and nothing false.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tidewheel_resp::Reply;
use tidewheel_time::Moment;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::connection::Connection;
use super::primary::{Beat, Primary};
use crate::core::invalidation_stream::{InvalidationStream, Owners, Source};
use crate::core::server::ServerId;
use crate::core::slot::SLOTS;
use crate::valkey::data::Data;
use crate::valkey::open::{Address, Login};

/// Ranges of slots with their owners, in order.
type View = Vec<(u16, u16, Address)>;

/// The present view of the cluster, for all connections to compare with.
type Present = Arc<Mutex<View>>;

/// A node's view, and whether it is in touch with most of the cluster.
struct Slots {
    /// The host that a node is known by, for answers that leave it out.
    host: String,
    present: Present,
    views: Sender<View>,
}

impl Beat for Slots {
    fn who(&self) -> [&'static [u8]; 2] {
        [b"CLUSTER", b"MYID"]
    }

    fn identity(&self, answer: &[u8]) -> Option<ServerId> {
        Some(ServerId::of(answer))
    }

    fn commands(&self) -> &'static [&'static [&'static [u8]]] {
        &[&[b"CLUSTER", b"INFO"], &[b"CLUSTER", b"SLOTS"]]
    }

    fn judge(&mut self, sent: Moment, replies: &[Reply]) -> io::Result<Option<Moment>> {
        let [info, slots] = replies else {
            return Ok(None);
        };
        if !is_ok(info) {
            return Ok(None);
        }
        let Some(view) = view(slots, &self.host) else {
            return Err(io::Error::other("slots that cannot be read"));
        };
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if *present == view {
            return Ok(Some(sent));
        }
        drop(present);
        // If there is no room, others wait to be taken over, and this one will be sent again.
        let _ = self.views.try_send(view);
        Ok(None)
    }
}

pub(super) async fn watch(
    nodes: Vec<Address>,
    login: Login,
    stream: Arc<InvalidationStream>,
    data: Arc<Data>,
) {
    let (views, mut told) = channel(16);
    let mut cluster = Cluster {
        seeds: nodes,
        login,
        stream,
        data,
        present: Arc::default(),
        views,
        sources: BTreeMap::new(),
        last: 0,
        watching: JoinSet::new(),
    };
    cluster.find().await;
    let silence = cluster.stream.bound();
    loop {
        match timeout(silence, told.recv()).await {
            Ok(Some(view)) => cluster.take_over(view),
            Ok(None) => return,
            // If all that were known are gone, somebody else may answer.
            Err(_) if !cluster.stream.is_watched() => cluster.find().await,
            Err(_) => {}
        }
    }
}

struct Cluster {
    seeds: Vec<Address>,
    login: Login,
    stream: Arc<InvalidationStream>,
    data: Arc<Data>,
    present: Present,
    views: Sender<View>,
    sources: BTreeMap<Address, (Source, AbortHandle)>,
    last: Source,
    /// Dropped with this, and then all are ended.
    watching: JoinSet<()>,
}

impl Cluster {
    /// Asks the nodes that are known until one answers.
    async fn find(&mut self) {
        loop {
            for node in self.known() {
                if let Some(view) = self.ask(&node).await {
                    return self.take_over(view);
                }
            }
            sleep(self.stream.bound() / 4).await;
        }
    }

    fn known(&self) -> Vec<Address> {
        let watched = self.sources.keys();
        watched.chain(&self.seeds).cloned().collect()
    }

    async fn ask(&self, node: &Address) -> Option<View> {
        let limit = self.stream.bound() / 4;
        let mut connection = Connection::open(node, &self.login, limit).await.ok()?;
        let info = connection.call(&[b"CLUSTER", b"INFO"], limit).await.ok()?;
        let slots = connection.call(&[b"CLUSTER", b"SLOTS"], limit).await.ok()?;
        view(&slots, &node.0).filter(|_| is_ok(&info))
    }

    /// Watches those who own slots in this view, and nobody else.
    fn take_over(&mut self, view: View) {
        if *self.lock() == view {
            return;
        }
        let owners: Vec<_> = view.iter().map(|(_, _, owner)| owner.clone()).collect();
        let watched = self.sources.len();
        self.sources.retain(|address, (_, task)| {
            let stays = owners.contains(address);
            if !stays {
                task.abort();
            }
            stays
        });
        if self.sources.len() < watched {
            // The client may not know yet that an owner is none any more.
            self.data.renew();
        }
        let mut slots = vec![None; usize::from(SLOTS)];
        let mut fresh = Vec::new();
        for (first, last, owner) in &view {
            let source = self.source(owner, &mut fresh);
            if let Some(range) = slots.get_mut(usize::from(*first)..=usize::from(*last)) {
                range.fill(Some(source));
            }
        }
        *self.lock() = view;
        self.stream.owned(Owners::Slots(slots.into()));
        for primary in fresh {
            self.begin(primary);
        }
        while self.watching.try_join_next().is_some() {}
    }

    /// The number of an owner's connection.
    fn source(&mut self, owner: &Address, fresh: &mut Vec<Primary>) -> Source {
        if let Some((source, _)) = self.sources.get(owner) {
            return *source;
        }
        if let Some(known) = fresh.iter().find(|primary| primary.address == *owner) {
            return known.source;
        }
        self.last = self.last.wrapping_add(1);
        fresh.push(Primary {
            address: owner.clone(),
            login: self.login.clone(),
            source: self.last,
            stream: Arc::clone(&self.stream),
            data: Arc::clone(&self.data),
        });
        self.last
    }

    fn begin(&mut self, primary: Primary) {
        let beat = Slots {
            host: primary.address.0.clone(),
            present: Arc::clone(&self.present),
            views: self.views.clone(),
        };
        let (address, source) = (primary.address.clone(), primary.source);
        let task = self.watching.spawn(primary.watch(beat));
        self.sources.insert(address, (source, task));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, View> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if a node is in touch with most of the cluster.
fn is_ok(info: &Reply) -> bool {
    match info {
        Reply::Bulk(text) | Reply::Verbatim(_, text) => text
            .split(|byte| *byte == b'\n')
            .any(|line| line.trim_ascii_end() == b"cluster_state:ok"),
        _ => false,
    }
}

/// The owners of all slots, as a node says; `None` if that cannot be read.
fn view(reply: &Reply, host: &str) -> Option<View> {
    let Reply::Array(ranges) = reply else {
        return None;
    };
    let mut view = ranges
        .iter()
        .map(|range| owned(range, host))
        .collect::<Option<View>>()?;
    view.sort_unstable();
    Some(view)
}

/// Reads one range: its first and its last slot, and the primary's host and port.
fn owned(range: &Reply, known: &str) -> Option<(u16, u16, Address)> {
    let Reply::Array(parts) = range else {
        return None;
    };
    let [
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Array(primary),
        ..,
    ] = &parts[..]
    else {
        return None;
    };
    let [host, Reply::Integer(port), ..] = &primary[..] else {
        return None;
    };
    let host = match host {
        Reply::Bulk(host) if !host.is_empty() => String::from_utf8(host.clone()).ok()?,
        // A node that does not know its own address: the one that it was reached by.
        _ => known.to_owned(),
    };
    let slot = |slot: i64| u16::try_from(slot).ok().filter(|slot| *slot < SLOTS);
    Some((
        slot(*first)?,
        slot(*last)?,
        (host, u16::try_from(*port).ok()?),
    ))
}
