//! A disk in memory that may do to a log whatever a real one may, driven by a seed.
//!
//! It has what the system shows and what the disk holds: for each file by pages of 4 KiB, and for
//! the folder by changes of names. What was not synced reaches the disk at any time, or never.
//!
//! - A *crash* keeps each unsynced page, loses it, or tears it into sectors of 512 bytes. A file
//!   that grew has its old length, its new one or one in between, and zeros, garbage or old bytes
//!   where no page was written. Of the changes of names any may be lost; a rename is lost as a
//!   whole. That is more than ext4 or xfs do, which lose the last ones only.
//! - A *sync that fails* drops what it did not write: the next one succeeds without it, as on
//!   Linux.
//! - A *killed process* leaves everything as the system shows it; but what such a sync dropped may
//!   be shown as the disk has it.
//! - [`Faults`] are short and failing writes, failing syncs and changes of names, and a disk that
//!   is full.
//! - [`Disk::flip`] alters a bit of what is on the disk.

mod dice;
mod inode;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::folder::{File, Folder};
use crate::segment::HEADER;

pub(crate) use dice::Dice;
use inode::Inode;

/// What fails, each once in so many times; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Writes that write less than they are asked to.
    pub short_writes: u64,
    /// Writes that write something, and fail.
    pub failed_writes: u64,
    /// Syncs of files.
    pub failed_syncs: u64,
    /// Those of segments that have frames say that they are done.
    pub hides_failed_syncs: bool,
    /// Whatever is done to the folder.
    pub failed_names: u64,
    /// How many bytes all files together may have.
    pub capacity: Option<u64>,
}

/// A folder on a disk in memory. A clone is the same disk.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<State>>);

/// An open file of a [`Disk`].
#[derive(Debug)]
pub struct OpenFile {
    disk: Disk,
    inode: Shared,
    /// The process that opened it.
    process: u64,
}

/// Holds a [`Disk`] for one process.
#[derive(Debug)]
pub struct Lock {
    disk: Disk,
    process: u64,
}

type Shared = Arc<Mutex<Inode>>;
type Names = BTreeMap<String, Shared>;
/// Names that change together, and what they name then.
type Change = Vec<(String, Option<Shared>)>;

#[derive(Debug)]
struct State {
    dice: Dice,
    faults: Faults,
    /// What the system shows.
    names: Names,
    /// What the disk has.
    disk_names: Names,
    /// What the disk does not have yet.
    pending: Vec<Change>,
    /// Counts crashes and kills.
    process: u64,
    is_locked: bool,
    /// Operations until the power goes.
    fuse: Option<u64>,
}

impl Disk {
    /// An empty folder.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            dice: Dice::new(seed),
            faults: Faults::default(),
            names: Names::new(),
            disk_names: Names::new(),
            pending: Vec::new(),
            process: 0,
            is_locked: false,
            fuse: None,
        })))
    }

    /// Another disk with what this one shows, all of it synced.
    pub fn copy(&self, seed: u64) -> Self {
        let copy = Self::new(seed);
        let names: Names = (self.state().names.iter())
            .map(|(name, inode)| {
                let mut inode = inode.lock_it().clone();
                inode.sync();
                (name.clone(), Arc::new(Mutex::new(inode)))
            })
            .collect();
        copy.state().names = names.clone();
        copy.state().disk_names = names;
        copy
    }

    /// Says what fails from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Lets the power go when so many more operations are done. Everything fails then, until
    /// [`crash`](Self::crash).
    pub fn cut_power_after(&self, operations: u64) {
        self.state().fuse = Some(operations);
    }

    /// Whether the power is to go, or is off.
    pub fn is_armed(&self) -> bool {
        self.state().fuse.is_some()
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.state().fuse == Some(0)
    }

    /// The machine starts again: what was not synced is kept, torn or lost. Files that were open
    /// are of no use any more.
    pub fn crash(&self) {
        let mut state = self.state();
        let state = &mut *state;
        state.lose_names();
        state.names = state.disk_names.clone();
        for inode in state.names.values() {
            let mut inode = inode.lock_it();
            *inode = std::mem::take(&mut *inode).crash(&mut state.dice);
        }
        state.begin_process();
    }

    /// The process ends, and another one begins. The machine goes on.
    pub fn kill(&self) {
        let mut state = self.state();
        let state = &mut *state;
        for inode in state.names.values() {
            inode.lock_it().forget(&mut state.dice);
        }
        state.begin_process();
    }

    /// The length of a file, if it is there.
    pub fn len(&self, name: &str) -> Option<u64> {
        let state = self.state();
        let inode = state.names.get(name)?.lock_it();
        Some(inode.shown.len() as u64)
    }

    /// Alters one bit of a file, counted from its beginning, on the disk itself.
    pub fn flip(&self, name: &str, bit: u64) {
        if let Some(inode) = self.state().names.get(name) {
            inode.lock_it().flip((bit / 8) as usize, (bit % 8) as u8);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an operation on the folder.
    fn operate(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.burn()?;
        Ok(state)
    }

    /// Begins an operation on the folder that may fail.
    fn change(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.operate()?;
        let once_in = state.faults.failed_names;
        match state.dice.once_in(once_in) {
            true => Err(io::Error::other("the folder fails")),
            false => Ok(state),
        }
    }
}

impl State {
    fn burn(&mut self) -> io::Result<()> {
        match &mut self.fuse {
            Some(0) => Err(io::Error::other("the power is off")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn begin_process(&mut self) {
        self.process += 1;
        self.is_locked = false;
        self.fuse = None;
    }

    fn name(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.pending.push(change);
    }

    /// Brings some of the pending changes to disk: the first ones, or any.
    fn lose_names(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let kept = self.dice.below(pending.len() as u64 + 1) as usize;
        let in_order = self.dice.once_in(2);
        for (place, change) in pending.iter().enumerate() {
            if in_order && place < kept || !in_order && self.dice.once_in(2) {
                apply(&mut self.disk_names, change);
            }
        }
    }

    fn is_segment(&self, inode: &Shared) -> bool {
        let mut names = self.names.iter();
        names.any(|(name, of)| Arc::ptr_eq(of, inode) && name.starts_with("segment-"))
    }

    /// How many more bytes the files may have.
    fn room(&self) -> u64 {
        let used = || {
            self.names
                .values()
                .map(|inode| inode.lock_it().shown.len() as u64)
                .sum()
        };
        (self.faults.capacity).map_or(u64::MAX, |capacity| capacity.saturating_sub(used()))
    }
}

fn apply(names: &mut Names, change: &Change) {
    for (name, inode) in change {
        match inode {
            Some(inode) => names.insert(name.clone(), Arc::clone(inode)),
            None => names.remove(name),
        };
    }
}

impl Folder for Disk {
    type File = OpenFile;
    type Lock = Lock;

    fn lock(&self) -> io::Result<Lock> {
        let mut state = self.operate()?;
        if std::mem::replace(&mut state.is_locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Lock {
            disk: self.clone(),
            process: state.process,
        })
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.operate()?.names.keys().cloned().collect())
    }

    fn create_new(&self, name: &str) -> io::Result<OpenFile> {
        let mut state = self.change()?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = Shared::default();
        state.name(vec![(name.to_owned(), Some(Arc::clone(&inode)))]);
        Ok(OpenFile {
            disk: self.clone(),
            inode,
            process: state.process,
        })
    }

    fn open(&self, name: &str) -> io::Result<OpenFile> {
        let state = self.operate()?;
        let inode = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(OpenFile {
            disk: self.clone(),
            inode: Arc::clone(inode),
            process: state.process,
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.change()?;
        let inode = state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        let inode = Some(Arc::clone(inode));
        state.name(vec![(from.to_owned(), None), (to.to_owned(), inode)]);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.change()?;
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.name(vec![(name.to_owned(), None)]);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.change()?;
        let state = &mut *state;
        for change in state.pending.drain(..) {
            apply(&mut state.disk_names, &change);
        }
        Ok(())
    }

    fn random(&self) -> [u8; 16] {
        let mut state = self.state();
        let (high, low) = (state.dice.number(), state.dice.number());
        (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
    }
}

impl OpenFile {
    fn operate(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.disk.operate()?;
        if self.process != state.process {
            return Err(io::Error::other("the process that opened this has ended"));
        }
        if state.dice.once_in(8) {
            self.inode.lock_it().write_back(&mut state.dice);
        }
        Ok(state)
    }
}

impl File for OpenFile {
    fn len(&self) -> io::Result<u64> {
        let _state = self.operate()?;
        Ok(self.inode.lock_it().shown.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.operate()?;
        let inode = self.inode.lock_it();
        let bytes = inode.shown.get(offset as usize..).unwrap_or_default();
        let mut length = bytes.len().min(into.len());
        if length > 1 && state.dice.once_in(16) {
            length = 1 + state.dice.below(length as u64) as usize;
        }
        into[..length].copy_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.operate()?;
        let faults = state.faults;
        let room = state.room();
        let mut inode = self.inode.lock_it();
        let overwritten = (inode.shown.len() as u64).saturating_sub(offset);
        let fails = state.dice.once_in(faults.failed_writes);
        let mut length = bytes.len() as u64;
        if fails {
            // All of it may have been written nevertheless.
            length = if state.dice.once_in(2) {
                length
            } else {
                state.dice.below(length)
            };
        } else if length > 1 && state.dice.once_in(faults.short_writes) {
            length = 1 + state.dice.below(length - 1);
        }
        let length = length.min(room.saturating_add(overwritten)) as usize;
        inode.write(offset as usize, &bytes[..length]);
        match length {
            _ if fails => Err(io::Error::other("the write fails")),
            0 if !bytes.is_empty() => Err(io::ErrorKind::StorageFull.into()),
            length => Ok(length),
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.operate()?;
        let once_in = state.faults.failed_writes;
        if state.dice.once_in(once_in) {
            return Err(io::Error::other("the file cannot be cut"));
        }
        self.inode.lock_it().truncate(len as usize);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.operate()?;
        let once_in = state.faults.failed_syncs;
        let mut inode = self.inode.lock_it();
        if state.dice.once_in(once_in) {
            inode.fail_to_sync(&mut state.dice);
            let has_frames = inode.shown.len() as u64 > HEADER;
            drop(inode);
            if state.faults.hides_failed_syncs && has_frames && state.is_segment(&self.inode) {
                return Ok(());
            }
            return Err(io::Error::other("the sync fails"));
        }
        inode.sync();
        Ok(())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.process == self.process {
            state.is_locked = false;
        }
    }
}

/// Locks a file's inode, always behind the disk's own lock.
trait LockIt {
    fn lock_it(&self) -> MutexGuard<'_, Inode>;
}

impl LockIt for Shared {
    fn lock_it(&self) -> MutexGuard<'_, Inode> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
