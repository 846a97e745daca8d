//! Recorded requests with their times and times to live: the columns of CacheLib's `kvcache` traces.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::request::{MAX_REQUESTS, Object, Request, Verb};
use crate::hit_ratios::trace;
use crate::studies::expiry::strategies::NEVER;

/// The columns that are read; a file may have them in any order, among others.
#[derive(Debug, Deserialize)]
struct Row {
    op_time: u64,
    key: String,
    key_size: u32,
    op: String,
    size: u32,
    ttl: u64,
}

/// Reads a file of requests: `op_time` and `ttl` in seconds, sizes in bytes.
pub(super) fn load(path: &Path) -> Result<Vec<Request>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    read(file).with_context(|| format!("cannot read {}", path.display()))
}

fn read(reader: impl Read) -> Result<Vec<Request>> {
    let mut requests: Vec<Request> = Vec::new();
    let mut first_s = None;
    let mut rows = csv::Reader::from_reader(reader);
    for (number, row) in (2..).zip(rows.deserialize()) {
        let row: Row = row.with_context(|| format!("line {number} is no request"))?;
        ensure!(
            requests.len() < MAX_REQUESTS,
            "more than {MAX_REQUESTS} requests at line {number}"
        );
        let since_s = row.op_time.checked_sub(*first_s.get_or_insert(row.op_time));
        let at_ms = since_s
            .and_then(|since_s| since_s.checked_mul(1_000))
            .filter(|at_ms| requests.last().is_none_or(|last| last.at_ms <= *at_ms))
            .with_context(|| format!("line {number} is out of the order of time"))?;
        let verb = verb(&row, at_ms).with_context(|| format!("line {number} is no request"))?;
        let key = trace::hash(row.key.as_bytes());
        requests.push(Request { at_ms, key, verb });
    }
    ensure!(!requests.is_empty(), "no requests");
    Ok(requests)
}

fn verb(row: &Row, at_ms: u64) -> Result<Verb> {
    let bytes = row.key_size.checked_add(row.size);
    let bytes = bytes.context("key and value have 4 GiB or more")?;
    let ttl_ms = row.ttl.checked_mul(1_000).context("the ttl is too long")?;
    let deadline_ms = match ttl_ms {
        0 => NEVER,
        _ => at_ms.saturating_add(ttl_ms),
    };
    Ok(match row.op.as_str() {
        // What a read that missed would have stored is not recorded beside it: it is a SET of its own.
        "GET" | "GET_LEASE" => Verb::Get(None),
        "SET" | "SET_LEASE" => Verb::Set(Object { bytes, deadline_ms }),
        "DELETE" => Verb::Delete,
        other => bail!("op is {other:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lines: &str) -> Result<Vec<Request>> {
        read(format!("op_time,key,key_size,op,op_count,size,ttl\n{lines}").as_bytes())
    }

    #[test]
    fn times_sizes_and_ttls_are_read() {
        let text = "700,a,10,SET,1,90,60\n700,a,10,GET,3,90,0\n702,b,1,SET_LEASE,1,1,0\n703,a,10,DELETE,1,0,0\n";
        let requests = with(text).expect("reads");
        let object = |bytes, deadline_ms| Verb::Set(Object { bytes, deadline_ms });
        let expected = [
            (0, object(100, 60_000)),
            (0, Verb::Get(None)),
            (2_000, object(2, NEVER)),
            (3_000, Verb::Delete),
        ];
        let read = requests.iter().map(|it| (it.at_ms, it.verb));
        assert!(read.eq(expected), "{requests:?}");
        assert!(requests[0].key == requests[3].key && requests[0].key != requests[2].key);
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number() {
        for bad in [
            "700,a,10,SET,1,90",
            "700,a,10,SET,1,90,",
            "x,a,10,SET,1,90,60",
            "701,a,10,SET,1,-9,60",
            "701,a,10,SET,1,4294967290,60",
            "701,a,10,SET,1,90,99999999999999999",
            "701,a,10,POP,1,90,60",
            "699,a,10,GET,1,90,0",
        ] {
            let error = with(&format!("700,a,10,SET,1,90,60\n{bad}\n")).expect_err(bad);
            assert!(format!("{error:#}").contains("line 3"), "{bad}: {error:#}");
        }
        let error = read("op_time,key\n1,a\n".as_bytes()).expect_err("columns are missing");
        assert!(format!("{error:#}").contains("key_size"), "{error:#}");
        assert!(read("".as_bytes()).is_err());
    }
}
