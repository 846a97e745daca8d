//! One simulated client: its requests, its replies, and the comparison of both with the model.

use std::collections::VecDeque;

use tidewheel_resp::Reply;

use super::model::Talker;
use super::rig::{Peer, bulk};

/// The first words of messages that arrive without a request.
const MESSAGES: [&[u8]; 4] = [
    b">3\r\n$7\r\nmessage\r\n",
    b"*3\r\n$7\r\nmessage\r\n",
    b">4\r\n$8\r\npmessage\r\n",
    b"*4\r\n$8\r\npmessage\r\n",
];

/// The longest of those beginnings.
const HEAD_MAX: usize = 18;

/// The way in which a client ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It stays.
    None,
    /// It has closed its sending side, and still reads.
    Half,
    /// It is gone. The server may do anything but answer it wrongly.
    Gone,
}

/// The position of a command's last byte, and its words.
type Command = (u64, Vec<Vec<u8>>);

/// A client with its side of the connection.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: u64,
    pub(super) peer: Peer,
    /// Bytes that it has yet to send.
    outgoing: VecDeque<u8>,
    /// Bytes generated and bytes sent so far.
    generated: u64,
    sent: u64,
    /// Commands that were not yet seen to run.
    commands: VecDeque<Command>,
    /// The command in the middle of which it closed its sending side.
    cut: Option<Command>,
    /// Replies that the server has written but that have not arrived.
    expected: VecDeque<Vec<u8>>,
    /// Bytes that have arrived and were not yet compared.
    received: Vec<u8>,
    pub(super) end: End,
    /// Its bytes are no longer commands: an error and the end must follow.
    pub(super) spoilt: bool,
    /// It reads only when it likes to.
    pub(super) slow: bool,
    /// A byte last moved between these two moments, in engine microseconds.
    pub(super) active_from: u64,
    pub(super) active_until: u64,
}

impl Client {
    /// A client that comes at a moment in engine microseconds.
    pub(super) fn new(id: u64, peer: Peer, now: u64) -> Self {
        Self {
            id,
            peer,
            outgoing: VecDeque::new(),
            generated: 0,
            sent: 0,
            commands: VecDeque::new(),
            cut: None,
            expected: VecDeque::new(),
            received: Vec::new(),
            end: End::None,
            spoilt: false,
            slow: false,
            active_from: now,
            active_until: now,
        }
    }

    /// Returns true if no command that it has sent waits to be run.
    pub(super) fn is_done(&self) -> bool {
        self.commands.is_empty() || self.peer.is_closed()
    }

    /// Returns true if a command that was sent has not run yet: a pause holds it back, or unread
    /// output does.
    pub(super) fn is_held_up(&self) -> bool {
        let next = self.commands.front();
        next.is_some_and(|(last, _)| *last <= self.sent)
    }

    /// Bytes that were written for it and that its socket has not taken.
    pub(super) fn backlog(&self, talker: &Talker) -> usize {
        let replies: usize = self.expected.iter().map(Vec::len).sum();
        let messages = talker.owed.iter().map(|words| {
            let words: Vec<_> = words.iter().map(Vec::as_slice).collect();
            bulk(&words).len()
        });
        let taken = self.received.len() + self.peer.wire.borrow().sent();
        (replies + messages.sum::<usize>()).saturating_sub(taken)
    }

    /// Returns true if it may send more commands.
    pub(super) fn talks(&self) -> bool {
        self.end == End::None && !self.spoilt && self.outgoing.len() < 100_000
    }

    /// Appends a command to what it sends.
    pub(super) fn say(&mut self, words: &[&[u8]], inline: bool) {
        let bytes = match inline {
            true => [&words.join(&b' ')[..], b"\r\n"].concat(),
            false => bulk(words),
        };
        self.push(&bytes);
        let words = words.iter().map(|word| word.to_vec()).collect();
        self.commands.push_back((self.generated, words));
    }

    /// Appends bytes that are no command.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.generated += bytes.len() as u64;
        self.outgoing.extend(bytes);
    }

    /// Sends some of what it has to send.
    pub(super) fn send(&mut self, most: usize) {
        let n = self.outgoing.len().min(most);
        let piece: Vec<u8> = self.outgoing.drain(..n).collect();
        if n > 0 && self.end == End::None {
            self.sent += n as u64;
            self.peer.send(&piece);
        }
    }

    /// Closes its sending side, in the middle of whatever it was about to say.
    pub(super) fn half_close(&mut self) {
        if self.end == End::None {
            self.end = End::Half;
            self.peer.end();
            let whole = self
                .commands
                .partition_point(|(last, _)| *last <= self.sent);
            self.cut = self.commands.drain(whole..).next();
            self.outgoing.clear();
        }
    }

    /// A command of this client has run.
    pub(super) fn ran(&mut self, words: &[Vec<u8>], reply: &[u8]) -> Result<(), String> {
        match self.commands.pop_front() {
            Some((last, sent)) if sent == words => {
                if last > self.sent {
                    return Err("a command ran before it was sent".to_owned());
                }
            }
            other => {
                return Err(format!(
                    "it ran, but {:?} is next",
                    other.map(|next| show(&next.1))
                ));
            }
        }
        if !reply.is_empty() {
            self.expected.push_back(reply.to_vec());
        }
        Ok(())
    }

    /// The server has met bytes that are no command, or more than a client without the password may
    /// send.
    pub(super) fn refused(&mut self, lacks_password: bool) -> Result<(), String> {
        let next = self.commands.front().or(self.cut.as_ref());
        if lacks_password && next.is_some_and(|(_, words)| is_too_long(words)) {
            self.commands.clear();
            self.spoilt = true;
            return Ok(());
        }
        if !self.spoilt || next.is_some() {
            let next = next.map(|(_, words)| show(words));
            return Err(format!("what it has sent was refused, next {next:?}"));
        }
        Ok(())
    }

    /// Compares what has arrived with what was written for this client. Returns the keyspace
    /// events.
    pub(super) fn check(&mut self, talker: &mut Talker) -> Result<Vec<Vec<Vec<u8>>>, String> {
        self.received.extend(self.peer.take());
        let mut events = Vec::new();
        let mut at = 0;
        while at < self.received.len() {
            let rest = &self.received[at..];
            if is_message(rest) {
                let read = Reply::read(rest).map_err(|why| why.to_string())?;
                let Some((message, n)) = read else { break };
                at += n;
                let message = words_of(message)?;
                if message[message.len() - 2].starts_with(b"__key") {
                    events.push(message);
                    continue;
                }
                let owed = talker.owed.pop_front();
                if owed.as_ref() != Some(&message) {
                    let owed = owed.map(|owed| show(&owed));
                    return Err(format!(
                        "got the message {:?}, not {owed:?}",
                        show(&message)
                    ));
                }
                continue;
            }
            let Some(next) = self.expected.front() else {
                if self.spoilt && b"-ERR Protocol error".starts_with(&rest[..rest.len().min(19)]) {
                    break;
                }
                if rest.len() < HEAD_MAX && MESSAGES.iter().any(|head| head.starts_with(rest)) {
                    break;
                }
                return Err(format!("got bytes that are not its own: {}", head(rest)));
            };
            if rest.starts_with(next) {
                at += next.len();
                self.expected.pop_front();
            } else if next.starts_with(rest)
                || (rest.len() < HEAD_MAX && MESSAGES.iter().any(|head| head.starts_with(rest)))
            {
                break;
            } else {
                return Err(format!("got {} instead of {}", head(rest), head(next)));
            }
        }
        self.received.drain(..at);
        Ok(events)
    }

    /// Everything has come to rest: nothing may be missing.
    pub(super) fn check_complete(&self, talker: &Talker) -> Result<(), String> {
        let closed = self.peer.is_closed();
        if self.end == End::Gone {
            return if closed {
                Ok(())
            } else {
                Err("a dead connection stays".to_owned())
            };
        }
        let leaves = talker.leaves || talker.killed;
        if !self.commands.is_empty() && !leaves {
            let next = show(&self.commands[0].1);
            return Err(format!(
                "{} commands never ran, first {next}",
                self.commands.len()
            ));
        }
        if !self.expected.is_empty() && !talker.killed {
            return Err(format!("{} replies never came", self.expected.len()));
        }
        // A client that is about to be closed gets no more messages.
        let stays = self.end == End::None && !self.spoilt && !leaves;
        if !talker.owed.is_empty() && stays {
            return Err(format!("{} messages never came", talker.owed.len()));
        }
        let should = self.end == End::Half || self.spoilt || leaves;
        if closed != should {
            return Err(format!("closed: {closed}, should be: {should}"));
        }
        Ok(())
    }
}

/// Returns true if a client that has not given the password may not send this.
fn is_too_long(words: &[Vec<u8>]) -> bool {
    words.len() > 10 || words.iter().any(|word| word.len() > 16 << 10)
}

/// Returns true if these bytes begin with a message that arrives without a request.
fn is_message(bytes: &[u8]) -> bool {
    MESSAGES.iter().any(|head| bytes.starts_with(head))
}

/// A reply without the messages that were put before or behind it.
pub(super) fn without_messages(reply: &[u8]) -> Vec<u8> {
    let (mut rest, mut kept) = (reply, Vec::new());
    while let Ok(Some((_, n))) = Reply::read(rest) {
        if !is_message(rest) {
            kept.extend_from_slice(&rest[..n]);
        }
        rest = &rest[n..];
    }
    kept
}

fn words_of(message: Reply) -> Result<Vec<Vec<u8>>, String> {
    let (Reply::Array(parts) | Reply::Push(parts)) = message else {
        return Err("a message is not a list".to_owned());
    };
    let words = parts.into_iter().map(|part| match part {
        Reply::Bulk(word) => Ok(word),
        other => Err(format!("a message holds {other:?}")),
    });
    words.collect()
}

/// Words as they may be printed.
pub(super) fn show(words: &[Vec<u8>]) -> String {
    let words: Vec<_> = words.iter().map(|word| head(word)).collect();
    words.join(" ")
}

fn head(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(120)].escape_ascii().to_string()
}
