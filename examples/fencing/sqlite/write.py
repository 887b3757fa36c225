#!/usr/bin/env python3
"""Writes the report: write.py FENCE TEXT"""

import sqlite3
import sys

fence, text = int(sys.argv[1]), sys.argv[2]
with sqlite3.connect("report.db") as connection:
    try:
        connection.execute(
            "update report set text = ?, fence = ? where name = 'daily'", (text, fence)
        )
    except sqlite3.IntegrityError as error:
        sys.exit(f"refused: {error}")
