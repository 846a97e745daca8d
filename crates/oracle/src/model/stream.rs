//! Streams.

use std::collections::BTreeMap;

use tidewheel_resp::Reply;

use super::{Answered, Expect, Model, bulk, error, flat, int, integer, ok};
use crate::draw::Draw;

/// A time in milliseconds, and a number.
type Id = (u64, u64);
/// Ids of entries, and their fields.
type Entries = BTreeMap<Id, Vec<String>>;

/// A stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stream {
    entries: Entries,
    last: Id,
    max_deleted: Id,
    groups: BTreeMap<String, Group>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Group {
    last: Id,
    pending: BTreeMap<Id, Pending>,
    consumers: BTreeMap<String, Consumer>,
}

#[derive(Clone, Debug, PartialEq)]
struct Pending {
    consumer: String,
    delivered: i64,
    deliveries: i64,
}

#[derive(Clone, Debug, PartialEq)]
struct Consumer {
    seen: i64,
    active: Option<i64>,
}

impl Draw<'_> {
    fn id(&mut self) -> String {
        match self.below(12) {
            0 => format!("{}", self.below(40)),
            1 => "0".to_owned(),
            _ => format!("{}-{}", self.below(40), self.below(2)),
        }
    }

    fn end_of_range(&mut self) -> String {
        match self.below(4) {
            0 => self.pick(&["-", "+"]).to_owned(),
            1 => format!("({}", self.id()),
            _ => self.id(),
        }
    }

    /// A command for streams.
    pub fn stream(&mut self) -> String {
        let (k, other) = (self.key("x"), self.key("x"));
        let (id, more) = (self.id(), self.id());
        let group = self.pick(&["g", "g", "h"]);
        let consumer = self.pick(&["one", "two", "three"]);
        let count = self.pick(&["", "", "COUNT 1", "COUNT 3"]);
        let just = self.pick(&["", "", "JUSTID"]);
        let idle = self.pick(&["0", "0", "20"]);
        let references = self.pick(&["", "KEEPREF", "DELREF", "ACKED"]);
        let (start, end) = (self.end_of_range(), self.end_of_range());
        match self.below(34) {
            0..6 => format!("XADD {k} {}-* f {id}", 1 + self.below(40)),
            6 => format!("XADD {k} {id} f {} g {more}", self.member()),
            7 if k == "x2" => format!("XADD {k} * f 1"),
            7 => format!("XADD {k} NOMKSTREAM {id} f 1"),
            8 => format!("XADD {k} MAXLEN {} {references} 39-* f 1", self.below(9)),
            9 => format!("XTRIM {k} MAXLEN {} {references}", self.below(9)),
            10 => format!("XTRIM {k} MINID {id} {references}"),
            11 => format!("XDEL {k} {id} {more}"),
            12 => format!("XLEN {k}"),
            13 => format!("XRANGE {k} {start} {end} {count}"),
            14 => format!("XREVRANGE {k} {end} {start} {count}"),
            15 => format!("XREAD {count} STREAMS {k} {id}"),
            16 => format!(
                "XREAD {count} STREAMS {k} {other} {id} {}",
                self.pick(&["0", "$"])
            ),
            17 => format!(
                "XGROUP CREATE {k} {group} {} MKSTREAM",
                self.pick(&["0", "$"])
            ),
            18 => format!("XGROUP CREATE {k} {group} {id}"),
            19 => format!("XGROUP SETID {k} {group} {id}"),
            20 => match self.below(4) {
                0 => format!("XGROUP DESTROY {k} {group}"),
                1 => format!("XGROUP DELCONSUMER {k} {group} {consumer}"),
                _ => format!("XGROUP CREATECONSUMER {k} {group} {consumer}"),
            },
            21..24 => format!("XREADGROUP GROUP {group} {consumer} {count} STREAMS {k} >"),
            24 => format!("XREADGROUP GROUP {group} {consumer} NOACK COUNT 1 STREAMS {k} >"),
            25 => format!("XREADGROUP GROUP {group} {consumer} {count} STREAMS {k} {id}"),
            26 => format!("XACK {k} {group} {id} {more}"),
            27 => format!("XPENDING {k} {group}"),
            28 => format!(
                "XPENDING {k} {group} {start} {end} {} {consumer}",
                self.below(9)
            ),
            29 => format!("XCLAIM {k} {group} {consumer} {idle} {id} {more} {just}"),
            30 => format!("XAUTOCLAIM {k} {group} {consumer} {idle} {id} {count} {just}"),
            31 => format!("XDELEX {k} {references} IDS 2 {id} {more}"),
            32 => format!("XACKDEL {k} {group} {references} IDS 2 {id} {more}"),
            _ => format!("XSETID {k} {id}"),
        }
    }
}

fn id(text: &str) -> Id {
    let (ms, seq) = text.split_once('-').unwrap_or((text, "0"));
    (
        ms.parse().expect("a number"),
        seq.parse().expect("a number"),
    )
}

/// The ends of a range; the error of one that is none.
fn range(start: &str, end: &str) -> Result<(Id, Id), Reply> {
    const MAX: Id = (u64::MAX, u64::MAX);
    let one = |text: &str, seq: u64| match text {
        "-" => (0, 0),
        "+" => MAX,
        text if text.contains('-') => id(text),
        text => (id(text).0, seq),
    };
    let invalid = || error("ERR Invalid stream ID specified as stream command argument");
    let start = match start.strip_prefix('(') {
        Some("-" | "+") => return Err(invalid()),
        Some(text) => next(one(text, 0)),
        None => one(start, 0),
    };
    let end = match end.strip_prefix('(') {
        Some("-" | "+") => return Err(invalid()),
        Some(text) => match one(text, u64::MAX) {
            (0, 0) => return Err(error("ERR invalid end ID for the interval")),
            (ms, 0) => (ms - 1, u64::MAX),
            (ms, seq) => (ms, seq - 1),
        },
        None => one(end, u64::MAX),
    };
    Ok((start, end))
}

fn next((ms, seq): Id) -> Id {
    match seq.checked_add(1) {
        Some(seq) => (ms, seq),
        None => (ms + 1, 0),
    }
}

fn told((ms, seq): Id) -> Reply {
    text(&format!("{ms}-{seq}"))
}

fn text(text: &str) -> Reply {
    bulk(Some(text.as_bytes().to_vec()))
}

/// An entry's parts.
fn entry(id: Id, fields: &[String]) -> Vec<Reply> {
    let fields = fields.iter().map(|word| text(word));
    std::iter::once(told(id)).chain(fields).collect()
}

fn no_group(key: &str, group: &str, more: &str) -> Reply {
    error(&format!(
        "NOGROUP No such key '{key}' or consumer group '{group}'{more}"
    ))
}

/// The words behind a word.
fn behind<'w>(w: &'w [&'w str], word: &str) -> Option<&'w [&'w str]> {
    let at = w.iter().position(|one| *one == word)?;
    Some(&w[at + 1..])
}

fn count(w: &[&str]) -> Option<usize> {
    behind(w, "COUNT").map(|rest| rest[0].parse().expect("a number"))
}

/// The rule for references when an entry is deleted.
fn references<'w>(w: &[&'w str]) -> &'w str {
    let known = ["DELREF", "ACKED"];
    w.iter()
        .find(|word| known.contains(word))
        .unwrap_or(&"KEEPREF")
}

impl Stream {
    /// Commands that show all of it.
    pub(super) fn views(&self, key: &str) -> Vec<String> {
        let mut views = vec![format!("XRANGE {key} - +")];
        for group in self.groups.keys() {
            views.push(format!("XPENDING {key} {group} - + 1000"));
            views.push(format!("XINFO CONSUMERS {key} {group}"));
        }
        views
    }

    /// The bytes of its fields.
    pub(super) fn weight(&self) -> usize {
        self.entries.values().flatten().map(String::len).sum()
    }

    fn forget(&mut self, id: Id) {
        for group in self.groups.values_mut() {
            group.pending.remove(&id);
        }
    }

    fn needs(&self, id: Id) -> bool {
        let mut groups = self.groups.values();
        groups.any(|group| id > group.last || group.pending.contains_key(&id))
    }

    /// Removes entries as XTRIM does: how many.
    fn trim(&mut self, w: &[&str]) -> usize {
        let rule = references(w);
        let ids: Vec<_> = self.entries.keys().copied().collect();
        let mut gone = 0;
        for one in ids {
            let stays = match (behind(w, "MAXLEN"), behind(w, "MINID")) {
                (Some(most), _) => self.entries.len() <= most[0].parse().expect("a number"),
                (_, Some(from)) => one >= id(from[0]),
                _ => true,
            };
            if stays {
                break;
            }
            if rule == "ACKED" && self.needs(one) {
                continue;
            }
            self.entries.remove(&one);
            gone += 1;
            if rule == "DELREF" {
                self.forget(one);
            }
        }
        gone
    }

    fn delete(&mut self, id: Id) -> bool {
        let gone = self.entries.remove(&id).is_some();
        if gone {
            self.max_deleted = self.max_deleted.max(id);
        }
        gone
    }

    /// Deletes an entry as XDELEX does: its number in the reply.
    fn delete_by_rule(&mut self, id: Id, rule: &str) -> i64 {
        match rule {
            "ACKED" if self.needs(id) => return 2,
            "DELREF" => self.forget(id),
            _ => {}
        }
        if self.delete(id) { 1 } else { -1 }
    }
}

impl Group {
    /// Has a consumer come: whether it is new.
    fn greet(&mut self, name: &str, now: i64) -> bool {
        let is_new = !self.consumers.contains_key(name);
        let (seen, active) = (now, None);
        let new = Consumer { seen, active };
        self.consumers.entry(name.to_owned()).or_insert(new).seen = now;
        is_new
    }

    fn give(&mut self, id: Id, pending: Pending, now: i64) {
        let consumer = self.consumers.get_mut(&pending.consumer);
        consumer.expect("it has come").active = Some(now);
        self.pending.insert(id, pending);
    }
}

impl Model {
    pub(super) fn stream(&mut self, w: &[&str]) -> Answered {
        Some(match w[0] {
            "XADD" => self.xadd(w),
            "XTRIM" => self.xtrim(w),
            "XDEL" => self.xdel(w),
            "XLEN" => self.stream_view(w[1], |stream| Ok(int(stream.entries.len()))),
            "XRANGE" | "XREVRANGE" => self.xrange(w),
            "XREAD" => self.xread(w),
            "XGROUP" => self.xgroup(w),
            "XREADGROUP" => self.xreadgroup(w),
            "XACK" => self.xack(w),
            "XPENDING" => self.xpending(w),
            "XCLAIM" | "XAUTOCLAIM" => self.claim(w),
            "XDELEX" => self.xdelex(w),
            "XACKDEL" => self.xackdel(w),
            "XSETID" => self.xsetid(w),
            "XINFO" => self.xinfo_consumers(w),
            _ => return None,
        })
    }

    fn stream_view(
        &mut self,
        key: &str,
        view: impl FnOnce(&Stream) -> Result<Expect, Reply>,
    ) -> Result<Expect, Reply> {
        let none = Stream::default();
        view(self.stream_at(key)?.map_or(&none, |stream| stream))
    }

    /// A change without an event.
    fn touch_stream(&mut self, key: &str) {
        self.touched.insert((self.db, key.as_bytes().to_vec()));
    }

    fn note_consumer(&mut self, key: &str, is_new: bool) {
        if is_new {
            self.note(key.as_bytes(), "xgroup-createconsumer");
        }
    }

    fn xadd(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let wall = self.wall() as u64;
        let must_exist = w[2] == "NOMKSTREAM";
        let at = match w[2] {
            "NOMKSTREAM" => 3,
            "MAXLEN" => w.iter().position(|word| *word == "39-*").expect("drawn so"),
            _ => 2,
        };
        if w[at] == "0" || w[at] == "0-0" {
            return Err(error(
                "ERR The ID specified in XADD must be greater than 0-0",
            ));
        }
        let last = match self.stream_at(w[1])? {
            None if must_exist => return Ok(Expect::Reply(Reply::Null)),
            stream => stream.map_or((0, 0), |stream| stream.last),
        };
        let new = match w[at].strip_suffix("-*") {
            Some(ms) if id(ms).0 == last.0 => next(last),
            Some(ms) => id(ms),
            None if w[at] == "*" && wall > last.0 => (wall, 0),
            None if w[at] == "*" => next(last),
            None => id(w[at]),
        };
        if new <= last {
            return Err(error(
                "ERR The ID specified in XADD is equal or smaller than the target stream top item",
            ));
        }
        let stream = self.stream_or_new(w[1])?;
        stream.last = new;
        let fields = w[at + 1..].iter().map(|word| (*word).to_owned());
        stream.entries.insert(new, fields.collect());
        let trimmed = stream.trim(&w[2..at]);
        self.note(w[1].as_bytes(), "xadd");
        if trimmed > 0 {
            self.note(w[1].as_bytes(), "xtrim");
        }
        Ok(Expect::Reply(told(new)))
    }

    fn xtrim(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let stream = self.stream_at(w[1])?;
        let gone = stream.map_or(0, |stream| stream.trim(w));
        if gone > 0 {
            self.note(w[1].as_bytes(), "xtrim");
        }
        Ok(int(gone))
    }

    fn xdel(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let mut gone = 0;
        if let Some(stream) = self.stream_at(w[1])? {
            gone = w[2..].iter().filter(|one| stream.delete(id(one))).count();
        }
        if gone > 0 {
            self.note(w[1].as_bytes(), "xdel");
        }
        Ok(int(gone))
    }

    fn xrange(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let reverse = w[0] == "XREVRANGE";
        let (low, high) = if reverse { (w[3], w[2]) } else { (w[2], w[3]) };
        let (start, end) = range(low, high)?;
        let most = count(w).unwrap_or(usize::MAX);
        self.stream_view(w[1], |stream| {
            let within = |one: &(&Id, &Vec<String>)| (start..=end).contains(one.0);
            let mut found: Vec<_> = stream.entries.iter().filter(within).collect();
            if reverse {
                found.reverse();
            }
            let found = found.into_iter().take(most);
            Ok(flat(found.flat_map(|(id, fields)| entry(*id, fields))))
        })
    }

    fn xread(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let most = count(w).unwrap_or(usize::MAX);
        let streams = behind(w, "STREAMS").expect("drawn so");
        let (keys, ids) = streams.split_at(streams.len() / 2);
        let mut found = Vec::new();
        for (key, above) in keys.iter().zip(ids) {
            let Some(stream) = self.stream_at(key)? else {
                continue;
            };
            let above = if *above == "$" {
                stream.last
            } else {
                id(above)
            };
            let mut new = stream.entries.range(next(above)..).take(most).peekable();
            if new.peek().is_some() {
                found.push(text(key));
                found.extend(new.flat_map(|(id, fields)| entry(*id, fields)));
            }
        }
        match found.is_empty() {
            true => Ok(Expect::Reply(Reply::Null)),
            false => Ok(Expect::Flat(found)),
        }
    }

    fn xgroup(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let (key, name, now) = (w[2], w[3], self.wall() as i64);
        let makes_stream = w.last() == Some(&"MKSTREAM");
        if self.stream_at(key)?.is_none() && !makes_stream {
            return Err(error(
                "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may \
                 want to use the MKSTREAM option to create an empty stream automatically.",
            ));
        }
        let stream = self.stream_or_new(key)?;
        let place = |stream: &Stream| match w[4] {
            "$" => stream.last,
            text => id(text),
        };
        let event;
        let told = if w[1] == "CREATE" {
            if stream.groups.contains_key(name) {
                return Err(error("BUSYGROUP Consumer Group name already exists"));
            }
            let last = place(stream);
            let group = Group {
                last,
                ..Group::default()
            };
            stream.groups.insert(name.to_owned(), group);
            event = Some("xgroup-create");
            ok()
        } else if w[1] == "DESTROY" {
            let gone = stream.groups.remove(name).is_some();
            event = gone.then_some("xgroup-destroy");
            integer(gone)
        } else {
            let last = (w[1] == "SETID").then(|| place(stream));
            let Some(group) = stream.groups.get_mut(name) else {
                return Err(error(&format!(
                    "NOGROUP No such consumer group '{name}' for key name '{key}'"
                )));
            };
            match (w[1], last) {
                ("SETID", Some(last)) => {
                    group.last = last;
                    event = Some("xgroup-setid");
                    ok()
                }
                ("CREATECONSUMER", _) => {
                    let is_new = !group.consumers.contains_key(w[4]);
                    if is_new {
                        group.greet(w[4], now);
                    }
                    event = is_new.then_some("xgroup-createconsumer");
                    integer(is_new)
                }
                _ => {
                    let gone = group.consumers.remove(w[4]);
                    let before = group.pending.len();
                    group.pending.retain(|_, pending| pending.consumer != w[4]);
                    event = gone.map(|_| "xgroup-delconsumer");
                    integer(before - group.pending.len())
                }
            }
        };
        if let Some(event) = event {
            self.note(key.as_bytes(), event);
        }
        Ok(Expect::Reply(told))
    }

    fn xreadgroup(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let (name, consumer, now) = (w[2], w[3], self.wall() as i64);
        let most = count(w).unwrap_or(usize::MAX);
        let noack = w.contains(&"NOACK");
        let streams = behind(w, "STREAMS").expect("drawn so");
        let (key, from) = (streams[0], streams[1]);
        let stream = self.stream_at(key)?;
        let group = stream.and_then(|stream| {
            let Stream {
                entries, groups, ..
            } = stream;
            groups.get_mut(name).map(|group| (entries, group))
        });
        let Some((entries, group)) = group else {
            let more = " in XREADGROUP with GROUP option";
            return Err(no_group(key, name, more));
        };
        let is_new = group.greet(consumer, now);
        let mut found = vec![text(key)];
        let mut changed = false;
        if from == ">" {
            let new = entries.range(next(group.last)..).take(most);
            for (id, fields) in new {
                changed = true;
                found.extend(entry(*id, fields));
                group.last = *id;
                if !noack {
                    let pending = Pending {
                        consumer: consumer.to_owned(),
                        delivered: now,
                        deliveries: 1,
                    };
                    group.give(*id, pending, now);
                }
            }
        } else {
            let ids = group.pending.range_mut(next(id(from))..);
            let own = ids.filter(|(_, pending)| pending.consumer == consumer);
            for (id, pending) in own.take(most) {
                let Some(fields) = entries.get(id) else {
                    found.extend([told(*id), Reply::Null]);
                    continue;
                };
                changed = true;
                found.extend(entry(*id, fields));
                pending.delivered = now;
                pending.deliveries += 1;
            }
        }
        self.note_consumer(key, is_new);
        if changed {
            self.touch_stream(key);
        }
        match from == ">" && !changed {
            true => Ok(Expect::Reply(Reply::Null)),
            false => Ok(Expect::Flat(found)),
        }
    }

    fn xack(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let group = self
            .stream_at(w[1])?
            .and_then(|stream| stream.groups.get_mut(w[2]));
        let Some(group) = group else {
            return Ok(int(0));
        };
        let done = w[3..]
            .iter()
            .filter(|one| group.pending.remove(&id(one)).is_some());
        let done = done.count();
        if done > 0 {
            self.touch_stream(w[1]);
        }
        Ok(int(done))
    }

    fn xpending(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let now = self.wall() as i64;
        let ends = match w.len() {
            3 => None,
            _ => Some(range(w[3], w[4])?),
        };
        self.stream_view(w[1], |stream| {
            let group = stream
                .groups
                .get(w[2])
                .ok_or_else(|| no_group(w[1], w[2], ""))?;
            let Some((start, end)) = ends else {
                return Ok(summary(group));
            };
            let most: usize = w[5].parse().expect("a number");
            let wanted = |(id, pending): &(&Id, &Pending)| {
                let owned = w.get(6).is_none_or(|name| pending.consumer == *name);
                owned && (start..=end).contains(*id)
            };
            let found = group.pending.iter().filter(wanted).take(most);
            Ok(flat(found.flat_map(|(id, pending)| {
                [
                    told(*id),
                    text(&pending.consumer),
                    integer((now - pending.delivered).max(0)),
                    integer(pending.deliveries),
                ]
            })))
        })
    }

    /// XCLAIM and XAUTOCLAIM.
    fn claim(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let now = self.wall() as i64;
        let (key, name, consumer, idle) = (w[1], w[2], w[3], w[4].parse().expect("a number"));
        let is_auto = w[0] == "XAUTOCLAIM";
        let stream = self.stream_at(key)?;
        let group = stream.and_then(|stream| {
            let Stream {
                entries, groups, ..
            } = stream;
            groups.get_mut(name).map(|group| (entries, group))
        });
        let (entries, group) = group.ok_or_else(|| no_group(key, name, ""))?;
        let just_id = w.contains(&"JUSTID");
        let is_new = group.greet(consumer, now);
        let most = count(w).unwrap_or(100);
        let mut ids: Vec<Id> = match is_auto {
            true => group.pending.range(id(w[5])..).map(|(id, _)| *id).collect(),
            false => w[5..7].iter().map(|one| id(one)).collect(),
        };
        ids.reverse();
        let (mut found, mut gone, mut looked) = (Vec::new(), Vec::new(), 0);
        let mut done = 0;
        while let Some(id) = ids.pop() {
            if is_auto && (done == most || looked == most * 10) {
                ids.push(id);
                break;
            }
            looked += 1;
            let Some(fields) = entries.get(&id) else {
                if group.pending.remove(&id).is_some() {
                    gone.push(told(id));
                    done += 1;
                }
                continue;
            };
            let Some(pending) = group.pending.get(&id) else {
                continue;
            };
            if idle > 0 && now - pending.delivered < idle {
                continue;
            }
            let deliveries = pending.deliveries + i64::from(!just_id);
            let pending = Pending {
                consumer: consumer.to_owned(),
                delivered: now,
                deliveries,
            };
            group.give(id, pending, now);
            found.extend(match just_id {
                true => vec![told(id)],
                false => entry(id, fields),
            });
            done += 1;
        }
        self.note_consumer(key, is_new);
        if done > 0 {
            self.touch_stream(key);
        }
        if is_auto {
            found.insert(0, told(ids.pop().unwrap_or_default()));
            found.extend(gone);
        }
        Ok(Expect::Flat(found))
    }

    fn xdelex(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let ids = &behind(w, "IDS").expect("drawn so")[1..];
        let rule = references(w);
        let Some(stream) = self.stream_at(w[1])? else {
            return Ok(flat(ids.iter().map(|_| integer(-1))));
        };
        let before = stream.clone();
        let told: Vec<_> = ids
            .iter()
            .map(|one| stream.delete_by_rule(id(one), rule))
            .collect();
        let changed = *stream != before;
        if told.contains(&1) {
            self.note(w[1].as_bytes(), "xdel");
        } else if changed {
            self.touch_stream(w[1]);
        }
        Ok(flat(told.into_iter().map(integer)))
    }

    fn xackdel(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let ids = &behind(w, "IDS").expect("drawn so")[1..];
        let rule = references(w);
        let stream = self.stream_at(w[1])?;
        let Some(stream) = stream.filter(|stream| stream.groups.contains_key(w[2])) else {
            return Ok(flat(ids.iter().map(|_| integer(-1))));
        };
        let before = stream.clone();
        let told: Vec<_> = ids
            .iter()
            .map(|one| {
                let group = stream.groups.get_mut(w[2]).expect("it is there");
                if group.pending.remove(&id(one)).is_none() {
                    return integer(-1);
                }
                integer(match stream.delete_by_rule(id(one), rule) {
                    2 => 2,
                    _ => 1,
                })
            })
            .collect();
        let (changed, deleted) = (*stream != before, stream.entries != before.entries);
        if deleted {
            self.note(w[1].as_bytes(), "xdel");
        } else if changed {
            self.touch_stream(w[1]);
        }
        Ok(flat(told))
    }

    fn xsetid(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let new = id(w[2]);
        let Some(stream) = self.stream_at(w[1])? else {
            return Err(error("ERR no such key"));
        };
        let too_small = |than: &str| {
            error(&format!(
                "ERR The ID specified in XSETID is smaller than {than}"
            ))
        };
        if new < stream.max_deleted {
            return Err(too_small("current max_deleted_entry_id"));
        }
        if stream
            .entries
            .last_key_value()
            .is_some_and(|(top, _)| new < *top)
        {
            return Err(too_small("the target stream top item"));
        }
        stream.last = new;
        self.note(w[1].as_bytes(), "xsetid");
        Ok(Expect::Reply(ok()))
    }

    fn xinfo_consumers(&mut self, w: &[&str]) -> Result<Expect, Reply> {
        let now = self.wall() as i64;
        self.stream_view(w[2], |stream| {
            let group = &stream.groups[w[3]];
            Ok(flat(group.consumers.iter().flat_map(|(name, consumer)| {
                let owned = |pending: &&Pending| pending.consumer == *name;
                let pending = group.pending.values().filter(owned).count();
                let since = |ms: i64| (now - ms).max(0);
                [
                    text("name"),
                    text(name),
                    text("pending"),
                    integer(pending),
                    text("idle"),
                    integer(since(consumer.seen)),
                    text("inactive"),
                    integer(consumer.active.map_or(-1, since)),
                ]
            })))
        })
    }
}

/// XPENDING's reply about all.
fn summary(group: &Group) -> Expect {
    let ends = (
        group.pending.first_key_value(),
        group.pending.last_key_value(),
    );
    let (Some((first, _)), Some((last, _))) = ends else {
        return flat([integer(0), Reply::Null, Reply::Null, Reply::Null]);
    };
    let mut found = vec![integer(group.pending.len()), told(*first), told(*last)];
    for name in group.consumers.keys() {
        let owned = group
            .pending
            .values()
            .filter(|pending| pending.consumer == *name);
        let pending = owned.count();
        if pending > 0 {
            found.extend([text(name), text(&pending.to_string())]);
        }
    }
    Expect::Flat(found)
}
