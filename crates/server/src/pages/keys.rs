//! Keys among many: those that are due in a window of time, and those that take most memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use serde_json::{Value, json};
use tidewheel_resp::Reply;

use super::ask::{Asker, NoAnswer};
use super::desk::Desk;
use super::parts::{integer, name, text};
use super::query::Query;
use super::walk::Walk;

/// Keys that are told of a window.
const SAMPLES: usize = 12;

/// Prefixes that are told of a window.
const PREFIXES: usize = 10;

/// Keys that are told as the largest.
const LARGEST: usize = 12;

/// The longest prefix.
const PREFIX_MAX: usize = 64;

/// Looks for keys that are due from `from` to `to` milliseconds from now: how many of those that
/// it has looked at, some of them, and their most frequent prefixes.
pub(super) async fn due(desk: &Desk, asker: &mut Asker, query: &Query) -> Result<Value, NoAnswer> {
    let from = query.number("from").unwrap_or(0);
    let to = query.number("to").unwrap_or(u64::MAX);
    let mut walk = Walk::begin(desk, query.bytes("cursor"))?;
    let (mut found, mut samples) = (0_u64, Vec::new());
    let mut prefixes: HashMap<Vec<u8>, u64> = HashMap::new();
    while let Some(keys) = walk.step(asker).await? {
        let lefts = of_each(asker, &[b"PTTL"], &keys).await?;
        for (key, left) in keys.into_iter().zip(lefts) {
            let left = integer(&left).and_then(|left| u64::try_from(left).ok());
            let Some(left) = left.filter(|left| (from..to).contains(left)) else {
                continue;
            };
            found += 1;
            *prefixes.entry(prefix(&key).to_vec()).or_default() += 1;
            if samples.len() < SAMPLES {
                samples.push((left, key));
            }
        }
    }
    samples.sort();
    let mut prefixes: Vec<(u64, Vec<u8>)> = prefixes.into_iter().map(|(p, n)| (n, p)).collect();
    prefixes.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    prefixes.truncate(PREFIXES);
    let named = |(keys, prefix): &(u64, Vec<u8>)| json!({ "prefix": text(prefix), "keys": keys });
    let sample = |(left, key): &(u64, Vec<u8>)| json!({ "key": name(key), "ms": left });
    Ok(json!({
        "looked": walk.looked,
        "cursor": text(&walk.cursor),
        "found": found,
        "prefixes": prefixes.iter().map(named).collect::<Value>(),
        "samples": samples.iter().map(sample).collect::<Value>(),
    }))
}

/// Looks for the keys that take most memory.
pub(super) async fn largest(
    desk: &Desk,
    asker: &mut Asker,
    query: &Query,
) -> Result<Value, NoAnswer> {
    let mut walk = Walk::begin(desk, query.bytes("cursor"))?;
    let mut largest: BinaryHeap<Reverse<(i64, Vec<u8>)>> = BinaryHeap::new();
    while let Some(keys) = walk.step(asker).await? {
        let sizes = of_each(asker, &[b"MEMORY", b"USAGE"], &keys).await?;
        for (key, size) in keys.into_iter().zip(sizes) {
            if let Some(size) = integer(&size) {
                largest.push(Reverse((size, key)));
            }
            if largest.len() > LARGEST {
                largest.pop();
            }
        }
    }
    let largest: Vec<(i64, Vec<u8>)> = largest
        .into_sorted_vec()
        .into_iter()
        .map(|of| of.0)
        .collect();
    let keys: Vec<Vec<u8>> = largest.iter().map(|(_, key)| key.clone()).collect();
    let types = of_each(asker, &[b"TYPE"], &keys).await?;
    let shown = largest.iter().zip(types).map(|((size, key), kind)| {
        let kind = match kind {
            Reply::Simple(kind) => kind,
            _ => String::new(),
        };
        json!({ "key": name(key), "bytes": size, "type": kind })
    });
    Ok(json!({
        "looked": walk.looked,
        "cursor": text(&walk.cursor),
        "keys": shown.collect::<Value>(),
    }))
}

/// Asks the same of each key. What may not be asked of one key is an error in its place; what may
/// be asked of none is one for all.
async fn of_each(
    asker: &mut Asker,
    words: &[&[u8]],
    keys: &[Vec<u8>],
) -> Result<Vec<Reply>, NoAnswer> {
    let calls: Vec<Vec<&[u8]>> = keys
        .iter()
        .map(|key| [words, &[key.as_slice()]].concat())
        .collect();
    let replies = asker.call_all(&calls).await?;
    let denied = |reply: &Reply| matches!(reply, Reply::Error(why) if why.starts_with("NOPERM"));
    if !replies.is_empty() && replies.iter().all(denied) {
        let why = "the user may not ask this of keys: ";
        return Err(NoAnswer::Denied(format!(
            "{why}{}",
            text(&words.join(&b" "[..]))
        )));
    }
    Ok(replies)
}

/// A key's prefix: up to its first colon.
fn prefix(key: &[u8]) -> &[u8] {
    let colon = key.iter().take(PREFIX_MAX).position(|byte| *byte == b':');
    colon.map_or(b"", |colon| &key[..=colon])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_with_the_first_colon() {
        assert_eq!(prefix(b"user:1:name"), b"user:");
        assert_eq!(prefix(b"user"), b"");
        assert_eq!(prefix(&[b'x'; 100]), b"");
    }
}
