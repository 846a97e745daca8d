"""The server from Python, with the stock client: `cargo run --release &`, `pip install redis`,
`python3 examples/server.py [PORT]`.
"""
import sys
import time

import redis

client = redis.Redis(port=int(sys.argv[1]) if len(sys.argv) > 1 else 6379, decode_responses=True)
client.config_set("notify-keyspace-events", "Exh")
events = client.pubsub()
events.psubscribe("__keyevent@0__:*expired")
assert events.get_message(timeout=1)["type"] == "psubscribe"

# A key, and a field of a hash, each with a time to live of its own.
begun = time.monotonic()
client.set("tea", "hot", px=250)
client.hset("session", mapping={"user": "ada", "token": "8f2c"})
client.hpexpire("session", 400, "token")
forecast = client.execute_command("EXPIRY", "FORECAST", 16)
assert sum(keys for _, _, keys in forecast) >= 2
print("expire soon [from ms, to ms, keys]:", [window for window in forecast if window[2]])

# Nobody touches them, and the events come to the millisecond.
for _ in range(2):
    event = events.get_message(timeout=2)
    print(f"{(time.monotonic() - begun) * 1000:.1f} ms: {event['channel']} {event['data']}")
print("left:", client.hgetall("session"), client.exists("tea"))

# A queue: a transaction fills it, and whoever waits first is served first.
with client.pipeline(transaction=True) as queue:
    queue.rpush("mails", "to ada", "to bob").expire("mails", 60).execute()
print(client.blpop("mails", timeout=1), client.blpop("mails", timeout=1))
client.delete("session")
