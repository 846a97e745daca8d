//! A call as logs and monitors show it: shortened, and without passwords.

use tidewheel_keyspace::Command;
use tidewheel_resp::Args;

use crate::config::{self, ConfigKey};

/// The most arguments of a call that are kept; the last of them may give the number of the others.
const ARGS_MAX: usize = 32;

/// The most bytes of an argument that are kept.
const BYTES_MAX: usize = 128;

/// The text that replaces a secret.
pub(crate) const REDACTED: &[u8] = b"(redacted)";

/// Returns an argument, or the text that replaces it if it is a secret.
pub(crate) fn shown<'a>(row: &Command, args: Args<'a>, at: usize) -> &'a [u8] {
    if is_secret(row.name, args, at) {
        REDACTED
    } else {
        args.get(at).unwrap_or_default()
    }
}

/// Returns the call as the logs keep it.
pub(crate) fn cut(row: &Command, args: Args<'_>) -> Vec<Vec<u8>> {
    let whole = if args.len() > ARGS_MAX {
        ARGS_MAX - 1
    } else {
        args.len()
    };
    let mut kept: Vec<Vec<u8>> = (0..whole)
        .map(|at| cut_argument(shown(row, args, at)))
        .collect();
    if whole < args.len() {
        let more = args.len() - whole;
        kept.push(format!("... ({more} more arguments)").into_bytes());
    }
    kept
}

/// Returns an argument, or a client's name, as the logs keep it.
pub(crate) fn cut_argument(argument: &[u8]) -> Vec<u8> {
    let Some((head, rest)) = argument.split_at_checked(BYTES_MAX) else {
        return argument.to_vec();
    };
    let mut kept = head.to_vec();
    if !rest.is_empty() {
        kept.extend_from_slice(format!("... ({} more bytes)", rest.len()).as_bytes());
    }
    kept
}

/// Returns true if an argument is a password, or the user's name beside one.
fn is_secret(name: &str, args: Args<'_>, at: usize) -> bool {
    match name {
        "auth" => at > 0,
        "acl|setuser" | "acl|deluser" | "acl|getuser" => at > 1,
        "hello" => (2.max(at.saturating_sub(2))..at).any(|before| is_word(args, before, "auth")),
        // The words after the user's name are another call, such as AUTH.
        "acl|dryrun" => at > 3,
        "config|set" => at > 2 && at % 2 == 1 && is_secret_setting(args, at - 1),
        _ => false,
    }
}

fn is_secret_setting(args: Args<'_>, at: usize) -> bool {
    let name = args.get(at).and_then(|name| str::from_utf8(name).ok());
    let key = name.and_then(config::key);
    key.is_some_and(ConfigKey::is_secret)
}

fn is_word(args: Args<'_>, at: usize, word: &str) -> bool {
    args.get(at)
        .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(words: &[&str]) -> Vec<String> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let args = Args::from_slices(&words);
        let row = tidewheel_keyspace::resolve(args).expect("a command");
        let kept = cut(row, args).into_iter();
        kept.map(|arg| String::from_utf8(arg).expect("text"))
            .collect()
    }

    #[test]
    fn passwords_are_never_shown() {
        let hidden = "(redacted)";
        assert_eq!(seen(&["AUTH", "p"]), ["AUTH", hidden]);
        assert_eq!(
            seen(&["acl", "setuser", "u", ">p"]),
            ["acl", "setuser", hidden, hidden]
        );
        assert_eq!(seen(&["auth", "u", "p"]), ["auth", hidden, hidden]);
        assert_eq!(
            seen(&["HELLO", "3", "AUTH", "u", "p", "SETNAME", "n"]),
            ["HELLO", "3", "AUTH", hidden, hidden, "SETNAME", "n"]
        );
        assert_eq!(
            seen(&["HELLO", "3", "SETNAME", "n", "auth", "u", "p"]),
            ["HELLO", "3", "SETNAME", "n", "auth", hidden, hidden]
        );
        assert_eq!(
            seen(&["CONFIG", "SET", "timeout", "1", "RequirePass", "p"]),
            ["CONFIG", "SET", "timeout", "1", "RequirePass", hidden]
        );
        assert_eq!(
            seen(&["CONFIG", "SET", "tls-key-file-pass", "p"]),
            ["CONFIG", "SET", "tls-key-file-pass", hidden]
        );
        assert_eq!(
            seen(&["ACL", "DRYRUN", "u", "AUTH", "p"]),
            ["ACL", "DRYRUN", "u", "AUTH", hidden]
        );
        assert_eq!(seen(&["SET", "auth", "p"]), ["SET", "auth", "p"]);
    }

    #[test]
    fn long_calls_are_cut_and_say_so() {
        let long = "k".repeat(200);
        let kept = format!("{}... (72 more bytes)", "k".repeat(128));
        assert_eq!(seen(&["GET", &long]), ["GET", &kept]);
        let exact = "k".repeat(128);
        assert_eq!(seen(&["GET", &exact]), ["GET", &exact]);
        let many: Vec<&str> = std::iter::once("DEL").chain(["a"; 31]).collect();
        assert_eq!(seen(&many), many);
        let many: Vec<&str> = std::iter::once("DEL").chain(["a"; 60]).collect();
        let cut = seen(&many);
        assert_eq!(
            (cut.len(), cut[31].as_str()),
            (32, "... (30 more arguments)")
        );
    }
}
