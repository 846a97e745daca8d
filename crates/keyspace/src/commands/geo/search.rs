//! Members within an area: GEOSEARCH, GEOSEARCHSTORE, GEORADIUS and its relatives.

use std::ops::{Bound, Range};

use tidewheel_collections::{NewDeadline, ZSet, ZSetRef};
use tidewheel_resp::{Args, Writer};
use tidewheel_store::Slot;

use super::query::{GeoOrder, GeoQuery, Positions};
use super::{Outcome, put_distance, put_point};
use crate::commands::zset::{change, event, store};
use crate::context::{Context, Lookup};
use crate::geo::{Area, Cell, Point};
use crate::rows::cost::GeoSearch;
use crate::value::Entries;
use crate::value::collection;

pub(crate) fn georadius(ctx: &mut Context<'_, '_>) -> Outcome {
    search(ctx, GeoSearch::Around { stores: true })
}

pub(crate) fn georadius_ro(ctx: &mut Context<'_, '_>) -> Outcome {
    search(ctx, GeoSearch::Around { stores: false })
}

pub(crate) fn georadiusbymember(ctx: &mut Context<'_, '_>) -> Outcome {
    search(ctx, GeoSearch::AroundMember { stores: true })
}

pub(crate) fn georadiusbymember_ro(ctx: &mut Context<'_, '_>) -> Outcome {
    search(ctx, GeoSearch::AroundMember { stores: false })
}

pub(crate) fn geosearch(ctx: &mut Context<'_, '_>) -> Outcome {
    search(ctx, GeoSearch::Words)
}

pub(crate) fn geosearchstore(ctx: &mut Context<'_, '_>) -> Outcome {
    search(ctx, GeoSearch::WordsAndStore)
}

/// The number of members that a call looks at.
pub(crate) fn candidates(entries: &Entries, slot: Slot, kind: GeoSearch, args: Args<'_>) -> usize {
    let Ok(zset) = collection::read::<ZSet>(entries, slot) else {
        return 0;
    };
    let position = |member: &[u8]| Some(Cell::of_score(zset.score(member)?).middle());
    let Ok(query) = GeoQuery::parse(args, kind, Some(&position)) else {
        return 0;
    };
    let (Some(middle), Some((shape, _))) = (query.middle, query.shape) else {
        return 0;
    };
    let ranks = |scores: Range<f64>| {
        zset.by_score(Bound::Included(scores.start), Bound::Excluded(scores.end))
    };
    let area = Area { middle, shape };
    let all = area.scores().map(|scores| ranks(scores).len()).sum();
    if query.any { query.count.min(all) } else { all }
}

/// A member that lies within.
struct FoundMember<'a> {
    member: &'a [u8],
    score: f64,
    point: Point,
    /// Metres from the middle.
    distance: f64,
}

fn search(ctx: &mut Context<'_, '_>, kind: GeoSearch) -> Outcome {
    let key = ctx.key(kind.source());
    let slot = ctx.find_of::<ZSet>(key, Lookup::Read)?;
    let (args, change) = (ctx.args, change(ctx));
    let (several, out) = ctx.apart();
    let zset = slot.map(|slot| collection::read::<ZSet>(several.entries(key), slot));
    let zset = zset.transpose()?;
    let position = |member: &[u8]| {
        let score = zset.and_then(|zset| zset.score(member));
        score.map(|score| Cell::of_score(score).middle())
    };
    let positions: Positions<'_> = match zset {
        Some(_) => Some(&position),
        None => None,
    };
    let query = GeoQuery::parse(args, kind, positions)?;
    let found = zset.map_or_else(Vec::new, |zset| query.find(zset));
    let Some(argument) = query.store else {
        query.reply(&found, out);
        return Ok(());
    };
    let mut result = ZSet::new();
    for found in found {
        let score = match query.store_distances {
            true => found.distance / query.unit(),
            false => found.score,
        };
        result.insert(found.member, score, NewDeadline::None, &change);
    }
    let name = match kind {
        GeoSearch::WordsAndStore => "geosearchstore",
        _ => "georadiusstore",
    };
    let stored = store::put(ctx, argument, result, event(name));
    ctx.out.integer(stored);
    Ok(())
}

impl GeoQuery {
    /// Metres of the unit that the call names.
    fn unit(&self) -> f64 {
        self.shape.map_or(1.0, |(_, metres)| metres)
    }

    fn find<'a>(&self, zset: ZSetRef<'a>) -> Vec<FoundMember<'a>> {
        let (Some(middle), Some((shape, _))) = (self.middle, self.shape) else {
            return Vec::new();
        };
        let mut found = self.find_within(zset, Area { middle, shape });
        match self.order {
            Some(GeoOrder::Nearest) => found.sort_by(|a, b| a.distance.total_cmp(&b.distance)),
            Some(GeoOrder::Farthest) => found.sort_by(|a, b| b.distance.total_cmp(&a.distance)),
            None => {}
        }
        if self.count > 0 {
            found.truncate(self.count);
        }
        found
    }

    fn find_within<'a>(&self, zset: ZSetRef<'a>, area: Area) -> Vec<FoundMember<'a>> {
        let enough = if self.any { self.count } else { usize::MAX };
        let mut found = Vec::new();
        for scores in area.scores() {
            let ranks = zset.by_score(Bound::Included(scores.start), Bound::Excluded(scores.end));
            for entry in zset.forward(ranks.start).take(ranks.len()) {
                if found.len() >= enough {
                    return found;
                }
                let point = Cell::of_score(entry.score).middle();
                found.extend(area.distance_within(point).map(|distance| FoundMember {
                    member: entry.member,
                    score: entry.score,
                    point,
                    distance,
                }));
            }
        }
        found
    }

    fn reply(&self, found: &[FoundMember<'_>], out: &mut Writer) {
        let parts = [self.distances, self.hashes, self.positions];
        let parts = parts.into_iter().filter(|wanted| *wanted).count();
        out.array(found.len());
        for found in found {
            if parts > 0 {
                out.array(1 + parts);
            }
            out.bulk(found.member);
            if self.distances {
                put_distance(out, found.distance / self.unit());
            }
            if self.hashes {
                out.integer(found.score as i64);
            }
            if self.positions {
                put_point(out, found.point);
            }
        }
    }
}
