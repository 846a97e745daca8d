//! The words of `tidewheel top`. They are those of `redis-cli`, where it has them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};

/// The shortest time between two questions: less would be a load.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The longest, so that a viewer does not take an old picture for a new one.
const INTERVAL_MAX: Duration = Duration::from_secs(3_600);

/// Which server is watched, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopCall {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// A Unix socket, in place of host and port.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) db: u32,
    pub(crate) user: Option<String>,
    /// The password is typed.
    pub(crate) asks_password: bool,
    pub(crate) tls: Option<TopTls>,
    /// The time between two questions.
    pub(crate) interval: Duration,
    /// One frame, as text.
    pub(crate) once: bool,
}

/// The files of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopTls {
    /// Authorities of the server's certificate; the system's, if none is named.
    pub(crate) authorities: Option<String>,
    /// A certificate to show, and its key.
    pub(crate) own: Option<(String, String)>,
}

/// The tool's part of the command line.
pub(super) fn top_command() -> Command {
    let word = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let yes = |name: &'static str, help: &'static str| {
        let arg = Arg::new(name).long(name).help(help);
        arg.action(ArgAction::SetTrue)
    };
    let files = |arg: Arg| arg.requires("tls");
    Command::new("top")
        .about("Watch a server in a terminal: what expires when, how late, and what it does meanwhile")
        .after_help(
            "The password is that of TIDEWHEEL_PASSWORD or REDISCLI_AUTH in the environment, or typed (--askpass).\n\
             Without a terminal it prints one frame, as with --once. With NO_COLOR there are no colours.",
        )
        // -h is the host, as in redis-cli.
        .disable_help_flag(true)
        .arg(Arg::new("help").long("help").action(ArgAction::Help).help("Print help"))
        .arg(word("host", "HOST", "The server's host").short('h').default_value("127.0.0.1"))
        .arg(
            word("port", "PORT", "The server's port")
                .short('p')
                .value_parser(clap::value_parser!(u16).range(1..))
                .default_value("6379"),
        )
        .arg(
            word("socket", "SOCKET", "The server's Unix socket, in place of host and port")
                .short('s')
                .value_parser(clap::value_parser!(PathBuf))
                .conflicts_with_all(["host", "port", "tls"]),
        )
        .arg(
            word("db", "NUMBER", "The database whose forecast is shown")
                .short('n')
                .value_parser(clap::value_parser!(u32))
                .default_value("0"),
        )
        .arg(word("user", "USER", "The user, if it is not the default one"))
        .arg(yes("askpass", "Type the password"))
        .arg(yes("tls", "Speak TLS"))
        .arg(files(word("cacert", "FILE", "Authorities of the server's certificate [default: the system's]")))
        .arg(files(word("cert", "FILE", "A certificate to show to the server")).requires("key"))
        .arg(files(word("key", "FILE", "Its key")).requires("cert"))
        .arg(
            word("interval", "TIME", "The time between two questions: 1s, 500ms")
                .value_parser(interval)
                .default_value("1s"),
        )
        .arg(yes("once", "Print one frame as text, and exit"))
}

/// Reads the tool's words.
pub(super) fn top_call(matches: &ArgMatches) -> Option<TopCall> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    Some(TopCall {
        host: text("host")?,
        port: *matches.get_one("port")?,
        socket: matches.get_one("socket").cloned(),
        db: *matches.get_one("db")?,
        user: text("user"),
        asks_password: matches.get_flag("askpass"),
        tls: matches.get_flag("tls").then(|| TopTls {
            authorities: text("cacert"),
            own: text("cert").zip(text("key")),
        }),
        interval: *matches.get_one("interval")?,
        once: matches.get_flag("once"),
    })
}

/// Reads a time in seconds, or with its unit.
fn interval(text: &str) -> Result<Duration, String> {
    let (number, unit_s) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * unit_s);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| (INTERVAL_MIN..=INTERVAL_MAX).contains(time))
        .ok_or_else(|| "a time from 100ms to 3600s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<TopCall, String> {
        let words = std::iter::once(&"top").chain(words);
        let matches = top_command().try_get_matches_from(words);
        let matches = matches.map_err(|why| why.to_string())?;
        top_call(&matches).ok_or_else(|| "no call".to_owned())
    }

    #[test]
    fn the_words_are_those_of_redis_cli() {
        let call = read(&["-h", "cache", "-p", "7000", "-n", "3", "--user", "eve"]).unwrap();
        assert_eq!((call.host.as_str(), call.port, call.db), ("cache", 7000, 3));
        assert_eq!(call.user.as_deref(), Some("eve"));
        let files = ["--tls", "--cacert", "a", "--cert", "b", "--key", "c"];
        let tls = read(&files).unwrap().tls.expect("TLS");
        assert_eq!(tls.own, Some(("b".to_owned(), "c".to_owned())));
        let socket = read(&["-s", "/run/t.sock"]).unwrap().socket;
        assert_eq!(socket, Some(PathBuf::from("/run/t.sock")));
        for wrong in [
            &["--cacert", "a"][..],
            &["--tls", "--cert", "b"],
            &["-s", "x", "-p", "1"],
            &["-p", "0"],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_interval_has_a_unit_or_is_in_seconds() {
        for (text, ms) in [("1s", 1_000), ("500ms", 500), ("2", 2_000), ("0.5", 500)] {
            assert_eq!(interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "0", "99ms", "3601s", "-1s", "1m", "NaN", "inf", "s"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
