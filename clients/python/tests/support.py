"""Real nodes, connections that can be cut, and patience."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable, List, Optional

SOURCES = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(SOURCES))

import catraca  # noqa: E402

#: Nothing that is waited for takes nearly so long.
GENEROUS = 60.0


def until(what: Callable[[], object], limit: float = GENEROUS) -> None:
    """Waits until something is the case."""
    began = time.monotonic()
    while not what():
        if time.monotonic() - began > limit:
            raise AssertionError("it does not happen")
        time.sleep(0.01)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Node:
    """A node alone in its group, with a RESP port."""

    def __init__(self, *flags: str, **settings: Any) -> None:
        """A node with these flags, to which a client with these settings gets in."""
        self._folder = tempfile.TemporaryDirectory()
        self._flags, self._settings = flags, settings
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._listen = f"127.0.0.1:{free_port()}"
        self._process: Optional[subprocess.Popen[bytes]] = None
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it grants locks."""
        log = open(Path(self._folder.name) / "log", "ab")
        self._process = subprocess.Popen(
            [os.environ["CATRACA"], "node", "--listen", self._listen, "--resp", self.address]
            + ["--data", str(Path(self._folder.name) / "data"), *self._flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        log.close()
        settings = {"retry": GENEROUS, "answer": GENEROUS, **self._settings}
        with catraca.Client(self.address, **settings) as client:
            # With a time to live it outlasts the silence of a machine that is busy.
            client.lock("ready", ttl=GENEROUS).release()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stops it in order."""
        self._signal(signal.SIGTERM)
        if self._process is not None:
            self._process.wait(GENEROUS)
            self._process = None

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, which: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(which)

    def close(self) -> None:
        self.kill()
        self._folder.cleanup()


class Line:
    """A way to a node that can be cut: by a port, or by a Unix socket."""

    def __init__(self, port: int, path: Optional[Path] = None) -> None:
        self._target = port
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        else:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(str(path))
            self._listener.listen()
            self.address = f"unix:{path}"
        self._streams: List[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._streams += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while True:
                data = one.recv(65536)
                if not data:
                    break
                other.sendall(data)
        except OSError:
            pass
        for stream in (one, other):
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self) -> None:
        """Ends all connections. New ones are possible."""
        streams, self._streams = self._streams, []
        for stream in streams:
            try:
                stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            stream.close()

    def close(self) -> None:
        try:
            # It wakes whoever waits on it.
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self.cut()


class Secure:
    """A node that speaks TLS, and wants a token from everybody."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        self.authority = str(folder / "ca.pem")
        catraca_says("cert", "ca", "--out", str(folder))
        keys = ["--ca", str(folder), "--out", str(folder)]
        catraca_says("cert", "issue", "alone", *keys, "--ip", "127.0.0.1")
        self.token = self.add_token("ci", "--names", "ci/*", "--names", "ready")
        self.node = Node(
            *("--tls-cert", str(folder / "alone.pem"), "--tls-key", str(folder / "alone-key.pem")),
            *("--tokens", str(folder / "tokens")),
            token=self.token,
            tls=self.context(),
        )

    def add_token(self, name: str, *flags: str) -> str:
        tokens = str(Path(self._folder.name) / "tokens")
        return catraca_says("token", "add", name, "--file", tokens, *flags).strip()

    def context(self) -> ssl.SSLContext:
        """What trusts the authority of the node, and nobody else."""
        return ssl.create_default_context(cafile=self.authority)

    def close(self) -> None:
        self.node.close()
        self._folder.cleanup()


def catraca_says(*arguments: str) -> str:
    """What the binary prints."""
    ran = subprocess.run([os.environ["CATRACA"], *arguments], stdout=subprocess.PIPE, check=True)
    return ran.stdout.decode("utf-8")


class WithNode(unittest.TestCase):
    """Tests that share a node which they leave as it was."""

    node: Node

    @classmethod
    def setUpClass(cls) -> None:
        cls.node = Node()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.node.close()

    def client(self, address: Optional[str] = None) -> catraca.Client:
        client = catraca.Client(address or self.node.address, answer=GENEROUS)
        self.addCleanup(client.close)
        return client

    def name(self) -> str:
        """A lock of this test alone."""
        return self.id().replace(".", "/")


def run_python(text: str, *arguments: str) -> "subprocess.Popen[str]":
    """Another process with this package."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
