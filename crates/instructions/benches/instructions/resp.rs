//! Commands cut out of a receive buffer, replies written.

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group};
use tidewheel_resp::{Limits, Parsed, Parser, Protocol, Writer};

use crate::input::{OPERATIONS, order};
use crate::keyspace::{VALUE, command, key};

/// Commands that arrive in one read.
const PIPELINE: usize = 16;

/// Receive buffers.
fn reads(commands: usize) -> Vec<Vec<u8>> {
    let gets: Vec<Vec<u8>> = order()
        .into_iter()
        .map(|i| command(&[b"GET", &key(i)]))
        .collect();
    gets.chunks(commands).map(<[Vec<u8>]>::concat).collect()
}

fn single() -> (Parser, Vec<Vec<u8>>) {
    (Parser::new(), reads(1))
}

fn pipelined() -> (Parser, Vec<Vec<u8>>) {
    (Parser::new(), reads(PIPELINE))
}

fn writer() -> Writer {
    Writer::new(Protocol::Resp2)
}

#[library_benchmark]
#[bench::parse_get(setup = single)]
#[bench::parse_get_of_16(setup = pipelined)]
fn parses((mut parser, reads): (Parser, Vec<Vec<u8>>)) -> (Parser, Vec<Vec<u8>>) {
    for read in &reads {
        let mut at = 0;
        while at < read.len() {
            let rest = &read[at..];
            let Ok(Parsed::Complete { consumed }) = parser.parse(rest, &Limits::DEFAULT) else {
                panic!("the commands are whole and valid");
            };
            black_box(parser.args(rest));
            at += consumed;
        }
    }
    (parser, reads)
}

#[library_benchmark]
#[bench::write_bulk(setup = writer)]
fn writes(mut out: Writer) -> Writer {
    for _ in 0..OPERATIONS {
        out.bulk(black_box(VALUE));
        black_box(out.as_bytes());
        out.clear();
    }
    out
}

library_benchmark_group!(name = protocol, benchmarks = [parses, writes]);
