#!/bin/bash
# Writes the report unless a later holder has: write.sh FENCE TEXT
set -eu
exec 9>>report.fence         # whoever writes looks and writes under this file's own lock
flock 9
newest=$(cat report.fence)
if [ "$1" -lt "${newest:-0}" ]; then
    echo "refused: fence $1 is older than $newest" >&2
    exit 1
fi
echo "$1" >report.fence
echo "$2" >report.new
mv report.new report.txt
