//! Sorted sets.

use std::collections::BTreeMap;

use tidewheel_resp::Reply;

use super::expect::double;
use super::list::with_key;
use super::{
    Answered, Bytes, Expect, Kind, Member, Members, Model, error, flat, int, integer, random,
    wrong_type,
};
use crate::draw::Draw;

type Scored = (Bytes, f64);

impl Draw<'_> {
    /// A command for sorted sets.
    pub fn zset(&mut self) -> String {
        let (k, other, m) = (self.key("z"), self.key("z"), self.member());
        match self.below(32) {
            0..5 => {
                let rule = self.pick(&[
                    "", "", "NX", "XX", "GT", "LT", "CH", "GT CH", "XX CH", "XX GT", "INCR",
                    "GT INCR", "NX INCR",
                ]);
                let pairs: String = match rule.contains("INCR") {
                    true => String::new(),
                    false => (self.members().iter())
                        .map(|m| format!(" {} {m}", self.score()))
                        .collect(),
                };
                let score = match rule.contains("INCR") {
                    true => self.near(2).to_string(),
                    false => self.score(),
                };
                format!("ZADD {k} {rule} {score} {m}{pairs}")
            }
            5 => format!("ZINCRBY {k} {} {m}", self.score()),
            6 => format!("ZREM {k} {m} {}", self.member()),
            7 => format!("ZCARD {k}"),
            8 => format!("ZMSCORE {k} {m} {}", self.member()),
            9 => {
                let rank = self.pick(&["ZRANK", "ZREVRANK"]);
                format!("{rank} {k} {m} {}", self.pick(&["", "WITHSCORE"]))
            }
            10 => format!("ZCOUNT {k} {} {}", self.bound(), self.bound()),
            12..15 => {
                let scores = self.pick(&["", "WITHSCORES"]);
                format!("ZRANGE {k} {} {scores}", self.range())
            }
            24 | 25 => self.older_range(&k),
            26 => format!("ZSCORE {k} {m}"),
            27 => format!("ZPOPMAX {k}"),
            15 => format!("ZRANGESTORE {other} {k} {}", self.range()),
            16 => match self.once_in(2) {
                true => format!("ZREMRANGEBYSCORE {k} {} {}", self.bound(), self.bound()),
                false => format!("ZREMRANGEBYRANK {k} {} {}", self.near(9), self.near(9)),
            },
            17 => format!(
                "{} {k} {}",
                self.pick(&["ZPOPMIN", "ZPOPMAX"]),
                self.below(4)
            ),
            18 => {
                let end = self.pick(&["MIN", "MAX"]);
                format!("ZMPOP 2 {k} {other} {end} COUNT {}", 1 + self.below(3))
            }
            19 => format!("ZRANDMEMBER {k} {} WITHSCORES", self.near(6)),
            20 | 21 => self.combination(),
            22 => format!("ZSCAN {k} 0 COUNT {}", 1 + self.below(20)),
            23 => self.waiting_for_zset(),
            _ => self.by_member(&other),
        }
    }

    /// A command for members in the order of their bytes, which all have one score.
    fn by_member(&mut self, to: &str) -> String {
        let (from, end, limit) = (self.edge(), self.edge(), self.limit());
        match self.below(12) {
            0..3 => {
                let pairs = self.members().into_iter().map(|m| format!(" 0 {m}"));
                format!("ZADD z3{}", pairs.collect::<String>())
            }
            3 => format!("ZREMRANGEBYLEX z3 {from} {end}"),
            4 => format!("ZRANGEBYLEX z3 {from} {end} {limit}"),
            5 => format!("ZREVRANGEBYLEX z3 {from} {end} {limit}"),
            6 => format!("ZRANGESTORE {to} z3 {from} {end} BYLEX {limit}"),
            7 | 8 => format!("ZRANGE z3 {from} {end} BYLEX {limit}"),
            9 => format!("ZRANGE z3 {from} {end} BYLEX REV {limit}"),
            _ => format!("ZLEXCOUNT z3 {from} {end}"),
        }
    }

    /// A range in the words of older versions.
    fn older_range(&mut self, k: &str) -> String {
        let scores = self.pick(&["", "WITHSCORES"]);
        let limit = self.limit();
        match self.below(3) {
            0 => format!("ZREVRANGE {k} {} {} {scores}", self.near(20), self.near(20)),
            1 => format!(
                "ZRANGEBYSCORE {k} {} {} {scores} {limit}",
                self.bound(),
                self.bound()
            ),
            _ => format!(
                "ZREVRANGEBYSCORE {k} {} {} {limit} {scores}",
                self.bound(),
                self.bound()
            ),
        }
    }

    fn limit(&mut self) -> String {
        match self.once_in(3) {
            true => format!("LIMIT {} {}", self.near(5), self.near(6)),
            false => String::new(),
        }
    }

    /// A command that may wait.
    pub(crate) fn waiting_for_zset(&mut self) -> String {
        let (k, other) = (self.key("z"), self.key("z"));
        match self.below(3) {
            0 => format!("BZPOPMIN {k} {other} 0"),
            1 => format!("BZPOPMAX {k} 0"),
            _ => format!(
                "BZMPOP 0 2 {k} {other} {} COUNT 2",
                self.pick(&["MIN", "MAX"])
            ),
        }
    }

    fn score(&mut self) -> String {
        match self.below(16) {
            15 => self.pick(&["inf", "-inf"]).to_owned(),
            14 => format!("{}", self.near(40) as f64 / 4.0),
            _ => self.near(30).to_string(),
        }
    }

    fn bound(&mut self) -> String {
        format!("{}{}", self.pick(&["", "("]), self.score())
    }

    fn edge(&mut self) -> String {
        match self.below(8) {
            0 => "-".to_owned(),
            1 => "+".to_owned(),
            n => format!("{}{}", if n % 2 == 0 { "[" } else { "(" }, self.member()),
        }
    }

    fn range(&mut self) -> String {
        let (rev, limit) = (self.pick(&["", "REV"]), self.limit());
        match self.once_in(2) {
            true => format!("{} {} {rev}", self.near(20), self.near(20)),
            false => format!("{} {} BYSCORE {rev} {limit}", self.bound(), self.bound()),
        }
    }

    fn combination(&mut self) -> String {
        let (name, to) = (self.pick(&["ZUNION", "ZINTER", "ZDIFF"]), self.key("z"));
        let n = 1 + usize::from(self.below(4));
        let mut keys = String::new();
        for _ in 0..n {
            let letter = self.pick(&["z", "z", "s"]);
            keys += &format!(" {}", self.key(letter));
        }
        let mut words = String::new();
        if name != "ZDIFF" && self.once_in(2) {
            words = "WEIGHTS".to_owned();
            (0..n).for_each(|_| words += &format!(" {}", self.near(3)));
            words += self.pick(&["", " AGGREGATE MIN", " AGGREGATE max", " AGGREGATE SUM"]);
        }
        match self.below(4) {
            0 => format!("{name} {n} {keys} {words}"),
            1 => format!("{name} {n} {keys} {words} WITHSCORES"),
            2 => format!("ZINTERCARD {n} {keys} LIMIT {}", self.below(5)),
            _ => format!("{name}STORE {to} {n} {keys} {words}"),
        }
    }
}

impl Model {
    pub(super) fn zset(&mut self, w: &[&str], answer: &Reply) -> Answered {
        let number = |at: usize| w[at].parse::<i64>().unwrap();
        let told = match w[0] {
            "ZADD" => self.zadd(w),
            "ZINCRBY" => self.zincr(w[1], &[], w[2], w[3]),
            "ZREM" => self.zrem(w[1], "zrem", |zset| {
                w[2..]
                    .iter()
                    .filter_map(|m| Some(((*m).into(), zset.get(m.as_bytes())?.value)))
                    .collect()
            }),
            "ZCARD" => self.zset_view(w[1], |zset| int(zset.len())),
            "ZMSCORE" => self.zset_view(w[1], |zset| {
                let score = |m: &&str| {
                    zset.get(m.as_bytes())
                        .map_or(Reply::Null, |one| double(one.value))
                };
                flat(w[2..].iter().map(score))
            }),
            "ZRANK" | "ZREVRANK" => self.rank(w),
            "ZCOUNT" => self.zset_view(w[1], |zset| int(range(zset, &w[2..4], "BYSCORE").len())),
            "ZLEXCOUNT" => self.zset_view(w[1], |zset| int(range(zset, &w[2..4], "BYLEX").len())),
            "ZRANGE" => self.zset_view(w[1], |zset| {
                show(ranged(zset, &w[2..]), w.contains(&"WITHSCORES"))
            }),
            "ZRANGESTORE" => self.zset_copy(w[2]).map(|zset| {
                let found = ranged(&zset, &w[3..]);
                self.store_zset(w[1], found, "zrangestore")
            }),
            "ZREMRANGEBYSCORE" => self.zrem(w[1], "zremrangebyscore", |zset| {
                range(zset, &w[2..], "BYSCORE")
            }),
            "ZREMRANGEBYLEX" => {
                self.zrem(w[1], "zremrangebylex", |zset| range(zset, &w[2..], "BYLEX"))
            }
            "ZREMRANGEBYRANK" => {
                self.zrem(w[1], "zremrangebyrank", |zset| range(zset, &w[2..], ""))
            }
            "ZREVRANGE" => self.older(w, "", true),
            "ZRANGEBYSCORE" => self.older(w, "BYSCORE", false),
            "ZREVRANGEBYSCORE" => self.older(w, "BYSCORE", true),
            "ZRANGEBYLEX" => self.older(w, "BYLEX", false),
            "ZREVRANGEBYLEX" => self.older(w, "BYLEX", true),
            "ZSCORE" => self.zset_view(w[1], |zset| {
                let found = zset.get(w[2].as_bytes());
                flat([found.map_or(Reply::Null, |one| double(one.value))])
            }),
            "ZPOPMIN" | "ZPOPMAX" => self
                .zpop(w[1], &w[0][4..], w.get(2).map_or(1, |_| number(2)))
                .map(|popped| show(popped.unwrap_or_default(), true)),
            "ZMPOP" => self.first_of(&w[2..4], |model, key| model.zmpop(key, w[4], number(6))),
            "BZMPOP" => self.first_of(&w[3..5], |model, key| model.zmpop(key, w[5], number(7))),
            "BZPOPMIN" | "BZPOPMAX" => self.first_of(&w[1..w.len() - 1], |model, key| {
                model.zmpop(key, &w[0][5..], 1)
            }),
            "ZRANDMEMBER" => self.zset_view(w[1], |zset| {
                random::check(answer, Some(number(2)), 2, zset.len(), |member, rest| {
                    zset.get(member)
                        .is_some_and(|one| rest == [double(one.value)])
                })
            }),
            "ZUNION" | "ZINTER" | "ZDIFF" => {
                let scores = w.contains(&"WITHSCORES");
                self.joined(w[0], &w[1..]).map(|found| show(found, scores))
            }
            "ZINTERCARD" => self
                .joined("ZINTER", &w[1..])
                .map(|found| match number(w.len() - 1) {
                    0 => int(found.len()),
                    limit => int(found.len().min(limit as usize)),
                }),
            "ZUNIONSTORE" => self.store_joined(w, "zunionstore"),
            "ZINTERSTORE" => self.store_joined(w, "zinterstore"),
            "ZDIFFSTORE" => self.store_joined(w, "zdiffstore"),
            "ZSCAN" => self.zset_view(w[1], |zset| Expect::Scan(zset.keys().cloned().collect())),
            _ => return None,
        };
        Some(told)
    }

    pub(super) fn zset_view(
        &mut self,
        key: &str,
        view: impl FnOnce(&Members<f64>) -> Expect,
    ) -> Result<Expect, Reply> {
        Ok(view(&self.zset_copy(key)?))
    }

    fn zset_copy(&mut self, key: &str) -> Result<Members<f64>, Reply> {
        Ok(self.zset_at(key)?.cloned().unwrap_or_default())
    }

    fn zadd(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let is_word = |word: &&&str| ["NX", "XX", "GT", "LT", "CH", "INCR"].contains(*word);
        let rules: Vec<_> = w[2..].iter().take_while(is_word).copied().collect();
        let pairs = &w[2 + rules.len()..];
        if rules.contains(&"INCR") {
            return self.zincr(w[1], &rules, pairs[0], pairs[1]);
        }
        let pairs = pairs.chunks(2).map(|pair| (pair[1].into(), score(pair[0])));
        self.add_scored(w[1], &rules, pairs.collect())
    }

    /// Adds members as ZADD does.
    pub(super) fn add_scored(
        &mut self,
        key: &str,
        rules: &[&str],
        pairs: Vec<Scored>,
    ) -> Result<Expect, Reply> {
        let zset = self.zset_or_new(key)?;
        let (mut added, mut updated) = (0, 0);
        for (member, new) in pairs {
            match zset.get_mut(&member) {
                None if rules.contains(&"XX") => {}
                None => {
                    zset.insert(member, plain(new));
                    added += 1;
                }
                Some(old) if old.value == new || !replaces(rules, old.value, new) => {}
                Some(old) => {
                    old.value = new;
                    updated += 1;
                }
            }
        }
        if added + updated > 0 {
            self.note(key.as_bytes(), "zadd");
        }
        Ok(int(if rules.contains(&"CH") {
            added + updated
        } else {
            added
        }))
    }

    fn zincr(
        &mut self,
        key: &str,
        rules: &[&str],
        by: &str,
        member: &str,
    ) -> Result<Expect, Reply> {
        let (zset, by) = (self.zset_or_new(key)?, score(by));
        let old = zset.get_mut(member.as_bytes());
        let (new, changed) = match old {
            None if rules.contains(&"XX") => return Ok(Expect::Reply(Reply::Null)),
            None => {
                zset.insert(member.into(), plain(by));
                (by, true)
            }
            Some(_) if rules.contains(&"NX") => return Ok(Expect::Reply(Reply::Null)),
            Some(old) => {
                let new = old.value + by + 0.0;
                if new.is_nan() {
                    return Err(error("ERR resulting score is not a number (NaN)"));
                }
                if !replaces(rules, old.value, new) {
                    return Ok(Expect::Reply(Reply::Null));
                }
                let old = std::mem::replace(&mut old.value, new);
                (new, old != new)
            }
        };
        if changed {
            self.note(key.as_bytes(), "zincr");
        }
        Ok(flat([double(new)]))
    }

    fn zrem(
        &mut self,
        key: &str,
        event: &'static str,
        which: impl FnOnce(&Members<f64>) -> Vec<Scored>,
    ) -> Result<Expect, Reply> {
        let zset = self.zset_or_new(key)?;
        let gone = which(zset);
        let gone = gone
            .into_iter()
            .filter(|(member, _)| zset.remove(member).is_some())
            .count();
        if gone > 0 {
            self.note(key.as_bytes(), event);
        }
        Ok(int(gone))
    }

    fn rank(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        self.zset_view(w[1], |zset| {
            let mut order = in_order(zset);
            if w[0] == "ZREVRANK" {
                order.reverse();
            }
            let rank = order
                .iter()
                .position(|(member, _)| member == w[2].as_bytes());
            match rank {
                None => Expect::Reply(Reply::Null),
                Some(at) if w.len() > 3 => flat([integer(at), double(order[at].1)]),
                Some(at) => int(at),
            }
        })
    }

    fn zpop(&mut self, key: &str, end: &str, count: i64) -> Result<Option<Vec<Scored>>, Reply> {
        let Some(zset) = self.zset_at(key)? else {
            return Ok(None);
        };
        let mut order = in_order(zset);
        if end == "MAX" {
            order.reverse();
        }
        order.truncate(count as usize);
        for (member, _) in &order {
            zset.remove(member);
        }
        if !order.is_empty() {
            self.note(
                key.as_bytes(),
                if end == "MAX" { "zpopmax" } else { "zpopmin" },
            );
        }
        Ok(Some(order))
    }

    fn zmpop(&mut self, key: &str, end: &str, count: i64) -> Result<Option<Expect>, Reply> {
        let popped = self.zpop(key, end, count)?;
        let leaves = |popped: Vec<Scored>| {
            popped
                .into_iter()
                .flat_map(|(member, score)| [Reply::Bulk(member), double(score)])
        };
        Ok(popped.map(|popped| with_key(key, leaves(popped))))
    }

    /// Sorted sets and sets as one, by score. `w` begins with the number of their keys.
    fn joined(&mut self, name: &str, w: &[&str]) -> Result<Vec<Scored>, Reply> {
        let (keys, options) = w[1..].split_at(w[0].parse().unwrap());
        let mut all = Vec::new();
        for key in keys {
            all.push(self.scores(key)?);
        }
        let weight = |i: usize| match options.first() {
            Some(&"WEIGHTS") => score(options[1 + i]),
            _ => 1.0,
        };
        let aggregate = options.iter().position(|word| *word == "AGGREGATE");
        let aggregate = aggregate.map(|at| options[at + 1].to_uppercase());
        let join = |x: f64, y: f64| match aggregate.as_deref() {
            Some("MIN") => x.min(y),
            Some("MAX") => x.max(y),
            _ => tame(x + y),
        };
        let mut found = Members::new();
        for member in all.iter().flat_map(BTreeMap::keys) {
            let of = |(i, scores): (usize, &BTreeMap<_, f64>)| {
                Some(tame(weight(i) * scores.get(member)?))
            };
            let of: Vec<_> = all.iter().enumerate().map(of).collect();
            let score = match name {
                "ZDIFF" if of[1..].iter().any(Option::is_some) => None,
                "ZINTER" if of.contains(&None) => None,
                _ => of.into_iter().flatten().reduce(join),
            };
            if let Some(score) = score {
                found.insert(member.clone(), plain(score));
            }
        }
        Ok(in_order(&found))
    }

    /// Whether nobody knows the sums of some scores: of three or more their order decides, because
    /// ∞ − ∞ counts as 0; and those of places are beyond what a float tells exactly.
    pub(super) fn has_vague_sum(&mut self, keys: &[&str]) -> bool {
        let is_place = |score: f64| score.abs() > 1e12;
        let mut scores = keys
            .iter()
            .flat_map(|key| self.scores(key).unwrap_or_default());
        scores.any(|(_, score)| match score.is_infinite() {
            true => keys.len() > 2,
            false => is_place(score),
        })
    }

    fn older(&mut self, w: &[&str], by: &str, rev: bool) -> Result<Expect, Reply> {
        let rev = if rev { "REV" } else { "" };
        let words = [&w[2..], &[by, rev]].concat();
        self.zset_view(w[1], |zset| {
            show(ranged(zset, &words), w.contains(&"WITHSCORES"))
        })
    }

    /// The scores of a sorted set; each member of a set has 1.
    fn scores(&mut self, key: &str) -> Result<BTreeMap<Bytes, f64>, Reply> {
        Ok(match self.entry(key.as_bytes()).map(|entry| &entry.kind) {
            None => BTreeMap::new(),
            Some(Kind::ZSet(of)) => of
                .iter()
                .map(|(member, one)| (member.clone(), one.value))
                .collect(),
            Some(Kind::Set(of)) => of.keys().map(|member| (member.clone(), 1.0)).collect(),
            Some(_) => return Err(wrong_type()),
        })
    }

    fn store_joined(&mut self, w: &[&str], event: &'static str) -> Result<Expect, Reply> {
        let found = self.joined(w[0].trim_end_matches("STORE"), &w[2..])?;
        Ok(self.store_zset(w[1], found, event))
    }

    fn store_zset(&mut self, key: &str, found: Vec<Scored>, event: &'static str) -> Expect {
        let len = found.len();
        let zset = found
            .into_iter()
            .map(|(member, score)| (member, plain(score)));
        self.store(key, Kind::ZSet(zset.collect()), event);
        int(len)
    }

    /// Whether a command that waits could be served by a key.
    pub(super) fn holds_zset(&self, place: &super::Place) -> bool {
        let entry = self.entries.get(place);
        entry.is_some_and(|entry| matches!(entry.kind, Kind::ZSet(_)))
    }
}

fn plain(value: f64) -> Member<f64> {
    Member {
        value,
        deadline: None,
    }
}

fn score(word: &str) -> f64 {
    word.parse().unwrap()
}

/// 0 in place of what is no number, and of −0.
fn tame(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score + 0.0 }
}

fn replaces(rules: &[&str], old: f64, new: f64) -> bool {
    let refused = rules.contains(&"NX")
        || rules.contains(&"GT") && new <= old
        || rules.contains(&"LT") && new >= old;
    !refused
}

fn in_order(zset: &Members<f64>) -> Vec<Scored> {
    let mut all: Vec<_> = zset
        .iter()
        .map(|(member, one)| (member.clone(), one.value))
        .collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    all
}

/// The members of a range that goes up.
fn range(zset: &Members<f64>, ends: &[&str], by: &str) -> Vec<Scored> {
    let all = in_order(zset);
    match by {
        "BYSCORE" => {
            let is_above = |score: f64| match ends[0].strip_prefix('(') {
                Some(min) => score > self::score(min),
                None => score >= self::score(ends[0]),
            };
            let is_below = |score: f64| match ends[1].strip_prefix('(') {
                Some(max) => score < self::score(max),
                None => score <= self::score(ends[1]),
            };
            all.into_iter()
                .filter(|(_, score)| is_above(*score) && is_below(*score))
                .collect()
        }
        "BYLEX" => by_lex(all, ends[0], ends[1]),
        _ => {
            let len = all.len() as i64;
            let place = |word: &str| match word.parse::<i64>().unwrap() {
                at if at < 0 => at + len,
                at => at,
            };
            let (start, end) = (place(ends[0]).max(0), place(ends[1]));
            let within = |at: usize| (start..=end).contains(&(at as i64));
            let all = all.into_iter().enumerate();
            all.filter(|(at, _)| within(*at))
                .map(|(_, one)| one)
                .collect()
        }
    }
}

/// The members of a range, all of which have one score.
fn by_lex(all: Vec<Scored>, min: &str, max: &str) -> Vec<Scored> {
    let is_above = |member: &[u8]| match min.split_at(1) {
        ("-", _) => true,
        ("[", min) => member >= min.as_bytes(),
        ("(", min) => member > min.as_bytes(),
        _ => false,
    };
    let is_below = |member: &[u8]| match max.split_at(1) {
        ("+", _) => true,
        ("[", max) => member <= max.as_bytes(),
        ("(", max) => member < max.as_bytes(),
        _ => false,
    };
    let all = all.into_iter();
    all.filter(|(member, _)| is_above(member) && is_below(member))
        .collect()
}

/// The range that ZRANGE's words mean, in the order of its reply.
fn ranged(zset: &Members<f64>, w: &[&str]) -> Vec<Scored> {
    let by = w.iter().find(|word| word.starts_with("BY"));
    let by = by.copied().unwrap_or("");
    let rev = w.contains(&"REV");
    let mut found = match (by, rev) {
        ("", true) => {
            // Ranks are those of the other direction.
            let mut all = in_order(zset);
            all.reverse();
            let turned = all
                .iter()
                .enumerate()
                .map(|(at, (member, _))| (member.clone(), plain(at as f64)));
            let kept = range(&turned.collect(), &w[..2], "");
            return kept
                .into_iter()
                .map(|(member, _)| (member.clone(), zset[&member].value))
                .collect();
        }
        (by, true) => range(zset, &[w[1], w[0]], by),
        (by, false) => range(zset, &w[..2], by),
    };
    if rev {
        found.reverse();
    }
    if let Some(at) = w.iter().position(|word| *word == "LIMIT") {
        let number = |at: usize| w[at].parse::<i64>().unwrap();
        // Nothing is there before the first one; any number below 0 means all.
        let skip = usize::try_from(number(at + 1)).unwrap_or(usize::MAX);
        let most = usize::try_from(number(at + 2)).unwrap_or(usize::MAX);
        found = found.into_iter().skip(skip).take(most).collect();
    }
    found
}

fn show(found: Vec<Scored>, scores: bool) -> Expect {
    flat(found.into_iter().flat_map(|(member, score)| {
        let score = scores.then(|| double(score));
        std::iter::once(Reply::Bulk(member)).chain(score)
    }))
}
