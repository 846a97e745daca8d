//! HELP of any command with subcommands, from their rows.

use tidewheel_resp::Writer;

use crate::context::Context;
use crate::error::CommandError;
use crate::rows::{Argument, ArgumentKind, Command};

pub(crate) fn help(ctx: &mut Context<'_, '_>) -> Result<(), CommandError> {
    if let Some(parent) = ctx.row.and_then(Command::parent) {
        write_help(parent, ctx.out);
    }
    Ok(())
}

/// Writes the HELP reply of a command that has subcommands: an array of lines.
pub fn write_help(command: &Command, out: &mut Writer) {
    let mut lines = vec![format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        command.name.to_ascii_uppercase()
    )];
    let subcommands = command.subcommands().iter();
    for sub in subcommands.filter(|sub| sub.short_name() != "help") {
        let mut line = sub.short_name().to_ascii_uppercase();
        for argument in sub.arguments() {
            line.push(' ');
            line.push_str(&syntax(&argument));
        }
        lines.push(line);
        lines.push(format!("    {}", sub.summary));
    }
    lines.push("HELP".to_owned());
    lines.push("    Print this help.".to_owned());
    out.array(lines.len());
    for line in lines {
        out.simple(&line);
    }
}

/// One argument as manuals write it, e.g. `[MATCH <pattern>]`.
fn syntax(argument: &Argument) -> String {
    let mut text = match argument.kind {
        ArgumentKind::PureToken => argument.token.unwrap_or(&argument.name).to_owned(),
        ArgumentKind::OneOf => {
            let parts: Vec<_> = argument.parts.iter().map(syntax).collect();
            let parts = parts.join("|");
            if argument.optional {
                parts
            } else {
                format!("({parts})")
            }
        }
        ArgumentKind::Block => {
            let parts: Vec<_> = argument.parts.iter().map(syntax).collect();
            parts.join(" ")
        }
        _ => format!("<{}>", argument.name),
    };
    if let Some(token) = argument.token
        && argument.kind != ArgumentKind::PureToken
    {
        text = format!("{token} {text}");
    }
    if argument.multiple {
        text = format!("{text} [{text} ...]");
    }
    if argument.optional {
        format!("[{text}]")
    } else {
        text
    }
}
