"""Locks of redis-py with asyncio, and with version 3 of the protocol."""

import asyncio
import sys

import redis.asyncio
from redis.exceptions import LockError

NAME = "redis-py/async"


async def use(client):
    lock, other = client.lock(NAME, timeout=10), client.lock(NAME, timeout=10)
    print("acquire", await lock.acquire(blocking=False), await lock.locked(), await lock.owned())
    print("taken", await other.acquire(blocking=False))
    print("extend", await lock.extend(5), await lock.reacquire())

    async def wait():
        waited = await other.acquire(blocking_timeout=30)
        await other.release()
        return waited

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0.1)
    await lock.release()
    print("waited", await waiting)
    try:
        await lock.release()
    except LockError as error:
        print("again", type(error).__name__)
    async with client.lock(NAME, timeout=5):
        print("inside", await client.exists(NAME))
    print("outside", await client.exists(NAME))


async def main():
    for protocol in [2, 3]:
        client = redis.asyncio.Redis(port=int(sys.argv[1]), protocol=protocol)
        await use(client)
        await client.aclose()


asyncio.run(main())
