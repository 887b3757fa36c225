"""A lock of redis-py over TLS."""

import sys

import redis

client = redis.Redis(port=int(sys.argv[1]), ssl=True, ssl_ca_certs=sys.argv[2], protocol=3)
lock = client.lock("tls", timeout=10)
print("acquire", lock.acquire(blocking=False))
print("taken", client.lock("tls", timeout=10).acquire(blocking=False))
print("echo", client.echo("x" * 50_000) == b"x" * 50_000)
lock.release()
print("released", client.exists("tls"))
