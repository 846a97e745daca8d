//! Libraries of functions, which all loops share.
//!
//! A loop keeps the places of functions that it has found, until a library is removed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tidewheel_scripts::{Registered, ScriptError};

use super::bodies::Learned;

/// Bytes of all libraries together.
pub(crate) const BYTES_MAX: usize = 32 << 20;

/// Bytes that a library and each of its functions take beside their texts.
const LIBRARY_BYTES: usize = 512;
const FUNCTION_BYTES: usize = 256;

/// One library.
#[derive(Debug)]
pub(crate) struct Library {
    /// No other one, before or after, has this.
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) code: Box<[u8]>,
    pub(crate) functions: Box<[Function]>,
}

/// One function of a library.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) registered: Registered,
    pub(crate) learned: Learned,
}

impl Library {
    pub(crate) fn new(id: u64, name: String, code: &[u8], functions: Vec<Registered>) -> Self {
        let functions = functions.into_iter().map(|registered| Function {
            registered,
            learned: Learned::of(code),
        });
        Self {
            id,
            name,
            code: code.into(),
            functions: functions.collect(),
        }
    }

    /// Returns whether these are its functions.
    pub(crate) fn has_registered(&self, functions: &[Registered]) -> bool {
        let own = self.functions.iter().map(|function| &function.registered);
        own.eq(functions)
    }

    fn bytes(&self) -> usize {
        let functions = self.functions.iter();
        let functions = functions.map(|function| function.registered.bytes() + FUNCTION_BYTES);
        LIBRARY_BYTES + self.name.len() + self.code.len() + functions.sum::<usize>()
    }
}

/// A function: its library, and its place there.
pub(crate) type Place = (Arc<Library>, usize);

/// A set of libraries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    libraries: BTreeMap<String, Arc<Library>>,
    /// Names are in small letters.
    functions: HashMap<Box<[u8]>, Place>,
    ids: HashSet<u64>,
    bytes: usize,
}

impl Table {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.libraries.contains_key(name)
    }

    /// Returns all libraries, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Library>> {
        self.libraries.values()
    }

    /// How many libraries and functions there are, and their bytes.
    pub(crate) fn totals(&self) -> (usize, usize, usize) {
        (self.libraries.len(), self.functions.len(), self.bytes)
    }

    /// Adds a library, which takes the place of another one of its name only if it `replaces` it.
    /// An error leaves the table as it was.
    pub(crate) fn add(&mut self, library: Arc<Library>, replaces: bool) -> Result<(), ScriptError> {
        let name = &library.name;
        let old = self.libraries.get(name).cloned();
        if old.is_some() && !replaces {
            return Err(ScriptError::new(format!(
                "ERR Library {name} already exists"
            )));
        }
        let mut names = HashSet::new();
        for function in &library.functions {
            let key = key_of(&function.registered);
            let (other, is_new) = (self.functions.get(&key), names.insert(key));
            let other =
                other.filter(|(other, _)| old.as_ref().is_none_or(|old| old.id != other.id));
            if other.is_some() || !is_new {
                let name = &function.registered.name;
                return Err(ScriptError::new(format!(
                    "ERR Function {name} already exists"
                )));
            }
        }
        let less = old.map_or(0, |old| old.bytes());
        if self.bytes - less + library.bytes() > BYTES_MAX {
            return Err(ScriptError::new("ERR the libraries are too long"));
        }
        self.remove(name.as_bytes());
        for (at, function) in library.functions.iter().enumerate() {
            let place = (Arc::clone(&library), at);
            self.functions.insert(key_of(&function.registered), place);
        }
        self.bytes += library.bytes();
        self.ids.insert(library.id);
        self.libraries.insert(name.clone(), library);
        Ok(())
    }

    /// Removes a library; returns false if there is none of that name.
    pub(crate) fn remove(&mut self, name: &[u8]) -> bool {
        let name = std::str::from_utf8(name).ok();
        let Some(library) = name.and_then(|name| self.libraries.remove(name)) else {
            return false;
        };
        for function in &library.functions {
            self.functions.remove(&key_of(&function.registered));
        }
        self.bytes -= library.bytes();
        self.ids.remove(&library.id);
        true
    }
}

fn key_of(function: &Registered) -> Box<[u8]> {
    function.name.to_ascii_lowercase().into_bytes().into()
}

/// The libraries of the server.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    table: Mutex<Table>,
    /// Counts how often some were removed.
    version: AtomicU64,
    ids: AtomicU64,
}

impl Libraries {
    /// Returns what `look` says of the libraries.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        look(&self.table.lock())
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the number of a new library.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Finds a function by its name in small letters.
    pub(super) fn find(&self, name: &[u8]) -> Option<Place> {
        self.table.lock().functions.get(name).cloned()
    }

    /// Returns which of these libraries are not there.
    pub(super) fn missing(&self, ids: impl Iterator<Item = u64>) -> Vec<u64> {
        let table = self.table.lock();
        ids.filter(|id| !table.ids.contains(id)).collect()
    }

    /// Adds a library.
    pub(crate) fn add(&self, library: Arc<Library>, replaces: bool) -> Result<(), ScriptError> {
        self.table.lock().add(library, replaces)?;
        if replaces {
            self.version.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// Adds libraries, all or none, or puts them in the place of all.
    pub(crate) fn restore(
        &self,
        libraries: Vec<Arc<Library>>,
        flushes: bool,
        replaces: bool,
    ) -> Result<(), ScriptError> {
        let mut table = self.table.lock();
        let mut next = match flushes {
            true => Table::default(),
            false => table.clone(),
        };
        // All first, so that functions may go from one library to another.
        for library in libraries.iter().filter(|_| replaces) {
            next.remove(library.name.as_bytes());
        }
        for library in libraries {
            next.add(library, false)?;
        }
        *table = next;
        drop(table);
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Removes a library; returns false if there is none of that name.
    pub(crate) fn remove(&self, name: &[u8]) -> bool {
        let removed = self.table.lock().remove(name);
        self.version.fetch_add(1, Ordering::Release);
        removed
    }

    /// Removes all.
    pub(crate) fn clear(&self) {
        *self.table.lock() = Table::default();
        self.version.fetch_add(1, Ordering::Release);
    }
}
