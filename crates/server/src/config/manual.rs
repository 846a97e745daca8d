//! The manual page, in the language of troff.

use clap::{Arg, Command};

use super::flags::command;
use super::settings::Settings;
use super::table::{ChangeTime, ConfigKey, Group, keys_of};

/// Returns the manual page, `tidewheel(1)`.
pub(crate) fn page() -> String {
    let (command, defaults) = (command(), Settings::default());
    let mut page = format!(
        ".TH TIDEWHEEL 1 \"\" \"tidewheel {}\"\n",
        env!("CARGO_PKG_VERSION")
    );
    page.push_str(OPENING);
    page.push_str(".SH OPTIONS\n");
    let general = |arg: &&Arg| arg.get_help_heading().is_none();
    for arg in command.get_arguments().filter(general) {
        page.push_str(&option(arg));
    }
    page.push_str(SETTINGS);
    for group in Group::ALL {
        page.push_str(&format!(".SS {}\n", text(group.title())));
        for key in keys_of(group) {
            page.push_str(&setting(key, &defaults));
        }
    }
    page.push_str(".SH TOOLS\n");
    tools(&command, &mut page);
    page.push_str(CLOSING);
    page
}

const OPENING: &str = r".SH NAME
tidewheel \- a Redis-protocol server whose keys expire on time
.SH SYNOPSIS
.B tidewheel
.RI [ FILE ]
.RB [ \-\-\fISETTING\fR
.IR VALUE ]...
.br
.B tidewheel check
.I FILE
.br
.B tidewheel dump
.I FILE
.br
.B tidewheel log print
.I FOLDER
.br
.B tidewheel log repair
.I FOLDER
.br
.B tidewheel health
.RI [ ADDRESS ]
.br
.B tidewheel completions
.I SHELL
.br
.B tidewheel top
.RB [ \-h
.IR HOST ]
.RB [ \-p
.IR PORT ]
.SH DESCRIPTION
The server speaks the Redis protocol, RESP2 and RESP3. What is due is gone within a millisecond or two, although nobody
touches it.
.PP
It stays in the foreground. It listens on the loopback interface, at port 6379, unless it is told otherwise.
";

const SETTINGS: &str = r".SH SETTINGS
Each has a flag,
.BR \-\-maxmemory ,
a line in the file,
.BR maxmemory\~1gb ,
and a variable in the environment,
.BR TIDEWHEEL_MAXMEMORY .
Flags win over the environment, the environment over the file.
.B CONFIG SET
changes those that are not read at the start, and
.B CONFIG REWRITE
writes what is in force into the file.
";

const CLOSING: &str = r".SH SIGNALS
.TP
.BR SIGTERM ,\~ SIGINT
The server saves what it keeps, and ends. The second one ends it at once.
.TP
.B SIGHUP
The file is read again. Settings whose lines have changed are applied; the log names those that need a start. If
anything is wrong, the log says what, and nothing is changed.
.TP
.B SIGUSR1
The file of the log
.RB ( \-\-logfile )
is opened again, after somebody has moved it away.
.SH EXIT STATUS
0 after a request to stop, 1 after a failure, 2 if the command line or the settings are wrong.
.SH SEE ALSO
.BR redis\-cli (1)
";

/// Writes a flag that is no setting.
fn option(arg: &Arg) -> String {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let names: Vec<_> = short.into_iter().chain(long).collect();
    let takes = arg.get_action().takes_values();
    let value = arg.get_value_names().filter(|_| takes).unwrap_or_default();
    let value = value
        .first()
        .map_or(String::new(), |value| value.to_string());
    let help = arg.get_help().map_or(String::new(), ToString::to_string);
    entry(&names.join(", "), &value, &help)
}

fn setting(key: &ConfigKey, defaults: &Settings) -> String {
    let default = match (key.get)(defaults) {
        empty if empty.is_empty() => "none".to_owned(),
        default => default,
    };
    let when = match key.change {
        ChangeTime::Live => "",
        ChangeTime::AtStart => " Read at the start.",
    };
    let name = match key.name {
        "port" => "-p, --port".to_owned(),
        name => format!("--{name}"),
    };
    let help = format!("{}. Default: {default}.{when}", key.help);
    entry(&name, key.value, &help)
}

/// Writes what a word of the command line means.
fn entry(name: &str, value: &str, help: &str) -> String {
    let blank = if name.is_empty() || value.is_empty() {
        ""
    } else {
        " "
    };
    format!(
        ".TP\n\\fB{}\\fR{blank}\\fI{}\\fR\n{}\n",
        text(name),
        text(value),
        text(help)
    )
}

/// Writes the tools of a command, and theirs.
fn tools(command: &Command, page: &mut String) {
    for tool in command.get_subcommands().filter(|tool| !tool.is_hide_set()) {
        let about = tool.get_about().map_or(String::new(), ToString::to_string);
        let path = match command.get_name() {
            "tidewheel" => tool.get_name().to_owned(),
            above => format!("{above} {}", tool.get_name()),
        };
        page.push_str(&entry(&path, "", &about));
        tools(tool, page);
    }
}

/// Returns a text in which troff finds no request and no escape.
fn text(text: &str) -> String {
    let text = text.replace('\\', "\\(rs").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys;

    #[test]
    fn the_manual_has_every_setting_and_every_tool() {
        let page = page();
        for key in keys() {
            let name = format!("\\-\\-{}\\fR", text(key.name));
            assert_eq!(page.matches(&name).count(), 1, "{}", key.name);
        }
        let mut tools = String::new();
        super::tools(&command(), &mut tools);
        assert!(page.contains(&tools));
        let entries = tools.lines().filter_map(|line| line.strip_prefix("\\fB"));
        for (tool, _) in entries.filter_map(|entry| entry.split_once('\\')) {
            let usage = format!(".B tidewheel {tool}\n");
            assert!(page.contains(&usage) || tool == "log", "{tool}");
        }
        assert!(page.contains(".B tidewheel log repair\n"));
        for option in [
            "\\-\\-config",
            "\\-\\-print\\-config",
            "\\-v, \\-\\-version",
        ] {
            assert!(page.contains(option), "{option}");
        }
    }

    #[test]
    fn nothing_in_a_text_is_a_request() {
        assert_eq!(text(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(text("a-b \\n"), "a\\-b \\(rsn");
        let requests = page();
        let mut requests = requests.lines().filter(|line| line.starts_with('.'));
        let known = [
            "TH", "SH", "SS", "TP", "B ", "BR ", "I ", "IR ", "RB ", "RI ", "br", "PP",
        ];
        assert!(requests.all(|line| known.iter().any(|known| line[1..].starts_with(known))));
    }
}
