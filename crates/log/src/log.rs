//! A log that is written.

use std::io;
use std::sync::Arc;

use crate::error::Error;
use crate::folder::{File, Folder, write_all};
use crate::frame::{HEAD, Head, Id, Moment, padding};
use crate::manifest::Manifest;
use crate::names::{base_name, sweep};
use crate::planted::{Fault, is_planted};
use crate::segment::{HEADER, Header};
use crate::sync::{Shared, Sync, Synced};

/// A payload up to this length is copied behind its head, so that one write has both.
const COPIED: usize = 64 * 1024;

/// A log that is written.
///
/// Positions count the bytes of frames over all segments since it was opened. They never go back.
#[derive(Debug)]
pub struct Log<D: Folder> {
    folder: D,
    /// Given back when the log is dropped.
    _lock: Option<D::Lock>,
    manifest: Manifest,
    /// The caller's bytes in the header of each segment.
    text: Vec<u8>,
    current: Current<D::File>,
    /// The last segment of which a sync failed, if the manifest still needs it.
    bad: Option<u64>,
    synced: u64,
    /// The frame at hand. Its memory is used again.
    buffer: Vec<u8>,
}

/// The segment that is written.
#[derive(Debug)]
struct Current<F> {
    shared: Arc<Shared<F>>,
    number: u64,
    id: Id,
    /// The log's position where the segment's frames begin.
    start: u64,
    /// Where the next frame goes.
    end: u64,
    /// How much of the segment is on disk.
    synced: u64,
    /// The CRC of the last frame, or of the header.
    crc: u32,
}

impl<D: Folder> Log<D> {
    pub(crate) fn new(
        folder: D,
        lock: Option<D::Lock>,
        manifest: Manifest,
        header: Header,
        file: D::File,
    ) -> Self {
        Self {
            folder,
            _lock: lock,
            manifest,
            current: Current::new(&header, file, 0),
            text: header.text,
            bad: None,
            synced: 0,
            buffer: Vec::new(),
        }
    }

    /// The folder, to write the next base into.
    pub fn folder(&self) -> &D {
        &self.folder
    }

    /// The number of the segment that is written.
    pub fn segment(&self) -> u64 {
        self.current.number
    }

    /// The first segment that follows the base in force.
    pub fn first_segment(&self) -> u64 {
        self.manifest.first
    }

    /// The position behind the last frame.
    pub fn written(&self) -> u64 {
        self.current.position(self.current.end)
    }

    /// The position up to which a crash takes nothing.
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// True if a sync has failed, and no base is in force yet that replaces what it may have lost.
    pub fn is_poisoned(&self) -> bool {
        self.bad.is_some()
    }

    /// False if frames can be appended only when [`roll`](Self::roll) has begun a segment.
    pub fn takes_frames(&self) -> bool {
        self.bad != Some(self.current.number)
    }

    /// Writes a frame, and returns the position behind it. The payload may be empty.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if there is no room, and [`Error::Failed`] if the system refuses: the frame
    /// does not count, and the next call tries again. After a crash it may be there nevertheless,
    /// as the last one.
    ///
    /// [`Error::Poisoned`] until [`roll`](Self::roll) has begun a new segment.
    pub fn append(&mut self, moment: Moment, payload: &[u8]) -> Result<u64, Error> {
        if !self.takes_frames() {
            return Err(Error::Poisoned);
        }
        self.name_segment()?;
        let current = &mut self.current;
        let end = current.end;
        let head = Head::of(
            current.id,
            end,
            current.crc,
            current.synced,
            moment,
            payload,
        );
        let buffer = &mut self.buffer;
        buffer.clear();
        buffer.extend_from_slice(&head.bytes(current.id));
        let (copied, aside) = match payload.len() {
            0..=COPIED => (payload, &[][..]),
            _ => (&[][..], payload),
        };
        buffer.extend_from_slice(copied);
        if aside.is_empty() {
            buffer.extend_from_slice(padding(head.length));
        }
        let file = &current.shared.file;
        let mut written = write_all(file, end, buffer);
        if !aside.is_empty() {
            let place = end + HEAD as u64;
            written = written
                .and_then(|()| write_all(file, place, aside))
                .and_then(|()| write_all(file, place + head.length, padding(head.length)));
        }
        if let Err(error) = written {
            // To give the room back. What stays is overwritten by the next frame, or cut as a torn
            // end.
            let _ = file.truncate(end);
            return Err(Error::of(error));
        }
        current.end = end + head.frame_len().unwrap_or(0);
        current.crc = head.crc;
        Ok(self.written())
    }

    /// Has the manifest name the segment, if it does not: a frame must not be in a file whose
    /// absence nobody would notice.
    fn name_segment(&mut self) -> Result<(), Error> {
        let last = self.current.number;
        if self.manifest.last < last {
            let manifest = Manifest {
                last,
                ..self.manifest.clone()
            };
            manifest.store(&self.folder).map_err(Error::of)?;
            self.manifest = manifest;
        }
        Ok(())
    }

    /// Brings everything that was appended to disk.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if that fails, and [`Error::Poisoned`] from then on, until
    /// [`rebase`](Self::rebase) has put in force what replaces it.
    pub fn sync(&mut self) -> Result<(), Error> {
        let done = self.begin_sync().run();
        self.end_sync(done)
    }

    /// What brings everything that was appended so far to disk when it runs, on any thread. More
    /// may be appended meanwhile.
    pub fn begin_sync(&self) -> Sync<D::File> {
        Sync {
            shared: Arc::clone(&self.current.shared),
            segment: self.current.number,
            end: self.current.end,
        }
    }

    /// Learns what came of a sync: [`synced`](Self::synced) moves on.
    ///
    /// # Errors
    ///
    /// As [`sync`](Self::sync).
    pub fn end_sync(&mut self, done: Synced) -> Result<(), Error> {
        match done.result {
            // `roll` has synced those before.
            Ok(()) if done.segment == self.current.number => {
                self.current.synced = self.current.synced.max(done.end);
            }
            Ok(()) => {}
            Err(error)
                if done.segment >= self.manifest.first && !is_planted(Fault::FailureForgotten) =>
            {
                self.bad = self.bad.max(Some(done.segment));
                return Err(Error::Failed(error));
            }
            Err(_) => {}
        }
        self.settle()
    }

    /// What is on disk counts if nothing in front of it may be lost.
    fn settle(&mut self) -> Result<(), Error> {
        if self.bad.is_some() {
            return Err(Error::Poisoned);
        }
        self.synced = self.synced.max(self.current.position(self.current.synced));
        Ok(())
    }

    /// Brings the segment to disk, begins the next one, and returns its number. A base that holds
    /// all frames up to here has the name `base_name` of that number.
    ///
    /// Frames may be appended to it at once. If the log is poisoned, they count when
    /// [`rebase`](Self::rebase) has been told of this number or of a later one.
    ///
    /// # Errors
    ///
    /// Then the log goes on with the old segment, unless its sync failed: that poisons it, and the
    /// next call begins a segment behind the hole.
    pub fn roll(&mut self) -> Result<u64, Error> {
        let is_bad = self.bad == Some(self.current.number);
        if !is_bad && !is_planted(Fault::NotFinished) {
            match self.sync() {
                // An earlier segment's failure is in that segment's own successor's header.
                Ok(()) | Err(Error::Poisoned) => {}
                Err(error) => return Err(error),
            }
        }
        let current = &self.current;
        let number = (current.number.checked_add(1))
            .ok_or_else(|| Error::Failed(io::Error::other("there is no greater number")))?;
        let header = Header {
            previous: current.id,
            length: if is_bad { current.synced } else { current.end },
            is_all: !is_bad || is_planted(Fault::HoleNotMarked),
            ..Header::first(&self.folder, number, &self.text)
        };
        let file = header.create(&self.folder).map_err(Error::of)?;
        self.current = Current::new(&header, file, self.written());
        Ok(number)
    }

    /// Removes the base of a segment that is not to be put in force.
    pub fn drop_base(&self, segment: u64) {
        if segment > self.manifest.first {
            // What stays is removed with the next base that is put in force.
            let _ = self.folder.remove(&base_name(segment));
        }
    }

    /// Puts the base of a segment in force, and removes what is in front of that segment. The
    /// caller has synced the base's file.
    ///
    /// # Errors
    ///
    /// Then the old base or the new one is in force, and nothing was removed. It may be tried
    /// again.
    pub fn rebase(&mut self, segment: u64) -> Result<(), Error> {
        if segment <= self.manifest.first || segment > self.current.number {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "no such segment is waiting");
            return Err(Error::Failed(error));
        }
        let base = base_name(segment);
        if !self.folder.list().map_err(Error::of)?.contains(&base) {
            let error = io::Error::new(io::ErrorKind::NotFound, format!("{base} is missing"));
            return Err(Error::Failed(error));
        }
        // Its name is on disk before something relies on it.
        self.folder.sync().map_err(Error::of)?;
        let manifest = Manifest {
            has_base: true,
            first: segment,
            last: self.current.number,
        };
        if is_planted(Fault::RemovedEarly) {
            let _ = sweep(&self.folder, segment, |base| base < segment);
        }
        manifest.store(&self.folder).map_err(Error::of)?;
        self.manifest = manifest;
        self.bad = self.bad.filter(|&bad| bad >= segment);
        // The base holds everything in front of the segment, whether it was on disk or not.
        let _ = self.settle();
        // It does not matter if something stays: the next call removes it.
        let _ = sweep(&self.folder, segment, |base| base < segment);
        Ok(())
    }
}

impl<F: File> Current<F> {
    fn new(header: &Header, file: F, start: u64) -> Self {
        Self {
            shared: Shared::new(file),
            number: header.number,
            id: header.id,
            start,
            end: HEADER,
            synced: HEADER,
            crc: header.crc(),
        }
    }

    fn position(&self, offset: u64) -> u64 {
        self.start + (offset - HEADER)
    }
}
