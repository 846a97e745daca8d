//! Clients that read streams and wait: a reader without a group sees each entry after its place
//! once, in order, without a gap. A group delivers each entry to one of its consumers, in the order
//! of their coming. What a client that has died was given is pending under its name.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_resp::Reply;

use super::crowd::{Crowd, seeds};

const CLIENTS: usize = 16;
/// The first of them add, the next read for a group, the others read all.
const ADDERS: usize = 3;
const CONSUMERS: usize = 6;
const STEPS: usize = 3_000;
const STREAMS: usize = 3;
const GROUPS: usize = 2;

/// An entry's id, whose number is 0. Its only field has the same value.
type Id = u64;

/// The check that a client makes on a reply.
#[derive(Debug)]
enum Want {
    Done,
    /// Entries after the places of a reader, at most so many of each stream.
    Entries {
        streams: [usize; 2],
        most: usize,
    },
    /// New entries of a group, for one that was so manieth to ask.
    New {
        stream: usize,
        group: usize,
        came: u64,
        most: usize,
    },
}

/// What is known of one client.
#[derive(Default, Clone)]
struct Reader {
    /// The name under which it consumes.
    name: u64,
    /// The last id that it has seen of each stream.
    places: [Id; STREAMS],
    /// Numbers of the entries that it got and has not acknowledged.
    pending: BTreeSet<(usize, usize, Id)>,
}

#[derive(Default)]
struct History {
    added: u64,
    arrivals: u64,
    names: u64,
    entries: [BTreeSet<Id>; STREAMS],
    readers: Vec<Reader>,
    /// The arrivals and ids of each group of each stream.
    given: BTreeMap<(usize, usize), Vec<(u64, Id)>>,
    /// The consumers that died, and what they had not acknowledged as far as they knew.
    dead: BTreeMap<u64, BTreeSet<(usize, usize, Id)>>,
    read: usize,
}

fn id_of(text: &[u8]) -> Id {
    let text = String::from_utf8_lossy(text);
    let ms = text.strip_suffix("-0").expect("an id");
    ms.parse().expect("a number")
}

fn list(reply: Reply) -> Vec<Reply> {
    match reply {
        Reply::Array(items) => items,
        other => panic!("no list: {other:?}"),
    }
}

fn bytes(reply: &Reply) -> &[u8] {
    match reply {
        Reply::Bulk(bytes) => bytes,
        other => panic!("no string: {other:?}"),
    }
}

/// The streams of a reply, with the ids of their entries.
fn entries(reply: Reply) -> Vec<(usize, Vec<Id>)> {
    let streams = list(reply).into_iter().map(|pair| {
        let pair = list(pair);
        let name = String::from_utf8_lossy(bytes(&pair[0])).into_owned();
        let entries = list(pair[1].clone()).into_iter().map(|entry| {
            let entry = list(entry);
            let fields = list(entry[1].clone());
            let (id, value) = (id_of(bytes(&entry[0])), bytes(&fields[1]));
            assert_eq!(value, id.to_string().as_bytes());
            id
        });
        (name[1..].parse().expect("a number"), entries.collect())
    });
    streams.collect()
}

impl History {
    fn hear(&mut self, crowd: &mut Crowd<Want>) {
        for at in 0..CLIENTS {
            while let Some((want, reply)) = crowd.members[at].reply() {
                self.check(at, want, reply);
            }
        }
    }

    fn check(&mut self, at: usize, want: Want, reply: Reply) {
        match (want, reply) {
            (_, Reply::Error(text)) => panic!("{text}"),
            (Want::Done, _) | (_, Reply::Null) => {}
            (Want::Entries { streams, most }, reply) => {
                let got = entries(reply);
                assert!(!got.is_empty());
                for (stream, got) in got {
                    assert!(streams.contains(&stream));
                    let place = &mut self.readers[at].places[stream];
                    let due: Vec<Id> = (self.entries[stream].range(*place + 1..))
                        .copied()
                        .collect();
                    assert!(!got.is_empty() && got.len() <= most);
                    assert_eq!(got, due[..got.len().min(due.len())], "without a gap");
                    self.read += got.len();
                    *place = got[got.len() - 1];
                }
            }
            (
                Want::New {
                    stream,
                    group,
                    came,
                    most,
                },
                reply,
            ) => {
                for (from, got) in entries(reply) {
                    assert!(from == stream && !got.is_empty() && got.len() <= most);
                    for id in got {
                        assert!(self.entries[stream].contains(&id));
                        self.given
                            .entry((stream, group))
                            .or_default()
                            .push((came, id));
                        let is_new = self.readers[at].pending.insert((stream, group, id));
                        assert!(is_new, "{id:?} was given twice");
                        self.read += 1;
                    }
                }
            }
        }
    }

    /// Adds entries, in a transaction or alone. They run at once, so that their ids are known.
    fn add(&mut self, crowd: &mut Crowd<Want>, at: usize) {
        let n = 1 + crowd.dice.below(3);
        if n > 1 {
            crowd.members[at].say("MULTI", Want::Done);
        }
        for _ in 0..n {
            let stream = crowd.dice.below(STREAMS);
            self.added += 1;
            let id = self.added;
            self.entries[stream].insert(id);
            crowd.members[at].say(&format!("XADD s{stream} {id} n {id}"), Want::Done);
        }
        if n > 1 {
            crowd.members[at].say("EXEC", Want::Done);
        }
        crowd.members[at].send(usize::MAX);
        let owner = crowd.members[at].owner();
        crowd.rig.turn(owner);
        self.hear(crowd);
    }

    fn time_out(crowd: &mut Crowd<Want>) -> &'static str {
        ["", "BLOCK 0", "BLOCK 0", "BLOCK 2"][crowd.dice.below(4)]
    }

    /// Reads all that comes after its places.
    fn read(&mut self, crowd: &mut Crowd<Want>, at: usize) {
        let streams = [crowd.dice.below(STREAMS), crowd.dice.below(STREAMS)];
        let (most, block) = (1 + crowd.dice.below(3), Self::time_out(crowd));
        let [a, b] = streams.map(|stream| self.readers[at].places[stream]);
        let [s, t] = streams;
        let line = match s == t {
            true => format!("XREAD COUNT {most} {block} STREAMS s{s} {a}"),
            false => format!("XREAD COUNT {most} {block} STREAMS s{s} s{t} {a} {b}"),
        };
        crowd.members[at].say(&line, Want::Entries { streams, most });
    }

    /// Asks for a group, at once, so that it is known who came first. Before, it acknowledges some
    /// of what it got.
    fn consume(&mut self, crowd: &mut Crowd<Want>, at: usize) {
        let reader = &mut self.readers[at];
        if crowd.dice.once_in(2)
            && let Some(one) = reader.pending.pop_first()
        {
            let (stream, group, id) = one;
            let line = format!("XACK s{stream} g{group} {id}");
            crowd.members[at].say(&line, Want::Done);
        }
        let (stream, group) = (crowd.dice.below(STREAMS), crowd.dice.below(GROUPS));
        let (most, block) = (1 + crowd.dice.below(3), Self::time_out(crowd));
        let name = reader.name;
        self.arrivals += 1;
        let came = self.arrivals;
        let line =
            format!("XREADGROUP GROUP g{group} c{name} COUNT {most} {block} STREAMS s{stream} >");
        let want = Want::New {
            stream,
            group,
            came,
            most,
        };
        crowd.members[at].say(&line, want);
        crowd.members[at].send(usize::MAX);
        let owner = crowd.members[at].owner();
        crowd.rig.turn(owner);
        self.hear(crowd);
    }

    /// A new client, under a new name, in the place of one that has died.
    fn replace(&mut self, at: usize) {
        self.names += 1;
        let reader = Reader {
            name: self.names,
            ..Reader::default()
        };
        let dead = std::mem::replace(&mut self.readers[at], reader);
        self.dead.insert(dead.name, dead.pending);
    }

    /// Everything is sent, answered and read: nobody waits while there is something for him.
    fn settle(&mut self, crowd: &mut Crowd<Want>) {
        crowd.settle();
        self.hear(crowd);
        for at in ADDERS + CONSUMERS..CLIENTS {
            let Some(Want::Entries { streams, .. }) = crowd.members[at].wanted() else {
                continue;
            };
            for stream in *streams {
                let last = self.entries[stream].last().copied();
                let place = self.readers[at].places[stream];
                assert!(
                    last.is_none_or(|last| last <= place),
                    "{at} waits at {place:?}"
                );
            }
        }
        for at in ADDERS..ADDERS + CONSUMERS {
            if let Some(&Want::New { stream, group, .. }) = crowd.members[at].wanted() {
                let pending = crowd.ask(&format!("XINFO GROUPS s{stream}"));
                let groups = list(pending);
                let of = list(groups[group].clone());
                let delivered = id_of(bytes(&of[7]));
                let last = self.entries[stream].last().copied();
                assert!(
                    last.is_none_or(|last| last <= delivered),
                    "{at} waits for {delivered:?}"
                );
            }
        }
    }

    /// Each entry that a group has delivered was given once, or is pending for a client that died.
    fn count(&mut self, crowd: &mut Crowd<Want>) {
        for given in self.given.values_mut() {
            given.sort_unstable();
            let ids: Vec<_> = given.iter().map(|(_, id)| *id).collect();
            assert!(ids.is_sorted_by(|a, b| a < b), "by arrival: {ids:?}");
        }
        let mut known: BTreeMap<u64, BTreeSet<(usize, usize, Id)>> = BTreeMap::new();
        for (stream, group) in (0..STREAMS).flat_map(|s| (0..GROUPS).map(move |g| (s, g))) {
            let line = format!("XPENDING s{stream} g{group} - + 100000");
            for entry in list(crowd.ask(&line)) {
                let entry = list(entry);
                let name = String::from_utf8_lossy(bytes(&entry[1])).into_owned();
                let (name, id) = (
                    name[1..].parse().expect("a number"),
                    id_of(bytes(&entry[0])),
                );
                known.entry(name).or_default().insert((stream, group, id));
                assert_eq!(entry[3], Reply::Integer(1), "delivered once");
            }
        }
        for reader in &self.readers[ADDERS..ADDERS + CONSUMERS] {
            let pending = known.remove(&reader.name).unwrap_or_default();
            assert_eq!(
                pending, reader.pending,
                "what it has and has not acknowledged"
            );
        }
        for (name, lost) in known {
            let had = &self.dead[&name];
            let unheard = lost.difference(had).count();
            // One call was on its way, of at most three entries.
            assert!(unheard <= 3, "{unheard} were given to {name}");
        }
    }
}

fn episode(seed: u64) -> usize {
    let (mut crowd, mut history) = (Crowd::new(seed, CLIENTS), History::default());
    for stream in 0..STREAMS {
        for group in 0..GROUPS {
            crowd.ask(&format!("XGROUP CREATE s{stream} g{group} 0 MKSTREAM"));
        }
    }
    for _ in 0..CLIENTS {
        history.names += 1;
        let name = history.names;
        history.readers.push(Reader {
            name,
            ..Reader::default()
        });
    }
    for step in 0..STEPS {
        let at = crowd.dice.below(CLIENTS);
        let (is_idle, acts) = (crowd.members[at].is_idle(), crowd.dice.once_in(4));
        match at {
            ..ADDERS if is_idle && acts => history.add(&mut crowd, at),
            ..ADDERS => {}
            _ if !is_idle && crowd.dice.once_in(24) => {
                crowd.die(at);
                history.replace(at);
            }
            _ if !is_idle => {}
            _ if at < ADDERS + CONSUMERS => history.consume(&mut crowd, at),
            _ => history.read(&mut crowd, at),
        }
        crowd.pass();
        history.hear(&mut crowd);
        if step % 500 == 499 {
            history.settle(&mut crowd);
        }
    }
    history.settle(&mut crowd);
    history.count(&mut crowd);
    history.read
}

#[test]
fn readers_miss_nothing_and_groups_deliver_once_while_those_who_wait_die() {
    let read: usize = (0..seeds()).map(episode).sum();
    assert!(read as u64 > seeds() * 200, "{read} entries");
}
