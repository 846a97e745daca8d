//! What a script asks of the program around it, and how Lua's functions reach that program.

use scoped_tls_hkt::scoped_thread_local;
use tidewheel_resp::{Args, Writer};

/// What a script asks of the program around it.
pub trait Host {
    /// Runs a command and appends its reply, also an error, to `out`. Its protocol is what
    /// `redis.setresp` chose, RESP2 at first.
    fn call(&mut self, args: Args<'_>, out: &mut Writer);

    /// `redis.acl_check_cmd`: whether the script's client may run a command; `None` if there is no
    /// such command.
    fn may_call(&mut self, args: Args<'_>) -> Option<bool>;

    /// `redis.log`: `level` is from 0 (debug) to 3 (warning).
    fn log(&mut self, level: i64, text: &[u8]);

    /// Asked every 100,000 instructions or so. `Some` is an error line without `-`, and ends the
    /// script, also through `pcall`.
    fn interrupt(&mut self) -> Option<String>;
}

scoped_thread_local!(static mut HOST: for<'a> &'a mut (dyn Host + 'a));

/// Runs `f`; functions that it calls reach `host` by [`with`].
pub(crate) fn lend<R>(host: &mut dyn Host, f: impl FnOnce() -> R) -> R {
    HOST.set(host, f)
}

/// Reaches the host of the run. `None` outside a run.
pub(crate) fn with<R>(f: impl FnOnce(&mut dyn Host) -> R) -> Option<R> {
    HOST.is_set().then(|| HOST.with(|host| f(host)))
}
