"""Tasks for a worker. The environment names the port."""

import os
import time

from celery import Celery

where = f"redis://127.0.0.1:{os.environ['PORT']}"
app = Celery("celery_tasks", broker=f"{where}/5", backend=f"{where}/6")
app.conf.update(
    result_expires=1,
    broker_connection_retry_on_startup=True,
)


@app.task
def add(a, b):
    return a + b, time.time()


@app.task
def total(sums):
    return sum(number for number, _ in sums)


@app.task(bind=True, max_retries=3)
def second_time(self):
    if self.request.retries < 1:
        raise self.retry(countdown=0.1, exc=ValueError("not yet"))
    return self.request.retries
