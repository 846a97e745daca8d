//! One thread drives many closed loops: each connection has one batch of requests under way.

use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Registry, Token};
use tidewheel_resp::Reply;

use crate::clock;
use crate::servers::client::Connection;
use crate::servers::resp::{Answer, Inbox};

const MAX_EVENTS: usize = 256;
const FIRST_BUFFER: usize = 16 << 10;
/// The interval at which an idle loop checks whether it should end.
const LOOK: Duration = Duration::from_millis(50);
/// Batches still under way after the stop are awaited this long.
const LAST_REPLIES_NS: u64 = 10_000_000_000;

/// The requests of the loops, and the use of the answers.
pub(crate) trait Traffic {
    /// Appends the next batch of one connection; returns how many replies it will bring.
    fn fill(&mut self, connection: usize, out: &mut Vec<u8>) -> usize;

    /// The whole batch has been answered.
    fn answered(&mut self, connection: usize, sent_ns: u64, now_ns: u64);
}

struct Loop {
    stream: TcpStream,
    out: Vec<u8>,
    written: usize,
    inbox: Inbox,
    replies_left: usize,
    sent_ns: u64,
}

/// Runs `connections` closed loops until told to stop; returns how many replies were null.
pub(crate) fn drive(
    port: u16,
    connections: usize,
    traffic: &mut impl Traffic,
    stop: &AtomicBool,
) -> Result<u64> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(MAX_EVENTS);
    let mut loops = Vec::with_capacity(connections);
    for at in 0..connections {
        loops.push(Loop::open(port, poll.registry(), Token(at))?);
    }
    for (at, one) in loops.iter_mut().enumerate() {
        one.next(at, traffic, clock::mono_ns())?;
    }
    let mut busy = connections;
    let mut nulls = 0;
    let mut stopped_ns = None;
    while busy > 0 {
        match poll.poll(&mut events, Some(LOOK)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("cannot poll the connections"),
        }
        let stopping = stop.load(Ordering::Relaxed);
        if stopping {
            let since = *stopped_ns.get_or_insert_with(clock::mono_ns);
            if clock::mono_ns() - since > LAST_REPLIES_NS {
                bail!("{busy} connections still await replies");
            }
        }
        for event in &events {
            let Some(one) = loops.get_mut(event.token().0) else {
                continue;
            };
            one.write()?;
            if event.is_readable() && one.read(&mut nulls)? {
                let now = clock::mono_ns();
                traffic.answered(event.token().0, one.sent_ns, now);
                if stopping {
                    busy -= 1;
                } else {
                    one.next(event.token().0, traffic, now)?;
                }
            }
        }
    }
    Ok(nulls)
}

impl Loop {
    fn open(port: u16, registry: &Registry, token: Token) -> Result<Self> {
        let stream = Connection::open(port)?.into_stream();
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut stream, token, interest)?;
        Ok(Self {
            stream,
            out: Vec::new(),
            written: 0,
            inbox: Inbox::new(FIRST_BUFFER),
            replies_left: 0,
            sent_ns: 0,
        })
    }

    fn next(&mut self, at: usize, traffic: &mut impl Traffic, now_ns: u64) -> Result<()> {
        self.out.clear();
        self.written = 0;
        self.replies_left = traffic.fill(at, &mut self.out);
        self.sent_ns = now_ns;
        self.write()
    }

    /// Writes what is left of the batch, as far as the socket takes it.
    fn write(&mut self) -> Result<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("the server no longer reads"),
            }
        }
        Ok(())
    }

    /// Reads what has come; `true` when that completes the batch.
    fn read(&mut self, nulls: &mut u64) -> Result<bool> {
        while let Some(more) = self.inbox.fill(&mut self.stream)? {
            if self.consume(nulls)? {
                return Ok(true);
            }
            // A short read empties an edge-triggered socket: no need to hear it say so.
            if !more {
                return Ok(false);
            }
        }
        Ok(false)
    }

    fn consume(&mut self, nulls: &mut u64) -> Result<bool> {
        let was_waiting = self.replies_left > 0;
        while self.replies_left > 0 {
            let null = Answer::Other(Reply::Null);
            let is_null = self
                .inbox
                .show(|answer| Ok::<_, Error>(answer.accepted()? == null))?;
            let Some(is_null) = is_null else {
                break;
            };
            *nulls += u64::from(is_null?);
            self.replies_left -= 1;
        }
        if self.replies_left == 0 && !self.inbox.is_empty() {
            bail!("the server sent more replies than it was asked for");
        }
        Ok(was_waiting && self.replies_left == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};
    use std::net::{self, TcpListener};
    use std::thread;

    use super::*;

    /// Batches of three; stops itself after a number of answers.
    struct Three<'a> {
        answers: usize,
        enough: usize,
        stop: &'a AtomicBool,
    }

    impl Traffic for Three<'_> {
        fn fill(&mut self, _: usize, out: &mut Vec<u8>) -> usize {
            out.extend_from_slice(b"abc");
            3
        }

        fn answered(&mut self, _: usize, sent_ns: u64, now_ns: u64) {
            assert!(now_ns >= sent_ns);
            self.answers += 1;
            if self.answers >= self.enough {
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Answers each byte of every client with `reply`, cut in two writes.
    fn echo(clients: usize, reply: &'static [u8]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let halves = reply.split_at(reply.len() / 2);
        let answer = move |mut stream: net::TcpStream| -> io::Result<()> {
            loop {
                stream.read_exact(&mut [0])?;
                stream.write_all(halves.0)?;
                stream.write_all(halves.1)?;
            }
        };
        thread::spawn(move || {
            for stream in listener.incoming().take(clients) {
                let stream = stream.expect("a client");
                thread::spawn(move || answer(stream));
            }
        });
        port
    }

    #[test]
    fn every_batch_is_answered_once_and_the_loops_end_when_told_or_refused() {
        let run = |clients, reply| {
            let stop = AtomicBool::new(false);
            let mut traffic = Three {
                answers: 0,
                enough: 50,
                stop: &stop,
            };
            let nulls = drive(echo(clients, reply), clients, &mut traffic, &stop);
            (nulls, traffic.answers)
        };
        let (nulls, answers) = run(4, b"$-1\r\n");
        // The stop is seen a turn later, and those under way then are answered as well: at most
        // one more of each connection for either.
        assert!((50..58).contains(&answers), "{answers}");
        assert_eq!(nulls.expect("drives"), answers as u64 * 3);
        let error = run(1, b"-OOM no\r\n").0.expect_err("refused");
        assert!(error.to_string().contains("OOM no"), "{error}");
    }
}
