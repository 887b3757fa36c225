"""What clients of both kinds know of requests, settings and holds. Nothing here waits or sends."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import Iterable, List, Optional, Sequence, Tuple, Union

from ._resp import Reply, Word
from .errors import ProtocolError, Refused

Addresses = Union[str, Iterable[str]]
Tls = Union[bool, ssl.SSLContext]

DEFAULT_PORT = 7801
#: A node has to answer within this time, in seconds.
ANSWER = 5.0
#: For how long a node that cannot be reached is tried again, unless told otherwise.
RETRY = 5.0
#: Between two tries.
PAUSE = 0.05
#: A lock without a time to live is given up when its node was silent for so long. A group that goes on
#: without a node does so after five seconds, unless it was told otherwise.
SILENCE = 4.0
#: Clocks of different machines differ by less than this share.
DRIFT = 0.02
#: The longest time to wait that a node takes, in seconds.
LONGEST_WAIT = 86_400.0
#: Words that stand for options behind the first name.
OPTIONS = ("WAIT", "TTL", "PERMITS", "LABEL")


def now() -> float:
    """A clock that goes on while the machine sleeps, where there is one."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(frozen=True)
class Place:
    """Where a node is: a host and a port, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> "Place":
        if text.startswith("unix:"):
            return cls(path=text[len("unix:") :])
        host, colon, port = text.rpartition(":")
        # An IPv6 address without brackets and port has colons of its own.
        if not colon or (":" in host and not host.endswith("]")):
            host, port = text, str(DEFAULT_PORT)
        if not port.isdecimal() or not 0 < int(port) < 65536 or not host:
            raise ValueError(f"'{text}' is not an address: say HOST:PORT or unix:PATH")
        return cls(host=host.strip("[]"), port=int(port))


@dataclass(frozen=True)
class Settings:
    """How a client connects."""

    places: Tuple[Place, ...]
    token: Optional[str]
    tls: Optional[ssl.SSLContext]
    label: Optional[str]
    answer: float
    retry: float

    @classmethod
    def of(
        cls,
        addresses: Addresses,
        token: Optional[str],
        tls: Tls,
        label: Optional[str],
        answer: float,
        retry: float,
    ) -> "Settings":
        listed = [addresses] if isinstance(addresses, str) else list(addresses)
        if not listed:
            raise ValueError("no address: say where a node listens")
        if answer <= 0 or retry < 0:
            raise ValueError("times are positive")
        context = ssl.create_default_context() if tls is True else (tls or None)
        places = tuple(Place.parse(address) for address in listed)
        return cls(places, token, context, label, answer, retry)


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    names: Tuple[str, ...]
    permits: int = 1
    ttl: Optional[float] = None
    label: Optional[str] = None

    @classmethod
    def of(
        cls, names: Sequence[str], permits: int, ttl: Optional[float], label: Optional[str]
    ) -> "Request":
        if not names:
            raise ValueError("no names: say which locks")
        if any(name.upper() in OPTIONS for name in names[1:]):
            raise ValueError(f"only the first name can be one of {', '.join(OPTIONS)}")
        if permits < 1:
            raise ValueError("a semaphore has at least one permit")
        if ttl is not None and ttl <= 0:
            raise ValueError("a time to live is positive")
        return cls(tuple(names), permits, ttl, label)

    def words(self, wait: Optional[float]) -> List[Word]:
        """The command; waits for so many seconds at the most."""
        words: List[Word] = ["CATRACA.LOCK", *self.names]
        if wait is not None:
            words += ["WAIT", min(millis(wait), millis(LONGEST_WAIT))]
        if self.ttl is not None:
            words += ["TTL", max(millis(self.ttl), 1)]
        if self.permits != 1:
            words += ["PERMITS", self.permits]
        if self.label is not None:
            words += ["LABEL", self.label]
        return words


def millis(seconds: float) -> int:
    """Whole milliseconds, as the protocol has them."""
    return max(int(seconds * 1000), 0)


@dataclass(frozen=True)
class Grant:
    """What a node has granted."""

    id: str
    fences: Tuple[int, ...]

    @classmethod
    def of(cls, reply: Reply, request: Request) -> "Grant":
        words = reply if isinstance(reply, list) else []
        if len(words) != 1 + len(request.names) or not all(
            isinstance(word, (bytes, int)) for word in words
        ):
            raise ProtocolError("the node does not say what it has granted")
        try:
            name, *fences = (
                word.decode("utf-8") if isinstance(word, bytes) else str(word) for word in words
            )
            return cls(name, tuple(int(fence) for fence in fences))
        except ValueError:
            raise ProtocolError("a fence is not a number") from None


class Lease:
    """How certain a hold is. It counts from when the last request was *sent* that the node has answered,
    so this side knows before the node does."""

    def __init__(self, ttl: Optional[float], sent: float) -> None:
        self.is_timed = ttl is not None
        lasts = SILENCE if ttl is None else ttl
        self._lasts = lasts * (1 - DRIFT)
        self._sent = sent

    def renewed(self, sent: float) -> None:
        """The node has answered what was sent then."""
        self._sent = max(self._sent, sent)

    @property
    def due(self) -> float:
        """When it should be renewed."""
        return self._sent + self._lasts / 3

    @property
    def lost_at(self) -> float:
        """When it is given up, unless it is renewed before. There is time left to stop what relies on it."""
        return self._sent + self._lasts * 2 / 3

    @property
    def valid_until(self) -> float:
        """Until then nobody else can hold it."""
        return self._sent + self._lasts


def answered_one(reply: Reply) -> bool:
    """Whether the node has done it; otherwise there was nothing to do it to."""
    if reply not in (0, 1):
        raise Refused(f"the node answers {reply!r} where it should say 0 or 1")
    return reply == 1


def deadline_of(timeout: Optional[float]) -> Optional[float]:
    """When a wait ends."""
    if timeout is None:
        return None
    if timeout < 0:
        raise ValueError("a timeout is not negative; say None to wait for ever")
    return now() + timeout


def left(deadline: Optional[float]) -> Optional[float]:
    """How much of a wait is left."""
    return None if deadline is None else max(deadline - now(), 0.0)
