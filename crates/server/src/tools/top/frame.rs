//! The whole screen: two lines of head, the panels, and the keys below.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::board::Board;
use super::keys::{KEYS, Tab, View};
use super::panels::{self, Look};
use super::text::{cut, plain, time};

/// Lines that are not the panels': two above, one below.
const AROUND: usize = 3;

/// A server that has not answered for this long, beyond the interval, is said not to answer.
const SILENCE: Duration = Duration::from_secs(2);

/// Rows of prefixes and of the slow log where room does not matter.
const ROWS: usize = 20;

/// What stands in the head, beside what is known of the server.
#[derive(Debug)]
pub(super) struct Head {
    /// The server's address.
    pub(super) place: String,
    pub(super) interval: Duration,
    pub(super) colours: bool,
}

/// Draws the screen. Returns the lines that are below it.
pub(super) fn draw(
    board: &Board,
    view: &View,
    head: &Head,
    now: Duration,
    to: &mut Buffer,
) -> usize {
    let Rect { width, height, .. } = to.area;
    let look = Look {
        columns: width.into(),
        colours: head.colours,
    };
    let room = usize::from(height).saturating_sub(AROUND);
    let body = body(board, view, look, room);
    let below = body.len().saturating_sub(room);
    let mut lines = self::head(board, view, head, now, look);
    lines.extend(body.into_iter().skip(view.scroll.min(below)).take(room));
    lines.resize(usize::from(height).saturating_sub(1), Line::default());
    lines.push(foot(view, below, look));
    for (y, line) in (0..height).zip(&lines) {
        to.set_line(0, y, line, width);
    }
    below
}

/// Both tabs as text, as long as they are.
pub(super) fn text(board: &Board, head: &Head, now: Duration, columns: u16) -> String {
    let look = Look {
        columns: columns.into(),
        colours: false,
    };
    let view = View::default();
    let mut lines = self::head(board, &view, head, now, look);
    lines.extend(expiry(board, look, ROWS, ROWS));
    lines.push(Line::default());
    lines.extend(panels::commands(board, look));
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let mut cells = Buffer::empty(Rect::new(0, 0, columns, height));
    for (y, line) in (0..height).zip(&lines) {
        cells.set_line(0, y, line, columns);
    }
    let row = |row: &[ratatui::buffer::Cell]| {
        let row: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        format!("{}\n", row.trim_end())
    };
    cells
        .content
        .chunks(usize::from(columns).max(1))
        .map(row)
        .collect()
}

fn head(board: &Board, view: &View, head: &Head, now: Duration, look: Look) -> Vec<Line<'static>> {
    let about = board.newest().map_or(String::new(), |info| {
        let name = match info.text("tidewheel_version") {
            Some(version) => format!("tidewheel {version}"),
            None => format!("redis {}", info.text("redis_version").unwrap_or("?")),
        };
        let up_s = info.number("uptime_in_seconds").unwrap_or(0.0);
        let up = Duration::try_from_secs_f64(up_s).unwrap_or_default();
        format!(", {}, up {}", plain(&name), time(up))
    });
    let first = look.title(&format!("{}{about}", plain(&head.place)));
    vec![first, state(board, view, head, now, look)]
}

/// How fresh the numbers are, or why they are old.
fn state(board: &Board, view: &View, head: &Head, now: Duration, look: Look) -> Line<'static> {
    let silent = board.answered.map(|at| now.saturating_sub(at));
    let is_silent = silent.is_some_and(|silent| silent > head.interval + SILENCE);
    let line = |text: String| cut(&text, look.columns);
    if view.paused {
        return Line::styled(line("paused: p goes on".to_owned()), look.alarm());
    }
    if let (Some(why), None) = (&board.trouble, silent) {
        return Line::styled(line(format!("no answer: {why}")), look.alarm());
    }
    if board.trouble.is_some() || is_silent {
        let why = board
            .trouble
            .as_ref()
            .map_or(String::new(), |why| format!(": {why}"));
        let silent = silent.unwrap_or_default().as_secs();
        return Line::styled(line(format!("no answer for {silent} s{why}")), look.alarm());
    }
    let costly = [
        ("forecast", board.forecast_every),
        ("prefixes", board.prefixes_every),
    ];
    let rarer: Vec<String> = (costly.iter())
        .filter(|(_, every)| *every > head.interval)
        .map(|(name, every)| format!("{name} {}", time(*every)))
        .collect();
    let mut state = format!("every {}", time(head.interval));
    if !rarer.is_empty() {
        state.push_str(&format!("; to cost little: {}", rarer.join(", ")));
    }
    Line::raw(line(state))
}

fn foot(view: &View, below: usize, look: Look) -> Line<'static> {
    let other = match view.tab {
        Tab::Expiry => "commands",
        Tab::Commands => "expiry",
    };
    let more = match below > view.scroll {
        true => "Down more  ",
        false => "",
    };
    let text = format!("{more}q leave  Tab {other}  p pause  ? help");
    Line::styled(cut(&text, look.columns), look.quiet())
}

fn body(board: &Board, view: &View, look: Look, room: usize) -> Vec<Line<'static>> {
    if view.help {
        return help(look);
    }
    match view.tab {
        Tab::Commands => panels::commands(board, look),
        Tab::Expiry => {
            // The tables share what is left, and begin with a line of names each.
            let fixed = expiry(board, look, 0, 0).len();
            let left = room.saturating_sub(fixed);
            let prefixes = left.div_ceil(2).clamp(3, ROWS);
            expiry(
                board,
                look,
                prefixes,
                left.saturating_sub(prefixes).clamp(2, ROWS),
            )
        }
    }
}

fn expiry(board: &Board, look: Look, prefixes: usize, slow: usize) -> Vec<Line<'static>> {
    let mut lines = panels::numbers(board, look);
    lines.extend(panels::forecast(board, look));
    lines.extend(panels::prefixes(board, look, prefixes));
    lines.extend(panels::slow(board, look, slow));
    lines
}

fn help(look: Look) -> Vec<Line<'static>> {
    let mut lines = vec![look.title("Keys")];
    let key = |(key, what): (&str, &str)| Line::raw(cut(&format!("{key:<12}{what}"), look.columns));
    lines.extend(KEYS.map(key));
    lines.push(look.title("Numbers"));
    let numbers = [
        "late: from a deadline to the removal, since the start",
        "behind: keys are due and not removed yet",
        "~ bytes: keys times the mean size of a key",
        "expired: at their deadline; evicted: for want of memory",
        "– means that there is no number yet",
    ];
    lines.extend(numbers.map(|text| Line::raw(cut(text, look.columns))));
    lines
}
