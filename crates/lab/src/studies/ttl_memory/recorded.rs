//! Recorded requests with their times and times to live: the columns of CacheLib's `kvcache` traces.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::request::{FOREVER, MAX_REQUESTS, Request, Value, Verb};
use crate::hit_ratios::trace;

/// The columns that are read; a file may have them in any order, among others.
const COLUMNS: [&str; 6] = ["op_time", "key", "key_size", "op", "size", "ttl"];

/// Reads a file of requests: `op_time` and `ttl` in seconds, sizes in bytes.
pub(super) fn load(path: &Path) -> Result<Vec<Request>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    read(BufReader::new(file)).with_context(|| format!("cannot read {}", path.display()))
}

fn read(reader: impl BufRead) -> Result<Vec<Request>> {
    let mut lines = (1..).zip(reader.lines());
    let Some((_, header)) = lines.next() else {
        bail!("no header line");
    };
    let header = header?;
    let mut columns = [0; COLUMNS.len()];
    for (column, name) in columns.iter_mut().zip(COLUMNS) {
        let found = header.split(',').position(|field| field.trim() == name);
        *column = found.with_context(|| format!("line 1 names no column {name}"))?;
    }
    let mut requests: Vec<Request> = Vec::new();
    let mut first_s = None;
    for (number, line) in lines {
        let line = line?;
        if requests.len() == MAX_REQUESTS {
            bail!("more than {MAX_REQUESTS} requests at line {number}");
        }
        let (at_s, key, verb) = parse(&line, &columns)
            .with_context(|| format!("line {number} is no request: {line:?}"))?;
        let at_ms = at_s
            .checked_sub(*first_s.get_or_insert(at_s))
            .and_then(|since_s| since_s.checked_mul(1_000))
            .filter(|at_ms| requests.last().is_none_or(|last| last.at_ms <= *at_ms))
            .with_context(|| format!("line {number} is out of the order of time: {line:?}"))?;
        requests.push(Request { at_ms, key, verb });
    }
    Ok(requests)
}

/// When, which key, what.
fn parse(line: &str, columns: &[usize; COLUMNS.len()]) -> Result<(u64, u64, Verb)> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let field = |column: usize| {
        let text = fields.get(columns[column]).copied();
        text.filter(|text| !text.is_empty())
            .with_context(|| format!("{} is missing", COLUMNS[column]))
    };
    let number = |column: usize| {
        let text = field(column)?;
        text.parse::<u64>()
            .with_context(|| format!("{} is {text:?}", COLUMNS[column]))
    };
    let bytes = number(2)?.checked_add(number(4)?);
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    let bytes = bytes.context("key and value have 4 GiB or more")?;
    let ttl_ms = match number(5)? {
        0 => FOREVER,
        ttl_s => ttl_s
            .checked_mul(1_000)
            .with_context(|| format!("ttl is {ttl_s}"))?,
    };
    let verb = match field(3)? {
        // What a read that missed would have stored is not recorded beside it: it is a SET of its own.
        "GET" | "GET_LEASE" => Verb::Get(None),
        "SET" | "SET_LEASE" => Verb::Set(Value { bytes, ttl_ms }),
        "DELETE" => Verb::Delete,
        other => bail!("op is {other:?}"),
    };
    Ok((number(0)?, trace::hash(field(1)?.as_bytes()), verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "op_time,key,key_size,op,op_count,size,ttl";

    fn with(lines: &str) -> Result<Vec<Request>> {
        read(format!("{HEADER}\n{lines}").as_bytes())
    }

    #[test]
    fn times_sizes_and_ttls_are_read() {
        let text = "700,a,10,SET,1,90,60\n700,a,10,GET,3,90,0\n702,b,1,SET_LEASE,1,1,0\n703,a,10,DELETE,1,0,0\n";
        let requests = with(text).expect("reads");
        let times: Vec<u64> = requests.iter().map(|request| request.at_ms).collect();
        assert_eq!(times, [0, 0, 2_000, 3_000]);
        let value = |bytes, ttl_ms| Verb::Set(Value { bytes, ttl_ms });
        let verbs: Vec<Verb> = requests.iter().map(|request| request.verb).collect();
        assert_eq!(
            verbs,
            [
                value(100, 60_000),
                Verb::Get(None),
                value(2, FOREVER),
                Verb::Delete
            ]
        );
        assert!(requests[0].key == requests[3].key && requests[0].key != requests[2].key);
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number() {
        let good = "700,a,10,SET,1,90,60";
        for bad in [
            "",
            "700,a,10,SET,1,90",
            "700,a,10,SET,1,90,",
            "x,a,10,SET,1,90,60",
            "701,a,10,SET,1,-9,60",
            "701,a,10,SET,1,4294967290,60",
            "701,a,10,SET,1,90,99999999999999999",
            "701,a,10,POP,1,90,60",
            "699,a,10,GET,1,90,0",
        ] {
            let error = with(&format!("{good}\n{bad}\n")).expect_err(bad);
            assert!(format!("{error:#}").contains("line 3"), "{bad}: {error:#}");
        }
        let error = read("op_time,key\n".as_bytes()).expect_err("columns are missing");
        assert!(error.to_string().contains("key_size"), "{error}");
        assert!(read("".as_bytes()).is_err());
    }
}
