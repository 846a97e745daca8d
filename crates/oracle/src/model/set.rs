//! Sets.

use std::collections::BTreeSet;

use tidewheel_resp::Reply;

use super::expect::leaves;
use super::{Answered, Bytes, Expect, Kind, Member, Members, Model, flat, int, random};
use crate::draw::Draw;

impl Draw<'_> {
    /// A command for sets.
    pub fn set(&mut self) -> String {
        let (k, other, m) = (self.key("s"), self.key("s"), self.member());
        match self.below(20) {
            0..4 => format!("SADD {k} {m} {}", self.members().join(" ")),
            4 => format!(
                "SADD {k} {}",
                self.few(8, Self::member).join(" ") + " " + &m
            ),
            5 | 6 => format!("SREM {k} {m} {}", self.member()),
            7 => format!("SMOVE {k} {other} {m}"),
            8 => format!("SPOP {k}"),
            9 => format!("SPOP {k} {}", self.below(4)),
            10 => format!("SRANDMEMBER {k} {}", self.near(6)),
            11 => format!("SRANDMEMBER {k}"),
            12 => format!("{} {k}", self.pick(&["SCARD", "SMEMBERS"])),
            13 => match self.once_in(2) {
                true => format!("SISMEMBER {k} {m}"),
                false => format!("SMISMEMBER {k} {m} {}", self.member()),
            },
            14..18 => {
                let (name, more) = (
                    self.pick(&["SINTER", "SUNION", "SDIFF"]),
                    self.few(3, |draw| draw.key("s")).join(" "),
                );
                match self.once_in(2) {
                    true => format!("{name} {k} {more}"),
                    false => format!("{name}STORE {other} {k} {more}"),
                }
            }
            18 => {
                let more = self.few(3, |draw| draw.key("s"));
                let (n, limit) = (1 + more.len(), self.below(9));
                format!("SINTERCARD {n} {k} {} LIMIT {limit}", more.join(" "))
            }
            _ => format!("SSCAN {k} 0 COUNT {}", 1 + self.below(20)),
        }
    }
}

impl Model {
    pub(super) fn set(&mut self, w: &[&str], answer: &Reply) -> Answered {
        let told = match w[0] {
            "SADD" => self.sadd(w[1], &w[2..]),
            "SREM" => self.srem(w[1], &w[2..]).map(int),
            "SMOVE" => self.smove(w[1], w[2], w[3]),
            "SPOP" => self.spop(w, answer),
            "SRANDMEMBER" => {
                let count = w.get(2).map(|n| n.parse().unwrap());
                self.set_view(w[1], |set| {
                    random::check(answer, count, 1, set.len(), |member, _| {
                        set.contains_key(member)
                    })
                })
            }
            "SCARD" => self.set_view(w[1], |set| int(set.len())),
            "SISMEMBER" => self.set_view(w[1], |set| int(set.contains_key(w[2].as_bytes()))),
            "SMISMEMBER" => self.set_view(w[1], |set| {
                flat(
                    w[2..]
                        .iter()
                        .map(|member| super::integer(set.contains_key(member.as_bytes()))),
                )
            }),
            "SMEMBERS" => self.set_view(w[1], |set| all(set.keys().cloned())),
            "SSCAN" => self.set_view(w[1], |set| Expect::Scan(set.keys().cloned().collect())),
            "SINTER" | "SUNION" | "SDIFF" => self.combined(w[0], &w[1..]).map(all),
            "SINTERSTORE" => self.store_set("sinterstore", w),
            "SUNIONSTORE" => self.store_set("sunionstore", w),
            "SDIFFSTORE" => self.store_set("sdiffstore", w),
            "SINTERCARD" => self.combined("SINTER", &w[2..w.len() - 2]).map(|common| {
                let limit = match w[w.len() - 1].parse().unwrap() {
                    0 => usize::MAX,
                    limit => limit,
                };
                int(common.len().min(limit))
            }),
            _ => return None,
        };
        Some(told)
    }

    fn set_view(
        &mut self,
        key: &str,
        view: impl FnOnce(&Members<()>) -> Expect,
    ) -> Result<Expect, Reply> {
        let none = Members::new();
        Ok(view(self.set_at(key)?.map_or(&none, |set| set)))
    }

    fn sadd(&mut self, key: &str, members: &[&str]) -> Result<Expect, Reply> {
        let set = self.set_or_new(key)?;
        let before = set.len();
        for member in members {
            set.entry((*member).into()).or_insert_with(plain);
        }
        let new = set.len() - before;
        if new > 0 {
            self.note(key.as_bytes(), "sadd");
        }
        Ok(int(new))
    }

    fn srem(&mut self, key: &str, members: &[&str]) -> Result<usize, Reply> {
        let set = self.set_or_new(key)?;
        let gone = members
            .iter()
            .filter(|member| set.remove(member.as_bytes()).is_some())
            .count();
        if gone > 0 {
            self.note(key.as_bytes(), "srem");
        }
        Ok(gone)
    }

    fn smove(&mut self, from: &str, to: &str, member: &str) -> Result<Expect, Reply> {
        let Some(set) = self.set_at(from)? else {
            return Ok(int(0));
        };
        let there = set.contains_key(member.as_bytes());
        self.set_at(to)?;
        if there && from != to {
            self.srem(from, &[member])?;
            self.sadd(to, &[member])?;
        }
        Ok(int(there))
    }

    /// Takes out what the answer names.
    fn spop(&mut self, w: &[&str], answer: &Reply) -> Result<Expect, Reply> {
        let count = w.get(2).map(|n| n.parse::<usize>().unwrap());
        let set = self.set_or_new(w[1])?;
        let wanted = count.unwrap_or(1).min(set.len());
        if *answer == Reply::Null {
            assert!(count.is_none() && wanted == 0, "nobody was popped");
            return Ok(Expect::AsAnswered);
        }
        assert_eq!(leaves(answer).len(), wanted, "members popped");
        for member in random::named(answer, 1, |_, _| true) {
            assert!(
                set.remove(&member).is_some(),
                "{member:?} was popped, and was not there"
            );
        }
        if wanted > 0 {
            self.note(w[1].as_bytes(), "spop");
        }
        Ok(Expect::AsAnswered)
    }

    fn combined(&mut self, name: &str, keys: &[&str]) -> Result<BTreeSet<Bytes>, Reply> {
        let mut sets = Vec::new();
        for key in keys {
            let set = self.set_at(key)?;
            sets.push(set.map_or_else(BTreeSet::new, |set| set.keys().cloned().collect()));
        }
        let join = |a: BTreeSet<Bytes>, b: BTreeSet<Bytes>| match name {
            "SINTER" => &a & &b,
            "SUNION" => &a | &b,
            _ => &a - &b,
        };
        Ok(sets.into_iter().reduce(join).unwrap_or_default())
    }

    fn store_set(&mut self, event: &'static str, w: &[&str]) -> Result<Expect, Reply> {
        let name = w[0].trim_end_matches("STORE");
        let members = self.combined(name, &w[2..])?;
        let len = members.len();
        let set = members.into_iter().map(|member| (member, plain()));
        self.store(w[1], Kind::Set(set.collect()), event);
        Ok(int(len))
    }
}

fn plain() -> Member<()> {
    Member {
        value: (),
        deadline: None,
    }
}

fn all(members: impl IntoIterator<Item = Bytes>) -> Expect {
    Expect::Groups(1, members.into_iter().map(Reply::Bulk).collect())
}
