//! A log on a disk that may lose, tear and reorder what was not synced.

use std::time::Duration;

use tidewheel_scheduler::Place;

use super::baton::Random;

/// A job's place, its attempts, its due time, and its period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) due: Duration,
    pub(crate) attempt: u32,
    pub(crate) place: Place,
    /// In milliseconds; 0 for a job that runs once.
    pub(crate) period_ms: u64,
    pub(crate) catch_up: u64,
}

/// A change as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Set {
        id: u64,
        key: u8,
        value: u64,
        state: State,
    },
    Update {
        id: u64,
        state: State,
    },
    End {
        id: u64,
    },
}

const PLACES: [Place; 3] = [Place::Keyed, Place::Unkeyed, Place::Dead];

impl State {
    fn words(self) -> [u64; 5] {
        let place = PLACES.iter().position(|place| *place == self.place);
        [
            nanos(self.due),
            u64::from(self.attempt),
            place.expect("known") as u64,
            self.period_ms,
            self.catch_up,
        ]
    }

    fn read(body: &mut &[u8]) -> Option<Self> {
        Some(Self {
            due: Duration::from_nanos(word(body)?),
            attempt: word(body)? as u32,
            place: PLACES[word(body)? as usize],
            period_ms: word(body)?,
            catch_up: word(body)?,
        })
    }
}

/// The bytes of one append: its length, a checksum, and its changes.
fn encode(changes: &[Entry]) -> Vec<u8> {
    let mut body = Vec::new();
    for change in changes {
        let (kind, mut words) = match *change {
            Entry::Set { id, key, value, .. } => (1, vec![id, u64::from(key), value]),
            Entry::Update { id, .. } => (2, vec![id]),
            Entry::End { id } => (3, vec![id]),
        };
        if let Entry::Set { state, .. } | Entry::Update { state, .. } = change {
            words.extend(state.words());
        }
        body.push(kind);
        words
            .iter()
            .for_each(|word| body.extend(word.to_le_bytes()));
    }
    let mut bytes = (body.len() as u64).to_le_bytes().to_vec();
    bytes.extend(checksum(&body).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Reads one append off the front of `bytes`; `None` where the log ends or is torn.
fn decode(bytes: &mut &[u8]) -> Option<Vec<Entry>> {
    let mut rest = *bytes;
    let length = word(&mut rest)?;
    let sum = word(&mut rest)?;
    let body = rest.split_off(..usize::try_from(length).ok()?)?;
    if length == 0 || checksum(body) != sum {
        return None;
    }
    *bytes = rest;
    let (mut body, mut changes) = (body, Vec::new());
    while let Some(kind) = body.split_off_first() {
        let id = word(&mut body)?;
        changes.push(match kind {
            1 => Entry::Set {
                id,
                key: word(&mut body)? as u8,
                value: word(&mut body)?,
                state: State::read(&mut body)?,
            },
            2 => Entry::Update {
                id,
                state: State::read(&mut body)?,
            },
            _ => Entry::End { id },
        });
    }
    Some(changes)
}

fn word(bytes: &mut &[u8]) -> Option<u64> {
    let word = bytes.split_off(..8)?;
    word.try_into().ok().map(u64::from_le_bytes)
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, mix)
}

fn nanos(due: Duration) -> u64 {
    u64::try_from(due.as_nanos()).unwrap_or(u64::MAX)
}

/// A log file: what is certainly on the platter, and writes that are on their way.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    platter: Vec<u8>,
    /// Writes since the last sync, each behind the one before.
    under_way: Vec<Vec<u8>>,
    /// Appends so far, and how many of them are on the platter.
    pub(crate) appended: u64,
    pub(crate) synced: u64,
    pub(crate) openings: u64,
}

impl Disk {
    /// Returns the number of the append, from 1.
    pub(crate) fn append(&mut self, changes: &[Entry]) -> u64 {
        self.under_way.push(encode(changes));
        self.appended += 1;
        self.appended
    }

    pub(crate) fn sync(&mut self) {
        self.platter.extend(self.under_way.drain(..).flatten());
        self.synced = self.appended;
    }

    /// The power fails: each write under way is there, or is not, or in part, whatever became of
    /// others. What was written behind a hole is out of reach.
    pub(crate) fn lose_power(&mut self, random: &mut Random) {
        let mut end = self.platter.len();
        for write in self.under_way.drain(..) {
            let kept = match random.below(3) {
                0 => 0,
                1 => random.below(write.len() as u64) as usize,
                _ => write.len(),
            };
            self.platter.resize(end + write.len(), 0);
            self.platter[end..end + kept].copy_from_slice(&write[..kept]);
            end += write.len();
        }
    }

    /// The log that the next opening reads, which cuts it off where it ends.
    pub(crate) fn open(&mut self) -> Vec<Vec<Entry>> {
        let log = self.read();
        let whole = log.iter().map(|changes| encode(changes).len()).sum();
        self.platter.truncate(whole);
        self.appended = log.len() as u64;
        self.synced = self.appended;
        self.openings += 1;
        log
    }

    /// The part that is certain to be read after a power failure.
    pub(crate) fn read(&self) -> Vec<Vec<Entry>> {
        let mut rest = self.platter.as_slice();
        std::iter::from_fn(|| decode(&mut rest)).collect()
    }
}

#[test]
fn synced_entries_survive_and_others_are_cut_off_at_the_first_hole() {
    for seed in 0..200 {
        let (mut disk, mut random) = (Disk::default(), Random::new(seed));
        let end = |id| vec![Entry::End { id }, Entry::End { id: id + 100 }];
        for id in 0..20 {
            disk.append(&end(id));
            if id == 9 {
                disk.sync();
            }
        }
        disk.lose_power(&mut random);
        let log = disk.open();
        assert!(log.len() >= 10 && log.len() <= 20);
        assert!(log.iter().zip(0..).all(|(changes, id)| *changes == end(id)));
        disk.append(&end(50));
        disk.sync();
        assert_eq!(disk.read().len(), log.len() + 1);
    }
}
