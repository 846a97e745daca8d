//! SORT's options.

use super::Pattern;
use crate::context::Context;
use crate::error::CommandError;

pub(super) struct SortOptions<'b> {
    pub(super) by: Option<Pattern<'b>>,
    pub(super) gets: Vec<Pattern<'b>>,
    /// False if BY names the same key for all elements.
    pub(super) sorts: bool,
    pub(super) alpha: bool,
    pub(super) descending: bool,
    pub(super) offset: i64,
    /// Negative: all.
    pub(super) count: i64,
    /// The argument that names the key for the result.
    pub(super) store: Option<usize>,
}

impl<'b> SortOptions<'b> {
    pub(super) fn parse(ctx: &Context<'_, 'b>, may_store: bool) -> Result<Self, CommandError> {
        let mut options = Self {
            by: None,
            gets: Vec::new(),
            sorts: true,
            alpha: false,
            descending: false,
            offset: 0,
            count: -1,
            store: None,
        };
        let mut i = 2;
        while i < ctx.args.len() {
            let left = ctx.args.len() - i - 1;
            if ctx.is(i, "ASC") {
                options.descending = false;
            } else if ctx.is(i, "DESC") {
                options.descending = true;
            } else if ctx.is(i, "ALPHA") {
                options.alpha = true;
            } else if ctx.is(i, "LIMIT") && left >= 2 {
                (options.offset, options.count) = (ctx.integer(i + 1)?, ctx.integer(i + 2)?);
                i += 2;
            } else if may_store && ctx.is(i, "STORE") && left >= 1 {
                i += 1;
                options.store = Some(i);
            } else if ctx.is(i, "BY") && left >= 1 {
                i += 1;
                let by = Pattern::new(ctx.args.get(i).unwrap_or_default());
                options.sorts = by.varies();
                options.by = Some(by);
            } else if ctx.is(i, "GET") && left >= 1 {
                i += 1;
                let get = Pattern::new(ctx.args.get(i).unwrap_or_default());
                options.gets.push(get);
            } else {
                return Err(CommandError::SYNTAX);
            }
            i += 1;
        }
        Ok(options)
    }

    /// True if it looks at keys that no argument names.
    pub(super) fn reads_others(&self) -> bool {
        let by = self.by.iter().filter(|_| self.sorts);
        by.chain(&self.gets).any(Pattern::reads_keys)
    }

    /// A set that is stored, or read by a script, is ordered even if it is not to be sorted, so
    /// that the result is the same everywhere.
    pub(super) fn order_what_has_no_order(&mut self, in_script: bool) {
        if !self.sorts && (self.store.is_some() || in_script) {
            (self.sorts, self.alpha, self.by) = (true, true, None);
        }
    }
}
