"""Locks of redis-py, in every way that they can be used."""

import sys
import threading
import time

import redis
from redis.exceptions import LockError

client = redis.Redis(port=int(sys.argv[1]))
NAME = "redis-py/lock"


def outcome(action):
    try:
        return action()
    except LockError as error:
        return type(error).__name__


print("ping", client.ping())
lock = client.lock(NAME, timeout=10)
other = client.lock(NAME, timeout=10)
print("free", lock.locked(), lock.owned())
print("acquire", lock.acquire(blocking=False), lock.locked(), lock.owned())
print("taken", other.acquire(blocking=False), other.owned())
print("token", client.get(NAME) == lock.local.token)
print("left", 0 < client.pttl(NAME) <= 10_000, 0 < client.ttl(NAME) <= 10)
print("extend", lock.extend(20), 10_000 < client.pttl(NAME) <= 30_000)
print("replace", lock.extend(5, replace_ttl=True), client.pttl(NAME) <= 5_000)
print("reacquire", lock.reacquire(), client.pttl(NAME) > 5_000)
print("release", lock.release(), lock.locked())
print("again", outcome(lock.release))
print("extend free", outcome(lambda: lock.extend(5)))

print("for ever", outcome(lambda: client.lock(NAME).acquire(blocking=False)))
print("its left", client.pttl(NAME), client.ttl(NAME), client.exists(NAME))
print("taken", other.acquire(blocking=False))
print("deleted", client.delete(NAME), client.exists(NAME), client.pttl(NAME))

forever = client.lock(NAME)
print("for ever", forever.acquire(), forever.owned())
print("release", forever.release(), forever.locked())

short = client.lock(NAME, timeout=0.1)
print("short", short.acquire())
time.sleep(0.5)
print("over", short.locked(), short.owned())
print("next", other.acquire(blocking=False))
print("late", outcome(short.release), other.owned())
print("late", outcome(lambda: short.extend(5)))


waited = []


def wait():
    waiter = client.lock(NAME, timeout=10)
    waited.append(waiter.acquire(blocking_timeout=30))
    waiter.release()


thread = threading.Thread(target=wait)
thread.start()
time.sleep(0.2)
print("release", other.release())
thread.join()
print("waited", *waited)

with client.lock(NAME, timeout=5, blocking_timeout=5) as held:
    print("inside", held.owned())
    print("no time", client.lock(NAME, timeout=5).acquire(blocking_timeout=0.2))
print("outside", client.exists(NAME))
