//! Hashes.

use tidewheel_resp::{Reply, parse_i64};

use super::{
    Answered, Bytes, Expect, Member, Members, Model, Unit, bulk, error, flat, int, random,
};
use crate::draw::Draw;

impl Draw<'_> {
    /// A command for hashes.
    pub fn hash(&mut self) -> String {
        let (k, f, g, v) = (self.key("h"), self.member(), self.member(), self.member());
        match self.below(22) {
            0..4 => {
                let pairs = self.members().into_iter().map(|m| format!(" {m} {m}x"));
                format!("HSET {k} {f} {v}{}", pairs.collect::<String>())
            }
            4 => format!("HSETNX {k} {f} {v}"),
            5 => format!("HMGET {k} {f} {g} {f}"),
            6 => format!("{} {k} {f}", self.pick(&["HGET", "HEXISTS", "HSTRLEN"])),
            7 => format!("{} {k}", self.pick(&["HGETALL", "HKEYS", "HVALS", "HLEN"])),
            8 | 9 => format!("HDEL {k} {f} {g}"),
            10 => format!("HINCRBY {k} {f} {}", self.near(100)),
            11 => format!("HINCRBYFLOAT {k} {f} {}", self.near(100) as f64 / 4.0),
            12 => format!("HRANDFIELD {k} {}", self.near(6)),
            13 => format!("HRANDFIELD {k} {} WITHVALUES", self.near(6)),
            14 => format!("HRANDFIELD {k}"),
            15 => format!("HGETDEL {k} FIELDS 2 {f} {g}"),
            16 | 17 => format!("HGETEX {k} {} FIELDS 2 {f} {g}", self.lifetime("PERSIST")),
            18 | 19 => {
                let (only, life) = (self.pick(&["", "FNX", "FXX"]), self.lifetime("KEEPTTL"));
                format!("HSETEX {k} {only} {life} FIELDS 2 {f} {v} {g} {v}")
            }
            _ => format!("HSCAN {k} 0 COUNT {}", 1 + self.below(20)),
        }
    }
}

/// What a call does with a lifetime, and where its words end.
#[derive(Clone, Copy, PartialEq)]
enum Life {
    Keep,
    None,
    Until(i128),
}

impl Model {
    pub(super) fn hash(&mut self, w: &[&str], answer: &Reply) -> Answered {
        let told = match w[0] {
            "HSET" => self.hset(w[1], &w[2..]),
            "HSETNX" => self.hsetnx(w[1], w[2], w[3]),
            "HGET" => self.hash_view(w[1], |hash| Expect::Reply(value(hash, w[2]))),
            "HMGET" => self.hash_view(w[1], |hash| {
                flat(w[2..].iter().map(|field| value(hash, field)))
            }),
            "HEXISTS" => self.hash_view(w[1], |hash| int(hash.contains_key(w[2].as_bytes()))),
            "HSTRLEN" => self.hash_view(w[1], |hash| {
                int(hash.get(w[2].as_bytes()).map_or(0, |one| one.value.len()))
            }),
            "HLEN" => self.hash_view(w[1], |hash| int(hash.len())),
            "HGETALL" => self.hash_view(w[1], |hash| {
                let pairs = hash.iter().flat_map(|(key, one)| [key, &one.value]);
                Expect::Groups(2, pairs.cloned().map(Reply::Bulk).collect())
            }),
            "HKEYS" => self.hash_view(w[1], |hash| {
                Expect::Groups(1, hash.keys().cloned().map(Reply::Bulk).collect())
            }),
            "HVALS" => self.hash_view(w[1], |hash| {
                let values = hash.values().map(|one| Reply::Bulk(one.value.clone()));
                Expect::Groups(1, values.collect())
            }),
            "HSCAN" => self.hash_view(w[1], |hash| Expect::Scan(hash.keys().cloned().collect())),
            "HDEL" => self.hdel(w[1], &w[2..]),
            "HINCRBY" => self.hincrby(w[1], w[2], w[3]),
            "HINCRBYFLOAT" => self.hincrbyfloat(w[1], w[2], w[3]),
            "HRANDFIELD" => {
                let (count, width) = (w.get(2).map(|n| n.parse().unwrap()), w.len().max(3) - 2);
                self.hash_view(w[1], |hash| {
                    random::check(answer, count, width, hash.len(), |field, rest| {
                        let found = hash.get(field);
                        found.is_some_and(|one| {
                            rest.iter()
                                .all(|value| *value == Reply::Bulk(one.value.clone()))
                        })
                    })
                })
            }
            "HGETDEL" => self.hgetdel(w[1], &w[4..]),
            "HGETEX" => self.hgetex(w),
            "HSETEX" => self.hsetex(w),
            _ => return None,
        };
        Some(told)
    }

    fn hash_view(
        &mut self,
        key: &str,
        view: impl FnOnce(&Members<Bytes>) -> Expect,
    ) -> Result<Expect, Reply> {
        let none = Members::new();
        Ok(view(self.hash_at(key)?.map_or(&none, |hash| hash)))
    }

    fn hset(&mut self, key: &str, pairs: &[&str]) -> Result<Expect, Reply> {
        let hash = self.hash_or_new(key)?;
        let new = pairs
            .chunks(2)
            .filter(|pair| hash.insert(pair[0].into(), plain(pair[1])).is_none())
            .count();
        self.note(key.as_bytes(), "hset");
        Ok(int(new))
    }

    fn hsetnx(&mut self, key: &str, field: &str, value: &str) -> Result<Expect, Reply> {
        let hash = self.hash_or_new(key)?;
        let absent = !hash.contains_key(field.as_bytes());
        if absent {
            hash.insert(field.into(), plain(value));
            self.note(key.as_bytes(), "hset");
        }
        Ok(int(absent))
    }

    fn hdel(&mut self, key: &str, fields: &[&str]) -> Result<Expect, Reply> {
        let hash = self.hash_or_new(key)?;
        let gone = fields
            .iter()
            .filter(|field| hash.remove(field.as_bytes()).is_some())
            .count();
        if gone > 0 {
            self.note(key.as_bytes(), "hdel");
        }
        Ok(int(gone))
    }

    fn hincrby(&mut self, key: &str, field: &str, by: &str) -> Result<Expect, Reply> {
        let hash = self.hash_or_new(key)?;
        let one = hash.entry(field.into()).or_insert_with(|| plain("0"));
        let Some(old) = parse_i64(&one.value) else {
            return Err(error("ERR hash value is not an integer"));
        };
        let sum = old + by.parse::<i64>().unwrap();
        one.value = sum.to_string().into_bytes();
        self.note(key.as_bytes(), "hincrby");
        Ok(int(sum))
    }

    fn hincrbyfloat(&mut self, key: &str, field: &str, by: &str) -> Result<Expect, Reply> {
        let hash = self.hash_or_new(key)?;
        let one = hash.entry(field.into()).or_insert_with(|| plain("0"));
        let old = std::str::from_utf8(&one.value)
            .ok()
            .and_then(|text| text.parse::<f64>().ok());
        let Some(old) = old else {
            return Err(error("ERR hash value is not a float"));
        };
        let sum = (old + by.parse::<f64>().unwrap() + 0.0).to_string();
        one.value = sum.clone().into_bytes();
        self.note(key.as_bytes(), "hincrbyfloat");
        Ok(Expect::Reply(Reply::Bulk(sum.into_bytes())))
    }

    fn hgetdel(&mut self, key: &str, fields: &[&str]) -> Result<Expect, Reply> {
        let hash = self.hash_or_new(key)?;
        let gone: Vec<_> = fields
            .iter()
            .map(|field| hash.remove(field.as_bytes()))
            .collect();
        if gone.iter().any(Option::is_some) {
            self.note(key.as_bytes(), "hdel");
        }
        Ok(flat(
            gone.into_iter().map(|one| bulk(one.map(|one| one.value))),
        ))
    }

    /// Reads the words behind a key: what becomes of deadlines, a condition, the words of the
    /// fields.
    fn life<'w>(&self, w: &'w [&'w str]) -> Result<(Life, &'w str, &'w [&'w str]), Reply> {
        let (mut life, mut only, mut at) = (None, "", 2);
        while w[at] != "FIELDS" {
            let unit = match w[at] {
                "FNX" | "FXX" => {
                    only = w[at];
                    at += 1;
                    continue;
                }
                "PERSIST" => (Life::None, 1),
                "KEEPTTL" => (Life::Keep, 1),
                name => (self.until(w, at, Unit::of(name))?, 2),
            };
            life = Some(unit.0);
            at += unit.1;
        }
        let none = if w[0] == "HSETEX" {
            Life::None
        } else {
            Life::Keep
        };
        Ok((life.unwrap_or(none), only, &w[at + 2..]))
    }

    fn until(&self, w: &[&str], at: usize, unit: Unit) -> Result<Life, Reply> {
        Ok(Life::Until(self.member_end(w, w[at + 1], unit)?))
    }

    fn hgetex(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        self.of_letter(w[1], "H")?;
        let (life, _, fields) = self.life(w)?;
        let tick = self.tick;
        let hash = self.hash_or_new(w[1])?;
        let (mut told, mut event) = (Vec::new(), None);
        for field in fields {
            told.push(value(hash, field));
            let Some(one) = hash.get_mut(field.as_bytes()) else {
                continue;
            };
            match life {
                Life::Keep => {}
                Life::None if one.deadline.take().is_some() => event = Some("hpersist"),
                Life::None => {}
                Life::Until(at) if at <= tick => {
                    hash.remove(field.as_bytes());
                    event = Some("hdel");
                }
                Life::Until(at) => {
                    one.deadline = Some(at);
                    event = Some("hexpire");
                }
            }
        }
        if let Some(event) = event {
            self.note(w[1].as_bytes(), event);
        }
        Ok(flat(told))
    }

    fn hsetex(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let (life, only, pairs) = self.life(w)?;
        let (tick, key) = (self.tick, w[1].as_bytes());
        let hash = self.hash_or_new(w[1])?;
        let there = pairs
            .chunks(2)
            .filter(|pair| hash.contains_key(pair[0].as_bytes()))
            .count();
        if only == "FNX" && there > 0 || only == "FXX" && there < pairs.len() / 2 {
            return Ok(int(0));
        }
        let dead = matches!(life, Life::Until(at) if at <= tick);
        for pair in pairs.chunks(2) {
            let old = hash.remove(pair[0].as_bytes());
            let deadline = match life {
                Life::Keep => old.and_then(|one| one.deadline),
                Life::None => None,
                Life::Until(at) => Some(at),
            };
            let value = pair[1].into();
            hash.insert(pair[0].into(), Member { value, deadline });
        }
        self.note(key, "hset");
        if dead {
            let hash = self.hash_or_new(w[1])?;
            for pair in pairs.chunks(2) {
                hash.remove(pair[0].as_bytes());
            }
            self.note(key, "hdel");
        } else if matches!(life, Life::Until(_)) {
            self.note(key, "hexpire");
        }
        Ok(int(1))
    }
}

fn plain(value: &str) -> Member<Bytes> {
    Member {
        value: value.into(),
        deadline: None,
    }
}

fn value(hash: &Members<Bytes>, field: &str) -> Reply {
    bulk(hash.get(field.as_bytes()).map(|one| one.value.clone()))
}
