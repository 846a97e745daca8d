//! A thread that GETs in a closed loop and logs how long each took.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use crate::clock;
use crate::latency::{Log, Sample};
use crate::servers::client::{Address, Connection};
use crate::servers::keys::{Key, encode_get};
use crate::servers::resp::Skipped;

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

/// The running loop.
#[derive(Debug)]
pub(crate) struct Getter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Seen>>,
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

impl Getter {
    /// Starts a loop of one request at a time: `pick` names a key, or none yet.
    ///
    /// With a `pause` the loop sleeps after each reply; the pause is no part of a latency.
    pub(crate) fn start(
        address: &Address,
        pause: Option<Duration>,
        mut pick: impl FnMut() -> Option<Pick> + Send + 'static,
    ) -> Result<Self> {
        let mut connection = Connection::open(address)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("getter".to_owned())
            .spawn(move || {
                let mut seen = Seen::default();
                let mut request = Vec::new();
                let mut start = clock::mono_ns();
                while !stopped.load(Ordering::Relaxed) {
                    if let Some(Pick {
                        key,
                        alive_until_ns,
                    }) = pick()
                    {
                        request.clear();
                        encode_get(&mut request, key);
                        if pause.is_some() {
                            start = clock::mono_ns();
                        }
                        connection.send(&request)?;
                        let mut missing = false;
                        match connection.receive_flat()? {
                            Skipped::Bulk(value) => seen.wrong += u64::from(value != key.value()),
                            Skipped::Null => missing = true,
                            Skipped::Error(text) => bail!("GET: {}", String::from_utf8_lossy(text)),
                            other => bail!("GET was answered with {other:?}"),
                        }
                        // Without a pause one reading ends this request and begins the next.
                        let end = clock::mono_ns();
                        seen.missing += u64::from(missing && end < alive_until_ns);
                        seen.log.push(Sample {
                            end_ns: end,
                            latency_ns: end - start,
                        });
                        start = end;
                    } else {
                        start = clock::mono_ns();
                    }
                    if let Some(pause) = pause {
                        thread::sleep(pause);
                    }
                }
                Ok(seen)
            })?;
        Ok(Self { stop, thread })
    }

    pub(crate) fn finish(self) -> Result<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("the thread that reads panicked"))?
    }
}
