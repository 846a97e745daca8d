"""A worker of Celery and its tasks: a countdown, a retry, a result that expires. Argument: port."""

import os
import subprocess
import sys
import time

import redis

port = os.environ["PORT"] = sys.argv[1]
os.environ["C_FORCE_ROOT"] = "1"
here = os.environ["PYTHONPATH"] = sys.argv[2]
sys.path.insert(0, here)
import celery_tasks as tasks

# Celery gives this lock back by a script. While somebody holds it, the worker does not ask for it.
redis.Redis(port=port, db=5).set("unacked_mutex", "held")
command = ["celery", "-A", "celery_tasks", "worker", "-c", "1", "-l", "error", "--without-mingle", "--without-gossip"]
worker = subprocess.Popen([sys.executable, "-m", *command], cwd=here, stdout=subprocess.DEVNULL)
try:
    asked = time.time()
    total, ran = tasks.add.apply_async((3, 4), countdown=0.5).get(timeout=60)
    assert total == 7 and ran - asked >= 0.5
    assert tasks.second_time.delay().get(timeout=60) == 1
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
