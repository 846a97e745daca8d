//! Cuts a damaged log at the first damage, and says what was cut.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

use tidewheel_log::{LogReader, OpenError, RealFolder};

use super::super::{Outcome, Trouble};

/// A question is answered in a line of so many bytes at most.
const ANSWER_MAX: u64 = 64;

pub(in super::super) fn run(folder: &Path, yes: bool, out: &mut dyn Write) -> Outcome {
    let Err(damage) = look(folder) else {
        return line(out, "nothing is damaged, and nothing was cut");
    };
    if !can_be_cut(&damage) {
        return Err(damage.into());
    }
    line(out, &damage.to_string())?;
    if !yes {
        ask(out)?;
    }
    let cuts = tidewheel_log::repair(&RealFolder::new(folder).map_err(Trouble::Open)?)?;
    for cut in &cuts {
        let (file, at, bytes, kept_in) = (&cut.file, cut.offset, cut.bytes, &cut.kept_in);
        let of = match at {
            0 => format!("all {bytes} bytes of {file}"),
            _ => format!("{bytes} bytes of {file}, from byte {at} on,"),
        };
        line(out, &format!("{of} are in {kept_in} now"))?;
    }
    line(out, "the log can be opened")
}

/// Reads the whole log.
fn look(folder: &Path) -> Result<(), OpenError> {
    let mut log = LogReader::new(RealFolder::read_only(folder))?;
    while log.next_frame()?.is_some() {}
    Ok(())
}

/// Only a segment is cut. What else is damaged cannot be made up for.
fn can_be_cut(damage: &OpenError) -> bool {
    let file = match damage {
        OpenError::Damaged(damage) => &damage.file,
        OpenError::Missing { file, .. } => file,
        _ => return false,
    };
    file.starts_with("segment-")
}

fn ask(out: &mut dyn Write) -> Outcome {
    let input = io::stdin();
    if !input.is_terminal() {
        return Err(Trouble::Refused(
            "nothing was cut, since nobody can be asked here: say --yes",
        ));
    }
    let question = "Cut the log there? What clients were told was kept behind that place is not \
                    loaded any more. It stays in files beside the log. [y/N] ";
    (out.write_all(question.as_bytes())
        .and_then(|()| out.flush()))
    .map_err(Trouble::Output)?;
    let mut answer = String::new();
    let mut input = io::Read::take(input.lock(), ANSWER_MAX);
    // What is no text is no yes.
    let _ = input.read_line(&mut answer);
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Trouble::Refused("nothing was cut")),
    }
}

fn line(out: &mut dyn Write, text: &str) -> Outcome {
    writeln!(out, "{text}").map_err(Trouble::Output)
}
