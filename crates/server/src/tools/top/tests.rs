//! Frames of canned replies.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use tidewheel_resp::Reply;

use super::board::Board;
use super::frame::{self, Head};
use super::keys::{Tab, View};
use super::questions::{COMMANDS, Costly, FORECAST, NUMBERS, News, PREFIXES, Question, SLOW};

const INFO: &str = "tidewheel_version:0.1.0\r\nuptime_in_seconds:7200\r\nconnected_clients:12\r\n\
    blocked_clients:0\r\nused_memory:104857600\r\nmaxmemory:0\r\nexpiry_frozen:0\r\nlateness_p50_us:400\r\n\
    lateness_p99_us:1100\r\nlateness_max_us:4200\r\nbacklog_shards:0\r\nbacklog_ms:0\r\nnext_deadline_ms:12\r\n\
    loading:0\r\nrdb_changes_since_last_save:77\r\nrdb_bgsave_in_progress:0\r\nrdb_saves:1\r\nrdb_last_save_time:1700000000\r\n\
    rdb_last_bgsave_status:ok\r\naof_enabled:0\r\ndb0:keys=1000000,expires=900000,avg_ttl=1\r\n";

fn bulk(text: impl AsRef<[u8]>) -> Reply {
    Reply::Bulk(text.as_ref().to_vec())
}

fn map(pairs: &[(&str, Reply)]) -> Reply {
    let pair = |(name, value): &(&str, Reply)| (bulk(name), value.clone());
    Reply::Map(pairs.iter().map(pair).collect())
}

/// INFO at a second, with counters that grow by so much each second.
fn info(second: u64, rates: &[(&str, u64)], more: &str) -> Reply {
    let at = 1_700_000_180 + second;
    let counters: String = rates
        .iter()
        .map(|(name, rate)| format!("{name}:{}\r\n", rate * second))
        .collect();
    bulk(format!(
        "{INFO}server_time_usec:{at}000000\r\n{counters}{more}"
    ))
}

fn prefix(keys: i64, next_ms: i64, last_ms: i64) -> Reply {
    let facts = [("keys", keys), ("next-ms", next_ms), ("last-ms", last_ms)];
    map(&facts.map(|(name, value)| (name, Reply::Integer(value))))
}

fn slow(words: &[&[u8]]) -> Reply {
    let words = words.iter().map(bulk).collect();
    let number = Reply::Integer;
    Reply::Array(vec![
        number(1),
        number(1_700_000_061),
        number(12_300),
        Reply::Array(words),
        bulk("127.0.0.1:5"),
        bulk(""),
    ])
}

fn board(replies: &[(&Question, Reply)]) -> Board {
    let mut board = Board::default();
    for (question, reply) in replies {
        board.take(question.news(reply), Duration::from_secs(10));
    }
    board
}

/// A server that has much to do.
fn loaded() -> Board {
    let rates = [
        ("total_commands_processed", 12_345),
        ("keyspace_hits", 981),
        ("keyspace_misses", 19),
        ("expired_keys", 1_024),
        ("evicted_keys", 0),
    ];
    let windows = [
        ("within 1 s", 1_024),
        ("1 s to 10 s", 9_000),
        ("10 s to 1 min", 60_000),
        ("1 min to 10 min", 400_000),
        ("1 h to 6 h", 430_000),
        ("all with a deadline", 900_024),
        ("without a deadline", 100_000),
    ];
    let windows = windows.map(|(name, keys)| (name, Reply::Integer(keys)));
    let prefixes = [
        ("session:", prefix(500_000, 12, 3_600_000)),
        ("cart:", prefix(400_024, 1_500, 86_400_000)),
    ];
    let stats = "cmdstat_get:calls=9000,usec=9,usec_per_call=1.80,rejected_calls=0,failed_calls=2\r\n\
                 latency_percentiles_usec_get:p50=1.003,p99=2.007,p99.9=4015.0\r\n";
    board(&[
        (&NUMBERS, info(1, &rates, "")),
        (&NUMBERS, info(2, &rates, "")),
        (&FORECAST, map(&windows)),
        (&PREFIXES, map(&prefixes)),
        (&SLOW, Reply::Array(vec![slow(&[b"SORT", b"big"])])),
        (&COMMANDS, info(1, &[], "cmdstat_get:calls=8000\r\n")),
        (&COMMANDS, info(2, &[], stats)),
    ])
}

fn head() -> Head {
    Head {
        place: "127.0.0.1:6379".to_owned(),
        interval: Duration::from_secs(1),
        colours: true,
    }
}

fn drawn(board: &Board, view: &View, (columns, rows): (u16, u16)) -> TestBackend {
    let backend = TestBackend::new(columns, rows);
    let mut terminal = Terminal::new(backend).expect("a terminal");
    let draw = |frame: &mut ratatui::Frame<'_>| {
        frame::draw(
            board,
            view,
            &head(),
            Duration::from_secs(11),
            frame.buffer_mut(),
        );
    };
    terminal.draw(draw).expect("a frame");
    terminal.backend().clone()
}

/// The lines of a screen.
fn screen(board: &Board, view: &View, size: (u16, u16)) -> Vec<String> {
    let backend = drawn(board, view, size);
    let row = |row: &[ratatui::buffer::Cell]| {
        let row: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        row.trim_end().to_owned()
    };
    let rows = backend.buffer().content.chunks(usize::from(size.0));
    rows.map(row).collect()
}

fn shows(lines: &[String], text: &str) -> bool {
    lines.iter().any(|line| line.contains(text))
}

#[test]
fn a_server_with_much_to_do_fits_into_80_columns_and_24_lines() {
    let lines = screen(&loaded(), &View::default(), (80, 24));
    let expected = [
        "127.0.0.1:6379, tidewheel 0.1.0, up 2h ─────────────────────────────────────────",
        "every 1.0s",
        "ops/s 12,345        hits 98.1 %         keys 1,000,000      cpu –",
        "expired/s 1,024     evicted/s 0         memory 100.00 MiB   clients 12",
        "late: half 400µs    99 % 1.1ms          most 4.2ms          behind nothing",
        "99 % this min –     next due in 12.0ms  log off",
        "snapshot 3m ago, 77 changes",
        "Leaves (bars are logarithmic) ──────────────────────────────────────────────────",
        "due now                0",
        "in 1 s             1,024 ~104.86 KiB",
    ];
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\nis not\n{expected}");
    }
    assert!(shows(&lines, "\"session:\"") && shows(&lines, "500,000     12.0ms        60m"));
    assert!(
        shows(&lines, "2m           12.3ms") || shows(&lines, "12.3ms  \"SORT\" \"big\""),
        "{lines:#?}"
    );
    assert!(lines[23].starts_with("q leave  Tab commands"));
}

#[test]
fn a_server_with_nothing_to_do_says_so() {
    let idle = board(&[
        (&NUMBERS, bulk("uptime_in_seconds:1\r\naof_enabled:0\r\n")),
        (
            &FORECAST,
            map(&[("all with a deadline", Reply::Integer(0))]),
        ),
        (&PREFIXES, map(&[])),
        (&SLOW, Reply::Array(Vec::new())),
    ]);
    let lines = screen(&idle, &View::default(), (80, 24));
    for text in [
        "no key has a deadline",
        "no call has been slow",
        "behind nothing",
        "ops/s –",
    ] {
        assert!(shows(&lines, text), "no {text} in {lines:#?}");
    }
    let blank = screen(&Board::default(), &View::default(), (80, 24));
    assert!(shows(&blank, "not asked yet"));
}

#[test]
fn a_million_keys_that_are_due_are_an_alarm() {
    let due = "backlog_ms:1500\r\nbacklog_shards:8\r\n";
    let board = board(&[
        (&NUMBERS, info(1, &[], due)),
        (
            &FORECAST,
            map(&[("due, and not removed yet", Reply::Integer(1_000_000))]),
        ),
    ]);
    let lines = screen(&board, &View::default(), (80, 24));
    assert!(shows(&lines, "behind 1.5s in 8 shards"), "{lines:#?}");
    let row = lines
        .iter()
        .find(|line| line.starts_with("due now"))
        .expect("a row");
    assert!(row.contains("1,000,000") && row.ends_with("█"), "{row}");
    let red = |board: &Board| {
        let screen = drawn(board, &View::default(), (80, 24));
        screen
            .buffer()
            .content
            .iter()
            .any(|cell| cell.fg == Color::Red)
    };
    assert!(red(&board) && !red(&loaded()));
}

#[test]
fn a_panel_whose_question_is_refused_names_the_right_and_the_others_go_on() {
    let refused = |command: &str| {
        let user = "NOPERM User eve has no permissions to run the";
        Reply::Error(format!("{user} '{command}' command"))
    };
    let mut board = loaded();
    for (question, command) in [(&FORECAST, "expiry|forecast"), (&SLOW, "slowlog|get")] {
        board.take(question.news(&refused(command)), Duration::from_secs(10));
    }
    let lines = screen(&board, &View::default(), (80, 24));
    assert!(shows(&lines, "this user lacks the right +expiry|forecast"));
    assert!(shows(&lines, "this user lacks the right +slowlog|get"));
    assert!(shows(&lines, "ops/s 12,345") && shows(&lines, "\"cart:\""));
    let loading = Reply::Error("LOADING Redis is loading the dataset in memory".to_owned());
    board.take(FORECAST.news(&loading), Duration::from_secs(10));
    let lines = screen(&board, &View::default(), (80, 24));
    assert!(shows(&lines, "the server loads its data"));
}

#[test]
fn a_server_that_is_silent_or_gone_is_said_to_be() {
    let mut board = loaded();
    let at = |board: &Board, s| {
        let mut cells = ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, 80, 24));
        frame::draw(
            board,
            &View::default(),
            &head(),
            Duration::from_secs(s),
            &mut cells,
        );
        (0..80)
            .map(|x| cells[(x, 1)].symbol().to_owned())
            .collect::<String>()
    };
    assert!(at(&board, 13).starts_with("every 1.0s"));
    assert!(at(&board, 14).starts_with("no answer for 4 s"));
    board.take(
        News::Lost("nobody listens there".to_owned()),
        Duration::from_secs(12),
    );
    assert!(at(&board, 13).starts_with("no answer for 3 s: nobody listens there"));
    board.take(NUMBERS.news(&info(3, &[], "")), Duration::from_secs(13));
    assert!(at(&board, 13).starts_with("every 1.0s"));
    board.take(
        News::Every(Costly::Prefixes, Duration::from_secs(40)),
        Duration::from_secs(13),
    );
    assert!(at(&board, 13).starts_with("every 1.0s; to cost little: prefixes 40.0s"));
}

#[test]
fn another_process_at_the_address_has_no_rates_with_the_one_before() {
    let mut board = loaded();
    assert!(shows(
        &screen(&board, &View::default(), (80, 24)),
        "ops/s 12,345"
    ));
    let anew = "uptime_in_seconds:1\r\ntotal_commands_processed:99999999\r\n";
    board.take(NUMBERS.news(&info(9, &[], anew)), Duration::from_secs(10));
    assert!(shows(
        &screen(&board, &View::default(), (80, 24)),
        "ops/s –"
    ));
}

#[test]
fn the_second_tab_has_the_times_of_commands() {
    let view = View {
        tab: Tab::Commands,
        ..View::default()
    };
    let lines = screen(&loaded(), &view, (80, 24));
    let words = |line: &String| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        words(&lines[2]),
        ["Command", "calls/s", "p50", "p99", "p99.9", "mean"]
    );
    assert_eq!(
        words(&lines[3]),
        ["get", "1,000", "1µs", "2µs", "4.0ms", "2µs"]
    );
    let wide = screen(&loaded(), &view, (110, 24));
    assert_eq!(words(&wide[3])[6..], ["9,000", "2"]);
}

#[test]
fn a_narrow_terminal_shows_the_same_in_more_lines() {
    let mut view = View::default();
    let mut all = Vec::new();
    for scroll in [0, 10, 20, 99] {
        view.scroll = scroll;
        let lines = screen(&loaded(), &view, (40, 24));
        assert!(lines.iter().all(|line| line.chars().count() <= 40));
        all.extend(lines);
    }
    for text in [
        "ops/s 12,345",
        "to 1 min          60,000 █",
        "\"session:\"",
        "\"SORT\" \"big\"",
    ] {
        assert!(shows(&all, text), "no {text} in {all:#?}");
    }
    view.help = true;
    assert!(shows(&screen(&loaded(), &view, (40, 24)), "PgUp, PgDn"));
}

/// All that may stand on a screen takes one column.
fn is_harmless(letter: char) -> bool {
    matches!(letter, ' '..='~' | 'µ' | '–' | '…' | '─' | '█'..='▏')
}

#[test]
fn names_of_any_bytes_are_shown_escaped_and_cut_at_every_size() {
    let names: [&[u8]; 7] = [
        b"\x1b[2J\x1b]0;owned\x07",
        b"a\r\nb\tc",
        b"\xff\xfe\x80",
        "漢字👩‍👩‍👧".as_bytes(),
        "\u{202e}\u{9b}31m".as_bytes(),
        b"",
        &vec![b'x'; 10 << 20],
    ];
    let mut board = loaded();
    let hostile = Reply::Map(
        names
            .iter()
            .map(|name| (bulk(name), prefix(i64::MAX, i64::MAX, 0)))
            .collect(),
    );
    let calls = Reply::Array(vec![slow(&names), slow(&vec![&b"x"[..]; 10_000])]);
    let text = String::from_utf8_lossy(names[3]).into_owned() + "\x1b[31m";
    let stats = format!("cmdstat_{text}:calls=1\r\nlatency_percentiles_usec_{text}:p\x1b[0m=1\r\n");
    let odd = format!(
        "tidewheel_version:{text}\r\nloading:1\r\nloading_loaded_perc:{text}\r\nused_memory:1e300\r\n"
    );
    for (question, reply) in [
        (&PREFIXES, hostile),
        (&SLOW, calls),
        (&COMMANDS, bulk(stats)),
        (&NUMBERS, bulk(odd)),
    ] {
        board.take(question.news(&reply), Duration::from_secs(10));
    }
    let refused = Reply::Error(format!("ERR {text}"));
    board.take(FORECAST.news(&refused), Duration::from_secs(10));
    for tab in [Tab::Expiry, Tab::Commands] {
        for columns in [1, 2, 5, 20, 39, 40, 80, 200] {
            for rows in [1, 2, 3, 10, 24, 70] {
                let view = View {
                    tab,
                    ..View::default()
                };
                for line in screen(&board, &view, (columns, rows)) {
                    assert!(line.chars().all(is_harmless), "{line:?}");
                }
            }
        }
    }
    let wide = screen(&board, &View::default(), (200, 60));
    assert!(shows(&wide, r#""\x1b[2J\x1b]0;owned\x07""#), "{wide:#?}");
    assert!(shows(&wide, r#""a\r\nb\tc""#) && shows(&wide, r#""\xff\xfe\x80""#));
}

#[test]
fn one_frame_as_text_has_both_tabs() {
    let text = frame::text(&loaded(), &head(), Duration::from_secs(11), 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    for expected in [
        "ops/s 12,345",
        "to 1 h           400,000",
        "\"cart:\"",
        "Command",
        "get",
    ] {
        assert!(text.contains(expected), "no {expected} in {text}");
    }
    assert!(!text.contains('\x1b'));
}
