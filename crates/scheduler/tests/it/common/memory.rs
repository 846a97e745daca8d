//! This journal in memory records what was appended, how much of it was waited for, and what a
//! restart would find.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tidewheel_scheduler::{Change, Journal, JournalError, Record, Status};

#[derive(Debug, Clone, Default)]
struct State<K, V> {
    live: Vec<Record<K, V>>,
    /// The value of `live` at the latest wait.
    on_disk: Vec<Record<K, V>>,
    appended: u64,
    synced: u64,
    epoch: u64,
    broken: bool,
}

/// Clones are the same journal; each `reopened` one is the next opening of the same file.
#[derive(Debug, Default)]
pub(crate) struct MemoryJournal<K, V>(Arc<Mutex<State<K, V>>>);

impl<K, V> Clone for MemoryJournal<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone, V: Clone> MemoryJournal<K, V> {
    pub(crate) fn with(records: impl IntoIterator<Item = (K, V, SystemTime)>) -> Self {
        let records = (1..).zip(records);
        let live =
            records.map(|(id, (key, value, due))| Record::new(id, key, value, Status::at(due)));
        Self(Arc::new(Mutex::new(State {
            live: live.collect(),
            on_disk: Vec::new(),
            appended: 0,
            synced: 0,
            epoch: 1,
            broken: false,
        })))
    }

    /// One job, as it is.
    pub(crate) fn of(key: K, value: V, status: Status) -> Self {
        let journal = Self::empty();
        let record = Record::new(1, key, value, status);
        {
            let mut state = journal.0.lock().expect("unpoisoned");
            state.on_disk.push(record.clone());
            state.live.push(record);
        }
        journal
    }

    pub(crate) fn empty() -> Self {
        Self::with([])
    }

    /// The jobs that the next process would find if this one were killed now and nothing were lost.
    pub(crate) fn reopened(&self) -> Self {
        let mut state = self.0.lock().expect("unpoisoned").clone();
        state.epoch += 1;
        Self(Arc::new(Mutex::new(state)))
    }

    /// The jobs that the next process would find if this one were killed now and all were lost that
    /// nobody has waited for.
    pub(crate) fn on_disk(&self) -> Self {
        let journal = self.reopened();
        {
            let mut state = journal.0.lock().expect("unpoisoned");
            state.live = state.on_disk.clone();
        }
        journal
    }

    /// The contents of the journal, oldest first.
    pub(crate) fn live(&self) -> Vec<Record<K, V>> {
        self.0.lock().expect("unpoisoned").live.clone()
    }

    /// Calls of `append` so far, and how many of them are on disk.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let state = self.0.lock().expect("unpoisoned");
        (state.appended, state.synced)
    }

    /// From now on every call fails, or none does.
    pub(crate) fn set_broken(&self, broken: bool) {
        self.0.lock().expect("unpoisoned").broken = broken;
    }
}

impl<K: Clone + Send, V: Clone + Send> Journal<K, V> for MemoryJournal<K, V> {
    fn append(&self, changes: &[Change<'_, K, V>]) -> Result<u64, JournalError> {
        let mut state = self.0.lock().expect("unpoisoned");
        if state.broken {
            return Err(JournalError::new("broken"));
        }
        for change in changes {
            match *change {
                Change::Set {
                    id,
                    key,
                    value,
                    status,
                } => {
                    let record = Record::new(id, key.clone(), value.clone(), status.clone());
                    state.live.push(record);
                }
                Change::Update { id, status } => {
                    let found = state.live.iter_mut().find(|record| record.id == id);
                    if let Some(record) = found {
                        record.status = status.clone();
                    }
                }
                Change::End { id } => state.live.retain(|record| record.id != id),
                _ => return Err(JournalError::new("unknown")),
            }
        }
        state.appended += 1;
        Ok(state.appended)
    }

    fn wait(&self, appended: u64) -> Result<(), JournalError> {
        let mut state = self.0.lock().expect("unpoisoned");
        if state.broken {
            return Err(JournalError::new("broken"));
        }
        state.synced = state.synced.max(appended);
        state.on_disk = state.live.clone();
        Ok(())
    }

    fn load(&self) -> Result<Vec<Record<K, V>>, JournalError> {
        Ok(self.0.lock().expect("unpoisoned").live.clone())
    }

    fn epoch(&self) -> u64 {
        self.0.lock().expect("unpoisoned").epoch
    }
}
