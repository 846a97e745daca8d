"""The tasks of the Celery uses."""

import os

import redis
from celery import Celery

URL = os.environ.get("REDIS_URL") or f"redis://127.0.0.1:{__import__('sys').argv[-1]}"

app = Celery("tasks", broker=URL, backend=URL)
app.conf.redbeat_redis_url = URL
app.conf.beat_schedule = {"tick": {"task": "celery_tasks.tick", "schedule": 1.0}}


@app.task
def add(a, b):
    return a + b


@app.task
def total(parts):
    return sum(parts)


@app.task(bind=True)
def third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def tick():
    redis.Redis.from_url(URL).incr("ticks")
