#!/bin/bash
# Writes the report unless a later holder has: write.sh FENCE TEXT
set -eu
exec 9>>report.lock          # whoever writes looks and writes under this file's own lock
flock 9
newest=0
if [ -e report.fence ]; then newest=$(cat report.fence); fi
if ! [ "$1" -ge "$newest" ]; then
    echo "refused: fence $1 is older than $newest" >&2
    exit 1
fi
echo "$1" >report.fence.new
sync report.fence.new        # a machine that stops here forgets no fence
mv report.fence.new report.fence
echo "$2" >report.new
mv report.new report.txt
