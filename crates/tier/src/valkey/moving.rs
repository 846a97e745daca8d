//! While a slot is half moved to another node, its keys are asked for one by one.
//!
//! The source says with ASK that the target has a key. The target answers for it if ASKING comes
//! immediately before the command. The crate's client follows by itself, and sends the two apart:
//! other callers' commands come between, the target sends it back, and after some rounds it gives
//! up. So what is known to be half moved is asked for here, with connections of their own, and with
//! one write for the two.

use std::collections::BTreeMap;
use std::sync::{Mutex as Lock, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, FromRedisValue, RedisError, Script, ServerErrorKind};
use tidewheel_time::{monotonic_nanos, nanos};
use tokio::sync::Mutex;

use super::data::{command, invoke, is_of_the_connection, node};
use super::open::{Address, Servers};
use super::scripts::{Step, text};
use crate::core::slot::slot;

/// A slot counts as half moved for so long after it was found to be.
const BELIEVED: Duration = Duration::from_secs(1);

/// Nodes that send a question on, one to the other.
const HOPS: u32 = 5;

/// The slots that are half moved, and the connections for them. They go when nothing is.
#[derive(Default)]
pub(super) struct Moving {
    slots: Lock<Slots>,
    links: Mutex<Links>,
}

/// The times until which each counts as half moved, and the time until which any does.
#[derive(Default)]
struct Slots {
    each: BTreeMap<u16, u64>,
    last: u64,
}

#[derive(Default)]
struct Links {
    each: BTreeMap<Address, MultiplexedConnection>,
    /// The owners of the slots, as MOVED named them.
    owners: BTreeMap<u16, Address>,
}

impl Moving {
    /// Takes note that a key's slot is half moved.
    pub(super) fn note(&self, key: &[u8]) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.last = monotonic_nanos().saturating_add(nanos(BELIEVED));
        let last = slots.last;
        slots.each.insert(slot(key), last);
    }

    /// True if a key's slot was half moved a moment ago.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.each.is_empty() {
            return false;
        }
        let now = monotonic_nanos();
        if now < slots.last {
            return slots.each.get(&slot(key)).is_some_and(|until| now < *until);
        }
        slots.each.clear();
        if let Ok(mut links) = self.links.try_lock() {
            *links = Links::default();
        }
        false
    }

    /// Runs a script over one key, at the node that the key is at. With the servers comes how long
    /// a connection to one, or a command, may take.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        servers: (&Servers, Duration),
        script: &Script,
        step: &Step,
    ) -> Result<T, RedisError> {
        let slot = slot(step.slot_key());
        let (mut address, mut link) = self.owner(servers, slot).await?;
        let mut is_asking = false;
        for _ in 0..HOPS {
            let error = match ask(&mut link, is_asking, script, step).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(next) = elsewhere(&error) else {
                if is_of_the_connection(&error) {
                    self.forget(&address, slot).await;
                }
                return Err(error);
            };
            is_asking = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
            link = self.link(servers, &next).await?;
            if !is_asking {
                self.links.lock().await.owners.insert(slot, next.clone());
            }
            address = next;
        }
        Err((ErrorKind::Client, "too many redirections").into())
    }

    /// The owner of a slot, as far as that is known; or a node that knows.
    async fn owner(
        &self,
        servers: (&Servers, Duration),
        slot: u16,
    ) -> Result<(Address, MultiplexedConnection), RedisError> {
        let known = self.links.lock().await.owners.get(&slot).cloned();
        let mut why = (ErrorKind::Client, "no node is known").into();
        for address in known.iter().chain(servers.0.deployment.addresses()) {
            match self.link(servers, address).await {
                Ok(link) => return Ok((address.clone(), link)),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    async fn link(
        &self,
        (servers, limit): (&Servers, Duration),
        address: &Address,
    ) -> Result<MultiplexedConnection, RedisError> {
        let mut links = self.links.lock().await;
        if let Some(link) = links.each.get(address) {
            return Ok(link.clone());
        }
        let link = node(servers, address, limit).await?;
        links.each.insert(address.clone(), link.clone());
        Ok(link)
    }

    /// Forgets a node after an error: it may be away, or own nothing any more.
    async fn forget(&self, address: &Address, slot: u16) {
        let mut links = self.links.lock().await;
        links.each.remove(address);
        links.owners.remove(&slot);
    }
}

async fn ask<T: FromRedisValue>(
    link: &mut MultiplexedConnection,
    is_asking: bool,
    script: &Script,
    step: &Step,
) -> Result<T, RedisError> {
    if !is_asking {
        return invoke(link, script, step, b"1").await;
    }
    let mut both = redis::pipe();
    both.ignore_errors().cmd("ASKING").ignore();
    both.add_command(command("EVAL", text(script), step, b"1"));
    let mut answers: Vec<Result<T, RedisError>> = both.query_async(link).await?;
    let none = || Err((ErrorKind::Client, "no answer").into());
    answers.pop().unwrap_or_else(none)
}

/// The node that has the key, if it is another one: while its slot moves, or since it has.
fn elsewhere(error: &RedisError) -> Option<Address> {
    let (host, port) = error.redirect_node()?.0.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}
