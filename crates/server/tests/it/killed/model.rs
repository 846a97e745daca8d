//! What a client's own keys may hold: for each, the states that its replies do not rule out.
//!
//! Whether a key lived when a command ran is not always known, since a deadline is known only as
//! well as the request that set it was timed. Then there are two states, and a later reply or the
//! check rules one out.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::Reply;

use super::part::{FIELDS, Form, Op, Part};

/// A moment of the checker's clock in microseconds.
pub(super) type Micros = i64;

/// A moment between these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) from: Micros,
    pub(super) to: Micros,
}

/// A time in milliseconds is a multiple of them, so a deadline is less than one off. A loop takes
/// the time before it reads a command, which is some more.
pub(super) const EARLY: Micros = 3_000;
pub(super) const LATE: Micros = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    Text(String),
    /// `None` stands for an element that nobody was told of.
    List(Vec<Option<String>>),
    Scores(BTreeMap<String, String>),
    Stream(Vec<(Option<String>, String)>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct State {
    pub(super) value: Option<Value>,
    pub(super) deadline: Option<Span>,
}

/// A key, or a field of the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unit {
    pub(super) db: u8,
    pub(super) key: &'static str,
    pub(super) field: &'static str,
}

/// What is there now.
#[derive(Debug, Clone)]
pub(super) struct Observed {
    pub(super) value: Option<Value>,
    /// Milliseconds that are left.
    pub(super) left: Option<i64>,
    pub(super) at: Span,
}

#[derive(Debug, Clone)]
pub(super) struct Model {
    states: BTreeMap<Unit, Vec<State>>,
}

/// What a command answers.
#[derive(Debug)]
enum Says {
    Number(i64),
    Text(String),
    Done,
    Nothing,
    Error,
    Anything,
}

/// One way in which a command may have found things.
type Found<'s> = Option<&'s State>;

impl Unit {
    pub(super) fn key(key: &'static str) -> Self {
        Self {
            db: 0,
            key,
            field: "",
        }
    }

    fn other(key: &'static str) -> Self {
        Self {
            db: 9,
            ..Self::key(key)
        }
    }

    fn field(field: &'static str) -> Self {
        Self {
            field,
            ..Self::key("h")
        }
    }

    /// All of a client.
    pub(super) fn all() -> Vec<Self> {
        let keys = [
            "s0", "s1", "v0", "v1", "v2", "l", "taken", "z", "x", "count",
        ];
        let others = ["s0", "s1", "v0", "v1", "v2"];
        (keys.into_iter().map(Self::key))
            .chain(others.into_iter().map(Self::other))
            .chain(FIELDS.into_iter().map(Self::field))
            .collect()
    }
}

impl State {
    fn text(text: &str) -> Self {
        Self::of(Value::Text(text.to_owned()))
    }

    fn of(value: Value) -> Self {
        Self {
            value: Some(value),
            deadline: None,
        }
    }

    fn with(mut self, deadline: Option<Span>) -> Self {
        self.deadline = deadline;
        self
    }

    fn may_live(&self, at: Span) -> bool {
        self.value.is_some() && self.deadline.is_none_or(|deadline| at.from < deadline.to)
    }

    fn may_be_dead(&self, at: Span) -> bool {
        self.value.is_none() || self.deadline.is_some_and(|deadline| at.to >= deadline.from)
    }

    /// True if this is what is there.
    pub(super) fn fits(&self, seen: &Observed) -> bool {
        let (Some(value), Some(is)) = (&self.value, &seen.value) else {
            return match seen.value {
                None => self.may_be_dead(seen.at),
                Some(_) => false,
            };
        };
        let left = match (self.deadline, seen.left) {
            (None, None) => true,
            (Some(deadline), Some(left)) => {
                let is = ends(seen.at, left);
                is.from <= deadline.to && is.to >= deadline.from
            }
            _ => false,
        };
        left && self.may_live(seen.at) && value.fits(is)
    }
}

/// When that ends of which so many milliseconds are left at a moment.
pub(super) fn ends(at: Span, left_ms: i64) -> Span {
    Span {
        from: at.from + left_ms * 1_000 - LATE,
        to: at.to + left_ms * 1_000 + LATE,
    }
}

impl Value {
    /// True if this is the other one, or may be.
    fn fits(&self, is: &Self) -> bool {
        match (self, is) {
            (Self::List(of), Self::List(is)) => {
                of.len() == is.len() && (of.iter().zip(is)).all(|(of, is)| of.is_none() || of == is)
            }
            (Self::Stream(of), Self::Stream(is)) => {
                of.len() == is.len()
                    && (of.iter().zip(is))
                        .all(|(of, is)| (of.0.is_none() || of.0 == is.0) && of.1 == is.1)
            }
            (of, is) => of == is,
        }
    }
}

impl Says {
    /// True if this is the reply. A reply that never came rules nothing out.
    fn fits(&self, reply: Option<&Reply>) -> bool {
        let Some(reply) = reply else { return true };
        match (self, reply) {
            (Self::Anything, _) | (Self::Nothing, Reply::Null) | (Self::Error, Reply::Error(_)) => {
                true
            }
            (Self::Number(is), Reply::Integer(of)) => is == of,
            (Self::Text(is), Reply::Bulk(of)) => is.as_bytes() == of,
            (Self::Done, Reply::Simple(of)) => of == "OK",
            _ => false,
        }
    }
}

impl Model {
    pub(super) fn new() -> Self {
        let states = Unit::all()
            .into_iter()
            .map(|unit| (unit, vec![State::default()]));
        Self {
            states: states.collect(),
        }
    }

    pub(super) fn states(&self, unit: Unit) -> &[State] {
        &self.states[&unit]
    }

    pub(super) fn set_states(&mut self, unit: Unit, states: Vec<State>) {
        self.states.insert(unit, states);
    }

    /// Runs what a client has sent. Returns the units that may have changed.
    pub(super) fn run(
        &mut self,
        op: &Op,
        answer: Option<&Reply>,
        at: Span,
    ) -> Result<Vec<Unit>, String> {
        let mut touched = Vec::new();
        for (i, part) in op.parts.iter().enumerate() {
            let reply = match (op.form, answer) {
                (_, None) => None,
                (Form::Alone | Form::Other, one) => one,
                (_, Some(Reply::Array(all))) if all.len() == op.parts.len() => all.get(i),
                (_, Some(odd)) => return Err(format!("{op:?} was answered {odd:?}")),
            };
            self.part(part, reply, at, &mut touched)
                .map_err(|why| format!("{part:?} was answered {reply:?} at {at:?}: {why}"))?;
        }
        Ok(touched)
    }

    fn part(
        &mut self,
        part: &Part,
        reply: Option<&Reply>,
        at: Span,
        touched: &mut Vec<Unit>,
    ) -> Result<(), String> {
        let span = |ms: u64| {
            let us = (ms * 1_000) as Micros;
            Some(Span {
                from: at.from + us - EARLY,
                to: at.to + us + LATE,
            })
        };
        let mut step = |unit: Unit, run: &dyn Fn(Found<'_>) -> (State, Says)| {
            touched.push(unit);
            self.step(unit, reply, at, run)
        };
        let kept = |found: Found<'_>| found.cloned().unwrap_or_default();
        match part {
            Part::Set(key, value) => step(Unit::key(key), &|_| (State::text(value), Says::Done)),
            Part::SetOther(key, value) => {
                step(Unit::other(key), &|_| (State::text(value), Says::Done))
            }
            Part::SetFor(key, value, ms) => step(Unit::key(key), &|_| {
                (State::text(value).with(span(*ms)), Says::Done)
            }),
            Part::Get(key) => step(Unit::key(key), &|found| (kept(found), says(found))),
            Part::GetField(field) => step(Unit::field(field), &|found| (kept(found), says(found))),
            Part::Increase(key) => step(Unit::key(key), &increased),
            Part::IncreaseField(field) => step(Unit::field(field), &increased),
            Part::Append(key, text) => step(Unit::key(key), &|found| {
                let value = format!("{}{text}", text_of(found).unwrap_or_default());
                let says = Says::Number(value.len() as i64);
                (State::text(&value).with(deadline_of(found)), says)
            }),
            Part::Expire(key, ms) => step(Unit::key(key), &|found| match found {
                Some(state) => (state.clone().with(span(*ms)), Says::Number(1)),
                None => (State::default(), Says::Number(0)),
            }),
            Part::ExpireField(field, ms) => step(Unit::field(field), &|found| match found {
                Some(state) => (state.clone().with(span(*ms)), Says::Anything),
                None => (State::default(), Says::Anything),
            }),
            Part::Persist(key) => step(Unit::key(key), &|found| {
                let changed = found.is_some_and(|state| state.deadline.is_some());
                (kept(found).with(None), Says::Number(i64::from(changed)))
            }),
            Part::Left(key) => step(Unit::key(key), &|found| match (found, reply) {
                (None, _) => (State::default(), Says::Number(-2)),
                (Some(state), Some(Reply::Integer(left @ 0..))) if state.deadline.is_some() => {
                    let (was, is) = (state.deadline.expect("it has one"), ends(at, *left));
                    let both = Span {
                        from: was.from.max(is.from - EARLY),
                        to: was.to.min(is.to),
                    };
                    match both.from <= both.to {
                        true => (state.clone().with(Some(both)), Says::Anything),
                        false => (state.clone(), Says::Error),
                    }
                }
                (Some(state), _) if state.deadline.is_none() => (state.clone(), Says::Number(-1)),
                // Nobody was told, or it was something else.
                (Some(state), None) => (state.clone(), Says::Anything),
                (Some(state), Some(_)) => (state.clone(), Says::Error),
            }),
            Part::Delete("h") => {
                for field in FIELDS {
                    touched.push(Unit::field(field));
                    let gone = |_: Found<'_>| (State::default(), Says::Anything);
                    self.step(Unit::field(field), reply, at, &gone)?;
                }
                Ok(())
            }
            Part::Delete(key) => step(Unit::key(key), &|found| {
                (State::default(), Says::Number(found.is_some().into()))
            }),
            Part::Rename(from, to) => {
                self.both(from, to, reply, at, touched, |found| match found {
                    Some(state) if from == to => (state.clone(), Some(state.clone()), Says::Done),
                    Some(state) => (State::default(), Some(state.clone()), Says::Done),
                    None => (State::default(), None, Says::Error),
                })
            }
            Part::Copy(from, to) => self.both(from, to, reply, at, touched, |found| match found {
                Some(state) => (state.clone(), Some(state.clone()), Says::Number(1)),
                None => (State::default(), None, Says::Number(0)),
            }),
            Part::SetField(field, value) => step(Unit::field(field), &|found| {
                (State::text(value), Says::Number(found.is_none().into()))
            }),
            Part::PushOwn(element) => step(Unit::key("l"), &|found| {
                let mut all = list_of(found);
                all.insert(0, Some(element.clone()));
                let says = Says::Number(all.len() as i64);
                (State::of(Value::List(all)), says)
            }),
            Part::Take(_) => self.take(reply, at, touched),
            Part::Score(member, score) => step(Unit::key("z"), &|found| {
                let mut all = match found.and_then(|state| state.value.as_ref()) {
                    Some(Value::Scores(all)) => all.clone(),
                    _ => BTreeMap::new(),
                };
                let is_new = all
                    .insert((*member).to_owned(), score.to_string())
                    .is_none();
                let says = Says::Number(is_new.into());
                (State::of(Value::Scores(all)), says)
            }),
            Part::Add(value) => step(Unit::key("x"), &|found| {
                let mut all = match found.and_then(|state| state.value.as_ref()) {
                    Some(Value::Stream(all)) => all.clone(),
                    _ => Vec::new(),
                };
                let (id, says) = match reply {
                    Some(Reply::Bulk(id)) => (String::from_utf8(id.clone()).ok(), Says::Anything),
                    None => (None, Says::Anything),
                    Some(_) => (None, Says::Error),
                };
                all.push((id, value.clone()));
                (State::of(Value::Stream(all)), says)
            }),
            Part::FlushOther => {
                for unit in Unit::all().into_iter().filter(|unit| unit.db != 0) {
                    touched.push(unit);
                    let gone = |_: Found<'_>| (State::default(), Says::Done);
                    self.step(unit, reply, at, &gone)?;
                }
                Ok(())
            }
            Part::Move(..) | Part::Hit | Part::Push(..) => match reply {
                None | Some(Reply::Integer(_)) => Ok(()),
                Some(_) => Err("it is a number".to_owned()),
            },
            Part::Pop(_)
            | Part::WaitAndPop
            | Part::ReadCount(_)
            | Part::Rewrite
            | Part::Tell(_) => Ok(()),
        }
    }

    /// An element goes from a shared queue to the end of an own list.
    fn take(
        &mut self,
        reply: Option<&Reply>,
        at: Span,
        touched: &mut Vec<Unit>,
    ) -> Result<(), String> {
        let unit = Unit::key("taken");
        touched.push(unit);
        let element = match reply {
            None => None,
            Some(Reply::Null) => return Ok(()),
            Some(Reply::Bulk(element)) => String::from_utf8(element.clone()).ok(),
            Some(_) => return Err("no element".to_owned()),
        };
        let mut states = match reply {
            None => self.states[&unit].clone(),
            Some(_) => Vec::new(),
        };
        self.step(unit, None, at, &|found| {
            let mut all = list_of(found);
            all.push(element.clone());
            (State::of(Value::List(all)), Says::Anything)
        })?;
        states.append(self.states.get_mut(&unit).expect("all are there"));
        self.states.insert(unit, states);
        Ok(())
    }

    /// Runs a command on one unit in all ways that are possible, and drops those that the reply
    /// rules out.
    fn step(
        &mut self,
        unit: Unit,
        reply: Option<&Reply>,
        at: Span,
        run: &dyn Fn(Found<'_>) -> (State, Says),
    ) -> Result<(), String> {
        let was = &self.states[&unit];
        let ways = was.iter().flat_map(|state| {
            let (lives, dead) = (state.may_live(at), state.may_be_dead(at));
            [lives.then(|| run(Some(state))), dead.then(|| run(None))]
        });
        let states: BTreeSet<_> = (ways.flatten())
            .filter_map(|(state, says)| says.fits(reply).then_some(state))
            .collect();
        if states.is_empty() {
            return Err(format!("impossible with {was:?}"));
        }
        self.states.insert(unit, states.into_iter().collect());
        Ok(())
    }

    /// The same for a command that makes one key of another. `run` says what becomes of both, and
    /// `None` for the second leaves it.
    fn both(
        &mut self,
        from: &'static str,
        to: &'static str,
        reply: Option<&Reply>,
        at: Span,
        touched: &mut Vec<Unit>,
        run: impl Fn(Found<'_>) -> (State, Option<State>, Says),
    ) -> Result<(), String> {
        let (from, to) = (Unit::key(from), Unit::key(to));
        touched.extend([from, to]);
        let was = self.states[&from].clone();
        let (mut first, mut second) = (BTreeSet::new(), BTreeSet::new());
        for state in &was {
            let ways = [
                state.may_live(at).then_some(Some(state)),
                state.may_be_dead(at).then_some(None),
            ];
            for found in ways.into_iter().flatten() {
                let (one, other, says) = run(found);
                if !says.fits(reply) {
                    continue;
                }
                first.insert(one);
                match other {
                    Some(other) => drop(second.insert(other)),
                    None => second.extend(self.states[&to].iter().cloned()),
                }
            }
        }
        if first.is_empty() {
            return Err(format!("impossible with {was:?}"));
        }
        self.states.insert(from, first.into_iter().collect());
        self.states.insert(to, second.into_iter().collect());
        Ok(())
    }
}

fn text_of(found: Found<'_>) -> Option<&str> {
    match &found?.value {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn deadline_of(found: Found<'_>) -> Option<Span> {
    found.and_then(|state| state.deadline)
}

fn list_of(found: Found<'_>) -> Vec<Option<String>> {
    match found.and_then(|state| state.value.as_ref()) {
        Some(Value::List(all)) => all.clone(),
        _ => Vec::new(),
    }
}

fn says(found: Found<'_>) -> Says {
    text_of(found).map_or(Says::Nothing, |text| Says::Text(text.to_owned()))
}

fn increased(found: Found<'_>) -> (State, Says) {
    let text = text_of(found).unwrap_or("0");
    let number = text.parse::<i64>().ok();
    // As servers read numbers: in one way only.
    let number = number.filter(|number| number.to_string() == text);
    match number.and_then(|number| number.checked_add(1)) {
        Some(number) => (
            State::text(&number.to_string()).with(deadline_of(found)),
            Says::Number(number),
        ),
        None => (found.cloned().unwrap_or_default(), Says::Error),
    }
}
