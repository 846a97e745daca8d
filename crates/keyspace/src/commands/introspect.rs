//! COMMAND: describes the table of commands to clients.

use tidewheel_resp::Writer;

use crate::context::Context;
use crate::error::CommandError;
use crate::glob::glob_match;
use crate::rows::{Argument, ArgumentKind, Command, Flags, KeySpec, all_rows, lookup, rows};

type Outcome = Result<(), CommandError>;

const INVALID_COMMAND: CommandError = CommandError::fixed("ERR Invalid command specified");
const NO_KEYS: CommandError = CommandError::fixed("ERR The command has no key arguments");
const INVALID_COUNT: CommandError =
    CommandError::fixed("ERR Invalid number of arguments specified for command");
const INVALID_ARGUMENTS: CommandError =
    CommandError::fixed("ERR Invalid arguments specified for command");

/// To the public servers DEBUG is one command, without keys.
const KEYLESS: &str = "debug";

pub(crate) fn count(ctx: &mut Context<'_, '_>) -> Outcome {
    ctx.out.integer(rows().count() as i64);
    Ok(())
}

/// COMMAND without a subcommand.
pub(crate) fn all(ctx: &mut Context<'_, '_>) -> Outcome {
    ctx.out.array(rows().count());
    rows().for_each(|row| write_info(row, ctx.out));
    Ok(())
}

pub(crate) fn info(ctx: &mut Context<'_, '_>) -> Outcome {
    if ctx.args.len() == 2 {
        return all(ctx);
    }
    let names = ctx.args.from(2);
    ctx.out.array(names.len());
    for name in names {
        if ctx.out.is_over() {
            break;
        }
        match find(name) {
            Some(row) => write_info(row, ctx.out),
            None => ctx.out.null(),
        }
    }
    Ok(())
}

pub(crate) fn docs(ctx: &mut Context<'_, '_>) -> Outcome {
    let shown: Vec<&Command> = match ctx.args.len() {
        2 => rows().collect(),
        _ => ctx.args.from(2).iter().filter_map(find).collect(),
    };
    ctx.out.map(shown.len());
    for row in shown {
        if ctx.out.is_over() {
            break;
        }
        ctx.out.bulk(row.name.as_bytes());
        write_docs(row, ctx.out);
    }
    Ok(())
}

pub(crate) fn list(ctx: &mut Context<'_, '_>) -> Outcome {
    let pattern = ctx.args.get(4).unwrap_or_default();
    let wanted: Box<dyn Fn(&Command) -> bool + '_> = match ctx.args.len() {
        2 => Box::new(|_| true),
        5 if ctx.is(2, "FILTERBY") && ctx.is(3, "MODULE") => Box::new(|_| false),
        5 if ctx.is(2, "FILTERBY") && ctx.is(3, "ACLCAT") => Box::new(move |row| {
            row.all_categories()
                .any(|name| name.as_bytes()[1..].eq_ignore_ascii_case(pattern))
        }),
        5 if ctx.is(2, "FILTERBY") && ctx.is(3, "PATTERN") => {
            let pattern = pattern.to_ascii_lowercase();
            Box::new(move |row| glob_match(&pattern, row.name.as_bytes()))
        }
        _ => return Err(CommandError::SYNTAX),
    };
    let wanted = all_rows().iter().filter(|row| wanted(row));
    let names: Vec<_> = wanted.map(|row| row.name).collect();
    ctx.out.array(names.len());
    names.iter().for_each(|name| ctx.out.bulk(name.as_bytes()));
    Ok(())
}

pub(crate) fn getkeys(ctx: &mut Context<'_, '_>) -> Outcome {
    let (_, keys) = keys_of_call(ctx)?;
    ctx.out.array(keys.len());
    keys.iter().for_each(|key| ctx.out.bulk(key));
    Ok(())
}

pub(crate) fn getkeysandflags(ctx: &mut Context<'_, '_>) -> Outcome {
    let (row, keys) = keys_of_call(ctx)?;
    let call = ctx.args.from(2);
    ctx.out.array(keys.len());
    for (i, key) in keys.iter().enumerate() {
        ctx.out.array(2);
        ctx.out.bulk(key);
        write_flags(row.use_of_key(i, call), ctx.out);
    }
    Ok(())
}

/// The row of the call that the arguments quote, and its keys.
fn keys_of_call<'b>(
    ctx: &Context<'_, 'b>,
) -> Result<(&'static Command, Vec<&'b [u8]>), CommandError> {
    let call = ctx.args.from(2);
    let named = call.get(0).and_then(lookup);
    if named.is_some_and(|row| row.name == KEYLESS) {
        return Err(NO_KEYS);
    }
    let row = named
        .and_then(|row| row.for_call(call))
        .ok_or(INVALID_COMMAND)?;
    if row.keys == KeySpec::NONE {
        return Err(NO_KEYS);
    }
    if !row.check_arity(call.len()) {
        return Err(INVALID_COUNT);
    }
    let may_have_none = row.flags.has(Flags::NO_MANDATORY_KEYS);
    if !row.keys.counts_right(call, may_have_none) {
        return match may_have_none {
            true => Ok((row, Vec::new())),
            false => Err(INVALID_ARGUMENTS),
        };
    }
    let keys: Vec<_> = row
        .positions_of_keys(call)
        .filter_map(|at| call.get(at))
        .collect();
    if keys.is_empty() && may_have_none {
        return Ok((row, keys));
    }
    // Each use has at least one key, except that of a key behind STORE.
    let least = match row.keys.stored_from {
        0 => row.keys.uses().len(),
        _ => 1,
    };
    if keys.len() < least {
        Err(INVALID_ARGUMENTS)
    } else {
        Ok((row, keys))
    }
}

/// A row by its full name, `parent|name` for subcommands.
fn find(name: &[u8]) -> Option<&'static Command> {
    match name.iter().position(|&byte| byte == b'|') {
        None => lookup(name),
        Some(at) => lookup(&name[..at])?.subcommand(&name[at + 1..]),
    }
}

fn write_info(row: &Command, out: &mut Writer) {
    out.array(10);
    out.bulk(row.name.as_bytes());
    out.integer(row.arity.into());
    let flags: Vec<_> = row.flags.names().collect();
    out.set(flags.len());
    flags.iter().for_each(|flag| out.simple(flag));
    let (first, last, step) = row.keys.range();
    out.integer(first.into());
    out.integer(last.into());
    out.integer(step.into());
    let categories: Vec<_> = row.all_categories().collect();
    out.set(categories.len());
    categories.iter().for_each(|category| out.simple(category));
    out.set(row.tips().count());
    row.tips().for_each(|tip| out.bulk(tip.as_bytes()));
    write_key_specs(&row.keys, out);
    out.array(row.subcommands().len());
    row.subcommands()
        .iter()
        .for_each(|sub| write_info(sub, out));
}

fn write_key_specs(keys: &KeySpec, out: &mut Writer) {
    let uses = keys.uses();
    out.set(uses.len());
    for (i, flags) in uses.iter().enumerate() {
        // Each specification covers one key, and the last one the rest.
        let first = i64::from(keys.first) + i as i64;
        let counted = keys.counted > 0 && i + 1 == uses.len();
        let first = if counted { keys.counted.into() } else { first };
        let last = if i + 1 < uses.len() || keys.stored_from > 0 {
            0
        } else if keys.last < 0 {
            keys.last.into()
        } else {
            i64::from(keys.last) - first
        };
        out.map(3);
        out.bulk(b"flags");
        write_flags(flags, out);
        out.bulk(b"begin_search");
        out.map(2);
        out.bulk(b"type");
        let word = (keys.stored_from > 0).then(|| STORE_WORDS.get(i.wrapping_sub(1)));
        if keys.halves_from > 0 {
            write_word("STREAMS", keys.halves_from, out);
        } else if let Some(word) = word.flatten() {
            write_word(word, keys.stored_from, out);
        } else {
            out.bulk(b"index");
            out.bulk(b"spec");
            out.map(1);
            out.bulk(b"index");
            out.integer(first);
        }
        out.bulk(b"find_keys");
        out.map(2);
        out.bulk(b"type");
        if counted {
            write_counted(keys.counted_step, out);
            continue;
        }
        out.bulk(b"range");
        out.bulk(b"spec");
        out.map(3);
        out.bulk(b"lastkey");
        let halves = keys.halves_from > 0;
        out.integer(if halves { -1 } else { last });
        out.bulk(b"keystep");
        out.integer(if halves { 1 } else { keys.step.into() });
        out.bulk(b"limit");
        out.integer(if halves { 2 } else { 0 });
    }
}

fn write_flags(flags: &str, out: &mut Writer) {
    let flags: Vec<_> = flags.split_whitespace().collect();
    out.set(flags.len());
    flags.iter().for_each(|flag| out.simple(flag));
}

/// The words in front of a key to store in.
const STORE_WORDS: [&str; 2] = ["STORE", "STOREDIST"];

/// The search for a key begins at a word, which stands at an argument or behind it.
fn write_word(word: &str, from: u32, out: &mut Writer) {
    out.bulk(b"keyword");
    out.bulk(b"spec");
    out.map(2);
    out.bulk(b"keyword");
    out.bulk(word.as_bytes());
    out.bulk(b"startfrom");
    out.integer(from.into());
}

/// The number of keys is where the search begins, and the keys follow it.
fn write_counted(step: u32, out: &mut Writer) {
    out.bulk(b"keynum");
    out.bulk(b"spec");
    out.map(3);
    for (name, value) in [("keynumidx", 0), ("firstkey", 1), ("keystep", step)] {
        out.bulk(name.as_bytes());
        out.integer(value.into());
    }
}

fn write_docs(row: &Command, out: &mut Writer) {
    let (arguments, subcommands) = (row.arguments(), row.subcommands());
    let optional = [
        row.replaced_by.is_some(),
        row.replaced_by.is_some(),
        row.replaced_by.is_some(),
        !row.history.is_empty(),
        !arguments.is_empty(),
        !subcommands.is_empty(),
    ];
    out.map(4 + optional.iter().filter(|&&present| present).count());
    for (name, text) in [
        ("summary", row.summary),
        ("since", row.since),
        ("group", row.group().name()),
        ("complexity", row.complexity),
    ] {
        out.bulk(name.as_bytes());
        out.bulk(text.as_bytes());
    }
    if let Some((version, by)) = row.replaced_by {
        out.bulk(b"doc_flags");
        out.set(1);
        out.simple("deprecated");
        out.bulk(b"deprecated_since");
        out.bulk(version.as_bytes());
        out.bulk(b"replaced_by");
        out.bulk(by.as_bytes());
    }
    if !row.history.is_empty() {
        out.bulk(b"history");
        out.set(row.history.len());
        for (version, change) in row.history {
            out.array(2);
            out.bulk(version.as_bytes());
            out.bulk(change.as_bytes());
        }
    }
    if !arguments.is_empty() {
        out.bulk(b"arguments");
        write_arguments(&arguments, out);
    }
    if !subcommands.is_empty() {
        out.bulk(b"subcommands");
        out.map(subcommands.len());
        for sub in subcommands {
            out.bulk(sub.name.as_bytes());
            write_docs(sub, out);
        }
    }
}

/// Recurses as deep as the table nests arguments, which clients cannot change.
fn write_arguments(arguments: &[Argument], out: &mut Writer) {
    out.array(arguments.len());
    for argument in arguments {
        let nests = matches!(argument.kind, ArgumentKind::OneOf | ArgumentKind::Block);
        let flags: Vec<_> = [
            ("optional", argument.optional),
            ("multiple", argument.multiple),
        ]
        .into_iter()
        .filter_map(|(name, set)| set.then_some(name))
        .collect();
        let optional = [
            argument.key_spec.is_some(),
            argument.token.is_some(),
            argument.since.is_some(),
            !flags.is_empty(),
        ];
        // Name, type, and either parts or the text to display.
        out.map(3 + optional.iter().filter(|&&present| present).count());
        out.bulk(b"name");
        out.bulk(argument.name.as_bytes());
        out.bulk(b"type");
        out.bulk(argument.kind.name().as_bytes());
        if !nests {
            out.bulk(b"display_text");
            out.bulk(argument.name.as_bytes());
        }
        if let Some(spec) = argument.key_spec {
            out.bulk(b"key_spec_index");
            out.integer(spec.into());
        }
        if let Some(token) = argument.token {
            out.bulk(b"token");
            out.bulk(token.as_bytes());
        }
        if let Some(since) = argument.since {
            out.bulk(b"since");
            out.bulk(since.as_bytes());
        }
        if !flags.is_empty() {
            out.bulk(b"flags");
            out.set(flags.len());
            flags.iter().for_each(|flag| out.simple(flag));
        }
        if nests {
            out.bulk(b"arguments");
            write_arguments(&argument.parts, out);
        }
    }
}
