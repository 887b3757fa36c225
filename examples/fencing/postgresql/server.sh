#!/bin/bash
# A PostgreSQL server for this example alone: server.sh start, server.sh stop
#
# It keeps its data in ./data, and is reached by a socket in the same folder and not over the network.
set -eu
cd "$(dirname "$0")"
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
PATH=${programs:+$programs:}$PATH
data=$PWD/data

# PostgreSQL refuses to run as root; then it runs as the user of Debian's package.
as=()
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi

case ${1-} in
start)
    mkdir -p "$data"
    if [ "$(id -u)" = 0 ]; then chown postgres: "$data"; fi
    "${as[@]}" initdb --auth=trust --username=postgres --no-sync --pgdata="$data/db" >/dev/null
    options="-c listen_addresses='' -c fsync=off -k $data"
    "${as[@]}" pg_ctl start --wait --silent --pgdata="$data/db" --log="$data/log" -o "$options"
    ;;
stop)
    "${as[@]}" pg_ctl stop --mode=immediate --silent --pgdata="$data/db"
    ;;
*)
    echo "usage: server.sh start|stop" >&2
    exit 2
    ;;
esac
