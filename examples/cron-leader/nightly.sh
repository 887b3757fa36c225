#!/bin/bash
# What one machine does each night.
echo "nightly work on $MACHINE" >>nightly.log
