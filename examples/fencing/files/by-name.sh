#!/bin/bash
# Writes the report beside the others, with the fence in its name: by-name.sh FENCE TEXT
name=$(printf 'report.%020d.txt' "$1")
echo "$2" >"$name.new"
mv "$name.new" "$name"
