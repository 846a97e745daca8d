//! Measures the time from the push of an element to the client that has waited for it, when very
//! many wait for one key.
//!
//! All who wait are connections of one thread. Each element is the time at which its push was sent.
//! Who receives one waits again, so their number stays the same. In the end as many elements as
//! there are clients are pushed at once.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mio::{Events, Interest, Poll, Token};
use serde::Serialize;
use serde_json::json;
use tidewheel_resp::Reply;

use crate::clock;
use crate::latency::Latencies;
use crate::proc::Meter;
use crate::progress;
use crate::report::{Figures, Report};
use crate::runner::Basics;
use crate::servers::background::Background;
use crate::servers::client::Connection;
use crate::servers::resp::Inbox;
use crate::servers::server::{self, Target};

const WAIT: &[u8] = b"*3\r\n$5\r\nBLPOP\r\n$5\r\nqueue\r\n$1\r\n0\r\n";
const MAX_EVENTS: usize = 256;
const BUFFER: usize = 256;
/// The interval at which one checks whether something has happened.
const LOOK: Duration = Duration::from_millis(10);
/// A server that has not got ready by then is taken for dead.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Options of `hand-over`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Clients that wait for the one key (quick: 100).
    #[arg(long, default_value_t = 10_000)]
    #[arg(default_value_if("quick", "true", "100"))]
    waiters: usize,
    /// Elements (quick: 500).
    #[arg(long, default_value_t = 50_000)]
    #[arg(default_value_if("quick", "true", "500"))]
    pushes: u64,
    /// Elements a second.
    #[arg(long, default_value_t = 5_000)]
    rate: u64,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let &Args {
        waiters,
        pushes,
        rate,
        ..
    } = args;
    let (mut connection, facts) = server::meet(target)?;
    progress::say("connecting those who wait");
    let crowd = Crowd::start(target.port, waiters, pushes)?;
    let blocked = "blocked_clients";
    await_until("all wait", || {
        let number = server::info_number(&mut connection, "clients", blocked);
        Ok(number == Some(waiters as f64))
    })?;

    progress::say("pushing");
    let mut meter = Meter::start(target.pid);
    let start_ns = clock::mono_ns();
    for at in 0..pushes {
        clock::sleep_until(start_ns + at * 1_000_000_000 / rate.max(1));
        let sent = clock::mono_ns().to_string();
        connection.call(&["RPUSH", "queue", &sent])?;
    }
    crowd.await_received(pushes)?;
    let taken = meter.read();
    let all_ns = push_to_all(&mut connection, &crowd, pushes, waiters)?;
    let one_by_one = crowd.thread.finish()?;

    let mut report = facts.report("hand-over", json!(args));
    let figures = &mut report.figures;
    hand_overs(figures, &one_by_one);
    figures.push("all_at_once_ms", all_ns as f64 / 1e6);
    let cpu = taken.server_ns.map(|ns| ns / 1e3 / pushes.max(1) as f64);
    figures.push("server_cpu_us_per_hand_over", cpu);
    figures.push_noise(taken);
    Ok(report)
}

fn hand_overs(figures: &mut Figures, latencies: &Latencies) {
    figures.push("received", latencies.count() as f64);
    for (name, us) in latencies.percentiles() {
        figures.push(format!("hand_over_{name}_us"), us);
    }
}

/// Pushes an element for each who waits, with one command. Returns how long it takes until all have
/// theirs.
fn push_to_all(
    connection: &mut Connection,
    crowd: &Crowd,
    received: u64,
    waiters: usize,
) -> Result<u64> {
    let element = clock::mono_ns().to_string();
    let mut call = vec!["RPUSH", "queue"];
    call.resize(2 + waiters, &element);
    let start_ns = clock::mono_ns();
    connection.call(&call)?;
    crowd.await_received(received + waiters as u64)?;
    Ok(crowd
        .last_ns
        .load(Ordering::Relaxed)
        .saturating_sub(start_ns))
}

fn await_until(what: &str, mut is: impl FnMut() -> Result<bool>) -> Result<()> {
    let end_ns = clock::mono_ns() + PATIENCE_NS;
    while !is()? {
        if clock::mono_ns() > end_ns {
            bail!("waited too long until {what}");
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// All clients that wait, on a thread of their own.
struct Crowd {
    thread: Background<Latencies>,
    /// Elements received, and when the last of them was.
    received: Arc<AtomicU64>,
    last_ns: Arc<AtomicU64>,
}

impl Crowd {
    /// `counted` elements count, from the first one on.
    fn start(port: u16, waiters: usize, counted: u64) -> Result<Self> {
        let (received, last_ns) = (Arc::default(), Arc::default());
        let mut of = Waiters {
            poll: Poll::new()?,
            all: Vec::with_capacity(waiters),
            latencies: Latencies::default(),
            received: Arc::clone(&received),
            last_ns: Arc::clone(&last_ns),
        };
        for _ in 0..waiters {
            of.add(port)?;
        }
        let thread = Background::start(move |stop| of.receive(counted, stop));
        Ok(Self {
            thread,
            received,
            last_ns,
        })
    }

    fn await_received(&self, count: u64) -> Result<()> {
        await_until("all is received", || {
            let received = self.received.load(Ordering::Relaxed);
            Ok(received >= count || self.thread.has_ended())
        })
    }
}

struct Waiters {
    poll: Poll,
    all: Vec<(mio::net::TcpStream, Inbox)>,
    latencies: Latencies,
    received: Arc<AtomicU64>,
    last_ns: Arc<AtomicU64>,
}

impl Waiters {
    /// Adds one more client, which waits from now on.
    fn add(&mut self, port: u16) -> Result<()> {
        let mut connection = Connection::open(port)?;
        connection.send(WAIT)?;
        let stream: TcpStream = connection.into_stream();
        stream.set_nonblocking(true)?;
        let mut stream = mio::net::TcpStream::from_std(stream);
        let token = Token(self.all.len());
        let registry = self.poll.registry();
        registry.register(&mut stream, token, Interest::READABLE)?;
        self.all.push((stream, Inbox::new(BUFFER)));
        Ok(())
    }

    fn receive(mut self, counted: u64, stop: &AtomicBool) -> Result<Latencies> {
        let mut events = Events::with_capacity(MAX_EVENTS);
        while !stop.load(Ordering::Relaxed) {
            match self.poll.poll(&mut events, Some(LOOK)) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("cannot poll those who wait"),
            }
            for event in &events {
                self.look(event.token().0, counted)?;
            }
        }
        Ok(self.latencies)
    }

    /// Takes what one has received, and has it wait again.
    fn look(&mut self, at: usize, counted: u64) -> Result<()> {
        let Some((stream, inbox)) = self.all.get_mut(at) else {
            return Ok(());
        };
        while let Some(more) = inbox.fill(stream)? {
            if let Some(reply) = inbox.take()? {
                let now_ns = clock::mono_ns();
                let sent_ns = sent_ns(&reply)?;
                if self.received.load(Ordering::Relaxed) < counted {
                    self.latencies.record(now_ns.saturating_sub(sent_ns));
                }
                stream
                    .write_all(WAIT)
                    .context("the server no longer reads")?;
                self.last_ns.store(now_ns, Ordering::Relaxed);
                self.received.fetch_add(1, Ordering::Relaxed);
            }
            if !more {
                break;
            }
        }
        Ok(())
    }
}

/// The time at which the element of a reply was pushed.
fn sent_ns(reply: &Reply) -> Result<u64> {
    let element = match reply {
        Reply::Array(items) => items.get(1),
        _ => None,
    };
    let Some(Reply::Bulk(element)) = element else {
        bail!("BLPOP was answered with {reply:?}");
    };
    let text = String::from_utf8_lossy(element);
    text.parse().context("an element that nobody has pushed")
}
