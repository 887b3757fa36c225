#!/bin/bash
# A holder of a lock is paused, loses the lock, and wakes up when somebody else has written.
#
#   ./late.sh WRITE...      WRITE FENCE TEXT is the command that writes
#
# Exit code: 0 if the late write was refused, 1 if it got through.
set -eu
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
export WORK=$work

# Waits, for a generous time, until a command succeeds.
until_true() {
    for _ in $(seq 600); do "$@" && return; sleep 0.1; done
    echo "waited in vain: $*" >&2
    exit 2
}

# Ana gets the lock. When it is time to write, she is not there.
catraca lock --ttl 1 --label ana report -- bash -c '
    echo "ana has the lock, with fence $CATRACA_FENCE"
    echo $$ >"$WORK/pid"
    until [ -e "$WORK/go" ]; do sleep 0.1; done
    "$@" "$CATRACA_FENCE" "written by ana" && echo 0 >"$WORK/result" || echo $? >"$WORK/result"
' ana "$@" &
lock=$!
until_true test -s "$work/pid"
worker=$(cat "$work/pid")

# Her machine stops: her program, and with it all of 'catraca lock' that could have ended it in time.
paused="$lock $(ps -o pid= --ppid $lock | tr -s '\n ' ' ')"
kill -STOP $paused "$worker"
echo "ana's machine is paused"

# The lock is not renewed any more, so Bo gets it after a second.
catraca lock --label bo report -- bash -c '
    echo "bo has the lock, with fence $CATRACA_FENCE"
    "$@" "$CATRACA_FENCE" "written by bo" && echo "bo has written"
' bo "$@"

# Her program goes on where it was, a moment before anything can tell it that the lock is lost.
touch "$work/go"
echo "ana's program goes on, and writes"
kill -CONT "$worker"
until_true test -s "$work/result"
kill -CONT $paused
wait $lock || true

if [ "$(cat "$work/result")" = 0 ]; then
    echo "the late write got through"
    exit 1
fi
echo "the late write was refused"
