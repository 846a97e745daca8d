//! A connection to the server within the process: a page asks as any client does.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidewheel_resp::{Protocol, Reply, Writer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::access::Credentials;
use crate::loop_handle::inbox::InboxItem;
use crate::net::listener::Accepted;
use crate::net::stream::Stream;
use crate::state::server::Server;

/// The longest time that a page waits for a reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest reply.
const REPLY_MAX: usize = 64 << 20;

/// Why a page has no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The user must say who it is, or has said it wrongly.
    Unknown,
    /// The user may not ask this.
    Denied(String),
    /// The server does not answer, or not yet.
    Fails(String),
}

impl From<io::Error> for NoAnswer {
    fn from(why: io::Error) -> Self {
        Self::Fails(why.to_string())
    }
}

/// A connection to the server.
#[derive(Debug)]
pub(super) struct Asker {
    stream: TcpStream,
    input: Vec<u8>,
    /// A reply has not come in time: the next one might be taken for it.
    is_out_of_step: bool,
}

impl Asker {
    /// Connects, as this user, or as the default one.
    pub(super) async fn connect(
        server: &Arc<Server>,
        user: Option<&Credentials>,
    ) -> Result<Self, NoAnswer> {
        let mut asker = Self {
            stream: connect(server)?,
            input: Vec::new(),
            is_out_of_step: false,
        };
        if let Some(Credentials { name, password }) = user {
            let reply = asker.call(&[b"AUTH", name, password]).await?;
            if matches!(reply, Reply::Error(_)) {
                return Err(NoAnswer::Unknown);
            }
        }
        Ok(asker)
    }

    /// Asks for a text.
    pub(super) async fn text(&mut self, words: &[&[u8]]) -> Result<String, NoAnswer> {
        match self.ask(words).await? {
            Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => {
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            other => Err(NoAnswer::Fails(format!("an unexpected reply: {other:?}"))),
        }
    }

    /// Asks, and reads the reply if it is no error.
    pub(super) async fn ask(&mut self, words: &[&[u8]]) -> Result<Reply, NoAnswer> {
        match self.call(words).await? {
            Reply::Error(why) if why.starts_with("NOAUTH") => Err(NoAnswer::Unknown),
            Reply::Error(why) if why.starts_with("NOPERM") => Err(NoAnswer::Denied(why)),
            Reply::Error(why) => Err(NoAnswer::Fails(why)),
            reply => Ok(reply),
        }
    }

    /// Sends a command and reads its reply.
    pub(super) async fn call(&mut self, words: &[&[u8]]) -> Result<Reply, NoAnswer> {
        let mut replies = self.call_all(&[words.to_vec()]).await?;
        let none = || NoAnswer::Fails("there is no reply".to_owned());
        replies.pop().ok_or_else(none)
    }

    /// Sends commands at once and reads their replies.
    pub(super) async fn call_all(&mut self, calls: &[Vec<&[u8]>]) -> Result<Vec<Reply>, NoAnswer> {
        if std::mem::replace(&mut self.is_out_of_step, true) {
            return Err(NoAnswer::Fails("the server has not answered".to_owned()));
        }
        let late = |_| NoAnswer::Fails("the server does not answer".to_owned());
        let replies = timeout(PATIENCE, self.exchange(calls)).await;
        let replies = replies.map_err(late)??;
        self.is_out_of_step = false;
        Ok(replies)
    }

    async fn exchange(&mut self, calls: &[Vec<&[u8]>]) -> Result<Vec<Reply>, NoAnswer> {
        let mut out = Writer::new(Protocol::Resp2);
        for words in calls {
            out.array(words.len());
            words.iter().for_each(|word| out.bulk(word));
        }
        self.stream.write_all(out.as_bytes()).await?;
        let mut replies = Vec::with_capacity(calls.len());
        while replies.len() < calls.len() {
            let read = Reply::read(&self.input).map_err(io::Error::other)?;
            if let Some((reply, used)) = read {
                self.input.drain(..used);
                replies.push(reply);
                continue;
            }
            if self.input.len() > REPLY_MAX {
                return Err(NoAnswer::Fails("the reply is too long".to_owned()));
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(NoAnswer::Fails("the server has closed".to_owned()));
            }
        }
        Ok(replies)
    }
}

/// Makes a pair of sockets of which an event loop has one.
fn connect(server: &Arc<Server>) -> io::Result<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let ours = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (theirs, peer) = listener.accept()?;
    if peer != ours.local_addr()? {
        return Err(io::Error::other("somebody else has connected"));
    }
    theirs.set_nonblocking(true)?;
    ours.set_nonblocking(true)?;
    let local = theirs.local_addr()?;
    let load =
        |handle: &&crate::loop_handle::LoopHandle| handle.connections.load(Ordering::Relaxed);
    let handle = server.loops.iter().min_by_key(load);
    let handle = handle.ok_or_else(|| io::Error::other("there is no event loop"))?;
    server.connected.fetch_add(1, Ordering::Relaxed);
    handle.connections.fetch_add(1, Ordering::Relaxed);
    handle.post(InboxItem::Connection(Box::new(Accepted {
        stream: Stream::Plain(mio::net::TcpStream::from_std(theirs)),
        peer: peer.into(),
        local: local.into(),
    })));
    TcpStream::from_std(ours)
}
