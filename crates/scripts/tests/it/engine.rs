//! What the engine keeps, and what it counts.

use tidewheel_scripts::{Engine, Limits, Sha};

use crate::host::text;

#[test]
fn the_oldest_unused_script_is_dropped_above_the_bound() {
    let limits = Limits {
        scripts: 2,
        ..Limits::default()
    };
    let mut engine = Engine::new(limits).unwrap();
    for i in 0..100 {
        assert_eq!(text(&mut engine, &format!("return {i}")), format!(":{i}"));
    }
    engine.forget_all();
    assert_eq!(text(&mut engine, "return 1"), ":1");
    assert!(engine.memory() > 0);
    let error = engine
        .compile(&Sha::of(b"x"), b"return return")
        .unwrap_err();
    assert!(
        error.line().starts_with("ERR Error compiling script"),
        "{error}"
    );
}
