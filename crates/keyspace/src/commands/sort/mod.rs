//! SORT and SORT_RO: the elements of a list, a set or a sorted set, ordered by themselves or by
//! other keys.
//!
//! A pattern (BY, GET) may name any keys. A call that has one locks all shards, so it sees one
//! moment. In a transaction the row says that it reaches beyond its keys, and the gate is taken.

mod options;
mod order;
mod pattern;

use tidewheel_collections::{Hash, List, Set, ZSet};
use tidewheel_resp::Args;

use self::options::SortOptions;
use self::order::{SortItems, Weight};
use self::pattern::{Operand, Pattern};
use crate::context::{Context, Lookup};
use crate::error::CommandError;
use crate::events::Cause;
use crate::value;
use crate::value::collection::{Owned, is, read};

type Outcome = Result<(), CommandError>;

const NOT_NUMBERS: CommandError =
    CommandError::fixed("ERR One or more scores can't be converted into double");

/// The position of the key for the result. The last one counts.
pub(crate) fn stored_at(call: Args<'_>) -> Option<usize> {
    let is = |at: usize, word: &[u8]| {
        call.get(at)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word))
    };
    let (mut at, mut found) = (2, None);
    while at < call.len() {
        at += match () {
            () if is(at, b"LIMIT") => 3,
            () if is(at, b"BY") || is(at, b"GET") => 2,
            () if is(at, b"STORE") => {
                found = (at + 1 < call.len()).then_some(at + 1).or(found);
                2
            }
            () => 1,
        };
    }
    found
}

pub(crate) fn sort(ctx: &mut Context<'_, '_>) -> Outcome {
    let options = SortOptions::parse(ctx, true)?;
    run(ctx, options)
}

pub(crate) fn sort_ro(ctx: &mut Context<'_, '_>) -> Outcome {
    let options = SortOptions::parse(ctx, false)?;
    run(ctx, options)
}

fn run(ctx: &mut Context<'_, '_>, mut options: SortOptions<'_>) -> Outcome {
    lock(ctx, &options)?;
    let mut items = collect(ctx, &mut options)?;
    if options.sorts {
        weigh(ctx, &mut items, &options)?;
    }
    if options.reads_others() || options.store.is_some() {
        let range = items.arrange(&options);
        return match options.store {
            Some(argument) => store(ctx, &items, range, &options, argument),
            None => reply(ctx, &items, range, &options),
        };
    }
    let range = ctx.outside(|| items.arrange(&options));
    reply(ctx, &items, range, &options)
}

/// Locks more than the shard of the first key, if the call needs more.
fn lock(ctx: &mut Context<'_, '_>, options: &SortOptions<'_>) -> Outcome {
    let args = ctx.args;
    if options.reads_others() {
        ctx.step_out();
        ctx.step_in_all()?;
    } else if let Some(argument) = options.store {
        ctx.step_out();
        ctx.step_in_many([1, argument].into_iter().filter_map(|at| args.get(at)))?;
    }
    Ok(())
}

/// The elements of the key, in its own order.
fn collect(
    ctx: &mut Context<'_, '_>,
    options: &mut SortOptions<'_>,
) -> Result<SortItems, CommandError> {
    let (key, in_script) = (ctx.key(1), ctx.session.in_script);
    let mut items = SortItems::default();
    let Some(slot) = ctx.find(key, Lookup::Read) else {
        return Ok(items);
    };
    let entries = ctx.entries(key);
    let tag = entries.tag(slot);
    if is::<List>(tag) {
        let elements = read::<List>(entries, slot)?.forward(0);
        elements.for_each(|element| items.push(element));
    } else if is::<Set>(tag) {
        options.order_what_has_no_order(in_script);
        read::<Set>(entries, slot)?.for_each(|entry| items.push(entry.key));
    } else if is::<ZSet>(tag) {
        let members = read::<ZSet>(entries, slot)?.forward(0);
        members.for_each(|scored| items.push(scored.member));
    } else {
        return Err(CommandError::WRONG_TYPE);
    }
    items.reversed = options.descending && !options.sorts && !is::<Set>(tag);
    Ok(items)
}

/// Gives each element its weight.
fn weigh(ctx: &mut Context<'_, '_>, items: &mut SortItems, options: &SortOptions<'_>) -> Outcome {
    for i in 0..items.len() {
        let weight = match &options.by {
            None if options.alpha => Weight::Itself,
            None => Weight::Number(number(items.element(i))?),
            Some(by) => {
                let operand = by.operand(items.element(i));
                let found = look_up(ctx, operand);
                match found {
                    found if options.alpha => Weight::Text(found.map(|text| items.keep(&text))),
                    Some(text) => Weight::Number(number(&text)?),
                    None => Weight::Number(0.0),
                }
            }
        };
        items.weights.push(weight);
    }
    Ok(())
}

/// A text as a number: nothing is zero, and blanks in front do not matter.
fn number(text: &[u8]) -> Result<f64, CommandError> {
    match text.trim_ascii_start() {
        [] if text.is_empty() => Ok(0.0),
        digits => tidewheel_resp::parse_f64(digits).ok_or(NOT_NUMBERS),
    }
}

/// The value that a pattern means for an element.
fn look_up(ctx: &mut Context<'_, '_>, operand: Operand<'_>) -> Option<Vec<u8>> {
    let (name, field) = match operand {
        Operand::Element(element) => return Some(element.to_vec()),
        Operand::Nothing => return None,
        Operand::Key { name, field } => (name, field),
    };
    let key = ctx.keyspace.key(&name);
    let Some(field) = field else {
        let slot = ctx.find(key, Lookup::Read)?;
        let value = value::string(ctx.entries(key), slot).ok()?;
        return Some(value::bytes(&value).to_vec());
    };
    let slot = ctx.find(key, Lookup::Read)?;
    let hash = read::<Hash>(ctx.entries(key), slot).ok()?;
    hash.value(field).map(<[u8]>::to_vec)
}

fn reply(
    ctx: &mut Context<'_, '_>,
    items: &SortItems,
    range: std::ops::Range<usize>,
    options: &SortOptions<'_>,
) -> Outcome {
    ctx.out.array(range.len() * options.gets.len().max(1));
    for i in range {
        let element = items.ordered(i);
        if options.gets.is_empty() {
            ctx.out.bulk(element);
        }
        for get in &options.gets {
            match look_up(ctx, get.operand(element)) {
                Some(value) => ctx.out.bulk(&value),
                None => ctx.out.null(),
            }
        }
        if ctx.out.is_over() {
            break;
        }
    }
    Ok(())
}

/// Stores the result as a list, in place of whatever the key holds. An empty one removes the key.
fn store(
    ctx: &mut Context<'_, '_>,
    items: &SortItems,
    range: std::ops::Range<usize>,
    options: &SortOptions<'_>,
    argument: usize,
) -> Outcome {
    let limits = ctx.keyspace.rules().packing.list();
    let mut list = List::new();
    for i in range {
        let element = items.ordered(i);
        if options.gets.is_empty() {
            list.push_back(element, &limits);
        }
        for get in &options.gets {
            let value = look_up(ctx, get.operand(element)).unwrap_or_default();
            list.push_back(&value, &limits);
        }
        // What GET finds may be much longer than the elements.
        if ctx.keyspace.lacks(list.heap_bytes()) {
            return Err(CommandError::OUT_OF_MEMORY);
        }
    }
    let (key, db) = (ctx.key(argument), ctx.session.db);
    let len = list.get().len();
    if let Some(slot) = ctx.find_at(key, db) {
        let cause = if len == 0 { Cause::Del } else { Cause::Silent };
        ctx.remove(key, slot, cause);
    }
    if len > 0 {
        let access = ctx.recency().of_new(ctx.now.time.tick);
        let own_deadline = None;
        let owned = Owned {
            own_deadline,
            of: list,
        };
        let (at, hold) = ctx.on(key);
        hold.insert_owned(at, owned, access, Cause::SortStore);
    }
    ctx.record_result(key, db);
    ctx.out.integer(len as i64);
    Ok(())
}
