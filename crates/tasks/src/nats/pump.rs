//! The pump pulls messages of one consumer, as far as there is room for them.
//!
//! A *pull* asks a consumer for so many messages, for a second. When nothing has come for a bit
//! longer than that, the pull was lost with a node, and another one is made. A pull ends at once
//! with the subscription that its messages come to: so a process that leaves gets none any more.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use serde_json::json;
use tidewheel_time::{monotonic_nanos, nanos};
use tokio::sync::Notify;

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

/// What comes in the moment in which a subscription ends is waited for so long.
const LAST: Duration = Duration::from_millis(250);

/// The time of the last call for claims, and the pumps that may get messages for it.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// By the monotonic clock, in nanoseconds; 0 if nobody asks.
    at: AtomicU64,
    /// Nobody asks any more.
    left: Notify,
    /// Pumps that have a subscription, or what came to it.
    open: AtomicUsize,
}

impl Asked {
    pub(super) fn now(&self) {
        self.at.store(monotonic_nanos(), Relaxed);
    }

    pub(super) fn no_more(&self) {
        self.at.store(0, Relaxed);
        self.left.notify_waiters();
    }

    fn is_lately(&self) -> bool {
        let asked = self.at.load(Relaxed);
        asked > 0 && monotonic_nanos().saturating_sub(asked) < nanos(INTEREST)
    }

    /// Waits until nothing comes any more, and what came has gone back, unless somebody asks again:
    /// for so long at most.
    pub(super) async fn is_over(&self, limit: Duration) {
        let begun = monotonic_nanos();
        while self.open.load(Relaxed) > 0
            && !self.is_lately()
            && monotonic_nanos().saturating_sub(begun) < nanos(limit)
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
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

impl Delivered {
    fn now(message: Message, wire: &Wire) -> Self {
        Self {
            message,
            at: monotonic_nanos(),
            interruptions: wire.interruptions(),
        }
    }
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
    let mut open: Option<(Subscriber, String)> = None;
    while let Some(buffer) = buffer.upgrade() {
        if !asked.is_lately() {
            consumer.doubt();
            if let Some((messages, _)) = open.take() {
                end(messages, &buffer, &wire).await;
                give_back(&wire, &buffer).await;
                asked.open.fetch_sub(1, Relaxed);
            }
            drop(buffer);
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        if consumer.is_in_doubt() {
            // If that is not answered, it is asked again, and claims begin with records.
            let _ = consumer.look(&wire).await;
        }
        let Some((messages, inbox)) = &mut open else {
            asked.open.fetch_add(1, Relaxed);
            let inbox = wire.client.new_inbox();
            match wire.client.subscribe(inbox.clone()).await {
                Ok(messages) => open = Some((messages, inbox)),
                Err(_) => {
                    asked.open.fetch_sub(1, Relaxed);
                    drop(buffer);
                    tokio::time::sleep(PAUSE).await;
                }
            }
            continue;
        };
        let room = buffer.room();
        if room > 0 {
            pull(&wire, &consumer, inbox, room).await;
        }
        let came = receive(messages, &buffer, (&wire, &wakes, &asked), room).await;
        if came == Came::Trouble {
            consumer.doubt();
        }
        if came != Came::Some {
            drop(buffer);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Ends a subscription, and takes what has come to it so far.
async fn end(mut messages: Subscriber, buffer: &Buffer, wire: &Wire) {
    if messages.drain().await.is_err() {
        return;
    }
    while let Ok(Some(message)) = tokio::time::timeout(LAST, messages.next()).await {
        if message.status.is_none() {
            buffer.push(Delivered::now(message, wire));
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
    (wire, wakes, asked): (&Wire, &Wakes, &Asked),
    most: usize,
) -> Came {
    for received in 0..most {
        let mut left = pin!(asked.left.notified());
        left.as_mut().enable();
        if !asked.is_lately() {
            return Came::Some;
        }
        let next = tokio::time::timeout(PULL + PULL / 5, select(messages.next(), left)).await;
        let message = match next {
            Ok(Either::Left((Some(message), _))) => message,
            Ok(Either::Right(_)) => return Came::Some,
            _ => return Came::Trouble,
        };
        match message.status.map(|status| status.as_u16()) {
            None => {
                let soon = is_soon(&message);
                if buffer.push(Delivered::now(message, wire)) || soon {
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
