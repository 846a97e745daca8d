//! The request parser: any cut of any bytes into reads gives the same commands and the same error
//! as one read, within the limits and within memory proportional to the input.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tidewheel_resp::{Limits, Parsed, Parser, ProtocolError};

/// A vector doubles, a span is 8 bytes, and an inline argument may be 2 bytes long.
const HEAP_PER_BYTE: usize = 9;
const HEAP_MIN: usize = 64;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    limits: Cap,
    /// Lengths of the reads, in turn; what is left comes in one read.
    reads: Vec<u8>,
    bytes: &'a [u8],
}

#[derive(Arbitrary, Debug)]
enum Cap {
    Default,
    Unauthenticated,
    Small {
        args: u8,
        bulk: u8,
        inline: u8,
        unauthenticated: bool,
    },
}

#[derive(Debug, PartialEq)]
struct Outcome {
    commands: Vec<Vec<Vec<u8>>>,
    consumed: usize,
    error: Option<ProtocolError>,
}

fuzz_target!(|input: Input<'_>| {
    let limits = match input.limits {
        Cap::Default => Limits::DEFAULT,
        Cap::Unauthenticated => Limits::UNAUTHENTICATED,
        Cap::Small {
            args,
            bulk,
            inline,
            unauthenticated,
        } => Limits {
            args: args.into(),
            bulk: bulk.into(),
            inline: inline.into(),
            unauthenticated,
        },
    };
    let whole = run(input.bytes, [].into_iter(), &limits);
    let cut = run(input.bytes, input.reads.iter().copied(), &limits);
    assert_eq!(whole, cut);
    // Byte by byte is quadratic in the commands found; short inputs show as much as long ones.
    if input.bytes.len() <= 512 {
        assert_eq!(whole, run(input.bytes, std::iter::repeat(1), &limits));
    }
    for command in &whole.commands {
        for arg in command {
            assert!(arg.len() <= limits.bulk.max(limits.inline));
        }
    }
    // What was understood means the same when a client writes it in full.
    let encoded = encode(&whole.commands);
    let again = run(&encoded, [].into_iter(), &Limits::DEFAULT);
    assert_eq!(again.commands, whole.commands);
    assert_eq!(again.error, None);
});

/// Feeds `bytes` in reads of these lengths, as a connection's buffer grows and drains.
fn run(bytes: &[u8], mut reads: impl Iterator<Item = u8>, limits: &Limits) -> Outcome {
    let mut parser = Parser::new();
    let mut commands = Vec::new();
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = reads
            .next()
            .map_or(bytes.len(), |len| (end + usize::from(len)).min(bytes.len()));
        loop {
            let buf = &bytes[start..end];
            match parser.parse(buf, limits) {
                Err(error) => {
                    assert_eq!(parser.parse(buf, limits), Err(error), "an error stays one");
                    assert!(parser.args(buf).is_empty());
                    return Outcome {
                        commands,
                        consumed: start,
                        error: Some(error),
                    };
                }
                Ok(Parsed::Incomplete { wanted }) => {
                    assert!(wanted >= 1);
                    assert!(parser.args(buf).is_empty() || parser.is_idle());
                    break;
                }
                Ok(Parsed::Complete { consumed }) => {
                    assert!((1..=buf.len()).contains(&consumed));
                    let args = parser.args(buf);
                    assert_eq!(args.iter().count(), args.len());
                    commands.push(args.iter().map(<[u8]>::to_vec).collect());
                    start += consumed;
                }
            }
            assert!(parser.heap_bytes() <= HEAP_MIN + HEAP_PER_BYTE * bytes.len());
        }
    }
    Outcome {
        commands,
        consumed: start,
        error: None,
    }
}

fn encode(commands: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for command in commands {
        bytes.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
        for arg in command {
            bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            bytes.extend_from_slice(arg);
            bytes.extend_from_slice(b"\r\n");
        }
    }
    bytes
}
