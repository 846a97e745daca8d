//! One blocking connection to a server under test.

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tidewheel_resp::{Protocol, Reply, Writer};

use super::resp::{Answer, Inbox};

/// A server that says nothing for this long is taken for dead. Long, since some stall by design.
const SILENCE: Duration = Duration::from_secs(60);
const FIRST_BUFFER: usize = 64 << 10;

/// A connection on which one waits for each reply.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    inbox: Inbox,
}

impl Connection {
    /// Connects to a server on this machine.
    pub(crate) fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let stream = stream.with_context(|| format!("cannot connect to port {port}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let inbox = Inbox::new(FIRST_BUFFER);
        Ok(Self { stream, inbox })
    }

    /// Sends one command and waits for its reply; an error reply is an `Err`.
    pub(crate) fn call(&mut self, args: &[&str]) -> Result<Reply> {
        let mut out = Writer::new(Protocol::Resp2);
        out.array(args.len());
        args.iter().for_each(|arg| out.bulk(arg.as_bytes()));
        self.send(out.as_bytes())?;
        match self.receive()? {
            Reply::Error(text) => bail!("{} was answered: {text}", args[0]),
            value => Ok(value),
        }
    }

    /// Sends requests that are already encoded.
    pub(crate) fn send(&mut self, requests: &[u8]) -> Result<()> {
        let sent = self.stream.write_all(requests);
        sent.context("the server no longer reads")
    }

    /// Waits for one reply.
    pub(crate) fn receive(&mut self) -> Result<Reply> {
        self.try_receive()?.with_context(silence)
    }

    /// Receives as [`Self::receive`] does, but returns `None` when nothing whole has come within
    /// the read time-out.
    pub(crate) fn try_receive(&mut self) -> Result<Option<Reply>> {
        loop {
            let found = self.inbox.take()?;
            if found.is_some() || self.inbox.fill(&mut self.stream)?.is_none() {
                return Ok(found);
            }
        }
    }

    /// The socket itself, for a caller that polls. Nothing may be outstanding on it.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    pub(crate) fn set_patience(&mut self, patience: Duration) -> Result<()> {
        Ok(self.stream.set_read_timeout(Some(patience))?)
    }

    /// Waits for `count` replies; `Err` at the first that is an error.
    pub(crate) fn expect_replies(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.see(|answer| answer.accepted().map(drop))??;
        }
        Ok(())
    }

    /// Waits for one reply and shows it where it lies.
    pub(super) fn see<T>(&mut self, see: impl Fn(Answer<'_>) -> T) -> Result<T> {
        loop {
            if let Some(seen) = self.inbox.show(&see)? {
                return Ok(seen);
            }
            self.inbox.fill(&mut self.stream)?.with_context(silence)?;
        }
    }
}

fn silence() -> String {
    format!("the server said nothing for {} s", SILENCE.as_secs())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    use super::*;

    /// A server that reads `expect` and answers `pieces`, each with its own write.
    fn fake(expect: &'static [u8], pieces: Vec<Vec<u8>>) -> (u16, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.set_nodelay(true).expect("a socket");
            let mut heard = vec![0; expect.len()];
            stream.read_exact(&mut heard).expect("a request");
            assert_eq!(heard, expect);
            for piece in pieces {
                stream.write_all(&piece).expect("the client reads");
            }
        });
        (port, server)
    }

    #[test]
    fn a_reply_in_pieces_is_put_together_and_one_longer_than_the_buffer_too() {
        let bytes = b"*2\r\n$5\r\nhello\r\n:42\r\n";
        let mut pieces: Vec<Vec<u8>> = bytes.iter().map(|&byte| vec![byte]).collect();
        let long = vec![b'x'; FIRST_BUFFER * 3];
        pieces.push([format!("${}\r\n", long.len()).as_bytes(), &long, b"\r\n"].concat());
        let (port, server) = fake(b"*1\r\n$4\r\nPING\r\n", pieces);
        let mut connection = Connection::open(port).expect("connects");
        let reply = connection.call(&["PING"]).expect("answered");
        let items = vec![Reply::Bulk(b"hello".to_vec()), Reply::Integer(42)];
        assert_eq!(reply, Reply::Array(items));
        assert_eq!(connection.receive().expect("answered"), Reply::Bulk(long));
        server.join().expect("the fake is content");
    }

    #[test]
    fn errors_and_a_closed_connection_are_told() {
        let answer = b"-ERR unknown\r\n+OK\r\n-ERR full\r\n$5\r\nhe".to_vec();
        let (port, server) = fake(b"*1\r\n$3\r\nFOO\r\n", vec![answer]);
        let mut connection = Connection::open(port).expect("connects");
        let error = connection.call(&["FOO"]).expect_err("refused");
        assert_eq!(error.to_string(), "FOO was answered: ERR unknown");
        let error = connection.expect_replies(2).expect_err("one is an error");
        assert!(error.to_string().contains("ERR full"), "{error}");
        let error = connection.receive().expect_err("cut short");
        assert!(error.to_string().contains("closed"), "{error}");
        server.join().expect("the fake is content");
    }
}
