//! A task, a dead letter or a note as the bytes of a record. A note has its kind (2) and its bytes.
//!
//! | bytes | a task (kind 0) | a dead letter (kind 1) |
//! |---|---|---|
//! | 1 | kind; 3 for a task of which a start is noted | kind |
//! | 4 | of kind 3: how many attempts were lost before | – |
//! | 8 | due time in microseconds since 1970 | time of death |
//! | 4 | number of the next attempt, from 1 | number of attempts |
//! | 8 | due time of the run that is tried again | – |
//! | 8 | period in milliseconds, or 0 | – |
//! | 1 | priority | – |
//! | 4, … | – | length and text of the error |
//! | 4, … | length and text of the terms | the same |
//! | … | payload | the same |

use std::time::Duration;

use crate::shape::dead::DeadLetter;
use crate::shape::task::Priority;
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;
use crate::table::row::{Row, Start};

const TASK: u8 = 0;
const LETTER: u8 = 1;
const NOTE: u8 = 2;
const STARTED: u8 = 3;

/// What a record holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    Task(Row),
    Letter(DeadLetter),
    Note(Vec<u8>),
}

/// The bytes of a task. Who holds it is not among them: claims end with the process.
pub(super) fn of_task(row: &Row) -> Vec<u8> {
    let every = row.terms.every().map_or(0, |period| period.as_millis());
    let every_ms = u64::try_from(every).unwrap_or(u64::MAX);
    let mut bytes = vec![TASK];
    if row.start == Start::Noted {
        bytes = vec![STARTED];
        bytes.extend(row.lost.to_le_bytes());
    }
    bytes.extend(row.due.0.to_le_bytes());
    bytes.extend(row.attempt.to_le_bytes());
    bytes.extend(row.began.0.to_le_bytes());
    bytes.extend(every_ms.to_le_bytes());
    bytes.push(row.priority.level());
    put_text(&mut bytes, &row.terms.text());
    bytes.extend(&row.payload);
    bytes
}

/// The bytes of a dead letter.
pub(super) fn of_letter(letter: &DeadLetter) -> Vec<u8> {
    let mut bytes = vec![LETTER];
    bytes.extend(letter.died.0.to_le_bytes());
    bytes.extend(letter.attempts.to_le_bytes());
    put_text(&mut bytes, &letter.error);
    put_text(&mut bytes, &letter.terms.text());
    bytes.extend(&letter.payload);
    bytes
}

/// The bytes of what a table keeps beside tasks and letters.
pub(super) fn of_note(note: &[u8]) -> Vec<u8> {
    [&[NOTE], note].concat()
}

/// Reads what these wrote; `None` for anything else.
pub(super) fn read(id: &str, mut bytes: &[u8]) -> Option<Kept> {
    let bytes = &mut bytes;
    let [kind] = *front(bytes)?;
    if kind == NOTE {
        return Some(Kept::Note(bytes.to_vec()));
    }
    let (mut lost, mut start) = (0, Start::None);
    if kind == STARTED {
        lost = u32::from_le_bytes(*front(bytes)?);
        start = Start::Noted;
    }
    let at = Timestamp(number(bytes)?);
    let attempt = u32::from_le_bytes(*front(bytes)?);
    match kind {
        TASK | STARTED => {
            let began = Timestamp(number(bytes)?);
            let every_ms = number(bytes)?;
            let [level] = *front(bytes)?;
            let every = (every_ms > 0).then(|| Duration::from_millis(every_ms));
            Some(Kept::Task(Row {
                due: at,
                began,
                terms: Terms::read(every, Some(text(bytes)?)),
                payload: bytes.to_vec(),
                priority: Priority::of_level(level),
                attempt,
                lost,
                start,
                progress: None,
                held: None,
            }))
        }
        LETTER => {
            let mut letter = DeadLetter::new(id, attempt, text(bytes)?);
            letter.terms = Terms::read(None, Some(text(bytes)?));
            (letter.died, letter.payload) = (at, bytes.to_vec());
            Some(Kept::Letter(letter))
        }
        _ => None,
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend(length.to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = u32::from_le_bytes(*front(bytes)?);
    let (text, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    str::from_utf8(text).ok()
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    front(bytes).map(|number| u64::from_le_bytes(*number))
}

/// Takes so many bytes off the front.
fn front<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(front)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::task::Task;

    #[test]
    fn every_task_and_letter_comes_back_and_what_is_cut_off_does_not() {
        let task = Task::new("a", "payload").every(Duration::from_secs(7));
        let mut row = Row::of(task.priority(Priority::High), Timestamp(70));
        (row.attempt, row.began) = (3, Timestamp(40));
        let mut newer = row.clone();
        newer.terms = Terms::read(None, Some("moon=full"));
        let mut started = row.clone();
        (started.lost, started.start) = (2, Start::Noted);
        for row in [row, newer, started] {
            let bytes = of_task(&row);
            assert_eq!(read("a", &bytes), Some(Kept::Task(row)));
            let payload = "payload".len();
            for end in 0..bytes.len() - payload {
                assert_eq!(read("a", &bytes[..end]), None);
            }
        }
        let mut letter = DeadLetter::new("ä", 9, "no such address: ä");
        (letter.payload, letter.died) = (b"payload".to_vec(), Timestamp(7));
        let bytes = of_letter(&letter);
        assert_eq!(read("ä", &bytes), Some(Kept::Letter(letter)));
        for end in 0..bytes.len() - "payload".len() {
            assert_eq!(read("ä", &bytes[..end]), None);
        }
        let note = Kept::Note(b"paused".to_vec());
        assert_eq!(read("\0queue/a", &of_note(b"paused")), Some(note));
        assert_eq!(read("a", &[9; 60]), None, "another kind");
    }
}
