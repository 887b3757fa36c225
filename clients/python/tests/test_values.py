"""What needs no node."""

import socket
import threading
import unittest
from typing import Callable
from unittest import mock

# First: it finds the package.
import support
import catraca
from catraca._hold import DEFAULT_PORT, LONGEST_SILENCE, Lease, Place, Request, certainty, millis, now
from catraca._resp import Parser, ServerError, encode

#: The lock '#1' with the fence 77.
GRANTED = b"*2\r\n$2\r\n#1\r\n$2\r\n77\r\n"


class Protocol(unittest.TestCase):
    def test_a_wait_is_told_in_milliseconds_of_which_none_is_missing(self) -> None:
        # A node that is told 299 ends the wait before a caller's 0.3 seconds have passed.
        for seconds, told in ((0.29995, 300), (0.3, 300), (0.0001, 1), (0.0, 0), (-1.0, 0)):
            self.assertEqual(millis(seconds), told)

    def test_an_answer_is_given_only_when_it_is_complete(self) -> None:
        data = b"*4\r\n$3\r\na\r\n\r\n:-7\r\n$-1\r\n+OK\r\n"
        for end in range(len(data)):
            parser = Parser()
            parser.feed(data[:end])
            self.assertIsNone(parser.next(), end)
            parser.feed(data[end:] + b":1\r\n")
            self.assertEqual(parser.next(), ([b"a\r\n", -7, None, b"OK"],))
            self.assertEqual(parser.next(), (1,))
            self.assertIsNone(parser.next())

    def test_what_is_not_the_protocol_is_refused(self) -> None:
        for data in (b"HTTP/1.1 400\r\n", b":x\r\n", b"$-7\r\n", b"*9999999999\r\n", b"*1\r\n" * 20):
            parser = Parser()
            with self.assertRaises(catraca.ProtocolError):
                parser.feed(data)
                parser.next()
        with self.assertRaises(catraca.ProtocolError):
            Parser().feed(b"x" * (2 << 20))

    def test_errors_have_types(self) -> None:
        kinds = {
            "NOAUTH say who you are": catraca.AuthenticationError,
            "NOPERM not this lock": catraca.AuthenticationError,
            "UNAVAILABLE the group has no majority": catraca.Unavailable,
            "ERR a name is too long": catraca.Refused,
        }
        for text, kind in kinds.items():
            error = ServerError(text).known()
            self.assertIs(type(error), kind)
            self.assertIn(text.partition(" ")[2], str(error))

    def test_a_command_is_an_array_of_texts(self) -> None:
        self.assertEqual(encode("GET", "ü", 7), "*3\r\n$3\r\nGET\r\n$2\r\nü\r\n$1\r\n7\r\n".encode())


class Values(unittest.TestCase):
    def test_addresses_have_hosts_and_ports_or_paths(self) -> None:
        self.assertEqual(Place.parse("10.0.0.1:7"), Place(host="10.0.0.1", port=7))
        self.assertEqual(Place.parse("[::1]:7"), Place(host="::1", port=7))
        self.assertEqual(Place.parse("::1"), Place(host="::1", port=DEFAULT_PORT))
        self.assertEqual(Place.parse("node"), Place(host="node", port=DEFAULT_PORT))
        self.assertEqual(Place.parse("unix:/run/c"), Place(path="/run/c"))
        for wrong in ("node:x", "node:0", "node:65536", ":7", ""):
            with self.assertRaises(ValueError):
                Place.parse(wrong)

    def test_a_request_is_checked_and_written(self) -> None:
        words = Request.of(["wait", "b"], 1, 2.5, "me").words(0.25)
        self.assertEqual(words, ["CATRACA.LOCK", "wait", "b", "WAIT", 250, "TTL", 2500, "LABEL", "me"])
        self.assertEqual(Request.of(["a"], 3, None, None).words(None)[2:], ["PERMITS", 3])
        for names, permits, ttl in (([], 1, None), (["a", "ttl"], 1, None), (["a"], 0, None), (["a"], 1, 0)):
            with self.assertRaises(ValueError):
                Request.of(names, permits, ttl, None)

    def test_a_lease_counts_from_what_was_sent_and_leaves_time_to_stop(self) -> None:
        lease = Lease(30.0, sent=100.0)
        self.assertTrue(100.0 < lease.due < lease.lost_at < lease.valid_until < 130.0)
        lease.renewed(30.0, 110.0)
        self.assertTrue(110.0 < lease.due < lease.valid_until < 140.0)
        lease.renewed(30.0, 105.0)
        self.assertTrue(lease.due > 110.0)
        lease.renewed(1.0, 120.0)
        self.assertTrue(120.0 < lease.lost_at < lease.valid_until < 121.0)

    def test_a_node_is_certain_for_as_long_as_it_says_and_not_for_ever(self) -> None:
        self.assertEqual((certainty(1500), certainty(0)), (1.5, 0.0))
        self.assertEqual(certainty(2**63 - 1), LONGEST_SILENCE)
        for wrong in (-1, b"1500", None):
            self.assertRaises(catraca.ProtocolError, certainty, wrong)


class Strangers(unittest.TestCase):
    """Somebody else answers."""

    def serve(self, answers: "list[bytes]", before: Callable[[], None] = lambda: None) -> str:
        """Gives one answer to each request of one connection, and keeps what was said. Does something
        before the first answer."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.said = b""

        def talk() -> None:
            stream, _ = listener.accept()
            for answer in answers:
                self.said += stream.recv(65536)
                before()
                stream.sendall(answer)
            stream.recv(65536)
            stream.close()

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        self.addCleanup(listener.close)
        return "127.0.0.1:%d" % listener.getsockname()[1]

    def test_the_token_comes_first(self) -> None:
        address = self.serve([b"+OK\r\n", GRANTED, b":5000\r\n"])
        with catraca.Client(address, token="secret") as client:
            self.assertEqual(client.lock("a").fence, 77)
        self.assertTrue(self.said.startswith(encode("AUTH", "secret")))

    def test_a_token_that_is_refused_is_an_error_of_its_own_and_is_not_tried_again(self) -> None:
        address = self.serve([b"-WRONGPASS nobody has this token\r\n"])
        with catraca.Client(address, token="secret") as client:
            with self.assertRaisesRegex(catraca.AuthenticationError, "nobody has this token"):
                client.lock("a")

    def test_a_lock_of_a_connection_is_as_certain_as_its_node_says(self) -> None:
        with catraca.Client(self.serve([GRANTED, b":5000\r\n"])) as client:
            lock = client.lock("a")
            self.assertLess(lock._lease.valid_until, now() + 5)
            self.assertTrue(lock.is_held)
        self.assertEqual(self.said, encode("CATRACA.LOCK", "a") + encode("CATRACA.CERTAIN"))

    def test_a_node_that_is_not_certain_of_what_it_grants_is_not_used(self) -> None:
        with catraca.Client(self.serve([GRANTED, b":0\r\n"]), retry=0) as client:
            with self.assertRaisesRegex(catraca.Unavailable, "certain"):
                client.lock("a")
        with catraca.Client(self.serve([GRANTED, b"-ERR unknown command\r\n"])) as client:
            self.assertRaises(catraca.Refused, client.lock, "a")
            self.assertEqual(client._idle, [], "what was granted ends with the connection")

    def test_a_lock_that_was_waited_for_is_renewed_before_anybody_relies_on_it(self) -> None:
        # A clock that goes on by more than the time to live while the node does not answer.
        late = 0.0

        def wait() -> None:
            nonlocal late
            late = 100.0

        address = self.serve([GRANTED, b":1\r\n"], wait)
        with mock.patch("catraca.client.now", lambda: now() + late), mock.patch(
            "catraca._hold.now", lambda: now() + late
        ):
            with catraca.Client(address) as client:
                self.assertTrue(client.lock("a", ttl=60).is_held)
        self.assertTrue(self.said.endswith(encode("CATRACA.RENEW", "#1", 60000)))

    def test_another_protocol_is_said_to_be_one(self) -> None:
        address = self.serve([b"HTTP/1.1 400 Bad Request\r\n\r\n"])
        with catraca.Client(address) as client:
            with self.assertRaises(catraca.ProtocolError):
                client.lock("a")

    def test_nonsense_about_what_was_granted_is_refused(self) -> None:
        for answer in (b"*1\r\n$2\r\n#1\r\n", b":1\r\n", b"*2\r\n$2\r\n#1\r\n$1\r\nx\r\n"):
            with catraca.Client(self.serve([answer])) as client:
                with self.assertRaises(catraca.ProtocolError):
                    client.lock("a")

    def test_nobody_there_is_said_after_the_time_for_it(self) -> None:
        address = f"127.0.0.1:{support.free_port()}"
        with catraca.Client(address, retry=0.2) as client:
            with self.assertRaisesRegex(catraca.Unavailable, address):
                client.lock("a")
            self.assertRaises(catraca.Unavailable, client.try_lock, "a")

    def test_a_client_that_is_closed_says_so(self) -> None:
        client = catraca.Client("127.0.0.1:1")
        client.close()
        with self.assertRaisesRegex(catraca.CatracaError, "closed"):
            client.lock("a")


if __name__ == "__main__":
    unittest.main()
