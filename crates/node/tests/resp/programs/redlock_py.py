"""Locks of redlock-py, of one server."""

import sys

from redlock import Redlock

manager = Redlock([{"host": "127.0.0.1", "port": int(sys.argv[1])}], retry_count=2, retry_delay=0.05)
lock = manager.lock("redlock-py/lock", 10_000)
print("acquire", lock.resource, 0 < lock.validity <= 10_000)
print("taken", manager.lock("redlock-py/lock", 10_000))
manager.unlock(lock)
again = manager.lock("redlock-py/lock", 10_000)
print("again", bool(again))
# The key of an earlier holder opens nothing.
manager.unlock(lock)
print("taken", manager.lock("redlock-py/lock", 10_000))
manager.unlock(again)
