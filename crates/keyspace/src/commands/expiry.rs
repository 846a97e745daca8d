//! EXPIRY FREEZE and RESUME: a clock that can be stopped.

use crate::context::Context;
use crate::error::CommandError;

type Outcome = Result<(), CommandError>;

pub(crate) fn freeze(ctx: &mut Context<'_, '_>) -> Outcome {
    ctx.keyspace.timeline.freeze(|| ctx.now.time.tick);
    ctx.out.ok();
    Ok(())
}

pub(crate) fn resume(ctx: &mut Context<'_, '_>) -> Outcome {
    let stood = ctx.keyspace.timeline.resume(|| ctx.now.time.tick);
    if stood > 0 {
        // Who reads the log counts engine time on from the last record.
        ctx.keyspace.record(ctx.now.time, &[b"EXPIRY", b"RESUME"]);
    }
    // Threads that sleep until a deadline were told that there is none.
    ctx.keyspace.wake_all();
    ctx.out.ok();
    Ok(())
}
