"""What an application does with the Python client. Arguments: port, protocol version."""

import sys
import time

import redis

port, protocol = int(sys.argv[1]), int(sys.argv[2])
r = redis.Redis(port=port, protocol=protocol, decode_responses=True, client_name="app")
r.flushall()
assert r.ping()
assert r.client_getname() == "app"
assert r.set("a", "1", px=60_000)
assert 0 < r.pttl("a") <= 60_000
assert r.set("a", "2", nx=True) is None
assert r.incr("a") == 2
assert r.set("a", "x", get=True) == "2"
assert r.getex("a", ex=100) == "x" and r.ttl("a") == 100
assert r.expire("a", 50, lt=True) and not r.expire("a", 70, lt=True)
assert r.persist("a") and r.ttl("a") == -1
assert r.mset({f"k{i}": i for i in range(100)})
assert r.mget("k1", "missing", "k2") == ["1", None, "2"]
assert sorted(r.scan_iter(match="k1*", count=7)) == sorted(f"k{i}" for i in [1, *range(10, 20)])
assert r.exists("k1", "k2", "nope") == 2 and r.delete("k1", "k2", "nope") == 2
assert r.append("s", "abc") == 3 and r.getrange("s", 1, -1) == "bc"
assert r.type("s") == "string" and r.type("nope") == "none"
assert r.dbsize() == 100
assert r.rename("s", "t") and r.get("t") == "abc"

pipe = r.pipeline(transaction=False)
for i in range(1000):
    pipe.set(f"p{i}", i, ex=1000)
    pipe.get(f"p{i}")
answers = pipe.execute()
assert answers[1::2] == [str(i) for i in range(1000)]

# What caches and sessions do: writes and their deadline in one transaction, and updates that are not lost.
with r.pipeline(transaction=True) as pipe:
    pipe.set("hits", 1)
    pipe.incr("hits")
    pipe.expire("hits", 100)
    pipe.hset("session", mapping={"user": "me", "cart": "tea"})
    pipe.get("hits")
    assert pipe.execute() == [True, 2, True, 2, "2"]
with r.pipeline() as pipe:
    pipe.watch("hits")
    r.incr("hits")
    pipe.multi()
    pipe.set("hits", 0)
    try:
        pipe.execute()
        raise AssertionError("a watched key has changed")
    except redis.WatchError:
        assert r.get("hits") == "3"


# A lock is renewed and given back by scripts, and by nobody else.
lock = r.lock("lock", timeout=10)
assert lock.acquire() and lock.extend(20) and lock.reacquire() and lock.owned()
assert not r.lock("lock").acquire(blocking=False)
lock.release()
assert not r.exists("lock")
double = r.register_script("return redis.call('set', KEYS[1], 2 * redis.call('get', KEYS[1]))")
r.set("number", 21)
double(keys=["number"])
assert r.get("number") == "42"
r.script_flush()
assert double(keys=["number"]) and r.get("number") == "84"


def add_one(pipe):
    hits = int(pipe.get("hits"))
    pipe.multi()
    pipe.set("hits", hits + 1, keepttl=True)


assert r.transaction(add_one, "hits") == [True] and r.get("hits") == "4" and r.ttl("hits") > 0
assert r.delete("hits", "session") == 2

other = redis.Redis(port=port, protocol=protocol, db=3, decode_responses=True)
assert other.get("a") is None
assert other.info("server")["server_name"] == "tidewheel"
assert "lateness_p99_us" in other.info("expiry")
assert any(c["name"] == "app" for c in other.client_list())
assert other.config_get("maxmemory*")["maxmemory-policy"] == "noeviction"
try:
    other.execute_command("NOPE")
    raise AssertionError("an unknown command must fail")
except redis.ResponseError as why:
    assert "unknown command" in str(why)
try:
    r.incr("t")
    raise AssertionError("a word is no number")
except redis.ResponseError as why:
    assert "not an integer" in str(why)

events = r.pubsub(ignore_subscribe_messages=True)
events.subscribe("__keyevent@0__:expired", "news")
deadline = time.time() + 30
while r.publish("news", "hello") == 0:
    assert time.time() < deadline
asked = time.monotonic()
r.set("short", "lived", px=30)
seen = []
while "short" not in seen:
    assert time.time() < deadline, seen
    message = events.get_message(timeout=1)
    if message:
        seen.append(message["data"])
assert time.monotonic() - asked >= 0.03
assert seen[0] == "hello"
assert r.get("short") is None
events.close()
r.close()
print("done")
