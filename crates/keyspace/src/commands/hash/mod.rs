//! Hashes.

pub(crate) mod lifetime;
pub(crate) mod number;
pub(crate) mod random;
pub(crate) mod read;
pub(crate) mod write;

use tidewheel_collections::{Hash, HashRef};
use tidewheel_resp::Writer;

use crate::commands::member_scan::{self, Scanned};
use crate::context::Context;
use crate::error::CommandError;

type Outcome = Result<(), CommandError>;

pub(crate) fn hscan(ctx: &mut Context<'_, '_>) -> Outcome {
    member_scan::scan::<Hash>(ctx)
}

impl Scanned for Hash {
    type Value<'a> = &'a [u8];
    const WITHOUT: &'static str = "NOVALUES";
    const WIDTH: usize = 2;

    fn scan<'a>(
        of: HashRef<'a>,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&'a [u8], &'a [u8]),
    ) -> u64 {
        of.scan(cursor, count, |entry| visit(entry.key, entry.value))
    }

    fn write(out: &mut Writer, value: &[u8]) {
        out.bulk(value);
    }
}
