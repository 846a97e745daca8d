//! HyperLogLogs: strings that count members about.

use std::collections::BTreeSet;

use tidewheel_resp::Reply;

use super::{Answered, Bytes, Expect, Kind, Model, error, int, ok};
use crate::draw::Draw;

impl Draw<'_> {
    pub(crate) fn log(&mut self) -> String {
        let (k, a, b) = (self.key("p"), self.key("p"), self.key("p"));
        match self.below(5) {
            0..3 => format!("PFADD {k} {}", self.members().join(" ")),
            3 => format!("PFCOUNT {k} {a}"),
            _ => format!("PFMERGE {k} {a} {b}"),
        }
    }
}

impl Model {
    pub(super) fn log(&mut self, w: &[&str], answer: &Reply) -> Answered {
        Some(match w[0] {
            "PFADD" => self.pfadd(w[1], &w[2..], answer),
            "PFCOUNT" => self
                .logged(&w[1..])
                .map(|all| Expect::About(all.len() as f64)),
            "PFMERGE" => self.logged(&w[1..]).map(|all| {
                self.write_log(w[1], all);
                Expect::Reply(ok())
            }),
            _ => return None,
        })
    }

    /// Whether nobody knows what a key's HyperLogLog counts: another command has changed its bytes.
    pub(super) fn is_vague_log(&mut self, key: &str) -> bool {
        let text = self.text_at(key).ok().flatten().cloned();
        text.is_some_and(|text| text.starts_with(b"HYLL") && !self.logs.contains_key(&text))
    }

    /// What was added to some keys together.
    fn logged(&mut self, keys: &[&str]) -> Result<BTreeSet<Bytes>, Reply> {
        let mut all = BTreeSet::new();
        for key in keys {
            let Some(text) = self.text_at(key)?.cloned() else {
                continue;
            };
            let Some(log) = self.logs.get(&text) else {
                return Err(error(
                    "WRONGTYPE Key is not a valid HyperLogLog string value.",
                ));
            };
            all.extend(log.iter().cloned());
        }
        Ok(all)
    }

    /// Whether it has changed depends on hashes: but only something new changes it.
    fn pfadd(&mut self, key: &str, members: &[&str], answer: &Reply) -> Result<Expect, Reply> {
        let existed = self.text_at(key)?.is_some();
        let mut log = self.logged(&[key])?;
        let before = log.len();
        log.extend(members.iter().map(|member| member.as_bytes().to_vec()));
        let told = if log.len() == before {
            int(!existed)
        } else {
            Expect::AsAnswered
        };
        if *answer == super::integer(1) {
            self.write_log(key, log);
        }
        Ok(told)
    }

    /// The bytes are not known yet.
    fn write_log(&mut self, key: &str, log: BTreeSet<Bytes>) {
        let unknown = format!("log {}", self.logs.len()).into_bytes();
        self.logs.insert(unknown.clone(), log);
        match self.text_or_new(key) {
            Ok(text) => *text = unknown,
            Err(_) => self.put(key.as_bytes(), Kind::Text(unknown), None),
        }
        self.note(key.as_bytes(), "pfadd");
    }

    /// The bytes of a key's HyperLogLog are learnt.
    pub fn learn(&mut self, key: &str, bytes: Bytes) {
        if let Ok(Some(text)) = self.text_at(key)
            && let unknown = std::mem::replace(text, bytes.clone())
            && let Some(log) = self.logs.get(&unknown).cloned()
        {
            self.logs.insert(bytes, log);
        }
    }
}
