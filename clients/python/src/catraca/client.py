"""Locks for threads."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Callable, List, Optional, Sequence, Tuple, Type

from ._connection import Connection
from ._hold import (
    ANSWER,
    PAUSE,
    RETRY,
    Addresses,
    Grant,
    Lease,
    Request,
    Settings,
    Tls,
    answered_one,
    deadline_of,
    left,
    millis,
    now,
)
from ._resp import Reply, Word
from .errors import CatracaError, LockLost, LockTimeout, ProtocolError, Unavailable

#: So many connections that nobody uses are kept.
MOST_IDLE = 16


class Client:
    """A client of a group. It may be used by any number of threads.

    `addresses` are RESP ports of nodes, as "HOST:PORT" or "unix:PATH": one, or several that are tried in
    turn. `tls` is True for certificates that this machine trusts, or a context of the module ssl. `answer`
    is how long a node may take to answer, and `retry` for how long a group that cannot be reached is tried
    again, both in seconds.
    """

    def __init__(
        self,
        addresses: Addresses = "127.0.0.1",
        *,
        token: Optional[str] = None,
        tls: Tls = False,
        label: Optional[str] = None,
        answer: float = ANSWER,
        retry: float = RETRY,
    ) -> None:
        self._settings = Settings.of(addresses, token, tls, label, answer, retry)
        self._mutex = threading.Lock()
        self._idle: List[Channel] = []
        self._used: List[Channel] = []
        self._place = 0
        self._is_closed = False

    def lock(
        self,
        name: str,
        *,
        timeout: Optional[float] = None,
        ttl: Optional[float] = None,
        label: Optional[str] = None,
    ) -> Lock:
        """Takes a lock; waits for `timeout` seconds at the most, and then raises :class:`LockTimeout`.

        Without `ttl` the lock belongs to a connection, and is free as soon as this process ends, however it
        ends. With `ttl`, in seconds, it survives a connection that breaks, and is renewed in the background;
        if this process ends without releasing it, it is free when that time is over.
        """
        return self._wait(Request.of([name], 1, ttl, self._label(label)), timeout)

    def try_lock(
        self, name: str, *, ttl: Optional[float] = None, label: Optional[str] = None
    ) -> Optional[Lock]:
        """Takes a lock if nobody holds it; otherwise None."""
        return self._acquire(Request.of([name], 1, ttl, self._label(label)), 0)

    def lock_all(
        self,
        names: Sequence[str],
        *,
        timeout: Optional[float] = None,
        ttl: Optional[float] = None,
        label: Optional[str] = None,
    ) -> Lock:
        """Takes several locks: all of them are held, or none. Nobody waits in a circle."""
        return self._wait(Request.of(list(names), 1, ttl, self._label(label)), timeout)

    def semaphore(
        self,
        name: str,
        permits: int,
        *,
        timeout: Optional[float] = None,
        ttl: Optional[float] = None,
        label: Optional[str] = None,
    ) -> Lock:
        """Takes a place in a semaphore that lets `permits` in. All who use it say the same number."""
        return self._wait(Request.of([name], permits, ttl, self._label(label)), timeout)

    def check(self, name: str, fence: int) -> bool:
        """Whether the lock is held with this fence now: what a resource asks before it obeys a holder."""
        return answered_one(self._call(["CATRACA.CHECK", name, fence]))

    def close(self) -> None:
        """Ends all connections. Locks that are still held are lost; those with a time to live end then."""
        with self._mutex:
            self._is_closed = True
            channels = self._idle + self._used
            self._idle, self._used = [], []
        for channel in channels:
            channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _label(self, label: Optional[str]) -> Optional[str]:
        return self._settings.label if label is None else label

    def _wait(self, request: Request, timeout: Optional[float]) -> Lock:
        lock = self._acquire(request, timeout)
        if lock is None:
            raise LockTimeout(f"{', '.join(request.names)}: not granted within {timeout} seconds")
        return lock

    def _acquire(self, request: Request, timeout: Optional[float]) -> Optional[Lock]:
        deadline = deadline_of(timeout)
        failing: Optional[float] = None
        while True:
            try:
                channel = self._channel()
            except Unavailable:
                failing = self._again(failing, deadline)
                continue
            try:
                wait, sent = left(deadline), now()
                limit = None if wait is None else wait + self._settings.answer
                reply = channel.call(request.words(wait), limit)
                grant = None if reply is None else Grant.of(reply, request)
            except ProtocolError:
                # What was granted, if anything was, ends with the connection.
                self._discard(channel)
                raise
            except Unavailable:
                self._discard(channel)
                # A connection that had worked may be old: whatever is wrong is new.
                failing = self._again(failing, deadline)
                continue
            except CatracaError:
                self._give_back(channel)
                raise
            except BaseException:
                self._discard(channel)
                raise
            if grant is None:
                self._give_back(channel)
                return None
            return channel.hold(request, grant, sent)

    def _again(self, failing: Optional[float], deadline: Optional[float]) -> float:
        """Waits a little before the next try. Raises what is being handled if there is none."""
        since = now() if failing is None else failing
        until = since + self._settings.retry
        if deadline is not None:
            until = min(until, max(deadline, since))
        if now() >= until or self._is_closed:
            raise
        time.sleep(PAUSE)
        return since

    def _call(self, words: List[Word]) -> Reply:
        channel = self._channel()
        try:
            reply = channel.call(words, self._settings.answer)
        except Unavailable:
            self._discard(channel)
            raise
        except CatracaError:
            self._give_back(channel)
            raise
        self._give_back(channel)
        return reply

    def _channel(self) -> Channel:
        """A connection that nobody uses."""
        while True:
            with self._mutex:
                if self._is_closed:
                    raise CatracaError("the client is closed")
                channel = self._idle.pop() if self._idle else None
            if channel is None:
                channel = Channel(self, self._connect())
            elif channel.has_ended():
                channel.close()
                continue
            with self._mutex:
                self._used.append(channel)
            return channel

    def _connect(self) -> Connection:
        """To the first node that can be reached, beginning with the last one that could."""
        places = self._settings.places
        for turn in range(len(places)):
            number = (self._place + turn) % len(places)
            try:
                connection = Connection(self._settings, places[number], self._settings.answer)
            except Unavailable:
                if turn + 1 == len(places):
                    raise
                continue
            self._place = number
            return connection
        raise Unavailable("no address")

    def _give_back(self, channel: Channel) -> None:
        with self._mutex:
            if channel in self._used:
                self._used.remove(channel)
                if len(self._idle) < MOST_IDLE and not self._is_closed and channel.is_open:
                    self._idle.append(channel)
                    return
        channel.close()

    def _discard(self, channel: Channel) -> None:
        # The next try begins at the next node.
        self._place = (self._place + 1) % len(self._settings.places)
        with self._mutex:
            if channel in self._used:
                self._used.remove(channel)
        channel.close()


class Channel:
    """A connection with a thread that keeps what is held on it. Both stay when a lock is released."""

    def __init__(self, client: Client, connection: Connection) -> None:
        self._client = client
        self._connection = connection
        # Whoever has it may use the connection.
        self._exchange = threading.Lock()
        self._changed = threading.Condition()
        self._lock: Optional[Lock] = None
        self._is_closed = False
        self._keeper: Optional[threading.Thread] = None

    @property
    def is_open(self) -> bool:
        return self._connection.is_open and not self._is_closed

    def has_ended(self) -> bool:
        with self._exchange:
            return self._connection.has_ended()

    def call(self, words: List[Word], limit: Optional[float]) -> Reply:
        with self._exchange:
            return self._connection.call(words, limit)

    def hold(self, request: Request, grant: Grant, sent: float) -> Lock:
        """From now on it keeps this."""
        lock = Lock(self, request, grant, Lease(request.ttl, sent))
        with self._changed:
            self._lock = lock
            self._changed.notify()
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="catraca", daemon=True)
            self._keeper.start()
        return lock

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            lock, self._lock = self._lock, None
            self._changed.notify()
        self._connection.close()
        if lock is not None:
            lock._lose("the client was closed")

    def release(self, lock: Lock) -> None:
        """Releases, and gives the connection back."""
        with self._changed:
            if self._lock is not lock:
                return
            self._lock = None
        try:
            self._release(lock)
        finally:
            self._client._give_back(self)

    def _release(self, lock: Lock) -> None:
        while True:
            try:
                with self._exchange:
                    self._ensure_open(lock)
                    reply = self._connection.call(["CATRACA.UNLOCK", lock.id], self._answer)
            except Unavailable as error:
                # A lock of a connection ended with it.
                if not lock._lease.is_timed or now() >= lock._lease.valid_until:
                    raise LockLost(f"{lock.name}: {error}") from error
                time.sleep(PAUSE)
                continue
            if not answered_one(reply):
                raise LockLost(f"{lock.name}: the node knows nothing of it any more")
            return

    @property
    def _answer(self) -> float:
        return self._client._settings.answer

    def _ensure_open(self, lock: Lock) -> None:
        """A lock with a time to live goes on over a new connection."""
        if lock._lease.is_timed and not self._connection.is_open:
            self._connection = self._client._connect()

    def _keep(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lock is not None or self._is_closed)
                if self._is_closed:
                    return
                lock = self._lock
            if lock is not None:
                self._keep_once(lock)

    def _keep_once(self, lock: Lock) -> None:
        """Waits until there is something to do for a lock, and does it."""
        lease = lock._lease
        connection = self._connection
        if connection.is_open:
            has_come = connection.wait_for_end(lease.due - now())
        else:
            has_come = False
            time.sleep(PAUSE)
        try:
            with self._exchange:
                if self._lock is not lock:
                    return
                if has_come and not self._connection.has_ended():
                    return
                self._renew(lock)
        except Unavailable as error:
            if not lease.is_timed or now() >= lease.lost_at:
                self._lose(lock, str(error))
        except CatracaError as error:
            self._lose(lock, str(error))

    def _renew(self, lock: Lock) -> None:
        """Tells the node that this side is there, and learns that it is."""
        lease = lock._lease
        if not lease.is_timed and not self._connection.is_open:
            raise Unavailable("the connection has ended, and the lock with it")
        self._ensure_open(lock)
        sent = now()
        limit = max(min(self._answer, lease.lost_at - sent), 0.001)
        if lock.ttl is None:
            self._connection.call(["PING"], limit)
        elif not answered_one(
            self._connection.call(["CATRACA.RENEW", lock.id, millis(lock.ttl)], limit)
        ):
            raise LockLost("its time to live was over")
        lease.renewed(sent)

    def _lose(self, lock: Lock, why: str) -> None:
        with self._changed:
            if self._lock is not lock:
                return
            self._lock = None
        self._client._discard(self)
        lock._lose(why)


class Lock:
    """Locks that are held, until they are released or lost. Leaving a `with` block releases them."""

    def __init__(self, channel: Channel, request: Request, grant: Grant, lease: Lease) -> None:
        self._channel = channel
        self._lease = lease
        self._mutex = threading.Lock()
        self._callbacks: List[Callable[[Lock], None]] = []
        self._is_released = False
        #: What the node calls it.
        self.id: str = grant.id
        #: The names, in the order of asking.
        self.names: Tuple[str, ...] = request.names
        #: One fence for each name. Those of a lock grow from one holder to the next.
        self.fences: Tuple[int, ...] = grant.fences
        #: Its time to live in seconds, if it has one.
        self.ttl: Optional[float] = request.ttl
        #: Is set when it is lost.
        self.lost = threading.Event()
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

    def on_lost(self, callback: Callable[[Lock], None]) -> None:
        """Calls this, in another thread, when it is lost; at once if it is."""
        with self._mutex:
            if not self.lost.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def release(self) -> None:
        """Releases it, and returns when it is free. Raises :class:`LockLost` if it was lost before."""
        if self._is_released:
            return
        self._is_released = True
        if self.lost.is_set():
            raise LockLost(f"{self.name}: {self.reason}")
        self._channel.release(self)

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self.release()
        except CatracaError:
            # What went wrong within is what the caller has to see.
            if error is None:
                raise

    def _lose(self, why: str) -> None:
        with self._mutex:
            self.reason = why
            self.lost.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def __repr__(self) -> str:
        return f"<catraca.Lock {', '.join(self.names)} fence={self.fence}>"
