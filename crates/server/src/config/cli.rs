//! Reads the command line, and takes other values from the environment and the file.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::file;
use super::foreign::ForeignLines;
use super::settings::Settings;
use super::table::keys;

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The server.
    Server(Box<Invocation>),
    /// A tool, which starts no server.
    Tool(ToolCall),
}

/// A tool, and what it works on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToolCall {
    Check {
        file: PathBuf,
    },
    Dump {
        file: PathBuf,
        whole: bool,
    },
    PrintLog {
        folder: PathBuf,
        form: LogForm,
    },
    RepairLog {
        folder: PathBuf,
        /// Nobody is asked.
        yes: bool,
    },
}

/// How a log is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogForm {
    /// A line for each record.
    Lines { whole: bool },
    /// Commands for another server.
    Commands {
        /// It knows deadlines of fields.
        field_deadlines: bool,
    },
}

/// The command line of a server, as it was read.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) settings: Settings,
    pub(crate) file: Option<PathBuf>,
    /// Lines of the file that mean nothing here.
    pub(crate) foreign: ForeignLines,
    /// The server only checks the configuration, and exits.
    pub(crate) check: bool,
}

/// The reason for which the server cannot be started as asked.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Wrong flags, or a request for help or the version. The error prints itself.
    Usage(clap::Error),
    /// A value that is not accepted.
    Configuration(String),
}

/// Reads flags, then the environment, then the file, then defaults: the first that names a key
/// wins.
pub(crate) fn asked(arguments: impl IntoIterator<Item = OsString>) -> Result<Asked, Refusal> {
    let matches = command()
        .try_get_matches_from(arguments)
        .map_err(Refusal::Usage)?;
    match tool(&matches) {
        Some(tool) => Ok(Asked::Tool(tool)),
        None => invocation(&matches).map(|invocation| Asked::Server(Box::new(invocation))),
    }
}

fn tool(matches: &ArgMatches) -> Option<ToolCall> {
    let (name, matches) = matches.subcommand()?;
    if name == "log" {
        return log_tool(matches);
    }
    let file = matches.get_one::<PathBuf>("file")?.clone();
    Some(match name {
        "check" => ToolCall::Check { file },
        _ => ToolCall::Dump {
            file,
            whole: matches.get_flag("whole"),
        },
    })
}

fn log_tool(matches: &ArgMatches) -> Option<ToolCall> {
    let (name, matches) = matches.subcommand()?;
    let folder = matches.get_one::<PathBuf>("folder")?.clone();
    if name == "repair" {
        let yes = matches.get_flag("yes");
        return Some(ToolCall::RepairLog { folder, yes });
    }
    let form = match matches.get_flag("human") {
        true => LogForm::Lines {
            whole: matches.get_flag("whole"),
        },
        false => LogForm::Commands {
            field_deadlines: !matches.get_flag("without-field-deadlines"),
        },
    };
    Some(ToolCall::PrintLog { folder, form })
}

fn invocation(matches: &ArgMatches) -> Result<Invocation, Refusal> {
    let mut settings = Settings::default();
    let file = matches.get_one::<PathBuf>("config").cloned();
    let mut foreign = ForeignLines::default();
    if let Some(path) = &file {
        let text = std::fs::read_to_string(path).map_err(|why| {
            Refusal::Configuration(format!("cannot read {}: {why}", path.display()))
        })?;
        foreign = file::apply(&text, &mut settings)
            .map_err(|why| Refusal::Configuration(format!("{}: {why}", path.display())))?;
    }
    for source in [ValueSource::EnvVariable, ValueSource::CommandLine] {
        apply(matches, source, &mut settings).map_err(Refusal::Configuration)?;
    }
    if !settings.user_file.is_empty() {
        settings.users = file::read_users(&settings).map_err(Refusal::Configuration)?;
    }
    settings.derive();
    settings.check().map_err(Refusal::Configuration)?;
    Ok(Invocation {
        settings,
        file,
        foreign,
        check: matches.get_flag("check-config"),
    })
}

fn apply(matches: &ArgMatches, source: ValueSource, settings: &mut Settings) -> Result<(), String> {
    for key in keys() {
        if matches.value_source(key.name) != Some(source) {
            continue;
        }
        let values = matches.get_many::<String>(key.name).unwrap_or_default();
        let text: Vec<&str> = values.map(String::as_str).collect();
        (key.set)(settings, &text.join(" ")).map_err(|why| match source {
            ValueSource::EnvVariable => format!("{}: {why}", key.env()),
            _ => format!("--{}: {why}", key.name),
        })?;
    }
    Ok(())
}

fn command() -> Command {
    let defaults = Settings::default();
    let flags = keys().map(|key| {
        let default = (key.get)(&defaults);
        let shown = if default.is_empty() { "none" } else { &default };
        Arg::new(key.name)
            .long(key.name)
            .aliases(key.old_name())
            .value_name(key.value)
            .env(key.env())
            .hide_env_values(true)
            // Lists may be given as several words, as in the file.
            .num_args(if key.value.contains(' ') || key.name == "bind" {
                1..=8
            } else {
                1..=1
            })
            .allow_hyphen_values(key.name == "requirepass")
            .help(format!("{} [default: {shown}]", key.help))
    });
    Command::new("tidewheel")
        .version(env!("CARGO_PKG_VERSION"))
        // The last one wins, so that scripts can append to a list of flags.
        .args_override_self(true)
        .about("A Redis-protocol server whose keys expire on time.")
        .after_help(
            "Flags win over the environment, the environment over the file.\n\
             A line of the file is a flag without its dashes and its value: `maxmemory 1gb`.",
        )
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .env("TIDEWHEEL_CONFIG")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Read settings from FILE"),
        )
        .arg(
            Arg::new("check-config")
                .long("check-config")
                .action(ArgAction::SetTrue)
                .help("Check the settings and exit"),
        )
        .args(flags)
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("check")
                .about("Read a snapshot file, say what it holds and whether it is sound")
                .arg(snapshot_file()),
        )
        .subcommand(
            Command::new("dump")
                .about("Print a line for each key of a snapshot file")
                .arg(snapshot_file())
                .arg(whole()),
        )
        .subcommand(log_command())
}

fn log_command() -> Command {
    Command::new("log")
        .about("Look into a log, or cut a damaged one")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("print")
                .about(
                    "Print a log as commands, which another server loads as its append-only file",
                )
                .arg(log_folder())
                .arg(
                    flag("human")
                        .help("Print a line for each record: time, database, command")
                        .conflicts_with("without-field-deadlines"),
                )
                .arg(whole().requires("human"))
                .arg(flag("without-field-deadlines").help(
                    "Leave out HPEXPIREAT, which Redis below 7.4 and Valkey below 9 do not know",
                )),
        )
        .subcommand(
            Command::new("repair")
                .about("Cut a damaged log at the first damage, and keep what was cut beside it")
                .arg(log_folder())
                .arg(flag("yes").help("Cut without a question")),
        )
}

fn flag(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}

fn whole() -> Arg {
    flag("whole").help("Print whole values, however long they are")
}

fn log_folder() -> Arg {
    Arg::new("folder")
        .value_name("FOLDER")
        .required(true)
        .value_parser(clap::value_parser!(PathBuf))
        .help("The folder of a log: tidewheel-data/log")
}

fn snapshot_file() -> Arg {
    Arg::new("file")
        .value_name("FILE")
        .required(true)
        .value_parser(clap::value_parser!(PathBuf))
        .help("A snapshot file (RDB)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Port;

    fn parse(words: &[&str]) -> Result<Invocation, Refusal> {
        match ask(words)? {
            Asked::Server(invocation) => Ok(*invocation),
            Asked::Tool(tool) => panic!("{tool:?}"),
        }
    }

    fn ask(words: &[&str]) -> Result<Asked, Refusal> {
        asked(
            std::iter::once("tidewheel")
                .chain(words.iter().copied())
                .map(OsString::from),
        )
    }

    #[test]
    fn a_word_in_front_asks_for_a_tool() {
        let file = || PathBuf::from("a.rdb");
        for (words, expected) in [
            (&["check", "a.rdb"][..], ToolCall::Check { file: file() }),
            (
                &["dump", "a.rdb", "--whole"],
                ToolCall::Dump {
                    file: file(),
                    whole: true,
                },
            ),
            (
                &["log", "print", "a.rdb"],
                ToolCall::PrintLog {
                    folder: file(),
                    form: LogForm::Commands {
                        field_deadlines: true,
                    },
                },
            ),
            (
                &["log", "print", "--human", "a.rdb"],
                ToolCall::PrintLog {
                    folder: file(),
                    form: LogForm::Lines { whole: false },
                },
            ),
            (
                &["log", "repair", "a.rdb", "--yes"],
                ToolCall::RepairLog {
                    folder: file(),
                    yes: true,
                },
            ),
        ] {
            let Ok(Asked::Tool(tool)) = ask(words) else {
                panic!("{words:?}")
            };
            assert_eq!(tool, expected);
        }
        for wrong in [
            &["check"][..],
            &["check", "--port", "1", "a.rdb"],
            &["--port", "1", "check", "a.rdb"],
            &["list", "a.rdb"],
            &["log"],
            &["log", "print"],
            &["log", "print", "--whole", "a.rdb"],
        ] {
            assert!(matches!(ask(wrong), Err(Refusal::Usage(_))), "{wrong:?}");
        }
        // Names of tools are values of flags as well.
        assert_eq!(
            parse(&["--dbfilename", "check"])
                .unwrap()
                .settings
                .snapshot_file,
            "check"
        );
    }

    #[test]
    fn the_table_makes_a_valid_command_line() {
        command().debug_assert();
    }

    #[test]
    fn flags_set_keys() {
        let words = [
            "--port",
            "7001",
            "--maxmemory",
            "10mb",
            "--save",
            "",
            "--bind",
            "::1",
            "127.0.0.1",
        ];
        let settings = parse(&words).unwrap().settings;
        assert_eq!(settings.port, Port::Number(7001));
        assert_eq!(settings.max_memory, 10 << 20);
        let names: Vec<&str> = settings.bind.iter().map(|a| a.name()).collect();
        assert_eq!(names, ["::1", "127.0.0.1"]);
    }

    #[test]
    fn a_bad_value_names_its_flag() {
        let Err(Refusal::Configuration(text)) = parse(&["--timeout", "soon"]) else {
            panic!()
        };
        assert!(text.starts_with("--timeout: "), "{text}");
        assert!(matches!(
            parse(&["--io-threads", "10"]),
            Err(Refusal::Usage(_))
        ));
    }

    #[test]
    fn the_log_and_the_snapshot_have_names_of_their_own_in_their_folder() {
        for name in ["dump.rdb", "dump.rdb.lock", "..", ".", "", "a/b", "/a"] {
            let Err(Refusal::Configuration(text)) = parse(&["--appenddirname", name]) else {
                panic!("{name}")
            };
            assert!(text.starts_with("--appenddirname"), "{text}");
        }
        let other = ["--dbfilename", "other", "--appenddirname", "dump.rdb"];
        assert!(parse(&other).is_ok());
    }

    #[test]
    fn flags_win_over_the_file() {
        let path = std::env::temp_dir().join(format!("tidewheel-cli-{}.conf", std::process::id()));
        std::fs::write(&path, "port 7002\ntimeout 9\n").unwrap();
        let file = path.to_str().unwrap();
        let settings = parse(&["--config", file, "--port", "7003"])
            .unwrap()
            .settings;
        assert_eq!(settings.port, Port::Number(7003));
        assert_eq!(settings.timeout_s, 9);
        std::fs::write(&path, "prot 7002\n").unwrap();
        let Err(Refusal::Configuration(text)) = parse(&["--config", file]) else {
            panic!()
        };
        assert!(text.ends_with("line 1: there is no key 'prot'"), "{text}");
        std::fs::remove_file(&path).unwrap();
    }
}
