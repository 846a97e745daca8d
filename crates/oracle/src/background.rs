//! A snapshot that is taken while data changes: its file must show the moment at which it began.

use std::io;
use std::thread::JoinHandle;

use tidewheel_keyspace::{FileFormat, Keyspace, Saved, Seat, SnapshotCourse, SnapshotLimits, Time};

use crate::replay::{FIELDS, LIBRARY, Replica};

/// A snapshot that is being taken.
#[derive(Debug)]
pub(crate) struct Background {
    /// All data at its beginning, saved at once.
    at_once: (Vec<u8>, Saved),
    /// Engine time then.
    engine: Time,
    course: SnapshotCourse,
    writer: JoinHandle<io::Result<(Vec<u8>, Saved)>>,
    shards: usize,
}

impl Background {
    pub(crate) fn begin(keyspace: &Keyspace, seat: &mut Seat, clock: Time) -> Self {
        let alone = seat.exclusive();
        let formats = FileFormat::all();
        let format = formats[clock.tick as usize % formats.len()];
        keyspace.rules().set_file_format(format);
        let mut file = Vec::new();
        let library = || [LIBRARY].into_iter();
        let saved = keyspace.save(&alone, clock, &FIELDS, library(), &mut file);
        let saved = saved.expect("memory takes it");
        let limits = SnapshotLimits {
            members_at_once: 3,
            ..SnapshotLimits::of(0)
        };
        let snapshot = keyspace.begin_snapshot(&alone, clock, limits);
        let course = snapshot.course();
        let write = move || {
            let mut file = Vec::new();
            let saved = snapshot.write(&FIELDS, library(), &mut file)?;
            Ok((file, saved))
        };
        Self {
            at_once: (file, saved),
            engine: keyspace.engine_time(clock),
            course,
            writer: std::thread::spawn(write),
            shards: keyspace.shards(),
        }
    }

    /// Walks on over one shard. True at the end of all.
    pub(crate) fn walk(&mut self, keyspace: &Keyspace, seat: &mut Seat, chance: usize) -> bool {
        keyspace.walk_snapshot(seat, chance % self.shards, 1 + chance % 5);
        self.course.is_shown()
    }

    /// Compares what the file makes with what the other makes, at a moment of engine time.
    pub(crate) fn check(self, shards: usize, now: Time) {
        let (walked, all) = self.course.walked();
        let written = self.writer.join().expect("the writer ends");
        let (file, saved) = written.unwrap_or_else(|error| panic!("{error}"));
        assert!(saved.keys <= self.at_once.1.keys && walked <= all);
        let (expected, as_of) = self.at_once;
        let mut expected = Replica::of_file(&expected, as_of, self.engine, shards);
        let mut taken = Replica::of_file(&file, saved, self.engine, shards);
        taken.compare_with(&mut expected, now);
    }
}
