//! Shows the experiment's progress in one line of a terminal.

use std::fmt::Display;
use std::io::{IsTerminal, stderr};

/// Writes over what was said before. Off a terminal nothing is said.
pub(crate) fn say(what: impl Display) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}

pub(crate) fn clear() {
    say("");
}
