"""Locks for asyncio.

    import catraca.aio

    async with catraca.aio.Client("127.0.0.1:7879") as client:
        async with client.lock("deploy", timeout=60) as lock:
            await deploy(fence=lock.fence)

`await client.lock("deploy")` gives a lock that is released by `await lock.release()`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import (
    Awaitable,
    Callable,
    Deque,
    Generator,
    List,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
)

from ._connection import prepare
from ._hold import (
    ANSWER,
    MOST_IDLE,
    PAUSE,
    RETRY,
    Addresses,
    Grant,
    Held,
    Lease,
    Place,
    Request,
    Settings,
    Tls,
    Tries,
    Turns,
    answered_one,
    now,
)
from ._resp import Parser, Reply, ServerError, Word, encode
from .errors import CatracaError, LockLost, ProtocolError, Unavailable

__all__ = ["Acquiring", "Client", "Lock"]


class _Connection:
    """A connection. Answers come in the order of the requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: Deque[asyncio.Future[Reply]] = deque()
        #: Is set when it has ended.
        self.ended = asyncio.Event()
        #: How certain the locks are that belong to it.
        self.lease = Lease()
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def open(cls, settings: Settings, place: Place) -> _Connection:
        try:
            opening = cls._streams(settings, place)
            reader, writer = await asyncio.wait_for(opening, settings.answer)
        except (OSError, asyncio.TimeoutError) as error:
            raise place.failure(error) from error
        connection = cls(reader, writer)
        if settings.token is not None:
            try:
                await connection.call(["AUTH", settings.token], settings.answer)
            except BaseException:
                connection.close()
                raise
        return connection

    @staticmethod
    async def _streams(
        settings: Settings, place: Place
    ) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if place.path:
            return await asyncio.open_unix_connection(place.path)
        reader, writer = await asyncio.open_connection(place.host, place.port, ssl=settings.tls)
        prepare(writer.get_extra_info("socket"))
        return reader, writer

    async def call(self, words: List[Word], limit: Optional[float]) -> Reply:
        """Asks, and waits for the answer. If nobody waits for it any more, the connection ends."""
        if self.ended.is_set():
            raise Unavailable(f"{words[0]}: the connection has ended")
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        try:
            self._writer.write(encode(*words))
            # asyncio.wait_for of some versions loses a cancellation that comes with the answer.
            await asyncio.wait([answer], timeout=limit)
        except BaseException:
            answer.cancel()
            self.close()
            raise
        if not answer.done():
            answer.cancel()
            self.close()
            raise Unavailable(f"{words[0]}: no answer in time")
        try:
            return answer.result()
        except ServerError as error:
            raise error.known() from None
        except OSError as error:
            raise Unavailable(f"{words[0]}: {error}") from error

    async def _read(self) -> None:
        parser = Parser()
        why: Exception = ConnectionResetError("the node has closed the connection")
        try:
            while True:
                data = await self._reader.read(65536)
                if not data:
                    break
                parser.feed(data)
                while self._settle(parser):
                    pass
        except (OSError, CatracaError) as error:
            why = error
        finally:
            self.close()
            while self._waiting:
                answer = self._waiting.popleft()
                if not answer.done():
                    answer.set_exception(why)

    def _settle(self, parser: Parser) -> bool:
        """Gives the next answer to whoever waits for it, if it is complete."""
        parsed = parser.next()
        if parsed is None:
            return False
        if not self._waiting:
            raise ConnectionResetError("the node has given the connection up")
        answer = self._waiting.popleft()
        if not answer.done():
            if isinstance(parsed[0], ServerError):
                answer.set_exception(parsed[0])
            else:
                answer.set_result(parsed[0])
        return True

    def close(self) -> None:
        self.ended.set()
        self._writer.close()
        if self._reading is not asyncio.current_task():
            self._reading.cancel()


class Acquiring:
    """A request that begins when it is awaited, or entered by `async with`."""

    def __init__(self, begin: Callable[[], Awaitable[Lock]]) -> None:
        self._begin = begin
        self._lock: Optional[Lock] = None

    def __await__(self) -> Generator[None, None, Lock]:
        return self._begin().__await__()

    async def __aenter__(self) -> Lock:
        self._lock = await self._begin()
        return self._lock

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._lock is not None:
            await self._lock.__aexit__(kind, error, trace)


class Client:
    """A client of a group, for one event loop. See :class:`catraca.Client` for what it is told."""

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
        self._idle: List[_Connection] = []
        self._used: Set[_Connection] = set()
        self._locks: Set[Lock] = set()
        self._turns = Turns(self._settings.places)
        self._is_closed = False

    def lock(
        self,
        name: str,
        *,
        timeout: Optional[float] = None,
        ttl: Optional[float] = None,
        label: Optional[str] = None,
    ) -> Acquiring:
        """Takes a lock; waits for `timeout` seconds at the most, and then raises :class:`LockTimeout`.

        Whoever is cancelled while it waits leaves the queue. For `ttl` see :meth:`catraca.Client.lock`.
        """
        return self._acquiring([name], 1, timeout, ttl, label)

    async def try_lock(
        self, name: str, *, ttl: Optional[float] = None, label: Optional[str] = None
    ) -> Optional[Lock]:
        """Takes a lock if nobody holds it; otherwise None."""
        return await self._acquire(self._settings.request([name], 1, ttl, label), 0)

    def lock_all(
        self,
        names: Sequence[str],
        *,
        timeout: Optional[float] = None,
        ttl: Optional[float] = None,
        label: Optional[str] = None,
    ) -> Acquiring:
        """Takes several locks: all of them are held, or none. Nobody waits in a circle."""
        return self._acquiring(list(names), 1, timeout, ttl, label)

    def semaphore(
        self,
        name: str,
        permits: int,
        *,
        timeout: Optional[float] = None,
        ttl: Optional[float] = None,
        label: Optional[str] = None,
    ) -> Acquiring:
        """Takes a place in a semaphore that lets `permits` in. All who use it say the same number."""
        return self._acquiring([name], permits, timeout, ttl, label)

    async def check(self, name: str, fence: int) -> bool:
        """Whether the lock is held with this fence now."""
        connection = await self._connection()
        try:
            words: List[Word] = ["CATRACA.CHECK", name, fence]
            return answered_one(await connection.call(words, self._settings.answer))
        finally:
            self._give_back(connection)

    async def close(self) -> None:
        """Ends all connections. Locks that are still held are lost; those with a time to live end then."""
        self._is_closed = True
        for lock in list(self._locks):
            lock._lose("the client was closed")
        for connection in self._idle + list(self._used):
            connection.close()
        self._idle.clear()
        self._used.clear()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _acquiring(
        self,
        names: List[str],
        permits: int,
        timeout: Optional[float],
        ttl: Optional[float],
        label: Optional[str],
    ) -> Acquiring:
        request = self._settings.request(names, permits, ttl, label)

        async def begin() -> Lock:
            lock = await self._acquire(request, timeout)
            if lock is None:
                raise request.not_granted(timeout)
            return lock

        return Acquiring(begin)

    async def _acquire(self, request: Request, timeout: Optional[float]) -> Optional[Lock]:
        tries = Tries(self._settings, timeout)
        while True:
            connection: Optional[_Connection] = None
            try:
                connection = await self._connection()
                (wait, limit), sent = tries.wait(), now()
                reply = await connection.call(request.words(wait), limit)
                grant = None if reply is None else Grant.of(reply, request)
            except Unavailable:
                if connection is not None:
                    self._discard(connection)
                await self._pause(tries)
                continue
            except BaseException as error:
                # A refusal leaves the connection as it was. Otherwise what was granted, if anything was,
                # ends with it.
                is_refusal = isinstance(error, CatracaError) and not isinstance(error, ProtocolError)
                if connection is not None:
                    (self._give_back if is_refusal else self._discard)(connection)
                raise
            if grant is None:
                self._give_back(connection)
                return None
            lock = Lock(self, connection, request, grant, sent)
            try:
                await lock._begin()
                return lock
            except Unavailable:
                self._discard(connection)
                await self._pause(tries)
            except BaseException:
                self._discard(connection)
                raise

    async def _pause(self, tries: Tries) -> None:
        """Waits a little before the next try. Raises what is being handled if there is none."""
        if tries.is_over() or self._is_closed:
            raise
        await asyncio.sleep(PAUSE)

    async def _connection(self) -> _Connection:
        """A connection that nobody uses."""
        if self._is_closed:
            raise CatracaError("the client is closed")
        while self._idle:
            connection = self._idle.pop()
            if not connection.ended.is_set():
                self._used.add(connection)
                return connection
        connection = await self._connect()
        self._used.add(connection)
        return connection

    async def _connect(self) -> _Connection:
        """To the first node that can be reached, beginning with the last one that could."""
        for number, place, is_last in self._turns:
            try:
                connection = await _Connection.open(self._settings, place)
            except Unavailable:
                if is_last:
                    raise
                continue
            self._turns.is_good(number)
            return connection
        raise Unavailable("no address")

    def _give_back(self, connection: _Connection) -> None:
        self._used.discard(connection)
        is_good = not (connection.ended.is_set() or self._is_closed)
        if is_good and len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _discard(self, connection: _Connection) -> None:
        self._turns.is_bad()
        self._used.discard(connection)
        connection.close()


class Lock(Held):
    """Locks that are held, until they are released or lost. Leaving `async with` releases them."""

    #: Is set when it is lost.
    lost: asyncio.Event
    #: The keeper has asked the node something.
    _is_asking = False

    def __init__(
        self,
        client: Client,
        connection: _Connection,
        request: Request,
        grant: Grant,
        sent: float,
    ) -> None:
        super().__init__(request, grant, sent, connection.lease)
        self._client, self._connection = client, connection
        self._callbacks: List[Callable[[Lock], None]] = []
        self.lost = asyncio.Event()

    async def _begin(self) -> None:
        """From now on it is kept. Raises :class:`Unavailable` if the node is not certain of it."""
        if self._is_old():
            try:
                await self._renew(self._client._settings.answer)
            except LockLost as error:
                raise Unavailable(str(error)) from error
        self._client._locks.add(self)
        self._keeper = asyncio.ensure_future(self._keep())

    def on_lost(self, callback: Callable[[Lock], None]) -> None:
        """Calls this when it is lost; at once if it is."""
        if self.lost.is_set():
            callback(self)
        else:
            self._callbacks.append(callback)

    async def release(self) -> None:
        """Releases it, and returns when it is free. Raises :class:`LockLost` if it was lost before.

        It is released even if whoever waits for this is cancelled.
        """
        if self._is_to_be_released():
            await asyncio.shield(asyncio.ensure_future(self._release()))

    async def __aenter__(self) -> Lock:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            await self.release()
        except CatracaError:
            # What went wrong within is what the caller has to see.
            if error is None:
                raise

    async def _release(self) -> None:
        # The keeper may be in the middle of a question; its answer must not be left over.
        self._client._locks.discard(self)
        await self._stop_keeper()
        try:
            while True:
                try:
                    await self._ensure_open()
                    words: List[Word] = ["CATRACA.UNLOCK", self.id]
                    reply = await self._connection.call(words, self._client._settings.answer)
                except Unavailable as error:
                    self._release_again(error)
                    await asyncio.sleep(PAUSE)
                    continue
                return self._released(reply)
        finally:
            self._client._give_back(self._connection)

    async def _stop_keeper(self) -> None:
        if self._is_asking:
            await asyncio.wait([self._keeper])
        self._keeper.cancel()

    async def _ensure_open(self) -> None:
        """A lock with a time to live goes on over a new connection."""
        if self.ttl is not None and self._connection.ended.is_set():
            self._client._used.discard(self._connection)
            self._connection = await self._client._connect()
            self._client._used.add(self._connection)

    async def _keep(self) -> None:
        while not (self._is_released or self.lost.is_set()):
            try:
                pause = max(self._lease.due - now(), 0)
                await asyncio.wait_for(self._connection.ended.wait(), pause)
            except asyncio.TimeoutError:
                pass
            if self._is_released:
                return
            self._is_asking = True
            try:
                await self._renew(self._renewal_limit(now(), self._client._settings.answer))
            except CatracaError as error:
                if self._is_lost_by(error):
                    return self._lose(str(error))
                await asyncio.sleep(PAUSE)
            finally:
                self._is_asking = False

    async def _renew(self, limit: float) -> None:
        words = self._renewal(not self._connection.ended.is_set())
        await self._ensure_open()
        sent = now()
        self._renewed(await self._connection.call(words, limit), sent)

    def _lose(self, why: str) -> None:
        if self._is_released or self.lost.is_set():
            return
        self._client._locks.discard(self)
        self._client._discard(self._connection)
        if asyncio.current_task() is not self._keeper:
            self._keeper.cancel()
        self.reason = why
        self.lost.set()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
