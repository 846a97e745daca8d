//! A log on a disk that may lose, tear and reorder what was not synced: a journal in memory for
//! tests of crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use tidewheel_tasks::journal::{Change, Journal, JournalError, Record};

use crate::common::Random;

/// The bytes of one append: its length, a checksum, and its changes.
fn encode(changes: &[Change]) -> Vec<u8> {
    let mut body = Vec::new();
    for change in changes {
        match change {
            Change::Begin(Record { name, id, value }) => {
                body.push(1);
                body.extend(name.to_le_bytes());
                for part in [id.as_bytes(), value] {
                    body.extend((part.len() as u64).to_le_bytes());
                    body.extend(part);
                }
            }
            Change::End(name) => {
                body.push(2);
                body.extend(name.to_le_bytes());
            }
        }
    }
    let mut bytes = (body.len() as u64).to_le_bytes().to_vec();
    bytes.extend(checksum(&body).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Reads one append off the front of `bytes`; `None` where the log ends or is torn.
fn decode(bytes: &mut &[u8]) -> Option<Vec<Change>> {
    let mut rest = *bytes;
    let length = word(&mut rest)?;
    let sum = word(&mut rest)?;
    let mut body = rest.split_off(..usize::try_from(length).ok()?)?;
    if length == 0 || checksum(body) != sum {
        return None;
    }
    *bytes = rest;
    let mut changes = Vec::new();
    while let Some(kind) = body.split_off_first() {
        let name = word(&mut body)?;
        changes.push(match kind {
            1 => {
                let id = part(&mut body)?;
                let id = Arc::from(str::from_utf8(&id).ok()?);
                let value = part(&mut body)?;
                Change::Begin(Record { name, id, value })
            }
            _ => Change::End(name),
        });
    }
    Some(changes)
}

fn part(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(word(bytes)?).ok()?;
    bytes.split_off(..length).map(<[u8]>::to_vec)
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

/// A log file: what is certainly on the platter, and writes that are on their way.
#[derive(Debug, Default)]
struct Log {
    platter: Vec<u8>,
    /// Writes since the last sync, each behind the one before.
    under_way: Vec<Vec<u8>>,
    appended: u64,
    synced: u64,
    openings: u64,
}

impl Log {
    fn sync(&mut self) {
        self.platter.extend(self.under_way.drain(..).flatten());
        self.synced = self.appended;
    }

    /// Each write under way is there, or is not, or in part, whatever became of others. What was
    /// written behind a hole is out of reach.
    fn lose_power(&mut self, random: &mut Random) {
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

    fn read(&self) -> Vec<Vec<Change>> {
        let mut rest = self.platter.as_slice();
        std::iter::from_fn(|| decode(&mut rest)).collect()
    }

    /// Cuts the log off where it ends.
    fn open(&mut self) -> Vec<Vec<Change>> {
        let log = self.read();
        let whole = log.iter().map(|changes| encode(changes).len()).sum();
        self.platter.truncate(whole);
        self.appended = log.len() as u64;
        self.synced = self.appended;
        self.openings += 1;
        log
    }
}

#[derive(Debug, Default)]
struct State {
    log: Log,
    /// Calls of the journal that change something, so far.
    points: u64,
    /// The point at which the power fails.
    fails_at: Option<u64>,
    has_power: bool,
    is_full: bool,
    /// Whoever waits for the disk waits until somebody syncs it.
    is_slow: bool,
}

/// A disk. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    state: Arc<(Mutex<State>, Condvar)>,
}

const NO_POWER: &str = "the power has failed";

impl State {
    /// The power may fail here.
    fn point(&mut self) -> Result<(), JournalError> {
        self.points += 1;
        self.has_power &= self.fails_at != Some(self.points);
        match self.has_power {
            true => Ok(()),
            false => Err(JournalError::new(NO_POWER)),
        }
    }
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().expect("no panic")
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let changed = change(&mut self.lock());
        self.state.1.notify_all();
        changed
    }

    pub(crate) fn points(&self) -> u64 {
        self.lock().points
    }

    pub(crate) fn appended(&self) -> u64 {
        self.lock().log.appended
    }

    /// Lets the power fail so many points from now.
    pub(crate) fn fail_after(&self, points: u64) {
        self.change(|state| state.fails_at = Some(state.points + points));
    }

    pub(crate) fn has_power(&self) -> bool {
        self.lock().has_power
    }

    pub(crate) fn set_full(&self, is_full: bool) {
        self.change(|state| state.is_full = is_full);
    }

    /// Lets callers wait for the disk until [`sync`](Self::sync).
    pub(crate) fn set_slow(&self, is_slow: bool) {
        self.change(|state| state.is_slow = is_slow);
    }

    pub(crate) fn sync(&self) {
        self.change(|state| state.log.sync());
    }

    /// The power fails now.
    pub(crate) fn lose_power(&self, random: &mut Random) {
        self.change(|state| {
            (state.has_power, state.fails_at) = (false, None);
            state.log.lose_power(random);
        });
    }

    /// Forgets the last appends, so many.
    pub(crate) fn forget(&self, appends: usize) {
        self.change(|state| {
            state.log.sync();
            let log = state.log.read();
            let kept = &log[..log.len() - appends];
            let kept = kept.iter().map(|changes| encode(changes).len()).sum();
            state.log.platter.truncate(kept);
        });
    }

    /// What is on the platter: ids and values.
    pub(crate) fn records(&self) -> BTreeSet<(Arc<str>, Vec<u8>)> {
        let records = records(self.lock().log.read()).into_values();
        records.map(|record| (record.id, record.value)).collect()
    }
}

fn records(log: Vec<Vec<Change>>) -> BTreeMap<u64, Record> {
    let mut records = BTreeMap::new();
    for change in log.into_iter().flatten() {
        match change {
            Change::Begin(record) => {
                let old = records.insert(record.name, record);
                assert_eq!(old, None, "a name is used again");
            }
            Change::End(name) => {
                assert!(records.remove(&name).is_some(), "{name} is not there");
            }
        }
    }
    records
}

impl Journal for Disk {
    fn append(&self, changes: Vec<Change>) -> Result<u64, JournalError> {
        let appended = self.change(|state| {
            state.point()?;
            if state.is_full {
                return Err(JournalError::new("no space left"));
            }
            state.log.under_way.push(encode(&changes));
            state.log.appended += 1;
            Ok(state.log.appended)
        })?;
        // It may fail when the write is on its way, too.
        self.change(State::point)?;
        Ok(appended)
    }

    fn wait(&self, appended: u64) -> Result<(), JournalError> {
        self.change(State::point)?;
        let mut state = self.lock();
        while state.is_slow && state.has_power && state.log.synced < appended {
            state = self.state.1.wait(state).expect("no panic");
        }
        if !state.has_power {
            return Err(JournalError::new(NO_POWER));
        }
        state.log.sync();
        drop(state);
        // It is on disk, and the caller does not hear of it.
        self.change(State::point)
    }

    fn load(&self) -> Result<Vec<Record>, JournalError> {
        self.change(|state| {
            state.has_power = true;
            Ok(records(state.log.open()).into_values().collect())
        })
    }

    fn epoch(&self) -> u64 {
        self.lock().log.openings
    }
}

#[test]
fn synced_appends_survive_and_others_are_cut_off_at_the_first_hole() {
    for seed in 0..200 {
        let (disk, mut random) = (Disk::default(), Random(seed));
        disk.load().expect("it opens");
        let end = |name| {
            let (id, value) = (Arc::from("a"), vec![7; name as usize]);
            vec![Change::Begin(Record { name, id, value })]
        };
        for name in 0..20 {
            disk.append(end(name)).expect("appended");
            if name == 9 {
                disk.sync();
            }
        }
        disk.lose_power(&mut random);
        let kept = disk.load().expect("it opens");
        assert!(kept.len() >= 10 && kept.len() <= 20);
        assert!(
            kept.iter()
                .zip(0..)
                .all(|(record, name)| record.name == name)
        );
        disk.append(end(50)).expect("appended");
        disk.sync();
        assert_eq!(disk.records().len(), kept.len() + 1);
    }
}
