//! A thread that GETs in a closed loop and logs how long each took.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use tidewheel_resp::Reply;

use super::background::Background;
use super::client::{Address, Connection};
use super::keys::{Key, encode_get};
use super::resp::Answer;
use crate::clock;
use crate::latency::{Log, Sample};

/// What the loop saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) log: Log,
    /// GETs of a key that must be there, answered with null while it must.
    pub(crate) missing: u64,
    /// GETs answered with another key's value.
    pub(crate) wrong: u64,
}

/// What to ask for next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) key: Key,
    /// A null that arrives later than this is no fault: somebody may have been held up that long.
    pub(crate) alive_until_ns: u64,
}

impl Pick {
    /// A key that stays.
    pub(crate) fn lasting(key: Key) -> Self {
        Self {
            key,
            alive_until_ns: u64::MAX,
        }
    }
}

/// Starts a loop of one request at a time: `pick` names a key, or none yet.
///
/// With a `pause` the loop sleeps after each reply; the pause is no part of a latency.
pub(super) fn start(
    address: &Address,
    pause: Option<Duration>,
    pick: impl FnMut() -> Option<Pick> + Send + 'static,
) -> Result<Background<Seen>> {
    let connection = Connection::open(address)?;
    Ok(Background::start(move |stop| {
        get(connection, pause, pick, stop)
    }))
}

fn get(
    mut connection: Connection,
    pause: Option<Duration>,
    mut pick: impl FnMut() -> Option<Pick>,
    stop: &AtomicBool,
) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut request = Vec::new();
    let mut start = clock::mono_ns();
    while !stop.load(Ordering::Relaxed) {
        if let Some(pick) = pick() {
            request.clear();
            encode_get(&mut request, pick.key);
            if pause.is_some() {
                start = clock::mono_ns();
            }
            connection.send(&request)?;
            let (wrong, missing) = connection.see(|answer| match answer.accepted()? {
                Answer::Value(value) => Ok((value != pick.key.value(), false)),
                Answer::Other(Reply::Bulk(_)) => Ok((true, false)),
                Answer::Other(Reply::Null) => Ok((false, true)),
                other => bail!("GET was answered with {other:?}"),
            })??;
            seen.wrong += u64::from(wrong);
            // Without a pause one reading ends this request and begins the next.
            let end = clock::mono_ns();
            seen.missing += u64::from(missing && end < pick.alive_until_ns);
            let (end_ns, latency_ns) = (end, end - start);
            seen.log.push(Sample { end_ns, latency_ns });
            start = end;
        } else {
            start = clock::mono_ns();
        }
        if let Some(pause) = pause {
            thread::sleep(pause);
        }
    }
    Ok(seen)
}
