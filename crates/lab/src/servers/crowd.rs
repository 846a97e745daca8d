//! Very many clients that wait, as connections of one thread. Who gets an answer waits again.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mio::{Events, Interest, Poll, Token};
use tidewheel_resp::Reply;

use crate::clock;
use crate::latency::Latencies;
use crate::servers::background::Background;
use crate::servers::client::Connection;
use crate::servers::resp::Inbox;
use crate::servers::server;

const MAX_EVENTS: usize = 256;
const BUFFER: usize = 256;
/// The interval at which one checks whether something has happened.
const LOOK: Duration = Duration::from_millis(10);
/// A server that has not got ready by then is taken for dead.
const PATIENCE_NS: u64 = 60_000_000_000;

/// What each of the clients does.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    /// The request that waits.
    pub(super) request: &'static [u8],
    /// Finds in a reply when that was sent for which the client waited.
    pub(super) sent_ns: fn(&Reply) -> Result<u64>,
}

/// All clients that wait, on a thread of their own.
pub(super) struct Crowd {
    waiters: usize,
    thread: Background<(Latencies, Vec<u64>)>,
    /// Answers received, and when the last of them was.
    received: Arc<AtomicU64>,
    last_ns: Arc<AtomicU64>,
}

impl Crowd {
    /// The latencies of `counted` answers count, from the first one on.
    pub(super) fn start(port: u16, waiters: usize, counted: u64, wait: Wait) -> Result<Self> {
        let (received, last_ns) = (Arc::default(), Arc::default());
        let mut of = Waiters {
            poll: Poll::new()?,
            all: Vec::with_capacity(waiters),
            latencies: Latencies::default(),
            received: Arc::clone(&received),
            last_ns: Arc::clone(&last_ns),
            wait,
        };
        for _ in 0..waiters {
            of.add(port)?;
        }
        let thread = Background::start(move |stop| of.receive(counted, stop));
        Ok(Self {
            waiters,
            thread,
            received,
            last_ns,
        })
    }

    /// Returns once the server says that all of them wait.
    pub(super) fn await_waiting(&self, connection: &mut Connection) -> Result<()> {
        await_until("all wait", || {
            let number = server::info_number(connection, "clients", "blocked_clients");
            Ok(number == Some(self.waiters as f64) || self.thread.has_ended())
        })
    }

    /// When the last answer was read.
    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns.load(Ordering::Relaxed)
    }

    /// Ends the clients. Returns how long their answers took, and how many each got.
    pub(super) fn finish(self) -> Result<(Latencies, Vec<u64>)> {
        self.thread.finish()
    }

    pub(super) fn await_received(&self, count: u64) -> Result<()> {
        await_until("all is received", || {
            let received = self.received.load(Ordering::Relaxed);
            Ok(received >= count || self.thread.has_ended())
        })
    }
}

struct Waiter {
    stream: mio::net::TcpStream,
    inbox: Inbox,
    answers: u64,
}

struct Waiters {
    poll: Poll,
    all: Vec<Waiter>,
    latencies: Latencies,
    received: Arc<AtomicU64>,
    last_ns: Arc<AtomicU64>,
    wait: Wait,
}

impl Waiters {
    /// Adds one more client, which waits from now on.
    fn add(&mut self, port: u16) -> Result<()> {
        let mut connection = Connection::open(port)?;
        connection.send(self.wait.request)?;
        let stream: TcpStream = connection.into_stream();
        stream.set_nonblocking(true)?;
        let mut stream = mio::net::TcpStream::from_std(stream);
        let token = Token(self.all.len());
        let registry = self.poll.registry();
        registry.register(&mut stream, token, Interest::READABLE)?;
        self.all.push(Waiter {
            stream,
            inbox: Inbox::new(BUFFER),
            answers: 0,
        });
        Ok(())
    }

    fn receive(mut self, counted: u64, stop: &AtomicBool) -> Result<(Latencies, Vec<u64>)> {
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
        let answers = self.all.iter().map(|one| one.answers).collect();
        Ok((self.latencies, answers))
    }

    /// Takes what one has received, and has it wait again.
    fn look(&mut self, at: usize, counted: u64) -> Result<()> {
        let Some(Waiter {
            stream,
            inbox,
            answers,
        }) = self.all.get_mut(at)
        else {
            return Ok(());
        };
        while let Some(more) = inbox.fill(stream)? {
            if let Some(reply) = inbox.take()? {
                let now_ns = clock::mono_ns();
                let sent_ns = (self.wait.sent_ns)(&reply)?;
                if self.received.load(Ordering::Relaxed) < counted {
                    self.latencies.record(now_ns.saturating_sub(sent_ns));
                }
                stream
                    .write_all(self.wait.request)
                    .context("the server no longer reads")?;
                *answers += 1;
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
