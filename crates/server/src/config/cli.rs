//! Reads the command line, and takes other values from the environment and the file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap_complete::Shell;

use super::config_file::ConfigFile;
use super::file::{self, FileSettings};
use super::flags::command;
use super::foreign::ForeignLines;
use super::manual;
use super::named_file::open_regular;
use super::print::{FileForm, as_file};
use super::settings::Settings;
use super::table::keys;
use super::top::{TopCall, top_call};

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The server.
    Server(Box<Invocation>),
    /// Whether the server could be started so.
    Verdict(Box<Invocation>),
    /// A tool, which starts no server.
    Tool(ToolCall),
    /// This text, and no server.
    Text(String),
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
    Health {
        address: SocketAddr,
    },
    Top(TopCall),
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
    pub(crate) file: Option<ConfigFile>,
    /// Lines of the file that mean nothing here.
    pub(crate) foreign: ForeignLines,
}

/// The reason for which the server cannot be started as asked.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Wrong flags, or a request for help or the version. The error prints itself.
    Usage(clap::Error),
    /// All that is not accepted.
    Configuration(Vec<String>),
}

/// Reads flags, then the environment, then the file, then defaults: the first that names a key
/// wins.
pub(crate) fn asked(arguments: impl IntoIterator<Item = OsString>) -> Result<Asked, Refusal> {
    let matches = command()
        .try_get_matches_from(arguments)
        .map_err(|why| Refusal::Usage(said_plainly(why)))?;
    if let Some(text) = made_text(&matches) {
        return Ok(Asked::Text(text));
    }
    if let Some(tool) = tool(&matches) {
        return Ok(Asked::Tool(tool));
    }
    let invocation = invocation(&matches)?;
    Ok(if matches.get_flag("print-config") {
        Asked::Text(as_file(&invocation.settings, FileForm::InForce))
    } else if matches.get_flag("check-config") {
        Asked::Verdict(Box::new(invocation))
    } else {
        Asked::Server(Box::new(invocation))
    })
}

/// Says of a second word, such as that of `chek dump.rdb`, why it is none. The parser takes it for
/// a tool that conflicts with FILE.
fn said_plainly(why: clap::Error) -> clap::Error {
    match (why.kind(), why.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::ArgumentConflict, Some(ContextValue::String(word))) => {
            let mut command = command();
            let tools = command.get_subcommands().filter(|tool| !tool.is_hide_set());
            let tools: Vec<_> = tools.map(clap::Command::get_name).collect();
            let tools = tools.join(", ");
            let why = format!(
                "'{word}' cannot stand here: a server takes one FILE, and a tool's name comes first: {tools}\n"
            );
            command.error(ErrorKind::UnknownArgument, why)
        }
        _ => why,
    }
}

impl Invocation {
    /// Says that the settings are right, and which lines of the file are none.
    pub(crate) fn verdict(&self) -> String {
        let foreign = self.foreign.text().map_or(String::new(), |text| {
            format!("these lines mean nothing here: {text}\n")
        });
        format!("{foreign}the configuration is right\n")
    }
}

/// Returns the text that packages take from the program, if one is asked for.
fn made_text(matches: &ArgMatches) -> Option<String> {
    match matches.subcommand()? {
        ("man", _) => Some(manual::page()),
        ("completions", matches) => {
            let mut script = Vec::new();
            let shell = matches.get_one::<Shell>("shell")?;
            clap_complete::generate(*shell, &mut command(), "tidewheel", &mut script);
            String::from_utf8(script).ok()
        }
        _ => None,
    }
}

fn tool(matches: &ArgMatches) -> Option<ToolCall> {
    let (name, matches) = matches.subcommand()?;
    match name {
        "log" => return log_tool(matches),
        "top" => return top_call(matches).map(ToolCall::Top),
        "health" => {
            let address = *matches.get_one("address")?;
            return Some(ToolCall::Health { address });
        }
        _ => {}
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
    let path = file_of(matches)?;
    let (said, mut wrong) = match path.map(file::read_file) {
        None => (FileSettings::default(), Vec::new()),
        Some(Ok(said)) => (said, Vec::new()),
        Some(Err(wrong)) => (FileSettings::default(), wrong),
    };
    let mut settings = said.settings.clone();
    let mut given = BTreeSet::new();
    for source in [ValueSource::EnvVariable, ValueSource::CommandLine] {
        apply(matches, source, &mut settings, &mut given, &mut wrong);
    }
    if wrong.is_empty() {
        wrong.extend(complete(&mut settings).err());
    }
    if !wrong.is_empty() {
        return Err(Refusal::Configuration(wrong));
    }
    let path = path.filter(|path| **path != *Path::new("-"));
    Ok(Invocation {
        settings,
        foreign: said.foreign.clone(),
        file: path.map(|path| ConfigFile::new(path, given, said)),
    })
}

/// Returns the file that the command line names, or the environment.
fn file_of(matches: &ArgMatches) -> Result<Option<&Path>, Refusal> {
    let named = |name: &str| matches.get_one::<PathBuf>(name).map(PathBuf::as_path);
    let by_flag = matches.value_source("config") == Some(ValueSource::CommandLine);
    match named("file") {
        Some(_) if by_flag => {
            let why = "name one file: FILE or --config FILE\n";
            let error = command().error(ErrorKind::ArgumentConflict, why);
            Err(Refusal::Usage(error))
        }
        file => Ok(file.or(named("config"))),
    }
}

/// Reads the users' file, computes what follows from other settings, and says what cannot be
/// together.
fn complete(settings: &mut Settings) -> Result<(), String> {
    if !settings.user_file.is_empty() {
        settings.users = file::read_users(settings, open_regular)?;
    }
    settings.derive();
    settings.check()
}

/// Reads what one source gives. Adds the names of its keys, and what is wrong with it.
fn apply(
    matches: &ArgMatches,
    source: ValueSource,
    settings: &mut Settings,
    given: &mut BTreeSet<&'static str>,
    wrong: &mut Vec<String>,
) {
    for key in keys() {
        if matches.value_source(key.name) != Some(source) {
            continue;
        }
        given.insert(key.name);
        let values = matches.get_many::<String>(key.name).unwrap_or_default();
        let text: Vec<&str> = values.map(String::as_str).collect();
        let name = match source {
            ValueSource::EnvVariable => key.env(),
            _ => format!("--{}", key.name),
        };
        wrong.extend(key.read(settings, &text.join(" "), &name).err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Port;

    fn parse(words: &[&str]) -> Result<Invocation, Refusal> {
        match ask(words)? {
            Asked::Server(invocation) => Ok(*invocation),
            other => panic!("{other:?}"),
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
            (
                &["health"],
                ToolCall::Health {
                    address: SocketAddr::from(([127, 0, 0, 1], 8379)),
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
            &["health", "localhost"],
        ] {
            assert!(matches!(ask(wrong), Err(Refusal::Usage(_))), "{wrong:?}");
        }
        let Err(Refusal::Usage(why)) = ask(&["chek", "a.rdb"]) else {
            panic!("there is no such tool");
        };
        assert!(
            why.to_string().contains("'a.rdb' cannot stand here"),
            "{why}"
        );
        assert!(why.to_string().contains("check, dump, log"), "{why}");
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
        let words = ["--timeout", "soon", "--requirepass", "x", "--shards", "3"];
        let Err(Refusal::Configuration(mut wrong)) = parse(&words) else {
            panic!()
        };
        let expected = [
            "--timeout 'soon': argument couldn't be parsed into an integer",
            "--shards '3': argument must be a power of two",
        ];
        wrong.sort_by_key(|why| why.contains("shards"));
        assert_eq!(wrong, expected);
        assert!(matches!(
            parse(&["--io-threads", "10"]),
            Err(Refusal::Usage(_))
        ));
    }

    #[test]
    fn the_log_and_the_snapshot_have_names_of_their_own_in_their_folder() {
        for name in ["dump.rdb", "dump.rdb.lock", "..", ".", "", "a/b", "/a"] {
            let Err(Refusal::Configuration(wrong)) = parse(&["--appenddirname", name]) else {
                panic!("{name}")
            };
            assert!(wrong[0].starts_with("--appenddirname"), "{wrong:?}");
        }
        let other = ["--dbfilename", "other", "--appenddirname", "dump.rdb"];
        assert!(parse(&other).is_ok());
    }

    #[test]
    fn flags_win_over_the_file() {
        let path = std::env::temp_dir().join(format!("tidewheel-cli-{}.conf", std::process::id()));
        std::fs::write(&path, "port 7002\ntimeout 9\n").unwrap();
        let file = path.to_str().unwrap();
        for words in [
            &["--config", file, "--port", "7003"][..],
            &[file, "-p", "7003"],
        ] {
            let read = parse(words).unwrap();
            assert_eq!(read.settings.port, Port::Number(7003));
            assert_eq!(read.settings.timeout_s, 9);
            let known = read.file.expect("a file");
            assert_eq!(known.path(), path);
            assert!(known.is_overruled("port") && !known.is_overruled("timeout"));
            assert_eq!(known.said.lock().settings.port, Port::Number(7002));
        }
        let twice = parse(&[file, "--config", file]);
        assert!(matches!(twice, Err(Refusal::Usage(_))));
        std::fs::write(&path, "prot 7002\n").unwrap();
        let Err(Refusal::Configuration(wrong)) = parse(&["--config", file, "--port", "x"]) else {
            panic!()
        };
        assert!(
            wrong[0].ends_with("line 1: there is no key 'prot': did you mean 'port'?"),
            "{wrong:?}"
        );
        assert!(wrong[1].starts_with("--port 'x': "), "{wrong:?}");
        std::fs::remove_file(&path).unwrap();
    }
}
