"""Locks for threads."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Callable, List, Optional, Sequence, Type

from ._connection import Connection
from ._hold import (
    ANSWER,
    MOST_IDLE,
    PAUSE,
    RETRY,
    Addresses,
    Grant,
    Held,
    Lease,
    Request,
    Settings,
    Tls,
    Tries,
    Turns,
    answered_one,
    now,
)
from ._resp import Reply, Word
from .errors import CatracaError, LockLost, ProtocolError, Unavailable


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
        self._turns = Turns(self._settings.places)
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
        return self._wait(self._settings.request([name], 1, ttl, label), timeout)

    def try_lock(
        self, name: str, *, ttl: Optional[float] = None, label: Optional[str] = None
    ) -> Optional[Lock]:
        """Takes a lock if nobody holds it; otherwise None."""
        return self._acquire(self._settings.request([name], 1, ttl, label), 0)

    def lock_all(
        self,
        names: Sequence[str],
        *,
        timeout: Optional[float] = None,
        ttl: Optional[float] = None,
        label: Optional[str] = None,
    ) -> Lock:
        """Takes several locks: all of them are held, or none. Nobody waits in a circle."""
        return self._wait(self._settings.request(list(names), 1, ttl, label), timeout)

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
        return self._wait(self._settings.request([name], permits, ttl, label), timeout)

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

    def _wait(self, request: Request, timeout: Optional[float]) -> Lock:
        lock = self._acquire(request, timeout)
        if lock is None:
            raise request.not_granted(timeout)
        return lock

    def _acquire(self, request: Request, timeout: Optional[float]) -> Optional[Lock]:
        tries = Tries(self._settings, timeout)
        while True:
            try:
                channel = self._channel()
            except Unavailable:
                self._pause(tries)
                continue
            try:
                (wait, limit), sent = tries.wait(), now()
                reply = channel.call(request.words(wait), limit)
                grant = None if reply is None else Grant.of(reply, request)
            except ProtocolError:
                # What was granted, if anything was, ends with the connection.
                self._discard(channel)
                raise
            except Unavailable:
                self._discard(channel)
                self._pause(tries)
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
            try:
                return channel.hold(request, grant, sent)
            except Unavailable:
                self._discard(channel)
                self._pause(tries)
            except BaseException:
                self._discard(channel)
                raise

    def _pause(self, tries: Tries) -> None:
        """Waits a little before the next try. Raises what is being handled if there is none."""
        if tries.is_over() or self._is_closed:
            raise
        time.sleep(PAUSE)

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
        for number, place, is_last in self._turns:
            try:
                connection = Connection(self._settings, place, self._settings.answer)
            except Unavailable:
                if is_last:
                    raise
                continue
            self._turns.is_good(number)
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
        self._turns.is_bad()
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
        """From now on it keeps this. Raises :class:`Unavailable` if the node is not certain of it."""
        lock = Lock(self, request, grant, sent, self._connection.lease)
        if lock._is_old():
            try:
                with self._exchange:
                    self._renew(lock, self._answer)
            except LockLost as error:
                raise Unavailable(str(error)) from error
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
                lock._release_again(error)
                time.sleep(PAUSE)
                continue
            return lock._released(reply)

    @property
    def _answer(self) -> float:
        return self._client._settings.answer

    def _ensure_open(self, lock: Lock) -> None:
        """A lock with a time to live goes on over a new connection."""
        if lock.ttl is not None and not self._connection.is_open:
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
                self._renew(lock, lock._renewal_limit(now(), self._answer))
        except CatracaError as error:
            if lock._is_lost_by(error):
                self._lose(lock, str(error))

    def _renew(self, lock: Lock, limit: float) -> None:
        words = lock._renewal(self._connection.is_open)
        self._ensure_open(lock)
        sent = now()
        lock._renewed(self._connection.call(words, limit), sent)

    def _lose(self, lock: Lock, why: str) -> None:
        with self._changed:
            if self._lock is not lock:
                return
            self._lock = None
        self._client._discard(self)
        lock._lose(why)


class Lock(Held):
    """Locks that are held, until they are released or lost. Leaving a `with` block releases them."""

    #: Is set when it is lost.
    lost: threading.Event

    def __init__(
        self, channel: Channel, request: Request, grant: Grant, sent: float, lease: Lease
    ) -> None:
        super().__init__(request, grant, sent, lease)
        self._channel = channel
        self._mutex = threading.Lock()
        self._callbacks: List[Callable[[Lock], None]] = []
        self.lost = threading.Event()

    def on_lost(self, callback: Callable[[Lock], None]) -> None:
        """Calls this, in another thread, when it is lost; at once if it is."""
        with self._mutex:
            if not self.lost.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def release(self) -> None:
        """Releases it, and returns when it is free. Raises :class:`LockLost` if it was lost before."""
        if self._is_to_be_released():
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
