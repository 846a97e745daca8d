//! XTRIM: removes the oldest entries.

use tidewheel_collections::{Keep, Log, Needed, Stream, StreamId, Trim, Trimmed};
use tidewheel_resp::{Args, parse_i64};

use super::references::References;
use super::{Outcome, event, id};
use crate::context::{Context, Key, Lookup};
use crate::error::CommandError;
use crate::value::Object;
use crate::value::collection::{Collection, Owned};

const BOTH: CommandError = CommandError::fixed(
    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
);
const NEGATIVE_LEN: CommandError = CommandError::fixed("ERR The MAXLEN argument must be >= 0.");
const NEGATIVE_LIMIT: CommandError = CommandError::fixed("ERR The LIMIT argument must be >= 0.");
const LIMIT_ALONE: CommandError = CommandError::fixed(
    "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
);
const LIMIT_EXACT: CommandError =
    CommandError::fixed("ERR syntax error, LIMIT cannot be used without the special ~ option");
const NO_STRATEGY: CommandError =
    CommandError::fixed("ERR syntax error, XTRIM must be called with a trimming strategy");

/// The most entries that an approximate trim removes where the call says nothing: so many full
/// chunks, within bounds.
const CHUNKS_MAX: u64 = 100;
const LIMIT_MAX: u64 = 1_000_000;
const LIMIT_WITHOUT_CHUNKS: u64 = 10_000;

/// Entries that are looked at before the first of them is removed.
const TOGETHER: usize = 64;

/// Words about trimming, as far as they were read.
#[derive(Debug, Default)]
pub(super) struct TrimWords {
    keep: Option<Keep>,
    approximate: bool,
    limit: Option<u64>,
    references: Option<References>,
}

/// The way in which a stream is trimmed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trimming {
    trim: Trim,
    references: References,
}

impl TrimWords {
    /// Reads what stands first, if that is about trimming. Returns how many words it is.
    pub(super) fn take(&mut self, words: Args<'_>) -> Result<Option<usize>, CommandError> {
        let (Some(word), next) = (words.get(0), words.get(1)) else {
            return Ok(None);
        };
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let by_len = is("MAXLEN");
        if let Some(next) = next
            && (by_len || is("MINID"))
        {
            return self.take_threshold(by_len, next, words.get(2)).map(Some);
        }
        if let Some(next) = next
            && is("LIMIT")
        {
            let limit = parse_i64(next).ok_or(CommandError::NOT_AN_INTEGER)?;
            self.limit = Some(u64::try_from(limit).map_err(|_| NEGATIVE_LIMIT)?);
            return Ok(Some(2));
        }
        if self.references.is_none() {
            self.references = References::of(word);
            return Ok(self.references.map(|_| 1));
        }
        Ok(None)
    }

    fn take_threshold(
        &mut self,
        by_len: bool,
        next: &[u8],
        behind: Option<&[u8]>,
    ) -> Result<usize, CommandError> {
        if self.keep.is_some() {
            return Err(BOTH);
        }
        let (threshold, taken) = match (next, behind) {
            (b"~" | b"=", Some(behind)) => (behind, 3),
            _ => (next, 2),
        };
        self.approximate = taken == 3 && next == b"~";
        self.keep = Some(if by_len {
            let most = parse_i64(threshold).ok_or(CommandError::NOT_AN_INTEGER)?;
            Keep::Len(u64::try_from(most).map_err(|_| NEGATIVE_LEN)?)
        } else {
            Keep::From(id::parse(threshold)?)
        });
        Ok(taken)
    }

    /// What they mean; `None` without a strategy.
    pub(super) fn trimming(self, ctx: &Context<'_, '_>) -> Result<Option<Trimming>, CommandError> {
        if self.limit.is_some_and(|limit| limit > 0) && self.keep.is_none() {
            return Err(LIMIT_ALONE);
        }
        if self.limit.is_some() && !self.approximate {
            return match (self.keep, ctx.name()) {
                (None, "xtrim") => Err(NO_STRATEGY),
                _ => Err(LIMIT_EXACT),
            };
        }
        let Some(keep) = self.keep else {
            return Ok(None);
        };
        let limit = match (self.approximate, self.limit) {
            (false, _) => 0,
            (true, Some(limit)) => limit,
            (true, None) => {
                let entries = super::limits(ctx).entries as u64;
                match entries.saturating_mul(CHUNKS_MAX) {
                    0 => LIMIT_WITHOUT_CHUNKS,
                    limit => limit.min(LIMIT_MAX),
                }
            }
        };
        let trim = Trim {
            keep,
            approximate: self.approximate,
            limit,
        };
        let references = self.references.unwrap_or_default();
        Ok(Some(Trimming { trim, references }))
    }
}

/// The outcome of a trim.
#[derive(Debug)]
pub(super) struct TrimOutcome {
    pub(super) entries: u64,
    chunks: Option<Trimmed>,
    /// What to keep, if how much has left depends on how the entries lay.
    kept: Option<Keep>,
}

impl TrimOutcome {
    /// True if it is to be recorded as what it has left.
    pub(super) fn is_approximate(&self) -> bool {
        self.kept.is_some()
    }

    /// Records which entries it has left, if that depends on how they lay.
    pub(super) fn record(&self, ctx: &mut Context<'_, '_>, key: Key<'_>, references: References) {
        let (word, threshold) = match self.kept {
            None => return,
            Some(Keep::Len(most)) => (&b"MAXLEN"[..], most.to_string()),
            Some(Keep::From(id)) => (&b"MINID"[..], id.to_string()),
        };
        let mut words = vec![b"XTRIM", key.bytes, word, b"=", threshold.as_bytes()];
        if references == References::Delete {
            words.push(b"DELREF");
        }
        ctx.record_instead(&words);
    }

    /// Entries have left a log, as many as its chunks allowed for.
    pub(super) fn of(trimmed: Trimmed, log: &Log) -> Self {
        Self {
            entries: trimmed.entries,
            kept: (trimmed.entries > 0).then(|| kept(log)),
            chunks: Some(trimmed),
        }
    }

    /// Drops the chunks when nothing is locked any more.
    pub(super) fn drop(self, ctx: &mut Context<'_, '_>) {
        let Some(chunks) = self.chunks else { return };
        if chunks.chunks() > 0 {
            let of = Stream {
                log: chunks.into_log(),
                ..Stream::new()
            };
            let own_deadline = None;
            let object: Object = Stream::into_object(Box::new(Owned { own_deadline, of }));
            ctx.drop_object(object);
        }
    }
}

/// What to keep so that the same entries stay.
fn kept(log: &Log) -> Keep {
    match log.is_empty() {
        true => Keep::Len(0),
        false => Keep::From(log.first_id()),
    }
}

impl Trimming {
    pub(super) fn references(&self) -> References {
        self.references
    }

    /// Trims a stream.
    pub(super) fn run(self, stream: &mut Stream) -> TrimOutcome {
        let has_groups = stream.groups.iter().next().is_some();
        match self.references {
            References::Delete if has_groups => self.run_forgetting(stream),
            References::Acked if has_groups => self.run_acked(stream),
            _ => {
                let trimmed = stream.log.trim(self.trim);
                self.outcome(trimmed, &stream.log)
            }
        }
    }

    fn outcome(self, trimmed: Trimmed, log: &Log) -> TrimOutcome {
        let outcome = TrimOutcome::of(trimmed, log);
        TrimOutcome {
            // An exact one is recorded as it was sent.
            kept: outcome.kept.filter(|_| self.trim.approximate),
            ..outcome
        }
    }

    /// Trims, and has all groups forget the entries.
    fn run_forgetting(self, stream: &mut Stream) -> TrimOutcome {
        let candidates = self.candidates(stream);
        let trimmed = stream.log.trim(self.trim);
        let leaves = |id: &StreamId| stream.log.is_empty() || *id < stream.log.first_id();
        let gone: Vec<_> = candidates.into_iter().filter(leaves).collect();
        stream.groups.forget_all(&gone);
        self.outcome(trimmed, &stream.log)
    }

    /// The entries that may leave.
    fn candidates(&self, stream: &Stream) -> Vec<StreamId> {
        let log = &stream.log;
        let all = log
            .range(StreamId::MIN, StreamId::MAX)
            .map(|entry| entry.id);
        match self.trim.keep {
            Keep::Len(most) => {
                let gone = log.len().saturating_sub(most);
                all.take(usize::try_from(gone).unwrap_or(usize::MAX))
                    .collect()
            }
            Keep::From(id) => all.take_while(|one| *one < id).collect(),
        }
    }

    /// Removes those of the oldest entries that no group needs.
    fn run_acked(self, stream: &mut Stream) -> TrimOutcome {
        let deleted = stream.log.max_deleted_id();
        let (mut entries, mut next) = (0, Some(StreamId::MIN));
        // For many entries it pays to look at all groups once.
        let mut needed: Option<Needed> = None;
        while let Some(start) = next {
            let some = stream.log.range(start, StreamId::MAX).take(TOGETHER);
            let ids: Vec<_> = some.map(|entry| entry.id).collect();
            next = ids.last().and_then(|last| last.next());
            for id in ids {
                let is_enough = match self.trim.keep {
                    Keep::Len(most) => stream.log.len() <= most,
                    Keep::From(from) => id >= from,
                };
                if is_enough || self.trim.limit > 0 && entries >= self.trim.limit {
                    next = None;
                    break;
                }
                let is_needed = match &needed {
                    Some(needed) => needed.has(id),
                    None => stream.groups.needs(id),
                };
                entries += u64::from(!is_needed && stream.log.delete(id));
            }
            if next.is_some() {
                needed = needed.or_else(|| Some(stream.groups.needed()));
            }
        }
        stream.log.set_max_deleted_id(deleted);
        TrimOutcome {
            entries,
            chunks: None,
            kept: None,
        }
    }
}

pub(crate) fn xtrim(ctx: &mut Context<'_, '_>) -> Outcome {
    let mut words = TrimWords::default();
    let mut i = 2;
    while i < ctx.args.len() {
        i += words.take(ctx.args.from(i))?.ok_or(CommandError::SYNTAX)?;
    }
    let trimming = words.trimming(ctx)?.ok_or(NO_STRATEGY)?;
    let key = ctx.key(1);
    let slot = ctx.find_of::<Stream>(key, Lookup::Write)?;
    let Some(slot) = slot else {
        ctx.out.integer(0);
        return Ok(());
    };
    let trimmed = ctx.edit(key, Some(slot), |stream: &mut Stream, out| {
        let trimmed = trimming.run(stream);
        out.integer(trimmed.entries as i64);
        let cause = (trimmed.entries > 0).then_some(event("xtrim"));
        (trimmed, cause)
    });
    trimmed.record(ctx, key, trimming.references());
    trimmed.drop(ctx);
    Ok(())
}
