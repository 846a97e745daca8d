//! Parses the arguments of a geospatial search.

use tidewheel_resp::{Args, parse_i64};

use super::units::{circle, point, rectangle};
use crate::error::CommandError;
use crate::geo::{Point, Shape};
use crate::rows::cost::GeoSearch;

const NOT_A_MEMBER: CommandError =
    CommandError::fixed("ERR could not decode requested zset member");
const NO_COUNT: CommandError = CommandError::fixed("ERR COUNT must be > 0");
const ANY_WITHOUT_COUNT: CommandError =
    CommandError::fixed("ERR the ANY argument requires COUNT argument");

impl GeoSearch {
    fn is_search(self) -> bool {
        matches!(self, Self::Words | Self::WordsAndStore)
    }

    fn may_store(self) -> bool {
        matches!(
            self,
            Self::Around { stores: true } | Self::AroundMember { stores: true }
        )
    }

    /// The argument that is the key to search.
    pub(super) fn source(self) -> usize {
        if self == Self::WordsAndStore { 2 } else { 1 }
    }

    /// The position of the first word.
    fn words(self) -> usize {
        match self {
            Self::Around { .. } => 6,
            Self::AroundMember { .. } => 5,
            Self::Words => 2,
            Self::WordsAndStore => 3,
        }
    }
}

/// The arguments of a search.
#[derive(Debug, Default)]
pub(super) struct GeoQuery {
    /// `None` if it is that of a member of a key that does not exist.
    pub(super) middle: Option<Point>,
    /// The area, and the metres of its unit.
    pub(super) shape: Option<(Shape, f64)>,
    pub(super) distances: bool,
    pub(super) hashes: bool,
    pub(super) positions: bool,
    pub(super) order: Option<GeoOrder>,
    /// The most members; 0 is no limit.
    pub(super) count: usize,
    /// ANY: the members that are found first will do.
    pub(super) any: bool,
    /// The argument that is the key to store in.
    pub(super) store: Option<usize>,
    /// Distances are stored, not positions.
    pub(super) store_distances: bool,
    /// The way in which the call gave the middle.
    from_member: bool,
    from_point: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GeoOrder {
    Nearest,
    Farthest,
}

/// Finds members' positions; `None` if there is no key to search.
pub(super) type Positions<'f> = Option<&'f dyn Fn(&[u8]) -> Option<Point>>;

impl GeoQuery {
    /// Reads a call.
    pub(super) fn parse(
        args: Args<'_>,
        kind: GeoSearch,
        positions: Positions<'_>,
    ) -> Result<Self, CommandError> {
        let mut query = Self::default();
        match kind {
            GeoSearch::Around { .. } => {
                query.middle = Some(point(args, 2)?);
                query.shape = Some(circle(args, 4)?);
            }
            GeoSearch::AroundMember { .. } if positions.is_some() => {
                query.middle = position(positions, &args[2])?;
                query.shape = Some(circle(args, 3)?);
            }
            GeoSearch::WordsAndStore => query.store = Some(1),
            _ => {}
        }
        let mut at = kind.words();
        while at < args.len() {
            at += query.word(args, at, kind, positions)?;
        }
        query.check(args, kind)?;
        Ok(query)
    }

    /// Reads the word at `at`. Returns how many arguments it takes.
    fn word(
        &mut self,
        args: Args<'_>,
        at: usize,
        kind: GeoSearch,
        positions: Positions<'_>,
    ) -> Result<usize, CommandError> {
        let word = args[at].to_ascii_uppercase();
        let (behind, search) = (args.len() - at - 1, kind.is_search());
        match word.as_slice() {
            b"WITHDIST" => self.distances = true,
            b"WITHHASH" => self.hashes = true,
            b"WITHCOORD" => self.positions = true,
            b"ANY" => self.any = true,
            b"ASC" => self.order = Some(GeoOrder::Nearest),
            b"DESC" => self.order = Some(GeoOrder::Farthest),
            b"COUNT" if behind >= 1 => {
                self.count = count(&args[at + 1])?;
                return Ok(2);
            }
            b"STORE" | b"STOREDIST" if behind >= 1 && kind.may_store() => {
                self.store = Some(at + 1);
                self.store_distances = word == b"STOREDIST";
                return Ok(2);
            }
            b"STOREDIST" if kind == GeoSearch::WordsAndStore => self.store_distances = true,
            b"FROMMEMBER" if behind >= 1 && search && !self.from_point => {
                self.middle = position(positions, &args[at + 1])?;
                self.from_member = true;
                return Ok(2);
            }
            b"FROMLONLAT" if behind >= 2 && search && !self.from_member => {
                self.middle = Some(point(args, at + 1)?);
                self.from_point = true;
                return Ok(3);
            }
            b"BYRADIUS" if behind >= 2 && search && !self.is_box() => {
                self.shape = Some(circle(args, at + 1)?);
                return Ok(3);
            }
            b"BYBOX" if behind >= 3 && search && (self.shape.is_none() || self.is_box()) => {
                self.shape = Some(rectangle(args, at + 1)?);
                return Ok(4);
            }
            _ => return Err(CommandError::SYNTAX),
        }
        Ok(1)
    }

    fn is_box(&self) -> bool {
        matches!(self.shape, Some((Shape::Box { .. }, _)))
    }

    /// Refuses words that do not fit together.
    fn check(&mut self, args: Args<'_>, kind: GeoSearch) -> Result<(), CommandError> {
        let name = || String::from_utf8_lossy(&args[0]).into_owned();
        let refused = |text: String| Err(CommandError::quoting(text));
        if self.store.is_some() && (self.distances || self.hashes || self.positions) {
            let what = match kind {
                GeoSearch::WordsAndStore => "GEOSEARCHSTORE",
                _ => "STORE option in GEORADIUS",
            };
            return refused(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            ));
        }
        if kind.is_search() && !(self.from_member || self.from_point) {
            return refused(format!(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {}",
                name()
            ));
        }
        if kind.is_search() && self.shape.is_none() {
            return refused(format!(
                "ERR exactly one of BYRADIUS and BYBOX can be specified for {}",
                name()
            ));
        }
        if self.any && self.count == 0 {
            return Err(ANY_WITHOUT_COUNT);
        }
        // The first ones of no order would be any.
        if self.count > 0 && !self.any && self.order.is_none() {
            self.order = Some(GeoOrder::Nearest);
        }
        Ok(())
    }
}

/// The position of a member; `None` if there is no key to search.
fn position(positions: Positions<'_>, member: &[u8]) -> Result<Option<Point>, CommandError> {
    match positions {
        Some(find) => find(member).map(Some).ok_or(NOT_A_MEMBER),
        None => Ok(None),
    }
}

fn count(text: &[u8]) -> Result<usize, CommandError> {
    let count = parse_i64(text).ok_or(CommandError::NOT_AN_INTEGER)?;
    if count <= 0 {
        return Err(NO_COUNT);
    }
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}
