"""Locks of a Catraca group.

    import catraca

    with catraca.Client("127.0.0.1:7879") as client:
        with client.lock("deploy", timeout=60) as lock:
            deploy(fence=lock.fence)

The same for asyncio is in :mod:`catraca.aio`.
"""

from .client import Client, Lock
from .errors import (
    AuthenticationError,
    CatracaError,
    LockLost,
    LockTimeout,
    ProtocolError,
    Refused,
    Unavailable,
)

__all__ = [
    "AuthenticationError",
    "CatracaError",
    "Client",
    "Lock",
    "LockLost",
    "LockTimeout",
    "ProtocolError",
    "Refused",
    "Unavailable",
]
__version__ = "0.2.0"
