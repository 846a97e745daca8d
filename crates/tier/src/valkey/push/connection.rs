//! A connection that speaks RESP3: commands out, replies and pushes in.

use std::io;
use std::time::Duration;

use tidewheel_resp::Reply;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::valkey::open::{Address, Login};

/// The longest message that is read: an invalidation message of a great many keys.
const INPUT_MAX: usize = 64 << 20;

/// Bytes in both directions, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    /// The length of the input that was read already.
    read: usize,
}

impl Connection {
    /// Connects, and changes to RESP3.
    pub(super) async fn open(
        address: &Address,
        login: &Login,
        limit: Duration,
    ) -> io::Result<Self> {
        let mut connection = Self {
            stream: within(limit, connect(address, login)).await?,
            input: Vec::new(),
            read: 0,
        };
        let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(password) = &login.password {
            let user = login.user.as_deref().unwrap_or("default");
            hello.extend([&b"AUTH"[..], user.as_bytes(), password.as_bytes()]);
        }
        connection.call(&hello, limit).await?;
        Ok(connection)
    }

    /// Sends a command and reads its reply. For commands before the first push.
    pub(super) async fn call(&mut self, command: &[&[u8]], limit: Duration) -> io::Result<Reply> {
        self.send(&[command], limit).await?;
        within(limit, async {
            loop {
                match self.next().await? {
                    Reply::Push(_) => {}
                    Reply::Error(error) => return Err(io::Error::other(error)),
                    reply => return Ok(reply),
                }
            }
        })
        .await
    }

    /// Sends commands, with one write.
    pub(super) async fn send(&mut self, commands: &[&[&[u8]]], limit: Duration) -> io::Result<()> {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
            for argument in *command {
                bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
                bytes.extend_from_slice(argument);
                bytes.extend_from_slice(b"\r\n");
            }
        }
        within(limit, async {
            self.stream.write_all(&bytes).await?;
            self.stream.flush().await
        })
        .await
    }

    /// The next reply or push. May be dropped at any time: nothing is lost.
    pub(super) async fn next(&mut self) -> io::Result<Reply> {
        loop {
            let read = Reply::read(&self.input[self.read..]).map_err(io::Error::other)?;
            if let Some((reply, length)) = read {
                self.read += length;
                return Ok(reply);
            }
            self.input.drain(..self.read);
            self.read = 0;
            if self.input.len() > INPUT_MAX {
                return Err(io::Error::other("a message is too long"));
            }
            // As much again as there is: a long message is looked at as often as its length
            // doubles.
            self.input.reserve(self.input.len().max(16_384));
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

async fn connect((host, port): &Address, login: &Login) -> io::Result<Box<dyn Stream>> {
    let stream = TcpStream::connect((host.as_str(), *port)).await?;
    stream.set_nodelay(true)?;
    Ok(match &login.tls {
        None => Box::new(stream),
        Some(tls) => Box::new(tls.secure(host, stream).await?),
    })
}

pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let in_time = timeout(limit, work).await;
    in_time.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
