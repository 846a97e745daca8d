//! One blocking connection to a server under test.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use tidewheel_resp::{Protocol, Reply, Writer};

use super::resp::{self, Skipped};

/// A server that says nothing for this long is taken for dead. Long, since some stall by design.
const SILENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(5);
const FIRST_BUFFER: usize = 64 << 10;
/// No reply that the laboratory asks for is longer.
const MAX_BUFFER: usize = 128 << 20;

/// Where a server listens and how to be let in.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) password: Option<String>,
}

impl Address {
    pub(crate) fn loopback(port: u16) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port,
            password: None,
        }
    }

    /// A connected socket, nothing said on it yet.
    pub(crate) fn open(&self) -> Result<TcpStream> {
        let name = format!("{}:{}", self.host, self.port);
        let mut last = None;
        for address in name
            .to_socket_addrs()
            .with_context(|| format!("{name} is no address"))?
        {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = Some(error),
            }
        }
        match last {
            Some(error) => Err(error).with_context(|| format!("cannot connect to {name}")),
            None => bail!("{name} stands for no address"),
        }
    }
}

/// A connection on which one waits for each reply.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buf: Vec<u8>,
    head: usize,
    tail: usize,
}

impl Connection {
    pub(crate) fn open(address: &Address) -> Result<Self> {
        let stream = address.open()?;
        stream.set_read_timeout(Some(SILENCE))?;
        stream.set_write_timeout(Some(SILENCE))?;
        let mut connection = Self {
            stream,
            buf: vec![0; FIRST_BUFFER],
            head: 0,
            tail: 0,
        };
        if let Some(password) = &address.password {
            connection
                .call(&["AUTH", password])
                .context("the server refused the password")?;
        }
        Ok(connection)
    }

    /// Sends one command and waits for its reply; an error reply is an `Err`.
    pub(crate) fn call(&mut self, args: &[&str]) -> Result<Reply> {
        let mut out = Writer::new(Protocol::Resp2);
        out.array(args.len());
        args.iter().for_each(|arg| out.bulk(arg.as_bytes()));
        self.send(out.as_bytes())?;
        match self.receive()? {
            Reply::Error(text) => Err(anyhow!(
                "{} was answered: {text}",
                args.first().unwrap_or(&"")
            )),
            value => Ok(value),
        }
    }

    /// Sends requests that are already encoded.
    pub(crate) fn send(&mut self, requests: &[u8]) -> Result<()> {
        self.stream
            .write_all(requests)
            .context("the server no longer reads")
    }

    /// Waits for one reply.
    pub(crate) fn receive(&mut self) -> Result<Reply> {
        match self.try_receive()? {
            Some(reply) => Ok(reply),
            None => bail!("the server said nothing for {} s", SILENCE.as_secs()),
        }
    }

    /// As [`Self::receive`], but `None` when nothing whole has come within the read time-out.
    pub(crate) fn try_receive(&mut self) -> Result<Option<Reply>> {
        loop {
            if let Some((value, used)) = Reply::read(&self.buf[self.head..self.tail])? {
                self.head += used;
                return Ok(Some(value));
            }
            if !self.fill()? {
                return Ok(None);
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
            if let Skipped::Error(text) = self.receive_flat()? {
                bail!("the server answered: {}", String::from_utf8_lossy(text));
            }
        }
        Ok(())
    }

    /// Waits for one reply that is no array and lends it out of the buffer.
    pub(crate) fn receive_flat(&mut self) -> Result<Skipped<'_>> {
        // Skipped twice, since a borrow that is returned from inside the loop would outlive it.
        while resp::skip(&self.buf[self.head..self.tail])?.is_none() {
            if !self.fill()? {
                bail!("the server said nothing for {} s", SILENCE.as_secs());
            }
        }
        match resp::skip(&self.buf[self.head..self.tail])? {
            Some((skipped, used)) => {
                self.head += used;
                Ok(skipped)
            }
            None => bail!("a whole reply became a partial one"),
        }
    }

    /// Reads what has come; `false` when the time-out passed without a byte.
    fn fill(&mut self) -> Result<bool> {
        if self.head == self.tail {
            self.head = 0;
            self.tail = 0;
        } else if self.tail == self.buf.len() {
            if self.head > 0 {
                self.buf.copy_within(self.head..self.tail, 0);
                self.tail -= self.head;
                self.head = 0;
            } else if self.buf.len() < MAX_BUFFER {
                self.buf.resize(self.buf.len() * 2, 0);
            } else {
                bail!("a reply of more than {MAX_BUFFER} bytes");
            }
        }
        loop {
            match self.stream.read(&mut self.buf[self.tail..]) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => {
                    self.tail += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(false);
                }
                Err(error) => return Err(error).context("the connection broke"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    use super::*;

    /// A server that reads `expect` and answers `pieces`, each with its own write.
    fn fake(expect: &'static [u8], pieces: Vec<Vec<u8>>) -> (Address, JoinHandle<()>) {
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
        (Address::loopback(port), server)
    }

    #[test]
    fn a_reply_in_pieces_is_put_together_and_one_longer_than_the_buffer_too() {
        let bytes = b"*2\r\n$5\r\nhello\r\n:42\r\n";
        let mut pieces: Vec<Vec<u8>> = bytes.iter().map(|&byte| vec![byte]).collect();
        let long = vec![b'x'; FIRST_BUFFER * 3];
        pieces.push([format!("${}\r\n", long.len()).as_bytes(), &long, b"\r\n"].concat());
        let (address, server) = fake(b"*1\r\n$4\r\nPING\r\n", pieces);
        let mut connection = Connection::open(&address).expect("connects");
        let reply = connection.call(&["PING"]).expect("answered");
        let items = vec![Reply::Bulk(b"hello".to_vec()), Reply::Integer(42)];
        assert_eq!(reply, Reply::Array(items));
        assert_eq!(connection.receive().expect("answered"), Reply::Bulk(long));
        server.join().expect("the fake is content");
    }

    #[test]
    fn errors_and_a_closed_connection_are_told() {
        let answer = b"-ERR unknown\r\n+OK\r\n-ERR full\r\n$5\r\nhe".to_vec();
        let (address, server) = fake(b"*1\r\n$3\r\nFOO\r\n", vec![answer]);
        let mut connection = Connection::open(&address).expect("connects");
        let error = connection.call(&["FOO"]).expect_err("refused");
        assert_eq!(error.to_string(), "FOO was answered: ERR unknown");
        let error = connection.expect_replies(2).expect_err("one is an error");
        assert!(error.to_string().contains("ERR full"), "{error}");
        let error = connection.receive().expect_err("cut short");
        assert!(error.to_string().contains("closed"), "{error}");
        server.join().expect("the fake is content");
    }
}
