//! What a viewer looks at, and the keys that change it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::round::Wish;

/// Lines of a page.
const PAGE: usize = 10;

/// The keys, for the help.
pub(super) const KEYS: [(&str, &str); 6] = [
    ("q, Ctrl-C", "leave"),
    ("Tab", "expiry or commands"),
    ("p", "pause, and go on: nothing is asked meanwhile"),
    ("Up, Down", "a line up or down"),
    ("PgUp, PgDn", "a page up or down"),
    ("?", "this help"),
];

/// One of the two tabs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Expiry,
    Commands,
}

/// What is on the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) tab: Tab,
    /// Lines that are above the screen.
    pub(super) scroll: usize,
    pub(super) paused: bool,
    pub(super) help: bool,
    pub(super) left: bool,
}

impl View {
    /// Does what a key says.
    pub(super) fn press(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        match key.code {
            KeyCode::Char('c' | 'd') if key.modifiers == KeyModifiers::CONTROL => self.left = true,
            KeyCode::Char('q') => self.left = true,
            KeyCode::Char('?') => self.help = !self.help,
            KeyCode::Esc => self.help = false,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Tab | KeyCode::BackTab => {
                self.tab = match self.tab {
                    Tab::Expiry => Tab::Commands,
                    Tab::Commands => Tab::Expiry,
                };
                self.scroll = 0;
            }
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll += 1,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::PageDown => self.scroll += PAGE,
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
    }

    /// What is to be asked for it.
    pub(super) fn wish(&self) -> Wish {
        Wish {
            paused: self.paused,
            commands: self.tab == Tab::Commands,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_what_the_help_says() {
        let mut view = View::default();
        let press = |view: &mut View, code| view.press(KeyEvent::new(code, KeyModifiers::NONE));
        press(&mut view, KeyCode::Down);
        press(&mut view, KeyCode::PageDown);
        assert_eq!(view.scroll, 11);
        press(&mut view, KeyCode::Up);
        assert_eq!(view.scroll, 10);
        press(&mut view, KeyCode::Tab);
        press(&mut view, KeyCode::Char('p'));
        assert_eq!((view.tab, view.scroll), (Tab::Commands, 0));
        assert_eq!(
            view.wish(),
            Wish {
                paused: true,
                commands: true
            }
        );
        press(&mut view, KeyCode::Char('?'));
        assert!(view.help && !view.left);
        press(&mut view, KeyCode::Esc);
        assert!(!view.help);
        press(&mut view, KeyCode::Char('c'));
        assert!(!view.left);
        view.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(view.left);
    }
}
