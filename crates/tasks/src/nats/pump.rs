//! The pump pulls messages of one consumer, as far as there is room for them.
//!
//! A *pull* asks a consumer for so many messages, for a second. When nothing has come for a bit
//! longer than that, the pull was lost with a node, and another one is made.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use serde_json::json;
use tidewheel_time::{monotonic_nanos, nanos};

use super::consumer::Consumer;
use super::order::{DUE, number};
use super::receipt::Delivery;
use super::wire::Wire;
use crate::shape::timestamp::Timestamp;
use crate::wakes::Wakes;

/// Messages that wait for a worker to claim them.
const ROOM: usize = 2000;

/// Workers are told of each so many messages that wait, of what is due within this after it was
/// kept, and of what is delivered again. They ask for the others anyway.
const MANY: usize = 64;
const SOON: Duration = Duration::from_secs(2);

/// The length of a pull.
const PULL: Duration = Duration::from_secs(1);

/// The pause after a pull that brought nothing: a refusal is answered at once.
const PAUSE: Duration = Duration::from_millis(20);

/// Messages are pulled for so long after the last claim. A store from which nobody claims leaves
/// them to others.
const INTEREST: Duration = Duration::from_secs(5);

/// The time of the last call for claims, by the monotonic clock, in nanoseconds; 0 if nobody asks.
#[derive(Debug, Default)]
pub(super) struct Asked(AtomicU64);

impl Asked {
    pub(super) fn now(&self) {
        self.0.store(monotonic_nanos(), Relaxed);
    }

    pub(super) fn no_more(&self) {
        self.0.store(0, Relaxed);
    }

    fn is_lately(&self) -> bool {
        let asked = self.0.load(Relaxed);
        asked > 0 && monotonic_nanos().saturating_sub(asked) < nanos(INTEREST)
    }
}

/// A message that was delivered, and when.
#[derive(Debug)]
pub(super) struct Delivered {
    pub(super) message: Message,
    /// The time of its delivery, by the monotonic clock, in nanoseconds.
    pub(super) at: u64,
    /// The store's interruptions at that time.
    pub(super) interruptions: u64,
}

/// The messages that one consumer has delivered.
#[derive(Debug)]
pub(super) struct Buffer {
    waiting: Mutex<Vec<Delivered>>,
    most: AtomicUsize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            most: AtomicUsize::new(ROOM),
        }
    }
}

impl Buffer {
    fn lock(&self) -> MutexGuard<'_, Vec<Delivered>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes so many at most, the oldest first.
    pub(super) fn take(&self, most: usize) -> Vec<Delivered> {
        let mut waiting = self.lock();
        let count = most.min(waiting.len());
        waiting.drain(..count).collect()
    }

    /// Returns whether so many wait that somebody should take them.
    fn push(&self, delivered: Delivered) -> bool {
        let mut waiting = self.lock();
        waiting.push(delivered);
        waiting.len().is_multiple_of(MANY)
    }

    /// Sets how many may wait.
    pub(super) fn set_most(&self, most: usize) {
        self.most.store(most.min(ROOM), Relaxed);
    }

    fn room(&self) -> usize {
        let most = self.most.load(Relaxed);
        most.saturating_sub(self.lock().len())
    }
}

/// Pulls until nobody has the buffer any more.
pub(super) async fn pump(
    wire: Wire,
    consumer: Arc<Consumer>,
    buffer: Weak<Buffer>,
    (asked, wakes): (Arc<Asked>, Arc<Wakes>),
) {
    let inbox = wire.client.new_inbox();
    let Ok(mut messages) = wire.client.subscribe(inbox.clone()).await else {
        return;
    };
    while let Some(buffer) = buffer.upgrade() {
        if !asked.is_lately() {
            consumer.doubt();
            give_back(&wire, &buffer).await;
            drop(buffer);
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        if consumer.is_in_doubt() {
            // If that is not answered, it is asked again, and claims begin with records.
            let _ = consumer.look(&wire).await;
        }
        let room = buffer.room();
        if room > 0 {
            pull(&wire, &consumer, &inbox, room).await;
        }
        let came = receive(&mut messages, &buffer, (&wire, &wakes), room).await;
        if came == Came::Trouble {
            consumer.doubt();
        }
        if came != Came::Some {
            drop(buffer);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn pull(wire: &Wire, consumer: &Consumer, inbox: &str, room: usize) {
    let subject = format!(
        "$JS.API.CONSUMER.MSG.NEXT.{}.{}",
        wire.stream, consumer.name
    );
    let expires = PULL.as_nanos().min(u128::from(u64::MAX)) as u64;
    let pull = json!({ "batch": room, "expires": expires }).to_string();
    let asked = wire
        .client
        .publish_with_reply(subject, inbox.to_owned(), pull.into());
    // A connection that is away comes back.
    let _ = asked.await;
}

/// Has everything delivered to others, at once.
async fn give_back(wire: &Wire, buffer: &Buffer) {
    for delivered in buffer.take(usize::MAX) {
        if let Some(reply) = delivered.message.reply {
            let _ = wire.client.publish(reply, "-NAK".into()).await;
        }
    }
}

/// The result of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Some,
    Nothing,
    /// The consumer may not be there any more.
    Trouble,
}

/// Takes what a pull brings, until it ends.
async fn receive(
    messages: &mut Subscriber,
    buffer: &Buffer,
    (wire, wakes): (&Wire, &Wakes),
    most: usize,
) -> Came {
    for received in 0..most {
        let next = tokio::time::timeout(PULL + PULL / 5, messages.next()).await;
        let Ok(Some(message)) = next else {
            return Came::Trouble;
        };
        match message.status.map(|status| status.as_u16()) {
            None => {
                let (at, soon) = (monotonic_nanos(), is_soon(&message));
                if buffer.push(Delivered {
                    message,
                    at,
                    interruptions: wire.interruptions(),
                }) || soon
                {
                    wakes.tell();
                }
            }
            // The pull has ended.
            Some(404 | 408) if received > 0 => return Came::Some,
            Some(404 | 408) => return Came::Nothing,
            Some(_) => return Came::Trouble,
        }
    }
    if most > 0 { Came::Some } else { Came::Nothing }
}

/// True if a message should be claimed now, before a worker asks the next time.
fn is_soon(message: &Message) -> bool {
    let due = message
        .headers
        .as_ref()
        .and_then(|headers| number(headers, DUE));
    let delivery = message.reply.as_deref().and_then(Delivery::of);
    let (Some(due), Some(delivery)) = (due, delivery) else {
        return true;
    };
    delivery.count > 1 || Timestamp(due) <= delivery.kept.plus(SOON)
}
