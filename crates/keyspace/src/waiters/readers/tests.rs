//! Readers of a stream that is a few numbers, against a naive model.

use std::cell::Cell;
use std::collections::BTreeMap;

use tidewheel_resp::{Args, Writer};

use super::*;
use crate::random::Random;
use crate::session::{Session, Waiter};
use crate::waiters::AwaitedKeys;

/// A stream without entries.
#[derive(Debug, Default)]
struct Numbers {
    last: Option<StreamId>,
    groups: BTreeMap<Vec<u8>, StreamId>,
    /// How often it was asked for a group.
    asked: Cell<usize>,
}

impl Source for Numbers {
    fn last(&self) -> Option<StreamId> {
        self.last
    }

    fn delivered(&self, group: &[u8]) -> Option<StreamId> {
        self.asked.set(self.asked.get() + 1);
        self.groups.get(group).copied()
    }
}

impl Numbers {
    fn of(last: u64, groups: &[(&str, u64)]) -> Self {
        let groups = groups
            .iter()
            .map(|(name, id)| (name.as_bytes().into(), id_of(*id)));
        Self {
            last: (last > 0).then_some(id_of(last)),
            groups: groups.collect(),
            asked: Cell::new(0),
        }
    }
}

fn id_of(ms: u64) -> StreamId {
    StreamId::new(ms, 0)
}

fn above(id: u64) -> Want {
    Want::Above(id_of(id))
}

fn new_for(group: &str) -> Want {
    Want::NewFor(group.as_bytes().into())
}

fn ticket(number: u64, want: &Want) -> Arc<Ticket> {
    let wanted = AwaitedKeys {
        keys: 0..1,
        also: None,
        ms: None,
        tag: 0,
        wants: vec![want.clone()],
        instead: Vec::new(),
    };
    let (owner, slot, id) = (0, 0, number);
    let place = (Waiter { owner, slot, id }, number);
    let (session, out) = (Session::default(), Writer::default());
    let call = (None, Args::from_slices(&[b"key"]));
    Arc::new(Ticket::new(call, &session, &out, place, wanted))
}

fn readers(wants: &[Want]) -> Readers {
    let mut readers = Readers::default();
    for (number, want) in (1..).zip(wants) {
        readers.add(want, &ticket(number, want));
    }
    readers
}

/// Serves the next, who takes nothing.
fn serve(readers: &mut Readers, stream: Option<&Numbers>) -> Option<u64> {
    let ticket = readers.next(stream)?;
    assert!(ticket.turn(TicketState::Waiting, TicketState::Claimed));
    Some(ticket.number)
}

fn serve_all(readers: &mut Readers, stream: Option<&Numbers>) -> Vec<u64> {
    std::iter::from_fn(|| serve(readers, stream)).collect()
}

#[test]
fn a_stream_serves_all_that_wait_for_less_than_its_last_id() {
    let mut readers = readers(&[above(5), above(9), above(7), above(5), above(8)]);
    assert_eq!(serve_all(&mut readers, None), []);
    assert_eq!(serve_all(&mut readers, Some(&Numbers::of(0, &[]))), []);
    assert_eq!(serve_all(&mut readers, Some(&Numbers::of(5, &[]))), []);
    assert_eq!(
        serve_all(&mut readers, Some(&Numbers::of(8, &[]))),
        [1, 4, 3]
    );
    assert_eq!(serve_all(&mut readers, Some(&Numbers::of(10, &[]))), [5, 2]);
    assert!(readers.next(None::<&Numbers>).is_none());
}

#[test]
fn a_group_serves_one_after_the_other_as_long_as_it_has_something_new() {
    let mut readers = readers(&[new_for("a"), new_for("b"), new_for("a")]);
    let mut stream = Numbers::of(7, &[("a", 6), ("b", 9)]);
    assert_eq!(serve(&mut readers, Some(&stream)), Some(1));
    // It has got the entry.
    stream.groups.insert(b"a".into(), id_of(7));
    assert_eq!(serve(&mut readers, Some(&stream)), None);
    stream.last = Some(id_of(8));
    assert_eq!(serve(&mut readers, Some(&stream)), Some(3));
    stream.last = Some(id_of(10));
    assert_eq!(serve(&mut readers, Some(&stream)), Some(2));
}

#[test]
fn a_reader_ends_whose_group_is_gone() {
    let mut readers = readers(&[new_for("a"), above(3), new_for("b"), new_for("c")]);
    let stream = Numbers::of(2, &[("a", 2), ("c", 4)]);
    readers.look_anew(Some(&stream));
    assert_eq!(serve_all(&mut readers, Some(&stream)), [3]);
    readers.look_anew(None::<&Numbers>);
    let mut gone = serve_all(&mut readers, None);
    gone.sort_unstable();
    assert_eq!(
        gone,
        [1, 4],
        "the other waits for whatever the key will hold"
    );
}

#[test]
fn a_group_that_is_set_back_has_something_new() {
    let mut readers = readers(&[new_for("a")]);
    let mut stream = Numbers::of(2, &[("a", 2)]);
    assert_eq!(serve(&mut readers, Some(&stream)), None);
    stream.groups.insert(b"a".into(), id_of(1));
    readers.look_anew(Some(&stream));
    assert_eq!(serve(&mut readers, Some(&stream)), Some(1));
}

/// An XADD or an XACK would have had to look at each of the groups.
#[test]
fn a_stream_does_not_ask_groups_that_have_delivered_everything() {
    let names: Vec<String> = (0..1_000).map(|number| format!("group {number}")).collect();
    let wants: Vec<Want> = names.iter().map(|name| new_for(name)).collect();
    let mut readers = readers(&wants);
    let groups: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 9)).collect();
    let mut stream = Numbers::of(5, &groups);
    assert_eq!(serve(&mut readers, Some(&stream)), None);
    assert_eq!(stream.asked.take(), 1_000, "once");
    for last in 6..9 {
        stream.last = Some(id_of(last));
        assert_eq!(serve(&mut readers, Some(&stream)), None);
    }
    assert_eq!(stream.asked.take(), 0);
    stream.last = Some(id_of(10));
    assert!(serve(&mut readers, Some(&stream)).is_some());
}

#[test]
fn who_has_left_is_not_served_and_leaves_nothing_behind() {
    let wants = [above(1), new_for("a"), above(1), new_for("a")];
    let mut readers = Readers::default();
    let tickets: Vec<_> = (1..).zip(&wants).map(|(n, want)| ticket(n, want)).collect();
    for (want, ticket) in wants.iter().zip(&tickets) {
        readers.add(want, ticket);
    }
    assert!(tickets[0].end() && tickets[1].end());
    let stream = Numbers::of(2, &[("a", 1)]);
    assert_eq!(serve(&mut readers, Some(&stream)), Some(3));
    assert_eq!(serve(&mut readers, Some(&stream)), Some(4));
    for (want, ticket) in wants.iter().zip(&tickets) {
        readers.remove(want, ticket);
    }
    assert!(readers.is_empty() && readers.by_delivered.is_empty());
}

#[test]
fn readers_agree_with_a_model() {
    for seed in 0..200 {
        agree(seed);
    }
}

fn agree(seed: u64) {
    let mut random = Random::new(seed);
    let mut draw = |below: u64| random.next() % below;
    let (mut readers, mut waiting) = (Readers::default(), BTreeMap::new());
    let mut stream: Option<Numbers> = None;
    for number in 0..300 {
        let name = ["a", "b", "c"][draw(3) as usize];
        match draw(8) {
            0..=2 => {
                let known = (stream.as_ref()).and_then(|stream| stream.delivered(name.as_bytes()));
                // A reader of a group that is not there does not wait.
                let want = match (draw(2), known) {
                    (0, Some(_)) => new_for(name),
                    _ => above(draw(40)),
                };
                let ticket = ticket(number, &want);
                readers.add(&want, &ticket);
                waiting.insert(number, (want, ticket));
            }
            3 | 4 => {
                let last = &mut stream.get_or_insert_default().last;
                let before = last.map_or(0, |last| last.ms);
                *last = Some(id_of(before + 1 + draw(3)));
            }
            5 => {
                let stream = stream.get_or_insert_default();
                match draw(3) {
                    0 => drop(stream.groups.remove(name.as_bytes())),
                    _ => drop(stream.groups.insert(name.into(), id_of(draw(40)))),
                }
                readers.look_anew(Some(&*stream));
            }
            6 => {
                let one = waiting.keys().nth(draw(1 + waiting.len() as u64) as usize);
                if let Some((want, ticket)) = one.copied().and_then(|one| waiting.remove(&one)) {
                    assert!(ticket.end());
                    if draw(2) == 0 {
                        readers.remove(&want, &ticket);
                    }
                }
            }
            _ => {
                if draw(4) == 0 {
                    stream = None;
                    readers.look_anew(None::<&Numbers>);
                }
            }
        }
        settle(&mut readers, &mut waiting, stream.as_mut());
    }
}

/// Serves all that can be served. A group's reader takes all that is new.
fn settle(
    readers: &mut Readers,
    waiting: &mut BTreeMap<u64, (Want, Arc<Ticket>)>,
    mut stream: Option<&mut Numbers>,
) {
    loop {
        let can_be = |stream: Option<&Numbers>, want: &Want| {
            let last = stream.and_then(Source::last);
            match want {
                Want::Above(id) => last.is_some_and(|last| *id < last),
                Want::NewFor(group) => {
                    let delivered = stream.and_then(|stream| stream.delivered(group));
                    delivered.is_none_or(|delivered| last.is_some_and(|last| delivered < last))
                }
            }
        };
        let Some(served) = serve(readers, stream.as_deref()) else {
            let left = waiting
                .values()
                .filter(|(want, _)| can_be(stream.as_deref(), want));
            assert_eq!(left.count(), 0, "nobody is left who can be served");
            return;
        };
        let (want, _) = waiting.remove(&served).expect("it waits");
        assert!(can_be(stream.as_deref(), &want));
        if let Want::NewFor(group) = &want {
            let first = waiting.iter().find(|(_, (other, _))| *other == want);
            assert!(
                first.is_none_or(|(number, _)| *number > served),
                "in their order"
            );
            if let Some(stream) = &mut stream
                && let (Some(delivered), Some(last)) =
                    (stream.groups.get_mut(&**group), stream.last)
            {
                *delivered = last;
            }
        }
    }
}
