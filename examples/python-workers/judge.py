#!/usr/bin/env python3
"""Reads what the workers have noted, and says whether it is as it should be."""

import collections
import pathlib

begun, ended, inside, most = collections.Counter(), collections.Counter(), {}, 0
for line in pathlib.Path("log").read_text().splitlines():
    what, job, worker = line.split()
    if what == "begin":
        begun[job] += 1
        # Whoever begins anew what somebody else has begun knows that this one is gone.
        inside = {other: held for other, held in inside.items() if held != job}
        inside[worker] = job
        most = max(most, len(inside))
    else:
        ended[job] += 1
        del inside[worker]
jobs = sorted(path.name for path in pathlib.Path("jobs").iterdir())
right = all((pathlib.Path("done") / job).read_text() == job.upper() for job in jobs)
once = set(ended) == set(jobs) and set(ended.values()) == {1}
print(f"{len(jobs)} jobs, each ended once: {once}, with the right result: {right}")
print(f"begun anew after its worker was killed: {sum(begun.values()) - len(jobs)}")
print(f"never more than 2 at work: {most <= 2}")
