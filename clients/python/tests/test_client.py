"""Threads and processes against a real node."""

import tempfile
import threading
import time
import unittest
from pathlib import Path

# First: it finds the package.
from support import GENEROUS, Line, Node, WithNode, run_python, until
import catraca
from catraca._hold import now

#: Adds one to the number in a file, in two steps, under a lock; says nothing of it.
CONTENDER = """
import sys, time, catraca
address, path, entries = sys.argv[1], sys.argv[2], int(sys.argv[3])
with catraca.Client(address, answer=60) as client:
    last = 0
    for _ in range(entries):
        with client.lock("two/processes") as lock:
            assert lock.fence > last
            last = lock.fence
            number = int(open(path).read() or 0)
            time.sleep(0.002)
            open(path, "w").write(str(number + 1))
"""

#: Holds a lock until it is killed.
HOLDER = """
import sys, catraca
lock = catraca.Client(sys.argv[1]).lock(sys.argv[2])
print(lock.fence, flush=True)
sys.stdin.read()
"""


class Locks(WithNode):
    def test_fences_grow_and_the_newest_is_the_one_that_counts(self) -> None:
        client, name = self.client(), self.name()
        with client.lock(name) as first:
            self.assertTrue(client.check(name, first.fence))
        with client.lock(name) as second:
            self.assertGreater(second.fence, first.fence)
            self.assertTrue(client.check(name, second.fence))
            self.assertFalse(client.check(name, first.fence))

    def test_a_lock_that_is_taken_is_not_waited_for_longer_than_was_said(self) -> None:
        one, other, name = self.client(), self.client(), self.name()
        with one.lock(name):
            self.assertIsNone(other.try_lock(name))
            began = time.monotonic()
            with self.assertRaises(catraca.LockTimeout):
                other.lock(name, timeout=0.3)
            self.assertGreaterEqual(time.monotonic() - began, 0.3)
        lock = other.try_lock(name)
        assert lock is not None
        lock.release()

    def test_whoever_waits_gets_the_lock_when_it_is_released(self) -> None:
        client, name, order = self.client(), self.name(), []

        def wait() -> None:
            with client.lock(name, timeout=GENEROUS):
                order.append("second")

        with client.lock(name):
            thread = threading.Thread(target=wait)
            thread.start()
            time.sleep(0.05)
            order.append("first")
        thread.join(GENEROUS)
        self.assertEqual(order, ["first", "second"])

    def test_threads_of_one_client_exclude_each_other(self) -> None:
        client, name = self.client(), self.name()
        inside, most, entries = 0, 0, 0

        def work() -> None:
            nonlocal inside, most, entries
            for _ in range(20):
                with client.lock(name, timeout=GENEROUS):
                    inside += 1
                    most = max(most, inside)
                    time.sleep(0.0005)
                    inside -= 1
                    entries += 1

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GENEROUS)
        self.assertEqual((most, entries), (1, 160))

    def test_two_processes_exclude_each_other(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            processes = [run_python(CONTENDER, self.node.address, file.name, "50") for _ in range(3)]
            for process in processes:
                process.communicate(timeout=GENEROUS)
                self.assertEqual(process.returncode, 0)
            self.assertEqual(int(Path(file.name).read_text()), 150)

    def test_a_process_that_is_killed_leaves_its_lock_at_once(self) -> None:
        client, name = self.client(), self.name()
        holder = run_python(HOLDER, self.node.address, name)
        assert holder.stdout is not None
        self.assertGreater(int(holder.stdout.readline()), 0)
        self.assertIsNone(client.try_lock(name))
        holder.kill()
        client.lock(name, timeout=GENEROUS).release()
        holder.communicate()

    def test_a_semaphore_lets_so_many_in(self) -> None:
        client, name = self.client(), self.name()
        first, second = client.semaphore(name, 2), client.semaphore(name, 2)
        with self.assertRaises(catraca.LockTimeout):
            client.semaphore(name, 2, timeout=0.2)
        first.release()
        client.semaphore(name, 2, timeout=GENEROUS).release()
        second.release()

    def test_several_locks_are_taken_together_and_in_any_order_without_deadlock(self) -> None:
        client, name = self.client(), self.name()
        names = [f"{name}/{number}" for number in range(3)]
        with client.lock_all(names) as all_of_them:
            self.assertEqual(len(all_of_them.fences), 3)
            for one in names:
                self.assertIsNone(client.try_lock(one))

        def work(names: "list[str]") -> None:
            for _ in range(20):
                client.lock_all(names, timeout=GENEROUS).release()

        threads = [threading.Thread(target=work, args=(order,)) for order in (names, names[::-1])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(GENEROUS)
            self.assertFalse(thread.is_alive())

    def test_a_lock_without_a_connection_is_lost_at_once_and_others_get_it(self) -> None:
        line, name = Line(self.node.port), self.name()
        self.addCleanup(line.close)
        lock, told = self.client(line.address).lock(name), []
        lock.on_lost(told.append)
        self.assertTrue(lock.is_held)
        line.cut()
        self.assertTrue(lock.lost.wait(GENEROUS))
        until(lambda: told == [lock])
        self.assertFalse(lock.is_held)
        self.assertRaises(catraca.LockLost, lock.check)
        self.client().lock(name, timeout=GENEROUS).release()
        self.assertRaises(catraca.LockLost, lock.release)

    def test_a_lock_with_a_time_to_live_survives_its_connection_and_is_renewed(self) -> None:
        line, name = Line(self.node.port), self.name()
        self.addCleanup(line.close)
        client = self.client(line.address)
        with client.lock(name, ttl=3) as lock:
            line.cut()
            began = time.monotonic()
            while time.monotonic() - began < 5:
                self.assertTrue(lock.is_held)
                self.assertIsNone(self.client().try_lock(name))
                time.sleep(0.2)
            line.cut()
        with client.lock(name, timeout=GENEROUS) as next_one:
            self.assertGreater(next_one.fence, lock.fence)

    def test_a_cut_while_waiting_is_a_new_try_in_the_time_that_is_left(self) -> None:
        line, name, granted = Line(self.node.port), self.name(), []
        self.addCleanup(line.close)
        client = self.client(line.address)
        waiter = threading.Thread(target=lambda: granted.append(client.lock(name, timeout=GENEROUS)))
        with self.client().lock(name):
            waiter.start()
            time.sleep(0.1)
            line.cut()
            time.sleep(0.1)
            self.assertEqual(granted, [])
        waiter.join(GENEROUS)
        granted[0].release()

    def test_work_that_was_done_without_the_lock_is_not_taken_for_done(self) -> None:
        line, name = Line(self.node.port), self.name()
        self.addCleanup(line.close)
        client = self.client(line.address)
        with self.assertRaises(catraca.LockLost):
            with client.lock(name) as lock:
                line.cut()
                lock.lost.wait(GENEROUS)
        with self.assertRaisesRegex(KeyError, "mine"):
            with client.lock(name, timeout=GENEROUS) as lock:
                line.cut()
                lock.lost.wait(GENEROUS)
                raise KeyError("mine")

    def test_closing_a_client_frees_what_it_holds(self) -> None:
        client, name = self.client(), self.name()
        lock = client.lock(name)
        client.close()
        self.assertTrue(lock.lost.is_set())
        self.client().lock(name, timeout=GENEROUS).release()

    def test_what_a_node_refuses_is_said_and_the_connection_goes_on(self) -> None:
        client = self.client()
        with self.assertRaises(catraca.Refused):
            client.lock("x" * 10_000)
        client.lock(self.name()).release()

    def test_releasing_twice_does_nothing(self) -> None:
        lock = self.client().lock(self.name())
        lock.release()
        lock.release()
        self.assertFalse(lock.is_held)


class Faults(unittest.TestCase):
    """Nodes that end."""

    def setUp(self) -> None:
        self.node = Node()
        self.addCleanup(self.node.close)

    def test_the_lock_of_a_node_that_is_killed_is_lost_and_the_client_goes_on_with_the_next(self) -> None:
        client = catraca.Client(self.node.address, retry=GENEROUS)
        self.addCleanup(client.close)
        lock = client.lock("a")
        self.node.kill()
        self.assertTrue(lock.lost.wait(GENEROUS))
        self.assertIsNotNone(lock.reason)
        self.node.start()
        with client.lock("a", timeout=GENEROUS) as later:
            self.assertGreater(later.fence, lock.fence)

    def test_a_node_that_is_silent_is_given_up_before_others_could_have_the_lock(self) -> None:
        client = catraca.Client(self.node.address)
        self.addCleanup(client.close)
        for ttl in (None, 3.0):
            lock = client.lock("a", ttl=ttl)
            self.node.pause()
            began = time.monotonic()
            try:
                self.assertTrue(lock.lost.wait(GENEROUS))
                # A busy machine may tell late, but never that it is held beyond its time.
                until(lambda: not lock.is_held)
                self.assertGreater(time.monotonic() - began, 0.5)
            finally:
                self.node.resume()

    def test_a_node_that_stops_costs_its_locks_and_whoever_waits_goes_to_the_next_one(self) -> None:
        first, granted = Node("--drain", "0s"), []
        self.addCleanup(first.close)
        client = catraca.Client([first.address, self.node.address], retry=GENEROUS)
        self.addCleanup(client.close)
        lock = client.lock("a")
        waiter = threading.Thread(target=lambda: granted.append(client.lock("a", timeout=GENEROUS)))
        waiter.start()
        first.stop()
        self.assertTrue(lock.lost.wait(GENEROUS))
        waiter.join(GENEROUS)
        # The other node is a group of its own, where nobody has the lock.
        self.assertTrue(granted[0].is_held)

    def test_with_a_short_lease_a_silent_node_is_given_up_sooner(self) -> None:
        node = Node("--lease", "1s")
        self.addCleanup(node.close)
        client = catraca.Client(node.address, retry=GENEROUS)
        self.addCleanup(client.close)
        lock = client.lock("a")
        # Nobody else is let in before the node's lease is over, which lasts a second.
        self.assertLess(lock._lease.valid_until, now() + 1)
        node.pause()
        self.assertTrue(lock.lost.wait(GENEROUS))
        until(lambda: not lock.is_held)
        node.resume()

    def test_the_second_address_is_used_when_the_first_is_gone(self) -> None:
        other = Node()
        self.addCleanup(other.close)
        with catraca.Client([self.node.address, other.address]) as client:
            client.lock("a").release()
            self.node.kill()
            client.lock("a", timeout=GENEROUS).release()


if __name__ == "__main__":
    unittest.main()
