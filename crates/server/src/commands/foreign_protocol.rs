//! Recognises other protocols on the command port.
//!
//! An example: any web page may have a browser send `POST / HTTP/1.1` to a port of the user's
//! machine. Each line of the request's body would be an inline command. So the connection is closed
//! at the first line that only another protocol has, and nothing behind it runs.
//!
//! 1. [`by_opening`] looks at the first bytes of input that is no array. Its first line need not be
//!    whole, or end at all.
//! 2. [`by_line`] looks at an inline command before it is run.
//! 3. [`by_name`] looks at a command of either form that does not exist, as the public servers do.
//!
//! Input that can be run as a command is not taken for another protocol. There is one exception: a
//! whole request of HTTP or SIP whose method is the name of a command, as in `COPY /a HTTP/1.1`.
//! Binary protocols need no rule: they have a NUL among their first bytes, and the parser never
//! ends such a line.

use tidewheel_resp::{Args, parse_i64};

/// The name of another protocol.
pub(crate) type ForeignProtocol = &'static str;

/// The first bytes of protocols whose first line may never end.
const OPENINGS: &[(&[u8], ForeignProtocol)] = &[
    (b"\x16\x03", "TLS"),
    (b"SSH-", "SSH"),
    // Version 2, behind two blank lines.
    (b"\0\r\nQUIT\n", "PROXY"),
];

/// Protocols whose requests end with their name, a slash and a version.
const REQUESTS: &[ForeignProtocol] = &["HTTP", "RTSP", "SIP", "ICAP"];

/// Methods of other protocols that are commands here, too.
const SHARED_METHODS: &[&[u8]] = &[
    b"COPY",
    b"INFO",
    b"MOVE",
    b"PUBLISH",
    b"SUBSCRIBE",
    b"UNLINK",
];

/// Returns the protocol whose first bytes the input has, if it is another one.
#[inline]
pub(crate) fn by_opening(input: &[u8]) -> Option<ForeignProtocol> {
    match input.first() {
        None | Some(b'*') => None,
        Some(_) => opening(input),
    }
}

#[cold]
fn opening(input: &[u8]) -> Option<ForeignProtocol> {
    let found = OPENINGS.iter().find(|(first, _)| input.starts_with(first));
    found.map(|(_, protocol)| *protocol)
}

/// Returns the protocol to which a whole line belongs, if it is another one.
#[cold]
pub(crate) fn by_line(args: Args<'_>) -> Option<ForeignProtocol> {
    let name = args.get(0)?;
    let runs = tidewheel_keyspace::resolve(args).is_ok();
    let argument = args.get(1).unwrap_or_default();
    if is_storage(name, args) {
        return Some("memcached");
    }
    if runs {
        let shared = SHARED_METHODS.contains(&name) && is_target(argument);
        return of_request(args).filter(|_| shared);
    }
    if let Some(protocol) = of_request(args) {
        return Some(protocol);
    }
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let greets = ["ehlo", "helo", "lhlo"].into_iter().any(is) && args.len() == 2;
    // A number would be HELLO, mistyped.
    if greets && parse_i64(argument).is_none() {
        return Some("SMTP");
    }
    if name == b"PROXY" && matches!(argument, b"TCP4" | b"TCP6" | b"UNKNOWN") {
        return Some("PROXY");
    }
    // As curl says it, to which a URL may give the lines that follow.
    (is("client") && argument == b"libcurl").then_some("DICT")
}

/// Returns the protocol of a request: a method, a target and a version.
fn of_request(args: Args<'_>) -> Option<ForeignProtocol> {
    let last = args.get(args.len().checked_sub(1)?)?;
    let version = |protocol: &&ForeignProtocol| {
        let rest = last.strip_prefix(protocol.as_bytes())?;
        rest.strip_prefix(b"/")?
            .first()
            .filter(|b| b.is_ascii_digit())
    };
    let mut requests = REQUESTS.iter().filter(|_| args.len() > 2);
    requests
        .find(|protocol| version(protocol).is_some())
        .copied()
}

/// Returns true if a word looks like a request's target: a path, or an address with its scheme.
fn is_target(word: &[u8]) -> bool {
    let scheme = |scheme: &[u8]| word.starts_with(scheme);
    word.first() == Some(&b'/') || scheme(b"http:") || scheme(b"sip:") || scheme(b"sips:")
}

/// Returns true if a line announces a value to memcached. The next line is then a stored value, and
/// may be anything.
fn is_storage(name: &[u8], args: Args<'_>) -> bool {
    let is_number = |at| args.get(at).is_some_and(|arg| parse_i64(arg).is_some());
    match name {
        // set key flags expiry bytes [noreply]
        b"set" | b"add" | b"replace" | b"append" | b"prepend" => {
            (2..5).all(is_number) && (args.len() == 5 || is_quiet(args, 5))
        }
        // cas key flags expiry bytes version [noreply]
        b"cas" => (2..6).all(is_number) && (args.len() == 6 || is_quiet(args, 6)),
        // ms key bytes flag...
        b"ms" => is_number(2),
        _ => false,
    }
}

/// Returns true if a line ends with `noreply`.
fn is_quiet(args: Args<'_>, at: usize) -> bool {
    args.len() == at + 1 && args.get(at) == Some(b"noreply")
}

/// Returns the protocol to which a command's name belongs, if there is no such command.
#[cold]
pub(crate) fn by_name(name: &[u8]) -> Option<ForeignProtocol> {
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    (is("post") || is("host:")).then_some("HTTP")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of other protocols must not become commands unnoticed.
    #[test]
    fn what_is_refused_by_its_name_is_no_command() {
        for name in [&b"post"[..], b"host:"] {
            assert!(by_name(name).is_some());
            assert!(tidewheel_keyspace::lookup(name).is_none());
        }
        let shared = |name: &&[u8]| tidewheel_keyspace::lookup(name).is_some();
        assert!(SHARED_METHODS.iter().all(shared));
    }

    /// No line that memcached's clients send to announce a value can be run here.
    #[test]
    fn announcements_of_values_are_never_commands_that_succeed() {
        for name in ["set", "add", "replace", "append", "prepend", "cas", "ms"] {
            for tail in [
                "0 0 5",
                "1 -1 5 noreply",
                "0 0 5 7",
                "0 0 5 7 noreply",
                "5 T0",
            ] {
                let line = format!("{name} key {tail}");
                let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                let args = Args::from_slices(&words);
                let runs = tidewheel_keyspace::resolve(args).is_ok();
                assert!(by_line(args).is_none() || !runs || name == "set", "{line}");
            }
        }
    }
}
