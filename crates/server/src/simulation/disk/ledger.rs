//! What is known of the records: all that were ever taken, in their order; those that clients have
//! seen the effects of; and what a crash has left on disk.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_keyspace::{RecordReader, Seat};
use tidewheel_log::simulated::Disk;
use tidewheel_log::{Log, Moment, OpenError};
use tidewheel_oracle::Replica;

use crate::state::server::Server;

/// Engine time, and the wall time of that moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) tick: u64,
    pub(super) wall_ms: i64,
}

/// What was taken at once. The writer makes a frame of it.
struct Taken {
    bytes: Vec<u8>,
    /// How many records there were up to its end.
    until: u64,
}

/// A base: how much was taken before it, and its moment.
#[derive(Clone, Copy)]
struct Base {
    taken: usize,
    mark: Mark,
}

/// What is on a disk.
pub(super) struct Found {
    /// The segment that the base is in front of.
    base: Option<u64>,
    /// Frames with records in them.
    frames: Vec<Vec<u8>>,
    last: Option<Moment>,
}

pub(super) struct Ledger {
    taken: Vec<Taken>,
    /// How many records without bytes there were before the first that has some.
    empty: u64,
    /// How much was taken before the last cut.
    cut: usize,
    bases: BTreeMap<u64, Base>,
    /// Records that were there when this life began.
    pub(super) start: u64,
    /// Records that must be there after a crash.
    pub(super) needed: u64,
    replica: Replica,
    replayed: usize,
    /// The codes of the libraries.
    libraries: BTreeSet<Vec<u8>>,
}

impl Mark {
    pub(super) fn of_fields(fields: &[(&str, String)]) -> Self {
        let field = |name: &str| {
            let found = fields.iter().find(|(of, _)| *of == name);
            let words = found.expect("it is there").1.split(' ');
            words.map(str::to_owned).next().expect("a word")
        };
        Self {
            tick: field("tidewheel-tick").parse().expect("a number"),
            wall_ms: field("tidewheel-anchor").parse().expect("a number"),
        }
    }
}

impl Found {
    /// Reads a copy of what a disk shows.
    pub(super) fn on(disk: &Disk) -> Result<Self, OpenError> {
        let mut opened = Log::open(disk.copy(0))?;
        let number = |name: String| {
            let number = name.strip_prefix("base-")?.strip_suffix(".rdb")?;
            number.parse().ok()
        };
        let mut found = Self {
            base: opened.base().and_then(number),
            frames: Vec::new(),
            last: None,
        };
        while let Some(frame) = opened.next_frame()? {
            found.last = Some(frame.moment);
            if !frame.payload.is_empty() {
                found.frames.push(frame.payload.to_vec());
            }
        }
        Ok(found)
    }
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            taken: Vec::new(),
            empty: 0,
            cut: 0,
            bases: BTreeMap::new(),
            start: 0,
            needed: 0,
            replica: Replica::new(4),
            replayed: 0,
            libraries: BTreeSet::new(),
        }
    }

    /// Notes what was taken to be written.
    pub(super) fn note_taken(&mut self, server: &Server) {
        for (bytes, taken) in server.observer.take_taken() {
            let until = self.start + taken.until;
            match self.taken.last_mut() {
                // Records that were promised, and have no bytes.
                Some(last) if bytes.is_empty() => last.until = until,
                None if bytes.is_empty() => self.empty = until,
                _ => self.taken.push(Taken { bytes, until }),
            }
            if taken.is_cut {
                self.cut = self.taken.len();
            }
        }
    }

    /// A base of the last cut is in front of this segment.
    pub(super) fn note_base(&mut self, segment: u64, mark: Mark) {
        let taken = self.cut;
        self.bases.insert(segment, Base { taken, mark });
    }

    /// Records that were taken.
    pub(super) fn records(&self) -> u64 {
        self.taken.last().map_or(self.empty, |last| last.until)
    }

    /// A crash has left this: it must be a beginning of what was taken, and long enough. Returns
    /// the moment of the last that is there.
    pub(super) fn compare(&mut self, found: &Found) -> Result<Option<Mark>, String> {
        let base = match found.base {
            None => None,
            Some(segment) => Some(
                *self
                    .bases
                    .get(&segment)
                    .ok_or("a base that was never begun")?,
            ),
        };
        let from = base.map_or(0, |base| base.taken);
        for (at, frame) in found.frames.iter().enumerate() {
            let taken = self.taken.get(from + at);
            let taken = taken.ok_or_else(|| format!("frame {at} was never taken"))?;
            if taken.bytes != *frame {
                return Err(format!("frame {at} has other bytes"));
            }
        }
        let all = self.records();
        self.taken.truncate(from + found.frames.len());
        let there = self.records();
        if there < self.needed {
            return Err(format!(
                "{there} of {all} records are there, and a client was told of {}",
                self.needed
            ));
        }
        self.cut = 0;
        self.start = there;
        let last = found.last.map(|moment| Mark {
            tick: moment.tick,
            wall_ms: moment.wall_ms,
        });
        Ok(last.or(base.map(|base| base.mark)))
    }

    /// Panics unless the server has what these records make.
    pub(super) fn compare_data(&mut self, server: &Server, seat: &mut Seat) -> Result<(), String> {
        for taken in self.taken.get(self.replayed..).unwrap_or_default() {
            self.replica.replay(&taken.bytes);
            for record in RecordReader::new(&taken.bytes).flatten() {
                if record.words().first() == Some(&&b"FUNCTION"[..]) {
                    let codes = record.words()[1..].iter();
                    self.libraries = codes.map(|code| code.to_vec()).collect();
                }
            }
        }
        if self.replayed > self.taken.len() {
            return Err("what one crash has left, the next one took".to_owned());
        }
        self.replayed = self.taken.len();
        let clock = server.clock.now();
        let times = (clock, server.keyspace.engine_time(clock));
        self.replica.compare(&server.keyspace, seat, times);
        let libraries = |table: &crate::scripts::libraries::Table| {
            table.all().map(|library| library.code.to_vec()).collect()
        };
        let libraries: BTreeSet<Vec<u8>> = server.libraries.look(libraries);
        match libraries == self.libraries {
            true => Ok(()),
            false => Err("the libraries differ".to_owned()),
        }
    }
}
