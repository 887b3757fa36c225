"""What can go wrong."""

from __future__ import annotations


class CatracaError(Exception):
    """Every error of this package."""


class LockTimeout(CatracaError, TimeoutError):
    """The lock was not granted in time: others hold it, or wait for it and were first."""


class LockLost(CatracaError):
    """The lock is not held any more, though nobody has released it here."""


class Unavailable(CatracaError, ConnectionError):
    """No node can be reached, or the group cannot grant locks now."""


class AuthenticationError(CatracaError, PermissionError):
    """The token is missing or unknown, or does not allow this."""


class Refused(CatracaError, ValueError):
    """The node refuses what was asked for, and would again."""


class ProtocolError(CatracaError):
    """The other side does not speak this protocol: is it the RESP port of a node?"""
