//! Random operations on a stream against maps, compared after every step.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidewheel_collections::{Element, Keep, Log, Pending, Stream, StreamId, StreamLimits, Trim};

#[derive(Debug, Clone)]
enum Op {
    Append {
        gap: StreamId,
        names: u8,
        value: Vec<u8>,
        times: usize,
    },
    Delete(StreamId),
    Trim(Trim),
    Range(StreamId, StreamId),
    Limits(StreamLimits),
    Group(u8),
    Destroy(u8),
    Give {
        group: u8,
        consumer: u8,
        id: StreamId,
    },
    Acknowledge {
        group: u8,
        id: StreamId,
    },
    RemoveConsumer {
        group: u8,
        consumer: u8,
    },
    Forget(StreamId),
    Reload,
}

fn id() -> impl Strategy<Value = StreamId> {
    (0u64..40, 0u64..6).prop_map(|(ms, seq)| StreamId::new(ms, seq))
}

fn op() -> impl Strategy<Value = Op> {
    let value = prop_oneof![
        4 => (-70_000i64..70_000).prop_map(|n| n.to_string().into_bytes()),
        4 => prop::collection::vec(any::<u8>(), 0..90),
        1 => (3_000usize..9_000).prop_map(|len| vec![b'v'; len]),
    ];
    let keep = prop_oneof![(0u64..30).prop_map(Keep::Len), id().prop_map(Keep::From)];
    let trim = (keep, any::<bool>(), 0u64..20).prop_map(|(keep, approximate, limit)| Trim {
        keep,
        approximate,
        limit,
    });
    let limits = (0usize..300, 0usize..12);
    prop_oneof![
        8 => ((0u64..2, 0u64..3), 0u8..6, value, 1usize..6).prop_map(|(gap, names, value, times)| {
            Op::Append { gap: StreamId::new(gap.0, gap.1), names, value, times }
        }),
        3 => id().prop_map(Op::Delete),
        2 => trim.prop_map(Op::Trim),
        4 => (id(), id()).prop_map(|(start, end)| Op::Range(start, end)),
        1 => limits.prop_map(|(bytes, entries)| Op::Limits(StreamLimits { bytes, entries })),
        1 => (0u8..3).prop_map(Op::Group),
        1 => (0u8..9).prop_map(Op::Destroy),
        6 => (0u8..3, 0u8..4, id()).prop_map(|(group, consumer, id)| Op::Give { group, consumer, id }),
        3 => (0u8..3, id()).prop_map(|(group, id)| Op::Acknowledge { group, id }),
        1 => (0u8..3, 0u8..4).prop_map(|(group, consumer)| Op::RemoveConsumer { group, consumer }),
        1 => id().prop_map(Op::Forget),
        1 => Just(Op::Reload),
    ]
}

type Words = Vec<Vec<u8>>;

/// For each group, who has an entry.
type Given = BTreeMap<u8, BTreeMap<StreamId, u8>>;

#[derive(Default)]
struct Pair {
    stream: Stream,
    entries: BTreeMap<StreamId, Words>,
    given: Given,
    limits: StreamLimits,
    added: u64,
}

fn text(element: Element<'_>) -> Vec<u8> {
    match element {
        Element::Bytes(bytes) => bytes.to_vec(),
        Element::Integer(number) => number.to_string().into_bytes(),
    }
}

fn words(entry: tidewheel_collections::StreamEntry<'_>) -> (StreamId, Words) {
    let fields = entry
        .fields
        .flat_map(|(name, value)| [text(name), text(value)]);
    (entry.id, fields.collect())
}

impl Pair {
    fn append(&mut self, gap: StreamId, names: u8, value: &[u8]) {
        let last = self.stream.log.last_id();
        let id = match gap.ms {
            0 => StreamId::new(last.ms, last.seq + 1 + gap.seq),
            ms => StreamId::new(last.ms + ms, gap.seq),
        };
        let name = |i: u8| {
            if names == 5 {
                format!("{i}")
            } else {
                format!("f{i}")
            }
        };
        let fields = 1 + names.min(2);
        let fields: Words = (0..fields)
            .flat_map(|i| [name(i).into_bytes(), value.to_vec()])
            .collect();
        let slices: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        self.stream
            .log
            .append(id, slices.iter().copied(), &self.limits);
        self.entries.insert(id, fields);
        self.added += 1;
    }

    fn trim(&mut self, trim: Trim) {
        let before = self.entries.len() as u64;
        let gone = self.stream.log.trim(trim).entries;
        let most = match trim.keep {
            Keep::Len(len) => before.saturating_sub(len),
            Keep::From(id) => self.entries.range(..id).count() as u64,
        };
        assert!(gone <= most, "no more than was asked for");
        assert!(
            trim.approximate || trim.limit > 0 || gone == most,
            "all that was asked for"
        );
        let kept = self.entries.iter().skip(gone as usize);
        self.entries = kept.map(|(id, words)| (*id, words.clone())).collect();
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Append {
                gap,
                names,
                value,
                times,
            } => {
                (0..times).for_each(|_| self.append(gap, names, &value));
            }
            Op::Delete(id) => {
                let was_there = self.entries.remove(&id).is_some();
                assert_eq!(self.stream.log.delete(id), was_there);
            }
            Op::Trim(trim) => self.trim(trim),
            Op::Range(start, end) => {
                let ours: Vec<_> = self.stream.log.range(start, end).map(words).collect();
                let range = (start <= end).then(|| self.entries.range(start..=end));
                let mut model: Vec<_> = range
                    .into_iter()
                    .flatten()
                    .map(|(id, words)| (*id, words.clone()))
                    .collect();
                assert_eq!(ours, model);
                model.reverse();
                let ours: Vec<_> = self.stream.log.range_back(start, end).map(words).collect();
                assert_eq!(ours, model);
            }
            Op::Limits(limits) => self.limits = limits,
            Op::Group(name) => {
                let is_new = self.stream.groups.create(&[name], StreamId::MIN, None);
                assert_eq!(is_new, !self.given.contains_key(&name));
                self.given.entry(name).or_default();
            }
            Op::Destroy(name) => {
                let was_there = self.stream.groups.destroy(&[name]).is_some();
                assert_eq!(was_there, self.given.remove(&name).is_some());
            }
            Op::Give {
                group,
                consumer,
                id,
            } => {
                let ours = self.stream.groups.edit(&[group], |group| {
                    let (number, _) = group.consumer_or_new(&[consumer], 5);
                    let pending = Pending {
                        consumer: number,
                        delivered_ms: 5,
                        deliveries: 1,
                    };
                    group.assign(id, pending);
                });
                let model = self.given.get_mut(&group);
                assert_eq!(ours.is_some(), model.is_some());
                model.map(|given| given.insert(id, consumer));
            }
            Op::Acknowledge { group, id } => {
                let ours = self
                    .stream
                    .groups
                    .edit(&[group], |group| group.acknowledge(id));
                let model = self.given.get_mut(&group);
                assert_eq!(ours, model.map(|given| given.remove(&id).is_some()));
            }
            Op::RemoveConsumer { group, consumer } => {
                let ours = self.stream.groups.edit(&[group], |group| {
                    group.remove_consumer(&[consumer]).unwrap_or(0)
                });
                let model = self.given.get_mut(&group).map(|given| {
                    let before = given.len();
                    given.retain(|_, of| *of != consumer);
                    before - given.len()
                });
                assert_eq!(ours, model);
            }
            Op::Forget(id) => {
                self.stream.groups.forget(id);
                self.given.values_mut().for_each(|given| {
                    given.remove(&id);
                });
            }
            Op::Reload => {
                let mut log = Log::default();
                self.stream.log.for_each_public(|first, public| {
                    log.push_public(first, public).expect("our own form");
                });
                assert_eq!(log.len(), self.stream.log.len());
                log.set_last_id(self.stream.log.last_id());
                log.set_entries_added(self.added);
                self.stream.log = log;
            }
        }
    }

    fn compare(&self) {
        let log = &self.stream.log;
        self.stream.validate();
        assert_eq!(log.len(), self.entries.len() as u64);
        let first = self.entries.keys().next().copied();
        assert_eq!(log.first_id(), first.unwrap_or_default());
        assert_eq!(log.entries_added(), self.added);
        let all: Vec<_> = log.range(StreamId::MIN, StreamId::MAX).map(words).collect();
        assert!(all.iter().map(|(id, words)| (id, words)).eq(&self.entries));
        assert_eq!(self.stream.groups.iter().len(), self.given.len());
        for (group, (name, given)) in self.stream.groups.iter().zip(&self.given) {
            assert_eq!(group.name(), [*name]);
            let ours: Vec<_> = group
                .pending_from(StreamId::MIN)
                .map(|(id, pending)| (id, group.consumer(pending.consumer).name()[0]))
                .collect();
            assert!(ours.iter().map(|(id, of)| (id, of)).eq(given));
        }
    }
}

proptest! {
    #[test]
    fn a_stream_is_what_a_map_would_be(ops in prop::collection::vec(op(), 1..120)) {
        let mut pair = Pair::default();
        for op in ops {
            pair.run(op);
            pair.compare();
        }
    }

    #[test]
    fn bytes_from_anywhere_make_no_broken_chunk(
        ops in prop::collection::vec(op(), 1..30),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut pair = Pair::default();
        ops.into_iter().for_each(|op| pair.run(op));
        let mut log = Log::default();
        pair.stream.log.for_each_public(|first, public| {
            let mut public = public.to_vec();
            for (at, byte) in &changes {
                let at = at.index(public.len());
                public[at] = *byte;
            }
            let _ = log.push_public(first, &public[..cut.index(public.len() + 1)]);
            let _ = log.push_public(first, &public);
        });
        let stream = Stream { log, ..Stream::default() };
        stream.validate();
        let all = stream.log.range(StreamId::MIN, StreamId::MAX);
        prop_assert_eq!(all.map(words).count() as u64, stream.log.len());
    }
}
