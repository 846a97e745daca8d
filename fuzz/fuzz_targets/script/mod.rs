//! Runs a script with bytes as its argument.

use std::cell::RefCell;

use tidewheel_resp::{Args, Writer};
use tidewheel_scripts::{Engine, Host, Limits, Sha};

/// A host without commands, which soon loses patience.
struct Nobody(u32);

impl Host for Nobody {
    fn call(&mut self, _: Args<'_>, out: &mut Writer) {
        out.null();
    }

    fn may_call(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }

    fn log(&mut self, _: i64, _: &[u8]) {}

    fn interrupt(&mut self) -> Option<String> {
        self.0 += 1;
        (self.0 > 50).then(|| "ERR enough".to_owned())
    }
}

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(Engine::new(Limits::default()).unwrap());
}

/// The reply to a client of RESP2 is well formed, and is not the error `broken`.
pub(crate) fn run(body: &str, arguments: &[&[u8]]) {
    let mut out = Writer::default();
    ENGINE.with_borrow_mut(|engine| {
        let (name, body) = (Sha::of(body.as_bytes()), body.as_bytes());
        engine.run(&name, body, &[], arguments, &mut Nobody(0), &mut out);
        assert!(engine.memory() < 256 << 20, "{}", engine.memory());
    });
    let reply = out.as_bytes();
    assert!(reply.ends_with(b"\r\n"), "{}", reply.escape_ascii());
    let is_broken = reply.windows(6).any(|window| window == b"broken");
    assert!(
        !reply.starts_with(b"-") || !is_broken,
        "{}",
        reply.escape_ascii()
    );
}
