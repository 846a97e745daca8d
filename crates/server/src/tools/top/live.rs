//! A terminal that shows a server until its viewer leaves, and is then as before.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::board::Board;
use super::frame::{self, Head};
use super::keys::View;
use super::questions::News;
use super::round::{ask_on, now};
use crate::config::TopCall;

/// The longest time between two frames.
const FRAME: Duration = Duration::from_millis(250);

/// Shows a server until the viewer leaves.
pub(super) fn watch(call: &TopCall, password: Option<&str>) -> Result<(), String> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let watched = signal_hook::flag::register(signal, Arc::clone(&ends));
        watched.map_err(|why| format!("signals: {why}"))?;
    }
    let (wishes, heard) = channel();
    let (tell, news) = channel();
    let (asked, secret) = (call.clone(), password.map(str::to_owned));
    std::thread::spawn(move || ask_on(&asked, secret.as_deref(), &heard, &tell));
    // It has the terminal restored after a panic, too.
    let mut terminal = ratatui::try_init().map_err(|why| format!("the terminal: {why}"))?;
    let head = super::head(call);
    let wish = |view: &View| {
        // Without the other thread there is no news either, which ends the program.
        let _ = wishes.send(view.wish());
    };
    let shown = show(&mut terminal, &head, &news, &ends, wish);
    ratatui::restore();
    shown
}

fn show(
    terminal: &mut DefaultTerminal,
    head: &Head,
    news: &Receiver<News>,
    ends: &AtomicBool,
    wish: impl Fn(&View),
) -> Result<(), String> {
    let failed = |why: io::Error| format!("the terminal: {why}");
    let (mut board, mut view) = (Board::default(), View::default());
    while !view.left && !ends.load(Ordering::Relaxed) {
        let mut below = 0;
        let drawn = terminal.draw(|frame| {
            below = frame::draw(&board, &view, head, now(), frame.buffer_mut());
        });
        drawn.map_err(failed)?;
        view.scroll = view.scroll.min(below);
        let before = view.wish();
        if event::poll(FRAME).map_err(failed)?
            && let Event::Key(key) = event::read().map_err(failed)?
        {
            view.press(key);
        }
        if view.wish() != before {
            wish(&view);
        }
        take(&mut board, news)?;
    }
    Ok(())
}

/// Takes all that has come.
fn take(board: &mut Board, news: &Receiver<News>) -> Result<(), String> {
    loop {
        match news.try_recv() {
            // Who never came in will not by waiting.
            Ok(News::Denied(why)) if board.answered.is_none() => return Err(why),
            Ok(news) => board.take(news, now()),
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => return Err("nobody asks any more".to_owned()),
        }
    }
}

/// Has a password typed, and shows nothing of it.
pub(super) fn password() -> io::Result<String> {
    // Before anybody is asked: who types at once would have it shown, and ended by another letter.
    enable_raw_mode()?;
    let typed = write!(io::stderr(), "password: ").and_then(|()| typed());
    disable_raw_mode()?;
    writeln!(io::stderr())?;
    typed
}

fn typed() -> io::Result<String> {
    let mut typed = String::new();
    loop {
        let Event::Key(key) = event::read()? else {
            continue;
        };
        match key.code {
            _ if key.kind == KeyEventKind::Release => {}
            KeyCode::Enter => return Ok(typed),
            KeyCode::Esc => return Err(io::ErrorKind::Interrupted.into()),
            KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Err(io::ErrorKind::Interrupted.into());
            }
            KeyCode::Char(letter) => typed.push(letter),
            KeyCode::Backspace => {
                typed.pop();
            }
            _ => {}
        }
    }
}
