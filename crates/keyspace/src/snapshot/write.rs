//! The thread that writes: it takes copies from the channel, and locks no shard.

use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use tidewheel_collections::CopiedMembers;

use super::channel::{Item, Shared, SnapshotCourse, SnapshotFailure};
use super::output::{Opened, Output, Saved, Setting};
use crate::value::Object;

/// Members that are walked over at once.
const MEMBERS: usize = 1 << 10;

/// A snapshot that is being taken. Dropping it ends it without a file.
#[derive(Debug)]
pub struct Snapshot {
    shared: Arc<Shared>,
    from: Receiver<Item>,
    setting: Setting,
    is_written: bool,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.is_written {
            self.shared.fail(SnapshotFailure::NotWritten);
        }
    }
}

impl Snapshot {
    pub(super) fn new(shared: Arc<Shared>, from: Receiver<Item>, setting: Setting) -> Self {
        Self {
            shared,
            from,
            setting,
            is_written: false,
        }
    }

    /// How far it has come.
    #[must_use]
    pub fn course(&self) -> SnapshotCourse {
        SnapshotCourse(Arc::clone(&self.shared))
    }

    /// Writes the file while others [walk](crate::Keyspace::walk_snapshot). `fields` say who writes
    /// it, and when; `functions` are the codes of libraries. The file is not flushed.
    ///
    /// # Errors
    ///
    /// Those of `to`; and if the snapshot has [failed](SnapshotCourse::failure).
    pub fn write<'f>(
        mut self,
        fields: &[(&str, &str)],
        functions: impl Iterator<Item = &'f [u8]>,
        to: &mut dyn Write,
    ) -> io::Result<Saved> {
        let mut out = Output::new(to, &self.setting);
        for (name, value) in fields {
            out.field(name.as_bytes(), value.as_bytes());
        }
        functions.for_each(|code| out.function(code));
        let mut writing = Writing {
            out,
            shown: None,
            aside: Vec::new(),
        };
        loop {
            let Ok(item) = self.from.recv() else {
                return Err(io::Error::other("nobody walks"));
            };
            self.shared.taken(&item);
            match item {
                Item::Done => break,
                Item::Failed => return Err(self.failure()),
                item => writing.take(item)?,
            }
        }
        if self.shared.failure().is_some() {
            return Err(self.failure());
        }
        let saved = writing.out.end();
        self.is_written = saved.is_ok();
        saved
    }

    fn failure(&self) -> io::Error {
        let why = self.shared.failure();
        let why = why.unwrap_or(SnapshotFailure::Cancelled);
        io::Error::other(why.to_string())
    }
}

struct Writing<'w> {
    out: Output<'w>,
    /// The collection whose members are being written.
    shown: Option<Opened>,
    /// What has come meanwhile.
    aside: Vec<Item>,
}

impl Writing<'_> {
    fn take(&mut self, item: Item) -> io::Result<()> {
        if self.shown.is_some() && !item.goes_on() {
            self.aside.push(item);
            return Ok(());
        }
        match item {
            Item::Entries(db, batch) => {
                self.out.select(db);
                batch.for_each(|head, key, value| self.out.entry(head, key, value))?;
            }
            Item::Begin(opened) => self.begin(opened),
            Item::Members(members) => self.members(&members)?,
            Item::End => self.end()?,
            Item::Left {
                opened,
                has_begun,
                rest,
            } => {
                if !has_begun {
                    self.begin(opened);
                }
                self.rest(rest)?;
                self.end()?;
            }
            Item::Emptied(database) => database.show(&mut |item| self.take(item))?,
            Item::Done | Item::Failed => {}
        }
        Ok(())
    }

    fn begin(&mut self, opened: Opened) {
        self.out.select(opened.db);
        self.out.begin_collection(&opened);
        self.shown = Some(opened);
    }

    fn members(&mut self, members: &CopiedMembers) -> io::Result<()> {
        let Some(opened) = &mut self.shown else {
            return Err(io::Error::other("members of no collection"));
        };
        opened.len = opened
            .len
            .checked_sub(members.count())
            .ok_or_else(miscounted)?;
        self.out.members(opened, members)
    }

    fn rest(&mut self, mut object: Object) -> io::Result<()> {
        let Some(walked) = object.walked() else {
            return Ok(());
        };
        let kept = walked.take_kept();
        self.members(&kept)?;
        loop {
            let mut members = CopiedMembers::default();
            let more = walked.walk_on(MEMBERS, &mut members);
            self.members(&members)?;
            if !more {
                return Ok(());
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if self.shown.take().is_some_and(|opened| opened.len > 0) {
            return Err(miscounted());
        }
        self.out.end_entry()?;
        for item in mem::take(&mut self.aside) {
            self.take(item)?;
        }
        Ok(())
    }
}

/// A flaw of ours: better no file than a wrong one.
fn miscounted() -> io::Error {
    io::Error::other("a collection has another number of members than at the beginning")
}

impl Item {
    /// True if it goes on with the collection whose members are being written.
    fn goes_on(&self) -> bool {
        match self {
            Self::Members(_) | Self::End => true,
            Self::Left { has_begun, .. } => *has_begun,
            Self::Emptied(database) => database.shows_members(),
            Self::Entries(..) | Self::Begin(_) | Self::Done | Self::Failed => false,
        }
    }
}
