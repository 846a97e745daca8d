"""One small real use of each Python application: `python uses.py NAME PORT`. Without a name it
lists them. A use that does not hold raises."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time

NAME, PORT = (sys.argv[1:] + ["", "6379"])[:2]
URL = f"redis://127.0.0.1:{PORT}"
HERE = os.path.dirname(os.path.abspath(__file__))
USES = {}


def use(name, what):
    def register(run):
        USES[name] = (what, run)
        return run

    return register


def connection(**options):
    import redis

    return redis.Redis(port=int(PORT), **options)


def eventually(holds, seconds=15):
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)
    return found


class beside:
    """A worker that runs meanwhile."""

    def __init__(self, *command, **variables):
        environment = {**os.environ, "PYTHONPATH": HERE, "REDIS_URL": URL, **variables}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command],
            env=environment,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        if kind:
            self.log.seek(0)
            sys.stderr.write(self.log.read()[-3000:] + "\n")


@use("Celery", "delay, countdown, eta, retry, group, chord, two workers that mingle")
def celery():
    import datetime

    import celery_tasks as tasks

    worker = ["celery", "-A", "celery_tasks", "worker", "-P", "threads", "-c", "4", "-l", "info"]
    with beside(*worker, "-n", "one@%h"), beside(*worker, "-n", "two@%h"):
        assert tasks.add.delay(2, 3).get(timeout=30) == 5
        began = time.time()
        assert tasks.add.apply_async((1, 1), countdown=1).get(timeout=30) == 2
        assert time.time() - began >= 1
        eta = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
        assert tasks.add.apply_async((1, 2), eta=eta).get(timeout=30) == 3
        assert tasks.third_time.delay().get(timeout=30) == 2
        from celery import chord, group

        assert group(tasks.add.s(i, i) for i in range(4))().get(timeout=30) == [0, 2, 4, 6]
        assert chord(tasks.add.s(i, i) for i in range(4))(tasks.total.s()).get(timeout=30) == 12


@use("celery-redbeat", "a periodic task comes twice")
def redbeat():
    import celery_tasks as tasks

    beat = ["celery", "-A", "celery_tasks", "beat", "-S", "redbeat.RedBeatScheduler"]
    worker = ["celery", "-A", "celery_tasks", "worker", "-P", "threads", "-c", "2"]
    with beside(*worker), beside(*beat, "--max-interval", "1"):
        assert tasks.tick.name
        client = connection()
        eventually(lambda: int(client.get("ticks") or 0) >= 2, 40)


@use("redis-py Lock", "acquire, refuse, extend, reacquire, release, lose")
def redis_lock():
    from redis.exceptions import LockNotOwnedError

    client = connection()
    lock, other = client.lock("l", timeout=5), client.lock("l", timeout=5)
    assert lock.acquire() and not other.acquire(blocking=False)
    assert lock.extend(5) and lock.reacquire() and client.pttl("l") <= 5000
    lock.release()
    assert other.acquire(blocking=False)
    client.set("l", "somebody else")
    try:
        other.release()
    except LockNotOwnedError:
        return
    raise AssertionError("a lost lock was released")


@use("redis-py scripts", "registered script, pipeline, NOSCRIPT after a flush")
def redis_scripts():
    client = connection()
    double = client.register_script("return redis.call('incrby', KEYS[1], ARGV[1] * 2)")
    assert double(["n"], [2]) == 4
    client.script_flush()
    assert double(["n"], [3]) == 10
    with client.pipeline() as pipe:
        pipe.get("n")
        double(["n"], [1], client=pipe)
        assert pipe.execute() == [b"10", 12]


@use("redis-py functions", "load, call, list, delete")
def redis_functions():
    client = connection()
    client.function_load("#!lua name=lib\nredis.register_function('f', function(k, a) return a[1] end)")
    assert client.fcall("f", 0, "x") == b"x"
    assert client.function_list()[0][1] == b"lib"
    client.function_delete("lib")


@use("redis-py client-side cache", "a value that others change is read anew")
def redis_cache():
    import redis
    from redis.cache import CacheConfig

    near = redis.Redis(port=int(PORT), protocol=3, cache_config=CacheConfig())
    other = connection()
    other.set("k", "1")
    assert near.get("k") == near.get("k") == b"1"
    other.set("k", "2")
    eventually(lambda: near.get("k") == b"2")


@use("Django cache and sessions", "set, add, incr, touch, a session")
def django():
    cache = django_cache("django.core.cache.backends.redis.RedisCache")
    cache.set("a", {"x": 1}, 30)
    assert cache.get("a") == {"x": 1} and not cache.add("a", 1)
    cache.set("n", 1)
    assert cache.incr("n") == 2 and cache.touch("n", 1)
    from django.contrib.sessions.backends.cache import SessionStore

    session = SessionStore()
    session["user"] = 7
    session.save()
    assert SessionStore(session.session_key)["user"] == 7


@use("django-redis", "lock, incr, incr of a missing key, ttl, delete_pattern")
def django_redis():
    cache = django_cache("django_redis.cache.RedisCache")
    with cache.lock("l", timeout=5):
        assert not cache.lock("l").acquire(blocking=False)
    cache.set("n", 1, timeout=30)
    assert cache.incr("n") == 2 and cache.ttl("n") in (29, 30)
    try:
        cache.incr("missing")
    except ValueError:
        assert cache.delete_pattern("n*") == 1
        return
    raise AssertionError("a missing key was incremented")


def django_cache(backend):
    import django
    from django.conf import settings

    settings.configure(
        CACHES={"default": {"BACKEND": backend, "LOCATION": f"{URL}/0"}},
        SESSION_ENGINE="django.contrib.sessions.backends.cache",
    )
    django.setup()
    from django.core.cache import cache

    return cache


@use("dogpile.cache", "one creator of many, with a distributed lock")
def dogpile():
    import threading

    from dogpile.cache import make_region

    region = make_region().configure(
        "dogpile.cache.redis", arguments={"port": int(PORT), "distributed_lock": True}
    )
    made = []

    @region.cache_on_arguments(expiration_time=30)
    def load(n):
        made.append(n)
        time.sleep(0.2)
        return n * 2

    threads = [threading.Thread(target=load, args=(4,)) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert load(4) == 8 and made == [4]


@use("python-redis-lock", "acquire, refuse, renewal beyond its time, release")
def python_redis_lock():
    import redis_lock

    client = connection()
    lock = redis_lock.Lock(client, "l", expire=1, auto_renewal=True)
    assert lock.acquire()
    time.sleep(1.5)
    assert not redis_lock.Lock(client, "l").acquire(blocking=False)
    lock.release()
    assert redis_lock.Lock(client, "l", expire=1).acquire(blocking=False)


@use("sherlock", "acquire, refuse, release")
def sherlock():
    import sherlock as s

    def lock():
        return s.RedisLock("l", client=connection(), expire=5, timeout=1)

    first = lock()
    assert first.acquire() and not lock().acquire(blocking=False)
    first.release()
    assert lock().acquire(blocking=False)


@use("pottery Redlock", "acquire, extend, release")
def pottery():
    from pottery import Redlock

    client = connection()
    lock = Redlock(key="l", masters={client}, auto_release_time=5)
    assert lock.acquire() and lock.locked()
    lock.extend()
    lock.release()
    assert not client.keys("*l")


@use("redlock-py", "acquire, refuse, release")
def redlock():
    from redlock import Redlock

    manager = Redlock([{"host": "127.0.0.1", "port": int(PORT), "db": 0}], retry_count=1)
    lock = manager.lock("l", 5000)
    assert lock and not manager.lock("l", 5000)
    manager.unlock(lock)
    assert manager.lock("l", 5000)


@use("walrus", "lock, rate limit, cache, stream with a consumer group")
def walrus():
    import walrus as w

    db = w.Database(port=int(PORT))
    with db.lock("l", ttl=5000):
        assert not db.lock("l").acquire(block=False)
    limit = db.rate_limit("r", limit=2, per=60)
    assert [limit.limit("k") for _ in range(3)] == [False, False, True]
    db.Stream("s").add({"a": "1"})
    group = db.consumer_group("g", ["s"])
    group.create()
    group.set_id("0")
    [(_, entries)] = group.read(count=1)
    assert entries[0][1] == {b"a": b"1"} and group.s.ack(entries[0][0]) == 1


@use("aiocache RedLock", "one of two computes")
def aiocache():
    from aiocache import Cache
    from aiocache.lock import RedLock

    async def run():
        cache = Cache(Cache.REDIS, port=int(PORT))
        made = []

        async def load():
            async with RedLock(cache, "k", lease=2):
                if (found := await cache.get("k")) is None:
                    made.append(1)
                    await asyncio.sleep(0.1)
                    await cache.set("k", "v")
                    return "v"
                return found

        assert await asyncio.gather(load(), load()) == ["v", "v"] and made == [1]
        await cache.close()

    asyncio.run(run())


@use("RQ", "job, result as a stream, retry, schedule, failure")
def rq():
    from datetime import timedelta

    import rq as r
    from rq_jobs import add, fails_once

    queue = r.Queue(connection=connection())
    with beside("rq.cli", "worker", "--with-scheduler", "--url", URL):
        job = queue.enqueue(add, 2, 3)
        eventually(lambda: job.get_status() == "finished", 30)
        assert job.latest_result().return_value == 5
        job = queue.enqueue(fails_once, retry=r.Retry(max=2))
        eventually(lambda: job.get_status() == "finished", 30)
        began = time.time()
        # Its times are whole seconds.
        job = queue.enqueue_in(timedelta(seconds=2), add, 1, 1)
        eventually(lambda: job.get_status() == "finished", 30)
        assert job.latest_result().return_value == 2 and time.time() - began >= 1


@use("dramatiq", "send, delay, retries, result, rate limit")
def dramatiq():
    import dramatiq as d
    from dramatiq.brokers.redis import RedisBroker
    from dramatiq.rate_limits import ConcurrentRateLimiter
    from dramatiq.rate_limits.backends import RedisBackend as Limits
    from dramatiq.results import Results
    from dramatiq.results.backends import RedisBackend

    broker = RedisBroker(url=URL)
    broker.add_middleware(Results(backend=RedisBackend(url=URL)))
    d.set_broker(broker)
    runs = []

    @d.actor(store_results=True, min_backoff=100, max_retries=3)
    def work(n):
        runs.append(n)
        if n == 1 and runs.count(1) < 2:
            raise ValueError("once more")
        return n

    worker = d.Worker(broker, worker_timeout=100)
    worker.start()
    try:
        assert work.send(5).get_result(block=True, timeout=10_000) == 5
        sent = work.send_with_options(args=(6,), delay=500)
        assert sent.get_result(block=True, timeout=10_000) == 6
        assert work.send(1).get_result(block=True, timeout=20_000) == 1
        with ConcurrentRateLimiter(Limits(url=URL), "mutex", limit=1).acquire() as got:
            assert got
    finally:
        worker.stop()


@use("saq", "enqueue, apply, schedule, retry")
def saq():
    import saq as s

    runs = []

    async def work(context, *, n):
        runs.append(n)
        if n == 1 and runs.count(1) < 2:
            raise ValueError("once more")
        return n

    async def run():
        queue = s.Queue.from_url(URL)
        worker = s.Worker(queue, functions=[("work", work)], concurrency=4)
        running = asyncio.create_task(worker.start())
        # At its start a worker gives up jobs that it finds between queue and worker.
        await asyncio.sleep(1)
        assert await queue.apply("work", n=5, timeout=10) == 5
        assert await queue.apply("work", n=1, retries=3, timeout=10) == 1
        job = await queue.enqueue("work", n=9, scheduled=int(time.time()) + 1)
        await job.refresh(20)
        assert job.result == 9
        await worker.stop()
        running.cancel()
        await queue.disconnect()

    asyncio.run(run())


@use("huey", "task, schedule, retry, priority, lock")
def huey():
    from huey import PriorityRedisExpireHuey

    tasks = PriorityRedisExpireHuey(url=URL)
    runs = []

    @tasks.task(retries=2)
    def work(n):
        runs.append(n)
        if n == 1 and runs.count(1) < 2:
            raise ValueError("once more")
        return n

    consumer = tasks.create_consumer(workers=1, scheduler_interval=0.2)
    consumer.start()
    assert work(5)(blocking=True, timeout=10) == 5
    assert work.schedule((6,), delay=1)(blocking=True, timeout=10) == 6
    work(1)
    eventually(lambda: runs.count(1) == 2)
    with tasks.lock_task("l"):
        assert tasks.is_locked("l")
    consumer.stop()


@use("channels_redis", "send, receive, groups, expiry")
def channels():
    from channels_redis.core import RedisChannelLayer

    async def run():
        layer = RedisChannelLayer(hosts=[URL])
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "t", "n": 1})
        assert (await layer.receive(channel))["n"] == 1
        await layer.group_add("g", channel)
        await layer.group_send("g", {"type": "t", "n": 2})
        assert (await layer.receive(channel))["n"] == 2
        await layer.group_discard("g", channel)
        await layer.close_pools()

    asyncio.run(run())


@use("Flask-Limiter", "fixed and sliding windows")
def flask_limiter():
    from flask import Flask
    from flask_limiter import Limiter

    for strategy in ("fixed-window", "sliding-window-counter", "moving-window"):
        app = Flask(strategy)
        limiter = Limiter(lambda: "me", app=app, storage_uri=URL, strategy=strategy)

        @app.route("/")
        @limiter.limit("2 per minute")
        def index():
            return "ok"

        client = app.test_client()
        assert [client.get("/").status_code for _ in range(3)] == [200, 200, 429], strategy
        connection().flushall()


@use("limits", "three strategies, hit, test, stats, clear")
def limits():
    import limits as l
    from limits import strategies, storage

    store = storage.storage_from_string(URL)
    item = l.parse("3/minute")
    for kind in (
        strategies.FixedWindowRateLimiter,
        strategies.MovingWindowRateLimiter,
        strategies.SlidingWindowCounterRateLimiter,
    ):
        limiter = kind(store)
        assert [limiter.hit(item, "k") for _ in range(4)] == [True] * 3 + [False], kind
        assert not limiter.test(item, "k")
        assert limiter.get_window_stats(item, "k").remaining == 0
        limiter.clear(item, "k")
        assert limiter.test(item, "k")


@use("pyrate-limiter", "a bucket of three")
def pyrate():
    from pyrate_limiter import Duration, Limiter, Rate, RedisBucket

    bucket = RedisBucket.init([Rate(3, Duration.MINUTE)], connection(), "bucket")
    limiter = Limiter(bucket)
    took = [limiter.try_acquire("k", blocking=False) for _ in range(4)]
    assert took == [True, True, True, False], took


@use("APScheduler", "jobs in a store, run at their time")
def apscheduler():
    from datetime import datetime, timedelta

    from apscheduler.jobstores.redis import RedisJobStore
    from apscheduler.schedulers.background import BackgroundScheduler
    from rq_jobs import count

    scheduler = BackgroundScheduler(jobstores={"default": RedisJobStore(port=int(PORT))})
    scheduler.start()
    scheduler.add_job(count, "date", [int(PORT)], run_date=datetime.now() + timedelta(seconds=1))
    eventually(lambda: connection().get("counted") == b"1")
    scheduler.shutdown()


if __name__ == "__main__":
    if not NAME:
        for name, (what, _) in USES.items():
            print(f"{name}\t{what}")
    else:
        USES[NAME][1]()
        sys.stdout.flush()
        os._exit(0)
