//! Writes commands, with the SELECT, MULTI and EXEC that they need.

use std::io::{self, BufWriter, Write};

use super::super::super::{Outcome, Trouble};

/// Commands in a row.
pub(super) struct Commands<'o> {
    out: BufWriter<&'o mut dyn Write>,
    /// The database that is selected, once one is.
    db: Option<u32>,
    group: Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    None,
    /// MULTI is written in front of the next command.
    Begins,
    Open,
}

impl<'o> Commands<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self {
            out: BufWriter::with_capacity(64 << 10, out),
            db: None,
            group: Group::None,
        }
    }

    /// Writes a command that runs in a database.
    pub(super) fn write(&mut self, db: u32, words: &[&[u8]]) -> Outcome {
        self.try_write(db, words).map_err(Trouble::Output)
    }

    fn try_write(&mut self, db: u32, words: &[&[u8]]) -> io::Result<()> {
        if self.db != Some(db) {
            self.db = Some(db);
            self.put(&[b"SELECT", db.to_string().as_bytes()])?;
        }
        if self.group == Group::Begins {
            self.group = Group::Open;
            self.put(&[b"MULTI"])?;
        }
        self.put(words)
    }

    /// What follows is one.
    pub(super) fn begin_group(&mut self) {
        self.group = Group::Begins;
    }

    /// What was one ends.
    pub(super) fn end_group(&mut self) -> Outcome {
        match std::mem::replace(&mut self.group, Group::None) {
            Group::Open => self.put(&[b"EXEC"]).map_err(Trouble::Output),
            _ => Ok(()),
        }
    }

    pub(super) fn flush(&mut self) -> Outcome {
        self.out.flush().map_err(Trouble::Output)
    }

    fn put(&mut self, words: &[&[u8]]) -> io::Result<()> {
        write!(self.out, "*{}\r\n", words.len())?;
        for word in words {
            write!(self.out, "${}\r\n", word.len())?;
            self.out.write_all(word)?;
            self.out.write_all(b"\r\n")?;
        }
        Ok(())
    }
}
