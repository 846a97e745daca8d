//! Configurations that `build` refuses, with an error that says what to do.

use tidewheel::{BuildError, Builder, Cache, Driver, ManualClock, SharedDriver};

fn builder(driver: impl Into<Driver>) -> Builder<u64, u64> {
    Cache::builder()
        .unbounded()
        .no_default_ttl()
        .clock(ManualClock::new())
        .driver(driver)
}

fn refusal(builder: Builder<u64, u64>) -> String {
    let refused = builder.build().expect_err("not as it must be");
    assert_ne!(refused, BuildError::TtlUnanswered);
    refused.to_string()
}

#[test]
fn a_nul_in_a_name_is_an_error_of_build_and_no_panic() {
    let expected = "name takes text without a NUL character";
    assert_eq!(refusal(builder(Driver::Manual).name("a\0b")), expected);
    assert_eq!(refusal(builder(Driver::Task).name("\0")), expected);
    #[cfg(all(feature = "system", not(target_family = "wasm")))]
    {
        assert_eq!(refusal(builder(Driver::Thread).name("ab\0")), expected);
        let driver = SharedDriver::threads_named("a\0b", 1);
        let expected = "start the driver thread: its name has a NUL character";
        assert_eq!(refusal(builder(&driver)), expected);
        assert_eq!(refusal(builder(&driver)), expected, "once more");
    }
    let named = builder(&SharedDriver::task()).name("Läufer 7").build();
    assert!(named.is_ok(), "anything else will do");
}
