//! A client for tests: one command, one reply, with a time-out.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use tidewheel_resp::Reply;

/// The time limit of a reply.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Client {
    /// Connects to a port of the loopback.
    ///
    /// # Errors
    ///
    /// If nobody accepts there.
    pub fn connect(port: u16) -> std::io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            unread: Vec::new(),
        })
    }

    /// Sends a command and reads its reply.
    ///
    /// # Errors
    ///
    /// If the connection ends, nothing comes for 5 s, or the bytes are no reply.
    pub fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> std::io::Result<Reply> {
        self.send(arguments)?;
        self.receive()
    }

    /// Sends a command.
    ///
    /// # Errors
    ///
    /// If the connection has ended.
    pub fn send<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> std::io::Result<()> {
        let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            let argument = argument.as_ref();
            bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&bytes)
    }

    /// Reads a reply, or a push.
    ///
    /// # Errors
    ///
    /// If the connection ends, nothing comes for 5 s, or the bytes are no reply.
    pub fn receive(&mut self) -> std::io::Result<Reply> {
        loop {
            let read = Reply::read(&self.unread).map_err(std::io::Error::other)?;
            if let Some((reply, length)) = read {
                self.unread.drain(..length);
                return Ok(reply);
            }
            let mut bytes = [0; 16_384];
            let count = self.stream.read(&mut bytes)?;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.unread.extend_from_slice(&bytes[..count]);
        }
    }

    /// The reply to a command, as text.
    ///
    /// # Panics
    ///
    /// If there is none, or it is an error or has no text.
    pub fn text<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> String {
        match self.call(arguments).expect("a reply") {
            Reply::Simple(text) => text,
            Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => {
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Reply::Integer(number) => number.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }
}
