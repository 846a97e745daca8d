//! Clients that wait for elements: each element is served once, and in the order of the waiting. A
//! client that dies while it waits takes one call's elements along, at most.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_resp::Reply;

use super::crowd::{Crowd, seeds, texts};

const CLIENTS: usize = 14;
/// The first of them push.
const PUSHERS: usize = 3;
const STEPS: usize = 3_000;
const QUEUES: usize = 3;

/// The check that a client makes on a reply.
#[derive(Debug)]
enum Want {
    /// It was pushed.
    Done,
    /// An element; it was so manieth to ask.
    Element { came: u64, queue: Option<usize> },
}

#[derive(Default)]
struct History {
    pushed: u64,
    arrivals: u64,
    got: BTreeSet<u64>,
    /// The receivers' arrival numbers and elements, by queue.
    given: BTreeMap<usize, Vec<(u64, u64)>>,
    /// Clients that died while they waited.
    dead: usize,
}

impl History {
    fn take(&mut self, came: u64, queue: usize, element: &str) {
        let element = element.parse().unwrap();
        assert!(self.got.insert(element), "{element} was given twice");
        self.given.entry(queue).or_default().push((came, element));
    }

    fn hear(&mut self, crowd: &mut Crowd<Want>) {
        for member in &mut crowd.members {
            while let Some((want, reply)) = member.reply() {
                match (want, reply) {
                    (Want::Done, reply) => assert!(!matches!(reply, Reply::Error(_)), "{reply:?}"),
                    (Want::Element { .. }, Reply::Null) => {}
                    (
                        Want::Element {
                            came,
                            queue: Some(queue),
                        },
                        Reply::Bulk(element),
                    ) => {
                        self.take(came, queue, &String::from_utf8_lossy(&element));
                    }
                    (Want::Element { came, .. }, reply) => {
                        let pair = texts(&reply);
                        let queue = pair[0].trim_start_matches('q').parse().unwrap();
                        self.take(came, queue, &pair[1]);
                    }
                }
            }
        }
    }

    /// Pushes, in a transaction or alone. They run at once, so that the order of all pushes is
    /// known.
    fn push(&mut self, crowd: &mut Crowd<Want>, at: usize) {
        let (queue, n) = (crowd.dice.below(QUEUES), 1 + crowd.dice.below(3) as u64);
        let elements: String = (0..n).map(|i| format!(" {}", self.pushed + i)).collect();
        self.pushed += n;
        let push = format!("RPUSH q{queue}{elements}");
        let member = &mut crowd.members[at];
        if n == 2 {
            member.say("MULTI", Want::Done);
            member.say(&push, Want::Done);
            member.say("EXEC", Want::Done);
        } else {
            member.say(&push, Want::Done);
        }
        self.run_now(crowd, at);
    }

    /// Asks, and runs at once, so that it is known who came first.
    fn ask(&mut self, crowd: &mut Crowd<Want>, at: usize) {
        let (a, b) = (crowd.dice.below(QUEUES), crowd.dice.below(QUEUES));
        let timeout = ["0", "0", "0.002"][crowd.dice.below(3)];
        let (line, queue) = match crowd.dice.below(4) {
            0 => (format!("BLMOVE q{a} done LEFT RIGHT {timeout}"), Some(a)),
            1 => (format!("BLPOP q{a} q{b} {timeout}"), None),
            _ => (format!("BLPOP q{a} {timeout}"), None),
        };
        self.arrivals += 1;
        let came = self.arrivals;
        crowd.members[at].say(&line, Want::Element { came, queue });
        self.run_now(crowd, at);
    }

    fn run_now(&mut self, crowd: &mut Crowd<Want>, at: usize) {
        crowd.members[at].send(usize::MAX);
        let owner = crowd.members[at].owner();
        crowd.rig.turn(owner);
        self.hear(crowd);
    }

    /// Checks that elements which no living client has received are in the queues, or were served
    /// to dead clients.
    fn check(&mut self, crowd: &mut Crowd<Want>) {
        for (queue, given) in &mut self.given {
            given.sort_unstable();
            let elements: Vec<_> = given.iter().map(|(_, element)| *element).collect();
            assert!(
                elements.is_sorted(),
                "queue {queue} by arrival: {elements:?}"
            );
        }
        let moved = texts(&crowd.ask("LRANGE done 0 -1"));
        let mut there: BTreeSet<u64> = self.got.clone();
        there.extend(moved.iter().map(|n| n.parse::<u64>().unwrap()));
        for queue in 0..QUEUES {
            for left in texts(&crowd.ask(&format!("LRANGE q{queue} 0 -1"))) {
                let left = left.parse().unwrap();
                assert!(there.insert(left), "{left} was given, and is still there");
            }
        }
        let lost = self.pushed as usize - there.len();
        assert!(lost <= self.dead, "{lost} lost, {} died", self.dead);
    }
}

fn episode(seed: u64) -> usize {
    let (mut crowd, mut history) = (Crowd::new(seed, CLIENTS), History::default());
    for _ in 0..STEPS {
        let at = crowd.dice.below(CLIENTS);
        let (is_idle, acts) = (crowd.members[at].is_idle(), crowd.dice.once_in(2));
        if at < PUSHERS && is_idle && acts {
            history.push(&mut crowd, at);
        } else if at >= PUSHERS && is_idle {
            history.ask(&mut crowd, at);
        } else if at >= PUSHERS && crowd.dice.once_in(12) {
            crowd.die(at);
            history.dead += 1;
        }
        crowd.pass();
        history.hear(&mut crowd);
    }
    crowd.settle();
    history.hear(&mut crowd);
    // Nobody may wait while there is something.
    history.check(&mut crowd);
    history.got.len()
}

#[test]
fn elements_are_given_once_and_in_turn_while_those_who_wait_die() {
    let got: usize = (0..seeds()).map(episode).sum();
    assert!(got as u64 > seeds() * 83, "{got} elements");
}
