"""The protocol of Redis as values: what is sent, and what comes back."""

from __future__ import annotations

from typing import List, Optional, Tuple, Union

from .errors import AuthenticationError, CatracaError, ProtocolError, Refused, Unavailable

Word = Union[str, int]
Reply = Union[None, int, bytes, List["Reply"]]

#: No answer to a client of this package is nearly so long.
LONGEST = 1 << 20
#: Nor is one nested nearly so deep.
DEEPEST = 8


class ServerError(Exception):
    """An answer that is an error."""

    def known(self) -> CatracaError:
        """What it means."""
        text = str(self)
        code, _, rest = text.partition(" ")
        if code in ("NOAUTH", "WRONGPASS", "NOPERM"):
            return AuthenticationError(rest or text)
        if code == "UNAVAILABLE":
            return Unavailable(rest or text)
        return Refused(rest if code == "ERR" else text)


def encode(*words: Word) -> bytes:
    """A command."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = str(word).encode("utf-8")
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Parser:
    """Takes bytes as they come, and gives answers when they are complete."""

    def __init__(self) -> None:
        self._bytes = b""

    def feed(self, data: bytes) -> None:
        """More has come."""
        self._bytes += data
        if len(self._bytes) > LONGEST:
            raise ProtocolError("an answer does not end")

    def next(self) -> Optional[Tuple[Union[Reply, ServerError]]]:
        """The next answer, as the only element of a tuple; None if it is not complete."""
        parsed = self._parse(0, 0)
        if parsed is None:
            return None
        reply, end = parsed
        self._bytes = self._bytes[end:]
        return (reply,)

    def _parse(self, at: int, depth: int) -> Optional[Tuple[Union[Reply, ServerError], int]]:
        end = self._bytes.find(b"\r\n", at)
        if end < 0:
            return None
        kind, text, rest = self._bytes[at : at + 1], self._bytes[at + 1 : end], end + 2
        if kind == b"+":
            return text, rest
        if kind == b"-":
            return ServerError(text.decode("utf-8", "replace")), rest
        if kind == b"_" or (kind in (b"$", b"*") and text == b"-1"):
            return None, rest
        if kind not in (b":", b"$", b"*"):
            raise ProtocolError("this is not the RESP port of a node")
        try:
            number = int(text)
        except ValueError:
            raise ProtocolError("an answer has no number where it should") from None
        if kind == b":":
            return number, rest
        if number < 0 or number > LONGEST or depth >= DEEPEST:
            raise ProtocolError("an answer has a size that cannot be")
        if kind == b"$":
            if len(self._bytes) < rest + number + 2:
                return None
            return self._bytes[rest : rest + number], rest + number + 2
        items: List[Reply] = []
        for _ in range(number):
            parsed = self._parse(rest, depth + 1)
            if parsed is None:
                return None
            item, rest = parsed
            if isinstance(item, ServerError):
                raise ProtocolError("an error within an answer")
            items.append(item)
        return items, rest
