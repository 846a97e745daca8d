//! The request parser: any cut of any bytes into reads gives the same commands and the same error
//! as one read, within the limits and within memory proportional to the input.

use tidewheel_resp::{Limits, Parsed, Parser, ProtocolError, Writer};

use crate::draw::Draw;

/// A vector doubles, a span is 8 bytes, and an inline argument may be 2 bytes long.
const HEAP_PER_BYTE: usize = 9;
const HEAP_MIN: usize = 64;

/// Bytes that come in reads, and the limits of who takes them.
#[derive(Debug)]
pub struct Requests<'a> {
    limits: Limits,
    /// Lengths of the reads, in turn; what is left comes in one read.
    reads: Vec<u8>,
    bytes: &'a [u8],
}

#[derive(Debug, PartialEq)]
struct Outcome {
    commands: Vec<Vec<Vec<u8>>>,
    consumed: usize,
    error: Option<ProtocolError>,
}

impl<'a> Requests<'a> {
    /// Draws limits, reads and bytes.
    pub fn draw(bytes: &'a [u8]) -> Self {
        let mut draw = Draw::new(bytes);
        let limits = match draw.below(3) {
            0 => Limits::DEFAULT,
            1 => Limits::UNAUTHENTICATED,
            _ => Limits {
                args: draw.byte().into(),
                bulk: draw.byte().into(),
                inline: draw.byte().into(),
                unauthenticated: draw.once_in(2),
            },
        };
        Self {
            limits,
            reads: draw.few(32, Draw::byte),
            bytes: draw.rest(),
        }
    }

    /// Compares the ways to read them.
    pub fn check(&self) {
        let (bytes, limits) = (self.bytes, &self.limits);
        let whole = run(bytes, [].into_iter(), limits);
        assert_eq!(whole, run(bytes, self.reads.iter().copied(), limits));
        // Byte by byte is quadratic in the commands found; short inputs show as much as long ones.
        if bytes.len() <= 512 {
            assert_eq!(whole, run(bytes, std::iter::repeat(1), limits));
        }
        for arg in whole.commands.iter().flatten() {
            assert!(arg.len() <= limits.bulk.max(limits.inline));
        }
        // What was understood means the same when a client writes it in full.
        let mut encoded = Writer::new(tidewheel_resp::Protocol::Resp2);
        for command in &whole.commands {
            encoded.array(command.len());
            command.iter().for_each(|arg| encoded.bulk(arg));
        }
        let again = run(encoded.as_bytes(), [].into_iter(), &Limits::DEFAULT);
        assert_eq!(again.commands, whole.commands);
        assert_eq!(again.error, None);
    }
}

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
