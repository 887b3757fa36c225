#!/bin/bash
# Brings a release into production: deploy.sh NUMBER
set -eu
release=$1
production=${PRODUCTION:-production}
mkdir -p "$production"
there=$(cat "$production/release" 2>/dev/null || echo 0)

# Pipelines take different times. One that comes late must not undo what a later commit has brought.
if [ "$release" -lt "$there" ]; then
    echo "release $release is left out: release $there is there already"
    exit 0
fi
echo "release $release begins"
for part in one two three; do
    echo "$release" >"$production/$part"
done
# As a check that the new release is well would do.
if [ -n "${WAIT_FOR-}" ]; then
    until [ -e "$WAIT_FOR" ]; do sleep 0.1; done
fi
echo "$release" >"$production/release"
echo "release $release is there"
