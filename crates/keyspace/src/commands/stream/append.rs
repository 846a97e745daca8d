//! Appends entries that no command has sent: what has expired.

use tidewheel_collections::{Log, Stream, Trim};

use super::references::References;
use super::trim::TrimOutcome;
use super::{at, event, limits};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;

/// Appends an entry of these names and values in turn, which has happened at that wall time or
/// later. False if no id is left for it.
pub(crate) type AppendFn<'f> = dyn FnMut(i64, &[&[u8]]) -> bool + 'f;

/// Appends what `entries` passes to its argument to the stream of a key in the session's database,
/// and trims it then. Returns how many entries it has appended, and how many have left. All of them
/// are one change.
///
/// # Errors
///
/// If the key has another type.
pub(crate) fn append_to_stream(
    ctx: &mut Context<'_, '_>,
    key: Key<'_>,
    trim: Trim,
    entries: impl FnOnce(&mut AppendFn<'_>) -> usize,
) -> Result<(usize, u64), CommandError> {
    let slot = ctx.find_of::<Stream>(key, Lookup::Write)?;
    let now_ms = ctx.now.wall_ms();
    let next_id = |log: &Log, wall_ms: i64| log.next_id(u64::try_from(wall_ms).unwrap_or(0));
    if let Some(slot) = slot
        && next_id(&at(ctx, key, slot).log, now_ms).is_none()
    {
        return Ok((0, 0));
    }
    let limits = limits(ctx);
    let (records, mut recorded) = (ctx.is_recording(), Vec::new());
    let (appended, trimmed) = ctx.edit(key, slot, |stream: &mut Stream, _| {
        let appended = entries(&mut |wall_ms, words| {
            // Another thread may have read the clock a moment later than this one.
            let Some(id) = next_id(&stream.log, wall_ms.max(now_ms)) else {
                return false;
            };
            stream.log.append(id, words.iter().copied(), &limits);
            if records {
                let words = words.iter().map(|word| Box::<[u8]>::from(*word));
                recorded.push((id.to_string(), words.collect::<Vec<_>>()));
            }
            true
        });
        let trimmed = stream.log.trim(trim);
        let trimmed = TrimOutcome::of(trimmed, &stream.log);
        ((appended, trimmed), Some(event("xadd")))
    });
    let left = trimmed.entries;
    if left > 0 {
        ctx.event(key, event("xtrim"));
    }
    for (id, words) in &recorded {
        let head = [&b"XADD"[..], key.bytes, id.as_bytes()].into_iter();
        let words: Vec<_> = head.chain(words.iter().map(|word| &**word)).collect();
        ctx.record_instead(&words);
    }
    trimmed.record(ctx, key, References::Keep);
    trimmed.drop(ctx);
    Ok((appended, left))
}
