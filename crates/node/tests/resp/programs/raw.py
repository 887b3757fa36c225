"""What a server answers, byte by byte, where a node does as Redis does."""

import socket
import sys

COMMANDS = """
PING
PING hello
ECHO x
SELECT 0
SELECT x
SELECT 99
CLIENT SETNAME a
CLIENT GETNAME
CLIENT
GET k
GET
TTL k
PTTL k
EXISTS k k
DEL k
SET k v NX PX 60000
SET k v NX PX 60000
SET k w NX EX 60
SETNX k v
GET k
EXISTS k k nothing
TTL k
EXPIRE k 100
TTL k
EXPIRE k 100 XX
EXPIRE nothing 100
EXPIRE k x
PEXPIRE k 0
EXISTS k
SET k v PX 10 NX GARBAGE
SET k v NX XX
SET k v NX PX 0
SET k v NX PX x
SET k v NX EX -1
SET k v XX PX 1000
SET k v EX 60 NX
SET k w XX PX 90000
TTL k
UNLINK k
SETNX k v
SETNX k w
PTTL k
TTL k
DEL k k
EVALSHA abc 0
EVALSHA 0123456789012345678901234567890123456789 1 k
SCRIPT EXISTS abc
HELLO 4
HELLO x
TTL a b
SETNX a
"""
SCRIPTS = [
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0",
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('expire', KEYS[1], ARGV[2]) return 1",
    "if redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 else return 0 end",
    "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')",
]
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
answers = connection.makefile("rb")


def read():
    line = answers.readline()
    kind, text = line[:1], line[1:].rstrip()
    if kind == b"$" and int(text) >= 0:
        return line, answers.read(int(text) + 2)
    if kind == b"*":
        return line, [read() for _ in range(int(text))]
    return line


def call(*words):
    command = b"*%d\r\n" % len(words)
    for word in words:
        command += b"$%d\r\n%s\r\n" % (len(word), word.encode())
    connection.sendall(command)
    print(*words, "->", read())


for version in ["2", "3"]:
    connection.sendall(b"HELLO %s\r\n" % version.encode())
    header = answers.readline()
    for _ in range(int(header[1:]) * (2 if header[:1] == b"%" else 1)):
        read()
    for line in COMMANDS.strip().splitlines():
        call(*line.split())
    for script in SCRIPTS:
        for held in [True, False]:
            if held:
                call("SET", "k", "v", "NX", "PX", "60000")
            for value in ["w", "v"]:
                call("EVAL", script, "1", "k", value, "50000")
            call("EXISTS", "k")
            call("DEL", "k")
connection.sendall(b"*1\r\n$4\r\nPING\r\n\r\nPING\r\n*0\r\nPING inline\r\nQUIT\r\n")
for _ in range(4):
    print(read())
print(answers.read())
