"""A connection on which one request at a time is under way, for threads."""

from __future__ import annotations

import select
import socket
import ssl
from typing import List, Optional

from ._hold import Lease, Place, Settings, now
from ._resp import Parser, Reply, ServerError, Word, encode
from .errors import CatracaError, Unavailable


class Connection:
    """It is closed by whatever goes wrong, and stays so."""

    def __init__(self, settings: Settings, place: Place, limit: float) -> None:
        self._parser = Parser()
        #: How certain the locks are that belong to it.
        self.lease = Lease()
        try:
            self._socket = _open(settings, place, limit)
        except OSError as error:
            raise place.failure(error) from error
        self.is_open = True
        if settings.token is not None:
            try:
                self.call(["AUTH", settings.token], limit)
            except CatracaError:
                self.close()
                raise

    def call(self, words: List[Word], limit: Optional[float]) -> Reply:
        """Asks, and waits for the answer; not for longer than `limit` seconds, if there is one."""
        deadline = None if limit is None else now() + limit
        try:
            self._socket.settimeout(limit)
            self._socket.sendall(encode(*words))
            while True:
                parsed = self._parser.next()
                if parsed is not None:
                    break
                if deadline is not None:
                    self._socket.settimeout(max(deadline - now(), 0.001))
                data = self._socket.recv(65536)
                if not data:
                    raise ConnectionResetError("the node has closed the connection")
                self._parser.feed(data)
        except OSError as error:
            self.close()
            raise Unavailable(f"{words[0]}: {error or 'no answer in time'}") from error
        except BaseException:
            # Half an answer is of no use to whoever asks next; and a wait ends with its connection.
            self.close()
            raise
        if isinstance(parsed[0], ServerError):
            raise parsed[0].known()
        return parsed[0]

    def wait_for_end(self, limit: float) -> bool:
        """Waits for `limit` seconds, or until something comes while nothing was asked for."""
        poll = select.poll()
        try:
            poll.register(self._socket, select.POLLIN)
            return bool(poll.poll(max(limit, 0) * 1000))
        except (OSError, ValueError):
            return True

    def has_ended(self) -> bool:
        """Whether the other side has closed it. Nothing may be under way."""
        if not self.is_open:
            return True
        try:
            self._socket.settimeout(0)
            # Nothing was asked for, so whatever comes says that the node has given this connection up.
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except (OSError, ValueError):
            pass
        self.close()
        return True

    def close(self) -> None:
        """Ends it. Locks without a time to live end with it."""
        self.is_open = False
        try:
            # It wakes whoever waits on it.
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()


def _open(settings: Settings, place: Place, limit: float) -> socket.socket:
    if place.path:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        stream.settimeout(limit)
        stream.connect(place.path)
        return stream
    stream = socket.create_connection((place.host, place.port), timeout=limit)
    try:
        prepare(stream)
        if settings.tls is not None:
            stream = settings.tls.wrap_socket(stream, server_hostname=place.host)
    except BaseException:
        stream.close()
        raise
    return stream


def prepare(stream: socket.socket) -> None:
    """Small messages leave at once, and a machine that is gone is noticed."""
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
