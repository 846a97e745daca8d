//! A stream of events: what changes, once a second.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::ask::{Asker, NoAnswer};
use super::desk::Desk;
use super::moment::{self, Wanted};
use super::reply::{Page, stream};

/// How long a browser waits before it opens a stream anew that has ended.
const RETRY: &str = "retry: 2000\n";

/// Opens a stream, if the user is known and there is room for one more.
pub(super) async fn open(
    desk: &Arc<Desk>,
    mut asker: Asker,
    wanted: Wanted,
) -> Result<Page, NoAnswer> {
    let place = Arc::clone(&desk.streams).try_acquire_owned();
    let full = |_| NoAnswer::Fails("there are 32 streams of events, no more".to_owned());
    let place = place.map_err(full)?;
    let first = moment::second(desk, &mut asker, &wanted).await?;
    // One event waits at most: whoever reads slowly gets fewer.
    let (sender, events) = mpsc::channel(1);
    let desk = Arc::clone(desk);
    tokio::spawn(async move {
        send(&desk, asker, &wanted, &sender, first).await;
        drop(place);
    });
    Ok(stream(events))
}

/// Sends an event each second until the viewer has gone, or the server no longer answers it.
async fn send(
    desk: &Desk,
    mut asker: Asker,
    wanted: &Wanted,
    sender: &mpsc::Sender<Bytes>,
    first: Value,
) {
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    seconds.tick().await;
    let mut event = format!("{RETRY}data: {first}\n\n");
    while sender.send(Bytes::from(event)).await.is_ok() {
        tokio::select! {
            () = sender.closed() => return,
            _ = seconds.tick() => {}
        }
        event = match moment::second(desk, &mut asker, wanted).await {
            Ok(second) => format!("data: {second}\n\n"),
            Err(_) => return,
        };
    }
}
