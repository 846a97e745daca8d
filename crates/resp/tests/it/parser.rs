//! The parser against the protocol's rules, one read at a time.

use tidewheel_resp::{Limits, Parsed, Parser, ProtocolError};

type Command = Vec<Vec<u8>>;

/// Parses everything in `bytes`, given whole.
fn commands(bytes: &[u8], limits: &Limits) -> Result<Vec<Command>, ProtocolError> {
    let mut parser = Parser::new();
    let mut found = Vec::new();
    let mut rest = bytes;
    while let Parsed::Complete { consumed } = parser.parse(rest, limits)? {
        found.push(parser.args(rest).iter().map(<[u8]>::to_vec).collect());
        rest = &rest[consumed..];
    }
    Ok(found)
}

fn one(bytes: &[u8]) -> Command {
    let mut found = commands(bytes, &Limits::DEFAULT).expect("a command");
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn refused(bytes: &[u8]) -> String {
    refused_under(bytes, &Limits::DEFAULT)
}

fn refused_under(bytes: &[u8], limits: &Limits) -> String {
    commands(bytes, limits).expect_err("an error").to_string()
}

#[test]
fn arguments_are_cut_where_their_lengths_say() {
    assert_eq!(
        one(b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n"),
        [&b"GET"[..], b"a\r\nb"]
    );
    assert_eq!(one(b"*1\r\n$0\r\n\r\n"), [b""]);
    for len in [1, 9, 10, 99, 100, 12_345, 1_000_000] {
        let value = vec![b'x'; len];
        let bytes = [format!("*1\r\n${len}\r\n").as_bytes(), &value, b"\r\n"].concat();
        assert_eq!(one(&bytes), [value]);
    }
}

#[test]
fn pipelined_commands_come_one_by_one() {
    let bytes = b"*1\r\n$4\r\nPING\r\nECHO hi\r\n\r\n*0\r\n*-1\r\n*1\r\n$4\r\nQUIT\r\n*1";
    let found = commands(bytes, &Limits::DEFAULT).unwrap();
    let none = Command::new();
    let expected: [&[&[u8]]; 6] = [&[b"PING"], &[b"ECHO", b"hi"], &[], &[], &[], &[b"QUIT"]];
    assert_eq!(
        found,
        expected.map(|words| words.iter().map(|w| w.to_vec()).collect::<Vec<_>>())
    );
    assert_eq!(found[2], none);
}

#[test]
fn a_thousand_arguments_arrive_in_order() {
    let mut bytes = b"*1000\r\n".to_vec();
    for i in 0..1000 {
        let word = i.to_string();
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    let expected: Command = (0..1000).map(|i| i.to_string().into_bytes()).collect();
    assert_eq!(one(&bytes), expected);
}

#[test]
fn inline_commands_follow_the_quoting_rules() {
    assert_eq!(
        one(b"set \"a b\" '\\x41' \"\\x41\"\r\n"),
        [&b"set"[..], b"a b", b"\\x41", b"A"]
    );
    assert_eq!(one(b"PING\n"), [b"PING"]);
    assert_eq!(
        refused(b"set \"\"\"test-key\"\"\" test-value\r\n"),
        "unbalanced quotes in request"
    );
    assert_eq!(refused(b"get 'a\n"), "unbalanced quotes in request");
}

#[test]
fn an_inline_line_with_a_nul_runs_nothing() {
    let mut bytes = b"\0FLUSHALL\r\nFLUSHALL\r\n".to_vec();
    assert_eq!(commands(&bytes, &Limits::DEFAULT), Ok(vec![]));
    bytes.resize(Limits::DEFAULT.inline, b'A');
    assert_eq!(commands(&bytes, &Limits::DEFAULT), Ok(vec![]));
    bytes.push(b'A');
    assert_eq!(refused(&bytes), "too big inline request");
}

#[test]
fn wrong_lengths_get_the_protocols_words() {
    for (bytes, text) in [
        (&b"*3000000000\r\n"[..], "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*blabla\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*99999999999999999999999\r\n", "invalid multibulk length"),
        (
            b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n",
            "expected '$', got 'f'",
        ),
        (b"*1\r\nfoo\r\n", "expected '$', got 'f'"),
        (b"*1\r\n\r\n", "expected '$', got ' '"),
        (b"*1\r\n\0\r\n", "expected '$', got '\\x00'"),
        (
            b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n",
            "invalid bulk length",
        ),
        (
            b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n",
            "invalid bulk length",
        ),
        (
            b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n",
            "invalid bulk length",
        ),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$03\r\n", "invalid bulk length"),
        (b"*1\r\n$9223372036854775807\r\n", "invalid bulk length"),
    ] {
        assert_eq!(
            refused(bytes),
            text,
            "{:?}",
            bytes.escape_ascii().to_string()
        );
    }
    assert_eq!(
        commands(b"*-10\r\n*-9223372036854775808\r\n", &Limits::DEFAULT)
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_resp3_type_in_a_request_is_refused() {
    for kind in "%~,#_=(>:+-*!|".bytes() {
        let bytes = [b"*2\r\n$4\r\nECHO\r\n".as_slice(), &[kind], b"1\r\n"].concat();
        assert_eq!(
            refused(&bytes),
            format!("expected '$', got '{}'", char::from(kind))
        );
    }
}

#[test]
fn lines_that_never_end_are_refused_at_the_limit() {
    let limit = Limits::DEFAULT.inline;
    for (start, text) in [
        (&b""[..], "too big inline request"),
        (b"*", "too big mbulk count string"),
        (b"*1\r\n$", "too big bulk count string"),
    ] {
        let mut bytes = start.to_vec();
        let line = start
            .len()
            .saturating_sub(start.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1));
        bytes.resize(start.len() - line + limit, b'1');
        assert_eq!(commands(&bytes, &Limits::DEFAULT), Ok(vec![]));
        bytes.push(b'1');
        assert_eq!(refused(&bytes), text);
    }
}

#[test]
fn a_client_that_has_not_authenticated_is_kept_small() {
    let limits = Limits::UNAUTHENTICATED;
    for (bytes, text) in [
        (&b"*11\r\n"[..], "unauthenticated multibulk length"),
        (b"*1\r\n$16385\r\n", "unauthenticated bulk length"),
        (b"*3000000000\r\n", "invalid multibulk length"),
        (b"*1\r\n$3000000000\r\n", "invalid bulk length"),
    ] {
        assert_eq!(refused_under(bytes, &limits), text);
    }
    assert_eq!(commands(b"*10\r\n$16384\r\n", &limits), Ok(vec![]));
}

#[test]
fn a_configured_bulk_limit_is_not_blamed_on_authentication() {
    let limits = Limits {
        bulk: 1 << 20,
        ..Limits::DEFAULT
    };
    assert_eq!(
        refused_under(b"*1\r\n$1048577\r\n", &limits),
        "invalid bulk length"
    );
}

#[test]
fn a_command_of_four_gibibytes_is_refused_before_it_arrives() {
    let limits = Limits {
        bulk: usize::MAX,
        ..Limits::DEFAULT
    };
    assert_eq!(
        refused_under(b"*2\r\n$0\r\n\r\n$4294967295\r\n", &limits),
        "too big request"
    );
    assert_eq!(
        refused_under(b"*1\r\n$9223372036854775807\r\n", &limits),
        "too big request"
    );
}

#[test]
fn an_announced_length_allocates_nothing() {
    let mut parser = Parser::new();
    let bytes = b"*1048576\r\n$536870912\r\n";
    let wanted = (512 << 20) + 2;
    assert_eq!(
        parser.parse(bytes, &Limits::DEFAULT),
        Ok(Parsed::Incomplete { wanted })
    );
    assert_eq!(parser.heap_bytes(), 0);
}

#[test]
fn memory_of_a_large_command_is_given_back() {
    let mut large = b"*100000\r\n".to_vec();
    large.extend(b"$0\r\n\r\n".repeat(100_000));
    let inline = [&b"x ".repeat(30_000)[..], b"\r\n"].concat();
    let mut parser = Parser::new();
    for (bytes, args) in [(large, 100_000), (inline, 30_000)] {
        assert!(matches!(
            parser.parse(&bytes, &Limits::DEFAULT),
            Ok(Parsed::Complete { .. })
        ));
        assert_eq!(parser.args(&bytes).len(), args);
        assert!(parser.heap_bytes() >= args * 8);
        assert!(matches!(
            parser.parse(b"*0\r\n", &Limits::DEFAULT),
            Ok(Parsed::Complete { .. })
        ));
        assert!(parser.heap_bytes() <= 16 << 10, "{}", parser.heap_bytes());
    }
}

#[test]
fn an_error_stays_an_error() {
    let mut parser = Parser::new();
    let bytes = b"*1\r\n$1\r\na\r\n*1\r\n:1\r\n";
    assert_eq!(
        parser.parse(bytes, &Limits::DEFAULT),
        Ok(Parsed::Complete { consumed: 11 })
    );
    for _ in 0..3 {
        assert_eq!(
            parser.parse(&bytes[11..], &Limits::DEFAULT),
            Err(ProtocolError::ExpectedBulk(b':'))
        );
        assert!(parser.args(&bytes[11..]).is_empty());
        assert!(!parser.is_idle());
    }
}

#[test]
fn an_unfinished_command_has_no_arguments_and_says_what_it_wants() {
    let mut parser = Parser::new();
    assert_eq!(
        parser.parse(b"", &Limits::DEFAULT),
        Ok(Parsed::Incomplete { wanted: 1 })
    );
    assert!(parser.is_idle());
    let bytes = b"*2\r\n$3\r\nGET\r\n$100\r\nabc";
    assert_eq!(
        parser.parse(bytes, &Limits::DEFAULT),
        Ok(Parsed::Incomplete { wanted: 99 })
    );
    assert!(parser.args(bytes).is_empty());
    assert!(!parser.is_idle());
}

/// The parser does not search bytes again that it has searched before, so they may change without
/// being noticed. Searching them after each read would take quadratic time.
#[test]
fn a_long_line_that_comes_in_pieces_is_searched_once() {
    let whole = [b"*1\r\n$", &[b'1'; 30][..]].concat();
    let mut parser = Parser::new();
    let parse = |parser: &mut Parser, bytes: &[u8]| parser.parse(bytes, &Limits::DEFAULT);
    let incomplete = Ok(Parsed::Incomplete { wanted: 1 });
    assert_eq!(parse(&mut parser, &whole[..25]), incomplete);
    let mut changed = whole.clone();
    changed[20] = b'\r';
    assert_eq!(parse(&mut parser, &changed), incomplete);
}

#[test]
fn a_parser_that_is_reset_remembers_nothing() {
    for cut in [
        &b"*2\r\n$4\r\nECHO\r\n$3\r\nab"[..],
        b"*3\r\n",
        b"PIN",
        b"ECHO \0",
        b"*1\r\n$9",
    ] {
        let mut parser = Parser::new();
        assert!(parser.parse(cut, &Limits::DEFAULT).is_ok());
        parser.reset();
        assert!(parser.is_idle());
        assert!(parser.args(cut).is_empty());
        let next = b"*1\r\n$4\r\nPING\r\n";
        let parsed = parser.parse(next, &Limits::DEFAULT);
        assert_eq!(
            parsed,
            Ok(Parsed::Complete {
                consumed: next.len()
            })
        );
        assert_eq!(&parser.args(next)[0], b"PING");
    }
}
