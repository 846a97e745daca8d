//! One key: its type, its time left, its size, and the deadlines of its members.

use serde_json::{Value, json};
use tidewheel_resp::Reply;

use super::ask::{Asker, NoAnswer};
use super::parts::{bytes, integer, items, name, part, plain, text};

/// Members that are looked at for deadlines.
const MEMBERS: usize = 100;

/// The commands of a type: its length, and if members may have deadlines, a walk over them, the
/// word before them, their time left, and whether values stand between them.
struct Kind {
    name: &'static str,
    length: &'static str,
    members: Option<(&'static str, &'static str, &'static str, usize)>,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "string",
        length: "STRLEN",
        members: None,
    },
    Kind {
        name: "list",
        length: "LLEN",
        members: None,
    },
    Kind {
        name: "stream",
        length: "XLEN",
        members: None,
    },
    Kind {
        name: "hash",
        length: "HLEN",
        members: Some(("HSCAN", "FIELDS", "HPTTL", 2)),
    },
    Kind {
        name: "set",
        length: "SCARD",
        members: Some(("SSCAN", "MEMBERS", "SPTTL", 1)),
    },
    Kind {
        name: "zset",
        length: "ZCARD",
        members: Some(("ZSCAN", "MEMBERS", "ZPTTL", 2)),
    },
];

/// Tells what there is to know of a key.
pub(super) async fn inspect(asker: &mut Asker, key: &[u8]) -> Result<Value, NoAnswer> {
    let kind = part(asker, &[b"TYPE", key], plain).await?;
    let mut told = json!({ "key": name(key), "type": kind });
    if kind == "none" {
        return Ok(told);
    }
    told["ms"] = part(asker, &[b"PTTL", key], plain).await?;
    told["bytes"] = part(asker, &[b"MEMORY", b"USAGE", key], plain).await?;
    told["encoding"] = part(asker, &[b"OBJECT", b"ENCODING", key], plain).await?;
    let Some(kind) = KINDS.iter().find(|of| kind == of.name) else {
        return Ok(told);
    };
    told["length"] = part(asker, &[kind.length.as_bytes(), key], plain).await?;
    if let Some((scan, word, left, step)) = kind.members {
        told["members"] = match asker
            .ask(&[scan.as_bytes(), key, b"0", b"COUNT", b"100"])
            .await
        {
            Ok(found) => {
                let found = items(&found).get(1).map_or(&[][..], items);
                let members: Vec<&[u8]> = found
                    .iter()
                    .step_by(step)
                    .map(bytes)
                    .take(MEMBERS)
                    .collect();
                let number = members.len().to_string();
                let mut words = vec![left.as_bytes(), key, word.as_bytes(), number.as_bytes()];
                words.extend(&members);
                part(asker, &words, |reply| deadlines(&members, reply)).await?
            }
            Err(NoAnswer::Denied(why) | NoAnswer::Fails(why)) => json!({ "no": why }),
            Err(NoAnswer::Unknown) => return Err(NoAnswer::Unknown),
        };
    }
    Ok(told)
}

/// How many members were looked at, and those that have a deadline, the next one first.
fn deadlines(members: &[&[u8]], lefts: &Reply) -> Value {
    let pairs = members.iter().zip(items(lefts));
    let mut timed: Vec<(i64, String)> = pairs
        .filter_map(|(member, left)| Some((integer(left)?, text(member))))
        .filter(|(left, _)| *left >= 0)
        .collect();
    timed.sort();
    let timed = timed
        .iter()
        .map(|(left, member)| json!({ "member": member, "ms": left }));
    json!({ "looked": members.len(), "timed": timed.collect::<Value>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_with_a_deadline_are_told_the_next_one_first() {
        let members: [&[u8]; 3] = [b"late", b"never", b"soon"];
        let lefts = Reply::Array([900, -1, 5].map(Reply::Integer).to_vec());
        let told = deadlines(&members, &lefts);
        assert_eq!(told["looked"], 3);
        let expected = json!([{"member": "soon", "ms": 5}, {"member": "late", "ms": 900}]);
        assert_eq!(told["timed"], expected);
    }
}
