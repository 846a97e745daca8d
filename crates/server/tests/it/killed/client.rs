//! A client that sends as fast as it can, and notes what was answered, and when.

use std::io::Write;

use crate::common::{Client, Reply};
use tidewheel_oracle::Dice;

use super::Epoch;
use super::model::{Micros, Span};
use super::part::{Op, draw};

/// The most operations of a client that are on their way.
const DEPTH: usize = 6;

/// An operation that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) op: Op,
    pub(super) sent: Micros,
    /// When it was acknowledged, and how.
    pub(super) answer: Option<(Micros, Reply)>,
}

impl Sent {
    /// When it ran, if it did: it ended by `end`.
    pub(super) fn span(&self, end: Micros) -> Span {
        Span {
            from: self.sent,
            to: self.answer.as_ref().map_or(end, |(at, _)| *at),
        }
    }

    pub(super) fn reply(&self) -> Option<&Reply> {
        self.answer.as_ref().map(|(_, reply)| reply)
    }
}

/// Sends until the server is gone. Returns all that was sent.
pub(super) fn run(port: u16, of: usize, seed: u64, count: &mut u64, epoch: Epoch) -> Vec<Sent> {
    let mut client = Client::connect(port);
    let mut dice = Dice::new(seed);
    let mut all = Vec::new();
    loop {
        let mut bytes = Vec::new();
        let mut replies = Vec::new();
        let first = all.len();
        for _ in 0..=dice.below(DEPTH) {
            let op = draw(&mut dice, of, count);
            let (words, n) = op.bytes(of);
            bytes.extend(words);
            replies.push((n, op.answer_at()));
            all.push(Sent {
                op,
                sent: 0,
                answer: None,
            });
        }
        let sent = epoch.now();
        all[first..].iter_mut().for_each(|one| one.sent = sent);
        if client.stream.write_all(&bytes).is_err() {
            return all;
        }
        for (i, (n, answer_at)) in replies.into_iter().enumerate() {
            let mut answer = None;
            for at in 0..n {
                let Some(reply) = client.try_read() else {
                    return all;
                };
                if at == answer_at {
                    answer = Some(reply);
                }
            }
            all[first + i].answer = answer.map(|reply| (epoch.now(), reply));
        }
    }
}

/// What a subscriber was told: for each client the highest count.
pub(super) fn listen(port: u16, clients: usize) -> Vec<u64> {
    let mut told = vec![0; clients];
    let mut client = Client::connect(port);
    client.send(&crate::common::command(&["SUBSCRIBE", "told"]));
    while let Some(reply) = client.try_read() {
        let Reply::Array(words) = reply else { continue };
        let [_, _, Reply::Bulk(text)] = &words[..] else {
            continue;
        };
        let text = String::from_utf8_lossy(text);
        let (of, count) = text.split_once(' ').expect("two numbers");
        let (of, count): (usize, u64) = (
            of.parse().expect("a number"),
            count.parse().expect("a number"),
        );
        told[of] = told[of].max(count);
    }
    told
}
