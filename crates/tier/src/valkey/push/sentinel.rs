//! Watches a primary that Sentinels name.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel_resp::Reply;
use tidewheel_time::Moment;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::connection::Connection;
use super::primary::{Beat, Primary};
use crate::core::invalidation_stream::{InvalidationStream, Owners, Source};
use crate::valkey::data::Data;
use crate::valkey::open::{Address, Login};

/// A primary is believed to be one for as long as it says so itself, and a Sentinel has named it
/// lately.
struct Role {
    /// The time at which the Sentinel was asked that has named it last.
    named: Arc<AtomicU64>,
}

impl Beat for Role {
    fn commands(&self) -> &'static [&'static [&'static [u8]]] {
        &[&[b"ROLE"]]
    }

    fn judge(&mut self, sent: Moment, replies: &[Reply]) -> io::Result<Option<Moment>> {
        let is_primary = matches!(
            replies.first(),
            Some(Reply::Array(role)) if role.first() == Some(&Reply::Bulk(b"master".to_vec()))
        );
        if !is_primary {
            return Err(io::Error::other("it is no primary"));
        }
        Ok(Some(sent.min(Moment(self.named.load(SeqCst)))))
    }
}

pub(super) async fn watch(
    sentinels: Vec<Address>,
    name: String,
    login: Login,
    stream: Arc<InvalidationStream>,
    data: Arc<Data>,
) {
    let named = Arc::new(AtomicU64::new(0));
    let mut source: Source = 0;
    let mut present = None;
    // Dropped with this future, and then all are ended.
    let mut watching = JoinSet::new();
    loop {
        let asked = stream.now();
        let primary = primary_of(&sentinels, &name, &login, stream.bound() / 2).await;
        if let Some(address) = primary {
            named.store(asked.0, SeqCst);
            if present.as_ref() != Some(&address) {
                if present.is_some() {
                    data.renew();
                }
                watching.abort_all();
                source = source.wrapping_add(1);
                stream.owned(Owners::One(source));
                let primary = Primary {
                    address: address.clone(),
                    login: login.clone(),
                    source,
                    stream: Arc::clone(&stream),
                    data: Arc::clone(&data),
                };
                let named = Arc::clone(&named);
                watching.spawn(primary.watch(Role { named }));
                present = Some(address);
            }
        }
        sleep(stream.bound() / 8).await;
    }
}

/// The primary, as the first Sentinel that answers names it.
pub(in crate::valkey) async fn primary_of(
    sentinels: &[Address],
    name: &str,
    login: &Login,
    limit: Duration,
) -> Option<Address> {
    let each = limit / u32::try_from(sentinels.len().max(1)).unwrap_or(1);
    let nobody = login.nobody();
    for sentinel in sentinels {
        if let Ok(address) = ask(sentinel, name, &nobody, each).await {
            return Some(address);
        }
    }
    None
}

async fn ask(
    sentinel: &Address,
    name: &str,
    nobody: &Login,
    limit: Duration,
) -> io::Result<Address> {
    let mut connection = Connection::open(sentinel, nobody, limit).await?;
    let question: [&[u8]; 3] = [b"SENTINEL", b"get-master-addr-by-name", name.as_bytes()];
    let reply = connection.call(&question, limit).await?;
    address(&reply).ok_or_else(|| io::Error::other("it does not know the name"))
}

fn address(reply: &Reply) -> Option<Address> {
    let Reply::Array(parts) = reply else {
        return None;
    };
    let [Reply::Bulk(host), Reply::Bulk(port)] = &parts[..] else {
        return None;
    };
    let port = std::str::from_utf8(port).ok()?.parse().ok()?;
    Some((String::from_utf8(host.clone()).ok()?, port))
}
