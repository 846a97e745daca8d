//! A line of text for each record of a log.
//!
//! Four columns, with tabs between them: time, database, `+` if the next record is one with this
//! one (of a transaction or a script) and `-` if not, and the command.

use std::io::{BufWriter, Write};

use tidewheel_keyspace::Record;
use tidewheel_log::{LogReader, RealFolder};

use super::super::{Outcome, Trouble, text};

pub(super) fn print(log: &mut LogReader<RealFolder>, whole: bool, out: &mut dyn Write) -> Outcome {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    // What was found before an error is printed, too.
    let printed = print_all(log, whole, &mut out);
    out.flush().map_err(Trouble::Output)?;
    printed
}

fn print_all(log: &mut LogReader<RealFolder>, whole: bool, out: &mut dyn Write) -> Outcome {
    while let Some(frame) = log.next_frame()? {
        super::each_record(&frame, &mut |record| {
            let line = line(record, whole);
            out.write_all(line.as_bytes()).map_err(Trouble::Output)
        })?;
    }
    Ok(())
}

fn line(record: &Record<'_>, whole: bool) -> String {
    let time = text::time(record.time().wall_ms());
    let more = if record.ends_group() { '-' } else { '+' };
    let mut line = format!("{time}\t{}\t{more}\t", record.db());
    for (i, word) in record.words().iter().enumerate() {
        if i == 0 {
            line.extend(word.escape_ascii().map(char::from));
        } else {
            line.push(' ');
            line.push_str(&text::quoted(word, whole));
        }
    }
    line.push('\n');
    line
}
