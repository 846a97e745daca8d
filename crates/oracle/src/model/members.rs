//! Deadlines of members: HEXPIRE and its relatives, for each type that has them.

use tidewheel_resp::Reply;

use super::keys::allow;
use super::{Answered, Expect, Kind, Model, Unit, flat, int, integer, invalid_time, wrong_type};
use crate::draw::Draw;

/// The first wall time that no deadline of a member may have.
const WALL_END_MS: i128 = 1 << 46;

/// The same in engine time.
const END: i128 = (1 << 48) - 1;

impl Draw<'_> {
    pub(crate) fn member_deadline(&mut self) -> String {
        let at = usize::from(self.below(3));
        let (letter, k) = (["H", "S", "Z"][at], self.key(["h", "s", "z"][at]));
        let members = self.members();
        let named = format!("FIELDS {} {}", members.len(), members.join(" "));
        let when = self.pick(&["", "", "NX", "XX", "GT", "LT"]);
        match self.below(10) {
            0..4 => format!("{letter}PEXPIRE {k} {} {when} {named}", self.below(90)),
            4 => format!("{letter}EXPIRE {k} {} {when} {named}", self.below(3)),
            5 => format!("{letter}PEXPIREAT {k} @{:+} {when} {named}", self.near(60)),
            6 => format!("{letter}PERSIST {k} {named}"),
            7 => {
                let say = self.pick(&["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]);
                format!("{letter}{say} {k} {named}")
            }
            8 => format!("{letter}EXPIREAT {k} @s{:+} {when} {named}", self.near(2)),
            _ => format!("EXPIREMEMBER {k} {} {} ms", members[0], self.below(60)),
        }
    }
}

impl Model {
    pub(super) fn member_deadline(&mut self, w: &[&str]) -> Answered {
        if w[0] == "EXPIREMEMBER" {
            let deadline = match self.member_end(w, w[3], Unit::Millis) {
                Err(error) => return Some(Err(error)),
                Ok(deadline) => deadline,
            };
            let told = match self.entry(w[1].as_bytes()).map(|entry| entry.kind.name()) {
                None => Ok(int(0)),
                Some("string" | "list" | "stream") => Err(wrong_type()),
                Some(_) => self.expire_one(w[1], w[2], deadline, &[]).map(|done| {
                    self.note_deadline(w[1], &[done]);
                    int(done > 0)
                }),
            };
            return Some(told);
        }
        let (letter, verb) = w[0].split_at_checked(1)?;
        let unit = Unit::of(verb);
        let first = w.iter().position(|word| *word == "FIELDS")? + 2;
        let expires = verb.contains("PIRE") && !verb.ends_with("TIME");
        Some(self.of_letter(w[1], letter).and_then(|()| match verb {
            "PERSIST" => self.persist_members(w[1], &w[first..]),
            _ if expires => self.expire_members(w, unit, &w[first..]),
            _ => {
                let deadlines = w[first..]
                    .iter()
                    .map(|member| self.member(w[1], member).map(|deadline| *deadline));
                let deadlines: Vec<_> = deadlines.collect();
                Ok(flat(deadlines.into_iter().map(|deadline| match deadline {
                    None => integer(-2),
                    Some(None) => integer(-1),
                    Some(Some(deadline)) => integer(self.told(deadline, unit)),
                })))
            }
        }))
    }

    /// The deadline that a number means for members: not too far away.
    pub(super) fn member_end(&self, w: &[&str], number: &str, unit: Unit) -> Result<i128, Reply> {
        let deadline = self.wall_deadline(unit, number.parse().unwrap());
        deadline
            .filter(|at| *at < END && at + self.wall_offset < WALL_END_MS)
            .ok_or_else(|| invalid_time(&w[0].to_lowercase()))
    }

    /// Whether a key has the type that a command's letter means, or does not exist.
    pub(super) fn of_letter(&mut self, key: &str, letter: &str) -> Result<(), Reply> {
        match (
            self.entry(key.as_bytes()).map(|entry| entry.kind.name()),
            letter,
        ) {
            (None, _) | (Some("hash"), "H") | (Some("set"), "S") | (Some("zset"), "Z") => Ok(()),
            _ => Err(wrong_type()),
        }
    }

    /// The deadline of a member.
    fn member(&mut self, key: &str, member: &str) -> Option<&mut Option<i128>> {
        let member = member.as_bytes();
        match &mut self.entry(key.as_bytes())?.kind {
            Kind::Hash(of) => of.get_mut(member).map(|one| &mut one.deadline),
            Kind::Set(of) => of.get_mut(member).map(|one| &mut one.deadline),
            Kind::ZSet(of) => of.get_mut(member).map(|one| &mut one.deadline),
            Kind::Text(_) | Kind::List(_) | Kind::Stream(_) => None,
        }
    }

    fn expire_members(
        &mut self,
        w: &[&str],
        unit: Unit,
        members: &[&str],
    ) -> Result<Expect, Reply> {
        let deadline = self.member_end(w, w[2], unit)?;
        let mut done = Vec::new();
        for member in members {
            done.push(self.expire_one(w[1], member, deadline, &w[3..4])?);
        }
        self.note_deadline(w[1], &done);
        Ok(flat(done.into_iter().map(integer)))
    }

    /// 1: it has the deadline. 2: it is removed, because that has passed. 0: it may not have it.
    /// −2: there is none.
    fn expire_one(
        &mut self,
        key: &str,
        member: &str,
        deadline: i128,
        conditions: &[&str],
    ) -> Result<i64, Reply> {
        let tick = self.tick;
        let Some(old) = self.member(key, member) else {
            return Ok(-2);
        };
        if !allow(conditions, *old, deadline) {
            return Ok(0);
        }
        if deadline > tick {
            *old = Some(deadline);
            return Ok(1);
        }
        match self.entry(key.as_bytes()).map(|entry| &mut entry.kind) {
            Some(Kind::Hash(of)) => drop(of.remove(member.as_bytes())),
            Some(Kind::Set(of)) => drop(of.remove(member.as_bytes())),
            Some(Kind::ZSet(of)) => drop(of.remove(member.as_bytes())),
            _ => {}
        }
        Ok(2)
    }

    /// Notes what deadlines a call has set, and what has died of them at once.
    fn note_deadline(&mut self, key: &str, done: &[i64]) {
        let [removed, filed, _] = self.member_events(key);
        for (code, event) in [(2, removed), (1, filed)] {
            if done.contains(&code) {
                self.note(key.as_bytes(), event);
            }
        }
    }

    /// The events of members: removed, with a deadline, without it.
    fn member_events(&mut self, key: &str) -> [&'static str; 3] {
        match self.entry(key.as_bytes()).map(|entry| entry.kind.name()) {
            Some("hash") => ["hdel", "hexpire", "hpersist"],
            Some("set") => ["srem", "sexpire", "spersist"],
            _ => ["zrem", "zexpire", "zpersist"],
        }
    }

    fn persist_members(&mut self, key: &str, members: &[&str]) -> Result<Expect, Reply> {
        let done: Vec<_> = members
            .iter()
            .map(|member| match self.member(key, member) {
                None => -2,
                Some(old) => old.take().map_or(-1, |_| 1),
            })
            .collect();
        if done.contains(&1) {
            let event = self.member_events(key)[2];
            self.note(key.as_bytes(), event);
        }
        Ok(flat(done.into_iter().map(integer)))
    }
}
