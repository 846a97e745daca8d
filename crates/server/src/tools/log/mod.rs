//! A log: printed as commands or as lines, and cut where it is damaged.
//!
//! | file | idea |
//! |---|---|
//! | `lines.rs` | a line for each record |
//! | `stock/` | commands, from which a stock server makes the same data |
//! | `repair.rs` | cuts a damaged log, and says what was cut |

mod lines;
mod repair;
mod stock;

use std::io::{self, Write};
use std::path::Path;

use tidewheel_keyspace::Record;
use tidewheel_keyspace::RecordReader;
use tidewheel_log::{Frame, LogReader, RealFolder};

pub(super) use self::repair::run as repair;
use super::{Outcome, Trouble};
use crate::config::LogForm;
use crate::persistence::log::are_known;

/// Prints a log. A server may be writing it: nothing is locked, and nothing is changed.
pub(super) fn print(folder: &Path, form: LogForm, out: &mut dyn Write) -> Outcome {
    let mut log = LogReader::new(RealFolder::read_only(folder))?;
    match form {
        LogForm::Lines { whole } => lines::print(&mut log, whole, out)?,
        LogForm::Commands { field_deadlines } => {
            stock::print(folder, &mut log, field_deadlines, out)?;
        }
    }
    if log.cut() > 0 {
        say(&format!(
            "the last {} bytes are no whole frame: a crash has torn it, or a server is writing it",
            log.cut()
        ));
    }
    Ok(())
}

/// Says something on standard error. Nobody may read that.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "tidewheel: {text}");
}

/// Visits the records of a frame.
fn each_record(frame: &Frame<'_>, visit: &mut dyn FnMut(&Record<'_>) -> Outcome) -> Outcome {
    let at = |why: String| Trouble::Frame {
        segment: frame.segment,
        offset: frame.offset,
        why,
    };
    if !are_known(frame.text) {
        return Err(at("its records are another version's".to_owned()));
    }
    for record in RecordReader::new(frame.payload) {
        let record = record.map_err(|why| at(why.to_string()))?;
        visit(&record).map_err(|trouble| match trouble {
            Trouble::Again { .. } => at(trouble.to_string()),
            other => other,
        })?;
    }
    Ok(())
}
