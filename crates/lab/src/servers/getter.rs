//! A thread GETs keys that stay, in a closed loop, and logs how long each took.

use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use tidewheel_resp::Reply;

use super::background::Background;
use super::client::Connection;
use super::keys::{Key, encode_get};
use super::resp::Answer;
use crate::clock;
use crate::latency::{Log, Sample};

/// The results of the loop.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) log: Log,
    /// GETs answered with null.
    pub(crate) missing: u64,
    /// GETs answered with another key's value.
    pub(crate) wrong: u64,
}

/// Starts a loop of one request at a time; `pick` names the keys.
pub(super) fn start(
    port: u16,
    mut pick: impl FnMut() -> Key + Send + 'static,
) -> Result<Background<Seen>> {
    let mut connection = Connection::open(port)?;
    Ok(Background::start(move |stop| {
        let mut seen = Seen::default();
        let mut request = Vec::new();
        let mut start_ns = clock::mono_ns();
        while !stop.load(Ordering::Relaxed) {
            let key = pick();
            request.clear();
            encode_get(&mut request, key);
            connection.send(&request)?;
            let (wrong, missing) = connection.see(|answer| match answer.accepted()? {
                Answer::Value(value) => Ok((value != key.value(), false)),
                Answer::Other(Reply::Bulk(_)) => Ok((true, false)),
                Answer::Other(Reply::Null) => Ok((false, true)),
                other => bail!("GET was answered with {other:?}"),
            })??;
            seen.wrong += u64::from(wrong);
            seen.missing += u64::from(missing);
            // One reading ends this request and begins the next.
            let end_ns = clock::mono_ns();
            let latency_ns = end_ns - start_ns;
            seen.log.push(Sample { end_ns, latency_ns });
            start_ns = end_ns;
        }
        Ok(seen)
    }))
}
