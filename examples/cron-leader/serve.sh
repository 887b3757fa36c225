#!/bin/bash
# What one machine at a time does for as long as it can.
echo "$MACHINE leads" >>leaders.log
exec sleep infinity
