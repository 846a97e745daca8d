//! The lines of each panel. A panel whose question was refused has a line that says why.

use std::time::Duration;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::board::Board;
use super::reading::{Answer, Info, WINDOWS};
use super::text::{bytes, count, cut, percent, plain, time};

/// The columns of a number with its name; longer ones take several.
const CELL: usize = 20;

/// Parts of a column by which a bar grows.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// How things look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) columns: usize,
    pub(super) colours: bool,
}

impl Look {
    pub(super) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn alarm(self) -> Style {
        match self.colours {
            true => self.strong().fg(Color::Red),
            false => self.strong().add_modifier(Modifier::REVERSED),
        }
    }

    fn bar(self) -> Style {
        match self.colours {
            true => Style::new().fg(Color::Cyan),
            false => Style::new(),
        }
    }

    /// A panel's title.
    pub(super) fn title(self, text: &str) -> Line<'static> {
        let text = cut(text, self.columns);
        let rest = self.columns.saturating_sub(text.chars().count() + 1);
        Line::from(vec![
            Span::styled(text, self.strong()),
            Span::styled(format!(" {}", "─".repeat(rest)), self.quiet()),
        ])
    }

    /// Why a panel has nothing else.
    fn refusal(self, why: &str) -> Line<'static> {
        Line::styled(cut(why, self.columns), self.alarm())
    }

    fn lines<T>(
        self,
        answer: Option<&Answer<T>>,
        draw: impl FnOnce(&T) -> Vec<Line<'static>>,
    ) -> Vec<Line<'static>> {
        match answer {
            None => vec![Line::styled("not asked yet", self.quiet())],
            Some(Err(why)) => vec![self.refusal(why)],
            Some(Ok(what)) => draw(what),
        }
    }

    /// Columns of text: widths, and texts that go to the left (`false`) or to the right.
    fn row(self, cells: &[(usize, bool, String)]) -> String {
        let mut row = String::new();
        for (width, right, text) in cells {
            let text = cut(text, *width);
            match right {
                true => row.push_str(&format!("{text:>width$}")),
                false => row.push_str(&format!("{text:<width$}")),
            }
        }
        cut(row.trim_end(), self.columns)
    }
}

/// A number, its name, and whether it is a reason to look.
struct Cell(&'static str, String, bool);

/// What the server does now.
pub(super) fn numbers(board: &Board, look: Look) -> Vec<Line<'static>> {
    look.lines(board.numbers.as_ref(), |now| {
        let before = board.before();
        let rate = |field| before.and_then(|before| now.rate(before, field));
        let all = [traffic(now, before, &rate), lateness(now, board), kept(now)];
        flow(all.into_iter().flatten(), look)
    })
}

fn traffic(
    now: &Info,
    before: Option<&Info>,
    rate: &dyn Fn(&'static str) -> Option<f64>,
) -> Vec<Cell> {
    let grown = |field| before.and_then(|before| now.grown(before, field));
    let hits = grown("keyspace_hits").zip(grown("keyspace_misses"));
    let hits = hits.filter(|(hits, misses)| hits + misses > 0.0);
    let cpu = rate("used_cpu_sys").zip(rate("used_cpu_user"));
    let evicted = rate("evicted_keys");
    let waiting = now.number("blocked_clients").unwrap_or(0.0);
    let clients = said(now.number("connected_clients"), count);
    let (used, max) = (
        now.number("used_memory"),
        now.number("maxmemory").unwrap_or(0.0),
    );
    let memory = said(used, bytes);
    vec![
        Cell(
            "ops/s",
            said(rate("total_commands_processed"), count),
            false,
        ),
        Cell(
            "hits",
            said(hits.map(|(hits, misses)| hits / (hits + misses)), percent),
            false,
        ),
        Cell("keys", count(now.keys), false),
        Cell(
            "cpu",
            said(cpu.map(|(system, user)| system + user), percent),
            false,
        ),
        Cell("expired/s", said(rate("expired_keys"), count), false),
        Cell(
            "evicted/s",
            said(evicted, count),
            evicted.is_some_and(|keys| keys > 0.0),
        ),
        Cell(
            "memory",
            if max > 0.0 {
                format!("{memory} of {}", bytes(max))
            } else {
                memory
            },
            max > 0.0 && used.is_some_and(|used| used > 0.9 * max),
        ),
        Cell(
            "clients",
            if waiting > 0.0 {
                format!("{clients}, {} wait", count(waiting))
            } else {
                clients
            },
            false,
        ),
    ]
}

fn lateness(now: &Info, board: &Board) -> Vec<Cell> {
    let us = |field| said(now.number(field), |us| time(micros(us)));
    let minute = board
        .minute_ago()
        .and_then(|then| now.late_since(then, 0.99));
    let behind_ms = now.number("backlog_ms").unwrap_or(0.0);
    let frozen = now.text("expiry_frozen") == Some("1");
    let behind = match (frozen, behind_ms > 0.0) {
        (true, _) => "frozen".to_owned(),
        (_, false) => "nothing".to_owned(),
        (_, true) => {
            let shards = now.number("backlog_shards").unwrap_or(0.0);
            format!("{} in {} shards", time(millis(behind_ms)), count(shards))
        }
    };
    let next = now.number("next_deadline_ms").filter(|ms| *ms >= 0.0);
    vec![
        Cell("late: half", us("lateness_p50_us"), false),
        Cell("99 %", us("lateness_p99_us"), false),
        Cell("most", us("lateness_max_us"), false),
        Cell("behind", behind, frozen || behind_ms > 100.0),
        Cell("99 % this min", minute.map_or("–".to_owned(), time), false),
        Cell(
            "next due",
            next.map_or("–".to_owned(), |ms| format!("in {}", time(millis(ms)))),
            false,
        ),
    ]
}

/// What of the data is on disk.
fn kept(now: &Info) -> Vec<Cell> {
    if now.text("loading") == Some("1") {
        let percent = now.text("loading_loaded_perc").unwrap_or("?");
        return vec![Cell("loading", format!("{} %", plain(percent)), true)];
    }
    let ok = |field| now.text(field).is_none_or(|state| state == "ok");
    let changes = said(now.number("rdb_changes_since_last_save"), count);
    let saved = match now.text("rdb_bgsave_in_progress") {
        Some("1") => "being written".to_owned(),
        _ if !ok("rdb_last_bgsave_status") => format!("FAILED, {changes} changes"),
        // The time of the last one is that of the start, if this process has written none.
        _ if now.text("rdb_saves") == Some("0") => format!("none yet, {changes} changes"),
        _ => match ago(now, now.number("rdb_last_save_time")) {
            Some(ago) => format!("{ago} ago, {changes} changes"),
            None => format!("?, {changes} changes"),
        },
    };
    let log = match now.text("aof_enabled") {
        Some("1") if !ok("aof_last_write_status") => "CANNOT BE WRITTEN".to_owned(),
        Some("1") => said(now.number("aof_current_size"), bytes),
        _ => "off".to_owned(),
    };
    let (saved_fails, log_fails) = (!ok("rdb_last_bgsave_status"), log.starts_with("CANNOT"));
    vec![
        Cell("log", log, log_fails),
        Cell("snapshot", saved, saved_fails),
    ]
}

/// How long ago a time in seconds was, by the server's clock.
fn ago(now: &Info, at_s: Option<f64>) -> Option<String> {
    let now_us = now.number("server_time_usec")?;
    Some(time(micros(now_us - at_s? * 1e6)))
}

/// Puts cells one behind the other, as many as a line has room for.
fn flow(cells: impl Iterator<Item = Cell>, look: Look) -> Vec<Line<'static>> {
    let in_line = (look.columns / CELL).max(1);
    let width = look.columns / in_line;
    let (mut lines, mut line, mut taken) = (Vec::new(), Vec::new(), 0);
    for Cell(name, value, alarms) in cells {
        let long = name.chars().count() + 1 + value.chars().count();
        let places = (long / width + 1).min(in_line);
        if taken + places > in_line {
            lines.push(Line::from(std::mem::take(&mut line)));
            taken = 0;
        }
        taken += places;
        let room = places * width;
        let value = cut(&value, room.saturating_sub(name.chars().count() + 2));
        let rest = room.saturating_sub(name.chars().count() + 1 + value.chars().count());
        line.push(Span::styled(format!("{name} "), look.quiet()));
        line.push(Span::styled(
            value,
            if alarms { look.alarm() } else { look.strong() },
        ));
        line.push(Span::raw(" ".repeat(rest)));
    }
    lines.push(Line::from(line));
    lines
}

/// What will leave, and when.
pub(super) fn forecast(board: &Board, look: Look) -> Vec<Line<'static>> {
    let mut lines = vec![look.title("Leaves (bars are logarithmic)")];
    // The mean size of a key stands for each.
    let mean = board.newest().filter(|now| now.keys > 0.0);
    let mean = mean.and_then(|now| Some(now.number("used_memory")? / now.keys));
    lines.extend(look.lines(board.forecast.as_ref(), |windows| {
        let most = windows.iter().copied().max().unwrap_or(0).max(10);
        let row = |(name, keys): (&&'static str, &u64)| {
            let about = match mean {
                Some(mean) if *keys > 0 => format!("~{}", bytes(*keys as f64 * mean)),
                _ => String::new(),
            };
            let mut cells = vec![
                (12, false, (*name).to_owned()),
                (12, true, count(*keys as f64)),
            ];
            if look.columns >= 60 {
                cells.push((12, true, about));
            }
            let widths: usize = cells.iter().map(|(width, ..)| width).sum();
            let text = look.row(&cells);
            let pad = (widths + 1).saturating_sub(text.chars().count());
            let room = look.columns.saturating_sub(widths + 1);
            let part = (*keys as f64).ln_1p() / (most as f64).ln_1p();
            Line::from(vec![
                Span::raw(text + &" ".repeat(pad)),
                Span::styled(bar(part, room), look.bar()),
            ])
        };
        WINDOWS.iter().zip(windows).map(row).collect()
    }));
    lines
}

/// A bar that fills a part of so many columns.
fn bar(part: f64, columns: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * (columns * 8) as f64).ceil() as usize;
    let mut bar = "█".repeat(eighths / 8);
    match EIGHTHS[eighths % 8] {
        ' ' => {}
        part => bar.push(part),
    }
    bar
}

/// The prefixes of which most keys have a deadline.
pub(super) fn prefixes(board: &Board, look: Look, rows: usize) -> Vec<Line<'static>> {
    // A narrow screen leaves out the last column.
    let widths = match look.columns {
        60.. => [look.columns - 34, 12, 11, 11],
        narrow => [narrow.saturating_sub(23), 12, 11, 0],
    };
    let cells = |texts: [String; 4]| {
        let cells = widths.iter().zip(texts).enumerate();
        let cells = cells.map(|(i, (width, text))| (*width, i > 0, text));
        look.row(&cells.collect::<Vec<_>>())
    };
    let names = ["Prefix", "keys", "next in", "last in"].map(str::to_owned);
    let mut lines = vec![Line::styled(cells(names), look.strong())];
    lines.extend(look.lines(board.prefixes.as_ref(), |prefixes| {
        let row = |of: &super::reading::Prefix| {
            let texts = [
                of.name.clone(),
                count(of.keys as f64),
                time(of.next),
                time(of.last),
            ];
            Line::raw(cells(texts))
        };
        let mut lines: Vec<_> = prefixes.iter().take(rows).map(row).collect();
        if lines.is_empty() {
            lines.push(Line::styled("no key has a deadline", look.quiet()));
        }
        lines
    }));
    lines
}

/// The newest entries of the slow log.
pub(super) fn slow(board: &Board, look: Look, rows: usize) -> Vec<Line<'static>> {
    let cells = |ago: String, took: String, call: String| {
        let rest = look.columns.saturating_sub(20);
        look.row(&[
            (9, false, ago),
            (9, true, took),
            (2, false, String::new()),
            (rest, false, call),
        ])
    };
    let names = ["Slow", "took", "call"].map(str::to_owned);
    let [ago_name, took_name, call_name] = names;
    let mut lines = vec![Line::styled(
        cells(ago_name, took_name, call_name),
        look.strong(),
    )];
    lines.extend(look.lines(board.slow.as_ref(), |entries| {
        let row = |of: &super::reading::Slow| {
            let ago = board
                .newest()
                .and_then(|now| ago(now, Some(of.at_s as f64)));
            Line::raw(cells(
                ago.unwrap_or_default(),
                time(of.took),
                of.call.clone(),
            ))
        };
        let mut lines: Vec<_> = entries.iter().take(rows).map(row).collect();
        if lines.is_empty() {
            lines.push(Line::styled("no call has been slow", look.quiet()));
        }
        lines
    }));
    lines
}

/// The times of commands.
pub(super) fn commands(board: &Board, look: Look) -> Vec<Line<'static>> {
    look.lines(board.commands.as_ref(), |now| {
        let before = board.commands_before.as_ref();
        let seconds = before.map_or(0.0, |before| (now.at_us - before.at_us) / 1e6);
        let per_second = |of: &super::reading::CommandRow| {
            let then = before?.rows.iter().find(|row| row.name == of.name);
            let grown = of.calls - then.map_or(0.0, |row| row.calls);
            (seconds > 0.0 && grown >= 0.0).then(|| grown / seconds)
        };
        let percentile = |of: &super::reading::CommandRow, at: usize| {
            of.within_us
                .get(at)
                .map_or("–".to_owned(), |(_, us)| time(micros(*us)))
        };
        let titles = |at: usize| {
            let named = now.rows.iter().find_map(|row| row.within_us.get(at));
            named.map_or(String::new(), |(name, _)| name.clone())
        };
        let first = look.columns.saturating_sub(27).clamp(8, 24);
        // What has no room is left out, the last first.
        let cells = |name: String, rest: [String; 7]| {
            let mut cells = vec![(first, false, name)];
            let mut left = look.columns.saturating_sub(first);
            for (width, text) in [9, 9, 9, 9, 9, 14, 9].into_iter().zip(rest) {
                if width > left {
                    break;
                }
                left -= width;
                cells.push((width, true, text));
            }
            look.row(&cells)
        };
        let [calls_s, mean, calls, failed] =
            ["calls/s", "mean", "calls", "failed"].map(str::to_owned);
        let head = [
            calls_s,
            titles(0),
            titles(1),
            titles(2),
            mean,
            calls,
            failed,
        ];
        let mut lines = vec![Line::styled(
            cells("Command".to_owned(), head),
            look.strong(),
        )];
        lines.extend(now.rows.iter().map(|of| {
            Line::raw(cells(
                of.name.clone(),
                [
                    said(per_second(of), count),
                    percentile(of, 0),
                    percentile(of, 1),
                    percentile(of, 2),
                    time(micros(of.mean_us)),
                    count(of.calls),
                    count(of.failed),
                ],
            ))
        }));
        lines
    })
}

/// A number, or a dash for none.
fn said(number: Option<f64>, how: impl Fn(f64) -> String) -> String {
    number.map_or("–".to_owned(), how)
}

fn micros(us: f64) -> Duration {
    Duration::try_from_secs_f64(us / 1e6).unwrap_or_default()
}

fn millis(ms: f64) -> Duration {
    micros(ms * 1e3)
}
