#!/bin/bash
# What cron runs at three o'clock on one machine: at-three.sh MACHINE NODE
MACHINE=$1 exec catraca lock --node "$2" -n nightly -- sh -c './nightly.sh; sleep 60'
