//! Lists.

use std::collections::VecDeque;

use tidewheel_resp::Reply;

use super::{Answered, Bytes, Expect, Kind, Model, bulk, error, flat, int};
use crate::draw::Draw;

impl Draw<'_> {
    /// A command for lists.
    pub fn list(&mut self) -> String {
        let (k, to, e) = (self.key("l"), self.key("l"), self.member());
        let (from_end, to_end) = (self.pick(&["LEFT", "RIGHT"]), self.pick(&["LEFT", "RIGHT"]));
        match self.below(23) {
            0..5 => {
                let name = self.pick(&["LPUSH", "RPUSH"]);
                format!("{name} {k} {e} {}", self.members().join(" "))
            }
            5 => format!("{} {k} {e}", self.pick(&["LPUSHX", "RPUSHX"])),
            6 => format!("{} {k}", self.pick(&["LPOP", "RPOP"])),
            7 => format!("{} {k} {}", self.pick(&["LPOP", "RPOP"]), self.below(4)),
            8 => format!("LLEN {k}"),
            9 => format!("LINDEX {k} {}", self.near(20)),
            10 | 11 => format!("LRANGE {k} {} {}", self.near(20), self.near(20)),
            12 => format!("LSET {k} {} {e}", self.near(20)),
            13 => format!(
                "LINSERT {k} {} {e} {}",
                self.pick(&["BEFORE", "AFTER"]),
                self.member()
            ),
            14 => format!("LREM {k} {} {e}", self.near(3)),
            15 => format!("LTRIM {k} {} {}", self.near(10), self.near(20)),
            16 => {
                let rank = self.pick(&["", "RANK 1", "RANK 2", "RANK -1", "RANK -2"]);
                let count = self.pick(&["", "COUNT 0", "COUNT 2"]);
                format!(
                    "LPOS {k} {e} {rank} {count} {}",
                    self.pick(&["", "MAXLEN 5"])
                )
            }
            17 | 18 => format!("LMOVE {k} {to} {from_end} {to_end}"),
            19 => format!("RPOPLPUSH {k} {to}"),
            20 => format!("LMPOP 2 {k} {to} {from_end} COUNT {}", 1 + self.below(3)),
            _ => self.waiting_for_list(),
        }
    }

    /// A command that may wait.
    pub(crate) fn waiting_for_list(&mut self) -> String {
        let (k, to) = (self.key("l"), self.key("l"));
        let (from_end, to_end) = (self.pick(&["LEFT", "RIGHT"]), self.pick(&["LEFT", "RIGHT"]));
        match self.below(5) {
            0 => format!("BLPOP {k} {to} 0"),
            1 => format!("BRPOP {k} 0"),
            2 => format!("BLMOVE {k} {to} {from_end} {to_end} 0"),
            3 => format!("BRPOPLPUSH {k} {to} 0"),
            _ => format!("BLMPOP 0 2 {k} {to} {from_end} COUNT 2"),
        }
    }
}

impl Model {
    pub(super) fn list(&mut self, w: &[&str]) -> Answered {
        let number = |at: usize| w[at].parse::<i64>().unwrap();
        let told = match w[0] {
            "LPUSH" | "RPUSH" => self.push(w[1], w[0] == "LPUSH", &w[2..]),
            "LPUSHX" | "RPUSHX" => match self.list_at(w[1]) {
                Ok(None) => Ok(int(0)),
                Ok(Some(_)) => self.push(w[1], w[0] == "LPUSHX", &w[2..]),
                Err(error) => Err(error),
            },
            "LPOP" | "RPOP" => self.pop_some(w[1], w[0] == "LPOP", w.get(2).map(|_| number(2))),
            "LLEN" => self.list_view(w[1], |list| int(list.len())),
            "LINDEX" => self.list_view(w[1], |list| {
                let at = place(list, number(2)).filter(|at| *at < list.len());
                Expect::Reply(bulk(at.map(|at| list[at].clone())))
            }),
            "LRANGE" => self.list_view(w[1], |list| {
                let found = span(list, number(2), number(3)).map(|at| list[at].clone());
                Expect::Reply(Reply::Array(found.map(Reply::Bulk).collect()))
            }),
            "LSET" => self.lset(w[1], number(2), w[3]),
            "LINSERT" => self.linsert(w[1], usize::from(w[2] == "AFTER"), w[3], w[4]),
            "LREM" => self.lrem(w[1], number(2), w[3]),
            "LTRIM" => self.ltrim(w[1], number(2), number(3)),
            "LPOS" => self.lpos(w),
            "LMOVE" | "BLMOVE" => self.transfer(w[1], w[2], w[3] == "LEFT", w[4] == "LEFT"),
            "RPOPLPUSH" | "BRPOPLPUSH" => self.transfer(w[1], w[2], false, true),
            "LMPOP" => self.first_of(&w[2..4], |model, key| model.mpop(key, w[4], number(6))),
            "BLMPOP" => self.first_of(&w[3..5], |model, key| model.mpop(key, w[5], number(7))),
            "BLPOP" | "BRPOP" => self.first_of(&w[1..w.len() - 1], |model, key| {
                model.pop_with_key(key, w[0] == "BLPOP")
            }),
            _ => return None,
        };
        Some(told)
    }

    /// What the first of some keys yields.
    pub(super) fn first_of(
        &mut self,
        keys: &[&str],
        mut take: impl FnMut(&mut Self, &str) -> Result<Option<Expect>, Reply>,
    ) -> Result<Expect, Reply> {
        for key in keys {
            if let Some(told) = take(self, key)? {
                return Ok(told);
            }
        }
        Ok(Expect::Reply(Reply::Null))
    }

    fn list_view(
        &mut self,
        key: &str,
        view: impl FnOnce(&VecDeque<Bytes>) -> Expect,
    ) -> Result<Expect, Reply> {
        let none = VecDeque::new();
        Ok(view(self.list_at(key)?.map_or(&none, |list| list)))
    }

    fn push(&mut self, key: &str, left: bool, elements: &[&str]) -> Result<Expect, Reply> {
        let list = self.list_or_new(key)?;
        for element in elements {
            match left {
                true => list.push_front((*element).into()),
                false => list.push_back((*element).into()),
            }
        }
        let len = list.len();
        self.note(key.as_bytes(), pushed(left));
        Ok(int(len))
    }

    /// Elements of one end; `None` if there is no key.
    fn pop(&mut self, key: &str, left: bool, count: usize) -> Result<Option<Vec<Bytes>>, Reply> {
        let Some(list) = self.list_at(key)? else {
            return Ok(None);
        };
        let one = |list: &mut VecDeque<Bytes>| match left {
            true => list.pop_front(),
            false => list.pop_back(),
        };
        let popped: Vec<_> = (0..count).map_while(|_| one(list)).collect();
        if !popped.is_empty() {
            self.note(key.as_bytes(), if left { "lpop" } else { "rpop" });
        }
        Ok(Some(popped))
    }

    fn pop_some(&mut self, key: &str, left: bool, count: Option<i64>) -> Result<Expect, Reply> {
        let popped = self.pop(key, left, count.unwrap_or(1) as usize)?;
        Ok(Expect::Reply(match (popped, count) {
            (None, _) => Reply::Null,
            (Some(mut popped), None) => bulk(popped.pop()),
            (Some(popped), Some(_)) => Reply::Array(popped.into_iter().map(Reply::Bulk).collect()),
        }))
    }

    fn pop_with_key(&mut self, key: &str, left: bool) -> Result<Option<Expect>, Reply> {
        let popped = self.pop(key, left, 1)?;
        Ok(popped.map(|popped| with_key(key, popped.into_iter().map(Reply::Bulk))))
    }

    fn mpop(&mut self, key: &str, end: &str, count: i64) -> Result<Option<Expect>, Reply> {
        let popped = self.pop(key, end == "LEFT", count as usize)?;
        Ok(popped.map(|popped| with_key(key, popped.into_iter().map(Reply::Bulk))))
    }

    fn transfer(
        &mut self,
        from: &str,
        to: &str,
        left: bool,
        into_left: bool,
    ) -> Result<Expect, Reply> {
        let Some(list) = self.list_at(from)? else {
            return Ok(Expect::Reply(Reply::Null));
        };
        let element = if left { list.front() } else { list.back() };
        let element = element.cloned().expect("never empty");
        self.list_at(to)?;
        let list = self.list_at(from)?.expect("it is there");
        match left {
            true => list.pop_front(),
            false => list.pop_back(),
        };
        let into = self.list_or_new(to)?;
        match into_left {
            true => into.push_front(element.clone()),
            false => into.push_back(element.clone()),
        }
        self.note(to.as_bytes(), pushed(into_left));
        self.note(from.as_bytes(), if left { "lpop" } else { "rpop" });
        Ok(Expect::Reply(Reply::Bulk(element)))
    }

    fn lset(&mut self, key: &str, at: i64, element: &str) -> Result<Expect, Reply> {
        let Some(list) = self.list_at(key)? else {
            return Err(error("ERR no such key"));
        };
        let Some(at) = place(list, at).filter(|at| *at < list.len()) else {
            return Err(error("ERR index out of range"));
        };
        list[at] = element.into();
        self.note(key.as_bytes(), "lset");
        Ok(Expect::Reply(super::ok()))
    }

    fn linsert(
        &mut self,
        key: &str,
        behind: usize,
        pivot: &str,
        element: &str,
    ) -> Result<Expect, Reply> {
        let Some(list) = self.list_at(key)? else {
            return Ok(int(0));
        };
        let Some(at) = list.iter().position(|one| one == pivot.as_bytes()) else {
            return Ok(int(-1));
        };
        list.insert(at + behind, element.into());
        let len = list.len();
        self.note(key.as_bytes(), "linsert");
        Ok(int(len))
    }

    fn lrem(&mut self, key: &str, count: i64, element: &str) -> Result<Expect, Reply> {
        let list = self.list_or_new(key)?;
        let most = if count == 0 {
            usize::MAX
        } else {
            count.unsigned_abs() as usize
        };
        let is = |at: &usize| list[*at] == element.as_bytes();
        let gone: Vec<_> = match count < 0 {
            false => (0..list.len()).filter(is).take(most).collect(),
            true => (0..list.len()).rev().filter(is).take(most).collect(),
        };
        let mut at = 0;
        list.retain(|_| {
            at += 1;
            !gone.contains(&(at - 1))
        });
        if !gone.is_empty() {
            self.note(key.as_bytes(), "lrem");
        }
        Ok(int(gone.len()))
    }

    fn ltrim(&mut self, key: &str, start: i64, end: i64) -> Result<Expect, Reply> {
        if let Some(list) = self.list_at(key)? {
            *list = span(list, start, end).map(|at| list[at].clone()).collect();
            self.note(key.as_bytes(), "ltrim");
        }
        Ok(Expect::Reply(super::ok()))
    }

    fn lpos(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let option = |name: &str| {
            let at = w.iter().skip(3).position(|word| *word == name)?;
            w[at + 4].parse::<i64>().ok()
        };
        let (rank, count) = (option("RANK").unwrap_or(1), option("COUNT"));
        let maxlen = option("MAXLEN").unwrap_or(i64::MAX) as usize;
        let most = match count {
            None => 1,
            Some(0) => usize::MAX,
            Some(n) => n as usize,
        };
        self.list_view(w[1], |list| {
            let mut places: Vec<_> = (0..list.len()).collect();
            if rank < 0 {
                places.reverse();
            }
            let found = places.into_iter().take(maxlen);
            let found = found.filter(|at| list[*at] == w[2].as_bytes());
            let found = found.skip(rank.unsigned_abs() as usize - 1).take(most);
            let mut found = found.map(super::integer);
            Expect::Reply(match count {
                None => found.next().unwrap_or(Reply::Null),
                Some(_) => Reply::Array(found.collect()),
            })
        })
    }

    /// Whether a command that waits could be served by a key.
    pub(super) fn holds_list(&self, place: &super::Place) -> bool {
        let entry = self.entries.get(place);
        entry.is_some_and(|entry| matches!(entry.kind, Kind::List(_)))
    }
}

pub(super) fn with_key(key: &str, leaves: impl Iterator<Item = Reply>) -> Expect {
    flat(std::iter::once(Reply::Bulk(key.into())).chain(leaves))
}

fn pushed(left: bool) -> &'static str {
    if left { "lpush" } else { "rpush" }
}

fn place(list: &VecDeque<Bytes>, at: i64) -> Option<usize> {
    let at = if at < 0 { at + list.len() as i64 } else { at };
    usize::try_from(at).ok()
}

/// The places from one to another, both included.
fn span(list: &VecDeque<Bytes>, start: i64, end: i64) -> std::ops::Range<usize> {
    let start = place(list, start).unwrap_or(0).min(list.len());
    let end = place(list, end).map_or(0, |end| (end + 1).min(list.len()));
    start..end.max(start)
}
