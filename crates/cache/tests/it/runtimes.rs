//! Load, refresh, listener and close on a current-thread tokio runtime, on smol, and on no runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Builder, Cache, Driver, SharedDriver};

use crate::loading::{MS, Valid, in_time};
use crate::manual_poll::{block_on, sleep};

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;
type Spawn = fn(Pin<Box<dyn Future<Output = ()> + Send>>);

/// The functions of a runtime that a cache needs: a timer, and a way to spawn.
#[derive(Clone, Copy)]
struct Runtime {
    sleep: fn(Duration) -> Sleep,
    spawn: Spawn,
}

async fn tells(runtime: Runtime, holds: impl Fn() -> bool) {
    for _ in 0..5000 {
        if holds() {
            return;
        }
        (runtime.sleep)(2 * MS).await;
    }
    panic!("waited in vain");
}

/// A cache whose origin and listener take time on the runtime.
fn on(runtime: Runtime, told: &Arc<Mutex<Vec<u64>>>) -> Builder<u64, u64> {
    let told = Arc::clone(told);
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(3600 * 1000 * MS)
        // Every read asks for a refresh.
        .refresh_after(0.0)
        .refresh_with_async(move |key| async move {
            (runtime.sleep)(MS).await;
            Ok::<_, String>(key + 1000)
        })
        .eviction_listener_async(move |removal| {
            let told = Arc::clone(&told);
            async move {
                (runtime.sleep)(MS).await;
                told.lock().expect("whole").push(removal.key);
            }
        })
}

async fn uses(runtime: Runtime, cache: Cache<u64, u64>, told: Arc<Mutex<Vec<u64>>>) {
    let load = cache.get_or_load_async(1, async move {
        (runtime.sleep)(MS).await;
        1_u64
    });
    assert_eq!(load.await, 1);
    // Refresh: the value is there a moment before it is counted.
    tells(runtime, || cache.get(&1) == Some(1001)).await;
    tells(runtime, || cache.stats().refreshes_done >= 1).await;
    // Listener.
    let hears = |key| told.lock().expect("whole").contains(&key);
    cache.insert(2, 2);
    cache.remove(&2);
    cache.insert_with_ttl(3, 3, 5 * MS);
    tells(runtime, || hears(2) && hears(3)).await;
    // Close.
    (10..20).for_each(|key| cache.insert(key, key));
    cache.close_async().await;
    assert!((10..20).all(hears));
}

async fn uses_all(runtime: Runtime) {
    let told = Arc::default();
    let own = on(runtime, &told).driver(Driver::Task).valid();
    (runtime.spawn)(Box::pin(own.drive(runtime.sleep)));
    uses(runtime, own, told).await;
    let (driver, told) = (SharedDriver::task(), Arc::default());
    (runtime.spawn)(Box::pin(driver.drive(runtime.sleep)));
    let shared = on(runtime, &told).driver(&driver).valid();
    uses(runtime, shared, told).await;
}

#[test]
fn on_a_current_thread_tokio_runtime() {
    in_time("all is done", || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        runtime.block_on(uses_all(Runtime {
            sleep: |duration| Box::pin(tokio::time::sleep(duration)),
            spawn: |task| drop(tokio::spawn(task)),
        }));
    });
}

#[test]
fn on_smol() {
    in_time("all is done", || {
        smol::block_on(uses_all(Runtime {
            sleep: |duration| {
                Box::pin(async move {
                    smol::Timer::after(duration).await;
                })
            },
            spawn: |task| smol::spawn(task).detach(),
        }));
    });
}

#[test]
fn on_no_runtime() {
    in_time("all is done", || {
        block_on(uses_all(Runtime {
            sleep: |duration| Box::pin(sleep(duration)),
            spawn: |task| drop(std::thread::spawn(|| block_on(task))),
        }));
    });
}
