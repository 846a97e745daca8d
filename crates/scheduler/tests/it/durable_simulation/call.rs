//! Clients and handlers make calls of every kind, and end runs.

use std::panic::resume_unwind;
use std::time::Duration;

use tidewheel_scheduler::{CatchUp, Error, Outcome};

use super::baton::yield_now;
use super::key::Key;
use super::life::{Handle, Run};
use super::world::{HeldAck, World};

/// The payload of a handler's panic; no message is printed.
struct Planned;

/// The change of a call that returned `Ok`: nothing, or something, and the jobs that it says that
/// it ended.
type Changed = Option<Option<Option<u64>>>;

/// Every handler may call anything, its own key included, fail, panic, or pass its run on.
pub(crate) fn handle(world: &World, jobs: &Handle, run: &Run) -> Outcome {
    if !world.begin(run) {
        return Outcome::Done;
    }
    if world.truth().plan.is_calm {
        world.truth().succeed(run.id, run.value);
        return Outcome::Done;
    }
    for _ in 0..world.below(8) {
        yield_now();
    }
    for _ in 0..world.below(3) {
        call(world, jobs);
    }
    end(world, run)
}

fn end(world: &World, run: &Run) -> Outcome {
    match world.below(10) {
        0 => resume_unwind(Box::new(Planned)),
        1 => Outcome::failed("it failed"),
        2 => Outcome::dead("hopeless"),
        3 => Outcome::retry_after(Duration::from_micros(world.below(9_000)), "busy"),
        4 | 5 => {
            let (id, value, ack) = (run.id, run.value, run.ack());
            world.hold(HeldAck { id, value, ack });
            Outcome::failed("of no importance")
        }
        _ => {
            world.truth().succeed(run.id, run.value);
            Outcome::Done
        }
    }
}

/// Somebody ends a run that its handler has passed on.
fn acknowledge(world: &World) {
    let Some(HeldAck { id, value, ack }) = world.take_held() else {
        return;
    };
    world.truth().saw("an acknowledgement");
    match world.below(3) {
        0 => drop(ack),
        1 => ack.settle(Outcome::failed("it failed later")),
        _ => {
            world.truth().succeed(id, value);
            ack.done();
        }
    }
}

fn delay(world: &World) -> Duration {
    match world.below(3) {
        0 => Duration::ZERO,
        1 => Duration::from_micros(world.below(20_000)),
        _ => Duration::from_secs(3600),
    }
}

/// One call of a random kind.
pub(crate) fn call(world: &World, jobs: &Handle) {
    let kind = world.below(20);
    if kind < 4 {
        acknowledge(world);
        return;
    }
    world.forget_last();
    Key::arm();
    let outcome = match kind {
        4 | 5 => jobs
            .remove(&world.key())
            .map(|old| old.is_some().then_some(Some(old))),
        6 | 7 => {
            let (key, delay) = (world.key(), delay(world));
            jobs.move_to(&key, delay).map(|moved| moved.then_some(None))
        }
        8 => set_periodic(world, jobs),
        9 => set_many(world, jobs),
        10 | 11 => of_letter(world, jobs),
        12 if world.below(4) == 0 => {
            let drained = jobs.drain(|_, _| {});
            drained.map(|count| (count > 0).then_some(None))
        }
        13 => move_or_set(world, jobs),
        _ => set(world, jobs),
    };
    Key::disarm();
    match outcome {
        // Nothing was there to be changed.
        Ok(None) => {}
        Ok(Some(old)) => world.acknowledge(old),
        Err(error) => {
            let mut truth = world.truth();
            let expected = truth.failed && matches!(error, Error::Journal(_));
            if !expected {
                truth.wrong(|| format!("a call failed: {error}"));
            }
        }
    }
}

/// One-off jobs were set, and are not to be lost.
fn note(world: &World, values: &[u64]) {
    let mut truth = world.truth();
    if !truth.dead {
        truth.set.extend(values);
    }
}

fn set(world: &World, jobs: &Handle) -> Result<Changed, Error> {
    let (key, value, delay) = (world.key(), world.next_value(), delay(world));
    let old = jobs.set(key, value, delay)?;
    note(world, &[value]);
    Ok(Some(Some(old)))
}

fn move_or_set(world: &World, jobs: &Handle) -> Result<Changed, Error> {
    let (key, value, delay) = (world.key(), world.next_value(), delay(world));
    if !jobs.move_or_set(key, delay, || value)? {
        note(world, &[value]);
    }
    Ok(Some(None))
}

fn set_many(world: &World, jobs: &Handle) -> Result<Changed, Error> {
    let values: Vec<u64> = (0..3).map(|_| world.next_value()).collect();
    let many = values
        .iter()
        .map(|value| (world.key(), *value, delay(world)));
    jobs.set_many(many.collect::<Vec<_>>())?;
    note(world, &values);
    Ok(Some(None))
}

fn set_periodic(world: &World, jobs: &Handle) -> Result<Changed, Error> {
    let (key, value) = (world.key(), world.next_value());
    let catch_up = match world.below(3) {
        0 => CatchUp::Skip,
        1 => CatchUp::Burst(2),
        _ => CatchUp::Delay,
    };
    let first = Duration::from_micros(world.below(9_000));
    let period = Duration::from_millis(5 + world.below(20));
    let old = jobs.set_periodic(key, value, first, period, catch_up)?;
    Ok(Some(Some(old)))
}

fn of_letter(world: &World, jobs: &Handle) -> Result<Changed, Error> {
    let letters = jobs.dead_letters();
    let Some(letter) = letters.get(world.below(letters.len().max(1) as u64) as usize) else {
        return Ok(None);
    };
    world.truth().saw("a dead letter");
    if world.below(3) > 0 {
        let requeued = jobs.requeue(letter.id, delay(world))?;
        return Ok(requeued.then_some(None));
    }
    let removed = jobs.remove_dead(letter.id)?;
    Ok(removed.is_some().then_some(Some(removed)))
}
