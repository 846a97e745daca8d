//! `tidewheel top`: the page of time as text in a terminal.
//!
//! ```text
//! a thread asks ──News──► the board ──► a frame ──► the terminal
//!       ▲                                              │
//!       └──────────────── wishes ◄──── keys ◄──────────┘
//! ```
//!
//! It is a client as any other: it only reads, over a connection of its own, as its user may. A
//! part that this user may not ask for says which right is missing.
//!
//! | file | idea |
//! |---|---|
//! | `live.rs` | the terminal: frames, keys, and that it is as before at the end |
//! | `frame.rs`, `panels.rs` | what is known becomes lines; no input or output |
//! | `keys.rs` | what is looked at, and the keys that change it |
//! | `board.rs` | what is known |
//! | `round.rs` | when what is asked |
//! | `ask.rs` | the connection |
//! | `questions.rs` | what is asked, and by which right |
//! | `reading.rs` | replies become numbers |
//! | `text.rs` | numbers and names in columns; nothing of a server's is an escape sequence |

mod ask;
mod board;
mod frame;
mod keys;
mod live;
mod panels;
mod questions;
mod reading;
mod round;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, IsTerminal as _, Write as _};

use self::ask::{Asker, NoEntry};
use self::board::Board;
use self::frame::Head;
use self::round::{Rounds, Stop, Wish, now};
use crate::config::TopCall;

/// The exit code after an error.
const FAILED: u8 = 1;

/// The columns of a frame that goes to no terminal.
const COLUMNS: u16 = 80;

/// Watches a server. Returns the program's exit code.
pub(super) fn run(call: &TopCall) -> u8 {
    let ran = password(call).and_then(|password| {
        let password = password.as_deref();
        match call.once || !io::stdout().is_terminal() {
            true => once(call, password),
            false => live::watch(call, password),
        }
    });
    match ran {
        Ok(()) => 0,
        Err(why) => {
            // Nobody may read that either.
            let _ = writeln!(io::stderr(), "tidewheel: {}: {why}", place(call));
            FAILED
        }
    }
}

/// Prints one frame. It asks twice, an interval apart: what happens in a second takes two looks.
fn once(call: &TopCall, password: Option<&str>) -> Result<(), String> {
    let asker = Asker::connect(call, password);
    let mut asker = asker.map_err(|(NoEntry::Lost(why) | NoEntry::Denied(why))| why)?;
    let (mut board, mut rounds) = (Board::default(), Rounds::new(call.interval));
    let wish = Wish {
        paused: false,
        commands: true,
    };
    for look in 0..2 {
        if look > 0 {
            std::thread::sleep(call.interval);
        }
        let asked = rounds.ask(&mut asker, wish, |news| {
            board.take(news, now());
            Ok(())
        });
        if let Err(Stop::Lost(why)) = asked {
            return Err(why);
        }
    }
    let text = frame::text(&board, &head(call), now(), COLUMNS);
    match io::stdout().write_all(text.as_bytes()) {
        // Who reads has read enough.
        Err(why) if why.kind() != io::ErrorKind::BrokenPipe => Err(why.to_string()),
        _ => Ok(()),
    }
}

/// The password of the environment, or one that is typed.
fn password(call: &TopCall) -> Result<Option<String>, String> {
    if call.asks_password {
        return live::password().map(Some).map_err(|why| why.to_string());
    }
    let names = ["TIDEWHEEL_PASSWORD", "REDISCLI_AUTH"];
    Ok(names.iter().find_map(|name| std::env::var(name).ok()))
}

fn head(call: &TopCall) -> Head {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Head {
        place: place(call),
        interval: call.interval,
        colours,
    }
}

/// Which server it is, and which database of it.
fn place(call: &TopCall) -> String {
    let TopCall { host, port, .. } = call;
    let place = match &call.socket {
        Some(path) => path.display().to_string(),
        None if host.contains(':') => format!("[{host}]:{port}"),
        None => format!("{host}:{port}"),
    };
    match call.db {
        0 => place,
        db => format!("{place} db {db}"),
    }
}
