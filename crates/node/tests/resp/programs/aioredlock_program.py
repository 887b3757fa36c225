"""Locks of aioredlock, of one server."""

import asyncio
import sys

from aioredlock import Aioredlock, LockError


async def outcome(awaitable):
    try:
        return await awaitable
    except (LockError, RuntimeError) as error:
        return type(error).__name__


async def main():
    servers = [("127.0.0.1", int(sys.argv[1]))]
    one, two = (Aioredlock(servers, retry_count=2) for _ in range(2))
    lock = await one.lock("aioredlock", lock_timeout=10)
    print("acquire", lock.valid, await one.is_locked("aioredlock"))
    print("taken", await outcome(two.lock("aioredlock", lock_timeout=10)))
    print("extend", await one.extend(lock, 20), lock.valid)
    print("unlock", await outcome(one.unlock(lock)), lock.valid)
    print("free", await one.is_locked("aioredlock"))
    other = await two.lock("aioredlock", lock_timeout=10)
    print("acquire", other.valid)
    print("late", await outcome(one.extend(lock)))
    await two.unlock(other)
    await one.destroy()
    await two.destroy()


asyncio.run(main())
