"""What Django's cache and its sessions promise, with its own backend and with django-redis. Argument: port."""

import sys
import time

import django
from django.conf import settings

where = f"redis://127.0.0.1:{sys.argv[1]}"
backends = {"default": "django.core.cache.backends.redis.RedisCache", "plugin": "django_redis.cache.RedisCache"}
settings.configure(
    CACHES={name: {"BACKEND": backend, "LOCATION": f"{where}/7", "KEY_PREFIX": name} for name, backend in backends.items()},
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
)
django.setup()
from django.contrib.sessions.backends.cache import SessionStore
from django.core.cache import caches

for name in backends:
    cache = caches[name]
    value = {"words": ["tea", "é", None], "number": 1.5}
    cache.set("value", value, timeout=60)
    assert cache.get("value") == value and cache.get("missing", 7) == 7 and "value" in cache
    assert cache.add("once", 1) and not cache.add("once", 2) and cache.get("once") == 1
    cache.set("count", 40)
    assert cache.incr("count", 2) == 42 and cache.decr("count") == 41
    many = {f"many{i}": i for i in range(100)}
    assert not cache.set_many(many, timeout=60)
    assert cache.get_many(many) == many
    cache.delete_many(many)
    assert cache.get_many(many) == {}
    cache.set("never", 1, timeout=0)
    cache.set("ever", 1, timeout=None)
    cache.set("short", 1, timeout=1)
    assert cache.touch("value", 100) and not cache.touch("missing", 100)
    assert cache.get("never") is None and cache.get("short") == 1
    time.sleep(1.01)
    assert cache.get("short") is None and cache.get("ever") == 1
    assert cache.get_or_set("made", lambda: 5, 60) == 5 and cache.delete("made") and not cache.delete("made")

plugin = caches["plugin"]
plugin.set("timed", 1, timeout=10)
assert 9_000 < plugin.pttl("timed") <= 10_000 and plugin.persist("timed") and plugin.ttl("timed") is None
assert plugin.expire("timed", 100) and 90 < plugin.ttl("timed") <= 100
assert sorted(plugin.keys("t*")) == ["timed"] and plugin.delete_pattern("t*") == 1

session = SessionStore()
session["user"] = "me"
session.set_expiry(1)
session.save()
assert SessionStore(session.session_key)["user"] == "me"
time.sleep(1.01)
assert SessionStore(session.session_key).get("user") is None
print("done")
