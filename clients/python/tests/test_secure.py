"""TLS, tokens and Unix sockets."""

import asyncio
import ssl
import tempfile
import unittest
from pathlib import Path

# First: it finds the package.
from support import GENEROUS, Line, Node, Secure, until
import catraca
import catraca.aio


class OverTls(unittest.TestCase):
    """The node asks everybody for a token, and speaks nothing but TLS."""

    secure: Secure

    @classmethod
    def setUpClass(cls) -> None:
        cls.secure = Secure()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.secure.close()

    @property
    def address(self) -> str:
        return self.secure.node.address

    def client(self, **settings: object) -> catraca.Client:
        given = {"token": self.secure.token, "tls": self.secure.context(), "answer": GENEROUS}
        client = catraca.Client(self.address, **{**given, "retry": 0, **settings})  # type: ignore
        self.addCleanup(client.close)
        return client

    def test_a_lock_is_taken_waited_for_and_given_back(self) -> None:
        one, other = self.client(), self.client()
        with one.lock("ci/x") as first:
            self.assertTrue(first.is_held and one.check("ci/x", first.fence))
            self.assertIsNone(other.try_lock("ci/x"))
        with other.lock("ci/x", ttl=30) as second:
            self.assertGreater(second.fence, first.fence)

    def test_a_lock_survives_a_line_that_is_cut(self) -> None:
        line = Line(self.secure.node.port)
        self.addCleanup(line.close)
        settings = {"token": self.secure.token, "tls": self.secure.context()}
        with catraca.Client(line.address, answer=GENEROUS, **settings) as client:  # type: ignore
            lock = client.lock("ci/cut", ttl=60)
            line.cut()
            lock.release()
            lost = client.lock("ci/cut")
            line.cut()
            self.assertTrue(lost.lost.wait(GENEROUS))

    def test_whoever_has_no_token_or_a_wrong_one_is_told_so(self) -> None:
        for token in (None, "catraca_wrong"):
            with self.assertRaises(catraca.AuthenticationError):
                self.client(token=token).try_lock("ci/x")
        with self.assertRaises(catraca.AuthenticationError):
            self.client().try_lock("prod")

    def test_a_node_of_somebody_else_is_not_trusted(self) -> None:
        with self.assertRaises(catraca.CatracaError) as raised:
            self.client(tls=True).try_lock("ci/x")
        self.assertIn("certificate", str(raised.exception).lower())
        # There is no use in trying that again.
        self.assertNotIsInstance(raised.exception, catraca.Unavailable)

    def test_a_client_that_does_not_speak_tls_does_not_get_in(self) -> None:
        with self.assertRaises(catraca.CatracaError):
            self.client(tls=False).try_lock("ci/x")

    def test_asyncio_does_the_same(self) -> None:
        asyncio.run(asyncio.wait_for(self._use(), GENEROUS))

    async def _use(self) -> None:
        settings = {"token": self.secure.token, "tls": self.secure.context(), "retry": 0}
        async with catraca.aio.Client(self.address, **settings) as client:  # type: ignore
            async with client.lock("ci/aio") as lock:
                self.assertTrue(await client.check("ci/aio", lock.fence))
                self.assertIsNone(await client.try_lock("ci/aio"))
            with self.assertRaises(catraca.AuthenticationError):
                await client.try_lock("prod")
        for wrong in ({"token": "catraca_wrong"}, {"tls": ssl.create_default_context()}):
            async with catraca.aio.Client(self.address, **{**settings, **wrong}) as client:  # type: ignore
                with self.assertRaises(catraca.CatracaError):
                    await client.try_lock("ci/aio")


class ByUnixSocket(unittest.TestCase):
    """Nodes have none for this protocol; whoever puts something in between may have one."""

    def test_both_clients_go_by_a_socket_that_leads_to_a_node(self) -> None:
        node = Node()
        self.addCleanup(node.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        line = Line(node.port, Path(folder.name) / "resp")
        self.addCleanup(line.close)
        with catraca.Client(line.address, answer=GENEROUS) as client:
            with client.lock("x") as lock:
                self.assertTrue(client.check("x", lock.fence))
            lost = client.lock("x")
            line.cut()
            until(lost.lost.is_set)

        async def use() -> int:
            async with catraca.aio.Client(line.address) as client:
                async with client.lock("x") as lock:
                    return lock.fence

        self.assertGreater(asyncio.run(use()), lost.fence)


if __name__ == "__main__":
    unittest.main()
