"""Locks of sherlock."""

import sys
import time

import redis
import sherlock

client = redis.Redis(port=int(sys.argv[1]))


def make(**options):
    return sherlock.RedisLock("sherlock", client=client, namespace="app", **options)


lock, other = make(expire=10, timeout=1), make(expire=10, timeout=1)
print("free", lock.locked())
print("acquire", lock.acquire(), lock.locked(), 0 < client.ttl("app_sherlock") <= 10)
print("taken", other.acquire(blocking=False))
try:
    other.acquire()
except sherlock.LockTimeoutException as error:
    print("time over", type(error).__name__)
print("renew", lock.renew())
lock.release()
print("released", lock.locked())
print("next", other.acquire())
short = make(expire=1, timeout=1)
other.release()
print("short", short.acquire())
time.sleep(1.5)
print("over", short.locked(), other.acquire())
try:
    short.release()
except sherlock.LockException as error:
    print("late", type(error).__name__)
other.release()
short._owner = None
