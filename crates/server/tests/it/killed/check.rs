//! Compares what is there after a restart with what clients were told.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Client, Reply};

use super::Epoch;
use super::client::Sent;
use super::model::{Micros, Model, Observed, Span, State, Unit, Value};
use super::part::{ACCOUNTS, COUNT, Form, Part, QUEUES, account_key, own, queue};

/// The operations of a client that are there: those before `least` are, those from `most` on are
/// not, and those between have changed nothing that can be seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Included {
    pub(super) least: usize,
    pub(super) most: usize,
}

/// Finds out how much of what a client has sent is there, and makes the model show that. At least
/// `required` operations must be.
pub(super) fn settle(
    model: &mut Model,
    sent: &[Sent],
    seen: &BTreeMap<Unit, Observed>,
    end: Micros,
    required: usize,
) -> Result<Included, String> {
    let fits = |model: &Model, unit: Unit| {
        (model.states(unit).iter()).any(|state| state.fits(&seen[&unit]))
    };
    let mut wrong: BTreeSet<_> = (seen.keys().copied())
        .filter(|unit| !fits(model, *unit))
        .collect();
    let (mut found, mut fitting) = (Vec::new(), BTreeMap::<Unit, BTreeSet<State>>::new());
    let mut closest: Option<(usize, usize, String)> = None;
    for done in 0..=sent.len() {
        if let Some(last) = done.checked_sub(1) {
            let one = &sent[last];
            let touched = model
                .run(&one.op, one.reply(), one.span(end))
                .map_err(|why| format!("{why}\n{}", recent(sent, done, &[])))?;
            for unit in touched {
                match fits(model, unit) {
                    true => wrong.remove(&unit),
                    false => wrong.insert(unit),
                };
            }
        }
        if wrong.is_empty() {
            found.push(done);
            if done >= required {
                for (unit, seen) in seen {
                    let states = model.states(*unit).iter();
                    let states = states.filter(|state| state.fits(seen));
                    fitting.entry(*unit).or_default().extend(states.cloned());
                }
            }
        } else if done >= required && closest.as_ref().is_none_or(|(_, n, _)| wrong.len() < *n) {
            let show = |unit: &Unit| {
                let (states, seen) = (model.states(*unit), &seen[unit]);
                format!("{unit:?}\n  is {seen:?}\n  not {states:?}\n")
            };
            let units: Vec<_> = wrong.iter().copied().collect();
            let text = wrong.iter().map(show).collect::<String>() + &recent(sent, done, &units);
            closest = Some((done, wrong.len(), text));
        }
    }
    let most = found.iter().copied().max().unwrap_or(0);
    if fitting.is_empty() {
        return Err(match (found.is_empty(), closest) {
            (false, _) => {
                let lost = &sent[most];
                let age = end - lost.answer.as_ref().map_or(end, |(at, _)| *at);
                format!(
                    "LOST: {} acknowledged operations of {required}; the first of them {age} us before the end: \
                     {lost:?}",
                    required - most
                )
            }
            (true, Some((done, _, text))) => {
                format!("WRONG: after {done} of {}: {text}", sent.len())
            }
            (true, None) => "WRONG".to_owned(),
        });
    }
    for (unit, states) in fitting {
        let known = |state: State| State {
            value: state.value.and(seen[&unit].value.clone()),
            ..state
        };
        model.set_states(unit, states.into_iter().map(known).collect());
    }
    let least = found.into_iter().find(|done| *done >= required);
    Ok(Included {
        least: least.unwrap_or(most),
        most,
    })
}

/// The last operations before a place that name one of the units.
fn recent(sent: &[Sent], until: usize, units: &[Unit]) -> String {
    let names = |one: &Sent| {
        let text = format!("{:?}", one.op.parts);
        units.is_empty()
            || (units.iter()).any(|unit| {
                let name = if unit.field.is_empty() {
                    unit.key
                } else {
                    unit.field
                };
                let db = u8::from(one.op.form == Form::Other) * 9;
                db == unit.db && text.contains(&format!("\"{name}\""))
            })
    };
    let until = until.min(sent.len());
    let last: Vec<_> = (sent[..until].iter().enumerate().rev())
        .filter(|(_, one)| names(one))
        .take(8)
        .map(|(at, one)| {
            let op = &one.op;
            format!(
                "  {at} {:?} {:?} at {} {:?}\n",
                op.form, op.parts, one.sent, one.answer
            )
        })
        .collect();
    format!("last:\n{}", last.concat())
}

/// Reads all keys of a client.
pub(super) fn observe(port: u16, of: usize, epoch: Epoch) -> BTreeMap<Unit, Observed> {
    let (mut here, mut other) = (Client::connect(port), Client::connect(port));
    other.call(&["SELECT", "9"]);
    let mut see = |unit: Unit| {
        let client = if unit.db == 0 { &mut here } else { &mut other };
        let key = own(of, unit.key);
        let read: &[&str] = match unit.key {
            "h" => &["HGET", &key, unit.field],
            "l" | "taken" => &["LRANGE", &key, "0", "-1"],
            "z" => &["ZRANGE", &key, "0", "-1", "WITHSCORES"],
            "x" => &["XRANGE", &key, "-", "+"],
            _ => &["GET", &key],
        };
        let left: &[&str] = match unit.key {
            "h" => &["HPTTL", &key, "FIELDS", "1", unit.field],
            _ => &["PTTL", &key],
        };
        let mut bytes = Vec::new();
        for words in [&["MULTI"][..], left, read, &["EXEC"]] {
            bytes.extend(crate::common::command(words));
        }
        let from = epoch.now();
        client.send(&bytes);
        let reply = (0..4).map(|_| client.read()).last().expect("four");
        let at = Span {
            from,
            to: epoch.now(),
        };
        let Reply::Array(both) = reply else {
            panic!("{unit:?} cannot be read: {reply:?}");
        };
        let left = match &both[0] {
            Reply::Integer(left) => *left,
            Reply::Array(one) => match one[0] {
                Reply::Integer(left) => left,
                _ => -2,
            },
            _ => -2,
        };
        Observed {
            value: value(unit, &both[1]),
            left: (left >= 0).then_some(left),
            at,
        }
    };
    let all = Unit::all().into_iter();
    all.map(|unit| (unit, see(unit))).collect()
}

fn value(unit: Unit, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Bulk(_) => Some(Value::Text(text(reply))),
        Reply::Array(all) if all.is_empty() => None,
        Reply::Array(all) => Some(match unit.key {
            "z" => Value::Scores(
                (all.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1])))).collect(),
            ),
            "x" => Value::Stream(all.iter().map(entry).collect()),
            _ => Value::List(all.iter().map(|one| Some(text(one))).collect()),
        }),
        _ => None,
    }
}

fn entry(reply: &Reply) -> (Option<String>, String) {
    let Reply::Array(parts) = reply else {
        panic!("{reply:?} is no entry");
    };
    let Reply::Array(fields) = &parts[1] else {
        panic!("{reply:?} has no fields");
    };
    (Some(text(&parts[0])), text(&fields[1]))
}

fn text(reply: &Reply) -> String {
    crate::common::text(reply)
}

/// What no client owns.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared {
    pub(super) accounts: Vec<i64>,
    hits: i64,
    queues: Vec<Vec<String>>,
}

/// The clients as they were, each with what it has sent and what of it is there.
pub(super) type Sides<'s> = &'s [(&'s [Sent], Included)];

impl Shared {
    pub(super) fn observe(client: &mut Client) -> Self {
        let mut number = |key: &str| match client.call(&["GET", key]) {
            Reply::Null => 0,
            reply => text(&reply).parse().expect("a number"),
        };
        let accounts = (0..ACCOUNTS).map(|i| number(&account_key(i))).collect();
        let hits = number("hits");
        let queue = |i| match client.call(&["LRANGE", &queue(i), "0", "-1"]) {
            Reply::Array(all) => all.iter().map(text).collect(),
            other => panic!("{other:?} is no list"),
        };
        Self {
            accounts,
            hits,
            queues: (0..QUEUES).map(queue).collect(),
        }
    }

    /// Compares what is there now with what was there before, and what clients have done since.
    pub(super) fn check(
        &self,
        now: &Self,
        sides: Sides<'_>,
        models: &[Model],
    ) -> Result<(), String> {
        let (mut accounts, mut least, mut most) = (self.accounts.clone(), self.hits, self.hits);
        for (sent, included) in sides {
            for (i, one) in sent[..included.most].iter().enumerate() {
                for part in &one.op.parts {
                    match part {
                        Part::Move(account, by) => accounts[*account as usize] += by,
                        Part::Hit => {
                            most += 1;
                            least += i64::from(i < included.least);
                        }
                        _ => {}
                    }
                }
            }
        }
        if accounts != now.accounts {
            return Err(format!(
                "WRONG: the accounts are {:?}, and not {accounts:?}",
                now.accounts
            ));
        }
        if !(least..=most).contains(&now.hits) {
            let (is, was) = (now.hits, self.hits);
            return Err(format!(
                "WRONG: {is} hits after {was}, not {least} to {most}"
            ));
        }
        self.check_queues(now, sides, models)
    }

    fn check_queues(&self, now: &Self, sides: Sides<'_>, models: &[Model]) -> Result<(), String> {
        let there: Vec<&String> = now.queues.iter().flatten().collect();
        let mut found: BTreeSet<&str> = there.iter().map(|one| one.as_str()).collect();
        if found.len() < there.len() {
            return Err(format!("WRONG: an element is there twice: {there:?}"));
        }
        // Elements that must be there, those that may, and those that may not.
        let mut must: BTreeSet<&str> = self.queues.iter().flatten().map(String::as_str).collect();
        let (mut may, mut gone) = (must.clone(), BTreeSet::new());
        let mut unknown = 0;
        for (sent, included) in sides {
            for (i, one) in sent.iter().enumerate() {
                let (is_in, is_out) = (i < included.least, i >= included.most);
                if let Part::Push(_, element) = &one.op.parts[0] {
                    if is_in {
                        must.insert(element);
                    }
                    if !is_out {
                        may.insert(element);
                    }
                }
            }
        }
        let popped: Vec<_> = (sides.iter())
            .flat_map(|(sent, included)| {
                (sent.iter().enumerate()).map(move |(i, one)| (i, one, included))
            })
            .filter(|(_, one, _)| {
                matches!(
                    one.op.parts[0],
                    Part::Pop(_) | Part::WaitAndPop | Part::Take(_)
                )
            })
            .map(|(i, one, included)| {
                let element = match one.reply() {
                    Some(Reply::Bulk(element)) => String::from_utf8_lossy(element).into_owned(),
                    Some(Reply::Array(both)) => text(&both[1]),
                    _ => String::new(),
                };
                (i, one, included, element)
            })
            .collect();
        for (i, one, included, element) in &popped {
            if one.answer.is_none() {
                unknown += usize::from(!matches!(one.op.parts[0], Part::Take(_)));
            } else if !element.is_empty() && *i < included.most {
                must.remove(element.as_str());
                if *i < included.least {
                    gone.insert(element.as_str());
                }
            }
        }
        if let Some(back) = found.iter().find(|element| gone.contains(*element)) {
            return Err(format!("WRONG: {back} was taken and is back"));
        }
        if let Some(odd) = found.iter().find(|element| !may.contains(*element)) {
            return Err(format!("WRONG: nobody has pushed {odd}"));
        }
        let taken: Vec<String> = (models.iter())
            .flat_map(|model| model.states(Unit::key("taken")))
            .filter_map(|state| match &state.value {
                Some(Value::List(all)) => Some(all.iter().flatten().cloned()),
                _ => None,
            })
            .flatten()
            .collect();
        found.extend(taken.iter().map(String::as_str));
        let missing: Vec<_> = must.difference(&found).collect();
        if missing.len() > unknown {
            return Err(format!(
                "LOST: {missing:?}, and {unknown} were taken unseen"
            ));
        }
        now.check_order()
    }

    /// What one client has pushed lies in order.
    fn check_order(&self) -> Result<(), String> {
        for queue in &self.queues {
            let mut last = BTreeMap::new();
            for element in queue {
                let (of, n) = element.split_once('-').expect("two numbers");
                let n: u64 = n.parse().expect("a number");
                if last.insert(of, n).is_some_and(|before| before <= n) {
                    return Err(format!("WRONG: out of order: {queue:?}"));
                }
            }
        }
        Ok(())
    }
}

/// What was read of the counts of others, or told by a script, is there. With `all` that holds for
/// everything that was read, else for what was read before something that is there.
pub(super) fn check_reads(
    sides: Sides<'_>,
    seen: &[BTreeMap<Unit, Observed>],
    told: Option<&[u64]>,
) -> Result<u64, String> {
    let counts: Vec<u64> = (seen.iter())
        .map(|seen| match &seen[&Unit::key(COUNT)].value {
            Some(Value::Text(count)) => count.parse().expect("a number"),
            _ => 0,
        })
        .collect();
    let mut checked = 0;
    for (reader, (sent, included)) in sides.iter().enumerate() {
        for (i, one) in sent.iter().enumerate() {
            let (Part::ReadCount(of), Some(Reply::Bulk(count))) = (&one.op.parts[0], one.reply())
            else {
                continue;
            };
            if told.is_none() && i + 1 >= included.least {
                continue;
            }
            let count: u64 = String::from_utf8_lossy(count).parse().expect("a number");
            checked += 1;
            if counts[*of] < count {
                return Err(format!(
                    "LOST: client {reader} has read {count} of client {of}, and {} is there",
                    counts[*of]
                ));
            }
        }
    }
    for (of, told) in told.unwrap_or_default().iter().enumerate() {
        if counts[of] < *told {
            return Err(format!(
                "LOST: a script told {told} of {of}, and {} is there",
                counts[of]
            ));
        }
    }
    Ok(checked)
}
