"""A worker of Celery and its tasks: a countdown, a retry, a chord, a result that expires. Argument: port."""

import os
import subprocess
import sys
import time

import redis
from celery import chord

port = os.environ["PORT"] = sys.argv[1]
os.environ["C_FORCE_ROOT"] = "1"
here = os.environ["PYTHONPATH"] = sys.argv[2]
sys.path.insert(0, here)
import celery_tasks as tasks

command = ["celery", "-A", "celery_tasks", "worker", "-c", "1", "-l", "error"]
worker = subprocess.Popen([sys.executable, "-m", *command], cwd=here, stdout=subprocess.DEVNULL)
try:
    asked = time.time()
    total, ran = tasks.add.apply_async((3, 4), countdown=0.5).get(timeout=60)
    assert total == 7 and ran - asked >= 0.5
    assert tasks.second_time.delay().get(timeout=60) == 1
    assert chord([tasks.add.s(n, n) for n in range(4)])(tasks.total.s()).get(timeout=60) == 12
    assert tasks.app.control.ping(timeout=10)
    result = tasks.add.delay(1, 2)
    assert result.get(timeout=60)[0] == 3
    key, results = f"celery-task-meta-{result.id}", redis.Redis(port=port, db=6)
    assert results.pttl(key) <= 1000
    deadline = time.time() + 30
    while results.exists(key):
        assert time.time() < deadline
        time.sleep(0.01)
    assert tasks.app.AsyncResult(result.id).state == "PENDING"
    worker.terminate()
    assert worker.wait(timeout=60) == 0
finally:
    worker.kill()
print("done")
