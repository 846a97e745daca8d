//! A task that waits for others: a parent, and its children.

use std::collections::HashMap;

use crate::shape::error::StoreError;
use crate::shape::task::{Task, check_id};

/// Children that a task may have.
const CHILDREN_MAX: usize = 100;

/// The tasks that a task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// Their ids: 100 at most.
    pub ids: Vec<String>,
    /// True if it becomes a dead letter as soon as one of them is; otherwise that one has ended,
    /// too.
    pub needs_all: bool,
}

impl Waits {
    /// Waits for these tasks to end.
    pub(crate) fn new(ids: impl IntoIterator<Item: Into<String>>, needs_all: bool) -> Self {
        let ids = ids.into_iter().map(Into::into).collect();
        Self { ids, needs_all }
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check_children(self.ids.len())?;
        self.ids.iter().try_for_each(|id| check_id(id))
    }

    /// The line by which stores keep it.
    pub(crate) fn line(&self) -> String {
        let ids: Vec<_> = self.ids.iter().map(|id| escaped(id)).collect();
        let name = if self.needs_all { "needs" } else { "waits" };
        format!("{name}={}", ids.join(" "))
    }

    /// Reads the value of such a line.
    pub(crate) fn read(value: &str, needs_all: bool) -> Self {
        let ids = value.split(' ').filter(|id| !id.is_empty()).map(unescaped);
        Self::new(ids, needs_all)
    }
}

/// Checks that a task may have so many children.
pub(crate) fn check_children(count: usize) -> Result<(), StoreError> {
    if count > CHILDREN_MAX {
        return Err(StoreError::refused("a task waits for 100 others at most"));
    }
    Ok(())
}

/// A circle among tasks, of which each has another id: the ids in it.
pub(crate) fn circle_among(tasks: &[Task]) -> Option<Vec<&str>> {
    let those = tasks.iter().filter_map(|task| {
        let waits = task.terms.waits.as_ref()?;
        Some((&*task.id, waits))
    });
    let waits: HashMap<&str, &Waits> = those.collect();
    if waits.is_empty() {
        return None;
    }
    // True for a task on the path that is walked now; false for one that is done with.
    let mut seen = HashMap::<&str, bool>::new();
    for first in tasks {
        let (mut path, mut next) = (Vec::new(), Some(&*first.id));
        loop {
            if let Some(id) = next
                && let Some(of) = waits.get(id)
            {
                match seen.get(id) {
                    None => {
                        seen.insert(id, true);
                        path.push((id, of.ids.iter()));
                    }
                    Some(true) => {
                        let path = path.iter().map(|(id, _)| *id);
                        return Some(path.skip_while(|before| *before != id).collect());
                    }
                    Some(false) => {}
                }
            }
            let Some((id, rest)) = path.last_mut() else {
                break;
            };
            next = rest.next().map(|id| &**id);
            if next.is_none() {
                seen.insert(id, false);
                path.pop();
            }
        }
    }
    None
}

/// The words for a circle of tasks, which name a dozen of them.
pub(crate) fn in_circle(ids: &[&str]) -> String {
    let (named, more) = ids.split_at(ids.len().min(12));
    let named = named.join(", ");
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("tasks wait for one another in a circle: {named}{more}")
}

/// The characters that would end a line or an id, and what is written for them.
const ESCAPES: [(char, &str); 4] = [('%', "%25"), (' ', "%20"), ('\n', "%0A"), ('\r', "%0D")];

fn escaped(id: &str) -> String {
    let escapes = ESCAPES.into_iter();
    escapes.fold(id.to_owned(), |id, (letter, code)| id.replace(letter, code))
}

fn unescaped(id: &str) -> String {
    let escapes = ESCAPES.into_iter().rev();
    escapes.fold(id.to_owned(), |id, (letter, code)| {
        id.replace(code, letter.encode_utf8(&mut [0; 4]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_ids_come_back_from_the_line() {
        for needs_all in [false, true] {
            let waits = Waits::new(["a b", "%20", "a\nb\r", "%250A"], needs_all);
            let line = waits.line();
            let value = line.split_once('=').map_or("", |(_, value)| value);
            assert_eq!(line.lines().count(), 1);
            assert_eq!(Waits::read(value, needs_all), waits);
        }
    }
}
