//! Recording and replaying changes of data: the page is [`records`](crate::records).

use tidewheel_resp::{Args, Protocol, Writer};

use crate::gate::{Exclusive, Seat};
use crate::keyspace::Keyspace;
use crate::records::{Record, TakenRecords};
use crate::resolve::resolve;
use crate::session::Session;
use crate::time::{Now, Time};

impl Keyspace {
    /// Records each change from now on. What waits is to be [taken](Self::take_records), or memory
    /// grows.
    pub fn start_recording(&self, alone: &Exclusive<'_>) {
        self.observe_records(alone, true);
    }

    /// Records no longer.
    pub fn stop_recording(&self, alone: &Exclusive<'_>) {
        self.observe_records(alone, false);
    }

    fn observe_records(&self, _alone: &Exclusive<'_>, on: bool) {
        self.shared.records.switch(on);
        for shard in &*self.shards {
            shard.lock().observe_records(on);
        }
    }

    /// Takes the records that wait, up to the first [cut](Self::cut_records): their bytes replace
    /// those of `into`, whose memory is used again. They stand in the order of the changes. Locks
    /// no shard.
    pub fn take_records(&self, into: &mut Vec<u8>) -> TakenRecords {
        self.shared.records.take(into)
    }

    /// How many records there ever were. Whoever has seen what a command has changed finds that
    /// its record is counted.
    #[inline]
    #[must_use]
    pub fn records(&self) -> u64 {
        self.shared.records.pushed()
    }

    /// True if records may be taken, apart from those that were cut off.
    #[inline]
    #[must_use]
    pub fn has_records(&self) -> bool {
        self.shared.records.is_ready()
    }

    /// Says whether somebody tells what he has heard only when the [records](Self::records) that he
    /// finds are on disk. Then a thread that tells of a change before it records it, for example by
    /// an event, has its record counted before: those behind it are not taken until it is there.
    pub fn set_promises(&self, count: bool) {
        self.shared.records.set_promises(count);
    }

    /// The caller tells others of something within a [transaction](crate::Transaction), or is about
    /// to. That is what the transaction records, in the end.
    #[inline]
    pub fn promise_record(&self) {
        self.shared.records.promise();
    }

    /// A command has panicked on this thread, and records nothing.
    pub fn forgo_record(&self) {
        self.shared.records.release();
    }

    /// Bytes of records that wait.
    #[must_use]
    pub fn waiting_record_bytes(&self) -> usize {
        self.shared.records.bytes()
    }

    /// Cuts the records at this moment: they are taken in two parts, and what comes later is in the
    /// second one. A snapshot that begins now shows what the first part makes: the events of
    /// expired keys that wait are appended before the cut, since a snapshot has them too.
    pub fn cut_records(&self, _alone: &Exclusive<'_>, time: Time) {
        self.append_all_expired(Now::of(&self.timeline, time));
        self.shared.records.cut();
    }

    /// Records a command that has changed something beside the data.
    pub fn record(&self, time: Time, words: &[&[u8]]) {
        let records = &self.shared.records;
        if records.is_on() {
            let now = Now::of(&self.timeline, time);
            records.push(&now, 0, words.iter().copied());
        }
    }

    /// A moment of the clock as records and deadlines see it: its tick is engine time, which may
    /// have been frozen. Wall time is the same.
    #[must_use]
    pub fn engine_time(&self, time: Time) -> Time {
        let now = Now::of(&self.timeline, time);
        Time {
            tick: now.tick,
            micros: u32::try_from(now.micros).unwrap_or(0),
            wall_offset_ms: time.wall_ms().saturating_sub_unsigned(now.tick),
        }
    }

    /// Says whether records are replayed now. Meanwhile nothing is removed because time passes:
    /// each record finds what its command has found. Events for streams of expired keys wait, and
    /// those that a record has appended are forgotten; the others are appended afterwards.
    pub fn set_replays(&self, _alone: &Exclusive<'_>, replays: bool) {
        self.shared.expired.hold(replays);
        for shard in &*self.shards {
            shard.lock().set_replays(replays);
        }
    }

    /// Runs a record at its own time, while [replaying](Self::set_replays). Returns the error that
    /// its command was answered with, if it was: then it comes from another version, or its bytes
    /// are not what was written.
    ///
    /// # Errors
    ///
    /// The reply, if it is an error.
    pub fn replay(&self, seat: &mut Seat, record: &Record<'_>) -> Result<(), Vec<u8>> {
        let args = Args::from_slices(record.words());
        let mut out = Writer::new(Protocol::Resp3);
        if self.database_index(record.db().into()).is_none() {
            return Err(b"-ERR DB index is out of range\r\n".to_vec());
        }
        let mut session = Session {
            db: record.db(),
            ..Session::default()
        };
        match resolve(args) {
            Ok(row) => self.execute(seat, row, &mut session, record.time(), args, &mut out),
            Err(error) => error.write(&mut out),
        }
        match out.as_bytes().first() {
            Some(b'-' | b'!') => Err(out.into_vec()),
            _ => {
                self.settle_expired(seat, record);
                Ok(())
            }
        }
    }
}
