//! Sets.

pub(crate) mod algebra;
pub(crate) mod basic;
mod combine;
pub(crate) mod random;

use tidewheel_collections::{Set, SetRef};
use tidewheel_resp::Writer;

use crate::commands::member_scan::{self, Scanned};
use crate::context::Context;
use crate::error::CommandError;

type Outcome = Result<(), CommandError>;

pub(crate) fn sscan(ctx: &mut Context<'_, '_>) -> Outcome {
    member_scan::scan::<Set>(ctx)
}

impl Scanned for Set {
    type Value<'a> = ();
    const WITHOUT: &'static str = "";
    const WIDTH: usize = 1;

    fn scan<'a>(
        of: SetRef<'a>,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&'a [u8], ()),
    ) -> u64 {
        of.scan(cursor, count, |entry| visit(entry.key, ()))
    }

    fn write(_out: &mut Writer, (): ()) {}
}
