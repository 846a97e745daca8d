//! Any cut of any bytes into reads, or into batches, gives the same commands and the same error as
//! one read.

use proptest::collection::vec;
use proptest::prelude::*;
use tidewheel_resp::{Batch, Limits, Parsed, Parser, ProtocolError};

type Outcome = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Feeds `bytes` in reads that end at `cuts`, as a connection's buffer would grow and drain.
fn run(bytes: &[u8], cuts: &[usize], limits: &Limits) -> Outcome {
    let mut parser = Parser::new();
    let mut found = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        loop {
            let buf = &bytes[start..end];
            match parser.parse(buf, limits) {
                Err(error) => return (found, Some(error)),
                Ok(Parsed::Incomplete { wanted }) => {
                    assert!(wanted >= 1);
                    break;
                }
                Ok(Parsed::Complete { consumed }) => {
                    assert!((1..=buf.len()).contains(&consumed));
                    found.push(parser.args(buf).iter().map(<[u8]>::to_vec).collect());
                    start += consumed;
                }
            }
            // A vector doubles, a span is 8 bytes, and an inline argument may be 2 bytes long.
            assert!(
                parser.heap_bytes() <= 64 + 9 * bytes.len(),
                "{}",
                parser.heap_bytes()
            );
        }
    }
    (found, None)
}

/// As [`run`] in one read, with batches of up to `most` commands wherever there are any.
fn run_in_batches(bytes: &[u8], most: usize, limits: &Limits) -> Outcome {
    let (mut parser, mut batch) = (Parser::new(), Batch::default());
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let buf = &bytes[start..];
        batch.fill(buf, limits, most);
        assert!(batch.len() <= most);
        for i in 0..batch.len() {
            found.push(batch.args(buf, i).iter().map(<[u8]>::to_vec).collect());
        }
        if !batch.is_empty() {
            start += batch.end(batch.len() - 1);
            continue;
        }
        match parser.parse(buf, limits) {
            Err(error) => return (found, Some(error)),
            Ok(Parsed::Incomplete { .. }) => return (found, None),
            Ok(Parsed::Complete { consumed }) => {
                found.push(parser.args(buf).iter().map(<[u8]>::to_vec).collect());
                start += consumed;
            }
        }
    }
}

fn encode(command: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for arg in command {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Pieces that make up requests, right and wrong ones.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(vec(any::<u8>(), 0..20), 0..5).prop_map(|command| encode(&command)),
        vec(vec(any::<u8>(), 0..200), 1..3).prop_map(|command| encode(&command)),
        "(GET|SET|\"a b\"|'c'|\"\\\\x41\"|\"| |x){0,8}\r?\n".prop_map(String::into_bytes),
        "[*$][-+0-9]{0,12}\r\n".prop_map(String::into_bytes),
        "[*$\r\n0-9: \"'-]{0,8}".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..8),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    vec(piece(), 0..8).prop_map(|pieces| pieces.concat())
}

fn cuts(bytes: &[u8], seeds: &[prop::sample::Index]) -> Vec<usize> {
    let mut cuts: Vec<usize> = seeds
        .iter()
        .map(|seed| seed.index(bytes.len() + 1))
        .collect();
    cuts.sort_unstable();
    cuts
}

fn limits() -> impl Strategy<Value = Limits> {
    prop_oneof![
        Just(Limits::DEFAULT),
        Just(Limits::UNAUTHENTICATED),
        (0_usize..6, 0_usize..40, 0_usize..40, any::<bool>()).prop_map(
            |(args, bulk, inline, unauthenticated)| Limits {
                args,
                bulk,
                inline,
                unauthenticated
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_into_reads_gives_the_same_commands(
        bytes in stream(), seeds in vec(any::<prop::sample::Index>(), 0..12), limits in limits()
    ) {
        let whole = run(&bytes, &[], &limits);
        prop_assert_eq!(&run(&bytes, &cuts(&bytes, &seeds), &limits), &whole);
        let every: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(&run(&bytes, &every, &limits), &whole);
        for most in [1, 2, 32] {
            prop_assert_eq!(&run_in_batches(&bytes, most, &limits), &whole);
        }
    }

    #[test]
    fn random_bytes_neither_panic_nor_pass_the_limits(bytes in vec(any::<u8>(), 0..400), limits in limits()) {
        let (found, _) = run(&bytes, &[], &limits);
        for command in found {
            for arg in command {
                prop_assert!(arg.len() <= limits.bulk.max(limits.inline));
            }
        }
    }

    #[test]
    fn commands_round_trip(commands in vec(vec(vec(any::<u8>(), 0..300), 1..12), 0..8)) {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        prop_assert_eq!(run(&bytes, &[], &Limits::DEFAULT), (commands, None));
    }

    #[test]
    fn a_quoted_inline_command_round_trips(words in vec(vec(any::<u8>(), 0..20), 1..6)) {
        let mut line = Vec::new();
        for word in &words {
            line.push(b'"');
            for byte in word {
                line.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
            }
            line.extend_from_slice(b"\" ");
        }
        line.extend_from_slice(b"\r\n");
        prop_assert_eq!(run(&line, &[], &Limits::DEFAULT), (vec![words], None));
    }
}
