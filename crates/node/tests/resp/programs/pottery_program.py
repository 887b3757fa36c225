"""Redlock of pottery, of one server."""

import sys
import time

import redis
from pottery import Redlock
from pottery.exceptions import ReleaseUnlockedLock

client = redis.Redis(port=int(sys.argv[1]))


def make(seconds=10):
    return Redlock(key="pottery", masters={client}, auto_release_time=seconds)


lock, other = make(), make()
print("free", bool(lock.locked()))
print("acquire", lock.acquire(blocking=False), 0 < lock.locked() <= 10)
print("taken", other.acquire(blocking=False), bool(other.locked()))
print("extend", lock.extend())
print("release", lock.release(), bool(lock.locked()))
try:
    lock.release()
except ReleaseUnlockedLock as error:
    print("again", type(error).__name__)
short = make(2)
print("short", short.acquire(blocking=False))
time.sleep(2.5)
print("over", bool(short.locked()), other.acquire(blocking=False))
print("release", other.release())
