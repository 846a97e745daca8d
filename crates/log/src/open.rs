//! Opening a log: its frames are read, and then it is ready to be written.

use std::io;

use crate::chain::Chain;
use crate::error::OpenError;
use crate::folder::{File, Folder, write_all};
use crate::frame::{ALIGN, HEAD, Head, Id, Moment};
use crate::log::Log;
use crate::manifest::Manifest;
use crate::names::{MANIFEST, segment_name, sweep};
use crate::planted::{Fault, is_planted};
use crate::segment::{HEADER, Header, MAX_TEXT};
use crate::window::Window;

/// How much is written at once where bytes are written again.
const COPIED: u64 = 64 * 1024;

/// A log that is read.
///
/// 1. [`base`](Self::base) says which file to load first.
/// 2. [`next_frame`](Self::next_frame) gives the frames that follow, one after another.
/// 3. [`begin_writing`](Self::begin_writing) makes it a [`Log`].
///
/// Until the third step nothing is changed.
#[derive(Debug)]
pub struct Opened<D: Folder> {
    folder: D,
    /// `None` if whoever reads has it.
    lock: Option<D::Lock>,
    chain: Chain,
    /// The place in the chain of the segment that is read.
    at: usize,
    window: Option<Window<D::File>>,
    /// Where the next frame is.
    offset: u64,
    /// The CRC that the next frame says is in front of it.
    previous: u32,
    /// How much of the segment its frames say was synced.
    synced: u64,
    cut: u64,
    is_read: bool,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'o> {
    /// The number of its segment.
    pub segment: u64,
    /// Where it begins in the segment's file.
    pub offset: u64,
    /// What the caller wrote into the header of the segment.
    pub text: &'o [u8],
    /// What the caller wrote beside the payload.
    pub moment: Moment,
    /// The caller's bytes. There may be none.
    pub payload: &'o [u8],
}

impl<D: Folder> Log<D> {
    /// Takes the folder, and looks what is there. An empty folder is a new log.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. Nothing was changed then.
    pub fn open(folder: D) -> Result<Opened<D>, OpenError> {
        Opened::new(folder)
    }
}

impl<D: Folder> Opened<D> {
    /// Takes the folder, and looks at the manifest and the headers of all segments.
    pub(crate) fn new(folder: D) -> Result<Self, OpenError> {
        let lock = take(&folder)?;
        Self::read(folder, Some(lock))
    }

    /// The same for who has taken the folder.
    pub(crate) fn read(folder: D, lock: Option<D::Lock>) -> Result<Self, OpenError> {
        let chain = Chain::of(&folder)?;
        Ok(Self {
            is_read: chain.links.is_empty(),
            folder,
            lock,
            chain,
            at: 0,
            window: None,
            offset: 0,
            previous: 0,
            synced: 0,
            cut: 0,
        })
    }

    /// The folder.
    pub fn folder(&self) -> &D {
        &self.folder
    }

    /// The name of the base: the data in front of the first frame. Without one there was no data.
    pub fn base(&self) -> Option<String> {
        self.chain.manifest.as_ref()?.base()
    }

    /// True if there was no log.
    pub(crate) fn is_new(&self) -> bool {
        self.chain.manifest.is_none()
    }

    /// The bytes of a torn end, which a crash left: known when all frames have been read.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// The next frame. `None` behind the last one.
    ///
    /// It is read into memory as a whole, and checked.
    ///
    /// # Errors
    ///
    /// [`OpenError::Damaged`] if what is here was on disk and is no longer. The frames before it
    /// were right.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, OpenError> {
        while !self.is_read {
            self.enter()?;
            if let Some(head) = self.fit()? {
                return self.give(head).map(Some);
            }
            self.leave()?;
        }
        Ok(None)
    }

    /// Opens the segment at hand, if it is not open.
    fn enter(&mut self) -> Result<(), OpenError> {
        if let (None, Some(link)) = (&self.window, self.chain.links.get(self.at)) {
            let name = segment_name(link.header.number);
            let file = self.folder.open(&name).map_err(OpenError::io(&name))?;
            self.window = Some(Window::new(file).map_err(OpenError::io(&name))?);
            self.offset = HEADER;
            self.previous = link.header.crc();
            self.synced = HEADER;
        }
        Ok(())
    }

    /// The head of the next frame of the segment at hand, if there is a whole one.
    fn fit(&mut self) -> Result<Option<Head>, OpenError> {
        let (Some(window), Some(link)) = (&mut self.window, self.chain.links.get(self.at)) else {
            return Ok(None);
        };
        let end = link.end.unwrap_or(window.len()).min(window.len());
        let head = fit_at(window, link.header.id, self.offset, end)
            .map_err(OpenError::io(&segment_name(link.header.number)))?;
        let is_chained = |head: &Head| head.previous == self.previous;
        Ok(head.filter(|head| is_planted(Fault::NoChain) || is_chained(head)))
    }

    /// Moves on behind a frame, and gives it out.
    fn give(&mut self, head: Head) -> Result<Frame<'_>, OpenError> {
        let (Some(window), Some(link)) = (&mut self.window, self.chain.links.get(self.at)) else {
            return Err(OpenError::io("a segment")(io::ErrorKind::NotFound.into()));
        };
        let offset = self.offset;
        self.offset += head.frame_len().unwrap_or(0);
        self.previous = head.crc;
        self.synced = self.synced.max(head.synced);
        let payload = window.get(offset + HEAD as u64, head.length);
        Ok(Frame {
            segment: link.header.number,
            offset,
            text: &link.header.text,
            moment: head.moment,
            payload: payload.map_err(OpenError::io(&segment_name(link.header.number)))?,
        })
    }

    /// Ends a segment in which no frame comes any more, if nothing is missing in it.
    fn leave(&mut self) -> Result<(), OpenError> {
        let (Some(window), Some(link)) = (&mut self.window, self.chain.links.get(self.at)) else {
            return Ok(());
        };
        let name = segment_name(link.header.number);
        let damaged = |what| Err(OpenError::damaged(name.clone(), self.offset, what));
        match link.end {
            Some(end) if self.offset == end => {
                self.window = None;
                self.at += 1;
            }
            Some(_) => {
                return damaged("no frame begins here, and the next segment says that more follow");
            }
            None if self.offset < self.chain.floor => {
                return damaged("no frame begins here, and the next segment says that more follow");
            }
            None => {
                if is_said_synced(window, link.header.id, self.offset)
                    .map_err(OpenError::io(&name))?
                {
                    return damaged(
                        "no frame begins here, and a later one says that it was on disk",
                    );
                }
                self.cut = window.len().saturating_sub(self.offset);
                self.is_read = true;
            }
        }
        Ok(())
    }

    /// Reads what is left to read, cuts the torn end, and begins a new segment with these bytes of
    /// the caller's in its header.
    ///
    /// What has been read is on disk when this returns. What no manifest names is removed.
    ///
    /// # Errors
    ///
    /// Those of [`next_frame`](Self::next_frame), and whatever the system refuses. Then the log may
    /// be opened again.
    pub fn begin_writing(mut self, text: &[u8]) -> Result<Log<D>, OpenError> {
        if text.len() > MAX_TEXT {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "the text is too long");
            return Err(OpenError::io("the header")(error));
        }
        while self.next_frame()?.is_some() {}
        self.secure()?;
        let folder = &self.folder;
        if let Some(manifest) = &self.chain.manifest
            && !self.chain.ignored.is_empty()
        {
            // It must not name what is about to be removed.
            let last = (self.chain.links.last()).map_or(manifest.first, |link| link.header.number);
            let manifest = Manifest {
                last,
                ..manifest.clone()
            };
            manifest.store(folder).map_err(OpenError::io(MANIFEST))?;
        }
        let failed = OpenError::io("the folder");
        // What is gone for the system, because a process before this one removed it, is gone for
        // the disk first. The last goes first: so no crash leaves a gap.
        let removed = folder.sync().and_then(|()| {
            (self.chain.ignored.iter().rev()).try_for_each(|&number| {
                folder.remove(&segment_name(number))?;
                folder.sync()
            })
        });
        removed.map_err(failed)?;
        let Some((number, previous)) = self.chain.next() else {
            let error = io::Error::other("there is no greater number");
            return Err(OpenError::io("the next segment")(error));
        };
        let header = Header {
            previous,
            length: self.offset,
            ..Header::first(folder, number, text)
        };
        let file = (header.create(folder)).map_err(OpenError::io(&segment_name(number)))?;
        let (has_base, first) = match &self.chain.manifest {
            Some(manifest) => (manifest.has_base, manifest.first),
            None => (false, number),
        };
        let manifest = Manifest {
            has_base,
            first,
            last: number,
        };
        // Also if it is there: the process that wrote it may have ended before it was on disk.
        (manifest.store(folder)).map_err(OpenError::io(MANIFEST))?;
        (sweep(folder, manifest.first, |base| {
            Some(base) != manifest.base_number()
        }))
        .map_err(OpenError::io("the folder"))?;
        Ok(Log::new(self.folder, self.lock, manifest, header, file))
    }

    /// Brings what was read of the last segment to disk, and cuts the rest.
    ///
    /// The process before this one may have been killed after a sync that failed. Then the system
    /// still shows what it could not write, and believes that nothing is left to be written.
    /// So everything that is not known to be on disk is written again.
    fn secure(&mut self) -> Result<(), OpenError> {
        let (Some(window), Some(link)) = (&mut self.window, self.chain.links.last()) else {
            return Ok(());
        };
        let mut from = self.synced.max(self.chain.floor).min(self.offset);
        let mut secured = || {
            if window.file().len()? > self.offset {
                window.file().truncate(self.offset)?;
            }
            while from < self.offset && !is_planted(Fault::NotRewritten) {
                let length = COPIED.min(self.offset - from);
                let bytes = window.get(from, length)?.to_owned();
                write_all(window.file(), from, &bytes)?;
                from += length;
            }
            window.file().sync_data()
        };
        secured().map_err(OpenError::io(&segment_name(link.header.number)))
    }
}

/// Takes a folder for this process.
pub(crate) fn take<D: Folder>(folder: &D) -> Result<D::Lock, OpenError> {
    folder.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::Locked,
        _ => OpenError::io("lock")(error),
    })
}

/// The head of the frame at a place, if a whole one is there and ends before `end`.
fn fit_at<F: File>(
    window: &mut Window<F>,
    id: Id,
    offset: u64,
    end: u64,
) -> io::Result<Option<Head>> {
    let Some(left) = end.checked_sub(offset).filter(|&left| left >= HEAD as u64) else {
        return Ok(None);
    };
    let Some(head) = Head::read(id, window.get(offset, HEAD as u64)?) else {
        return Ok(None);
    };
    let Some(length) = head.frame_len().filter(|&length| length <= left) else {
        return Ok(None);
    };
    let fits = head.fits(id, offset, window.get(offset, length)?);
    Ok(fits.then_some(head))
}

/// Whether a frame behind a place says that the place was on disk.
fn is_said_synced<F: File>(window: &mut Window<F>, id: Id, place: u64) -> io::Result<bool> {
    let end = window.len();
    let mut offset = place;
    while offset < end {
        let length = COPIED.min(end - offset);
        let marker = id.marker();
        let bytes = window.get(offset, length)?;
        let mut words = bytes.chunks(ALIGN as usize);
        match words.position(|word| word == marker) {
            None => offset += length.next_multiple_of(ALIGN),
            Some(at) => {
                offset += at as u64 * ALIGN;
                if let Some(head) = fit_at(window, id, offset, end)?
                    && head.synced > place
                {
                    return Ok(true);
                }
                offset += ALIGN;
            }
        }
    }
    Ok(false)
}
