"""What clients of both kinds know of requests, settings and holds. Nothing here waits or sends."""

from __future__ import annotations

import math
import ssl
import time
from dataclasses import dataclass
from typing import Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple, Union

from ._resp import Reply, Word
from .errors import CatracaError, LockLost, LockTimeout, ProtocolError, Refused, Unavailable

Addresses = Union[str, Iterable[str]]
Tls = Union[bool, ssl.SSLContext]

DEFAULT_PORT = 7879
#: A node has to answer within this time, in seconds.
ANSWER = 5.0
#: For how long a node that cannot be reached is tried again, unless told otherwise.
RETRY = 5.0
#: Between two tries.
PAUSE = 0.05
#: A node is not trusted for longer without a new answer, however certain it says it is.
LONGEST_SILENCE = 60.0
#: Clocks of different machines differ by less than this share.
DRIFT = 0.02
#: The longest time to wait that a node takes, in seconds.
LONGEST_WAIT = 86_400.0
#: So many connections that nobody uses are kept.
MOST_IDLE = 16
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

    def __str__(self) -> str:
        return self.path or f"{self.host}:{self.port}"

    def failure(self, error: Exception) -> CatracaError:
        """What it means that there is no connection."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return CatracaError(f"{self.host}: {error}")
        return Unavailable(f"{self}: {error or 'no connection in time'}")


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

    def request(
        self, names: Sequence[str], permits: int, ttl: Optional[float], label: Optional[str]
    ) -> "Request":
        """What is asked for, with the client's own label if there is no other."""
        return Request.of(names, permits, ttl, self.label if label is None else label)


class Turns:
    """In which order places are tried: beginning with the last one that was good."""

    def __init__(self, places: Tuple[Place, ...]) -> None:
        self._places, self._first = places, 0

    def __iter__(self) -> Iterator[Tuple[int, Place, bool]]:
        """Each place, with its number and whether it is the last one."""
        count = len(self._places)
        for turn in range(count):
            number = (self._first + turn) % count
            yield number, self._places[number], turn + 1 == count

    def is_good(self, number: int) -> None:
        """A node was reached there."""
        self._first = number

    def is_bad(self) -> None:
        """Something went wrong there: the next try begins at the next one."""
        self._first = (self._first + 1) % len(self._places)


class Tries:
    """For how long a request is made again that finds no node."""

    def __init__(self, settings: Settings, timeout: Optional[float]) -> None:
        self._settings = settings
        self._deadline = deadline_of(timeout)
        self._failing: Optional[float] = None

    def wait(self) -> Tuple[Optional[float], Optional[float]]:
        """How long a node may let the request wait, and when to give the node up."""
        wait = left(self._deadline)
        return wait, None if wait is None else wait + self._settings.answer

    def is_over(self) -> bool:
        """It has failed once more. Whether that was the last time."""
        # A connection that had worked may be old: whatever is wrong is new.
        since = now() if self._failing is None else self._failing
        self._failing = since
        until = since + self._settings.retry
        if self._deadline is not None:
            until = min(until, max(self._deadline, since))
        return now() >= until


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
            words += ["TTL", millis(self.ttl)]
        if self.permits != 1:
            words += ["PERMITS", self.permits]
        if self.label is not None:
            words += ["LABEL", self.label]
        return words


    def not_granted(self, timeout: Optional[float]) -> LockTimeout:
        """It was waited for in vain."""
        return LockTimeout(f"{', '.join(self.names)}: not granted within {timeout} seconds")


def millis(seconds: float) -> int:
    """Whole milliseconds, as the protocol has them: never fewer than were said."""
    return max(math.ceil(seconds * 1000), 0)


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

    def __init__(self, lasts: float = 0.0, sent: float = 0.0) -> None:
        """For so many seconds. Nothing is certain before the node was asked."""
        self._lasts, self._sent = lasts * (1 - DRIFT), sent

    def renewed(self, lasts: float, sent: float) -> None:
        """The node has answered what was sent then: so many seconds from then on."""
        if sent >= self._sent:
            self._lasts, self._sent = lasts * (1 - DRIFT), sent

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


class Flag(Protocol):
    """An event of a thread, or of asyncio."""

    def is_set(self) -> bool: ...


class Held:
    """What locks of both kinds know of themselves."""

    #: Is set when it is lost.
    lost: Flag

    def __init__(self, request: Request, grant: Grant, sent: float, lease: Lease) -> None:
        """Granted over a connection that has this lease."""
        # Without a time to live it is as certain as everything else of its connection.
        self._lease = lease if request.ttl is None else Lease(request.ttl, sent)
        self._is_released = False
        #: What the node calls it.
        self.id: str = grant.id
        #: The names, in the order of asking.
        self.names: Tuple[str, ...] = request.names
        #: One fence for each name. Those of a lock grow from one holder to the next.
        self.fences: Tuple[int, ...] = grant.fences
        #: Its time to live in seconds, if it has one.
        self.ttl: Optional[float] = request.ttl
        #: Why it is lost, if it is.
        self.reason: Optional[str] = None

    @property
    def name(self) -> str:
        """The name; the first one, if these are several."""
        return self.names[0]

    @property
    def fence(self) -> int:
        """The fence; of the first one, if these are several."""
        return self.fences[0]

    @property
    def is_held(self) -> bool:
        """Whether it is held for certain. Look at this right before what must not be done without it."""
        return not (self._is_released or self.lost.is_set()) and now() < self._lease.valid_until

    def check(self) -> None:
        """Raises :class:`LockLost` if it is not held for certain."""
        if not self.is_held:
            raise LockLost(f"{self.name}: {self.reason or 'it is not held'}")

    def _is_to_be_released(self) -> bool:
        """Whether there is something to release. Raises :class:`LockLost` if it was lost before."""
        if self._is_released:
            return False
        self._is_released = True
        if self.lost.is_set():
            raise LockLost(f"{self.name}: {self.reason}")
        return True

    def _release_again(self, error: Unavailable) -> None:
        """Nobody has said that it is released. Raises :class:`LockLost` if there is no use in asking again."""
        # A lock of a connection ended with it.
        if self.ttl is None or now() >= self._lease.valid_until:
            raise LockLost(f"{self.name}: {error}") from error

    def _released(self, reply: Reply) -> None:
        """The node has answered."""
        if not answered_one(reply):
            raise LockLost(f"{self.name}: the node knows nothing of it any more")

    def _renewal(self, is_connected: bool) -> List[Word]:
        """How to tell the node that this side is there, and to learn that it is."""
        if self.ttl is not None:
            return ["CATRACA.RENEW", self.id, millis(self.ttl)]
        if not is_connected:
            raise Unavailable("the connection has ended, and the lock with it")
        return ["CATRACA.CERTAIN"]

    def _is_old(self) -> bool:
        """Whether the node has to be asked before anybody relies on it: it was waited for, or nothing was
        said over the connection, for too long."""
        return now() >= self._lease.due

    def _renewal_limit(self, sent: float, answer: float) -> float:
        """For how long a renewal that is sent now may take."""
        return max(min(answer, self._lease.lost_at - sent), 0.001)

    def _renewed(self, reply: Reply, sent: float) -> None:
        """The node has answered a renewal that was sent then."""
        if self.ttl is not None:
            if not answered_one(reply):
                raise LockLost("its time to live was over")
            self._lease.renewed(self.ttl, sent)
            return
        self._lease.renewed(certainty(reply), sent)
        if now() >= self._lease.lost_at:
            raise LockLost("its node cannot be certain of it any more")

    def _is_lost_by(self, error: CatracaError) -> bool:
        """Whether it is given up because of what a renewal came to."""
        may_go_on = isinstance(error, Unavailable) and self.ttl is not None
        return not may_go_on or now() >= self._lease.lost_at

    def __repr__(self) -> str:
        kind = type(self)
        return f"<{kind.__module__}.{kind.__name__} {', '.join(self.names)} fence={self.fence}>"


def certainty(reply: Reply) -> float:
    """For how many seconds a node is certain of what it holds for a connection."""
    if not isinstance(reply, int) or reply < 0:
        raise ProtocolError("the node does not say for how long it is certain of a lock")
    return min(reply / 1000, LONGEST_SILENCE)


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
