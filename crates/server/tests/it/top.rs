//! `tidewheel top`, as users and scripts run it.

use std::process::{Command, Output, Stdio};

use crate::common::{Server, ok};

/// One frame of a server.
pub(crate) fn once(words: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidewheel"))
        .args(["top", "--interval", "100ms"])
        .args(words)
        .env_remove("TIDEWHEEL_PASSWORD")
        .env_remove("REDISCLI_AUTH")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the tool runs")
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_frame_without_a_terminal_is_text() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.call(&["SET", "session:1", "v", "PX", "100000000"]);
    client.call(&["SET", "session:\x1b[2J", "v", "PX", "100000000"]);
    client.call(&["SET", "for ever", "v"]);
    let port = server.port.to_string();
    let (frame, wrong) = said(&once(&["-p", &port], &[]));
    assert_eq!(wrong, "");
    for text in [
        "keys 3",
        "to 1 day",
        "\"session:\"",
        "no deadline            1",
        "set  ",
    ] {
        assert!(frame.contains(text), "no {text} in {frame}");
    }
    assert!(!frame.contains('\x1b') && frame.lines().all(|line| line.chars().count() <= 80));
    let (other, _) = said(&once(&["-p", &port, "-n", "3"], &[]));
    assert!(
        other.contains("db 3") && other.contains("no key has a deadline"),
        "{other}"
    );
}

#[test]
fn what_a_user_may_not_ask_is_said_in_its_place() {
    let server = Server::start(&["--requirepass", "secret"]);
    let port = server.port.to_string();
    let (_, wrong) = said(&once(&["-p", &port], &[]));
    assert!(wrong.contains("a password is needed"), "{wrong}");
    let refused = once(&["-p", &port], &[("REDISCLI_AUTH", "guess")]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused)
            .1
            .contains("the user or the password is wrong")
    );
    let mut client = server.client();
    client.call(&["AUTH", "secret"]);
    let rule = ["ACL", "SETUSER", "monitor", "on", ">seen", "+info"];
    assert_eq!(client.call(&rule), ok());
    let words = ["-p", &port, "--user", "monitor", "--once"];
    let (frame, wrong) = said(&once(&words, &[("TIDEWHEEL_PASSWORD", "seen")]));
    assert_eq!(wrong, "");
    for text in [
        "lacks the right +expiry|forecast",
        "lacks the right +slowlog|get",
        "clients 2",
    ] {
        assert!(frame.contains(text), "no {text} in {frame}");
    }
    let denials = client.info("stats", "acl_access_denied_cmd");
    assert_eq!(
        denials, "3",
        "a question that was refused is not asked again at once"
    );
    // It named a right that the user had.
    let rule = ["+expiry|forecast", "+slowlog|get"];
    let rule = [&["ACL", "SETUSER", "monitor"][..], &rule].concat();
    assert_eq!(client.call(&rule), ok());
    let (frame, _) = said(&once(&words, &[("TIDEWHEEL_PASSWORD", "seen")]));
    assert!(frame.contains("lacks the right %R~*"), "{frame}");
    assert_eq!(client.call(&["ACL", "SETUSER", "monitor", "%R~*"]), ok());
    let (frame, _) = said(&once(&words, &[("TIDEWHEEL_PASSWORD", "seen")]));
    assert!(!frame.contains("lacks"), "{frame}");
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let server = Server::start(&[]);
    let port = server.port.to_string();
    drop(server);
    let output = once(&["-p", &port], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).1.contains("nobody listens there"));
}

#[cfg(unix)]
mod terminal {
    use std::fs::File;
    use std::io::{Read as _, Write as _};
    use std::os::fd::OwnedFd;
    use std::process::{Child, Command};
    use std::sync::{Arc, Mutex};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

    use crate::common::{Folder, Server, eventually, program};

    /// The tool in a terminal of 80 columns and 24 lines.
    struct Shown {
        child: Child,
        keys: File,
        written: Arc<Mutex<Vec<u8>>>,
        terminal: OwnedFd,
        before: Termios,
    }

    impl Shown {
        fn start(words: &[&str]) -> Self {
            let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
            grantpt(&ours)
                .and_then(|()| unlockpt(&ours))
                .expect("a terminal");
            let name = ptsname(&ours, Vec::new()).expect("a name");
            let name = name.to_str().expect("text").to_owned();
            let open = || {
                File::options()
                    .read(true)
                    .write(true)
                    .open(&name)
                    .expect("it is there")
            };
            let terminal: OwnedFd = open().into();
            tcsetwinsize(&ours, size(80)).expect("a size");
            let before = tcgetattr(&terminal).expect("a terminal");
            let child = Command::new(env!("CARGO_BIN_EXE_tidewheel"))
                .args(["top", "--interval", "100ms"])
                .args(words)
                .env("TERM", "xterm")
                .env("NO_COLOR", "1")
                .stdin(open())
                .stdout(open())
                .stderr(open())
                .spawn()
                .expect("the tool runs");
            let keys = File::from(ours);
            let mut output = keys.try_clone().expect("a file");
            let written = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&written);
            std::thread::spawn(move || {
                let mut part = [0; 4096];
                while let Ok(len @ 1..) = output.read(&mut part) {
                    seen.lock()
                        .expect("no panic")
                        .extend_from_slice(&part[..len]);
                }
            });
            Self {
                child,
                keys,
                written,
                terminal,
                before,
            }
        }

        /// Waits until the screen shows a text.
        fn wait_for(&self, text: &str) {
            eventually(text, || {
                let written = self.written.lock().expect("no panic");
                screen(&written).contains(text).then_some(())
            });
        }

        fn press(&mut self, keys: &[u8]) {
            self.keys.write_all(keys).expect("a terminal");
        }

        /// Waits for its end, after which the terminal is as before.
        fn ends(mut self) {
            let status = eventually("the end", || self.child.try_wait().expect("our child"));
            assert!(status.success(), "{status}");
            let leaves = b"\x1b[?1049l";
            eventually("the screen is given back", || {
                let written = self.written.lock().expect("no panic");
                let mut parts = written.windows(leaves.len());
                parts.any(|part| part == leaves).then_some(())
            });
            let after = tcgetattr(&self.terminal).expect("a terminal");
            assert_eq!(after.local_modes, self.before.local_modes);
            assert_eq!(after.input_modes, self.before.input_modes);
        }
    }

    /// The size of a terminal of 24 lines.
    fn size(columns: u16) -> Winsize {
        Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }

    /// What a terminal shows after these bytes: letters, and where they go.
    fn screen(written: &[u8]) -> String {
        let written = String::from_utf8_lossy(written);
        let mut rows = vec![vec![' '; 80]; 24];
        let (mut row, mut column) = (0, 0);
        let mut letters = written.chars();
        while let Some(letter) = letters.next() {
            if letter != '\x1b' {
                let cells: Option<&mut Vec<char>> = rows.get_mut(row);
                if let Some(cell) = cells.and_then(|cells| cells.get_mut(column)) {
                    *cell = letter;
                }
                column += 1;
                continue;
            }
            let (mut sequence, mut end) = (String::new(), ' ');
            for letter in letters.by_ref() {
                if letter.is_ascii_alphabetic() {
                    end = letter;
                    break;
                }
                sequence.push(letter);
            }
            let place = sequence.trim_start_matches('[').split_once(';');
            if let (Some((to_row, to_column)), 'H') = (place, end) {
                let number = |text: &str| text.parse::<usize>().expect("a place") - 1;
                (row, column) = (number(to_row), number(to_column));
            }
        }
        let rows = rows
            .into_iter()
            .map(|row| row.into_iter().collect::<String>());
        rows.collect::<Vec<_>>().join("\n")
    }

    impl Drop for Shown {
        fn drop(&mut self) {
            // It may have ended.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn keys_change_what_is_shown_and_the_terminal_is_restored() {
        let server = Server::start(&[]);
        let port = server.port.to_string();
        let mut shown = Shown::start(&["-p", &port]);
        shown.wait_for("no call has been slow");
        shown.press(b"\t");
        shown.wait_for("calls/s");
        shown.press(b"?");
        shown.wait_for("this help");
        shown.press(b"p");
        shown.wait_for("paused");
        shown.press(b"q");
        shown.ends();
    }

    #[test]
    fn a_terminal_that_becomes_narrow_shows_the_same_in_more_lines() {
        let server = Server::start(&[]);
        let port = server.port.to_string();
        let mut shown = Shown::start(&["-p", &port]);
        shown.wait_for("no call has been slow");
        tcsetwinsize(&shown.keys, size(40)).expect("a size");
        eventually("two numbers in a line", || {
            let written = shown.written.lock().expect("no panic");
            let screen = screen(&written);
            let line = screen.lines().nth(5).unwrap_or_default();
            line.starts_with("memory ").then_some(())
        });
        shown.press(b"q");
        shown.ends();
    }

    #[test]
    fn a_password_that_is_typed_is_not_shown() {
        let server = Server::start(&["--requirepass", "secret"]);
        let port = server.port.to_string();
        let mut shown = Shown::start(&["-p", &port, "--askpass"]);
        shown.wait_for("password: ");
        shown.press(b"secreX\x7ft\r");
        shown.wait_for("ops/s");
        let written = shown.written.lock().expect("no panic").clone();
        assert!(!String::from_utf8_lossy(&written).contains("secre"));
        shown.press(b"q");
        shown.ends();
    }

    #[test]
    fn control_c_and_sigterm_restore_the_terminal() {
        let server = Server::start(&[]);
        let port = server.port.to_string();
        let mut shown = Shown::start(&["-p", &port]);
        shown.wait_for("ops/s");
        shown.press(b"\x03");
        shown.ends();
        let shown = Shown::start(&["-p", &port]);
        shown.wait_for("ops/s");
        let pid = rustix::process::Pid::from_child(&shown.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        shown.ends();
    }

    #[test]
    fn a_server_that_starts_again_is_found_again() {
        let folder = Folder::new("top-again");
        let socket = folder.0.with_extension("sock");
        let socket = socket.to_str().expect("text");
        let flags = ["--unixsocket", socket, "--dir", folder.text()];
        let server = Server::run(&mut program(&flags));
        let mut shown = Shown::start(&["-s", socket]);
        // It has answered.
        shown.wait_for(", up ");
        drop(server);
        shown.wait_for("no answer for");
        let again = Server::run(&mut program(&flags));
        shown.wait_for("every 100");
        drop(again);
        shown.press(b"q");
        shown.ends();
    }
}
