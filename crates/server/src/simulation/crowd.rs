//! Clients under a seeded schedule, for tests that check the history of their replies. Any client
//! may die at any byte.

use std::collections::VecDeque;
use std::time::Duration;

use tidewheel_oracle::Dice;
use tidewheel_resp::Reply;

use super::is_deep;
use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;

/// Seeds of each history: a sixth in every build, all in the deep tier.
pub(super) fn seeds() -> u64 {
    if is_deep() { 60 } else { 10 }
}

/// A server and its clients. `W` describes the check that a client makes on a reply.
pub(super) struct Crowd<W> {
    pub(super) rig: Rig,
    pub(super) dice: Dice,
    pub(super) members: Vec<Member<W>>,
}

/// One client.
pub(super) struct Member<W> {
    peer: Peer,
    unsent: Vec<u8>,
    arrived: Vec<u8>,
    /// For each reply to come.
    wants: VecDeque<W>,
}

impl<W> Crowd<W> {
    /// Up to three loops.
    pub(super) fn new(seed: u64, clients: usize) -> Self {
        let mut dice = Dice::new(seed);
        let rig = Rig::new(1 + dice.below(3), Settings::default());
        let mut crowd = Self {
            rig,
            dice,
            members: Vec::new(),
        };
        for _ in 0..clients {
            let member = crowd.connect();
            crowd.members.push(member);
        }
        crowd
    }

    fn connect(&mut self) -> Member<W> {
        let owner = self.dice.below(self.rig.loops.len());
        Member {
            peer: self.rig.connect(owner),
            unsent: Vec::new(),
            arrived: Vec::new(),
            wants: VecDeque::new(),
        }
    }

    /// Another client takes the place of one that dies: with what it has sent and nobody has read,
    /// or while it is answered.
    pub(super) fn die(&mut self, at: usize) -> Member<W> {
        let mut wire = self.members[at].peer.wire.borrow_mut();
        match self.dice.once_in(2) {
            true => wire.reset(),
            false => wire.break_writes(),
        }
        drop(wire);
        let new = self.connect();
        std::mem::replace(&mut self.members[at], new)
    }

    /// A client sends some of what it has to say, a loop has a turn, or time passes.
    pub(super) fn pass(&mut self) {
        let at = self.dice.below(self.members.len());
        match self.dice.below(10) {
            0..5 => {
                let most = 1 + self.dice.below(200);
                self.members[at].send(most);
            }
            5..9 => {
                let index = self.dice.below(self.rig.loops.len());
                self.rig.turn(index);
            }
            _ => {
                let us = self.dice.below(3_000) as u64;
                self.rig.advance(Duration::from_micros(us));
            }
        }
    }

    /// Everything is sent and answered.
    pub(super) fn settle(&mut self) {
        for member in &mut self.members {
            member.send(usize::MAX);
        }
        self.rig.settle();
    }

    /// A line's reply, from a client of its own.
    pub(super) fn ask(&mut self, line: &str) -> Reply {
        let peer = self.rig.connect(0);
        let reply = self.rig.ask(&peer, &words(line));
        let (reply, _) = Reply::read(&reply).expect("valid").expect("whole");
        reply
    }
}

impl<W> Member<W> {
    /// A call, and what is wanted of its reply.
    pub(super) fn say(&mut self, line: &str, want: W) {
        self.unsent.extend(words(line));
        self.wants.push_back(want);
    }

    /// A call whose words may have blanks.
    pub(super) fn call(&mut self, words: &[&str], want: W) {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.unsent.extend(bulk(&words));
        self.wants.push_back(want);
    }

    /// Returns true if no reply is missing.
    pub(super) fn is_idle(&self) -> bool {
        self.wants.is_empty()
    }

    /// What is wanted of the next reply.
    pub(super) fn wanted(&self) -> Option<&W> {
        self.wants.front()
    }

    /// Sends at most so many bytes.
    pub(super) fn send(&mut self, most: usize) {
        let n = most.min(self.unsent.len());
        let bytes: Vec<u8> = self.unsent.drain(..n).collect();
        if n > 0 {
            self.peer.send(&bytes);
        }
    }

    /// The loop that serves it.
    pub(super) fn owner(&self) -> usize {
        self.peer.owner
    }

    /// The next reply that has arrived.
    pub(super) fn reply(&mut self) -> Option<(W, Reply)> {
        self.arrived.extend(self.peer.take());
        let (reply, used) = Reply::read(&self.arrived).expect("valid")?;
        self.arrived.drain(..used);
        let want = self.wants.pop_front();
        Some((want.expect("a reply to each call"), reply))
    }
}

fn words(line: &str) -> Vec<u8> {
    let words: Vec<_> = line.split_whitespace().map(str::as_bytes).collect();
    bulk(&words)
}

/// The elements of a list of strings.
pub(super) fn texts(reply: &Reply) -> Vec<String> {
    let Reply::Array(items) = reply else {
        panic!("no list: {reply:?}");
    };
    let text = |item: &Reply| match item {
        Reply::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("no string: {other:?}"),
    };
    items.iter().map(text).collect()
}
