"""The jobs of RQ and APScheduler."""

import redis


def add(a, b):
    return a + b


def fails_once():
    from rq import get_current_job

    job = get_current_job()
    if not job.meta.get("failed"):
        job.meta["failed"] = True
        job.save_meta()
        raise ValueError("once more")


def count(port):
    redis.Redis(port=port).incr("counted")
