//! Walking a table pair by pair, without a call of Rust's that lasts while the walk does.
//!
//! Tables nest deeply at a script's will. So what walks them keeps its place on the heap.

use mlua::{Table, Value};

use crate::state::State;

/// The pairs of a table that are left.
pub(crate) struct Pairs {
    table: Table,
    key: Value,
}

impl Pairs {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            key: Value::Nil,
        }
    }

    pub(crate) fn next(&mut self, state: &State) -> mlua::Result<Option<(Value, Value)>> {
        let (key, value): (Value, Value) = state.next.call((&self.table, &self.key))?;
        if key.is_nil() {
            return Ok(None);
        }
        self.key = key.clone();
        Ok(Some((key, value)))
    }
}
