//! MONITOR: clients that are shown every command, and the line that shows it.
//!
//! A line is delivered as a message is: through the inbox of each loop that owns a monitor, into
//! the monitor's output, with the limits of subscribers. One bit tells the loops that there is a
//! monitor. It is in a byte that they read before each command anyway.

use std::fmt::Write as _;
use std::sync::Arc;

use tidewheel_keyspace::order::{Rank, Ranked};
use tidewheel_keyspace::{Gate, Time};

use crate::clients::checks;
use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::Target;
use crate::pubsub::audience::Audience;

/// Bytes of arguments that one line shows at most; what is more is counted.
const SHOWN_MAX: usize = 4 << 20;

/// The clients that are monitors.
#[derive(Debug)]
pub(crate) struct Monitors {
    loops: Arc<[LoopHandle]>,
    gate: Arc<Gate>,
    audience: Ranked<Audience>,
}

impl Monitors {
    pub(crate) fn new(loops: Arc<[LoopHandle]>, gate: Arc<Gate>) -> Self {
        let audience = Ranked::new(Rank::Hub, Audience::default());
        Self {
            loops,
            gate,
            audience,
        }
    }

    /// Commands that come after this call are shown to a client.
    pub(crate) fn add(&self, owner: usize, target: Target) {
        let mut audience = self.audience.lock();
        audience.add(owner, target);
        self.gate.set(checks::MONITORED);
    }

    /// Stops showing commands to a client.
    pub(crate) fn remove(&self, owner: usize, target: Target) {
        let mut audience = self.audience.lock();
        audience.remove(owner, target);
        if audience.is_empty() {
            self.gate.clear(checks::MONITORED);
        }
    }

    /// Shows a line to all of them.
    pub(crate) fn show(&self, line: &[u8]) {
        self.audience.lock().deliver(&self.loops, line);
    }
}

/// Returns the line that shows a command: time, database, client, and the arguments in quotes.
pub(crate) fn line<'a>(
    time: Time,
    db: u32,
    client: &impl std::fmt::Display,
    args: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let wall_ms = time.wall_ms().max(0);
    let micros = wall_ms % 1_000 * 1_000 + i64::from(time.micros);
    let mut head = String::new();
    let written = write!(head, "+{}.{micros:06} [{db} {client}]", wall_ms / 1_000);
    debug_assert!(written.is_ok(), "a String takes everything");
    let mut line = head.into_bytes();
    let (mut room, mut left) = (SHOWN_MAX, args.len());
    for arg in args {
        if room == 0 {
            line.extend_from_slice(format!(" \"... ({left} more arguments)\"").as_bytes());
            break;
        }
        let shown = &arg[..arg.len().min(room)];
        (room, left) = (room - shown.len(), left - 1);
        line.push(b' ');
        quote(shown, arg.len() - shown.len(), &mut line);
    }
    line.extend_from_slice(b"\r\n");
    line
}

/// Appends bytes in quotes, so that the line stays one line of printable ASCII.
fn quote(bytes: &[u8], more: usize, line: &mut Vec<u8>) {
    line.push(b'"');
    for byte in bytes {
        match byte {
            b'\\' | b'"' => line.extend([b'\\', *byte]),
            b'\n' => line.extend(b"\\n"),
            b'\r' => line.extend(b"\\r"),
            b'\t' => line.extend(b"\\t"),
            7 => line.extend(b"\\a"),
            8 => line.extend(b"\\b"),
            b' '..=b'~' => line.push(*byte),
            _ => line.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
    if more > 0 {
        line.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Time = Time {
        tick: 1_000_005,
        micros: 42,
        wall_offset_ms: 0,
    };

    #[test]
    fn a_line_is_printable_whatever_the_arguments_are() {
        let words: [&[u8]; 3] = [b"SET", b"a\"\\\n\r\t\x07\x08 ~", b"\0\x7f\xff"];
        let line = line(TIME, 3, &"1.2.3.4:5", words.into_iter());
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "+1000.005042 [3 1.2.3.4:5] \"SET\" \"a\\\"\\\\\\n\\r\\t\\a\\b ~\" \"\\x00\\x7f\\xff\"\r\n"
        );
    }

    #[test]
    fn a_line_is_bounded() {
        let long = vec![b'x'; SHOWN_MAX + 2];
        let words: [&[u8]; 3] = [b"SET", &long, b"y"];
        let line = line(TIME, 0, &"c", words.into_iter());
        assert!(line.len() < SHOWN_MAX + 200);
        assert!(line.ends_with(b"x... (5 more bytes)\" \"... (1 more arguments)\"\r\n"));
    }
}
