//! The words of the command line: flags made of the table of keys, and tools.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};
use clap_complete::Shell;

use super::settings::Settings;
use super::table::{ConfigKey, Group, keys_of};
use super::top::top_command;

/// Returns what the program's command line may be.
pub(crate) fn command() -> Command {
    let defaults = Settings::default();
    let flags = Group::ALL
        .iter()
        .flat_map(|group| keys_of(*group))
        .map(|key| flag_of(key, &defaults));
    Command::new("tidewheel")
        .version(env!("CARGO_PKG_VERSION"))
        // The last one wins, so that scripts can append to a list of flags.
        .args_override_self(true)
        .about("A Redis-protocol server whose keys expire on time.")
        .after_help(
            "Flags win over the environment, the environment over the file.\n\
             A line of the file is a flag without its dashes and its value: `maxmemory 1gb`.\n\
             Each flag has a variable in the environment: that of --port is TIDEWHEEL_PORT.\n\
             SIGHUP reads the file again, SIGUSR1 opens the file of the log again.",
        )
        .disable_version_flag(true)
        .arg(
            Arg::new("version")
                .short('v')
                .short_alias('V')
                .long("version")
                .action(ArgAction::Version)
                .help("Print the version"),
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Read settings from FILE; - is standard input"),
        )
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .env("TIDEWHEEL_CONFIG")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Read settings from FILE, as without --config"),
        )
        .arg(flag("check-config").help("Check the settings, name all that is wrong, and exit"))
        .arg(
            flag("print-config").help(
                "Print the settings as a file, with comments and without passwords, and exit",
            ),
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
        .subcommand(top_command())
        .subcommand(
            Command::new("health")
                .about("Ask a server whether it is well: 0 if it is, 1 if not")
                .arg(
                    Arg::new("address")
                        .value_name("ADDRESS")
                        .default_value("127.0.0.1:8379")
                        .value_parser(clap::value_parser!(SocketAddr))
                        .help("Where it is served over HTTP (--http-bind, --http-port)"),
                ),
        )
        .subcommand(
            Command::new("man")
                .about("Print the manual page")
                .hide(true),
        )
        .subcommand(
            Command::new("completions")
                .about("Print what a shell needs to complete words")
                .arg(
                    Arg::new("shell")
                        .value_name("SHELL")
                        .required(true)
                        .value_parser(clap::value_parser!(Shell)),
                ),
        )
}

/// Returns the flag of a key.
fn flag_of(key: &'static ConfigKey, defaults: &Settings) -> Arg {
    let default = (key.get)(defaults);
    let shown = if default.is_empty() { "none" } else { &default };
    let arg = Arg::new(key.name)
        .long(key.name)
        .aliases(key.old_name())
        .value_name(key.value)
        .env(key.env())
        .hide_env(true)
        // Lists may be given as several words, as in the file.
        .num_args(if key.is_list() { 1..=8 } else { 1..=1 })
        .allow_negative_numbers(true)
        .allow_hyphen_values(key.is_secret())
        .help_heading(key.group.title())
        .help(format!("{} [default: {shown}]", key.help));
    match key.name {
        "port" => arg.short('p'),
        _ => arg,
    }
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
