"""Tasks against a real node."""

import asyncio
import unittest

# First: it finds the package.
from support import GENEROUS, Line, Node
import catraca
import catraca.aio


class Tasks(unittest.IsolatedAsyncioTestCase):
    node: Node

    @classmethod
    def setUpClass(cls) -> None:
        cls.node = Node()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.node.close()

    def name(self) -> str:
        return self.id().replace(".", "/")

    def client(self, address: str = "") -> catraca.aio.Client:
        client = catraca.aio.Client(address or self.node.address, answer=GENEROUS)
        self.addAsyncCleanup(client.close)
        return client

    async def test_a_lock_is_taken_by_async_with_and_by_await(self) -> None:
        client, name = self.client(), self.name()
        async with client.lock(name, timeout=GENEROUS) as first:
            self.assertTrue(first.is_held)
            self.assertTrue(await client.check(name, first.fence))
            self.assertIsNone(await client.try_lock(name))
            with self.assertRaises(catraca.LockTimeout):
                await client.lock(name, timeout=0.1)
        second = await client.lock(name)
        self.assertGreater(second.fence, first.fence)
        await second.release()
        await second.release()
        self.assertFalse(second.is_held)

    async def test_tasks_exclude_each_other(self) -> None:
        client, name = self.client(), self.name()
        inside, most, entries = 0, 0, 0

        async def work() -> None:
            nonlocal inside, most, entries
            for _ in range(10):
                async with client.lock(name, timeout=GENEROUS):
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0)
                    inside -= 1
                    entries += 1

        await asyncio.gather(*(work() for _ in range(16)))
        self.assertEqual((most, entries), (1, 160))

    async def test_whoever_is_cancelled_while_waiting_leaves_the_queue(self) -> None:
        client, name = self.client(), self.name()
        async with client.lock(name):
            waiters = [asyncio.ensure_future(client.lock(name)._begin()) for _ in range(3)]
            await asyncio.sleep(0.1)
            for waiter in waiters:
                waiter.cancel()
            for waiter in waiters:
                with self.assertRaises(asyncio.CancelledError):
                    await waiter
        # If one of them were still in the queue, it would hold the lock for ever.
        async with self.client().lock(name, timeout=GENEROUS):
            pass

    async def test_whoever_is_cancelled_inside_releases(self) -> None:
        client, name = self.client(), self.name()
        entered = asyncio.Event()

        async def work() -> None:
            async with client.lock(name):
                entered.set()
                await asyncio.sleep(GENEROUS)

        task = asyncio.ensure_future(work())
        await entered.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        async with self.client().lock(name, timeout=GENEROUS):
            pass

    async def test_a_release_that_is_cancelled_is_a_release(self) -> None:
        client, name = self.client(), self.name()
        lock = await client.lock(name)
        releasing = asyncio.ensure_future(lock.release())
        await asyncio.sleep(0)
        releasing.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await releasing
        async with self.client().lock(name, timeout=GENEROUS):
            pass

    async def test_a_lock_without_a_connection_is_lost_at_once(self) -> None:
        line, name, told = Line(self.node.port), self.name(), []
        self.addCleanup(line.close)
        lock = await self.client(line.address).lock(name)
        lock.on_lost(told.append)
        line.cut()
        await asyncio.wait_for(lock.lost.wait(), GENEROUS)
        self.assertEqual(told, [lock])
        with self.assertRaises(catraca.LockLost):
            await lock.release()
        async with self.client().lock(name, timeout=GENEROUS):
            pass

    async def test_a_lock_with_a_time_to_live_survives_its_connection_and_is_renewed(self) -> None:
        line, name = Line(self.node.port), self.name()
        self.addCleanup(line.close)
        async with self.client(line.address).lock(name, ttl=3) as lock:
            line.cut()
            for _ in range(25):
                self.assertTrue(lock.is_held)
                self.assertIsNone(await self.client().try_lock(name))
                await asyncio.sleep(0.2)
            line.cut()
        async with self.client().lock(name, timeout=GENEROUS):
            pass

    async def test_several_locks_and_semaphores(self) -> None:
        client, name = self.client(), self.name()
        async with client.lock_all([f"{name}/a", f"{name}/b"]) as both:
            self.assertEqual(len(both.fences), 2)
            self.assertIsNone(await client.try_lock(f"{name}/b"))
        async with client.semaphore(name, 2), client.semaphore(name, 2):
            with self.assertRaises(catraca.LockTimeout):
                await client.semaphore(name, 2, timeout=0.2)

    async def test_the_lock_of_a_node_that_is_killed_is_lost_and_the_client_goes_on(self) -> None:
        node = Node()
        self.addCleanup(node.close)
        client = catraca.aio.Client(node.address, retry=GENEROUS)
        self.addAsyncCleanup(client.close)
        lock = await client.lock("a")
        node.kill()
        await asyncio.wait_for(lock.lost.wait(), GENEROUS)
        await asyncio.get_running_loop().run_in_executor(None, node.start)
        async with client.lock("a", timeout=GENEROUS) as later:
            self.assertGreater(later.fence, lock.fence)

    async def test_a_node_that_is_silent_is_given_up(self) -> None:
        node = Node()
        self.addCleanup(node.close)
        client = catraca.aio.Client(node.address)
        self.addAsyncCleanup(client.close)
        lock = await client.lock("a")
        node.pause()
        await asyncio.wait_for(lock.lost.wait(), GENEROUS)
        self.assertFalse(lock.is_held)
        node.resume()

    async def test_closing_a_client_frees_what_it_holds(self) -> None:
        client, name = self.client(), self.name()
        lock = await client.lock(name)
        await client.close()
        self.assertTrue(lock.lost.is_set())
        async with self.client().lock(name, timeout=GENEROUS):
            pass


if __name__ == "__main__":
    unittest.main()
